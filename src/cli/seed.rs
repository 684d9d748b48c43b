//! `plimsoll seed`: fills a database with made-up runs, to see how everything holds up under a
//! load one has not got yet.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use super::{CliError, out::say};
use crate::{
    clock::Clock,
    config::values,
    db::{Db, Settings},
    demo::seed::{
        Plan, Projections, SeedError, Shape, load, refuse_foreign_runs, refuse_repetition,
    },
    durable::store::schema,
};

/// Write made-up runs into a database
#[derive(Args, Clone, Debug)]
pub struct SeedArgs {
    /// Where to write: sqlite:PATH, postgres://… or mysql://…
    #[arg(
        long,
        env = "PLIMSOLL_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub database_url: String,
    /// Prefix of the engine's table names [default: none]
    #[arg(
        long,
        env = "PLIMSOLL_TABLE_PREFIX",
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    pub table_prefix: String,
    /// How many runs
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// How many history events each has, on average
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..))]
    pub events_per_run: u32,
    /// What the runs are like
    #[arg(long, value_enum, value_name = "SHAPE", default_value = "busy")]
    pub shape: ShapeArg,
    /// How long the payload of an event of a long run is, on average
    #[arg(long, value_name = "BYTES", default_value_t = 1_800)]
    pub payload_bytes: usize,
    /// The same seed and clock give the same rows
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// Make the file and the engine's tables where there are none
    #[arg(long)]
    pub create: bool,
    /// The moment the newest runs end at [default: now]
    #[arg(long, value_name = "RFC3339", value_parser = values::moment)]
    pub clock: Option<DateTime<Utc>>,
    /// Which projections to write besides history and rows
    #[arg(long, value_enum, value_name = "WHICH", default_value = "all")]
    pub projections: ProjectionsArg,
    /// Write even if the database has runs that `seed` did not write
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ShapeArg {
    /// A busy installation: many kinds of runs, most of them done
    Busy,
    /// Activities one after the other, many tried twice, with all the engine writes about them
    Long,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProjectionsArg {
    /// As the engine does: summaries, waits, timeline, timers, lineage
    All,
    /// Only what lists are made of: two thirds of the rows, little more than half the size
    Summaries,
}

pub async fn run(args: SeedArgs) -> Result<(), CliError> {
    let (db, fresh) = open(&args).await?;
    if !args.yes {
        refuse_foreign_runs(&db).await?;
    }
    let plan = Plan {
        runs: args.runs,
        events_per_run: args.events_per_run,
        shape: match args.shape {
            ShapeArg::Busy => Shape::Busy,
            ShapeArg::Long => Shape::Long {
                payload_bytes: args.payload_bytes,
            },
        },
        seed: args.seed,
        clock: args.clock.map_or(Clock::System, Clock::Frozen).now(),
        projections: match args.projections {
            ProjectionsArg::All => Projections::All,
            ProjectionsArg::Summaries => Projections::Summaries,
        },
    };
    refuse_repetition(&db, &plan).await?;
    let bar = progress_bar(args.runs);
    let loaded = load(&db, plan, |runs| bar.set_position(runs)).await;
    bar.finish_and_clear();
    say(format_args!("{}", loaded?))?;
    if fresh {
        let began = Instant::now();
        schema::create_indexes(&db).await?;
        say(format_args!(
            "indexes in {:.1} s",
            began.elapsed().as_secs_f64()
        ))?;
    }
    db.close().await;
    Ok(())
}

/// Opens the database, with its tables made where that was asked for and there were none; says
/// whether they were, because they then still lack their indexes.
async fn open(args: &SeedArgs) -> Result<(Db, bool), SeedError> {
    let mut settings = Settings::new(&args.database_url).writable();
    settings.prefix.clone_from(&args.table_prefix);
    settings.create = args.create;
    settings.pool_size = 1;
    // A batch may have to wait for a checkpoint.
    settings.statement_timeout = Duration::from_mins(10);
    let db = Db::connect(&settings).await?;
    if args.create && schema::create_tables(&db).await? {
        db.close().await;
        settings.bulk = true;
        return Ok((Db::connect(&settings).await?, true));
    }
    let report = schema::check(&db).await?;
    if !report.missing_tables.is_empty() || !report.missing_columns.is_empty() {
        let hint = if report.is_fatal() {
            " Say --create to make them."
        } else {
            ""
        };
        return Err(SeedError::Lacking(format!("{report}{hint}")));
    }
    Ok((db, false))
}

fn progress_bar(runs: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} runs, {eta} left")
            .expect("a template that is tested by every run on a terminal");
    ProgressBar::new(runs).with_style(style)
}
