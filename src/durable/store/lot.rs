//! Rows of a table on their way from the database: read as they arrive, and kept by the run they
//! belong to.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::past::History;
use crate::{
    db::{DbError, Row},
    durable::stored::{EventType, HistoryEvent, Notices, Stored},
};

/// The rows of one table.
#[derive(Clone, Debug)]
pub(super) enum Lot<T> {
    /// Not looked at yet.
    Rows(Vec<Row>),
    /// Read as they arrived, so that a long run's rows and what they say never stand in memory
    /// side by side.
    Read(Vec<T>, Notices),
}

impl<T> Default for Lot<T> {
    fn default() -> Self {
        Self::Rows(Vec::new())
    }
}

impl<T> From<Vec<Row>> for Lot<T> {
    fn from(rows: Vec<Row>) -> Self {
        Self::Rows(rows)
    }
}

impl<T: Stored> Lot<T> {
    pub(super) fn to_read() -> Self {
        Self::Read(Vec::new(), Notices::default())
    }

    /// `room` is how many rows may come: a list that grows as they do is copied again and again.
    pub(super) fn take(&mut self, row: &mut Row, room: usize) -> Result<(), DbError> {
        match self {
            Self::Rows(rows) => rows.push(row.kept()),
            Self::Read(read, notices) => {
                if read.is_empty() {
                    read.reserve(room);
                }
                read.push(T::read(row, notices)?);
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Rows(rows) => rows.is_empty(),
            Self::Read(read, _) => read.is_empty(),
        }
    }

    pub(super) fn read(self, notices: &mut Notices) -> Result<Vec<T>, DbError> {
        match self {
            Self::Rows(rows) => rows
                .into_iter()
                .map(|mut row| T::read(&mut row, notices))
                .collect(),
            Self::Read(read, noted) => {
                notices.extend(&noted);
                Ok(read)
            }
        }
    }

    #[cfg(test)]
    pub(super) fn rows(&mut self) -> &mut Vec<Row> {
        match self {
            Self::Rows(rows) => rows,
            Self::Read(..) => unreachable!("these rows were asked for as they are"),
        }
    }
}

/// A run's history: read before, or now.
#[derive(Clone, Debug)]
pub(super) enum Events {
    Known(History),
    Rows(Lot<HistoryEvent>),
}

impl Events {
    /// The type and payload of each.
    pub(super) fn each(&self) -> Box<dyn Iterator<Item = (EventType, Option<&str>)> + '_> {
        match self {
            Self::Known(history) => Box::new(history.iter().map(of_event)),
            Self::Rows(Lot::Read(events, _)) => Box::new(events.iter().map(of_event)),
            Self::Rows(Lot::Rows(rows)) => Box::new(rows.iter().filter_map(|row| {
                let event_type = row.peek("event_type").map(EventType::from)?;
                Some((event_type, row.peek("payload")))
            })),
        }
    }
}

fn of_event(event: &HistoryEvent) -> (EventType, Option<&str>) {
    (event.event_type.clone(), event.payload.as_deref())
}

/// Rows by the id of their run, each run's in the order they came. Cloned, it is the same list:
/// rows are put in where they are read.
#[derive(Debug)]
pub(super) struct ByRun<L>(Arc<Mutex<HashMap<String, L>>>);

impl<L> Clone for ByRun<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L> Default for ByRun<L> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<L> ByRun<L> {
    fn lists(&self) -> MutexGuard<'_, HashMap<String, L>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, run_id: &str, list: L) {
        self.lists().insert(run_id.to_owned(), list);
    }
}

impl<L: Default> ByRun<L> {
    pub fn take(&self, run_id: &str) -> L {
        self.lists().remove(run_id).unwrap_or_default()
    }

    /// What is there of one run, from a blank list on.
    pub fn with<T>(
        &self,
        run_id: &str,
        blank: impl FnOnce() -> L,
        put: impl FnOnce(&mut L) -> T,
    ) -> T {
        let mut lists = self.lists();
        match lists.get_mut(run_id) {
            Some(list) => put(list),
            None => put(lists.entry(run_id.to_owned()).or_insert_with(blank)),
        }
    }
}
