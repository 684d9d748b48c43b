-- Parents, children and continue-as-new.
-- As the engine (2.0.0-rc.37) creates them on SQLite. Names in braces receive the table prefix.

-- One row per edge between two runs; insert-only.
create table if not exists {workflow_links} (
    id varchar not null,
    link_type varchar not null,
    sequence integer,
    parallel_group_path text,
    parent_workflow_instance_id varchar not null,
    parent_workflow_run_id varchar not null,
    child_workflow_instance_id varchar not null,
    child_workflow_run_id varchar not null,
    is_primary_parent tinyint(1) not null default '0',
    parent_close_policy varchar not null default 'abandon',
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_links_parent_child_type_unique} on {workflow_links} (parent_workflow_run_id, child_workflow_run_id, link_type);
create index if not exists {workflow_links_parent_sequence_type_index} on {workflow_links} (parent_workflow_run_id, sequence, link_type);
create index if not exists {workflow_links_parent_workflow_instance_id_index} on {workflow_links} (parent_workflow_instance_id);
create index if not exists {workflow_links_parent_workflow_run_id_index} on {workflow_links} (parent_workflow_run_id);
create index if not exists {workflow_links_child_workflow_instance_id_index} on {workflow_links} (child_workflow_instance_id);
create index if not exists {workflow_links_child_workflow_run_id_index} on {workflow_links} (child_workflow_run_id);

-- A best-effort mirror of child calls; diagnostics only.
create table if not exists {workflow_child_calls} (
    id integer primary key autoincrement not null,
    parent_workflow_run_id varchar not null,
    parent_workflow_instance_id varchar not null,
    sequence integer not null,
    child_workflow_type varchar not null,
    child_workflow_class varchar not null,
    requested_child_id varchar,
    resolved_child_instance_id varchar,
    resolved_child_run_id varchar,
    parent_close_policy varchar not null default 'abandon',
    connection varchar,
    queue varchar,
    compatibility varchar,
    retry_policy text,
    timeout_policy text,
    cancellation_propagation tinyint(1) not null default '0',
    status varchar not null default 'scheduled',
    result_payload_reference varchar,
    failure_reference varchar,
    closed_reason varchar,
    scheduled_at datetime not null,
    started_at datetime,
    closed_at datetime,
    arguments text,
    metadata text,
    created_at datetime,
    updated_at datetime,
    foreign key (parent_workflow_run_id) references {workflow_runs} (id) on delete cascade
);
create index if not exists {child_calls_parent_seq} on {workflow_child_calls} (parent_workflow_run_id, sequence);
create index if not exists {child_calls_parent_status} on {workflow_child_calls} (parent_workflow_run_id, status);
create index if not exists {child_calls_child_parent} on {workflow_child_calls} (resolved_child_instance_id, parent_workflow_run_id);
create index if not exists {workflow_child_calls_parent_workflow_run_id_index} on {workflow_child_calls} (parent_workflow_run_id);
create index if not exists {workflow_child_calls_parent_workflow_instance_id_index} on {workflow_child_calls} (parent_workflow_instance_id);
create index if not exists {workflow_child_calls_sequence_index} on {workflow_child_calls} (sequence);
create index if not exists {workflow_child_calls_resolved_child_instance_id_index} on {workflow_child_calls} (resolved_child_instance_id);
create index if not exists {workflow_child_calls_resolved_child_run_id_index} on {workflow_child_calls} (resolved_child_run_id);
create index if not exists {workflow_child_calls_status_index} on {workflow_child_calls} (status);

-- Work list of child outcomes whose projection was deferred.
create table if not exists {workflow_child_projection_repairs} (
    workflow_history_event_id varchar not null,
    workflow_run_id varchar not null,
    workflow_task_id varchar not null,
    history_sequence integer not null,
    failure_id varchar,
    failed_child_counted_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (workflow_history_event_id)
);
create index if not exists {workflow_child_projection_repairs_drain_idx} on {workflow_child_projection_repairs} (workflow_run_id, workflow_task_id, history_sequence);
create index if not exists {workflow_child_projection_repairs_failure_idx} on {workflow_child_projection_repairs} (workflow_run_id, failure_id);
