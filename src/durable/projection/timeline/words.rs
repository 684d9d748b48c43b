//! One short sentence per event: the only place where the timeline's words are chosen.

use super::Parts;
use crate::{
    durable::stored::{EventType, loose::Any, payloads::timeline::TimelineEvent},
    length,
};

/// Most characters of a message a sentence quotes; the entry has it whole.
const QUOTED: usize = 200;

/// What happened, in one sentence without its final stop.
pub(super) fn summary(
    event_type: &EventType,
    told: &TimelineEvent<'_>,
    parts: &Parts<'_>,
) -> String {
    use EventType as E;
    let say = Words { told, parts };
    match event_type {
        E::StartAccepted => say.with("Start accepted", say.outcome()),
        E::StartRejected => say.with("Start rejected", say.rejection()),
        E::WorkflowStarted => "Run started".into(),
        E::WorkflowContinuedAsNew => say.with(
            "Continued as new",
            told.continued_to_run_id
                .as_deref()
                .map(|run| format!("run {run}")),
        ),
        E::WorkflowCompleted => "Run completed".into(),
        E::WorkflowFailed => say.with("Run failed", say.why()) + &say.limits(),
        E::WorkflowTimedOut => match told.timeout_kind.as_deref() {
            Some("execution_timeout") => "Run timed out: its execution deadline passed".into(),
            Some("run_timeout") => "Run timed out: its run deadline passed".into(),
            _ => say.with("Run timed out", say.message()),
        },
        E::WorkflowCancelled => say.with("Run cancelled", say.reason()),
        E::WorkflowTerminated => say.with("Run terminated", say.reason()),
        E::WorkflowArchived => say.with("Run archived", say.reason()),

        E::RepairRequested => match say.outcome().as_deref() {
            Some("repair_dispatched") => format!(
                "Repair dispatched a {} task",
                say.task_type().unwrap_or("workflow")
            ),
            Some("repair_not_needed") => {
                "Repair accepted, nothing to do: the run could go on by itself".into()
            }
            other => say.with("Repair accepted", other.map(str::to_owned)),
        },
        E::CancelRequested => say.with("Cancel requested", say.reason()),
        E::TerminateRequested => say.with("Terminate requested", say.reason()),
        E::ArchiveRequested => match say.outcome().as_deref() {
            Some("archived") => say.with("Archive requested", say.reason()),
            Some("archive_not_needed") => {
                "Archive accepted, nothing to do: the run was archived already".into()
            }
            other => say.with("Archive accepted", other.map(str::to_owned)),
        },

        E::SignalWaitOpened => say.signal("Waiting for signal") + &say.within(),
        E::SignalReceived => say.signal("Received signal"),
        E::SignalApplied => say.signal("Applied signal"),
        E::UpdateAccepted => say.update("Accepted update"),
        E::UpdateRejected => say.with(say.update("Rejected update"), say.rejection()),
        E::UpdateApplied => say.update("Applied update"),
        E::UpdateCompleted => match say.why() {
            None => say.update("Completed update"),
            why => say.with(say.update("Failed update"), why),
        },

        E::ConditionWaitOpened => say.condition("Waiting for condition") + &say.within(),
        E::ConditionWaitSatisfied => say.condition("Satisfied condition"),
        E::ConditionWaitTimedOut => say.condition("Timed out waiting for condition") + &say.after(),

        E::ActivityScheduled => say.activity("scheduled"),
        E::ActivityStarted => say.activity("started") + &say.attempt(),
        E::ActivityHeartbeatRecorded => say.activity("sent a heartbeat") + &say.attempt(),
        E::ActivityRetryScheduled => say.with(say.activity("") + &say.retry(), say.message()),
        E::ActivityCompleted => say.activity("completed") + &say.attempt(),
        E::ActivityFailed => {
            say.with(say.activity("failed") + &say.attempt(), say.why()) + &say.limits()
        }
        E::ActivityTimedOut => say.with(say.activity("timed out") + &say.timeout_kind(), say.why()),
        E::ActivityCancelled => say.activity("cancelled") + &say.attempt(),
        E::FailureHandled => say.with("The workflow caught a failure", say.message()),

        E::TimerScheduled => format!("{} scheduled", say.timer()),
        E::TimerFired => format!("{} fired", say.timer()),
        E::TimerCancelled => format!("{} cancelled", say.timer()),

        E::ChildWorkflowScheduled => say.child("scheduled"),
        E::ChildRunStarted => say.child("started") + &say.child_retry(),
        E::ChildRunCompleted => say.child("completed"),
        E::ChildRunFailed => say.with(say.child("failed"), say.why()),
        E::ChildRunCancelled => say.child("cancelled"),
        E::ChildRunTerminated => say.child("terminated"),
        E::ParentClosePolicyApplied => say.parent_close("applied to"),
        E::ParentClosePolicyFailed => say.with(
            say.parent_close("could not be applied to"),
            told.error.as_deref().map(brief),
        ),

        E::SideEffectRecorded => "Side effect recorded".into(),
        E::VersionMarkerRecorded => format!(
            "Version {} chosen for {}",
            told.version
                .get()
                .map_or_else(|| "?".into(), |version| version.to_string()),
            told.change_id.as_deref().unwrap_or("an unnamed change"),
        ),
        E::SearchAttributesUpserted => {
            say.with("Search attributes updated", keys(&told.attributes))
        }
        E::MemoUpserted => say.with("Memo updated", keys(&told.entries)),
        E::MessageCursorAdvanced => say.with(
            "Messages consumed",
            told.new_position
                .get()
                .map(|position| format!("up to {position}")),
        ),

        E::ScheduleCreated => say.schedule("created"),
        E::SchedulePaused => say.with(say.schedule("paused"), say.reason()),
        E::ScheduleResumed => say.schedule("resumed"),
        E::ScheduleUpdated => say.schedule("updated"),
        E::ScheduleTriggered => say.with(
            say.schedule("started this run"),
            told.trigger_number
                .get()
                .map(|number| format!("trigger {number}")),
        ),
        E::ScheduleDeleted => say.with(say.schedule("deleted"), say.reason()),
        E::ScheduleTriggerSkipped => say.with(say.schedule("skipped a trigger"), say.reason()),

        E::ServiceCallStarted => say.service("started"),
        E::ServiceCallCompleted => say.service("completed"),
        E::ServiceCallFailed => say.with(say.service("failed"), say.message()),
        E::ServiceCallCancelled => say.with(say.service("cancelled"), say.message()),

        E::Other(name) => format!("{name} (an event this version does not know)"),
    }
}

