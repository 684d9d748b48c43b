//! Waits for a signal by name, with or without a timeout. Events only.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, Utc};

use super::{
    OfKind, Wait,
    conditions::{closing_word, run_end},
    tasks::preferred_tasks,
};
use crate::durable::{
    projection::context::Context,
    stored::{
        CommandRow, EventType, HistoryEvent, TaskRow, TaskType, payloads::waits::SignalEvent,
    },
};

/// One wait for a signal.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalWait {
    pub signal_wait_id: String,
    pub signal_id: Option<String>,
    pub signal_name: String,
    pub sequence: Option<i64>,
    /// `open`, `resolved`, `cancelled`.
    pub status: &'static str,
    /// `waiting`, `received`, `applied`, `timed_out`, `timeout_cancelled`, or how the run ended.
    pub source_status: &'static str,
    pub opened_at: Option<DateTime<Utc>>,
    pub deadline_at: Option<DateTime<Utc>>,
    pub resolved_at: Option<DateTime<Utc>>,
    pub timeout_fired_at: Option<DateTime<Utc>>,
    pub timeout_seconds: Option<i64>,
    /// The timer that ends the wait if no signal comes.
    pub timer_id: Option<String>,
    /// The command that brought the signal, as its event says.
    pub command_id: Option<String>,
    pub command_sequence: Option<i64>,
    pub command_outcome: Option<String>,
}

/// Every wait for a signal in the order history opened them.
pub fn signal_waits(cx: Context<'_>) -> Vec<SignalWait> {
    let mut book = Book::default();
    for event in &cx.snapshot.events {
        book.enter(event);
    }
    book.waits
}

/// The same as they are listed, each with its timeout's task and its command.
pub fn waits(cx: Context<'_>, signals: &[SignalWait]) -> Vec<Wait> {
    if signals.is_empty() {
        return Vec::new();
    }
    let tasks = preferred_tasks(
        &cx.snapshot.tasks,
        |named| named.timer_id,
        Some(&TaskType::Timer),
    );
    let commands: HashMap<&str, &CommandRow> = cx
        .snapshot
        .commands
        .iter()
        .map(|command| (command.id.as_str(), command))
        .collect();
    signals
        .iter()
        .map(|signal| {
            let timer = signal.timer_id.as_deref();
            let command = signal.command_id.as_deref();
            signal.as_wait(
                timer.and_then(|timer| tasks.get(timer).copied()),
                command.and_then(|command| commands.get(command).copied()),
            )
        })
        .collect()
}

#[derive(Default)]
struct Book {
    waits: Vec<SignalWait>,
    at: HashMap<String, usize>,
    /// Ids of waits no signal or timeout has answered yet, by name, oldest first.
    open: HashMap<String, VecDeque<String>>,
}

impl Book {
    fn enter(&mut self, event: &HistoryEvent) {
        match event.event_type {
            EventType::SignalWaitOpened => self.opened(event),
            EventType::TimerScheduled | EventType::TimerFired | EventType::TimerCancelled => {
                self.timer(event);
            }
            EventType::SignalReceived | EventType::SignalApplied => self.signal(event),
            _ => {
                if let Some(word) = closing_word(&event.event_type) {
                    self.run_closed(word, event.time());
                }
            }
        }
    }

    fn opened(&mut self, event: &HistoryEvent) {
        let payload: SignalEvent = event.as_payload();
        let Some(name) = payload.signal_name.0 else {
            return;
        };
        let sequence = payload.sequence.get();
        let Some(id) = payload
            .signal_wait_id
            .0
            .or_else(|| Some(format!("signal:{}:{name}", sequence?)))
        else {
            return;
        };
        self.open
            .entry(name.clone())
            .or_default()
            .push_back(id.clone());
        let wait = SignalWait {
            signal_wait_id: id.clone(),
            signal_id: None,
            signal_name: name,
            sequence,
            status: "open",
            source_status: "waiting",
            opened_at: event.time(),
            deadline_at: None,
            resolved_at: None,
            timeout_fired_at: None,
            timeout_seconds: payload.timeout_seconds.get(),
            timer_id: None,
            command_id: None,
            command_sequence: None,
            command_outcome: None,
        };
        // A wait opened again starts over in its old place.
        let next = self.waits.len();
        let at = *self.at.entry(id).or_insert(next);
        match self.waits.get_mut(at) {
            Some(old) => *old = wait,
            None => self.waits.push(wait),
        }
    }

