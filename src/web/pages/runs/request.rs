//! What a URL of the list asks for, and the URLs that ask for something a little different.

use axum::{extract::FromRequestParts, http::request::Parts};
use chrono::{DateTime, Utc};

use crate::{
    durable::store::runs::{Cursor, Direction, Filter, FilterError, PageRequest},
    web::{format, layout::Choices, state::App},
    zone::Zone,
};

pub const SIZES: [u32; 3] = [25, 50, 100];
pub const DEFAULT_SIZE: u32 = 50;

/// Parameters of the list that are not filters.
pub const OTHERS: &[&str] = &[
    "cursor",
    "sort",
    "sort_direction",
    "per_page",
    "page",
    "attribute_key",
    "attribute_value",
];

/// A list as asked for, with whatever could not be understood.
#[derive(Clone, Debug)]
pub struct ListRequest {
    pub page: PageRequest,
    /// `page=`, for callers that count pages.
    pub number: Option<u32>,
    pub errors: Vec<FilterError>,
    /// Parameters with an error, as they were given, so that a form can show them again.
    pub refused: Vec<(String, String)>,
    /// The URL carries blank fields of a form; the tidy one says the same.
    pub untidy: bool,
    /// Times without a zone of their own are in this one.
    pub zone: Zone,
}

impl FromRequestParts<App> for ListRequest {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let zone = Choices::of(&parts.headers).zone.unwrap_or(app.zone);
        let query = parts.uri.query().unwrap_or_default();
        let mut list = Self::parse(query, app.clock.now(), zone);
        let late = app.engine.int("task_repair.redispatch_after_seconds");
        list.page.filter.counted_with(late);
        Ok(list)
    }
}

impl ListRequest {
    /// What its rows are counted as: one query means other moments in another zone.
    pub fn counted_as(&self) -> String {
        format!("{} {}", self.zone, self.query())
    }

    pub fn parse(query: &str, now: DateTime<Utc>, zone: Zone) -> Self {
        let mut params: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let given = params.len();
        params.retain(|(_, value)| !value.trim().is_empty());
        let has_blanks = params.len() < given;
        let half = fold_attribute(&mut params);
        let untidy = has_blanks || params.len() < given;
        let (filter, mut errors) = Filter::parse(
            params
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
            OTHERS,
            now,
            zone,
        );
        let get = |name: &str| {
            params
                .iter()
                .rfind(|(param, _)| param == name)
                .map(|(_, value)| value.as_str())
        };
        let mut wrong = |param: &str, message: String| {
            errors.push(FilterError {
                param: param.to_owned(),
                message,
            });
        };
        if let Some((given, missing)) = half {
            wrong(given, format!("{missing} is missing; give both or neither"));
        }
        let cursor = match get("cursor").map(str::parse::<Cursor>) {
            None => None,
            Some(Ok(cursor)) => Some(cursor),
            Some(Err(message)) => {
                wrong("cursor", message);
                None
            }
        };
        if let Some(sort) = get("sort")
            .filter(|sort| !matches!(*sort, "started_at" | "sort_timestamp" | "asc" | "desc"))
        {
            wrong(
                "sort",
                format!("{sort:?} is not served by an index; runs are sorted by started_at only"),
            );
        }
        let direction = match get("sort_direction")
            .or(get("sort").filter(|sort| matches!(*sort, "asc" | "desc")))
        {
            None | Some("desc") => Direction::NewestFirst,
            Some("asc") => Direction::OldestFirst,
            Some(other) => {
                wrong(
                    "sort_direction",
                    format!("{other:?} is neither desc (newest first) nor asc"),
                );
                Direction::NewestFirst
            }
        };
        let size = match get("per_page").map(str::parse::<u32>) {
            None => DEFAULT_SIZE,
            Some(Ok(size)) if (1..=200).contains(&size) => size,
            Some(_) => {
                wrong("per_page", "choose between 1 and 200 rows".into());
                DEFAULT_SIZE
            }
        };
        let number = match get("page").map(str::parse::<u32>) {
            None => None,
            Some(Ok(number)) if number >= 1 => Some(number),
            Some(_) => {
                wrong("page", "pages are counted from 1".into());
                None
            }
        };
        let refused = params
            .iter()
            .filter(|(name, _)| errors.iter().any(|error| error.param == *name))
            .cloned()
            .collect();
        Self {
            refused,
            page: PageRequest {
                filter,
                direction,
                cursor,
                size,
            },
            number,
            errors,
            untidy,
            zone,
        }
    }

    /// Times that only say what a clock shows are other ones for a reader in another zone: an
    /// address that names the moments themselves says the same to all.
    pub fn pin(&mut self) {
        for term in &mut self.page.filter.terms {
            if let Some(at) = term.moment()
                && !format::is_instant(&term.value)
            {
                term.value = format::instant(at);
                self.untidy = true;
            }
        }
    }

