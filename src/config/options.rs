//! What may be set, in the groups that commands use.
//!
//! A group serves as part of the command line, the environment and the TOML file, so that a
//! setting has one name everywhere: `--base-path`, `PLIMSOLL_BASE_PATH`, `base_path = "…"`. A
//! command lists the groups it uses; the file may hold those of all commands.

use std::{net::SocketAddr, ops::Range, path::PathBuf};

use chrono::{DateTime, Utc};
use clap::Args as _;
use serde::Deserialize;
use toml::de::DeTable;

use super::{
    LogFormat, RepairMode,
    values::{self, Connections, Seconds},
};
use crate::durable::export::Policy;

/// Everything that may be set, none of it required here.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    #[command(flatten)]
    pub database: Database,
    #[command(flatten)]
    pub judging: Judging,
    #[command(flatten)]
    pub sealing: Sealing,
    #[command(flatten)]
    pub listening: Listening,
    #[command(flatten)]
    pub dashboard: Dashboard,
    #[command(flatten)]
    pub repairing: Repairing,
    #[command(flatten)]
    pub logging: Logging,
}

/// How to read the engine's database.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[command(next_help_heading = "Database")]
#[serde(default)]
pub struct Database {
    /// The engine's database: sqlite:PATH, postgres://… or mysql://…
    #[arg(
        long,
        env = "PLIMSOLL_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub database_url: Option<String>,

    /// Prefix of the engine's table names [default: none]
    #[arg(long, env = "PLIMSOLL_TABLE_PREFIX", value_name = "PREFIX")]
    pub table_prefix: Option<String>,

    /// Zone the engine writes its times in, such as Europe/Berlin
    #[arg(long, env = "PLIMSOLL_STORED_ZONE", value_name = "ZONE", value_parser = values::zone)]
    #[serde(deserialize_with = "values::zone_in_file")]
    pub stored_zone: Option<crate::zone::Zone>,

    /// MySQL session zone, if the engine sets one, such as +00:00 [default: the server's]
    #[arg(long, env = "PLIMSOLL_MYSQL_SESSION_ZONE", value_name = "ZONE")]
    pub mysql_session_zone: Option<String>,

    /// Seconds after which a statement is stopped
    #[arg(long, env = "PLIMSOLL_STATEMENT_TIMEOUT", value_name = "SECONDS")]
    pub statement_timeout: Option<Seconds>,
}

/// What rows are judged by.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[command(next_help_heading = "Engine")]
#[serde(default)]
pub struct Judging {
    /// The engine's configuration as JSON: the `workflows` object or its `v2` part
    #[arg(long, env = "PLIMSOLL_ENGINE_CONFIG", value_name = "FILE")]
    pub engine_config: Option<PathBuf>,

    /// Freeze the clock at this moment, for conformance checks and screenshots
    #[arg(long, env = "PLIMSOLL_CLOCK", value_name = "RFC3339", value_parser = values::moment)]
    #[serde(deserialize_with = "values::moment_in_file")]
    pub clock: Option<DateTime<Utc>>,
}

/// What exported bundles are made with.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[command(next_help_heading = "Exports")]
#[serde(default)]
pub struct Sealing {
    /// File with the key exported bundles are signed with
    #[arg(
        long,
        alias = "sign-key-file",
        env = "PLIMSOLL_SIGNING_KEY_FILE",
        value_name = "FILE"
    )]
    pub signing_key_file: Option<PathBuf>,

    /// The key itself; a file is safer
    #[arg(
        long,
        env = "DW_V2_HISTORY_EXPORT_SIGNING_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    pub signing_key: Option<String>,

    /// Name of that key, written beside every signature
    #[arg(
        long,
        alias = "sign-key-id",
        env = "DW_V2_HISTORY_EXPORT_SIGNING_KEY_ID",
        value_name = "NAME"
    )]
    pub signing_key_id: Option<String>,

    /// What no export may carry, nor a page if it says so; in the file only
    #[arg(skip)]
    pub redaction: Option<Policy>,
}

/// Where a server is reached.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[command(next_help_heading = "Server")]
#[serde(default)]
pub struct Listening {
    /// Address and port to listen on
    #[arg(long, env = "PLIMSOLL_LISTEN", value_name = "ADDR:PORT", value_parser = values::address)]
    #[serde(deserialize_with = "values::address_in_file")]
    pub listen: Option<SocketAddr>,

    /// Allow listening beyond this machine although there is no access control yet
    #[arg(long, env = "PLIMSOLL_INSECURE_LISTEN", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = values::switch)]
    pub insecure_listen: Option<bool>,

    /// Name this copy is reached by, such as ops.example.com; may be given several times. It answers
    /// under these names, localhost and plain addresses only
    #[arg(long, env = "PLIMSOLL_PUBLIC_HOST", value_name = "NAME", value_delimiter = ',', value_parser = values::host)]
    #[serde(deserialize_with = "values::hosts_in_file")]
    pub public_host: Option<Vec<String>>,

    /// Path everything is served under
    #[arg(long, env = "PLIMSOLL_BASE_PATH", value_name = "PATH")]
    pub base_path: Option<String>,
}

/// What the dashboard alone needs.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[command(next_help_heading = "Dashboard")]
#[serde(default)]
pub struct Dashboard {
    /// Zone times are shown in
    #[arg(long, env = "PLIMSOLL_DISPLAY_ZONE", value_name = "ZONE", value_parser = values::zone)]
    #[serde(deserialize_with = "values::zone_in_file")]
    pub display_zone: Option<crate::zone::Zone>,

