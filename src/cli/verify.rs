//! `plimsoll verify`: is this file what was exported?

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::ExitCode,
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{
    CliError,
    out::{remark, say},
};
use crate::{
    config::read_key,
    durable::export::{
        SigningKey,
        verify::{Report, Severity, Verdict, verify},
    },
};

#[derive(clap::Args, Debug)]
pub struct VerifyArgs {
    /// Exported bundles
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print the reports as JSON, one per file
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    key: CheckedWith,
}

/// What a seal is checked with.
#[derive(clap::Args, Debug)]
pub struct CheckedWith {
    /// File with the key the bundle was signed with; an unsigned one then fails
    #[arg(long, alias = "key-file", value_name = "FILE")]
    signing_key_file: Option<PathBuf>,

    /// Name of that key; a bundle signed under another name then fails
    #[arg(
        long,
        alias = "key-id",
        value_name = "NAME",
        requires = "signing_key_file"
    )]
    signing_key_id: Option<String>,
}

impl CheckedWith {
    pub fn key(&self) -> Result<Option<SigningKey>, CliError> {
        let id = self.signing_key_id.as_deref();
        let key = self.signing_key_file.as_deref();
        let key = key.map(|file| read_key(file, id)).transpose();
        key.map_err(CliError::Usage)
    }
}

/// The exit code of a file that could not be read: there is no verdict on it.
const UNREAD: u8 = 3;

/// The worst of all files is the exit code.
pub fn run(args: &VerifyArgs) -> Result<ExitCode, CliError> {
    let key = args.key.key()?;
    let mut worst = 0;
    for path in &args.files {
        let name = path.display().to_string();
        let outcome = checked(path, key.as_ref());
        if args.json {
            let mut out = match &outcome {
                Ok(report) => json!(report),
                Err(error) => json!({"unreadable": error.to_string()}),
            };
            out["file"] = name.as_str().into();
            say(format_args!("{out}"))?;
        }
        worst = worst.max(match outcome {
            Ok(report) => {
                if !args.json {
                    print(path, &report, key.is_some())?;
                }
                match report.verdict() {
                    Verdict::Intact => 0,
                    Verdict::Altered => 1,
                    Verdict::NotABundle => 2,
                }
            }
            Err(error) => {
                remark(format_args!("plimsoll: cannot read {name}: {error}"));
                UNREAD
            }
        });
    }
    Ok(ExitCode::from(worst))
}

fn checked(path: &Path, key: Option<&SigningKey>) -> io::Result<Report> {
    let file = File::open(path)?;
    let bar = progress_bar(file.metadata().map_or(0, |about| about.len()));
    let mut file = Watched { file, failed: None };
    let report = verify(&mut file, key, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    file.failed.map_or(Ok(report), Err)
}

/// A file that keeps why it could not be read: that says nothing about what is in it.
struct Watched {
    file: File,
    failed: Option<io::Error>,
}

impl Watched {
    /// Hands the outcome on, and keeps an error that reading ends with.
    fn watch<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.failed.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let outcome = self.file.read(buffer);
        self.watch(outcome)
    }
}

impl Seek for Watched {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let outcome = self.file.seek(to);
        self.watch(outcome)
    }
}

fn print(path: &Path, report: &Report, with_key: bool) -> Result<(), CliError> {
    let integrity = &report.integrity;
    let signed = match (integrity.signature_present, integrity.signature_verified) {
        (true, Some(true)) => "signed with this key",
        (true, None) if !with_key => "signed; give --signing-key-file to check by whom",
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
    say(format_args!("{}: {verdict}", path.display()))?;
    if let Some(run) = &report.bundle.workflow_run_id {
        say(format_args!(
            "  run {run}, {} events, exported {}",
            report.bundle.history_event_count,
            report
                .bundle
                .exported_at
                .as_deref()
                .unwrap_or("at no known time"),
        ))?;
    }
    for finding in report.decisive_first() {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        };
        let place = finding.path.as_deref().unwrap_or("the file");
        say(format_args!(
            "  {severity} {}: {place}: {}",
            finding.rule, finding.message
        ))?;
    }
    for (rule, count) in &report.summary.findings_by_rule {
        let listed = report
            .findings
            .iter()
            .filter(|found| found.rule == *rule)
            .count();
        if *count > listed {
            say(format_args!("  … and {} more of {rule}", count - listed))?;
        }
    }
    Ok(())
}

fn progress_bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left")
        .expect("a template that is tested by every run on a terminal");
    ProgressBar::new(bytes).with_style(style)
}
