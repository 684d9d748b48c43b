//! One file per page: its view, its handler, its tests.

pub mod bundles;
pub mod choose;
pub mod compare;
pub mod find;
pub mod overview;
pub mod repairs;
pub mod run;
pub mod runs;
pub mod styleguide;
