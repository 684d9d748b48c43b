//! What went wrong in a run, as the page shows it.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Exceptions {
    pub window: Window,
}
