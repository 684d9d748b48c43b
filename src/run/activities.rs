//! The activities of a run, with their attempts, as the page shows them.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Activities {
    pub window: Window,
}
