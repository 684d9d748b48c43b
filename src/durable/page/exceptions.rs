//! What went wrong, in the order of committed history, and how replay will restore it.

use std::collections::HashMap;

use serde_json::Value;

use super::places::Places;
use crate::{
    durable::{
        projection::{
            Projected,
            activities::Activity,
            blocked_exception::Block,
            exception::{ExceptionPayload, Resolution, ResolutionSource},
            failures::Failure,
            trace::{Frame, owned},
        },
        stored::{EventType, FailureCategory, HistoryEvent, payloads::activity::ActivityEvent},
    },
    run::{
        data::written,
        exceptions as shown,
        fact::{Facts, RowRef, anchor},
        section::Section,
        tag::{Mark, Tag, Tone},
        window::Asked,
    },
};

/// Most frames of a trace that are listed.
const FRAMES: usize = 40;
/// Most bytes of one property's value.
const PROPERTY: usize = 512;
/// Most properties listed.
const PROPERTIES: usize = 12;
/// Most characters of a message that stand in the page.
const MESSAGE: usize = 2_000;

/// Structural limits that are counted in bytes; the others that are named sizes count things.
const OF_BYTES: [&str; 3] = ["payload_size", "memo_size", "search_attribute_size"];

/// A failure, or a try that failed and was made again.
enum Entry<'p> {
    Failure(&'p Failure),
    Retried(&'p HistoryEvent),
}

impl Entry<'_> {
    fn anchor(&self) -> String {
        match self {
            Self::Failure(failure) => anchor("failure", &failure.id),
            Self::Retried(event) => anchor("retried", &event.id),
        }
    }

    fn sequence(&self) -> i64 {
        match self {
            Self::Failure(failure) => failure.event_sequence.unwrap_or(i64::MAX),
            Self::Retried(event) => event.sequence,
        }
    }
}

pub fn exceptions(
    p: &Projected<'_>,
    asked: &Asked,
    ahead: bool,
    places: &Places<'_>,
) -> shown::Exceptions {
    let retried =
        p.cx.snapshot
            .events
            .iter()
            .filter(|event| event.event_type == EventType::ActivityRetryScheduled)
            .map(Entry::Retried);
    let mut entries: Vec<Entry<'_>> = p.failures.iter().map(Entry::Failure).collect();
    entries.extend(retried);
    entries.sort_by_key(Entry::sequence);
    let window = asked.window("exceptions", entries.len(), |at| {
        entries.iter().position(|entry| entry.anchor() == at)
    });
    let names = Names::of(p, places);
    let blocks = Block::all(p);
    Section::new(window, ahead, |stretch| {
        let rows = stretch.of(&entries).iter().map(|entry| match entry {
            Entry::Failure(failure) => of_failure(failure, &names, &blocks),
            Entry::Retried(event) => of_retry(event, &names),
        });
        rows.collect()
    })
}

/// What sources are called, by id.
struct Names<'p, 'q> {
    places: &'p Places<'q>,
    activities: HashMap<&'p str, &'p Activity<'p>>,
    children: HashMap<&'p str, &'p str>,
    updates: HashMap<&'p str, &'p str>,
}

impl<'p, 'q> Names<'p, 'q> {
    fn of(p: &'p Projected<'_>, places: &'p Places<'q>) -> Self {
        let update = |u: &'p crate::durable::projection::updates::Update| {
            let name = u.name.as_deref()?;
            Some([(u.command_id.as_deref()?, name), (u.id.as_deref()?, name)])
        };
        Self {
            places,
            activities: p
                .activities
                .iter()
                .map(|activity| (activity.id.as_str(), activity))
                .collect(),
            children: p
                .children
                .iter()
                .filter_map(|child| {
                    Some((
                        child.child_workflow_run_id.as_deref()?,
                        child.label.as_str(),
                    ))
                })
                .collect(),
            updates: p.updates.iter().filter_map(update).flatten().collect(),
        }
    }

    fn activity(&self, id: &str) -> RowRef {
        let name = self.activities.get(id).and_then(|activity| activity.name());
        let words = format!("activity {}", name.unwrap_or(id));
        self.places.activity(id, words)
    }

    fn source(&self, kind: Option<&str>, id: Option<&str>) -> RowRef {
        match (kind, id) {
            (Some("activity_execution"), Some(id)) => self.activity(id),
            (Some("child_workflow_run"), Some(id)) => {
                let name = self.children.get(id).copied().unwrap_or(id);
                self.places.children(format!("child workflow {name}"))
            }
            (Some("workflow_command"), Some(id)) => {
                let words = match self.updates.get(id) {
                    Some(name) => format!("update {name}"),
                    None => "an update".to_owned(),
                };
                self.places.command(id, words)
            }
            (Some("workflow_run") | None, _) => {
                Places::always("diagnosis", "the workflow".to_owned())
            }
            (Some(other), id) => {
                let words = format!("{other} {}", id.unwrap_or_default());
                self.places.history(words.trim().to_owned())
            }
        }
    }
}

