//! The sections of a bundle, each written from rows or from what was folded.

use std::collections::HashSet;

use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    entries::{self, End},
    fold::Folded,
    head,
    manifest::{Entry, Path},
    redaction::Slot,
    stream::{Export, ExportError},
};
use crate::durable::{
    projection::{
        children, commands, failures::Failure, intakes, lineage, related::Related, sources,
        sources::TimersSeen, timeline,
    },
    store::{export as store, snapshot::RunSnapshot},
    stored::{
        CommandRow, EventType, ExecutionRow, HistoryEvent, TaskRow, TimerEntry, TimerRow,
        WaitEntry, loose::Text,
    },
};

/// What the look at each event for `history_events` leaves for later sections.
#[derive(Default)]
pub(super) struct Told {
    manifest: Vec<Entry>,
    /// Positions of events whose timeline entry has a command, or a failure.
    with_command: Vec<u32>,
    with_failure: Vec<u32>,
    timeline_same: bool,
}

/// The rows an event names.
#[expect(clippy::struct_field_names, reason = "the engine's names")]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    workflow_command_id: Text,
    activity_execution_id: Text,
    timer_id: Text,
}

impl Export<'_> {
    pub async fn activities(&mut self, folded: &mut Folded) -> Result<(), ExportError> {
        self.writer.open_list("activities");
        for n in 0..folded.activities.len() {
            if let Some(activity) = self.activity(folded, n) {
                self.writer.item(&activity);
                self.flow().await?;
            }
        }
        self.writer.close_list();
        Ok(())
    }

    fn activity(&self, folded: &mut Folded, n: usize) -> Option<Value> {
        let mut activity = folded.activities.get(n)?;
        for (slot, key) in [
            (Slot::ActivityArguments, "arguments"),
            (Slot::ActivityResult, "result"),
        ] {
            self.redact_key(slot, &mut activity, key, || format!("activities.{n}.{key}"));
        }
        Some(activity)
    }

    /// Whether anything that is left in the bundle is encoded as Avro.
    pub fn any_avro(&self, folded: &mut Folded) -> bool {
        let is_avro = |codec: Option<&str>| codec == Some(head::AVRO);
        let run = &self.head.run;
        is_avro(Some(head::run_codec(run)))
            || is_avro(run.output_payload_codec.as_deref())
            || (folded.says_avro && !self.touches(Slot::EventPayload))
            || self
                .head
                .commands
                .iter()
                .any(|row| is_avro(row.payload_codec.as_deref()))
            || self
                .head
                .signals
                .iter()
                .any(|row| is_avro(row.payload_codec.as_deref()))
            || self
                .head
                .updates
                .iter()
                .any(|row| is_avro(row.payload_codec.as_deref()))
            || (0..folded.activities.len()).any(|n| {
                let activity = folded.activities.get(n);
                is_avro(activity.as_ref().and_then(|a| a["payload_codec"].as_str()))
            })
    }

    pub async fn commands(&mut self) -> Result<(), ExportError> {
        self.writer.open_list("commands");
        for n in 0..self.head.commands.len() {
            let command = self.command(n);
            self.writer.item(&command);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    fn command(&self, n: usize) -> Value {
        let mut command = self
            .head
            .commands
            .get(n)
            .map_or(Value::Null, entries::command);
        for (slot, key) in [
            (Slot::CommandPayload, "payload"),
            (Slot::CommandContext, "context"),
            (Slot::CommandReason, "reason"),
        ] {
            self.redact_key(slot, &mut command, key, || format!("commands.{n}.{key}"));
        }
        command
    }

    pub async fn signals(&mut self) -> Result<(), ExportError> {
        self.writer.open_list("signals");
        for n in 0..self.head.signals.len() {
            let signal = self.signal(n);
            self.writer.item(&signal);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    fn signal(&self, n: usize) -> Value {
        let mut signal = self
            .head
            .signals
            .get(n)
            .map_or(Value::Null, entries::signal);
        let path = || format!("signals.{n}.arguments");
        self.redact_key(Slot::SignalArguments, &mut signal, "arguments", path);
        signal
    }

    pub async fn updates(&mut self) -> Result<(), ExportError> {
        self.writer.open_list("updates");
        for n in 0..self.head.updates.len() {
            let update = self.update(n);
            self.writer.item(&update);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    fn update(&self, n: usize) -> Value {
        let mut update = self
            .head
            .updates
            .get(n)
            .map_or(Value::Null, entries::update);
        for (slot, key) in [
            (Slot::UpdateArguments, "arguments"),
            (Slot::UpdateResult, "result"),
        ] {
            self.redact_key(slot, &mut update, key, || format!("updates.{n}.{key}"));
        }
        update
    }

    pub async fn tasks(&mut self) -> Result<(), ExportError> {
        self.writer.open_list("tasks");
        let mut q = self.snapshot.statement();
        if q.has_table(TaskRow::TABLE) {
            q.push("select ")
                .columns(TaskRow::TABLE, TaskRow::COLUMNS)
                .push(" from {workflow_tasks} where workflow_run_id = ")
                .bind(&self.head.run.id)
                .push(" order by available_at, created_at, id");
            let policy = self.options.policy.filter(|p| p.touches(Slot::TaskPayload));
            let mut rows = self.snapshot.stream(q).enumerate();
            while let Some((n, row)) = rows.next().await {
                let mut task = entries::task(&TaskRow::read(&mut row?)?);
                if let Some(policy) = policy {
                    let payload = task["payload"].take();
                    let path = format!("tasks.{n}.payload");
                    task["payload"] = policy.apply(Slot::TaskPayload, &path, payload);
                }
                self.writer.item(&task);
                if let Some(piece) = self.writer.piece() {
                    self.outlet.send(piece).await?;
                }
            }
        }
        self.writer.close_list();
        Ok(())
    }

    pub async fn failures(&mut self, failures: &[Failure]) -> Result<(), ExportError> {
        self.writer.open_list("failures");
        for (n, failure) in failures.iter().enumerate() {
            let mut entry = entries::failure(failure);
            for (slot, key) in [
                (Slot::FailureMessage, "message"),
                (Slot::FailureFile, "file"),
                (Slot::FailureTrace, "trace_preview"),
            ] {
                self.redact_key(slot, &mut entry, key, || format!("failures.{n}.{key}"));
            }
            self.writer.item(&entry);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    /// The history itself, and beside it what its timeline will hold.
    pub async fn history(&mut self, folded: &Folded) -> Result<Told, ExportError> {
        let mut told = Told {
            timeline_same: self.head.has_timeline_entries == (folded.events > 0),
            ..Told::default()
        };
        self.writer.open_list("history_events");
        let mut n = 0;
        let mut after = i64::MIN;
        loop {
            let events = self.next_events(after).await?;
            let Some(last) = events.last() else { break };
            let span = (after.saturating_add(1), last.sequence);
            after = last.sequence;
            self.look(&mut told, &events, n, span, &folded.failures)
                .await?;
            for event in &events {
                let mut entry = entries::event(event);
                let path = || format!("history_events.{n}.payload");
                self.redact_key(Slot::EventPayload, &mut entry, "payload", path);
                self.event_payloads(&mut told, event, n, &entry["payload"]);
                self.writer.item(&entry);
                self.flow().await?;
                n += 1;
            }
        }
        if told.timeline_same {
            let beyond = store::timeline_between(
                self.snapshot,
                &self.head.run.id,
                after.saturating_add(1),
                i64::MAX,
            );
            told.timeline_same = beyond.await?.is_empty();
        }
        self.writer.close_list();
        Ok(told)
    }

    async fn next_events(&mut self, after: i64) -> Result<Vec<HistoryEvent>, ExportError> {
        let limit = u32::try_from(self.options.batch).unwrap_or(u32::MAX);
        Ok(store::events_after(self.snapshot, &self.head.run.id, after, limit).await?)
    }

    /// Compares a stretch of the timeline with the stored one, and notes what it redacts.
    async fn look(
        &mut self,
        told: &mut Told,
        events: &[HistoryEvent],
        first: usize,
        (from, to): (i64, i64),
        failures: &[Failure],
    ) -> Result<(), ExportError> {
        if !told.timeline_same && self.options.policy.is_none() {
            return Ok(());
        }
        let entries = self.timeline_entries(events, failures).await?;
        for (n, entry) in entries.iter().enumerate() {
            let at = u32::try_from(first + n).unwrap_or(u32::MAX);
            if !entry["command"].is_null() {
                told.with_command.push(at);
            }
            if !entry["failure"].is_null() {
                told.with_failure.push(at);
            }
        }
        if told.timeline_same {
            let run_id = self.run_id();
            let stored = store::timeline_between(self.snapshot, &run_id, from, to).await?;
            told.timeline_same = sources::same_timeline(&stored, &entries);
        }
        Ok(())
    }

    /// What the manifest says of the payloads inside an event.
    fn event_payloads(&self, told: &mut Told, event: &HistoryEvent, n: usize, payload: &Value) {
        let codec = payload["payload_codec"].as_str();
        let redacted = self.touches(Slot::EventPayload);
        let list = "history_events";
        let mut note = |codec: Option<&str>, rest, value: &Value| {
            told.manifest
                .push(Entry::new(Path::At(list, n, rest), codec, value, redacted));
        };
        match event.event_type {
            EventType::WorkflowCompleted => {
                let output = crate::durable::projection::identity::output_codec(&self.head.run);
                let codec = codec.map(str::to_owned).or(output);
                note(codec.as_deref(), "payload.output", &payload["output"]);
            }
            EventType::ChildRunCompleted => {
                note(codec, "payload.output", &payload["output"]);
                note(codec, "payload.result", &payload["result"]);
            }
            _ => {}
        }
    }

    /// The timeline of a stretch of events, as the detail has it.
    async fn timeline_entries(
        &mut self,
        events: &[HistoryEvent],
        failures: &[Failure],
    ) -> Result<Vec<Value>, ExportError> {
        let named: Vec<Named> = events.iter().map(HistoryEvent::as_payload).collect();
        let commands: HashSet<&str> = events
            .iter()
            .filter_map(|event| event.workflow_command_id.as_deref())
            .chain(
                named
                    .iter()
                    .filter_map(|of| of.workflow_command_id.as_deref()),
            )
            .collect();
        let tasks = events
            .iter()
            .filter_map(|event| event.workflow_task_id.as_deref());
        let tasks = store::rows_of(
            self.snapshot,
            TaskRow::TABLE,
            TaskRow::COLUMNS,
            "id",
            tasks,
            TaskRow::read,
        )
        .await?;
        let executions = named
            .iter()
            .filter_map(|of| of.activity_execution_id.as_deref());
        let executions = store::rows_of(
            self.snapshot,
            ExecutionRow::TABLE,
            ExecutionRow::COLUMNS,
            "id",
            executions,
            ExecutionRow::read,
        )
        .await?;
        let timers = named.iter().filter_map(|of| of.timer_id.as_deref());
        let timers = store::rows_of(
            self.snapshot,
            TimerRow::TABLE,
            TimerRow::COLUMNS,
            "id",
            timers,
            TimerRow::read,
        )
        .await?;
        let run_id = &self.head.run.id;
        let of_run = |id: &String| id == run_id;
        let rows = RunSnapshot {
            events: events.to_vec(),
            tasks: tasks
                .into_iter()
                .filter(|row| of_run(&row.workflow_run_id))
                .collect(),
            executions: executions
                .into_iter()
                .filter(|row| of_run(&row.workflow_run_id))
                .collect(),
            timers: timers
                .into_iter()
                .filter(|row| of_run(&row.workflow_run_id))
                .collect(),
            commands: self
                .head
                .commands
                .iter()
                .filter(|row| commands.contains(row.id.as_str()))
                .cloned()
                .collect(),
            ..self.blank.clone()
        };
        let entries = timeline::timeline(self.cx(&rows), failures, None);
        Ok(entries.iter().map(|entry| json!(entry)).collect())
    }

    pub async fn timeline(&mut self, failures: &[Failure]) -> Result<(), ExportError> {
        self.writer.open_list("timeline");
        let mut n = 0;
        let mut after = i64::MIN;
        loop {
            let events = self.next_events(after).await?;
            let Some(last) = events.last() else { break };
            after = last.sequence;
            for mut entry in self.timeline_entries(&events, failures).await? {
                self.redact_entry(&mut entry, n);
                self.writer.item(&entry);
                self.flow().await?;
                n += 1;
            }
        }
        self.writer.close_list();
        Ok(())
    }

    /// What a policy hides of a command or a failure is hidden in the entry that repeats it, and
    /// in the sentence made of it.
    fn redact_entry(&self, entry: &mut Value, n: usize) {
        if let Some(command) = entry.get_mut("command").filter(|of| !of.is_null()) {
            for (slot, key) in [
                (Slot::CommandPayload, "payload"),
                (Slot::CommandContext, "context"),
            ] {
                self.redact_key(slot, command, key, || format!("timeline.{n}.command.{key}"));
            }
        }
        if let Some(failure) = entry.get_mut("failure").filter(|of| !of.is_null()) {
            for (slot, key) in [
                (Slot::FailureMessage, "message"),
                (Slot::FailureFile, "file"),
            ] {
                self.redact_key(slot, failure, key, || format!("timeline.{n}.failure.{key}"));
            }
        }
        if self.touches(Slot::FailureMessage) && !entry["message"].is_null() {
            let path = || format!("timeline.{n}.message");
            self.redact_key(Slot::FailureMessage, entry, "message", path);
            let kind = entry["type"].as_str().unwrap_or("Event").to_owned();
            entry["summary"] = format!("{kind}: its message is redacted").into();
        }
    }

    pub fn intakes(&mut self) {
        let with_intake = |row: &&CommandRow| matches!(&row.context, Some(crate::db::Json::Value(context)) if context.get("intake").is_some());
        let rows = RunSnapshot {
            commands: self
                .head
                .commands
                .iter()
                .filter(with_intake)
                .cloned()
                .collect(),
            ..self.blank.clone()
        };
        let commands = commands::commands(self.cx(&rows), &[], &[]);
        let linked = intakes::linked_intakes(&commands);
        self.writer.member("linked_intakes", &json!(linked));
        self.writer
            .member("linked_intakes_scope", &"selected_run".into());
    }

    /// Returns where the lineage was taken from.
    pub fn links(&mut self) -> &'static str {
        let cx = self.cx(&self.head);
        let related = Related::of(&self.head);
        let children = children::children(cx, &related);
        let lineage = lineage::lineage(cx, &related, &children);
        let source = sources::lineage(&self.head, &lineage);
        let run = &self.head.run;
        let links = |relatives: &[lineage::Relative], end| -> Vec<Value> {
            relatives
                .iter()
                .map(|relative| entries::link(run, relative, end))
                .collect()
        };
        let links = json!({
            "projection_source": source,
            "parents": links(&lineage.parents, End::Parent),
            "children": links(&lineage.continued, End::Child),
        });
        self.writer.member("links", &links);
        source
    }

    pub fn payloads(&mut self) {
        let payloads = self.redacted_payloads();
        self.writer.member("payloads", &payloads);
    }

    fn redacted_payloads(&self) -> Value {
        let mut payloads = head::payloads(&self.head.run);
        for (slot, key) in [
            (Slot::WorkflowArguments, "arguments"),
            (Slot::WorkflowOutput, "output"),
        ] {
            let path = || format!("payloads.{key}.data");
            self.redact_key(slot, &mut payloads[key], "data", path);
        }
        payloads
    }

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
            let Some(activity) = self.activity(folded, n) else {
                continue;
            };
            let slots = [
                (Slot::ActivityArguments, "arguments"),
                (Slot::ActivityResult, "result"),
            ];
            self.payload("activities", n, &activity, run_codec, &slots)
                .await?;
        }
        self.writer.close_list();
        self.writer.member("version", &1.into());
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
        self.writer.member("applied", &policy.is_some().into());
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
            self.paths(
                "activities",
                folded.activities.len(),
                &[
                    (Slot::ActivityArguments, "arguments"),
                    (Slot::ActivityResult, "result"),
                ],
            )
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
            self.writer.item(&path().into());
            self.flow().await?;
        }
        Ok(())
    }

    /// Whether the engine's stored projections still say what history says.
    pub async fn selected_run(
        &mut self,
        told: &Told,
        folded: &mut Folded,
        lineage: &'static str,
    ) -> Result<(), ExportError> {
        let run_id = self.run_id();
        let page = self.options.batch;
        let mut waits_same = true;
        let mut at = 0;
        while waits_same {
            let ours: Vec<Value> = (at..at + page).map_while(|n| folded.waits.get(n)).collect();
            let stored = store::entries_after(
                self.snapshot,
                WaitEntry::TABLE,
                WaitEntry::COLUMNS,
                &run_id,
                at,
                page,
                WaitEntry::read,
            )
            .await?;
            if ours.is_empty() && stored.is_empty() {
                break;
            }
            waits_same = sources::same_waits(&stored, &ours);
            at += page;
        }
        let mut seen = TimersSeen {
            stored: 0,
            recomputed: folded.timers.len(),
            other_schema: false,
            same: true,
        };
        let mut at = 0;
        loop {
            let ours: Vec<Value> = (at..at + page)
                .map_while(|n| folded.timers.get(n))
                .collect();
            let stored = store::entries_after(
                self.snapshot,
                TimerEntry::TABLE,
                TimerEntry::COLUMNS,
                &run_id,
                at,
                page,
                TimerEntry::read,
            )
            .await?;
            if ours.is_empty() && stored.is_empty() {
                break;
            }
            seen.stored += stored.len();
            seen.other_schema |= stored.iter().any(sources::of_other_schema);
            seen.same &= sources::same_timers(&stored, &ours);
            at += page;
        }
        let (timers, reasons) = sources::timers_source(&seen);
        let selected = json!({
            "waits_projection_source": sources::waits_source(waits_same),
            "timeline_projection_source": sources::timeline_source(told.timeline_same),
            "timers_projection_source": timers,
            "timers_projection_rebuild_reasons": reasons,
            "lineage_projection_source": lineage,
        });
        self.writer.member("selected_run", &selected);
        Ok(())
    }
}
