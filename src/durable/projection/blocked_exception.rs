//! Exceptions that blocked replay: the failed task says so, which is more than could be told from
//! here, where none of the application's code is.

use super::{liveness::is_replay_blocked, projected::Projected, tasks::payload_of};
use crate::durable::stored::TaskRow;

/// What one failed task says of the exception it could not restore.
#[derive(Debug, PartialEq)]
pub struct Block {
    pub task_id: String,
    pub class: String,
    exception_type: Option<String>,
    pub source: Option<String>,
    error: Option<String>,
}

impl Block {
    /// None when the task names no class: another thing blocks it.
    pub fn of(row: &TaskRow) -> Option<Self> {
        let payload = payload_of(row);
        Some(Self {
            task_id: row.id.clone(),
            class: payload.replay_blocked_exception_class.owned()?,
            exception_type: payload.replay_blocked_exception_type.owned(),
            source: payload.replay_blocked_resolution_source.owned(),
            error: payload.replay_blocked_resolution_error.owned(),
        })
    }

    pub fn all(p: &Projected<'_>) -> Vec<Self> {
        let blocked = p.tasks.iter().filter(|task| is_replay_blocked(task));
        let row = |id: &str| p.cx.snapshot.tasks.iter().find(|row| row.id == id);
        blocked
            .filter_map(|task| Self::of(row(&task.id)?))
            .collect()
    }

    /// Whether it is about an exception of this class and durable type. A task may name the class
    /// alone.
    pub fn is_about(&self, class: Option<&str>, exception_type: Option<&str>) -> bool {
        let own = self.exception_type.as_deref();
        class == Some(&self.class) && (own.is_none() || own == exception_type)
    }

    /// Why replay stops there.
    pub fn why(&self) -> String {
        let class = &self.class;
        let because = match &self.error {
            Some(error) => format!(" ({error})"),
            None => String::new(),
        };
        match self.source.as_deref() {
            Some("unresolved") => format!("the deployed code has no exception class {class}"),
            Some("misconfigured") => {
                format!("what {class} is configured to be restored as cannot be thrown{because}")
            }
            Some("unrestorable") => format!("the deployed {class} cannot be made again{because}"),
            _ => format!(
                "the deployed code could not restore the recorded exception {class}{because}"
            ),
        }
    }

    /// What lets it go on, before a repair.
    pub fn remedy(&self) -> String {
        match self.source.as_deref() {
            Some("unresolved") => format!(
                "Deploy code that has {} again, or give it an alias under \
                 workflows.v2.types.exception_class_aliases",
                self.class
            ),
            Some("misconfigured") => "Correct the configuration".to_owned(),
            Some("unrestorable") => "Deploy one that can be made from what was recorded".to_owned(),
            _ => "Deploy code that can".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::projection::example::task;

    fn block(more: &serde_json::Value) -> Option<Block> {
        let mut payload = json!({"replay_blocked": true});
        let all = payload.as_object_mut().unwrap();
        all.extend(more.as_object().unwrap().clone());
        Block::of(&task("t", "failed", &payload))
    }

    #[test]
    fn a_task_is_about_the_exception_it_names() {
        let of = |exception_type| {
            let block = block(&json!({
                "replay_blocked_exception_class": "App\\Old",
                "replay_blocked_exception_type": exception_type,
            }));
            block.unwrap()
        };
        for (named, class, exception_type, want) in [
            (None, Some("App\\Old"), None, true),
            (None, Some("App\\Old"), Some("order.old"), true),
            (Some("order.old"), Some("App\\Old"), Some("order.old"), true),
            (Some("order.old"), Some("App\\Old"), None, false),
            (None, Some("App\\New"), None, false),
            (None, None, None, false),
        ] {
            let is_about = of(named).is_about(class, exception_type);
            assert_eq!(is_about, want, "{named:?} {class:?} {exception_type:?}");
        }
        let other = json!({"replay_blocked_reason": "history_shape_mismatch"});
        assert_eq!(block(&other), None, "blocked by another thing");
    }

    #[test]
    fn a_block_says_why_and_what_to_do() {
        for (source, error, why, remedy) in [
            (
                Some("unresolved"),
                None,
                "the deployed code has no exception class App\\Old",
                "Deploy code that has App\\Old again, or give it an alias",
            ),
            (
                Some("misconfigured"),
                Some("Foo is no Throwable"),
                "cannot be thrown (Foo is no Throwable)",
                "Correct the configuration",
            ),
            (
                Some("unrestorable"),
                Some("abstract"),
                "cannot be made again (abstract)",
                "Deploy one that can",
            ),
            (
                Some("new word"),
                None,
                "could not restore the recorded exception App\\Old",
                "Deploy code that can",
            ),
            (
                None,
                None,
                "could not restore the recorded exception App\\Old",
                "Deploy code that can",
            ),
        ] {
            let block = block(&json!({
                "replay_blocked_exception_class": "App\\Old",
                "replay_blocked_resolution_source": source,
                "replay_blocked_resolution_error": error,
            }));
            let block = block.unwrap();
            assert!(block.why().ends_with(why), "{source:?}: {}", block.why());
            assert!(block.remedy().starts_with(remedy), "{}", block.remedy());
        }
    }
}
