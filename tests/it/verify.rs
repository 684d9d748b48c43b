//! `verify` against what people and machines do to files.

use std::io::{Cursor, Read, Result, Seek, SeekFrom};

use plimsoll::{
    db::Dialect,
    durable::{
        engine_config::EngineConfig,
        export::{
            SigningKey, stream,
            verify::{Seal, Verdict, verify},
        },
    },
};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::{
    checker,
    export::exported,
    rig::{self, TestDb},
    shop,
};

fn key() -> SigningKey {
    SigningKey::new("golden-signing-key", Some("golden-key-1")).expect("a key")
}

/// One of the demo's runs, of middling length, as a bundle.
async fn a_bundle(db: &TestDb, key: Option<&SigningKey>) -> Vec<u8> {
    let mut q = db.read_only.statement();
    q.push(
        "select id from {workflow_runs} where last_history_sequence < 40 \
         order by last_history_sequence desc, id limit 1",
    );
    let mut rows = db.read_only.fetch(q).await.expect("runs");
    let run_id = rows[0].text("id").expect("an id");
    let config = EngineConfig::defaults();
    let options = stream::Options {
        now: shop::now(),
        config: &config,
        policy: None,
        key,
        batch: 7,
    };
    let (text, _) = exported(&db.read_only, &run_id, options)
        .await
        .expect("a bundle");
    text
}

#[tokio::test]
async fn another_byte_anywhere_is_found_sqlite() {
    rig::on(Dialect::Sqlite, async |db: TestDb| {
        shop::fill(&db).await;
        for key in [None, Some(key())] {
            change(&a_bundle(&db, key.as_ref()).await, key.as_ref());
        }
    })
    .await;
}

fn change(text: &[u8], key: Option<&SigningKey>) {
    let report = verify(Cursor::new(text), key, &mut |_| ());
    assert_eq!(report.verdict(), Verdict::Intact, "{:?}", report.findings);
    let document: Value = serde_json::from_slice(text).expect("JSON");
    let found = |at: usize, by: u8| {
        let mut changed = text.to_vec();
        changed[at] ^= by;
        let report = verify(Cursor::new(&changed), key, &mut |_| ());
        // An escape may be written with capitals: the document is the same.
        let same = || serde_json::from_slice::<Value>(&changed).is_ok_and(|it| it == document);
        assert!(
            report.verdict() != Verdict::Intact || same(),
            "byte {at}: {}",
            String::from_utf8_lossy(&changed[at.saturating_sub(40)..(at + 40).min(text.len())])
        );
    };
    // Every byte of the seal, and any byte of the whole.
    for at in text.len().saturating_sub(500)..text.len() {
        found(at, 1 << (at % 8));
    }
    let anywhere = (0..text.len(), 1..=u8::MAX);
    let mut runner = TestRunner::new(Config::with_cases(600));
    runner
        .run(&anywhere, |(at, by)| {
            found(at, by);
            Ok(())
        })
        .expect("every change is found");
}

#[test]
fn what_is_no_bundle_is_told_so_and_harms_nobody() {
    let deep = "[".repeat(1_000_000);
    let deep_map = format!("{{\"schema\":{}", "{\"a\":".repeat(100_000));
    let wide = format!("{{{}\"a\":1}}", "\"a\":[],".repeat(200_000));
    for (text, want) in [
        ("", Verdict::NotABundle),
        ("hello", Verdict::NotABundle),
        ("[]", Verdict::NotABundle),
        ("{}", Verdict::NotABundle),
        (
            "{\"schema\":\"durable-workflow.v2.history-export\"",
            Verdict::NotABundle,
        ),
        (
            "{\"schema\":\"durable-workflow.v2.history-export\",\"schema_version\":2}",
            Verdict::NotABundle,
        ),
        (
            "{\"schema\":\"durable-workflow.v2.history-export\",\"schema_version\":1}",
            Verdict::Altered,
        ),
        (
            "{\"schema\":\"durable-workflow.v2.history-export\",\"schema_version\":1,\"workflow\":7,\"payloads\":[],\
          \"history_events\":[7,{\"sequence\":\"x\"},null],\"commands\":[1],\"redaction\":[],\
          \"codec_schemas\":3,\"payload_manifest\":{\"entries\":[[]]},\"integrity\":[]}",
            Verdict::Altered,
        ),
        (deep.as_str(), Verdict::NotABundle),
        (deep_map.as_str(), Verdict::NotABundle),
        (wide.as_str(), Verdict::NotABundle),
    ] {
        let report = verify(Cursor::new(text), None, &mut |_| ());
        let shown: String = text.chars().take(80).collect();
        assert_eq!(report.verdict(), want, "{shown}: {:?}", report.findings);
    }
}

