-- Values a run is found and described by.
-- As the engine (2.0.0-rc.37) creates them on PostgreSQL. Names in braces receive the table prefix.

-- Current typed search attributes, one row per run and key.
create table if not exists {workflow_search_attributes} (
    id bigserial,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    "key" varchar(191) not null,
    type varchar(16) not null,
    value_string text,
    value_keyword varchar(255),
    value_int bigint,
    value_float double precision,
    value_bool boolean,
    value_datetime timestamp(6),
    upserted_at_sequence integer not null,
    inherited_from_parent boolean not null default false,
    created_at timestamp(6),
    updated_at timestamp(6),
    value_keyword_list json,
    primary key (id),
    constraint {workflow_search_attrs_run_key_unique} unique (workflow_run_id, "key"),
    constraint {workflow_search_attributes_workflow_run_id_foreign} foreign key (workflow_run_id) references {workflow_runs} (id) on delete cascade
);
create index if not exists {workflow_search_attributes_value_bool_index} on {workflow_search_attributes} (value_bool);
create index if not exists {workflow_search_attributes_value_datetime_index} on {workflow_search_attributes} (value_datetime);
create index if not exists {workflow_search_attributes_value_float_index} on {workflow_search_attributes} (value_float);
create index if not exists {workflow_search_attributes_value_int_index} on {workflow_search_attributes} (value_int);
create index if not exists {workflow_search_attributes_value_keyword_index} on {workflow_search_attributes} (value_keyword);
create index if not exists {workflow_search_attributes_workflow_instance_id_index} on {workflow_search_attributes} (workflow_instance_id);
create index if not exists {workflow_search_attributes_workflow_run_id_index} on {workflow_search_attributes} (workflow_run_id);
create index if not exists {workflow_search_attrs_instance_key_type} on {workflow_search_attributes} (workflow_instance_id, "key", type);
create index if not exists {workflow_search_attrs_key_bool} on {workflow_search_attributes} ("key", value_bool);
create index if not exists {workflow_search_attrs_key_datetime} on {workflow_search_attributes} ("key", value_datetime);
create index if not exists {workflow_search_attrs_key_float} on {workflow_search_attributes} ("key", value_float);
create index if not exists {workflow_search_attrs_key_int} on {workflow_search_attributes} ("key", value_int);
create index if not exists {workflow_search_attrs_key_keyword} on {workflow_search_attributes} ("key", value_keyword);

-- Current memo values, one row per run and key.
create table if not exists {workflow_memos} (
    id bigserial,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    "key" varchar(191) not null,
    value json not null,
    upserted_at_sequence integer not null,
    inherited_from_parent boolean not null default false,
    created_at timestamp(6),
    updated_at timestamp(6),
    primary key (id),
    constraint {workflow_memos_run_key_unique} unique (workflow_run_id, "key"),
    constraint {workflow_memos_workflow_run_id_foreign} foreign key (workflow_run_id) references {workflow_runs} (id) on delete cascade
);
create index if not exists {workflow_memos_instance_key} on {workflow_memos} (workflow_instance_id, "key");
