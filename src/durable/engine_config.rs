//! The engine's own configuration, as far as its tables must be read in its light.
//!
//! It comes from `--engine-config` (the engine's `workflows` object or its `v2` part, as JSON),
//! else from the environment names the engine itself reads, else from the engine's defaults.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use super::php;

/// Where a value in force came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    File,
    Environment,
    Default,
}

struct Setting {
    /// Path below `workflows.v2`.
    path: &'static str,
    /// The environment name without its `DW_V2_` prefix.
    env: &'static str,
    form: Form,
}

/// What a setting holds: its default, and what the engine makes of a value it cannot take.
enum Form {
    /// A number of 0 or more.
    Count(i64),
    /// A number of 1 or more.
    Positive(i64),
    /// A number of 1 or more; the default for less.
    PositiveOr(i64),
    /// 0 to 100.
    Percent(i64),
    Switch(bool),
    /// One of these words as it is written here, the first by default.
    Word(&'static [&'static str]),
    /// The same, but the engine goes by them in any case of letters.
    Mode(&'static [&'static str]),
    /// Any text, or a list.
    Free,
}

macro_rules! settings {
    ($($path:literal $env:literal $form:expr;)+) => {
        const SETTINGS: &[Setting] = &[$(Setting { path: $path, env: $env, form: $form },)+];
    };
}

settings! {
    "structural_limits.pending_activity_count" "LIMIT_PENDING_ACTIVITIES" Form::Count(2000);
    "structural_limits.pending_child_count" "LIMIT_PENDING_CHILDREN" Form::Count(1000);
    "structural_limits.pending_timer_count" "LIMIT_PENDING_TIMERS" Form::Count(2000);
    "structural_limits.pending_signal_count" "LIMIT_PENDING_SIGNALS" Form::Count(5000);
    "structural_limits.pending_update_count" "LIMIT_PENDING_UPDATES" Form::Count(500);
    "structural_limits.command_batch_size" "LIMIT_COMMAND_BATCH_SIZE" Form::Count(1000);
    "structural_limits.payload_size_bytes" "LIMIT_PAYLOAD_SIZE_BYTES" Form::Count(2_097_152);
    "structural_limits.memo_size_bytes" "LIMIT_MEMO_SIZE_BYTES" Form::Count(262_144);
    "structural_limits.search_attribute_size_bytes" "LIMIT_SEARCH_ATTRIBUTE_SIZE_BYTES" Form::Count(40_960);
    "structural_limits.history_transaction_size" "LIMIT_HISTORY_TRANSACTION_SIZE" Form::Count(5000);
    "structural_limits.warning_threshold_percent" "LIMIT_WARNING_THRESHOLD_PERCENT" Form::Percent(80);
    "task_repair.redispatch_after_seconds" "TASK_REPAIR_REDISPATCH_AFTER_SECONDS" Form::Positive(3);
    "task_repair.loop_throttle_seconds" "TASK_REPAIR_LOOP_THROTTLE_SECONDS" Form::Positive(5);
    "task_repair.scan_limit" "TASK_REPAIR_SCAN_LIMIT" Form::Positive(25);
    "task_repair.failure_backoff_max_seconds" "TASK_REPAIR_FAILURE_BACKOFF_MAX_SECONDS" Form::Positive(60);
    "history_budget.continue_as_new_event_threshold" "CONTINUE_AS_NEW_EVENT_THRESHOLD" Form::Count(10_000);
    "history_budget.continue_as_new_size_bytes_threshold" "CONTINUE_AS_NEW_SIZE_BYTES_THRESHOLD" Form::Count(5_242_880);
    "history_budget.continue_as_new_fan_out_threshold" "CONTINUE_AS_NEW_FAN_OUT_THRESHOLD" Form::Count(200);
    "history_budget.event_warning_threshold" "HISTORY_EVENT_WARNING_THRESHOLD" Form::Count(8000);
    "history_budget.size_bytes_warning_threshold" "HISTORY_SIZE_BYTES_WARNING_THRESHOLD" Form::Count(4_194_304);
    "history_budget.fan_out_warning_threshold" "HISTORY_FAN_OUT_WARNING_THRESHOLD" Form::Count(160);
    "compatibility.current" "CURRENT_COMPATIBILITY" Form::Free;
    "compatibility.supported" "SUPPORTED_COMPATIBILITIES" Form::Free;
    "compatibility.namespace" "COMPATIBILITY_NAMESPACE" Form::Free;
    "compatibility.heartbeat_ttl_seconds" "COMPATIBILITY_HEARTBEAT_TTL" Form::Positive(30);
    "compatibility.disable_heartbeat_table" "COMPATIBILITY_DISABLE_HEARTBEAT_TABLE" Form::Switch(false);
    "namespace" "NAMESPACE" Form::Free;
    "task_dispatch_mode" "TASK_DISPATCH_MODE" Form::Word(&["queue", "poll"]);
    "workflow_task_lease_seconds" "WORKFLOW_TASK_LEASE_SECONDS" Form::PositiveOr(300);
    "fleet.validation_mode" "FLEET_VALIDATION_MODE" Form::Mode(&["warn", "fail"]);
    "update_wait.completion_timeout_seconds" "UPDATE_WAIT_COMPLETION_TIMEOUT_SECONDS" Form::Positive(10);
    "update_wait.poll_interval_milliseconds" "UPDATE_WAIT_POLL_INTERVAL_MS" Form::Positive(50);
    "matching_role.queue_wake_enabled" "MATCHING_ROLE_QUEUE_WAKE" Form::Switch(true);
    "sticky_execution.enabled" "STICKY_EXECUTION_ENABLED" Form::Switch(true);
    "sticky_execution.ttl_seconds" "STICKY_EXECUTION_TTL_SECONDS" Form::Positive(300);
    "long_poll.multi_node" "MULTI_NODE" Form::Switch(false);
}

