//! What the engine stands on, as far as it can be known from outside its application: the
//! database by our own connection, the rest by its configuration. What is not known says so and
//! raises no issue.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::policy::{Limits, dispatch_mode};
use crate::{
    db::Dialect,
    durable::{
        engine_config::{self, EngineConfig},
        stored::Stamp,
    },
};

#[derive(Clone, Debug, Serialize)]
pub struct Backend {
    pub generated_at: Stamp,
    pub readiness_contract: Value,
    pub supported: bool,
    pub database: Value,
    pub queue: Value,
    pub cache: Value,
    pub codec: Value,
    pub structural_limits: StructuralLimits,
    pub severity: Severity,
    pub issues: Vec<Issue>,
}

/// The limits as configured, what the backend changes about them, and what holds.
#[derive(Clone, Debug, Serialize)]
pub struct StructuralLimits {
    pub configured: Limits,
    pub backend_adjustments: Map<String, Value>,
    pub effective: Value,
    pub issues: Vec<Issue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Issue {
    pub component: &'static str,
    pub severity: Severity,
    pub code: &'static str,
    pub message: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    Info,
    Warning,
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Backend {
    pub fn of(now: DateTime<Utc>, dialect: Dialect, config: &EngineConfig) -> Self {
        let host = config.host();
        let (database, database_issues) = database(host.database.as_ref(), dialect);
        let (queue, queue_issues) = queue(host.queue.as_ref(), dispatch_mode(config) == "poll");
        let (cache, cache_issues) = cache(host.cache.as_ref());
        let (codec, codec_issues) = codec(config);
        let structural_limits = limits(dialect, config);
        let issues: Vec<Issue> = [database_issues, queue_issues, cache_issues, codec_issues]
            .into_iter()
            .flatten()
            .chain(structural_limits.issues.iter().cloned())
            .collect();
        let severity = issues
            .iter()
            .map(|issue| issue.severity)
            .max()
            .unwrap_or(Severity::Ok);
        Self {
            generated_at: Stamp(now),
            readiness_contract: readiness_contract(),
            supported: severity < Severity::Error,
            database,
            queue,
            cache,
            codec,
            structural_limits,
            severity,
            issues,
        }
    }
}

/// Our own connection tells what the database is; how the application calls its driver, and
/// whether the engine takes that, only its configuration.
fn database(backend: Option<&engine_config::Backend>, dialect: Dialect) -> (Value, Vec<Issue>) {
    let ours = dialect.pick("sqlite", "pgsql", "mysql");
    let driver = backend
        .and_then(|backend| backend.driver.as_deref())
        .unwrap_or(ours);
    let taken = matches!(driver, "mysql" | "pgsql" | "sqlite" | "sqlsrv");
    let issues: Vec<Issue> = (!taken)
        .then_some(Issue {
            component: "database",
            severity: Severity::Error,
            code: "database_driver_unsupported",
            message: "The engine does not take this database driver; MariaDB goes by mysql.",
        })
        .into_iter()
        .collect();
    (
        json!({
            "connection": backend.map(|backend| &backend.name),
            "driver": driver,
            "supported": taken,
            "capabilities": {
                "transactions": taken,
                "after_commit_callbacks": taken,
                "durable_ordering": taken,
                "row_locks": taken && driver != "sqlite",
            },
            "issues": issues,
        }),
        issues,
    )
}

fn queue(backend: Option<&engine_config::Backend>, polled: bool) -> (Value, Vec<Issue>) {
    let Some(backend) = backend else {
        return (
            json!({
                "connection": null,
                "driver": null,
                "supported": null,
                "capabilities": {
                    "async_delivery": null,
                    "delayed_delivery": null,
                    "requires_worker": !polled,
                    "max_delay_seconds": null,
                    "after_commit_option": null,
                },
                "issues": [],
                "status": "unknown",
            }),
            Vec::new(),
        );
    };
    let severity = if polled {
        Severity::Info
    } else {
        Severity::Error
    };
    let driver = backend.driver.as_deref();
    let issue = match driver {
        None => Some((
            "queue_connection_missing",
            "The default queue connection is not configured.",
        )),
        Some("sync") => Some((
            "queue_sync_unsupported",
            "The sync queue runs jobs inside the caller; tasks need a queue with workers.",
        )),
        Some(_) => None,
    };
    let issues: Vec<Issue> = issue
        .map(|(code, message)| Issue {
            component: "queue",
            severity,
            code,
            message,
        })
        .into_iter()
        .collect();
    let delivers = issues.is_empty();
    (
        json!({
            "connection": backend.name,
            "driver": driver,
            "supported": delivers || polled,
            "capabilities": {
                "async_delivery": delivers,
                "delayed_delivery": delivers,
                "requires_worker": !polled,
                "max_delay_seconds": (driver == Some("sqs")).then_some(900),
                "after_commit_option": backend.after_commit,
            },
            "issues": issues,
        }),
        issues,
    )
}

fn cache(backend: Option<&engine_config::Backend>) -> (Value, Vec<Issue>) {
    let Some(backend) = backend else {
        return (
            json!({
                "store": null,
                "driver": null,
                "supported": null,
                "capabilities": { "atomic_locks": null },
                "issues": [],
                "status": "unknown",
            }),
            Vec::new(),
        );
    };
    let driver = backend.driver.as_deref();
    let locks = driver.is_some_and(|driver| !matches!(driver, "apc" | "session"));
    let issues: Vec<Issue> = match driver {
        None => Some((
            "cache_store_missing",
            "The default cache store is not configured.",
        )),
        Some(_) if !locks => Some((
            "cache_locks_unsupported",
            "The default cache store has no atomic locks.",
        )),
        Some(_) => None,
    }
    .map(|(code, message)| Issue {
        component: "cache",
        severity: Severity::Warning,
        code,
        message,
    })
    .into_iter()
    .collect();
    (
        json!({
            "store": backend.name,
            "driver": driver,
            // A warning never blocks.
            "supported": issues.iter().all(|issue| issue.severity < Severity::Error),
            "capabilities": { "atomic_locks": locks },
            "issues": issues,
        }),
        issues,
    )
}

fn codec(config: &EngineConfig) -> (Value, Vec<Issue>) {
    let configured = config.serializer();
    let known = configured.is_none_or(|name| name == "avro");
    let issues: Vec<Issue> = (!known)
        .then_some(Issue {
            component: "codec",
            severity: Severity::Error,
            code: "codec_unknown",
            message: "The configured payload codec is not one the engine knows.",
        })
        .into_iter()
        .collect();
    let canonical = configured.filter(|_| known);
    (
        json!({
            "configured": configured,
            "configured_canonical": canonical,
            "canonical": "avro",
            "universal": true,
            "configured_universal": canonical.is_some(),
            "supported": known,
            "issues": issues,
        }),
        issues,
    )
}

fn limits(dialect: Dialect, config: &EngineConfig) -> StructuralLimits {
    let configured = Limits::of(config);
    let mut adjustments = Map::new();
    let mut issues = Vec::new();
    let mut adjust = |key: &str, value: Value, code, message| {
        adjustments.insert(key.to_owned(), value);
        issues.push(Issue {
            component: "structural_limits",
            severity: Severity::Info,
            code,
            message,
        });
    };
    let queue = config.host().queue.as_ref();
    if queue.and_then(|queue| queue.driver.as_deref()) == Some("sqs") {
        adjust(
            "max_single_timer_delay_seconds",
            900.into(),
            "queue_max_delay_constraint",
            "SQS delays a message by 15 minutes at most; longer timers are chained.",
        );
    }
    if dialect == Dialect::Sqlite {
        adjust(
            "concurrent_write_safety",
            "limited".into(),
            "sqlite_concurrency_note",
            "SQLite takes one writer at a time; many workers will wait for each other.",
        );
    }
    let mut effective = json!(configured);
    if let Value::Object(effective) = &mut effective {
        effective.extend(adjustments.clone());
    }
    StructuralLimits {
        configured,
        backend_adjustments: adjustments,
        effective,
        issues,
    }
}

/// The machine-readable part of what must hold before each surface may be trusted.
pub fn readiness_contract() -> Value {
    let surface = |key: &str| json!({ "readiness_key": key });
    json!({
        "version": 1,
        "release_state": "v2_final_contract",
        "surfaces": {
            "boot_install": surface("v2_operator_surface_available"),
            "dispatch": surface("supported"),
            "claim": surface("last_claim_failed_at"),
            "stats": surface("engine_source.uses_v2"),
            "health": surface("engine_source.uses_v2"),
        },
        "backend_capabilities": {
            "database": {
                "supported_drivers": ["mysql", "pgsql", "sqlite", "sqlsrv"],
                "required_capabilities": ["transactions", "after_commit_callbacks", "durable_ordering"],
            },
            "queue": {
                "queue_mode": { "requires_async_delivery": true, "sync_or_missing_queue_severity": "error" },
                "poll_mode": { "requires_async_delivery": false, "sync_or_missing_queue_severity": "info" },
            },
            "cache": {
                "required_capabilities": ["atomic_locks"],
                "dispatch_blocking_severity": "warning",
                "role": "acceleration_only",
            },
            "codec": { "default_for_new_v2_runs": "avro", "unknown_codec": "error" },
        },
        "effective_states": {
            "dispatch": { "state": "evaluated_by_backend_capabilities_snapshot" },
            "claim": { "state": "evaluated_per_task_queue_connection" },
        },
    })
}
