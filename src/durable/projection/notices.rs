//! What is wrong with a run's rows: what reading them noted, and what only the whole shows.

use crate::{
    db::Val,
    durable::{
        store::snapshot::RunSnapshot,
        stored::{HistoryEvent, Notice, Notices, Problem},
    },
    run,
};

/// Every notice of one run.
pub fn notices(snapshot: &RunSnapshot) -> Notices {
    let mut notices = snapshot.notices.clone();
    broken_payloads(&snapshot.events, &mut notices);
    gaps(snapshot, &mut notices);
    notices
}

/// The same for a page, with a last line for what was left out.
pub fn shown(notices: &Notices) -> Vec<run::notice::Notice> {
    let mut shown: Vec<_> = notices
        .list()
        .iter()
        .map(|notice| run::notice::Notice {
            place: format!("{}.{}", notice.table, notice.column),
            row: notice.id.clone(),
            problem: notice.problem.sentence().to_owned(),
            raw: notice.raw.clone(),
        })
        .collect();
    if notices.left_out() > 0 {
        shown.push(run::notice::Notice {
            place: format!("{} more values", notices.left_out()),
            row: String::new(),
            problem: "are of the same kinds".to_owned(),
            raw: None,
        });
    }
    shown
}

/// An event's payload is an object; PHP writes an empty one as a list.
fn broken_payloads(events: &[HistoryEvent], notices: &mut Notices) {
    for event in events {
        let Some(text) = event.payload.as_deref() else {
            continue;
        };
        let problem = if !event.payload_is_json() {
            Problem::NotJson
        } else if !text.trim_start().starts_with(['{', '[', 'n']) {
            Problem::NotACollection
        } else {
            continue;
        };
        notices.note(Notice {
            table: HistoryEvent::TABLE,
            id: event.id.clone(),
            column: "payload",
            problem,
            raw: Val::from(text).shown(),
        });
    }
}

/// History is numbered from 1 without gaps, up to what the run says was written last.
fn gaps(snapshot: &RunSnapshot, notices: &mut Notices) {
    let mut note = |after: i64, before: i64| {
        let (first, last) = (after.saturating_add(1), before.saturating_sub(1));
        if first <= last {
            notices.note(Notice {
                table: HistoryEvent::TABLE,
                id: snapshot.run.id.clone(),
                column: "sequence",
                problem: Problem::MissingRows,
                raw: Some(if first == last {
                    first.to_string()
                } else {
                    format!("{first} to {last}")
                }),
            });
        }
    };
    let mut seen = 0;
    for event in &snapshot.events {
        note(seen, event.sequence);
        seen = seen.max(event.sequence);
    }
    if !snapshot.events.is_empty() {
        note(seen, snapshot.run.last_history_sequence.saturating_add(1));
    }
}