/// The one setting younger than the engine's new names: it has no old one.
const NO_OLD_NAME: &str = "WORKFLOW_TASK_LEASE_SECONDS";

/// A value as the engine's `config()` has it.
#[derive(Clone, Debug)]
struct InForce {
    value: Value,
    /// The same before the engine's casts.
    given: Value,
    source: Source,
}

/// The values in force, each with its source.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    values: BTreeMap<&'static str, InForce>,
    exception_types: BTreeMap<String, String>,
    exception_class_aliases: BTreeMap<String, String>,
    serializer: Value,
    host: Host,
    server: Server,
}

/// What the engine's standalone server is told about its workers.
#[derive(Clone, Debug)]
struct Server {
    worker_stale_after_seconds: Option<i64>,
    worker_poll_timeout: i64,
    failure_types: i64,
}

/// The application around the engine, as far as the file tells: `queue`, `cache` and `database`
/// beside `workflows`, in Laravel's own form. What is not told is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    pub queue: Option<Backend>,
    pub cache: Option<Backend>,
    pub database: Option<Backend>,
}

/// One of the application's backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The connection or store chosen by default.
    pub name: String,
    /// None where the application does not say.
    pub driver: Option<String>,
    /// Whether jobs wait for the transaction's end, where that is said.
    pub after_commit: Option<bool>,
}

impl Backend {
    fn read(document: &Value, part: &str, list: &str) -> Option<Self> {
        let part = document.get(part)?;
        let name = part.get("default")?.as_str()?.to_owned();
        let entry = part.get(list).and_then(|list| list.get(&name));
        let text = |key| {
            entry
                .and_then(|entry| entry.get(key))
                .and_then(Value::as_str)
        };
        Some(Self {
            driver: text("driver").map(str::to_owned),
            after_commit: entry
                .and_then(|entry| entry.get("after_commit"))
                .and_then(Value::as_bool),
            name,
        })
    }
}

/// A value that was given and could not be taken as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Nonsense {
    pub path: &'static str,
    pub given: Value,
    /// What holds instead, as in the engine.
    pub used: Value,
}

