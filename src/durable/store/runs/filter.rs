//! The list's filters: one table of fields that the URL, the chips, the form and the query all
//! read. A value that cannot be meant is an error with its name, never silently "all".

use chrono::{DateTime, Datelike as _, Duration, NaiveDate, NaiveDateTime, Utc};

use crate::{
    durable::{
        projection::{repair_gate::RepairState, task_problem::TaskProblem},
        store::metrics::Work,
        stored::{
            ClosedReason, FailureCategory, LivenessState, RepairBlockedReason, RunStatus,
            StatusBucket, WaitKind,
        },
    },
    zone::Zone,
};

/// What a field accepts and how it is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The column equals the text.
    Exact(&'static str),
    /// The column equals one of the known words.
    Choice(&'static str, &'static [&'static str]),
    /// The column equals a word; these are known, a newer engine may write others.
    Word(&'static str, &'static [&'static str]),
    /// The column is true or false.
    Flag(&'static str),
    /// The column is set or null.
    Presence(&'static str),
    /// The column starts with the text.
    Prefix(&'static str),
    /// The column contains the text, in the database's own case rules.
    Contains(&'static str),
    /// The status is one of the four final ones.
    IsTerminal,
    /// The failure badge says this category.
    FailureCategory,
    /// The non-retryable badge is there.
    NonRetryable,
    /// The task-problem badge has this code.
    TaskProblem,
    /// The repair gate offers Repair.
    NeedsRepair,
    /// The repair gate's verdict is this word.
    RepairState,
    /// The run is one of those the overview counts under this word.
    Attention,
    /// A visibility label `label[key]`.
    Label,
    /// A search attribute `search_attribute[key]`.
    SearchAttribute,
    /// Started within this long before now.
    Within,
    /// Started at or after.
    From,
    /// Started before.
    To,
}

#[derive(Debug)]
pub struct Field {
    /// The name in the URL: the engine's column name wherever there is one.
    pub name: &'static str,
    /// The word on the chip.
    pub label: &'static str,
    pub kind: Kind,
}

const TASK_PROBLEMS: &[&str] = &["replay_blocked", "active", "history", "any", "none"];
const UNCLASSIFIED: &str = "unclassified";
/// Stands for "the column is null" in an exact filter on the namespace.
pub const NONE: &str = "(none)";

macro_rules! fields {
    ($($name:literal $label:literal $kind:expr;)+) => {
        /// Every filter there is.
        pub const FIELDS: &[Field] = &[$(Field { name: $name, label: $label, kind: $kind },)+];
    };
}

fields! {
    "status" "status" Kind::Choice("status", RunStatus::KNOWN);
    "status_bucket" "bucket" Kind::Choice("status_bucket", StatusBucket::KNOWN);
    "closed_reason" "closed by" Kind::Choice("closed_reason", ClosedReason::KNOWN);
    "workflow_type" "type" Kind::Exact("workflow_type");
    "workflow_type_prefix" "type starts with" Kind::Prefix("workflow_type");
    "workflow_type_contains" "type contains" Kind::Contains("workflow_type");
    "instance_id" "instance" Kind::Exact("workflow_instance_id");
    "instance_id_contains" "instance contains" Kind::Contains("workflow_instance_id");
    "run_id" "run" Kind::Exact("id");
    "run_id_contains" "run contains" Kind::Contains("id");
    "business_key" "business key" Kind::Exact("business_key");
    "business_key_contains" "business key contains" Kind::Contains("business_key");
    "namespace" "namespace" Kind::Exact("namespace");
    "queue" "queue" Kind::Exact("queue");
    "connection" "connection" Kind::Exact("connection");
    "compatibility" "compatibility" Kind::Exact("compatibility");
    "failure_category" "failure" Kind::FailureCategory;
    "non_retryable" "non-retryable" Kind::NonRetryable;
    "wait_kind" "waits for" Kind::Choice("wait_kind", WaitKind::KNOWN);
    "liveness_state" "liveness" Kind::Word("liveness_state", LivenessState::KNOWN);
    "task_problem_code" "task problem" Kind::TaskProblem;
    "task_problem" "task problem flag" Kind::Flag("task_problem");
    "needs_repair" "needs repair" Kind::NeedsRepair;
    "attention" "needs attention" Kind::Attention;
    "repair_blocked_reason" "repair blocked" Kind::Word("repair_blocked_reason", RepairBlockedReason::KNOWN);
    "repair_state" "repair" Kind::RepairState;
    "repair_attention" "repair attention" Kind::Flag("repair_attention");
    "is_current_run" "current run" Kind::Flag("is_current_run");
    "is_terminal" "ended" Kind::IsTerminal;
    "archived" "archived" Kind::Presence("archived_at");
    "continue_as_new_recommended" "history over budget" Kind::Flag("continue_as_new_recommended");
    "declared_entry_mode" "entry mode" Kind::Choice("declared_entry_mode", &["canonical"]);
    "declared_contract_source" "contract source"
        Kind::Choice("declared_contract_source", &["durable_history", "unavailable"]);
    "label" "label" Kind::Label;
    "search_attribute" "attribute" Kind::SearchAttribute;
    "started" "started" Kind::Within;
    "from" "started from" Kind::From;
    "to" "started before" Kind::To;
}

/// Waterline's other spellings of the same filter.
fn canonical(name: &str) -> &str {
    match name {
        "labels" => "label",
        "search_attributes" => "search_attribute",
        other => other,
    }
}

pub fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == canonical(name))
}

/// One filter in force.
#[derive(Clone, Debug)]
pub struct Term {
    pub field: &'static Field,
    /// The map key of a label or search attribute.
    pub key: Option<String>,
    /// The value as given, trimmed: what the chip shows and the URL carries.
    pub value: String,
    pub test: Test,
}

impl Term {
    /// The moment it names. A length of time back from now names none.
    pub fn moment(&self) -> Option<DateTime<Utc>> {
        match (self.field.kind, &self.test) {
            (Kind::From | Kind::To, Test::At(at)) => Some(*at),
            _ => None,
        }
    }

    /// The parameter name this term has in a URL.
    pub fn param(&self) -> String {
        match &self.key {
            Some(key) => format!("{}[{key}]", self.field.name),
            None => self.field.name.to_owned(),
        }
    }
}

/// The parsed meaning of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Text(String),
    Null,
    Flag(bool),
    Category(Option<FailureCategory>),
    Problem(ProblemTest),
    Attention(Attention, CountedAt),
    At(DateTime<Utc>),
}

/// What a count of the overview depends on beside its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedAt {
    pub now: DateTime<Utc>,
    /// Seconds after which a ready task counts as not picked up.
    pub redispatch_after: i64,
}

impl CountedAt {
    /// With the engine's own default.
    fn new(now: DateTime<Utc>) -> Self {
        Self {
            now,
            redispatch_after: 3,
        }
    }
}

/// What the overview counts, as a filter: the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    RepairNeeded,
    ClaimFailed,
    CompatibilityBlocked,
    LongRunning,
    RetryStorm,
    FailedPastHour,
    LongWaits,
    /// Runs that have such work open.
    Work(Work),
}

impl Attention {
    pub const ALL: [Self; 17] = [
        Self::RepairNeeded,
        Self::ClaimFailed,
        Self::CompatibilityBlocked,
        Self::LongRunning,
        Self::RetryStorm,
        Self::FailedPastHour,
        Self::LongWaits,
        Self::Work(Work::UnhealthyTask),
        Self::Work(Work::LeaseExpired),
        Self::Work(Work::DispatchFailed),
        Self::Work(Work::DispatchOverdue),
        Self::Work(Work::ClaimFailed),
        Self::Work(Work::ReadyTask),
        Self::Work(Work::DelayedTask),
        Self::Work(Work::LeasedTask),
        Self::Work(Work::RetryingActivity),
        Self::Work(Work::OverdueActivity),
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::RepairNeeded => "repair_needed",
            Self::ClaimFailed => "claim_failed",
            Self::CompatibilityBlocked => "compatibility_blocked",
            Self::LongRunning => "long_running",
            Self::RetryStorm => "retry_storm",
            Self::FailedPastHour => "failed_past_hour",
            Self::LongWaits => "long_waits",
            Self::Work(Work::UnhealthyTask) => "unhealthy_task",
            Self::Work(Work::LeaseExpired) => "lease_expired",
            Self::Work(Work::DispatchFailed) => "dispatch_failed",
            Self::Work(Work::DispatchOverdue) => "dispatch_overdue",
            Self::Work(Work::ClaimFailed) => "task_claim_failed",
            Self::Work(Work::ReadyTask) => "ready_task",
            Self::Work(Work::DelayedTask) => "delayed_task",
            Self::Work(Work::LeasedTask) => "leased_task",
            Self::Work(Work::RetryingActivity) => "retrying_activity",
            Self::Work(Work::OverdueActivity) => "overdue_activity",
        }
    }

    /// The bucket all of these runs are in.
    pub fn bucket(self) -> StatusBucket {
        match self {
            Self::FailedPastHour => StatusBucket::Failed,
            _ => StatusBucket::Running,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemTest {
    Is(TaskProblem),
    Any,
    Absent,
}

/// What was wrong with one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    pub param: String,
    pub message: String,
}

/// All filters in force, at most one per parameter name.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub terms: Vec<Term>,
}

impl Filter {
    /// Reads filters from query parameters. Parameters listed in `others` are not filters;
    /// an empty value is a form field left blank.
    pub fn parse<'a>(
        params: impl IntoIterator<Item = (&'a str, &'a str)>,
        others: &[&str],
        now: DateTime<Utc>,
        zone: Zone,
    ) -> (Self, Vec<FilterError>) {
        let mut filter = Self::default();
        let mut errors = Vec::new();
        for (param, value) in params {
            let value = value.trim();
            if others.contains(&param) || value.is_empty() {
                continue;
            }
            match parse_term(param, value, now, zone) {
                Ok(term) => match filter.terms.iter().find(|t| t.param() == term.param()) {
                    None => filter.terms.push(term),
                    Some(other) if other.value == term.value => {}
                    Some(other) => errors.push(FilterError {
                        param: param.to_owned(),
                        message: format!(
                            "is given twice, {:?} and {value:?}; choose one",
                            other.value
                        ),
                    }),
                },
                Err(message) => errors.push(FilterError {
                    param: param.to_owned(),
                    message,
                }),
            }
        }
        if let Some(error) = filter.empty_range() {
            filter.terms.retain(|term| term.field.name != error.param);
            errors.push(error);
        }
        (filter, errors)
    }

    /// Takes the engine's own setting for when a task counts as not picked up.
    pub fn counted_with(&mut self, redispatch_after: i64) {
        for term in &mut self.terms {
            if let Test::Attention(_, counted) = &mut term.test {
                counted.redispatch_after = redispatch_after;
            }
        }
    }

    /// A range that ends before it begins, which nobody means.
    fn empty_range(&self) -> Option<FilterError> {
        let (from, to) = (self.get("from")?, self.get("to")?);
        match (&from.test, &to.test) {
            (Test::At(begin), Test::At(end)) if begin >= end => Some(FilterError {
                param: "from".to_owned(),
                message: format!(
                    "{:?} is not before to, {:?}: no run can start in between",
                    from.value, to.value
                ),
            }),
            _ => None,
        }
    }

    pub fn get(&self, name: &str) -> Option<&Term> {
        self.terms.iter().find(|term| term.field.name == name)
    }

    /// The value as given, for filling a form again.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(|term| term.value.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

/// Longest text a filter may carry, in characters: what the engine's columns hold.
pub const LONGEST: usize = 191;

/// Whether no column an operator searches by holds a text this long.
pub fn is_too_long(text: &str) -> bool {
    text.chars().nth(LONGEST).is_some()
}

fn parse_term(param: &str, value: &str, now: DateTime<Utc>, zone: Zone) -> Result<Term, String> {
    let (name, key) = match param.strip_suffix(']').and_then(|p| p.split_once('[')) {
        Some(("contains", field)) => (format!("{field}_contains"), None),
        Some((name, key)) => (name.to_owned(), Some(key.to_owned())),
        None => (param.to_owned(), None),
    };
    let Some(field) = field(&name) else {
        return Err("there is no such filter".into());
    };
    let is_map = matches!(field.kind, Kind::Label | Kind::SearchAttribute);
    match &key {
        Some(key) if is_map => check_key(key)?,
        Some(_) => return Err(format!("write it without a key: {name}={value}")),
        None if is_map => return Err(format!("name the key: {name}[key]=value")),
        None => {}
    }
    if is_too_long(value) {
        return Err(format!(
            "the value is too long: the engine keeps at most {LONGEST} characters"
        ));
    }
    if value.contains('\0') {
        return Err("the value contains a NUL character".into());
    }
    let test = match field.kind {
        Kind::Exact("namespace") if value == NONE => Test::Null,
        Kind::Exact(_)
        | Kind::Prefix(_)
        | Kind::Contains(_)
        | Kind::Label
        | Kind::SearchAttribute => Test::Text(value.to_owned()),
        Kind::Choice(_, words) => Test::Text(one_of(value, words)?.to_owned()),
        Kind::RepairState => Test::Text(one_of(value, RepairState::WORDS)?.to_owned()),
        Kind::Word(_, words) => Test::Text(word(value, words)?.to_owned()),
        Kind::Flag(_) | Kind::Presence(_) | Kind::IsTerminal | Kind::NonRetryable => {
            Test::Flag(flag(value)?)
        }
        Kind::NeedsRepair if flag(value)? => Test::Flag(true),
        Kind::NeedsRepair => {
            return Err("only needs_repair=1 is offered; leave it out to see all runs".into());
        }
        Kind::FailureCategory => Test::Category(match value {
            UNCLASSIFIED => None,
            word => Some(FailureCategory::from(one_of(word, &categories())?)),
        }),
        Kind::TaskProblem => Test::Problem(match one_of(value, TASK_PROBLEMS)? {
            "any" => ProblemTest::Any,
            "none" => ProblemTest::Absent,
            code => ProblemTest::Is(
                TaskProblem::ALL
                    .into_iter()
                    .find(|problem| problem.code() == code)
                    .expect("a listed code"),
            ),
        }),
        Kind::Attention => {
            let words = Attention::ALL.map(Attention::word);
            let word = one_of(value, &words)?;
            let found = Attention::ALL.into_iter().find(|one| one.word() == word);
            Test::Attention(
                found.unwrap_or(Attention::RepairNeeded),
                CountedAt::new(now),
            )
        }
        Kind::Within => Test::At(now - within(value)?),
        Kind::From | Kind::To => Test::At(moment(value, zone)?),
    };
    Ok(Term {
        field,
        key,
        value: value.to_owned(),
        test,
    })
}

/// Every word the failure filter takes.
pub fn categories() -> Vec<&'static str> {
    FailureCategory::KNOWN
        .iter()
        .copied()
        .chain([UNCLASSIFIED])
        .collect()
}

pub fn task_problems() -> &'static [&'static str] {
    TASK_PROBLEMS
}

fn check_key(key: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    if (1..=64).contains(&key.len()) && key.chars().all(plain) {
        Ok(())
    } else {
        Err("a key is 1 to 64 letters, digits or _ . : -".into())
    }
}

fn one_of<'w>(value: &str, words: &[&'w str]) -> Result<&'w str, String> {
    words
        .iter()
        .copied()
        .find(|word| *word == value)
        .ok_or_else(|| format!("{value:?} is not known; use one of {}", words.join(", ")))
}

