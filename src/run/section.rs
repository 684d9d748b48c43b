//! The rows of one section of the page: those shown, and of a long run those around them too, so
//! that turning a page takes no reading.

use std::sync::Arc;

use super::window::{Asked, Window};

/// Rows made at once, where more are made than shown.
const STRETCH: usize = 250;

/// A row that an address can name.
pub trait Anchored {
    fn anchor(&self) -> &str;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Section<R> {
    /// Which of all rows are shown.
    pub window: Window,
    /// Which of all rows the first one made is.
    first: usize,
    made: Arc<[R]>,
}

impl<R> Section<R> {
    /// The section at a window. `make` makes the rows of a stretch, which is longer than what is
    /// shown where the next view draws from it too.
    pub fn new(window: Window, ahead: bool, make: impl FnOnce(Window) -> Vec<R>) -> Self {
        let stretch = if ahead {
            let from = window.from / STRETCH * STRETCH;
            let shown_to = window.from + window.len;
            Window {
                from,
                len: (from + STRETCH).max(shown_to).min(window.total) - from,
                ..window
            }
        } else {
            window
        };
        Self {
            window,
            first: stretch.from,
            made: make(stretch).into(),
        }
    }

    /// The rows shown.
    pub fn rows(&self) -> &[R] {
        let from = self.window.from.saturating_sub(self.first);
        let to = from.saturating_add(self.window.len);
        self.made.get(from..to).unwrap_or_default()
    }

    /// How many rows it keeps.
    pub fn made(&self) -> usize {
        self.made.len()
    }
}

impl<R: Anchored> Section<R> {
    fn place(&self, anchor: &str) -> Option<usize> {
        let found = self.made.iter().position(|row| row.anchor() == anchor);
        found.map(|place| self.first + place)
    }

    pub fn has(&self, anchor: &str) -> bool {
        self.place(anchor).is_some()
    }

    /// The same section at another window; none where its rows were not made.
    pub fn turned(&self, name: &str, asked: &Asked) -> Option<Self> {
        let window = asked.window(name, self.window.total, |at| self.place(at));
        let made = self.first..=self.first + self.made.len();
        let there = made.contains(&window.from) && made.contains(&(window.from + window.len));
        (window.len == 0 || there).then(|| Self {
            window,
            first: self.first,
            made: Arc::clone(&self.made),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(String);

    impl Anchored for Row {
        fn anchor(&self) -> &str {
            &self.0
        }
    }

    fn section(query: &str, ahead: bool) -> Section<Row> {
        let window = Asked::parse(query).window("tasks", 1_000, |_| None);
        Section::new(window, ahead, |stretch| {
            let rows = stretch.from..stretch.from + stretch.len;
            rows.map(|n| Row(format!("task-{n}"))).collect()
        })
    }

    fn shown(section: &Section<Row>) -> Option<(&str, usize)> {
        Some((section.rows().first()?.anchor(), section.rows().len()))
    }

    #[test]
    fn pages_of_one_stretch_are_turned_without_reading() {
        let folded = section("", true);
        assert_eq!((shown(&folded), folded.made()), (None, 250));
        for (query, want) in [
            ("open=tasks", Some(Some(("task-0", 50)))),
            ("tasks=50", Some(Some(("task-50", 50)))),
            ("tasks=200", Some(Some(("task-200", 50)))),
            ("at=task-249", Some(Some(("task-200", 50)))),
            ("", Some(None)),
            // Partly, or not at all, in what was made.
            ("tasks=201", None),
            ("tasks=250", None),
        ] {
            let turned = folded.turned("tasks", &Asked::parse(query));
            assert_eq!(turned.as_ref().map(shown), want, "{query}");
        }
        let later = section("tasks=730", true);
        assert_eq!(shown(&later), Some(("task-730", 50)));
        let turned = later.turned("tasks", &Asked::parse("tasks=500"));
        assert_eq!(turned.as_ref().and_then(shown), Some(("task-500", 50)));
    }

    #[test]
    fn only_what_is_shown_is_made_of_a_run_that_is_read_each_time() {
        assert_eq!(section("", false).made(), 0);
        assert_eq!(section("tasks=50", false).made(), 50);
        assert_eq!(shown(&section("tasks=50", false)), Some(("task-50", 50)));
    }
}
