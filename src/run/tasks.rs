//! The tasks of a run, as the page shows them.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Tasks {
    pub window: Window,
}