    fn timer(&mut self, event: &HistoryEvent) {
        let payload: SignalEvent = event.as_payload();
        if payload.timer_kind.as_deref() != Some("signal_timeout") {
            return;
        }
        // A timer is scheduled for a wait it names; it ends a wait of its name.
        let scheduled = event.event_type == EventType::TimerScheduled;
        let id = if scheduled {
            let named = payload.signal_name.is_some();
            payload.signal_wait_id.0.clone().filter(|_| named)
        } else {
            self.answer(&payload)
        };
        let Some(wait) = self.find(id.as_deref()) else {
            return;
        };
        if payload.timer_id.is_some() {
            wait.timer_id.clone_from(&payload.timer_id);
        }
        wait.timeout_seconds = payload
            .delay_seconds
            .get()
            .or(payload.timeout_seconds.get())
            .or(wait.timeout_seconds);
        wait.deadline_at = payload.fire_at.or(wait.deadline_at);
        if scheduled || !wait.is_open() {
            return;
        }
        wait.resolved_at = event.time();
        if event.event_type == EventType::TimerFired {
            wait.status = "resolved";
            wait.source_status = "timed_out";
            wait.timeout_fired_at = payload.fired_at.or_else(|| event.time());
        } else {
            wait.status = "cancelled";
            wait.source_status = "timeout_cancelled";
        }
    }

    fn signal(&mut self, event: &HistoryEvent) {
        let payload: SignalEvent = event.as_payload();
        let id = self.answer(&payload);
        let Some(wait) = self.find(id.as_deref()) else {
            return;
        };
        let applied = event.event_type == EventType::SignalApplied;
        // A received signal may still be applied; no other answer is answered again.
        let answerable = wait.is_open() || applied && wait.source_status == "received";
        if !answerable {
            return;
        }
        wait.status = "resolved";
        wait.source_status = if applied { "applied" } else { "received" };
        wait.resolved_at = event.time();
        if payload.signal_id.is_some() {
            wait.signal_id.clone_from(&payload.signal_id);
        }
        let command = payload.command.0.unwrap_or_default();
        wait.command_id = event
            .workflow_command_id
            .clone()
            .filter(|id| !id.is_empty())
            .or(payload.workflow_command_id.0)
            .or(command.id.0);
        wait.command_sequence = command.sequence.get();
        wait.command_outcome = Some(
            payload
                .outcome
                .0
                .or(command.outcome.0)
                .unwrap_or_else(|| "signal_received".into()),
        );
    }

    fn run_closed(&mut self, word: &'static str, at: Option<DateTime<Utc>>) {
        for id in self.open.drain().flat_map(|(_, ids)| ids) {
            if let Some(wait) = self.at.get(&id).and_then(|at| self.waits.get_mut(*at)) {
                wait.status = "cancelled";
                wait.source_status = word;
                wait.resolved_at = at;
            }
        }
    }

    /// The wait an event answers: the one it names, else the oldest of its name. It is open to
    /// no other answer afterwards.
    fn answer(&mut self, payload: &SignalEvent) -> Option<String> {
        let ids = self.open.entry(payload.signal_name.0.clone()?).or_default();
        match &payload.signal_wait_id.0 {
            Some(id) => {
                if let Some(at) = ids.iter().position(|open| open == id) {
                    ids.remove(at);
                }
                Some(id.clone())
            }
            None => ids.pop_front(),
        }
    }

    fn find(&mut self, id: Option<&str>) -> Option<&mut SignalWait> {
        let at = *self.at.get(id?)?;
        self.waits.get_mut(at)
    }
}

impl SignalWait {
    pub fn is_open(&self) -> bool {
        self.status == "open"
    }

    pub fn timed_out(&self) -> bool {
        self.source_status == "timed_out"
    }

    /// As one of the run's waits, with the task of its timer and the command's row.
    pub fn as_wait(&self, task: Option<&TaskRow>, command: Option<&CommandRow>) -> Wait {
        let by_timer = self.timer_id.is_some();
        Wait {
            id: self.signal_wait_id.clone(),
            kind: "signal",
            sequence: self.sequence,
            status: self.status,
            source_status: Some(self.source_status.to_owned()),
            summary: self.summary(),
            opened_at: self.opened_at,
            deadline_at: self.deadline_at,
            resolved_at: self.resolved_at,
            timeout_fired_at: self.timeout_fired_at,
            target_name: Some(self.signal_name.clone()),
            external_only: !by_timer,
            resume_source_kind: Some(if by_timer { "timer" } else { "signal" }.to_owned()),
            resume_source_id: self.timer_id.clone().or_else(|| self.command_id.clone()),
            command_id: self.command_id.clone(),
            command_sequence: self
                .command_sequence
                .or_else(|| command.and_then(|command| command.command_sequence)),
            // Only an accepted signal is written into history.
            command_status: self.command_outcome.as_ref().map(|_| "accepted".to_owned()),
            command_outcome: self.command_outcome.clone(),
            of_kind: OfKind::Signal {
                signal_wait_id: self.signal_wait_id.clone(),
                signal_id: self.signal_id.clone(),
                timer_id: self.timer_id.clone(),
                timeout_seconds: self.timeout_seconds,
            },
            ..Wait::default()
        }
        .with_task(task)
    }

