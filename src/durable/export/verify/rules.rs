//! What a bundle must hold besides a seal that fits.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    io::{Read, Seek},
};

use serde_json::Value;

use super::{findings::Report, parse};
use crate::durable::export::{
    SCHEMA, SCHEMA_VERSION,
    head::AVRO,
    manifest::{FINGERPRINT, VALUE_SCHEMA},
    source::{Items, ReadError, Source, Span, find},
};

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
    schema(source, members, report)?;
    sections(source, members, report)?;
    let last_sequence = workflow(source, members, report)?;
    payloads(source, members, report)?;
    let commands = commands(source, members, report)?;
    events(source, members, report, last_sequence, commands)?;
    redaction(source, members, report)
}

fn small<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    name: &str,
) -> Result<Value, ReadError> {
    match find(members, name) {
        Some(span) => parse(source, span),
        None => Ok(Value::Null),
    }
}

fn schema<R: Read + Seek>(
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
    let workflow = small(source, members, "workflow")?;
    let text = |key: &str| workflow[key].as_str().filter(|text| !text.is_empty());
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
    Ok(workflow["last_history_sequence"].as_i64())
}

/// Calls `with` for every item of a top-level list, or of a list inside a top-level map.
fn each<R: Read + Seek>(
    source: &mut Source<R>,
    span: Option<Span>,
    mut with: impl FnMut(usize, &Value),
) -> Result<(), ReadError> {
    let Some(span) = span else { return Ok(()) };
    if source.first(span)? != Some(b'[') {
        return Ok(());
    }
    let mut n = 0;
    source.items(span, |source, items| {
        match items {
            Items::Long(span) => {
                let item = parse(source, span)?;
                with(n, &item);
                n += 1;
            }
            Items::Several(from, text) => {
                let text = [b"[", text.as_slice(), b"]"].concat();
                let items: Vec<Value> =
                    serde_json::from_slice(&text).map_err(|_| ReadError::Json {
                        at: from,
                        reason: "not a JSON value in the list that goes on here",
                    })?;
                for item in &items {
                    with(n, item);
                    n += 1;
                }
            }
        }
        Ok(())
    })
}

fn payloads<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<(), ReadError> {
    let schemas = small(source, members, "codec_schemas")?;
    let known = &schemas[AVRO]["writer_schemas"][FINGERPRINT]["schema"];
    let entries = match find(members, "payload_manifest") {
        Some(span) if source.first(span)? == Some(b'{') => {
            let inside = source.members(span)?;
            find(&inside, "entries")
        }
        _ => None,
    };
    let mut any_avro = false;
    each(source, entries, |n, entry| {
        let path = format!("payload_manifest.entries.{n}");
        let codec = entry["codec"].as_str().unwrap_or_default();
        if codec.is_empty() {
            report.error("payload_manifest.codec_missing", "no codec is named", &path);
        }
        let readable = entry["available"] == true && entry["diagnostic"].is_null();
        any_avro |= codec == AVRO && readable;
        if entry["diagnostic"] == "payload_missing" {
            report.error(
                "payload_manifest.payload_missing",
                "said to be there and is not",
                &path,
            );
        }
        if codec == AVRO && readable {
            if entry["avro_framing"].is_null() {
                report.warning(
                    "payload_manifest.avro_framing_missing",
                    "how it is framed is not said",
                    &path,
                );
            }
            let own = entry["writer_schema_fingerprint"]
                .as_str()
                .unwrap_or_default();
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

/// Settled commands by id: an event should tell of each.
fn commands<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
) -> Result<HashMap<String, usize>, ReadError> {
    let mut settled = HashMap::new();
    each(source, find(members, "commands"), |n, command| {
        let Some(id) = command["id"].as_str().filter(|id| !id.is_empty()) else {
            let path = format!("commands.{n}.id");
            report.error("commands.id_missing", "a command without an id", &path);
            return;
        };
        if matches!(command["status"].as_str(), Some("accepted" | "rejected")) {
            settled.insert(id.to_owned(), n);
        }
    })?;
    Ok(settled)
}

fn events<R: Read + Seek>(
    source: &mut Source<R>,
    members: &[(String, Span)],
    report: &mut Report,
    last_sequence: Option<i64>,
    mut untold: HashMap<String, usize>,
) -> Result<(), ReadError> {
    // Ids by a hash of theirs: as many as there are events.
    let hasher = RandomState::new();
    let mut seen: HashSet<u64> = HashSet::new();
    let mut highest: Option<i64> = None;
    let mut count = 0;
    each(source, find(members, "history_events"), |n, event| {
        count += 1;
        let path = |key: &str| format!("history_events.{n}.{key}");
        if !event.is_object() {
            let place = format!("history_events.{n}");
            report.error("history_events.entry_invalid", "not an event", &place);
            return;
        }
        match event["sequence"].as_i64() {
            None => report.error(
                "history_events.sequence_missing",
                "an event without a sequence",
                &path("sequence"),
            ),
            Some(sequence) if highest.is_some_and(|highest| sequence <= highest) => report.error(
                "history_events.sequence_not_monotonic",
                "not after the event before it",
                &path("sequence"),
            ),
            Some(sequence) => highest = Some(sequence),
        }
        if event["type"].as_str().is_none_or(str::is_empty) {
            report.error(
                "history_events.type_missing",
                "an event without a type",
                &path("type"),
            );
        }
        if let Some(id) = event["id"].as_str()
            && !seen.insert(hasher.hash_one(id))
        {
            report.error(
                "history_events.id_duplicate",
                "an id for the second time",
                &path("id"),
            );
        }
        let payload = &event["payload"];
        for named in [
            &event["workflow_command_id"],
            &payload["workflow_command_id"],
            &payload["command"]["id"],
        ] {
            if let Some(id) = named.as_str() {
                untold.remove(id);
            }
        }
    })?;
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
    let inside = source.members(span)?;
    let applied = small(source, &inside, "applied")? == true;
    let mut any = false;
    each(source, find(&inside, "paths"), |_, _| any = true)?;
    if applied && !any {
        report.info(
            "redaction.empty_paths",
            "redacted, and nothing is said to be",
            "redaction.paths",
        );
    }
    Ok(())
}
