//! An account that may not write is found out when the server starts, not at the first repair.

use plimsoll::{
    db::{Db, Dialect, Settings},
    durable::repair::rights::lacking,
};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, PgConnection};

use crate::rig::{self, TestDb};

/// The same address for another account.
fn as_user(db: &TestDb, name: &str) -> Settings {
    let mut url = url::Url::parse(&db.url).unwrap();
    url.set_username(name).unwrap();
    url.set_password(Some("secret")).unwrap();
    Settings::new(url.as_str()).writable()
}

async fn found(db: &TestDb, name: &str) -> Vec<&'static str> {
    let reader = Db::connect(&as_user(db, name)).await.unwrap();
    let lacking = lacking(&reader).await.unwrap();
    reader.close().await;
    lacking
}

#[tokio::test]
async fn postgres() {
    rig::on(Dialect::Postgres, async |db: TestDb| {
        let mut owner = PgConnection::connect(&db.url).await.unwrap();
        let name = format!("reader_{}", std::process::id());
        for statement in [
            format!("create role {name} login password 'secret'"),
            format!("grant select on all tables in schema public to {name}"),
        ] {
            owner.execute(AssertSqlSafe(statement)).await.unwrap();
        }
        assert_eq!(found(&db, &name).await.len(), 9);
        let some = format!("grant insert, update on workflow_tasks to {name}");
        owner.execute(AssertSqlSafe(some)).await.unwrap();
        let some = format!("grant insert on workflow_runs to {name}");
        owner.execute(AssertSqlSafe(some)).await.unwrap();
        let left = found(&db, &name).await;
        assert_eq!((left.len(), left[0]), (8, "workflow_runs"));
        assert!(lacking(&db.writable).await.unwrap().is_empty());
        for statement in [format!("drop owned by {name}"), format!("drop role {name}")] {
            owner.execute(AssertSqlSafe(statement)).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn mysql() {
    rig::on(Dialect::MySql, async |db: TestDb| {
        let mut owner = MySqlConnection::connect(&db.url).await.unwrap();
        let name = format!("reader_{}", std::process::id());
        let url = url::Url::parse(&db.url).unwrap();
        let schema = url.path().trim_start_matches('/').to_owned();
        for statement in [
            format!("create user '{name}'@'%' identified by 'secret'"),
            format!("grant select on `{schema}`.* to '{name}'@'%'"),
        ] {
            owner.execute(AssertSqlSafe(statement)).await.unwrap();
        }
        assert_eq!(found(&db, &name).await.len(), 9);
        let some = format!("grant insert, update on `{schema}`.workflow_tasks to '{name}'@'%'");
        owner.execute(AssertSqlSafe(some)).await.unwrap();
        let left = found(&db, &name).await;
        assert_eq!((left.len(), left[0]), (8, "workflow_runs"));
        assert!(lacking(&db.writable).await.unwrap().is_empty());
        let gone = format!("drop user '{name}'@'%'");
        owner.execute(AssertSqlSafe(gone)).await.unwrap();
    })
    .await;
}
