//! What was thrown, and whether the engine could throw it again when it replays.

use serde::Serialize;
use serde_json::Value;

use super::trace::{self, Frame};
use crate::durable::{
    engine_config::EngineConfig,
    payload, php,
    stored::{FailureRecord, payloads::failure::FailureEvent},
};

/// A throwable as the engine normalises it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExceptionPayload {
    #[serde(rename = "__constructor")]
    pub class: Option<String>,
    /// The durable type name, where the application gave its exceptions names.
    #[serde(rename = "type")]
    pub exception_type: Option<String>,
    pub message: Option<String>,
    pub code: i64,
    pub file: Option<String>,
    pub line: Option<i64>,
    pub trace: Vec<Frame>,
    /// What the throwable carried: `{declaring_class, name, value}`.
    pub properties: Vec<Value>,
    /// From remote workers; there, but null, is something else than absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details_payload_codec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_diagnostics: Option<Value>,
    /// What led to it, nearest first; for the page, the engine's JSON has no such key.
    #[serde(skip)]
    pub causes: Vec<Cause>,
}

/// An exception behind another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cause {
    pub class: Option<String>,
    pub message: Option<String>,
    pub file: Option<String>,
    pub line: Option<i64>,
}

/// How deep a chain of causes is followed.
const CAUSES: usize = 16;

impl ExceptionPayload {
    /// As a typed event tells it, the row filling what the event leaves out.
    pub fn of_event(event: &FailureEvent, row: Option<&FailureRecord>) -> Self {
        let stored = opened(event.exception.as_ref());
        let get = |key: &str| stored.as_ref().and_then(|stored| stored.get(key));
        let text = |key: &str| {
            get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let container = |key: &str| {
            get(key)
                .filter(|value| value.is_array() || value.is_object())
                .cloned()
        };
        Self {
            class: text("class")
                .or_else(|| event.exception_class.0.clone())
                .or_else(|| row.map(|row| row.exception_class.clone())),
            exception_type: text("type"),
            message: text("message")
                .or_else(|| event.message.0.clone())
                .or_else(|| row.map(|row| row.message.clone())),
            code: get("code")
                .and_then(Value::as_i64)
                .or_else(|| event.code.strict())
                .unwrap_or(0),
            file: text("file").or_else(|| row.map(|row| row.file.clone())),
            line: get("line")
                .and_then(Value::as_i64)
                .or_else(|| row.and_then(|row| row.line)),
            trace: trace::frames(get("trace")),
            properties: get("properties")
                .and_then(php::items)
                .into_iter()
                .flatten()
                .filter(|property| property.is_object() || property.is_array())
                .cloned()
                .collect(),
            details: get("details").cloned(),
            non_retryable: get("non_retryable").and_then(Value::as_bool),
            details_payload_codec: text("details_payload_codec"),
            diagnostics: container("diagnostics"),
            runtime_diagnostics: container("runtime_diagnostics"),
            causes: causes(stored.as_ref()),
        }
    }

    /// As a row alone tells it.
    pub fn of_row(row: &FailureRecord) -> Self {
        Self {
            class: Some(row.exception_class.clone()),
            message: Some(row.message.clone()),
            file: Some(row.file.clone()),
            line: row.line,
            ..Self::default()
        }
    }
}

/// The stored throwable: an object, or one inside an encoded string of old data.
fn opened(exception: Option<&Value>) -> Option<Value> {
    match exception? {
        Value::String(text) => payload::decode(None, Some(text)).known(),
        other => Some(other.clone()),
    }
    .filter(Value::is_object)
}

fn causes(stored: Option<&Value>) -> Vec<Cause> {
    let behind = |of: &Value| {
        ["previous", "cause"]
            .iter()
            .filter_map(|key| of.get(key))
            .find(|cause| cause.is_object() && !payload::is_hidden(cause))
            .cloned()
    };
    let mut out = Vec::new();
    let mut next = stored.and_then(behind);
    while let Some(cause) = next.filter(|_| out.len() < CAUSES) {
        let text = |key: &str| cause.get(key).and_then(Value::as_str).map(str::to_owned);
        out.push(Cause {
            class: text("class").or_else(|| text("type")),
            message: text("message"),
            file: text("file"),
            line: cause.get("line").and_then(Value::as_i64),
        });
        next = behind(&cause);
    }
    out
}

/// What the engine could make of a recorded class when it replays.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Resolution {
    pub exception_resolved_class: Option<String>,
    pub exception_resolution_source: ResolutionSource,
    pub exception_resolution_error: Option<String>,
    pub exception_replay_blocked: bool,
    /// Rests on our not having the application's code: no reason to alarm anybody.
    #[serde(skip)]
    pub presumed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolutionSource {
    /// By the configured class of its durable type.
    ExceptionType,
    /// By a configured successor of the recorded class.
    ClassAlias,
    RecordedClass,
    #[default]
    Unresolved,
    Misconfigured,
}

impl ResolutionSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExceptionType => "exception_type",
            Self::ClassAlias => "class_alias",
            Self::RecordedClass => "recorded_class",
            Self::Unresolved => "unresolved",
            Self::Misconfigured => "misconfigured",
        }
    }
}

