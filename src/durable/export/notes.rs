//! What a bundle says of itself: how its payloads are encoded, and what was hidden.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    fold::Folded,
    history::Told,
    manifest::{Entry, Path},
    redaction::Slot,
    sections::ACTIVITY,
    stream::{Export, ExportError},
};

/// As much of an activity as the manifest looks at.
#[derive(Deserialize, Serialize)]
struct Payloads {
    payload_codec: Value,
    arguments: Value,
    result: Value,
}

impl Export<'_> {
    pub async fn manifest(&mut self, told: &Told, folded: &mut Folded) -> Result<(), ExportError> {
        let payloads = self.redacted_payloads();
        let run_codec = payloads["codec"].as_str().map(str::to_owned);
        let run_codec = run_codec.as_deref();
        self.writer.open_map("payload_manifest");
        self.writer.open_list("entries");
        let first = |slot, path, codec: Option<&str>, part: &Value| {
            let available = part["available"] == true;
            let redacted = self.touches(slot);
            Entry::known(Path::Fixed(path), codec, &part["data"], redacted, available)
        };
        let output_codec = payloads["output"]["codec"].as_str().or(run_codec);
        let of_run = [
            first(
                Slot::WorkflowArguments,
                "payloads.arguments.data",
                run_codec,
                &payloads["arguments"],
            ),
            first(
                Slot::WorkflowOutput,
                "payloads.output.data",
                output_codec,
                &payloads["output"],
            ),
        ];
        for entry in of_run.iter().chain(&told.manifest) {
            self.writer.item(&entry.value());
            self.flow().await?;
        }
        for n in 0..self.head.commands.len() {
            let command = self.command(n);
            self.payload(
                "commands",
                n,
                &command,
                None,
                &[(Slot::CommandPayload, "payload")],
            )
            .await?;
        }
        for n in 0..self.head.signals.len() {
            let signal = self.signal(n);
            self.payload(
                "signals",
                n,
                &signal,
                None,
                &[(Slot::SignalArguments, "arguments")],
            )
            .await?;
        }
        for n in 0..self.head.updates.len() {
            let update = self.update(n);
            let slots = [
                (Slot::UpdateArguments, "arguments"),
                (Slot::UpdateResult, "result"),
            ];
            self.payload("updates", n, &update, None, &slots).await?;
        }
        for n in 0..folded.activities.len() {
            let activity = if self.touches_any(ACTIVITY) {
                self.activity(folded, n)
            } else {
                let text = folded.activities.text(n);
                text.and_then(|text| serde_json::from_slice::<Payloads>(text).ok())
                    .map(|payloads| json!(payloads))
            };
            let activity = activity.unwrap_or_default();
            self.payload("activities", n, &activity, run_codec, ACTIVITY)
                .await?;
        }
        self.writer.close_list();
        self.writer.member("version", &1);
        self.writer.close_map();
        Ok(())
    }

    async fn payload(
        &mut self,
        list: &'static str,
        n: usize,
        entry: &Value,
        otherwise: Option<&str>,
        slots: &[(Slot, &'static str)],
    ) -> Result<(), ExportError> {
        let codec = entry["payload_codec"].as_str().or(otherwise);
        for (slot, key) in slots {
            let redacted = self.touches(*slot);
            let noted = Entry::new(Path::At(list, n, key), codec, &entry[*key], redacted);
            self.writer.item(&noted.value());
        }
        self.flow().await
    }

    pub async fn redaction(&mut self, told: &Told, folded: &Folded) -> Result<(), ExportError> {
        let policy = self.options.policy;
        self.writer.open_map("redaction");
        self.writer.member("applied", &policy.is_some());
        self.writer.open_list("paths");
        if policy.is_some() {
            self.path(Slot::WorkflowArguments, || "payloads.arguments.data".into())
                .await?;
            self.path(Slot::WorkflowOutput, || "payloads.output.data".into())
                .await?;
            self.paths(
                "history_events",
                folded.events,
                &[(Slot::EventPayload, "payload")],
            )
            .await?;
            self.timeline_paths(told).await?;
            self.paths(
                "commands",
                self.head.commands.len(),
                &[
                    (Slot::CommandPayload, "payload"),
                    (Slot::CommandContext, "context"),
                    (Slot::CommandReason, "reason"),
                ],
            )
            .await?;
            self.paths(
                "updates",
                self.head.updates.len(),
                &[
                    (Slot::UpdateArguments, "arguments"),
                    (Slot::UpdateResult, "result"),
                ],
            )
            .await?;
            self.paths(
                "signals",
                self.head.signals.len(),
                &[(Slot::SignalArguments, "arguments")],
            )
            .await?;
            self.paths("tasks", folded.tasks, &[(Slot::TaskPayload, "payload")])
                .await?;
            self.paths("activities", folded.activities.len(), ACTIVITY)
                .await?;
            self.paths(
                "failures",
                folded.failures.len(),
                &[
                    (Slot::FailureMessage, "message"),
                    (Slot::FailureFile, "file"),
                    (Slot::FailureTrace, "trace_preview"),
                ],
            )
            .await?;
        }
        self.writer.close_list();
        self.writer
            .member("policy", &json!(policy.map(|policy| &policy.name)));
        self.writer.close_map();
        Ok(())
    }

    /// Commands and failures of the timeline, event by event.
    async fn timeline_paths(&mut self, told: &Told) -> Result<(), ExportError> {
        let (mut commands, mut failures) = (told.with_command.iter(), told.with_failure.iter());
        let (mut command, mut failure) = (commands.next(), failures.next());
        loop {
            let n = match (command, failure) {
                (Some(a), Some(b)) => a.min(b),
                (Some(n), None) | (None, Some(n)) => n,
                (None, None) => return Ok(()),
            };
            if command == Some(n) {
                let of = |key| format!("timeline.{n}.command.{key}");
                self.path(Slot::CommandPayload, || of("payload")).await?;
                self.path(Slot::CommandContext, || of("context")).await?;
            }
            if failure == Some(n) {
                let of = |key| format!("timeline.{n}.failure.{key}");
                self.path(Slot::FailureMessage, || of("message")).await?;
                self.path(Slot::FailureFile, || of("file")).await?;
            }
            let met = *n;
            if command == Some(&met) {
                command = commands.next();
            }
            if failure == Some(&met) {
                failure = failures.next();
            }
        }
    }

    async fn paths(
        &mut self,
        list: &str,
        count: usize,
        slots: &[(Slot, &str)],
    ) -> Result<(), ExportError> {
        for n in 0..count {
            for (slot, key) in slots {
                self.path(*slot, || format!("{list}.{n}.{key}")).await?;
            }
        }
        Ok(())
    }

    async fn path(&mut self, slot: Slot, path: impl FnOnce() -> String) -> Result<(), ExportError> {
        if self.touches(slot) {
            self.writer.item(&path());
            self.flow().await?;
        }
        Ok(())
    }
}
