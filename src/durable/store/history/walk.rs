//! The statements behind a window. Every one walks the unique index on run and sequence, and looks
//! at a bounded stretch of it.

use chrono::{DateTime, Utc};

use super::{EventFilter, Listed, Looked, PAYLOAD, WINDOW};
use crate::{
    db::{DbError, Dialect, Snapshot, Statement},
    durable::export::Policy,
};

/// How many events one request may look at for a filter by type.
const LOOKED: u32 = 5_000;
/// How many for a filter that must read what each event says.
const READ: usize = 2_000;

/// Along the history of one run, up or down.
pub(super) struct Walk<'r> {
    pub run_id: &'r str,
    pub start: i64,
    pub down: bool,
    pub policy: Option<&'r Policy>,
}

impl Walk<'_> {
    /// The event as the run may be told from it.
    pub fn told(&self, listed: Listed) -> Listed {
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

    pub async fn events(
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
    pub async fn by_type(
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
    pub async fn reading(
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

    pub async fn any_above(&self, snapshot: &mut Snapshot, sequence: i64) -> Result<bool, DbError> {
        let above = sequence.saturating_add(1);
        Ok(self.time_from(snapshot, above, false).await?.is_some())
    }

    /// The nearest event from a sequence on, and when it was recorded.
    pub async fn time_from(
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
