//! `plimsoll demo`: an embedded database that holds every situation, served.

use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat, Utc};

use super::{
    CliError, log,
    serve::{Opened, Prepared, listen, repairs},
};
use crate::{
    clock::Clock,
    config::{Judging, Listening, Logging, Options, values},
    db::{Db, Settings},
    demo::{catalogue, write::write},
    durable::{metrics::ground::Lacks, store::schema},
};

#[derive(clap::Args, Debug)]
pub struct DemoArgs {
    /// Folder to keep the database in [default: a temporary one, removed at the end]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,

    /// The moment the situations are laid out around, and the clock stands still at [default: now]
    #[arg(long, env = "PLIMSOLL_CLOCK", value_name = "RFC3339", value_parser = values::moment)]
    clock: Option<DateTime<Utc>>,

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

    #[command(flatten)]
    listening: Listening,
}

pub async fn run(args: DemoArgs) -> Result<(), CliError> {
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
    let place = Place { folder };
    let laid_out = place.laid_out_at()?;
    if let (Some(asked), Some(laid_out)) = (args.clock, laid_out)
        && asked != laid_out
    {
        return Err(CliError::Usage(format!(
            "{} holds situations that are true at {}, not at {}; leave --clock out, or choose \
             another --dir",
            place.database().display(),
            rfc3339(laid_out),
            rfc3339(asked),
        )));
    }
    let moment = laid_out
        .or(args.clock)
        .unwrap_or_else(|| Clock::System.now());
    let options = Options {
        listening: args.listening,
        judging: Judging {
            // A situation is only true at its own moment: ten seconds later "just started" is
            // overdue.
            clock: (!args.live_clock).then_some(moment),
            ..Judging::default()
        },
        logging: Logging {
            log: Some(args.log),
            ..Logging::default()
        },
        ..Options::default()
    };
    let config = options.settle();
    log::start(&config)?;
    let prepared = Prepared::new(&config)?;
    // Before the situations are laid out, which takes a moment.
    let listener = listen(config.listen).await?;
    let url = format!("sqlite:{}", place.database().display());
    if laid_out.is_none() {
        fill(&url, moment).await?;
        place.note(moment)?;
    }
    let db = Db::connect(&config.database(&url)).await?;
    // Made by us, to be tried out: repairs are allowed.
    let repairs = Some(repairs(&config, &url, &db).await?);
    let opened = Opened {
        db,
        lacks: Lacks::default(),
        repairs,
    };
    prepared.serve(&config, listener, opened, true).await
}

/// Where the demo lives: its database, and beside it the moment its situations are true at.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn database(&self) -> PathBuf {
        self.folder.join("plimsoll-demo.sqlite")
    }

    fn clock(&self) -> PathBuf {
        self.folder.join("plimsoll-demo.clock")
    }

    /// None while nothing is laid out. A database without its moment was left half-made.
    fn laid_out_at(&self) -> Result<Option<DateTime<Utc>>, CliError> {
        if let Ok(text) = std::fs::read_to_string(self.clock())
            && let Ok(at) = text.trim().parse()
            && self.database().exists()
        {
            return Ok(Some(at));
        }
        if self.database().exists() {
            return Err(CliError::Failed(format!(
                "{} was not finished, or its moment beside it is gone; remove it, or choose another --dir",
                self.database().display()
            )));
        }
        Ok(None)
    }

    fn note(&self, at: DateTime<Utc>) -> Result<(), CliError> {
        std::fs::write(self.clock(), rfc3339(at)).map_err(|error| {
            CliError::Failed(format!("cannot write {}: {error}", self.clock().display()))
        })
    }
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Lays the situations out.
async fn fill(url: &str, moment: DateTime<Utc>) -> Result<(), CliError> {
    let settings = Settings {
        create: true,
        ..Settings::new(url).writable()
    };
    let db = Db::connect(&settings).await?;
    schema::create(&db).await?;
    let rows = catalogue(moment)
        .flat_map(|situation| situation.rows)
        .collect();
    write(&db, rows, |_| {}).await?;
    db.close().await;
    Ok(())
}
