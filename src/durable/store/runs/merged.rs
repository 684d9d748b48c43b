//! Runs without a summary, where the order of a list puts them among the others.

use std::cmp::Ordering;

use super::{
    access::{Access, Path},
    cursor::{Cursor, Key, Way},
    filter::Filter,
    page::{self, Direction, PageRequest, RunPage, Skipped},
};
use crate::{
    db::{DbError, Snapshot},
    durable::stored::{ListedRun, RunRow, Summary},
};

/// One row of a list.
#[derive(Clone, Debug)]
pub enum Listed<'u, R> {
    Projected(R),
    Unprojected(&'u RunRow),
}

/// Puts the runs on this page that belong there; what it then has too much goes on to the next.
pub fn merge<'u, R: Summary>(
    request: &PageRequest,
    page: RunPage<R>,
    unprojected: &[&'u RunRow],
) -> RunPage<Listed<'u, R>> {
    let order = Order::of(&request.filter, request.direction);
    let asked = request.cursor.as_ref();
    let backwards = asked.is_some_and(|asked| asked.way == Way::Previous);
    let (mut previous, mut next) = (page.previous, page.next);
    let belongs = |key: &Key| {
        let ahead = asked.is_none_or(|asked| order.leads_to(asked, key));
        // Beyond the page's end come runs that were not read.
        let read = if backwards {
            previous
                .as_ref()
                .is_none_or(|end| order.compare(key, &end.key).is_ge())
        } else {
            next.as_ref()
                .is_none_or(|end| order.compare(key, &end.key).is_le())
        };
        ahead && read
    };
    let among: Vec<(Key, &RunRow)> = unprojected
        .iter()
        .copied()
        // One that was projected since it was counted is here already.
        .filter(|run| page.rows.iter().all(|row| row.id() != run.id))
        .map(|run| (order.key_of(run), run))
        .filter(|(key, _)| belongs(key))
        .collect();
    let projected = page.rows.into_iter().map(|row| {
        let at = order.path.key_of(row.started_at(), row.sort_timestamp());
        let id = row.id().to_owned();
        (Key { at, id }, Listed::Projected(row))
    });
    // The order of the rows that were read is the database's: the next page goes on from it.
    let mut rows: Vec<(Key, Listed<'u, R>)> = projected.collect();
    for (key, run) in among {
        let before = rows
            .iter()
            .position(|(other, _)| order.compare(&key, other).is_lt());
        rows.insert(
            before.unwrap_or(rows.len()),
            (key, Listed::Unprojected(run)),
        );
    }
    let too_many = rows.len().saturating_sub(request.size as usize);
    if backwards {
        rows.drain(..too_many);
    } else {
        rows.truncate(request.size as usize);
    }
    // The end that was asked from follows what is shown; the other one only where it was cut.
    if let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) {
        let cut = too_many > 0;
        if (backwards && cut) || (!backwards && previous.is_some()) {
            previous = Some(Cursor::previous(first.clone()));
        }
        if (!backwards && cut) || (backwards && next.is_some()) {
            next = Some(Cursor::next(last.clone()));
        }
    }
    RunPage {
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        previous,
        next,
        looked: page.looked,
        notices: page.notices,
    }
}

/// Skips `rows` rows from the beginning of the merged list.
pub async fn skip(
    snapshot: &mut Snapshot,
    filter: &Filter,
    direction: Direction,
    rows: u32,
    unprojected: &[&RunRow],
) -> Result<Skipped, DbError> {
    // Of the rows left out, at most so many have no summary; the rest surely has.
    let few = u32::try_from(unprojected.len()).unwrap_or(u32::MAX);
    let sure = rows.saturating_sub(few);
    let from = match sure {
        0 => None,
        sure => match page::skip(snapshot, filter, direction, sure).await? {
            Skipped::To(cursor) => Some(cursor),
            end => return Ok(end),
        },
    };
    let order = Order::of(filter, direction);
    let passed = unprojected.iter().filter(|run| {
        from.as_ref()
            .is_some_and(|from| !order.leads_to(from, &order.key_of(run)))
    });
    let passed = u32::try_from(passed.count()).unwrap_or(u32::MAX);
    let missing = (rows - sure).saturating_sub(passed);
    let request = PageRequest {
        filter: filter.clone(),
        direction,
        cursor: from.clone(),
        size: missing,
    };
    if missing == 0 {
        return Ok(from.map_or(Skipped::PastTheEnd, Skipped::To));
    }
    let page = page::page::<ListedRun>(snapshot, &request).await?;
    let page = merge(&request, page, unprojected);
    let all = page.rows.len() == missing as usize;
    Ok(match page.next {
        Some(cursor) if all => Skipped::To(cursor),
        Some(_) => Skipped::PastTheWindow,
        None => Skipped::PastTheEnd,
    })
}

/// The order of a list: by its path's time, those without one last, and by id.
struct Order {
    path: Path,
    direction: Direction,
}

impl Order {
    fn of(filter: &Filter, direction: Direction) -> Self {
        Self {
            path: Access::choose(filter).path,
            direction,
        }
    }

    fn key_of(&self, run: &RunRow) -> Key {
        let sort_timestamp = run.started_at.or(run.created_at);
        Key {
            at: self.path.key_of(run.started_at, sort_timestamp),
            id: run.id.clone(),
        }
    }

    fn compare(&self, a: &Key, b: &Key) -> Ordering {
        let by_section = a.at.is_none().cmp(&b.at.is_none());
        let by_key = (a.at, &a.id).cmp(&(b.at, &b.id));
        by_section.then(match self.direction {
            Direction::NewestFirst => by_key.reverse(),
            Direction::OldestFirst => by_key,
        })
    }

    /// Whether a row with this key lies where the cursor leads.
    fn leads_to(&self, cursor: &Cursor, key: &Key) -> bool {
        match (self.compare(key, &cursor.key), cursor.way) {
            (Ordering::Equal, _) => cursor.including,
            (order, Way::Next) => order.is_gt(),
            (order, Way::Previous) => order.is_lt(),
        }
    }
}
