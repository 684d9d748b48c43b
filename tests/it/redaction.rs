//! What a policy hides is hidden in every copy: markers planted in every slot of a run, and the
//! demo's runs.

use std::io::Cursor;

use base64::Engine as _;
use plimsoll::{
    db::Dialect,
    demo::{
        builder::{Policy as Tries, RunBuilder, Start, Step, Thrown, hours, mins, secs},
        write::write,
    },
    durable::{
        engine_config::EngineConfig,
        export::{
            Policy, stream,
            verify::{Verdict, verify},
        },
    },
};
use serde_json::{Value, json};

use crate::{
    export::exported,
    rig::{self, TestDb},
    shop::{self, now},
};

/// Each category with what it must hide.
pub const HIDES: [(&str, &[&str]); 11] = [
    ("workflow_payload", &["S-arguments", "S-output"]),
    (
        "history_event",
        &[
            "S-arguments",
            "S-output",
            "S-given",
            "S-result",
            "S-progress",
            "S-message",
            "S-file",
            "S-signal",
            "S-asked",
            "S-answer",
            "S-why",
            "S-caller",
            "S-principal",
        ],
    ),
    (
        "command_payload",
        &["S-arguments", "S-signal", "S-asked", "S-why", "S-refused"],
    ),
    ("command_context", &["S-caller", "S-principal", "S-path"]),
    ("command_reason", &["S-why"]),
    ("update_payload", &["S-asked", "S-answer"]),
    ("signal_payload", &["S-signal"]),
    ("task_payload", &["S-task"]),
    ("activity_payload", &["S-given", "S-result", "S-progress"]),
    ("failure_diagnostic", &["S-message", "S-file"]),
    (
        "*",
        &[
            "S-arguments",
            "S-output",
            "S-given",
            "S-result",
            "S-progress",
            "S-message",
            "S-file",
            "S-signal",
            "S-asked",
            "S-answer",
            "S-why",
            "S-caller",
            "S-principal",
            "S-path",
            "S-refused",
            "S-task",
        ],
    ),
];

/// One run that came to its end, one that was stopped.
pub fn runs() -> Vec<RunBuilder> {
    let thrown = Thrown::new(r"App\Oops", "S-message").at("/S-file.php", 7, r"App\S-file");
    let start = |instance: &str| {
        Start::new("secret.keep", instance)
            .args(json!(["S-arguments"]))
            .updates(&["ask"])
            .signals(&["go"])
            .at(now() - hours(2))
    };
    let mut done = start("secret-1");
    let hold = Step::new("hold").args(json!(["S-given"]));
    let index = done.schedule(hold.policy(Tries::retry(3, &[60])));
    done.park();
    done.begin(index)
        .beat(index, json!({"message": "S-progress", "current": 1}))
        .fail_attempt(index, &thrown)
        .pass(mins(5));
    done.begin(index).complete(index, &json!("S-result"));
    done.await_signal("go", None);
    let signal = done.signal("go", &json!(["S-signal"]));
    done.apply_signal(signal);
    let update = done.update("ask", &json!(["S-asked"]));
    done.answer_update(update, &json!("S-answer"));
    done.succeed(&json!("S-output")).pass(secs(5));
    done.archive("S-why");

    let mut stopped = start("secret-2");
    let index = stopped.schedule(Step::new("break"));
    stopped.park();
    stopped
        .begin(index)
        .fail_attempt(index, &thrown.permanent())
        .handle_failure(index)
        .terminate(Some("S-why"));
    vec![done, stopped]
}