    /// Database connections at most
    #[arg(long, env = "PLIMSOLL_POOL_SIZE", value_name = "N")]
    pub pool_size: Option<Connections>,

    /// File with a secret shared by copies behind one load balancer, so that each accepts the others'
    /// forms
    #[arg(long, env = "PLIMSOLL_FORM_SECRET_FILE", value_name = "FILE")]
    pub form_secret_file: Option<PathBuf>,

    /// Seconds between two passes over the fleet's numbers, at least
    #[arg(long, env = "PLIMSOLL_METRICS_INTERVAL", value_name = "SECONDS")]
    pub metrics_interval: Option<Seconds>,

    /// The one namespace whose numbers are gathered [default: all]
    #[arg(long, env = "PLIMSOLL_METRICS_NAMESPACE", value_name = "NAMESPACE")]
    pub metrics_namespace: Option<String>,

    /// Also repair, unasked, what the engine's own repair pass would, every few seconds
    #[arg(long, env = "PLIMSOLL_REPAIR_LOOP", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = values::switch)]
    pub repair_loop: Option<bool>,
}

/// What may be written, and how.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[command(next_help_heading = "Repair")]
#[serde(default)]
pub struct Repairing {
    /// Let operators repair runs: the only thing Plimsoll ever writes
    #[arg(long, env = "PLIMSOLL_ALLOW_REPAIR", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = values::switch)]
    pub allow_repair: Option<bool>,

    /// Write what was lost (direct), or only mark the run for the engine's repair pass (nudge)
    #[arg(long, env = "PLIMSOLL_REPAIR_MODE", value_name = "MODE")]
    pub repair_mode: Option<RepairMode>,
}

/// What is told on standard error.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[command(next_help_heading = "Log")]
#[serde(default)]
pub struct Logging {
    /// What to log, such as info or warn,plimsoll=debug
    #[arg(long, env = "PLIMSOLL_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Log lines as text or JSON
    #[arg(long, env = "PLIMSOLL_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

macro_rules! groups {
    ($($group:ident { $($setting:ident),+ })+) => {$(
        impl $group {
            /// What is not set here is taken from `below`.
            fn over(self, below: Self) -> Self {
                Self { $($setting: self.$setting.or(below.$setting)),+ }
            }
        }

        // Some hold secrets.
        impl std::fmt::Debug for $group {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($group)).finish_non_exhaustive()
            }
        }
    )+};
}

groups! {
    Database { database_url, table_prefix, stored_zone, mysql_session_zone, statement_timeout }
    Judging { engine_config, clock }
    Sealing { signing_key_file, signing_key, signing_key_id, redaction }
    Listening { listen, insecure_listen, public_host, base_path }
    Dashboard {
        display_zone, pool_size, form_secret_file, metrics_interval, metrics_namespace, repair_loop
    }
    Repairing { allow_repair, repair_mode }
    Logging { log, log_format }
}

/// What is wrong with the text of a file, and where.
#[derive(Debug)]
pub(super) struct Mistake {
    at: Range<usize>,
    pub(super) message: String,
}

impl From<toml::de::Error> for Mistake {
    fn from(error: toml::de::Error) -> Self {
        Self {
            at: error.span().unwrap_or_default(),
            message: error.message().to_owned(),
        }
    }
}

impl Options {
    /// Reads a TOML file; the message names the file and the line.
    pub fn from_file(path: &std::path::Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            format!(
                "cannot read the configuration file {}: {error}",
                path.display()
            )
        })?;
        Self::from_text(&text).map_err(|Mistake { at, message }| {
            let before = text[..at.start].matches('\n').count();
            let line = text.lines().nth(before).unwrap_or_default();
            let name = line.split_once('=').map_or("", |(name, _)| name.trim());
            let name = match name {
                "" => String::new(),
                named if message.contains(named) => String::new(),
                other => format!("{other}: "),
            };
            format!("{} line {}: {name}{message}", path.display(), before + 1)
        })
    }

    /// Each group takes what is its own, which leaves a slip to be found here.
    pub(super) fn from_text(text: &str) -> Result<Self, Mistake> {
        let table = DeTable::parse(text)?;
        let command = Self::augment_args(clap::Command::new("plimsoll"));
        let is_setting = |name: &str| {
            name == "redaction" || command.get_arguments().any(|arg| arg.get_id() == name)
        };
        let unknown = table
            .get_ref()
            .keys()
            .filter(|key| !is_setting(key.get_ref()));
        if let Some(first) = unknown.min_by_key(|key| key.span().start) {
            return Err(Mistake {
                at: first.span(),
                message: format!(
                    "there is no setting {}; plimsoll serve --help names them, with - for _",
                    first.get_ref()
                ),
            });
        }
        Ok(Self {
            database: toml::from_str(text)?,
            judging: toml::from_str(text)?,
            sealing: toml::from_str(text)?,
            listening: toml::from_str(text)?,
            dashboard: toml::from_str(text)?,
            repairing: toml::from_str(text)?,
            logging: toml::from_str(text)?,
        })
    }

    /// What is not set here is taken from `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            database: self.database.over(below.database),
            judging: self.judging.over(below.judging),
            sealing: self.sealing.over(below.sealing),
            listening: self.listening.over(below.listening),
            dashboard: self.dashboard.over(below.dashboard),
            repairing: self.repairing.over(below.repairing),
            logging: self.logging.over(below.logging),
        }
    }
}
