//! Bulk repairs of this process: previewed and carried out in the background, kept in memory for
//! a while and nowhere else. After a restart the audit trail of each run is what remains.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use ulid::Ulid;

use super::{
    api::repair::{carry_out, judged},
    error::AppError,
    state::{App, Repairs},
};
use crate::durable::repair::{
    self, ApplyError, Caller, Goal, Mode, Request, Scope,
    batch::{Batch, Outcome, RunName, Stage, Why},
};

/// How many are kept.
pub const KEPT: usize = 16;
/// How long one is kept after it was frozen, or after it was carried out.
pub const EXPIRES: Duration = Duration::from_hours(1);
/// How long a repair waits after the one before it: workers come first.
const PACE: Duration = Duration::from_millis(100);

/// One set of runs, and who wants it repaired why.
#[derive(Debug)]
pub struct Kept {
    pub id: String,
    pub made: DateTime<Utc>,
    /// How the set was chosen.
    pub chosen: String,
    /// What is not in it although it was asked for.
    pub note: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    batch: Batch,
    reason: Option<String>,
    /// Since when nothing has been done with it.
    since: Instant,
}

#[derive(Clone, Debug, Default)]
pub struct Batches(Arc<Mutex<Vec<Arc<Kept>>>>);

impl Batches {
    pub fn get(&self, id: &str) -> Option<Arc<Kept>> {
        self.all().into_iter().find(|kept| kept.id == id)
    }

    /// The newest first.
    pub fn all(&self) -> Vec<Arc<Kept>> {
        let mut list = locked(&self.0);
        drop_old(&mut list, Instant::now());
        list.iter().rev().cloned().collect()
    }

    /// Keeps a set, in place of the oldest if there are too many; one that is being carried out
    /// must stay where it can be stopped.
    fn keep(&self, kept: Kept) -> Result<Arc<Kept>, AppError> {
        let mut list = locked(&self.0);
        drop_old(&mut list, Instant::now());
        if list.len() >= KEPT {
            let Some(oldest) = list.iter().position(|kept| !kept.is_running()) else {
                return Err(AppError::Unavailable {
                    what: "Another bulk repair".to_owned(),
                    how: format!("{KEPT} are under way. Wait for one to end, or stop one."),
                    source: None,
                });
            };
            // It may still be looking at its runs, and nobody can see them any more.
            list.remove(oldest).stop();
        }
        let kept = Arc::new(kept);
        list.push(Arc::clone(&kept));
        Ok(kept)
    }
}

fn drop_old(list: &mut Vec<Arc<Kept>>, now: Instant) {
    list.retain(|kept| {
        kept.is_running() || now.duration_since(locked(&kept.state).since) < EXPIRES
    });
}

/// Nothing panics while it holds one of these.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    fn new(runs: Vec<RunName>, made: DateTime<Utc>, chosen: String, note: Option<String>) -> Self {
        let batch = Batch::freeze(runs);
        Self {
            id: Ulid::generate().to_string().to_lowercase(),
            made,
            chosen,
            note,
            state: Mutex::new(State {
                batch,
                reason: None,
                since: Instant::now(),
            }),
        }
    }

    /// As it stands, with the reason once there is one.
    pub fn now(&self) -> (Batch, Option<String>) {
        let state = locked(&self.state);
        (state.batch.clone(), state.reason.clone())
    }

    fn is_running(&self) -> bool {
        locked(&self.state).batch.stage() == Stage::Running
    }

    /// What became of one run; who watches has the whole time to read it.
    fn went(&self, run_id: &str, outcome: Outcome) {
        let mut state = locked(&self.state);
        state.batch.went(run_id, outcome);
        state.since = Instant::now();
    }

    pub fn stop(&self) {
        locked(&self.state).batch.stop();
    }
}

/// Freezes a set and finds out, in the background, what a repair of each would do.
pub fn freeze(
    app: &App,
    runs: Vec<RunName>,
    chosen: String,
    note: Option<String>,
) -> Result<Arc<Kept>, AppError> {
    let db = app.db()?.clone();
    let kept = Kept::new(runs, app.clock.now(), chosen, note);
    let kept = app.batches.keep(kept)?;
    tokio::spawn(look(app.clone(), db, Arc::clone(&kept)));
    Ok(kept)
}

