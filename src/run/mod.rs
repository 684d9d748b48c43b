//! Engine-neutral values a page shows; each engine maps into these.

pub mod activities;
pub mod children;
pub mod commands;
pub mod comparison;
pub mod data;
pub mod diagnosis;
pub mod exceptions;
pub mod fact;
pub mod head;
pub mod history;
pub mod list;
pub mod notice;
pub mod page;
pub mod section;
pub mod signals;
pub mod tag;
pub mod tasks;
pub mod timeline;
pub mod updates;
pub mod waits;
pub mod window;
pub mod worker;
