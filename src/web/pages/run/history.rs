//! `/instances/{instance}/runs/{run}/history`: the events of a run, a window at a time.

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::{Html, IntoResponse as _, Redirect, Response},
};

use chrono::{DateTime, Utc};

use super::missing;
use crate::{
    db::Snapshot,
    durable::{
        page::history::{KINDS, window, word},
        projection::timeline::Kind,
        store::{
            head::belongs,
            history::{self as store, EventFilter, EventWindow, Place, WINDOW},
            reader::Reader,
            runs::moment,
        },
        stored::{EventType, HistoryEvent},
    },
    run::{history::History, tag::Tag, window::Asked},
    web::{
        error::AppError,
        filters,
        layout::{Layout, Nav},
        state::App,
    },
};

#[derive(Template)]
#[template(path = "pages/history.html")]
struct HistoryView {
    layout: Layout,
    instance_id: String,
    events: Events,
}

/// The list of events, in the run's page and in its own.
#[derive(Debug)]
pub struct Events {
    pub history: History,
    /// Address of the run.
    pub here: String,
    /// Whether the list has the page to itself.
    pub alone: bool,
    asked: Asked,
    pub filter: EventFilter,
    pub newest_first: bool,
}

/// Where the events of a run are.
#[derive(Debug)]
pub enum Source<'s> {
    Stored {
        snapshot: &'s mut Snapshot,
        run_id: &'s str,
        reader: &'s Reader,
    },
    /// Of a bundle, all in memory.
    Held(&'s [HistoryEvent]),
}

impl Source<'_> {
    async fn window(
        &mut self,
        filter: &EventFilter,
        place: Place,
        size: usize,
    ) -> Result<EventWindow, AppError> {
        Ok(match self {
            Self::Stored {
                snapshot,
                run_id,
                reader,
            } => {
                let window = reader.window(snapshot, run_id, filter, place, size);
                window.await?
            }
            Self::Held(events) => store::window_of(events, filter, place, size),
        })
    }

    /// The first event at or after a moment.
    async fn sequence_at(&mut self, at: DateTime<Utc>) -> Result<Option<i64>, AppError> {
        Ok(match self {
            Self::Stored {
                snapshot, run_id, ..
            } => store::sequence_at(snapshot, run_id, at).await?,
            Self::Held(events) => events
                .iter()
                .find(|event| event.time().is_none_or(|time| time >= at))
                .or(events.last())
                .map(|event| event.sequence),
        })
    }
}

