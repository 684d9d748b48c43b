//! Which queries, signals and updates a run accepts, as its first event declared them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::Context;
use crate::durable::{
    php::items,
    stored::{EventType, loose::Any, payloads::contract::DeclaredContract},
};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Contract {
    pub declared_queries: Vec<String>,
    pub declared_query_contracts: Vec<Declared>,
    pub declared_query_targets: Vec<Target>,
    pub declared_signals: Vec<String>,
    pub declared_signal_contracts: Vec<Declared>,
    pub declared_signal_targets: Vec<Target>,
    pub declared_updates: Vec<String>,
    pub declared_update_contracts: Vec<Declared>,
    pub declared_update_targets: Vec<Target>,
    pub declared_entry_method: Option<String>,
    pub declared_entry_mode: Option<String>,
    pub declared_entry_declaring_class: Option<String>,
    pub declared_contract_source: ContractSource,
    /// The run started before the engine recorded contracts, or its record is incomplete.
    pub declared_contract_backfill_needed: bool,
    /// Needs the workflow's PHP class, which is never loaded here.
    pub declared_contract_backfill_available: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContractSource {
    DurableHistory,
    #[default]
    Unavailable,
}

/// A name with the parameters it takes, as PHP described them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Declared {
    pub name: String,
    /// Each a map.
    pub parameters: Vec<Value>,
}

/// What can be called, with or without a known signature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    pub name: String,
    pub parameters: Vec<Value>,
    pub has_contract: bool,
}

pub fn contract(cx: Context<'_>) -> Contract {
    let started = cx
        .snapshot
        .events
        .iter()
        .find(|event| event.event_type == EventType::WorkflowStarted);
    match started {
        // A run without its first event: nothing is known, nothing can be filled in.
        None => Contract::default(),
        Some(event) => of_declaration(&event.as_payload()),
    }
}

fn of_declaration(declared: &DeclaredContract) -> Contract {
    if !declared.has_any_key() {
        return Contract {
            declared_contract_backfill_needed: true,
            ..Contract::default()
        };
    }
    let queries = Kind::of(
        declared.declared_queries.seen(),
        declared.declared_query_contracts.seen(),
    );
    let signals = Kind::of(
        declared.declared_signals.seen(),
        declared.declared_signal_contracts.seen(),
    );
    let updates = Kind::of(
        declared.declared_updates.seen(),
        declared.declared_update_contracts.seen(),
    );
    // The one way in the engine knows; another word is none.
    let method = text(declared.declared_entry_method.seen()).filter(|method| method == "handle");
    let mode = text(declared.declared_entry_mode.seen()).filter(|mode| mode == "canonical");
    let class = text(declared.declared_entry_declaring_class.seen());
    let durable = queries.valid
        && queries.every_name_has_a_contract()
        && signals.valid
        && updates.valid
        && updates.every_name_has_a_contract()
        && method.is_some()
        && mode.is_some()
        && class.is_some();
    Contract {
        declared_query_targets: queries.targets(),
        declared_queries: queries.names,
        declared_query_contracts: queries.contracts,
        declared_signal_targets: signals.targets(),
        declared_signals: signals.names,
        declared_signal_contracts: signals.contracts,
        declared_update_targets: updates.targets(),
        declared_updates: updates.names,
        declared_update_contracts: updates.contracts,
        declared_entry_method: method,
        declared_entry_mode: mode,
        declared_entry_declaring_class: class,
        declared_contract_source: if durable {
            ContractSource::DurableHistory
        } else {
            ContractSource::Unavailable
        },
        declared_contract_backfill_needed: !durable,
        declared_contract_backfill_available: false,
    }
}

/// Queries, signals or updates: their names and, as far as declared, their signatures.
struct Kind {
    names: Vec<String>,
    contracts: Vec<Declared>,
    /// Both lists were there and well formed.
    valid: bool,
}

impl Kind {
    fn of(listed: Option<&Any>, contracts: Option<&Any>) -> Self {
        let names = listed.and_then(names);
        let contracts = contracts.and_then(signatures);
        Self {
            valid: names.is_some() && contracts.is_some(),
            names: names.unwrap_or_default(),
            contracts: contracts.unwrap_or_default(),
        }
    }

    fn every_name_has_a_contract(&self) -> bool {
        let known: BTreeSet<&str> = self.contracts.iter().map(|c| c.name.as_str()).collect();
        self.names.iter().all(|name| known.contains(name.as_str()))
    }

    fn targets(&self) -> Vec<Target> {
        let mut targets: BTreeMap<&str, Option<&Declared>> = self
            .names
            .iter()
            .map(|name| (name.as_str(), None))
            .collect();
        for contract in &self.contracts {
            targets.insert(&contract.name, Some(contract));
        }
        targets
            .into_iter()
            .map(|(name, contract)| Target {
                name: name.to_owned(),
                parameters: contract.map_or_else(Vec::new, |c| c.parameters.clone()),
                has_contract: contract.is_some(),
            })
            .collect()
    }
}

