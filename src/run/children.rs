//! A run's parents and children, as the page shows them.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Children {
    pub window: Window,
}
