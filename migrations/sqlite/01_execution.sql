-- Execution core: what was asked for, what happened, and what is in flight.
-- As the engine (2.0.0-rc.37) creates them on SQLite. Names in braces receive the table prefix.

-- One row per instance: the identity callers use. `current_run_id` is a convenience only.
create table if not exists {workflow_instances} (
    id varchar not null,
    workflow_class varchar not null,
    workflow_type varchar not null,
    namespace varchar,
    business_key varchar,
    visibility_labels text,
    memo text,
    execution_timeout_seconds integer,
    current_run_id varchar,
    run_count integer not null default '0',
    last_message_sequence integer not null default '0',
    reserved_at datetime,
    started_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create index if not exists {workflow_instances_namespace_index} on {workflow_instances} (namespace);
create index if not exists {workflow_instances_business_key_index} on {workflow_instances} (business_key);
create index if not exists {workflow_instances_current_run_id_index} on {workflow_instances} (current_run_id);

-- One row per run of an instance. Kept by retention when everything else of the run is pruned.
create table if not exists {workflow_runs} (
    id varchar not null,
    workflow_instance_id varchar not null,
    run_number integer not null,
    workflow_class varchar not null,
    workflow_type varchar not null,
    namespace varchar,
    business_key varchar,
    visibility_labels text,
    status varchar not null,
    closed_reason varchar,
    compatibility varchar,
    payload_codec varchar,
    arguments text,
    output text,
    output_payload_codec varchar,
    connection varchar,
    queue varchar,
    sticky_worker_id varchar,
    sticky_until datetime,
    last_history_sequence integer not null default '0',
    last_command_sequence integer not null default '0',
    message_cursor_position integer not null default '0',
    run_timeout_seconds integer,
    execution_deadline_at datetime,
    run_deadline_at datetime,
    started_at datetime,
    closed_at datetime,
    archived_at datetime,
    archive_command_id varchar,
    archive_reason varchar,
    last_progress_at datetime,
    created_at datetime,
    updated_at datetime,
    import_source varchar,
    import_id varchar,
    import_dedupe_key varchar,
    import_contract_version integer,
    imported_at datetime,
    priority integer not null default '5',
    fairness_key varchar,
    fairness_weight integer not null default '1',
    primary key (id)
);
create unique index if not exists {workflow_runs_workflow_instance_id_run_number_unique} on {workflow_runs} (workflow_instance_id, run_number);
create index if not exists {workflow_runs_workflow_instance_id_index} on {workflow_runs} (workflow_instance_id);
create index if not exists {workflow_runs_namespace_index} on {workflow_runs} (namespace);
create index if not exists {workflow_runs_business_key_index} on {workflow_runs} (business_key);
create index if not exists {workflow_runs_sticky_worker_id_index} on {workflow_runs} (sticky_worker_id);
create index if not exists {workflow_runs_sticky_until_index} on {workflow_runs} (sticky_until);
create index if not exists {workflow_runs_archived_at_index} on {workflow_runs} (archived_at);
create index if not exists {workflow_runs_archive_command_id_index} on {workflow_runs} (archive_command_id);
create index if not exists {workflow_runs_import_source_index} on {workflow_runs} (import_source);
create index if not exists {workflow_runs_import_id_index} on {workflow_runs} (import_id);
create index if not exists {workflow_runs_import_dedupe_key_index} on {workflow_runs} (import_dedupe_key);
create index if not exists {workflow_runs_imported_at_index} on {workflow_runs} (imported_at);

-- The typed history: append-only and authoritative; read by (workflow_run_id, sequence).
create table if not exists {workflow_history_events} (
    id varchar not null,
    workflow_run_id varchar not null,
    sequence integer not null,
    event_type varchar not null,
    payload text,
    workflow_task_id varchar,
    workflow_command_id varchar,
    recorded_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_history_events_workflow_run_id_sequence_unique} on {workflow_history_events} (workflow_run_id, sequence);
create index if not exists {workflow_history_events_workflow_run_id_index} on {workflow_history_events} (workflow_run_id);
create index if not exists {workflow_history_events_workflow_task_id_index} on {workflow_history_events} (workflow_task_id);
create index if not exists {workflow_history_events_workflow_command_id_index} on {workflow_history_events} (workflow_command_id);

-- Units of work for workers; the only source for transport health.
create table if not exists {workflow_tasks} (
    id varchar not null,
    workflow_run_id varchar not null,
    namespace varchar,
    task_type varchar not null,
    status varchar not null,
    compatibility varchar,
    payload text,
    connection varchar,
    queue varchar,
    sticky_worker_id varchar,
    sticky_until datetime,
    sticky_replay_mode varchar,
    sticky_claimed_at datetime,
    available_at datetime,
    leased_at datetime,
    lease_owner varchar,
    lease_expires_at datetime,
    attempt_count integer not null default '0',
    last_dispatch_attempt_at datetime,
    last_dispatched_at datetime,
    last_dispatch_error text,
    last_claim_failed_at datetime,
    last_claim_error text,
    repair_count integer not null default '0',
    repair_available_at datetime,
    last_error text,
    created_at datetime,
    updated_at datetime,
    priority integer not null default '5',
    fairness_key varchar,
    fairness_weight integer not null default '1',
    primary key (id)
);
create index if not exists {workflow_tasks_status_available_at_index} on {workflow_tasks} (status, available_at);
create index if not exists {workflow_tasks_workflow_run_id_index} on {workflow_tasks} (workflow_run_id);
create index if not exists {workflow_tasks_namespace_index} on {workflow_tasks} (namespace);
create index if not exists {workflow_tasks_sticky_worker_id_index} on {workflow_tasks} (sticky_worker_id);
create index if not exists {workflow_tasks_sticky_until_index} on {workflow_tasks} (sticky_until);
create index if not exists {workflow_tasks_sticky_replay_mode_index} on {workflow_tasks} (sticky_replay_mode);
create index if not exists {workflow_tasks_sticky_claimed_at_index} on {workflow_tasks} (sticky_claimed_at);
create index if not exists {workflow_tasks_dispatch_order_index} on {workflow_tasks} (queue, status, priority, available_at);
create index if not exists {workflow_tasks_namespace_queue_status_idx} on {workflow_tasks} (namespace, queue, status);
create index if not exists {workflow_tasks_fairness_class_index} on {workflow_tasks} (queue, status, fairness_key);

-- One row per logical activity; history outranks it.
create table if not exists {activity_executions} (
    id varchar not null,
    workflow_run_id varchar not null,
    sequence integer not null,
    activity_class varchar not null,
    activity_type varchar not null,
    status varchar not null,
    payload_codec varchar,
    arguments text,
    result text,
    exception text,
    connection varchar,
    queue varchar,
    attempt_count integer not null default '1',
    current_attempt_id varchar,
    retry_policy text,
    parallel_group_path text,
    activity_options text,
    schedule_deadline_at datetime,
    close_deadline_at datetime,
    schedule_to_close_deadline_at datetime,
    heartbeat_deadline_at datetime,
    started_at datetime,
    closed_at datetime,
    last_heartbeat_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {activity_executions_workflow_run_id_sequence_unique} on {activity_executions} (workflow_run_id, sequence);
create index if not exists {activity_executions_workflow_run_id_index} on {activity_executions} (workflow_run_id);

-- One row per claim of an activity by a worker.
create table if not exists {activity_attempts} (
    id varchar not null,
    workflow_run_id varchar not null,
    activity_execution_id varchar not null,
    workflow_task_id varchar,
    attempt_number integer not null,
    status varchar not null,
    lease_owner varchar,
    started_at datetime not null,
    last_heartbeat_at datetime,
    lease_expires_at datetime,
    closed_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {activity_attempts_activity_execution_id_attempt_number_unique} on {activity_attempts} (activity_execution_id, attempt_number);
create index if not exists {activity_attempts_workflow_run_id_index} on {activity_attempts} (workflow_run_id);
create index if not exists {activity_attempts_activity_execution_id_index} on {activity_attempts} (activity_execution_id);
create index if not exists {activity_attempts_workflow_task_id_index} on {activity_attempts} (workflow_task_id);

-- Terminal failures with category and flags. Child failures have no row under the parent.
create table if not exists {workflow_failures} (
    id varchar not null,
    workflow_run_id varchar not null,
    source_kind varchar not null,
    source_id varchar not null,
    propagation_kind varchar not null,
    failure_category varchar,
    non_retryable tinyint(1) not null default '0',
    handled tinyint(1) not null default '0',
    exception_class varchar not null,
    message text not null,
    file text not null,
    line integer,
    trace_preview text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create index if not exists {workflow_failures_source_kind_source_id_index} on {workflow_failures} (source_kind, source_id);
create index if not exists {workflow_failures_workflow_run_id_index} on {workflow_failures} (workflow_run_id);
create index if not exists {workflow_failures_failure_category_index} on {workflow_failures} (failure_category);

-- Durable timers, condition and signal timeouts included.
create table if not exists {workflow_run_timers} (
    id varchar not null,
    workflow_run_id varchar not null,
    sequence integer not null,
    status varchar not null,
    delay_seconds integer not null,
    fire_at datetime not null,
    fired_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_run_timers_workflow_run_id_sequence_unique} on {workflow_run_timers} (workflow_run_id, sequence);
create index if not exists {workflow_run_timers_status_fire_at_index} on {workflow_run_timers} (status, fire_at);
create index if not exists {workflow_run_timers_workflow_run_id_index} on {workflow_run_timers} (workflow_run_id);
