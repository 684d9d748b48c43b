//! What events say about waits for a condition or a signal, and the timers that end them.

use crate::durable::stored::loose::{Int, Map, Text, Time, shape};

shape! {
    /// `ConditionWait*`, and the timer events of a condition's timeout.
    #[derive(Clone, Debug)]
    pub struct ConditionEvent {
        pub condition_wait_id: Text,
        pub condition_key: Text,
        pub condition_definition_fingerprint: Text,
        pub sequence: Int,
        pub timeout_seconds: Int,
        pub delay_seconds: Int,
        pub timer_kind: Text,
        pub timer_id: Text,
        pub fire_at: Time,
        pub fired_at: Time,
    }
}

shape! {
    /// `SignalWaitOpened`, `SignalReceived`, `SignalApplied`, and the timer events of a signal's
    /// timeout.
    #[derive(Clone, Debug)]
    pub struct SignalEvent {
        pub signal_name: Text,
        pub signal_wait_id: Text,
        pub signal_id: Text,
        pub sequence: Int,
        pub timeout_seconds: Int,
        pub delay_seconds: Int,
        pub timer_kind: Text,
        pub timer_id: Text,
        pub fire_at: Time,
        pub fired_at: Time,
        pub workflow_command_id: Text,
        pub outcome: Text,
        pub command: Map<CommandSnapshot>,
    }
}

shape! {
    /// The command as it stood when the event was written.
    #[derive(Clone, Debug)]
    pub struct CommandSnapshot {
        pub id: Text,
        pub sequence: Int,
        pub outcome: Text,
    }
}
