//! `/`: how the fleet stands, what needs a look, and what happened over the week.

mod chart;

use askama::Template;
use axum::{
    extract::State,
    response::{Html, IntoResponse as _, Response},
};
use chrono::TimeDelta;

use self::chart::{Bar, Chart, bars};
use crate::{
    durable::{
        collect::Gathered,
        metrics::{
            dashboard::{AlertKind, TypeHealth},
            health::{Check, Status},
        },
        projection::fleet::FleetWorker,
        store::{metrics::threshold, runs::Attention},
        stored::{RunSummary, Stamp},
    },
    run::tag::{Mark, Tag, Tone},
    web::{
        collector::{Latest, Standing},
        error::AppError,
        filters,
        format::{self, Moment, number},
        layout::{Layout, Nav, segment},
        state::App,
    },
};

/// Workers and types shown; more are counted.
const WORKERS: usize = 20;

#[derive(Template)]
#[template(path = "pages/overview.html")]
struct OverviewView {
    layout: Layout,
    body: Body,
}

/// What is replaced while the page lives.
#[derive(Template)]
#[template(path = "pages/overview_part.html")]
struct OverviewPart {
    body: Body,
}

struct Body {
    status: Tag,
    /// "2 of 12 checks need a look"
    checks_line: String,
    namespace: Option<String>,
    /// When the numbers were gathered, and how many milliseconds ago.
    measured: Moment,
    age_ms: i64,
    failing: Option<Moment>,
    tiles: Vec<Tile>,
    attention: Vec<Item>,
    checks: Vec<CheckView>,
    chart: Chart,
    failures: Vec<Bar>,
    backlog: Vec<Line>,
    oldest: Vec<Oldest>,
    types: Vec<TypeView>,
    workers: Vec<WorkerView>,
    workers_line: String,
    limits: Vec<LimitView>,
    coverage: String,
}

struct Tile {
    href: String,
    label: &'static str,
    count: String,
    note: String,
}

struct Item {
    tag: Tag,
    href: String,
    text: String,
    count: i64,
    note: String,
}

struct CheckView {
    tag: Tag,
    name: String,
    message: &'static str,
}

struct Line {
    label: &'static str,
    count: String,
    note: String,
    bad: bool,
}

struct Oldest {
    label: &'static str,
    moment: Moment,
    href: Option<String>,
}

struct TypeView {
    name: String,
    href: String,
    runs: String,
    tag: Tag,
    median: Option<TimeDelta>,
    errors: String,
}

struct WorkerView {
    id: String,
    place: String,
    supported: String,
    tag: Tag,
    heard: Option<Moment>,
}

struct LimitView {
    kind: String,
    limit: String,
    warns: String,
    near: Vec<(String, String, String)>,
}

pub async fn show(State(app): State<App>, layout: Layout) -> Result<Response, AppError> {
    let layout = layout.title("Overview").at(Nav::Overview);
    let (latest, standing) = app.collector()?.latest(false).await?;
    let body = body(&layout, &latest, &standing);
    let html = if layout.partial {
        OverviewPart { body }.render()
    } else {
        OverviewView { layout, body }.render()
    };
    let html = html.map_err(|error| AppError::internal("drawing the overview", error))?;
    Ok(Html(html).into_response())
}

fn body(layout: &Layout, latest: &Latest, standing: &Standing) -> Body {
    let gathered = &latest.gathered;
    let metrics = &gathered.metrics;
    let namespace = gathered.counted.namespace.clone();
    let not_ok = |check: &&Check| check.status != Status::Ok;
    let looks = gathered.health.checks.iter().filter(not_ok).count();
    let all = gathered.health.checks.len();
    Body {
        status: status_tag(gathered.health.status),
        checks_line: match looks {
            0 => format!("all {all} checks are fine"),
            1 => format!("1 of {all} checks needs a look"),
            n => format!("{n} of {all} checks need a look"),
        },
        measured: layout.moment(latest.at),
        age_ms: crate::web::api::metrics::age_ms(layout.now, latest.at),
        failing: standing
            .failing
            .as_ref()
            .map(|failing| layout.moment(failing.since)),
        tiles: tiles(layout, gathered),
        attention: attention(layout, gathered),
        checks: gathered.health.checks.iter().map(check_view).collect(),
        chart: Chart::of(&gathered.dashboard.fleet_trends_series, layout.zone),
        failures: bars(gathered.counted.failures.iter().map(|group| {
            let tag = Tag::failure_category(group.failure_category.as_deref());
            (tag.label.into_owned(), group.failures)
        })),
        backlog: backlog(gathered),
        oldest: oldest(layout, gathered),
        types: gathered
            .dashboard
            .workflow_type_health
            .iter()
            .map(|health| type_view(layout, health))
            .collect(),
        workers: metrics
            .workers
            .fleet
            .iter()
            .take(WORKERS)
            .map(|worker| worker_view(layout, worker))
            .collect(),
        workers_line: workers_line(gathered),
        limits: limits(layout, gathered),
        coverage: coverage(gathered),
        namespace,
    }
}

