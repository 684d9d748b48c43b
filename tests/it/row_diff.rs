//! All tables before and after: which rows came, went and changed, as JSON.

use std::collections::BTreeMap;

use plimsoll::{
    db::{Db, Val},
    durable::{
        payload::{self, Payload},
        repair::{Action, RowChange},
        store::schema::{Kind, tables},
        stored::Cell,
    },
};
use serde_json::{Map, Value, json};

/// Every row by table and key.
pub type Dump = BTreeMap<&'static str, BTreeMap<String, Map<String, Value>>>;

pub async fn dump(db: &Db) -> Dump {
    taken(db, None).await
}

/// The rows of one run alone.
pub async fn dump_run(db: &Db, run_id: &str) -> Dump {
    taken(db, Some(run_id)).await
}

async fn taken(db: &Db, run_id: Option<&str>) -> Dump {
    let mut found = Dump::new();
    for table in tables() {
        let owner = match table.name {
            "workflow_runs" | "workflow_run_summaries" => Some("id"),
            _ => table.column("workflow_run_id").map(|column| column.name),
        };
        let mut q = db.statement();
        for (n, column) in table.columns.iter().enumerate() {
            q.push(if n == 0 { "select \"" } else { ", \"" })
                .push(column.name)
                .push("\"");
        }
        q.push(" from {").push(table.name).push("}");
        match (run_id, owner) {
            (Some(run_id), Some(owner)) => {
                q.push(" where ").push(owner).push(" = ").bind(run_id);
            }
            (Some(_), None) => continue,
            (None, _) => {}
        }
        let mut rows = BTreeMap::new();
        for mut row in db.fetch(q).await.expect("the rows are readable") {
            let mut cells = Map::new();
            for column in &table.columns {
                let value = match column.kind {
                    Kind::Time => row
                        .opt_utc(column.name)
                        .map(|at| json!(at.map(|at| at.format(STORED).to_string()))),
                    Kind::Bool => row
                        .opt_bool(column.name)
                        .map(|flag| json!(flag.map(i64::from))),
                    _ => row.take(column.name).map(plain),
                };
                let value = value.expect("a value of the column's kind");
                cells.insert(column.name.to_owned(), value);
            }
            let key = &cells[table.columns[0].name];
            let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            rows.insert(key, cells);
        }
        found.insert(table.name, rows);
    }
    found
}

const STORED: &str = "%Y-%m-%d %H:%M:%S%.6f";

fn plain(value: Val) -> Value {
    match value {
        Val::Null => Value::Null,
        Val::Bool(b) => json!(i64::from(b)),
        Val::Int(n) => json!(n),
        Val::UInt(n) => json!(n),
        Val::Float(n) => json!(n),
        Val::Text(text) => opened(&Value::String(text)),
        Val::Bytes(bytes) => opened(&json!(String::from_utf8_lossy(&bytes))),
        Val::Time(at) => json!(at.format(STORED).to_string()),
    }
}

/// Text that is JSON or an encoded payload, as the value it stands for; an empty map as PHP
/// writes it.
pub fn opened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(text).map_or_else(|_| value.clone(), |inner| opened(&inner))
        }
        Value::String(text) if text.starts_with("wwHioz3") => {
            match payload::decode(None, Some(text)) {
                Payload::Value(inner) => inner,
                _ => value.clone(),
            }
        }
        Value::Array(items) => items.iter().map(opened).collect(),
        Value::Object(map) if map.is_empty() => json!([]),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), opened(value)))
            .collect(),
        other => other.clone(),
    }
}

