//! What the sections of a run's page tell an operator, over HTTP, for a choice of situations.

use std::collections::{BTreeSet, HashMap};

use axum_test::TestServer;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use plimsoll::{db::Dialect, demo::Situation};

use crate::{
    rig,
    shop::{fill, server},
};

pub fn href(situation: &Situation) -> String {
    format!(
        "/waterline/instances/{}/runs/{}",
        situation.instance_id, situation.run_id
    )
}

pub fn named<'s>(situations: &'s [Situation], name: &str) -> &'s Situation {
    situations
        .iter()
        .find(|situation| situation.name == name)
        .unwrap_or_else(|| panic!("no situation {name}"))
}

pub async fn page(server: &TestServer, address: &str) -> String {
    let response = server.get(address).await;
    assert_eq!(
        response.status_code(),
        200,
        "{address}: {}",
        response.text()
    );
    response.text()
}

/// The section with this id, from its tag to the end of it.
pub fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let start = page
        .find(&format!("<section id=\"{id}\""))
        .unwrap_or_else(|| panic!("no section {id}"));
    let rest = &page[start..];
    &rest[..rest.find("</section>").expect("sections end")]
}

/// What an eye reads: the text, a line for each row, item and paragraph.
pub fn text(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let mut quoted = false;
        let end = rest[at..]
            .find(|c| {
                quoted ^= c == '"';
                c == '>' && !quoted
            })
            .map_or(rest.len(), |end| at + end + 1);
        let tag = rest[at + 1..end].trim_start_matches('/');
        let name: String = tag
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        match name.as_str() {
            "tr" | "p" | "li" | "summary" | "h2" | "h3" | "pre" | "table" | "ul" | "div" => {
                out.push('\n');
            }
            "td" | "th" | "dt" | "dd" | "span" | "option" | "a" => out.push(' '),
            _ => {}
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    let out = out
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#38;", "&");
    out.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn the_sections_of_a_choice_of_situations_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        for (name, sections) in [
            (
                "retrying-mid-backoff",
                &["activities", "exceptions", "tasks", "waits"][..],
            ),
            ("failed-non-retryable", &["activities", "exceptions"]),
            ("activity-running-heartbeat", &["activities"]),
            ("limit-payload-size", &["exceptions"]),
            ("handled-failure", &["exceptions"]),
            ("parent-with-ten-children", &["children"]),
            ("retry-task-lost", &["activities", "tasks"]),
            (
                "replay-blocked-failure-resolution",
                &["exceptions", "tasks"],
            ),
            ("replay-blocked-condition-mismatch", &["tasks"]),
            ("waiting-update", &["updates", "commands"]),
            ("waiting-signal-with-timeout", &["waits"]),
            ("signal-task-lost", &["signals"]),
            ("signal-rejected-by-limit", &["signals"]),
            ("signal-timeout-task-lost", &["waits"]),
            ("row-only-closed-activity", &["activities", "waits"]),
            ("parallel-branch-lost", &["tasks"]),
            ("search-attributes-and-memo", &["data"]),
            ("messages", &["data"]),
            ("unknown-future-values", &["activities", "history"]),
        ] {
            let page = page(&server, &href(named(&situations, name))).await;
            for id in sections {
                insta::assert_snapshot!(format!("{name}-{id}"), text(section(&page, id)));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn every_situation_opens_with_every_section_asked_for_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let all = "?activities=0&exceptions=0&tasks=0&waits=0&signals=0&updates=0&commands=0\
                   &children=0&data=0";
        for situation in &situations {
            let address = href(situation);
            let page = page(&server, &format!("{address}{all}")).await;
            assert!(!page.contains("<script>"), "{}", situation.name);
            assert!(!page.contains(" style="), "{}", situation.name);
            let history = server.get(&format!("{address}/history")).await;
            assert_eq!(history.status_code(), 200, "{}", situation.name);
        }
    })
    .await;
}

/// The addresses a page leads to that name a place, each once.
fn led_to(page: &str, here: &str) -> BTreeSet<String> {
    let hrefs = page.split(" href=\"").skip(1);
    let hrefs = hrefs.filter_map(|rest| Some(rest.split_once('"')?.0.replace("&#38;", "&")));
    hrefs
        .filter(|href| href.contains('#'))
        .map(|href| match href.chars().next() {
            Some('#') => format!("{here}{href}"),
            Some('?') => format!("{}{href}", here.split('?').next().unwrap_or(here)),
            _ => href,
        })
        .collect()
}

#[tokio::test]
async fn a_link_to_a_place_leads_to_it_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let mut lost = Vec::new();
        for situation in &situations {
            let here = href(situation);
            // Folded sections have links too.
            let all = format!(
                "{here}?activities=0&exceptions=0&tasks=0&waits=0&signals=0&updates=0&commands=0\
                 &children=0&data=0"
            );
            let first = page(&server, &here).await;
            let whole = page(&server, &all).await;
            // Of the units, one of each kind leads to a row of its own.
            let mut kinds = BTreeSet::new();
            let units = first.split(" id=\"lane-").skip(1).filter_map(|rest| {
                let unit = rest.split_once('"')?.0;
                let kind = unit.split_once('-')?.0;
                (kind != "group" && kinds.insert(kind)).then(|| format!("{here}?unit={unit}"))
            });
            let mut links = led_to(&first, &here);
            links.extend(led_to(&whole, &all));
            for unit in units {
                links.extend(led_to(&page(&server, &unit).await, &unit));
            }
            let mut pages = HashMap::from([(here.clone(), first), (all, whole)]);
            for link in &links {
                let (address, place) = link.split_once('#').unwrap();
                let place = percent_encoding::percent_decode_str(place).decode_utf8_lossy();
                let id = format!(" id=\"{place}\"");
                // What the plain page shows, it shows whatever else is asked for.
                if address.starts_with(&format!("{here}?")) && pages[&here].contains(&id) {
                    continue;
                }
                if !pages.contains_key(address) {
                    pages.insert(address.to_owned(), page(&server, address).await);
                }
                if !pages[address].contains(&id) {
                    lost.push(format!("{}: {link}", situation.name));
                }
            }
        }
        assert_eq!(lost, [""; 0], "links that lead nowhere");
    })
    .await;
}

