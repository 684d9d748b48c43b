//! Reading what may not be what its column should hold. SQLite keeps any text in any column, and
//! one such value must not take every number away: it counts for nothing, and is named.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    db::{DbError, Json, Row},
    durable::stored::Stamp,
};

/// The columns in which one pass met values it could not read, as `table.column`. Clones share
/// what they note.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<Mutex<BTreeSet<String>>>);

impl Unread {
    fn note(&self, column: String) {
        let mut columns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        columns.insert(column);
    }

    pub fn columns(&self) -> BTreeSet<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// One row of a template's result.
pub struct Lenient<'r> {
    row: &'r mut Row,
    template: &'static str,
    unread: &'r Unread,
}

impl<'r> Lenient<'r> {
    pub fn new(row: &'r mut Row, template: &'static str, unread: &'r Unread) -> Self {
        Self {
            row,
            template,
            unread,
        }
    }

    /// What was read, or nothing where the value is of another kind.
    fn or_none<T>(
        &self,
        column: &'static str,
        read: Result<Option<T>, DbError>,
    ) -> Result<Option<T>, DbError> {
        match read {
            Err(DbError::Decode { .. }) => {
                self.unread.note(source(self.template, column));
                Ok(None)
            }
            read => read,
        }
    }

    pub fn opt_int(&mut self, column: &'static str) -> Result<Option<i64>, DbError> {
        let read = self.row.opt_int(column);
        self.or_none(column, read)
    }

    pub fn int(&mut self, column: &'static str) -> Result<i64, DbError> {
        Ok(self.opt_int(column)?.unwrap_or(0))
    }

    pub fn time(&mut self, column: &'static str) -> Result<Option<Stamp>, DbError> {
        let read = self.row.opt_time(column);
        Ok(self.or_none(column, read)?.map(Stamp))
    }

    pub fn opt_text(&mut self, column: &'static str) -> Result<Option<String>, DbError> {
        let read = self.row.opt_text(column);
        self.or_none(column, read)
    }

    pub fn text(&mut self, column: &'static str) -> Result<String, DbError> {
        Ok(self.opt_text(column)?.unwrap_or_default())
    }

    pub fn opt_json(&mut self, column: &'static str) -> Result<Option<Json>, DbError> {
        let read = self.row.opt_json(column);
        self.or_none(column, read)
    }
}

/// Which `table.column` a result of this template is made of: the last column before its name, and
/// the table that is gone through there.
fn source(template: &str, result: &str) -> String {
    const ENDS: [&str; 6] = ["_at", "_until", "_count", "_ms", "_bytes", "_fan_out"];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named = [format!(" as {result}"), format!(" as \"{result}\"")];
    let named = named.iter().find_map(|name| {
        let mut found = template.match_indices(name.as_str());
        found.find(|(at, _)| !template[at + name.len()..].starts_with(is_word))
    });
    let is_column = |word: &&str| ENDS.iter().any(|end| word.ends_with(end));
    let made = named.and_then(|(end, _)| {
        let mut words = template[..end].rsplit(|c| !is_word(c));
        words.find(is_column)
    });
    // A result without a name of its own is the column.
    let (column, at) = match made {
        Some(word) => (word, word.as_ptr() as usize - template.as_ptr() as usize),
        None => (result, template.find(result).unwrap_or(0)),
    };
    let rest = &template[at..];
    let (mut depth, mut least) = (0, 0);
    let from = rest.char_indices().find_map(|(at, c)| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        least = depth.min(least);
        let from = rest[at..].strip_prefix("from {");
        from.filter(|_| depth == least)
    });
    // Of a table made on the way, the one it was made of.
    let from = from.or_else(|| Some(template.rsplit_once("from {")?.1));
    let table = from.and_then(|from| Some(from.split_once('}')?.0));
    // The first of them stands where it is not null, and another where it is.
    let first = template[..at]
        .rsplit_once("coalesce(")
        .map(|(_, first)| first);
    let first = first.filter(|first| !first.contains([')', '(']));
    let first = first.and_then(|first| first.split(|c| !is_word(c)).find(is_column));
    let others = first.map_or(String::new(), |first| format!("{first} or "));
    format!("{}.{others}{column}", table.unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn what_cannot_be_read_is_named_by_table_and_column() {
        for (template, result, want) in [
            (
                "select max(updated_at) as newest, count(*) as n from {runs} where 1 = 1",
                "newest",
                "runs.updated_at",
            ),
            (
                "select (select min(c.accepted_at) from {commands} c where c.id = r.id) as first, \
                 min(r.started_at) as oldest from {runs} r",
                "first",
                "commands.accepted_at",
            ),
            (
                "select min(case when (a or b) then lease_expires_at end) as lost, \
                 (select count(*) from {other}) as n from {tasks}",
                "lost",
                "tasks.lease_expires_at",
            ),
            (
                "select queue, max(attempt_count) as most from (select t.attempt_count from {tasks} t) x",
                "most",
                "tasks.attempt_count",
            ),
            (
                "select min(case when (a) then coalesce(t.due_at, t.made_at) end) as oldest from {tasks} t",
                "oldest",
                "tasks.due_at or made_at",
            ),
            (
                "select worker_id, heard_at from {workers}",
                "heard_at",
                "workers.heard_at",
            ),
        ] {
            assert_eq!(source(template, result), want);
        }
    }
}