/// `{table: {inserted: [row], changed: {id: {column: [before, after]}}, removed: [id]}}`.
pub fn diff(before: &Dump, after: &Dump) -> Value {
    let mut out = Map::new();
    for (table, rows) in after {
        let old = &before[table];
        let mut inserted = Vec::new();
        let mut changed = Map::new();
        for (key, row) in rows {
            let Some(old) = old.get(key) else {
                inserted.push(Value::Object(row.clone()));
                continue;
            };
            let cells: Map<String, Value> = row
                .iter()
                .filter(|(column, value)| old[*column] != **value)
                .map(|(column, value)| (column.clone(), json!([old[column], value])))
                .collect();
            if !cells.is_empty() {
                changed.insert(key.clone(), Value::Object(cells));
            }
        }
        let removed: Vec<&String> = old.keys().filter(|key| !rows.contains_key(*key)).collect();
        let removed = json!(removed);
        note(&mut out, table, inserted, changed, removed);
    }
    Value::Object(out)
}

fn note(
    out: &mut Map<String, Value>,
    table: &str,
    inserted: Vec<Value>,
    changed: Map<String, Value>,
    removed: Value,
) {
    let mut parts = Map::new();
    if !inserted.is_empty() {
        parts.insert("inserted".into(), inserted.into());
    }
    if !changed.is_empty() {
        parts.insert("changed".into(), changed.into());
    }
    if removed
        .as_array()
        .is_some_and(|removed| !removed.is_empty())
    {
        parts.insert("removed".into(), removed);
    }
    if !parts.is_empty() {
        out.insert(table.to_owned(), parts.into());
    }
}

/// The engine's recorded diff in the same form.
pub fn recorded(theirs: &Value) -> Value {
    let mut out = Map::new();
    for (table, parts) in theirs.as_object().into_iter().flatten() {
        let list = |part: &str| parts[part].as_array().cloned().unwrap_or_default();
        let inserted = list("inserted").iter().map(opened).collect();
        let changes = list("changed");
        let changed = changes.iter().map(|change| {
            let id = change["id"].as_str().unwrap_or_default().to_owned();
            (id, opened(&change["changes"]))
        });
        let removed = list("removed");
        let removed = removed.iter().map(|row| row["id"].clone()).collect();
        note(&mut out, table, inserted, changed.collect(), removed);
    }
    Value::Object(out)
}

/// The diff a plan promises.
pub fn promised(changes: &[RowChange]) -> Value {
    let mut tables: BTreeMap<&str, (Vec<Value>, Map<String, Value>)> = BTreeMap::new();
    for change in changes {
        let (inserted, changed) = tables.entry(change.table).or_default();
        match change.action {
            Action::Insert => {
                let cells = change.cells.iter();
                inserted.push(
                    cells
                        .map(|cell| (cell.column.to_owned(), told(&cell.after)))
                        .collect(),
                );
            }
            Action::Update => {
                let cells: Map<String, Value> = change
                    .cells
                    .iter()
                    .map(|cell| {
                        let before = cell.before.as_ref().map(told);
                        (cell.column.to_owned(), json!([before, told(&cell.after)]))
                    })
                    .collect();
                changed.insert(change.id.clone(), cells.into());
            }
        }
    }
    let mut out = Map::new();
    for (table, (inserted, changed)) in tables {
        note(&mut out, table, inserted, changed, json!([]));
    }
    Value::Object(out)
}

fn told(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(b) => json!(i64::from(*b)),
        Cell::Int(n) => json!(n),
        Cell::Text(text) => opened(&json!(text)),
        Cell::Time(at) => json!(at.format(STORED).to_string()),
        Cell::Json(value) => opened(value),
    }
}

/// The diff with every new id replaced by what it is the id of.
pub fn without_new_ids(diff: &Value) -> Value {
    let mut text = diff.to_string();
    for table in [
        "workflow_tasks",
        "workflow_commands",
        "workflow_history_events",
    ] {
        for row in diff[table]["inserted"].as_array().into_iter().flatten() {
            if let Some(id) = row["id"].as_str() {
                text = text.replace(id, &format!("<new in {table}>"));
            }
        }
    }
    serde_json::from_str(&text).expect("still JSON")
}
