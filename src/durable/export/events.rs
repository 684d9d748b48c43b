//! The history as it was read, kept beside the export: the database gives it only once.

use std::{
    io::{self, Read as _},
    sync::OnceLock,
};

use chrono::{DateTime, Utc};

use super::{plan::Names, spool::Spool};
use crate::durable::stored::HistoryEvent;

/// No text.
const NONE: u32 = u32::MAX;

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
                    command: text(packed)?,
                    activity: text(packed)?,
                    timer: text(packed)?,
                });
            }
        }
        Ok((events, names))
    }
}

fn pack(out: &mut Vec<u8>, event: &HistoryEvent) {
    out.extend_from_slice(&event.sequence.to_le_bytes());
    for at in [event.recorded_at, event.created_at] {
        let (seconds, nanos) = at.map_or((0, NONE), |at| {
            (at.timestamp(), at.timestamp_subsec_nanos())
        });
        out.extend_from_slice(&seconds.to_le_bytes());
        out.extend_from_slice(&nanos.to_le_bytes());
    }
    // No database holds a text of four gigabytes.
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
    let long = text.and_then(|text| u32::try_from(text.len()).ok());
    out.extend_from_slice(&long.unwrap_or(NONE).to_le_bytes());
    out.extend_from_slice(text.unwrap_or_default().as_bytes());
}

fn unpack(packed: &mut &[u8]) -> io::Result<HistoryEvent> {
    let sequence = i64::from_le_bytes(take(packed)?);
    let (recorded_at, created_at) = (moment(packed)?, moment(packed)?);
    Ok(HistoryEvent {
        sequence,
        recorded_at,
        created_at,
        id: text(packed)?.unwrap_or_default(),
        event_type: text(packed)?.unwrap_or_default().into(),
        workflow_task_id: text(packed)?,
        workflow_command_id: text(packed)?,
        payload: text(packed)?,
        is_json: OnceLock::new(),
    })
}

fn take<const N: usize>(packed: &mut &[u8]) -> io::Result<[u8; N]> {
    let mut taken = [0; N];
    packed.read_exact(&mut taken)?;
    Ok(taken)
}

fn moment(packed: &mut &[u8]) -> io::Result<Option<DateTime<Utc>>> {
    let seconds = i64::from_le_bytes(take(packed)?);
    let nanos = u32::from_le_bytes(take(packed)?);
    Ok(DateTime::from_timestamp(seconds, nanos))
}

fn text(packed: &mut &[u8]) -> io::Result<Option<String>> {
    let long = u32::from_le_bytes(take(packed)?);
    if long == NONE {
        return Ok(None);
    }
    let mut text = vec![0; long as usize];
    packed.read_exact(&mut text)?;
    String::from_utf8(text).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::stored::EventType;

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
            let names: Names = serde_json::from_value(names).unwrap();
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
