//! The line an update stands in: signals accepted before it go first.

use super::Admission;
use crate::durable::stored::{CommandRow, CommandStatus, CommandType, UpdateStatus};

/// The accepted signals not yet applied.
pub(super) struct Line<'a> {
    /// The first that has a place.
    placed: Option<&'a CommandRow>,
    /// The first of all; those without a place come last.
    first: Option<&'a CommandRow>,
}

impl<'a> Line<'a> {
    pub fn of(commands: &'a [CommandRow]) -> Self {
        let waiting = || {
            commands
                .iter()
                .filter(|command| command.command_type == CommandType::Signal)
                .filter(|command| command.status == CommandStatus::Accepted)
                .filter(|command| command.applied_at.is_none())
        };
        let order = |command: &&CommandRow| {
            (
                command.command_sequence,
                command.created_at,
                command.id.clone(),
            )
        };
        let placed = waiting()
            .filter(|command| command.command_sequence.is_some())
            .min_by_key(order);
        Self {
            placed,
            first: placed.or_else(|| waiting().min_by_key(order)),
        }
    }

    /// The signal before this update; any, for an update that has no place.
    fn blocking(&self, command_sequence: Option<i64>) -> Option<&'a CommandRow> {
        match command_sequence {
            Some(own) => self
                .placed
                .filter(|signal| signal.command_sequence < Some(own)),
            None => self.first,
        }
    }

    /// How the update stands now. What was not recorded when it was accepted is, while it is
    /// open, what holds now.
    pub fn place(
        &self,
        status: &UpdateStatus,
        command_sequence: Option<i64>,
        admission: &mut Admission,
    ) -> &'static str {
        if *status != UpdateStatus::Accepted {
            return ordering_state(status, false);
        }
        let blocking = self.blocking(command_sequence);
        let state = ordering_state(status, blocking.is_some());
        admission
            .admission_ordering_state
            .get_or_insert_with(|| state.to_owned());
        if let Some(signal) = blocking {
            admission
                .queued_behind_command_id
                .get_or_insert_with(|| signal.id.clone());
            admission.queued_behind_command_sequence = admission
                .queued_behind_command_sequence
                .or(signal.command_sequence);
            admission
                .queued_behind_command_type
                .get_or_insert_with(|| signal.command_type.as_str().to_owned());
        }
        state
    }
}

fn ordering_state(status: &UpdateStatus, blocked: bool) -> &'static str {
    match status {
        UpdateStatus::Accepted if blocked => "queued",
        UpdateStatus::Accepted => "ready",
        UpdateStatus::Completed => "applied",
        UpdateStatus::Failed => "failed",
        UpdateStatus::Rejected => "rejected",
        UpdateStatus::Other(_) => "closed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::projection::example::command;

    #[test]
    fn an_update_waits_its_turn_only_while_it_is_open() {
        for (status, blocked, want) in [
            ("accepted", false, "ready"),
            ("accepted", true, "queued"),
            ("completed", true, "applied"),
            ("failed", false, "failed"),
            ("rejected", false, "rejected"),
            ("withdrawn", true, "closed"),
        ] {
            assert_eq!(ordering_state(&status.into(), blocked), want, "{status}");
        }
    }

    #[test]
    fn an_update_stands_behind_signals_with_a_lower_place() {
        let signal = |id: &str, place| CommandRow {
            command_sequence: place,
            ..command(id, CommandType::Signal)
        };
        for (what, signals, own, want) in [
            ("no signal", vec![], Some(3), None),
            (
                "an earlier one",
                vec![signal("a", Some(2))],
                Some(3),
                Some("a"),
            ),
            ("a later one", vec![signal("a", Some(4))], Some(3), None),
            (
                "one without a place",
                vec![signal("a", None)],
                Some(3),
                None,
            ),
            (
                "any, for an update without a place",
                vec![signal("a", None), signal("b", Some(9))],
                None,
                Some("b"),
            ),
            ("the last resort", vec![signal("a", None)], None, Some("a")),
        ] {
            let blocking = Line::of(&signals).blocking(own);
            assert_eq!(blocking.map(|signal| signal.id.as_str()), want, "{what}");
        }
    }
}
