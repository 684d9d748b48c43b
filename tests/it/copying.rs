//! Corpus files reach the other databases whole.

use plimsoll::durable::store::schema;

use crate::rig::{self, TestDb, on_every_database};

on_every_database! {
    async fn a_file_is_copied_row_by_row(db: TestDb) {
        // The source is made here, so that this runs without the corpus too.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("source.sqlite");
        let mut settings = plimsoll::db::Settings::new(format!("sqlite:{}", file.display())).writable();
        settings.create = true;
        let source = plimsoll::db::Db::connect(&settings).await.unwrap();
        schema::create(&source).await.unwrap();
        let mut tx = source.write().await.unwrap();
        tx.script(
            "insert into {workflow_runs} (id, workflow_instance_id, run_number, workflow_class, workflow_type, status, started_at, closed_at)
                 values ('R', 'i', 1, 'c', 't', 'completed', '2026-04-05 10:11:12.123456', '2026-04-05 10:11:13');
             insert into {workflow_memos} (workflow_run_id, workflow_instance_id, \"key\", value, upserted_at_sequence, inherited_from_parent)
                 values ('R', 'i', 'k', '[\"caf\\u00e9\"]', 1, 1);",
        )
        .await
        .unwrap();
        tx.commit().await.unwrap();
        source.close().await;

        assert_eq!(rig::copy_sqlite(&file, &db).await, 2);
        let mut q = db.read_only.statement();
        q.push("select r.started_at, r.closed_at, m.\"key\", m.value, m.inherited_from_parent \
                from {workflow_memos} m join {workflow_runs} r on r.id = m.workflow_run_id");
        let mut row = db.read_only.fetch(q).await.unwrap().remove(0);
        let time = |text: &str| Some(text.parse().unwrap());
        assert_eq!(row.opt_time("started_at").unwrap(), time("2026-04-05T10:11:12.123456Z"));
        assert_eq!(row.opt_time("closed_at").unwrap(), time("2026-04-05T10:11:13Z"));
        assert_eq!(row.text("key").unwrap(), "k");
        assert_eq!(row.text("value").unwrap(), "[\"caf\\u00e9\"]");
        assert!(row.bool("inherited_from_parent").unwrap());
    }
}
