//! One page of runs, by keyset, at a cost that does not depend on how deep it lies.

use chrono::{DateTime, Utc};

use super::{
    access::{Access, Path},
    condition,
    cursor::{Cursor, Key, Way},
    filter::Filter,
};
use crate::{
    db::{DbError, Snapshot, Statement},
    durable::stored::RunSummary,
};

/// How many rows one request may look at for a filter no index serves.
pub const WINDOW: u32 = 5_000;

/// How many runs may share a key before a lookup by it becomes an ordered walk.
const LOOKUP: u32 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    NewestFirst,
    OldestFirst,
}

#[derive(Clone, Debug)]
pub struct PageRequest {
    pub filter: Filter,
    pub direction: Direction,
    pub cursor: Option<Cursor>,
    pub size: u32,
}

/// How far a windowed page looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// At most this many rows.
    pub rows: u32,
    /// The time of the last row looked at; none when the list's end was reached.
    pub until: Option<DateTime<Utc>>,
    /// Whether only open runs were looked at, because only they can match.
    pub open_only: bool,
}

#[derive(Clone, Debug)]
pub struct RunPage {
    pub rows: Vec<RunSummary>,
    /// Towards the list's beginning.
    pub previous: Option<Cursor>,
    /// Further on; for a windowed page also when this page is not full.
    pub next: Option<Cursor>,
    /// Set when the filter was answered row by row.
    pub looked: Option<Looked>,
}

/// Reads one page.
pub async fn page(snapshot: &mut Snapshot, request: &PageRequest) -> Result<RunPage, DbError> {
    let mut access = Access::choose(&request.filter);
    if access.path.is_lookup() && lookup_is_too_wide(snapshot, &access).await? {
        access = Access::choose_ordered(&request.filter);
    }
    let query = Query { access, request };
    if query.access.path.is_lookup() || !query.access.is_windowed() {
        query.plain(snapshot).await
    } else {
        query.windowed(snapshot).await
    }
}

async fn lookup_is_too_wide(snapshot: &mut Snapshot, access: &Access<'_>) -> Result<bool, DbError> {
    let mut q = snapshot.statement();
    q.push("select count(*) as n from (select 1 as one from {workflow_run_summaries} where ");
    access.push_served(&mut q);
    q.push(" limit ").bind(LOOKUP + 1).push(") as few");
    let n = snapshot
        .fetch_one(q)
        .await?
        .map_or(Ok(0), |mut row| row.int("n"))?;
    Ok(n > i64::from(LOOKUP))
}

/// The cursor that skips `rows` rows from the beginning: a bounded walk of the index, for
/// callers that count pages.
pub async fn skip_to(
    snapshot: &mut Snapshot,
    filter: &Filter,
    direction: Direction,
    rows: u32,
) -> Result<Option<Cursor>, DbError> {
    let request = PageRequest {
        filter: filter.clone(),
        direction,
        cursor: None,
        size: 1,
    };
    let query = Query {
        access: Access::choose_ordered(filter),
        request: &request,
    };
    Ok(query
        .key_at(snapshot, rows.saturating_sub(1))
        .await?
        .map(Cursor::next))
}

struct Query<'r> {
    access: Access<'r>,
    request: &'r PageRequest,
}

