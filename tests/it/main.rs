//! The one integration binary: everything that needs a real database, on every database.
//!
//! `./test` or `scripts/databases run -- cargo test` runs it with a temporary PostgreSQL and
//! MariaDB. Without them, the tests that need one fail; `./test --quick` leaves those out by
//! name: every test of another database is called `…::postgres` or `…::mysql`.

mod bundles;
mod checker;
mod cli;
mod column_kinds;
mod compare;
mod comparing;
mod conformance;
mod copying;
mod damage;
mod diagnosis;
mod export;
mod export_http;
mod fuzz_seeds;
mod herd;
mod list_http;
mod list_item;
mod list_plans;
mod metrics_conformance;
mod metrics_ground;
mod metrics_http;
mod metrics_invariants;
mod metrics_outage;
mod metrics_plans;
mod near_limits;
mod page_size;
mod queue_visibility;
mod random_rows;
mod reading;
mod reading_changes_nothing;
mod readme;
mod redacted_pages;
mod redaction;
mod repair_bulk;
mod repair_catalogue;
mod repair_cli;
mod repair_conformance;
mod repair_form;
mod repair_http;
mod repair_killed;
mod repair_pass;
mod repair_races;
mod repair_refused;
mod repair_rights;
mod rig;
mod round_trip;
mod row_diff;
mod run_head;
mod run_history;
mod run_http;
mod run_kept;
mod run_sections;
mod run_timeline;
mod schema;
mod seed;
mod shop;
mod verify;
mod worker;
