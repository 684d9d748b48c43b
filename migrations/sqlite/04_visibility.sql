-- Values a run is found and described by.
-- As the engine (2.0.0-rc.37) creates them on SQLite. Names in braces receive the table prefix.

-- Current typed search attributes, one row per run and key.
create table if not exists {workflow_search_attributes} (
    id integer primary key autoincrement not null,
    workflow_run_id varchar not null,
    workflow_instance_id varchar not null,
    "key" varchar not null,
    type varchar not null,
    value_string text,
    value_keyword varchar,
    value_int integer,
    value_float double,
    value_bool tinyint(1),
    value_datetime datetime,
    upserted_at_sequence integer not null,
    inherited_from_parent tinyint(1) not null default '0',
    created_at datetime,
    updated_at datetime,
    value_keyword_list text,
    foreign key (workflow_run_id) references {workflow_runs} (id) on delete cascade
);
create unique index if not exists {workflow_search_attrs_run_key_unique} on {workflow_search_attributes} (workflow_run_id, "key");
create index if not exists {workflow_search_attrs_instance_key_type} on {workflow_search_attributes} (workflow_instance_id, "key", type);
create index if not exists {workflow_search_attrs_key_keyword} on {workflow_search_attributes} ("key", value_keyword);
create index if not exists {workflow_search_attrs_key_int} on {workflow_search_attributes} ("key", value_int);
create index if not exists {workflow_search_attrs_key_float} on {workflow_search_attributes} ("key", value_float);
create index if not exists {workflow_search_attrs_key_bool} on {workflow_search_attributes} ("key", value_bool);
create index if not exists {workflow_search_attrs_key_datetime} on {workflow_search_attributes} ("key", value_datetime);
create index if not exists {workflow_search_attributes_workflow_run_id_index} on {workflow_search_attributes} (workflow_run_id);
create index if not exists {workflow_search_attributes_workflow_instance_id_index} on {workflow_search_attributes} (workflow_instance_id);
create index if not exists {workflow_search_attributes_value_keyword_index} on {workflow_search_attributes} (value_keyword);
create index if not exists {workflow_search_attributes_value_int_index} on {workflow_search_attributes} (value_int);
create index if not exists {workflow_search_attributes_value_float_index} on {workflow_search_attributes} (value_float);
create index if not exists {workflow_search_attributes_value_bool_index} on {workflow_search_attributes} (value_bool);
create index if not exists {workflow_search_attributes_value_datetime_index} on {workflow_search_attributes} (value_datetime);

-- Current memo values, one row per run and key.
create table if not exists {workflow_memos} (
    id integer primary key autoincrement not null,
    workflow_run_id varchar not null,
    workflow_instance_id varchar not null,
    "key" varchar not null,
    value text not null,
    upserted_at_sequence integer not null,
    inherited_from_parent tinyint(1) not null default '0',
    created_at datetime,
    updated_at datetime,
    foreign key (workflow_run_id) references {workflow_runs} (id) on delete cascade
);
create unique index if not exists {workflow_memos_run_key_unique} on {workflow_memos} (workflow_run_id, "key");
create index if not exists {workflow_memos_instance_key} on {workflow_memos} (workflow_instance_id, "key");
