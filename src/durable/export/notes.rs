//! What a bundle says of itself: how its payloads are encoded, and what was hidden.

use serde_json::{Value, json};

use super::{
    Policy, entries,
    folder::Folded,
    hide::Hidden,
    history::Told,
    manifest::{Entry, Path},
    redaction::{CopyId, Slot, message_slot},
    sections::ACTIVITY,
    stream::{Export, ExportError},
};
use crate::durable::canonical;

/// As much of an activity as the manifest looks at, from its canonical text.
fn payloads_of(activity: &[u8]) -> Value {
    let looked_at: [&[u8]; 3] = [b"arguments", b"payload_codec", b"result"];
    canonical::members(activity)
        .filter(|(key, _)| looked_at.contains(key))
        .map(|(key, value)| {
            let value: Value = serde_json::from_slice(value).unwrap_or_default();
            (String::from_utf8_lossy(key), value)
        })
        .collect()
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
            let redacted = self.hide.touches(slot);
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
            self.writer.entry(&entry.written());
            self.flow().await?;
        }
        for n in 0..self.head.commands.len() {
            let (command, _) = self.command(n);
            let slots = [(self.hide.command_slot(command["type"].as_str()), "payload")];
            self.payload("commands", n, &command, None, &slots).await?;
        }
        for n in 0..self.head.signals.len() {
            let (signal, _) = self.signal(n);
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
            let (update, _) = self.update(n);
            let slots = [
                (Slot::UpdateArguments, "arguments"),
                (Slot::UpdateResult, "result"),
            ];
            self.payload("updates", n, &update, None, &slots).await?;
        }
        for n in 0..folded.activities.len() {
            let activity = if self.hide.touches_activities() {
                self.activity(folded, n)?.0
            } else {
                folded.activities.text(n)?.map_or(Value::Null, payloads_of)
            };
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
        let codec = entry["payload_codec"].as_str();
        let codec = codec.filter(|codec| !codec.is_empty()).or(otherwise);
        for (slot, key) in slots {
            let redacted = self.hide.touches(*slot);
            let noted = Entry::new(Path::At(list, n, key), codec, &entry[*key], redacted);
            self.writer.entry(&noted.written());
        }
        self.flow().await
    }

    pub async fn redaction(
        &mut self,
        told: &Told,
        hidden_timeline: &[(u32, Hidden)],
        folded: &mut Folded,
    ) -> Result<(), ExportError> {
        let policy = self.hide.0;
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
                self.events.len(),
                &[(Slot::EventPayload, "payload")],
            )
            .await?;
            for (n, hidden) in hidden_timeline {
                if matches!(hidden, Hidden::Slot(_)) {
                    self.listed(hidden.path(*n)).await?;
                }
            }
            for n in 0..self.head.commands.len() {
                let kind = self.head.commands[n].command_type.as_str().to_owned();
                let of = |key| format!("commands.{n}.{key}");
                self.path(self.hide.command_slot(Some(&kind)), || of("payload"))
                    .await?;
                self.path(Slot::CommandContext, || of("context")).await?;
                self.path(Slot::CommandReason, || of("reason")).await?;
            }
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
            self.paths(
                "tasks",
                folded.tasks.len(),
                &[(Slot::TaskPayload, "payload")],
            )
            .await?;
            self.paths("activities", folded.activities.len(), ACTIVITY)
                .await?;
            for (n, failure) in folded.failures.iter().enumerate() {
                let message = message_slot(&entries::failure(failure));
                let of = |key| format!("failures.{n}.{key}");
                self.path(message, || of("message")).await?;
                self.path(Slot::FailureFile, || of("file")).await?;
                self.path(Slot::FailureTrace, || of("trace_preview"))
                    .await?;
            }
            self.copied_paths(told, hidden_timeline, folded).await?;
        }
        self.writer.close_list();
        self.writer
            .member("policy", &json!(policy.map(Policy::told)));
        self.writer.close_map();
        Ok(())
    }

    /// What was hidden beyond the slots the engine looks at, which come first.
    async fn copied_paths(
        &mut self,
        told: &Told,
        hidden_timeline: &[(u32, Hidden)],
        folded: &mut Folded,
    ) -> Result<(), ExportError> {
        for (n, hidden) in &told.hidden_events {
            self.listed(hidden.path(*n)).await?;
        }
        for (n, hidden) in hidden_timeline {
            if !matches!(hidden, Hidden::Slot(_)) {
                self.listed(hidden.path(*n)).await?;
            }
        }
        for n in 0..self.head.commands.len() {
            self.listed_copies(self.command(n).1).await?;
        }
        for n in 0..self.head.updates.len() {
            self.listed_copies(self.update(n).1).await?;
        }
        for n in 0..self.head.signals.len() {
            self.listed_copies(self.signal(n).1).await?;
        }
        let of_tasks = std::mem::take(&mut folded.hidden_tasks);
        self.listed_copies(of_tasks).await?;
        if self.hide.touches_activities() {
            for n in 0..folded.activities.len() {
                let (_, copies) = self.activity(folded, n)?;
                self.listed_copies(copies).await?;
            }
        }
        self.listed_copies(self.workflow().1).await?;
        self.listed_copies(self.summary().1).await
    }

    async fn listed_copies(&mut self, copies: Vec<(CopyId, String)>) -> Result<(), ExportError> {
        for (_, path) in copies {
            self.listed(Some(path)).await?;
        }
        Ok(())
    }

    async fn listed(&mut self, path: Option<String>) -> Result<(), ExportError> {
        if let Some(path) = path {
            self.writer.item(&path);
        }
        self.flow().await
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
        if self.hide.touches(slot) {
            self.writer.item(&path());
            self.flow().await?;
        }
        Ok(())
    }
}
