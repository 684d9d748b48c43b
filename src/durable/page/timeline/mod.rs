//! The units of a run in time: what the timeline draws.

mod tries;
mod waits;

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::{
    durable::{
        page::gone::Gone,
        projection::{Projected, authority, children::Child, signals::Signal},
        stored::{ClosedReason, HistoryEvent, RunStatus},
    },
    run::{
        fact::Facts,
        tag::Tag,
        timeline::{Kind, Mark, Phase, Span, Unit, draw::Story},
    },
};

/// What became of something that nobody ended before the run did.
const LEFT: &str = "still open when the run closed";

/// What there is to draw, whatever part of it is asked for.
pub fn story(p: &Projected<'_>) -> Story {
    let time = Time::of(p);
    let gone = &Gone::of(p);
    let mut units: Vec<Unit> = Vec::new();
    units.extend(
        p.activities
            .iter()
            .map(|one| tries::of_activity(p, time, gone, one)),
    );
    units.extend(
        p.timers
            .iter()
            .filter(|timer| timer.timer_kind.is_none())
            .map(|timer| waits::of_timer(time, gone, timer)),
    );
    units.extend(
        p.conditions
            .iter()
            .map(|one| waits::of_condition(time, gone, one)),
    );
    let ended_by = waits::EndedBy::of(&p.signal_waits);
    let mut brought: HashMap<&str, Vec<&Signal>> = HashMap::new();
    for signal in &p.signals {
        match ended_by.wait(signal) {
            Some(wait) => brought.entry(wait).or_default().push(signal),
            None => units.push(waits::of_signal(time, signal)),
        }
    }
    units.extend(p.signal_waits.iter().map(|wait| {
        let signals = brought.remove(wait.signal_wait_id.as_str());
        waits::of_signal_wait(time, gone, wait, &signals.unwrap_or_default())
    }));
    units.extend(p.updates.iter().map(|one| waits::of_update(time, one)));
    units.extend(p.children.iter().map(|child| of_child(time, child)));
    units.retain(|unit| !unit.spans.is_empty());
    units.sort_by_key(Unit::from);
    Story {
        run: of_run(p, time),
        units,
        marks: marks(p, time),
        now: time.now,
    }
}

/// The run's own time: when it began, and up to when anything could happen in it.
#[derive(Clone, Copy, Debug)]
struct Time {
    now: DateTime<Utc>,
    is_open: bool,
    from: DateTime<Utc>,
    /// Now, or when the run closed.
    until: DateTime<Utc>,
}

impl Time {
    fn of(p: &Projected<'_>) -> Self {
        let run = &p.cx.snapshot.run;
        let events = &p.cx.snapshot.events;
        let now = p.cx.now;
        let is_open = !run.status.is_terminal();
        let from = run
            .started_at
            .or(run.created_at)
            .or_else(|| events.iter().find_map(HistoryEvent::time))
            .unwrap_or(now);
        let until = match run.closed_at {
            Some(at) => at,
            None if is_open => now,
            // Closed, and nobody says when: up to the last thing heard of it.
            None => events
                .iter()
                .rev()
                .find_map(HistoryEvent::time)
                .unwrap_or(from),
        };
        Self {
            now,
            is_open,
            from,
            until: until.max(from),
        }
    }

    /// By when something open was to happen: ahead, or passed and nothing came of it.
    fn due(self, at: Option<DateTime<Utc>>, what: &str) -> Option<Span> {
        let at = at.filter(|_| self.is_open)?;
        Some(if at > self.now {
            stretch(Phase::Ahead, at, at, what)
        } else {
            stretch(Phase::Due, at, at, &format!("{what}, which has passed"))
        })
    }
}

fn marks(p: &Projected<'_>, time: Time) -> Vec<Mark> {
    let run = &p.cx.snapshot.run;
    let now = time.is_open.then_some(("now", time.now));
    let deadlines = [
        ("run deadline", run.run_deadline_at),
        ("execution deadline", run.execution_deadline_at),
    ];
    let deadlines = deadlines
        .into_iter()
        .filter_map(|(name, at)| Some((name, at?)))
        // One that a closed run did not live to see says nothing of it.
        .filter(|(_, at)| time.is_open || *at <= time.until);
    now.into_iter()
        .chain(deadlines)
        .map(|(name, at)| Mark {
            name,
            at,
            is_now: name == "now",
        })
        .collect()
}

