//! Counts for the list, capped, and computed once for all viewers.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use super::{
    access::Access,
    condition::ATTENTION_COLUMNS,
    filter::Filter,
    page::{ATTENTION_WINDOW, Direction, PageRequest, page},
    unprojected::unprojected,
};
use crate::{
    clock::Clock,
    db::{Db, DbError, Snapshot, Statement},
    durable::stored::{ListedRun, Notices, RunRow},
};

/// Counting stops here; a page says "10,000+".
pub const CAP: u32 = 10_000;

/// How long a count may be shown before it is computed again.
const FRESH: Duration = Duration::from_secs(5);

/// A number that may have stopped short of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capped {
    pub n: u32,
    pub more: bool,
}

impl Capped {
    /// With as many more, where counting did not stop before them.
    #[must_use]
    pub fn and(self, others: u32) -> Self {
        if self.more {
            return self;
        }
        capped(i64::from(self.n) + i64::from(others))
    }
}

#[derive(Clone, Debug)]
pub struct BucketCounts {
    pub running: Capped,
    pub completed: Capped,
    pub failed: Capped,
    pub needs_repair: Capped,
    /// Runs among the newest that no summary shows.
    pub unprojected: Vec<RunRow>,
    /// What their rows hold that could not be taken as it stands.
    pub notices: Notices,
    pub counted_at: DateTime<Utc>,
}

#[derive(Clone, Debug)]
pub struct Total {
    /// None when the filter is answered row by row and nobody can say.
    pub rows: Option<Capped>,
    pub counted_at: DateTime<Utc>,
}

/// One computation per count, however many look at it.
#[derive(Clone, Debug)]
pub struct CountCache {
    buckets: moka::future::Cache<(), Arc<BucketCounts>>,
    totals: moka::future::Cache<String, Arc<Total>>,
}

impl Default for CountCache {
    fn default() -> Self {
        Self {
            buckets: moka::future::Cache::builder().time_to_live(FRESH).build(),
            totals: moka::future::Cache::builder()
                .max_capacity(1_000)
                .time_to_live(FRESH)
                .build(),
        }
    }
}

impl CountCache {
    pub async fn buckets(&self, db: &Db, clock: Clock) -> Result<Arc<BucketCounts>, Arc<DbError>> {
        let count = async {
            let mut snapshot = db.snapshot().await?;
            let counts = count_buckets(&mut snapshot, clock.now()).await?;
            snapshot.end().await;
            Ok(Arc::new(counts))
        };
        self.buckets.try_get_with((), count).await
    }

    /// How many rows the filter matches. `key` names the filter: its query string.
    pub async fn total(
        &self,
        db: &Db,
        clock: Clock,
        key: String,
        filter: &Filter,
    ) -> Result<Arc<Total>, Arc<DbError>> {
        let count = async {
            let access = Access::choose(filter);
            let counted_at = clock.now();
            let mut q = db.statement();
            let few =
                "select count(*) as n from (select 1 as one from {workflow_run_summaries} where ";
            if let Some(status) = only_status(filter) {
                // `(status)` has no order to list by, but it can be counted along.
                q.push(few).push("status = ").bind(status);
                q.push(" limit ").bind(CAP + 1).push(") as few");
            } else if access.is_attention() {
                push_attention_count(&mut q, &access);
            } else if access.window().is_some() {
                return Ok(Arc::new(Total {
                    rows: None,
                    counted_at,
                }));
            } else {
                q.push(few);
                access.push_served(&mut q);
                q.push(" limit ").bind(CAP + 1).push(") as few");
            }
            let mut snapshot = db.snapshot().await?;
            let row = snapshot.fetch_one(q).await?;
            let n = row.map_or(Ok(Some(0)), |mut row| row.opt_int("n"))?;
            snapshot.end().await;
            Ok(Arc::new(Total {
                rows: n.map(capped),
                counted_at,
            }))
        };
        self.totals.try_get_with(key, count).await
    }
}

/// How many of the rows in the window match; null when the window does not hold all there are.
fn push_attention_count(q: &mut Statement, access: &Access<'_>) {
    q.push("select case when count(*) <= ")
        .bind(ATTENTION_WINDOW)
        .push(" then count(case when 1 = 1");
    access.push_residual(q);
    q.push(" then 1 end) end as n from (select ")
        .push(ATTENTION_COLUMNS)
        .push(" from {workflow_run_summaries} where ");
    access.push_served(q);
    q.push(" limit ").bind(ATTENTION_WINDOW + 1).push(") as w");
}

/// The status, where the filter asks for nothing else.
fn only_status(filter: &Filter) -> Option<&str> {
    match filter.terms.as_slice() {
        [term] if term.field.name == "status" => Some(&term.value),
        _ => None,
    }
}

fn capped(n: i64) -> Capped {
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    Capped {
        n: n.min(CAP),
        more: n > CAP,
    }
}

async fn count_buckets(
    snapshot: &mut Snapshot,
    now: DateTime<Utc>,
) -> Result<BucketCounts, DbError> {
    let mut q = snapshot.statement();
    for (bucket, glue) in [
        ("running", ""),
        ("completed", " union all "),
        ("failed", " union all "),
    ] {
        q.push(glue)
            .push("select count(*) as n from (select 1 as one from {workflow_run_summaries} where status_bucket = ")
            .bind(bucket)
            .push(" limit ")
            .bind(CAP + 1)
            .push(") as few_")
            .push(bucket);
    }
    let counts: Vec<i64> = snapshot
        .fetch(q)
        .await?
        .iter_mut()
        .map(|row| row.int("n"))
        .collect::<Result<_, _>>()?;
    let mut notices = Notices::default();
    let count = |at: usize| capped(counts.get(at).copied().unwrap_or(0));
    Ok(BucketCounts {
        running: count(0),
        completed: count(1),
        failed: count(2),
        needs_repair: count_needs_repair(snapshot, now).await?,
        unprojected: unprojected(snapshot, &mut notices).await?,
        notices,
        counted_at: now,
    })
}

/// Asks the repair gate of every open run the window holds.
async fn count_needs_repair(
    snapshot: &mut Snapshot,
    now: DateTime<Utc>,
) -> Result<Capped, DbError> {
    let (filter, _) = Filter::parse([("needs_repair", "1")], &[], now, crate::zone::Zone::UTC);
    let request = PageRequest {
        filter,
        direction: Direction::NewestFirst,
        cursor: None,
        size: CAP,
    };
    let page = page::<ListedRun>(snapshot, &request).await?;
    Ok(Capped {
        n: u32::try_from(page.rows.len()).unwrap_or(CAP),
        more: page.next.is_some(),
    })
}
