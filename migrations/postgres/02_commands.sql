-- What came in from outside: commands and the messages they carry.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- Every request to an instance or run, accepted or rejected.
create table if not exists {workflow_commands} (
    id varchar(26) not null,
    workflow_instance_id varchar(191),
    workflow_run_id varchar(26),
    requested_workflow_run_id varchar(26),
    resolved_workflow_run_id varchar(26),
    command_type varchar(255) not null,
    target_scope varchar(255) not null default 'instance',
    source varchar(255) not null default 'php',
    context json,
    request_id varchar(191),
    status varchar(255) not null,
    outcome varchar(255),
    workflow_class varchar(255),
    workflow_type varchar(255),
    payload_codec varchar(255),
    payload text,
    rejection_reason varchar(255),
    command_sequence integer,
    message_sequence integer,
    accepted_at timestamp(6),
    applied_at timestamp(6),
    rejected_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_commands_request_lookup} unique (workflow_instance_id, command_type, request_id)
);
create index if not exists {workflow_commands_command_sequence_index} on {workflow_commands} (command_sequence);
create index if not exists {workflow_commands_command_type_index} on {workflow_commands} (command_type);
create index if not exists {workflow_commands_requested_workflow_run_id_index} on {workflow_commands} (requested_workflow_run_id);
create index if not exists {workflow_commands_resolved_workflow_run_id_index} on {workflow_commands} (resolved_workflow_run_id);
create index if not exists {workflow_commands_source_index} on {workflow_commands} (source);
create index if not exists {workflow_commands_status_index} on {workflow_commands} (status);
create index if not exists {workflow_commands_workflow_instance_id_index} on {workflow_commands} (workflow_instance_id);
create index if not exists {workflow_commands_workflow_run_id_index} on {workflow_commands} (workflow_run_id);

-- The life of one signal, 1:1 with its command.
create table if not exists {workflow_signal_records} (
    id varchar(26) not null,
    workflow_command_id varchar(26) not null,
    workflow_instance_id varchar(191),
    workflow_run_id varchar(26),
    target_scope varchar(255) not null default 'instance',
    requested_workflow_run_id varchar(26),
    resolved_workflow_run_id varchar(26),
    signal_name varchar(255) not null,
    signal_wait_id varchar(255),
    status varchar(255) not null,
    outcome varchar(255),
    command_sequence integer,
    workflow_sequence integer,
    payload_codec varchar(255),
    arguments text,
    validation_errors json,
    rejection_reason varchar(255),
    received_at timestamp(6),
    applied_at timestamp(6),
    rejected_at timestamp(6),
    closed_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_signal_records_workflow_command_id_unique} unique (workflow_command_id)
);
create index if not exists {workflow_signal_records_command_sequence_index} on {workflow_signal_records} (command_sequence);
create index if not exists {workflow_signal_records_outcome_index} on {workflow_signal_records} (outcome);
create index if not exists {workflow_signal_records_requested_workflow_run_id_index} on {workflow_signal_records} (requested_workflow_run_id);
create index if not exists {workflow_signal_records_resolved_workflow_run_id_index} on {workflow_signal_records} (resolved_workflow_run_id);
create index if not exists {workflow_signal_records_signal_name_index} on {workflow_signal_records} (signal_name);
create index if not exists {workflow_signal_records_signal_wait_id_index} on {workflow_signal_records} (signal_wait_id);
create index if not exists {workflow_signal_records_status_index} on {workflow_signal_records} (status);
create index if not exists {workflow_signal_records_workflow_instance_id_index} on {workflow_signal_records} (workflow_instance_id);
create index if not exists {workflow_signal_records_workflow_run_id_index} on {workflow_signal_records} (workflow_run_id);
create index if not exists {workflow_signal_records_workflow_sequence_index} on {workflow_signal_records} (workflow_sequence);