#[tokio::test]
async fn a_time_with_its_zone_behind_it_leads_to_the_same_event_on_every_page_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let address = format!(
            "{}/history",
            href(named(&situations, "retrying-mid-backoff"))
        );
        let listed = page(&server, &address).await;
        let stamps = listed.split("<time datetime=\"").skip(1);
        let first = stamps
            .last()
            .and_then(|rest| rest.split_once('"'))
            .unwrap()
            .0;
        let at: DateTime<Utc> = first.parse().unwrap();
        let berlin = at + TimeDelta::hours(1);
        let form = "%Y-%m-%d %H:%M:%S";
        for written in [
            first.to_owned(),
            format!("{} UTC", at.format("%Y-%m-%d %H:%M:%S%.f")),
            format!("{} CET", berlin.format("%Y-%m-%d %H:%M:%S%.f")),
            format!("{} Europe/Berlin", berlin.format("%Y-%m-%d %H:%M:%S%.f")),
        ] {
            let response = server
                .get(&address)
                .add_query_param("go", &written)
                .add_header("cookie", "plimsoll_zone=Europe/Berlin")
                .await;
            let to = response.header("location");
            let to = to.to_str().unwrap();
            assert!(to.ends_with("/history?at=1#event-1"), "{written}: {to}");
        }
        let response = server
            .get(&address)
            .add_query_param("go", format!("{} XYZ", at.format(form)))
            .await;
        assert_eq!(response.status_code(), 422);
        assert!(response.text().contains("is no zone that had this time"));
    })
    .await;
}

