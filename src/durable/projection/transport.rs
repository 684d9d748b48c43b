//! Whether a task can be picked up: the predicates, and the one word that sums them up.

use chrono::{DateTime, TimeDelta, Utc};

use crate::durable::{
    engine_config::EngineConfig,
    stored::{TaskRow, TaskStatus},
};

/// How patient the engine's repair is. Every value is at least one second.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub redispatch_after_seconds: i64,
    pub failure_backoff_max_seconds: i64,
}

impl Patience {
    pub fn of(config: &EngineConfig) -> Self {
        Self {
            redispatch_after_seconds: config.int("task_repair.redispatch_after_seconds"),
            failure_backoff_max_seconds: config.int("task_repair.failure_backoff_max_seconds"),
        }
    }

    /// How long repair waits after this many repairs: doubled each time, up to a limit that
    /// stops the doubling and never shortens the first wait.
    pub fn backoff_seconds(self, repair_count: i64) -> i64 {
        let doublings = u32::try_from(repair_count.saturating_sub(1).clamp(0, 62)).unwrap_or(62);
        self.redispatch_after_seconds
            .checked_mul(1_i64.checked_shl(doublings).unwrap_or(i64::MAX))
            .unwrap_or(i64::MAX)
            .min(self.failure_backoff_max_seconds)
            .max(self.redispatch_after_seconds)
    }
}

/// The transport predicates of one task at one moment.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent predicates, each shown by itself"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub lease_expired: bool,
    pub dispatch_failed: bool,
    pub claim_failed: bool,
    pub dispatch_overdue: bool,
    pub dispatch_retry_due: bool,
    pub claim_retry_due: bool,
    /// Not before its time.
    pub is_future: bool,
}

impl Health {
    pub fn of(task: &TaskRow, now: DateTime<Utc>, patience: Patience) -> Self {
        let ready = task.status == TaskStatus::Ready;
        let past = |at: Option<DateTime<Utc>>| at.is_some_and(|at| at <= now);
        let cutoff = TimeDelta::try_seconds(patience.redispatch_after_seconds)
            .and_then(|patience| now.checked_sub_signed(patience))
            .unwrap_or(DateTime::<Utc>::MIN_UTC);
        let said =
            |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());

        let dispatch_failed = ready
            && said(&task.last_dispatch_error)
            && task.last_dispatch_attempt_at.is_some_and(|tried| {
                task.last_dispatched_at
                    .is_none_or(|dispatched| tried > dispatched)
            });
        let claim_failed =
            ready && task.last_claim_failed_at.is_some() && said(&task.last_claim_error);
        let is_future = task.available_at.is_some_and(|at| at > now);
        let since = task.last_dispatched_at.or(task.created_at);
        Self {
            lease_expired: task.status == TaskStatus::Leased && past(task.lease_expires_at),
            dispatch_failed,
            claim_failed,
            dispatch_overdue: ready
                && !is_future
                && !dispatch_failed
                && !claim_failed
                && since.is_some_and(|since| since <= cutoff),
            dispatch_retry_due: dispatch_failed
                && task.repair_available_at.is_none_or(|at| at <= now),
            claim_retry_due: claim_failed
                && match task.repair_available_at {
                    Some(at) => at <= now,
                    None => task.last_claim_failed_at.is_some_and(|at| at <= cutoff),
                },
            is_future,
        }
    }

    /// Repair may publish it again now.
    pub fn needs_redispatch(self) -> bool {
        self.dispatch_retry_due || self.claim_retry_due || self.dispatch_overdue
    }

    /// Something is wrong with it that the wait it serves cannot heal.
    pub fn is_unhealthy(self) -> bool {
        self.lease_expired || self.needs_redispatch() || self.claim_failed
    }
}

