//! Our list items are the engine's, for everything it recorded, on every database.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use plimsoll::{
    db::{Db, Dialect, Settings},
    durable::{
        projection::list_item::list_item,
        store::runs::{self, Direction, Filter, PageRequest, extras},
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::{
    compare::Comparison,
    rig::{self, TestDb, on_every_database},
};

/// The two sentences of an item; `wait_reason` is stored, so it must be the engine's.
const PROSE: &[&str] = &[
    "list_item.repair_blocked.description",
    "list_item.task_problem_badge.description",
];

/// What the list reads.
const TABLES: &[&str] = &[
    "workflow_runs",
    "workflow_run_summaries",
    "workflow_search_attributes",
];

/// A recorded database and the engine's item of each run; null where it has no summary.
struct State {
    name: String,
    file: PathBuf,
    items: BTreeMap<String, Value>,
}

/// Of a state's views, which run to megabytes, only what is compared here is kept.
#[derive(Deserialize)]
struct Views {
    #[serde(deserialize_with = "map_or_empty_list")]
    runs: BTreeMap<String, OneRun>,
}

#[derive(Deserialize)]
struct OneRun {
    list_item: Value,
}

/// PHP writes an empty map as a list.
fn map_or_empty_list<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, OneRun>, D::Error> {
    struct Runs;
    impl<'de> Visitor<'de> for Runs {
        type Value = BTreeMap<String, OneRun>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map of runs")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut runs = BTreeMap::new();
            while let Some((run, views)) = map.next_entry()? {
                runs.insert(run, views);
            }
            Ok(runs)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
            Ok(BTreeMap::new())
        }
    }
    deserializer.deserialize_any(Runs)
}

fn read<T: DeserializeOwned>(file: &Path) -> T {
    let text = fs::read_to_string(file).expect("a file of the corpus");
    serde_json::from_str(&text).expect("JSON")
}

/// The folders in it, sorted; none where it is not, as in a state without runs.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn states(root: &Path) -> Vec<State> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let scenarios = folders(&root.join("scenarios")).into_iter().map(|folder| {
        let runs = folders(&folder.join("runs"));
        State {
            name: name(&folder),
            items: runs
                .into_iter()
                .map(|run| {
                    let item = run.join("list-item.json");
                    let item = if item.exists() {
                        read(&item)
                    } else {
                        Value::Null
                    };
                    (name(&run), item)
                })
                .collect(),
            file: folder.join("db.sqlite"),
        }
    });
    let engine_tests = folders(&root.join("engine-test-states"));
    let engine_tests = engine_tests.into_iter().map(|folder| {
        let views: Views = read(&folder.join("views.json"));
        State {
            name: name(&folder),
            items: views
                .runs
                .into_iter()
                .map(|(run, views)| (run, views.list_item))
                .collect(),
            file: folder.join("db.sqlite"),
        }
    });
    scenarios.chain(engine_tests).collect()
}

/// Every item of the list, read page by page as a script would.
async fn items(db: &Db) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut request = PageRequest {
        filter: Filter::default(),
        direction: Direction::NewestFirst,
        cursor: None,
        size: 100,
    };
    let mut snapshot = db.snapshot().await.unwrap();
    loop {
        let mut page = runs::page(&mut snapshot, &request).await.unwrap();
        let mut attributes =
            extras::search_attributes(&mut snapshot, &page.rows, &mut page.notices)
                .await
                .unwrap();
        for summary in &page.rows {
            let attributes = attributes.remove(&summary.id).unwrap_or_default();
            let item = list_item(summary, attributes);
            assert!(found.insert(summary.id.clone(), item).is_none(), "twice");
        }
        request.cursor = page.next;
        if request.cursor.is_none() {
            break;
        }
    }
    snapshot.end().await;
    found
}

fn compare(comparison: &mut Comparison, state: &State, ours: &BTreeMap<String, Value>) {
    for (run, theirs) in &state.items {
        match (ours.get(run), theirs) {
            (None, Value::Null) => {}
            (Some(_), Value::Null) => {
                comparison.wrong(&state.name, &format!("{run} has no item at the engine"));
            }
            (None, _) => comparison.wrong(&state.name, &format!("{run} is not listed")),
            (Some(ours), theirs) => comparison.document(&state.name, "list_item", ours, theirs),
        }
    }
    for run in ours.keys().filter(|run| !state.items.contains_key(*run)) {
        comparison.wrong(&state.name, &format!("{run} is unknown to the engine"));
    }
}

on_every_database! {
    async fn list_items_are_the_engines(db: TestDb) {
        let Some(root) = rig::corpus_unpacked() else { return };
        let mut comparison = Comparison::new(PROSE);
        let states = states(&root);
        for state in &states {
            let ours = if db.dialect() == Dialect::Sqlite {
                // The engine's own file, as it wrote it.
                let file = Settings::new(format!("sqlite:{}", state.file.display()));
                let recorded = Db::connect(&file).await.expect(&state.name);
                let ours = items(&recorded).await;
                recorded.close().await;
                ours
            } else {
                rig::copy_sqlite_tables(&state.file, &db, TABLES).await;
                let ours = items(&db.read_only).await;
                rig::empty(&db, TABLES).await;
                ours
            };
            compare(&mut comparison, state, &ours);
        }
        let database = db.dialect().name();
        comparison.finish(&format!("list items on {database}"));
    }
}
