//! What a run waits for or is sent: timers, conditions, signals and updates.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::{LEFT, Time, gone, row_only, stretch, waited};
use crate::{
    durable::{
        page::gone::Gone,
        projection::{
            activities::UNSUPPORTED,
            signals::Signal,
            timers::Timer,
            updates::Update,
            waits::{conditions::ConditionWait, signals::SignalWait},
        },
        stored::TimerStatus,
    },
    run::{
        fact::Facts,
        timeline::{Kind, Phase, Span, Unit},
    },
};

pub(super) fn of_timer(time: Time, lost: &Gone<'_>, timer: &Timer) -> Unit {
    let end = timer.fired_at.or(timer.cancelled_at);
    // Without an event that tells how it ended, its row does.
    let status = match &timer.row_status {
        Some(row) if timer.status.as_str() == UNSUPPORTED => row,
        _ => &timer.status,
    };
    let pending = timer.status == TimerStatus::Pending;
    let is_open = pending && time.is_open;
    let is_gone = is_open && lost.timer(&timer.id);
    let mut spans = Vec::new();
    if let Some(from) = timer.created_at.or(timer.fire_at) {
        let (phase, says) = match status {
            TimerStatus::Pending if is_open => (Phase::Open, status.as_str()),
            TimerStatus::Pending => (Phase::Cancelled, LEFT),
            TimerStatus::Cancelled => (Phase::Cancelled, status.as_str()),
            _ => (Phase::Done, status.as_str()),
        };
        let to = end.or(if pending {
            Some(time.until)
        } else {
            timer.fire_at
        });
        spans.push(if is_gone {
            gone(
                time,
                from,
                "pending, but its task is gone: nothing fires it",
            )
        } else {
            waited(phase, from, to.unwrap_or(from).max(from), says)
        });
        spans.extend(lost.lapsed(&timer.id).filter(|_| is_open).map(lapsed));
        let due = time.due(timer.fire_at.filter(|_| pending), "fires");
        spans.extend(due.filter(|due| !is_gone || due.phase == Phase::Due));
    }
    Unit {
        id: format!("timer-{}", timer.id),
        kind: Kind::Timer,
        name: "timer".to_owned(),
        family: "timer".to_owned(),
        note: timer.delay_seconds.map(length),
        status: status.to_string(),
        mark: row_only(timer.diagnostic_only, timer.history_authority),
        is_open,
        failed: false,
        spans,
        facts: Facts::default().id("Timer id", Some(&timer.id)).list(),
        row: Some(format!("wait-timer:{}", timer.id)),
        leads_to: None,
    }
}

/// A worker had the task and was not heard of again.
fn lapsed((from, until): (DateTime<Utc>, DateTime<Utc>)) -> Span {
    stretch(
        Phase::Lost,
        from,
        until,
        "a worker had its task when the lease ran out",
    )
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
    /// The task of its timeout is gone: what it waits for may still come.
    without_timeout: bool,
    /// The task of its timeout was a worker's whose lease ran out.
    lapsed: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl Waited<'_> {
    fn unit(self, time: Time) -> Unit {
        let is_open = self.status == "open" && time.is_open;
        let left = self.status == "open" && !time.is_open;
        let late = matches!(self.says, "timed_out" | "timeout_fired");
        let says = if left {
            LEFT.to_owned()
        } else {
            self.says.replace('_', " ")
        };
        let mut spans = Vec::new();
        if let Some(from) = self.opened {
            let phase = match (is_open, self.status) {
                (true, _) => Phase::Open,
                (_, "resolved") if !late => Phase::Done,
                _ => Phase::Cancelled,
            };
            let to = if is_open || left {
                time.until
            } else {
                self.resolved.unwrap_or(from)
            };
            let without_timeout = self.without_timeout && is_open;
            let drawn = if without_timeout {
                format!("{says}, the task of its timeout is gone")
            } else {
                says.clone()
            };
            spans.push(waited(phase, from, to.max(from), &drawn));
            let deadline = self.deadline.filter(|_| is_open);
            spans.extend(self.lapsed.filter(|_| is_open).map(lapsed));
            let timeout = time.due(deadline, "its timeout");
            spans.extend(timeout.filter(|due| !without_timeout || due.phase == Phase::Due));
            // From then on it waits for what may never come.
            let endless = deadline.filter(|_| without_timeout);
            spans.extend(endless.map(|at| {
                let says = "its timeout, but the task of it is gone: nothing ends the wait";
                waited(Phase::Gone, at, at.max(time.until), says)
            }));
        }
        Unit {
            id: self.id,
            kind: self.kind,
            name: self.name.to_owned(),
            family: self.name.to_owned(),
            note: None,
            status: says,
            mark: None,
            is_open,
            failed: false,
            spans,
            facts: Vec::new(),
            row: Some(format!("wait-{}", self.wait_id)),
            leads_to: None,
        }
    }
}