/// The word for how a task stands in transport. A status we do not know stands for itself.
pub fn transport_state(task: &TaskRow, replay_blocked: bool, health: Health) -> &str {
    match &task.status {
        // The history cannot be replayed: only new code and a repair bring it back.
        TaskStatus::Failed if replay_blocked => "replay_blocked",
        TaskStatus::Leased if health.lease_expired => "lease_expired",
        TaskStatus::Leased => "leased",
        TaskStatus::Ready if health.dispatch_failed && health.dispatch_retry_due => {
            "dispatch_failed"
        }
        // Repair waits before it tries again.
        TaskStatus::Ready if health.dispatch_failed => "repair_backoff",
        // A claim failure does not show before the task's time.
        TaskStatus::Ready if health.is_future => "scheduled",
        TaskStatus::Ready if health.claim_failed && health.claim_retry_due => "claim_failed",
        TaskStatus::Ready if health.claim_failed => "repair_backoff",
        TaskStatus::Ready if health.dispatch_overdue => "dispatch_overdue",
        TaskStatus::Ready => "ready",
        other => other.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::stored::TaskType;

    const PATIENCE: Patience = Patience {
        redispatch_after_seconds: 3,
        failure_backoff_max_seconds: 60,
    };

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn task(change: impl FnOnce(&mut TaskRow)) -> TaskRow {
        let mut task = TaskRow {
            id: "t".into(),
            workflow_run_id: "r".into(),
            namespace: None,
            task_type: TaskType::Workflow,
            status: TaskStatus::Ready,
            compatibility: None,
            payload: crate::durable::stored::loose::Raw::default(),
            connection: None,
            queue: None,
            available_at: Some(at(0)),
            leased_at: None,
            lease_owner: None,
            lease_expires_at: None,
            attempt_count: 0,
            last_dispatch_attempt_at: None,
            last_dispatched_at: Some(at(0)),
            last_dispatch_error: None,
            last_claim_failed_at: None,
            last_claim_error: None,
            repair_count: 0,
            repair_available_at: None,
            last_error: None,
            created_at: Some(at(0)),
            updated_at: None,
        };
        change(&mut task);
        task
    }

    fn fails_dispatch(task: &mut TaskRow) {
        task.last_dispatch_attempt_at = Some(at(1));
        task.last_dispatch_error = Some("no route".into());
    }

    fn fails_claim(task: &mut TaskRow) {
        task.last_claim_failed_at = Some(at(1));
        task.last_claim_error = Some("unsupported".into());
    }

    #[test]
    fn each_situation_has_its_word() {
        let cases: Vec<(&str, i64, bool, TaskRow)> = vec![
            ("ready", 2, false, task(|_| {})),
            ("dispatch_overdue", 3, false, task(|_| {})),
            (
                "scheduled",
                2,
                false,
                task(|t| t.available_at = Some(at(9))),
            ),
            (
                "scheduled",
                9,
                false,
                task(|t| t.available_at = Some(at(10))),
            ),
            ("dispatch_failed", 2, false, task(fails_dispatch)),
            (
                "repair_backoff",
                2,
                false,
                task(|t| {
                    fails_dispatch(t);
                    t.repair_available_at = Some(at(9));
                }),
            ),
            (
                "dispatch_failed",
                2,
                false,
                task(|t| {
                    fails_dispatch(t);
                    t.available_at = Some(at(9));
                }),
            ),
            ("repair_backoff", 2, false, task(fails_claim)),
            ("claim_failed", 4, false, task(fails_claim)),
            (
                "scheduled",
                4,
                false,
                task(|t| {
                    fails_claim(t);
                    t.available_at = Some(at(9));
                }),
            ),
            (
                "leased",
                4,
                false,
                task(|t| {
                    t.status = TaskStatus::Leased;
                    t.lease_expires_at = Some(at(5));
                }),
            ),
            (
                "lease_expired",
                5,
                false,
                task(|t| {
                    t.status = TaskStatus::Leased;
                    t.lease_expires_at = Some(at(5));
                }),
            ),
            (
                "replay_blocked",
                5,
                true,
                task(|t| t.status = TaskStatus::Failed),
            ),
            ("failed", 5, false, task(|t| t.status = TaskStatus::Failed)),
            (
                "completed",
                5,
                true,
                task(|t| t.status = TaskStatus::Completed),
            ),
            ("paused", 5, false, task(|t| t.status = "paused".into())),
        ];
        for (want, now, replay_blocked, task) in cases {
            let health = Health::of(&task, at(now), PATIENCE);
            assert_eq!(
                transport_state(&task, replay_blocked, health),
                want,
                "{task:?}"
            );
        }
    }

    #[test]
    fn a_dispatch_that_failed_before_a_good_one_is_forgotten() {
        let task = task(|t| {
            fails_dispatch(t);
            t.last_dispatched_at = Some(at(2));
        });
        assert!(!Health::of(&task, at(3), PATIENCE).dispatch_failed);
    }

    #[test]
    fn backoff_doubles_and_is_capped() {
        for (repairs, seconds) in [
            (0, 3),
            (1, 3),
            (2, 6),
            (3, 12),
            (5, 48),
            (6, 60),
            (1_000, 60),
            (i64::MAX, 60),
        ] {
            assert_eq!(PATIENCE.backoff_seconds(repairs), seconds, "{repairs}");
        }
    }

    #[test]
    fn the_limit_never_shortens_the_first_wait() {
        let patience = Patience {
            redispatch_after_seconds: 90,
            failure_backoff_max_seconds: 60,
        };
        for repairs in [0, 1, 2, 40] {
            assert_eq!(patience.backoff_seconds(repairs), 90, "{repairs}");
        }
    }
}
