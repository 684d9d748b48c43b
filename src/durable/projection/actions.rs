//! What an operator may do with a run, and why not. One rule per action.

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    identity::is_of_the_engine,
    list_item,
    liveness::is_replay_blocked,
    projected::Projected,
    repair_gate::{self, Facts},
};
use crate::durable::stored::RepairBlockedReason;

pub const NOT_CURRENT: &str = "selected_run_not_current";
pub const CLOSED: &str = "run_closed";
pub const NO_DEFINITION: &str = "workflow_definition_unavailable";

/// The gates of the engine's detail. Without the application's classes neither a query nor an
/// update can be run from here.
#[expect(
    clippy::struct_excessive_bools,
    reason = "one gate per action, each shown by itself"
)]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Actions {
    pub can_issue_terminal_commands: bool,
    pub can_query: bool,
    pub query_blocked_reason: Option<&'static str>,
    pub can_cancel: bool,
    pub cancel_blocked_reason: Option<&'static str>,
    pub can_terminate: bool,
    pub terminate_blocked_reason: Option<&'static str>,
    pub can_signal: bool,
    pub signal_blocked_reason: Option<&'static str>,
    pub can_update: bool,
    pub update_blocked_reason: Option<&'static str>,
    pub can_repair: bool,
    pub repair_blocked_reason: Option<RepairBlockedReason>,
    pub repair_attention: bool,
    pub repair_blocked: Option<Value>,
    pub can_archive: bool,
    pub archive_blocked_reason: Option<&'static str>,
    pub read_only_reason: Option<&'static str>,
}

pub fn actions(projected: &Projected<'_>) -> Actions {
    let snapshot = projected.cx.snapshot;
    let current = projected.current_run.is_current_run;
    let terminal = snapshot.run.status.is_terminal();
    let archived = snapshot.run.archived_at.is_some();
    let command = match (current, terminal) {
        (false, _) => Some(NOT_CURRENT),
        (true, true) => Some(CLOSED),
        (true, false) => None,
    };
    let archive = match (archived, terminal) {
        (true, _) => Some("run_archived"),
        (false, false) => Some("run_not_closed"),
        (false, true) => None,
    };
    // The engine asks the stored liveness, but the live tasks.
    let repair = repair_gate::decide(Facts {
        is_current_run: current,
        is_terminal: terminal,
        liveness_state: snapshot
            .summary
            .as_ref()
            .and_then(|summary| summary.liveness_state.as_ref()),
        replay_blocked_task: projected.tasks.iter().any(is_replay_blocked),
    })
    .err();
    let shown = repair.as_ref().and_then(repair_gate::shown);
    let undefined = (!is_of_the_engine(&snapshot.run)).then_some(NO_DEFINITION);
    Actions {
        can_issue_terminal_commands: command.is_none(),
        can_query: undefined.is_none(),
        query_blocked_reason: undefined,
        can_cancel: command.is_none(),
        cancel_blocked_reason: command,
        can_terminate: command.is_none(),
        terminate_blocked_reason: command,
        can_signal: command.is_none(),
        signal_blocked_reason: command,
        can_update: command.or(undefined).is_none(),
        update_blocked_reason: command.or(undefined),
        can_repair: repair.is_none(),
        repair_attention: snapshot.summary.as_ref().map_or_else(
            || shown.is_some_and(|shown| shown.badge_visible),
            |summary| summary.repair_attention,
        ),
        repair_blocked: repair
            .as_ref()
            .and_then(list_item::repair_blocked)
            .map(|blocked| json!(blocked)),
        repair_blocked_reason: repair,
        can_archive: archive.is_none(),
        archive_blocked_reason: archive,
        read_only_reason: match (archived, current, terminal) {
            (true, ..) => Some("This run is archived."),
            (false, false, _) => Some("A newer run of this instance is the current one."),
            (false, true, true) => Some("This run has ended."),
            (false, true, false) => None,
        },
    }
}
