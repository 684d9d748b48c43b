//! The engine's own configuration, as far as its tables must be read in its light.
//!
//! It comes from `--engine-config` (the engine's `workflows` object or its `v2` part, as JSON),
//! else from the environment names the engine itself reads, else from the engine's defaults.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

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
    default: Default,
}

enum Default {
    Int(i64),
    Bool(bool),
    Text(&'static str),
    Null,
}

macro_rules! settings {
    ($($path:literal $env:literal $default:expr;)+) => {
        const SETTINGS: &[Setting] = &[$(Setting { path: $path, env: $env, default: $default },)+];
    };
}

settings! {
    "structural_limits.pending_activity_count" "LIMIT_PENDING_ACTIVITIES" Default::Int(2000);
    "structural_limits.pending_child_count" "LIMIT_PENDING_CHILDREN" Default::Int(1000);
    "structural_limits.pending_timer_count" "LIMIT_PENDING_TIMERS" Default::Int(2000);
    "structural_limits.pending_signal_count" "LIMIT_PENDING_SIGNALS" Default::Int(5000);
    "structural_limits.pending_update_count" "LIMIT_PENDING_UPDATES" Default::Int(500);
    "structural_limits.command_batch_size" "LIMIT_COMMAND_BATCH_SIZE" Default::Int(1000);
    "structural_limits.payload_size_bytes" "LIMIT_PAYLOAD_SIZE_BYTES" Default::Int(2_097_152);
    "structural_limits.memo_size_bytes" "LIMIT_MEMO_SIZE_BYTES" Default::Int(262_144);
    "structural_limits.search_attribute_size_bytes" "LIMIT_SEARCH_ATTRIBUTE_SIZE_BYTES" Default::Int(40_960);
    "structural_limits.history_transaction_size" "LIMIT_HISTORY_TRANSACTION_SIZE" Default::Int(5000);
    "structural_limits.warning_threshold_percent" "LIMIT_WARNING_THRESHOLD_PERCENT" Default::Int(80);
    "task_repair.redispatch_after_seconds" "TASK_REPAIR_REDISPATCH_AFTER_SECONDS" Default::Int(3);
    "task_repair.loop_throttle_seconds" "TASK_REPAIR_LOOP_THROTTLE_SECONDS" Default::Int(5);
    "task_repair.scan_limit" "TASK_REPAIR_SCAN_LIMIT" Default::Int(25);
    "task_repair.failure_backoff_max_seconds" "TASK_REPAIR_FAILURE_BACKOFF_MAX_SECONDS" Default::Int(60);
    "history_budget.continue_as_new_event_threshold" "CONTINUE_AS_NEW_EVENT_THRESHOLD" Default::Int(10_000);
    "history_budget.continue_as_new_size_bytes_threshold" "CONTINUE_AS_NEW_SIZE_BYTES_THRESHOLD" Default::Int(5_242_880);
    "history_budget.continue_as_new_fan_out_threshold" "CONTINUE_AS_NEW_FAN_OUT_THRESHOLD" Default::Int(200);
    "history_budget.event_warning_threshold" "HISTORY_EVENT_WARNING_THRESHOLD" Default::Int(8000);
    "history_budget.size_bytes_warning_threshold" "HISTORY_SIZE_BYTES_WARNING_THRESHOLD" Default::Int(4_194_304);
    "history_budget.fan_out_warning_threshold" "HISTORY_FAN_OUT_WARNING_THRESHOLD" Default::Int(160);
    "compatibility.current" "CURRENT_COMPATIBILITY" Default::Null;
    "compatibility.supported" "SUPPORTED_COMPATIBILITIES" Default::Null;
    "compatibility.namespace" "COMPATIBILITY_NAMESPACE" Default::Null;
    "compatibility.heartbeat_ttl_seconds" "COMPATIBILITY_HEARTBEAT_TTL" Default::Int(30);
    "compatibility.disable_heartbeat_table" "COMPATIBILITY_DISABLE_HEARTBEAT_TABLE" Default::Bool(false);
    "namespace" "NAMESPACE" Default::Null;
    "task_dispatch_mode" "TASK_DISPATCH_MODE" Default::Text("queue");
    "workflow_task_lease_seconds" "WORKFLOW_TASK_LEASE_SECONDS" Default::Int(300);
    "fleet.validation_mode" "FLEET_VALIDATION_MODE" Default::Text("warn");
    "update_wait.completion_timeout_seconds" "UPDATE_WAIT_COMPLETION_TIMEOUT_SECONDS" Default::Int(10);
    "update_wait.poll_interval_milliseconds" "UPDATE_WAIT_POLL_INTERVAL_MS" Default::Int(50);
    "matching_role.queue_wake_enabled" "MATCHING_ROLE_QUEUE_WAKE" Default::Bool(true);
    "sticky_execution.enabled" "STICKY_EXECUTION_ENABLED" Default::Bool(true);
    "sticky_execution.ttl_seconds" "STICKY_EXECUTION_TTL_SECONDS" Default::Int(300);
    "long_poll.multi_node" "MULTI_NODE" Default::Bool(false);
}

/// The values in force, each with its source.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    values: BTreeMap<&'static str, (Value, Source)>,
    exception_types: BTreeMap<String, String>,
    exception_class_aliases: BTreeMap<String, String>,
    serializer: Value,
    host: Host,
}