impl EngineConfig {
    /// Reads the file if one is given; the message names it and what is wrong.
    pub fn load(file: Option<&Path>) -> Result<Self, String> {
        let document = match file {
            None => None,
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    format!(
                        "cannot read the engine configuration {}: {error}",
                        path.display()
                    )
                })?;
                let value: Value = serde_json::from_str(&text).map_err(|error| {
                    format!(
                        "the engine configuration {} is not JSON: {error}",
                        path.display()
                    )
                })?;
                if !value.is_object() {
                    return Err(format!(
                        "the engine configuration {} must be a JSON object",
                        path.display()
                    ));
                }
                if !says_something(&value) {
                    return Err(format!(
                        "the engine configuration {} has no setting of the engine in it; write the \
                         engine's `workflows` object or its `v2` part as JSON, such as \
                         {{\"v2\": {{\"task_repair\": {{\"scan_limit\": 25}}}}}}",
                        path.display()
                    ));
                }
                Some(value)
            }
        };
        Ok(Self::from(document.as_ref(), |name| {
            std::env::var(name).ok()
        }))
    }

    /// The engine's defaults.
    pub fn defaults() -> Self {
        Self::from(None, |_| None)
    }

    fn from(document: Option<&Value>, env: impl Fn(&str) -> Option<String>) -> Self {
        let part = |document: &'_ Value, name: &str| -> Option<Value> {
            document.get(name).filter(|part| part.is_object()).cloned()
        };
        let whole = document;
        let workflows =
            whole.map(|whole| part(whole, "workflows").unwrap_or_else(|| whole.clone()));
        let v2 = workflows
            .as_ref()
            .map(|workflows| part(workflows, "v2").unwrap_or_else(|| workflows.clone()));
        let v2 = v2.as_ref();
        let in_force = |setting: &Setting| {
            if let Some(value) = v2.and_then(|v2| lookup(v2, setting.path)) {
                return InForce {
                    value: value.clone(),
                    given: value.clone(),
                    source: Source::File,
                };
            }
            let read =
                |prefix| env(&format!("{prefix}{}", setting.env)).map(|text| php::env(&text));
            // A null under the new name is as good as none; under the last name it is a null.
            let old = || read("WORKFLOW_V2_").filter(|_| setting.env != NO_OLD_NAME);
            let new = read("DW_V2_");
            let found = match &new {
                Some(value) if !value.is_null() || setting.env == NO_OLD_NAME => new,
                _ => old(),
            };
            match found {
                Some(given) => InForce {
                    value: setting.form.cast(given.clone()),
                    given,
                    source: Source::Environment,
                },
                None => InForce {
                    value: setting.form.default(),
                    given: setting.form.default(),
                    source: Source::Default,
                },
            }
        };
        let of_server = |name: &str| {
            ["DW_", "WORKFLOW_SERVER_"]
                .iter()
                .filter_map(|prefix| env(&format!("{prefix}{name}")))
                .map(|text| php::env(&text))
                .find(|value| !value.is_null())
                .map(|value| php::int(&value))
        };
        Self {
            server: Server {
                worker_stale_after_seconds: of_server("WORKER_STALE_AFTER_SECONDS"),
                worker_poll_timeout: of_server("WORKER_POLL_TIMEOUT").unwrap_or(30),
                failure_types: of_server("METRICS_WORKFLOW_TASK_FAILURE_TYPE_LIMIT").unwrap_or(20),
            },
            values: SETTINGS
                .iter()
                .map(|setting| (setting.path, in_force(setting)))
                .collect(),
            exception_types: class_map(v2, "types.exceptions"),
            exception_class_aliases: class_map(v2, "types.exception_class_aliases"),
            serializer: workflows
                .as_ref()
                .and_then(|workflows| workflows.get("serializer").cloned())
                .or_else(|| {
                    env("DW_SERIALIZER")
                        .or_else(|| env("WORKFLOW_SERIALIZER"))
                        .map(Value::from)
                })
                .unwrap_or_else(|| "avro".into()),
            host: whole.map_or_else(Host::default, |whole| Host {
                queue: Backend::read(whole, "queue", "connections"),
                cache: Backend::read(whole, "cache", "stores"),
                database: Backend::read(whole, "database", "connections"),
            }),
        }
    }

    /// The codec new payloads are written in, as configured.
    pub fn serializer(&self) -> Option<&str> {
        self.serializer
            .as_str()
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }

    /// What is known of the application around the engine.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Seconds after which a registered poller of a queue counts as gone.
    pub fn poller_stale_after(&self) -> i64 {
        let Server {
            worker_stale_after_seconds: given,
            worker_poll_timeout: poll,
            ..
        } = self.server;
        given.map_or_else(|| poll.saturating_mul(2).max(60), |given| given.max(1))
    }

    /// Seconds after which Waterline calls a registration stale.
    pub fn registration_stale_after(&self) -> i64 {
        let given = self.server.worker_stale_after_seconds;
        given.map_or(300, |given| given.max(1))
    }

    /// Workflow types whose failing tasks are told by name.
    pub fn failure_types(&self) -> usize {
        usize::try_from(self.server.failure_types.clamp(1, 100)).unwrap_or(20)
    }

    /// The settings that do not hold as they were given, and what holds in their place.
    pub fn nonsense(&self) -> Vec<Nonsense> {
        let told = |setting: &Setting| {
            let InForce { given, source, .. } = &self.values[setting.path];
            if *source == Source::Default || given.is_null() {
                return None;
            }
            let (sense, used) = match &setting.form {
                Form::Switch(_) => {
                    let used = self.flag(setting.path);
                    (is_switch(given), used.into())
                }
                Form::Word(words) => {
                    let found = words
                        .iter()
                        .find(|word| self.text(setting.path) == Some(word));
                    let used = found.unwrap_or(&words[0]);
                    (found.is_some(), (*used).into())
                }
                Form::Mode(words) => {
                    let word = self.text(setting.path).map(str::trim);
                    let known = |word: &str| words.iter().any(|w| w.eq_ignore_ascii_case(word));
                    let used = word.filter(|word| known(word)).unwrap_or(words[0]);
                    (word.is_some_and(known), used.into())
                }
                Form::Free => (true, Value::Null),
                _ => {
                    let used = self.int(setting.path).min(self.ceiling(setting.path));
                    let whole = php::number(given) == Some(used) && !has_fraction(given);
                    (whole, used.into())
                }
            };
            (!sense).then(|| Nonsense {
                path: setting.path,
                given: given.clone(),
                used,
            })
        };
        SETTINGS.iter().filter_map(told).collect()
    }

    /// The engine warns of a history no later than it recommends to continue as new.
    fn ceiling(&self, path: &str) -> i64 {
        let hard = match path {
            "history_budget.event_warning_threshold" => {
                "history_budget.continue_as_new_event_threshold"
            }
            "history_budget.size_bytes_warning_threshold" => {
                "history_budget.continue_as_new_size_bytes_threshold"
            }
            "history_budget.fan_out_warning_threshold" => {
                "history_budget.continue_as_new_fan_out_threshold"
            }
            _ => return i64::MAX,
        };
        self.int(hard)
    }

    /// The class a durable exception type stands for (`types.exceptions`).
    pub fn exception_of_type(&self, exception_type: &str) -> Option<&str> {
        self.exception_types.get(exception_type).map(String::as_str)
    }

    /// The class that took the place of a recorded one (`types.exception_class_aliases`).
    pub fn exception_alias(&self, class: &str) -> Option<&str> {
        self.exception_class_aliases.get(class).map(String::as_str)
    }

    /// Every value in force, by its path below `workflows.v2`.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Value, Source)> {
        self.values
            .iter()
            .map(|(path, InForce { value, source, .. })| (*path, value, *source))
    }

    /// A whole number within the engine's bounds; a value that is none counts as the default.
    pub fn int(&self, path: &'static str) -> i64 {
        let form = SETTINGS
            .iter()
            .find(|setting| setting.path == path)
            .map(|setting| &setting.form);
        let given = php::number(&self.values[path].value);
        match form {
            Some(Form::Count(n)) => given.unwrap_or(*n).max(0),
            Some(Form::Positive(n)) => given.unwrap_or(*n).max(1),
            Some(Form::PositiveOr(n)) => given.filter(|n| *n >= 1).unwrap_or(*n),
            Some(Form::Percent(n)) => given.unwrap_or(*n).clamp(0, 100),
            _ => unreachable!("{path} is not a numeric engine setting"),
        }
    }

    pub fn text(&self, path: &'static str) -> Option<&str> {
        let text = self.values[path].value.as_str();
        text.filter(|text| !text.is_empty())
    }

    /// The value as it was given, for settings of more than one form.
    pub fn value(&self, path: &'static str) -> &Value {
        &self.values[path].value
    }

    pub fn flag(&self, path: &'static str) -> bool {
        php::truth(&self.values[path].value)
    }
}

