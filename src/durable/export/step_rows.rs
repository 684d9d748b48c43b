//! The rows of a run's steps, kept beside the export: each table is read once and from end to end.
//! Looked up by the ids of a batch, they would cost a server several statements for every few
//! hundred events.

use std::{io, sync::Arc};

use super::{known_tasks::KnownTasks, spool::Spool, stream::ExportError};
use crate::{
    db::{Columns, Row},
    durable::stored::{Notices, Stored},
};

#[derive(Debug, Default)]
pub struct StepRows {
    pub executions: Kept,
    pub attempts: Kept,
    pub timers: Kept,
    pub tasks: KnownTasks,
}

/// Rows of one statement, by the place they came in.
#[derive(Debug, Default)]
pub struct Kept {
    columns: Option<Arc<Columns>>,
    rows: Spool<()>,
}

impl Kept {
    pub fn push(&mut self, row: &Row) -> io::Result<u32> {
        let at = u32::try_from(self.rows.len()).map_err(io::Error::other)?;
        self.columns
            .get_or_insert_with(|| Arc::clone(row.columns()));
        self.rows.push_with((), |out| row.pack(out))?;
        Ok(at)
    }

    /// Those at some places.
    pub fn at<T: Stored>(
        &mut self,
        places: impl IntoIterator<Item = u32>,
        notices: &mut Notices,
    ) -> Result<Vec<T>, ExportError> {
        let Some(columns) = &self.columns else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for at in places {
            if let Some(packed) = self.rows.text(at as usize)? {
                let mut row = Row::unpack(columns, packed)?;
                found.push(T::read(&mut row, notices)?);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{db::Val, durable::stored::AttemptRow};

    #[test]
    fn rows_are_found_by_the_place_they_came_in() {
        let columns = Columns::named(AttemptRow::COLUMNS.split(", "));
        let mut kept = Kept::default();
        let nothing = kept.at::<AttemptRow>([0], &mut Notices::default());
        assert_eq!(nothing.unwrap(), []);
        for id in ["a", "b", "c"] {
            let row = columns.row(|column| match column {
                "attempt_number" => Val::Int(1),
                "started_at" | "last_heartbeat_at" | "lease_expires_at" | "closed_at"
                | "created_at" | "updated_at" => Val::Null,
                _ => id.into(),
            });
            kept.push(&row).unwrap();
        }
        let found = kept.at::<AttemptRow>([2, 0, 7], &mut Notices::default());
        let found: Vec<String> = found.unwrap().into_iter().map(|row| row.id).collect();
        assert_eq!(found, ["c", "a"]);
    }
}
