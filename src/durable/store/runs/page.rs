//! One page of runs, by keyset, at a cost that does not depend on how deep it lies.

use chrono::{DateTime, Utc};

use super::{
    access::{Access, Edge, Path},
    condition,
    cursor::{Cursor, Key, Way},
    extras,
    filter::Filter,
};
use crate::{
    db::{DbError, Dialect, Snapshot, Statement},
    durable::stored::{Cells, ListedRun, Notices, RunSummary, Summary},
};

/// How many rows one request may look at for a filter no index serves.
pub const WINDOW: u32 = 5_000;

/// How many for what the overview counts: its list holds as many runs as it says, unless their
/// bucket has more than that.
pub const ATTENTION_WINDOW: u32 = 10 * WINDOW;

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
    /// How many rows, where the window ended before the page was full; none when the page was
    /// full before, or the list's end was reached.
    pub rows: Option<u32>,
    /// The time of the last row looked at; none when the list's end was reached, or that row
    /// has no time.
    pub until: Option<DateTime<Utc>>,
    /// Whether the list's end was reached.
    pub complete: bool,
    /// Whether only open runs were looked at, because only they can match.
    pub open_only: bool,
}

#[derive(Clone, Debug)]
pub struct RunPage<R> {
    pub rows: Vec<R>,
    /// Towards the list's beginning.
    pub previous: Option<Cursor>,
    /// Further on; for a windowed page also when this page is not full.
    pub next: Option<Cursor>,
    /// Set when the filter was answered row by row.
    pub looked: Option<Looked>,
    /// What these rows hold that could not be taken as it stands.
    pub notices: Notices,
}

impl<R> RunPage<R> {
    /// A page beyond the list's end.
    pub fn empty() -> Self {
        Self {
            rows: Vec::new(),
            previous: None,
            next: None,
            looked: None,
            notices: Notices::default(),
        }
    }
}

/// Reads one page, of as much of each row as `R` is.
pub async fn page<R: Summary>(
    snapshot: &mut Snapshot,
    request: &PageRequest,
) -> Result<RunPage<R>, DbError> {
    let mut access = Access::choose(&request.filter);
    if access.path.is_lookup() && lookup_is_too_wide(snapshot, &access).await? {
        access = Access::choose_ordered(&request.filter);
    }
    let query = Query { access, request };
    let Some(widest) = query
        .access
        .window()
        .filter(|_| !query.access.path.is_lookup())
    else {
        return query.plain(snapshot).await;
    };
    // Most pages are full within the ordinary window: only for one that is not, the wide one is
    // opened, with as many statements again.
    let page = query.windowed(snapshot, WINDOW).await?;
    let ended_early = page
        .looked
        .as_ref()
        .is_some_and(|looked| looked.rows.is_some());
    if ended_early && widest > WINDOW {
        return query.windowed(snapshot, widest).await;
    }
    Ok(page)
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

/// Where skipping rows from the beginning of a list leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The rest of the list starts here.
    To(Cursor),
    /// There are not that many rows.
    PastTheEnd,
    /// No index serves the filter, and the window holds fewer matches than that.
    PastTheWindow,
}

/// Skips `rows` rows from the beginning, for callers that count pages: a walk along the index
/// alone, or inside one window.
pub async fn skip(
    snapshot: &mut Snapshot,
    filter: &Filter,
    direction: Direction,
    rows: u32,
) -> Result<Skipped, DbError> {
    let request = PageRequest {
        filter: filter.clone(),
        direction,
        cursor: None,
        size: rows,
    };
    let access = Access::choose(filter);
    if access.path.is_lookup() || access.window().is_some() {
        let page = page::<ListedRun>(snapshot, &request).await?;
        let all = page.rows.len() == rows as usize;
        return Ok(match page.next {
            Some(cursor) if all => Skipped::To(cursor),
            Some(_) => Skipped::PastTheWindow,
            None => Skipped::PastTheEnd,
        });
    }
    let query = Query {
        access,
        request: &request,
    };
    let last = rows.saturating_sub(1);
    let mut key = query.key_at(snapshot, Section::Timed, last).await?;
    if key.is_none() && query.access.may_be_untimed() {
        let timed = query.count_timed(snapshot, rows).await?;
        let last = last.saturating_sub(timed);
        key = query.key_at(snapshot, Section::Untimed, last).await?;
    }
    Ok(key.map_or(Skipped::PastTheEnd, |key| Skipped::To(Cursor::next(key))))
}