fn of_run(p: &Projected<'_>, time: Time) -> Unit {
    let run = &p.cx.snapshot.run;
    let reason = run.closed_reason.as_ref().map(ClosedReason::as_str);
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
        family: run.workflow_type.clone(),
        note: None,
        status: match reason {
            Some(reason) if reason != run.status.as_str() => format!("{}, {reason}", run.status),
            _ => run.status.to_string(),
        },
        mark: None,
        is_open: time.is_open,
        failed: phase == Phase::Failed,
        spans: vec![waited(phase, time.from, time.until, "the run")],
        facts: Vec::new(),
        row: None,
        leads_to: None,
    }
}

fn of_child(time: Time, child: &Child<'_>) -> Unit {
    let is_open = child.is_open() && time.is_open;
    let left = child.is_open() && !time.is_open;
    let status = child.source_status.as_deref().unwrap_or(child.status);
    let phase = match (is_open, RunStatus::from(status)) {
        (true, _) => Phase::Open,
        (_, RunStatus::Failed) => Phase::Failed,
        (_, RunStatus::Cancelled | RunStatus::Terminated) => Phase::Cancelled,
        _ if left => Phase::Cancelled,
        _ => Phase::Done,
    };
    let spans = child.opened_at.map(|from| {
        let ended = child.resolved_at;
        let to = ended.or(child.is_open().then_some(time.until));
        Span {
            // Somebody works in it, but elsewhere.
            idle: is_open || left,
            ..stretch(
                phase,
                from,
                to.unwrap_or(from).max(from),
                if left { LEFT } else { status },
            )
        }
    });
    let instance = child.child_workflow_instance_id.clone();
    Unit {
        id: format!("child-{}", child.sequence),
        kind: Kind::Child,
        // Many children are of one type: their own ids tell them apart.
        name: instance.clone().unwrap_or_else(|| child.label.clone()),
        family: child.label.clone(),
        note: None,
        status: status.to_owned(),
        mark: row_only(
            child.history_authority != authority::TYPED,
            child.history_authority,
        ),
        is_open,
        failed: phase == Phase::Failed,
        spans: spans.into_iter().collect(),
        facts: Facts::default()
            .id("Child instance", instance.as_ref())
            .code("Type", Some(&child.label))
            .list(),
        row: child
            .child_workflow_run_id
            .as_ref()
            .map(|id| format!("child-{id}")),
        leads_to: instance.zip(child.child_workflow_run_id.clone()),
    }
}

