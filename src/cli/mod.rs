//! The command line: one file per command.

mod demo;
mod export;
mod log;
mod open;
mod out;
mod repair_pass;
pub mod seed;
mod serve;
mod verify;

use std::{path::PathBuf, process::ExitCode};

use clap::{
    Arg, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, builder::Resettable,
    error::ErrorKind,
};

use self::out::{remark, say};
use crate::{
    config::{self, Config, Options},
    db::DbError,
    demo::seed::SeedError,
};

/// The dashboard for operators of durable workflow engines.
///
/// Reads the tables the engine already writes and shows what every run is doing, why it is
/// stuck, and what may safely be done about it. Reading never writes.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the dashboard over the engine's database
    Serve(ServeArgs),
    /// Serve a made-up database that holds every situation Plimsoll knows
    Demo(demo::DemoArgs),
    /// Fill a database with made-up, consistent runs: the same ones for the same seed and clock
    Seed(seed::SeedArgs),
    /// Repair once all that the engine's own repair pass would: exit 1 when something could not be
    RepairPass(repair_pass::RepairPassArgs),
    /// Write one run's history as a sealed bundle
    Export(export::ExportArgs),
    /// Show an exported bundle as the run's own page, without any database
    Open(open::OpenArgs),
    /// Check exported bundles: exit 0 sealed and intact, 1 altered or wrong key, 2 not a bundle, 3 cannot be read
    Verify(verify::VerifyArgs),
}

#[derive(clap::Args, Debug)]
struct ServeArgs {
    /// TOML file with any of these settings, named as the flags with underscores
    #[arg(long, env = "PLIMSOLL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the settings in force, secrets masked, and exit
    #[arg(long)]
    print_config: bool,

    #[command(flatten)]
    options: Options,
}

/// Why a command ended without doing its work.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The call was wrong: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The world was: exit code 1.
    #[error("{0}")]
    Failed(String),
}

impl From<DbError> for CliError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Settings { message } => Self::Usage(message),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<SeedError> for CliError {
    fn from(error: SeedError) -> Self {
        match error {
            SeedError::Refused(message) => Self::Usage(message),
            SeedError::Lacking(message) => Self::Failed(message),
            SeedError::Db(error) => error.into(),
        }
    }
}

const NOTHING_ASKED: ErrorKind = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// What is wrong with the call and what to do, without the usage clap puts below it.
fn one_line(error: &clap::Error) -> String {
    let told = error.to_string();
    let wrong: Vec<_> = told
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let wrong = wrong.join(" ");
    let wrong = wrong.strip_prefix("error: ").unwrap_or(&wrong);
    let given: Vec<String> = std::env::args().skip(1).collect();
    let mut whole = command();
    // An argument has its spelling, as clap tells it, only in a command that was built.
    whole.build();
    let asked = given.first().and_then(|name| whole.find_subcommand(name));
    let Some(asked) = asked else {
        return format!("{wrong}. See: plimsoll --help");
    };
    let wrong = with_variables(wrong.to_owned(), asked, &given);
    format!("{wrong}. See: plimsoll {} --help", asked.get_name())
}

/// Names the variable where it was that, and no flag, that was wrong.
fn with_variables(told: String, command: &clap::Command, given: &[String]) -> String {
    let by_variable = |arg: &&Arg| {
        let flag = format!("--{}", arg.get_long().unwrap_or_default());
        let is_flag = |word: &String| word.split('=').next() == Some(&flag);
        !given.iter().any(is_flag)
    };
    command
        .get_arguments()
        .filter(by_variable)
        .filter_map(|arg| Some((format!("'{arg}'"), arg.get_env()?.to_string_lossy())))
        .filter(|(_, variable)| std::env::var_os(&**variable).is_some())
        .fold(told, |told, (flag, variable)| {
            told.replace(&flag, &format!("{flag} (from {variable})"))
        })
}

/// The command line, its help saying what each setting is when nobody sets it. A variable that is
/// empty is not set: so Compose and unit files write what they leave out.
fn command() -> clap::Command {
    let defaults = config::defaults();
    let with_default = |arg: Arg| match (arg.get_help(), defaults.get(arg.get_id().as_str())) {
        (Some(help), Some(default)) if arg.get_default_values().is_empty() => {
            let help = format!("{help} [default: {default}]");
            arg.help(help)
        }
        _ => arg,
    };
    let without_empty = |arg: Arg| {
        let given = arg.get_env().and_then(std::env::var_os);
        if given.is_some_and(|given| given.is_empty()) {
            arg.env(Resettable::Reset)
        } else {
            arg
        }
    };
    Cli::command()
        .mut_subcommands(|command| command.mut_args(|arg| without_empty(with_default(arg))))
}

/// Runs the command line and says how the process ends.
pub fn main() -> ExitCode {
    let parsed = command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        // Asked for, or nothing was: the help and the version are written as clap writes them.
        Err(error) if !error.use_stderr() || error.kind() == NOTHING_ASKED => error.exit(),
        Err(error) => {
            remark(format_args!("plimsoll: {}", one_line(&error)));
            return ExitCode::from(2);
        }
    };
    run(cli.command).unwrap_or_else(|error| {
        remark(format_args!("plimsoll: {error}"));
        ExitCode::from(match error {
            CliError::Usage(_) => 2,
            CliError::Failed(_) => 1,
        })
    })
}

