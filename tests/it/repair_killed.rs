//! The process is killed in the midst of its repairs, again and again: each run is as it was
//! before, or as it is after, and never repaired twice.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::mpsc::{Sender, channel},
    thread,
    time::Duration,
};

use plimsoll::{
    clock::Clock,
    durable::{
        engine_config::EngineConfig,
        repair::{self, Goal, Judged},
    },
};
use serde_json::Value;

use crate::{
    cli::{PATIENCE, Started, plimsoll, serve},
    herd,
    repair_conformance::by_run,
    rig::{TestDb, on_every_database},
    row_diff::{self, Dump},
};

const KILLS: usize = 24;
/// How many repairs one life is asked for.
const ASKED: usize = 6;
/// Of each state, so that no life gets to the end of them.
const RUNS: usize = 30;
const STATES: [&str; 5] = [
    "activity-task-and-execution-lost",
    "signal-task-lost",
    "update-task-lost",
    "timer-row-and-task-lost",
    "lease-expired-activity",
];

/// Which rows come, and which columns of which rows change; what they hold is not told.
fn shape(diff: &Value) -> Vec<String> {
    let mut told = Vec::new();
    for (table, parts) in diff.as_object().expect("tables") {
        for row in parts["inserted"].as_array().into_iter().flatten() {
            let set = row.as_object().expect("a row").iter();
            let set: Vec<&str> = set
                .filter(|(_, value)| !value.is_null())
                .map(|(column, _)| column.as_str())
                .collect();
            told.push(format!("{table} + {}", set.join(" ")));
        }
        for (id, cells) in parts["changed"].as_object().into_iter().flatten() {
            let columns = cells.as_object().expect("cells").keys();
            let columns: Vec<&str> = columns.map(String::as_str).collect();
            told.push(format!("{table} {id} {}", columns.join(" ")));
        }
        assert!(
            parts.get("removed").is_none(),
            "{table}: a repair removes nothing"
        );
    }
    told.sort();
    told
}

/// What each run would come to.
async fn promised(db: &TestDb, runs: &[String]) -> BTreeMap<String, Vec<String>> {
    let (config, request) = (EngineConfig::defaults(), by_run());
    let judged = Judged {
        clock: Clock::System,
        config: &config,
    };
    let mut plans = BTreeMap::new();
    for run in runs {
        let plan = repair::preview(&db.read_only, judged, run, Goal::Asked(&request)).await;
        let plan = plan.unwrap_or_else(|error| panic!("{run}: {error}"));
        plans.insert(run.clone(), shape(&row_diff::promised(&plan.changes)));
    }
    plans
}

/// The rows of one run.
fn only(dump: &Dump, run: &str) -> Dump {
    let is_of = |table: &str, row: &serde_json::Map<String, Value>| match table {
        "workflow_runs" | "workflow_run_summaries" => row["id"] == run,
        _ => row.get("workflow_run_id").is_some_and(|owner| owner == run),
    };
    dump.iter()
        .map(|(table, rows)| {
            let rows = rows.iter().filter(|(_, row)| is_of(table, row));
            (
                *table,
                rows.map(|(id, row)| (id.clone(), row.clone())).collect(),
            )
        })
        .collect()
}

/// How many of the runs are repaired; the others are as they were.
async fn repaired(db: &TestDb, before: &Dump, plans: &BTreeMap<String, Vec<String>>) -> usize {
    let after = row_diff::dump(&db.read_only).await;
    let mut done = 0;
    for (run, plan) in plans {
        let did = shape(&row_diff::diff(&only(before, run), &only(&after, run)));
        if !did.is_empty() {
            assert_eq!(&did, plan, "{run}: all of it or nothing");
            done += 1;
        }
    }
    done
}

/// Asks for the repair of one run after the other until nobody answers; tells each answer.
fn ask(address: SocketAddr, runs: Vec<String>, answers: &Sender<(String, u16)>) {
    for run in runs {
        let Some(status) = posted(address, &run) else {
            return;
        };
        if answers.send((run, status)).is_err() {
            return;
        }
    }
}

fn posted(address: SocketAddr, run: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(
        stream,
        "POST /waterline/api/flows/{run}/repair HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// One life of the process, ended some moments after its first repair; what it had time to answer.
fn live(url: &str, left: &[String], is_killed: bool) -> Vec<(String, u16)> {
    let mut command = plimsoll(&serve(url, &["--allow-repair", "--log", "warn"]));
    // No worker takes what is repaired, and that must not count as trouble of its own.
    command.env("DW_V2_TASK_REPAIR_REDISPATCH_AFTER_SECONDS", "86400");
    let server = Started::new(command);
    let (send, answers) = channel();
    let askers: Vec<_> = [0, 1]
        .map(|which| {
            let (address, send) = (server.address, send.clone());
            let runs = left.iter().skip(which).step_by(2).cloned().collect();
            thread::spawn(move || ask(address, runs, &send))
        })
        .into();
    drop(send);
    let mut heard = Vec::new();
    if is_killed {
        heard.extend(answers.recv_timeout(PATIENCE));
        // Somewhere in the next repairs.
        thread::sleep(Duration::from_micros(fastrand::u64(0..60_000)));
        drop(server);
    }
    heard.extend(answers);
    for asker in askers {
        asker.join().expect("no panic");
    }
    heard
}

on_every_database! {
    async fn a_process_that_is_killed_leaves_all_or_nothing(db: TestDb) {
        let mut left = Vec::new();
        for state in STATES {
            left.extend(herd::lay_out(&db, state, Clock::System.now(), RUNS).await);
        }
        fastrand::shuffle(&mut left);
        let before = row_diff::dump(&db.read_only).await;
        let plans = promised(&db, &left).await;
        for kill in 0..KILLS {
            let (url, runs) = (db.url.clone(), left[..ASKED].to_vec());
            let heard = tokio::task::spawn_blocking(move || live(&url, &runs, true)).await.expect("no panic");
            // 409: a life before did it, and was killed before it could say so.
            assert!(!heard.is_empty() && heard.iter().all(|(_, status)| [200, 409].contains(status)), "life {kill}: {heard:?}");
            let done = repaired(&db, &before, &plans).await;
            // Of what was under way nobody heard; asking again is safe.
            left.retain(|run| !heard.iter().any(|(told, _)| told == run));
            assert!(done >= plans.len() - left.len(), "life {kill}: what was told is so");
        }
        // Those that were under way at the end, by a life that is not cut short.
        let (url, runs) = (db.url.clone(), left[..ASKED].to_vec());
        let heard = tokio::task::spawn_blocking(move || live(&url, &runs, false)).await.expect("no panic");
        assert_eq!(heard.len(), ASKED);
        assert!(heard.iter().all(|(_, status)| [200, 409].contains(status)), "{heard:?}");
        let done = repaired(&db, &before, &plans).await;
        assert_eq!(done, plans.len() - left.len() + ASKED, "each run once, and no other");
    }
}
