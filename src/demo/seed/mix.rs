//! What a busy installation looks like: which workflows run how often, how long they take, and
//! how they end.

use chrono::TimeDelta;
use fastrand::Rng;

/// A workflow type and its habits.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub workflow_type: &'static str,
    pub class: &'static str,
    /// First part of the instance id.
    pub slug: &'static str,
    pub queue: &'static str,
    pub activities: &'static [(&'static str, &'static str)],
    /// How long it usually takes, in seconds.
    pub seconds: u32,
    /// How many of a hundred runs are of this kind.
    share: u32,
}

macro_rules! kinds {
    ($($type:literal $class:literal $slug:literal $queue:literal $seconds:literal $share:literal [$($activity:literal $activity_class:literal),+];)+) => {
        &[$(Kind {
            workflow_type: $type,
            class: $class,
            slug: $slug,
            queue: $queue,
            activities: &[$(($activity, $activity_class)),+],
            seconds: $seconds,
            share: $share,
        }),+]
    };
}

#[rustfmt::skip]
pub const KINDS: &[Kind] = kinds! {
    "orders.fulfil"        "App\\Workflows\\FulfilOrder"       "order"    "orders"        40   22 ["inventory.reserve" "App\\Activities\\ReserveStock", "payments.charge" "App\\Activities\\ChargeCard", "shipping.book" "App\\Activities\\BookShipment"];
    "payments.settle"      "App\\Workflows\\SettlePayment"     "payment"  "payments"      6    16 ["payments.capture" "App\\Activities\\CapturePayment", "ledger.post" "App\\Activities\\PostLedgerEntry"];
    "payments.refund"      "App\\Workflows\\RefundPayment"     "refund"   "payments"      9    5  ["payments.refund" "App\\Activities\\RefundCard"];
    "billing.invoice"      "App\\Workflows\\IssueInvoice"      "invoice"  "billing"       15   10 ["invoices.render" "App\\Activities\\RenderInvoice", "mail.send" "App\\Activities\\SendMail"];
    "subscriptions.renew"  "App\\Workflows\\RenewSubscription" "renewal"  "billing"       900  6  ["payments.charge" "App\\Activities\\ChargeCard"];
    "onboarding.welcome"   "App\\Workflows\\WelcomeCustomer"   "welcome"  "default"       3600 8  ["mail.send" "App\\Activities\\SendMail", "crm.upsert" "App\\Activities\\UpsertContact"];
    "kyc.verify"           "App\\Workflows\\VerifyIdentity"    "kyc"      "compliance"    600  4  ["kyc.request" "App\\Activities\\RequestCheck", "kyc.decide" "App\\Activities\\Decide"];
    "media.transcode"      "App\\Workflows\\TranscodeMedia"    "media"    "media"         240  7  ["media.probe" "App\\Activities\\Probe", "media.encode" "App\\Activities\\Encode"];
    "catalog.sync"         "catalog.sync"                      "sync"     "python-etl"    75   7  ["catalog.fetch" "catalog.fetch", "catalog.merge" "catalog.merge"];
    "notifications.digest" "App\\Workflows\\SendDigest"        "digest"   "default"       4    9  ["mail.send" "App\\Activities\\SendMail"];
    "reports.nightly"      "App\\Workflows\\NightlyReport"     "report"   "reports"       1500 3  ["reports.query" "App\\Activities\\RunQuery", "storage.put" "App\\Activities\\PutObject"];
    "search.reindex"       "search.reindex"                    "reindex"  "python-etl"    420  3  ["search.scan" "search.scan", "search.bulk" "search.bulk"];
};

/// How a run ends, or why it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    /// Completed, its parent waiting for it meanwhile.
    CompletedWithChild,
    Continued,
    Failed(Failure),
    TimedOut,
    Cancelled,
    Terminated,
    Open(Open),
}