struct Query<'r> {
    access: Access<'r>,
    request: &'r PageRequest,
}

impl Query<'_> {
    fn backwards(&self) -> bool {
        self.request
            .cursor
            .as_ref()
            .is_some_and(|cursor| cursor.way == Way::Previous)
    }

    /// Whether the walk goes down in time: newest first and on, or oldest first and back.
    fn descends(&self) -> bool {
        (self.request.direction == Direction::NewestFirst) != self.backwards()
    }

    /// The sections the walk may pass, in its order. Rows without a time stand at the end of
    /// the list whichever way it is sorted.
    fn sections(&self) -> &'static [Section] {
        use Section::{Timed, Untimed};
        let from_untimed = self
            .request
            .cursor
            .as_ref()
            .is_some_and(|cursor| cursor.key.at.is_none());
        match (self.backwards(), from_untimed) {
            (false, false) if self.access.may_be_untimed() => &[Timed, Untimed],
            (_, false) => &[Timed],
            (false, true) => &[Untimed],
            (true, true) => &[Untimed, Timed],
        }
    }

    /// A page no window bounds: its terms are served by an index, or leave few rows.
    async fn plain<R: Summary>(&self, snapshot: &mut Snapshot) -> Result<RunPage<R>, DbError> {
        let want = self.request.size + 1;
        let (mut rows, mut notices) = (Vec::new(), Notices::default());
        for section in self.sections() {
            let missing = want - u32::try_from(rows.len()).unwrap_or(want);
            rows.extend(
                self.kept(snapshot, *section, missing, None, &mut notices)
                    .await?,
            );
            if rows.len() >= want as usize {
                break;
            }
        }
        Ok(self.assemble(rows, None, notices))
    }

    /// A page whose terms are checked row by row inside a bounded window.
    async fn windowed<R: Summary>(
        &self,
        snapshot: &mut Snapshot,
        window: u32,
    ) -> Result<RunPage<R>, DbError> {
        let size = self.request.size as usize;
        let (mut rows, mut notices) = (Vec::new(), Notices::default());
        let mut boundary = None;
        for section in self.sections() {
            boundary = self.key_at(snapshot, *section, window - 1).await?;
            let missing = self.request.size + 1 - u32::try_from(rows.len()).unwrap_or(0);
            rows.extend(
                self.kept(snapshot, *section, missing, Some(window), &mut notices)
                    .await?,
            );
            if boundary.is_some() || rows.len() > size {
                break;
            }
        }
        let full = rows.len() > size;
        let last = if full {
            rows.get(size - 1).map(|row| self.key(row))
        } else {
            boundary.clone()
        };
        let looked = Looked {
            rows: (!full && boundary.is_some()).then_some(window),
            complete: last.is_none(),
            until: last.and_then(|key| key.at),
            open_only: self
                .access
                .bucket
                .as_ref()
                .is_some_and(|bucket| bucket.as_str() == "running")
                && self.request.filter.get("status_bucket").is_none(),
        };
        let mut page = self.assemble(rows, Some(looked), notices);
        let (onward, way) = if self.backwards() {
            (&mut page.previous, Way::Previous)
        } else {
            (&mut page.next, Way::Next)
        };
        if onward.is_none() {
            *onward = boundary.map(|key| Cursor::new(way, key));
        }
        Ok(page)
    }

    /// The order key of the row `offset` rows on: a bounded walk along the index alone.
    async fn key_at(
        &self,
        snapshot: &mut Snapshot,
        section: Section,
        offset: u32,
    ) -> Result<Option<Key>, DbError> {
        let mut q = snapshot.statement();
        q.push("select ")
            .push(self.access.path.key())
            .push(" as at, id from {workflow_run_summaries} where ");
        self.push_place(&mut q, section);
        self.push_order(&mut q, section);
        q.push(" limit 1 offset ").bind(offset);
        let Some(mut row) = snapshot.fetch_one(q).await? else {
            return Ok(None);
        };
        // The notice itself comes with the row when it is shown.
        let mut unheard = Notices::default();
        let mut cells = Cells::of(RunSummary::TABLE, &mut row, &mut unheard);
        let at = if self.access.path == Path::Bucket {
            cells.opt_time("at")
        } else {
            cells.opt_utc("at")
        }?;
        Ok(Some(Key {
            at,
            id: row.text("id")?,
        }))
    }

    /// How many rows have a time, as far as `most`.
    async fn count_timed(&self, snapshot: &mut Snapshot, most: u32) -> Result<u32, DbError> {
        let mut q = snapshot.statement();
        q.push("select count(*) as n from (select 1 as one from {workflow_run_summaries} where ");
        self.push_place(&mut q, Section::Timed);
        q.push(" limit ").bind(most).push(") as few");
        let n = snapshot
            .fetch_one(q)
            .await?
            .map_or(Ok(0), |mut row| row.int("n"))?;
        Ok(u32::try_from(n).unwrap_or(most))
    }

    /// The first rows of a section that every term keeps, where SQL narrows and a rule decides.
    async fn kept<R: Summary>(
        &self,
        snapshot: &mut Snapshot,
        section: Section,
        wanted: u32,
        window: Option<u32>,
        notices: &mut Notices,
    ) -> Result<Vec<R>, DbError> {
        let terms = self.access.residual.as_slice();
        if !condition::needs_rules(terms) {
            return self.rows(snapshot, section, wanted, window, notices).await;
        }
        // SQL cannot count what a rule keeps: take all it narrows to.
        let found = self
            .rows::<R>(snapshot, section, WINDOW, window, notices)
            .await?;
        let found = found
            .into_iter()
            .filter(|row| condition::keeps(terms, row.standing()));
        let mut kept: Vec<R> = found.collect();
        if condition::needs_failures(terms) {
            // Sent even for none, so that the data does not decide how many statements there are.
            let failed = kept.iter().filter(|row| row.exception_count() > 0);
            let failures = extras::failures(snapshot, failed.map(R::id)).await?;
            kept.retain(|row| {
                let failures = failures.get(row.id()).map_or(&[][..], Vec::as_slice);
                condition::keeps_failure(terms, row.standing().status, failures)
            });
        }
        Ok(kept)
    }

    async fn rows<R: Summary>(
        &self,
        snapshot: &mut Snapshot,
        section: Section,
        limit: u32,
        window: Option<u32>,
        notices: &mut Notices,
    ) -> Result<Vec<R>, DbError> {
        let q = self.select::<R>(snapshot.statement(), section, limit, window);
        snapshot
            .fetch(q)
            .await?
            .iter_mut()
            .map(|row| R::read(row, notices))
            .collect()
    }

    fn select<R: Summary>(
        &self,
        mut q: Statement,
        section: Section,
        limit: u32,
        window: Option<u32>,
    ) -> Statement {
        let lookup = self.access.path.is_lookup();
        let window = if lookup { Some(LOOKUP) } else { window };
        q.push("select ").push(R::COLUMNS);
        let Some(window) = window else {
            q.push(" from {workflow_run_summaries} where ");
            self.push_place(&mut q, section);
            self.push_order(&mut q, section);
            q.push(" limit ").bind(limit);
            return q;
        };
        // The inner limit is a fence: whatever the planner thinks of the outer terms, the
        // table is entered through the index and left after `window` rows.
        q.push(" from (select ")
            .push(RunSummary::COLUMNS)
            .push(" from {workflow_run_summaries} where ");
        if lookup {
            self.access.push_served(&mut q);
        } else {
            self.push_place(&mut q, section);
            self.push_order(&mut q, section);
        }
        q.push(" limit ").bind(window).push(") as w where 1 = 1");
        self.access.push_residual(&mut q);
        if lookup {
            q.push(" and ");
            self.push_cursor(&mut q, section);
        }
        self.push_order(&mut q, section);
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
        // Only the section the cursor lies in is entered in its middle.
        let cursor = self
            .request
            .cursor
            .as_ref()
            .filter(|cursor| Section::of(&cursor.key) == section);
        let Some(Cursor { key, including, .. }) = cursor else {
            q.push(column).push(match section {
                Section::Timed => " is not null",
                Section::Untimed => " is null",
            });
            return;
        };
        let (at_or_beyond, beyond) = if self.descends() {
            (" <= ", " < ")
        } else {
            (" >= ", " > ")
        };
        let id_beyond = if *including { at_or_beyond } else { beyond };
        if let Some(at) = key.at {
            let (near, far) = if self.descends() {
                (Edge::Last, Edge::First)
            } else {
                (Edge::First, Edge::Last)
            };
            // This form, and neither the row-value nor the `a < ? or (a = ? and …)` one,
            // enters the index in the middle on all three databases.
            q.push(column).push(at_or_beyond);
            self.access.push_key_time(q, at, &key.id, near);
            q.push(" and (").push(column).push(beyond);
            self.access.push_key_time(q, at, &key.id, far);
            q.push(" or id").push(id_beyond).bind(&key.id).push(")");
        } else {
            q.push(column).push(" is null and id");
            q.push(id_beyond).bind(&key.id);
        }
    }

    /// Orders as the index is ordered, said the way each planner recognises: PostgreSQL takes
    /// an `is null` for a constant only when its column is named too, MariaDB only when not.
    fn push_order(&self, q: &mut Statement, section: Section) {
        let down = if self.descends() { " desc" } else { "" };
        q.push(" order by ");
        if q.dialect() != Dialect::MySql {
            for column in self.access.path.order_prefix() {
                q.push(column).push(down).push(", ");
            }
        }
        if section == Section::Timed || q.dialect() != Dialect::MySql {
            q.push(self.access.path.key()).push(down).push(", ");
        }
        q.push("id").push(down);
    }

    fn key<R: Summary>(&self, row: &R) -> Key {
        Key {
            at: self
                .access
                .path
                .key_of(row.started_at(), row.sort_timestamp()),
            id: row.id().to_owned(),
        }
    }

    /// Cuts the row that only showed there is more, and sets the cursors.
    fn assemble<R: Summary>(
        &self,
        mut rows: Vec<R>,
        looked: Option<Looked>,
        mut notices: Notices,
    ) -> RunPage<R> {
        let size = self.request.size as usize;
        let more = rows.len() > size;
        rows.truncate(size);
        notices.retain(|notice| rows.iter().any(|row| row.id() == notice.id));
        if self.backwards() {
            rows.reverse();
        }
        let key = |row: &R| self.key(row);
        let (more_before, more_after) = match &self.request.cursor {
            None => (false, more),
            Some(Cursor { way: Way::Next, .. }) => (true, more),
            Some(Cursor {
                way: Way::Previous, ..
            }) => (more, true),
        };
        // An empty page still knows the way back: the rows this side of where it was asked from.
        let asked = self.request.cursor.as_ref();
        let back = |way| {
            asked.map(|asked| Cursor {
                way,
                key: asked.key.clone(),
                including: !asked.including,
            })
        };
        let first = rows.first().map(key).map(Cursor::previous);
        let last = rows.last().map(key).map(Cursor::next);
        RunPage {
            previous: first
                .or_else(|| back(Way::Previous))
                .filter(|_| more_before),
            next: last.or_else(|| back(Way::Next)).filter(|_| more_after),
            rows,
            looked,
            notices,
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

impl Section {
    fn of(key: &Key) -> Self {
        if key.at.is_some() {
            Self::Timed
        } else {
            Self::Untimed
        }
    }
}
