//! What a bundle must hold besides a seal that fits.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    io::{Read, Seek},
};

use serde_json::{Map, Value};

use super::{
    findings::Report,
    parts::{Command, Event, ManifestEntry, Whatever, each, inside, scalar, small},
};
use crate::durable::export::{
    SCHEMA, SCHEMA_VERSION,
    head::AVRO,
    manifest::{FINGERPRINT, VALUE_SCHEMA},
    source::{ReadError, Source, Span, find},
};

/// Of no more events or commands it is remembered which they were.
const REMEMBERED: usize = 1_000_000;

const MAPS: [&str; 4] = ["workflow", "payloads", "redaction", "payload_manifest"];
const LISTS: [&str; 9] = [
    "history_events",
    "commands",
    "signals",
    "updates",
    "tasks",
    "activities",
    "timers",
    "failures",
    "codec_schemas",
];

pub fn rules<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<(), ReadError> {
    sections(source, members, report)?;
    let last_sequence = workflow(source, members, report)?;
    payloads(source, members, report)?;
    let ids = Ids {
        hasher: RandomState::new(),
    };
    let commands = commands(source, members, report, &ids)?;
    events(source, members, report, last_sequence, &ids, commands)?;
    redaction(source, members, report)
}

/// Which kind of document it is, and of which version.
pub fn schema<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<(), ReadError> {
    let schema = small(source, members, "schema")?;
    match schema.as_str() {
        Some(SCHEMA) => {}
        Some(_) => report.error("bundle.schema_unexpected", "another schema", "schema"),
        None => report.error("bundle.schema_missing", "no schema is named", "schema"),
    }
    let version = small(source, members, "schema_version")?;
    match version.as_i64() {
        Some(SCHEMA_VERSION) => {}
        Some(_) => report.error(
            "bundle.schema_version_unsupported",
            "another version of the schema",
            "schema_version",
        ),
        None => report.error(
            "bundle.schema_version_missing",
            "no version of the schema is named",
            "schema_version",
        ),
    }
    let exported = small(source, members, "exported_at")?;
    if exported.as_str().is_none_or(str::is_empty) {
        report.warning(
            "bundle.exported_at_missing",
            "when it was made is not said",
            "exported_at",
        );
    }
    report.bundle.schema = schema.as_str().map(str::to_owned);
    report.bundle.schema_version = version.as_i64();
    report.bundle.exported_at = exported.as_str().map(str::to_owned);
    let key = small(source, members, "dedupe_key")?;
    report.bundle.dedupe_key = key.as_str().map(str::to_owned);
    Ok(())
}

fn sections<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<(), ReadError> {
    for name in MAPS.into_iter().chain(LISTS).chain(["links"]) {
        let Some(span) = find(members, name) else {
            report.error("bundle.section_missing", "a section is missing", name);
            continue;
        };
        // PHP writes an empty map as a list.
        if !matches!(source.first(span)?, Some(b'[' | b'{')) {
            report.error("bundle.section_invalid", "neither a map nor a list", name);
        }
    }
    Ok(())
}

fn workflow<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<Option<i64>, ReadError> {
    let mut workflow = Map::new();
    for key in [
        "run_id",
        "instance_id",
        "workflow_type",
        "last_history_sequence",
    ] {
        if let Some(span) = inside(source, find(members, "workflow"), &[key])? {
            workflow.insert(key.to_owned(), scalar(source, span)?);
        }
    }
    let text = |key: &str| {
        let text = workflow.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty())
    };
    for (key, rule) in [
        ("run_id", "workflow.run_id_missing"),
        ("instance_id", "workflow.instance_id_missing"),
        ("workflow_type", "workflow.workflow_type_missing"),
    ] {
        if text(key).is_none() {
            report.error(
                rule,
                "which run it is of is not said",
                &format!("workflow.{key}"),
            );
        }
    }
    report.bundle.workflow_run_id = text("run_id").map(str::to_owned);
    report.bundle.workflow_instance_id = text("instance_id").map(str::to_owned);
    let last = workflow.get("last_history_sequence");
    Ok(last.and_then(Value::as_i64))
}

fn payloads<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<(), ReadError> {
    let way = [AVRO, "writer_schemas", FINGERPRINT, "schema"];
    let known = match inside(source, find(members, "codec_schemas"), &way)? {
        Some(span) => scalar(source, span)?,
        None => Value::Null,
    };
    let entries = inside(source, find(members, "payload_manifest"), &["entries"])?;
    let mut any_avro = false;
    each(source, entries, |n, entry: Option<&ManifestEntry>| {
        let path = format!("payload_manifest.entries.{n}");
        let none = ManifestEntry::default();
        let entry = entry.unwrap_or(&none);
        let codec = entry.codec.as_deref().unwrap_or_default();
        if codec.is_empty() {
            report.error("payload_manifest.codec_missing", "no codec is named", &path);
        }
        let readable = entry.available.0 == Some(true) && entry.diagnostic.is_none();
        any_avro |= codec == AVRO && readable;
        if entry.diagnostic.as_deref() == Some("payload_missing") {
            report.error(
                "payload_manifest.payload_missing",
                "said to be there and is not",
                &path,
            );
        }
        if codec == AVRO && readable {
            if entry.avro_framing.is_none() {
                report.warning(
                    "payload_manifest.avro_framing_missing",
                    "how it is framed is not said",
                    &path,
                );
            }
            let own = entry.writer_schema_fingerprint.as_deref();
            let own = own.unwrap_or_default();
            if own.trim_start_matches("crc64-avro:") != FINGERPRINT {
                report.error(
                    "payload_manifest.writer_schema_fingerprint_mismatch",
                    "written with a schema the bundle does not carry",
                    &path,
                );
            }
        }
    })?;
    match known.as_str() {
        Some(VALUE_SCHEMA) => {}
        Some(_) => report.error(
            "codec_schemas.value_schema_drift",
            "not the schema that has this fingerprint",
            "codec_schemas.avro",
        ),
        None if any_avro => report.error(
            "codec_schemas.value_schema_missing",
            "the schema of its payloads is missing",
            "codec_schemas.avro",
        ),
        None => {}
    }
    Ok(())
}

