//! Two runs side by side, from their rows to the page.

use plimsoll::{
    db::Dialect,
    demo::{
        builder::{Policy, RunBuilder, Start, Step, Thrown, hours, mins, secs},
        write::write,
    },
};
use serde_json::json;

use crate::{
    rig::{self, TestDb},
    shop::{now, server},
};

/// An order: a charge of so much, and a parcel that may need two tries.
fn order(instance: &str, amount: i64, tries: usize) -> RunBuilder {
    let mut run = Start::new("order.fulfil", instance)
        .args(json!(["ORD"]))
        .at(now() - hours(3));
    let charge = Step::new("charge").args(json!([{"amount": amount, "currency": "EUR"}]));
    run.run_step(charge, secs(2), &json!("ok"));
    let ship = Step::new("ship").args(json!(["parcel"]));
    let ship = run.schedule(ship.policy(Policy::retry(3, &[60])));
    run.park();
    for _ in 1..tries {
        run.begin(ship)
            .fail_attempt(ship, &Thrown::new(r"App\Busy", "the courier is busy"))
            .pass(mins(5));
    }
    run.begin(ship).complete(ship, &json!("sent"));
    run.succeed(&json!("done"));
    run
}

#[tokio::test]
async fn one_changed_input_and_one_extra_attempt_are_exactly_what_differs_sqlite() {
    rig::on(Dialect::Sqlite, async |db: TestDb| {
        let runs = [
            order("ord-1", 10, 1),
            order("ord-2", 10, 1),
            order("ord-3", 12, 2),
        ];
        let ids = runs.each_ref().map(|run| run.run_id().to_owned());
        let rows = runs.into_iter().flat_map(|run| run.build(now())).collect();
        write(&db.writable, rows, |_| ()).await.unwrap();
        let server = server(&db.read_only);
        let compared = async |a: &str, b: &str| {
            let page = server.get(&format!("/waterline/compare?a={a}&b={b}")).await;
            assert_eq!(page.status_code(), 200);
            page.text()
        };
        let alike = compared(&ids[0], &ids[1]).await;
        assert!(alike.contains("No difference in 3 steps."), "{alike}");

        let page = compared(&ids[0], &ids[2]).await;
        assert!(page.contains("2 of 3 steps differ."), "{page}");
        let table = &page[page.find("<tbody>").unwrap()..page.find("</tbody>").unwrap()];
        let told: Vec<&str> = table
            .split("<p>")
            .skip(1)
            .map(|rest| rest.split("</p>").next().unwrap())
            .collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("arguments[0].amount")
                && told[0].contains("10")
                && told[0].contains("12"),
            "{told:?}"
        );
        assert_eq!(told[1], "attempts: 1 and 2");
    })
    .await;
}