#[cfg(test)]
impl EngineConfig {
    /// As a document says it, whatever the environment.
    pub fn of(document: &Value) -> Self {
        Self::from(Some(document), |_| None)
    }
}

impl Form {
    fn default(&self) -> Value {
        match self {
            Self::Count(n) | Self::Positive(n) | Self::PositiveOr(n) | Self::Percent(n) => {
                (*n).into()
            }
            Self::Switch(on) => (*on).into(),
            Self::Word(words) | Self::Mode(words) => words[0].into(),
            Self::Free => Value::Null,
        }
    }

    /// What the engine's configuration file makes of an environment value.
    fn cast(&self, value: Value) -> Value {
        match self {
            Self::Count(_) | Self::Positive(_) | Self::PositiveOr(_) | Self::Percent(_) => {
                php::int(&value).into()
            }
            Self::Switch(_) => php::truth(&value).into(),
            Self::Word(_) | Self::Mode(_) | Self::Free => value,
        }
    }
}

/// Whether a number has a part that is cut off.
fn has_fraction(given: &Value) -> bool {
    let number = match given {
        Value::String(text) => text.trim().parse().ok(),
        given => given.as_f64(),
    };
    number.is_some_and(|number: f64| number.fract() != 0.0)
}

/// Whether a value says yes or no as PHP takes it: to PHP `off` is a yes.
fn is_switch(given: &Value) -> bool {
    match given {
        Value::Bool(_) => true,
        Value::Number(n) => matches!(n.as_i64(), Some(0 | 1)),
        Value::String(text) => matches!(text.as_str(), "" | "0" | "1" | "on" | "yes" | "true"),
        _ => false,
    }
}