/// A mutable row alone tells of it.
fn row_only(is_it: bool, authority: &str) -> Option<Tag> {
    is_it.then(|| Tag::row_only(authority))
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

/// Up to now, when no task is there; since when it is gone nobody knows.
fn gone(time: Time, from: DateTime<Utc>, says: &str) -> Span {
    waited(Phase::Gone, from.min(time.until), time.until, says)
}

/// A stretch in which this run does nothing itself.
fn waited(phase: Phase, from: DateTime<Utc>, to: DateTime<Utc>, says: &str) -> Span {
    Span {
        idle: true,
        ..stretch(phase, from, to, says)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::example::{at, event, history, told},
        store::snapshot::RunSnapshot,
        stored::{EventType, RunRow},
    };

    /// A run that opened a wait with its first event.
    fn waiting(run: RunRow) -> Story {
        let wait = json!({"sequence": 1, "signal_name": "paid", "signal_wait_id": "w"});
        let snapshot = RunSnapshot {
            run: RunRow {
                started_at: Some(at(0)),
                ..run
            },
            events: history(vec![event(1, EventType::SignalWaitOpened, &wait)]),
            ..RunSnapshot::default()
        };
        told(&snapshot, |cx| story(&Projected::of(cx)))
    }

    #[test]
    fn what_a_closed_run_waited_for_lasted_until_it_closed() {
        let story = waiting(RunRow {
            status: RunStatus::Failed,
            closed_at: Some(at(1_800)),
            ..RunRow::default()
        });
        let span = &story.units[0].spans[0];
        assert_eq!((span.from, span.to), (at(1), at(1_800)));
        assert_eq!((span.phase, span.says.as_str()), (Phase::Cancelled, LEFT));
        assert!(!story.units[0].is_open);
    }

    #[test]
    fn a_closed_run_shows_the_deadlines_it_lived_to_see() {
        let marks = |closed_at: Option<DateTime<Utc>>| {
            let story = waiting(RunRow {
                status: match closed_at {
                    Some(_) => RunStatus::Failed,
                    None => RunStatus::Waiting,
                },
                closed_at,
                run_deadline_at: Some(at(1_000)),
                execution_deadline_at: Some(at(5_000)),
                ..RunRow::default()
            });
            story.marks.iter().map(|mark| mark.name).collect::<Vec<_>>()
        };
        assert_eq!(marks(Some(at(1_001))), ["run deadline"]);
        assert_eq!(marks(Some(at(900))), [""; 0]);
        assert_eq!(marks(None), ["now", "run deadline", "execution deadline"]);
    }

    /// Each unit's spans, as `done open 5-3600`.
    fn drawn(story: &Story) -> Vec<String> {
        let second = |moment: DateTime<Utc>| (moment - at(0)).num_seconds();
        let spans = story.units.iter().flat_map(|unit| &unit.spans);
        spans
            .map(|span| {
                let (from, to) = (second(span.from), second(span.to));
                format!("{} {from}-{to} {}", span.phase.name(), span.says)
            })
            .collect()
    }

    #[test]
    fn nothing_is_awaited_or_drawn_ahead_of_what_lost_its_task() {
        let scheduled = json!({
            "activity_execution_id": "a", "activity_type": "charge", "sequence": 1,
            "activity": {"retry_policy": {"max_attempts": 4, "backoff_seconds": [30]}},
        });
        let wait = |timeout: i64| {
            json!({"sequence": 2, "signal_name": "paid", "signal_wait_id": "w",
                "timeout_seconds": timeout})
        };
        let timer = |kind: Option<&str>, due: DateTime<Utc>| {
            json!({"timer_id": "n", "sequence": 2, "timer_kind": kind, "signal_name": "paid",
                "signal_wait_id": "w",
                "delay_seconds": 60, "fire_at": due.to_rfc3339()})
        };
        for (what, events, want) in [
            (
                "an activity nobody began",
                vec![(EventType::ActivityScheduled, scheduled)],
                &["gone 1-3600 waits, but its task is gone: no worker can take it"][..],
            ),
            (
                "a timer",
                vec![(EventType::TimerScheduled, timer(None, at(5_000)))],
                &["gone 1-3600 pending, but its task is gone: nothing fires it"],
            ),
            (
                "a timer that was due",
                vec![(EventType::TimerScheduled, timer(None, at(61)))],
                &[
                    "gone 1-3600 pending, but its task is gone: nothing fires it",
                    "due 61-61 fires, which has passed",
                ],
            ),
            (
                "the timeout of a signal that may still come",
                vec![
                    (EventType::SignalWaitOpened, wait(7_200)),
                    (
                        EventType::TimerScheduled,
                        timer(Some("signal_timeout"), at(7_201)),
                    ),
                ],
                &[
                    "open 1-3600 waiting, the task of its timeout is gone",
                    "gone 7201-7201 its timeout, but the task of it is gone: nothing ends the wait",
                ],
            ),
        ] {
            let events = events.into_iter().zip(1..);
            let snapshot = RunSnapshot {
                run: RunRow {
                    status: RunStatus::Waiting,
                    started_at: Some(at(0)),
                    ..RunRow::default()
                },
                events: history(
                    events
                        .map(|((kind, payload), sequence)| event(sequence, kind, &payload))
                        .collect(),
                ),
                ..RunSnapshot::default()
            };
            let story = told(&snapshot, |cx| story(&Projected::of(cx)));
            assert_eq!(drawn(&story), want, "{what}");
        }
    }
}
