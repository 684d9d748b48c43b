-- Parents, children and continue-as-new.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- One row per edge between two runs; insert-only.
create table if not exists {workflow_links} (
    id varchar(26) not null,
    link_type varchar(255) not null,
    sequence integer,
    parallel_group_path json,
    parent_workflow_instance_id varchar(191) not null,
    parent_workflow_run_id varchar(26) not null,
    child_workflow_instance_id varchar(191) not null,
    child_workflow_run_id varchar(26) not null,
    is_primary_parent boolean not null default false,
    parent_close_policy varchar(255) not null default 'abandon',
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_links_parent_child_type_unique} unique (parent_workflow_run_id, child_workflow_run_id, link_type)
);
create index if not exists {workflow_links_child_workflow_instance_id_index} on {workflow_links} (child_workflow_instance_id);
create index if not exists {workflow_links_child_workflow_run_id_index} on {workflow_links} (child_workflow_run_id);
create index if not exists {workflow_links_parent_sequence_type_index} on {workflow_links} (parent_workflow_run_id, sequence, link_type);
create index if not exists {workflow_links_parent_workflow_instance_id_index} on {workflow_links} (parent_workflow_instance_id);
create index if not exists {workflow_links_parent_workflow_run_id_index} on {workflow_links} (parent_workflow_run_id);

-- A best-effort mirror of child calls; diagnostics only.
create table if not exists {workflow_child_calls} (
    id bigserial,
    parent_workflow_run_id varchar(26) not null,
    parent_workflow_instance_id varchar(191) not null,
    sequence integer not null,
    child_workflow_type varchar(191) not null,
    child_workflow_class varchar(255) not null,
    requested_child_id varchar(191),
    resolved_child_instance_id varchar(191),
    resolved_child_run_id varchar(26),
    parent_close_policy varchar(32) not null default 'abandon',
    connection varchar(191),
    queue varchar(191),
    compatibility varchar(191),
    retry_policy json,
    timeout_policy json,
    cancellation_propagation boolean not null default false,
    status varchar(32) not null default 'scheduled',
    result_payload_reference varchar(191),
    failure_reference varchar(191),
    closed_reason varchar(64),
    scheduled_at timestamp(6) not null,
    started_at timestamp(6),
    closed_at timestamp(6),
    arguments json,
    metadata json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_child_calls_parent_workflow_run_id_foreign} foreign key (parent_workflow_run_id) references {workflow_runs} (id) on delete cascade
);
create index if not exists {child_calls_child_parent} on {workflow_child_calls} (resolved_child_instance_id, parent_workflow_run_id);
create index if not exists {child_calls_parent_seq} on {workflow_child_calls} (parent_workflow_run_id, sequence);
create index if not exists {child_calls_parent_status} on {workflow_child_calls} (parent_workflow_run_id, status);
create index if not exists {workflow_child_calls_parent_workflow_instance_id_index} on {workflow_child_calls} (parent_workflow_instance_id);
create index if not exists {workflow_child_calls_parent_workflow_run_id_index} on {workflow_child_calls} (parent_workflow_run_id);
create index if not exists {workflow_child_calls_resolved_child_instance_id_index} on {workflow_child_calls} (resolved_child_instance_id);
create index if not exists {workflow_child_calls_resolved_child_run_id_index} on {workflow_child_calls} (resolved_child_run_id);
create index if not exists {workflow_child_calls_sequence_index} on {workflow_child_calls} (sequence);
create index if not exists {workflow_child_calls_status_index} on {workflow_child_calls} (status);

-- Work list of child outcomes whose projection was deferred.
create table if not exists {workflow_child_projection_repairs} (
    workflow_history_event_id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    workflow_task_id varchar(26) not null,
    history_sequence integer not null,
    failure_id varchar(26),
    failed_child_counted_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (workflow_history_event_id)
);
create index if not exists {workflow_child_projection_repairs_drain_idx} on {workflow_child_projection_repairs} (workflow_run_id, workflow_task_id, history_sequence);
create index if not exists {workflow_child_projection_repairs_failure_idx} on {workflow_child_projection_repairs} (workflow_run_id, failure_id);
