//! What the address of a run's page asks for, and which rows of a section it therefore shows.
//!
//! A section with few rows is shown at once. A long one is folded until it is asked for
//! (`?open=tasks`), and then shown a page at a time (`?tasks=50`), or where a row is
//! (`?at=task-01abc`, the anchor of the row).

use url::form_urlencoded;

/// Sections with no more rows than this are shown without being asked for.
const EAGER: usize = 12;
/// Rows of a long section shown at a time.
pub const PAGE: usize = 50;

/// The query of a run page's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked(Vec<(String, String)>);

impl Asked {
    pub fn parse(query: &str) -> Self {
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The query with some of its parts set anew or, without a value, left out.
    pub fn changed(&self, changes: &[(&str, Option<&str>)]) -> String {
        let kept = self
            .0
            .iter()
            .filter(|(name, _)| changes.iter().all(|(changed, _)| name != changed))
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let set = changes
            .iter()
            .filter_map(|(name, value)| Some((*name, (*value)?)));
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept.chain(set))
            .finish();
        if query.is_empty() {
            query
        } else {
            format!("?{query}")
        }
    }

    /// Which of a section's rows to show. `place` finds the row with an anchor.
    pub fn window(
        &self,
        section: &str,
        total: usize,
        place: impl FnOnce(&str) -> Option<usize>,
    ) -> Window {
        let page = self.get(section).and_then(|from| from.parse().ok());
        let row = self.get("at").and_then(place);
        let opened = self
            .0
            .iter()
            .any(|(name, value)| name == "open" && value == section);
        let from = match (page, row) {
            (Some(from), _) => Some(from),
            (None, Some(row)) => Some(row / PAGE * PAGE),
            (None, None) => (opened || total <= EAGER).then_some(0),
        };
        let from = from.map(|from| if from < total { from } else { 0 });
        Window {
            from: from.unwrap_or(0),
            len: from.map_or(0, |from| (total - from).min(PAGE)),
            total,
            loaded: from.is_some(),
        }
    }
}

/// A stretch of a section's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub from: usize,
    pub len: usize,
    pub total: usize,
    /// Folded and left out until it is asked for when false.
    pub loaded: bool,
}

impl Window {
    /// The rows of the window.
    pub fn of<'t, T>(&self, rows: &'t [T]) -> &'t [T] {
        rows.get(self.from..self.from.saturating_add(self.len))
            .unwrap_or_default()
    }

    /// Where the page before begins.
    pub fn previous(&self) -> Option<usize> {
        (self.loaded && self.from > 0).then(|| self.from.saturating_sub(PAGE))
    }

    /// Where the page after begins.
    pub fn next(&self) -> Option<usize> {
        let end = self.from.saturating_add(self.len);
        (self.loaded && end < self.total).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_section_is_shown_and_a_long_one_on_request() {
        let place = |anchor: &str| anchor.strip_prefix("row-")?.parse().ok();
        for (query, total, from, len, loaded) in [
            ("", 0, 0, 0, true),
            ("", 12, 0, 12, true),
            ("", 13, 0, 0, false),
            ("open=tasks", 13, 0, 13, true),
            ("open=waits&open=tasks", 120, 0, 50, true),
            ("tasks=50", 120, 50, 50, true),
            ("tasks=100", 120, 100, 20, true),
            ("tasks=120", 120, 0, 50, true),
            ("tasks=many", 120, 0, 0, false),
            ("at=row-77", 120, 50, 50, true),
            ("at=task-77", 120, 0, 0, false),
        ] {
            let window = Asked::parse(query).window("tasks", total, place);
            let want = Window {
                from,
                len,
                total,
                loaded,
            };
            assert_eq!(window, want, "{query} of {total}");
        }
    }

    #[test]
    fn a_window_knows_its_neighbours() {
        let window = |query| Asked::parse(query).window("tasks", 120, |_| None);
        assert_eq!(window("").next(), None);
        assert_eq!(window("tasks=0").previous(), None);
        assert_eq!(window("tasks=0").next(), Some(50));
        assert_eq!(window("tasks=20").previous(), Some(0));
        assert_eq!(window("tasks=100").next(), None);
        assert_eq!(window("tasks=100").of(&vec![0; 120]).len(), 20);
    }

    #[test]
    fn the_query_changes_only_where_asked() {
        let asked = Asked::parse("unit=a%20b&open=tasks");
        assert_eq!(asked.changed(&[("unit", None)]), "?open=tasks");
        assert_eq!(
            asked.changed(&[("unit", Some("c&d"))]),
            "?open=tasks&unit=c%26d"
        );
        assert_eq!(Asked::default().changed(&[]), "");
    }
}
