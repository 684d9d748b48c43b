//! Several runs repaired together. The set is frozen once, by the ids of its runs: nothing can
//! add to it. What a repair of each would do is found out, shown, and carried out only where that
//! is still so when its turn comes.
//!
//! Pure: whoever drives it asks whose turn it is and tells how it went.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::{
    apply::ApplyError,
    plan::{Kind, RepairPlan, Words},
};
use crate::durable::export::seal::hex;

/// The most runs of one set.
pub const MOST: u32 = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunName {
    pub run_id: String,
    pub instance_id: String,
    pub workflow_type: String,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub run: RunName,
    pub preview: Preview,
    pub outcome: Outcome,
}

/// What a repair would do.
#[derive(Clone, Debug)]
pub enum Preview {
    /// Not looked at yet.
    Unseen,
    Repair {
        kind: Kind,
        words: Words,
        /// Of the plan: only that one is carried out.
        digest: String,
    },
    /// There is nothing to repair, so it is left out from the start.
    LeftOut(Why),
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Waiting,
    UnderWay,
    Done {
        /// None after a nudge.
        command_id: Option<String>,
    },
    Skipped(Why),
}

/// Why a run was not repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The stable word.
    pub code: String,
    pub words: String,
}

impl Why {
    pub const STOPPED: &'static str = "stopped";
    pub const FAILED: &'static str = "failed";

    fn new(code: &str, words: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            words: words.into(),
        }
    }

    pub fn of(error: &ApplyError) -> Self {
        match error {
            ApplyError::Refused(refusal) => Self::new(refusal.code(), refusal.words()),
            ApplyError::StateChanged => Self::new(
                "state_changed",
                "The run has changed since it was previewed; nothing was written.",
            ),
            ApplyError::LostRaces => Self::new(
                "state_changed",
                "Others kept changing the run while it was being repaired; nothing was written.",
            ),
            ApplyError::NoSuchRun(_) => Self::new("gone", "There is no such run any more."),
            ApplyError::Db(_) => Self::failed(),
        }
    }

    pub fn failed() -> Self {
        Self::new(
            Self::FAILED,
            "The database did not answer as it should; the log says more. Look at the run.",
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// What a repair would do is being found out.
    Looking,
    /// All is known; nothing was written.
    Offered,
    Running,
    Ended,
}

/// Why a set was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// It is under way or over already.
    Already,
    /// It is not what was shown, or not known yet.
    NotAsShown,
}

#[derive(Clone, Debug)]
pub struct Batch {
    members: Vec<Member>,
    stage: Stage,
}