/// The application around the engine, as far as the file tells: `queue`, `cache` and `database`
/// beside `workflows`, in Laravel's own form. What is not told is not known.
#[derive(Clone, Debug, std::default::Default, PartialEq)]
pub struct Host {
    pub queue: Option<Backend>,
    pub cache: Option<Backend>,
    /// The name of the database connection.
    pub connection: Option<String>,
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

/// A value that was given and could not be taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Nonsense {
    pub path: &'static str,
    pub given: Value,
    /// What holds instead: the engine's default.
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
                return (value.clone(), Source::File);
            }
            let name = |prefix| format!("{prefix}{}", setting.env);
            if let Some(text) = env(&name("DW_V2_")).or_else(|| env(&name("WORKFLOW_V2_"))) {
                return (parse(&text, &setting.default), Source::Environment);
            }
            (setting.default.value(), Source::Default)
        };
        Self {
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
                connection: whole
                    .get("database")
                    .and_then(|database| database.get("default"))
                    .and_then(Value::as_str)
                    .map(str::to_owned),
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

    /// A whole number, not below this.
    pub fn at_least(&self, path: &'static str, least: i64) -> i64 {
        self.int(path).max(least)
    }

    /// The numbers that are none, and what is used in their place.
    pub fn nonsense(&self) -> Vec<Nonsense> {
        SETTINGS
            .iter()
            .filter(|setting| matches!(setting.default, Default::Int(_)))
            .filter_map(|setting| {
                let given = &self.values.get(setting.path)?.0;
                (number(given).is_none() && !given.is_null()).then(|| Nonsense {
                    path: setting.path,
                    given: given.clone(),
                    used: setting.default.value(),
                })
            })
            .collect()
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
            .map(|(path, (value, source))| (*path, value, *source))
    }

    /// A whole number; a value that is none counts as the engine's default.
    pub fn int(&self, path: &'static str) -> i64 {
        let default = || match SETTINGS
            .iter()
            .find(|setting| setting.path == path)
            .map(|s| &s.default)
        {
            Some(Default::Int(n)) => *n,
            _ => unreachable!("{path} is not a numeric engine setting"),
        };
        number(&self.values[path].0).unwrap_or_else(default)
    }

    pub fn text(&self, path: &'static str) -> Option<&str> {
        self.values[path].0.as_str().filter(|text| !text.is_empty())
    }

    /// The value as it was given, for settings of more than one form.
    pub fn value(&self, path: &'static str) -> &Value {
        &self.values[path].0
    }

    pub fn flag(&self, path: &'static str) -> bool {
        match &self.values[path].0 {
            Value::Bool(on) => *on,
            Value::Number(n) => n.as_i64() != Some(0),
            Value::String(text) => !matches!(text.as_str(), "" | "0"),
            _ => false,
        }
    }
}

#[cfg(test)]
impl EngineConfig {
    /// As a document says it, whatever the environment.
    pub fn of(document: &Value) -> Self {
        Self::from(Some(document), |_| None)
    }
}

/// A number as PHP would take it: a fraction is cut off.
fn number(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "what PHP does too")]
    let cut = |n: f64| n.is_finite().then_some(n.trunc() as i64);
    match value {
        Value::Number(n) => n.as_i64().or_else(|| n.as_f64().and_then(cut)),
        Value::String(text) => {
            let text = text.trim();
            text.parse()
                .ok()
                .or_else(|| text.parse().ok().and_then(cut))
        }
        _ => None,
    }
}

impl Default {
    fn value(&self) -> Value {
        match self {
            Self::Int(n) => (*n).into(),
            Self::Bool(b) => (*b).into(),
            Self::Text(text) => (*text).into(),
            Self::Null => Value::Null,
        }
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

fn parse(text: &str, like: &Default) -> Value {
    match like {
        Default::Int(_) => text
            .trim()
            .parse::<i64>()
            .map_or_else(|_| text.into(), Into::into),
        Default::Bool(_) => matches!(
            text.to_ascii_lowercase().as_str(),
            "1" | "true" | "yes" | "on"
        )
        .into(),
        Default::Text(_) | Default::Null => text.into(),
    }
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
            assert_eq!(config.values[REDISPATCH].1, Source::File);
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
            "WORKFLOW_V2_TASK_REPAIR_SCAN_LIMIT" => Some("many".to_owned()),
            _ => None,
        };
        let config = EngineConfig::from(None, env);
        assert_eq!(config.int(REDISPATCH), 7);
        assert_eq!(
            config.int("task_repair.scan_limit"),
            25,
            "a value that is no number counts as the default"
        );
        assert_eq!(config.int("history_budget.event_warning_threshold"), 8000);
    }
}
