//! The units of a run in time: what the timeline draws.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::{
    durable::{
        projection::{
            Projected,
            activities::Activity,
            attempts::{Attempt, StopReason},
            children::Child,
            retries,
            signals::Signal,
            timers::Timer,
            updates::Update,
            waits::{conditions::ConditionWait, signals::SignalWait},
        },
        stored::{
            ActivityStatus, AttemptStatus, ClosedReason, HistoryEvent, RunStatus, TimerStatus,
        },
    },
    run::{
        timeline::{
            Kind, Mark, Phase, Span, Timeline, Unit,
            draw::{Range, Story, draw},
        },
        window::Asked,
    },
};

/// Tries ahead that are drawn; the section of activities tells of the rest.
const AHEAD: usize = 4;

pub fn timeline(p: &Projected<'_>, asked: &Asked, range: Range) -> Timeline {
    draw(story(p), asked, range)
}

fn story(p: &Projected<'_>) -> Story {
    let now = p.cx.now;
    let run = &p.cx.snapshot.run;
    let is_open = !run.status.is_terminal();
    let mut units: Vec<Unit> = Vec::new();
    units.extend(p.activities.iter().map(|activity| of_activity(p, activity)));
    units.extend(
        p.timers
            .iter()
            .filter(|timer| timer.timer_kind.is_none())
            .map(|timer| of_timer(p, timer)),
    );
    units.extend(
        p.conditions
            .iter()
            .map(|condition| of_condition(p, condition)),
    );
    let waits = Waits::of(&p.signal_waits);
    let mut brought: HashMap<&str, Vec<&Signal>> = HashMap::new();
    for signal in &p.signals {
        match waits.of_signal(signal) {
            Some(wait) => brought.entry(wait).or_default().push(signal),
            None => units.push(of_signal(p, signal)),
        }
    }
    units.extend(p.signal_waits.iter().map(|wait| {
        let signals = brought.remove(wait.signal_wait_id.as_str());
        of_signal_wait(p, wait, &signals.unwrap_or_default())
    }));
    units.extend(p.updates.iter().map(|update| of_update(p, update)));
    units.extend(p.children.iter().map(|child| of_child(p, child)));
    units.retain(|unit| !unit.spans.is_empty());
    units.sort_by_cached_key(|unit| (unit.from(), unit.id.clone()));

    let mut marks = Vec::new();
    if is_open {
        marks.push(Mark {
            name: "now",
            at: now,
            is_now: true,
        });
        for (name, at) in [
            ("run deadline", run.run_deadline_at),
            ("execution deadline", run.execution_deadline_at),
        ] {
            marks.extend(at.map(|at| Mark {
                name,
                at,
                is_now: false,
            }));
        }
    }
    Story {
        run: of_run(p),
        units,
        marks,
        now,
    }
}

fn of_run(p: &Projected<'_>) -> Unit {
    let run = &p.cx.snapshot.run;
    let is_open = !run.status.is_terminal();
    let reason = run.closed_reason.as_ref().map(ClosedReason::as_str);
    let from = run
        .started_at
        .or(run.created_at)
        .or_else(|| p.cx.snapshot.events.iter().find_map(HistoryEvent::time))
        .unwrap_or(p.cx.now);
    let to = run.closed_at.unwrap_or(if is_open {
        p.cx.now
    } else {
        // Closed, and nobody says when: up to the last thing heard of it.
        let events = &p.cx.snapshot.events;
        events
            .iter()
            .rev()
            .find_map(HistoryEvent::time)
            .unwrap_or(from)
    });
    let phase = match &run.status {
        RunStatus::Failed => Phase::Failed,
        RunStatus::Cancelled | RunStatus::Terminated => Phase::Cancelled,
        status if status.is_terminal() => Phase::Done,
        _ => Phase::Open,
    };
    Unit {
        id: "run".to_owned(),
        kind: Kind::Run,
        name: run.workflow_type.clone(),
        note: None,
        status: match reason {
            Some(reason) if reason != run.status.as_str() => format!("{}, {reason}", run.status),
            _ => run.status.to_string(),
        },
        is_open,
        failed: phase == Phase::Failed,
        spans: vec![waited(phase, from, to.max(from), "the run")],
        facts: Vec::new(),
        row: None,
        leads_to: None,
    }
}

