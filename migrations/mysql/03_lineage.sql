-- Parents, children and continue-as-new.
-- As the engine (2.0.0-rc.37) creates them on MySQL and MariaDB. Names in braces receive the table prefix.
-- Index names belong to their table here and stay as they are; constraint names do not.

-- One row per edge between two runs; insert-only.
create table if not exists {workflow_links} (
    id varchar(26) not null,
    link_type varchar(255) not null,
    sequence int unsigned,
    parallel_group_path json,
    parent_workflow_instance_id varchar(191) not null,
    parent_workflow_run_id varchar(26) not null,
    child_workflow_instance_id varchar(191) not null,
    child_workflow_run_id varchar(26) not null,
    is_primary_parent tinyint(1) not null default 0,
    parent_close_policy varchar(255) not null default 'abandon',
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (id),
    unique key workflow_links_parent_child_type_unique (parent_workflow_run_id, child_workflow_run_id, link_type),
    key workflow_links_parent_sequence_type_index (parent_workflow_run_id, sequence, link_type),
    key workflow_links_parent_workflow_instance_id_index (parent_workflow_instance_id),
    key workflow_links_parent_workflow_run_id_index (parent_workflow_run_id),
    key workflow_links_child_workflow_instance_id_index (child_workflow_instance_id),
    key workflow_links_child_workflow_run_id_index (child_workflow_run_id)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;

-- A best-effort mirror of child calls; diagnostics only.
create table if not exists {workflow_child_calls} (
    id bigint unsigned not null auto_increment,
    parent_workflow_run_id varchar(26) not null,
    parent_workflow_instance_id varchar(191) not null,
    sequence int unsigned not null,
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
    cancellation_propagation tinyint(1) not null default 0,
    status varchar(32) not null default 'scheduled',
    result_payload_reference varchar(191),
    failure_reference varchar(191),
    closed_reason varchar(64),
    scheduled_at timestamp(6) not null,
    started_at timestamp(6) null,
    closed_at timestamp(6) null,
    arguments json,
    metadata json,
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (id),
    key child_calls_parent_seq (parent_workflow_run_id, sequence),
    key child_calls_parent_status (parent_workflow_run_id, status),
    key child_calls_child_parent (resolved_child_instance_id, parent_workflow_run_id),
    key workflow_child_calls_parent_workflow_run_id_index (parent_workflow_run_id),
    key workflow_child_calls_parent_workflow_instance_id_index (parent_workflow_instance_id),
    key workflow_child_calls_sequence_index (sequence),
    key workflow_child_calls_resolved_child_instance_id_index (resolved_child_instance_id),
    key workflow_child_calls_resolved_child_run_id_index (resolved_child_run_id),
    key workflow_child_calls_status_index (status),
    constraint {workflow_child_calls_parent_workflow_run_id_foreign} foreign key (parent_workflow_run_id) references {workflow_runs} (id) on delete cascade
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;

-- Work list of child outcomes whose projection was deferred.
create table if not exists {workflow_child_projection_repairs} (
    workflow_history_event_id varchar(26) not null,
    workflow_run_id varchar(26) not null,
    workflow_task_id varchar(26) not null,
    history_sequence int unsigned not null,
    failure_id varchar(26),
    failed_child_counted_at timestamp(6) null,
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (workflow_history_event_id),
    key workflow_child_projection_repairs_drain_idx (workflow_run_id, workflow_task_id, history_sequence),
    key workflow_child_projection_repairs_failure_idx (workflow_run_id, failure_id)
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;