async fn look(app: App, db: crate::db::Db, kept: Arc<Kept>) {
    let mode = app
        .repairs
        .as_ref()
        .map_or(Mode::Direct, |repairs| repairs.mode);
    let request = request(mode, None, Caller::default());
    let next = || locked(&kept.state).batch.to_look_at().map(str::to_owned);
    while let Some(run_id) = next() {
        let goal = Goal::Asked(&request);
        let found = repair::preview(&db, judged(&app), &run_id, goal).await;
        if let Err(ApplyError::Db(error)) = &found {
            tracing::warn!(batch = kept.id, run_id, %error, "a run could not be previewed");
        }
        let found = found.as_ref().map_err(Why::of);
        locked(&kept.state).batch.saw(&run_id, found);
    }
}

/// Begins to carry a set out, if it is the one that was shown and was not begun before.
pub fn start(
    app: &App,
    repairs: &Repairs,
    kept: &Arc<Kept>,
    shown: &str,
    reason: String,
    caller: Caller,
) -> Result<(), repair::batch::NotStarted> {
    {
        let mut state = locked(&kept.state);
        state.batch.start(shown)?;
        state.reason = Some(reason.clone());
    }
    let request = request(repairs.mode, Some(reason), caller);
    tokio::spawn(run(app.clone(), repairs.clone(), Arc::clone(kept), request));
    Ok(())
}

async fn run(app: App, repairs: Repairs, kept: Arc<Kept>, request: Request) {
    let next = || locked(&kept.state).batch.take_turn();
    let (mut done, mut skipped) = (0, 0);
    while let Some((run_id, digest)) = next() {
        let went = carry_out(&app, &repairs, &run_id, request.clone(), Some(digest)).await;
        let outcome = match went {
            Ok(Ok(plan)) => {
                done += 1;
                let command_id = plan.command.map(|command| command.id);
                Outcome::Done { command_id }
            }
            Ok(Err(error)) => {
                let why = Why::of(&error);
                tracing::info!(batch = kept.id, run_id, code = why.code, %error, "not repaired");
                skipped += 1;
                Outcome::Skipped(why)
            }
            Err(error) => {
                tracing::error!(batch = kept.id, run_id, %error, "not repaired");
                skipped += 1;
                Outcome::Skipped(Why::failed())
            }
        };
        kept.went(&run_id, outcome);
        tokio::time::sleep(PACE).await;
    }
    tracing::info!(batch = kept.id, done, skipped, "bulk repair ended");
}

fn request(mode: Mode, reason: Option<String>, caller: Caller) -> Request {
    Request {
        scope: Scope::Run,
        mode,
        reason,
        caller,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(since: Instant) -> Kept {
        let run = RunName {
            run_id: "r".into(),
            instance_id: "i".into(),
            workflow_type: "t".into(),
        };
        let kept = Kept::new(vec![run], DateTime::UNIX_EPOCH, String::new(), None);
        locked(&kept.state).since = since;
        kept
    }

    #[test]
    fn a_set_expires_and_there_is_room_for_some() {
        let batches = Batches::default();
        let now = Instant::now();
        let old = batches
            .keep(kept(now.checked_sub(EXPIRES).unwrap()))
            .unwrap();
        assert!(batches.get(&old.id).is_none(), "too old");
        let ended = kept(now.checked_sub(EXPIRES).unwrap());
        let outcome = Outcome::Done { command_id: None };
        ended.went("r", outcome);
        let ended = batches.keep(ended).unwrap();
        assert!(batches.get(&ended.id).is_some(), "its report is new");
        batches.0.lock().unwrap().clear();
        let first = batches.keep(kept(now)).unwrap();
        for _ in 1..KEPT {
            batches.keep(kept(now)).unwrap();
        }
        assert!(batches.get(&first.id).is_some());
        let last = batches.keep(kept(now)).unwrap();
        assert!(batches.get(&first.id).is_none(), "the oldest goes");
        assert_eq!(batches.all().len(), KEPT);
        assert_eq!(batches.all()[0].id, last.id, "newest first");
    }
}