pub async fn show(
    State(app): State<App>,
    layout: Layout,
    Path((instance, run)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, AppError> {
    let asked = Asked::parse(query.as_deref().unwrap_or_default());
    let here = layout.run_href(&instance, &run);
    let mut snapshot = app.db()?.snapshot().await?;
    if !belongs(&mut snapshot, &instance, &run).await? {
        return Err(missing(&instance, Some(&run)));
    }
    let source = Source::Stored {
        snapshot: &mut snapshot,
        run_id: &run,
        reader: &app.reader,
    };
    let layout = layout.at(Nav::Runs);
    let answer = answer(source, layout, here, instance, asked).await;
    snapshot.end().await;
    answer
}

/// The page of events, wherever they are.
pub async fn answer(
    mut source: Source<'_>,
    layout: Layout,
    here: String,
    instance: String,
    asked: Asked,
) -> Result<Response, AppError> {
    if let Some(go) = asked.get("go").map(str::trim).filter(|go| !go.is_empty()) {
        let sequence = if let Ok(sequence) = go.trim_start_matches('#').parse() {
            Some(sequence)
        } else {
            let at = moment(go, layout.zone).map_err(|why| {
                AppError::invalid("go", format!("Not an event's number, and no time: {why}"))
            })?;
            source.sequence_at(at).await?
        };
        return Ok(to_event(&here, sequence.unwrap_or(1)).into_response());
    }
    let filter = filter_of(&asked)?;
    let newest_first = asked.get("order") != Some("oldest");
    let place = place_of(&asked, newest_first)?;
    if asked.get("jump") == Some("failure") {
        let failures = EventFilter {
            failures: true,
            ..EventFilter::default()
        };
        let found = source.window(&failures, place, 1).await?;
        let to = if let Some(listed) = found.events.first() {
            to_event(&here, listed.event.sequence)
        } else {
            // None in what was looked at: there it says so, and offers to go on.
            let query = asked.changed(&[("jump", None), ("failures", Some("1"))]);
            Redirect::to(&format!("{here}/history{query}"))
        };
        return Ok(to.into_response());
    }
    let found = source.window(&filter, place, WINDOW).await?;
    let view = HistoryView {
        events: Events {
            history: window(&found, place, newest_first),
            here,
            alone: true,
            filter,
            asked,
            newest_first,
        },
        layout: layout.title(format!("History of {instance}")),
        instance_id: instance,
    };
    Ok(Html(view.render()?).into_response())
}

fn to_event(here: &str, sequence: i64) -> Redirect {
    Redirect::to(&format!("{here}/history?at={sequence}#event-{sequence}"))
}

fn filter_of(asked: &Asked) -> Result<EventFilter, AppError> {
    let given = |name| {
        asked
            .get(name)
            .map(str::trim)
            .filter(|value| !value.is_empty())
    };
    Ok(EventFilter {
        event_type: given("type").map(str::to_owned),
        kind: match given("kind") {
            None => None,
            Some(name) => Some(
                KINDS
                    .into_iter()
                    .find(|kind| word(*kind) == name)
                    .ok_or_else(|| {
                        AppError::invalid("kind", format!("{name} is no kind of event."))
                    })?,
            ),
        },
        failures: given("failures").is_some(),
        text: given("q").map(str::to_owned),
    })
}

fn place_of(asked: &Asked, newest_first: bool) -> Result<Place, AppError> {
    let number = |name: &'static str| match asked.get(name) {
        None => Ok(None),
        Some(value) => value.parse::<i64>().map(Some).map_err(|_| {
            AppError::invalid(name, format!("{value} is not the number of an event."))
        }),
    };
    Ok(match (number("at")?, number("before")?, number("after")?) {
        (Some(at), _, _) => Place::Around(at),
        (None, Some(before), _) => Place::Before(before),
        (None, None, Some(after)) => Place::After(after),
        (None, None, None) if newest_first => Place::Latest,
        (None, None, None) => Place::Oldest,
    })
}

impl Events {
    /// The whole of a short history, as part of the run's page.
    pub fn part(here: &str, history: History) -> Self {
        Self {
            history,
            here: here.to_owned(),
            alone: false,
            asked: Asked::default(),
            filter: EventFilter::default(),
            newest_first: true,
        }
    }

    fn at(&self, changes: &[(&str, Option<&str>)]) -> String {
        let mut all = vec![
            ("at", None),
            ("before", None),
            ("after", None),
            ("jump", None),
            ("go", None),
        ];
        all.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        all.extend_from_slice(changes);
        format!("{}/history{}", self.here, self.asked.changed(&all))
    }

    pub fn older(&self) -> Option<String> {
        let edge = self.history.older?;
        Some(self.at(&[("before", Some(&edge.to_string()))]))
    }

    pub fn newer(&self) -> Option<String> {
        let edge = self.history.newer?;
        Some(self.at(&[("after", Some(&edge.to_string()))]))
    }

    /// What a filter has not looked at yet is offered in other words.
    pub fn older_label(&self) -> &'static str {
        if self.history.looks_on {
            "Look further back"
        } else {
            "Older"
        }
    }

    pub fn newer_label(&self) -> &'static str {
        if self.history.looks_on {
            "Look further on"
        } else {
            "Newer"
        }
    }

    pub fn first(&self) -> Option<String> {
        let beyond = self.history.older.is_some() || self.is_astray();
        beyond.then(|| self.at(&[("after", Some("0"))]))
    }

    pub fn latest(&self) -> Option<String> {
        let beyond = self.history.newer.is_some() || self.is_astray();
        beyond.then(|| self.at(&[]))
    }

    /// The address leads before the first event or behind the last.
    fn is_astray(&self) -> bool {
        let leads = |name| self.asked.get(name).is_some();
        self.history.rows.is_empty() && (leads("before") || leads("after"))
    }

    pub fn turned(&self) -> String {
        self.at(&[("order", self.newest_first.then_some("oldest"))])
    }

    /// The failure before the one the address names, or before where the reader begins; none
    /// where it is known that there is none.
    pub fn older_failure(&self) -> Option<String> {
        let from = self.edge(true)?;
        let more = self.history.older.is_some();
        let failed = |sequence| sequence < from;
        self.may_lead(more, failed)
            .then(|| self.jump("before", from))
    }

    pub fn newer_failure(&self) -> Option<String> {
        let from = self.edge(false)?;
        let more = self.history.newer.is_some();
        let failed = |sequence| sequence > from;
        self.may_lead(more, failed)
            .then(|| self.jump("after", from))
    }

    /// Whether a failure that way is in view, or any may be out of it.
    fn may_lead(&self, more: bool, that_way: impl Fn(i64) -> bool) -> bool {
        let mut failures = self.history.rows.iter().filter(|row| row.failure.is_some());
        more || self.is_filtered() || failures.any(|row| that_way(row.sequence))
    }

    fn jump(&self, way: &str, from: i64) -> String {
        format!("{}/history?jump=failure&{way}={from}", self.here)
    }

    fn edge(&self, older: bool) -> Option<i64> {
        let rows = &self.history.rows;
        let chosen = rows.iter().find(|row| row.chosen).map(|row| row.sequence);
        let sequences = rows.iter().map(|row| row.sequence);
        // From the first row, where the reader begins: the failures in view below it count, and
        // that row itself among them.
        chosen.or_else(|| match (self.newest_first, older) {
            (true, true) => Some(sequences.max()?.saturating_add(1)),
            (true, false) => sequences.max(),
            (false, true) => sequences.min(),
            (false, false) => Some(sequences.min()?.saturating_sub(1)),
        })
    }

    pub fn permalink(&self, sequence: &i64) -> String {
        format!("{}/history?at={sequence}#event-{sequence}", self.here)
    }

    pub fn payload(&self, sequence: &i64) -> String {
        format!("{}/payload?of=event&id={sequence}&part=payload", self.here)
    }

    pub fn action(&self) -> String {
        format!("{}/history", self.here)
    }

    pub fn types(&self) -> &'static [&'static str] {
        EventType::KNOWN
    }

    pub fn kinds(&self) -> [&'static str; KINDS.len()] {
        KINDS.map(word)
    }

    pub fn is_type(&self, name: &str) -> bool {
        self.filter.event_type.as_deref() == Some(name)
    }

    /// A type this version does not know, as the address asks for it.
    pub fn other_type(&self) -> Option<&str> {
        let asked = self.filter.event_type.as_deref()?;
        (!EventType::KNOWN.contains(&asked)).then_some(asked)
    }

    pub fn is_kind(&self, name: &str) -> bool {
        self.filter
            .kind
            .is_some_and(|kind: Kind| word(kind) == name)
    }

    pub fn is_filtered(&self) -> bool {
        !self.filter.is_empty()
    }

    pub fn empty(&self) -> &'static str {
        match (self.is_filtered(), self.filter.failures) {
            (true, true) => "No failure matches",
            (true, false) => "No event matches",
            (false, _) => "No events here",
        }
    }

    /// Why there is nothing, and where to go.
    pub fn empty_hint(&self) -> String {
        if self.history.looks_on {
            self.history.note.clone()
        } else if self.is_astray() {
            "The address leads beyond the history: go to its latest or first events.".to_owned()
        } else if self.is_filtered() {
            "All of the history was looked at.".to_owned()
        } else {
            "Nothing has happened in this run yet.".to_owned()
        }
    }

    pub fn missing_note(&self) -> Option<(Tag, String)> {
        let sequence = self.history.missing?;
        Some((
            Tag::unknown("missing"),
            format!("There is no event {sequence} in this run; these are its neighbours."),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{history::Event, window::Window};

    /// The first events of a run, of which these failed, newest first.
    fn events(count: i64, failed: &[i64]) -> Events {
        let row = |sequence| Event {
            sequence,
            kind: "activity",
            event_type: "ActivityFailed".into(),
            summary: String::new(),
            at: None,
            failure: failed.contains(&sequence).then(|| Tag::unknown("failed")),
            chosen: false,
            has_payload: false,
        };
        let history = History {
            window: Window::default(),
            rows: (1..=count).rev().map(row).collect(),
            ..History::default()
        };
        Events::part("/r", history)
    }

    #[test]
    fn a_way_leads_back_from_beyond_the_history() {
        let mut beyond = events(0, &[]);
        assert_eq!((beyond.first(), beyond.latest()), (None, None));
        beyond.asked = Asked::parse("after=5000");
        assert_eq!(beyond.first().as_deref(), Some("/r/history?after=0"));
        assert_eq!(beyond.latest().as_deref(), Some("/r/history"));
        assert!(beyond.empty_hint().contains("beyond the history"));
    }

    #[test]
    fn another_failure_is_offered_only_where_there_may_be_one() {
        let chosen = |mut events: Events, sequence| {
            let mut rows = events.history.rows.iter_mut();
            rows.find(|row| row.sequence == sequence).unwrap().chosen = true;
            events
        };
        let oldest_first = |mut events: Events| {
            events.newest_first = false;
            events.history.rows.reverse();
            events
        };
        let within = |mut events: Events, older, newer| {
            (events.history.older, events.history.newer) = (older, newer);
            events
        };
        let filtered = |mut events: Events| {
            events.filter.text = Some("card".into());
            events
        };
        for (what, events, older, newer) in [
            ("no failure in a whole history", events(10, &[]), None, None),
            ("no event at all", events(0, &[]), None, None),
            (
                "from the newest event back",
                events(10, &[8]),
                Some("before=11"),
                None,
            ),
            (
                "the newest event failed",
                events(10, &[10]),
                Some("before=11"),
                None,
            ),
            (
                "from the oldest event on",
                oldest_first(events(10, &[8])),
                None,
                Some("after=0"),
            ),
            (
                "between two",
                chosen(events(10, &[3, 8]), 5),
                Some("before=5"),
                Some("after=5"),
            ),
            ("at the last one", chosen(events(10, &[8]), 8), None, None),
            (
                "more is not in view",
                within(events(10, &[]), Some(1), Some(10)),
                Some("before=11"),
                Some("after=10"),
            ),
            (
                "a filter may hide some",
                filtered(events(10, &[])),
                Some("before=11"),
                Some("after=10"),
            ),
        ] {
            let to = |place: &str| format!("/r/history?jump=failure&{place}");
            assert_eq!(events.older_failure(), older.map(to), "{what}: older");
            assert_eq!(events.newer_failure(), newer.map(to), "{what}: newer");
        }
    }
}
