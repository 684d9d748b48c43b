-- The list-page projection.
-- As the engine (2.0.0-rc.37) creates them on SQLite. Names in braces receive the table prefix.

-- One row per run, rewritten after almost every change.
create table if not exists {workflow_run_summaries} (
    id varchar not null,
    workflow_instance_id varchar not null,
    run_number integer not null,
    is_current_run tinyint(1) not null default '0',
    engine_source varchar not null default 'v2',
    projection_schema_version integer,
    class varchar not null,
    workflow_type varchar not null,
    namespace varchar,
    compatibility varchar,
    declared_entry_mode varchar,
    declared_contract_source varchar,
    business_key varchar,
    visibility_labels text,
    status varchar not null,
    status_bucket varchar not null,
    closed_reason varchar,
    connection varchar,
    queue varchar,
    started_at datetime,
    sort_timestamp datetime,
    sort_key varchar,
    closed_at datetime,
    archived_at datetime,
    archive_command_id varchar,
    archive_reason varchar,
    duration_ms integer,
    wait_kind varchar,
    wait_reason text,
    wait_started_at datetime,
    wait_deadline_at datetime,
    open_wait_id varchar,
    resume_source_kind varchar,
    resume_source_id varchar,
    next_task_at datetime,
    liveness_state varchar,
    liveness_reason text,
    repair_blocked_reason varchar,
    repair_attention tinyint(1) not null default '0',
    task_problem tinyint(1) not null default '0',
    next_task_id varchar,
    next_task_type varchar,
    next_task_status varchar,
    next_task_lease_expires_at datetime,
    exception_count integer not null default '0',
    history_event_count integer not null default '0',
    history_size_bytes integer not null default '0',
    continue_as_new_recommended tinyint(1) not null default '0',
    created_at datetime,
    updated_at datetime,
    history_fan_out integer not null default '0',
    history_budget_pressure varchar not null default 'ok',
    primary key (id)
);
create index if not exists {workflow_run_summaries_status_bucket_started_at_index} on {workflow_run_summaries} (status_bucket, started_at);
create index if not exists {workflow_run_summaries_sort_order_index} on {workflow_run_summaries} (sort_timestamp, id);
create index if not exists {wfrs_namespace_sort_idx} on {workflow_run_summaries} (namespace, sort_timestamp, id);
create index if not exists {wfrs_namespace_type_sort_idx} on {workflow_run_summaries} (namespace, workflow_type, sort_timestamp, id);
create index if not exists {wfrs_namespace_status_sort_idx} on {workflow_run_summaries} (namespace, status_bucket, sort_timestamp, id);
create index if not exists {workflow_run_summaries_sort_key_index} on {workflow_run_summaries} (sort_key);
create index if not exists {workflow_run_summaries_workflow_instance_id_index} on {workflow_run_summaries} (workflow_instance_id);
create index if not exists {workflow_run_summaries_is_current_run_index} on {workflow_run_summaries} (is_current_run);
create index if not exists {workflow_run_summaries_projection_schema_version_index} on {workflow_run_summaries} (projection_schema_version);
create index if not exists {workflow_run_summaries_namespace_index} on {workflow_run_summaries} (namespace);
create index if not exists {wfrs_decl_entry_mode_idx} on {workflow_run_summaries} (declared_entry_mode);
create index if not exists {wfrs_decl_contract_source_idx} on {workflow_run_summaries} (declared_contract_source);
create index if not exists {workflow_run_summaries_business_key_index} on {workflow_run_summaries} (business_key);
create index if not exists {workflow_run_summaries_status_index} on {workflow_run_summaries} (status);
create index if not exists {workflow_run_summaries_status_bucket_index} on {workflow_run_summaries} (status_bucket);
create index if not exists {workflow_run_summaries_archived_at_index} on {workflow_run_summaries} (archived_at);
create index if not exists {workflow_run_summaries_archive_command_id_index} on {workflow_run_summaries} (archive_command_id);
create index if not exists {workflow_run_summaries_repair_blocked_reason_index} on {workflow_run_summaries} (repair_blocked_reason);
create index if not exists {workflow_run_summaries_repair_attention_index} on {workflow_run_summaries} (repair_attention);
create index if not exists {workflow_run_summaries_continue_as_new_recommended_index} on {workflow_run_summaries} (continue_as_new_recommended);
create index if not exists {workflow_run_summaries_history_budget_pressure_index} on {workflow_run_summaries} (history_budget_pressure);