    /// The tidy query string of this very page.
    pub fn tidy(&self) -> String {
        match &self.page.cursor {
            Some(cursor) => self.at(cursor),
            None => self.query(),
        }
    }

    /// The query string of this list without its place, which also names it in caches.
    pub fn query(&self) -> String {
        self.with(&[], None)
    }

    /// The query string of this list at another place.
    pub fn at(&self, cursor: &Cursor) -> String {
        self.with(&[], Some(cursor))
    }

    /// The query string with filters replaced (`Some`) or taken away (`None`), from the start.
    pub fn changed(&self, changes: &[(&str, Option<&str>)]) -> String {
        self.with(changes, None)
    }

    fn with(&self, changes: &[(&str, Option<&str>)], cursor: Option<&Cursor>) -> String {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        let changed = |param: &str| changes.iter().any(|(name, _)| *name == param);
        for term in &self.page.filter.terms {
            let param = term.param();
            if !changed(&param) {
                out.append_pair(&param, &term.value);
            }
        }
        for (name, value) in changes {
            if let Some(value) = value {
                out.append_pair(name, value);
            }
        }
        if self.page.direction == Direction::OldestFirst && !changed("sort_direction") {
            out.append_pair("sort_direction", "asc");
        }
        if self.page.size != DEFAULT_SIZE && !changed("per_page") {
            out.append_pair("per_page", &self.page.size.to_string());
        }
        if let Some(cursor) = cursor {
            out.append_pair("cursor", &cursor.to_string());
        }
        let query = out.finish();
        if query.is_empty() {
            query
        } else {
            format!("?{query}")
        }
    }
}

/// A form cannot name a parameter after one of its own fields: it sends the key and the value
/// of a search attribute apart. One without the other stays, and is named with what is missing.
fn fold_attribute(params: &mut Vec<(String, String)>) -> Option<(&'static str, &'static str)> {
    const KEY: &str = "attribute_key";
    const VALUE: &str = "attribute_value";
    let at = |name: &str| params.iter().position(|(param, _)| param == name);
    match (at(KEY), at(VALUE)) {
        (Some(key), Some(value)) => {
            let name = format!("search_attribute[{}]", params[key].1.trim());
            params[value].0 = name;
            params.remove(key);
            None
        }
        (Some(_), None) => Some((KEY, VALUE)),
        (None, Some(_)) => Some((VALUE, KEY)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> ListRequest {
        ListRequest::parse(query, Utc::now(), Zone::UTC)
    }

    #[test]
    fn changing_a_filter_keeps_the_others_and_leaves_the_page() {
        let list = list(
            "status=failed&queue=a+b&cursor=next~2026-11-15T10:00:00.000000Z~01x&per_page=25&sort_direction=asc",
        );
        assert_eq!(
            list.changed(&[("status", Some("waiting"))]),
            "?queue=a+b&status=waiting&sort_direction=asc&per_page=25"
        );
        assert_eq!(
            list.changed(&[("queue", None), ("sort_direction", None)]),
            "?status=failed&per_page=25"
        );
    }

    #[test]
    fn what_a_clock_shows_is_pinned_and_a_length_of_time_is_not() {
        for (query, pinned) in [
            ("from=2026-11-15+10:00", "?from=2026-11-15T10%3A00%3A00Z"),
            (
                "from=2026-11-15T10:00:00Z",
                "?from=2026-11-15T10%3A00%3A00Z",
            ),
            ("started=24h", "?started=24h"),
        ] {
            let mut list = list(query);
            list.pin();
            assert_eq!(list.query(), pinned);
        }
    }

    #[test]
    fn a_form_with_blank_fields_has_a_tidy_address() {
        let list = list("status=failed&queue=&attribute_key=team&attribute_value=blue");
        assert!(list.untidy && list.errors.is_empty(), "{:?}", list.errors);
        assert_eq!(
            list.query(),
            "?status=failed&search_attribute%5Bteam%5D=blue"
        );
    }

    #[test]
    fn half_a_search_attribute_is_no_filter() {
        for (query, param) in [
            ("attribute_key=team&attribute_value=", "attribute_key"),
            ("attribute_value=blue", "attribute_value"),
        ] {
            let list = list(query);
            assert_eq!(list.errors.len(), 1, "{query}");
            assert_eq!(list.errors[0].param, param);
            assert_eq!(list.refused[0].0, param);
        }
    }

    #[test]
    fn one_filter_has_one_value() {
        assert_eq!(
            list("status=failed&status=waiting").errors[0].param,
            "status"
        );
        assert!(list("status=failed&status=failed").errors.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let list =
            list("sort=duration&per_page=0&page=0&cursor=x&sort_direction=up&statuss=failed");
        let params: Vec<_> = list
            .errors
            .iter()
            .map(|error| error.param.as_str())
            .collect();
        assert_eq!(
            params,
            [
                "statuss",
                "cursor",
                "sort",
                "sort_direction",
                "per_page",
                "page"
            ]
        );
    }
}
