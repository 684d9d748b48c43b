//! Runs with relatives, and steps that go side by side.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::Situation;
use crate::demo::builder::{Group, RunBuilder, Start, Step, hours, millis, mins, secs};

pub(super) fn situations(now: DateTime<Utc>) -> Vec<Situation> {
    vec![
        continue_as_new(now),
        ten_children(now),
        parallel_activities(now),
        parallel_branch_lost(now),
        parallel_branch_expired(now),
        parallel_mixed(now),
    ]
}

fn continue_as_new(now: DateTime<Utc>) -> Situation {
    let mut first = Start::new("mailbox.poll", "mailbox-orders")
        .queue("mail")
        .args(json!([{"cursor": 0}]))
        .at(now - hours(26));
    let mut closed = Vec::new();
    for cursor in [120, 260] {
        first.run_step(Step::new("fetch-mail"), secs(3), &json!({"messages": 130}));
        let nap = first.sleep(28_800);
        first.fire(nap);
        let next = first.continue_as_new(json!([{"cursor": cursor}]));
        closed.push(std::mem::replace(&mut first, next));
    }
    first.run_step(Step::new("fetch-mail"), secs(2), &json!({"messages": 18}));
    first.sleep(43_200);
    let mut situation = Situation::of(
        "continue-as-new-chain",
        "A mailbox poller in its third run; two earlier runs handed their cursor on.",
        first,
        now,
    );
    for run in closed {
        situation = situation.and(run, now);
    }
    situation
}

fn ten_children(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("campaign.send", "campaign-winter")
        .namespace("production")
        .label("team", "marketing")
        .queue("mail")
        .args(json!(["winter", 10]))
        .at(now - mins(75));
    let regions = ["at", "be", "ch", "de", "dk", "es", "fr", "it", "nl", "se"];
    let mut children: Vec<_> = (0_u32..)
        .zip(regions)
        .map(|(i, region)| {
            let start = Start::new("campaign.send-region", format!("campaign-winter-{region}"))
                .namespace("production")
                .queue("mail")
                .args(json!([region]));
            run.start_child(start, Some(Group::new("child", 1, 10, i)))
        })
        .collect();
    run.park();
    for (handle, child) in children.iter_mut().take(7) {
        child
            .run_step(Step::new("send-batch"), secs(40), &json!({"sent": 4_100}))
            .succeed(&json!({"sent": 4_100}));
        run.child_closed(*handle, child);
    }
    for (_, child) in children.iter_mut().skip(7) {
        child.run_step(Step::new("send-batch"), secs(50), &json!({"sent": 2_000}));
        child.sleep(7_200);
    }
    let mut situation = Situation::of(
        "parent-with-ten-children",
        "A campaign sends to ten countries at once; seven are done, three wait for the evening.",
        run,
        now,
    );
    for (_, child) in children {
        situation = situation.and(child, now);
    }
    situation
}

fn parallel_activities(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.fulfil", "ord-48303")
        .namespace("production")
        .business_key("ORD-48303")
        .queue("orders")
        .at(now - secs(50));
    let steps: Vec<usize> = (0_u32..)
        .zip(["reserve-stock", "check-fraud", "quote-shipping"])
        .map(|(i, kind)| run.schedule(Step::new(kind).group(Group::new("activity", 1, 3, i))))
        .collect();
    run.park().pass(millis(300));
    run.begin(steps[0])
        .pass(millis(700))
        .complete(steps[0], &json!({"reserved": 2}));
    run.begin(steps[2])
        .pass(secs(1))
        .complete(steps[2], &json!({"price": 490}));
    run.pass_until(now - secs(30)).begin(steps[1]);
    Situation::of(
        "parallel-activities",
        "Three checks run side by side; the order goes on when the last one is done.",
        run,
        now,
    )
}

/// Three checks at once; a worker has the second, and the third waits for one.
fn three_checks(number: &str, began: DateTime<Utc>) -> (RunBuilder, Vec<usize>) {
    let mut run = Start::new("order.fulfil", format!("ord-{number}"))
        .namespace("production")
        .business_key(&format!("ORD-{number}"))
        .queue("orders")
        .at(began);
    // One after the other, so that none but the second comes first when one is looked for.
    let steps: Vec<usize> = (0_u32..)
        .zip(["reserve-stock", "check-fraud", "quote-shipping"])
        .map(|(i, kind)| {
            run.work();
            run.pass(millis(2));
            run.schedule(Step::new(kind).group(Group::new("activity", 1, 3, i)))
        })
        .collect();
    run.park().pass(millis(300));
    run.begin(steps[0])
        .pass(millis(700))
        .complete(steps[0], &json!({"reserved": 1}));
    (run, steps)
}

fn parallel_branch_lost(now: DateTime<Utc>) -> Situation {
    let (mut run, steps) = three_checks("48304", now - mins(2));
    run.lose_task_of(steps[2]);
    run.pass_until(now - secs(40)).begin(steps[1]);
    Situation::of(
        "parallel-branch-lost",
        "Of three checks side by side one is done, one is with a worker, and the task of one is gone.",
        run,
        now,
    )
}

fn parallel_branch_expired(now: DateTime<Utc>) -> Situation {
    let (mut run, steps) = three_checks("48305", now - mins(9));
    run.begin(steps[2]);
    run.pass_until(now - secs(20)).begin(steps[1]);
    Situation::of(
        "parallel-branch-expired",
        "Of three checks side by side one is done, one is with a worker, and the worker of one is dead.",
        run,
        now,
    )
}

fn parallel_mixed(now: DateTime<Utc>) -> Situation {
    let mut run = Start::new("order.return", "ret-5561")
        .business_key("RET-5561")
        .queue("orders")
        .at(now - mins(8));
    let inspect = run.schedule(Step::new("inspect-item").group(Group::new("mixed", 1, 2, 0)));
    let (_, mut child) = run.start_child(
        Start::new("parcel.track", "track-5561").queue("orders"),
        Some(Group::new("mixed", 1, 2, 1)),
    );
    run.park().pass(millis(200));
    run.begin(inspect)
        .pass(secs(4))
        .complete(inspect, &json!({"condition": "good"}));
    child.sleep(3_600);
    Situation::of(
        "parallel-mixed",
        "An activity and a child run side by side; the activity is done, the child is not.",
        run,
        now,
    )
    .and(child, now)
}
