//! What timer events say: one shape for scheduled, fired and cancelled.

use super::parallel::grouped;
use crate::durable::stored::loose::{Any, Int, Str, Text, Time, shape};

shape! {
    #[derive(Clone, Debug)]
    pub struct TimerEvent<'a> {
        pub timer_id: Str<'a>,
        pub sequence: Int,
        pub delay_seconds: Int,
        pub fire_at: Time,
        pub fired_at: Time,
        pub cancelled_at: Time,
        pub timer_kind: Text,
        pub condition_wait_id: Text,
        pub condition_key: Text,
        pub condition_definition_fingerprint: Text,
        pub signal_wait_id: Text,
        pub signal_name: Text,

        pub parallel_group_id: Text,
        pub parallel_group_kind: Text,
        pub parallel_group_base_sequence: Int,
        pub parallel_group_size: Int,
        pub parallel_group_index: Int,
        pub parallel_group_path: Any,
    }
}

grouped!(TimerEvent<'_>);