    fn summary(&self) -> String {
        let name = &self.signal_name;
        match (self.status, self.source_status) {
            ("open", _) => match self.timeout_seconds {
                Some(seconds) => format!("Waits for signal {name}, at most {seconds} s."),
                None => format!("Waits for signal {name}."),
            },
            ("cancelled", "timeout_cancelled") => {
                format!("The timeout of the wait for signal {name} was cancelled.")
            }
            ("cancelled", how) => {
                format!(
                    "The wait for signal {name} ended: the run {}.",
                    run_end(how)
                )
            }
            (_, "timed_out") => format!("The wait for signal {name} timed out."),
            (_, "applied") => format!("Signal {name} was received and applied."),
            _ => format!("Signal {name} was received."),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::durable::projection::waits::tests::event;

    fn after(events: &[(&str, Value)]) -> Vec<SignalWait> {
        let mut book = Book::default();
        for (event_type, payload) in events {
            book.enter(&event(event_type, payload));
        }
        book.waits
    }

    type Events = Vec<(&'static str, Value)>;

    #[test]
    fn a_wait_goes_through_history() {
        let opened = (
            "SignalWaitOpened",
            json!({"signal_name": "pay", "signal_wait_id": "w"}),
        );
        let received = ("SignalReceived", json!({"signal_name": "pay"}));
        let applied = (
            "SignalApplied",
            json!({"signal_name": "pay", "signal_wait_id": "w"}),
        );
        let timer = json!({"timer_kind": "signal_timeout", "timer_id": "t", "delay_seconds": 5,
            "signal_name": "pay", "signal_wait_id": "w"});
        let fired = ("TimerFired", timer.clone());
        let cancelled = ("TimerCancelled", timer);
        let end = |event_type: &'static str| (event_type, json!({}));
        let table: [(Events, &str, &str); 8] = [
            (vec![], "open", "waiting"),
            (vec![received.clone()], "resolved", "received"),
            (
                vec![received.clone(), applied.clone()],
                "resolved",
                "applied",
            ),
            (vec![fired.clone()], "resolved", "timed_out"),
            // Too late: the timeout was the answer.
            (vec![fired, applied], "resolved", "timed_out"),
            (vec![cancelled], "cancelled", "timeout_cancelled"),
            (
                vec![end("WorkflowContinuedAsNew")],
                "cancelled",
                "continued",
            ),
            (
                vec![received, end("WorkflowFailed")],
                "resolved",
                "received",
            ),
        ];
        for (events, status, source) in table {
            let mut all = vec![opened.clone()];
            all.extend(events);
            let waits = after(&all);
            assert_eq!(waits.len(), 1, "{all:?}");
            assert_eq!(
                (waits[0].status, waits[0].source_status),
                (status, source),
                "{all:?}"
            );
        }
    }

    #[test]
    fn a_signal_without_a_wait_of_its_own_answers_the_oldest_of_its_name() {
        let opened = |sequence: i64, name: &str| {
            (
                "SignalWaitOpened",
                json!({"signal_name": name, "sequence": sequence}),
            )
        };
        let waits = after(&[
            opened(1, "other"),
            opened(2, "pay"),
            opened(3, "pay"),
            (
                "SignalReceived",
                json!({"signal_name": "pay", "signal_id": "s"}),
            ),
            ("SignalReceived", json!({"signal_id": "nameless"})),
        ]);
        let answered: Vec<(&str, Option<&str>)> = waits
            .iter()
            .map(|wait| (wait.signal_wait_id.as_str(), wait.signal_id.as_deref()))
            .collect();
        assert_eq!(
            answered,
            [
                ("signal:1:other", None),
                ("signal:2:pay", Some("s")),
                ("signal:3:pay", None)
            ]
        );
    }
}
