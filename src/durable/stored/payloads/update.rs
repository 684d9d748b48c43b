//! The payloads of `UpdateAccepted`, `UpdateRejected`, `UpdateApplied` and `UpdateCompleted`.

use super::command::CommandSnapshot;
use crate::durable::stored::{
    HistoryEvent,
    loose::{Any, Int, Map, Noted, Text, shape},
};

shape! {
    #[derive(Clone, Debug)]
    pub struct UpdateEvent {
        workflow_command_id: Text,
        pub update_id: Text,
        pub update_name: Text,
        pub sequence: Int,
        pub command_sequence: Int,
        pub ordering_state: Text,
        pub queued_behind_command_id: Text,
        pub queued_behind_command_sequence: Int,
        pub queued_behind_command_type: Text,
        pub rejection_reason: Text,
        pub validation_errors: Any,
        pub payload_codec: Text,
        /// Null is still a value: only a missing key leaves it to the row.
        pub arguments: Noted<Any>,
        pub result: Noted<Any>,
        pub failure_id: Text,
        pub message: Text,
        pub command: Map<CommandSnapshot>,
    }
}

impl UpdateEvent {
    pub fn command_id<'a>(&'a self, event: &'a HistoryEvent) -> Option<&'a str> {
        event
            .workflow_command_id
            .as_deref()
            .or(self.workflow_command_id.as_deref())
            .or_else(|| self.command.as_ref()?.id.as_deref())
    }
}
