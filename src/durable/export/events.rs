//! The history as it was read, kept beside the export: the database gives it only once.

use std::{io, sync::OnceLock};

use super::{plan::Names, spool::Spool};
use crate::{
    db::packed::{pack_bytes, pack_int, pack_time, unpack_int, unpack_text, unpack_time},
    durable::stored::HistoryEvent,
};

/// Every event of the run, by its position in the history.
#[derive(Debug, Default)]
pub struct Events(Spool<()>);

/// The rows an event names in its payload.
#[derive(Debug, Default, PartialEq)]
pub struct Named {
    pub command: Option<String>,
    pub activity: Option<String>,
    pub timer: Option<String>,
}

impl Events {
    pub fn push(&mut self, event: &HistoryEvent, names: &Names) -> io::Result<()> {
        self.0.push_with((), |out| {
            pack(out, event);
            for name in [
                &names.workflow_command_id,
                &names.activity_execution_id,
                &names.timer_id,
            ] {
                pack_text(out, name.as_deref());
            }
        })
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn get(&mut self, position: usize) -> io::Result<Option<HistoryEvent>> {
        let packed = self.0.text(position)?;
        packed.map(|mut packed| unpack(&mut packed)).transpose()
    }

    /// Those at some positions, and what they name.
    pub fn at(&mut self, positions: &[u32]) -> io::Result<(Vec<HistoryEvent>, Vec<Named>)> {
        let mut events = Vec::with_capacity(positions.len());
        let mut names = Vec::with_capacity(positions.len());
        for position in positions {
            if let Some(packed) = &mut self.0.text(*position as usize)? {
                events.push(unpack(packed)?);
                names.push(Named {
                    command: unpack_text(packed)?,
                    activity: unpack_text(packed)?,
                    timer: unpack_text(packed)?,
                });
            }
        }
        Ok((events, names))
    }
}

fn pack(out: &mut Vec<u8>, event: &HistoryEvent) {
    pack_int(out, event.sequence);
    for at in [event.recorded_at, event.created_at] {
        pack_time(out, at.map(|at| at.naive_utc()));
    }
    for text in [
        Some(event.id.as_str()),
        Some(event.event_type.as_str()),
        event.workflow_task_id.as_deref(),
        event.workflow_command_id.as_deref(),
        event.payload.as_deref(),
    ] {
        pack_text(out, text);
    }
}

fn pack_text(out: &mut Vec<u8>, text: Option<&str>) {
    pack_bytes(out, text.map(str::as_bytes));
}

fn unpack(packed: &mut &[u8]) -> io::Result<HistoryEvent> {
    let sequence = unpack_int(packed)?;
    let (recorded_at, created_at) = (unpack_time(packed)?, unpack_time(packed)?);
    Ok(HistoryEvent {
        sequence,
        recorded_at: recorded_at.map(|at| at.and_utc()),
        created_at: created_at.map(|at| at.and_utc()),
        id: unpack_text(packed)?.unwrap_or_default(),
        event_type: unpack_text(packed)?.unwrap_or_default().into(),
        workflow_task_id: unpack_text(packed)?,
        workflow_command_id: unpack_text(packed)?,
        payload: unpack_text(packed)?,
        is_json: OnceLock::new(),
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use crate::durable::stored::{EventType, loose::read_value};

    #[test]
    fn an_event_comes_back_as_it_was() {
        let bare = HistoryEvent::default();
        let full = HistoryEvent {
            id: "01é".into(),
            sequence: -7,
            event_type: EventType::from("TimerFired".to_owned()),
            payload: Some(String::new()),
            workflow_task_id: Some("t".into()),
            workflow_command_id: Some("c".into()),
            recorded_at: "2016-12-31T23:59:60.000001Z".parse().ok(),
            created_at: DateTime::from_timestamp(-1, 5),
            is_json: OnceLock::new(),
        };
        let mut events = Events::default();
        for event in [&bare, &full, &bare] {
            let names = json!({"timer_id": event.workflow_task_id});
            let names: Names = read_value(&names);
            events.push(event, &names).unwrap();
        }
        assert_eq!(events.len(), 3);
        assert_eq!(events.get(1).unwrap(), Some(full.clone()));
        assert_eq!(events.get(3).unwrap(), None);
        let (found, names) = events.at(&[1, 0, 9]).unwrap();
        assert_eq!(found, [full, bare]);
        let named = Named {
            timer: Some("t".into()),
            ..Named::default()
        };
        assert_eq!(names, [named, Named::default()]);
    }
}
