//! What the engine's repair pass would look at, and how much of it in one pass: every scope in
//! turn, so that a long queue does not starve a short one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{age_ms, policy::SCAN_STRATEGY};
use crate::durable::{
    engine_config::EngineConfig,
    store::metrics::{
        Counted, RepairGroup,
        repair::{NOTHING, Triple},
    },
    stored::Stamp,
};

#[derive(Clone, Debug, Serialize)]
pub struct Repair {
    pub existing_task_candidates: i64,
    pub missing_task_candidates: i64,
    pub total_candidates: i64,
    pub scan_limit: i64,
    pub scan_strategy: &'static str,
    pub selected_existing_task_candidates: i64,
    pub selected_missing_task_candidates: i64,
    pub selected_total_candidates: i64,
    pub existing_task_scan_limit_reached: bool,
    pub missing_task_scan_limit_reached: bool,
    pub scan_pressure: bool,
    pub oldest_task_candidate_created_at: Option<Stamp>,
    pub oldest_missing_run_started_at: Option<Stamp>,
    pub max_task_candidate_age_ms: i64,
    pub max_missing_run_age_ms: i64,
    pub scopes: Vec<Scope>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Scope {
    pub scope_key: String,
    pub connection: Option<String>,
    pub queue: Option<String>,
    pub compatibility: Option<String>,
    pub existing_task_candidates: i64,
    pub missing_task_candidates: i64,
    pub total_candidates: i64,
    pub selected_existing_task_candidates: i64,
    pub selected_missing_task_candidates: i64,
    pub selected_total_candidates: i64,
    pub oldest_task_candidate_created_at: Option<Stamp>,
    pub oldest_missing_run_started_at: Option<Stamp>,
    pub max_task_candidate_age_ms: i64,
    pub max_missing_run_age_ms: i64,
    pub scan_limited_by_global_policy: bool,
}

impl Repair {
    pub fn of(counted: &Counted, config: &EngineConfig) -> Self {
        let limit = config.int("task_repair.scan_limit");
        let groups = &counted.repair;
        let now = counted.now;
        let tasks = Side::of(&groups.tasks, limit);
        let runs = Side::of(&groups.runs, limit);
        let oldest_task = tasks.scopes.values().filter_map(|scope| scope.oldest).min();

        let mut scopes: BTreeMap<&str, Scope> = BTreeMap::new();
        for (key, side) in tasks.scopes.iter().chain(&runs.scopes) {
            scopes
                .entry(key.as_str())
                .or_insert_with(|| Scope::empty(key, &side.first));
        }
        for (key, scope) in &mut scopes {
            let task = tasks.scopes.get(*key);
            let run = runs.scopes.get(*key);
            scope.existing_task_candidates = task.map_or(0, |side| side.candidates);
            scope.missing_task_candidates = run.map_or(0, |side| side.candidates);
            scope.total_candidates = scope.existing_task_candidates + scope.missing_task_candidates;
            scope.selected_existing_task_candidates = task.map_or(0, |side| side.selected);
            scope.selected_missing_task_candidates = run.map_or(0, |side| side.selected);
            scope.selected_total_candidates =
                scope.selected_existing_task_candidates + scope.selected_missing_task_candidates;
            scope.oldest_task_candidate_created_at = task.and_then(|side| side.oldest);
            scope.oldest_missing_run_started_at = run.and_then(|side| side.oldest);
            scope.max_task_candidate_age_ms = age_ms(now, scope.oldest_task_candidate_created_at);
            scope.max_missing_run_age_ms = age_ms(now, scope.oldest_missing_run_started_at);
            scope.scan_limited_by_global_policy =
                scope.total_candidates > scope.selected_total_candidates;
        }
        let mut scopes: Vec<Scope> = scopes.into_values().collect();
        scopes.sort_by_key(|scope| {
            let age = scope
                .max_task_candidate_age_ms
                .max(scope.max_missing_run_age_ms);
            std::cmp::Reverse((scope.total_candidates, age))
        });
        Self {
            existing_task_candidates: tasks.candidates(),
            missing_task_candidates: runs.candidates(),
            total_candidates: tasks.candidates() + runs.candidates(),
            scan_limit: limit,
            scan_strategy: SCAN_STRATEGY,
            selected_existing_task_candidates: tasks.selected(),
            selected_missing_task_candidates: runs.selected(),
            selected_total_candidates: tasks.selected() + runs.selected(),
            existing_task_scan_limit_reached: tasks.candidates() >= limit,
            missing_task_scan_limit_reached: runs.candidates() >= limit,
            scan_pressure: tasks.candidates() >= limit || runs.candidates() >= limit,
            oldest_task_candidate_created_at: oldest_task,
            oldest_missing_run_started_at: groups.oldest_missing_run_started_at,
            max_task_candidate_age_ms: age_ms(now, oldest_task),
            max_missing_run_age_ms: age_ms(now, groups.oldest_missing_run_started_at),
            scopes,
        }
    }
}

impl Scope {
    fn empty(key: &str, triple: &Triple) -> Self {
        Self {
            scope_key: key.to_owned(),
            connection: triple[0].clone(),
            queue: triple[1].clone(),
            compatibility: triple[2].clone(),
            existing_task_candidates: 0,
            missing_task_candidates: 0,
            total_candidates: 0,
            selected_existing_task_candidates: 0,
            selected_missing_task_candidates: 0,
            selected_total_candidates: 0,
            oldest_task_candidate_created_at: None,
            oldest_missing_run_started_at: None,
            max_task_candidate_age_ms: 0,
            max_missing_run_age_ms: 0,
            scan_limited_by_global_policy: false,
        }
    }
}

/// Tasks that are there, or runs whose task is not.
struct Side {
    scopes: BTreeMap<String, SideScope>,
}

struct SideScope {
    /// Of the group the database gave first.
    first: Triple,
    /// Of the oldest group: the one the pass asks the database for.
    asked: Triple,
    candidates: i64,
    oldest: Option<Stamp>,
    selected: i64,
}

impl Side {
    fn of(groups: &[RepairGroup], limit: i64) -> Self {
        let mut scopes: BTreeMap<String, SideScope> = BTreeMap::new();
        for group in groups {
            let triple = triple(group);
            let scope = scopes.entry(key(&triple)).or_insert_with(|| SideScope {
                first: triple.clone(),
                asked: triple.clone(),
                candidates: 0,
                oldest: group.oldest,
                selected: 0,
            });
            scope.candidates += group.candidates;
            if group
                .oldest
                .is_some_and(|at| scope.oldest.is_none_or(|oldest| at < oldest))
            {
                scope.oldest = group.oldest;
                scope.asked = triple;
            }
        }
        let mut side = Self { scopes };
        side.select(groups, limit);
        side
    }

