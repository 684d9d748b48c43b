//! What every handler may ask for, shared by all requests: the settings, decided at start and never
//! changed, and what the server remembers while it runs (counts, kept pages, opened bundles, bulk
//! repairs, the collector's numbers, its own telemetry), each of which guards itself.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::db::Db;
use crate::durable::engine_config::EngineConfig;
use crate::durable::export::{Policy, SigningKey};
use crate::durable::repair::Mode;
use crate::durable::store::reader::Reader;
use crate::durable::store::runs::counts::CountCache;
use crate::web::api::export::Turns;
use crate::web::batches::Batches;
use crate::web::bundles::Bundles;
use crate::web::collector::{self, Collector};
use crate::web::error::AppError;
use crate::web::kept::KeptPages;
use crate::web::origin::{Forms, Hosts};
use crate::web::telemetry::Telemetry;
use crate::{clock::Clock, zone::Zone};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Cheap to clone; the fields are read through it: `app.base`, `app.clock`.
#[derive(Clone, Debug)]
pub struct App(Arc<Settings>);

#[derive(Debug)]
pub struct Settings {
    pub base: BasePath,
    pub clock: Clock,
    /// The one zone times are shown in.
    pub zone: Zone,
    /// What may be repaired, and how; without it nothing is ever written.
    pub repairs: Option<Repairs>,
    /// What makes our forms ours.
    pub forms: Forms,
    /// Under which names something may be written.
    pub hosts: Hosts,
    pub demo: bool,
    /// The engine's database; without one only exported bundles can be opened.
    pub db: Option<Db>,
    /// The engine's own settings, by which its rows are judged.
    pub engine: EngineConfig,
    /// What exported bundles are made with.
    pub export: ExportSettings,
    /// How many exports are made at a time.
    pub exports: Turns,
    /// Counts of the run list, computed once for all viewers.
    pub counts: CountCache,
    /// Reads runs for pages and their JSON, as far as they may be seen; made with the app.
    pub reader: Reader,
    /// Bulk repairs that are under way or were, for a while.
    pub batches: Batches,
    /// Bundles that were opened, for a while.
    pub bundles: Bundles,
    /// Pages of long runs, while nothing about them changes.
    pub kept: KeptPages,
    /// How the fleet's numbers are gathered.
    pub gathering: collector::Options,
    /// What gathers them; made with the app where there is a database.
    pub collector: Option<Collector>,
    /// What this process itself does.
    pub telemetry: Telemetry,
    /// How long a handler may take before the caller gets an answer anyway.
    pub request_timeout: Duration,
}

/// The right to repair.
#[derive(Clone, Debug)]
pub struct Repairs {
    /// Connections of its own, which may write; all others cannot.
    pub db: Db,
    pub mode: Mode,
}

/// What no bundle may carry, and the key that signs it.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    pub policy: Option<Policy>,
    pub key: Option<SigningKey>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base: BasePath::default(),
            clock: Clock::System,
            zone: Zone::UTC,
            repairs: None,
            forms: Forms::default(),
            hosts: Hosts::default(),
            demo: false,
            db: None,
            engine: EngineConfig::defaults(),
            export: ExportSettings::default(),
            exports: Turns::default(),
            counts: CountCache::default(),
            reader: Reader::default(),
            batches: Batches::default(),
            bundles: Bundles::default(),
            kept: KeptPages::default(),
            gathering: collector::Options::default(),
            collector: None,
            telemetry: Telemetry::default(),
            request_timeout: Duration::from_secs(30),
        }
    }
}

impl App {
    pub fn new(mut settings: Settings) -> Self {
        if let Some(db) = &settings.db {
            settings.exports.open(db);
        }
        settings.reader = Reader::under(settings.export.policy.as_ref());
        if let (Some(db), None) = (&settings.db, &settings.collector) {
            settings.collector = Some(Collector::new(
                db.clone(),
                settings.clock,
                settings.engine.clone(),
                settings.gathering.clone(),
            ));
        }
        Self(Arc::new(settings))
    }

    /// The fleet's numbers, for a page that cannot be without them.
    pub fn collector(&self) -> Result<&Collector, AppError> {
        self.db()?;
        self.collector.as_ref().ok_or(AppError::Timeout)
    }

