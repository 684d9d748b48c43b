//! Settings: flags over environment over file over defaults.
//!
//! One struct serves as the command line, the TOML file and the environment, so that a setting
//! has one name everywhere: `--base-path`, `PLIMSOLL_BASE_PATH`, `base_path = "…"`.

use std::{fmt::Write as _, net::SocketAddr, path::PathBuf, time::Duration};

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::{
    clock::Clock,
    db,
    durable::{
        export::{Policy, SigningKey},
        repair::Mode,
    },
};

/// Repairs are rare and short.
const REPAIR_POOL: u32 = 2;

/// Fewest characters of a secret.
const FORM_SECRET: usize = 16;

/// Values as people write them, with a message that shows how.
pub mod values {
    use std::net::SocketAddr;

    use chrono::{DateTime, Utc};
    use serde::{Deserialize as _, Deserializer, de::Error as _};

    pub fn address(text: &str) -> Result<SocketAddr, String> {
        text.parse().map_err(|_| {
            format!("{text:?} is not an address with a port, such as 127.0.0.1:7420 or [::1]:7420")
        })
    }

    pub fn zone(text: &str) -> Result<crate::zone::Zone, String> {
        text.parse()
            .map_err(|_| format!("{text:?} is not a zone, such as UTC or Europe/Berlin"))
    }

    pub fn moment(text: &str) -> Result<DateTime<Utc>, String> {
        text.parse().map_err(|_| {
            format!("{text:?} is not a moment with its zone, such as 2026-11-15T12:00:00Z")
        })
    }

    pub fn host(text: &str) -> Result<String, String> {
        let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
        let letters = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if name.is_empty() || !name.chars().all(letters) {
            return Err(format!(
                "{text:?} is not a host name, such as ops.example.com, without scheme and port"
            ));
        }
        Ok(name)
    }

    pub(super) fn hosts_in_file<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Vec<String>>, D::Error> {
        let list = Option::<Vec<String>>::deserialize(from)?.unwrap_or_default();
        let hosts: Result<Vec<String>, String> = list.iter().map(|text| host(text)).collect();
        let hosts = hosts.map_err(D::Error::custom)?;
        Ok((!hosts.is_empty()).then_some(hosts))
    }

    macro_rules! in_file {
        ($($name:ident: $parse:path => $type:ty;)+) => {$(
            pub(super) fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$type>, D::Error> {
                let text = Option::<String>::deserialize(from)?;
                text.as_deref().map($parse).transpose().map_err(D::Error::custom)
            }
        )+};
    }

    in_file! {
        address_in_file: address => SocketAddr;
        zone_in_file: zone => crate::zone::Zone;
        moment_in_file: moment => DateTime<Utc>;
    }
}

