//! Every situation of the catalogue gets its sentence and its next step.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use plimsoll::{
    demo::{catalogue, write::write},
    durable::{
        engine_config::EngineConfig,
        projection::{Context, Projected},
        repair::{Mode, explain},
        store::snapshot::{RunSnapshot, TimelineCache},
    },
};

use crate::rig::{TestDb, on_every_database};

fn when(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(
        || "?".to_owned(),
        |at| at.format("%m-%d %H:%M:%S").to_string(),
    )
}

on_every_database! {
    async fn every_situation_is_explained(db: TestDb) {
        let now: DateTime<Utc> = "2026-11-15T12:00:00Z".parse().unwrap();
        let config = EngineConfig::defaults();
        let situations: Vec<_> = catalogue(now).collect();
        let rows = situations.iter().flat_map(|situation| situation.rows.clone()).collect();
        write(&db.writable, rows, |_| {}).await.unwrap();
        let mut told = String::new();
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        for situation in &situations {
            let run = RunSnapshot::load(&mut snapshot, &situation.run_id, TimelineCache::Presence).await.unwrap().unwrap();
            let projected = Projected::of(Context { snapshot: &run, now, config: &config });
            let diagnosis = explain(&projected, Mode::Direct).diagnosis;
            assert!(!diagnosis.evidence.is_empty(), "{} cites nothing", situation.name);
            let evidence: Vec<String> = diagnosis.evidence.iter().map(|row| match row.at {
                Some(at) => format!("{} {}", row.shows, when(Some(at))),
                None => row.shows.clone(),
            }).collect();
            writeln!(
                told,
                "{}\n    {}: {}\n    {}\n    {:?} acts; since {}, until {}\n    [{}]",
                situation.name, diagnosis.code, diagnosis.sentence, diagnosis.next_step,
                diagnosis.actor, when(diagnosis.since), when(diagnosis.until), evidence.join("] [")
            )
            .unwrap();
        }
        snapshot.end().await;
        // The same words whichever database holds the rows.
        insta::assert_snapshot!("diagnoses", told);
    }

    async fn no_run_is_told_what_its_rows_belie(db: TestDb) {
        let now: DateTime<Utc> = "2026-11-15T12:00:00Z".parse().unwrap();
        let config = EngineConfig::defaults();
        let rows: Vec<_> = catalogue(now).flat_map(|situation| situation.rows).collect();
        let runs: Vec<String> = rows
            .iter()
            .filter(|row| row.table == "workflow_runs")
            .map(|row| row.text("id").unwrap().to_owned())
            .collect();
        write(&db.writable, rows, |_| {}).await.unwrap();
        let mut snapshot = db.read_only.snapshot().await.unwrap();
        for id in &runs {
            let run = RunSnapshot::load(&mut snapshot, id, TimelineCache::Presence).await.unwrap().unwrap();
            let p = Projected::of(Context { snapshot: &run, now, config: &config });
            let explained = explain(&p, Mode::Direct);
            let said = &explained.diagnosis;
            let what = format!("{} {id}: {} {}", run.run.workflow_instance_id, said.sentence, said.next_step);
            // The advice to repair stands exactly where a repair would be done.
            assert_eq!(said.asks_repair, explained.repair.is_ok(), "{what}");
            if said.next_step.contains("Nothing is wrong") {
                let stuck = p.tasks.iter().find(|task| {
                    let state = task.transport_state.as_str();
                    let calm = matches!(state, "ready" | "scheduled" | "leased");
                    (task.is_open && !calm) || (task.task_missing && task.r#type != "workflow")
                });
                assert!(stuck.is_none(), "{what} {:?}", stuck.map(|task| &task.summary));
            }
        }
        snapshot.end().await;
    }
}
