//! Which units get a row: all of them, or the telling ones and groups of the rest.

use std::collections::BTreeMap;

use super::{Kind, Phase, Span, Unit};
use crate::run::window::{Asked, Window};

/// Most rows drawn one by one; beyond, units of one kind and name share a row.
const ROWS: usize = 60;
/// Units shown one by one beside the groups: the open and the failed ones.
const TELLING: usize = 20;
/// Groups shown; the smallest ones beyond share a row per kind.
pub(super) const GROUPS: usize = 30;
/// Units of one group shown at a time.
pub(super) const PAGE: usize = 50;

pub(super) struct Chosen {
    pub rows: Vec<(Unit, Option<usize>)>,
    pub window: Window,
}

pub(super) fn choose(
    units: Vec<&Unit>,
    of_group: Option<&str>,
    selected: Option<&str>,
    asked: &Asked,
) -> Chosen {
    let total = units.len();
    if let Some(group) = of_group {
        let units: Vec<&Unit> = units
            .into_iter()
            .filter(|unit| key(unit) == group)
            .collect();
        let total = units.len();
        let from: usize = asked
            .get("units")
            .and_then(|from| from.parse().ok())
            .unwrap_or(0);
        let from = if from < total { from } else { 0 };
        let rows: Vec<_> = units
            .into_iter()
            .skip(from)
            .take(PAGE)
            .map(|unit| (unit.clone(), None))
            .collect();
        let window = Window {
            from,
            len: rows.len(),
            total,
            loaded: true,
        };
        return Chosen { rows, window };
    }
    let whole = Window {
        from: 0,
        len: total,
        total,
        loaded: true,
    };
    if total <= ROWS {
        let rows = units.into_iter().map(|unit| (unit.clone(), None));
        let rows = rows.collect();
        return Chosen {
            rows,
            window: whole,
        };
    }
    Chosen {
        rows: grouped(units, selected),
        window: whole,
    }
}

/// The name of a unit's group, as the address has it.
pub fn key(unit: &Unit) -> String {
    format!("{}:{}", unit.kind.name(), unit.family)
}

/// The telling units one by one, the rest by kind and name.
fn grouped(units: Vec<&Unit>, selected: Option<&str>) -> Vec<(Unit, Option<usize>)> {
    let mut rows: Vec<(Unit, Option<usize>)> = Vec::new();
    let mut rest: BTreeMap<String, Vec<&Unit>> = BTreeMap::new();
    let telling = units
        .iter()
        .rev()
        .filter(|unit| unit.is_open || unit.failed)
        .take(TELLING)
        .map(|unit| unit.id.as_str())
        .collect::<std::collections::HashSet<_>>();
    for unit in units {
        if telling.contains(unit.id.as_str()) || selected == Some(&unit.id) {
            rows.push((unit.clone(), None));
        } else {
            rest.entry(key(unit)).or_default().push(unit);
        }
    }
    let mut groups: Vec<Vec<&Unit>> = rest.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let small = groups.split_off(GROUPS.min(groups.len()));
    let mut by_kind: BTreeMap<Kind, Vec<&Unit>> = BTreeMap::new();
    for unit in small.into_iter().flatten() {
        by_kind.entry(unit.kind).or_default().push(unit);
    }
    rows.extend(groups.iter().filter_map(|group| as_one(group, None)));
    rows.extend(
        by_kind
            .values()
            .filter_map(|group| as_one(group, Some("others"))),
    );
    rows.sort_by_key(|(unit, _)| unit.from());
    rows
}

/// One row for many units; a group of one stays what it is.
fn as_one(group: &[&Unit], name: Option<&str>) -> Option<(Unit, Option<usize>)> {
    let count = group.len();
    let failed = group.iter().filter(|unit| unit.failed).count();
    let open = group.iter().filter(|unit| unit.is_open).count();
    let (first, others) = group.split_first()?;
    let mut first = Unit::clone(first);
    if others.is_empty() {
        return Some((first, None));
    }
    first.spans = group.iter().flat_map(|unit| made_good(unit)).collect();
    if let Some(name) = name {
        name.clone_into(&mut first.family);
    }
    first.name.clone_from(&first.family);
    first.id = format!("group-{}", key(&first));
    first.note = Some(format!("×{count}"));
    first.status = match (failed, open) {
        (0, 0) => format!("{count} ended"),
        (0, open) => format!("{count}, {open} of them open"),
        (failed, 0) => format!("{count}, {failed} of them failed"),
        (failed, open) => format!("{count}, {failed} of them failed, {open} open"),
    };
    // The drawing counts tries.
    let tries = first.attempts();
    if tries > count {
        first.status = format!("{}, {tries} tries", first.status);
    }
    first.mark = None;
    first.facts = Vec::new();
    first.row = None;
    first.leads_to = None;
    Some((first, Some(count)))
}

/// The spans of a unit as its group draws them: a failed try that was made good is no failure.
fn made_good(unit: &Unit) -> impl Iterator<Item = Span> {
    let good = !unit.failed && !unit.is_open;
    unit.spans
        .iter()
        .cloned()
        .map(move |span| match span.phase {
            Phase::Failed if good => Span {
                phase: Phase::Done,
                ..span
            },
            _ => span,
        })
}