    /// One candidate of each scope in turn, the oldest scope first, until the limit.
    fn select(&mut self, groups: &[RepairGroup], limit: i64) {
        let mut turns: Vec<(&String, &mut SideScope)> = self.scopes.iter_mut().collect();
        turns.sort_by_key(|(_, scope)| scope.turn());
        let reachable: Vec<i64> = turns
            .iter()
            .map(|(_, scope)| {
                let met = groups.iter().filter(|group| meets(&scope.asked, group));
                met.map(|group| group.candidates).sum::<i64>().min(limit)
            })
            .collect();
        let mut left = limit;
        for round in 1.. {
            let mut any = false;
            for ((_, scope), reachable) in turns.iter_mut().zip(&reachable) {
                if left > 0 && *reachable >= round {
                    scope.selected += 1;
                    left -= 1;
                    any = true;
                }
            }
            if !any {
                break;
            }
        }
    }

    fn candidates(&self) -> i64 {
        self.scopes.values().map(|scope| scope.candidates).sum()
    }

    fn selected(&self) -> i64 {
        self.scopes.values().map(|scope| scope.selected).sum()
    }
}

impl SideScope {
    /// The oldest first; what has no age last.
    fn turn(&self) -> (bool, Option<i64>) {
        let oldest = self.oldest.map(|at| at.0.timestamp_millis());
        (oldest.is_none(), oldest)
    }
}

/// Which scopes a pass asks for and how many candidates it takes of each, in its order.
pub fn turns(groups: &[RepairGroup], limit: i64) -> Vec<(Triple, i64)> {
    let side = Side::of(groups, limit);
    let mut scopes: Vec<SideScope> = side.scopes.into_values().collect();
    scopes.sort_by_key(SideScope::turn);
    scopes
        .into_iter()
        .map(|scope| (scope.asked, scope.selected))
        .collect()
}

fn triple(group: &RepairGroup) -> Triple {
    [&group.connection, &group.queue, &group.compatibility]
        .map(|text| text.clone().filter(|text| !text.is_empty()))
}

fn key(triple: &Triple) -> String {
    let words: Vec<&str> = triple
        .iter()
        .zip(NOTHING)
        .map(|(text, nothing)| text.as_deref().unwrap_or(nothing))
        .collect();
    words.join(":")
}

/// Whether the pass, asking for this triple, finds the group: nothing also finds the word that
/// stands for it, a word finds only itself.
fn meets(asked: &Triple, group: &RepairGroup) -> bool {
    let own = [&group.connection, &group.queue, &group.compatibility];
    asked
        .iter()
        .zip(own)
        .zip(NOTHING)
        .all(|((asked, own), nothing)| match asked {
            Some(asked) => own.as_deref() == Some(asked),
            None => own
                .as_deref()
                .is_none_or(|own| own.is_empty() || own == nothing),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(queue: Option<&str>, candidates: i64, second: i64) -> RepairGroup {
        RepairGroup {
            queue: queue.map(str::to_owned),
            candidates,
            oldest: chrono::DateTime::from_timestamp(second, 0).map(Stamp),
            ..RepairGroup::default()
        }
    }

    fn selected(groups: &[RepairGroup], limit: i64) -> Vec<(String, i64)> {
        let side = Side::of(groups, limit);
        side.scopes
            .into_iter()
            .map(|(key, scope)| (key, scope.selected))
            .collect()
    }

    #[test]
    fn a_long_queue_leaves_room_for_a_short_one() {
        let got = selected(
            &[group(Some("long"), 100, 1), group(Some("short"), 2, 2)],
            5,
        );
        assert_eq!(
            got,
            [
                ("default:long:any".into(), 3),
                ("default:short:any".into(), 2)
            ]
        );
    }

    #[test]
    fn no_queue_and_the_word_default_are_one_scope() {
        // The group without a queue is older: asking for it finds both.
        let both = selected(&[group(None, 2, 1), group(Some("default"), 3, 2)], 25);
        assert_eq!(both, [("default:default:any".into(), 5)]);
        // The literal group is older: asking for the word leaves the others behind.
        let one = selected(&[group(None, 2, 2), group(Some("default"), 3, 1)], 25);
        assert_eq!(one, [("default:default:any".into(), 3)]);
    }
}
