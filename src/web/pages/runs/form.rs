//! The filter form: the fields of the filter table, grouped as people look for them.

use super::request::{DEFAULT_SIZE, ListRequest};
use chrono::SecondsFormat;

use crate::durable::{
    projection::repair_gate::RepairState,
    store::runs::{Attention, Direction, Field, Kind, categories, field, task_problems},
};

pub struct Group {
    pub title: &'static str,
    pub inputs: Vec<Input>,
}

pub struct Input {
    pub name: &'static str,
    pub label: &'static str,
    pub value: String,
    pub hint: String,
    /// The value was not understood; it is shown again to be corrected.
    pub wrong: bool,
    /// A word in force that is none of the choices: a newer engine's.
    pub other: bool,
    /// Choices, each with whether it is the one in force; empty for free text.
    pub choices: Vec<(&'static str, &'static str, bool)>,
}

const GROUPS: &[(&str, &[&str])] = &[
    (
        "State",
        &[
            "status",
            "closed_reason",
            "wait_kind",
            "liveness_state",
            "archived",
        ],
    ),
    (
        "Trouble",
        &[
            "attention",
            "failure_category",
            "non_retryable",
            "task_problem_code",
            "repair_state",
            "repair_blocked_reason",
            "continue_as_new_recommended",
        ],
    ),
    (
        "Type",
        &[
            "workflow_type",
            "workflow_type_prefix",
            "workflow_type_contains",
        ],
    ),
    (
        "Identity",
        &[
            "instance_id",
            "business_key",
            "instance_id_contains",
            "business_key_contains",
        ],
    ),
    (
        "Where",
        &["namespace", "queue", "connection", "compatibility"],
    ),
    ("When", &["started", "from", "to"]),
];

pub fn groups(list: &ListRequest, zone: &str) -> Vec<Group> {
    GROUPS
        .iter()
        .map(|(title, names)| Group {
            title,
            inputs: names
                .iter()
                .filter_map(|name| field(name))
                .map(|field| input(field, list, zone))
                .collect(),
        })
        .collect()
}

/// Parameters in force that the form has no field for. The form replaces the whole address:
/// what it does not carry is lost.
pub fn carried(list: &ListRequest) -> Vec<(String, String)> {
    let in_form = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let mut carried: Vec<(String, String)> = list
        .page
        .filter
        .terms
        .iter()
        .filter(|term| !in_form(term.field.name))
        .map(|term| (term.param(), term.value.clone()))
        .collect();
    if list.page.direction == Direction::OldestFirst {
        carried.push(("sort_direction".to_owned(), "asc".to_owned()));
    }
    if list.page.size != DEFAULT_SIZE {
        carried.push(("per_page".to_owned(), list.page.size.to_string()));
    }
    carried
}

fn input(field: &'static Field, list: &ListRequest, zone: &str) -> Input {
    let refused = list
        .refused
        .iter()
        .rfind(|(name, _)| name == field.name)
        .map(|(_, value)| value.as_str());
    let term = list.page.filter.get(field.name);
    let value = match (refused, term) {
        (Some(refused), _) => refused.to_owned(),
        (None, Some(term)) => match term.moment() {
            // As the reader's clock shows it, and still the same moment.
            Some(at) => list
                .zone
                .local(at)
                .to_rfc3339_opts(SecondsFormat::AutoSi, true),
            None => term.value.clone(),
        },
        (None, None) => String::new(),
    };
    let chosen = |words: &[&'static str]| {
        words
            .iter()
            .map(|word| (*word, *word, *word == value))
            .collect()
    };
    let choices: Vec<_> = match field.kind {
        Kind::Choice(_, words) | Kind::Word(_, words) => chosen(words),
        Kind::RepairState => chosen(RepairState::WORDS),
        Kind::FailureCategory => chosen(&categories()),
        Kind::TaskProblem => chosen(task_problems()),
        Kind::Attention => chosen(&Attention::ALL.map(Attention::word)),
        Kind::Within => [
            ("15m", "last 15 minutes"),
            ("1h", "last hour"),
            ("24h", "last 24 hours"),
            ("7d", "last 7 days"),
            ("30d", "last 30 days"),
        ]
        .map(|(word, label)| (word, label, word == value))
        .into(),
        Kind::Flag(_)
        | Kind::Presence(_)
        | Kind::IsTerminal
        | Kind::NonRetryable
        | Kind::NeedsRepair => [("1", "yes"), ("0", "no")]
            .map(|(word, label)| (word, label, word == value))
            .into(),
        _ => Vec::new(),
    };
    let hint = match field.kind {
        Kind::From | Kind::To => format!("2026-11-15T23:50 ({zone})"),
        Kind::Exact("namespace") => "a name, or (none)".to_owned(),
        _ => String::new(),
    };
    let value_is_blank = value.is_empty();
    Input {
        name: field.name,
        label: field.label,
        value,
        hint,
        wrong: refused.is_some(),
        other: !value_is_blank && choices.iter().all(|(.., on)| !on),
        choices,
    }
}
