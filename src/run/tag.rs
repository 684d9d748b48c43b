//! The small word + mark + colour that says what state something is in. Every state of every
//! engine passes through here, so that one state looks the same on each page. Only meaning is
//! decided in this room: how a tone or a mark is drawn belongs to the stylesheet and to
//! [`crate::web::marks`].

use std::borrow::Cow;

/// What a state means for the operator; the stylesheet has one pair of colours for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Work is being done now.
    Run,
    /// Quiet: nothing to do, nothing wrong.
    Wait,
    /// Somebody should look.
    Attn,
    /// Ended well.
    Ok,
    /// Ended badly.
    Fail,
    /// A deadline passed.
    Late,
    /// Stopped for good, or cannot go on without a change of code.
    Halt,
    /// Goes on elsewhere.
    Next,
}

impl Tone {
    pub const ALL: [Self; 8] = [
        Self::Run,
        Self::Wait,
        Self::Attn,
        Self::Ok,
        Self::Fail,
        Self::Late,
        Self::Halt,
        Self::Next,
    ];

    /// The name after `is-` in the stylesheet.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Wait => "wait",
            Self::Attn => "attn",
            Self::Ok => "ok",
            Self::Fail => "fail",
            Self::Late => "late",
            Self::Halt => "halt",
            Self::Next => "next",
        }
    }
}

/// The shape that carries the meaning where colour cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A filled dot that pulses where motion is welcome.
    Pulse,
    Dot,
    Ring,
    Hourglass,
    Loop,
    Tick,
    Arrow,
    Cross,
    Clock,
    Slash,
    Stop,
    Exclamation,
    Lock,
    Repair,
    Question,
}

impl Mark {
    pub const ALL: [Self; 15] = [
        Self::Pulse,
        Self::Dot,
        Self::Ring,
        Self::Hourglass,
        Self::Loop,
        Self::Tick,
        Self::Arrow,
        Self::Cross,
        Self::Clock,
        Self::Slash,
        Self::Stop,
        Self::Exclamation,
        Self::Lock,
        Self::Repair,
        Self::Question,
    ];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub label: Cow<'static, str>,
    pub tone: Tone,
    pub mark: Mark,
    pub outline: bool,
    /// Shown on hover: usually the stored word, so that it can be searched for.
    pub title: Option<String>,
    /// A second part joined to the first, so that a status stays readable beside its problem.
    pub segment: Option<Box<Segment>>,
}

/// The joined second part of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub label: Cow<'static, str>,
    pub tone: Tone,
    pub mark: Mark,
    pub title: Option<String>,
}

impl Tag {
    pub fn new(label: impl Into<Cow<'static, str>>, tone: Tone, mark: Mark) -> Self {
        Self {
            label: label.into(),
            tone,
            mark,
            outline: false,
            title: None,
            segment: None,
        }
    }

    /// A word we do not know, as a newer engine may write: shown as stored.
    pub fn unknown(stored: &str) -> Self {
        let shown = if stored.is_empty() { "(empty)" } else { stored };
        Self::new(shown.to_owned(), Tone::Wait, Mark::Question).titled("not a value Plimsoll knows")
    }

    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    #[must_use]
    pub fn outlined(mut self) -> Self {
        self.outline = true;
        self
    }

    /// The same state when somebody should look at it: a wait that is overdue, for example.
    #[must_use]
    pub fn due(mut self) -> Self {
        self.tone = Tone::Attn;
        self
    }

    /// A run's status. The stored status says how a run ended; why it ended so is in the
    /// closed reason, which is what the operator asks about.
    pub fn status(status: &str, closed_reason: Option<&str>) -> Self {
        match (status, closed_reason) {
            ("pending", _) => Self::new("pending", Tone::Wait, Mark::Hourglass),
            ("running", _) => Self::new("running", Tone::Run, Mark::Pulse),
            ("waiting", _) => Self::new("waiting", Tone::Wait, Mark::Ring),
            ("completed", Some("continued")) => {
                Self::new("continued", Tone::Next, Mark::Arrow).titled("continued as a new run")
            }
            ("completed", _) => Self::new("completed", Tone::Ok, Mark::Tick),
            ("failed", Some("timed_out")) => Self::new("timed out", Tone::Late, Mark::Clock),
            ("failed", _) => Self::new("failed", Tone::Fail, Mark::Cross),
            ("cancelled", _) => Self::new("cancelled", Tone::Wait, Mark::Slash),
            ("terminated", _) => Self::new("terminated", Tone::Halt, Mark::Stop),
            (other, _) => Self::unknown(other),
        }
    }