/// A word the engine could write, known or not.
fn word<'v>(value: &'v str, words: &[&str]) -> Result<&'v str, String> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    if value.chars().all(is_word) {
        Ok(value)
    } else {
        Err(format!(
            "{value:?} is not a word the engine writes; known are {}",
            words.join(", ")
        ))
    }
}

fn flag(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        _ => Err(format!("{value:?} is neither yes nor no")),
    }
}

/// `15m`, `24h`, `7d`.
fn within(value: &str) -> Result<Duration, String> {
    let wrong = || format!("{value:?} is not a length of time; write for example 15m, 24h or 7d");
    let (number, unit) = value.split_at_checked(value.len() - 1).ok_or_else(wrong)?;
    let number: i64 = number
        .parse()
        .ok()
        .filter(|n| (1..=100_000).contains(n))
        .ok_or_else(wrong)?;
    match unit {
        "m" => Ok(Duration::minutes(number)),
        "h" => Ok(Duration::hours(number)),
        "d" => Ok(Duration::days(number)),
        _ => Err(wrong()),
    }
}

/// A moment: with its own zone, or in the page's. A zone may stand behind it as a page writes it
/// (`CET`, `-03`), by name or as an offset.
pub fn moment(value: &str, zone: Zone) -> Result<DateTime<Utc>, String> {
    let value = value.trim();
    let at = match DateTime::parse_from_rfc3339(value) {
        Ok(at) => at.to_utc(),
        Err(_) => shown_moment(value, zone)?,
    };
    if is_storable(at) {
        Ok(at)
    } else {
        Err(format!(
            "{value:?} is no time a database can hold; the years are 1 to 9999"
        ))
    }
}