/// What made a run fail; each leaves its own category behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Application,
    Activity,
    ActivityTimeout,
    Internal,
    Task,
    StructuralLimit,
}

/// What an open run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    ActivityLeased,
    ActivityReady,
    ActivityBackoff,
    Timer,
    Signal,
    Condition,
    Child,
    WorkflowTask,
    /// Nothing: the task that would carry it on is gone.
    Nothing,
}

/// Chances in ten thousand.
const OUTCOMES: &[(u32, Outcome)] = &[
    (9_000, Outcome::Completed),
    (290, Outcome::CompletedWithChild),
    (100, Outcome::Continued),
    (130, Outcome::Failed(Failure::Activity)),
    (110, Outcome::Failed(Failure::Application)),
    (60, Outcome::Failed(Failure::ActivityTimeout)),
    (30, Outcome::Failed(Failure::Internal)),
    (20, Outcome::Failed(Failure::Task)),
    (10, Outcome::Failed(Failure::StructuralLimit)),
    (50, Outcome::TimedOut),
    (60, Outcome::Cancelled),
    (40, Outcome::Terminated),
    (20, Outcome::Open(Open::ActivityLeased)),
    (12, Outcome::Open(Open::ActivityReady)),
    (10, Outcome::Open(Open::ActivityBackoff)),
    (20, Outcome::Open(Open::Timer)),
    (14, Outcome::Open(Open::Signal)),
    (8, Outcome::Open(Open::Condition)),
    (6, Outcome::Open(Open::Child)),
    (6, Outcome::Open(Open::WorkflowTask)),
    (4, Outcome::Open(Open::Nothing)),
];

fn weighted<T: Copy>(rng: &mut Rng, choices: impl Iterator<Item = (u32, T)> + Clone) -> T {
    let total: u32 = choices.clone().map(|(weight, _)| weight).sum();
    let mut point = rng.u32(..total);
    for (weight, choice) in choices {
        if point < weight {
            return choice;
        }
        point -= weight;
    }
    unreachable!("a point below the sum of the weights lies in one of them")
}

pub fn kind(rng: &mut Rng) -> &'static Kind {
    weighted(rng, KINDS.iter().map(|kind| (kind.share, kind)))
}

pub fn outcome(rng: &mut Rng) -> Outcome {
    weighted(rng, OUTCOMES.iter().copied())
}

pub fn namespace(rng: &mut Rng) -> Option<&'static str> {
    let choices = [(50, None), (40, Some("production")), (10, Some("staging"))];
    weighted(rng, choices.into_iter())
}

/// Mostly near the kind's usual duration, sometimes many times longer.
pub fn duration(rng: &mut Rng, kind: &Kind) -> TimeDelta {
    let stretch = 0.3 + rng.f64() + 8.0 * rng.f64().powi(8);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a few hours in microseconds"
    )]
    let micros = (f64::from(kind.seconds) * stretch * 1e6) as i64;
    TimeDelta::microseconds(micros)
}

/// Encoded values for arguments and results: `[]`, `["x", 7]`-like lists and small objects.
pub const ARGUMENTS: &[&str] = &[
    "wwHioz3/VYAiNwwA",
    "wwHioz3/VYAiNwwEChBPUkQtMTAwMQTQQQA=",
    "wwHioz3/VYAiNwwCCgxUYXlsb3IA",
    "wwHioz3/VYAiNwwCBKA4AA==",
];

pub const RESULTS: &[&str] = &[
    "wwHioz3/VYAiNwA=",
    "wwHioz3/VYAiNwIB",
    "wwHioz3/VYAiNwQO",
    "wwHioz3/VYAiNw4EAmEEAgJiDAICAAAA",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_chances_add_up() {
        assert_eq!(KINDS.iter().map(|kind| kind.share).sum::<u32>(), 100);
        assert_eq!(
            OUTCOMES.iter().map(|(chance, _)| chance).sum::<u32>(),
            10_000
        );
    }
}