    /// Joins the task problem to a status, by the code the engine derives.
    #[must_use]
    pub fn with_task_problem(mut self, code: &str) -> Self {
        let (label, tone, mark, title) = match code {
            // The deployed code cannot replay the stored history.
            "replay_blocked" => (
                Cow::Borrowed("replay blocked"),
                Tone::Halt,
                Mark::Lock,
                "workflow task failed: replay is blocked until the code is fixed",
            ),
            // A workflow task needs help now.
            "active" => (
                Cow::Borrowed("task problem"),
                Tone::Attn,
                Mark::Exclamation,
                "a workflow task needs attention now",
            ),
            // It needed help earlier and has recovered.
            "history" => (
                Cow::Borrowed("task history"),
                Tone::Wait,
                Mark::Clock,
                "a workflow task needed repair or recovery earlier",
            ),
            other => (
                Cow::Owned(other.to_owned()),
                Tone::Wait,
                Mark::Question,
                "not a task problem Plimsoll knows",
            ),
        };
        self.segment = Some(Box::new(Segment {
            label,
            tone,
            mark,
            title: Some(title.to_owned()),
        }));
        self
    }

    /// Why something failed, by the engine's own category.
    pub fn failure_category(category: Option<&str>) -> Self {
        let Some(stored) = category else {
            return Self::new("unclassified", Tone::Wait, Mark::Question)
                .titled("no failure_category is stored");
        };
        let (label, tone, mark) = match stored {
            "application" => ("application", Tone::Fail, Mark::Cross),
            "cancelled" => ("cancelled", Tone::Wait, Mark::Slash),
            "terminated" => ("terminated", Tone::Halt, Mark::Stop),
            "timeout" => ("timeout", Tone::Late, Mark::Clock),
            "activity" => ("activity", Tone::Fail, Mark::Cross),
            "child_workflow" => ("child workflow", Tone::Fail, Mark::Cross),
            "task_failure" => ("task failure", Tone::Fail, Mark::Exclamation),
            "internal" => ("internal", Tone::Fail, Mark::Exclamation),
            "structural_limit" => ("structural limit", Tone::Fail, Mark::Stop),
            other => return Self::unknown(other),
        };
        Self::new(label, tone, mark).titled(format!("failure_category {stored}"))
    }

    /// Stands beside a failure category: no further attempt will be made.
    pub fn non_retryable() -> Self {
        Self::new("non-retryable", Tone::Halt, Mark::Stop).outlined()
    }

    /// Attempt `attempt` of at most `max`; without a limit only the attempt is named.
    pub fn retrying(attempt: u64, max: Option<u64>) -> Self {
        let label = match max {
            Some(max) => format!("retrying {attempt}/{max}"),
            None => format!("retrying {attempt}"),
        };
        let tag = Self::new(label, Tone::Attn, Mark::Loop);
        match max {
            Some(max) => tag.titled(format!("attempt {attempt} of {max}")),
            None => tag.titled(format!("attempt {attempt}, no limit")),
        }
    }

    /// How an activity, one of its attempts or a timer stands.
    pub fn step(status: &str) -> Self {
        match status {
            "pending" => Self::new("pending", Tone::Wait, Mark::Hourglass),
            "running" => Self::new("running", Tone::Run, Mark::Pulse),
            "completed" => Self::new("completed", Tone::Ok, Mark::Tick),
            "failed" => Self::new("failed", Tone::Fail, Mark::Cross),
            "cancelled" => Self::new("cancelled", Tone::Wait, Mark::Slash),
            "expired" => Self::new("expired", Tone::Late, Mark::Clock),
            other => Self::unknown(other),
        }
    }

