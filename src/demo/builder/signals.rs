//! Signals and updates: the outside world talking to a run.

use serde_json::{Value as Json, json};

use super::model::{Command, Signal, SignalWait, TimerKind, Update};
use super::{RunBuilder, blob, digest};

impl RunBuilder {
    /// Workflow code waits for a signal, for at most `timeout` seconds.
    pub fn await_signal(&mut self, name: &str, timeout: Option<u32>) -> usize {
        let task = self.work();
        let sequence = self.next_step();
        let id = self.mint.code(self.at);
        let mut payload = json!({
            "signal_name": name,
            "signal_wait_id": id,
            "sequence": sequence,
        });
        if let Some(seconds) = timeout {
            payload["timeout_seconds"] = json!(seconds);
        }
        self.event("SignalWaitOpened", payload, Some(&task), None);
        let index = self.signal_waits.len();
        self.signal_waits.push(SignalWait {
            id,
            name: name.to_owned(),
            sequence,
            timeout,
            timer: None,
            command: None,
            status: "open",
            source_status: "waiting",
            opened_at: self.at,
            fired_at: None,
            resolved_at: None,
        });
        if let Some(seconds) = timeout {
            let timer = self.push_timer(sequence, seconds, TimerKind::Signal(index));
            self.signal_waits[index].timer = Some(timer);
        }
        index
    }

    /// Files a command of the outside world under this run.
    pub(super) fn command(
        &mut self,
        kind: &'static str,
        source: &'static str,
        payload: Option<&Json>,
        outcome: Option<&'static str>,
    ) -> usize {
        let (caller, context) = match source {
            "waterline" => {
                let path = format!("/waterline/api/instances/{}/{kind}", self.start.instance);
                (
                    "Waterline UI",
                    json!({"caller": {"type": "waterline", "label": "Waterline UI"},
                           "auth": {"status": "authorized", "method": "waterline"},
                           "request": {"method": "POST", "path": path, "ip": "10.4.0.17",
                                       "user_agent": "Mozilla/5.0",
                                       "fingerprint": format!("sha256:{}", digest(&path))},
                           "principal": {"type": "user", "id": "17", "label": "Mara Lindqvist"}}),
                )
            }
            "webhook" => (
                "Webhook",
                json!({"caller": {"type": "webhook", "label": "Webhook"},
                       "auth": {"status": "authorized", "method": "signature"}}),
            ),
            _ => (
                "PHP API",
                json!({"caller": {"type": "php", "label": "PHP API"},
                       "auth": {"status": "not_applicable", "method": "none"}}),
            ),
        };
        let message_sequence = matches!(kind, "signal" | "update").then(|| {
            self.message_sequence += 1;
            self.message_sequence
        });
        let at = self.at;
        self.commands.push(Command {
            id: self.mint.row(at),
            kind,
            scope: if kind == "repair" { "run" } else { "instance" },
            source,
            context,
            caller,
            status: "accepted",
            outcome,
            rejection_reason: None,
            payload: payload.map(blob),
            target: None,
            sequence: u32::try_from(self.commands.len() + 1).expect("few commands"),
            message_sequence,
            at,
            applied_at: None,
        });
        self.commands.len() - 1
    }

