//! SQL text made only of static pieces and binds; values never become text.

use std::{collections::BTreeMap, fmt::Write as _};

use chrono::{DateTime, NaiveDateTime, Timelike as _, Utc};

use super::Val;

/// Which of the three databases a statement is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Sqlite,
    Postgres,
    /// MySQL and MariaDB.
    MySql,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MySQL",
        }
    }

    /// The one of three static pieces that this database understands.
    pub fn pick(
        self,
        sqlite: &'static str,
        postgres: &'static str,
        mysql: &'static str,
    ) -> &'static str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
            Self::MySql => mysql,
        }
    }
}

/// Whether a moment may be stored without a fraction, to the precision of the engine's columns.
pub fn is_whole_second(at: DateTime<Utc>) -> bool {
    at.timestamp_subsec_micros() == 0
}

/// Common table expressions for tables that are not as we know them, by table.
pub(super) type StandIns = BTreeMap<&'static str, String>;

/// A statement under construction.
///
/// In a pushed piece, `{workflow_runs}` is a table name that receives the configured prefix,
/// and `"key"` is an identifier quoted as the database wants it.
#[derive(Clone, Debug)]
pub struct Statement {
    dialect: Dialect,
    prefix: std::sync::Arc<str>,
    zone: crate::zone::Zone,
    stand_ins: std::sync::Arc<StandIns>,
    sql: String,
    binds: Vec<Val>,
}

