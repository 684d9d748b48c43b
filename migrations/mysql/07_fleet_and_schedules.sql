-- Live workers, and schedules with their audit.
-- As the engine (2.0.0-rc.37) creates them on MySQL and MariaDB. Names in braces receive the table prefix.
-- Index names belong to their table here and stay as they are; constraint names do not.

-- One row per worker and scope; live while `expires_at` is ahead.
create table if not exists {workflow_worker_compatibility_heartbeats} (
    id bigint unsigned not null auto_increment,
    worker_id varchar(255) not null,
    scope_key varchar(64) not null,
    namespace varchar(255),
    host varchar(255),
    process_id varchar(255),
    connection varchar(255),
    queue varchar(255),
    supported json not null,
    recorded_at datetime(6) not null,
    expires_at datetime(6) not null,
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (id),
    unique key workflow_worker_compatibility_heartbeats_scope_unique (worker_id, scope_key),
    key workflow_worker_compatibility_heartbeats_namespace_index (namespace),
    key workflow_worker_compatibility_heartbeats_connection_index (connection),
    key workflow_worker_compatibility_heartbeats_queue_index (queue),
    key workflow_worker_compatibility_heartbeats_expires_at_index (expires_at)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;

-- Recurring starts.
create table if not exists {workflow_schedules} (
    id varchar(26) not null,
    schedule_id varchar(255) not null,
    namespace varchar(255),
    spec json,
    action json,
    status varchar(16) not null default 'active',
    overlap_policy varchar(32) not null default 'skip',
    note text,
    memo json,
    search_attributes json,
    visibility_labels json,
    jitter_seconds int unsigned not null default 0,
    max_runs bigint unsigned,
    remaining_actions bigint unsigned,
    fires_count bigint unsigned not null default 0,
    failures_count bigint unsigned not null default 0,
    recent_actions json,
    buffered_actions json,
    last_fired_at timestamp(6) null,
    next_fire_at timestamp(6) null,
    latest_workflow_instance_id varchar(191),
    connection varchar(255),
    queue varchar(255),
    paused_at timestamp(6) null,
    deleted_at timestamp(6) null,
    last_skip_reason varchar(64),
    last_skipped_at timestamp(6) null,
    skipped_trigger_count bigint unsigned not null default 0,
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (id),
    unique key workflow_schedules_namespace_schedule_id_unique (namespace, schedule_id),
    key workflow_schedules_status_next_fire_at_index (status, next_fire_at),
    key workflow_schedules_namespace_index (namespace),
    key workflow_schedules_latest_workflow_instance_id_index (latest_workflow_instance_id)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;

-- Append-only audit of a schedule.
create table if not exists {workflow_schedule_history_events} (
    id varchar(26) not null,
    workflow_schedule_id varchar(26) not null,
    schedule_id varchar(255) not null,
    namespace varchar(255),
    sequence int unsigned not null,
    event_type varchar(255) not null,
    payload json,
    workflow_instance_id varchar(191),
    workflow_run_id varchar(26),
    recorded_at timestamp(6) null,
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (id),
    unique key wf_schedule_history_schedule_sequence_unique (workflow_schedule_id, sequence),
    key wf_schedule_history_namespace_schedule_idx (namespace, schedule_id),
    key wf_schedule_history_event_recorded_idx (event_type, recorded_at),
    key wf_schedule_history_workflow_schedule_idx (workflow_schedule_id),
    key wf_schedule_history_schedule_idx (schedule_id),
    key wf_schedule_history_namespace_idx (namespace),
    key wf_schedule_history_instance_idx (workflow_instance_id),
    key wf_schedule_history_run_idx (workflow_run_id)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;
