//! A window of a run's events, read by sequence: a jump anywhere costs one window, however long
//! the history is. Every statement walks the unique index on run and sequence.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{
    db::{DbError, Dialect, Row, Snapshot, Statement},
    durable::{
        export::Policy,
        projection::{failures, timeline::Kind},
        stored::{EventType, HistoryEvent, Notices, payloads::failure::FailureName},
    },
};

/// Events of one window.
pub const WINDOW: usize = 200;
/// How many events one request may look at for a filter by type.
const LOOKED: u32 = 5_000;
/// How many for a filter that must read what each event says.
const READ: usize = 2_000;
/// Payloads beyond this many bytes are not read for a list.
const PAYLOAD: i64 = 64 * 1_024;

/// Which events are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub event_type: Option<String>,
    pub kind: Option<Kind>,
    pub failures: bool,
    /// Found in the type, the ids or anything the event says, whatever its case.
    pub text: Option<String>,
}

impl EventFilter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The types that can match; none when all can.
    fn types(&self) -> Option<Types> {
        let known = |keep: &dyn Fn(&EventType) -> bool| {
            EventType::KNOWN
                .iter()
                .copied()
                .filter(|name| keep(&EventType::from(*name)))
                .collect()
        };
        match (&self.event_type, self.failures, self.kind) {
            (Some(one), _, _) => Some(Types::One(one.clone())),
            (None, true, kind) => Some(Types::Only(known(&|event_type| {
                may_fail(event_type) && kind.is_none_or(|kind| Kind::of(event_type) == kind)
            }))),
            // What we do not know counts as the workflow's own.
            (None, false, Some(Kind::Workflow)) => Some(Types::AllBut(known(&|event_type| {
                Kind::of(event_type) != Kind::Workflow
            }))),
            (None, false, Some(kind)) => Some(Types::Only(known(&|event_type| {
                Kind::of(event_type) == kind
            }))),
            (None, false, None) => None,
        }
    }

    /// What only the event itself can answer, but for its text.
    fn keeps(&self, event: &HistoryEvent) -> bool {
        (!self.failures || is_failure(event))
            && self
                .kind
                .is_none_or(|kind| Kind::of(&event.event_type) == kind)
    }

    fn finds(&self, event: &HistoryEvent) -> bool {
        self.text.as_deref().is_none_or(|text| says(event, text))
    }
}

/// The event types a statement asks for.
enum Types {
    One(String),
    Only(Vec<&'static str>),
    AllBut(Vec<&'static str>),
}

impl Types {
    fn push(&self, q: &mut Statement) {
        match self {
            Self::One(one) => {
                q.push("event_type = ").bind(one.as_str());
            }
            Self::Only(list) => {
                q.push("event_type in ").bind_list(list.iter().copied());
            }
            Self::AllBut(list) => {
                q.push("event_type not in ").bind_list(list.iter().copied());
            }
        }
    }
}

/// Events that tell of something that went wrong, or may.
fn may_fail(event_type: &EventType) -> bool {
    failures::defaults(event_type).is_some()
        || matches!(
            event_type,
            EventType::ActivityRetryScheduled
                | EventType::ConditionWaitTimedOut
                | EventType::ParentClosePolicyFailed
                | EventType::ServiceCallFailed
                | EventType::StartRejected
                | EventType::UpdateRejected
        )
}

/// Whether something went wrong. An update that completed may have failed.
pub fn is_failure(event: &HistoryEvent) -> bool {
    match event.event_type {
        EventType::UpdateCompleted => {
            let named: FailureName = event.as_payload();
            named.failure_id.is_some()
        }
        ref event_type => may_fail(event_type),
    }
}

/// Searched as stored, and once more without the escapes PHP writes for letters and slashes:
/// the operator types them as they are.
fn says(event: &HistoryEvent, text: &str) -> bool {
    let plain = text.to_lowercase();
    let found = |place: &str| place.to_lowercase().contains(&plain);
    found(event.event_type.as_str())
        || found(&event.id)
        || event.workflow_task_id.as_deref().is_some_and(found)
        || event.workflow_command_id.as_deref().is_some_and(found)
        || event.payload.as_deref().is_some_and(|payload| {
            found(payload)
                || serde_json::from_str::<Value>(payload).is_ok_and(|value| {
                    let quoted = Value::from(text).to_string().to_lowercase();
                    let inside = quoted.trim_matches('"');
                    value.to_string().to_lowercase().contains(inside)
                })
        })
}

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

/// Along the history of one run, up or down.
struct Walk<'r> {
    run_id: &'r str,
    start: i64,
    down: bool,
    policy: Option<&'r Policy>,
}

impl Walk<'_> {
    /// The event as the run may be told from it.
    fn told(&self, listed: Listed) -> Listed {
        match self.policy {
            Some(policy) => Listed {
                event: policy.told_event(listed.event),
                ..listed
            },
            None => listed,
        }
    }

    fn push_from(&self, q: &mut Statement, start: i64, down: bool) {
        q.push(" from {workflow_history_events} where workflow_run_id = ")
            .bind(self.run_id)
            .push(if down {
                " and sequence <= "
            } else {
                " and sequence >= "
            })
            .bind(start)
            .push(if down {
                " order by sequence desc"
            } else {
                " order by sequence"
            });
    }

    fn push_listed(q: &mut Statement) {
        let (bytes, payload) = match q.dialect() {
            Dialect::Postgres => (
                "octet_length(payload::text)",
                "case when octet_length(payload::text) <= ",
            ),
            Dialect::Sqlite | Dialect::MySql => (
                "octet_length(payload)",
                "case when octet_length(payload) <= ",
            ),
        };
        q.push("select ")
            .push(
                "id, workflow_run_id, sequence, event_type, workflow_task_id, \
                 workflow_command_id, recorded_at, created_at, ",
            )
            .push(bytes)
            .push(" as payload_bytes, ")
            .push(payload)
            .bind(PAYLOAD)
            .push(" then payload end as payload");
    }

