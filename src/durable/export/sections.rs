//! The sections of a bundle, each written from rows or from what was folded.

use std::io;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::{
    entries::{self, End},
    folder::Folded,
    head,
    redaction::{CopyId, Slot, message_slot},
    spool::Spool,
    stream::{Export, ExportError},
};
use crate::{
    db::Json,
    durable::{
        projection::{
            children, commands, current_run, failures::Failure, identity, intakes, lineage,
            related::Related, sources, sources::TimersSeen,
        },
        store::{export as store, snapshot::RunSnapshot},
        stored::{CommandRow, TimerEntry, WaitEntry},
    },
};

/// An entry, and what it repeated of a slot that is hidden.
pub(super) type Redacted = (Value, Vec<(CopyId, String)>);

/// The keys of an activity that a policy may hide.
pub(super) const ACTIVITY: &[(Slot, &str)] = &[
    (Slot::ActivityArguments, "arguments"),
    (Slot::ActivityResult, "result"),
];

impl Export<'_> {
    pub async fn activities(&mut self, folded: &mut Folded) -> Result<(), ExportError> {
        if !self.hide.touches_activities() {
            return self.spooled("activities", &mut folded.activities).await;
        }
        self.writer.open_list("activities");
        for n in 0..folded.activities.len() {
            let (activity, _) = self.activity(folded, n)?;
            self.writer.item(&activity);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    /// A list whose entries were written before.
    pub async fn spooled<K: Ord>(
        &mut self,
        list: &'static str,
        entries: &mut Spool<K>,
    ) -> Result<(), ExportError> {
        self.writer.open_list(list);
        for n in 0..entries.len() {
            if let Some(text) = entries.text(n)? {
                self.writer.text(text);
            }
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    pub fn activity(&self, folded: &mut Folded, n: usize) -> io::Result<Redacted> {
        let mut activity: Value = folded.activities.get(n)?.unwrap_or_default();
        for (slot, key) in ACTIVITY {
            self.hide.redact_key(*slot, &mut activity, key, || {
                format!("activities.{n}.{key}")
            });
        }
        let hidden = self
            .hide
            .hide_copies("activities", &format!("activities.{n}"), &mut activity);
        Ok((activity, hidden))
    }

    /// Whether anything that is left in the bundle is encoded as Avro.
    pub fn any_avro(&self, folded: &Folded) -> bool {
        let is_avro = |codec: Option<&str>| codec == Some(head::AVRO);
        let run = &self.head.run;
        is_avro(Some(head::run_codec(run)))
            || is_avro(identity::output_codec(run).as_deref())
            || (folded.says_avro && !self.hide.touches(Slot::EventPayload))
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
            || folded.avro_activity
    }

    pub async fn commands(&mut self) -> Result<(), ExportError> {
        self.writer.open_list("commands");
        for n in 0..self.head.commands.len() {
            let (command, _) = self.command(n);
            self.writer.item(&command);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    pub fn command(&self, n: usize) -> Redacted {
        let mut command = self
            .head
            .commands
            .get(n)
            .map_or(Value::Null, entries::command);
        for (slot, key) in [
            (self.hide.command_slot(command["type"].as_str()), "payload"),
            (Slot::CommandContext, "context"),
            (Slot::CommandReason, "reason"),
        ] {
            self.hide
                .redact_key(slot, &mut command, key, || format!("commands.{n}.{key}"));
        }
        let hidden = self
            .hide
            .hide_copies("commands", &format!("commands.{n}"), &mut command);
        (command, hidden)
    }

    pub async fn signals(&mut self) -> Result<(), ExportError> {
        self.writer.open_list("signals");
        for n in 0..self.head.signals.len() {
            let (signal, _) = self.signal(n);
            self.writer.item(&signal);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    pub fn signal(&self, n: usize) -> Redacted {
        let mut signal = self
            .head
            .signals
            .get(n)
            .map_or(Value::Null, entries::signal);
        let path = || format!("signals.{n}.arguments");
        self.hide
            .redact_key(Slot::SignalArguments, &mut signal, "arguments", path);
        let hidden = self
            .hide
            .hide_copies("signals", &format!("signals.{n}"), &mut signal);
        (signal, hidden)
    }

    pub async fn updates(&mut self) -> Result<(), ExportError> {
        self.writer.open_list("updates");
        for n in 0..self.head.updates.len() {
            let (update, _) = self.update(n);
            self.writer.item(&update);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    pub fn update(&self, n: usize) -> Redacted {
        let mut update = self
            .head
            .updates
            .get(n)
            .map_or(Value::Null, entries::update);
        for (slot, key) in [
            (Slot::UpdateArguments, "arguments"),
            (Slot::UpdateResult, "result"),
        ] {
            self.hide
                .redact_key(slot, &mut update, key, || format!("updates.{n}.{key}"));
        }
        let hidden = self
            .hide
            .hide_copies("updates", &format!("updates.{n}"), &mut update);
        (update, hidden)
    }

    pub async fn failures(&mut self, failures: &[Failure]) -> Result<(), ExportError> {
        self.writer.open_list("failures");
        for (n, failure) in failures.iter().enumerate() {
            let mut entry = entries::failure(failure);
            for (slot, key) in [
                (message_slot(&entry), "message"),
                (Slot::FailureFile, "file"),
                (Slot::FailureTrace, "trace_preview"),
            ] {
                self.hide
                    .redact_key(slot, &mut entry, key, || format!("failures.{n}.{key}"));
            }
            self.writer.item(&entry);
            self.flow().await?;
        }
        self.writer.close_list();
        Ok(())
    }

    pub fn intakes(&mut self) {
        let with_intake = |row: &&CommandRow| matches!(&row.context, Some(Json::Value(context)) if context.get("intake").is_some());
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
        self.writer.member("linked_intakes_scope", "selected_run");
    }

    /// Returns where the lineage was taken from.
    pub fn links(&mut self) -> &'static str {
        let cx = self.cx(&self.head);
        let related = Related::of(&self.head);
        let children = children::children(cx, &related);
        let lineage = lineage::lineage(cx, &related, &children);
        let (lineage, source) = sources::handed_out(&self.head, lineage);
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

    pub fn redacted_payloads(&self) -> Value {
        let mut payloads = head::payloads(&self.head.run);
        for (slot, key) in [
            (Slot::WorkflowArguments, "arguments"),
            (Slot::WorkflowOutput, "output"),
        ] {
            let path = || format!("payloads.{key}.data");
            self.hide.redact_key(slot, &mut payloads[key], "data", path);
        }
        payloads
    }

    pub fn summary(&self) -> Redacted {
        let summary = self.head.summary.as_ref();
        let mut summary = json!(summary.map(|of| head::summary(of, &self.head.search_attributes)));
        let hidden = self.hide.hide_copies("summary", "summary", &mut summary);
        (summary, hidden)
    }

    pub fn workflow(&self) -> Redacted {
        let related = Related::of(&self.head);
        let current = current_run::of_selected(self.cx(&self.head), &related);
        let mut workflow = head::workflow(self.cx(&self.head), &current);
        let hidden = self.hide.hide_copies("workflow", "workflow", &mut workflow);
        (workflow, hidden)
    }

    /// Whether the engine's stored projections still say what history says.
    pub async fn selected_run(
        &mut self,
        folded: &mut Folded,
        timeline_same: bool,
        lineage: &'static str,
    ) -> Result<(), ExportError> {
        let run_id = self.run_id();
        let (mut waits_same, mut n) = (true, 0);
        let mut waits = store::entries::<WaitEntry>(&mut self.reading, &run_id);
        while waits_same && let Some(stored) = waits.next().await {
            let (stored, ours) = (stored?, folded.waits.text(n)?);
            waits_same = ours.is_some_and(|ours| sources::same_wait(&stored, ours));
            n += 1;
        }
        drop(waits);
        waits_same &= n == folded.waits.len();
        let mut seen = TimersSeen {
            stored: 0,
            recomputed: folded.timers.len(),
            other_schema: false,
            same: true,
        };
        let mut timers = store::entries::<TimerEntry>(&mut self.reading, &run_id);
        while let Some(stored) = timers.next().await {
            let (stored, ours) = (stored?, folded.timers.text(seen.stored)?);
            seen.stored += 1;
            seen.other_schema |= sources::of_other_schema(&stored);
            seen.same &= ours.is_some_and(|ours| sources::same_timer(&stored, ours));
        }
        drop(timers);
        seen.same &= seen.stored == seen.recomputed;
        let (timers, reasons) = sources::timers_source(&seen);
        let selected = json!({
            "waits_projection_source": sources::waits_source(waits_same),
            "timeline_projection_source": sources::timeline_source(timeline_same),
            "timers_projection_source": timers,
            "timers_projection_rebuild_reasons": reasons,
            "lineage_projection_source": lineage,
        });
        self.writer.member("selected_run", &selected);
        Ok(())
    }
}
