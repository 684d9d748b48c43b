//! `plimsoll serve`: the dashboard over the engine's database.

use std::{net::SocketAddr, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;
use tokio::net::TcpListener;

use super::{CliError, out::say};
use crate::{
    clock::Clock,
    config::{Config, RepairMode},
    db::{Db, Exclusive},
    durable::{
        engine_config::EngineConfig,
        metrics::ground::Lacks,
        repair::{
            Judged, clocks,
            pass::{self, Asked},
            rights,
        },
        store::{runs::counts::CountCache, schema},
    },
    web::{
        collector,
        connections::{self, Patience},
        origin::{Forms, Hosts},
        routes,
        state::{App, BasePath, ExportSettings, Repairs, Settings},
    },
};

pub async fn run(config: &Config, prepared: Prepared) -> Result<(), CliError> {
    let Some(url) = &config.database_url else {
        return Err(CliError::Usage(
            "which database? Give --database-url or set PLIMSOLL_DATABASE_URL, \
             for example sqlite:/srv/app/database.sqlite; to look around without one, run plimsoll demo"
                .into(),
        ));
    };
    let db = Db::connect(&config.database(url)).await?;
    let (db, lacks) = looked_over(db).await?;
    let repairs = if config.allow_repair {
        Some(repairs(config, url, &db).await?)
    } else {
        None
    };
    let listener = listen(config.listen).await?;
    let opened = Opened { db, lacks, repairs };
    prepared.serve(config, listener, opened, false).await
}

/// The database, opened to be read and, where that is allowed, to be repaired.
pub struct Opened {
    pub db: Db,
    pub lacks: Lacks,
    pub repairs: Option<Repairs>,
}

/// Where the clock stands still, workers go on: what looks like an expired lease need not be one.
pub fn refuse_frozen_clock(config: &Config) -> Result<(), CliError> {
    match config.clock {
        Clock::System => Ok(()),
        Clock::Frozen(_) => Err(CliError::Usage(
            "--allow-repair judges leases by the clock, which --clock stops: leave out one of the two"
                .into(),
        )),
    }
}

fn refuse_unallowed_loop(config: &Config) -> Result<(), CliError> {
    if config.allow_repair {
        return Ok(());
    }
    Err(CliError::Usage(
        "--repair-loop writes to the engine's database: say --allow-repair too".into(),
    ))
}

/// Who wants only nudges must not find rows that a pass has put back.
pub fn refuse_nudging_pass(config: &Config) -> Result<(), CliError> {
    match config.repair_mode {
        RepairMode::Direct => Ok(()),
        RepairMode::Nudge => Err(CliError::Usage(
            "a repair pass puts rows back itself, which --repair-mode nudge leaves to the engine: \
             leave out one of the two"
                .into(),
        )),
    }
}

/// Opens the connections that may write.
pub async fn repairs(config: &Config, url: &str, read: &Db) -> Result<Repairs, CliError> {
    if !read.is_whole() {
        return Err(CliError::Failed(
            "--allow-repair: the engine's tables lack something a repair writes, so this engine is older or \
             newer than Plimsoll knows. Serve without --allow-repair, or update one of the two"
                .into(),
        ));
    }
    if let Some(ahead) = clocks::apart(read).await? {
        return Err(CliError::Failed(format!(
            "--allow-repair judges leases by the clock, and {}: set both by the same time server",
            clocks::words(ahead),
        )));
    }
    let db = Db::connect(&config.database_for_repair(url)).await?;
    let lacking = rights::lacking(&db).await?;
    if !lacking.is_empty() {
        return Err(CliError::Failed(format!(
            "--allow-repair: the database account may not insert into and update {}. Grant it that, as the \
             README shows, or serve without --allow-repair",
            lacking.join(", ")
        )));
    }
    Ok(Repairs {
        db,
        mode: config.repair_mode.into(),
    })
}

/// Everything that can be wrong before the database is asked.
pub struct Prepared {
    base: BasePath,
    engine: EngineConfig,
    export: ExportSettings,
    forms: Forms,
}

impl Prepared {
    pub fn new(config: &Config) -> Result<Self, CliError> {
        let base = config
            .base_path
            .parse::<BasePath>()
            .map_err(|error| CliError::Usage(error.to_string()))?;
        refuse_open_door(config)?;
        if config.allow_repair {
            refuse_frozen_clock(config)?;
        }
        if config.repair_loop {
            refuse_unallowed_loop(config)?;
            refuse_nudging_pass(config)?;
        }
        let engine = engine(config)?;
        let export = ExportSettings {
            policy: config.redaction.clone(),
            key: config.signing_key().map_err(CliError::Usage)?,
        };
        let secret = config.form_secret().map_err(CliError::Usage)?;
        Ok(Self {
            base,
            engine,
            export,
            forms: secret.map_or_else(Forms::default, |secret| Forms::shared(&secret)),
        })
    }

    /// The base path as it is understood, in the spelling of the setting.
    pub fn base_path(&self) -> String {
        match self.base.as_str() {
            "" => "/".to_owned(),
            path => path.to_owned(),
        }
    }

    /// Serves until asked to stop; prints the address on standard output.
    pub async fn serve(
        self,
        config: &Config,
        listener: TcpListener,
        opened: Opened,
        demo: bool,
    ) -> Result<(), CliError> {
        let Opened { db, lacks, repairs } = opened;
        let address = listener
            .local_addr()
            .map_err(|error| CliError::Failed(error.to_string()))?;
        let start = format!("http://{address}{}", self.base.path("/"));
        let app = App::new(Settings {
            base: self.base,
            engine: self.engine,
            export: self.export,
            forms: self.forms,
            hosts: Hosts::new(config.public_host.clone()),
            clock: config.clock,
            zone: config.display_zone,
            repairs: repairs.clone(),
            demo,
            db: Some(db.clone()),
            counts: CountCache::default(),
            gathering: collector::Options {
                interval: config.metrics_interval,
                namespace: config.metrics_namespace.clone(),
                lacks,
                ..collector::Options::default()
            },
            ..Settings::default()
        });
        if let Some(collector) = &app.collector {
            collector.start();
        }
        let looping = repairs
            .clone()
            .filter(|_| config.repair_loop)
            .map(|repairs| tokio::spawn(repair_loop(repairs.db, config.clock, app.clone())));
        say(format_args!(
            "Plimsoll{}: {start}",
            if demo { " demo" } else { "" }
        ))?;
        tracing::info!(%address, database = db.dialect().name(), repairs = repairs.is_some(), "serving");
        until_stopped(app, listener).await;
        // A pass that is under way ends with the transaction it is in: all of it or nothing.
        if let Some(looping) = looping {
            looping.abort();
        }
        db.close().await;
        if let Some(repairs) = repairs {
            repairs.db.close().await;
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Repairs on the engine's own interval, of several copies only one.
async fn repair_loop(db: Db, clock: Clock, app: App) {
    let seconds = app.engine.int("task_repair.loop_throttle_seconds");
    let mut beat = tokio::time::interval(Duration::from_secs(seconds.unsigned_abs()));
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let judged = Judged {
        clock,
        config: &app.engine,
    };
    let mut right: Option<Exclusive> = None;
    loop {
        beat.tick().await;
        let held = match &mut right {
            Some(right) => right.is_held().await,
            None => false,
        };
        if !held {
            right = match db.exclusive(pass::LOCK).await {
                Ok(right) => right,
                Err(error) => {
                    tracing::warn!(%error, "the repair loop cannot ask for its turn");
                    None
                }
            };
        }
        if right.is_none() {
            continue;
        }
        match clocks::apart(&db).await {
            Ok(None) => {}
            Ok(Some(ahead)) => {
                tracing::warn!("no repair pass: {}", clocks::words(ahead));
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "the repair loop cannot ask for the time");
                continue;
            }
        }
        let asked = Asked::default();
        let pass = AssertUnwindSafe(pass::pass(&db, judged, &asked)).catch_unwind();
        let Ok(passed) = pass.await else {
            tracing::error!("a repair pass broke off; this is a fault in Plimsoll");
            continue;
        };
        match passed {
            Ok(report)
                if report.dispatched_tasks > 0
                    || report.failed()
                    || report.plimsoll.not_looked_at > 0 =>
            {
                tracing::info!(
                    repaired_existing_tasks = report.repaired_existing_tasks,
                    repaired_missing_tasks = report.repaired_missing_tasks,
                    deadline_expired_tasks_created = report.deadline_expired_tasks_created,
                    failed = report.failed(),
                    not_looked_at = report.plimsoll.not_looked_at,
                    "repair pass"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a repair pass failed"),
        }
    }
}

/// Answers until the process is asked to stop.
pub async fn until_stopped(app: App, listener: TcpListener) {
    let router = routes::router(app);
    let stop = async {
        asked_to_stop().await;
        // Whoever asks twice does not want to wait for what is under way.
        tokio::spawn(async {
            asked_to_stop().await;
            std::process::exit(130);
        });
    };
    connections::answer(listener, router, Patience::default(), stop).await;
}

/// The engine's settings in force, with a word on each that cannot be.
pub fn engine(config: &Config) -> Result<EngineConfig, CliError> {
    let engine = EngineConfig::load(config.engine_config.as_deref()).map_err(CliError::Usage)?;
    for (path, value, source) in engine.all() {
        tracing::debug!(path, %value, ?source, "engine setting in force");
    }
    for found in engine.nonsense() {
        tracing::warn!(
            setting = found.path,
            given = %found.given,
            used = %found.used,
            "an engine setting cannot be taken as it stands"
        );
    }
    Ok(engine)
}

/// There is no access control yet: what listens beyond this machine shows everything to anyone.
fn refuse_open_door(config: &Config) -> Result<(), CliError> {
    if config.listen.ip().is_loopback() || config.insecure_listen {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "refusing to listen on {}: Plimsoll has no access control yet, so anyone who reaches it sees every \
         run and payload. Listen on 127.0.0.1 behind a proxy that asks who is there, or accept it with \
         --insecure-listen",
        config.listen
    )))
}

pub async fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|error| {
        let what_to_do = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "Something listens there already; stop it or choose another with --listen."
            }
            std::io::ErrorKind::PermissionDenied => {
                "Ports below 1024 need privileges; choose another with --listen."
            }
            _ => "Check --listen.",
        };
        CliError::Failed(format!("cannot listen on {address}: {error}. {what_to_do}"))
    })
}