fn status_tag(status: Status) -> Tag {
    match status {
        Status::Ok => Tag::new("ok", Tone::Ok, Mark::Tick),
        Status::Warning => Tag::new("warning", Tone::Attn, Mark::Exclamation),
        Status::Error => Tag::new("error", Tone::Fail, Mark::Cross),
    }
}

fn check_view(check: &Check) -> CheckView {
    CheckView {
        tag: status_tag(check.status),
        name: check.name.replace('_', " "),
        message: check.message,
    }
}

/// The list with these filters, within the namespace the numbers are of.
fn runs_href(layout: &Layout, gathered: &Gathered, filters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(filters);
    if let Some(namespace) = &gathered.counted.namespace {
        query.append_pair("namespace", namespace);
    }
    match query.finish() {
        query if query.is_empty() => layout.href("/runs"),
        query => layout.href(&format!("/runs?{query}")),
    }
}

fn age(gathered: &Gathered, at: Option<Stamp>) -> Option<String> {
    at.map(|at| format::duration(at.age(gathered.counted.now)))
}

fn oldest_note(gathered: &Gathered, at: Option<Stamp>) -> String {
    age(gathered, at).map_or_else(String::new, |age| format!("oldest {age}"))
}

fn tiles(layout: &Layout, gathered: &Gathered) -> Vec<Tile> {
    let metrics = &gathered.metrics;
    let runs = &metrics.runs.counts;
    let trends = &gathered.dashboard.fleet_overview.trends;
    let of_bucket = |bucket| runs_href(layout, gathered, &[("status_bucket", bucket)]);
    let failed_share = {
        let closed = trends.hour.completed + trends.hour.failed;
        match closed {
            0 => "none closed past hour".to_owned(),
            closed => format!(
                "{} past hour, {} % of closed",
                number(trends.hour.failed),
                trends.hour.failed * 100 / closed
            ),
        }
    };
    vec![
        Tile {
            href: of_bucket("running"),
            label: "Running",
            count: number(runs.running),
            note: format!("{} waiting", number(runs.waiting)),
        },
        Tile {
            href: of_bucket("completed"),
            label: "Completed",
            count: number(runs.completed),
            note: format!("{} past hour", number(trends.hour.completed)),
        },
        Tile {
            href: of_bucket("failed"),
            label: "Failed",
            count: number(gathered.dashboard.fleet_overview.current.failed),
            note: failed_share,
        },
        Tile {
            href: runs_href(
                layout,
                gathered,
                &[("attention", Attention::RepairNeeded.word())],
            ),
            label: "Next task lost",
            count: number(runs.repair_needed),
            note: oldest_note(gathered, runs.oldest_repair_needed_at),
        },
        Tile {
            href: "#backlog".to_owned(),
            label: "Ready tasks",
            count: number(metrics.tasks.counts.ready_due),
            note: format!("{} unhealthy", number(metrics.tasks.unhealthy)),
        },
        Tile {
            href: "#backlog".to_owned(),
            label: "Retrying activities",
            count: number(metrics.activities.counts.retrying),
            note: format!(
                "{} failed attempts",
                number(metrics.activities.counts.failed_attempts)
            ),
        },
        Tile {
            href: "#workers".to_owned(),
            label: "Workers",
            count: metrics.workers.active_workers.to_string(),
            note: match &metrics.workers.required_compatibility {
                None => "no marker asked for".to_owned(),
                Some(_) => format!(
                    "{} support the marker",
                    metrics.workers.active_workers_supporting_required
                ),
            },
        },
    ]
}

