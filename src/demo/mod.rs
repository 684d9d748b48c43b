//! The catalogue of situations and the load generator.