    /// A signal arrives and is accepted; workflow code has not seen it yet.
    pub fn signal(&mut self, name: &str, arguments: &Json) -> usize {
        self.park();
        let payload = json!({"name": name, "arguments": arguments, "validation_errors": []});
        let command = self.command("signal", "webhook", Some(&payload), Some("signal_received"));
        self.commands[command].target = Some(name.to_owned());
        let command_id = self.commands[command].id.clone();
        let wait = self
            .signal_waits
            .iter()
            .position(|wait| wait.name == name && wait.status == "open");
        let wait_id = wait.map_or_else(
            || format!("signal-command:{command_id}"),
            |wait| self.signal_waits[wait].id.clone(),
        );
        let at = self.at;
        let encoded = blob(arguments);
        let signal = Signal {
            id: self.mint.row(at),
            command,
            name: name.to_owned(),
            wait_id: Some(wait_id.clone()),
            status: "received",
            sequence: None,
            arguments: encoded.clone(),
            value: blob(&arguments[0]),
            received_at: at,
            applied_at: None,
        };
        let id = signal.id.clone();
        self.signals.push(signal);
        self.event(
            "SignalReceived",
            json!({
                "workflow_command_id": command_id,
                "signal_id": id,
                "workflow_instance_id": self.start.instance,
                "workflow_run_id": self.run_id,
                "signal_name": name,
                "signal_wait_id": wait_id,
                "arguments": encoded,
                "payload_codec": "avro",
            }),
            None,
            Some(command),
        );
        if let Some(wait) = wait {
            let wait = &mut self.signal_waits[wait];
            wait.status = "resolved";
            wait.source_status = "received";
            wait.resolved_at = Some(at);
            wait.command = Some(command);
        }
        self.resume(json!({
            "workflow_wait_kind": "signal",
            "open_wait_id": format!("signal-application:{id}"),
            "resume_source_kind": "workflow_signal",
            "resume_source_id": id,
            "workflow_signal_id": id,
            "signal_name": name,
            "signal_wait_id": wait_id,
            "workflow_command_id": command_id,
        }));
        self.signals.len() - 1
    }

    /// The command is refused; a rejected signal leaves no event.
    pub fn reject_signal(
        &mut self,
        name: &str,
        reason: &'static str,
        outcome: Option<&'static str>,
    ) {
        let payload = json!({"name": name, "arguments": [], "validation_errors": []});
        let command = self.command("signal", "webhook", Some(&payload), outcome);
        let rejected = &mut self.commands[command];
        rejected.status = "rejected";
        rejected.rejection_reason = Some(reason);
        rejected.target = Some(name.to_owned());
        let at = self.at;
        self.signals.push(Signal {
            id: self.mint.row(at),
            command,
            name: name.to_owned(),
            wait_id: None,
            status: "rejected",
            sequence: None,
            arguments: blob(&json!([])),
            value: blob(&Json::Null),
            received_at: at,
            applied_at: None,
        });
    }

    /// Somebody starts the same instance again and is refused.
    pub fn reject_duplicate_start(&mut self) -> &mut Self {
        self.park();
        let arguments = self.start.arguments.clone();
        let command = self.command("start", "php", Some(&arguments), Some("rejected_duplicate"));
        self.commands[command].status = "rejected";
        self.commands[command].rejection_reason = Some("instance_already_started");
        let payload = json!({
            "workflow_command_id": self.commands[command].id,
            "workflow_instance_id": self.start.instance,
            "workflow_run_id": self.run_id,
            "workflow_class": self.start.class,
            "workflow_type": self.start.kind,
            "business_key": self.start.business_key,
            "visibility_labels": null,
            "memo": [],
            "search_attributes": [],
            "outcome": "rejected_duplicate",
            "rejection_reason": "instance_already_started",
        });
        self.event("StartRejected", payload, None, Some(command));
        self
    }

    fn advance_cursor(&mut self, task: &str, message: Option<u32>) {
        let previous = self.message_cursor;
        self.message_cursor = message.unwrap_or(previous).max(previous);
        let payload = json!({
            "stream_key": format!("instance:{}", self.start.instance),
            "previous_position": previous,
            "new_position": self.message_cursor,
        });
        self.event("MessageCursorAdvanced", payload, Some(task), None);
    }

