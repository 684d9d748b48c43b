//! Who asked a run for what, as the page shows it.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Commands {
    pub window: Window,
}
