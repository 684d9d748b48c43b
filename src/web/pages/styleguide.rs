//! Every tag, mark and part in both themes on one page: for review by eye, and the page the
//! accessibility test looks at.

use askama::Template;
use axum::response::Html;
use chrono::{DateTime, TimeDelta};

use crate::run::tag::{Mark, Tag};
use crate::web::error::AppError;
use crate::web::filters;
use crate::web::format::Moment;
use crate::web::layout::Layout;

#[derive(Template)]
#[template(path = "pages/styleguide.html")]
struct View {
    layout: Layout,
    tags: Vec<(&'static str, Vec<Tag>)>,
    marks: [Mark; Mark::ALL.len()],
    moment: Moment,
    lengths: Vec<TimeDelta>,
    id: &'static str,
    hostile: &'static str,
    rows: Vec<Row>,
}

struct Row {
    status: Tag,
    kind: &'static str,
    instance: &'static str,
    queue: &'static str,
    length: TimeDelta,
    reason: &'static str,
    attention: Vec<Tag>,
}

pub async fn show(layout: Layout) -> Result<Html<String>, AppError> {
    let view = View {
        tags: tags(),
        marks: Mark::ALL,
        moment: moment(&layout),
        lengths: [120, 18_400, 41_000, 252_000, 7_500_000, 273_600_000]
            .map(TimeDelta::milliseconds)
            .to_vec(),
        id: "01m7gs4khysxa25xp00b9ev2hv",
        hostile: "<b>invoice\u{202e}fdp.exe\u{1b}[31m שלום",
        rows: rows(),
        layout: layout.title("Styleguide"),
    };
    Ok(Html(view.render()?))
}

/// The same moment on every visit, so that two visits can be compared.
fn moment(layout: &Layout) -> Moment {
    let now = DateTime::from_timestamp(1_794_786_852, 0).unwrap_or(layout.now);
    Moment::new(now - TimeDelta::seconds(252), now, layout.zone)
}

fn tags() -> Vec<(&'static str, Vec<Tag>)> {
    let status = |word| Tag::status(word, None);
    let category = |word| Tag::failure_category(Some(word));
    vec![
        (
            "Open",
            vec![
                status("pending"),
                status("running"),
                status("waiting"),
                status("waiting").due().titled("overdue"),
            ],
        ),
        (
            "Closed",
            vec![
                status("completed"),
                Tag::status("completed", Some("continued")),
                status("failed"),
                Tag::status("failed", Some("timed_out")),
                status("cancelled"),
                status("terminated"),
            ],
        ),
        ("Unknown", vec![status("hibernating"), status("")]),
        (
            "Task problem",
            ["active", "replay_blocked", "history", "haunted"]
                .map(|code| status("waiting").with_task_problem(code))
                .to_vec(),
        ),
        (
            "Failure category",
            [
                "application",
                "cancelled",
                "terminated",
                "timeout",
                "activity",
                "child_workflow",
                "task_failure",
                "internal",
                "structural_limit",
                "cosmic_ray",
            ]
            .map(category)
            .into_iter()
            .chain([Tag::failure_category(None)])
            .collect(),
        ),
        (
            "Attention",
            vec![
                Tag::repair(),
                Tag::retrying(2, Some(3)),
                Tag::retrying(7, None),
                Tag::non_retryable(),
                Tag::stale(),
                Tag::archived(),
            ],
        ),
    ]
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            status: Tag::status("waiting", None).with_task_problem("active"),
            kind: "order.fulfil",
            instance: "ord-48213",
            queue: "orders",
            length: TimeDelta::seconds(252),
            reason: "activity charge-card: its task is gone",
            attention: vec![Tag::repair()],
        },
        Row {
            status: Tag::status("running", None),
            kind: "order.fulfil",
            instance: "ord-48214",
            queue: "orders",
            length: TimeDelta::seconds(63),
            reason: "activity charge-card, attempt 2 of 3",
            attention: vec![Tag::retrying(2, Some(3))],
        },
        Row {
            status: Tag::status("failed", None),
            kind: "invoice.issue",
            instance: "inv-2026-11-0931-with-a-name-much-longer-than-anyone-would-think-wise",
            queue: "billing",
            length: TimeDelta::seconds(41),
            reason: "card declined by issuer",
            attention: vec![
                Tag::failure_category(Some("activity")),
                Tag::non_retryable(),
            ],
        },
        Row {
            status: Tag::status("completed", None),
            kind: "order.fulfil",
            instance: "ord-48209",
            queue: "orders",
            length: TimeDelta::milliseconds(18_400),
            reason: "",
            attention: Vec::new(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use axum_test::TestServer;

    use crate::web::routes;
    use crate::web::state::{App, Settings};

    #[tokio::test]
    async fn it_shows_each_state_in_both_themes() {
        let server = TestServer::new(routes::router(App::new(Settings::default())));
        let page = server.get("/waterline/styleguide").await;
        page.assert_status_ok();
        let page = page.text();
        for part in [
            "replay blocked",
            "timed out",
            "hibernating",
            "⟦U+202E⟧",
            "non-retryable",
        ] {
            assert!(page.matches(part).count() >= 2, "{part} in both themes");
        }
        assert!(!page.contains("<b>invoice"), "stored text is escaped");
    }

    #[tokio::test]
    async fn no_page_carries_inline_code_or_style() {
        let server = TestServer::new(routes::router(App::new(Settings::default())));
        for path in ["/waterline/styleguide", "/waterline/nowhere"] {
            let page = server.get(path).await.text();
            for forbidden in [" style=", "<style", " onclick=", "javascript:", "<script>"] {
                assert!(!page.contains(forbidden), "{forbidden} in {path}");
            }
        }
    }
}
