//! HTTP: routes, pages, JSON.

pub mod api;
pub mod pages;
