//! What every page's template needs besides its own view: the frame around it, and the few
//! values (zone, now, base path) that decide how things inside are written.
//!
//! A page takes a [`Layout`] as an argument of its handler, names itself with
//! [`Layout::title`] and [`Layout::at`], and puts it into its view as the field `layout`.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use chrono::{DateTime, Utc};

use crate::web::filters::Shown;
use crate::web::format::{self, Moment};
use crate::web::state::{App, BasePath, VERSION};
use crate::{web::assets::Assets, zone::Zone};

/// The entries of the main menu, in its order. An entry is added with its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nav {
    Overview,
    Runs,
    Bundles,
}

impl Nav {
    pub const ALL: [Self; 3] = [Self::Overview, Self::Runs, Self::Bundles];

    pub fn label(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Runs => "Runs",
            Self::Bundles => "Bundles",
        }
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Runs => "/runs",
            Self::Bundles => "/bundles",
        }
    }

    /// The key that opens it, after `g`.
    pub fn key(self) -> char {
        match self {
            Self::Overview => 'o',
            Self::Runs => 'r',
            Self::Bundles => 'b',
        }
    }
}

/// Light or dark, as the operator chose or as their system says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];
    pub const COOKIE: &str = "plimsoll_theme";

    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }
}

/// What the operator chose, as their browser remembers it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    pub theme: Theme,
    /// None is the zone this server was started with.
    pub zone: Option<Zone>,
}

impl Choices {
    pub const ZONE_COOKIE: &str = "plimsoll_zone";

    pub fn of(headers: &HeaderMap) -> Self {
        let cookies = || {
            headers
                .get_all(header::COOKIE)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(';'))
                .filter_map(|pair| pair.trim().split_once('='))
        };
        let named = |wanted: &'static str| cookies().filter(move |(name, _)| *name == wanted);
        Self {
            theme: named(Theme::COOKIE)
                .find_map(|(_, value)| Theme::parse(value))
                .unwrap_or_default(),
            zone: named(Self::ZONE_COOKIE).find_map(|(_, value)| value.parse().ok()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Layout {
    pub title: String,
    pub nav: Option<Nav>,
    pub base: BasePath,
    pub theme: Theme,
    /// The one zone times are shown and read in.
    pub zone: Zone,
    /// The zone this server was started with.
    pub home_zone: Zone,
    /// One "now" for the whole page.
    pub now: DateTime<Utc>,
    pub read_only: bool,
    pub demo: bool,
    /// The policy that hides values of runs.
    pub hidden_by: Option<String>,
    /// The entries of the menu: without a database there are only bundles.
    pub entries: &'static [Nav],
    /// Where the switches of the header return to.
    pub back: String,
    /// htmx asked for the part it swaps, not for the whole page.
    pub partial: bool,
}

impl Layout {
    pub(super) fn new(app: &App, choices: Choices, back: String) -> Self {
        Self {
            title: String::new(),
            nav: None,
            base: app.base.clone(),
            theme: choices.theme,
            zone: choices.zone.unwrap_or(app.zone),
            home_zone: app.zone,
            now: app.clock.now(),
            read_only: app.repairs.is_none(),
            demo: app.demo,
            hidden_by: app.reader.policy().map(str::to_owned),
            entries: match app.db {
                Some(_) => &Nav::ALL,
                None => &[Nav::Bundles],
            },
            back,
            partial: false,
        }
    }

    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Which entry of the menu the page belongs to.
    #[must_use]
    pub fn at(mut self, nav: Nav) -> Self {
        self.nav = Some(nav);
        self
    }

    /// The address of a page of ours: `layout.href("/runs")`.
    pub fn href(&self, below: &str) -> String {
        self.base.path(below)
    }

    /// Where everything begins.
    pub fn home(&self) -> String {
        self.href(self.entries.first().map_or("/", |first| first.path()))
    }

    /// The address of an instance's current run.
    pub fn instance_href(&self, instance_id: &str) -> String {
        self.href(&format!("/instances/{}", segment(instance_id)))
    }

    /// The address of one run.
    pub fn run_href(&self, instance_id: &str, run_id: &str) -> String {
        self.href(&format!(
            "/instances/{}/runs/{}",
            segment(instance_id),
            segment(run_id)
        ))
    }

    pub fn asset(&self, name: &str) -> String {
        Assets::url(&self.base, name)
    }

    pub fn moment(&self, at: impl Shown<DateTime<Utc>>) -> Moment {
        Moment::new(at.shown(), self.now, self.zone)
    }

    /// The same to the millisecond, for what happens within a second.
    pub fn exact(&self, at: impl Shown<DateTime<Utc>>) -> Moment {
        let at = at.shown();
        Moment {
            absolute: format::exact(at, self.zone),
            ..Moment::new(at, self.now, self.zone)
        }
    }

    /// The policy to name on this page. A bundle was redacted when it was made, and says so itself.
    pub fn hides(&self) -> Option<&str> {
        self.hidden_by
            .as_deref()
            .filter(|_| !self.is_at(&Nav::Bundles))
    }

    pub fn is_at(&self, nav: &Nav) -> bool {
        self.nav.as_ref() == Some(nav)
    }

    /// The theme to write into the page; none leaves it to the system.
    pub fn chosen_theme(&self) -> Option<&'static str> {
        (self.theme != Theme::System).then(|| self.theme.name())
    }

    pub fn zone_name(&self) -> &'static str {
        self.zone.name()
    }

    /// Zones offered by name: UTC, and this server's own.
    pub fn zones(&self) -> Vec<&'static str> {
        let mut zones = vec![Zone::UTC.name(), self.home_zone.name()];
        zones.dedup();
        zones
    }

    pub fn version(&self) -> &'static str {
        VERSION
    }

    pub fn has(&self, nav: Nav) -> bool {
        self.entries.contains(&nav)
    }

    pub fn themes(&self) -> [Theme; Theme::ALL.len()] {
        Theme::ALL
    }
}

/// Ids are stored text: in a path they must not become more than one segment.
pub fn segment(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

/// The address to come back to: this one if it can be opened again, the start otherwise.
pub(super) fn back(app: &App, method: &Method, uri: &Uri) -> String {
    match uri.path_and_query() {
        Some(here) if method == Method::GET => here.to_string(),
        _ => app.base.path("/runs"),
    }
}

/// Whether htmx asked for something to put into a part of the page it shows. A restored page, or
/// a boosted link that names no target, wants the whole document.
pub(super) fn wants_part(headers: &HeaderMap) -> bool {
    let whole = headers.contains_key("hx-boosted") && !headers.contains_key("hx-target");
    headers.contains_key("hx-request")
        && !whole
        && !headers.contains_key("hx-history-restore-request")
}

impl FromRequestParts<App> for Layout {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let headers = &parts.headers;
        let back = back(app, &parts.method, &parts.uri);
        let mut layout = Self::new(app, Choices::of(headers), back);
        layout.partial = wants_part(headers);
        Ok(layout)
    }
}
