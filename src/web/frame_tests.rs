use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use axum_test::{TestResponse, TestServer};
use serde_json::Value;

use super::*;
use crate::web::assets::Assets;
use crate::web::routes;
use crate::web::state::{BasePath, Settings};

fn app(base: &str) -> App {
    App::new(Settings {
        base: base.parse().expect("a base path"),
        request_timeout: Duration::from_millis(50),
        ..Settings::default()
    })
}

/// The product's routes and a few that only misbehave.
fn server(base: &str) -> TestServer {
    let app = app(base);
    let at = |below: &str| app.base.path(below);
    let table = routes::table(&app)
        .route(&at("/panic"), get(panics))
        .route(&at("/api/panic"), get(panics))
        .route(&at("/slow"), any(std::future::pending::<()>))
        .route(&at("/sink"), post(async |_: Bytes| "swallowed"))
        .route(
            &at("/three"),
            get(async || {
                for _ in 0..3 {
                    db::bump();
                }
                "counted"
            }),
        )
        .route(
            "/probe",
            get(async || (StatusCode::SERVICE_UNAVAILABLE, "not ready")),
        );
    TestServer::new(framed(table, app))
}

async fn panics() {
    panic!("the secret is 42");
}

fn text(response: &TestResponse, name: &str) -> String {
    let value = response.maybe_header(name);
    value.map_or_else(String::new, |v| v.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_answered_by_probes_alone() {
    let server = server("/x");
    for (path, status) in [
        ("/x/styleguide", 403),
        ("/x/api/flows/all", 403),
        ("/nowhere", 403),
        ("/livez", 200),
        ("/metrics", 200),
    ] {
        let answer = server.get(path).add_header("host", "evil.example").await;
        assert_eq!(answer.status_code(), status, "{path}");
        assert_eq!(
            answer.text().contains("--public-host"),
            status == 403,
            "{}",
            answer.text()
        );
    }
    let ours = server
        .get("/x/styleguide")
        .add_header("host", "localhost:7420");
    assert_eq!(ours.await.status_code(), 200);
}

#[test]
fn the_log_has_no_address_of_a_bundle() {
    let app = app("/x");
    for (path, told) in [
        ("/x/bundles", "/x/bundles"),
        ("/x/bundles/", "/x/bundles/"),
        ("/x/bundles/Se-cret", "/x/bundles/***"),
        ("/x/bundles/Se-cret/history", "/x/bundles/***/history"),
        ("/bundles/other", "/bundles/other"),
        ("/x/instances/a/runs/b", "/x/instances/a/runs/b"),
    ] {
        assert_eq!(logged(&app, path), told);
    }
}

#[tokio::test]
async fn every_kind_of_response_carries_the_headers() {
    let server = server("/x");
    let css = Assets::url(&"/x".parse::<BasePath>().unwrap(), "plimsoll.css");
    for (path, status) in [
        ("/livez", 200),
        ("/favicon.ico", 200),
        ("/x/styleguide", 200),
        (&*css, 200),
        ("/", 303),
        ("/nowhere", 404),
        ("/x/api/nowhere", 404),
        ("/x/theme", 405),
        ("/x/panic", 500),
        ("/x/slow", 503),
        ("/probe", 503),
    ] {
        let response = server.get(path).await;
        assert_eq!(response.status_code(), status, "{path}");
        let csp = text(&response, "content-security-policy");
        assert!(csp.starts_with("default-src 'none'"), "{path}: {csp}");
        assert!(!csp.contains("unsafe"), "{path}: {csp}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(text(&response, name), value, "{path}");
        }
        for name in [
            "permissions-policy",
            "x-request-id",
            "x-statements",
            "cache-control",
        ] {
            assert!(!text(&response, name).is_empty(), "{path} has no {name}");
        }
    }
}

#[tokio::test]
async fn a_missing_page_is_told_in_the_callers_language() {
    let server = server("/x");

    let page = server.get("/x/nowhere").await;
    assert!(text(&page, "content-type").starts_with("text/html"));
    assert!(page.text().contains("<h1>Not found</h1>"));
    assert!(page.text().contains(&text(&page, "x-request-id")));

    for (path, accept) in [
        ("/x/api/nowhere", "*/*"),
        ("/x/nowhere", "application/json"),
    ] {
        let answer = server.get(path).add_header("accept", accept).await;
        answer.assert_status_not_found();
        let body: Value = answer.json();
        assert_eq!(body["error"], "not_found", "{path}");
        assert_eq!(body["message"], "This page was not found.");
        assert_eq!(body["request_id"], text(&answer, "x-request-id"));
    }

    // htmx asks for a part of the page, by itself or for a boosted link that names its target.
    for headers in [
        &["hx-request"][..],
        &["hx-request", "hx-boosted", "hx-target"],
    ] {
        let mut request = server.get("/x/nowhere");
        for name in headers {
            request = request.add_header(*name, "true");
        }
        let toast = request.await;
        assert_eq!(text(&toast, "hx-retarget"), "#toasts");
        assert_eq!(text(&toast, "hx-reselect"), ".toast");
        assert_eq!(text(&toast, "hx-push-url"), "false");
        assert!(!toast.text().contains("<html"));
    }
    let whole = server
        .get("/x/nowhere")
        .add_header("hx-request", "true")
        .add_header("hx-boosted", "true")
        .await;
    assert!(whole.text().contains("<html"), "a boosted page is whole");
}

#[tokio::test]
async fn a_panic_is_an_error_page_and_the_server_goes_on() {
    let server = server("/x");
    let page = server
        .get("/x/panic")
        .add_header("x-request-id", "seen-by-proxy.7")
        .await;
    page.assert_status_internal_server_error();
    assert_eq!(text(&page, "x-request-id"), "seen-by-proxy.7");
    assert!(page.text().contains("seen-by-proxy.7"));
    assert!(!page.text().contains("42"), "details stay in the log");

    let answer = server.get("/x/api/panic").await;
    answer.assert_status_internal_server_error();
    assert_eq!(answer.json::<Value>()["error"], "plimsoll_error");

    server.get("/livez").await.assert_text("ok");
}

#[tokio::test]
async fn an_id_that_would_not_fit_a_log_line_is_replaced() {
    let server = server("/x");
    for id in ["", "two words", "a\"b", &"x".repeat(129)] {
        let response = server.get("/livez").add_header("x-request-id", id).await;
        assert_eq!(text(&response, "x-request-id").len(), 26, "{id:?}");
    }
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_answered_anyway() {
    let server = server("/x");
    let page = server.get("/x/slow").await;
    page.assert_status_service_unavailable();
    assert_eq!(text(&page, "retry-after"), "5");
    assert!(page.text().contains("Took too long"));
    assert!(!page.text().contains("may still be done"));

    let page = server.post("/x/slow").await;
    page.assert_status_service_unavailable();
    assert!(page.text().contains("may still be done"));
}

#[tokio::test]
async fn what_the_router_refuses_has_a_face_too() {
    let server = server("/x");

    let large = Bytes::from(vec![0; BODY_LIMIT + 1]);
    let page = server.post("/x/sink").bytes(large).await;
    page.assert_status(StatusCode::PAYLOAD_TOO_LARGE);
    assert!(page.text().contains("<h1>Too large</h1>"));

    let page = server.get("/x/theme").await;
    page.assert_status(StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(text(&page, "allow"), "POST");
    assert!(page.text().contains("<h1>Method not allowed</h1>"));

    // A probe's plain words are its own.
    server.get("/probe").await.assert_text("not ready");
}

#[tokio::test]
async fn statements_are_counted_for_each_request() {
    let server = server("/x");
    assert_eq!(text(&server.get("/x/three").await, "x-statements"), "3");
    assert_eq!(text(&server.get("/livez").await, "x-statements"), "0");
}

#[tokio::test]
async fn pages_are_compressed_when_asked_and_never_kept() {
    let server = server("/x");
    let page = server
        .get("/x/styleguide")
        .add_header("accept-encoding", "gzip")
        .await;
    assert_eq!(text(&page, "content-encoding"), "gzip");
    assert_eq!(text(&page, "cache-control"), "no-store");
}

#[tokio::test]
async fn every_base_path_has_its_pages_and_the_root_its_probes() {
    for (base, start) in [("/x", "/x/"), ("/x/y", "/x/y/")] {
        let server = server(base);
        let prefix = base.trim_end_matches('/');
        server.get("/livez").await.assert_text("ok");
        server.get("/up").await.assert_text("ok");
        for way_in in ["/", base] {
            let response = server.get(way_in).await;
            assert_eq!(text(&response, "location"), start, "{way_in} below {base}");
        }
        let page = server.get(&format!("{prefix}/styleguide")).await;
        page.assert_status_ok();
        let page = page.text();
        assert!(page.contains(&format!("action=\"{prefix}/zone\"")));
        assert!(page.contains(&format!("href=\"{prefix}/bundles\"")));
    }
}

#[tokio::test]
async fn assets_are_kept_for_ever_under_their_fingerprint() {
    let server = server("/x");
    let page = server.get("/x/styleguide").await.text();
    let base: BasePath = "/x".parse().unwrap();
    for (name, kind) in [
        ("plimsoll.css", "text/css; charset=utf-8"),
        ("plimsoll.js", "text/javascript; charset=utf-8"),
        ("vendor/htmx.min.js", "text/javascript; charset=utf-8"),
        ("favicon.svg", "image/svg+xml"),
    ] {
        let url = Assets::url(&base, name);
        assert!(page.contains(&url), "{name} is on the page");
        let asset = server.get(&url).await;
        asset.assert_status_ok();
        assert_eq!(text(&asset, "content-type"), kind);
        assert_eq!(
            text(&asset, "cache-control"),
            "public, max-age=31536000, immutable"
        );
        server
            .get(&format!("/x/assets/{name}"))
            .await
            .assert_status_not_found();
    }
}
