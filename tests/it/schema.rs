//! Our scripts make what the engine's migrations make, and the start-up check tells a database
//! of the engine from any other.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll::{
    db::{Db, Dialect},
    durable::store::schema::{self, SchemaReport, Verdict},
};

use crate::{
    rig::{self, TestDb, on_every_database},
    shop,
};

async fn script(db: &Db, sql: &'static str) {
    let mut tx = db.write().await.unwrap();
    tx.script(sql).await.unwrap();
    tx.commit().await.unwrap();
}

on_every_database! {
    async fn tables_columns_types_nulls_and_defaults_are_the_engines(db: TestDb) {
        let ours = columns(&db.read_only).await;
        let known: BTreeSet<_> = schema::tables()
            .iter()
            .flat_map(|t| t.columns.iter().map(|c| format!("{}.{}", t.name, c.name)))
            .collect();
        assert_eq!(ours.keys().cloned().collect::<BTreeSet<_>>(), known);
        let Some(text) = rig::corpus_text("column-types.json") else { return };
        let corpus: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(&text).unwrap();
        let database = db.dialect().pick("sqlite", "postgres", "mysql");
        let theirs: BTreeMap<_, _> = corpus
            .into_iter()
            .filter(|(name, _)| is_v2(name.split('.').next().unwrap()))
            .map(|(name, types)| {
                let declared = neutral(&types[database]);
                (name, declared)
            })
            .collect();
        assert_same(&ours, &theirs);
    }

    async fn indexes_and_keys_are_the_engines(db: TestDb) {
        let ours = indexes(&db.read_only).await;
        assert!(ours.contains_key("workflow_runs(workflow_instance_id, run_number) unique"));
        let file = db.dialect().pick("schema-sqlite.sql", "schema-postgres.sql", "schema-mysql.sql");
        let Some(text) = rig::corpus_text(file) else { return };
        let theirs = match db.dialect() {
            Dialect::Sqlite => sqlite_indexes(&text),
            Dialect::Postgres => postgres_indexes(&text),
            Dialect::MySql => mysql_indexes(&text),
        };
        assert_same(&ours, &theirs);
    }

    async fn deleting_a_run_takes_what_refers_to_it(db: TestDb) {
        script(
            &db.writable,
            "insert into {workflow_runs} (id, workflow_instance_id, run_number, workflow_class, workflow_type, status)
                 values ('R', 'i', 1, 'c', 't', 'completed');
             insert into {workflow_memos} (workflow_run_id, workflow_instance_id, \"key\", value, upserted_at_sequence)
                 values ('R', 'i', 'k', '1', 1);
             insert into {workflow_messages} (workflow_instance_id, workflow_run_id, direction, channel, stream_key, sequence)
                 values ('i', 'R', 'inbound', 'signal', 's', 1);
             delete from {workflow_runs} where id = 'R';",
        ).await;
        let mut q = db.read_only.statement();
        q.push("select (select count(*) from {workflow_memos}) + (select count(*) from {workflow_messages}) as n");
        assert_eq!(db.read_only.fetch(q).await.unwrap()[0].int("n").unwrap(), 0);
    }

    async fn a_full_schema_is_current_and_is_not_made_again(db: TestDb) {
        let report = schema::check(&db.read_only).await.unwrap();
        assert_eq!(report.verdict, Verdict::Current, "{report}");
        assert!(report.sentences().is_empty());
        assert!(!schema::create(&db.writable).await.unwrap());
    }

    async fn an_older_engine_is_named_by_what_it_lacks(db: TestDb) {
        script(
            &db.writable,
            db.dialect().pick(
                "drop index {workflow_run_summaries_history_budget_pressure_index};
                 alter table {workflow_run_summaries} drop column history_budget_pressure;
                 drop table {workflow_messages};",
                "alter table {workflow_run_summaries} drop column history_budget_pressure;
                 drop table {workflow_messages};",
                "alter table {workflow_run_summaries} drop column history_budget_pressure;
                 drop table {workflow_messages};",
            ),
        )
        .await;
        let report = schema::check(&db.read_only).await.unwrap();
        assert_eq!(report.verdict, Verdict::Older);
        assert_eq!(
            report.sentences(),
            [
                "The database lacks workflow_messages: an older engine wrote it; what they would \
                 hold is shown as empty.",
                "workflow_run_summaries lacks history_budget_pressure: an older engine wrote this \
                 database; what depends on it is left out.",
            ]
        );
        // An existing engine database is never migrated.
        assert!(!schema::create(&db.writable).await.unwrap());
        assert_eq!(schema::check(&db.read_only).await.unwrap(), report);
    }

    async fn an_older_engine_is_read_without_what_it_lacks(db: TestDb) {
        shop::fill(&db).await;
        let full = schema::check(&db.read_only).await.unwrap();
        let optional = schema::tables().iter().map(|table| table.name).filter(|table| {
            !["workflow_instances", "workflow_runs", "workflow_history_events"].contains(table)
        });
        // A table that stands in hides the one that is there: as if it were not.
        let mut lacking: Vec<_> = optional.map(|table| SchemaReport { missing_tables: vec![table], ..full.clone() }).collect();
        if db.dialect() == Dialect::Sqlite {
            script(&db.writable, "drop index {workflow_failures_failure_category_index}").await;
        }
        script(
            &db.writable,
            "alter table {workflow_failures} drop column failure_category;
             alter table {workflow_failures} drop column non_retryable;
             alter table {workflow_failures} drop column handled;
             alter table {activity_executions} drop column retry_policy;
             alter table {workflow_run_summaries} drop column visibility_labels;
             alter table {workflow_run_summaries} drop column wait_reason;
             alter table {workflow_run_summaries} drop column duration_ms;
             alter table {workflow_tasks} drop column last_claim_error;",
        )
        .await;
        let report = schema::check(&db.read_only).await.unwrap();
        assert_eq!(report.verdict, Verdict::Older, "{report}");
        let columns = report.missing_columns.clone();
        lacking.push(report);
        for report in &mut lacking {
            let missing = report.missing_tables.clone();
            report.missing_columns = columns.clone();
            report.missing_columns.retain(|(table, _)| !missing.contains(table));
            let older = db.read_only.clone().with_stand_ins(schema::stand_ins(report, db.dialect()));
            let server = shop::server(&older);
            for path in [
                "/waterline/runs",
                "/waterline/runs?failure_category=activity",
                "/waterline/runs?non_retryable=1&namespace=production",
                "/waterline/runs?label[team]=blue",
                "/waterline/runs?search_attribute[tier]=gold",
                "/waterline/runs?needs_repair=1",
                "/waterline/api/flows/all",
                "/waterline/api/flows/failed",
                "/waterline/api/instances/ord-48288",
                "/waterline/find?q=ord-48288",
            ] {
                let status = server.get(path).await.status_code();
                assert!(status == 200 || status == 303, "{missing:?}: {path}: {status}");
            }
        }
    }

    async fn a_newer_engine_is_named_by_what_we_do_not_know(db: TestDb) {
        script(&db.writable, "alter table {workflow_tasks} add column shard integer").await;
        let report = schema::check(&db.read_only).await.unwrap();
        assert_eq!(report.verdict, Verdict::Newer);
        assert_eq!(report.extra_columns, [("workflow_tasks", "shard".to_owned())]);
        assert!(!report.is_fatal());
    }

    async fn a_database_without_the_engine_stops_the_start(db: TestDb) {
        let elsewhere = db.open(|settings| settings.prefix = "nobody_".into()).await;
        let report = schema::check(&elsewhere).await.unwrap();
        assert_eq!(report.verdict, Verdict::NotAnEngineDatabase);
        assert_eq!(report.missing_tables.len(), 29);
        assert!(report.to_string().starts_with(
            "This is not a Durable Workflow v2 database: none of its tables are here."
        ));
        elsewhere.close().await;
    }
}

fn is_v2(table: &str) -> bool {
    schema::tables().iter().any(|t| t.name == table)
}

/// A comparison whose failure shows the differences only.
fn assert_same(ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>) {
    let mut differences = Vec::new();
    for name in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let (a, b) = (ours.get(name), theirs.get(name));
        if a != b {
            differences.push(format!("{name}: ours {a:?}, the engine's {b:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// One spelling for what the catalogs and the dumps spell differently.
fn neutral(declared: &str) -> String {
    // Comments are for people; MariaDB's JSON is a text with a binary collation and a check.
    let mut text = declared
        .split(" COMMENT ")
        .next()
        .unwrap_or_default()
        .to_lowercase();
    if let Some((_, rest)) = text.split_once("longtext character set utf8mb4 collate utf8mb4_bin") {
        let not_null = if rest.contains("not null") {
            " not null"
        } else {
            ""
        };
        return format!("json{not_null}");
    }
    for (from, to) in [
        ("character varying", "varchar"),
        (" without time zone", ""),
        ("::varchar", ""),
        // A nullable column says so or leaves it out, with or without its default.
        (" null default null", ""),
        (" default null", ""),
    ] {
        text = text.replace(from, to);
    }
    let (not_null, auto) = (text.contains("not null"), text.contains("auto_increment"));
    let text = text.replace(" not null", "").replace(" auto_increment", "");
    let (kind, default) = match text.split_once(" default ") {
        Some((kind, default)) => (kind, default.trim_matches('\'').to_owned()),
        None => (text.as_str(), String::new()),
    };
    let mut out = vec![kind.trim().to_owned()];
    if not_null {
        out.push("not null".into());
    }
    // The dump sets a sequence's default elsewhere.
    if !default.is_empty() && !default.starts_with("nextval") {
        out.push(format!("default {default}"));
    }
    if auto {
        out.push("auto_increment".into());
    }
    out.join(" ")
}

/// `table.column` to its type, nullability and default, from the catalog.
async fn columns(db: &Db) -> BTreeMap<String, String> {
    let mut q = db.statement();
    q.push(db.dialect().pick(
        "select m.name as t, c.name as c, c.type || case when c.\"notnull\" then ' NOT NULL' else '' end || coalesce(' DEFAULT ' || c.dflt_value, '') as d \
         from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' and m.name <> 'sqlite_sequence'",
        "select c.relname::text as t, a.attname::text as c, format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' NOT NULL' else '' end || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') as d \
         from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind = 'r' and c.relnamespace = 'public'::regnamespace \
         left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum where a.attnum > 0 and not a.attisdropped",
        "select table_name as t, column_name as c, concat(if(collation_name = 'utf8mb4_bin', 'json', column_type), if(is_nullable = 'NO', ' NOT NULL', ''), ifnull(concat(' DEFAULT ', column_default), ''), ' ', extra) as d \
         from information_schema.columns where table_schema = database()",
    ));
    let mut out = BTreeMap::new();
    for mut row in db.fetch(q).await.unwrap() {
        let name = format!("{}.{}", row.text("t").unwrap(), row.text("c").unwrap());
        out.insert(name, neutral(row.text("d").unwrap().trim_end()));
    }
    out
}

/// `table(columns)` with `unique` where it is, to the index's name.
async fn indexes(db: &Db) -> BTreeMap<String, String> {
    let mut q = db.statement();
    q.push(db.dialect().pick(
        "select m.name as t, i.name as n, i.\"unique\" as u, group_concat(c.name, ', ') as c \
         from sqlite_master m join pragma_index_list(m.name) i join pragma_index_info(i.name) c \
         where m.type = 'table' and i.origin = 'c' group by m.name, i.name, i.\"unique\"",
        "select t.relname::text as t, i.relname::text as n, x.indisunique as u, \
                (select string_agg(a.attname, ', ' order by k.n) from unnest(x.indkey::int2[]) with ordinality k(a, n) \
                 join pg_attribute a on a.attrelid = t.oid and a.attnum = k.a) as c \
         from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid \
         where t.relnamespace = 'public'::regnamespace and not x.indisprimary",
        "select table_name as t, index_name as n, non_unique = 0 as u, group_concat(column_name order by seq_in_index separator ', ') as c \
         from information_schema.statistics where table_schema = database() and index_name <> 'PRIMARY' \
         group by table_name, index_name, non_unique",
    ));
    let mut out = BTreeMap::new();
    for mut row in db.fetch(q).await.unwrap() {
        let table = row.text("t").unwrap();
        let name = row.text("n").unwrap();
        let unique = row.bool("u").unwrap();
        add_index(&mut out, &table, unique, &row.text("c").unwrap(), &name);
    }
    out
}

/// Two indexes over the same columns are told apart by being unique or by their names.
fn add_index(
    out: &mut BTreeMap<String, String>,
    table: &str,
    unique: bool,
    columns: &str,
    name: &str,
) {
    let columns: Vec<_> = columns
        .split(',')
        .map(|c| c.trim().trim_matches(['"', '`']))
        .collect();
    let key = format!(
        "{table}({}){}",
        columns.join(", "),
        if unique { " unique" } else { "" }
    );
    let earlier = out.insert(key.clone(), name.to_owned());
    assert_eq!(earlier, None, "{key} twice");
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(to).map(|(found, _)| found)
}

fn sqlite_indexes(dump: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for line in dump.lines().filter(|line| line.contains(" INDEX ")) {
        let name = between(line, "INDEX \"", "\"").unwrap();
        let table = between(line, " on \"", "\"").unwrap();
        let columns = between(line, "(", ")").unwrap();
        if is_v2(table) {
            add_index(&mut out, table, line.contains("UNIQUE"), columns, name);
        }
    }
    out
}

fn postgres_indexes(dump: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for statement in dump.split(";\n") {
        let (table, name) = if statement.contains("CREATE INDEX ") {
            (
                between(statement, " ON public.", " ").unwrap(),
                between(statement, "INDEX ", " ").unwrap(),
            )
        } else if statement.contains(" UNIQUE (") {
            (
                between(statement, "ONLY public.", "\n").unwrap(),
                between(statement, "CONSTRAINT ", " ").unwrap(),
            )
        } else {
            continue;
        };
        if is_v2(table) {
            let columns = between(statement, "(", ")").unwrap();
            add_index(
                &mut out,
                table,
                statement.contains(" UNIQUE ("),
                columns,
                name,
            );
        }
    }
    out
}

fn mysql_indexes(dump: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut table = "";
    for line in dump.lines() {
        if let Some(name) = between(line, "CREATE TABLE `", "`") {
            table = name;
        } else if line.contains("KEY `") && !line.contains("CONSTRAINT") && is_v2(table) {
            let name = between(line, "KEY `", "`").unwrap();
            let columns = between(line, "(", ")").unwrap();
            add_index(&mut out, table, line.contains("UNIQUE KEY"), columns, name);
        }
    }
    out
}
