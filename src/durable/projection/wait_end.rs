//! What the moment is at which a wait ends by itself: the page and the list name it alike.

use chrono::{DateTime, Utc};

use super::projected::Projected;
use crate::durable::stored::WaitKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// A worker has the workflow task until then: nothing is waited for.
    Lease,
    LeaseOver,
    Ahead,
    /// The timer fired: the wait is over, though the workflow may not know.
    Fired,
    /// The moment has passed, and nothing tells that it ended anything.
    Due,
}

impl WaitEnd {
    pub fn of(p: &Projected<'_>, at: DateTime<Utc>) -> Self {
        let standing = &p.standing;
        let id = standing.open_wait_id.as_deref();
        let wait = p.waits.iter().find(|wait| Some(wait.id.as_str()) == id);
        let fired = wait.is_some_and(|wait| wait.timeout_fired_at.is_some());
        match Self::of_stored(standing.wait_kind.as_ref(), at, p.cx.now) {
            Self::Due if fired => Self::Fired,
            end => end,
        }
    }

    /// As far as a summary tells.
    pub fn of_stored(kind: Option<&WaitKind>, at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        match (kind, at <= now) {
            (Some(WaitKind::WorkflowTask), false) => Self::Lease,
            (Some(WaitKind::WorkflowTask), true) => Self::LeaseOver,
            (_, false) => Self::Ahead,
            (_, true) => Self::Due,
        }
    }

    /// A moment follows, or how far it is.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lease => "Lease ends",
            Self::LeaseOver => "Lease ran out",
            Self::Ahead => "Wait ends",
            Self::Fired => "Wait ended",
            Self::Due => "Wait was to end",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::{
        projection::example::{at, event, history, told},
        store::snapshot::RunSnapshot,
        stored::EventType,
    };

    #[test]
    fn a_lease_is_not_a_wait_and_what_has_passed_is_not_to_come() {
        for (kind, seconds, name) in [
            (Some("workflow-task"), 20, "Lease ends"),
            (Some("workflow-task"), 10, "Lease ran out"),
            (Some("signal"), 20, "Wait ends"),
            (Some("timer"), 10, "Wait was to end"),
            (None, 20, "Wait ends"),
        ] {
            let kind = kind.map(WaitKind::from);
            let end = WaitEnd::of_stored(kind.as_ref(), at(seconds), at(10));
            assert_eq!(end.name(), name, "{kind:?} {seconds}");
        }
    }

    #[test]
    fn a_wait_whose_timer_fired_has_ended() {
        let wait = json!({"sequence": 1, "condition_wait_id": "w", "timeout_seconds": 60});
        let timer = json!({"sequence": 1, "timer_id": "t", "timer_kind": "condition_timeout",
            "condition_wait_id": "w", "delay_seconds": 60, "fire_at": at(61)});
        let opened = || {
            vec![
                event(1, EventType::ConditionWaitOpened, &wait),
                event(2, EventType::TimerScheduled, &timer),
            ]
        };
        let mut fired = opened();
        fired.push(event(3, EventType::TimerFired, &timer));
        for (events, name) in [(opened(), "Wait was to end"), (fired, "Wait ended")] {
            let snapshot = RunSnapshot {
                events: history(events),
                ..RunSnapshot::default()
            };
            told(&snapshot, |cx| {
                assert_eq!(WaitEnd::of(&Projected::of(cx), at(61)).name(), name);
            });
        }
    }
}
