-- Execution core: what was asked for, what happened, and what is in flight.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- One row per instance: the identity callers use. `current_run_id` is a convenience only.
create table if not exists {workflow_instances} (
    id varchar(191) not null,
    workflow_class varchar(255) not null,
    workflow_type varchar(255) not null,
    namespace varchar(255),
    business_key varchar(191),
    visibility_labels json,
    memo json,
    execution_timeout_seconds integer,
    current_run_id varchar(26),
    run_count integer not null default 0,
    last_message_sequence integer not null default 0,
    reserved_at timestamp(6),
    started_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id)
);
create index if not exists {workflow_instances_business_key_index} on {workflow_instances} (business_key);
create index if not exists {workflow_instances_current_run_id_index} on {workflow_instances} (current_run_id);
create index if not exists {workflow_instances_namespace_index} on {workflow_instances} (namespace);

-- One row per run of an instance. Kept by retention when everything else of the run is pruned.
create table if not exists {workflow_runs} (
    id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    run_number integer not null,
    workflow_class varchar(255) not null,
    workflow_type varchar(255) not null,
    namespace varchar(255),
    business_key varchar(191),
    visibility_labels json,
    status varchar(255) not null,
    closed_reason varchar(255),
    compatibility varchar(255),
    payload_codec varchar(255),
    arguments text,
    output text,
    output_payload_codec varchar(255),
    connection varchar(255),
    queue varchar(255),
    sticky_worker_id varchar(255),
    sticky_until timestamp(6),
    last_history_sequence integer not null default 0,
    last_command_sequence integer not null default 0,
    message_cursor_position integer not null default 0,
    run_timeout_seconds integer,
    execution_deadline_at timestamp(6),
    run_deadline_at timestamp(6),
    started_at timestamp(6),
    closed_at timestamp(6),
    archived_at timestamp(6),
    archive_command_id varchar(26),
    archive_reason varchar(255),
    last_progress_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    import_source varchar(64),
    import_id varchar(64),
    import_dedupe_key varchar(191),
    import_contract_version smallint,
    imported_at timestamp(6),
    priority smallint not null default '5'::smallint,
    fairness_key varchar(64),
    fairness_weight smallint not null default '1'::smallint,
    primary key (id),
    constraint {workflow_runs_workflow_instance_id_run_number_unique} unique (workflow_instance_id, run_number)
);
create index if not exists {workflow_runs_archive_command_id_index} on {workflow_runs} (archive_command_id);
create index if not exists {workflow_runs_archived_at_index} on {workflow_runs} (archived_at);
create index if not exists {workflow_runs_business_key_index} on {workflow_runs} (business_key);
create index if not exists {workflow_runs_import_dedupe_key_index} on {workflow_runs} (import_dedupe_key);
create index if not exists {workflow_runs_import_id_index} on {workflow_runs} (import_id);
create index if not exists {workflow_runs_import_source_index} on {workflow_runs} (import_source);
create index if not exists {workflow_runs_imported_at_index} on {workflow_runs} (imported_at);
create index if not exists {workflow_runs_namespace_index} on {workflow_runs} (namespace);
create index if not exists {workflow_runs_sticky_until_index} on {workflow_runs} (sticky_until);
create index if not exists {workflow_runs_sticky_worker_id_index} on {workflow_runs} (sticky_worker_id);
create index if not exists {workflow_runs_workflow_instance_id_index} on {workflow_runs} (workflow_instance_id);

-- The typed history: append-only and authoritative; read by (workflow_run_id, sequence).
create table if not exists {workflow_history_events} (
    id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    sequence integer not null,
    event_type varchar(255) not null,
    payload json,
    workflow_task_id varchar(26),
    workflow_command_id varchar(26),
    recorded_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_history_events_workflow_run_id_sequence_unique} unique (workflow_run_id, sequence)
);
create index if not exists {workflow_history_events_workflow_command_id_index} on {workflow_history_events} (workflow_command_id);
create index if not exists {workflow_history_events_workflow_run_id_index} on {workflow_history_events} (workflow_run_id);
create index if not exists {workflow_history_events_workflow_task_id_index} on {workflow_history_events} (workflow_task_id);

