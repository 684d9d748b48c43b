//! A situation many times over in one database, each copy with ids of its own.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use plimsoll::{
    db::Val,
    demo::{rows::InsertRow, write::write},
};

use crate::{rig::TestDb, shop};

/// Letters of an engine's id.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// How much of an id all copies have in common.
const COMMON: usize = 22;

/// Lays out so many copies of one situation of the catalogue; gives the ids of their runs.
pub async fn lay_out(db: &TestDb, name: &str, moment: DateTime<Utc>, copies: usize) -> Vec<String> {
    let one = shop::situation(name, moment);
    let rows: Vec<&InsertRow> = one.rows.iter().filter(|row| is_durable(row)).collect();
    // Of rows that are there, and of those that only history still names.
    let ids: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.cells.iter())
        .filter_map(|(_, value)| match value {
            Val::Text(text) => Some(text.split(|letter: char| !letter.is_ascii_alphanumeric())),
            _ => None,
        })
        .flatten()
        .filter(|word| word.len() == COMMON + 4 && word.starts_with("01"))
        .collect();
    let told_apart: BTreeSet<&str> = ids.iter().map(|id| &id[..COMMON]).collect();
    assert_eq!(
        told_apart.len(),
        ids.len(),
        "ids differ where copies do not"
    );
    let instances: Vec<&str> = rows
        .iter()
        .filter(|row| row.table == "workflow_instances")
        .filter_map(|row| row.text("id"))
        .collect();
    let (mut runs, mut written) = (Vec::new(), Vec::new());
    for n in 0..copies {
        let names = Names::of(&instances, &ids, n);
        runs.push(names.of_text(&one.run_id));
        written.extend(rows.iter().map(|row| names.of_row(row)));
    }
    write(&db.writable, written, |_| ())
        .await
        .expect("the rows are written");
    runs
}

/// What the engine derives it derives again, and its ids are digests; workers are nobody's.
fn is_durable(row: &InsertRow) -> bool {
    row.table == "workflow_instances" || row.text("id").is_some_and(|id| id.len() == COMMON + 4)
}

/// What each id is called in one copy.
struct Names(BTreeMap<String, String>);

impl Names {
    fn of(instances: &[&str], ids: &BTreeSet<&str>, n: usize) -> Self {
        let mark: String = (0..4)
            .map(|place| char::from(LETTERS[n >> (5 * (3 - place)) & 31]))
            .collect();
        let renamed = |id: &&str| {
            let is_upper = id.bytes().any(|letter| letter.is_ascii_uppercase());
            let mark = if is_upper {
                mark.to_ascii_uppercase()
            } else {
                mark.clone()
            };
            ((*id).to_owned(), format!("{}{mark}", &id[..COMMON]))
        };
        let mut names: BTreeMap<String, String> = ids.iter().map(renamed).collect();
        names.extend(
            instances
                .iter()
                .map(|id| ((*id).to_owned(), format!("{id}-{n}"))),
        );
        Self(names)
    }

    fn of_text(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, (id, name)| text.replace(id, name))
    }

    fn of_row(&self, row: &InsertRow) -> InsertRow {
        let mut row = row.clone();
        for (_, value) in &mut row.cells {
            if let Val::Text(text) = value {
                *text = self.of_text(text);
            }
        }
        row
    }
}
