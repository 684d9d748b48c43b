//! What happened when, as rows of bars: the run, then one row per unit of work.
//!
//! An engine tells of its units in time ([`Unit`]); [`draw`] decides which rows are shown, folds
//! idle stretches ([`scale`]) and gives every bar its place.

mod density;
pub mod draw;
pub mod rows;
pub mod scale;

use chrono::{DateTime, TimeDelta, Utc};

use super::{fact::Fact, tag::Tag, window::Window};

/// What a unit is; the stylesheet has one hue for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Run,
    Activity,
    Timer,
    Signal,
    Update,
    Child,
    Condition,
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::Run,
        Self::Activity,
        Self::Timer,
        Self::Signal,
        Self::Update,
        Self::Child,
        Self::Condition,
    ];

    /// The word for it, and its name after `k-` in the stylesheet.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Activity => "activity",
            Self::Timer => "timer",
            Self::Signal => "signal",
            Self::Update => "update",
            Self::Child => "child",
            Self::Condition => "condition",
        }
    }
}

/// What a stretch of a unit's row was; each is drawn in its own pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Ready, and not yet begun.
    Queued,
    /// Done, and it went well.
    Done,
    /// Done, and it failed.
    Failed,
    /// Stopped on request.
    Cancelled,
    /// Its worker was not heard of again: nobody knows how it ended.
    Lost,
    /// Its task row is gone: nothing will begin or end it.
    Gone,
    /// Being done now, or still waited for.
    Open,
    /// The pause between two tries.
    Backoff,
    /// Not yet begun.
    Ahead,
    /// A moment by which something was to happen that has not.
    Due,
    /// A moment, not a stretch.
    Moment,
}

impl Phase {
    /// The word for it, and its name after `p-` in the stylesheet.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Gone => "gone",
            Self::Open => "open",
            Self::Backoff => "backoff",
            Self::Ahead => "ahead",
            Self::Due => "due",
            Self::Moment => "moment",
        }
    }

    /// What the legend calls it.
    pub fn legend(self) -> &'static str {
        match self {
            Self::Queued => "waits for a worker",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled or cut short",
            Self::Lost => "lease ran out",
            Self::Gone => "its task is gone",
            Self::Open => "still open",
            Self::Backoff => "backoff",
            Self::Ahead => "ahead",
            Self::Due => "was due",
            Self::Moment => "received",
        }
    }

    /// Nothing is done in it: a stretch of nothing else may be folded.
    fn is_idle(self) -> bool {
        matches!(self, Self::Queued | Self::Backoff | Self::Ahead | Self::Due)
    }

    /// Drawn as a diamond.
    pub fn is_moment(self) -> bool {
        matches!(self, Self::Due | Self::Moment)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub phase: Phase,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    /// The number of the try.
    pub attempt: Option<i64>,
    /// What it was, in words.
    pub says: String,
    /// A wait: work by nobody, however it ended.
    pub idle: bool,
}

impl Span {
    pub fn length(&self) -> TimeDelta {
        self.to - self.from
    }

    /// A numbered try that has not begun.
    fn is_try_ahead(&self) -> bool {
        self.phase == Phase::Ahead && self.attempt.is_some()
    }

    fn may_fold(&self) -> bool {
        self.idle || self.phase.is_idle()
    }
}

/// One row's worth of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Its anchor on the page, such as `activity-01abc`.
    pub id: String,
    pub kind: Kind,
    pub name: String,
    /// What it has in common with others of its kind: a long timeline gives them one row.
    pub family: String,
    /// Said beside the name: `2/4`, `15 m`.
    pub note: Option<String>,
    /// How it stands, in the engine's word.
    pub status: String,
    /// What else is to be known before it is believed: that a row alone tells of it.
    pub mark: Option<Tag>,
    pub is_open: bool,
    pub failed: bool,
    /// In time's order.
    pub spans: Vec<Span>,
    /// What else is known of it.
    pub facts: Vec<Fact>,
    /// The anchor of the row that tells more of it.
    pub row: Option<String>,
    /// The run it leads to: instance and run.
    pub leads_to: Option<(String, String)>,
}

impl Unit {
    pub fn from(&self) -> Option<DateTime<Utc>> {
        self.spans.iter().map(|span| span.from).min()
    }

    pub fn to(&self) -> Option<DateTime<Utc>> {
        self.spans.iter().map(|span| span.to).max()
    }

    /// From when to when anything was done or waited for.
    pub fn begun(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let begun = || {
            self.spans
                .iter()
                .filter(|span| !matches!(span.phase, Phase::Ahead | Phase::Due))
        };
        let from = begun().map(|span| span.from).min()?;
        Some((from, begun().map(|span| span.to).max()?))
    }

    /// Its kind, unless its name says so already.
    pub fn kind_said(&self) -> Option<&'static str> {
        Some(self.kind.name()).filter(|kind| *kind != self.name)
    }

    /// Forgets all spans but those at its ends: all that is asked of a group once it is drawn, and
    /// a page is kept for the next viewer.
    fn keep_ends(&mut self) {
        let (from, to, begun) = (self.from(), self.to(), self.begun());
        let mut ends: Vec<Span> = Vec::new();
        for span in self.spans.drain(..) {
            let edge = |edge: Option<DateTime<Utc>>, at| edge == Some(at);
            let of_all = edge(from, span.from) || edge(to, span.to);
            let of_begun = edge(begun.map(|ends| ends.0), span.from)
                || edge(begun.map(|ends| ends.1), span.to);
            let same =
                |kept: &Span| (kept.phase, kept.from, kept.to) == (span.phase, span.from, span.to);
            if (of_all || of_begun) && !ends.iter().any(same) {
                ends.push(span);
            }
        }
        self.spans = ends;
    }

    /// How many tries were begun.
    fn attempts(&self) -> usize {
        self.spans
            .iter()
            .filter(|span| span.attempt.is_some() && span.phase != Phase::Ahead)
            .count()
    }
}