// --- activities

fn of_activity(p: &Projected<'_>, activity: &Activity) -> Unit {
    let retry = retries::retry_state(p.cx, activity);
    let max = retry.as_ref().and_then(|retry| retry.max_attempts);
    let mut spans = tries(p, activity);
    if let Some(retry) = &retry {
        let last = spans.last().map(|span| span.to);
        if retry.waiting
            && let Some(from) = last
            && let Some(due) = retry.scheduled.as_ref().and_then(|s| s.retry_available_at)
        {
            if due > from {
                spans.push(stretch(
                    Phase::Backoff,
                    from,
                    due,
                    "waits before the next try",
                ));
            }
            if p.cx.now > due.max(from) {
                spans.push(stretch(
                    Phase::Queued,
                    due.max(from),
                    p.cx.now,
                    "due, waits for a worker",
                ));
            }
        }
        spans.extend(retry.coming().take(AHEAD).filter_map(|ahead| {
            let at = ahead.at?.max(p.cx.now);
            Some(Span {
                attempt: Some(ahead.attempt),
                ..stretch(
                    Phase::Ahead,
                    at,
                    at,
                    "not before then, if the try before fails",
                )
            })
        }));
    }
    let mut facts = vec![("Activity execution id", activity.id.clone())];
    facts.extend(activity.queue.clone().map(|queue| ("Queue", queue)));
    if let Some(cut) = retry.as_ref().and_then(retries::RetryState::cut) {
        facts.push(("No further try", cut_words(cut).to_owned()));
    }
    Unit {
        id: format!("activity-{}", activity.id),
        kind: Kind::Activity,
        name: activity.name().unwrap_or("activity").to_owned(),
        note: match (activity.attempt_count, max) {
            (made, Some(max)) if max > 1 || made > 1 => Some(format!("{made}/{max}")),
            (made, None) if made > 1 => Some(format!("try {made}")),
            _ => None,
        },
        status: activity.status.to_string(),
        is_open: activity.is_open(),
        failed: activity.status == ActivityStatus::Failed,
        spans,
        facts,
        row: Some(format!("activity-{}", activity.id)),
        leads_to: None,
    }
}

fn cut_words(cut: retries::Cut) -> &'static str {
    match cut {
        retries::Cut::MaxAttempts => "the policy allows no more tries",
        retries::Cut::NonRetryable => "the exception is non-retryable",
        retries::Cut::ScheduleToClose => "the activity's own deadline comes first",
        retries::Cut::RunDeadline => "the run's deadline comes first",
        retries::Cut::ExecutionDeadline => "the execution's deadline comes first",
        retries::Cut::RunClosed => "the run has ended",
        retries::Cut::Untold => "it failed for good and no event says why",
    }
}

/// The tries of an activity and the pauses between them.
fn tries(p: &Projected<'_>, activity: &Activity) -> Vec<Span> {
    let now = p.cx.now;
    let mut spans: Vec<Span> = Vec::new();
    let mut until = activity.created_at;
    for attempt in &activity.attempts {
        let Some(from) = attempt.started_at else {
            continue;
        };
        if let Some(since) = until.filter(|since| *since < from) {
            let (phase, says) = if spans.is_empty() {
                (Phase::Queued, "scheduled, waits for a worker")
            } else {
                (Phase::Backoff, "pause before the next try")
            };
            spans.push(stretch(phase, since, from, says));
        }
        let (phase, to) = ended(attempt, now);
        let to = to.max(from);
        let says = match phase {
            Phase::Lost => "its lease ran out",
            Phase::Open => "a worker has it",
            Phase::Failed => "failed",
            Phase::Cancelled => "cancelled",
            _ => "completed",
        };
        spans.push(Span {
            attempt: attempt
                .attempt_number
                .or_else(|| i64::try_from(spans.len() + 1).ok()),
            ..stretch(phase, from, to, says)
        });
        until = Some(to);
    }
    if spans.is_empty() {
        spans.extend(untried(activity, now));
    }
    spans
}