/// Everything that may be set, none of it required here.
#[derive(clap::Args, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The engine's database: sqlite:PATH, postgres://… or mysql://…
    #[arg(
        long,
        env = "PLIMSOLL_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub database_url: Option<String>,

    /// Address and port to listen on [default: 127.0.0.1:7420]
    #[arg(long, env = "PLIMSOLL_LISTEN", value_name = "ADDR:PORT", value_parser = values::address)]
    #[serde(default, deserialize_with = "values::address_in_file")]
    pub listen: Option<SocketAddr>,

    /// Allow listening beyond this machine although there is no access control yet
    #[arg(long, env = "PLIMSOLL_INSECURE_LISTEN", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub insecure_listen: Option<bool>,

    /// Name browsers reach this copy by, such as ops.example.com; may be given several times. Repairs
    /// are taken under these names, localhost and plain addresses only
    #[arg(long, env = "PLIMSOLL_PUBLIC_HOST", value_name = "NAME", value_delimiter = ',', value_parser = values::host)]
    #[serde(default, deserialize_with = "values::hosts_in_file")]
    pub public_host: Option<Vec<String>>,

    /// Path everything is served under [default: /waterline]
    #[arg(long, env = "PLIMSOLL_BASE_PATH", value_name = "PATH")]
    pub base_path: Option<String>,

    /// Prefix of the engine's table names [default: none]
    #[arg(long, env = "PLIMSOLL_TABLE_PREFIX", value_name = "PREFIX")]
    pub table_prefix: Option<String>,

    /// Zone the engine writes its times in, such as Europe/Berlin [default: UTC]
    #[arg(long, env = "PLIMSOLL_STORED_ZONE", value_name = "ZONE", value_parser = values::zone)]
    #[serde(default, deserialize_with = "values::zone_in_file")]
    pub stored_zone: Option<crate::zone::Zone>,

    /// Zone times are shown in [default: UTC]
    #[arg(long, env = "PLIMSOLL_DISPLAY_ZONE", value_name = "ZONE", value_parser = values::zone)]
    #[serde(default, deserialize_with = "values::zone_in_file")]
    pub display_zone: Option<crate::zone::Zone>,

    /// MySQL session zone, if the engine sets one, such as +00:00 [default: the server's]
    #[arg(long, env = "PLIMSOLL_MYSQL_SESSION_ZONE", value_name = "ZONE")]
    pub mysql_session_zone: Option<String>,

    /// The engine's configuration as JSON: the `workflows` object or its `v2` part
    #[arg(long, env = "PLIMSOLL_ENGINE_CONFIG", value_name = "FILE")]
    pub engine_config: Option<PathBuf>,

    /// Freeze the clock at this moment, for conformance checks and screenshots
    #[arg(long, env = "PLIMSOLL_CLOCK", value_name = "RFC3339", value_parser = values::moment)]
    #[serde(default, deserialize_with = "values::moment_in_file")]
    pub clock: Option<DateTime<Utc>>,

    /// Seconds after which a statement is stopped [default: 10]
    #[arg(long, env = "PLIMSOLL_STATEMENT_TIMEOUT", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub statement_timeout: Option<u64>,

    /// Database connections at most [default: 8]
    #[arg(long, env = "PLIMSOLL_POOL_SIZE", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    pub pool_size: Option<u32>,

    /// File with the key exported bundles are signed with
    #[arg(long, env = "PLIMSOLL_SIGNING_KEY_FILE", value_name = "FILE")]
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
    #[arg(long, env = "DW_V2_HISTORY_EXPORT_SIGNING_KEY_ID", value_name = "NAME")]
    pub signing_key_id: Option<String>,

    /// File with a secret that copies behind one address share, so that each takes the others' forms
    #[arg(long, env = "PLIMSOLL_FORM_SECRET_FILE", value_name = "FILE")]
    pub form_secret_file: Option<PathBuf>,

    /// What no export may carry, nor a page if it says so; in the file only
    #[arg(skip)]
    pub redaction: Option<Policy>,
    /// Seconds between two passes over the fleet's numbers, at least [default: 5]
    #[arg(long, env = "PLIMSOLL_METRICS_INTERVAL", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub metrics_interval: Option<u64>,

    /// The one namespace whose numbers are gathered [default: all]
    #[arg(long, env = "PLIMSOLL_METRICS_NAMESPACE", value_name = "NAMESPACE")]
    pub metrics_namespace: Option<String>,

    /// Let operators repair runs: the only thing Plimsoll ever writes
    #[arg(long, env = "PLIMSOLL_ALLOW_REPAIR", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub allow_repair: Option<bool>,

    /// Write what was lost (direct), or only mark the run for the engine's repair pass (nudge) [default: direct]
    #[arg(long, env = "PLIMSOLL_REPAIR_MODE", value_name = "MODE")]
    pub repair_mode: Option<RepairMode>,

    /// Also repair, unasked, what the engine's own repair pass would, every few seconds
    #[arg(long, env = "PLIMSOLL_REPAIR_LOOP", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub repair_loop: Option<bool>,

    /// What to log, such as info or plimsoll=debug [default: info]
    #[arg(long, env = "PLIMSOLL_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Log lines as text or JSON [default: text]
    #[arg(long, env = "PLIMSOLL_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RepairMode {
    #[default]
    Direct,
    Nudge,
}

