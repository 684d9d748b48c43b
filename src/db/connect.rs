//! Opening a database: one URL, and an explanation when it does not open.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{Db, DbError, Pool, sqlite};

/// How to open the database.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `sqlite:`, `postgres:` or `mysql:`; `mariadb:` is taken as `mysql:`.
    pub url: String,
    /// The host application's table prefix.
    pub prefix: String,
    /// The zone the engine writes naive times in.
    pub zone: crate::zone::Zone,
    /// MySQL's session zone. The engine leaves it at the server's, and so do we: only then
    /// does a TIMESTAMP read back as the text the engine wrote.
    pub mysql_session_zone: Option<String>,
    /// Opens connections that cannot write even by mistake.
    pub read_only: bool,
    /// Creates a missing SQLite file; for the embedded database only.
    pub create: bool,
    /// Speed before safety while a database that we have just made is filled.
    pub bulk: bool,
    pub statement_timeout: Duration,
    pub pool_size: u32,
}

impl Settings {
    /// Read-only, UTC, no prefix, the defaults of `serve`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: String::new(),
            zone: crate::zone::Zone::UTC,
            mysql_session_zone: None,
            read_only: true,
            create: false,
            bulk: false,
            statement_timeout: Duration::from_secs(10),
            pool_size: 12,
        }
    }

    #[must_use]
    pub fn writable(mut self) -> Self {
        self.read_only = false;
        self
    }
}

/// How long a request waits for a connection.
pub(super) const ACQUIRE: Duration = Duration::from_secs(5);

/// A connection that idled for longer is asked whether it is still there: after a restart or a
/// failover of the server all of them are dead, and each would cost a request.
const FRESH: Duration = Duration::from_secs(1);

/// How long a write waits for a row another holds: a worker keeps its task locked while it runs,
/// and may run for long. On PostgreSQL of two that wait for each other the one is ended that first
/// waited for a second: that must not be a worker. MySQL sees it at once, and counts in seconds.
const LOCK_WAIT_POSTGRES: Duration = Duration::from_millis(500);
const LOCK_WAIT_MYSQL: Duration = Duration::from_secs(3);

/// A load uses a few hundred shapes of insert over and over.
pub(super) const BULK_STATEMENTS: usize = 1_000;

impl Db {
    pub async fn connect(settings: &Settings) -> Result<Self, DbError> {
        let prefix_is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !settings.prefix.chars().all(prefix_is_plain) {
            return Err(DbError::Settings {
                message: format!(
                    "table prefix {:?}: only letters, digits and underscores are allowed",
                    settings.prefix
                ),
            });
        }
        let scheme = settings.url.split(':').next().unwrap_or_default();
        let pool = match scheme {
            "sqlite" => Pool::Sqlite(sqlite::open(settings).await?),
            "postgres" | "postgresql" => postgres(settings).await?,
            "mysql" | "mariadb" => mysql(settings).await?,
            _ => {
                return Err(DbError::Settings {
                    message: "the database URL must start with sqlite:, postgres: or mysql:, \
                              for example sqlite:/srv/app/database.sqlite or \
                              postgres://user:password@host/database"
                        .into(),
                });
            }
        };
        Ok(Self {
            pool,
            prefix: settings.prefix.as_str().into(),
            zone: settings.zone,
            stand_ins: Arc::default(),
            read_only: settings.read_only,
            statement_timeout: settings.statement_timeout,
            pool_size: settings.pool_size,
            lent: Arc::default(),
        })
    }
}

fn bad_url(url: &str, error: &sqlx::Error) -> DbError {
    DbError::Settings {
        message: format!(
            "the database URL {} cannot be read: {error}. Write it as sqlite:PATH, \
             postgres://user:password@host/name or mysql://…, with : / ? # @ and % in a password \
             percent-encoded (%3A %2F %3F %23 %40 %25)",
            masked(url)
        ),
    }
}