/// Whether every database can hold this moment: beyond these years some have no such time, and
/// SQLite's text no longer sorts.
pub fn is_storable(at: DateTime<Utc>) -> bool {
    (1..=9999).contains(&at.year())
}

/// Where the day ends in what a clock shows.
const DAY: usize = "2026-11-15".len();

/// What a clock shows: of the zone behind it, else of the page's.
fn shown_moment(value: &str, zone: Zone) -> Result<DateTime<Utc>, String> {
    let of_clock = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.');
    let (clock, behind) = value
        .char_indices()
        .find(|(at, c)| *at > DAY && !of_clock(*c))
        .map_or((value, ""), |(at, _)| value.split_at(at));
    let clock = clock.trim_end();
    let naive = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
        .into_iter()
        .chain(["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"])
        .find_map(|form| NaiveDateTime::parse_from_str(clock, form).ok())
        .or_else(|| {
            NaiveDate::parse_from_str(clock, "%Y-%m-%d")
                .ok()
                .map(|day| day.and_time(chrono::NaiveTime::MIN))
        })
        .ok_or_else(|| {
            format!(
                "{value:?} is not a time; write 2026-11-15T23:50 ({zone}) or 2026-11-15T23:50:00Z"
            )
        })?;
    // A year no zone knows: named as such by the caller.
    if !is_storable(naive.and_utc()) {
        return Ok(naive.and_utc());
    }
    match behind.trim() {
        "" => zone
            .moment(naive)
            .ok_or_else(|| format!("{value} does not exist in {zone}: the clock was set forward")),
        behind => zone.moment_called(naive, behind).ok_or_else(|| {
            format!(
                "{behind:?} is no zone that had this time; write it without ({zone}), with Z, \
                 +01:00 or a name such as Europe/Berlin"
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(param: &str, value: &str) -> Result<Term, String> {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        parse_term(param, value, now, "Europe/Berlin".parse().unwrap())
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused_with_what_can() {
        for (param, value, says) in [
            ("status", "bogus", "use one of pending, running"),
            ("statuss", "failed", "no such filter"),
            ("archived", "maybe", "neither yes nor no"),
            ("started", "soon", "15m, 24h or 7d"),
            ("started", "h", "15m, 24h or 7d"),
            ("from", "yesterday", "2026-11-15T23:50"),
            (
                "from",
                "2026-03-29T02:30",
                "does not exist in Europe/Berlin",
            ),
            ("from", "-0001-01-01", "years are 1 to 9999"),
            ("from", "0000-12-31T23:59:59Z", "years are 1 to 9999"),
            ("to", "+262142-12-31", "years are 1 to 9999"),
            ("to", "9999-12-31T23:59:59-01:00", "years are 1 to 9999"),
            ("label", "x", "name the key"),
            ("label[a b]", "x", "letters, digits"),
            ("queue[x]", "y", "without a key"),
            ("failure_category", "nope", "use one of application"),
            ("needs_repair", "0", "leave it out"),
            ("queue", "a\0b", "NUL"),
        ] {
            let error = parse(param, value).expect_err(param);
            assert!(error.contains(says), "{param}={value}: {error}");
        }
        assert!(parse("queue", &"x".repeat(192)).is_err());
        assert!(parse("queue", &"ü".repeat(192)).is_err());
        assert!(parse("queue", &"ü".repeat(191)).is_ok());
    }

    #[test]
    fn values_are_understood_as_people_write_them() {
        for (param, value, want) in [
            ("status", "failed", Test::Text("failed".into())),
            ("namespace", "(none)", Test::Null),
            ("archived", "YES", Test::Flag(true)),
            (
                "started",
                "24h",
                Test::At("2026-11-14T12:00:00Z".parse().unwrap()),
            ),
            (
                "from",
                "2026-11-15",
                Test::At("2026-11-14T23:00:00Z".parse().unwrap()),
            ),
            (
                "to",
                "2026-11-15T10:00:00Z",
                Test::At("2026-11-15T10:00:00Z".parse().unwrap()),
            ),
            ("failure_category", "unclassified", Test::Category(None)),
            ("task_problem_code", "any", Test::Problem(ProblemTest::Any)),
            ("contains[workflow_type]", "ord", Test::Text("ord".into())),
            ("labels[team]", "blue", Test::Text("blue".into())),
        ] {
            assert_eq!(parse(param, value).unwrap().test, want, "{param}={value}");
        }
    }

    #[test]
    fn a_moment_is_understood_as_a_page_writes_it_and_in_no_other_zone() {
        for (page, value, want) in [
            ("Europe/Berlin", "2026-11-15T12:00", "2026-11-15T11:00:00Z"),
            (
                "Europe/Berlin",
                "2026-11-15 12:00:00 CET",
                "2026-11-15T11:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-11-15 12:00:00 UTC",
                "2026-11-15T12:00:00Z",
            ),
            (
                "Europe/Berlin",
                "2026-10-25 02:30:00 CET",
                "2026-10-25T01:30:00Z",
            ),
            (
                "America/Sao_Paulo",
                "2026-11-15 12:00:00 -03",
                "2026-11-15T15:00:00Z",
            ),
            (
                "UTC",
                "2026-11-15 12:00:00.387 UTC",
                "2026-11-15T12:00:00.387Z",
            ),
            (
                "UTC",
                "2026-11-15 12:00 Europe/Berlin",
                "2026-11-15T11:00:00Z",
            ),
            ("UTC", "2026-11-15T12:00Z", "2026-11-15T12:00:00Z"),
            ("UTC", "2026-11-15 UTC", "2026-11-15T00:00:00Z"),
        ] {
            let want: DateTime<Utc> = want.parse().unwrap();
            assert_eq!(moment(value, page.parse().unwrap()), Ok(want), "{value}");
        }
        // Summer's letters in November, letters of several zones, no zone at all.
        for value in [
            "12:00:00 CEST",
            "12:00:00 IST",
            "12:00:00 now",
            "12:00:00 +1",
        ] {
            let value = format!("2026-11-15 {value}");
            let refused = moment(&value, "Europe/Berlin".parse().unwrap()).unwrap_err();
            assert!(
                refused.contains("is no zone that had this time"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_an_error() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        for (from, to, wrong) in [
            ("2026-11-15", "2026-11-14", true),
            ("2026-11-15", "2026-11-15", true),
            ("2026-11-15", "2026-11-16", false),
            ("2026-11-15T10:00:00Z", "2026-11-15T10:30:00+01:00", true),
        ] {
            let params = [("from", from), ("to", to)];
            let (_, errors) = Filter::parse(params, &[], now, Zone::UTC);
            let named: Vec<_> = errors.iter().map(|error| error.param.as_str()).collect();
            assert_eq!(
                named,
                if wrong { vec!["from"] } else { vec![] },
                "{from} {to}"
            );
        }
    }

    #[test]
    fn two_values_for_one_filter_are_an_error_and_blanks_are_ignored() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let (filter, errors) = Filter::parse(
            [
                ("status", "failed"),
                ("queue", "  "),
                ("status", "waiting"),
                ("page", "2"),
            ],
            &["page"],
            now,
            Zone::UTC,
        );
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].param, "status");
        assert_eq!(filter.value("status"), Some("failed"));
        assert_eq!(filter.terms.len(), 1);
    }
}
