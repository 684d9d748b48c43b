//! What the targets do with their bytes.

use std::{io::Cursor, sync::LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use plimsoll::{
    db::{Db, Settings},
    demo::{catalogue, write::write},
    durable::{
        engine_config::EngineConfig,
        page,
        payload::avro::{self, Value},
        projection::{Context, Projected, detail::detail, diagnosis, drift, notices::notices},
        repair::Mode,
        store::{
            past::History,
            schema,
            snapshot::{RunSnapshot, TimelineCache},
        },
        stored::{EventType, Notices},
    },
    run::{timeline::draw::Range, window::Asked},
    web::bundles,
};

const NOW: &str = "2026-11-15T12:00:00Z";

/// Any bytes, as text and as a datum: an answer, never a panic; and what decodes is written
/// back and read again as the same value.
pub fn avro(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(value) = avro::decode(&text) {
        assert_eq!(avro::decode(&avro::encode(&value)).as_ref(), Ok(&value));
    }
    // The frame is right and only the datum is arbitrary: replace that of a null.
    let frame = avro::encode(&Value::Null);
    let mut bytes = STANDARD.decode(frame).unwrap();
    bytes.pop();
    bytes.extend_from_slice(data);
    if let Ok(value) = avro::decode(&STANDARD.encode(&bytes)) {
        let written = avro::encode(&value);
        assert_eq!(avro::decode(&written).as_ref(), Ok(&value));
        assert_eq!(avro::encode(&avro::decode(&written).unwrap()), written);
    }
}

/// A run of the demo, one of its events replaced: first byte which run, second which event,
/// third its type, the rest its payload.
pub fn event_payload(data: &[u8]) {
    let [run, event, event_type, payload @ ..] = data else {
        return;
    };
    let mut snapshot = RUNS[usize::from(*run) % RUNS.len()].clone();
    let count = snapshot.events.len();
    if count == 0 {
        return;
    }
    let mut events = snapshot.events.to_vec();
    let event = &mut events[usize::from(*event) % count];
    let words = EventType::KNOWN;
    event.event_type = words
        .get(usize::from(*event_type))
        .map_or_else(|| "Unheard".into(), |word| (*word).into());
    event.payload = Some(String::from_utf8_lossy(payload).into_owned());
    snapshot.events = History::new(events, Notices::default());
    let config = EngineConfig::defaults();
    let projected = Projected::of(Context {
        snapshot: &snapshot,
        now: NOW.parse().unwrap(),
        config: &config,
    });
    let document = serde_json::to_value(detail(&projected, None)).unwrap();
    assert_eq!(document["timeline"].as_array().map(Vec::len), Some(count));
    assert!(!diagnosis::diagnose(&projected).sentence.is_empty());
    drift::drift(&projected);
    notices(&projected);
}

/// Any bytes as an exported file: a verdict, and a page for what can be read.
pub fn bundle(data: &[u8]) {
    let Ok(kept) = bundles::read(Cursor::new(data), data.len() as u64, None) else {
        return;
    };
    let config = EngineConfig::defaults();
    let projected = Projected::of(Context {
        snapshot: &kept.opened.run,
        now: NOW.parse().unwrap(),
        config: &config,
    });
    page::page(
        &projected,
        Mode::Direct,
        &page::story(&projected),
        &Asked::default(),
        Range::default(),
    );
    page::steps::steps(&projected);
}

static RUNS: LazyLock<Vec<RunSnapshot>> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let url = format!("sqlite:{}", folder.path().join("demo.sqlite").display());
            let mut settings = Settings::new(url).writable();
            settings.create = true;
            let db = Db::connect(&settings).await.unwrap();
            schema::create(&db).await.unwrap();
            let situations: Vec<_> = catalogue(NOW.parse().unwrap()).collect();
            let rows = situations.iter().flat_map(|s| s.rows.clone()).collect();
            write(&db, rows, |_| ()).await.unwrap();
            let mut snapshot = db.snapshot().await.unwrap();
            let mut runs = Vec::new();
            for situation in &situations {
                let run = RunSnapshot::load(&mut snapshot, &situation.run_id, TimelineCache::Whole);
                runs.extend(run.await.unwrap());
            }
            snapshot.end().await;
            db.close().await;
            runs
        })
});