/// Ids by a hash of theirs: as many as there are events.
struct Ids {
    hasher: RandomState,
}

impl Ids {
    fn of(&self, id: &str) -> u64 {
        self.hasher.hash_one(id)
    }
}

/// Settled commands by id: an event should tell of each.
fn commands<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
    ids: &Ids,
) -> Result<HashMap<u64, usize>, ReadError> {
    let mut settled = HashMap::new();
    each(
        source,
        find(members, "commands"),
        |n, command: Option<&Command>| {
            let Some(id) = command.and_then(|command| command.id.as_deref()) else {
                let path = format!("commands.{n}.id");
                report.error("commands.id_missing", "a command without an id", &path);
                return;
            };
            let status = command.and_then(|command| command.status.as_deref());
            if matches!(status, Some("accepted" | "rejected")) && settled.len() < REMEMBERED {
                settled.insert(ids.of(id), n);
            }
        },
    )?;
    Ok(settled)
}

fn events<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
    last_sequence: Option<i64>,
    ids: &Ids,
    mut untold: HashMap<u64, usize>,
) -> Result<(), ReadError> {
    let mut seen: HashSet<u64> = HashSet::new();
    let mut highest: Option<i64> = None;
    let mut count = 0;
    each(
        source,
        find(members, "history_events"),
        |n, event: Option<&Event>| {
            count += 1;
            let path = |key: &str| format!("history_events.{n}.{key}");
            let Some(event) = event else {
                let place = format!("history_events.{n}");
                report.error("history_events.entry_invalid", "not an event", &place);
                return;
            };
            match event.sequence.0 {
                None => report.error(
                    "history_events.sequence_missing",
                    "an event without a sequence",
                    &path("sequence"),
                ),
                Some(sequence) if highest.is_some_and(|highest| sequence <= highest) => report
                    .error(
                        "history_events.sequence_not_monotonic",
                        "not after the event before it",
                        &path("sequence"),
                    ),
                Some(sequence) => highest = Some(sequence),
            }
            if event.r#type.is_none() {
                report.error(
                    "history_events.type_missing",
                    "an event without a type",
                    &path("type"),
                );
            }
            if let Some(id) = event.id.as_deref()
                && seen.len() < REMEMBERED
                && !seen.insert(ids.of(id))
            {
                report.error(
                    "history_events.id_duplicate",
                    "an id for the second time",
                    &path("id"),
                );
            }
            let payload = event.payload.as_deref();
            let command = payload.and_then(|payload| payload.command.as_deref());
            for id in [
                event.workflow_command_id.as_deref(),
                payload.and_then(|payload| payload.workflow_command_id.as_deref()),
                command.and_then(|command| command.id.as_deref()),
            ]
            .into_iter()
            .flatten()
            {
                untold.remove(&ids.of(id));
            }
        },
    )?;
    if seen.len() == REMEMBERED {
        report.info(
            "history_events.id_unchecked",
            "so many events that a later id may repeat an earlier one",
            "history_events",
        );
    }
    report.bundle.history_event_count = count;
    if let (Some(last), Some(highest)) = (last_sequence, highest)
        && last < highest
    {
        report.warning(
            "workflow.last_history_sequence_stale",
            "the run knows of fewer events than there are",
            "workflow.last_history_sequence",
        );
    }
    let mut untold: Vec<usize> = untold.into_values().collect();
    untold.sort_unstable();
    for n in untold {
        report.warning(
            "commands.history_event_missing",
            "no event tells of this command",
            &format!("commands.{n}"),
        );
    }
    Ok(())
}

fn redaction<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<(), ReadError> {
    let Some(span) = find(members, "redaction") else {
        return Ok(());
    };
    if source.first(span)? != Some(b'{') {
        return Ok(());
    }
    let members = source.members(span)?;
    let applied = small(source, &members, "applied")? == true;
    let mut any = false;
    each(
        source,
        find(&members, "paths"),
        |_, _: Option<&Whatever>| any = true,
    )?;
    if applied && !any {
        report.info(
            "redaction.empty_paths",
            "redacted, and nothing is said to be",
            "redaction.paths",
        );
    }
    Ok(())
}