#[tokio::test]
async fn there_is_one_seal_and_nothing_hides_in_it_sqlite() {
    rig::on(Dialect::Sqlite, async |db: TestDb| {
        shop::fill(&db).await;
        let text = String::from_utf8(a_bundle(&db, None).await).unwrap();
        let at = text.find(",\"integrity\":").unwrap();
        let (document, seal) = (&text[..at], text[at + 1..].trim_end().trim_end_matches('}'));
        let seal = format!("{seal}}}");
        let verdict = |text: &str| verify(Cursor::new(text), None, &mut |_| ()).verdict();
        assert_eq!(verdict(&format!("{document},{seal}}}")), Verdict::Intact);
        let other = seal.replacen("\"checksum\":\"", "\"checksum\":\"0", 1);
        for (what, text) in [
            (
                "another seal before it",
                format!("{document},{other},{seal}}}"),
            ),
            ("the same seal twice", format!("{document},{seal},{seal}}}")),
            (
                "a checksum twice",
                format!(
                    "{document},{}}}",
                    seal.replacen("{\"", "{\"checksum\":\"\",\"", 1)
                ),
            ),
            (
                "the name of a key that signed nothing",
                format!(
                    "{document},{}}}",
                    seal.replacen("\"key_id\":null", "\"key_id\":\"auditor\"", 1)
                ),
            ),
        ] {
            assert_ne!(verdict(&text), Verdict::Intact, "{what}");
        }
    })
    .await;
}

/// A bundle of nothing but what must be there, sealed.
fn sealed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut bundle = json!({
        "schema": "durable-workflow.v2.history-export",
        "schema_version": 1,
        "exported_at": "2026-01-02T03:10:00.000000Z",
        "workflow": {"run_id": "r", "instance_id": "i", "workflow_type": "t"},
        "payloads": {}, "history_events": [], "commands": [], "signals": [], "updates": [],
        "tasks": [], "activities": [], "timers": [], "failures": [], "links": {},
        "redaction": {}, "codec_schemas": [], "payload_manifest": {"version": 1, "entries": []},
    });
    change(&mut bundle);
    let text = serde_json::to_vec(&bundle).unwrap();
    bundle["integrity"] = json!({
        "canonicalization": "json-recursive-ksort-v1",
        "checksum_algorithm": "sha256",
        "checksum": checker::checksum(&text),
        "signature_algorithm": null, "signature": null, "key_id": null,
    });
    serde_json::to_vec(&bundle).unwrap()
}

#[test]
fn what_was_wrong_when_it_was_sealed_is_told_and_is_no_alteration() {
    for (what, rule, text) in [
        ("nothing", None, sealed(|_| ())),
        (
            "a payload that is missing",
            Some("payload_manifest.payload_missing"),
            sealed(|bundle| {
                bundle["payload_manifest"]["entries"] = json!([
                    {"path": "payloads.arguments.data", "codec": "avro", "available": true,
                     "redacted": false, "diagnostic": "payload_missing"}
                ]);
            }),
        ),
        (
            "an event twice",
            Some("history_events.id_duplicate"),
            sealed(|bundle| {
                bundle["history_events"] = json!([
                    {"id": "e", "sequence": 1, "type": "X"},
                    {"id": "e", "sequence": 2, "type": "X"},
                ]);
            }),
        ),
        (
            "a section less",
            Some("bundle.section_missing"),
            sealed(|bundle| drop(bundle.as_object_mut().unwrap().remove("timers"))),
        ),
    ] {
        let report = verify(Cursor::new(&text), None, &mut |_| ());
        let rules: Vec<&str> = report.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(report.verdict(), Verdict::Intact, "{what}: {rules:?}");
        assert_eq!(report.seal(), Seal::Unsigned, "{what}");
        assert_eq!(rules, rule.into_iter().collect::<Vec<_>>(), "{what}");
        assert_eq!(report.status, if rule.is_some() { "failed" } else { "ok" });
    }
}