-- The life of one update, 1:1 with its command.
create table if not exists {workflow_updates} (
    id varchar(26) not null,
    workflow_command_id varchar(26) not null,
    workflow_instance_id varchar(191),
    workflow_run_id varchar(26),
    target_scope varchar(255) not null default 'instance',
    requested_workflow_run_id varchar(26),
    resolved_workflow_run_id varchar(26),
    update_name varchar(255) not null,
    status varchar(255) not null,
    outcome varchar(255),
    command_sequence integer,
    workflow_sequence integer,
    payload_codec varchar(255),
    arguments text,
    result text,
    validation_errors json,
    rejection_reason varchar(255),
    failure_id varchar(26),
    failure_message text,
    accepted_at timestamp(6),
    applied_at timestamp(6),
    rejected_at timestamp(6),
    closed_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_updates_workflow_command_id_unique} unique (workflow_command_id)
);
create index if not exists {workflow_updates_command_sequence_index} on {workflow_updates} (command_sequence);
create index if not exists {workflow_updates_failure_id_index} on {workflow_updates} (failure_id);
create index if not exists {workflow_updates_outcome_index} on {workflow_updates} (outcome);
create index if not exists {workflow_updates_requested_workflow_run_id_index} on {workflow_updates} (requested_workflow_run_id);
create index if not exists {workflow_updates_resolved_workflow_run_id_index} on {workflow_updates} (resolved_workflow_run_id);
create index if not exists {workflow_updates_status_index} on {workflow_updates} (status);
create index if not exists {workflow_updates_update_name_index} on {workflow_updates} (update_name);
create index if not exists {workflow_updates_workflow_instance_id_index} on {workflow_updates} (workflow_instance_id);
create index if not exists {workflow_updates_workflow_run_id_index} on {workflow_updates} (workflow_run_id);
create index if not exists {workflow_updates_workflow_sequence_index} on {workflow_updates} (workflow_sequence);

-- Workflow-to-workflow message streams.
create table if not exists {workflow_messages} (
    id bigserial,
    workflow_instance_id varchar(191) not null,
    workflow_run_id varchar(26),
    direction varchar(16) not null,
    channel varchar(64) not null,
    stream_key varchar(191) not null,
    sequence bigint not null,
    source_workflow_instance_id varchar(191),
    source_workflow_run_id varchar(26),
    target_workflow_instance_id varchar(191),
    target_workflow_run_id varchar(26),
    correlation_id varchar(191),
    idempotency_key varchar(191),
    payload_reference varchar(191),
    consume_state varchar(16) not null default 'pending',
    consumed_at timestamp(6),
    consumed_by_sequence integer,
    expires_at timestamp(6),
    delivery_attempt_count integer not null default 0,
    last_delivery_attempt_at timestamp(6),
    last_delivery_error text,
    metadata json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {wf_msgs_stream_seq_unique} unique (workflow_instance_id, stream_key, sequence),
    constraint {workflow_messages_workflow_run_id_foreign} foreign key (workflow_run_id) references {workflow_runs} (id) on delete cascade
);
create index if not exists {wf_msgs_instance_stream_seq} on {workflow_messages} (workflow_instance_id, stream_key, sequence);
create index if not exists {wf_msgs_run_dir_state} on {workflow_messages} (workflow_run_id, direction, consume_state);
create index if not exists {wf_msgs_stream_seq_state} on {workflow_messages} (stream_key, sequence, consume_state);
create index if not exists {wf_msgs_target_state} on {workflow_messages} (target_workflow_instance_id, consume_state);
create index if not exists {workflow_messages_channel_index} on {workflow_messages} (channel);
create index if not exists {workflow_messages_consume_state_index} on {workflow_messages} (consume_state);
create index if not exists {workflow_messages_correlation_id_index} on {workflow_messages} (correlation_id);
create index if not exists {workflow_messages_direction_index} on {workflow_messages} (direction);
create index if not exists {workflow_messages_idempotency_key_index} on {workflow_messages} (idempotency_key);
create index if not exists {workflow_messages_sequence_index} on {workflow_messages} (sequence);
create index if not exists {workflow_messages_source_workflow_instance_id_index} on {workflow_messages} (source_workflow_instance_id);
create index if not exists {workflow_messages_stream_key_index} on {workflow_messages} (stream_key);
create index if not exists {workflow_messages_target_workflow_instance_id_index} on {workflow_messages} (target_workflow_instance_id);
create index if not exists {workflow_messages_workflow_instance_id_index} on {workflow_messages} (workflow_instance_id);
create index if not exists {workflow_messages_workflow_run_id_index} on {workflow_messages} (workflow_run_id);
