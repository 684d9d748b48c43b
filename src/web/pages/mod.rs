//! One file per page: its view, its handler, its tests.

pub mod choose;
pub mod find;
pub mod overview;
pub mod run;
pub mod runs;
pub mod styleguide;
