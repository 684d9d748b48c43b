//! `plimsoll export`: one run's history as a sealed bundle.

use std::{
    io::{IsTerminal as _, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use super::{CliError, log, out::remark, serve, settled};
use crate::{
    config::{Database, Judging, Logging, Options, Sealing},
    db::Db,
    durable::{
        export::stream::{self, Done, ExportError},
        projection::notices,
        store::head,
    },
};

#[derive(clap::Args, Debug)]
pub struct ExportArgs {
    #[command(flatten)]
    which: Which,

    /// Where to write the bundle [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// TOML file with settings, such as the redaction policy
    #[arg(long, env = "PLIMSOLL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    sealing: Sealing,
    #[command(flatten)]
    logging: Logging,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct Which {
    /// The run to export
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// The instance whose current run to export
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
}

pub async fn run(args: ExportArgs) -> Result<(), CliError> {
    let options = Options {
        database: args.database,
        judging: args.judging,
        sealing: args.sealing,
        logging: args.logging,
        ..Options::default()
    };
    let config = settled(args.config.as_deref(), options)?;
    log::start(&config)?;
    let Some(url) = &config.database_url else {
        return Err(CliError::Usage(
            "which database? Give --database-url or set PLIMSOLL_DATABASE_URL".into(),
        ));
    };
    let key = config.signing_key().map_err(CliError::Usage)?;
    let engine = serve::engine(&config)?;
    let db = serve::checked(Db::connect(&config.database(url)).await?).await?;
    let options = stream::Options {
        now: config.clock.now(),
        config: &engine,
        policy: config.redaction.as_ref(),
        key: key.as_ref(),
        batch: stream::Options::BATCH,
    };
    let outcome = export(
        &db,
        args.which.run.as_deref(),
        args.which.instance.as_deref(),
        options,
        args.output.as_deref(),
    )
    .await;
    db.close().await;
    let done = outcome?;
    for notice in notices::shown(&done.notices) {
        remark(format_args!(
            "{} of {} {}",
            notice.place, notice.row, notice.problem
        ));
    }
    remark(format_args!(
        "{} events, {} bytes, sha256 {}",
        done.events, done.bytes, done.checksum
    ));
    Ok(())
}

async fn export(
    db: &Db,
    run: Option<&str>,
    instance: Option<&str>,
    options: stream::Options<'_>,
    output: Option<&Path>,
) -> Result<Done, CliError> {
    let mut snapshot = db.unhurried().await?;
    let run_id = match (run, instance) {
        (Some(run), _) => run.to_owned(),
        (None, instance) => {
            let instance = instance.unwrap_or_default();
            head::current_run_id(&mut snapshot, instance)
                .await?
                .ok_or_else(|| CliError::Failed(format!("there is no run of {instance}")))?
        }
    };
    let bar = spinner();
    let (sink, mut pieces) = mpsc::channel::<Vec<u8>>(4);
    let mut target = Target::open(output).map_err(|error| unwritable(output, &error))?;
    let written = bar.clone();
    // A disk takes its time, and the export need not wait for it.
    let drain = tokio::task::spawn_blocking(move || {
        while let Some(piece) = pieces.blocking_recv() {
            written.inc(piece.len() as u64);
            target.write_all(&piece)?;
        }
        Ok::<_, std::io::Error>(target)
    });
    let done = stream::write(&mut snapshot, &run_id, options, sink).await;
    let drained = drain.await.map_err(std::io::Error::other).flatten();
    bar.finish_and_clear();
    snapshot.end().await;
    let target = drained.map_err(|error| unwritable(output, &error))?;
    let done = done.map_err(|error| match error {
        ExportError::Db(error) => error.into(),
        other => CliError::Failed(other.to_string()),
    })?;
    target.keep().map_err(|error| unwritable(output, &error))?;
    Ok(done)
}

fn unwritable(output: Option<&Path>, error: &std::io::Error) -> CliError {
    let what = output.map_or_else(
        || "standard output".into(),
        |path| path.display().to_string(),
    );
    CliError::Failed(format!("cannot write {what}: {error}"))
}

/// Standard output, or a file that gets its name when it is whole.
enum Target {
    Stdout(std::io::Stdout),
    File(std::io::BufWriter<tempfile::NamedTempFile>, PathBuf),
}

impl Target {
    fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let Some(path) = path else {
            return Ok(Self::Stdout(std::io::stdout()));
        };
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::Builder::new()
            .prefix(".plimsoll-export-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Self::File(std::io::BufWriter::new(file), path.to_owned()))
    }

    fn write_all(&mut self, piece: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Stdout(out) => out.write_all(piece),
            Self::File(out, _) => out.write_all(piece),
        }
    }

    fn keep(self) -> std::io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::File(out, path) => {
                let file = out
                    .into_inner()
                    .map_err(std::io::IntoInnerError::into_error)?;
                file.as_file().sync_all()?;
                file.persist(path).map(drop).map_err(|error| error.error)
            }
        }
    }
}

fn spinner() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {bytes} written, {bytes_per_sec}")
        .expect("a template that is tested by every run on a terminal");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