impl From<RepairMode> for Mode {
    fn from(mode: RepairMode) -> Self {
        match mode {
            RepairMode::Direct => Self::Direct,
            RepairMode::Nudge => Self::Nudge,
        }
    }
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// The settings in force. Not to be printed as they are: [`Config::print`] masks what is secret.
#[derive(Clone)]
pub struct Config {
    pub database_url: Option<String>,
    pub listen: SocketAddr,
    pub insecure_listen: bool,
    pub public_host: Vec<String>,
    pub base_path: String,
    pub table_prefix: String,
    pub stored_zone: crate::zone::Zone,
    pub display_zone: crate::zone::Zone,
    pub mysql_session_zone: Option<String>,
    pub engine_config: Option<PathBuf>,
    pub clock: Clock,
    pub statement_timeout: Duration,
    pub pool_size: u32,
    pub signing_key_file: Option<PathBuf>,
    pub signing_key: Option<String>,
    pub signing_key_id: Option<String>,
    pub form_secret_file: Option<PathBuf>,
    pub redaction: Option<Policy>,
    pub metrics_interval: Duration,
    pub metrics_namespace: Option<String>,
    pub allow_repair: bool,
    pub repair_mode: RepairMode,
    pub repair_loop: bool,
    pub log: String,
    pub log_format: LogFormat,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.print())
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
        let options: Self = toml::from_str(&text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            format!("{} line {line}: {}", path.display(), error.message())
        })?;
        // What clap checks of the flags and the environment.
        let outside = |name: &str, most: u64| {
            format!("{}: {name} must lie between 1 and {most}", path.display())
        };
        match (options.statement_timeout, options.pool_size) {
            (Some(0 | 3601..), _) => Err(outside("statement_timeout", 3600)),
            (_, Some(0 | 201..)) => Err(outside("pool_size", 200)),
            _ => Ok(options),
        }
    }

    /// What is not set here is taken from `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            database_url: self.database_url.or(below.database_url),
            listen: self.listen.or(below.listen),
            insecure_listen: self.insecure_listen.or(below.insecure_listen),
            public_host: self.public_host.or(below.public_host),
            base_path: self.base_path.or(below.base_path),
            table_prefix: self.table_prefix.or(below.table_prefix),
            stored_zone: self.stored_zone.or(below.stored_zone),
            display_zone: self.display_zone.or(below.display_zone),
            mysql_session_zone: self.mysql_session_zone.or(below.mysql_session_zone),
            engine_config: self.engine_config.or(below.engine_config),
            clock: self.clock.or(below.clock),
            statement_timeout: self.statement_timeout.or(below.statement_timeout),
            pool_size: self.pool_size.or(below.pool_size),
            signing_key_file: self.signing_key_file.or(below.signing_key_file),
            signing_key: self.signing_key.or(below.signing_key),
            signing_key_id: self.signing_key_id.or(below.signing_key_id),
            form_secret_file: self.form_secret_file.or(below.form_secret_file),
            redaction: self.redaction.or(below.redaction),
            metrics_interval: self.metrics_interval.or(below.metrics_interval),
            metrics_namespace: self.metrics_namespace.or(below.metrics_namespace),
            allow_repair: self.allow_repair.or(below.allow_repair),
            repair_mode: self.repair_mode.or(below.repair_mode),
            repair_loop: self.repair_loop.or(below.repair_loop),
            log: self.log.or(below.log),
            log_format: self.log_format.or(below.log_format),
        }
    }

    /// Fills in the defaults.
    pub fn settle(self) -> Config {
        Config {
            database_url: self.database_url,
            listen: self
                .listen
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7420))),
            insecure_listen: self.insecure_listen.unwrap_or(false),
            public_host: self.public_host.unwrap_or_default(),
            base_path: self.base_path.unwrap_or_else(|| "/waterline".into()),
            table_prefix: self.table_prefix.unwrap_or_default(),
            stored_zone: self.stored_zone.unwrap_or(crate::zone::Zone::UTC),
            display_zone: self.display_zone.unwrap_or(crate::zone::Zone::UTC),
            mysql_session_zone: self.mysql_session_zone,
            engine_config: self.engine_config,
            clock: self.clock.map_or(Clock::System, Clock::Frozen),
            statement_timeout: Duration::from_secs(self.statement_timeout.unwrap_or(10)),
            pool_size: self.pool_size.unwrap_or(12),
            signing_key_file: self.signing_key_file,
            signing_key: self.signing_key,
            signing_key_id: self.signing_key_id,
            form_secret_file: self.form_secret_file,
            redaction: self.redaction,
            metrics_interval: Duration::from_secs(self.metrics_interval.unwrap_or(5)),
            metrics_namespace: self
                .metrics_namespace
                .map(|namespace| namespace.trim().to_owned())
                .filter(|namespace| !namespace.is_empty()),
            allow_repair: self.allow_repair.unwrap_or(false),
            repair_mode: self.repair_mode.unwrap_or_default(),
            repair_loop: self.repair_loop.unwrap_or(false),
            log: self.log.unwrap_or_else(|| "info".into()),
            log_format: self.log_format.unwrap_or_default(),
        }
    }
}

