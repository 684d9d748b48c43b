//! The engine's settings as its own JSON echoes them.

use serde::Serialize;

use crate::durable::engine_config::EngineConfig;

pub const SCAN_STRATEGY: &str = "scope_fair_round_robin";

#[derive(Clone, Debug, Serialize)]
pub struct RepairPolicy {
    pub redispatch_after_seconds: i64,
    pub loop_throttle_seconds: i64,
    pub scan_limit: i64,
    pub scan_strategy: &'static str,
    pub failure_backoff_max_seconds: i64,
    pub failure_backoff_strategy: &'static str,
}

impl RepairPolicy {
    pub fn of(config: &EngineConfig) -> Self {
        Self {
            redispatch_after_seconds: config.int("task_repair.redispatch_after_seconds"),
            loop_throttle_seconds: config.int("task_repair.loop_throttle_seconds"),
            scan_limit: config.int("task_repair.scan_limit"),
            scan_strategy: SCAN_STRATEGY,
            failure_backoff_max_seconds: config.int("task_repair.failure_backoff_max_seconds"),
            failure_backoff_strategy: "exponential_by_repair_count",
        }
    }
}

/// The ten structural limits; 0 switches one off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    pub pending_activity_count: i64,
    pub pending_child_count: i64,
    pub pending_timer_count: i64,
    pub pending_signal_count: i64,
    pub pending_update_count: i64,
    pub command_batch_size: i64,
    pub payload_size_bytes: i64,
    pub memo_size_bytes: i64,
    pub search_attribute_size_bytes: i64,
    pub history_transaction_size: i64,
    pub warning_threshold_percent: i64,
}

impl Limits {
    pub fn of(config: &EngineConfig) -> Self {
        let limit = |path| config.int(path);
        Self {
            pending_activity_count: limit("structural_limits.pending_activity_count"),
            pending_child_count: limit("structural_limits.pending_child_count"),
            pending_timer_count: limit("structural_limits.pending_timer_count"),
            pending_signal_count: limit("structural_limits.pending_signal_count"),
            pending_update_count: limit("structural_limits.pending_update_count"),
            command_batch_size: limit("structural_limits.command_batch_size"),
            payload_size_bytes: limit("structural_limits.payload_size_bytes"),
            memo_size_bytes: limit("structural_limits.memo_size_bytes"),
            search_attribute_size_bytes: limit("structural_limits.search_attribute_size_bytes"),
            history_transaction_size: limit("structural_limits.history_transaction_size"),
            warning_threshold_percent: limit("structural_limits.warning_threshold_percent"),
        }
    }

    /// The limits by name.
    pub fn kinds(&self) -> [(&'static str, i64); 10] {
        [
            ("pending_activity_count", self.pending_activity_count),
            ("pending_child_count", self.pending_child_count),
            ("pending_timer_count", self.pending_timer_count),
            ("pending_signal_count", self.pending_signal_count),
            ("pending_update_count", self.pending_update_count),
            ("command_batch_size", self.command_batch_size),
            ("payload_size_bytes", self.payload_size_bytes),
            ("memo_size_bytes", self.memo_size_bytes),
            (
                "search_attribute_size_bytes",
                self.search_attribute_size_bytes,
            ),
            ("history_transaction_size", self.history_transaction_size),
        ]
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct UpdateWait {
    pub completion_timeout_seconds: i64,
    pub poll_interval_milliseconds: i64,
}

impl UpdateWait {
    pub fn of(config: &EngineConfig) -> Self {
        Self {
            completion_timeout_seconds: config.int("update_wait.completion_timeout_seconds"),
            poll_interval_milliseconds: config.int("update_wait.poll_interval_milliseconds"),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct MatchingRole {
    pub queue_wake_enabled: bool,
    pub shape: &'static str,
    pub wake_owner: &'static str,
    pub task_dispatch_mode: String,
    pub partition_primitives: [&'static str; 4],
    pub backpressure_model: &'static str,
    pub discovery_limits: DiscoveryLimits,
}

#[derive(Clone, Debug, Serialize)]
pub struct DiscoveryLimits {
    pub poll_batch_cap: i64,
    pub availability_ceiling_seconds: i64,
    pub wake_signal_ttl_seconds: i64,
    pub workflow_task_lease_seconds: i64,
    pub activity_task_lease_seconds: i64,
}

impl MatchingRole {
    pub fn of(config: &EngineConfig) -> Self {
        let wakes = config.flag("matching_role.queue_wake_enabled");
        Self {
            queue_wake_enabled: wakes,
            shape: if wakes { "in_worker" } else { "dedicated" },
            wake_owner: if wakes {
                "worker_loop"
            } else {
                "dedicated_repair_pass"
            },
            task_dispatch_mode: dispatch_mode(config).to_owned(),
            partition_primitives: ["connection", "queue", "compatibility", "namespace"],
            backpressure_model: "lease_ownership",
            discovery_limits: DiscoveryLimits {
                poll_batch_cap: 100,
                availability_ceiling_seconds: 1,
                wake_signal_ttl_seconds: 60,
                workflow_task_lease_seconds: config.int("workflow_task_lease_seconds"),
                activity_task_lease_seconds: 300,
            },
        }
    }
}

pub fn dispatch_mode(config: &EngineConfig) -> &str {
    config.text("task_dispatch_mode").unwrap_or("queue")
}
