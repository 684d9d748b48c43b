//! What a run waits for, or has waited for, as the page shows it.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Waits {
    pub window: Window,
}
