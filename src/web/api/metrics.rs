//! `GET /api/operator-metrics`, `/api/stats`, `/api/v2/health`: the fleet's numbers as Waterline's
//! dashboards and alerts read them, and beside them, under `plimsoll`, how old they are.

use axum::{
    extract::{Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    durable::{
        collect::{Coverage, Gathered},
        engine_config::EngineConfig,
        metrics::{
            backend::readiness_contract,
            ground::Lacks,
            health::{Check, Health, Status},
            pollers,
        },
        store::metrics::{rows, sweep},
        stored::Stamp,
    },
    web::{error::AppError, state::App},
};

/// Every document, written once per pass and when passes begin to fail. An answer is one of them
/// with its age at the end.
#[derive(Debug)]
pub struct Rendered {
    metrics: Document,
    stats: Document,
    health: Document,
    pub prometheus: String,
}

#[derive(Debug)]
struct Document {
    status: StatusCode,
    /// Without the closing brace, which comes with the age.
    text: String,
}

impl Document {
    fn new(available: bool, document: &Value) -> Self {
        let mut text = document.to_string();
        text.pop();
        let status = if available {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        Self { status, text }
    }
}

impl Rendered {
    pub fn of(
        gathered: &Gathered,
        health: &Health,
        namespace: Option<&str>,
        config: &EngineConfig,
        lacks: &Lacks,
    ) -> Self {
        let told = Told {
            gathered,
            health,
            namespace,
            config,
            lacks,
        };
        let available = lacks.required().is_empty();
        let [metrics, stats] = if available {
            [told.metrics(), told.stats()]
        } else {
            [told.no_numbers(), told.no_numbers()]
        };
        Self {
            metrics: Document::new(available, &metrics),
            stats: Document::new(available, &stats),
            // 503 exactly when a check says error.
            health: Document::new(health.healthy, &told.health()),
            prometheus: super::prometheus::fleet(gathered, health, lacks, config),
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    fresh: Option<String>,
    classification: Option<String>,
}

impl Asked {
    fn fresh(&self) -> bool {
        let no = |asked: &str| matches!(asked, "" | "0") || asked.eq_ignore_ascii_case("false");
        self.fresh.as_deref().is_some_and(|asked| !no(asked))
    }

    /// All runs are counted: an answer to a question about some of them would be a wrong one.
    fn of_all_types(&self) -> Result<(), AppError> {
        match self.classification.as_deref() {
            None | Some("") => Ok(()),
            Some(_) => Err(AppError::invalid(
                "classification",
                "No classification of workflow types is configured; leave it out.",
            )),
        }
    }
}

pub async fn operator_metrics(
    State(app): State<App>,
    Query(asked): Query<Asked>,
) -> Result<Response, AppError> {
    answer(&app, &asked, |rendered| &rendered.metrics).await
}

pub async fn stats(
    State(app): State<App>,
    Query(asked): Query<Asked>,
) -> Result<Response, AppError> {
    asked.of_all_types()?;
    answer(&app, &asked, |rendered| &rendered.stats).await
}

pub async fn v2_health(
    State(app): State<App>,
    Query(asked): Query<Asked>,
) -> Result<Response, AppError> {
    match answer(&app, &asked, |rendered| &rendered.health).await {
        Ok(told) => Ok(told),
        // Without numbers the engine's own health is a warning, not an error.
        Err(error) => no_health(&app).ok_or(error),
    }
}

/// What is said of health while no pass went well yet.
fn no_health(app: &App) -> Option<Response> {
    let collector = app.collector().ok()?;
    let standing = collector.standing();
    let failing = standing.failing.filter(|_| standing.latest.is_none())?;
    let health = Health::unknown(
        Stamp(app.clock.now()),
        &failing.stalled(),
        collector.engine(),
    );
    let mut document = json!(health);
    document["operator_metrics"] = json!([]);
    document["namespace"] = json!(collector.namespace());
    document["operator_scope"] = operator_scope(collector.namespace());
    document["readiness_contract"] = readiness_contract();
    Some(axum::Json(document).into_response())
}

/// A document of the last pass, closed with what we say of it ourselves.
async fn answer(
    app: &App,
    asked: &Asked,
    document: impl Fn(&Rendered) -> &Document,
) -> Result<Response, AppError> {
    let collector = app.collector()?;
    let (latest, standing) = collector.latest(asked.fresh()).await?;
    let Document { status, text } = document(&latest.rendered);
    let now = app.clock.now();
    let walked = |coverage: &Coverage, bounds| {
        let lap = latest.gathered.lap_time(bounds, collector.pace(&latest));
        coverage.document(now, bounds, lap)
    };
    let ours = json!({
        "generated_at": Stamp(latest.at),
        "age_ms": age_ms(now, latest.at),
        "failing_since": standing.failing.as_ref().map(|failing| Stamp(failing.since)),
        "failing_because": standing.failing.as_ref().map(|failing| {
            let (what, more) = failing.words();
            format!("{what}. {more}")
        }),
        "passes": standing.passes(),
        "pass_duration_ms": latest.gathered.took.as_secs_f64() * 1e3,
        "pass_statements": latest.gathered.statements,
        "rows_swept": walked(&latest.gathered.rows, rows::BOUNDS),
        "swept": walked(&latest.gathered.histories, sweep::BOUNDS),
        "not_read": latest.gathered.counted.unread,
        "settings_not_understood": nonsense(app),
    });
    let body = format!("{text},\"plimsoll\":{ours}}}");
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((*status, json, body).into_response())
}

pub fn age_ms(now: DateTime<Utc>, at: DateTime<Utc>) -> i64 {
    (now - at).num_milliseconds().max(0)
}

fn nonsense(app: &App) -> Vec<Value> {
    app.engine
        .nonsense()
        .into_iter()
        .map(|found| json!({ "setting": found.path, "given": found.given, "used": found.used }))
        .collect()
}

/// Nothing here sorts workflow types into classes, so there is none to choose.
fn classification_scope() -> Value {
    json!({
        "classification": null,
        "label": "All workflow types",
        "workflow_types": null,
        "options": [],
        "available": false,
    })
}

/// What "past hour", "past day" and "past week" mean in the numbers.
fn time_windows(now: DateTime<Utc>) -> Value {
    let window = |length: TimeDelta| json!({ "from": Stamp(now - length), "to": Stamp(now) });
    json!({
        "generated_at": Stamp(now),
        "hour": window(TimeDelta::hours(1)),
        "day": window(TimeDelta::days(1)),
        "week": window(TimeDelta::weeks(1)),
    })
}

/// Runs of the first engine are not shown beside these; whether there are any nobody looks.
fn hybrid_migration_view(namespace: Option<&str>) -> Value {
    json!({
        "enabled": false,
        "available": false,
        "active": false,
        "reason": "disabled",
        "message": "Plimsoll shows v2 runs alone.",
        "primary_engine": "v2",
        "legacy_engine": "v1",
        "legacy_engine_version": "1.x",
        "legacy_identifier_format": "v1:<workflow-id>",
        "legacy_schema_present": null,
        "legacy_schema_complete": null,
        "legacy_workflows_present": null,
        "legacy_open_workflows_present": null,
        "namespace": namespace,
    })
}

fn operator_scope(namespace: Option<&str>) -> Value {
    match namespace {
        Some(namespace) => json!({
            "mode": "namespace",
            "namespace": namespace,
            "label": namespace,
            "authority": "tenant",
            "description": "The numbers are of one namespace.",
        }),
        None => json!({
            "mode": "cluster",
            "namespace": null,
            "label": "All namespaces",
            "authority": "cluster",
            "description": "The numbers are of all namespaces.",
        }),
    }
}

/// What the documents are made of.
struct Told<'a> {
    gathered: &'a Gathered,
    health: &'a Health,
    namespace: Option<&'a str>,
    config: &'a EngineConfig,
    lacks: &'a Lacks,
}

impl Told<'_> {
    fn metrics(&self) -> Value {
        let mut metrics = json!(self.gathered.metrics);
        self.leave_out(&mut metrics);
        metrics
    }

    /// Nobody counted these: a 0 would say that there are none.
    fn leave_out(&self, metrics: &mut Value) {
        if self.lacks.schedules() {
            metrics["schedules"] = Value::Null;
        }
    }

    fn stats(&self) -> Value {
        let mut stats = self.gathered.dashboard.document(&self.gathered.metrics);
        self.leave_out(&mut stats["operator_metrics"]);
        stats["engine_source"] = self.engine_source();
        stats["operator_scope"] = operator_scope(self.namespace);
        stats["classification_scope"] = classification_scope();
        stats["time_windows"] = time_windows(self.gathered.counted.now);
        stats["hybrid_migration_view"] = hybrid_migration_view(self.namespace);
        stats
    }

    /// Where the numbers would be those of tables that are not there.
    fn no_numbers(&self) -> Value {
        json!({
            "message": self.lacks.message(),
            "engine_source": self.engine_source(),
            "operator_scope": operator_scope(self.namespace),
        })
    }

    /// Plimsoll reads nothing but v2.
    fn engine_source(&self) -> Value {
        let available = self.lacks.required().is_empty();
        json!({
            "configured": "v2",
            "resolved": "v2",
            "uses_v2": available,
            "v2_operator_surface_available": available,
            "status": if available { "v2_pinned" } else { "v2_pinned_unavailable" },
            "severity": if available { "ok" } else { "error" },
            "message": self.lacks.message(),
            "readiness_contract": readiness_contract(),
            "issues": self.lacks.issues(),
            "required_tables": self.lacks.required_tables(),
        })
    }

    fn engine_source_check(&self) -> Value {
        let missing = self.lacks.required();
        json!({
            "name": "engine_source",
            "status": if missing.is_empty() { Status::Ok } else { Status::Error },
            "message": self.lacks.message(),
            "meta": {
                "configured": "v2",
                "resolved": "v2",
                "uses_v2": missing.is_empty(),
                "v2_operator_surface_available": missing.is_empty(),
                "issue_count": missing.len(),
            },
        })
    }

    /// The engine's health inside Waterline's envelope.
    fn health(&self) -> Value {
        let mut document = if self.lacks.required().is_empty() {
            self.checked()
        } else {
            json!({
                "generated_at": self.health.generated_at,
                "status": self.health.status,
                "healthy": self.health.healthy,
                "checks": [self.engine_source_check()],
            })
        };
        document["namespace"] = json!(self.namespace);
        document["operator_scope"] = operator_scope(self.namespace);
        document["engine_source"] = self.engine_source();
        document["hybrid_migration_view"] = hybrid_migration_view(self.namespace);
        document["readiness_contract"] = readiness_contract();
        document["readiness_issues"] = json!(self.lacks.issues());
        document["coordination_alerts"] = self.alerts();
        document
    }

    /// What the checks found, and what they found it in.
    fn checked(&self) -> Value {
        let gathered = self.gathered;
        let mut document = self.health.document(&gathered.metrics);
        self.leave_out(&mut document["operator_metrics"]);
        if let Some(checks) = document.get_mut("checks").and_then(Value::as_array_mut) {
            checks.insert(0, self.engine_source_check());
        }
        let registered = gathered.registered.as_ref();
        if let Some(registered) = registered
            && let Some(Value::Object(more)) = pollers::registrations(
                registered,
                self.namespace,
                gathered.counted.now,
                self.config,
            )
            && let Some(workers) = document["operator_metrics"]["workers"].as_object_mut()
        {
            workers.extend(more);
        }
        let (versioning, drains) = registered.map_or_else(Default::default, |registered| {
            let versioning = pollers::versioning(registered, gathered.counted.now, self.config);
            (versioning, pollers::drains(registered))
        });
        document["worker_versioning"] = json!(versioning);
        document["routing_drains"] = json!(drains);
        document["queue_visibility"] = queue_visibility(gathered, self.namespace);
        document
    }

    /// One alert per check that is not ok, then those of the queues. They change no status.
    fn alerts(&self) -> Value {
        let of_check = |check: &Check| {
            json!({
                "key": check.name,
                "source": "health_check",
                "status": check.status,
                "category": check.category,
                "title": check.name.replace('_', " "),
                "summary": check.message,
                "details": check.message,
                "facts": check.data,
            })
        };
        let checks = self.health.checks.iter();
        let mut alerts: Vec<Value> = checks
            .filter(|check| check.status != Status::Ok)
            .map(of_check)
            .collect();
        if self.lacks.required().is_empty() {
            alerts.extend(alerts_of_queues(self.gathered, self.namespace));
        }
        Value::Array(alerts)
    }
}

/// Why pollers are not known, where they are not.
fn unavailable(gathered: &Gathered, namespace: Option<&str>) -> Option<&'static str> {
    match (namespace, &gathered.registered) {
        (None, _) => Some("Queues are shown for one namespace; none is configured."),
        (Some(_), None) => Some(
            "Pollers register with the engine's server, whose table is not here; only tasks are counted.",
        ),
        (Some(_), Some(_)) => None,
    }
}

fn queue_visibility(gathered: &Gathered, namespace: Option<&str>) -> Value {
    let queues = gathered
        .queues
        .as_ref()
        .map(|queues| &queues["task_queues"]);
    let reason = unavailable(gathered, namespace);
    let mut document = json!({
        "available": reason.is_none(),
        "namespace": namespace,
        "task_queues": queues.cloned().unwrap_or_else(|| json!([])),
    });
    if let Some(reason) = reason {
        document["reason"] = json!(reason);
    }
    document
}

fn alerts_of_queues(gathered: &Gathered, namespace: Option<&str>) -> Vec<Value> {
    match (unavailable(gathered, namespace), namespace) {
        (None, _) => queue_alerts(gathered),
        (Some(reason), Some(_)) => vec![json!({
            "key": "queue_visibility_unavailable",
            "source": "queue_visibility",
            "status": "warning",
            "title": "Who polls the queues is not known",
            "summary": reason,
            "details": reason,
        })],
        (Some(_), None) => Vec::new(),
    }
}

/// What is the matter with each queue by itself.
fn queue_alerts(gathered: &Gathered) -> Vec<Value> {
    const BACKLOG: &str = "/stats/approximate_backlog_count";
    const POLLERS: &str = "/stats/pollers/active_count";
    const STALE: &str = "/stats/pollers/stale_count";
    const REPAIR: &str = "/repair/candidates";
    let queues = gathered
        .queues
        .as_ref()
        .and_then(|queues| queues["task_queues"].as_array());
    let count =
        |queue: &Value, pointer: &str| queue.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let rules = [
        (
            "queue_backlog_without_pollers",
            "error",
            "Tasks wait and nobody polls their queue",
            ("backlog_count", BACKLOG),
            &[("/stats/approximate_backlog_age_seconds", 1_000)][..],
        ),
        (
            "queue_stale_pollers",
            "warning",
            "Pollers fell silent",
            ("stale_poller_count", STALE),
            &[],
        ),
        (
            "queue_repair_candidates",
            "warning",
            "Queues with tasks to repair",
            ("candidate_count", REPAIR),
            &[
                ("/repair/max_dispatch_failed_age_ms", 1),
                ("/repair/max_lease_expired_age_ms", 1),
                ("/repair/max_dispatch_overdue_age_ms", 1),
            ],
        ),
    ];
    rules
        .into_iter()
        .filter_map(|(key, status, title, (sum, pointer), ages)| {
            let polled = |queue: &Value| pointer == BACKLOG && count(queue, POLLERS) > 0;
            let having: Vec<&Value> = queues
                .into_iter()
                .flatten()
                .filter(|queue| count(queue, pointer) > 0 && !polled(queue))
                .collect();
            let names: Vec<&Value> = having.iter().map(|queue| &queue["name"]).collect();
            let total: i64 = having.iter().map(|queue| count(queue, pointer)).sum();
            let oldest = having.iter().filter_map(|queue| {
                let ages = ages.iter();
                ages.map(|(pointer, ms)| count(queue, pointer) * ms).max()
            });
            let oldest = oldest.max();
            (!names.is_empty()).then(|| {
                let mut alert = json!({
                    "key": key,
                    "source": "queue_visibility",
                    "status": status,
                    "title": title,
                    "summary": title,
                    "details": title,
                    "queue_count": names.len(),
                    "queues": names,
                    sum: total,
                });
                if let Some(ms) = oldest {
                    alert["max_age_ms"] = json!(ms);
                }
                alert
            })
        })
        .collect()
}