    /// A try whose worker was not heard of again; its code may still be running.
    pub fn lease_ran_out() -> Self {
        Self::new("lease ran out", Tone::Late, Mark::Clock)
            .titled("status running; its worker did not come back before the lease ran out")
    }

    /// How a task stands in transport.
    pub fn task(transport_state: &str) -> Self {
        let (label, tone, mark) = match transport_state {
            "ready" => ("ready", Tone::Run, Mark::Dot),
            "scheduled" => ("scheduled", Tone::Wait, Mark::Hourglass),
            "leased" => ("leased", Tone::Run, Mark::Pulse),
            "completed" => ("completed", Tone::Ok, Mark::Tick),
            "failed" => ("failed", Tone::Fail, Mark::Cross),
            "cancelled" => ("cancelled", Tone::Wait, Mark::Slash),
            "lease_expired" => ("lease expired", Tone::Late, Mark::Clock),
            "dispatch_failed" => ("dispatch failed", Tone::Attn, Mark::Exclamation),
            "dispatch_overdue" => ("dispatch overdue", Tone::Attn, Mark::Clock),
            "claim_failed" => ("claim failed", Tone::Attn, Mark::Exclamation),
            "repair_backoff" => ("repair backoff", Tone::Attn, Mark::Hourglass),
            "replay_blocked" => ("replay blocked", Tone::Halt, Mark::Lock),
            "missing" => ("missing", Tone::Attn, Mark::Question),
            other => return Self::unknown(other),
        };
        Self::new(label, tone, mark).titled(format!("transport_state {transport_state}"))
    }

    /// How a wait stands.
    pub fn wait(status: &str, overdue: bool) -> Self {
        match status {
            "open" if overdue => Self::new("overdue", Tone::Attn, Mark::Clock)
                .titled("open, and its deadline has passed"),
            "open" => Self::new("open", Tone::Wait, Mark::Ring),
            "resolved" => Self::new("resolved", Tone::Ok, Mark::Tick),
            "cancelled" => Self::new("cancelled", Tone::Wait, Mark::Slash),
            "unsupported" => Self::new("row only", Tone::Attn, Mark::Question)
                .titled("ended according to a row, of which history knows nothing"),
            other => Self::unknown(other),
        }
    }

    /// A wait that nothing ended before its run did.
    pub fn left_open() -> Self {
        Self::new("left open", Tone::Wait, Mark::Slash).titled("still open when the run closed")
    }

    /// What became of a command, a signal or an update.
    pub fn message(status: &str) -> Self {
        match status {
            "accepted" => Self::new("accepted", Tone::Run, Mark::Dot),
            "received" => Self::new("received", Tone::Wait, Mark::Hourglass)
                .titled("received, not applied yet"),
            "applied" => Self::new("applied", Tone::Ok, Mark::Tick),
            "completed" => Self::new("completed", Tone::Ok, Mark::Tick),
            "failed" => Self::new("failed", Tone::Fail, Mark::Cross),
            "rejected" => Self::new("rejected", Tone::Fail, Mark::Slash),
            other => Self::unknown(other),
        }
    }

    /// Known from a mutable row, of which history knows nothing.
    pub fn row_only(authority: &str) -> Self {
        Self::new("row only", Tone::Attn, Mark::Question)
            .outlined()
            .titled(format!("history knows nothing of it: {authority}"))
    }

    /// Something that should exist and does not.
    pub fn missing() -> Self {
        Self::new("no such row", Tone::Attn, Mark::Question)
            .outlined()
            .titled("history calls for this task, and there is no row for it")
    }

    /// No live worker may take a task.
    pub fn no_compatible_worker() -> Self {
        Self::new("no compatible worker", Tone::Attn, Mark::Exclamation)
    }

    /// Repair is called for.
    pub fn repair() -> Self {
        Self::new("repair", Tone::Attn, Mark::Repair).titled("the durable state calls for repair")
    }

    /// A stored summary that disagrees with the history.
    pub fn stale() -> Self {
        Self::new("stale", Tone::Attn, Mark::Clock)
            .outlined()
            .titled("the stored summary disagrees with the history")
    }