/// The value of a field of the page.
fn field<'p>(page: &'p str, name: &str) -> &'p str {
    let start = format!("<input name=\"{name}\" value=\"");
    let rest = page.split_once(&start).expect("such a field").1;
    rest.split_once('"').unwrap().0
}

#[tokio::test]
async fn the_zoom_form_keeps_a_range_within_a_second_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let here = href(named(&situations, "retrying-mid-backoff"));
        let whole = page(&server, &here).await;
        let from: NaiveDateTime = field(&whole, "from").parse().unwrap();
        let at = |milliseconds| {
            let at = from + TimeDelta::milliseconds(milliseconds);
            at.format("%Y-%m-%dT%H:%M:%S%.3f").to_string()
        };
        let range = format!("{here}?from={}Z&to={}Z", at(210), at(540));
        let near = page(&server, &range).await;
        assert_eq!(
            (field(&near, "from"), field(&near, "to")),
            (&*at(210), &*at(540))
        );
        // Sent as it stands, the form changes nothing, of the whole run neither.
        let again = format!(
            "{here}?from={}&to={}",
            field(&whole, "from"),
            field(&whole, "to")
        );
        let again = server.get(&again).await.header("location");
        let again = page(&server, again.to_str().unwrap()).await;
        assert!(!again.contains(">whole run</a>"));
    })
    .await;
}

#[tokio::test]
async fn a_payload_is_shown_whole_on_its_own_page_and_as_a_file_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let address = href(named(&situations, "retrying-mid-backoff"));
        let of = format!("{address}/payload?of=run&id=&part=arguments");
        assert!(text(&page(&server, &of).await).contains("\"ORD-48301\""));
        let file = server.get(&format!("{of}&download=arguments")).await;
        assert_eq!(file.text(), "[\n  \"ORD-48301\",\n  7700\n]");
        assert_eq!(
            file.header("content-disposition"),
            "attachment; filename=\"run-arguments.json\""
        );
        assert_eq!(file.header("x-content-type-options"), "nosniff");

        let event = format!("{address}/payload?of=event&id=1&part=payload");
        assert!(page(&server, &event).await.contains("workflow_type"));
        let part = server.get(&event).add_header("hx-request", "true").await;
        assert!(
            part.text()
                .trim_start()
                .starts_with("<div class=\"payload\""),
            "{}",
            part.text()
        );

        for (wrong, status) in [
            ("of=event&id=999&part=payload", 404),
            ("of=event&id=x&part=payload", 422),
            ("of=activity&id=nobody&part=arguments", 404),
            ("of=&id=&part=", 404),
            ("of=run&id=&part=arguments&download=other", 404),
        ] {
            let response = server.get(&format!("{address}/payload?{wrong}")).await;
            assert_eq!(response.status_code(), status, "{wrong}");
        }
        // A run of another instance is not found by this one's address.
        let other = address.replace("/instances/ord-48301/", "/instances/ord-48211/");
        for below in ["/payload?of=event&id=1", "/history"] {
            let response = server.get(&format!("{other}{below}")).await;
            assert_eq!(response.status_code(), 404, "{below}");
        }
    })
    .await;
}

#[tokio::test]
async fn hostile_text_stays_text_in_every_section_sqlite() {
    rig::on(Dialect::Sqlite, async |db| {
        let situations = fill(&db).await;
        let server = server(&db.read_only);
        let hostile = situations
            .iter()
            .find(|situation| situation.instance_id == "hostile-1")
            .expect("the hostile situation");
        let address = href(hostile);
        let page_of_run = page(&server, &address).await;
        let history = page(&server, &format!("{address}/history")).await;
        let payload = page(
            &server,
            &format!("{address}/payload?of=run&id=&part=arguments"),
        )
        .await;
        for html in [page_of_run, history, payload] {
            assert!(!html.contains("<script>alert"), "a tag of theirs");
            assert!(!html.contains("<img src=x"), "a tag of theirs");
            assert!(html.contains("&#60;script"), "shown as text");
        }
    })
    .await;
}
