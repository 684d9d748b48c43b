//! Reads one snapshot and writes the bundle as it reads, section by section in canonical order.
//!
//! The history is read once, and kept in a file beside the export: to know what belongs to what,
//! then to fold the steps a few at a time and tell their timeline, then to write it. What is
//! folded waits in files too, and of the history's length only an index stays in memory.
//!
//! Several things are done at once: rows are read and sections written here, steps are folded and
//! the timeline told in a thread each (`apart`), and what was written is sealed and leaves in a
//! task (`outlet`).

use std::io;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Policy, SCHEMA, SCHEMA_VERSION, SigningKey, entries, events::Events, head, hide::Hide,
    manifest, outlet::Outlet, step_rows::StepRows, writer::Writer,
};
use crate::{
    db::{DbError, Snapshot},
    durable::{
        engine_config::EngineConfig,
        projection::{Context, context::stamp},
        store::{
            export::{self as store, Reading},
            past::History,
            snapshot::RunSnapshot,
        },
        stored::Notices,
    },
};

/// What a bundle is made with, besides the rows.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    pub now: DateTime<Utc>,
    pub config: &'a EngineConfig,
    pub policy: Option<&'a Policy>,
    pub key: Option<&'a SigningKey>,
    /// How many events are looked at together.
    pub batch: usize,
}

impl Options<'_> {
    pub const BATCH: usize = 100;
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Done {
    pub checksum: String,
    pub events: usize,
    pub bytes: u64,
    /// What the rows hold that the bundle could not take as it stands. A bundle has no place to
    /// say so: whoever makes it is told.
    pub notices: Notices,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("there is no run {0}")]
    NoRun(String),
    /// What waits for its place could not be kept.
    #[error("a temporary file of the export failed: {0}")]
    Spool(#[from] io::Error),
    /// Whoever wanted the bundle has left.
    #[error("the receiver is gone")]
    Gone,
}

/// Where the pieces of a bundle go, in their order.
pub type Sink = mpsc::Sender<Vec<u8>>;

/// Writes the bundle of one run.
pub async fn write(
    snapshot: &mut Snapshot,
    run_id: &str,
    options: Options<'_>,
    sink: Sink,
) -> Result<Done, ExportError> {
    let head = store::head(snapshot, run_id)
        .await?
        .ok_or_else(|| ExportError::NoRun(run_id.to_owned()))?;
    let blank = blank(&head);
    let mut export = Export {
        reading: Reading {
            snapshot,
            notices: head.notices.clone(),
        },
        options,
        hide: Hide(options.policy),
        blank,
        head,
        events: Events::default(),
        rows: StepRows::default(),
        writer: Writer::default(),
        outlet: Outlet::open(options.key, sink),
    };
    Box::pin(export.bundle()).await?;
    let sent = export.outlet.finish(export.writer.finish()).await?;
    Ok(Done {
        checksum: sent.checksum,
        events: export.events.len(),
        bytes: sent.bytes,
        notices: export.reading.notices,
    })
}

/// The run alone, for folding a few steps at a time.
fn blank(head: &RunSnapshot) -> RunSnapshot {
    RunSnapshot {
        events: History::default(),
        commands: Vec::new(),
        signals: Vec::new(),
        updates: Vec::new(),
        failures: Vec::new(),
        links: Vec::new(),
        lineage_entries: Vec::new(),
        memo: serde_json::Map::new(),
        search_attributes: serde_json::Map::new(),
        notices: Notices::default(),
        ..head.clone()
    }
}

pub(super) struct Export<'s> {
    pub reading: Reading<'s>,
    pub options: Options<'s>,
    pub hide: Hide<'s>,
    pub blank: RunSnapshot,
    /// With all that does not grow with the steps; later also what is folded together.
    pub head: RunSnapshot,
    /// The whole history, once it was folded.
    pub events: Events,
    pub rows: StepRows,
    pub writer: Writer,
    pub outlet: Outlet,
}

impl<'s> Export<'s> {
    pub fn cx<'a>(&self, snapshot: &'a RunSnapshot) -> Context<'a>
    where
        's: 'a,
    {
        Context {
            snapshot,
            now: self.options.now,
            config: self.options.config,
        }
    }

    pub fn run_id(&self) -> String {
        self.head.run.id.clone()
    }

    async fn bundle(&mut self) -> Result<(), ExportError> {
        let (mut folded, mut timeline) = self.fold().await?;
        self.activities(&mut folded).await?;
        let avro = self.any_avro(&folded);
        self.writer.member(
            "codec_schemas",
            &if avro {
                manifest::avro_schemas()
            } else {
                Value::Array(Vec::new())
            },
        );
        self.commands().await?;
        self.writer
            .member("dedupe_key", &head::dedupe_key(&self.head.run));
        self.writer.member("exported_at", &stamp(self.options.now));
        self.failures(&folded.failures).await?;
        self.writer
            .member("history_complete", &head::history_complete(&self.head.run));
        let told = self.history().await?;
        self.intakes();
        let lineage_source = self.links();
        self.manifest(&told, &mut folded).await?;
        self.payloads();
        self.redaction(&told, &timeline.hidden, &mut folded).await?;
        self.writer.member("schema", SCHEMA);
        self.writer.member("schema_version", &SCHEMA_VERSION);
        self.selected_run(&mut folded, timeline.same, lineage_source)
            .await?;
        self.signals().await?;
        self.writer.member("summary", &self.summary().0);
        self.spooled("tasks", &mut folded.tasks).await?;
        self.spooled("timeline", &mut timeline.entries).await?;
        self.writer.open_list("timers");
        for n in 0..folded.timers.len() {
            if let Some(timer) = folded.timers.get(n)? {
                self.writer.item(&entries::timer(timer));
                self.flow().await?;
            }
        }
        self.writer.close_list();
        self.updates().await?;
        self.spooled("waits", &mut folded.waits).await?;
        self.writer.member("workflow", &self.workflow().0);
        Ok(())
    }

    /// Lets what was written leave once there is enough of it.
    pub async fn flow(&mut self) -> Result<(), ExportError> {
        match self.writer.piece() {
            Some(piece) => self.outlet.send(piece).await,
            None => Ok(()),
        }
    }
}