    /// The right to repair, for a request that needs it.
    pub fn repairs(&self) -> Result<&Repairs, AppError> {
        self.repairs.as_ref().ok_or_else(|| AppError::Forbidden {
            message: "This copy of Plimsoll is read-only: it was started without --allow-repair."
                .to_owned(),
            how: "Start it with --allow-repair and a database user that may write.".to_owned(),
        })
    }

    /// How a repair would be done; a copy that does none shows what another would do.
    pub fn repair_mode(&self) -> Mode {
        self.repairs
            .as_ref()
            .map_or(Mode::Direct, |repairs| repairs.mode)
    }

    /// The database, for a page that cannot be without one.
    pub fn db(&self) -> Result<&Db, AppError> {
        self.db.as_ref().ok_or_else(|| AppError::Unavailable {
            what: "A database".to_owned(),
            how: "Start Plimsoll with --database-url to see runs.".to_owned(),
            source: None,
        })
    }
}

impl Deref for App {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.0
    }
}

/// Where Plimsoll's pages live: `""` at the root, otherwise `/x` or `/x/y`, never with a slash
/// at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasePath(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BasePathError {
    #[error("the base path {0:?} must start with a slash, such as \"/waterline\"")]
    NoLeadingSlash(String),
    #[error("the base path {0:?} has an empty segment; write \"/x/y\", not \"/x//y\"")]
    EmptySegment(String),
    #[error(
        "the base path segment {0:?} may hold only letters, digits, \"-\", \"_\", \".\" and \"~\", and not be \".\" or \"..\""
    )]
    Segment(String),
    #[error("the base path {0:?} is the address of a probe, which stays at the root")]
    Reserved(String),
}

impl BasePath {
    /// Paths at the root whatever the base is.
    const RESERVED: [&str; 5] = ["/favicon.ico", "/livez", "/metrics", "/readyz", "/up"];

    /// The address of a page: `base.path("/runs")`.
    pub fn path(&self, below: &str) -> String {
        format!("{}{below}", self.0)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The rest of a path below the base, or nothing when it lies elsewhere.
    pub fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&*self.0)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Default for BasePath {
    fn default() -> Self {
        Self(Arc::from("/waterline"))
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BasePath {
    type Err = BasePathError;

    fn from_str(text: &str) -> Result<Self, BasePathError> {
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.is_empty() {
            return Ok(Self(Arc::from("")));
        }
        let Some(segments) = path.strip_prefix('/') else {
            return Err(BasePathError::NoLeadingSlash(text.to_owned()));
        };
        for segment in segments.split('/') {
            if segment.is_empty() {
                return Err(BasePathError::EmptySegment(text.to_owned()));
            }
            // Braces would be captures to the router; anything encoded would match nothing.
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
            if !segment.chars().all(plain) || segment == "." || segment == ".." {
                return Err(BasePathError::Segment(segment.to_owned()));
            }
        }
        if Self::RESERVED.contains(&path) {
            return Err(BasePathError::Reserved(path.to_owned()));
        }
        Ok(Self(Arc::from(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_is_root_or_plain_segments() {
        let table = [
            ("", Ok("")),
            ("/", Ok("")),
            ("/x", Ok("/x")),
            ("/x/", Ok("/x")),
            ("/x/y", Ok("/x/y")),
            ("/up/x", Ok("/up/x")),
            ("x", Err("must start with a slash")),
            ("//x", Err("empty segment")),
            ("/x//y", Err("empty segment")),
            ("/x/../y", Err("\"..\"")),
            ("/{id}", Err("\"{id}\"")),
            ("/a b", Err("\"a b\"")),
            ("/livez", Err("address of a probe")),
        ];
        for (text, expected) in table {
            match (text.parse::<BasePath>(), expected) {
                (Ok(base), Ok(expected)) => assert_eq!(base.as_str(), expected, "{text:?}"),
                (Err(error), Err(part)) => {
                    assert!(error.to_string().contains(part), "{text:?}: {error}");
                }
                (got, _) => panic!("{text:?} gave {got:?}"),
            }
        }
    }

    #[test]
    fn a_path_below_the_base_is_told_from_a_neighbour() {
        let base: BasePath = "/x".parse().unwrap();
        assert_eq!(base.path("/runs"), "/x/runs");
        assert_eq!(base.strip("/x/api/stats"), Some("/api/stats"));
        assert_eq!(base.strip("/x"), Some(""));
        assert_eq!(base.strip("/xy"), None);
    }
}