/// The class a failure without any class is restored as.
const RESTORED: &str = r"Workflow\V2\Exceptions\RestoredWorkflowException";

/// Follows the engine's order: durable type, alias, recorded class. A configured class is taken
/// at its word, since only the application can load it.
pub fn resolve(
    config: &EngineConfig,
    class: Option<&str>,
    exception_type: Option<&str>,
) -> Resolution {
    let class = class.unwrap_or(RESTORED);
    let by_type = exception_type
        .filter(|name| !name.is_empty())
        .and_then(|name| Some((name, config.exception_of_type(name)?)));
    let by_alias = config
        .exception_alias(class)
        .filter(|alias| !alias.is_empty())
        .map(|alias| (class, alias));
    let configured = |source, (name, target): (&str, &str)| {
        if is_class_name(target) {
            Resolution {
                exception_resolved_class: Some(target.to_owned()),
                exception_resolution_source: source,
                presumed: !is_loadable(target),
                ..Resolution::default()
            }
        } else {
            Resolution {
                exception_resolution_source: ResolutionSource::Misconfigured,
                exception_resolution_error: Some(format!(
                    "{name} is configured to be restored as \"{target}\", which is no throwable class"
                )),
                exception_replay_blocked: true,
                ..Resolution::default()
            }
        }
    };
    match (by_type, by_alias) {
        (Some(mapped), _) => configured(ResolutionSource::ExceptionType, mapped),
        (None, Some(alias)) => configured(ResolutionSource::ClassAlias, alias),
        (None, None) if is_loadable(class) => Resolution {
            exception_resolved_class: Some(class.to_owned()),
            exception_resolution_source: ResolutionSource::RecordedClass,
            ..Resolution::default()
        },
        (None, None) => Resolution {
            exception_resolution_source: ResolutionSource::Unresolved,
            exception_replay_blocked: true,
            presumed: is_class_name(class),
            ..Resolution::default()
        },
    }
}

fn is_class_name(name: &str) -> bool {
    !name.is_empty()
        && name.trim_start_matches('\\').split('\\').all(|part| {
            part.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_alphanumeric() || c == '_')
        })
}

/// Throwables every process that renders the engine's JSON has: PHP's own and the engine's, and
/// those of Laravel, which it is built on, and of what that needs.
fn is_loadable(class: &str) -> bool {
    let class = class.trim_start_matches('\\');
    let is_of = |package: &&str| {
        let start = class.get(..package.len());
        class.ends_with("Exception") && start.is_some_and(|of| of.eq_ignore_ascii_case(package))
    };
    BUILT_IN
        .iter()
        .chain(ENGINE)
        .any(|known| known.eq_ignore_ascii_case(class))
        || LARAVEL.iter().any(is_of)
}

const LARAVEL: [&str; 4] = [
    r"Illuminate\",
    r"Symfony\Component\",
    r"Carbon\Exceptions\",
    r"Ramsey\Uuid\Exception\",
];

const BUILT_IN: &[&str] = &[
    "Exception",
    "ErrorException",
    "Error",
    "CompileError",
    "ParseError",
    "TypeError",
    "ValueError",
    "ArithmeticError",
    "DivisionByZeroError",
    "ArgumentCountError",
    "AssertionError",
    "UnhandledMatchError",
    "ClosedGeneratorException",
    "FiberError",
    "LogicException",
    "BadFunctionCallException",
    "BadMethodCallException",
    "DomainException",
    "InvalidArgumentException",
    "LengthException",
    "OutOfRangeException",
    "RuntimeException",
    "OutOfBoundsException",
    "OverflowException",
    "RangeException",
    "UnderflowException",
    "UnexpectedValueException",
    "JsonException",
    "PDOException",
    "ReflectionException",
    "IntlException",
    "SodiumException",
    "PharException",
    "DOMException",
    "mysqli_sql_exception",
    "SoapFault",
    r"Random\RandomError",
    r"Random\BrokenRandomEngineError",
    r"Random\RandomException",
];