/// The slots of a sentence.
struct Words<'a> {
    told: &'a TimelineEvent<'a>,
    parts: &'a Parts<'a>,
}

impl Words<'_> {
    #[expect(clippy::unused_self, reason = "reads as a sentence")]
    fn with(&self, what: impl Into<String>, why: Option<String>) -> String {
        match why {
            Some(why) => format!("{}: {why}", what.into()),
            None => what.into(),
        }
    }

    fn outcome(&self) -> Option<String> {
        let outcome = self.parts.command.as_ref()?.outcome.as_deref();
        outcome.map(str::to_owned)
    }

    fn rejection(&self) -> Option<String> {
        let reason = self.parts.command.as_ref()?.rejection_reason.as_deref();
        reason.map(str::to_owned)
    }

    fn reason(&self) -> Option<String> {
        self.told.reason.as_deref().map(brief)
    }

    fn message(&self) -> Option<String> {
        self.parts.failure.as_ref()?.message.as_deref().map(brief)
    }

    /// The message, and whether trying again was ruled out.
    fn why(&self) -> Option<String> {
        let failure = self.parts.failure.as_ref()?;
        let message = failure.message.as_deref().map(brief);
        match (message, failure.non_retryable) {
            (Some(message), true) => Some(format!("{message} (not retryable)")),
            (None, true) => Some("not retryable".into()),
            (message, false) => message,
        }
    }

    /// Which of the engine's limits was exceeded, and by how much.
    fn limits(&self) -> String {
        let Some(kind) = self.told.structural_limit_kind.as_deref() else {
            return String::new();
        };
        let number = |n: Option<i64>| n.map_or_else(|| "?".into(), |n| n.to_string());
        format!(
            "; limit {kind}: {} where {} are allowed",
            number(self.told.structural_limit_value.get()),
            number(self.told.structural_limit_configured.get()),
        )
    }

    fn task_type(&self) -> Option<&str> {
        self.parts.task.as_ref()?.task_type.as_deref()
    }

    fn named(&self, what: &str, own: Option<&str>) -> String {
        let name = self
            .parts
            .command
            .as_ref()
            .and_then(|command| command.target_name.as_deref())
            .or(own);
        match name {
            Some(name) => format!("{what} {name}"),
            None => what.to_owned(),
        }
    }

    fn signal(&self, what: &str) -> String {
        self.named(what, self.told.signal_name.as_deref())
    }

    fn update(&self, what: &str) -> String {
        self.named(what, self.told.update_name.as_deref())
    }

    fn condition(&self, what: &str) -> String {
        match self.told.condition_key.as_deref() {
            Some(key) => format!("{what} {key}"),
            None => what.to_owned(),
        }
    }

    fn within(&self) -> String {
        match self.told.timeout_seconds.get() {
            Some(seconds) => format!(", at most {}", duration(seconds)),
            None => String::new(),
        }
    }

    fn after(&self) -> String {
        match self.told.timeout_seconds.get() {
            Some(seconds) => format!(" after {}", duration(seconds)),
            None => String::new(),
        }
    }

    fn activity(&self, what: &str) -> String {
        let name = self.parts.activity.as_ref().and_then(|activity| {
            activity
                .activity_type
                .as_deref()
                .or(activity.class.as_deref())
        });
        format!("Activity {} {what}", name.map_or("without a name", label))
            .trim_end()
            .to_owned()
    }

    /// Which attempt, from the second on.
    fn attempt(&self) -> String {
        match self.told.attempt_number.get() {
            Some(number) if number > 1 => format!(", attempt {number}"),
            _ => String::new(),
        }
    }

    /// `, attempt 2 of 3, after attempt 1 failed, waits 5 m`: as the activity's own row says it.
    fn retry(&self) -> String {
        let told = self.told;
        let ended = match told.timeout_kind.as_deref() {
            Some(kind) => format!("timed out ({})", kind.replace('_', " ")),
            None => "failed".to_owned(),
        };
        let which = match (told.retry_after_attempt.get(), told.max_attempts.get()) {
            (Some(after), most) => {
                let next = after.saturating_add(1);
                let of = most.map_or_else(String::new, |most| format!(" of {most}"));
                format!("attempt {next}{of}, after attempt {after} {ended}")
            }
            (None, _) => format!("another attempt, after one {ended}"),
        };
        let waits = match told.retry_backoff_seconds.get() {
            Some(seconds) => format!(", waits {}", length::of_seconds(seconds)),
            None => String::new(),
        };
        format!(", {which}{waits}")
    }

    /// Which of an activity's deadlines passed.
    fn timeout_kind(&self) -> String {
        match self.told.timeout_kind.as_deref() {
            Some(kind) => format!(" ({} timeout)", kind.replace('_', " ")),
            None => String::new(),
        }
    }

    fn timer(&self) -> String {
        let of = match self.told.timer_kind.as_deref() {
            Some("condition_timeout") => "Condition timeout",
            Some("signal_timeout") => "Signal timeout",
            _ => "Timer",
        };
        match self
            .parts
            .timer
            .as_ref()
            .and_then(|timer| timer.delay_seconds)
        {
            Some(seconds) => format!("{of} of {}", duration(seconds)),
            None => of.to_owned(),
        }
    }

    fn child(&self, what: &str) -> String {
        let child = self.parts.child.as_ref();
        let name = child.and_then(|child| {
            child
                .workflow_type
                .as_deref()
                .or(child.class.as_deref())
                .or(child.run_id.as_deref())
        });
        // Children of one type are told apart by their instance.
        let which = child.and_then(|child| child.instance_id.as_deref());
        match (name, which) {
            (Some(name), Some(which)) => {
                format!("Child workflow {} ({which}) {what}", label(name))
            }
            (Some(name), None) => format!("Child workflow {} {what}", label(name)),
            (None, Some(which)) => format!("Child workflow {which} {what}"),
            (None, None) => format!("Child workflow {what}"),
        }
    }

    fn child_retry(&self) -> String {
        match self.told.retry_attempt.get() {
            Some(attempt) => format!(", attempt {attempt}"),
            None => String::new(),
        }
    }

    fn parent_close(&self, what: &str) -> String {
        format!(
            "Parent close policy {} {what} child {}",
            self.told.policy.as_deref().unwrap_or("unknown"),
            self.told.child_instance_id.as_deref().unwrap_or("unknown"),
        )
    }

    fn schedule(&self, what: &str) -> String {
        match self.told.schedule_id.as_deref() {
            Some(id) => format!("Schedule {id} {what}"),
            None => format!("Schedule {what}"),
        }
    }

    fn service(&self, what: &str) -> String {
        let told = self.told;
        let name: Vec<&str> = [
            &told.endpoint_name,
            &told.service_name,
            &told.operation_name,
        ]
        .into_iter()
        .filter_map(|part| part.as_deref())
        .collect();
        if name.is_empty() {
            format!("Service call {what}")
        } else {
            format!("Service call {} {what}", name.join("/"))
        }
    }
}

/// What was set, by name.
fn keys(set: &Any) -> Option<String> {
    let names: Vec<&str> = set
        .as_ref()?
        .as_object()?
        .keys()
        .map(String::as_str)
        .collect();
    (!names.is_empty()).then(|| brief(&names.join(", ")))
}

/// A class without its namespaces; any other name as it is.
fn label(name: &str) -> &str {
    name.rsplit('\\').next().unwrap_or(name)
}

fn duration(seconds: i64) -> String {
    if seconds == 1 {
        "1 second".into()
    } else {
        format!("{seconds} seconds")
    }
}

/// The first line of a message, and not all of a long one.
fn brief(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    match line.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None if line.len() < message.trim_end().len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::brief;

    #[test]
    fn a_long_message_is_quoted_in_part() {
        assert_eq!(brief("boom"), "boom");
        assert_eq!(brief("boom\n"), "boom");
        assert_eq!(brief("first\nsecond"), "first…");
        assert_eq!(brief(&"é".repeat(300)).chars().count(), 201);
        assert_eq!(brief(""), "");
    }
}