#[tokio::test]
async fn a_value_of_any_depth_leaves_in_a_bundle_that_verifies_sqlite() {
    rig::on(Dialect::Sqlite, async |db: TestDb| {
        let situations = shop::fill_short(&db).await;
        let run_id = &situations[0].run_id;
        let config = EngineConfig::defaults();
        for depth in 60..140 {
            let nested = format!("{{\"deep\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
            let mut tx = db.writable.write().await.unwrap();
            for table in ["workflow_history_events", "workflow_tasks"] {
                let mut q = tx.statement();
                q.push("update {")
                    .push(table)
                    .push("} set payload = ")
                    .bind(nested.as_str())
                    .push(" where workflow_run_id = ")
                    .bind(run_id.as_str());
                tx.execute(q).await.unwrap();
            }
            tx.commit().await.unwrap();
            let options = stream::Options {
                now: shop::now(),
                config: &config,
                policy: None,
                key: None,
                batch: 7,
            };
            let (text, _) = exported(&db.read_only, run_id, options).await.unwrap();
            let report = verify(Cursor::new(&text), None, &mut |_| ());
            assert_eq!(
                report.verdict(),
                Verdict::Intact,
                "{depth}: {:?}",
                report.findings
            );
            checker::check(&text, None).unwrap_or_else(|wrong| panic!("{depth}: {wrong}"));
        }
    })
    .await;
}

/// A file that is made as it is read: a beginning, something again and again, an end.
struct Made {
    parts: [Vec<u8>; 3],
    times: u64,
    at: u64,
}

impl Made {
    fn new(start: &str, again: &str, times: u64, end: &str) -> Self {
        // Long enough to be copied in pieces.
        let often = (64 * 1024 / again.len()).max(1);
        Self {
            parts: [start.into(), again.repeat(often).into(), end.into()],
            times: times / often as u64,
            at: 0,
        }
    }

    fn len(&self) -> u64 {
        let [start, again, end] = self.parts.each_ref().map(|part| part.len() as u64);
        start + again * self.times + end
    }
}

impl Read for Made {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let [start, again, end] = &self.parts;
        let (first, middle) = (start.len() as u64, again.len() as u64 * self.times);
        let from = |part: &'_ [u8], at: u64| usize::try_from(at).unwrap().min(part.len());
        let rest: &[u8] = if self.at < first {
            &start[from(start, self.at)..]
        } else if self.at < first + middle {
            &again[from(again, (self.at - first) % again.len() as u64)..]
        } else {
            &end[from(end, self.at - first - middle)..]
        };
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Made {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) => self.at.saturating_add_signed(by),
            SeekFrom::End(by) => self.len().saturating_add_signed(by),
        };
        Ok(self.at)
    }
}

#[test]
fn a_file_that_would_not_fit_into_memory_has_a_verdict() {
    let schema = "{\"schema\":\"durable-workflow.v2.history-export\",\"schema_version\":1,";
    for (what, file, says) in [
        (
            "2 GB of nothing",
            Made::new("x", "x", 2 << 30, "x"),
            "bundle.unparseable",
        ),
        (
            "a word of 64 MB",
            Made::new("{\"schema\":\"", "x", 64 << 20, "\"}"),
            "bundle.unparseable",
        ),
        (
            "keys without end",
            Made::new(&format!("{schema}\"tasks\":{{\""), "k", 64 << 20, "\":1}}"),
            "bundle.unparseable",
        ),
        (
            "a section of zeros where words belong",
            Made::new(&format!("{schema}\"workflow\":["), "0,", 4 << 20, "0]}"),
            "integrity.missing",
        ),
    ] {
        let report = verify(file, None, &mut |_| ());
        assert_ne!(report.verdict(), Verdict::Intact, "{what}");
        let rules: Vec<&str> = report.findings.iter().map(|finding| finding.rule).collect();
        assert!(rules.contains(&says), "{what}: {rules:?}");
    }
}