/// The URL without its secrets, fit for a message or a log. Works on the text, because a URL that
/// cannot be parsed has a password too; when in doubt it hides more.
pub fn masked(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if scheme != "sqlite" => (scheme, rest),
        Some(_) => return url.to_owned(),
        None if url.starts_with("sqlite:") => return url.to_owned(),
        None => return "***".to_owned(),
    };
    let (place, query) = match rest.split_once('?') {
        // A question mark inside the password comes before the host.
        Some((place, query)) if place.contains('@') || !query.contains('@') => (place, Some(query)),
        _ => (rest, None),
    };
    let place = match place.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@{host}"),
            None => place.to_owned(),
        },
        None => place.to_owned(),
    };
    let Some(query) = query else {
        return format!("{scheme}://{place}");
    };
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["pass", "pwd", "secret", "token"]
            .iter()
            .any(|word| name.contains(word))
    };
    let parameters: Vec<_> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}=***"),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{scheme}://{place}?{}", parameters.join("&"))
}

/// The database's own words, without the driver's frame around them.
fn short(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(db) => db.message().to_owned(),
        sqlx::Error::Io(io) => io.to_string(),
        sqlx::Error::PoolTimedOut => "no answer within 5 s".into(),
        other => other.to_string(),
    }
}

async fn postgres(settings: &Settings) -> Result<Pool, DbError> {
    let options = PgConnectOptions::from_str(&settings.url)
        .map_err(|error| bad_url(&settings.url, &error))?;
    let target = format!(
        "PostgreSQL at {}:{}",
        options.get_host(),
        options.get_port()
    );
    let timeout = settings.statement_timeout.as_millis().to_string();
    let options = options
        .application_name("plimsoll")
        .options([
            ("statement_timeout", timeout.as_str()),
            (
                "default_transaction_read_only",
                if settings.read_only { "on" } else { "off" },
            ),
            // A just-in-time compiled plan costs more than any page here takes.
            ("jit", "off"),
            // The values decide which index is walked: a plan for any value may scan.
            ("plan_cache_mode", "force_custom_plan"),
        ])
        .disable_statement_logging();
    let options = if settings.bulk {
        options
            .options([("synchronous_commit", "off")])
            .statement_cache_capacity(BULK_STATEMENTS)
    } else if settings.read_only {
        options
    } else {
        options.options([(
            "lock_timeout",
            format!("{}ms", LOCK_WAIT_POSTGRES.as_millis()),
        )])
    };
    try_once(&options)
        .await
        .map_err(|error| server_error(target.clone(), &error))?;
    let pool = PgPoolOptions::new()
        .max_connections(settings.pool_size)
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move { Ok(meta.idle_for < FRESH || connection.ping().await.is_ok()) })
        })
        .connect_with(options)
        .await
        .map_err(|error| server_error(target, &error))?;
    Ok(Pool::Postgres(pool))
}

async fn mysql(settings: &Settings) -> Result<Pool, DbError> {
    let url = settings.url.replacen("mariadb:", "mysql:", 1);
    let options = MySqlConnectOptions::from_str(&url).map_err(|error| bad_url(&url, &error))?;
    let target = format!("MySQL at {}:{}", options.get_host(), options.get_port());
    let options = options
        .timezone(settings.mysql_session_zone.clone())
        .disable_statement_logging();
    let options = if settings.bulk {
        options.statement_cache_capacity(BULK_STATEMENTS)
    } else {
        options
    };
    let (bulk, read_only) = (settings.bulk, settings.read_only);
    try_once(&options)
        .await
        .map_err(|error| server_error(target.clone(), &error))?;
    let timeout = settings.statement_timeout;
    let access = if settings.read_only { "only" } else { "write" };
    let summaries = format!("{}workflow_run_summaries", settings.prefix);
    let pool = MySqlPoolOptions::new()
        .max_connections(settings.pool_size)
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move { Ok(meta.idle_for < FRESH || connection.ping().await.is_ok()) })
        })
        .after_connect(move |connection, _| {
            let summaries = summaries.clone();
            Box::pin(async move {
                let version: String = sqlx::query("select version()")
                    .fetch_one(&mut *connection)
                    .await?
                    .try_get(0)?;
                // Joining two indexes, or filtering one by another, loses the order a page is
                // read in: what looks cheap for all rows is dear for the first fifty.
                let (limit, plans) = if version.contains("MariaDB") {
                    (
                        format!("set session max_statement_time = {}", timeout.as_secs_f64()),
                        "set session optimizer_switch = 'index_merge=off,rowid_filter=off'",
                    )
                } else {
                    (
                        format!("set session max_execution_time = {}", timeout.as_millis()),
                        "set session optimizer_switch = 'index_merge=off'",
                    )
                };
                connection.execute(plans).await?;
                connection.execute(AssertSqlSafe(limit)).await?;
                connection
                    .execute("set session transaction isolation level repeatable read")
                    .await?;
                connection
                    .execute(AssertSqlSafe(format!(
                        "set session transaction read {access}"
                    )))
                    .await?;
                if bulk {
                    connection
                        .execute("set session unique_checks = 0, foreign_key_checks = 0")
                        .await?;
                }
                if !read_only {
                    let patience = LOCK_WAIT_MYSQL.as_secs();
                    connection
                        .execute(AssertSqlSafe(format!(
                            "set session innodb_lock_wait_timeout = {patience}"
                        )))
                        .await?;
                }
                compare_as_stored(connection, &summaries).await?;
                Ok(())
            })
        })
        .connect_with(options)
        .await
        .map_err(|error| server_error(target, &error))?;
    Ok(Pool::MySql(pool))
}

