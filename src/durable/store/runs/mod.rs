//! The run list: filters, the index that serves them, pages, and what a page's rows need.

mod access;
mod condition;
pub mod counts;
mod cursor;
pub mod extras;
mod filter;
pub mod merged;
mod page;
mod unprojected;

pub use cursor::{Cursor, Key, Way};
pub use filter::{
    Attention, FIELDS, Field, Filter, FilterError, Kind, LONGEST, Term, Test, categories, field,
    is_too_long, moment, task_problems,
};
pub use page::{
    ATTENTION_WINDOW, Direction, Looked, PageRequest, RunPage, Skipped, WINDOW, page, skip,
};
pub use unprojected::{CHECKED, unprojected};