/// Whether a document holds anything that is read here, or the object it would be read from.
fn says_something(document: &Value) -> bool {
    const AROUND: [&str; 7] = [
        "workflows",
        "v2",
        "serializer",
        "types",
        "queue",
        "cache",
        "database",
    ];
    let first = |path: &'static str| path.split('.').next().unwrap_or(path);
    SETTINGS
        .iter()
        .map(|setting| first(setting.path))
        .chain(AROUND)
        .any(|name| document.get(name).is_some())
}

/// Names to classes, names taken whole: a durable type may hold dots.
fn class_map(v2: Option<&Value>, path: &str) -> BTreeMap<String, String> {
    v2.and_then(|v2| lookup(v2, path))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, class)| Some((name.clone(), class.as_str()?.to_owned())))
        .collect()
}

fn lookup<'v>(v2: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(v2, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const REDISPATCH: &str = "task_repair.redispatch_after_seconds";

    #[test]
    fn the_whole_object_and_its_v2_part_mean_the_same() {
        let v2 = json!({"task_repair": {"redispatch_after_seconds": 9}});
        for document in [json!({"v2": v2, "serializer": "avro"}), v2.clone()] {
            let config = EngineConfig::from(Some(&document), |_| None);
            assert_eq!(config.int(REDISPATCH), 9);
            assert_eq!(config.values[REDISPATCH].source, Source::File);
        }
    }

    #[test]
    fn a_document_that_says_nothing_is_told_from_one_that_does() {
        for (document, says) in [
            (json!({"foo": 1}), false),
            (json!({}), false),
            (json!({"redispatch_after_seconds": 9}), false),
            (json!({"workflows": {"v2": {}}}), true),
            (json!({"v2": {}}), true),
            (json!({"task_repair": {}}), true),
            (json!({"namespace": null}), true),
            (json!({"queue": {"default": "redis"}}), true),
        ] {
            assert_eq!(says_something(&document), says, "{document}");
        }
    }

    #[test]
    fn exception_names_are_taken_whole() {
        let document = json!({"types": {
            "exceptions": {"orders.rejected": "App\\OrderRejected", "broken": 7},
            "exception_class_aliases": {"App\\Old": "App\\New"},
        }});
        let config = EngineConfig::from(Some(&document), |_| None);
        assert_eq!(
            config.exception_of_type("orders.rejected"),
            Some("App\\OrderRejected")
        );
        assert_eq!(config.exception_of_type("broken"), None);
        assert_eq!(config.exception_alias("App\\Old"), Some("App\\New"));
    }

    #[test]
    fn the_engines_environment_names_are_read_old_ones_last() {
        let env = |name: &str| match name {
            "DW_V2_TASK_REPAIR_REDISPATCH_AFTER_SECONDS" => Some("7".to_owned()),
            "WORKFLOW_V2_TASK_REPAIR_REDISPATCH_AFTER_SECONDS" => Some("8".to_owned()),
            "WORKFLOW_V2_TASK_REPAIR_SCAN_LIMIT" => Some("30".to_owned()),
            "WORKFLOW_V2_WORKFLOW_TASK_LEASE_SECONDS" => Some("45".to_owned()),
            _ => None,
        };
        let config = EngineConfig::from(None, env);
        assert_eq!(config.int(REDISPATCH), 7);
        assert_eq!(config.int("task_repair.scan_limit"), 30);
        assert_eq!(config.int("history_budget.event_warning_threshold"), 8000);
        let lease = "workflow_task_lease_seconds";
        assert_eq!(config.int(lease), 300, "which has no old name");
    }

    /// The value of a variable, what holds, and whether that is told.
    #[test]
    fn the_environment_is_taken_as_the_engine_takes_it() {
        let table = [
            ("TASK_REPAIR_SCAN_LIMIT", "2k", json!(2), true),
            ("TASK_REPAIR_SCAN_LIMIT", "many", json!(1), true),
            ("TASK_REPAIR_SCAN_LIMIT", "-4", json!(1), true),
            ("TASK_REPAIR_SCAN_LIMIT", "'30'", json!(30), false),
            ("TASK_REPAIR_SCAN_LIMIT", "null", json!(25), false),
            ("LIMIT_PENDING_TIMERS", "0", json!(0), false),
            ("LIMIT_PENDING_TIMERS", "none", json!(0), true),
            ("LIMIT_PENDING_TIMERS", "-1", json!(0), true),
            ("LIMIT_WARNING_THRESHOLD_PERCENT", "180", json!(100), true),
            ("WORKFLOW_TASK_LEASE_SECONDS", "0", json!(300), true),
            ("WORKFLOW_TASK_LEASE_SECONDS", "(null)", json!(300), false),
            ("WORKFLOW_TASK_LEASE_SECONDS", "45", json!(45), false),
            ("STICKY_EXECUTION_ENABLED", "(false)", json!(false), false),
            ("STICKY_EXECUTION_ENABLED", "empty", json!(false), false),
            ("STICKY_EXECUTION_ENABLED", "0", json!(false), false),
            ("STICKY_EXECUTION_ENABLED", "off", json!(true), true),
            ("STICKY_EXECUTION_ENABLED", "maybe", json!(true), true),
            ("FLEET_VALIDATION_MODE", " Fail ", json!("fail"), false),
            ("FLEET_VALIDATION_MODE", "strict", json!("warn"), true),
            ("TASK_DISPATCH_MODE", "poll", json!("poll"), false),
            ("TASK_DISPATCH_MODE", "push", json!("queue"), true),
            ("TASK_DISPATCH_MODE", "true", json!("queue"), true),
            // The engine compares this one to the letter.
            ("TASK_DISPATCH_MODE", "POLL", json!("queue"), true),
            ("LIMIT_PENDING_TIMERS", "12.9", json!(12), true),
            ("LIMIT_PENDING_TIMERS", "12.0", json!(12), false),
        ];
        for (name, text, want, told) in table {
            let asked = format!("DW_V2_{name}");
            let config = EngineConfig::from(None, |var| (var == asked).then(|| text.to_owned()));
            let setting = SETTINGS.iter().find(|setting| setting.env == name).unwrap();
            let holds: Value = match setting.form {
                Form::Switch(_) => config.flag(setting.path).into(),
                Form::Word(words) => {
                    let given = config.text(setting.path).unwrap_or_default();
                    (*words
                        .iter()
                        .find(|word| **word == given)
                        .unwrap_or(&words[0]))
                    .into()
                }
                Form::Mode(words) => {
                    let given = config.text(setting.path).unwrap_or_default().trim();
                    let known = words.iter().find(|word| word.eq_ignore_ascii_case(given));
                    (*known.unwrap_or(&words[0])).into()
                }
                _ => config.int(setting.path).into(),
            };
            assert_eq!(holds, want, "{name}={text}");
            let nonsense = config.nonsense();
            assert_eq!(
                nonsense.len(),
                usize::from(told),
                "{name}={text}: {nonsense:?}"
            );
            assert!(
                nonsense.iter().all(|found| found.used == want),
                "{nonsense:?}"
            );
        }
    }

    #[test]
    fn in_a_file_what_is_no_number_is_the_default() {
        let document =
            json!({"task_repair": {"scan_limit": "many", "loop_throttle_seconds": "2k"}});
        let config = EngineConfig::of(&document);
        assert_eq!(config.int("task_repair.scan_limit"), 25);
        assert_eq!(config.int("task_repair.loop_throttle_seconds"), 5);
        assert_eq!(config.nonsense().len(), 2);
    }
}