impl Batch {
    /// Freezes a set. A run is in it once.
    pub fn freeze(runs: Vec<RunName>) -> Self {
        let mut members: Vec<Member> = Vec::new();
        for run in runs.into_iter().take(MOST as usize) {
            if members.iter().all(|member| member.run.run_id != run.run_id) {
                members.push(Member {
                    run,
                    preview: Preview::Unseen,
                    outcome: Outcome::Waiting,
                });
            }
        }
        let mut batch = Self {
            members,
            stage: Stage::Looking,
        };
        batch.settle();
        batch
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The next run to look at; none when all were, or nobody wants to know any more.
    pub fn to_look_at(&self) -> Option<&str> {
        self.members
            .iter()
            .find(|member| self.stage == Stage::Looking && member.is_unseen())
            .map(|member| member.run.run_id.as_str())
    }

    pub fn saw(&mut self, run_id: &str, found: Result<&RepairPlan, Why>) {
        if let Some(member) = self.member(run_id).filter(|member| member.is_unseen()) {
            member.preview = match found {
                Ok(plan) => Preview::Repair {
                    kind: plan.kind,
                    words: plan.words.clone(),
                    digest: plan.digest.clone(),
                },
                Err(why) => Preview::LeftOut(why),
            };
        }
        self.settle();
    }

    /// A fingerprint of the runs that would be repaired and how; none before all is known.
    pub fn digest(&self) -> Option<String> {
        if self.members.iter().any(Member::is_unseen) {
            return None;
        }
        let mut hash = Sha256::new();
        for member in &self.members {
            if let Preview::Repair { digest, .. } = &member.preview {
                for word in [&member.run.run_id, digest] {
                    hash.update((word.len() as u64).to_le_bytes());
                    hash.update(word.as_bytes());
                }
            }
        }
        Some(hex(&hash.finalize()))
    }

    /// Begins the repairs that were shown, once.
    pub fn start(&mut self, shown: &str) -> Result<(), NotStarted> {
        match self.stage {
            Stage::Running | Stage::Ended => Err(NotStarted::Already),
            Stage::Offered if self.digest().as_deref() == Some(shown) => {
                self.stage = Stage::Running;
                self.settle();
                Ok(())
            }
            Stage::Looking | Stage::Offered => Err(NotStarted::NotAsShown),
        }
    }

    /// The next run to repair, with the digest of its plan; none when there is no other.
    pub fn take_turn(&mut self) -> Option<(String, String)> {
        if self.stage != Stage::Running {
            return None;
        }
        let waits = |member: &&mut Member| member.outcome == Outcome::Waiting;
        self.members
            .iter_mut()
            .filter(waits)
            .find_map(|member| match &member.preview {
                Preview::Repair { digest, .. } => {
                    member.outcome = Outcome::UnderWay;
                    Some((member.run.run_id.clone(), digest.clone()))
                }
                _ => None,
            })
    }

    pub fn went(&mut self, run_id: &str, outcome: Outcome) {
        if let Some(member) = self.member(run_id) {
            member.outcome = outcome;
        }
        self.settle();
    }

    /// Nothing more is begun. What is under way ends by itself.
    pub fn stop(&mut self) {
        if self.stage == Stage::Running {
            for member in &mut self.members {
                if member.is_planned() && member.outcome == Outcome::Waiting {
                    let why = Why::new(
                        Why::STOPPED,
                        "It was stopped before its turn; nothing was written.",
                    );
                    member.outcome = Outcome::Skipped(why);
                }
            }
            self.settle();
        } else {
            self.stage = Stage::Ended;
        }
    }

    /// How many of how many are over, in the stage that it is in.
    pub fn progress(&self) -> (usize, usize) {
        if self.stage == Stage::Looking {
            let unseen = self.members.iter().filter(|member| member.is_unseen());
            return (self.members.len() - unseen.count(), self.members.len());
        }
        let over = self.planned().filter(|member| member.outcome.is_over());
        (over.count(), self.planned().count())
    }

    /// Those that would be or were repaired.
    pub fn planned(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_planned())
    }

    /// The same by what is wrong with them.
    pub fn by_kind(&self) -> BTreeMap<Kind, Vec<&Member>> {
        let mut kinds = BTreeMap::<_, Vec<_>>::new();
        for member in &self.members {
            if let Preview::Repair { kind, .. } = member.preview {
                kinds.entry(kind).or_default().push(member);
            }
        }
        kinds
    }

    /// Those left out from the start, by the reason's code.
    pub fn left_out(&self) -> BTreeMap<&str, Vec<(&Member, &Why)>> {
        let mut codes = BTreeMap::<_, Vec<_>>::new();
        for member in &self.members {
            if let Preview::LeftOut(why) = &member.preview {
                codes
                    .entry(why.code.as_str())
                    .or_default()
                    .push((member, why));
            }
        }
        codes
    }

    fn member(&mut self, run_id: &str) -> Option<&mut Member> {
        self.members
            .iter_mut()
            .find(|member| member.run.run_id == run_id)
    }

    fn settle(&mut self) {
        let (over, of) = self.progress();
        match self.stage {
            Stage::Looking if over == of => self.stage = Stage::Offered,
            Stage::Running if over == of => self.stage = Stage::Ended,
            _ => {}
        }
    }
}

impl Member {
    fn is_unseen(&self) -> bool {
        matches!(self.preview, Preview::Unseen)
    }

    fn is_planned(&self) -> bool {
        matches!(self.preview, Preview::Repair { .. })
    }
}