/// What the builder has no words for is written into the rows.
pub async fn plant(db: &TestDb) {
    let mut tx = db.writable.write().await.unwrap();
    tx.script(
        "update {workflow_tasks} set payload = json_set(payload, '$.note', 'S-task');
        update {workflow_signal_records} set validation_errors = json_object('x', json_array('S-refused'));
        update {workflow_updates} set validation_errors = json_object('x', json_array('S-refused'));
        update {workflow_commands} set context = json_object(
          'caller', json_object('label', 'S-caller'),
          'principal', json_object('type', 't', 'id', 'i', 'label', 'S-principal'),
          'request', json_object('path', '/S-path', 'correlation_id', 'S-path'));
        update {workflow_history_events} set payload =
          json_set(payload, '$.command.caller_label', 'S-caller', '$.command.principal_label', 'S-principal')
          where json_extract(payload, '$.command.id') is not null;
        update {workflow_history_events} set payload =
          json_set(payload, '$.message', 'Workflow terminated: S-why')
          where event_type = 'WorkflowTerminated';
        update {workflow_failures} set message = 'Workflow terminated: S-why'
          where failure_category = 'terminated';
        update {workflow_history_events} set payload = json_set(payload,
          '$.exception.details', 'S-message', '$.exception.diagnostics', json_object('at', '/S-file', 'said', 'S-message'),
          '$.exception.runtime_diagnostics', json_object('at', '/S-file', 'said', 'S-message'))
          where event_type in ('ActivityFailed', 'ActivityRetryScheduled');
        insert into {workflow_history_events} (id, workflow_run_id, sequence, event_type, payload, recorded_at)
          select 'service-call-' || r.id, r.id, 1000, 'ServiceCallFailed', json_object(
            'sequence', 9, 'service_call_id', 'c', 'status', 'failed',
            'request_payload', 'S-given', 'response_payload', 'S-result', 'message', 'S-message',
            'exception', json_object('class', 'RuntimeException', 'message', 'S-message'),
            'service_call', json_object('failure_message', 'S-message', 'caller_principal_subject', 'S-principal',
              'service_call_attempts', json_array(json_object('failure_message', 'S-message'))),
            'response_or_failure_surface', json_object('outcome_message', 'S-message',
              'outcome_metadata', json_object('typed_error_message', 'S-message'))),
            r.started_at
          from {workflow_runs} r",
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

async fn bundle(db: &TestDb, run_id: &str, policy: Option<&Policy>) -> Value {
    let config = EngineConfig::defaults();
    let options = stream::Options {
        now: now(),
        config: &config,
        policy,
        key: None,
        batch: 5,
    };
    let (text, _) = exported(&db.read_only, run_id, options).await.unwrap();
    let report = verify(Cursor::new(&text), None, &mut |_| ());
    assert_eq!(report.verdict(), Verdict::Intact, "{:?}", report.findings);
    serde_json::from_slice(&text).unwrap()
}

/// The paths of every value in which the word can be read, encoded or not.
fn readable(value: &Value, word: &str, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            let inside = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).contains(word);
            if text.contains(word) || bytes.is_ok_and(inside) {
                found.push(path.to_owned());
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                readable(item, word, &format!("{path}.{n}"), found);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                readable(item, word, &format!("{path}.{key}"), found);
            }
        }
        _ => {}
    }
}

fn found(bundle: &Value, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    readable(bundle, word, "", &mut found);
    found
}

fn policy(category: &str, action: &str) -> Policy {
    let text = format!("rules = [{{category = '{category}', action = '{action}'}}]");
    toml::from_str(&text).unwrap()
}

#[tokio::test]
async fn no_secret_of_a_category_survives_anywhere_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let runs = runs();
        let ids: Vec<String> = runs.iter().map(|run| run.run_id().to_owned()).collect();
        let rows = runs.into_iter().flat_map(|run| run.build(now())).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        plant(&db).await;
        let mut plain = Vec::new();
        for id in &ids {
            plain.push(bundle(&db, id, None).await);
        }
        let (_, all) = HIDES[HIDES.len() - 1];
        for secret in all {
            let seen: usize = plain.iter().map(|one| found(one, secret).len()).sum();
            assert!(seen > 1, "{secret} stands in {seen} places");
        }
        for (category, secrets) in HIDES {
            for action in ["drop", "mask", "hash"] {
                let policy = policy(category, action);
                for (id, plain) in ids.iter().zip(&plain) {
                    let bundle = bundle(&db, id, Some(&policy)).await;
                    for secret in secrets {
                        let left = found(&bundle, secret);
                        assert!(left.is_empty(), "{category}: {secret} at {left:?}");
                    }
                    named(&bundle, plain, category);
                }
            }
        }
        // A policy hides what it says and not all there is.
        let bundle = bundle(&db, &ids[0], Some(&policy("signal_payload", "mask"))).await;
        for secret in ["S-arguments", "S-result", "S-answer", "S-why", "S-message"] {
            let kept = found(&bundle, secret).len();
            assert_eq!(kept, found(&plain[0], secret).len(), "{secret}");
        }
    })
    .await;
}