const ENGINE: &[&str] = &[
    r"Workflow\Exceptions\NonRetryableException",
    r"Workflow\Exceptions\TransitionNotFound",
    r"Workflow\Exceptions\VersionNotSupportedException",
    r"Workflow\V2\Exceptions\ConditionWaitDefinitionMismatchException",
    r"Workflow\V2\Exceptions\ExternalPayloadIntegrityException",
    r"Workflow\V2\Exceptions\HistoryEventShapeMismatchException",
    r"Workflow\V2\Exceptions\InvalidQueryArgumentsException",
    RESTORED,
    r"Workflow\V2\Exceptions\StraightLineWorkflowRequiredException",
    r"Workflow\V2\Exceptions\StructuralLimitExceededException",
    r"Workflow\V2\Exceptions\UnresolvedWorkflowFailureException",
    r"Workflow\V2\Exceptions\UnsupportedBackendCapabilitiesException",
    r"Workflow\V2\Exceptions\UnsupportedWorkflowYieldException",
    r"Workflow\V2\Exceptions\WorkflowCancelledException",
    r"Workflow\V2\Exceptions\WorkflowExecutionUnavailableException",
    r"Workflow\V2\Exceptions\WorkflowOutputCodecUnavailableException",
    r"Workflow\V2\Exceptions\WorkflowPayloadDecodeException",
    r"Workflow\V2\Exceptions\WorkflowTerminatedException",
    r"Workflow\V2\Exceptions\WorkflowTimeoutException",
    r"Workflow\Serializers\CodecDecodeException",
    r"Workflow\V2\Support\ExternalTaskInputException",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_laravel_brings_is_there_without_the_application() {
        for (class, there) in [
            (r"RuntimeException", true),
            (r"\RuntimeException", true),
            (r"Illuminate\Database\QueryException", true),
            (
                r"Symfony\Component\HttpKernel\Exception\HttpException",
                true,
            ),
            (r"Carbon\Exceptions\InvalidDateException", true),
            (r"Ramsey\Uuid\Exception\InvalidUuidStringException", true),
            (r"App\Exceptions\CardDeclined", false),
            (r"Symfony\Component\Clock\Clock", false),
            (r"Illuminateé", false),
        ] {
            assert_eq!(is_loadable(class), there, "{class}");
        }
    }

    #[test]
    fn a_class_is_resolved_in_the_engines_order() {
        use ResolutionSource::{
            ClassAlias, ExceptionType, Misconfigured, RecordedClass, Unresolved,
        };
        let config = EngineConfig::of(&json!({"types": {
            "exceptions": {"order.rejected": "App\\OrderRejected", "bad": "not a class"},
            "exception_class_aliases": {"App\\Old": "DomainException", "App\\Worse": "7"},
        }}));
        for (class, exception_type, source, resolved, blocked, presumed) in [
            (
                Some("App\\Old"),
                Some("order.rejected"),
                ExceptionType,
                Some("App\\OrderRejected"),
                false,
                true,
            ),
            (
                Some("App\\Old"),
                Some("bad"),
                Misconfigured,
                None,
                true,
                false,
            ),
            (
                Some("App\\Old"),
                Some("unmapped"),
                ClassAlias,
                Some("DomainException"),
                false,
                false,
            ),
            (Some("App\\Worse"), None, Misconfigured, None, true, false),
            (
                Some("RuntimeException"),
                None,
                RecordedClass,
                Some("RuntimeException"),
                false,
                false,
            ),
            // What a payload that cannot be decoded throws lies outside the exceptions' namespaces.
            (
                Some(r"Workflow\Serializers\CodecDecodeException"),
                None,
                RecordedClass,
                Some(r"Workflow\Serializers\CodecDecodeException"),
                false,
                false,
            ),
            (None, None, RecordedClass, Some(RESTORED), false, false),
            // The engine names such a class but has none.
            (
                Some("Workflow\\V2\\Exceptions\\ActivityTimeoutException"),
                None,
                Unresolved,
                None,
                true,
                true,
            ),
            (
                Some("App\\OrderRejected"),
                None,
                Unresolved,
                None,
                true,
                true,
            ),
            (Some(""), None, Unresolved, None, true, false),
        ] {
            let found = resolve(&config, class, exception_type);
            let case = format!("{class:?} {exception_type:?}");
            assert_eq!(found.exception_resolution_source, source, "{case}");
            assert_eq!(
                found.exception_resolved_class.as_deref(),
                resolved,
                "{case}"
            );
            assert_eq!(found.exception_replay_blocked, blocked, "{case}");
            assert_eq!(found.presumed, presumed, "{case}");
            assert_eq!(json!(source), source.as_str());
        }
    }
}
