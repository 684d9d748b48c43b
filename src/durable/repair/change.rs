//! What a repair writes, as data: shown before, compared at the moment of writing, then written.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::durable::{
    export::seal::hex,
    projection::context::stamp,
    stored::{Cell, CommandRow, HistoryEvent, RunRow, RunSummary},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Insert,
    Update,
}

/// One row that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct RowChange {
    pub table: &'static str,
    pub id: String,
    pub action: Action,
    /// Every column of a new row; the changed ones of another.
    pub cells: Vec<CellChange>,
    /// What must still be so at the moment an update is written.
    pub guards: Vec<Guard>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CellChange {
    pub column: &'static str,
    /// None in a new row.
    pub before: Option<Cell>,
    pub after: Cell,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    Is(&'static str, Cell),
    /// There, and not after this moment.
    Past(&'static str, DateTime<Utc>),
}

impl RowChange {
    pub fn insert(table: &'static str, id: &str, cells: Vec<(&'static str, Cell)>) -> Self {
        Self {
            table,
            id: id.to_owned(),
            action: Action::Insert,
            cells: cells
                .into_iter()
                .map(|(column, after)| CellChange {
                    column,
                    before: None,
                    after,
                })
                .collect(),
            guards: Vec::new(),
        }
    }

    /// What differs between a row as it is and as it should be; none when nothing does.
    pub fn update(
        table: &'static str,
        id: &str,
        before: Vec<(&'static str, Cell)>,
        after: Vec<(&'static str, Cell)>,
        guards: Vec<Guard>,
    ) -> Option<Self> {
        let cells: Vec<CellChange> = before
            .into_iter()
            .zip(after)
            .filter(|((_, before), (_, after))| before != after)
            .map(|((column, before), (_, after))| CellChange {
                column,
                before: Some(before),
                after,
            })
            .collect();
        (!cells.is_empty()).then(|| Self {
            table,
            id: id.to_owned(),
            action: Action::Update,
            cells,
            guards,
        })
    }

    pub fn cell(&self, column: &str) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.column == column)
            .map(|cell| &cell.after)
    }
}

/// Of what is written, what a digest is of: not the command and its event, which say who asked and
/// when, nor the summary, which the engine derives and which may change without the run changing.
pub fn of_substance(changes: &[RowChange]) -> impl Iterator<Item = &RowChange> {
    const ASIDE: [&str; 3] = [CommandRow::TABLE, HistoryEvent::TABLE, RunSummary::TABLE];
    changes
        .iter()
        .filter(|change| !ASIDE.contains(&change.table))
}

/// A fingerprint of what would be written, and to what: the same for the same state whenever it is
/// asked for. Neither the clock nor new ids count, nor who asks.
pub fn digest<'c>(
    run: &RunRow,
    changes: impl IntoIterator<Item = &'c RowChange>,
    now: DateTime<Utc>,
    new_ids: &[&str],
) -> String {
    let told = |cell: &Cell| match cell {
        Cell::Time(at) if *at == now => "now".to_owned(),
        Cell::Time(at) => stamp(*at),
        Cell::Text(text) if new_ids.contains(&text.as_str()) => "new".to_owned(),
        Cell::Text(text) => format!("{text:?}"),
        Cell::Null => "null".to_owned(),
        Cell::Bool(b) => b.to_string(),
        Cell::Int(n) => n.to_string(),
        Cell::Json(value) => value.to_string(),
    };
    let mut hash = Sha256::new();
    let mut line = |words: &[&str]| {
        for word in words {
            hash.update((word.len() as u64).to_le_bytes());
            hash.update(word.as_bytes());
        }
    };
    // Whatever else happens to a run is counted here.
    line(&[
        &run.id,
        run.status.as_str(),
        &run.last_history_sequence.to_string(),
        &run.last_command_sequence.to_string(),
    ]);
    for change in changes {
        let id = if new_ids.contains(&change.id.as_str()) {
            "new"
        } else {
            change.id.as_str()
        };
        line(&[change.table, id]);
        for cell in &change.cells {
            let before = cell.before.as_ref().map(told).unwrap_or_default();
            line(&[cell.column, &before, &told(&cell.after)]);
        }
    }
    hex(&hash.finalize())
}

/// A JSON object without the members that are null, in the order given.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::projection::related::tests as related;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
    }

    fn task(id: &str, repair_count: i64, now: DateTime<Utc>) -> RowChange {
        RowChange::insert(
            "workflow_tasks",
            id,
            vec![
                ("id", Cell::Text(id.into())),
                ("repair_count", Cell::Int(repair_count)),
                ("available_at", Cell::Time(now)),
            ],
        )
    }

    #[test]
    fn a_digest_knows_the_state_and_neither_the_clock_nor_new_ids() {
        let run = related::run("r", "i", 1, None).run;
        let of = |task: RowChange, now, new: &[&str]| digest(&run, [&task], now, new);
        let one = of(task("a", 1, at(0)), at(0), &["a"]);
        assert_eq!(of(task("b", 1, at(9)), at(9), &["b"]), one);
        assert_ne!(of(task("a", 2, at(0)), at(0), &["a"]), one);
        assert_ne!(of(task("a", 1, at(0)), at(0), &[]), one);
        assert_ne!(of(task("a", 1, at(1)), at(0), &["a"]), one);
    }

    #[test]
    fn a_digest_knows_what_else_happened_to_the_run() {
        let run = related::run("r", "i", 1, None).run;
        let one = digest(&run, [], at(0), &[]);
        let signalled = RunRow {
            last_command_sequence: run.last_command_sequence + 1,
            ..run.clone()
        };
        assert_ne!(digest(&signalled, [], at(0), &[]), one);
        let moved_on = RunRow {
            last_history_sequence: run.last_history_sequence + 1,
            ..run
        };
        assert_ne!(digest(&moved_on, [], at(0), &[]), one);
    }

    #[test]
    fn an_update_names_only_what_changes() {
        let row = |status: &str, count| {
            vec![
                ("status", Cell::Text(status.into())),
                ("repair_count", Cell::Int(count)),
            ]
        };
        let change = RowChange::update("t", "x", row("leased", 1), row("ready", 1), Vec::new());
        let change = change.expect("a change");
        assert_eq!(change.cells.len(), 1);
        assert_eq!(change.cell("status"), Some(&Cell::Text("ready".into())));
        assert_eq!(
            RowChange::update("t", "x", row("ready", 1), row("ready", 1), Vec::new()),
            None
        );
    }
}