/// What needs a look; each leads to the list of exactly those runs.
fn attention(layout: &Layout, gathered: &Gathered) -> Vec<Item> {
    let metrics = &gathered.metrics;
    let runs = &metrics.runs.counts;
    let list =
        |attention: Attention| runs_href(layout, gathered, &[("attention", attention.word())]);
    let counted = |n: i64, one: &str, many: &str| {
        if n == 1 {
            format!("1 run {one}")
        } else {
            format!("{} runs {many}", number(n))
        }
    };
    let mut items = vec![
        Item {
            tag: Tag::repair(),
            href: list(Attention::RepairNeeded),
            text: counted(
                runs.repair_needed,
                "has lost its next task",
                "have lost their next task",
            ),
            count: runs.repair_needed,
            note: age(gathered, runs.oldest_repair_needed_at).unwrap_or_default(),
        },
        Item {
            tag: Tag::new("claim", Tone::Attn, Mark::Exclamation),
            href: list(Attention::ClaimFailed),
            text: counted(
                runs.claim_failed,
                "whose task no worker could claim",
                "whose task no worker could claim",
            ),
            count: runs.claim_failed,
            note: age(gathered, metrics.tasks.counts.oldest_claim_failed_at).unwrap_or_default(),
        },
        Item {
            tag: Tag::new("compatibility", Tone::Attn, Mark::Lock),
            href: list(Attention::CompatibilityBlocked),
            text: counted(
                runs.compatibility_blocked,
                "waits for a worker that may take it",
                "wait for a worker that may take them",
            ),
            count: runs.compatibility_blocked,
            note: age(
                gathered,
                metrics.backlog.oldest_compatibility_blocked_started_at,
            )
            .unwrap_or_default(),
        },
    ];
    items.retain(|item| item.count > 0);
    for alert in &gathered.dashboard.needs_attention.alerts {
        let (label, tone, mark, href) = match alert.kind {
            AlertKind::StuckWorkers => ("workers", Tone::Attn, Mark::Clock, "#workers".to_owned()),
            AlertKind::LongRunning => (
                "long",
                Tone::Wait,
                Mark::Clock,
                list(Attention::LongRunning),
            ),
            AlertKind::RetryStorm => (
                "retry storm",
                Tone::Fail,
                Mark::Loop,
                list(Attention::RetryStorm),
            ),
            AlertKind::HighFailureRate => (
                "failures",
                Tone::Fail,
                Mark::Cross,
                list(Attention::FailedPastHour),
            ),
            AlertKind::LongWaits => (
                "long wait",
                Tone::Wait,
                Mark::Hourglass,
                list(Attention::LongWaits),
            ),
        };
        items.push(Item {
            tag: Tag::new(label, tone, mark).titled(alert.action),
            href,
            text: alert.message.clone(),
            count: alert.count,
            note: String::new(),
        });
    }
    items
}

fn backlog(gathered: &Gathered) -> Vec<Line> {
    let metrics = &gathered.metrics;
    let (tasks, repair) = (&metrics.tasks.counts, &metrics.repair);
    let policy = &metrics.repair_policy;
    let line = |label, count: i64, note: String, bad| Line {
        label,
        count: number(count),
        note,
        bad,
    };
    let oldest = |at| oldest_note(gathered, at);
    vec![
        line(
            "Ready and due",
            tasks.ready_due,
            oldest(tasks.oldest_ready_due_at),
            false,
        ),
        line("Delayed", tasks.delayed, String::new(), false),
        line("Leased", tasks.leased, String::new(), false),
        line(
            "Lease expired",
            tasks.lease_expired,
            oldest(tasks.oldest_lease_expired_at),
            tasks.lease_expired > 0,
        ),
        line(
            "Dispatch failed",
            tasks.dispatch_failed,
            oldest(tasks.oldest_dispatch_failed_at),
            tasks.dispatch_failed > 0,
        ),
        line(
            "Dispatch overdue",
            tasks.dispatch_overdue,
            format!(
                "not picked up {} s after it was due",
                policy.redispatch_after_seconds
            ),
            tasks.dispatch_overdue > 0,
        ),
        line(
            "Claim failed",
            tasks.claim_failed,
            oldest(tasks.oldest_claim_failed_at),
            tasks.claim_failed > 0,
        ),
        line(
            "Retrying activities",
            metrics.activities.counts.retrying,
            oldest(metrics.activities.counts.oldest_retrying_started_at),
            false,
        ),
        line(
            "Activities past a deadline",
            metrics.activities.counts.timeout_overdue,
            oldest(metrics.activities.counts.oldest_timeout_overdue_at),
            metrics.activities.counts.timeout_overdue > 0,
        ),
        line(
            "Repair: tasks",
            repair.existing_task_candidates,
            format!(
                "{} in the next pass, at most {}",
                repair.selected_existing_task_candidates, policy.scan_limit
            ),
            repair.existing_task_scan_limit_reached,
        ),
        line(
            "Repair: runs without a task",
            repair.missing_task_candidates,
            format!(
                "{} in the next pass, at most {}",
                repair.selected_missing_task_candidates, policy.scan_limit
            ),
            repair.missing_task_scan_limit_reached,
        ),
    ]
}

