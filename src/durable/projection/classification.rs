//! Which category the engine files a failure under when all it has is words: how the failure
//! travelled, the exception's class and its message.

use crate::durable::stored::FailureCategory;

const STRUCTURAL_LIMIT: &str = r"Workflow\V2\Exceptions\StructuralLimitExceededException";

/// The category of a failure. An empty class or message is an unknown one.
pub fn classify(propagation: &str, class: &str, message: &str) -> FailureCategory {
    match propagation {
        // An activity's own failure stays the activity's, whatever was thrown.
        "activity" => FailureCategory::Activity,
        "child" => FailureCategory::ChildWorkflow,
        "cancelled" => FailureCategory::Cancelled,
        "terminated" => FailureCategory::Terminated,
        // What the workflow's own code let through is judged by what it is.
        "terminal" | "update" => of_exception(class, message),
        _ => FailureCategory::Application,
    }
}

/// Whether the engine, knowing only the class, would refuse to retry.
pub fn is_non_retryable(class: &str) -> bool {
    class == r"Workflow\Exceptions\NonRetryableException"
}

fn of_exception(class: &str, message: &str) -> FailureCategory {
    match class {
        STRUCTURAL_LIMIT => FailureCategory::StructuralLimit,
        // The workflow's code itself is not one the engine can replay.
        r"Workflow\V2\Exceptions\UnsupportedWorkflowYieldException"
        | r"Workflow\V2\Exceptions\StraightLineWorkflowRequiredException" => {
            FailureCategory::TaskFailure
        }
        // Database and queue, not the application.
        r"Illuminate\Database\QueryException"
        | "PDOException"
        | r"Illuminate\Queue\MaxAttemptsExceededException" => FailureCategory::Internal,
        _ if says_timeout(message) => FailureCategory::Timeout,
        _ if message.starts_with("Structural limit exceeded:") => FailureCategory::StructuralLimit,
        _ => FailureCategory::Application,
    }
}

fn says_timeout(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    [
        "timed out",
        "timeout exceeded",
        "execution deadline",
        "run deadline",
    ]
    .iter()
    .any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        propagation_kind: String,
        exception_class: Option<String>,
        message: Option<String>,
        category: String,
        non_retryable: bool,
    }

    #[test]
    fn every_combination_the_engine_was_asked_about() {
        let Some(text) = crate::demo::corpus("codec/failure-classification.json") else {
            return;
        };
        let cases: Vec<Case> = serde_json::from_str(&text).expect("a list of cases");
        assert!(cases.len() > 500);
        for case in &cases {
            let class = case.exception_class.as_deref().unwrap_or_default();
            let message = case.message.as_deref().unwrap_or_default();
            let propagation = &case.propagation_kind;
            assert_eq!(
                classify(propagation, class, message).as_str(),
                case.category,
                "{propagation} {class} {message}"
            );
            assert_eq!(is_non_retryable(class), case.non_retryable, "{class}");
        }
    }

    #[test]
    fn a_structural_limit_is_known_by_its_message_too() {
        let of = |message| classify("terminal", "RuntimeException", message);
        assert_eq!(
            of("Structural limit exceeded: payload size"),
            FailureCategory::StructuralLimit
        );
        assert_eq!(
            of("structural limit exceeded: payload size"),
            FailureCategory::Application
        );
    }
}