pub(super) fn of_condition(time: Time, lost: &Gone<'_>, wait: &ConditionWait) -> Unit {
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
        without_timeout: lost.timeout(&wait.condition_wait_id),
        lapsed: lost.lapsed(&wait.condition_wait_id),
    }
    .unit(time)
}

pub(super) fn of_signal_wait(
    time: Time,
    lost: &Gone<'_>,
    wait: &SignalWait,
    signals: &[&Signal],
) -> Unit {
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
        without_timeout: lost.timeout(&wait.signal_wait_id),
        lapsed: lost.lapsed(&wait.signal_wait_id),
    }
    .unit(time);
    unit.spans
        .extend(signals.iter().filter_map(|signal| received(signal)));
    unit
}

/// Which wait a signal ended, found without looking at each.
pub(super) struct EndedBy<'w> {
    by_id: HashSet<&'w str>,
    by_signal: HashMap<&'w str, &'w str>,
}

impl<'w> EndedBy<'w> {
    pub(super) fn of(waits: &'w [SignalWait]) -> Self {
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

    pub(super) fn wait(&self, signal: &Signal) -> Option<&'w str> {
        let named = signal.signal_wait_id.as_deref();
        let named = named.and_then(|wait| self.by_id.get(wait).copied());
        named.or_else(|| self.by_signal.get(signal.id.as_deref()?).copied())
    }
}

fn received(signal: &Signal) -> Option<Span> {
    let at = signal.received_at.or(signal.applied_at)?;
    Some(stretch(Phase::Moment, at, at, "received"))
}

pub(super) fn of_signal(time: Time, signal: &Signal) -> Unit {
    let mut spans: Vec<Span> = received(signal).into_iter().collect();
    let closed = signal
        .applied_at
        .or(signal.rejected_at)
        .or(signal.closed_at);
    let is_open = closed.is_none() && time.is_open;
    if let Some(at) = signal.received_at {
        let to = closed.unwrap_or(time.until);
        let (phase, says) = match (closed, signal.rejected_at) {
            (None, _) if is_open => (Phase::Open, signal.status.as_str()),
            (None, _) => (Phase::Cancelled, LEFT),
            (_, Some(_)) => (Phase::Cancelled, signal.status.as_str()),
            _ => (Phase::Done, signal.status.as_str()),
        };
        if to > at {
            spans.push(waited(phase, at, to, says));
        }
    }
    let id = signal.id.as_ref().or(signal.command_id.as_ref());
    Unit {
        id: format!("signal-{}", id.map_or("", String::as_str)),
        kind: Kind::Signal,
        name: signal.name.clone().unwrap_or_else(|| "signal".to_owned()),
        family: signal.name.clone().unwrap_or_else(|| "signal".to_owned()),
        note: None,
        status: signal.status.to_string(),
        mark: None,
        is_open,
        failed: false,
        spans,
        facts: Vec::new(),
        row: id.map(|id| format!("signal-{id}")),
        leads_to: None,
    }
}

pub(super) fn of_update(time: Time, update: &Update) -> Unit {
    let from = update
        .accepted_at
        .or(update.rejected_at)
        .or(update.applied_at);
    let closed = update
        .closed_at
        .or(update.rejected_at)
        .or(update.applied_at);
    let is_open = closed.is_none() && time.is_open;
    let failed = update.failure_id.is_some() || update.failure_message.is_some();
    let (phase, says) = match (closed, failed, update.rejected_at) {
        (None, ..) if is_open => (Phase::Open, update.status.as_str()),
        (_, true, _) => (Phase::Failed, update.status.as_str()),
        (None, ..) => (Phase::Cancelled, LEFT),
        (.., Some(_)) => (Phase::Cancelled, update.status.as_str()),
        _ => (Phase::Done, update.status.as_str()),
    };
    let span = from.map(|from| {
        let to = closed.unwrap_or(time.until);
        waited(phase, from, to.max(from), says)
    });
    let id = update.id.as_ref().or(update.command_id.as_ref());
    Unit {
        id: format!("update-{}", id.map_or("", String::as_str)),
        kind: Kind::Update,
        name: update.name.clone().unwrap_or_else(|| "update".to_owned()),
        family: update.name.clone().unwrap_or_else(|| "update".to_owned()),
        note: None,
        status: update.status.to_string(),
        mark: None,
        is_open,
        failed,
        spans: span.into_iter().collect(),
        facts: Vec::new(),
        row: id.map(|id| format!("update-{id}")),
        leads_to: None,
    }
}
