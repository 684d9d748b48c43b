//! The signals of a run, as the page shows them.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Signals {
    pub window: Window,
}