    /// Workflow code takes the signal in.
    pub fn apply_signal(&mut self, index: usize) -> &mut Self {
        let task = self.work();
        let at = self.at;
        let signal = &self.signals[index];
        let command = signal.command;
        let wait = self
            .signal_waits
            .iter()
            .position(|wait| Some(&wait.id) == signal.wait_id.as_ref());
        let sequence = match wait {
            Some(wait) => self.signal_waits[wait].sequence,
            None => self.next_step(),
        };
        let message = self.commands[command].message_sequence;
        self.advance_cursor(&task, message);
        self.commands[command].applied_at = Some(at);
        let signal = &mut self.signals[index];
        signal.status = "applied";
        signal.applied_at = Some(at);
        signal.sequence = Some(sequence);
        let payload = json!({
            "workflow_command_id": self.commands[command].id,
            "signal_id": signal.id,
            "signal_name": signal.name,
            "signal_wait_id": signal.wait_id,
            "sequence": sequence,
            "value": signal.value,
        });
        self.event("SignalApplied", payload, Some(&task), Some(command));
        if let Some(wait) = wait {
            self.signal_waits[wait].source_status = "applied";
            self.signal_waits[wait].resolved_at = Some(at);
            if let Some(timer) = self.signal_waits[wait].timer {
                self.cancel_timer(timer, None);
            }
        }
        self
    }

    /// An update arrives and is accepted.
    pub fn update(&mut self, name: &str, arguments: &Json) -> usize {
        self.park();
        let payload = json!({"name": name, "arguments": arguments, "validation_errors": []});
        let command = self.command("update", "php", Some(&payload), None);
        self.commands[command].target = Some(name.to_owned());
        let command_id = self.commands[command].id.clone();
        let at = self.at;
        let encoded = blob(arguments);
        let id = self.mint.row(at);
        self.updates.push(Update {
            id: id.clone(),
            command,
            name: name.to_owned(),
            status: "accepted",
            sequence: None,
            arguments: encoded.clone(),
            result: None,
            accepted_at: at,
            applied_at: None,
            closed_at: None,
        });
        self.event(
            "UpdateAccepted",
            json!({
                "workflow_command_id": command_id,
                "update_id": id,
                "workflow_instance_id": self.start.instance,
                "workflow_run_id": self.run_id,
                "update_name": name,
                "arguments": encoded,
                "ordering_state": "ready",
                "queued_behind_command_id": null,
                "queued_behind_command_sequence": null,
                "queued_behind_command_type": null,
            }),
            None,
            Some(command),
        );
        self.resume(json!({
            "workflow_wait_kind": "update",
            "open_wait_id": format!("update:{id}"),
            "resume_source_kind": "workflow_update",
            "resume_source_id": id,
            "workflow_update_id": id,
            "workflow_command_id": command_id,
        }));
        self.updates.len() - 1
    }

    /// Workflow code applies the update and answers.
    pub fn answer_update(&mut self, index: usize, result: &Json) -> &mut Self {
        let task = self.work();
        let at = self.at;
        // An update takes no step of its own: it is applied where the code stands.
        let sequence = self.step.max(1);
        let encoded = blob(result);
        let command = self.updates[index].command;
        let message = self.commands[command].message_sequence;
        self.advance_cursor(&task, message);
        self.commands[command].applied_at = Some(at);
        self.commands[command].outcome = Some("update_completed");
        let update = &mut self.updates[index];
        update.status = "completed";
        update.sequence = Some(sequence);
        update.result = Some(encoded.clone());
        update.applied_at = Some(at);
        update.closed_at = Some(at);
        let mut applied = json!({
            "workflow_command_id": self.commands[command].id,
            "workflow_instance_id": self.start.instance,
            "workflow_run_id": self.run_id,
            "update_id": update.id,
            "update_name": update.name,
        });
        let mut completed = applied.clone();
        applied["arguments"] = json!(update.arguments);
        applied["sequence"] = json!(sequence);
        completed["sequence"] = json!(sequence);
        completed["result"] = json!(encoded);
        self.event("UpdateApplied", applied, Some(&task), Some(command));
        self.event("UpdateCompleted", completed, Some(&task), Some(command));
        self
    }
}
