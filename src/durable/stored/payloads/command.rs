//! What a command says about its caller, and how events name commands, signals and updates.

use crate::{
    db::Json,
    durable::stored::{
        EventType, HistoryEvent,
        loose::{self, Int, Map, Text, shape},
    },
};

shape! {
    /// `workflow_commands.context`, without the parts no page may show: of the request only what
    /// identifies it is read, never its address, agent or headers.
    #[derive(Clone, Debug)]
    pub struct CommandContext {
        pub caller: Map<CallerPart>,
        pub auth: Map<AuthPart>,
        pub request: Map<RequestPart>,
        pub workflow: Map<WorkflowPart>,
        pub intake: Map<IntakePart>,
        pub principal: Map<PrincipalPart>,
    }
}

shape! {
    #[derive(Clone, Debug)]
    pub struct CallerPart {
        pub label: Text,
    }
}

shape! {
    #[derive(Clone, Debug)]
    pub struct AuthPart {
        pub status: Text,
        pub method: Text,
    }
}

shape! {
    #[derive(Clone, Debug)]
    pub struct RequestPart {
        pub method: Text,
        pub path: Text,
        pub route_name: Text,
        pub request_id: Text,
        pub correlation_id: Text,
        pub fingerprint: Text,
    }
}

shape! {
    #[derive(Clone, Debug)]
    pub struct WorkflowPart {
        pub parent_instance_id: Text,
        pub parent_run_id: Text,
        pub sequence: Int,
        pub child_call_id: Text,
    }
}

shape! {
    #[derive(Clone, Debug)]
    pub struct IntakePart {
        pub mode: Text,
        pub group_id: Text,
    }
}

shape! {
    #[derive(Clone, Debug)]
    pub struct PrincipalPart {
        #[key = "type"]
        pub kind: Text,
        pub id: Text,
        pub label: Text,
    }
}

impl CommandContext {
    pub fn of(stored: Option<&Json>) -> Self {
        match stored {
            Some(Json::Value(value)) => loose::read_value(value),
            Some(Json::Malformed(_)) | None => Self::default(),
        }
    }
}

shape! {
    /// The `command` snapshot an event carries: the state of the command when it was written.
    #[derive(Clone, Debug)]
    pub struct CommandSnapshot {
        pub id: Text,
        pub sequence: Int,
        pub target_scope: Text,
        pub requested_run_id: Text,
        pub resolved_run_id: Text,
        pub payload_codec: Text,
        pub source: Text,
        pub outcome: Text,
    }
}

shape! {
    /// A signal's event.
    #[derive(Clone, Debug)]
    pub struct SignalEvent {
        pub signal_name: Text,
        pub signal_wait_id: Text,
        pub sequence: Int,
    }
}

shape! {
    /// By which keys an event belongs to a command, a signal or an update.
    #[derive(Clone, Debug)]
    #[expect(clippy::struct_field_names, reason = "the engine's names")]
    pub struct Named {
        workflow_command_id: Text,
        signal_id: Text,
        workflow_signal_id: Text,
        update_id: Text,
        workflow_update_id: Text,
    }
}

impl Named {
    /// Reads only payloads that can name one: those of steps are many, large, and never do.
    pub fn of(event: &HistoryEvent) -> Self {
        let mut named = if names_commands(&event.event_type) {
            event.as_payload()
        } else {
            Self::default()
        };
        if event.workflow_command_id.is_some() {
            named.workflow_command_id = Text(event.workflow_command_id.clone());
        }
        named
    }

    /// Of the command itself; one that the event only kept a copy of is not asked.
    pub fn command_id(&self) -> Option<&str> {
        self.workflow_command_id.as_deref()
    }

    pub fn signal_id(&self) -> Option<&str> {
        self.signal_id
            .as_deref()
            .or(self.workflow_signal_id.as_deref())
    }

    pub fn update_id(&self) -> Option<&str> {
        self.update_id
            .as_deref()
            .or(self.workflow_update_id.as_deref())
    }
}

fn names_commands(event_type: &EventType) -> bool {
    !matches!(
        event_type,
        EventType::ActivityScheduled
            | EventType::ActivityStarted
            | EventType::ActivityHeartbeatRecorded
            | EventType::ActivityRetryScheduled
            | EventType::ActivityCompleted
            | EventType::ActivityFailed
            | EventType::ActivityCancelled
            | EventType::ActivityTimedOut
            | EventType::TimerScheduled
            | EventType::TimerFired
            | EventType::TimerCancelled
            | EventType::ChildWorkflowScheduled
            | EventType::ChildRunStarted
            | EventType::ChildRunCompleted
            | EventType::ChildRunFailed
            | EventType::ChildRunCancelled
            | EventType::ChildRunTerminated
            | EventType::SideEffectRecorded
            | EventType::VersionMarkerRecorded
            | EventType::FailureHandled
            | EventType::SearchAttributesUpserted
            | EventType::MemoUpserted
            | EventType::MessageCursorAdvanced
            | EventType::WorkflowCompleted
            | EventType::WorkflowFailed
    )
}
