//! Why a run is where it is, with the advice to repair it only where a repair would be done: page,
//! card and JSON ask here for both, so that none recommends what the other refuses.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{plan::offered, refusal::Refusal, request::Mode};
use crate::{
    durable::{
        projection::{Projected, diagnosis::diagnose},
        stored::LivenessState,
    },
    run::diagnosis::Diagnosis,
};

/// A run's diagnosis and whether a repair is offered.
#[derive(Clone, Debug)]
pub struct Explained {
    pub diagnosis: Diagnosis,
    pub repair: Result<(), Refusal>,
}

/// The verdict on a repair, for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub offered: bool,
    pub code: String,
    pub not_before: Option<DateTime<Utc>>,
}

pub fn explain(p: &Projected<'_>, mode: Mode) -> Explained {
    let repair = offered(p, mode);
    let mut diagnosis = diagnose(p);
    if let (true, Err(refusal)) = (diagnosis.asks_repair, &repair) {
        diagnosis.next_step = format!("No repair is offered. {}", refusal.words());
        diagnosis.until = refusal.not_before().or(diagnosis.until);
        diagnosis.asks_repair = false;
    }
    Explained { diagnosis, repair }
}

impl Explained {
    pub fn verdict(&self) -> Verdict {
        match &self.repair {
            Ok(()) => Verdict {
                offered: true,
                code: LivenessState::RepairNeeded.as_str().to_owned(),
                not_before: None,
            },
            Err(refusal) => Verdict {
                offered: false,
                code: refusal.code().to_owned(),
                not_before: refusal.not_before(),
            },
        }
    }
}

/// What does the same where Plimsoll itself may not: the engine's own pass over this one run. It
/// never clears a replay block.
pub fn engine_command(p: &Projected<'_>) -> Option<String> {
    let run = &p.cx.snapshot.run.id;
    (p.standing.liveness_state != LivenessState::WorkflowReplayBlocked)
        .then(|| format!("php artisan workflow:v2:repair-pass --run-id={run}"))
}