fn of_failure(failure: &Failure, names: &Names<'_, '_>, blocks: &[Block]) -> shown::Exception {
    let thrown = &failure.exception_payload;
    let class = failure.exception_class.as_deref();
    let blocked = blocks
        .iter()
        .find(|block| block.is_about(class, failure.exception_type.as_deref()));
    let mut marks = Vec::new();
    if failure.non_retryable {
        marks.push(Tag::non_retryable());
    }
    if failure.handled {
        marks.push(
            Tag::new("handled", Tone::Ok, Mark::Tick)
                .outlined()
                .titled("the workflow caught it and went on"),
        );
    }
    if failure.diagnostic_only {
        marks.push(Tag::row_only(failure.history_authority));
    }
    let limit = failure.by_event.as_ref().and_then(|told| {
        let kind = told.structural_limit_kind.clone()?;
        Some(shown::Limit {
            of_bytes: OF_BYTES.contains(&kind.as_str()),
            kind,
            value: told.structural_limit_value,
            most: told.structural_limit_configured,
        })
    });
    shown::Exception {
        anchor: anchor("failure", &failure.id),
        sequence: failure.event_sequence,
        category: Tag::failure_category(
            failure
                .failure_category
                .as_ref()
                .map(FailureCategory::as_str),
        ),
        marks,
        source: names.source(failure.source_kind.as_deref(), failure.source_id.as_deref()),
        attempt: None,
        message: cut(failure.message.as_deref()),
        class: failure.exception_class.clone(),
        alias: failure.exception_type.clone(),
        code: (failure.code != 0).then(|| failure.code.to_string()),
        place: place(failure.file.as_deref(), failure.line),
        path: path(failure.file.as_deref(), failure.line),
        at: failure.created_at,
        limit,
        replay: match blocked {
            Some(block) => blocked_by(block, names.places),
            None => replay(&failure.resolution, class),
        },
        facts: Facts::default()
            .code("Failure id", Some(&failure.id))
            .code("Source", failure.source_kind.as_deref())
            .code("Source id", failure.source_id.as_deref())
            .code("Propagation", failure.propagation_kind.as_deref())
            .text("Reason", failure.reason())
            .code("Known by", Some(failure.history_authority))
            .code(
                "Restored as",
                failure.resolution.exception_resolved_class.as_deref(),
            )
            .list(),
        causes: causes(thrown),
        properties: properties(&thrown.properties, thrown.details.as_ref()),
        trace: trace(
            &thrown.trace,
            failure.file.as_deref(),
            failure.trace_preview.as_deref(),
        ),
    }
}

/// A try that failed and is made again leaves no failure behind, only its event.
fn of_retry(event: &HistoryEvent, names: &Names<'_, '_>) -> shown::Exception {
    let told: ActivityEvent = event.as_payload();
    let thrown = ExceptionPayload::of_event(&event.as_payload(), None);
    let source = match told.activity_execution_id.as_deref() {
        Some(id) => names.activity(id),
        None => names.source(None, None),
    };
    let attempt = match (told.retry_after_attempt.get(), told.max_attempts.get()) {
        (Some(n), Some(max)) => Some(format!("attempt {n} of {max}")),
        (Some(n), None) => Some(format!("attempt {n}")),
        (None, _) => None,
    };
    let timeout = told.timeout_kind.as_deref();
    shown::Exception {
        anchor: anchor("retried", &event.id),
        sequence: Some(event.sequence),
        category: Tag::failure_category(Some(if timeout.is_some() {
            "timeout"
        } else {
            "activity"
        })),
        marks: vec![
            Tag::new("retried", Tone::Wait, Mark::Loop)
                .titled("the attempt failed and another follows"),
        ],
        source,
        attempt,
        message: cut(thrown.message.as_deref().or(told.message.as_deref())),
        class: thrown
            .class
            .clone()
            .or_else(|| told.exception_class.owned()),
        alias: thrown.exception_type.clone(),
        code: (thrown.code != 0).then(|| thrown.code.to_string()),
        place: place(thrown.file.as_deref(), thrown.line),
        path: path(thrown.file.as_deref(), thrown.line),
        at: event.time(),
        limit: None,
        replay: shown::Replay {
            tag: Tag::new("not replayed", Tone::Wait, Mark::Dot).outlined(),
            words: "Retried outside the workflow's code: replay does not see it.".into(),
            task: None,
        },
        facts: Facts::default()
            .code("Attempt id", told.retry_after_attempt_id.as_deref())
            .text("Timeout", timeout.map(|kind| kind.replace('_', " ")))
            .text("Reason", told.retry_reason.as_deref())
            .seconds("Waits", told.retry_backoff_seconds.get())
            .at("Next try", *told.retry_available_at)
            .list(),
        causes: causes(&thrown),
        properties: properties(&thrown.properties, thrown.details.as_ref()),
        trace: trace(&thrown.trace, thrown.file.as_deref(), None),
    }
}

