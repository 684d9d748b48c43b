-- The list-page projection.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- One row per run, rewritten after almost every change.
create table if not exists {workflow_run_summaries} (
    id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    run_number integer not null,
    is_current_run boolean not null default false,
    engine_source varchar(255) not null default 'v2',
    projection_schema_version smallint,
    class varchar(255) not null,
    workflow_type varchar(255) not null,
    namespace varchar(255),
    compatibility varchar(255),
    declared_entry_mode varchar(255),
    declared_contract_source varchar(255),
    business_key varchar(191),
    visibility_labels json,
    status varchar(255) not null,
    status_bucket varchar(255) not null,
    closed_reason varchar(255),
    connection varchar(255),
    queue varchar(255),
    started_at timestamp(6),
    sort_timestamp timestamp(6),
    sort_key varchar(64),
    closed_at timestamp(6),
    archived_at timestamp(6),
    archive_command_id varchar(26),
    archive_reason varchar(255),
    duration_ms bigint,
    wait_kind varchar(255),
    wait_reason text,
    wait_started_at timestamp(6),
    wait_deadline_at timestamp(6),
    open_wait_id varchar(191),
    resume_source_kind varchar(255),
    resume_source_id varchar(191),
    next_task_at timestamp(6),
    liveness_state varchar(255),
    liveness_reason text,
    repair_blocked_reason varchar(255),
    repair_attention boolean not null default false,
    task_problem boolean not null default false,
    next_task_id varchar(26),
    next_task_type varchar(255),
    next_task_status varchar(255),
    next_task_lease_expires_at timestamp(6),
    exception_count integer not null default 0,
    history_event_count integer not null default 0,
    history_size_bytes bigint not null default '0'::bigint,
    continue_as_new_recommended boolean not null default false,
    created_at timestamp(6),
    updated_at timestamp(6),
    history_fan_out integer not null default 0,
    history_budget_pressure varchar(32) not null default 'ok',
    primary key (id)
);
create index if not exists {wfrs_decl_contract_source_idx} on {workflow_run_summaries} (declared_contract_source);
create index if not exists {wfrs_decl_entry_mode_idx} on {workflow_run_summaries} (declared_entry_mode);
create index if not exists {wfrs_namespace_sort_idx} on {workflow_run_summaries} (namespace, sort_timestamp, id);
create index if not exists {wfrs_namespace_status_sort_idx} on {workflow_run_summaries} (namespace, status_bucket, sort_timestamp, id);
create index if not exists {wfrs_namespace_type_sort_idx} on {workflow_run_summaries} (namespace, workflow_type, sort_timestamp, id);
create index if not exists {workflow_run_summaries_archive_command_id_index} on {workflow_run_summaries} (archive_command_id);
create index if not exists {workflow_run_summaries_archived_at_index} on {workflow_run_summaries} (archived_at);
create index if not exists {workflow_run_summaries_business_key_index} on {workflow_run_summaries} (business_key);
create index if not exists {workflow_run_summaries_continue_as_new_recommended_index} on {workflow_run_summaries} (continue_as_new_recommended);
create index if not exists {workflow_run_summaries_history_budget_pressure_index} on {workflow_run_summaries} (history_budget_pressure);
create index if not exists {workflow_run_summaries_is_current_run_index} on {workflow_run_summaries} (is_current_run);
create index if not exists {workflow_run_summaries_namespace_index} on {workflow_run_summaries} (namespace);
create index if not exists {workflow_run_summaries_projection_schema_version_index} on {workflow_run_summaries} (projection_schema_version);
create index if not exists {workflow_run_summaries_repair_attention_index} on {workflow_run_summaries} (repair_attention);
create index if not exists {workflow_run_summaries_repair_blocked_reason_index} on {workflow_run_summaries} (repair_blocked_reason);
create index if not exists {workflow_run_summaries_sort_key_index} on {workflow_run_summaries} (sort_key);
create index if not exists {workflow_run_summaries_sort_order_index} on {workflow_run_summaries} (sort_timestamp, id);
create index if not exists {workflow_run_summaries_status_bucket_index} on {workflow_run_summaries} (status_bucket);
create index if not exists {workflow_run_summaries_status_bucket_started_at_index} on {workflow_run_summaries} (status_bucket, started_at);
create index if not exists {workflow_run_summaries_status_index} on {workflow_run_summaries} (status);
create index if not exists {workflow_run_summaries_workflow_instance_id_index} on {workflow_run_summaries} (workflow_instance_id);
