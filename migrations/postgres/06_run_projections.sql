-- Projections of one run, rebuildable from history; never a source of truth.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- What a run waits for or waited for.
create table if not exists {workflow_run_waits} (
    id varchar(64) not null,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    wait_id varchar(191) not null,
    position integer not null,
    kind varchar(255) not null,
    sequence integer,
    status varchar(255) not null,
    source_status varchar(255),
    summary text,
    opened_at timestamp(6),
    deadline_at timestamp(6),
    resolved_at timestamp(6),
    target_name varchar(191),
    target_type varchar(191),
    task_backed boolean not null default false,
    external_only boolean not null default false,
    resume_source_kind varchar(191),
    resume_source_id varchar(191),
    task_id varchar(26),
    task_type varchar(255),
    task_status varchar(255),
    command_id varchar(26),
    command_sequence integer,
    command_status varchar(255),
    command_outcome varchar(255),
    history_authority varchar(255),
    history_unsupported_reason varchar(255),
    payload json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_run_waits_run_wait_unique} unique (workflow_run_id, wait_id)
);
create index if not exists {workflow_run_waits_command_id_index} on {workflow_run_waits} (command_id);
create index if not exists {workflow_run_waits_history_authority_index} on {workflow_run_waits} (history_authority);
create index if not exists {workflow_run_waits_instance_kind_status_index} on {workflow_run_waits} (workflow_instance_id, kind, status);
create index if not exists {workflow_run_waits_kind_index} on {workflow_run_waits} (kind);
create index if not exists {workflow_run_waits_resume_source_id_index} on {workflow_run_waits} (resume_source_id);
create index if not exists {workflow_run_waits_resume_source_kind_index} on {workflow_run_waits} (resume_source_kind);
create index if not exists {workflow_run_waits_run_status_position_index} on {workflow_run_waits} (workflow_run_id, status, position);
create index if not exists {workflow_run_waits_sequence_index} on {workflow_run_waits} (sequence);
create index if not exists {workflow_run_waits_source_status_index} on {workflow_run_waits} (source_status);
create index if not exists {workflow_run_waits_status_index} on {workflow_run_waits} (status);
create index if not exists {workflow_run_waits_target_name_index} on {workflow_run_waits} (target_name);
create index if not exists {workflow_run_waits_task_backed_index} on {workflow_run_waits} (task_backed);
create index if not exists {workflow_run_waits_task_id_index} on {workflow_run_waits} (task_id);
create index if not exists {workflow_run_waits_workflow_instance_id_index} on {workflow_run_waits} (workflow_instance_id);
create index if not exists {workflow_run_waits_workflow_run_id_index} on {workflow_run_waits} (workflow_run_id);

-- One row per history event, flattened for display.
create table if not exists {workflow_run_timeline_entries} (
    id varchar(64) not null,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    history_event_id varchar(26) not null,
    sequence integer not null,
    type varchar(255) not null,
    kind varchar(255) not null,
    entry_kind varchar(255) not null default 'point',
    source_kind varchar(255),
    source_id varchar(191),
    summary text,
    recorded_at timestamp(6),
    command_id varchar(26),
    command_sequence integer,
    task_id varchar(26),
    activity_execution_id varchar(26),
    timer_id varchar(191),
    failure_id varchar(26),
    payload json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_run_timeline_run_event_unique} unique (workflow_run_id, history_event_id)
);
create index if not exists {workflow_run_timeline_entries_activity_execution_id_index} on {workflow_run_timeline_entries} (activity_execution_id);
create index if not exists {workflow_run_timeline_entries_command_id_index} on {workflow_run_timeline_entries} (command_id);
create index if not exists {workflow_run_timeline_entries_command_sequence_index} on {workflow_run_timeline_entries} (command_sequence);
create index if not exists {workflow_run_timeline_entries_failure_id_index} on {workflow_run_timeline_entries} (failure_id);
create index if not exists {workflow_run_timeline_entries_history_event_id_index} on {workflow_run_timeline_entries} (history_event_id);
create index if not exists {workflow_run_timeline_entries_kind_index} on {workflow_run_timeline_entries} (kind);
create index if not exists {workflow_run_timeline_entries_recorded_at_index} on {workflow_run_timeline_entries} (recorded_at);
create index if not exists {workflow_run_timeline_entries_sequence_index} on {workflow_run_timeline_entries} (sequence);
create index if not exists {workflow_run_timeline_entries_source_id_index} on {workflow_run_timeline_entries} (source_id);
create index if not exists {workflow_run_timeline_entries_source_kind_index} on {workflow_run_timeline_entries} (source_kind);
create index if not exists {workflow_run_timeline_entries_task_id_index} on {workflow_run_timeline_entries} (task_id);
create index if not exists {workflow_run_timeline_entries_timer_id_index} on {workflow_run_timeline_entries} (timer_id);
create index if not exists {workflow_run_timeline_entries_type_index} on {workflow_run_timeline_entries} (type);
create index if not exists {workflow_run_timeline_entries_workflow_instance_id_index} on {workflow_run_timeline_entries} (workflow_instance_id);
create index if not exists {workflow_run_timeline_entries_workflow_run_id_index} on {workflow_run_timeline_entries} (workflow_run_id);
create index if not exists {workflow_run_timeline_instance_kind_recorded_index} on {workflow_run_timeline_entries} (workflow_instance_id, kind, recorded_at);
create index if not exists {workflow_run_timeline_run_sequence_index} on {workflow_run_timeline_entries} (workflow_run_id, sequence);