/// A run whose replay is blocked: its stored reason is the error of its task, which says too why an
/// exception could not be restored.
pub fn blocked() -> RunBuilder {
    let mut run = Start::new("secret.keep", "secret-3").at(now() - hours(2));
    let more = json!({
        "replay_blocked_exception_class": r"App\Gone",
        "replay_blocked_resolution_source": "unrestorable",
        "replay_blocked_resolution_error": "S-message",
    });
    run.replay_blocks("failure_resolution", more, "S-message");
    run
}

#[tokio::test]
async fn the_error_that_blocks_a_replay_is_hidden_and_other_reasons_stay_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        let mut waiting = Start::new("secret.keep", "secret-4").at(now() - hours(2));
        waiting.await_signal("go", None);
        let blocked = blocked();
        let ids = [&blocked, &waiting].map(|run| run.run_id().to_owned());
        let rows = [blocked, waiting].map(|run| run.build(now()));
        write(&db.writable, rows.concat(), |_| ()).await.unwrap();
        let reason = |bundle: &Value| bundle["summary"]["liveness_reason"].clone();
        let plain = bundle(&db, &ids[0], None).await;
        assert_eq!(reason(&plain), "S-message");
        for action in ["drop", "mask", "hash"] {
            let policy = policy("failure_diagnostic", action);
            let hidden = bundle(&db, &ids[0], Some(&policy)).await;
            assert_eq!(found(&hidden, "S-message"), [""; 0], "{action}");
            named(&hidden, &plain, action);
            let plain = bundle(&db, &ids[1], None).await;
            assert!(reason(&plain).is_string());
            let kept = bundle(&db, &ids[1], Some(&policy)).await;
            assert_eq!(reason(&kept), reason(&plain), "{action}");
        }
    })
    .await;
}

/// Everything that is not as it was is named, and what is named is hidden.
fn named(bundle: &Value, plain: &Value, category: &str) {
    let paths: Vec<&str> = bundle["redaction"]["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    for path in &paths {
        let pointer = format!("/{}", path.replace('.', "/"));
        let left = bundle.pointer(&pointer).unwrap_or(&Value::Null);
        let sentence = left
            .as_str()
            .is_some_and(|text| text.ends_with("is redacted"));
        assert!(
            left.is_null() || left["redacted"] == true || sentence,
            "{category}: {path} is {left}"
        );
    }
    let mut changed = Vec::new();
    differing(bundle, plain, "", &mut changed);
    for path in changed {
        let of_itself = ["integrity", "redaction", "payload_manifest"];
        let named = paths.iter().any(|named| {
            path == *named
                || path
                    .strip_prefix(named)
                    .is_some_and(|rest| rest.starts_with('.'))
        });
        assert!(
            named || of_itself.iter().any(|part| path.starts_with(part)),
            "{category}: {path} is not named"
        );
    }
}

fn differing(a: &Value, b: &Value, path: &str, out: &mut Vec<String>) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, value) in a {
                differing(value, &b[key], &below(key), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                differing(a, b, &below(&n.to_string()), out);
            }
        }
        (a, b) if a == b => {}
        _ => out.push(path.to_owned()),
    }
}

#[tokio::test]
async fn every_run_says_what_was_hidden_sqlite() {
    rig::on(Dialect::Sqlite, |db| async move {
        for (n, situation) in shop::fill_short(&db).await.iter().enumerate() {
            let plain = bundle(&db, &situation.run_id, None).await;
            // Everything, and each category in turn.
            for (category, _) in [HIDES[HIDES.len() - 1], HIDES[n % HIDES.len()]] {
                let policy = policy(category, "mask");
                let bundle = bundle(&db, &situation.run_id, Some(&policy)).await;
                named(&bundle, &plain, category);
            }
        }
    })
    .await;
}