/// Non-empty strings, each once, sorted.
fn names(listed: &Any) -> Option<Vec<String>> {
    let unique: BTreeSet<&str> = items(listed.as_ref()?)?
        .into_iter()
        .filter_map(Value::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    Some(unique.into_iter().map(str::to_owned).collect())
}

/// One malformed entry makes the whole list unusable: a caller would trust the rest.
fn signatures(listed: &Any) -> Option<Vec<Declared>> {
    let mut out = items(listed.as_ref()?)?
        .into_iter()
        .map(signature)
        .collect::<Option<Vec<_>>>()?;
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Some(out)
}

/// An entry that lists no parameters has none; a parameter that is no map is left out.
fn signature(entry: &Value) -> Option<Declared> {
    let parameters = match entry.get("parameters") {
        None | Some(Value::Null) => Vec::new(),
        Some(listed) => items(listed)?,
    };
    Some(Declared {
        name: entry.get("name")?.as_str()?.to_owned(),
        parameters: parameters
            .into_iter()
            .filter(|parameter| parameter.is_object() || parameter.is_array())
            .cloned()
            .collect(),
    })
}

fn text(value: Option<&Any>) -> Option<String> {
    value?
        .as_ref()?
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::stored::loose;

    fn whole() -> Value {
        json!({
            "declared_queries": ["state"],
            "declared_query_contracts": [{"name": "state", "parameters": []}],
            "declared_signals": ["go", "go", "", 7, "advance"],
            "declared_signal_contracts": [],
            "declared_updates": ["approve"],
            "declared_update_contracts": [{"name": "approve", "parameters": [{"name": "by"}]}],
            "declared_entry_method": "handle",
            "declared_entry_mode": "canonical",
            "declared_entry_declaring_class": "App\\Order",
        })
    }

    fn with(key: &str, value: Option<Value>) -> Value {
        let mut declared = whole();
        match value {
            Some(value) => declared[key] = value,
            None => {
                declared.as_object_mut().unwrap().remove(key);
            }
        }
        declared
    }

    #[test]
    fn only_a_whole_declaration_is_durable() {
        use ContractSource::{DurableHistory, Unavailable};
        for (what, declared, source, needed) in [
            ("whole", whole(), DurableHistory, false),
            ("none of the keys", json!({}), Unavailable, true),
            (
                "a key is missing",
                with("declared_updates", None),
                Unavailable,
                true,
            ),
            (
                "an update without a contract",
                with("declared_updates", Some(json!(["approve", "deny"]))),
                Unavailable,
                true,
            ),
            (
                "a signal without one",
                with("declared_signals", Some(json!(["go", "stop"]))),
                DurableHistory,
                false,
            ),
            (
                "a malformed contract",
                with("declared_query_contracts", Some(json!([{"name": 7}]))),
                Unavailable,
                true,
            ),
            (
                "parameters that are no list",
                with(
                    "declared_query_contracts",
                    Some(json!([{"name": "state", "parameters": "none"}])),
                ),
                Unavailable,
                true,
            ),
            (
                "a contract that lists no parameters",
                with("declared_query_contracts", Some(json!([{"name": "state"}]))),
                DurableHistory,
                false,
            ),
            (
                "another entry method",
                with("declared_entry_method", Some(json!("execute"))),
                Unavailable,
                true,
            ),
            (
                "no declaring class",
                with("declared_entry_declaring_class", Some(json!(null))),
                Unavailable,
                true,
            ),
        ] {
            let contract = of_declaration(&loose::read_value(&declared));
            assert_eq!(contract.declared_contract_source, source, "{what}");
            assert_eq!(contract.declared_contract_backfill_needed, needed, "{what}");
        }
    }

    #[test]
    fn a_target_without_a_signature_can_still_be_called() {
        let contract = of_declaration(&loose::read_value(&whole()));
        assert_eq!(contract.declared_signals, ["advance", "go"]);
        let targets: Vec<(&str, bool)> = contract
            .declared_signal_targets
            .iter()
            .map(|target| (target.name.as_str(), target.has_contract))
            .collect();
        assert_eq!(targets, [("advance", false), ("go", false)]);
        assert!(contract.declared_update_targets[0].has_contract);
    }

    #[test]
    fn only_the_one_way_in_is_told() {
        let declared = json!({
            "declared_entry_method": "execute",
            "declared_entry_mode": "compatibility",
            "declared_entry_declaring_class": "App\\Order",
        });
        let contract = of_declaration(&loose::read_value(&declared));
        assert_eq!(contract.declared_entry_method, None);
        assert_eq!(contract.declared_entry_mode, None);
        assert_eq!(
            contract.declared_entry_declaring_class.as_deref(),
            Some("App\\Order")
        );
    }

    #[test]
    fn a_parameter_that_is_no_map_takes_only_itself_away() {
        let declared = with(
            "declared_update_contracts",
            Some(json!([{"name": "approve", "parameters": [7, {"name": "by"}, "at"]}])),
        );
        let contract = of_declaration(&loose::read_value(&declared));
        assert_eq!(
            contract.declared_update_contracts[0].parameters,
            [json!({"name": "by"})]
        );
    }
}
