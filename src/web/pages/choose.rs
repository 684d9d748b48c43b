//! The switches of the header, theme and zone: plain forms, so that they work without scripts.
//! A choice is a cookie, because the server must know it to draw the first frame right.

use axum::extract::{Form, State};
use axum::http::header::SET_COOKIE;
use axum::response::{AppendHeaders, IntoResponse, Redirect};
use serde::Deserialize;

use crate::web::layout::{Choices, Theme};
use crate::web::state::{App, BasePath};
use crate::{web::error::AppError, zone::Zone};

#[derive(Debug, Deserialize)]
pub struct ThemeChoice {
    theme: String,
    back: Option<String>,
}

pub async fn theme(
    State(app): State<App>,
    Form(choice): Form<ThemeChoice>,
) -> Result<impl IntoResponse, AppError> {
    let theme = Theme::parse(&choice.theme)
        .ok_or_else(|| AppError::invalid("theme", "The theme is system, light or dark."))?;
    let kept = (theme != Theme::System).then(|| theme.name());
    Ok(remember(&app, Theme::COOKIE, kept, choice.back))
}

#[derive(Debug, Deserialize)]
pub struct ZoneChoice {
    zone: String,
    back: Option<String>,
}

pub async fn zone(
    State(app): State<App>,
    Form(choice): Form<ZoneChoice>,
) -> Result<impl IntoResponse, AppError> {
    let zone: Zone = choice.zone.trim().parse().map_err(|_| {
        AppError::invalid(
            "zone",
            "Not a zone Plimsoll knows; write one such as UTC or Europe/Berlin.",
        )
    })?;
    let kept = (zone != app.zone).then(|| zone.name());
    Ok(remember(&app, Choices::ZONE_COOKIE, kept, choice.back))
}

/// Back to the page the choice was made on, with a cookie that holds it; without a value the
/// cookie goes.
fn remember(
    app: &App,
    name: &str,
    value: Option<&str>,
    back: Option<String>,
) -> impl IntoResponse + use<> {
    let back = back
        .filter(|back| is_ours(&app.base, back))
        .unwrap_or_else(|| app.base.path("/runs"));
    let path = match app.base.as_str() {
        "" => "/",
        path => path,
    };
    let age = if value.is_some() { 31_536_000 } else { 0 };
    let cookie = format!(
        "{name}={}; Path={path}; Max-Age={age}; SameSite=Lax; HttpOnly",
        value.unwrap_or_default(),
    );
    (AppendHeaders([(SET_COOKIE, cookie)]), Redirect::to(&back))
}

/// Whether an address leads back to a page of ours and nowhere else. Browsers read `//host` and
/// `/\host` as another site, and drop tabs and newlines before they look.
fn is_ours(base: &BasePath, back: &str) -> bool {
    let path = back.split(['?', '#']).next().unwrap_or_default();
    back.bytes().all(|b| b.is_ascii_graphic())
        && path.starts_with('/')
        && !path.starts_with("//")
        && !back.contains('\\')
        && base.strip(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum_test::TestServer;
    use serde_json::json;

    use crate::web::routes;
    use crate::web::state::Settings;

    #[test]
    fn only_a_path_of_ours_is_returned_to() {
        let base: BasePath = "/x".parse().unwrap();
        let root: BasePath = "/".parse().unwrap();
        let table = [
            (&base, "/x/runs?status=failed", true),
            (&base, "/x", true),
            (&base, "/elsewhere", false),
            (&base, "/xy", false),
            (&base, "https://evil.example/x/", false),
            (&root, "/runs", true),
            (&root, "//evil.example", false),
            (&root, "/\\evil.example", false),
            (&root, "/\t/evil.example", false),
            (&root, "", false),
        ];
        for (base, back, ours) in table {
            assert_eq!(is_ours(base, back), ours, "{back:?} below {base}");
        }
    }

    #[tokio::test]
    async fn the_choice_is_kept_and_the_page_comes_back() {
        let server = TestServer::new(routes::router(App::new(Settings::default())));
        let response = server
            .post("/waterline/theme")
            .form(&json!({ "theme": "dark", "back": "/waterline/styleguide" }))
            .await;
        response.assert_status(axum::http::StatusCode::SEE_OTHER);
        assert_eq!(response.header("location"), "/waterline/styleguide");
        let cookie = response.header("set-cookie");
        assert_eq!(
            cookie,
            "plimsoll_theme=dark; Path=/waterline; Max-Age=31536000; SameSite=Lax; HttpOnly"
        );

        let page = server
            .get("/waterline/styleguide")
            .add_header("cookie", "a=b; plimsoll_theme=dark")
            .await;
        assert!(
            page.text()
                .contains(r#"<html lang="en" data-theme="dark">"#)
        );
    }

    #[tokio::test]
    async fn an_unknown_theme_is_refused_by_name() {
        let server = TestServer::new(routes::router(App::new(Settings::default())));
        let response = server
            .post("/waterline/theme")
            .add_header("accept", "application/json")
            .form(&json!({ "theme": "sepia" }))
            .await;
        response.assert_status_unprocessable_entity();
        response.assert_json_contains(&json!({
            "message": "The theme is system, light or dark.",
            "errors": { "theme": ["The theme is system, light or dark."] },
            "error": "unprocessable",
            "request_id": response.header("x-request-id").to_str().unwrap(),
        }));
    }

    #[tokio::test]
    async fn a_zone_is_kept_and_every_time_is_shown_in_it() {
        let server = TestServer::new(routes::router(App::new(Settings::default())));
        let response = server
            .post("/waterline/zone")
            .form(&json!({ "zone": "Asia/Kathmandu", "back": "/waterline/styleguide" }))
            .await;
        response.assert_status(axum::http::StatusCode::SEE_OTHER);
        assert_eq!(
            response.header("set-cookie"),
            "plimsoll_zone=Asia/Kathmandu; Path=/waterline; Max-Age=31536000; SameSite=Lax; HttpOnly"
        );
        let page = server
            .get("/waterline/styleguide")
            .add_header("cookie", "plimsoll_zone=Asia/Kathmandu")
            .await;
        assert!(page.text().contains("Asia/Kathmandu"));
        let page = server
            .get("/waterline/styleguide")
            .add_header("cookie", "plimsoll_zone=Nowhere/Land")
            .await;
        page.assert_status_ok();

        let wrong = server
            .post("/waterline/zone")
            .form(&json!({ "zone": "Nowhere/Land" }))
            .await;
        wrong.assert_status_unprocessable_entity();
        assert!(wrong.text().contains("Europe/Berlin"));
    }
}
