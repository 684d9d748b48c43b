//! `plimsoll repair-pass`: one pass over all that could be repaired without an operator.

use std::path::PathBuf;

use super::{CliError, log, out::say, serve, settled};
use crate::{
    config::{Database, Judging, Logging, Options, Repairing},
    db::Db,
    durable::repair::{
        Judged,
        pass::{self, Asked, Report},
    },
};

#[derive(clap::Args, Debug)]
pub struct RepairPassArgs {
    /// Only this run; may be given several times
    #[arg(long, value_name = "ID")]
    run_id: Vec<String>,

    /// Only runs of this instance
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,

    /// Do nothing while another pass of Plimsoll is under way
    #[arg(long)]
    respect_throttle: bool,

    /// Say what would be repaired, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Report as one line of JSON, with the engine's keys and what it has none for in `plimsoll`
    #[arg(long)]
    json: bool,

    /// TOML file with settings
    #[arg(long, env = "PLIMSOLL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    repairing: Repairing,
    #[command(flatten)]
    logging: Logging,
}

pub async fn run(args: RepairPassArgs) -> Result<(), CliError> {
    let options = Options {
        database: args.database,
        judging: args.judging,
        repairing: args.repairing,
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
    if !args.dry_run && !config.allow_repair {
        return Err(CliError::Usage(
            "a repair pass writes to the engine's database: say --allow-repair, or look first with --dry-run"
                .into(),
        ));
    }
    if !args.dry_run {
        serve::refuse_frozen_clock(&config)?;
        serve::refuse_nudging_pass(&config)?;
    }
    let engine = serve::engine(&config)?;
    let read = serve::checked(Db::connect(&config.database(url)).await?).await?;
    let db = if args.dry_run {
        read
    } else {
        let repairs = serve::repairs(&config, url, &read).await?;
        read.close().await;
        repairs.db
    };
    let trimmed = |id: String| Some(id.trim().to_owned()).filter(|id| !id.is_empty());
    let mut run_ids: Vec<String> = Vec::new();
    for id in args.run_id.into_iter().filter_map(trimmed) {
        if !run_ids.contains(&id) {
            run_ids.push(id);
        }
    }
    let asked = Asked {
        run_ids,
        instance_id: args.instance_id.and_then(trimmed),
        respect_throttle: args.respect_throttle,
        dry_run: args.dry_run,
    };
    let judged = Judged {
        clock: config.clock,
        config: &engine,
    };
    let report = passed(&db, judged, &asked).await?;
    db.close().await;
    if args.json {
        let line =
            serde_json::to_string(&report).map_err(|error| CliError::Failed(error.to_string()))?;
        say(format_args!("{line}"))?;
    } else {
        for line in told(&report) {
            say(format_args!("{line}"))?;
        }
    }
    if report.failed() {
        return Err(CliError::Failed("not everything could be repaired".into()));
    }
    Ok(())
}

async fn passed(db: &Db, judged: Judged<'_>, asked: &Asked) -> Result<Report, CliError> {
    if asked.dry_run {
        return Ok(pass::pass(db, judged, asked).await?);
    }
    let right = db.exclusive(pass::LOCK).await?;
    if right.is_none() && asked.respect_throttle {
        return Ok(Report::throttled(asked));
    }
    Ok(pass::pass(db, judged, asked).await?)
}

/// The report in sentences.
fn told(report: &Report) -> Vec<String> {
    if report.throttled {
        return vec!["Another pass is under way; nothing was done.".to_owned()];
    }
    let ours = &report.plimsoll;
    let did = if ours.dry_run {
        "Would repair"
    } else {
        "Repaired"
    };
    let mut lines = vec![format!(
        "{did} {} of {} in trouble, {} of {}, {} of {} past their deadline.",
        report.repaired_existing_tasks,
        count(report.selected_existing_task_candidates, "task"),
        report.repaired_missing_tasks,
        count(report.selected_missing_task_candidates, "missing task"),
        report.deadline_expired_tasks_created,
        count(report.deadline_expired_candidates, "run"),
    )];
    if ours.left_to_the_engine > 0 {
        lines.push(format!(
            "Left to the engine's own pass, which publishes what is ready and settles what is of closed runs: {}.",
            count(ours.left_to_the_engine, "task")
        ));
    }
    if ours.not_looked_at > 0 {
        lines.push(format!(
            "Not looked at, because too many before are left as they are: {}. Name runs with --run-id.",
            count(ours.not_looked_at, "candidate")
        ));
    }
    if report.activity_timeout_candidates > 0 {
        lines.push(format!(
            "Past a timeout, which only the engine's own pass ends: {}.",
            count_of(report.activity_timeout_candidates, "activity", "activities")
        ));
    }
    let refused = ours.refused.iter();
    lines.extend(
        refused.map(|refused| format!("run {}: not repaired, {}", refused.run_id, refused.code)),
    );
    let failures = report.existing_task_failures.iter();
    lines.extend(
        failures.map(|failure| format!("task {}: {}", failure.candidate_id, failure.message)),
    );
    let failures = report
        .missing_run_failures
        .iter()
        .chain(&report.deadline_expired_failures);
    lines.extend(failures.map(|failure| format!("run {}: {}", failure.run_id, failure.message)));
    lines
}

fn count(number: usize, one: &str) -> String {
    count_of(number, one, &format!("{one}s"))
}

fn count_of(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_told_as_one() {
        let mut report = Report {
            selected_existing_task_candidates: 1,
            repaired_existing_tasks: 1,
            deadline_expired_candidates: 2,
            activity_timeout_candidates: 1,
            ..Report::default()
        };
        report.plimsoll.left_to_the_engine = 1;
        assert_eq!(
            told(&report),
            [
                "Repaired 1 of 1 task in trouble, 0 of 0 missing tasks, 0 of 2 runs past their deadline.",
                "Left to the engine's own pass, which publishes what is ready and settles what is of closed runs: 1 task.",
                "Past a timeout, which only the engine's own pass ends: 1 activity.",
            ]
        );
    }
}
