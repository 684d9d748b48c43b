//! The settings in force, as the file would have them.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{Config, LogFormat, Options, RepairMode};
use crate::{clock::Clock, db};

/// What each setting is when nobody sets it, by its name in the file, as one would write it for a
/// flag; without those that are then not set at all. The help tells it from here, and the tests
/// hold README and contrib/ to it.
pub fn defaults() -> BTreeMap<String, String> {
    let printed = Options::default().settle().print();
    let table = printed.parse().expect("what is printed reads back");
    written(table)
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// The settings of a file by name, each as one would write it for a flag.
pub(super) fn written(table: toml::Table) -> impl Iterator<Item = (String, String)> {
    table.into_iter().map(|(name, value)| match value {
        toml::Value::String(text) => (name, text),
        other => (name, other.to_string()),
    })
}

impl Config {
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
