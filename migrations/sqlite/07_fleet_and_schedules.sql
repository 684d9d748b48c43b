-- Live workers, and schedules with their audit.
-- As the engine (2.0.0-rc.37) creates them on SQLite. Names in braces receive the table prefix.

-- One row per worker and scope; live while `expires_at` is ahead.
create table if not exists {workflow_worker_compatibility_heartbeats} (
    id integer primary key autoincrement not null,
    worker_id varchar not null,
    scope_key varchar not null,
    namespace varchar,
    host varchar,
    process_id varchar,
    connection varchar,
    queue varchar,
    supported text not null,
    recorded_at datetime not null,
    expires_at datetime not null,
    created_at datetime,
    updated_at datetime
);
create unique index if not exists {workflow_worker_compatibility_heartbeats_scope_unique} on {workflow_worker_compatibility_heartbeats} (worker_id, scope_key);
create index if not exists {workflow_worker_compatibility_heartbeats_namespace_index} on {workflow_worker_compatibility_heartbeats} (namespace);
create index if not exists {workflow_worker_compatibility_heartbeats_connection_index} on {workflow_worker_compatibility_heartbeats} (connection);
create index if not exists {workflow_worker_compatibility_heartbeats_queue_index} on {workflow_worker_compatibility_heartbeats} (queue);
create index if not exists {workflow_worker_compatibility_heartbeats_expires_at_index} on {workflow_worker_compatibility_heartbeats} (expires_at);

-- Recurring starts.
create table if not exists {workflow_schedules} (
    id varchar not null,
    schedule_id varchar not null,
    namespace varchar,
    spec text,
    action text,
    status varchar not null default 'active',
    overlap_policy varchar not null default 'skip',
    note text,
    memo text,
    search_attributes text,
    visibility_labels text,
    jitter_seconds integer not null default '0',
    max_runs integer,
    remaining_actions integer,
    fires_count integer not null default '0',
    failures_count integer not null default '0',
    recent_actions text,
    buffered_actions text,
    last_fired_at datetime,
    next_fire_at datetime,
    latest_workflow_instance_id varchar,
    connection varchar,
    queue varchar,
    paused_at datetime,
    deleted_at datetime,
    last_skip_reason varchar,
    last_skipped_at datetime,
    skipped_trigger_count integer not null default '0',
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_schedules_namespace_schedule_id_unique} on {workflow_schedules} (namespace, schedule_id);
create index if not exists {workflow_schedules_status_next_fire_at_index} on {workflow_schedules} (status, next_fire_at);
create index if not exists {workflow_schedules_namespace_index} on {workflow_schedules} (namespace);
create index if not exists {workflow_schedules_latest_workflow_instance_id_index} on {workflow_schedules} (latest_workflow_instance_id);

-- Append-only audit of a schedule.
create table if not exists {workflow_schedule_history_events} (
    id varchar not null,
    workflow_schedule_id varchar not null,
    schedule_id varchar not null,
    namespace varchar,
    sequence integer not null,
    event_type varchar not null,
    payload text,
    workflow_instance_id varchar,
    workflow_run_id varchar,
    recorded_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {wf_schedule_history_schedule_sequence_unique} on {workflow_schedule_history_events} (workflow_schedule_id, sequence);
create index if not exists {wf_schedule_history_namespace_schedule_idx} on {workflow_schedule_history_events} (namespace, schedule_id);
create index if not exists {wf_schedule_history_event_recorded_idx} on {workflow_schedule_history_events} (event_type, recorded_at);
create index if not exists {wf_schedule_history_workflow_schedule_idx} on {workflow_schedule_history_events} (workflow_schedule_id);
create index if not exists {wf_schedule_history_schedule_idx} on {workflow_schedule_history_events} (schedule_id);
create index if not exists {wf_schedule_history_namespace_idx} on {workflow_schedule_history_events} (namespace);
create index if not exists {wf_schedule_history_instance_idx} on {workflow_schedule_history_events} (workflow_instance_id);
create index if not exists {wf_schedule_history_run_idx} on {workflow_schedule_history_events} (workflow_run_id);
