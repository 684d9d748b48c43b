//! Leases are judged by our clock, and must not be where it is not the one others go by.

use chrono::{DateTime, TimeDelta, Utc};

use super::refusal::LEASE_MARGIN_SECONDS;
use crate::db::{Db, DbError, Dialect};

/// By how much the machine's clock is ahead of the database's (behind, if negative), when that is
/// more than a repair allows for. An SQLite file has no clock of its own.
pub async fn apart(db: &Db) -> Result<Option<TimeDelta>, DbError> {
    let micros = match db.dialect() {
        Dialect::Sqlite => return Ok(None),
        Dialect::Postgres => "cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)",
        Dialect::MySql => "cast(unix_timestamp(sysdate(6)) * 1000000 as signed)",
    };
    let mut q = db.statement();
    q.push("select ").push(micros).push(" as micros");
    let asked = Utc::now();
    let rows = db.fetch(q).await?;
    let answered = Utc::now();
    let Some(mut row) = rows.into_iter().next() else {
        return Ok(None);
    };
    let theirs = DateTime::from_timestamp_micros(row.int("micros")?);
    Ok(theirs.and_then(|theirs| ahead(asked, theirs, answered)))
}

pub fn words(ahead: TimeDelta) -> String {
    let seconds = ahead.abs().num_seconds();
    let side = if ahead > TimeDelta::zero() {
        "ahead of"
    } else {
        "behind"
    };
    format!("this machine's clock is {seconds} s {side} the database's")
}

/// The least they can differ by, when theirs was read between two readings of ours.
fn ahead(
    asked: DateTime<Utc>,
    theirs: DateTime<Utc>,
    answered: DateTime<Utc>,
) -> Option<TimeDelta> {
    let ahead = if theirs < asked {
        asked - theirs
    } else {
        (answered - theirs).min(TimeDelta::zero())
    };
    (ahead.abs() > TimeDelta::seconds(LEASE_MARGIN_SECONDS)).then_some(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_makes_no_difference_and_a_wrong_clock_does() {
        let at = |second: i64| DateTime::from_timestamp(1_800_000_000 + second, 0).expect("a time");
        for (asked, theirs, answered, want) in [
            (10, 10, 10, None),
            (10, 15, 20, None),
            (10, 8, 10, None),
            (10, 7, 20, Some(3)),
            (10, 12, 10, None),
            (10, 24, 20, Some(-4)),
        ] {
            assert_eq!(
                ahead(at(asked), at(theirs), at(answered)),
                want.map(TimeDelta::seconds),
                "{asked} {theirs} {answered}"
            );
        }
    }
}