-- Units of work for workers; the only source for transport health.
create table if not exists {workflow_tasks} (
    id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    namespace varchar(255),
    task_type varchar(255) not null,
    status varchar(255) not null,
    compatibility varchar(255),
    payload json,
    connection varchar(255),
    queue varchar(255),
    sticky_worker_id varchar(255),
    sticky_until timestamp(6),
    sticky_replay_mode varchar(255),
    sticky_claimed_at timestamp(6),
    available_at timestamp(6),
    leased_at timestamp(6),
    lease_owner varchar(255),
    lease_expires_at timestamp(6),
    attempt_count integer not null default 0,
    last_dispatch_attempt_at timestamp(6),
    last_dispatched_at timestamp(6),
    last_dispatch_error text,
    last_claim_failed_at timestamp(6),
    last_claim_error text,
    repair_count integer not null default 0,
    repair_available_at timestamp(6),
    last_error text,
    created_at timestamp(6),
    updated_at timestamp(6),
    priority smallint not null default '5'::smallint,
    fairness_key varchar(64),
    fairness_weight smallint not null default '1'::smallint,
    primary key (id)
);
create index if not exists {workflow_tasks_dispatch_order_index} on {workflow_tasks} (queue, status, priority, available_at);
create index if not exists {workflow_tasks_fairness_class_index} on {workflow_tasks} (queue, status, fairness_key);
create index if not exists {workflow_tasks_namespace_index} on {workflow_tasks} (namespace);
create index if not exists {workflow_tasks_namespace_queue_status_idx} on {workflow_tasks} (namespace, queue, status);
create index if not exists {workflow_tasks_status_available_at_index} on {workflow_tasks} (status, available_at);
create index if not exists {workflow_tasks_sticky_claimed_at_index} on {workflow_tasks} (sticky_claimed_at);
create index if not exists {workflow_tasks_sticky_replay_mode_index} on {workflow_tasks} (sticky_replay_mode);
create index if not exists {workflow_tasks_sticky_until_index} on {workflow_tasks} (sticky_until);
create index if not exists {workflow_tasks_sticky_worker_id_index} on {workflow_tasks} (sticky_worker_id);
create index if not exists {workflow_tasks_workflow_run_id_index} on {workflow_tasks} (workflow_run_id);

-- One row per logical activity; history outranks it.
create table if not exists {activity_executions} (
    id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    sequence integer not null,
    activity_class varchar(255) not null,
    activity_type varchar(255) not null,
    status varchar(255) not null,
    payload_codec varchar(255),
    arguments text,
    result text,
    exception text,
    connection varchar(255),
    queue varchar(255),
    attempt_count integer not null default 1,
    current_attempt_id varchar(26),
    retry_policy json,
    parallel_group_path json,
    activity_options json,
    schedule_deadline_at timestamp(6),
    close_deadline_at timestamp(6),
    schedule_to_close_deadline_at timestamp(6),
    heartbeat_deadline_at timestamp(6),
    started_at timestamp(6),
    closed_at timestamp(6),
    last_heartbeat_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {activity_executions_workflow_run_id_sequence_unique} unique (workflow_run_id, sequence)
);
create index if not exists {activity_executions_workflow_run_id_index} on {activity_executions} (workflow_run_id);

-- One row per claim of an activity by a worker.
create table if not exists {activity_attempts} (
    id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    activity_execution_id varchar(26) not null,
    workflow_task_id varchar(26),
    attempt_number integer not null,
    status varchar(255) not null,
    lease_owner varchar(255),
    started_at timestamp(6) not null,
    last_heartbeat_at timestamp(6),
    lease_expires_at timestamp(6),
    closed_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {activity_attempts_activity_execution_id_attempt_number_unique} unique (activity_execution_id, attempt_number)
);
create index if not exists {activity_attempts_activity_execution_id_index} on {activity_attempts} (activity_execution_id);
create index if not exists {activity_attempts_workflow_run_id_index} on {activity_attempts} (workflow_run_id);
create index if not exists {activity_attempts_workflow_task_id_index} on {activity_attempts} (workflow_task_id);

-- Terminal failures with category and flags. Child failures have no row under the parent.
create table if not exists {workflow_failures} (
    id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    source_kind varchar(255) not null,
    source_id varchar(255) not null,
    propagation_kind varchar(255) not null,
    failure_category varchar(255),
    non_retryable boolean not null default false,
    handled boolean not null default false,
    exception_class varchar(255) not null,
    message text not null,
    file text not null,
    line integer,
    trace_preview text,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id)
);
create index if not exists {workflow_failures_failure_category_index} on {workflow_failures} (failure_category);
create index if not exists {workflow_failures_source_kind_source_id_index} on {workflow_failures} (source_kind, source_id);
create index if not exists {workflow_failures_workflow_run_id_index} on {workflow_failures} (workflow_run_id);

-- Durable timers, condition and signal timeouts included.
create table if not exists {workflow_run_timers} (
    id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    sequence integer not null,
    status varchar(255) not null,
    delay_seconds bigint not null,
    fire_at timestamp(6) not null,
    fired_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_run_timers_workflow_run_id_sequence_unique} unique (workflow_run_id, sequence)
);
create index if not exists {workflow_run_timers_status_fire_at_index} on {workflow_run_timers} (status, fire_at);
create index if not exists {workflow_run_timers_workflow_run_id_index} on {workflow_run_timers} (workflow_run_id);