fn ended(attempt: &Attempt, now: DateTime<Utc>) -> (Phase, DateTime<Utc>) {
    let lease = attempt.lease_expires_at.filter(|lease| *lease <= now);
    let expired = attempt.stop_reason == Some(StopReason::AttemptExpired);
    match (&attempt.status, attempt.closed_at) {
        _ if expired => (Phase::Lost, attempt.closed_at.or(lease).unwrap_or(now)),
        (Some(AttemptStatus::Expired), closed) => (Phase::Lost, closed.or(lease).unwrap_or(now)),
        (Some(AttemptStatus::Failed), closed) => (Phase::Failed, closed.unwrap_or(now)),
        (Some(AttemptStatus::Cancelled), closed) => (Phase::Cancelled, closed.unwrap_or(now)),
        (Some(AttemptStatus::Completed), closed) => (Phase::Done, closed.unwrap_or(now)),
        (_, Some(closed)) => (Phase::Done, closed),
        (_, None) => match lease {
            Some(lease) => (Phase::Lost, lease),
            None => (Phase::Open, now),
        },
    }
}

/// An activity of which no try is known.
fn untried(activity: &Activity, now: DateTime<Utc>) -> Vec<Span> {
    let Some(from) = activity.created_at.or(activity.started_at) else {
        return Vec::new();
    };
    let end = activity.closed_at.or(activity.last_heartbeat_at);
    match (&activity.status, activity.started_at) {
        (ActivityStatus::Pending, _) => {
            vec![stretch(
                Phase::Queued,
                from,
                now.max(from),
                "scheduled, waits for a worker",
            )]
        }
        (status, started) => {
            let started = started.unwrap_or(from).max(from);
            let phase = match status {
                ActivityStatus::Completed => Phase::Done,
                ActivityStatus::Cancelled => Phase::Cancelled,
                ActivityStatus::Running => Phase::Open,
                _ => Phase::Failed,
            };
            let to = match phase {
                Phase::Open => now,
                _ => end.unwrap_or(started),
            };
            let mut spans = Vec::new();
            if started > from {
                spans.push(stretch(
                    Phase::Queued,
                    from,
                    started,
                    "scheduled, waits for a worker",
                ));
            }
            spans.push(stretch(phase, started, to.max(started), status.as_str()));
            spans
        }
    }
}

// --- waits

fn of_timer(p: &Projected<'_>, timer: &Timer) -> Unit {
    let now = p.cx.now;
    let from = timer.created_at.or(timer.fire_at);
    let end = timer.fired_at.or(timer.cancelled_at);
    let is_open = timer.status == TimerStatus::Pending;
    let mut spans = Vec::new();
    if let Some(from) = from {
        let phase = match &timer.status {
            TimerStatus::Pending => Phase::Open,
            TimerStatus::Cancelled => Phase::Cancelled,
            _ => Phase::Done,
        };
        let to = end.unwrap_or(if is_open {
            now
        } else {
            timer.fire_at.unwrap_or(from)
        });
        spans.push(waited(phase, from, to.max(from), timer.status.as_str()));
        if let Some(due) = timer.fire_at.filter(|due| is_open && *due > now) {
            spans.push(stretch(Phase::Ahead, due, due, "fires"));
        }
    }
    Unit {
        id: format!("timer-{}", timer.id),
        kind: Kind::Timer,
        name: "timer".to_owned(),
        note: timer.delay_seconds.map(length),
        status: timer.status.to_string(),
        is_open,
        failed: false,
        spans,
        facts: vec![("Timer id", timer.id.clone())],
        row: Some(format!("wait-timer:{}", timer.id)),
        leads_to: None,
    }
}

/// A number of seconds as its largest whole unit.
fn length(seconds: i64) -> String {
    match seconds {
        s if s >= 86_400 && s % 86_400 == 0 => format!("{} d", s / 86_400),
        s if s >= 3_600 && s % 3_600 == 0 => format!("{} h", s / 3_600),
        s if s >= 60 && s % 60 == 0 => format!("{} m", s / 60),
        s => format!("{s} s"),
    }
}

