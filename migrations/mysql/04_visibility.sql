-- Values a run is found and described by.
-- As the engine (2.0.0-rc.37) creates them on MySQL and MariaDB. Names in braces receive the table prefix.
-- Index names belong to their table here and stay as they are; constraint names do not.

-- Current typed search attributes, one row per run and key.
create table if not exists {workflow_search_attributes} (
    id bigint unsigned not null auto_increment,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    "key" varchar(191) not null,
    type varchar(16) not null,
    value_string text,
    value_keyword varchar(255),
    value_keyword_list json,
    value_int bigint,
    value_float double,
    value_bool tinyint(1),
    value_datetime timestamp(6) null,
    upserted_at_sequence int unsigned not null,
    inherited_from_parent tinyint(1) not null default 0,
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (id),
    unique key workflow_search_attrs_run_key_unique (workflow_run_id, "key"),
    key workflow_search_attrs_instance_key_type (workflow_instance_id, "key", type),
    key workflow_search_attrs_key_keyword ("key", value_keyword),
    key workflow_search_attrs_key_int ("key", value_int),
    key workflow_search_attrs_key_float ("key", value_float),
    key workflow_search_attrs_key_bool ("key", value_bool),
    key workflow_search_attrs_key_datetime ("key", value_datetime),
    key workflow_search_attributes_workflow_run_id_index (workflow_run_id),
    key workflow_search_attributes_workflow_instance_id_index (workflow_instance_id),
    key workflow_search_attributes_value_keyword_index (value_keyword),
    key workflow_search_attributes_value_int_index (value_int),
    key workflow_search_attributes_value_float_index (value_float),
    key workflow_search_attributes_value_bool_index (value_bool),
    key workflow_search_attributes_value_datetime_index (value_datetime),
    constraint {workflow_search_attributes_workflow_run_id_foreign} foreign key (workflow_run_id) references {workflow_runs} (id) on delete cascade
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;

-- Current memo values, one row per run and key.
create table if not exists {workflow_memos} (
    id bigint unsigned not null auto_increment,
    workflow_run_id varchar(26) not null,
    workflow_instance_id varchar(191) not null,
    "key" varchar(191) not null,
    value json not null,
    upserted_at_sequence int unsigned not null,
    inherited_from_parent tinyint(1) not null default 0,
    created_at timestamp(6) null,
    updated_at timestamp(6) null,
    primary key (id),
    unique key workflow_memos_run_key_unique (workflow_run_id, "key"),
    key workflow_memos_instance_key (workflow_instance_id, "key"),
    constraint {workflow_memos_workflow_run_id_foreign} foreign key (workflow_run_id) references {workflow_runs} (id) on delete cascade
) engine = InnoDB default character set utf8mb4 collate utf8mb4_unicode_ci;
