-- Live workers, and schedules with their audit.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- One row per worker and scope; live while `expires_at` is ahead.
create table if not exists {workflow_worker_compatibility_heartbeats} (
    id bigserial,
    worker_id varchar(255) not null,
    scope_key varchar(64) not null,
    namespace varchar(255),
    host varchar(255),
    process_id varchar(255),
    connection varchar(255),
    queue varchar(255),
    supported json not null,
    recorded_at timestamp(6) not null,
    expires_at timestamp(6) not null,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_worker_compatibility_heartbeats_scope_unique} unique (worker_id, scope_key)
);
create index if not exists {workflow_worker_compatibility_heartbeats_connection_index} on {workflow_worker_compatibility_heartbeats} (connection);
create index if not exists {workflow_worker_compatibility_heartbeats_expires_at_index} on {workflow_worker_compatibility_heartbeats} (expires_at);
create index if not exists {workflow_worker_compatibility_heartbeats_namespace_index} on {workflow_worker_compatibility_heartbeats} (namespace);
create index if not exists {workflow_worker_compatibility_heartbeats_queue_index} on {workflow_worker_compatibility_heartbeats} (queue);

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
    jitter_seconds integer not null default 0,
    max_runs bigint,
    remaining_actions bigint,
    fires_count bigint not null default '0'::bigint,
    failures_count bigint not null default '0'::bigint,
    recent_actions json,
    buffered_actions json,
    last_fired_at timestamp(6),
    next_fire_at timestamp(6),
    latest_workflow_instance_id varchar(191),
    connection varchar(255),
    queue varchar(255),
    paused_at timestamp(6),
    deleted_at timestamp(6),
    last_skip_reason varchar(64),
    last_skipped_at timestamp(6),
    skipped_trigger_count bigint not null default '0'::bigint,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_schedules_namespace_schedule_id_unique} unique (namespace, schedule_id)
);
create index if not exists {workflow_schedules_latest_workflow_instance_id_index} on {workflow_schedules} (latest_workflow_instance_id);
create index if not exists {workflow_schedules_namespace_index} on {workflow_schedules} (namespace);
create index if not exists {workflow_schedules_status_next_fire_at_index} on {workflow_schedules} (status, next_fire_at);

-- Append-only audit of a schedule.
create table if not exists {workflow_schedule_history_events} (
    id varchar(26) not null,
    workflow_schedule_id varchar(26) not null,
    schedule_id varchar(255) not null,
    namespace varchar(255),
    sequence integer not null,
    event_type varchar(255) not null,
    payload json,
    workflow_instance_id varchar(191),
    workflow_run_id varchar(26),
    recorded_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {wf_schedule_history_schedule_sequence_unique} unique (workflow_schedule_id, sequence)
);
create index if not exists {wf_schedule_history_event_recorded_idx} on {workflow_schedule_history_events} (event_type, recorded_at);
create index if not exists {wf_schedule_history_instance_idx} on {workflow_schedule_history_events} (workflow_instance_id);
create index if not exists {wf_schedule_history_namespace_idx} on {workflow_schedule_history_events} (namespace);
create index if not exists {wf_schedule_history_namespace_schedule_idx} on {workflow_schedule_history_events} (namespace, schedule_id);
create index if not exists {wf_schedule_history_run_idx} on {workflow_schedule_history_events} (workflow_run_id);
create index if not exists {wf_schedule_history_schedule_idx} on {workflow_schedule_history_events} (schedule_id);
create index if not exists {wf_schedule_history_workflow_schedule_idx} on {workflow_schedule_history_events} (workflow_schedule_id);