/// One wait as a row: what it waits for, from when to when.
struct Waited<'w> {
    id: String,
    wait_id: &'w str,
    kind: Kind,
    name: &'w str,
    status: &'static str,
    says: &'static str,
    opened: Option<DateTime<Utc>>,
    resolved: Option<DateTime<Utc>>,
    deadline: Option<DateTime<Utc>>,
}

impl Waited<'_> {
    fn unit(self, p: &Projected<'_>) -> Unit {
        let now = p.cx.now;
        let is_open = self.status == "open" && !p.cx.snapshot.run.status.is_terminal();
        let late = matches!(self.says, "timed_out" | "timeout_fired");
        let mut spans = Vec::new();
        if let Some(from) = self.opened {
            let phase = match (is_open, self.status) {
                (true, _) => Phase::Open,
                (_, "resolved") if !late => Phase::Done,
                _ => Phase::Cancelled,
            };
            let to = if is_open {
                now
            } else {
                self.resolved.unwrap_or(from)
            };
            spans.push(waited(
                phase,
                from,
                to.max(from),
                &self.says.replace('_', " "),
            ));
            if let Some(due) = self.deadline.filter(|due| is_open && *due > now) {
                spans.push(stretch(Phase::Ahead, due, due, "its timeout"));
            }
        }
        Unit {
            id: self.id,
            kind: self.kind,
            name: self.name.to_owned(),
            note: None,
            status: self.says.replace('_', " "),
            is_open,
            failed: false,
            spans,
            facts: Vec::new(),
            row: Some(format!("wait-{}", self.wait_id)),
            leads_to: None,
        }
    }
}

fn of_condition(p: &Projected<'_>, wait: &ConditionWait) -> Unit {
    Waited {
        id: format!("condition-{}", wait.condition_wait_id),
        wait_id: &wait.condition_wait_id,
        kind: Kind::Condition,
        name: wait.condition_key.as_deref().unwrap_or("condition"),
        status: wait.status,
        says: wait.source_status,
        opened: wait.opened_at,
        resolved: wait.resolved_at,
        deadline: wait.deadline_at,
    }
    .unit(p)
}

fn of_signal_wait(p: &Projected<'_>, wait: &SignalWait, signals: &[&Signal]) -> Unit {
    let mut unit = Waited {
        id: format!("signal-wait-{}", wait.signal_wait_id),
        wait_id: &wait.signal_wait_id,
        kind: Kind::Signal,
        name: &wait.signal_name,
        status: wait.status,
        says: wait.source_status,
        opened: wait.opened_at,
        resolved: wait.resolved_at,
        deadline: wait.deadline_at,
    }
    .unit(p);
    unit.spans
        .extend(signals.iter().filter_map(|signal| received(signal)));
    unit
}

/// Which wait a signal ended, found without looking at each.
struct Waits<'w> {
    by_id: HashSet<&'w str>,
    by_signal: HashMap<&'w str, &'w str>,
}

impl<'w> Waits<'w> {
    fn of(waits: &'w [SignalWait]) -> Self {
        Self {
            by_id: waits
                .iter()
                .map(|wait| wait.signal_wait_id.as_str())
                .collect(),
            by_signal: waits
                .iter()
                .filter_map(|wait| Some((wait.signal_id.as_deref()?, wait.signal_wait_id.as_str())))
                .collect(),
        }
    }

    fn of_signal(&self, signal: &Signal) -> Option<&'w str> {
        let named = signal.signal_wait_id.as_deref();
        let named = named.and_then(|wait| self.by_id.get(wait).copied());
        named.or_else(|| self.by_signal.get(signal.id.as_deref()?).copied())
    }
}

fn received(signal: &Signal) -> Option<Span> {
    let at = signal.received_at.or(signal.applied_at)?;
    Some(stretch(Phase::Moment, at, at, "received"))
}

