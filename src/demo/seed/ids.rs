//! Ids in the engine's form that sort by time to the microsecond, and then by the order in
//! which they were asked for.

use chrono::{DateTime, Utc};
use ulid::Ulid;

#[derive(Debug)]
pub struct Ids {
    given: u64,
    rng: fastrand::Rng,
}

impl Ids {
    pub fn new(rng: fastrand::Rng) -> Self {
        Self { given: 0, rng }
    }

    /// A row id: lower case, as the engine's model layer writes it.
    pub fn at(&mut self, at: DateTime<Utc>) -> String {
        let mut id = self.upper(at);
        id.make_ascii_lowercase();
        id
    }

    /// An id made in engine code (attempts, child calls, waits): upper case.
    pub fn upper(&mut self, at: DateTime<Utc>) -> String {
        // 48 bits of milliseconds, 10 of microseconds, 30 of order, 40 of chance.
        let millis = u64::try_from(at.timestamp_millis()).unwrap_or_default();
        let micros = u128::from(at.timestamp_subsec_micros() % 1_000);
        self.given += 1;
        let order = u128::from(self.given & 0x3fff_ffff);
        let chance = u128::from(self.rng.u64(..1 << 40));
        Ulid::from_parts(millis, micros << 70 | order << 40 | chance).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_then_by_order() {
        let mut ids = Ids::new(fastrand::Rng::with_seed(1));
        let later: DateTime<Utc> = "2026-04-05T10:11:12.123457Z".parse().unwrap();
        let sooner: DateTime<Utc> = "2026-04-05T10:11:12.123456Z".parse().unwrap();
        let c = ids.at(later);
        let a = ids.at(sooner);
        let b = ids.at(sooner);
        assert!(a < b && b < c);
        assert_eq!(a.len(), 26);
        assert_eq!(a, a.to_lowercase());
    }
}