-- One row per timer.
create table if not exists {workflow_run_timer_entries} (
    id varchar(64) not null,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    timer_id varchar(191) not null,
    schema_version smallint not null default '1'::smallint,
    position integer not null,
    sequence integer,
    status varchar(255) not null,
    source_status varchar(255),
    delay_seconds integer,
    fire_at timestamp(6),
    fired_at timestamp(6),
    cancelled_at timestamp(6),
    timer_kind varchar(191),
    condition_wait_id varchar(191),
    condition_key varchar(191),
    condition_definition_fingerprint varchar(191),
    history_authority varchar(255),
    history_unsupported_reason varchar(255),
    payload json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_run_timer_entries_run_timer_unique} unique (workflow_run_id, timer_id)
);
create index if not exists {workflow_run_timer_entries_condition_key_index} on {workflow_run_timer_entries} (condition_key);
create index if not exists {workflow_run_timer_entries_condition_wait_id_index} on {workflow_run_timer_entries} (condition_wait_id);
create index if not exists {workflow_run_timer_entries_history_authority_index} on {workflow_run_timer_entries} (history_authority);
create index if not exists {workflow_run_timer_entries_instance_kind_status_index} on {workflow_run_timer_entries} (workflow_instance_id, timer_kind, status);
create index if not exists {workflow_run_timer_entries_run_status_position_index} on {workflow_run_timer_entries} (workflow_run_id, status, position);
create index if not exists {workflow_run_timer_entries_sequence_index} on {workflow_run_timer_entries} (sequence);
create index if not exists {workflow_run_timer_entries_source_status_index} on {workflow_run_timer_entries} (source_status);
create index if not exists {workflow_run_timer_entries_status_index} on {workflow_run_timer_entries} (status);
create index if not exists {workflow_run_timer_entries_timer_kind_index} on {workflow_run_timer_entries} (timer_kind);
create index if not exists {workflow_run_timer_entries_workflow_instance_id_index} on {workflow_run_timer_entries} (workflow_instance_id);
create index if not exists {workflow_run_timer_entries_workflow_run_id_index} on {workflow_run_timer_entries} (workflow_run_id);

-- One row per related run.
create table if not exists {workflow_run_lineage_entries} (
    id varchar(64) not null,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    direction varchar(255) not null,
    lineage_id varchar(191) not null,
    position integer not null,
    link_type varchar(255) not null,
    child_call_id varchar(26),
    sequence integer,
    is_primary_parent boolean not null default false,
    related_workflow_instance_id varchar(191),
    related_workflow_run_id varchar(26),
    related_run_number integer,
    related_workflow_type varchar(191),
    related_workflow_class varchar(255),
    status varchar(255),
    status_bucket varchar(255),
    closed_reason varchar(255),
    linked_at timestamp(6),
    payload json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_run_lineage_run_direction_lineage_unique} unique (workflow_run_id, direction, lineage_id)
);
create index if not exists {workflow_run_lineage_entries_child_call_id_index} on {workflow_run_lineage_entries} (child_call_id);
create index if not exists {workflow_run_lineage_entries_closed_reason_index} on {workflow_run_lineage_entries} (closed_reason);
create index if not exists {workflow_run_lineage_entries_direction_index} on {workflow_run_lineage_entries} (direction);
create index if not exists {workflow_run_lineage_entries_is_primary_parent_index} on {workflow_run_lineage_entries} (is_primary_parent);
create index if not exists {workflow_run_lineage_entries_link_type_index} on {workflow_run_lineage_entries} (link_type);
create index if not exists {workflow_run_lineage_entries_linked_at_index} on {workflow_run_lineage_entries} (linked_at);
create index if not exists {workflow_run_lineage_entries_related_workflow_instance_id_index} on {workflow_run_lineage_entries} (related_workflow_instance_id);
create index if not exists {workflow_run_lineage_entries_related_workflow_run_id_index} on {workflow_run_lineage_entries} (related_workflow_run_id);
create index if not exists {workflow_run_lineage_entries_related_workflow_type_index} on {workflow_run_lineage_entries} (related_workflow_type);
create index if not exists {workflow_run_lineage_entries_sequence_index} on {workflow_run_lineage_entries} (sequence);
create index if not exists {workflow_run_lineage_entries_status_bucket_index} on {workflow_run_lineage_entries} (status_bucket);
create index if not exists {workflow_run_lineage_entries_status_index} on {workflow_run_lineage_entries} (status);
create index if not exists {workflow_run_lineage_entries_workflow_instance_id_index} on {workflow_run_lineage_entries} (workflow_instance_id);
create index if not exists {workflow_run_lineage_entries_workflow_run_id_index} on {workflow_run_lineage_entries} (workflow_run_id);
create index if not exists {workflow_run_lineage_instance_direction_type_index} on {workflow_run_lineage_entries} (workflow_instance_id, direction, link_type);
create index if not exists {workflow_run_lineage_run_direction_position_index} on {workflow_run_lineage_entries} (workflow_run_id, direction, position);
