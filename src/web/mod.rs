//! HTTP: routes, pages, JSON. The frame (headers, errors, layout) is the same for all of them;
//! a page brings its view and its handler and nothing else.

pub mod api;
pub mod assets;
pub mod batches;
pub mod bundles;
pub mod collector;
pub mod connections;
#[cfg(test)]
mod contrast;
pub mod error;
pub mod filters;
pub mod format;
pub mod frame;
pub mod kept;
pub mod layout;
pub mod marks;
pub mod origin;
pub mod pages;
pub mod routes;
pub mod state;
pub mod telemetry;
