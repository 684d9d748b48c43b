//! `plimsoll verify`: is this file what was exported?

use std::{
    fs::File,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::durable::export::{
    SigningKey,
    verify::{Report, Severity, Verdict, verify},
};

#[derive(clap::Args, Debug)]
pub struct VerifyArgs {
    /// Exported bundles
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// File with the key they were signed with; an unsigned bundle then fails
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Name of that key; a bundle signed under another name then fails
    #[arg(long, value_name = "NAME", requires = "key_file")]
    key_id: Option<String>,

    /// Print the reports as JSON, one per file
    #[arg(long)]
    json: bool,
}

/// The worst verdict is the exit code.
pub fn run(args: &VerifyArgs) -> ExitCode {
    let key = args
        .key_file
        .as_deref()
        .map(|file| read_key(file, args.key_id.as_deref()));
    let key = match key.transpose() {
        Ok(key) => key,
        Err(message) => {
            eprintln!("plimsoll: {message}");
            return ExitCode::from(2);
        }
    };
    let mut worst = 0;
    for path in &args.files {
        let report = match File::open(path) {
            Ok(file) => {
                let bar = progress_bar(file.metadata().map_or(0, |about| about.len()));
                let report = verify(file, key.as_ref(), &mut |done| bar.set_position(done));
                bar.finish_and_clear();
                report
            }
            Err(error) => {
                let mut report = Report::default();
                report.unreadable(error.to_string(), None);
                report.settle();
                report
            }
        };
        worst = worst.max(match report.verdict() {
            Verdict::Intact => 0,
            Verdict::Altered => 1,
            Verdict::NotABundle => 2,
        });
        if args.json {
            let mut out = json!(report);
            out["file"] = path.display().to_string().into();
            println!("{out}");
        } else {
            print(path, &report, key.is_some());
        }
    }
    ExitCode::from(worst)
}

pub(super) fn read_key(path: &Path, id: Option<&str>) -> Result<SigningKey, String> {
    let secret = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the key {}: {error}", path.display()))?;
    SigningKey::new(&secret, id).ok_or_else(|| format!("the key {} is empty", path.display()))
}

fn print(path: &Path, report: &Report, with_key: bool) {
    let integrity = &report.integrity;
    let signed = match (integrity.signature_present, integrity.signature_verified) {
        (true, Some(true)) => "signed with this key",
        (true, None) if !with_key => "signed; give --key-file to check by whom",
        (false, _) => "unsigned",
        _ => "signature not accepted",
    };
    let verdict = match report.verdict() {
        Verdict::Intact if report.summary.errors > 0 => {
            format!("sealed and intact, {signed}; wrong already when it was sealed:")
        }
        Verdict::Intact => format!("sealed and intact, {signed}"),
        Verdict::Altered => format!("NOT what was sealed ({signed})"),
        Verdict::NotABundle => "not a bundle".to_owned(),
    };
    println!("{}: {verdict}", path.display());
    if let Some(run) = &report.bundle.workflow_run_id {
        println!(
            "  run {run}, {} events, exported {}",
            report.bundle.history_event_count,
            report
                .bundle
                .exported_at
                .as_deref()
                .unwrap_or("at no known time"),
        );
    }
    for finding in report.decisive_first() {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        };
        let place = finding.path.as_deref().unwrap_or("the file");
        println!(
            "  {severity} {}: {place}: {}",
            finding.rule, finding.message
        );
    }
    for (rule, count) in &report.summary.findings_by_rule {
        let listed = report
            .findings
            .iter()
            .filter(|found| found.rule == *rule)
            .count();
        if *count > listed {
            println!("  … and {} more of {rule}", count - listed);
        }
    }
}

fn progress_bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left")
        .expect("a template that is tested by every run on a terminal");
    ProgressBar::new(bytes).with_style(style)
}
