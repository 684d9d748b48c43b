//! The form of a run's repair page, as a browser sends it and as others might.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum_test::{TestResponse, TestServer};
use plimsoll::{demo::Situation, durable::repair::Mode};

use crate::{
    repair_bulk::{find, hidden},
    repair_http::server,
    rig::{TestDb, on_every_database},
    row_diff, shop,
};

fn page_of(run: &Situation) -> String {
    format!(
        "/waterline/instances/{}/runs/{}/repair",
        run.instance_id, run.run_id
    )
}

/// What the page's own form would send.
#[derive(Clone, Debug)]
struct Sent {
    digest: String,
    token: String,
    name: String,
    reason: &'static str,
}

impl Sent {
    async fn by_the_page(server: &TestServer, run: &Situation) -> Self {
        let page = server.get(&page_of(run)).await.text();
        let of_form = |name| hidden(&page, "repair-form", name);
        Self {
            digest: of_form("digest"),
            token: of_form("token"),
            name: run.instance_id.clone(),
            reason: "the queue was flushed",
        }
    }
}

async fn send(
    server: &TestServer,
    run: &Situation,
    sent: &Sent,
    headers: &[(&'static str, &'static str)],
) -> TestResponse {
    let mut request = server.post(&page_of(run)).form(&[
        ("digest", sent.digest.as_str()),
        ("token", &sent.token),
        ("name", &sent.name),
        ("reason", sent.reason),
    ]);
    for (name, value) in headers {
        request = request.add_header(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    request.await
}

on_every_database! {
    async fn a_form_that_is_not_the_pages_own_writes_nothing(db: TestDb) {
        let situations = shop::fill_short(&db).await;
        let [lost, other] = ["activity-task-lost", "signal-task-lost"].map(|name| find(&situations, name));
        let before = row_diff::dump(&db.read_only).await;
        let writing = server(&db, Mode::Direct);
        let (own, of_other) = (Sent::by_the_page(&writing, lost).await, Sent::by_the_page(&writing, other).await);

        for headers in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            &[("host", "evil.example:7420"), ("origin", "http://evil.example:7420"), ("sec-fetch-site", "same-origin")],
        ] {
            let refused = send(&writing, lost, &own, headers).await;
            assert_eq!(refused.status_code(), StatusCode::FORBIDDEN, "{headers:?}");
            assert_eq!(row_diff::dump(&db.read_only).await, before, "{headers:?}");
        }

        let tampered = format!("0{}", &own.digest[1..]);
        let tampered = if tampered == own.digest { format!("1{}", &own.digest[1..]) } else { tampered };
        for (what, sent) in [
            ("no token", Sent { token: String::new(), ..own.clone() }),
            ("made up", Sent { token: "made up".to_owned(), ..own.clone() }),
            ("another run's token", Sent { token: of_other.token.clone(), ..own.clone() }),
            ("another run's token and digest", Sent { name: own.name.clone(), ..of_other.clone() }),
            ("a digest the token is not of", Sent { digest: tampered, ..own.clone() }),
        ] {
            let refused = send(&writing, lost, &sent, &[]).await;
            assert_eq!(refused.status_code(), StatusCode::FORBIDDEN, "{what}");
            assert_eq!(row_diff::dump(&db.read_only).await, before, "{what}");
        }

        for (what, sent) in [
            ("another run's name", Sent { name: of_other.name.clone(), ..own.clone() }),
            ("no reason", Sent { reason: "  ", ..own.clone() }),
        ] {
            let refused = send(&writing, lost, &sent, &[]).await;
            assert_eq!(refused.status_code(), StatusCode::UNPROCESSABLE_ENTITY, "{what}");
            assert!(refused.text().contains("Nothing was written"), "{what}");
            assert_eq!(row_diff::dump(&db.read_only).await, before, "{what}");
        }

        let reading = shop::server(&db.read_only);
        let page = reading.get(&page_of(lost)).await.text();
        assert!(page.contains("This copy is read-only: it was started without --allow-repair."), "{page}");
        assert!(!page.contains("repair-form"), "{page}");
        let refused = send(&reading, lost, &own, &[]).await;
        assert_eq!(refused.status_code(), StatusCode::FORBIDDEN);
        assert!(refused.text().contains("--allow-repair"), "{}", refused.text());
        assert_eq!(row_diff::dump(&db.read_only).await, before, "this copy only reads");

        let done = send(&writing, lost, &own, &[("sec-fetch-site", "same-origin")]).await;
        assert_eq!(done.status_code(), StatusCode::OK, "{}", done.text());
        assert!(done.text().contains("<b>Repaired</b>"), "{}", done.text());
        assert_ne!(row_diff::dump(&db.read_only).await, before, "the page's own form is taken");
    }

    async fn a_nudge_is_offered_and_told_as_one(db: TestDb) {
        let situations = shop::fill_short(&db).await;
        let stale = find(&situations, "stale-summary");
        let server = server(&db, Mode::Nudge);
        let page = server.get(&page_of(stale)).await.text();
        for told in ["Nudge this run", "Mark the stored summary of run", "A nudge leaves no record in the run", "workflow:v2:repair-pass --run-id"] {
            assert!(page.contains(told), "{told}: {page}");
        }
        let sent = Sent::by_the_page(&server, stale).await;
        let done = send(&server, stale, &sent, &[]).await;
        assert_eq!(done.status_code(), StatusCode::OK, "{}", done.text());
        let done = done.text();
        assert!(done.contains("<b>Nudged</b>") && done.contains("next repair pass rebuilds the task"), "{done}");
        assert!(!done.contains("the command that records it"), "{done}");

        let before = row_diff::dump(&db.read_only).await;
        let again = send(&server, stale, &sent, &[]).await;
        assert_eq!(again.status_code(), StatusCode::CONFLICT);
        assert!(again.text().contains("nothing_to_nudge"), "{}", again.text());
        assert_eq!(row_diff::dump(&db.read_only).await, before);
        let blocked = find(&situations, "replay-blocked-history-shape");
        let page = server.get(&page_of(blocked)).await.text();
        assert!(page.contains("does not clear a replay block") && !page.contains("repair-form"), "{page}");
    }
}