impl Query<'_> {
    /// Whether the walk goes down in time: newest first and on, or oldest first and back.
    fn descends(&self) -> bool {
        let on = self
            .request
            .cursor
            .as_ref()
            .is_none_or(|cursor| cursor.way == Way::Next);
        on == (self.request.direction == Direction::NewestFirst)
    }

    fn backwards(&self) -> bool {
        self.request
            .cursor
            .as_ref()
            .is_some_and(|cursor| cursor.way == Way::Previous)
    }

    /// A page whose every term an index serves, or a lookup of few rows.
    async fn plain(&self, snapshot: &mut Snapshot) -> Result<RunPage, DbError> {
        let want = self.request.size + 1;
        let mut rows = self.rows(snapshot, Section::Timed, want, None).await?;
        let missing = want - u32::try_from(rows.len()).unwrap_or(want);
        if missing > 0 && self.may_have_untimed() {
            rows.extend(self.rows(snapshot, Section::Untimed, missing, None).await?);
        }
        Ok(self.assemble(rows, None))
    }

    /// A page whose terms are checked row by row inside a bounded window.
    async fn windowed(&self, snapshot: &mut Snapshot) -> Result<RunPage, DbError> {
        let rules = condition::needs_rules(&self.access.residual);
        // Where a rule has the last word SQL cannot count its rows: take all it narrows to.
        let want = if rules { WINDOW } else { self.request.size + 1 };
        let boundary = self.key_at(snapshot, WINDOW - 1).await?;
        let mut rows = self
            .rows(snapshot, Section::Timed, want, Some(WINDOW))
            .await?;
        if boundary.is_none() && self.may_have_untimed() {
            rows.extend(
                self.rows(snapshot, Section::Untimed, want, Some(WINDOW))
                    .await?,
            );
        }
        rows.retain(|row| condition::keeps(&self.access.residual, row));
        let looked = Looked {
            rows: WINDOW,
            until: boundary.as_ref().and_then(|key| key.at),
            open_only: self
                .access
                .bucket
                .as_ref()
                .is_some_and(|bucket| bucket.as_str() == "running")
                && self.request.filter.get("status_bucket").is_none(),
        };
        let mut page = self.assemble(rows, Some(looked));
        if let (None, Some(key)) = (self.onward(&page), boundary) {
            let cursor = Some(Cursor {
                way: if self.backwards() {
                    Way::Previous
                } else {
                    Way::Next
                },
                key,
            });
            if self.backwards() {
                page.previous = cursor
            } else {
                page.next = cursor
            }
        }
        Ok(page)
    }

    fn onward<'p>(&self, page: &'p RunPage) -> Option<&'p Cursor> {
        if self.backwards() {
            page.previous.as_ref()
        } else {
            page.next.as_ref()
        }
    }

    /// Rows without a time stand at the far end of a newest-first list.
    fn may_have_untimed(&self) -> bool {
        self.request.direction == Direction::NewestFirst && !self.backwards()
    }

    /// The order key of the row `offset` rows on: a bounded walk along the index alone.
    async fn key_at(&self, snapshot: &mut Snapshot, offset: u32) -> Result<Option<Key>, DbError> {
        let mut q = snapshot.statement();
        q.push("select ")
            .push(self.access.path.key())
            .push(" as at, id from {workflow_run_summaries} where ");
        self.push_place(&mut q, Section::Timed);
        self.push_order(&mut q);
        q.push(" limit 1 offset ").bind(offset);
        let Some(mut row) = snapshot.fetch_one(q).await? else {
            return Ok(None);
        };
        let at = if self.access.path == Path::Bucket {
            row.opt_time("at")
        } else {
            row.opt_utc("at")
        }?;
        Ok(Some(Key {
            at,
            id: row.text("id")?,
        }))
    }

    async fn rows(
        &self,
        snapshot: &mut Snapshot,
        section: Section,
        limit: u32,
        window: Option<u32>,
    ) -> Result<Vec<RunSummary>, DbError> {
        if section == Section::Timed
            && self
                .request
                .cursor
                .as_ref()
                .is_some_and(|c| c.key.at.is_none())
            && !self.backwards()
        {
            return Ok(Vec::new());
        }
        let q = self.select(snapshot.statement(), section, limit, window);
        snapshot
            .fetch(q)
            .await?
            .iter_mut()
            .map(RunSummary::read)
            .collect()
    }

    fn select(
        &self,
        mut q: Statement,
        section: Section,
        limit: u32,
        window: Option<u32>,
    ) -> Statement {
        let lookup = self.access.path.is_lookup();
        let window = if lookup { Some(LOOKUP) } else { window };
        q.push("select ")
            .columns("workflow_run_summaries", RunSummary::COLUMNS);
        let Some(window) = window else {
            q.push(" from {workflow_run_summaries} where ");
            self.push_place(&mut q, section);
            self.push_order(&mut q);
            q.push(" limit ").bind(limit);
            return q;
        };
        // The inner limit is a fence: whatever the planner thinks of the outer terms, the
        // table is entered through the index and left after `window` rows.
        q.push(" from (select ")
            .columns("workflow_run_summaries", RunSummary::COLUMNS)
            .push(" from {workflow_run_summaries} where ");
        if lookup {
            self.access.push_served(&mut q);
        } else {
            self.push_place(&mut q, section);
            self.push_order(&mut q);
        }
        q.push(" limit ").bind(window).push(") as w where 1 = 1");
        for term in &self.access.residual {
            q.push(" and ");
            condition::push(&mut q, term);
        }
        if lookup {
            q.push(" and ");
            self.push_cursor(&mut q, section);
        }
        self.push_order(&mut q);
        q.push(" limit ").bind(limit);
        q
    }

    /// Where in the index to start.
    fn push_place(&self, q: &mut Statement, section: Section) {
        self.access.push_served(q);
        q.push(" and ");
        self.push_cursor(q, section);
    }

    fn push_cursor(&self, q: &mut Statement, section: Section) {
        let column = self.access.path.key();
        let cursor = self.request.cursor.as_ref();
        match (section, cursor.map(|cursor| &cursor.key)) {
            (Section::Timed, Some(Key { at: Some(at), id })) => {
                // This form, and neither the row-value nor the `a < ? or (a = ? and …)` one,
                // enters the index in the middle on all three databases.
                let (bound, beyond) = if self.descends() {
                    (" <= ", " < ")
                } else {
                    (" >= ", " > ")
                };
                q.push(column).push(bound);
                self.access.bind_key_time(q, *at);
                q.push(" and (").push(column).push(beyond);
                self.access.bind_key_time(q, *at);
                q.push(" or id").push(beyond).bind(id).push(")");
            }
            (Section::Timed, _) => {
                q.push(column).push(" is not null");
            }
            (Section::Untimed, Some(Key { at: None, id })) => {
                q.push(column).push(" is null and id < ").bind(id);
            }
            (Section::Untimed, _) => {
                q.push(column).push(" is null");
            }
        }
    }

    fn push_order(&self, q: &mut Statement) {
        let down = if self.descends() { " desc, " } else { ", " };
        q.push(" order by ");
        for column in self.access.path.order_prefix() {
            q.push(column).push(down);
        }
        q.push(self.access.path.key()).push(down).push("id");
        q.push(if self.descends() { " desc" } else { "" });
    }

    /// Cuts the row that only showed there is more, and sets the cursors.
    fn assemble(&self, mut rows: Vec<RunSummary>, looked: Option<Looked>) -> RunPage {
        let size = self.request.size as usize;
        let more = rows.len() > size;
        rows.truncate(size);
        if self.backwards() {
            rows.reverse();
        }
        let key = |row: &RunSummary| Key {
            at: if self.access.path == Path::Bucket {
                row.started_at
            } else {
                row.sort_timestamp
            },
            id: row.id.clone(),
        };
        let (more_before, more_after) = match &self.request.cursor {
            None => (false, more),
            Some(Cursor { way: Way::Next, .. }) => (true, more),
            Some(Cursor {
                way: Way::Previous, ..
            }) => (more, true),
        };
        // An empty page still knows the way back: to where it was asked from.
        let asked = self
            .request
            .cursor
            .as_ref()
            .map(|cursor| cursor.key.clone());
        let first = rows.first().map(key).or_else(|| asked.clone());
        let last = rows.last().map(key).or(asked);
        RunPage {
            previous: first.filter(|_| more_before).map(Cursor::previous),
            next: last.filter(|_| more_after).map(Cursor::next),
            rows,
            looked,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// Rows with a time, in its order.
    Timed,
    /// Rows without one, after all others.
    Untimed,
}
