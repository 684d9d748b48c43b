-- Cross-namespace services: the catalogue and the calls.
-- As the engine (2.0.0-rc.37) creates them on SQLite. Names in braces receive the table prefix.

-- Catalogue: endpoints.
create table if not exists {workflow_service_endpoints} (
    id varchar not null,
    namespace varchar,
    endpoint_name varchar not null,
    description text,
    boundary_policy text,
    metadata text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create unique index if not exists {wf_service_endpoints_namespace_name_unique} on {workflow_service_endpoints} (namespace, endpoint_name);
create index if not exists {wf_service_endpoints_namespace_idx} on {workflow_service_endpoints} (namespace);
create index if not exists {wf_service_endpoints_name_idx} on {workflow_service_endpoints} (endpoint_name);

-- Catalogue: services of an endpoint.
create table if not exists {workflow_services} (
    id varchar not null,
    workflow_service_endpoint_id varchar not null,
    namespace varchar,
    service_name varchar not null,
    description text,
    boundary_policy text,
    metadata text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create index if not exists {wf_services_namespace_name_idx} on {workflow_services} (namespace, service_name);
create unique index if not exists {wf_services_namespace_endpoint_name_unique} on {workflow_services} (namespace, workflow_service_endpoint_id, service_name);
create index if not exists {wf_services_endpoint_idx} on {workflow_services} (workflow_service_endpoint_id);
create index if not exists {wf_services_namespace_idx} on {workflow_services} (namespace);
create index if not exists {wf_services_name_idx} on {workflow_services} (service_name);

-- Catalogue: operations of a service.
create table if not exists {workflow_service_operations} (
    id varchar not null,
    workflow_service_endpoint_id varchar not null,
    workflow_service_id varchar not null,
    namespace varchar,
    operation_name varchar not null,
    description text,
    operation_mode varchar not null,
    handler_binding_kind varchar not null,
    handler_target_reference varchar,
    handler_binding text,
    deadline_policy text,
    idempotency_policy text,
    cancellation_policy text,
    retry_policy text,
    boundary_policy text,
    metadata text,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create index if not exists {wf_service_ops_namespace_name_idx} on {workflow_service_operations} (namespace, operation_name);
create unique index if not exists {wf_service_ops_namespace_service_name_unique} on {workflow_service_operations} (namespace, workflow_service_id, operation_name);
create index if not exists {wf_service_ops_endpoint_idx} on {workflow_service_operations} (workflow_service_endpoint_id);
create index if not exists {wf_service_ops_service_idx} on {workflow_service_operations} (workflow_service_id);
create index if not exists {wf_service_ops_namespace_idx} on {workflow_service_operations} (namespace);
create index if not exists {wf_service_ops_name_idx} on {workflow_service_operations} (operation_name);
create index if not exists {wf_service_ops_mode_idx} on {workflow_service_operations} (operation_mode);
create index if not exists {wf_service_ops_binding_kind_idx} on {workflow_service_operations} (handler_binding_kind);

-- One call: admission, outcome and caller audit.
create table if not exists {workflow_service_calls} (
    id varchar not null,
    workflow_service_endpoint_id varchar,
    workflow_service_id varchar,
    workflow_service_operation_id varchar,
    namespace varchar,
    endpoint_name varchar not null,
    service_name varchar not null,
    operation_name varchar not null,
    caller_namespace varchar,
    caller_workflow_instance_id varchar,
    caller_workflow_run_id varchar,
    target_namespace varchar,
    linked_workflow_instance_id varchar,
    linked_workflow_run_id varchar,
    linked_workflow_update_id varchar,
    status varchar not null,
    outcome varchar,
    operation_mode varchar not null,
    resolved_binding_kind varchar,
    resolved_target_reference varchar,
    payload_codec varchar,
    input_payload_reference varchar,
    output_payload_reference varchar,
    failure_payload_reference varchar,
    failure_message text,
    idempotency_key varchar,
    deadline_policy text,
    idempotency_policy text,
    cancellation_policy text,
    retry_policy text,
    boundary_policy text,
    metadata text,
    outcome_category varchar,
    outcome_reason varchar,
    outcome_message text,
    outcome_metadata text,
    policy_name varchar,
    retry_after_seconds integer,
    caller_principal_subject varchar,
    caller_principal_method varchar,
    caller_principal_roles text,
    caller_principal_tenant varchar,
    caller_principal_claims text,
    accepted_at datetime,
    started_at datetime,
    completed_at datetime,
    failed_at datetime,
    cancelled_at datetime,
    created_at datetime,
    updated_at datetime,
    primary key (id)
);
create index if not exists {wf_service_calls_namespace_status_idx} on {workflow_service_calls} (namespace, status);
create index if not exists {wf_service_calls_caller_status_idx} on {workflow_service_calls} (caller_namespace, status);
create index if not exists {wf_service_calls_target_status_idx} on {workflow_service_calls} (target_namespace, status);
create index if not exists {wf_service_calls_namespace_outcome_idx} on {workflow_service_calls} (namespace, outcome);
create index if not exists {wf_service_calls_caller_outcome_idx} on {workflow_service_calls} (caller_namespace, outcome);
create index if not exists {wf_service_calls_target_outcome_idx} on {workflow_service_calls} (target_namespace, outcome);
create index if not exists {wf_service_calls_endpoint_idx} on {workflow_service_calls} (workflow_service_endpoint_id);
create index if not exists {wf_service_calls_service_idx} on {workflow_service_calls} (workflow_service_id);
create index if not exists {wf_service_calls_operation_idx} on {workflow_service_calls} (workflow_service_operation_id);
create index if not exists {wf_service_calls_namespace_idx} on {workflow_service_calls} (namespace);
create index if not exists {wf_service_calls_caller_namespace_idx} on {workflow_service_calls} (caller_namespace);
create index if not exists {wf_service_calls_caller_instance_idx} on {workflow_service_calls} (caller_workflow_instance_id);
create index if not exists {wf_service_calls_caller_run_idx} on {workflow_service_calls} (caller_workflow_run_id);
create index if not exists {wf_service_calls_target_namespace_idx} on {workflow_service_calls} (target_namespace);
create index if not exists {wf_service_calls_linked_instance_idx} on {workflow_service_calls} (linked_workflow_instance_id);
create index if not exists {wf_service_calls_linked_run_idx} on {workflow_service_calls} (linked_workflow_run_id);
create index if not exists {wf_service_calls_linked_update_idx} on {workflow_service_calls} (linked_workflow_update_id);
create index if not exists {wf_service_calls_status_idx} on {workflow_service_calls} (status);
create index if not exists {wf_service_calls_outcome_idx} on {workflow_service_calls} (outcome);
create index if not exists {wf_service_calls_mode_idx} on {workflow_service_calls} (operation_mode);
create index if not exists {wf_service_calls_binding_kind_idx} on {workflow_service_calls} (resolved_binding_kind);
create index if not exists {wf_service_calls_idempotency_idx} on {workflow_service_calls} (idempotency_key);
create index if not exists {wf_service_calls_outcome_category_idx} on {workflow_service_calls} (outcome_category);
create index if not exists {wf_service_calls_policy_idx} on {workflow_service_calls} (policy_name);
create index if not exists {wf_service_calls_principal_subject_idx} on {workflow_service_calls} (caller_principal_subject);
create index if not exists {wf_service_calls_accepted_at_idx} on {workflow_service_calls} (accepted_at);