/// What a task ran into is no guess.
fn blocked_by(block: &Block, places: &Places<'_>) -> shown::Replay {
    let tag = Tag::new("blocked", Tone::Halt, Mark::Lock).outlined();
    shown::Replay {
        tag: match &block.source {
            Some(source) => tag.titled(format!("exception_resolution_source {source}")),
            None => tag,
        },
        words: format!(
            "Replay is blocked: {}. {}, then repair.",
            block.why(),
            block.remedy()
        ),
        task: Some(places.task(&block.task_id, "The task that is blocked".to_owned())),
    }
}

fn replay(resolution: &Resolution, class: Option<&str>) -> shown::Replay {
    let class = resolution
        .exception_resolved_class
        .as_deref()
        .or(class)
        .unwrap_or("an exception without a class");
    let (words, tag) = match resolution.exception_resolution_source {
        ResolutionSource::ExceptionType => (
            format!("Replay restores it as {class}, the class configured for its durable type."),
            Tag::new("by type", Tone::Ok, Mark::Tick),
        ),
        ResolutionSource::ClassAlias => (
            format!("Replay restores it as {class}, the configured successor of its class."),
            Tag::new("by alias", Tone::Ok, Mark::Tick),
        ),
        ResolutionSource::RecordedClass => (
            format!("Replay restores it as {class}, the class that was recorded."),
            Tag::new("by class", Tone::Ok, Mark::Tick),
        ),
        // The application may well know it; we cannot load its code.
        ResolutionSource::Unresolved if resolution.presumed => (
            format!("Replay restores it as {class} if the deployed code still has that class."),
            Tag::new("by class", Tone::Wait, Mark::Question),
        ),
        ResolutionSource::Unresolved => (
            format!("Replay is blocked: {class} is no class that can be restored."),
            Tag::new("blocked", Tone::Halt, Mark::Lock),
        ),
        ResolutionSource::Misconfigured => (
            format!(
                "Replay is blocked: {}.",
                resolution
                    .exception_resolution_error
                    .as_deref()
                    .unwrap_or("its configured class is no throwable class")
            ),
            Tag::new("blocked", Tone::Halt, Mark::Lock),
        ),
    };
    shown::Replay {
        tag: tag.outlined().titled(format!(
            "exception_resolution_source {}",
            resolution.exception_resolution_source.as_str()
        )),
        words,
        task: None,
    }
}

fn trace(frames: &[Frame], thrown_in: Option<&str>, preview: Option<&str>) -> shown::Trace {
    let text = preview
        .filter(|text| frames.is_empty() && !text.trim().is_empty() && text.trim() != "[]")
        .map(|text| cut(Some(text)));
    let mut trace = shown::Trace {
        left_out: frames.len().saturating_sub(FRAMES),
        text,
        ..shown::Trace::default()
    };
    let numbered = owned(frames, thrown_in).enumerate();
    let (own, others): (Vec<_>, Vec<_>) = numbered.partition(|(_, (_, own))| *own);
    for (number, (frame, own)) in own.into_iter().chain(others).take(FRAMES) {
        let shown = shown::Frame {
            number,
            call: format!(
                "{}{}{}",
                frame.class.as_deref().unwrap_or_default(),
                frame.call.as_deref().unwrap_or_default(),
                frame.function.as_deref().unwrap_or("{main}"),
            ),
            place: path(frame.file.as_deref(), frame.line),
        };
        if own {
            trace.own.push(shown);
        } else {
            trace.others.push(shown);
        }
    }
    trace
}

fn properties(stored: &[Value], details: Option<&Value>) -> Vec<(String, String)> {
    let value = |value: Option<&Value>| {
        value.map_or_else(
            || "(no value)".to_owned(),
            |value| written(value, PROPERTY).unwrap_or_else(|| "(longer than shown here)".into()),
        )
    };
    stored
        .iter()
        .take(PROPERTIES)
        .map(|property| {
            let name = property.get("name").and_then(Value::as_str);
            (
                name.unwrap_or("without a name").to_owned(),
                value(property.get("value")),
            )
        })
        .chain(details.map(|details| ("details".to_owned(), value(Some(details)))))
        .collect()
}

/// What an exception was caused by, nearest first.
fn causes(thrown: &ExceptionPayload) -> Vec<shown::Cause> {
    let cause = thrown.causes.iter().map(|cause| shown::Cause {
        class: cause.class.clone(),
        message: cause.message.as_deref().map(|message| cut(Some(message))),
        place: place(cause.file.as_deref(), cause.line),
    });
    cause.collect()
}

/// `ChargeCard.php:58`: the directory stands with the trace.
fn place(file: Option<&str>, line: Option<i64>) -> Option<String> {
    let name = |file: &str| file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
    path(file.map(name).as_deref(), line)
}

fn path(file: Option<&str>, line: Option<i64>) -> Option<String> {
    let file = file.filter(|file| !file.is_empty())?;
    Some(match line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    })
}

fn cut(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    match text.char_indices().nth(MESSAGE) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