/// Refuses what is no engine database; goes on, with a word, where the engine is older or newer.
pub async fn checked(db: Db) -> Result<Db, CliError> {
    Ok(looked_over(db).await?.0)
}

async fn looked_over(db: Db) -> Result<(Db, Lacks), CliError> {
    let report = schema::check(&db).await?;
    if report.is_fatal() {
        return Err(CliError::Failed(report.sentences().join(" ")));
    }
    for sentence in report.sentences() {
        tracing::warn!("{sentence}");
    }
    let stand_ins = schema::stand_ins(&report, db.dialect());
    Ok((db.with_stand_ins(stand_ins), Lacks::of(&report)))
}

/// Resolves on Ctrl-C, SIGTERM, or SIGHUP: a terminal that is closed.
async fn asked_to_stop() {
    let interrupt = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    #[cfg(unix)]
    let (terminate, hang_up) = {
        use tokio::signal::unix::SignalKind;
        (
            signalled(Some(SignalKind::terminate())),
            signalled((!outlives_its_terminal()).then(SignalKind::hangup)),
        )
    };
    #[cfg(not(unix))]
    let (terminate, hang_up) = (std::future::pending::<()>(), std::future::pending::<()>());
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
        () = hang_up => {}
    }
}

/// Resolves when the signal comes; never, without one.
#[cfg(unix)]
async fn signalled(kind: Option<tokio::signal::unix::SignalKind>) {
    match kind.map(tokio::signal::unix::signal) {
        Some(Ok(mut signal)) => {
            signal.recv().await;
        }
        Some(Err(_)) | None => std::future::pending().await,
    }
}

/// Whether we were started with SIGHUP ignored, as `nohup` does. Listening to it would undo that.
#[cfg(unix)]
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}
