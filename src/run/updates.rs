//! The updates of a run, as the page shows them.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Updates {
    pub window: Window,
}