impl Config {
    /// How to open the engine's database: never to write, never to create.
    pub fn database(&self, url: &str) -> db::Settings {
        db::Settings {
            prefix: self.table_prefix.clone(),
            zone: self.stored_zone,
            mysql_session_zone: self.mysql_session_zone.clone(),
            statement_timeout: self.statement_timeout,
            pool_size: self.pool_size,
            ..db::Settings::new(url)
        }
    }

    /// How to open it for repairs: few connections, of their own.
    pub fn database_for_repair(&self, url: &str) -> db::Settings {
        db::Settings {
            pool_size: REPAIR_POOL,
            ..self.database(url).writable()
        }
    }

    /// The key bundles are signed with; the file comes first.
    pub fn signing_key(&self) -> Result<Option<SigningKey>, String> {
        let id = self.signing_key_id.as_deref();
        if let Some(file) = &self.signing_key_file {
            let secret = std::fs::read_to_string(file)
                .map_err(|error| format!("cannot read the key {}: {error}", file.display()))?;
            return match SigningKey::new(&secret, id) {
                Some(key) => Ok(Some(key)),
                None => Err(format!("the key {} is empty", file.display())),
            };
        }
        Ok(self
            .signing_key
            .as_deref()
            .and_then(|secret| SigningKey::new(secret, id)))
    }

    /// The secret that copies behind one address share.
    pub fn form_secret(&self) -> Result<Option<String>, String> {
        let Some(file) = &self.form_secret_file else {
            return Ok(None);
        };
        let secret = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read the secret {}: {error}", file.display()))?;
        let secret = secret.trim().to_owned();
        if secret.len() < FORM_SECRET {
            return Err(format!(
                "the secret {} is shorter than {FORM_SECRET} characters: it could be guessed",
                file.display()
            ));
        }
        Ok(Some(secret))
    }

