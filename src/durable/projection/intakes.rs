//! Commands that were taken in as one, such as a signal that starts its run.

use serde::Serialize;

use super::commands::Command;
use crate::durable::stored::{CommandStatus, CommandType};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkedIntake {
    pub group_id: String,
    pub mode: String,
    pub source: &'static str,
    pub complete: bool,
    pub missing_expected_command_types: Vec<&'static str>,
    pub command_count: usize,
    pub command_ids: Vec<String>,
    /// Of those that have one.
    pub command_sequences: Vec<i64>,
    pub start_command_id: Option<String>,
    pub start_command_sequence: Option<i64>,
    pub start_command_status: Option<CommandStatus>,
    pub start_outcome: Option<String>,
    pub primary_command_id: Option<String>,
    pub primary_command_sequence: Option<i64>,
    pub primary_command_type: Option<CommandType>,
    pub primary_command_status: Option<CommandStatus>,
    pub primary_outcome: Option<String>,
    pub commands: Vec<IntakeCommand>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntakeCommand {
    pub id: String,
    pub sequence: Option<i64>,
    #[serde(rename = "type")]
    pub command_type: CommandType,
    pub status: CommandStatus,
    pub outcome: Option<String>,
    pub target_scope: String,
    pub requested_run_id: Option<String>,
    pub resolved_run_id: Option<String>,
    pub target_name: Option<String>,
}

/// Groups in the order their first command was taken in.
pub fn linked_intakes(commands: &[Command]) -> Vec<LinkedIntake> {
    let mut members: Vec<(&str, &str, &Command)> = commands
        .iter()
        .filter_map(|command| {
            let intake = command.caller.context.intake.as_ref()?;
            Some((
                intake.group_id.as_deref()?,
                intake.mode.as_deref()?,
                command,
            ))
        })
        .collect();
    // By group and, within it, by sequence, so that each group is one run of the list.
    members
        .sort_by(|(a_group, _, a), (b_group, _, b)| (a_group, order(a)).cmp(&(b_group, order(b))));
    let mut groups: Vec<&[(&str, &str, &Command)]> = members.chunk_by(|a, b| a.0 == b.0).collect();
    groups.sort_by_key(|group| group.first().map(|(_, _, first)| order(first)));
    groups.into_iter().filter_map(group).collect()
}

fn order(command: &Command) -> (i64, &str) {
    (command.sequence.unwrap_or(i64::MAX), &command.id)
}

fn group(members: &[(&str, &str, &Command)]) -> Option<LinkedIntake> {
    let (group_id, mode, first) = members.first().copied()?;
    let commands = || members.iter().map(|(_, _, command)| *command);
    let start = commands().find(|command| command.command_type == CommandType::Start);
    let primary = commands()
        .find(|command| command.command_type != CommandType::Start)
        .unwrap_or(first);
    let missing: Vec<&'static str> = expected(mode)
        .iter()
        .copied()
        .filter(|kind| !commands().any(|command| command.command_type.as_str() == *kind))
        .collect();
    Some(LinkedIntake {
        group_id: group_id.to_owned(),
        mode: mode.to_owned(),
        source: "workflow_commands.context.intake",
        complete: missing.is_empty(),
        missing_expected_command_types: missing,
        command_count: members.len(),
        command_ids: commands().map(|command| command.id.clone()).collect(),
        command_sequences: commands().filter_map(|command| command.sequence).collect(),
        start_command_id: start.map(|command| command.id.clone()),
        start_command_sequence: start.and_then(|command| command.sequence),
        start_command_status: start.map(|command| command.status.clone()),
        start_outcome: start.and_then(|command| command.outcome.clone()),
        primary_command_id: Some(primary.id.clone()),
        primary_command_sequence: primary.sequence,
        primary_command_type: Some(primary.command_type.clone()),
        primary_command_status: Some(primary.status.clone()),
        primary_outcome: primary.outcome.clone(),
        commands: commands().map(member).collect(),
    })
}

/// The commands an intake of this mode consists of.
fn expected(mode: &str) -> &'static [&'static str] {
    match mode {
        "signal_with_start" => &["start", "signal"],
        _ => &[],
    }
}

fn member(command: &Command) -> IntakeCommand {
    IntakeCommand {
        id: command.id.clone(),
        sequence: command.sequence,
        command_type: command.command_type.clone(),
        status: command.status.clone(),
        outcome: command.outcome.clone(),
        target_scope: command.target_scope.clone(),
        requested_run_id: command.requested_run_id.clone(),
        resolved_run_id: command.resolved_run_id.clone(),
        target_name: command.target_name.clone(),
    }
}
