-- Cross-namespace services: the catalogue and the calls.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- Catalogue: endpoints.
create table if not exists {workflow_service_endpoints} (
    id varchar(26) not null,
    namespace varchar(255),
    endpoint_name varchar(191) not null,
    description text,
    boundary_policy json,
    metadata json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {wf_service_endpoints_namespace_name_unique} unique (namespace, endpoint_name)
);
create index if not exists {wf_service_endpoints_name_idx} on {workflow_service_endpoints} (endpoint_name);
create index if not exists {wf_service_endpoints_namespace_idx} on {workflow_service_endpoints} (namespace);

-- Catalogue: services of an endpoint.
create table if not exists {workflow_services} (
    id varchar(26) not null,
    workflow_service_endpoint_id varchar(26) not null,
    namespace varchar(255),
    service_name varchar(191) not null,
    description text,
    boundary_policy json,
    metadata json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {wf_services_namespace_endpoint_name_unique} unique (namespace, workflow_service_endpoint_id, service_name)
);
create index if not exists {wf_services_endpoint_idx} on {workflow_services} (workflow_service_endpoint_id);
create index if not exists {wf_services_name_idx} on {workflow_services} (service_name);
create index if not exists {wf_services_namespace_idx} on {workflow_services} (namespace);
create index if not exists {wf_services_namespace_name_idx} on {workflow_services} (namespace, service_name);

-- Catalogue: operations of a service.
create table if not exists {workflow_service_operations} (
    id varchar(26) not null,
    workflow_service_endpoint_id varchar(26) not null,
    workflow_service_id varchar(26) not null,
    namespace varchar(255),
    operation_name varchar(191) not null,
    description text,
    operation_mode varchar(32) not null,
    handler_binding_kind varchar(64) not null,
    handler_target_reference varchar(191),
    handler_binding json,
    deadline_policy json,
    idempotency_policy json,
    cancellation_policy json,
    retry_policy json,
    boundary_policy json,
    metadata json,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {wf_service_ops_namespace_service_name_unique} unique (namespace, workflow_service_id, operation_name)
);
create index if not exists {wf_service_ops_binding_kind_idx} on {workflow_service_operations} (handler_binding_kind);
create index if not exists {wf_service_ops_endpoint_idx} on {workflow_service_operations} (workflow_service_endpoint_id);
create index if not exists {wf_service_ops_mode_idx} on {workflow_service_operations} (operation_mode);
create index if not exists {wf_service_ops_name_idx} on {workflow_service_operations} (operation_name);
create index if not exists {wf_service_ops_namespace_idx} on {workflow_service_operations} (namespace);
create index if not exists {wf_service_ops_namespace_name_idx} on {workflow_service_operations} (namespace, operation_name);
create index if not exists {wf_service_ops_service_idx} on {workflow_service_operations} (workflow_service_id);

-- One call: admission, outcome and caller audit.
create table if not exists {workflow_service_calls} (
    id varchar(26) not null,
    workflow_service_endpoint_id varchar(26),
    workflow_service_id varchar(26),
    workflow_service_operation_id varchar(26),
    namespace varchar(255),
    endpoint_name varchar(191) not null,
    service_name varchar(191) not null,
    operation_name varchar(191) not null,
    caller_namespace varchar(255),
    caller_workflow_instance_id varchar(191),
    caller_workflow_run_id varchar(26),
    target_namespace varchar(255),
    linked_workflow_instance_id varchar(191),
    linked_workflow_run_id varchar(26),
    linked_workflow_update_id varchar(26),
    status varchar(32) not null,
    outcome varchar(64),
    operation_mode varchar(32) not null,
    resolved_binding_kind varchar(64),
    resolved_target_reference varchar(191),
    payload_codec varchar(255),
    input_payload_reference varchar(191),
    output_payload_reference varchar(191),
    failure_payload_reference varchar(191),
    failure_message text,
    idempotency_key varchar(191),
    deadline_policy json,
    idempotency_policy json,
    cancellation_policy json,
    retry_policy json,
    boundary_policy json,
    metadata json,
    outcome_category varchar(32),
    outcome_reason varchar(191),
    outcome_message text,
    outcome_metadata json,
    policy_name varchar(191),
    retry_after_seconds integer,
    caller_principal_subject varchar(191),
    caller_principal_method varchar(64),
    caller_principal_roles json,
    caller_principal_tenant varchar(191),
    caller_principal_claims json,
    accepted_at timestamp(6),
    started_at timestamp(6),
    completed_at timestamp(6),
    failed_at timestamp(6),
    cancelled_at timestamp(6),
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id)
);
create index if not exists {wf_service_calls_accepted_at_idx} on {workflow_service_calls} (accepted_at);
create index if not exists {wf_service_calls_binding_kind_idx} on {workflow_service_calls} (resolved_binding_kind);
create index if not exists {wf_service_calls_caller_instance_idx} on {workflow_service_calls} (caller_workflow_instance_id);
create index if not exists {wf_service_calls_caller_namespace_idx} on {workflow_service_calls} (caller_namespace);
create index if not exists {wf_service_calls_caller_outcome_idx} on {workflow_service_calls} (caller_namespace, outcome);
create index if not exists {wf_service_calls_caller_run_idx} on {workflow_service_calls} (caller_workflow_run_id);
create index if not exists {wf_service_calls_caller_status_idx} on {workflow_service_calls} (caller_namespace, status);
create index if not exists {wf_service_calls_endpoint_idx} on {workflow_service_calls} (workflow_service_endpoint_id);
create index if not exists {wf_service_calls_idempotency_idx} on {workflow_service_calls} (idempotency_key);
create index if not exists {wf_service_calls_linked_instance_idx} on {workflow_service_calls} (linked_workflow_instance_id);
create index if not exists {wf_service_calls_linked_run_idx} on {workflow_service_calls} (linked_workflow_run_id);
create index if not exists {wf_service_calls_linked_update_idx} on {workflow_service_calls} (linked_workflow_update_id);
create index if not exists {wf_service_calls_mode_idx} on {workflow_service_calls} (operation_mode);
create index if not exists {wf_service_calls_namespace_idx} on {workflow_service_calls} (namespace);
create index if not exists {wf_service_calls_namespace_outcome_idx} on {workflow_service_calls} (namespace, outcome);
create index if not exists {wf_service_calls_namespace_status_idx} on {workflow_service_calls} (namespace, status);
create index if not exists {wf_service_calls_operation_idx} on {workflow_service_calls} (workflow_service_operation_id);
create index if not exists {wf_service_calls_outcome_category_idx} on {workflow_service_calls} (outcome_category);
create index if not exists {wf_service_calls_outcome_idx} on {workflow_service_calls} (outcome);
create index if not exists {wf_service_calls_policy_idx} on {workflow_service_calls} (policy_name);
create index if not exists {wf_service_calls_principal_subject_idx} on {workflow_service_calls} (caller_principal_subject);
create index if not exists {wf_service_calls_service_idx} on {workflow_service_calls} (workflow_service_id);
create index if not exists {wf_service_calls_status_idx} on {workflow_service_calls} (status);
create index if not exists {wf_service_calls_target_namespace_idx} on {workflow_service_calls} (target_namespace);
create index if not exists {wf_service_calls_target_outcome_idx} on {workflow_service_calls} (target_namespace, outcome);
create index if not exists {wf_service_calls_target_status_idx} on {workflow_service_calls} (target_namespace, status);