    /// The settings in force as TOML, secrets masked.
    pub fn print(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: Option<toml::Value>| {
            let _ = match value {
                Some(value) => writeln!(out, "{name} = {value}"),
                None => writeln!(out, "# {name} is not set"),
            };
        };
        let text = |text: &str| Some(toml::Value::String(text.to_owned()));
        line(
            "database_url",
            self.database_url
                .as_deref()
                .map(|url| toml::Value::String(db::masked(url))),
        );
        line("listen", text(&self.listen.to_string()));
        line("insecure_listen", Some(self.insecure_listen.into()));
        let hosts = self.public_host.clone();
        line("public_host", (!hosts.is_empty()).then(|| hosts.into()));
        line("base_path", text(&self.base_path));
        line("table_prefix", text(&self.table_prefix));
        line("stored_zone", text(self.stored_zone.name()));
        line("display_zone", text(self.display_zone.name()));
        line(
            "mysql_session_zone",
            self.mysql_session_zone.as_deref().and_then(text),
        );
        line(
            "engine_config",
            self.engine_config
                .as_ref()
                .and_then(|path| text(&path.to_string_lossy())),
        );
        line(
            "clock",
            match self.clock {
                Clock::System => None,
                Clock::Frozen(at) => text(&at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)),
            },
        );
        line(
            "statement_timeout",
            i64::try_from(self.statement_timeout.as_secs())
                .ok()
                .map(Into::into),
        );
        line("pool_size", Some(i64::from(self.pool_size).into()));
        line(
            "signing_key_file",
            self.signing_key_file
                .as_ref()
                .and_then(|path| text(&path.to_string_lossy())),
        );
        line(
            "signing_key",
            self.signing_key.as_ref().and_then(|_| text("***")),
        );
        line(
            "signing_key_id",
            self.signing_key_id.as_deref().and_then(text),
        );
        line(
            "form_secret_file",
            self.form_secret_file
                .as_ref()
                .and_then(|path| text(&path.to_string_lossy())),
        );
        line(
            "metrics_interval",
            i64::try_from(self.metrics_interval.as_secs())
                .ok()
                .map(Into::into),
        );
        line(
            "metrics_namespace",
            self.metrics_namespace.as_deref().and_then(text),
        );
        line("allow_repair", Some(self.allow_repair.into()));
        line(
            "repair_mode",
            text(match self.repair_mode {
                RepairMode::Direct => "direct",
                RepairMode::Nudge => "nudge",
            }),
        );
        line("repair_loop", Some(self.repair_loop.into()));
        line("log", text(&self.log));
        line(
            "log_format",
            text(match self.log_format {
                LogFormat::Text => "text",
                LogFormat::Json => "json",
            }),
        );
        let _ = match &self.redaction {
            Some(policy) => {
                let also = if policy.pages { ", on pages too" } else { "" };
                writeln!(
                    out,
                    "# redaction policy {:?} is in force{also}",
                    policy.name
                )
            }
            None => writeln!(out, "# redaction is not set"),
        };
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(toml: &str) -> Options {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn what_is_set_above_hides_what_is_set_below() {
        let flags = options("base_path = '/x'");
        let file = options("base_path = '/y'\nstored_zone = 'Europe/Berlin'");
        let config = flags.over(file).settle();
        assert_eq!(config.base_path, "/x");
        assert_eq!(config.stored_zone, "Europe/Berlin".parse().unwrap());
        assert_eq!(config.listen.to_string(), "127.0.0.1:7420");
    }

    #[test]
    fn a_public_host_is_a_name_and_no_address() {
        let hosts = |toml: &str| options(toml).settle().public_host;
        let named = hosts("public_host = ['Ops.Example.com', 'ops.internal.']");
        assert_eq!(named, ["ops.example.com", "ops.internal"]);
        assert_eq!(hosts("public_host = []"), [""; 0]);
        for wrong in [
            "https://ops.example.com",
            "ops.example.com:8443",
            "a/b",
            " ",
        ] {
            let file = format!("public_host = [{wrong:?}]");
            let error = toml::from_str::<Options>(&file).unwrap_err().to_string();
            assert!(
                error.contains("without scheme and port"),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plimsoll.toml");
        std::fs::write(&file, "base_path = '/x'\n\nbase_pth = '/y'\n").unwrap();
        let error = Options::from_file(&file).unwrap_err();
        assert!(
            error.contains("plimsoll.toml line 3") && error.contains("base_pth"),
            "{error}"
        );
    }

    #[test]
    fn a_redaction_rule_that_reaches_nothing_is_told_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plimsoll.toml");
        let text = "[redaction]\npolicy = 'p'\n\n[[redaction.rules]]\ncategory = 'task_payload'\n\n\
                    [[redaction.rules]]\npath = 'commands.*.payloads'\n";
        std::fs::write(&file, text).unwrap();
        let error = Options::from_file(&file).unwrap_err();
        assert!(
            error.contains("line 8") && error.contains("commands.*.payloads"),
            "{error}"
        );
    }

    #[test]
    fn a_key_comes_from_its_file_first_and_is_never_printed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "from-file\n").unwrap();
        let config = options(&format!(
            "signing_key = 'hunter2'\nsigning_key_id = 'k1'\nsigning_key_file = {:?}",
            file.display().to_string()
        ))
        .settle();
        assert_eq!(
            config.signing_key().unwrap().unwrap().id.as_deref(),
            Some("k1")
        );
        assert!(!config.print().contains("hunter2") && !format!("{config:?}").contains("hunter2"));
        std::fs::write(&file, " \n").unwrap();
        assert!(config.signing_key().unwrap_err().contains("is empty"));
    }

    #[test]
    fn a_secret_that_could_be_guessed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        let config = options(&format!(
            "form_secret_file = {:?}",
            file.display().to_string()
        ))
        .settle();
        assert!(config.form_secret().unwrap_err().contains("cannot read"));
        std::fs::write(&file, "short\n").unwrap();
        assert!(config.form_secret().unwrap_err().contains("guessed"));
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        assert_eq!(
            config.form_secret().unwrap().as_deref(),
            Some("0123456789abcdef")
        );
        assert_eq!(options("").settle().form_secret(), Ok(None));
    }

    #[test]
    fn the_printed_configuration_hides_the_password_and_reads_back() {
        let config = options(
            "database_url = 'postgres://app:s3cret@db/app'\nclock = '2026-11-15T12:00:00Z'\n\
             public_host = ['ops.example.com', 'ops.internal']",
        )
        .settle();
        let printed = config.print();
        assert!(!printed.contains("s3cret"), "{printed}");
        assert!(printed.contains("postgres://app:***@db/app"), "{printed}");
        let again: Options = toml::from_str(&printed).unwrap();
        assert_eq!(again.settle().print(), printed);
    }
}