impl Statement {
    pub(super) fn new(
        dialect: Dialect,
        prefix: std::sync::Arc<str>,
        zone: crate::zone::Zone,
        stand_ins: std::sync::Arc<StandIns>,
    ) -> Self {
        Self {
            dialect,
            prefix,
            zone,
            stand_ins,
            sql: String::new(),
            binds: Vec::new(),
        }
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub fn push(&mut self, piece: &'static str) -> &mut Self {
        for c in piece.chars() {
            match c {
                '{' => self.sql.push_str(&self.prefix),
                '}' => {}
                '"' if self.dialect == Dialect::MySql => self.sql.push('`'),
                c => self.sql.push(c),
            }
        }
        self
    }

    /// One value, as a placeholder.
    pub fn bind(&mut self, value: impl Into<Val>) -> &mut Self {
        self.binds.push(value.into());
        match self.dialect {
            Dialect::Postgres => {
                let _ = write!(self.sql, "${}", self.binds.len());
            }
            Dialect::Sqlite | Dialect::MySql => self.sql.push('?'),
        }
        self
    }

    /// A moment for a column the engine writes in its own zone.
    pub fn bind_time(&mut self, at: DateTime<Utc>) -> &mut Self {
        let stored = self.zone.local(at).naive_local();
        self.bind(stored)
    }

    /// A moment for a column the engine always writes in UTC (`sort_timestamp`).
    pub fn bind_utc(&mut self, at: DateTime<Utc>) -> &mut Self {
        self.bind(at.naive_utc())
    }

    /// A moment as the engine compares with it: cut to the whole second. On SQLite the comparison
    /// is textual, so the text must be without a fraction too.
    pub fn bind_second(&mut self, at: DateTime<Utc>) -> &mut Self {
        let stored = self.zone.local(at).naive_local();
        self.bind_whole(stored)
    }

    /// The same for a column the engine always writes in UTC.
    pub fn bind_utc_second(&mut self, at: DateTime<Utc>) -> &mut Self {
        self.bind_whole(at.naive_utc())
    }

    /// The first of the texts a moment may be stored as: `>=` takes and `<` leaves out every row of
    /// that moment. SQLite compares texts, and a whole second that was written without its fraction
    /// sorts before the same second with one.
    pub fn bind_time_first(&mut self, at: DateTime<Utc>) -> &mut Self {
        let stored = self.zone.local(at).naive_local();
        self.bind_first(stored)
    }

    /// The same for a column the engine always writes in UTC.
    pub fn bind_utc_first(&mut self, at: DateTime<Utc>) -> &mut Self {
        self.bind_first(at.naive_utc())
    }

    fn bind_first(&mut self, at: NaiveDateTime) -> &mut Self {
        if is_whole_second(at.and_utc()) {
            self.bind_whole(at)
        } else {
            self.bind(at)
        }
    }

    fn bind_whole(&mut self, at: NaiveDateTime) -> &mut Self {
        let at = at.with_nanosecond(0).unwrap_or(at);
        match self.dialect {
            Dialect::Sqlite => self.bind(at.format("%Y-%m-%d %H:%M:%S").to_string()),
            Dialect::Postgres | Dialect::MySql => self.bind(at),
        }
    }

    /// `(?, ?, …)`. An empty list becomes `(null)`, which matches nothing.
    pub fn bind_list<T: Into<Val>>(&mut self, values: impl IntoIterator<Item = T>) -> &mut Self {
        self.push("(");
        let mut first = true;
        for value in values {
            if !std::mem::take(&mut first) {
                self.push(", ");
            }
            self.bind(value);
        }
        if first {
            self.push("null");
        }
        self.push(")")
    }

    /// Appends another statement's text and binds, renumbering placeholders.
    pub fn append(&mut self, other: &Self) -> &mut Self {
        if self.dialect != Dialect::Postgres {
            self.sql.push_str(&other.sql);
            self.binds.extend(other.binds.iter().cloned());
            return self;
        }
        let mut rest = other.sql.as_str();
        for value in &other.binds {
            let at = rest.find('$').expect("a placeholder per bind");
            self.sql.push_str(&rest[..at]);
            self.bind(value.clone());
            rest = rest[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        }
        self.sql.push_str(rest);
        self
    }

    pub fn sql(&self) -> &str {
        &self.sql
    }

    pub fn binds(&self) -> &[Val] {
        &self.binds
    }

    pub(super) fn into_parts(self) -> (String, Vec<Val>) {
        let mut stand_ins = self
            .stand_ins
            .iter()
            .filter(|(table, _)| self.sql.contains(**table))
            .map(|(_, expression)| expression.as_str())
            .peekable();
        if stand_ins.peek().is_none() || !self.sql.starts_with("select") {
            return (self.sql, self.binds);
        }
        let expressions = stand_ins.collect::<Vec<_>>().join(", ");
        (format!("with {expressions} {}", self.sql), self.binds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(dialect: Dialect) -> Statement {
        Statement::new(
            dialect,
            "app_".into(),
            crate::zone::Zone::UTC,
            std::sync::Arc::default(),
        )
    }

    #[test]
    fn placeholders_prefix_and_quotes_follow_the_database() {
        for (dialect, want) in [
            (
                Dialect::Sqlite,
                "select \"key\" from app_workflow_memos where a = ? and b in (?, ?)",
            ),
            (
                Dialect::Postgres,
                "select \"key\" from app_workflow_memos where a = $1 and b in ($2, $3)",
            ),
            (
                Dialect::MySql,
                "select `key` from app_workflow_memos where a = ? and b in (?, ?)",
            ),
        ] {
            let mut q = statement(dialect);
            q.push("select \"key\" from {workflow_memos} where a = ")
                .bind(1)
                .push(" and b in ")
                .bind_list(["x", "y"]);
            assert_eq!(q.sql(), want);
            assert_eq!(q.binds().len(), 3);
        }
    }

    #[test]
    fn an_appended_statement_is_renumbered() {
        let mut tail = statement(Dialect::Postgres);
        tail.push("b = ")
            .bind(2)
            .push(" or c = ")
            .bind(3)
            .push(" end");
        let mut q = statement(Dialect::Postgres);
        q.push("a = ").bind(1).push(" and ").append(&tail);
        assert_eq!(q.sql(), "a = $1 and b = $2 or c = $3 end");
        assert_eq!(q.binds(), [Val::Int(1), Val::Int(2), Val::Int(3)]);
    }

    #[test]
    fn a_table_that_is_not_whole_is_stood_in_for() {
        let stand_ins = StandIns::from([
            ("workflow_runs", "workflow_runs as (…)".to_owned()),
            ("workflow_memos", "workflow_memos as (…)".to_owned()),
        ]);
        let mut q = Statement::new(
            Dialect::Sqlite,
            "".into(),
            crate::zone::Zone::UTC,
            stand_ins.into(),
        );
        q.push("select id from {workflow_runs}");
        assert_eq!(
            q.into_parts().0,
            "with workflow_runs as (…) select id from workflow_runs"
        );
    }

    #[test]
    fn an_empty_list_matches_nothing() {
        let mut q = statement(Dialect::Sqlite);
        q.push("id in ").bind_list(Vec::<String>::new());
        assert_eq!(q.sql(), "id in (null)");
    }

    #[test]
    fn the_first_text_of_a_moment_lacks_the_fraction_on_sqlite_alone() {
        let whole = "2026-07-01T10:00:00Z".parse().unwrap();
        let within = "2026-07-01T10:00:00.000001Z".parse().unwrap();
        let mut q = statement(Dialect::Sqlite);
        q.bind_utc_first(whole).bind_time_first(within);
        assert_eq!(q.binds()[0], Val::Text("2026-07-01 10:00:00".to_owned()));
        assert_eq!(
            q.binds()[1],
            Val::Time("2026-07-01T10:00:00.000001".parse().unwrap())
        );
        let mut q = statement(Dialect::Postgres);
        q.bind_utc_first(whole);
        assert_eq!(
            q.binds()[0],
            Val::Time("2026-07-01T10:00:00".parse().unwrap())
        );
    }

    #[test]
    fn a_moment_is_bound_in_the_zone_it_is_stored_in() {
        let at = "2026-07-01T10:00:00Z".parse().unwrap();
        let mut q = Statement::new(
            Dialect::Sqlite,
            "".into(),
            "Europe/Berlin".parse().unwrap(),
            std::sync::Arc::default(),
        );
        q.bind_time(at).bind_utc(at);
        assert_eq!(
            q.binds()[0],
            Val::Time("2026-07-01T12:00:00".parse().unwrap())
        );
        assert_eq!(
            q.binds()[1],
            Val::Time("2026-07-01T10:00:00".parse().unwrap())
        );
    }
}
