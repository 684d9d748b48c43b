//! The one integration binary: everything that needs a real database, on every database.
//!
//! `./test` or `scripts/databases run -- cargo test` runs it with a temporary PostgreSQL and
//! MariaDB; `PLIMSOLL_TEST_DATABASES=sqlite cargo test` is the quick mode.

mod column_kinds;
mod conformance;
mod copying;
mod corpus;
mod reading;
mod rig;
mod schema;