    /// Archived runs are kept out of the way.
    pub fn archived() -> Self {
        Self::new("archived", Tone::Wait, Mark::Lock).outlined()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_as_what_happened() {
        let table = [
            ("pending", None, "pending", Tone::Wait, Mark::Hourglass),
            ("running", None, "running", Tone::Run, Mark::Pulse),
            ("waiting", None, "waiting", Tone::Wait, Mark::Ring),
            ("completed", None, "completed", Tone::Ok, Mark::Tick),
            (
                "completed",
                Some("completed"),
                "completed",
                Tone::Ok,
                Mark::Tick,
            ),
            (
                "completed",
                Some("continued"),
                "continued",
                Tone::Next,
                Mark::Arrow,
            ),
            ("failed", None, "failed", Tone::Fail, Mark::Cross),
            ("failed", Some("failed"), "failed", Tone::Fail, Mark::Cross),
            (
                "failed",
                Some("timed_out"),
                "timed out",
                Tone::Late,
                Mark::Clock,
            ),
            (
                "cancelled",
                Some("cancelled"),
                "cancelled",
                Tone::Wait,
                Mark::Slash,
            ),
            (
                "terminated",
                Some("terminated"),
                "terminated",
                Tone::Halt,
                Mark::Stop,
            ),
            ("paused", None, "paused", Tone::Wait, Mark::Question),
            ("Running", None, "Running", Tone::Wait, Mark::Question),
            ("", None, "(empty)", Tone::Wait, Mark::Question),
        ];
        for (status, reason, label, tone, mark) in table {
            let tag = Tag::status(status, reason);
            assert_eq!(
                (&*tag.label, tag.tone, tag.mark),
                (label, tone, mark),
                "{status} {reason:?}"
            );
        }
    }

    #[test]
    fn a_task_problem_is_joined_and_leaves_the_status_alone() {
        let table = [
            ("replay_blocked", "replay blocked", Tone::Halt, Mark::Lock),
            ("active", "task problem", Tone::Attn, Mark::Exclamation),
            ("history", "task history", Tone::Wait, Mark::Clock),
            ("haunted", "haunted", Tone::Wait, Mark::Question),
        ];
        for (code, label, tone, mark) in table {
            let tag = Tag::status("waiting", None).with_task_problem(code);
            assert_eq!(tag.label, "waiting");
            let segment = tag.segment.expect("a second segment");
            assert_eq!(
                (&*segment.label, segment.tone, segment.mark),
                (label, tone, mark),
                "{code}"
            );
        }
    }

    #[test]
    fn a_failure_category_is_named_in_the_engines_words() {
        let table = [
            (Some("application"), "application", Tone::Fail, Mark::Cross),
            (Some("cancelled"), "cancelled", Tone::Wait, Mark::Slash),
            (Some("terminated"), "terminated", Tone::Halt, Mark::Stop),
            (Some("timeout"), "timeout", Tone::Late, Mark::Clock),
            (Some("activity"), "activity", Tone::Fail, Mark::Cross),
            (
                Some("child_workflow"),
                "child workflow",
                Tone::Fail,
                Mark::Cross,
            ),
            (
                Some("task_failure"),
                "task failure",
                Tone::Fail,
                Mark::Exclamation,
            ),
            (Some("internal"), "internal", Tone::Fail, Mark::Exclamation),
            (
                Some("structural_limit"),
                "structural limit",
                Tone::Fail,
                Mark::Stop,
            ),
            (Some("cosmic_ray"), "cosmic_ray", Tone::Wait, Mark::Question),
            (None, "unclassified", Tone::Wait, Mark::Question),
        ];
        for (stored, label, tone, mark) in table {
            let tag = Tag::failure_category(stored);
            assert_eq!(
                (&*tag.label, tag.tone, tag.mark),
                (label, tone, mark),
                "{stored:?}"
            );
        }
    }

    #[test]
    fn tries_are_counted_against_their_limit_when_there_is_one() {
        assert_eq!(Tag::retrying(2, Some(3)).label, "retrying 2/3");
        assert_eq!(Tag::retrying(7, None).label, "retrying 7");
        assert!(Tag::non_retryable().outline);
    }
}
