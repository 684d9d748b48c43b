//! Rows as their tables would hold them, from what a bundle says.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    room::Room,
    sections::{Entry, Members, Section, val},
};
use crate::{
    db::{Columns, Row, Val},
    durable::{
        export::source::ReadError,
        stored::{RunRow, RunSummary},
    },
};

/// How the rows of a table are made from the entries of a section.
pub(super) struct Table<'a> {
    pub columns: Arc<Columns>,
    /// Columns that have another name in a bundle.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Columns that are never null, and empty where a bundle does not carry them.
    pub empty: &'static [&'static str],
    /// What every row of the run says of itself.
    pub own: &'a dyn Fn(&str) -> Option<Val>,
}

impl Table<'_> {
    pub fn row(&self, entry: &impl Members) -> Row {
        self.row_with(entry, "", Val::Null)
    }

    pub fn row_with(&self, entry: &impl Members, column: &str, value: Val) -> Row {
        let mut value = Some(value);
        self.columns.row(|name| {
            let renamed = self.renamed.iter().find(|(own, _)| *own == name);
            let cell = if name == column {
                value.take().unwrap_or(Val::Null)
            } else if let Some(own) = (self.own)(name) {
                own
            } else {
                entry.cell(renamed.map_or(name, |(_, carried)| carried))
            };
            match cell {
                Val::Null if self.empty.contains(&name) => Val::from(""),
                cell => cell,
            }
        })
    }
}

pub(super) fn run_row(workflow: &Section, payloads: &Section, commands: &[Row]) -> Row {
    let payload = |part: &str, key: &str| payloads.0.get(part).and_then(|part| part.get(key));
    let last_command = commands
        .iter()
        .filter_map(|row| number(row, "command_sequence"))
        .max();
    let columns = RunRow::COLUMNS.split(", ").chain([
        "instance_id",
        "instance_namespace",
        "instance_business_key",
        "instance_visibility_labels",
        "instance_execution_timeout_seconds",
    ]);
    Columns::named(columns).row(|column| match column {
        "id" => workflow.cell("run_id"),
        "workflow_instance_id" => workflow.cell("instance_id"),
        "payload_codec" => payloads.cell("codec"),
        "arguments" => payload("arguments", "data").map_or(Val::Null, val),
        "output" => payload("output", "data").map_or(Val::Null, val),
        "output_payload_codec" => payload("output", "codec").map_or(Val::Null, val),
        "last_command_sequence" => last_command.map_or(Val::Null, Val::Int),
        column => workflow.cell(column),
    })
}

pub(super) fn number(row: &Row, column: &str) -> Option<i64> {
    row.cells().find_map(|cell| match cell {
        (name, Val::Int(number)) if name == column => Some(*number),
        _ => None,
    })
}

/// The stored summary; what it repeats of the run is taken from there.
pub(super) fn summary_row(workflow: &Section, summary: &Section) -> Row {
    Columns::named(RunSummary::COLUMNS.split(", ")).row(|column| match column {
        "id" => workflow.cell("run_id"),
        "workflow_instance_id" => workflow.cell("instance_id"),
        "class" => workflow.cell("workflow_class"),
        "run_number" | "workflow_type" | "compatibility" | "connection" | "queue" => {
            workflow.cell(column)
        }
        column => summary.cell(column),
    })
}

/// A command's context as it is stored, from the members a bundle spreads it over.
pub(super) fn command_context(entry: &Entry<'_>, room: &mut Room) -> Result<Value, ReadError> {
    let mut said = |key: &str| match entry.get(key) {
        Some(raw) => room.value(raw.get()),
        None => Ok(Value::Null),
    };
    let mut context = match said("context")? {
        Value::Object(context) => context,
        _ => Map::new(),
    };
    let mut part = |name: &str, members: &[(&str, &str)]| -> Result<(), ReadError> {
        let members: Result<Map<_, _>, ReadError> = members
            .iter()
            .map(|(member, key)| Ok(((*member).to_owned(), said(key)?)))
            .collect();
        let members = Value::Object(members?);
        context.entry(name).or_insert(members);
        Ok(())
    };
    part("caller", &[("label", "caller_label")])?;
    part(
        "auth",
        &[("status", "auth_status"), ("method", "auth_method")],
    )?;
    part(
        "principal",
        &[
            ("type", "principal_type"),
            ("id", "principal_id"),
            ("label", "principal_label"),
        ],
    )?;
    part(
        "request",
        &[
            ("method", "request_method"),
            ("path", "request_path"),
            ("route_name", "request_route_name"),
            ("fingerprint", "request_fingerprint"),
            ("request_id", "request_id"),
            ("correlation_id", "correlation_id"),
        ],
    )?;
    Ok(Value::Object(context))
}