    async fn events(
        &self,
        snapshot: &mut Snapshot,
        start: i64,
        most: usize,
    ) -> Result<Vec<Listed>, DbError> {
        let mut q = snapshot.statement();
        Self::push_listed(&mut q);
        self.push_from(&mut q, start, self.down);
        q.push(" limit ")
            .bind(i64::try_from(most).unwrap_or(i64::MAX));
        snapshot
            .fetch(q)
            .await?
            .iter_mut()
            .map(Listed::read)
            .collect()
    }

    /// By type: first which events, without what they say, then those.
    async fn by_type(
        &self,
        snapshot: &mut Snapshot,
        filter: &EventFilter,
        want: usize,
    ) -> Result<(Vec<Listed>, Looked), DbError> {
        let mut q = snapshot.statement();
        // The inner limit is a fence: the index is entered at the start and left after it.
        q.push("select sequence from (select sequence, event_type");
        self.push_from(&mut q, self.start, self.down);
        q.push(" limit ").bind(LOOKED).push(") as w where ");
        match filter.types() {
            Some(types) => types.push(&mut q),
            None => {
                q.push("1 = 1");
            }
        }
        q.push(if self.down {
            " order by sequence desc limit "
        } else {
            " order by sequence limit "
        })
        .bind(i64::try_from(want).unwrap_or(i64::MAX));
        let sequences: Vec<i64> = snapshot
            .fetch(q)
            .await?
            .iter_mut()
            .map(|row| row.int("sequence"))
            .collect::<Result<_, _>>()?;

        let mut q = snapshot.statement();
        q.push("select sequence");
        self.push_from(&mut q, self.start, self.down);
        q.push(" limit 1 offset ").bind(LOOKED - 1);
        let boundary = match snapshot.fetch_one(q).await? {
            Some(mut row) => Some(row.int("sequence")?),
            None => None,
        };

        let mut found = Vec::new();
        if !sequences.is_empty() {
            let mut q = snapshot.statement();
            Self::push_listed(&mut q);
            q.push(" from {workflow_history_events} where workflow_run_id = ")
                .bind(self.run_id)
                .push(" and sequence in ")
                .bind_list(sequences.iter().copied())
                .push(if self.down {
                    " order by sequence desc"
                } else {
                    " order by sequence"
                });
            for mut row in snapshot.fetch(q).await? {
                let listed = self.told(Listed::read(&mut row)?);
                if filter.keeps(&listed.event) {
                    found.push(listed);
                }
            }
        }
        let until = if sequences.len() < want {
            boundary
        } else if found.len() < want {
            // Some only looked like it by their type: go on behind the last of them.
            sequences.last().copied()
        } else {
            None
        };
        Ok((
            found,
            Looked {
                events: LOOKED as usize,
                until,
            },
        ))
    }

    /// By what events say: a stretch at a time, until there are enough or enough were read.
    async fn reading(
        &self,
        snapshot: &mut Snapshot,
        filter: &EventFilter,
        want: usize,
    ) -> Result<(Vec<Listed>, Looked), DbError> {
        let types = filter.types();
        let mut found = Vec::new();
        let mut start = self.start;
        let mut read = 0;
        let mut until = None;
        while read < READ && found.len() < want {
            let stretch = self.events(snapshot, start, WINDOW).await?;
            read += stretch.len();
            let Some(last) = stretch.last().map(|listed| listed.event.sequence) else {
                until = None;
                break;
            };
            let ended = stretch.len() < WINDOW;
            let of_type = |listed: &Listed| {
                let types = types.as_ref();
                types.is_none_or(|types| types.holds(&listed.event))
            };
            let said = stretch
                .into_iter()
                .filter(of_type)
                .filter(|listed| match self.policy {
                    Some(policy) => filter.finds(&policy.shown_event(listed.event.clone())),
                    None => filter.finds(&listed.event),
                })
                .map(|listed| self.told(listed));
            found.extend(said.filter(|listed| filter.keeps(&listed.event)));
            until = (!ended).then_some(last);
            if ended {
                break;
            }
            start = if self.down {
                last.saturating_sub(1)
            } else {
                last.saturating_add(1)
            };
        }
        let full = found.len() >= want;
        Ok((
            found,
            Looked {
                events: read,
                until: if full { None } else { until },
            },
        ))
    }

    async fn any_above(&self, snapshot: &mut Snapshot, sequence: i64) -> Result<bool, DbError> {
        let above = sequence.saturating_add(1);
        Ok(self.time_from(snapshot, above, false).await?.is_some())
    }

    /// The nearest event from a sequence on, and when it was recorded.
    async fn time_from(
        &self,
        snapshot: &mut Snapshot,
        start: i64,
        down: bool,
    ) -> Result<Option<(i64, Option<DateTime<Utc>>)>, DbError> {
        let mut q = snapshot.statement();
        q.push("select sequence, recorded_at, created_at");
        self.push_from(&mut q, start, down);
        q.push(" limit 1");
        let Some(mut row) = snapshot.fetch_one(q).await? else {
            return Ok(None);
        };
        let recorded = row.opt_time("recorded_at")?;
        Ok(Some((
            row.int("sequence")?,
            recorded.or(row.opt_time("created_at")?),
        )))
    }
}

impl Types {
    fn holds(&self, event: &HistoryEvent) -> bool {
        let name = event.event_type.as_str();
        match self {
            Self::One(one) => one == name,
            Self::Only(list) => list.contains(&name),
            Self::AllBut(list) => !list.contains(&name),
        }
    }
}
