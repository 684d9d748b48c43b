//! A window of a run's events, read by sequence: a jump anywhere costs one window, however long
//! the history is.

mod filter;
mod walk;

use chrono::{DateTime, Utc};

pub use self::filter::{EventFilter, is_failure};
use self::walk::Walk;
use crate::{
    db::{DbError, Row, Snapshot},
    durable::{
        export::Policy,
        stored::{HistoryEvent, Notices},
    },
};

/// Events of one window.
pub const WINDOW: usize = 200;
/// Payloads beyond this many bytes are not read for a list.
const PAYLOAD: i64 = 64 * 1_024;

/// Where a window lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Latest,
    Oldest,
    /// Below this sequence.
    Before(i64),
    /// Above this sequence.
    After(i64),
    /// Around this sequence.
    Around(i64),
}

impl Place {
    /// The walk starts at this sequence and goes down, or up.
    fn start(self) -> (i64, bool) {
        match self {
            Self::Latest => (i64::MAX, true),
            Self::Oldest => (i64::MIN, false),
            Self::Before(sequence) => (sequence.saturating_sub(1), true),
            Self::After(sequence) => (sequence.saturating_add(1), false),
            Self::Around(sequence) => (
                sequence.saturating_add(i64::try_from(WINDOW / 2).unwrap_or(0)),
                true,
            ),
        }
    }
}

/// One event of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub event: HistoryEvent,
    /// Bytes of the payload; beyond a limit it is not read.
    pub bytes: i64,
}

impl Listed {
    pub fn is_read(&self) -> bool {
        self.bytes <= PAYLOAD
    }

    fn read(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            bytes: row.opt_int("payload_bytes")?.unwrap_or(0),
            // The whole run's notices stand above its sections.
            event: HistoryEvent::read(row, &mut Notices::default())?,
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventWindow {
    /// By sequence, upwards.
    pub events: Vec<Listed>,
    /// There are events below the window, or may be.
    pub more_below: bool,
    pub more_above: bool,
    /// Set when a filter was answered by looking at events one by one.
    pub looked: Option<Looked>,
}

/// How far a filter looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// At most this many events.
    pub events: usize,
    /// The last one looked at; none when the end of the history was reached.
    pub until: Option<i64>,
}

/// One window of a history that is already in memory, by the same rules.
pub fn window_of(
    events: &[HistoryEvent],
    filter: &EventFilter,
    place: Place,
    size: usize,
) -> EventWindow {
    let (start, down) = place.start();
    let types = filter.types();
    let fits = |event: &&HistoryEvent| {
        types.as_ref().is_none_or(|types| types.holds(event))
            && filter.keeps(event)
            && filter.finds(event)
    };
    let listed = |event: &HistoryEvent| Listed {
        event: event.clone(),
        bytes: i64::try_from(event.payload.as_ref().map_or(0, String::len)).unwrap_or(i64::MAX),
    };
    let want = size.saturating_add(1);
    let mut found: Vec<Listed> = if down {
        let below = events.iter().rev().filter(|event| event.sequence <= start);
        below.filter(fits).take(want).map(listed).collect()
    } else {
        let above = events.iter().filter(|event| event.sequence >= start);
        above.filter(fits).take(want).map(listed).collect()
    };
    let more = found.len() > size;
    found.truncate(size);
    let newest = found.iter().map(|listed| listed.event.sequence).max();
    let behind = match place {
        Place::Latest | Place::Oldest => false,
        Place::Before(_) | Place::After(_) => true,
        Place::Around(_) => events.last().map(|event| event.sequence) > newest,
    };
    if down {
        found.reverse();
    }
    EventWindow {
        events: found,
        more_below: if down { more } else { behind },
        more_above: if down { behind } else { more },
        looked: (!filter.is_empty()).then_some(Looked {
            events: events.len(),
            until: None,
        }),
    }
}

/// Reads one window, what a policy hides already hidden in its events. No text is found in what
/// is hidden.
pub async fn window(
    snapshot: &mut Snapshot,
    run_id: &str,
    filter: &EventFilter,
    place: Place,
    size: usize,
    policy: Option<&Policy>,
) -> Result<EventWindow, DbError> {
    let (start, down) = place.start();
    let walk = Walk {
        run_id,
        start,
        down,
        policy,
    };
    let want = size.saturating_add(1);
    let (mut found, looked) = if filter.is_empty() {
        let found = walk.events(snapshot, start, want).await?;
        let told = found.into_iter().map(|listed| walk.told(listed));
        (told.collect(), None)
    } else if filter.text.is_some() {
        let (found, looked) = walk.reading(snapshot, filter, want).await?;
        (found, Some(looked))
    } else {
        let (found, looked) = walk.by_type(snapshot, filter, want).await?;
        (found, Some(looked))
    };
    let more = found.len() > size || looked.is_some_and(|looked| looked.until.is_some());
    found.truncate(size);
    // What was walked from is on the other side; only the ends of the history have none.
    let behind = !matches!(place, Place::Latest | Place::Oldest);
    let newest = found.iter().map(|listed| listed.event.sequence).max();
    let behind = match place {
        Place::Around(_) => match newest {
            Some(newest) => walk.any_above(snapshot, newest).await?,
            None => false,
        },
        _ => behind,
    };
    if down {
        found.reverse();
    }
    Ok(EventWindow {
        events: found,
        more_below: if down { more } else { behind },
        more_above: if down { behind } else { more },
        looked,
    })
}

/// The first event at or after a moment: events are recorded in the order of their sequence, so
/// a search by halves finds it in a few lookups.
pub async fn sequence_at(
    snapshot: &mut Snapshot,
    run_id: &str,
    at: DateTime<Utc>,
) -> Result<Option<i64>, DbError> {
    let ends = Walk {
        run_id,
        start: i64::MAX,
        down: true,
        policy: None,
    };
    let Some((last, _)) = ends.time_from(snapshot, i64::MAX, true).await? else {
        return Ok(None);
    };
    let (mut low, mut high) = (1_i64, last);
    let mut found = last;
    while low <= high {
        let middle = low + (high - low) / 2;
        match ends.time_from(snapshot, middle, false).await? {
            Some((sequence, time)) if time.is_some_and(|time| time < at) => {
                low = sequence.saturating_add(1);
            }
            Some((sequence, _)) => {
                found = sequence;
                high = middle.saturating_sub(1);
            }
            None => high = middle.saturating_sub(1),
        }
    }
    Ok(Some(found))
}

/// One event by its sequence, whole.
pub async fn event(
    snapshot: &mut Snapshot,
    run_id: &str,
    sequence: i64,
) -> Result<Option<HistoryEvent>, DbError> {
    let mut q = snapshot.statement();
    q.push("select ")
        .push(HistoryEvent::COLUMNS)
        .push(" from {workflow_history_events} where workflow_run_id = ")
        .bind(run_id)
        .push(" and sequence = ")
        .bind(sequence);
    let row = snapshot.fetch_one(q).await?;
    row.map(|mut row| HistoryEvent::read(&mut row, &mut Notices::default()))
        .transpose()
}