/// Opens one connection and closes it: the pool would go on trying a server that refuses, and
/// forget why it did.
async fn try_once<O>(options: &O) -> Result<(), sqlx::Error>
where
    O: sqlx::ConnectOptions,
    O::Connection: Sized,
{
    let connection = tokio::time::timeout(ACQUIRE, options.connect())
        .await
        .map_err(|_| sqlx::Error::PoolTimedOut)??;
    connection.close().await
}

/// Gives what is bound the collation of what it is compared with. With another one, MariaDB
/// takes an equality for no constant: it leaves the index that serves the list, and sorts.
async fn compare_as_stored(
    connection: &mut sqlx::MySqlConnection,
    table: &str,
) -> Result<(), sqlx::Error> {
    let stored: Option<String> = sqlx::query(
        "select collation_name from information_schema.columns \
         where table_schema = database() and table_name = ? and column_name = 'namespace'",
    )
    .bind(table)
    .fetch_optional(&mut *connection)
    .await?
    .and_then(|row| row.try_get(0).ok());
    // Another character set could not carry every text that is bound.
    let plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if let Some(name) = stored.filter(|name| name.starts_with("utf8mb4_") && plain(name)) {
        connection
            .execute(AssertSqlSafe(format!("set collation_connection = {name}")))
            .await?;
    }
    Ok(())
}

fn server_error(target: String, error: &sqlx::Error) -> DbError {
    let code = error
        .as_database_error()
        .and_then(|db| db.code().map(std::borrow::Cow::into_owned));
    let advice = match (code.as_deref(), error) {
        (Some("28P01" | "28000"), _) => "Check user name and password in --database-url.",
        (Some("3D000" | "42000"), _) => "Check the database name in --database-url.",
        (_, sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut) => {
            "Check that the server is running and that host and port in --database-url are right."
        }
        (_, sqlx::Error::Tls(_)) => {
            "Check the TLS settings (PostgreSQL: sslmode, MySQL: ssl-mode) in --database-url."
        }
        _ => "Check --database-url.",
    };
    DbError::Connect {
        target,
        cause: short(error),
        advice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_url_shows_a_secret() {
        for (url, shown) in [
            ("postgres://app:s3cret@db/app", "postgres://app:***@db/app"),
            (
                "mysql://app:s3cret@db:3307/app?ssl-mode=required",
                "mysql://app:***@db:3307/app?ssl-mode=required",
            ),
            ("postgres://app@db/app", "postgres://app@db/app"),
            ("postgres://db:5432/app", "postgres://db:5432/app"),
            (
                "postgres://db/app?user=a&password=s3cret",
                "postgres://db/app?user=a&password=***",
            ),
            (
                "postgres://u:s3cret@h:port/db",
                "postgres://u:***@h:port/db",
            ),
            ("postgres://u:s3/c@r#et@h/db", "postgres://u:***@h/db"),
            ("postgres://u:s3?cret@h/db", "postgres://u:***@h/db"),
            ("sqlite:/srv/a:b@c.sqlite", "sqlite:/srv/a:b@c.sqlite"),
            ("sqlite:///srv/app.sqlite", "sqlite:///srv/app.sqlite"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