impl Outcome {
    fn is_over(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Skipped(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(ids: &[&str]) -> Vec<RunName> {
        ids.iter()
            .map(|id| RunName {
                run_id: (*id).to_owned(),
                instance_id: format!("instance-of-{id}"),
                workflow_type: "order".to_owned(),
            })
            .collect()
    }

    /// Seen, as if its plan had this digest; none is left out.
    fn seen(ids: &[(&str, Option<&str>)]) -> Batch {
        let names: Vec<&str> = ids.iter().map(|(id, _)| *id).collect();
        let mut batch = Batch::freeze(runs(&names));
        for (member, (_, digest)) in batch.members.iter_mut().zip(ids) {
            member.preview = match digest {
                Some(digest) => Preview::Repair {
                    kind: Kind::LeaseExpired,
                    words: Words::default(),
                    digest: (*digest).to_owned(),
                },
                None => Preview::LeftOut(Why::new("run_closed", "closed")),
            };
        }
        batch.settle();
        batch
    }

    fn done() -> Outcome {
        Outcome::Done { command_id: None }
    }

    #[test]
    fn a_run_is_in_a_set_once_and_a_set_has_an_end() {
        assert_eq!(Batch::freeze(runs(&["a", "b", "a"])).members().len(), 2);
        let many: Vec<String> = (0..=MOST).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(Batch::freeze(runs(&many)).members().len(), MOST as usize);
    }

    #[test]
    fn it_is_offered_when_every_run_was_looked_at() {
        let mut batch = Batch::freeze(runs(&["a", "b"]));
        assert_eq!(batch.digest(), None);
        assert_eq!(batch.start(""), Err(NotStarted::NotAsShown));
        let mut looked = Vec::new();
        while let Some(id) = batch.to_look_at().map(str::to_owned) {
            assert_eq!(batch.stage(), Stage::Looking);
            assert_eq!(batch.progress(), (looked.len(), 2));
            batch.saw(&id, Err(Why::failed()));
            looked.push(id);
        }
        assert_eq!(looked, ["a", "b"]);
        assert_eq!(batch.stage(), Stage::Offered);
        assert_eq!(batch.left_out()[Why::FAILED].len(), 2);
    }

    #[test]
    fn the_digest_knows_the_runs_and_their_plans() {
        let one = seen(&[("a", Some("1")), ("b", Some("2"))]).digest();
        assert_eq!(one, seen(&[("a", Some("1")), ("b", Some("2"))]).digest());
        // One that is left out is not repaired, so it does not count.
        let beside = [("a", Some("1")), ("c", None), ("b", Some("2"))];
        assert_eq!(one, seen(&beside).digest());
        for other in [
            &[("a", Some("1"))][..],
            &[("a", Some("1")), ("b", Some("3"))],
            &[("a", Some("1")), ("c", Some("2"))],
            &[("a", Some("12")), ("b", Some(""))],
        ] {
            assert_ne!(one, seen(other).digest(), "{other:?}");
        }
    }

    #[test]
    fn only_what_was_shown_is_begun_and_only_once() {
        let mut batch = seen(&[("a", Some("1")), ("b", None), ("c", Some("2"))]);
        assert_eq!(batch.take_turn(), None, "not before it is started");
        assert_eq!(batch.start("another"), Err(NotStarted::NotAsShown));
        let digest = batch.digest().unwrap();
        assert_eq!(batch.start(&digest), Ok(()));
        assert_eq!(batch.start(&digest), Err(NotStarted::Already));
        assert_eq!(batch.take_turn(), Some(("a".into(), "1".into())));
        batch.went("a", done());
        assert_eq!(batch.progress(), (1, 2));
        assert_eq!(batch.take_turn(), Some(("c".into(), "2".into())));
        assert_eq!(batch.take_turn(), None, "nobody's turn comes twice");
        batch.went("c", Outcome::Skipped(Why::of(&ApplyError::StateChanged)));
        assert_eq!(batch.stage(), Stage::Ended);
        assert_eq!(batch.start(&digest), Err(NotStarted::Already));
    }

    #[test]
    fn what_is_stopped_ends_with_the_run_under_way() {
        let mut batch = seen(&[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]);
        let digest = batch.digest().unwrap();
        batch.start(&digest).unwrap();
        batch.take_turn();
        batch.stop();
        assert_eq!((batch.stage(), batch.take_turn()), (Stage::Running, None));
        batch.went("a", done());
        assert_eq!(batch.stage(), Stage::Ended);
        let stopped = batch.planned().filter(
            |member| matches!(&member.outcome, Outcome::Skipped(why) if why.code == Why::STOPPED),
        );
        assert_eq!(stopped.count(), 2);
    }

    #[test]
    fn what_is_stopped_before_it_is_started_never_starts() {
        let mut batch = Batch::freeze(runs(&["a"]));
        batch.stop();
        assert_eq!((batch.stage(), batch.to_look_at()), (Stage::Ended, None));
        let mut batch = seen(&[("a", Some("1"))]);
        let digest = batch.digest().unwrap();
        batch.stop();
        assert_eq!(batch.start(&digest), Err(NotStarted::Already));
    }
}
