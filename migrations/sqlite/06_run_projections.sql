-- Projections of one run, rebuildable from history; never a source of truth.
-- As the engine (2.0.0-rc.37) creates them on SQLite. Names in braces receive the table prefix.

-- What a run waits for or waited for.
create table if not exists {workflow_run_waits} (
    id varchar not null,
    workflow_run_id varchar not null,
    workflow_instance_id varchar not null,
    wait_id varchar not null,
    position integer not null,
    kind varchar not null,
    sequence integer,
    status varchar not null,
    source_status varchar,
    summary text,
    opened_at datetime,
    deadline_at datetime,
    resolved_at datetime,
    target_name varchar,
    target_type varchar,
    task_backed tinyint(1) not null default '0',
    external_only tinyint(1) not null default '0',
    resume_source_kind varchar,
    resume_source_id varchar,
    task_id varchar,
    task_type varchar,
    task_status varchar,
    command_id varchar,
    command_sequence integer,
    command_status varchar,
    command_outcome varchar,
    history_authority varchar,
    history_unsupported_reason varchar,
    payload text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_run_waits_run_wait_unique} on {workflow_run_waits} (workflow_run_id, wait_id);
create index if not exists {workflow_run_waits_run_status_position_index} on {workflow_run_waits} (workflow_run_id, status, position);
create index if not exists {workflow_run_waits_instance_kind_status_index} on {workflow_run_waits} (workflow_instance_id, kind, status);
create index if not exists {workflow_run_waits_workflow_run_id_index} on {workflow_run_waits} (workflow_run_id);
create index if not exists {workflow_run_waits_workflow_instance_id_index} on {workflow_run_waits} (workflow_instance_id);
create index if not exists {workflow_run_waits_kind_index} on {workflow_run_waits} (kind);
create index if not exists {workflow_run_waits_sequence_index} on {workflow_run_waits} (sequence);
create index if not exists {workflow_run_waits_status_index} on {workflow_run_waits} (status);
create index if not exists {workflow_run_waits_source_status_index} on {workflow_run_waits} (source_status);
create index if not exists {workflow_run_waits_target_name_index} on {workflow_run_waits} (target_name);
create index if not exists {workflow_run_waits_task_backed_index} on {workflow_run_waits} (task_backed);
create index if not exists {workflow_run_waits_resume_source_kind_index} on {workflow_run_waits} (resume_source_kind);
create index if not exists {workflow_run_waits_resume_source_id_index} on {workflow_run_waits} (resume_source_id);
create index if not exists {workflow_run_waits_task_id_index} on {workflow_run_waits} (task_id);
create index if not exists {workflow_run_waits_command_id_index} on {workflow_run_waits} (command_id);
create index if not exists {workflow_run_waits_history_authority_index} on {workflow_run_waits} (history_authority);

-- One row per history event, flattened for display.
create table if not exists {workflow_run_timeline_entries} (
    id varchar not null,
    workflow_run_id varchar not null,
    workflow_instance_id varchar not null,
    history_event_id varchar not null,
    sequence integer not null,
    type varchar not null,
    kind varchar not null,
    entry_kind varchar not null default 'point',
    source_kind varchar,
    source_id varchar,
    summary text,
    recorded_at datetime,
    command_id varchar,
    command_sequence integer,
    task_id varchar,
    activity_execution_id varchar,
    timer_id varchar,
    failure_id varchar,
    payload text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_run_timeline_run_event_unique} on {workflow_run_timeline_entries} (workflow_run_id, history_event_id);
create index if not exists {workflow_run_timeline_run_sequence_index} on {workflow_run_timeline_entries} (workflow_run_id, sequence);
create index if not exists {workflow_run_timeline_instance_kind_recorded_index} on {workflow_run_timeline_entries} (workflow_instance_id, kind, recorded_at);
create index if not exists {workflow_run_timeline_entries_workflow_run_id_index} on {workflow_run_timeline_entries} (workflow_run_id);
create index if not exists {workflow_run_timeline_entries_workflow_instance_id_index} on {workflow_run_timeline_entries} (workflow_instance_id);
create index if not exists {workflow_run_timeline_entries_history_event_id_index} on {workflow_run_timeline_entries} (history_event_id);
create index if not exists {workflow_run_timeline_entries_sequence_index} on {workflow_run_timeline_entries} (sequence);
create index if not exists {workflow_run_timeline_entries_type_index} on {workflow_run_timeline_entries} (type);
create index if not exists {workflow_run_timeline_entries_kind_index} on {workflow_run_timeline_entries} (kind);
create index if not exists {workflow_run_timeline_entries_source_kind_index} on {workflow_run_timeline_entries} (source_kind);
create index if not exists {workflow_run_timeline_entries_source_id_index} on {workflow_run_timeline_entries} (source_id);
create index if not exists {workflow_run_timeline_entries_recorded_at_index} on {workflow_run_timeline_entries} (recorded_at);
create index if not exists {workflow_run_timeline_entries_command_id_index} on {workflow_run_timeline_entries} (command_id);
create index if not exists {workflow_run_timeline_entries_command_sequence_index} on {workflow_run_timeline_entries} (command_sequence);
create index if not exists {workflow_run_timeline_entries_task_id_index} on {workflow_run_timeline_entries} (task_id);
create index if not exists {workflow_run_timeline_entries_activity_execution_id_index} on {workflow_run_timeline_entries} (activity_execution_id);
create index if not exists {workflow_run_timeline_entries_timer_id_index} on {workflow_run_timeline_entries} (timer_id);
create index if not exists {workflow_run_timeline_entries_failure_id_index} on {workflow_run_timeline_entries} (failure_id);

