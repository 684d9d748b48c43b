//! Settings: flags over environment over file over defaults.
//!
//! `options` has what may be set, with its limits; what a setting is when nobody sets it stands in
//! [`Options::settle`] alone.

mod options;
mod print;
pub mod values;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

pub use options::{Dashboard, Database, Judging, Listening, Logging, Options, Repairing, Sealing};
pub use print::defaults;
use values::Seconds;

use crate::{
    clock::Clock,
    db,
    durable::{
        export::{Policy, SigningKey},
        repair::Mode,
    },
    zone::Zone,
};

/// Repairs are rare and short.
const REPAIR_POOL: u32 = 2;

/// Fewest characters of a secret.
const FORM_SECRET: usize = 16;

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
    pub stored_zone: Zone,
    pub display_zone: Zone,
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

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.print())
    }
}

impl Options {
    /// Fills in the defaults.
    pub fn settle(self) -> Config {
        let Self {
            database,
            judging,
            sealing,
            listening,
            dashboard,
            repairing,
            logging,
        } = self;
        let pools = db::Settings::new("");
        let seconds = |given: Option<Seconds>, default: Duration| {
            given.map_or(default, |given| Duration::from_secs(given.get().into()))
        };
        Config {
            database_url: database.database_url,
            listen: listening
                .listen
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7420))),
            insecure_listen: listening.insecure_listen.unwrap_or(false),
            public_host: listening.public_host.unwrap_or_default(),
            base_path: listening.base_path.unwrap_or_else(|| "/waterline".into()),
            table_prefix: database.table_prefix.unwrap_or(pools.prefix),
            stored_zone: database.stored_zone.unwrap_or(pools.zone),
            display_zone: dashboard.display_zone.unwrap_or(Zone::UTC),
            mysql_session_zone: database.mysql_session_zone,
            engine_config: judging.engine_config,
            clock: judging.clock.map_or(Clock::System, Clock::Frozen),
            statement_timeout: seconds(database.statement_timeout, pools.statement_timeout),
            pool_size: dashboard
                .pool_size
                .map_or(pools.pool_size, values::Connections::get),
            signing_key_file: sealing.signing_key_file,
            signing_key: sealing.signing_key,
            signing_key_id: sealing.signing_key_id,
            form_secret_file: dashboard.form_secret_file,
            redaction: sealing.redaction,
            metrics_interval: seconds(dashboard.metrics_interval, Duration::from_secs(5)),
            metrics_namespace: dashboard
                .metrics_namespace
                .map(|namespace| namespace.trim().to_owned())
                .filter(|namespace| !namespace.is_empty()),
            allow_repair: repairing.allow_repair.unwrap_or(false),
            repair_mode: repairing.repair_mode.unwrap_or_default(),
            repair_loop: dashboard.repair_loop.unwrap_or(false),
            log: logging.log.unwrap_or_else(|| "info".into()),
            log_format: logging.log_format.unwrap_or_default(),
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
            return read_key(file, id).map(Some);
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
}

/// The key in a file.
pub fn read_key(path: &Path, id: Option<&str>) -> Result<SigningKey, String> {
    let secret = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the key {}: {error}", path.display()))?;
    SigningKey::new(&secret, id).ok_or_else(|| format!("the key {} is empty", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(toml: &str) -> Options {
        Options::from_text(toml).unwrap_or_else(|wrong| panic!("{}", wrong.message))
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
            let error = Options::from_text(&file).unwrap_err().message;
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

    /// `#name = value` is a setting that is left out; `# …` explains.
    #[test]
    fn the_example_file_has_every_setting_and_its_default() {
        let example = include_str!("../../contrib/plimsoll.toml");
        assert_eq!(
            options(example).settle().print(),
            options("").settle().print()
        );

        let put_in = |line: &str| {
            let left_out = line.strip_prefix('#').filter(|rest| !rest.starts_with(' '));
            format!("{}\n", left_out.unwrap_or(line))
        };
        let whole: String = example.lines().map(put_in).collect();
        let config = options(&whole).settle();
        assert!(config.redaction.is_some(), "{whole}");
        let given: std::collections::BTreeMap<_, _> =
            print::written(whole.parse().unwrap()).collect();
        let command = <Options as clap::Args>::augment_args(clap::Command::new("plimsoll"));
        let defaults = defaults();
        for arg in command.get_arguments() {
            let name = arg.get_id().as_str();
            let value = given
                .get(name)
                .unwrap_or_else(|| panic!("{name} is not in the example"));
            if let Some(default) = defaults.get(name) {
                assert_eq!(value, default, "{name}");
            }
        }
    }

    #[test]
    fn a_limit_holds_on_the_command_line_and_in_the_file() {
        use clap::{Args as _, FromArgMatches as _};

        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plimsoll.toml");
        for (name, most) in [
            ("statement_timeout", 3600),
            ("metrics_interval", 3600),
            ("pool_size", 200),
        ] {
            for (value, holds) in [
                (-1, false),
                (0, false),
                (1, true),
                (most, true),
                (most + 1, false),
            ] {
                let flag = format!("--{}={value}", name.replace('_', "-"));
                let command = Options::augment_args(clap::Command::new("plimsoll"));
                let flags = command.try_get_matches_from(["plimsoll", &flag]);
                let flags = flags.and_then(|matches| Options::from_arg_matches(&matches));
                std::fs::write(&file, format!("\n{name} = {value}")).unwrap();
                let read = Options::from_file(&file);
                assert_eq!(
                    (flags.is_ok(), read.is_ok()),
                    (holds, holds),
                    "{name} = {value}"
                );
                if let (Err(flags), Err(read)) = (flags, read) {
                    let says = format!("{value} is not a whole number from 1 to {most}");
                    assert!(flags.to_string().contains(&says), "{flags}");
                    assert!(read.ends_with(&format!("line 2: {name}: {says}")), "{read}");
                }
            }
        }
    }

    #[test]
    fn a_policy_of_another_shape_is_told_what_it_should_be() {
        for (text, says) in [
            (
                "redaction = 'all'",
                "expected a table [redaction] with its rules",
            ),
            (
                "[redaction]\nrules = ['*']",
                "expected a rule with a category or a path",
            ),
        ] {
            let error = Options::from_text(text).unwrap_err().message;
            assert!(error.contains(says), "{error}");
        }
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
        assert_eq!(options(&printed).settle().print(), printed);
    }
}