fn of_signal(p: &Projected<'_>, signal: &Signal) -> Unit {
    let mut spans: Vec<Span> = received(signal).into_iter().collect();
    let closed = signal
        .applied_at
        .or(signal.rejected_at)
        .or(signal.closed_at);
    let is_open = closed.is_none() && !p.cx.snapshot.run.status.is_terminal();
    if let Some(at) = signal.received_at {
        let to = closed.or(is_open.then_some(p.cx.now)).unwrap_or(at);
        let phase = match (is_open, signal.rejected_at) {
            (true, _) => Phase::Open,
            (_, Some(_)) => Phase::Cancelled,
            _ => Phase::Done,
        };
        if to > at {
            spans.push(waited(phase, at, to, signal.status.as_str()));
        }
    }
    let id = signal.id.as_ref().or(signal.command_id.as_ref());
    Unit {
        id: format!("signal-{}", id.map_or("", String::as_str)),
        kind: Kind::Signal,
        name: signal.name.clone().unwrap_or_else(|| "signal".to_owned()),
        note: None,
        status: signal.status.to_string(),
        is_open,
        failed: false,
        spans,
        facts: Vec::new(),
        row: id.map(|id| format!("signal-{id}")),
        leads_to: None,
    }
}

fn of_update(p: &Projected<'_>, update: &Update) -> Unit {
    let from = update
        .accepted_at
        .or(update.rejected_at)
        .or(update.applied_at);
    let closed = update
        .closed_at
        .or(update.rejected_at)
        .or(update.applied_at);
    let is_open = closed.is_none() && !p.cx.snapshot.run.status.is_terminal();
    let failed = update.failure_id.is_some() || update.failure_message.is_some();
    let phase = match (is_open, failed, update.rejected_at) {
        (true, ..) => Phase::Open,
        (_, true, _) => Phase::Failed,
        (.., Some(_)) => Phase::Cancelled,
        _ => Phase::Done,
    };
    let spans = from
        .map(|from| {
            let to = closed.or(is_open.then_some(p.cx.now)).unwrap_or(from);
            vec![waited(phase, from, to.max(from), update.status.as_str())]
        })
        .unwrap_or_default();
    let id = update.id.as_ref().or(update.command_id.as_ref());
    Unit {
        id: format!("update-{}", id.map_or("", String::as_str)),
        kind: Kind::Update,
        name: update.name.clone().unwrap_or_else(|| "update".to_owned()),
        note: None,
        status: update.status.to_string(),
        is_open,
        failed,
        spans,
        facts: Vec::new(),
        row: id.map(|id| format!("update-{id}")),
        leads_to: None,
    }
}

fn of_child(p: &Projected<'_>, child: &Child<'_>) -> Unit {
    let is_open = child.status == "open" && !p.cx.snapshot.run.status.is_terminal();
    let status = child.source_status.as_deref().unwrap_or(child.status);
    let phase = match (is_open, RunStatus::from(status)) {
        (true, _) => Phase::Open,
        (_, RunStatus::Failed) => Phase::Failed,
        (_, RunStatus::Cancelled | RunStatus::Terminated) => Phase::Cancelled,
        _ => Phase::Done,
    };
    let spans = child
        .opened_at
        .map(|from| {
            let to = child
                .resolved_at
                .or(is_open.then_some(p.cx.now))
                .unwrap_or(from);
            vec![Span {
                // Somebody works in it, if only elsewhere.
                idle: is_open,
                ..stretch(phase, from, to.max(from), status)
            }]
        })
        .unwrap_or_default();
    Unit {
        id: format!("child-{}", child.sequence),
        kind: Kind::Child,
        name: child.label.clone(),
        note: child.child_workflow_instance_id.clone(),
        status: status.to_owned(),
        is_open,
        failed: phase == Phase::Failed,
        spans,
        facts: child
            .child_workflow_instance_id
            .iter()
            .map(|id| ("Child instance", id.clone()))
            .collect(),
        row: child
            .child_workflow_run_id
            .as_ref()
            .map(|id| format!("child-{id}")),
        leads_to: child
            .child_workflow_instance_id
            .clone()
            .zip(child.child_workflow_run_id.clone()),
    }
}

fn stretch(phase: Phase, from: DateTime<Utc>, to: DateTime<Utc>, says: &str) -> Span {
    Span {
        phase,
        from,
        to,
        attempt: None,
        says: says.to_owned(),
        idle: false,
    }
}

/// A stretch in which this run does nothing itself.
fn waited(phase: Phase, from: DateTime<Utc>, to: DateTime<Utc>, says: &str) -> Span {
    Span {
        idle: true,
        ..stretch(phase, from, to, says)
    }
}
