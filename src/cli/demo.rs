//! `plimsoll demo`: an embedded database that holds every situation, served.

use std::path::PathBuf;

use super::{
    CliError,
    serve::{Opened, Prepared, listen, repairs},
    start_log,
};
use crate::{
    clock::Clock,
    config::{Options, values},
    db::{Db, Settings},
    demo::{catalogue, write::write},
    durable::store::schema,
};

#[derive(clap::Args, Debug)]
pub struct DemoArgs {
    /// Folder to keep the database in [default: a temporary one, removed at the end]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,

    /// Address and port to listen on [default: 127.0.0.1:7420]
    #[arg(long, env = "PLIMSOLL_LISTEN", value_name = "ADDR:PORT", value_parser = values::address)]
    listen: Option<std::net::SocketAddr>,

    /// Allow listening beyond this machine although there is no access control yet
    #[arg(long, env = "PLIMSOLL_INSECURE_LISTEN", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    insecure_listen: Option<bool>,

    /// Path everything is served under [default: /waterline]
    #[arg(long, env = "PLIMSOLL_BASE_PATH", value_name = "PATH")]
    base_path: Option<String>,

    /// The moment the situations are laid out around, and the clock stands still at [default: now]
    #[arg(long, env = "PLIMSOLL_CLOCK", value_name = "RFC3339", value_parser = values::moment)]
    clock: Option<chrono::DateTime<chrono::Utc>>,

    /// Let the clock run: leases expire, dispatches become overdue, stories grow old
    #[arg(long, conflicts_with = "clock")]
    live_clock: bool,

    /// What to log, such as info or plimsoll=debug
    #[arg(
        long,
        env = "PLIMSOLL_LOG",
        value_name = "FILTER",
        default_value = "warn"
    )]
    log: String,
}

pub async fn run(args: DemoArgs) -> Result<(), CliError> {
    let options = Options {
        listen: args.listen,
        insecure_listen: args.insecure_listen,
        base_path: args.base_path,
        // A situation is only true at its own moment: ten seconds later "just started" is
        // overdue.
        clock: if args.live_clock {
            None
        } else {
            args.clock.or_else(|| Some(Clock::System.now()))
        },
        log: Some(args.log),
        ..Options::default()
    };
    let config = options.settle();
    start_log(&config)?;
    let prepared = Prepared::new(&config)?;
    // Before the situations are laid out, which takes a moment.
    let listener = listen(config.listen).await?;

    // Dropped, and with it removed, when serving ends.
    let mut temporary = None;
    let folder = if let Some(dir) = args.dir {
        std::fs::create_dir_all(&dir).map_err(|error| {
            CliError::Failed(format!("cannot make the folder {}: {error}", dir.display()))
        })?;
        dir
    } else {
        let dir = tempfile::Builder::new().prefix("plimsoll-demo-").tempdir();
        let dir = dir.map_err(|error| {
            CliError::Failed(format!("cannot make a temporary folder: {error}"))
        })?;
        temporary.insert(dir).path().to_owned()
    };
    let file = folder.join("plimsoll-demo.sqlite");
    let url = format!("sqlite:{}", file.display());
    fill(&url, config.clock).await?;
    let db = Db::connect(&config.database(&url)).await?;
    // Made by us, to be tried out: repairs are allowed.
    let repairs = Some(repairs(&config, &url, &db).await?);
    let opened = Opened { db, repairs };
    prepared.serve(&config, listener, opened, true).await
}

/// Lays the situations out, once: a folder that holds them already is served as it is.
async fn fill(url: &str, clock: Clock) -> Result<(), CliError> {
    let settings = Settings {
        create: true,
        ..Settings::new(url).writable()
    };
    let db = Db::connect(&settings).await?;
    if schema::create(&db).await? {
        let rows = catalogue(clock.now())
            .into_iter()
            .flat_map(|situation| situation.rows)
            .collect();
        write(&db, rows, |_| {}).await?;
    }
    db.close().await;
    Ok(())
}