-- One row per timer.
create table if not exists {workflow_run_timer_entries} (
    id varchar not null,
    workflow_run_id varchar not null,
    workflow_instance_id varchar not null,
    timer_id varchar not null,
    schema_version integer not null default '1',
    position integer not null,
    sequence integer,
    status varchar not null,
    source_status varchar,
    delay_seconds integer,
    fire_at datetime,
    fired_at datetime,
    cancelled_at datetime,
    timer_kind varchar,
    condition_wait_id varchar,
    condition_key varchar,
    condition_definition_fingerprint varchar,
    history_authority varchar,
    history_unsupported_reason varchar,
    payload text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_run_timer_entries_run_timer_unique} on {workflow_run_timer_entries} (workflow_run_id, timer_id);
create index if not exists {workflow_run_timer_entries_run_status_position_index} on {workflow_run_timer_entries} (workflow_run_id, status, position);
create index if not exists {workflow_run_timer_entries_instance_kind_status_index} on {workflow_run_timer_entries} (workflow_instance_id, timer_kind, status);
create index if not exists {workflow_run_timer_entries_workflow_run_id_index} on {workflow_run_timer_entries} (workflow_run_id);
create index if not exists {workflow_run_timer_entries_workflow_instance_id_index} on {workflow_run_timer_entries} (workflow_instance_id);
create index if not exists {workflow_run_timer_entries_sequence_index} on {workflow_run_timer_entries} (sequence);
create index if not exists {workflow_run_timer_entries_status_index} on {workflow_run_timer_entries} (status);
create index if not exists {workflow_run_timer_entries_source_status_index} on {workflow_run_timer_entries} (source_status);
create index if not exists {workflow_run_timer_entries_timer_kind_index} on {workflow_run_timer_entries} (timer_kind);
create index if not exists {workflow_run_timer_entries_condition_wait_id_index} on {workflow_run_timer_entries} (condition_wait_id);
create index if not exists {workflow_run_timer_entries_condition_key_index} on {workflow_run_timer_entries} (condition_key);
create index if not exists {workflow_run_timer_entries_history_authority_index} on {workflow_run_timer_entries} (history_authority);

-- One row per related run.
create table if not exists {workflow_run_lineage_entries} (
    id varchar not null,
    workflow_run_id varchar not null,
    workflow_instance_id varchar not null,
    direction varchar not null,
    lineage_id varchar not null,
    position integer not null,
    link_type varchar not null,
    child_call_id varchar,
    sequence integer,
    is_primary_parent tinyint(1) not null default '0',
    related_workflow_instance_id varchar,
    related_workflow_run_id varchar,
    related_run_number integer,
    related_workflow_type varchar,
    related_workflow_class varchar,
    status varchar,
    status_bucket varchar,
    closed_reason varchar,
    linked_at datetime,
    payload text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {workflow_run_lineage_run_direction_lineage_unique} on {workflow_run_lineage_entries} (workflow_run_id, direction, lineage_id);
create index if not exists {workflow_run_lineage_run_direction_position_index} on {workflow_run_lineage_entries} (workflow_run_id, direction, position);
create index if not exists {workflow_run_lineage_instance_direction_type_index} on {workflow_run_lineage_entries} (workflow_instance_id, direction, link_type);
create index if not exists {workflow_run_lineage_entries_workflow_run_id_index} on {workflow_run_lineage_entries} (workflow_run_id);
create index if not exists {workflow_run_lineage_entries_workflow_instance_id_index} on {workflow_run_lineage_entries} (workflow_instance_id);
create index if not exists {workflow_run_lineage_entries_direction_index} on {workflow_run_lineage_entries} (direction);
create index if not exists {workflow_run_lineage_entries_link_type_index} on {workflow_run_lineage_entries} (link_type);
create index if not exists {workflow_run_lineage_entries_child_call_id_index} on {workflow_run_lineage_entries} (child_call_id);
create index if not exists {workflow_run_lineage_entries_sequence_index} on {workflow_run_lineage_entries} (sequence);
create index if not exists {workflow_run_lineage_entries_is_primary_parent_index} on {workflow_run_lineage_entries} (is_primary_parent);
create index if not exists {workflow_run_lineage_entries_related_workflow_instance_id_index} on {workflow_run_lineage_entries} (related_workflow_instance_id);
create index if not exists {workflow_run_lineage_entries_related_workflow_run_id_index} on {workflow_run_lineage_entries} (related_workflow_run_id);
create index if not exists {workflow_run_lineage_entries_related_workflow_type_index} on {workflow_run_lineage_entries} (related_workflow_type);
create index if not exists {workflow_run_lineage_entries_status_index} on {workflow_run_lineage_entries} (status);
create index if not exists {workflow_run_lineage_entries_status_bucket_index} on {workflow_run_lineage_entries} (status_bucket);
create index if not exists {workflow_run_lineage_entries_closed_reason_index} on {workflow_run_lineage_entries} (closed_reason);
create index if not exists {workflow_run_lineage_entries_linked_at_index} on {workflow_run_lineage_entries} (linked_at);
