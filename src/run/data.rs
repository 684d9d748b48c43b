//! Memo, search attributes, messages and payloads of a run, as the page shows them.

use super::window::Window;

#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub window: Window,
}