fn oldest(layout: &Layout, gathered: &Gathered) -> Vec<Oldest> {
    let metrics = &gathered.metrics;
    let run = gathered.counted.longest_wait.as_ref();
    [
        (
            "Run that waits",
            metrics.runs.counts.oldest_wait_started_at,
            run.map(|run| run_href(layout, run)),
        ),
        (
            "Start not begun",
            metrics.starts.oldest_pending_start_at,
            Some(runs_href(layout, gathered, &[("status", "pending")])),
        ),
        ("Ready task", metrics.tasks.counts.oldest_ready_due_at, None),
        ("Task in trouble", metrics.tasks.oldest_unhealthy_at, None),
        (
            "Retrying activity",
            metrics.activities.counts.oldest_retrying_started_at,
            None,
        ),
        (
            "Schedule past its time",
            metrics.schedules.counts.oldest_overdue_at,
            None,
        ),
    ]
    .into_iter()
    .filter_map(|(label, at, href)| {
        Some(Oldest {
            label,
            moment: layout.moment(at?.0),
            href,
        })
    })
    .collect()
}

fn run_href(layout: &Layout, run: &RunSummary) -> String {
    layout.href(&format!(
        "/instances/{}/runs/{}",
        segment(&run.workflow_instance_id),
        segment(&run.id)
    ))
}

fn type_view(layout: &Layout, health: &TypeHealth) -> TypeView {
    let closed = health.status_breakdown.completed + health.error_count;
    let (tone, mark) = match health.pass_rate {
        _ if closed == 0 => (Tone::Wait, Mark::Ring),
        rate if rate >= 95.0 => (Tone::Ok, Mark::Tick),
        rate if rate >= 80.0 => (Tone::Attn, Mark::Exclamation),
        _ => (Tone::Fail, Mark::Cross),
    };
    let rate = if closed == 0 {
        "none closed".to_owned()
    } else {
        format!("{} %", health.pass_rate)
    };
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("workflow_type", &health.workflow_type)
        .finish();
    TypeView {
        href: layout.href(&format!("/runs?{query}")),
        name: health.workflow_type.clone(),
        runs: number(health.total_runs),
        tag: Tag::new(rate, tone, mark),
        median: health.median_duration_ms.map(TimeDelta::milliseconds),
        errors: number(health.error_count),
    }
}

fn worker_view(layout: &Layout, worker: &FleetWorker) -> WorkerView {
    let place = [&worker.namespace, &worker.connection, &worker.queue]
        .into_iter()
        .flatten()
        .cloned()
        .collect::<Vec<_>>()
        .join(" · ");
    WorkerView {
        id: worker.worker_id.clone(),
        place: if place.is_empty() {
            "any queue".to_owned()
        } else {
            place
        },
        supported: if worker.supported.is_empty() {
            "no marker".to_owned()
        } else {
            worker.supported.join(", ")
        },
        tag: if worker.supports_required {
            Tag::new("compatible", Tone::Ok, Mark::Tick)
        } else {
            Tag::new("incompatible", Tone::Attn, Mark::Lock)
        },
        heard: worker.recorded_at.map(|at| layout.moment(at)),
    }
}

fn workers_line(gathered: &Gathered) -> String {
    let workers = &gathered.metrics.workers;
    let shown = workers.fleet.len().min(WORKERS);
    let asked = match &workers.required_compatibility {
        Some(marker) => format!("marker {marker} asked for"),
        None => "no marker asked for".to_owned(),
    };
    if shown < workers.fleet.len() {
        format!("{shown} of {} shown · {asked}", workers.fleet.len())
    } else {
        asked
    }
}

fn limits(layout: &Layout, gathered: &Gathered) -> Vec<LimitView> {
    let limits = &gathered.metrics.structural_limits;
    let percent = limits.warning_threshold_percent;
    limits
        .kinds()
        .into_iter()
        .map(|(kind, limit)| {
            let near = gathered
                .counted
                .near_limits
                .iter()
                .filter(|near| near.kind == kind)
                .flat_map(|near| &near.runs)
                .map(|run| {
                    let id = run.run_id.clone().unwrap_or_default();
                    let share = run.open.saturating_mul(100) / limit.max(1);
                    let href = runs_href(layout, gathered, &[("run_id", &id)]);
                    (href, id, format!("{} · {share} %", number(run.open)))
                })
                .collect();
            LimitView {
                kind: kind.replace('_', " "),
                limit: if limit == 0 {
                    "off".to_owned()
                } else {
                    number(limit)
                },
                warns: threshold(limit, percent).map_or_else(String::new, number),
                near,
            }
        })
        .collect()
}

fn coverage(gathered: &Gathered) -> String {
    let coverage = &gathered.coverage;
    let runs = number(coverage.runs);
    if coverage.complete {
        format!("Stored projections compared for all {runs} runs.")
    } else {
        format!(
            "Stored projections compared for {runs} of {} runs so far; the walk goes on.",
            number(gathered.counted.run_table.runs)
        )
    }
}