/// A moment drawn across all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub name: &'static str,
    pub at: DateTime<Utc>,
    pub is_now: bool,
}

/// A share of the drawing's width, written as an SVG length.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2}%", self.0)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub rows: Vec<Row>,
    /// The units behind the rows.
    pub window: Window,
    /// The units of one kind and name alone, when asked for.
    pub of_group: Option<String>,
    pub ticks: Vec<Tick>,
    pub folds: Vec<Fold>,
    pub lines: Vec<Line>,
    /// How many lines of labels stand above the rows.
    pub levels: usize,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    /// A part of the run's time was asked for.
    pub zoomed: bool,
    /// The part that was asked for lies beside the run's time: all of it is shown.
    pub beside: bool,
    /// What is drawn, for the legend.
    pub kinds: Vec<Kind>,
    pub phases: Vec<Phase>,
}

impl Timeline {
    /// Where the units before these begin.
    pub fn previous(&self) -> Option<usize> {
        let from = self.window.from;
        (self.of_group.is_some() && from > 0).then(|| from.saturating_sub(rows::PAGE))
    }

    /// Where the units after these begin.
    pub fn next(&self) -> Option<usize> {
        let end = self.window.from + self.window.len;
        (self.of_group.is_some() && end < self.window.total).then_some(end)
    }

    /// Pixels: two lines for the ticks, one for each level of labels.
    pub fn axis_height(&self) -> usize {
        AXIS + LEVEL * self.levels
    }
}

/// Height of the axis without labels, and of one line of them, in pixels.
const AXIS: usize = 30;
/// Height of a row without its details, in pixels.
const ROW: u8 = 26;
const LEVEL: usize = 14;

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub unit: Unit,
    pub bars: Vec<Bar>,
    /// How many tries were begun.
    pub attempts: usize,
    /// How many units this row stands for, if it is not one alone.
    pub group: Option<usize>,
    /// Its details are shown.
    pub selected: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub span: Span,
    pub x: Share,
    pub width: Share,
    pub middle: Share,
    pub label: Option<Label>,
    /// In pixels.
    pub height: u8,
    /// Its label has room on a wide drawing only.
    pub tight: bool,
    /// Its label stands over the folds that cut it.
    pub over: bool,
}

impl Bar {
    /// A moment: drawn as a diamond, however long its row.
    pub fn is_point(&self) -> bool {
        let Span { phase, attempt, .. } = self.span;
        phase.is_moment() || (phase == Phase::Ahead && attempt.is_none())
    }

    /// Its upper edge, in pixels: it stands in the middle of its row.
    pub fn y(&self) -> u8 {
        ROW / 2 - self.height / 2
    }

    /// Of the ground its number stands on, in pixels: a pattern cannot be read through.
    pub fn chip(&self) -> Option<usize> {
        let Some(Label::Attempt(attempt)) = self.label else {
            return None;
        };
        matches!(self.span.phase, Phase::Failed | Phase::Cancelled)
            .then(|| 8 + 7 * attempt.to_string().len())
    }

    /// Where it ends.
    pub fn end(&self) -> Share {
        Share(self.x.0 + self.width.0)
    }
}

/// What is written on a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    Attempt(i64),
    /// How long it is.
    Length,
    /// The same, with the word before it.
    Backoff,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub x: Share,
    pub at: DateTime<Utc>,
    pub elapsed: TimeDelta,
    /// How far ticks are apart: a smaller unit need not be written, this one must.
    pub step: TimeDelta,
    /// Shown on a narrow drawing too.
    pub major: bool,
    /// Where its label stands on a wide drawing, and on a narrow one; nowhere without room.
    pub wide: Option<Side>,
    pub narrow: Option<Side>,
}

/// Of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

impl Tick {
    /// What the stylesheet calls the places of its label.
    pub fn label_class(&self) -> &'static str {
        match (self.wide, self.narrow) {
            (Some(Side::Right), Some(Side::Right)) | (None, None) => "",
            (Some(Side::Right), Some(Side::Left)) => " narrow-left",
            (Some(Side::Right), None) => " minor",
            (Some(Side::Left), Some(_)) => " left",
            (Some(Side::Left), None) => " left minor",
            (None, Some(Side::Right)) => " major",
            (None, Some(Side::Left)) => " major left",
        }
    }

    pub fn is_labelled(&self) -> bool {
        self.wide.is_some() || self.narrow.is_some()
    }

    /// How far from its line the label begins, in pixels.
    pub fn dx(&self) -> i8 {
        match self.wide.or(self.narrow) {
            Some(Side::Left) => -4,
            _ => 4,
        }
    }
}

/// A stretch in which nothing begins or ends, drawn shorter than it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    pub x: Share,
    pub width: Share,
    pub middle: Share,
    pub length: TimeDelta,
    pub ahead: bool,
    pub level: usize,
}

impl Fold {
    /// Of its label's line, in pixels.
    pub fn y(&self) -> usize {
        AXIS + LEVEL * self.level + 8
    }
}

/// A moment across all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub mark: Mark,
    pub x: Share,
    pub level: usize,
    /// Its label stands to the left of it.
    pub leftward: bool,
}

impl Line {
    /// Of its label's line, in pixels.
    pub fn y(&self) -> usize {
        AXIS + LEVEL * self.level + 8
    }
}