fn run(command: Command) -> Result<ExitCode, CliError> {
    // Needs no runtime, and its exit code says more.
    if let Command::Verify(args) = &command {
        return verify::run(args);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        match command {
            Command::Serve(args) => serve(args).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Seed(args) => seed::run(args).await,
            Command::RepairPass(args) => repair_pass::run(args).await,
            Command::Export(args) => export::run(args).await,
            Command::Open(args) => open::run(args).await,
            Command::Verify(_) => Ok(()),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: ServeArgs) -> Result<(), CliError> {
    let mut config = settled(args.config.as_deref(), args.options)?;
    log::start(&config)?;
    let prepared = serve::Prepared::new(&config)?;
    if args.print_config {
        config.base_path = prepared.base_path();
        return say(format_args!("{}", config.print().trim_end()));
    }
    serve::run(&config, prepared).await
}

/// The settings in force: what the call says over what the file says.
fn settled(file: Option<&std::path::Path>, options: Options) -> Result<Config, CliError> {
    let file = file
        .map(Options::from_file)
        .transpose()
        .map_err(CliError::Usage)?;
    Ok(options.over(file.unwrap_or_default()).settle())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of README's line for a setting.
    fn in_the_readme(flag: &str) -> Vec<&'static str> {
        let readme = include_str!("../../README.md");
        let line = readme
            .lines()
            .find(|line| line.starts_with(&format!("| `--{flag}` |")))
            .unwrap_or_else(|| panic!("README.md has no line for --{flag}"));
        line.trim_matches('|').split('|').map(str::trim).collect()
    }

    #[test]
    fn the_readme_tells_every_setting_as_it_is() {
        let defaults = config::defaults();
        let cli = Cli::command();
        let serve = cli.find_subcommand("serve").expect("serve is a command");
        for arg in serve.get_arguments() {
            let Some(flag) = arg.get_long().filter(|flag| *flag != "help") else {
                continue;
            };
            let [_, variable, key, default] = in_the_readme(flag)[..] else {
                panic!("README.md: --{flag} has four cells");
            };
            let quoted = |text: &str| format!("`{text}`");
            if let Some(name) = arg.get_env() {
                assert_eq!(variable, quoted(&name.to_string_lossy()), "--{flag}");
            }
            if !matches!(flag, "config" | "print-config") {
                assert_eq!(key, quoted(arg.get_id().as_str()), "--{flag}");
                // What begins with a value has it as its default.
                let told = default
                    .split('`')
                    .nth(1)
                    .filter(|_| default.starts_with('`'));
                let is = defaults.get(arg.get_id().as_str()).map(String::as_str);
                assert_eq!(told, is, "--{flag}");
            }
        }
    }

    #[test]
    fn the_help_tells_what_a_setting_is_when_nobody_sets_it() {
        let cli = command();
        for (name, arg, says) in [
            ("serve", "pool_size", "at most [default: 12]"),
            ("serve", "base_path", "[default: /waterline]"),
            ("demo", "listen", "[default: 127.0.0.1:7420]"),
            ("export", "statement_timeout", "is stopped [default: 10]"),
        ] {
            let command = cli.find_subcommand(name).expect("a command");
            let help = command.get_arguments().find(|known| known.get_id() == arg);
            let help = help.and_then(Arg::get_help).expect("a help").to_string();
            assert!(help.ends_with(says), "{name}: {help}");
        }
    }

    /// A flag that is listed does something.
    #[test]
    fn a_command_lists_only_what_it_uses() {
        let cli = command();
        let listed = |name: &str| -> Vec<String> {
            let command = cli.find_subcommand(name).expect("a command");
            let flags = command.get_arguments().filter_map(Arg::get_long);
            flags.map(str::to_owned).collect()
        };
        let database = [
            "database-url",
            "table-prefix",
            "stored-zone",
            "mysql-session-zone",
            "statement-timeout",
            "engine-config",
            "clock",
        ];
        let key = ["signing-key-file", "signing-key-id"];
        let log = ["log", "log-format"];
        let sealing = ["signing-key-file", "signing-key", "signing-key-id"];
        for (name, flags) in [
            (
                "export",
                [
                    &["run", "instance", "output", "config"],
                    &database[..],
                    &sealing,
                    &log,
                ]
                .concat(),
            ),
            (
                "repair-pass",
                [
                    &[
                        "run-id",
                        "instance-id",
                        "respect-throttle",
                        "dry-run",
                        "json",
                        "config",
                    ],
                    &database[..],
                    &["allow-repair", "repair-mode"],
                    &log,
                ]
                .concat(),
            ),
            ("verify", [&["json"], &key[..]].concat()),
            (
                "open",
                [&key[..], &["listen", "engine-config", "display-zone"]].concat(),
            ),
        ] {
            assert_eq!(listed(name), flags, "{name}");
        }
    }

    /// README had these once; scripts still do.
    #[test]
    fn earlier_names_of_the_key_file_are_taken() {
        for call in [
            "export --run x --sign-key-file key --sign-key-id k1",
            "verify x.json --key-file key --key-id k1",
            "open x.json --key-file key --key-id k1",
        ] {
            let words = ["plimsoll"].into_iter().chain(call.split(' '));
            command()
                .try_get_matches_from(words)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
