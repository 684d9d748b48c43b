//! The log. It goes to standard error, so that standard output stays for what was asked for.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::{
    filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::CliError;
use crate::config::{Config, LogFormat};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

pub fn start(config: &Config) -> Result<(), CliError> {
    let filter = filter(&config.log).map_err(CliError::Usage)?;
    // Colours are for people: a file or a pipe keeps the escapes.
    let coloured = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        .with_ansi(coloured);
    let log = tracing_subscriber::registry().with(filter);
    match config.log_format {
        LogFormat::Text => log.with(lines).init(),
        // The request's span is the only one, and named as the current one already.
        LogFormat::Json => log.with(lines.json().with_span_list(false)).init(),
    }
    Ok(())
}

/// What is logged. A word alone must be a level: taken as the name of a module, as the filter
/// would, a slip such as `inof` switches everything else off.
fn filter(text: &str) -> Result<Targets, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let wrong = parts.iter().find(|part| match part.split_once('=') {
        Some((module, level)) => !is_module(module) || !is_level(level),
        None => !is_level(part),
    });
    match (wrong, parts.join(",").parse()) {
        (None, Ok(filter)) => Ok(filter),
        (wrong, _) => Err(format!(
            "--log {text:?}: {:?} is not a level. Write one of {}, and with commas other levels for parts of the \
             program, such as warn,plimsoll=debug",
            wrong.unwrap_or(&text),
            LEVELS.join(", "),
        )),
    }
}

fn is_level(word: &str) -> bool {
    LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level))
}

fn is_module(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    !word.is_empty() && word.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn a_slip_in_the_filter_silences_nothing() {
        for (text, ours) in [
            ("info", LevelFilter::INFO),
            ("OFF", LevelFilter::OFF),
            ("warn,plimsoll=debug", LevelFilter::DEBUG),
            ("warn, plimsoll=debug", LevelFilter::DEBUG),
            ("warn,plimsoll::web=debug,sqlx=error", LevelFilter::WARN),
        ] {
            let targets = filter(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let level = ours.into_level().unwrap_or(tracing::Level::ERROR);
            let logged = targets.would_enable("plimsoll", &level);
            assert_eq!(logged, ours != LevelFilter::OFF, "{text}");
        }
        for wrong in [
            "inof",
            "plimsoll",
            "",
            "info,",
            "=!=",
            "warn,plimsoll=dbug",
            "plimsoll=",
            "a b=info",
        ] {
            let error = filter(wrong).unwrap_err();
            assert!(
                error.contains("--log") && error.contains("warn,plimsoll=debug"),
                "{wrong}: {error}"
            );
        }
    }
}
