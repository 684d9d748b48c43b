//! Hides in rows what a policy hides in a bundle, so that whatever is told from them afterwards
//! is told without it.
//!
//! A bundle hides what it is about to write; here rows are hidden before anything is made of them.
//! So what ties them together stays, also inside a document that goes as a whole: a run told
//! without the ids in its events would be another run.

use serde_json::{Map, Value};

use super::{
    Policy,
    columns::COLUMNS,
    copies::{CopyId, Entry},
    slots::{Copies, EVENTS, Kind, Slot, TABLE, message_slot_of},
    ties::TIES,
};
use crate::durable::{
    export::entries::event_payload,
    payload,
    stored::{AsCell as _, Cell, FailureCategory, FailureRow, HistoryEvent, Notices, Stored},
};

/// Every event, in a path: rows do not say at which position an export has them.
const EVENT: &str = "history_events.*";

impl Policy {
    /// What of an event may leave; `hidden` hears of every copy that was hidden.
    pub fn hide_event(
        &self,
        path: &str,
        event_type: &str,
        payload: Value,
        hidden: impl FnMut(CopyId, &str),
    ) -> Value {
        let payload = self.apply(Slot::EventPayload, &format!("{path}.payload"), payload);
        self.hide_told(path, event_type, payload, hidden)
    }

    /// The same of the slots it tells of alone.
    fn hide_told(
        &self,
        path: &str,
        event_type: &str,
        payload: Value,
        hidden: impl FnMut(CopyId, &str),
    ) -> Value {
        let command_type = payload["command"]["type"].as_str().map(str::to_owned);
        let mut entry = Value::Object(Map::from_iter([("payload".to_owned(), payload)]));
        let about = Entry::event(path, event_type, command_type.as_deref());
        self.hide_copies(&about, &mut entry, hidden);
        entry["payload"].take()
    }

    /// Whether the payload of such an event is more than what is left of it.
    pub fn touches_event(&self, event_type: &str) -> bool {
        self.touches(Slot::EventPayload) || self.reaches(EVENTS, Some(event_type))
    }

    /// The event as it may be looked at by itself: as an export carries it.
    pub fn shown_event(&self, event: HistoryEvent) -> HistoryEvent {
        self.with_payload(event, |event_type, payload| {
            self.hide_event(EVENT, event_type, payload, |_, _| ())
        })
    }

    /// The event as the run may be told from it: also what ties it to other rows.
    pub fn told_event(&self, event: HistoryEvent) -> HistoryEvent {
        self.with_payload(event, |event_type, payload| {
            let mut told = self.hide_told(EVENT, event_type, payload.clone(), |_, _| ());
            if self.touches(Slot::EventPayload) {
                let whole = self.hide_event(EVENT, event_type, payload.clone(), |_, _| ());
                let kind = Kind {
                    event_type: Some(event_type),
                    command_type: payload["command"]["type"].as_str(),
                    ..Kind::default()
                };
                let parts = std::mem::replace(&mut told, whole);
                self.tie((EVENTS, "payload"), &kind, &parts, &mut told);
            }
            as_texts(&payload, &mut told);
            told
        })
    }

    fn with_payload(
        &self,
        event: HistoryEvent,
        left: impl FnOnce(&str, Value) -> Value,
    ) -> HistoryEvent {
        let event_type = event.event_type.as_str();
        if event.payload.is_none() || !self.touches_event(event_type) {
            return event;
        }
        let payload = event_payload(&event);
        let left = left(event_type, payload.clone());
        if left == payload {
            return event;
        }
        event.saying(&left)
    }

    pub fn hide_rows<T: Stored>(&self, rows: &mut [T]) {
        let columns = self.columns(T::TABLE);
        for row in rows.iter_mut().filter(|_| !columns.is_empty()) {
            let command_type = row.word("command_type").map(str::to_owned);
            let kind = Kind {
                command_type: command_type.as_deref(),
                message: Some(message_slot_of(|key| row.word(key))),
                ..Kind::default()
            };
            for name in &columns {
                let Some(column) = row.column(name) else {
                    continue;
                };
                let value = column.value();
                let left = self.told_column(T::TABLE, name, &kind, &value);
                if left != value {
                    column.set(left);
                }
            }
        }
    }

    /// Of a failure in a list: without a category its message may be of either kind.
    pub fn hide_failure(&self, failure: &mut FailureRow) {
        let category = failure.category.as_ref().map(FailureCategory::as_str);
        let kind = Kind {
            message: category.map(|_| message_slot_of(|_| category)),
            ..Kind::default()
        };
        let message = Value::from(failure.message.as_str());
        let left = self.told_column("workflow_failures", "message", &kind, &message);
        failure.message = payload::restored(&left).unwrap_or_default();
    }

    /// Hides a value that is about to be written, as it may be looked at; `kind` is of its row.
    pub fn hide_cell(&self, table: &str, column: &str, kind: &Kind<'_>, cell: &mut Cell) {
        let value = match &*cell {
            Cell::Text(text) => payload::stored(Some(text)).unwrap_or_default(),
            Cell::Json(value) => value.clone(),
            Cell::Null | Cell::Bool(_) | Cell::Int(_) | Cell::Time(_) => return,
        };
        let left = if table == HistoryEvent::TABLE {
            let event_type = kind.event_type.unwrap_or_default();
            match column {
                "payload" => self.hide_event(EVENT, event_type, value.clone(), |_, _| ()),
                _ => return,
            }
        } else {
            self.left_of_column(table, column, kind, value.clone())
        };
        if left != value {
            *cell = match left {
                Value::Null => Cell::Null,
                left => left.cell(),
            };
        }
    }

    /// What was noted of a value that is hidden must not quote it.
    pub fn hide_notices(&self, notices: &mut Notices) {
        notices.unquote(|notice| match notice.table {
            HistoryEvent::TABLE => {
                notice.column == "payload"
                    && (self.touches(Slot::EventPayload) || self.reaches(EVENTS, None))
            }
            // The engine's own projections repeat whatever they were made of.
            table if table.starts_with("workflow_run_") && notice.column == "payload" => true,
            table => self.columns(table).contains(&notice.column),
        });
    }

    /// The columns of a table of which something is hidden.
    fn columns(&self, table: &str) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (_, place) in self.held(table) {
            let own = match place.under.first() {
                Some(column) => std::slice::from_ref(column),
                None => place.keys,
            };
            for name in own {
                if !names.contains(name) {
                    names.push(*name);
                }
            }
        }
        names
    }

    fn held<'p>(&'p self, table: &'p str) -> impl Iterator<Item = (Slot, &'static Copies)> + 'p {
        COLUMNS
            .iter()
            .filter(move |(slot, place)| place.section == table && self.touches(*slot))
            .map(|(slot, place)| (*slot, place))
    }

    /// What an export would carry in place of the column.
    fn left_of_column(&self, table: &str, column: &str, kind: &Kind<'_>, value: Value) -> Value {
        let mut value = value;
        if value.is_null() {
            return value;
        }
        let of_column = |(_, place): &(Slot, &Copies)| place.when.holds(kind);
        for (slot, place) in self.held(table).filter(of_column) {
            if place.under.is_empty() && place.keys.contains(&column) {
                let left = self.apply(slot, slot.about().places[0], value.clone());
                let gone = left != value && (left.is_null() || payload::is_hidden(&left));
                value = left;
                if gone {
                    return value;
                }
            }
        }
        self.parts_of_column(table, column, kind, value)
    }

    /// The same of the slots that are parts of the column alone.
    fn parts_of_column(
        &self,
        table: &str,
        column: &str,
        kind: &Kind<'_>,
        mut value: Value,
    ) -> Value {
        for (slot, place) in self.held(table).filter(|(_, place)| place.when.holds(kind)) {
            let Some((_, under)) = place.under.split_first().filter(|(own, _)| **own == column)
            else {
                continue;
            };
            for key in place.keys {
                let way = [under, &[*key]].concat();
                self.hide_at(slot, slot.about().places[0], &way, &mut value, &mut |_| ());
            }
        }
        value
    }

    /// What a run may be told from of the column.
    fn told_column(&self, table: &str, column: &str, kind: &Kind<'_>, value: &Value) -> Value {
        let mut told = self.left_of_column(table, column, kind, value.clone());
        if value.is_object() && told != *value {
            let parts = self.parts_of_column(table, column, kind, value.clone());
            self.tie((table, column), kind, &parts, &mut told);
        }
        as_texts(value, &mut told);
        told
    }

    /// Puts back what ties rows together, and the slots inside, each as it is hidden itself.
    fn tie(&self, (table, column): (&str, &str), kind: &Kind<'_>, parts: &Value, told: &mut Value) {
        let slots = TABLE.iter().filter(|about| self.touches(about.slot));
        let copies = slots.flat_map(|about| about.copies);
        let inside = copies
            .chain(self.held(table).map(|(_, place)| place))
            .chain(TIES)
            .filter(|place| place.section == table && place.when.holds(kind));
        for place in inside {
            let Some((_, under)) = place.under.split_first().filter(|(own, _)| **own == column)
            else {
                continue;
            };
            for key in place.keys {
                graft(&[under, &[*key]].concat(), parts, told);
            }
        }
    }
}

/// The tables that hold a slot, and which columns of one do, for tests that fill them.
#[cfg(test)]
pub fn held_tables() -> Vec<&'static str> {
    let mut tables: Vec<_> = COLUMNS.iter().map(|(_, place)| place.section).collect();
    tables.sort_unstable();
    tables.dedup();
    tables
}

#[cfg(test)]
pub fn held_columns(table: &str) -> Vec<&'static str> {
    let everything: Policy = toml::from_str("rules = [{category = '*'}]").expect("a policy");
    everything.columns(table)
}

/// Copies what stands at the end of the way, if anything does.
fn graft(way: &[&str], from: &Value, to: &mut Value) {
    let Some(found) = way.iter().try_fold(from, |value, step| value.get(step)) else {
        return;
    };
    let mut place = to;
    for step in way {
        if !place.is_object() || payload::is_hidden(place) {
            *place = Value::Object(Map::new());
        }
        place = &mut place[*step];
    }
    *place = found.clone();
}

/// Where a text stood that is read as text, a note in its place is text as well.
fn as_texts(stored: &Value, left: &mut Value) {
    if stored.is_string() && payload::is_hidden_text(left) {
        *left = payload::hidden_text(left).into();
        return;
    }
    match (stored, left) {
        (Value::Object(stored), Value::Object(left)) => {
            for (key, left) in left {
                if let Some(stored) = stored.get(key) {
                    as_texts(stored, left);
                }
            }
        }
        (Value::Array(stored), Value::Array(left)) => {
            for (stored, left) in stored.iter().zip(left) {
                as_texts(stored, left);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::stored::{
        AttemptRow, CommandRow, EventType, ExecutionRow, FailureRecord, HeartbeatRow, LinkRow,
        ListedRun, MessageRow, RunRow, RunSummary, SignalRow, TaskRow, TimerRow, UpdateRow,
    };

    fn policy(rules: &str) -> Policy {
        toml::from_str(&format!("rules = [{rules}]")).unwrap()
    }

    /// Columns of text or JSON that no policy hides: what ties rows together, what a run is found
    /// by, how it is carried, and the engine's own words.
    const KEPT: &[(&str, &str)] = &[
        (
            "workflow_runs",
            "id workflow_instance_id workflow_class workflow_type namespace business_key \
             visibility_labels compatibility payload_codec output_payload_codec connection queue \
             archive_command_id import_source import_id import_dedupe_key sticky_worker_id \
             fairness_key",
        ),
        (
            "workflow_run_summaries",
            "id workflow_instance_id engine_source class workflow_type namespace compatibility \
             declared_entry_mode declared_contract_source business_key visibility_labels \
             connection queue sort_key archive_command_id wait_reason open_wait_id \
             resume_source_kind resume_source_id next_task_id history_budget_pressure",
        ),
        (
            "workflow_tasks",
            "id workflow_run_id namespace compatibility connection queue lease_owner \
             last_dispatch_error last_claim_error",
        ),
        (
            "activity_executions",
            "id workflow_run_id activity_class activity_type payload_codec connection queue \
             current_attempt_id retry_policy parallel_group_path activity_options",
        ),
        (
            "activity_attempts",
            "id workflow_run_id activity_execution_id workflow_task_id lease_owner",
        ),
        (
            "workflow_failures",
            "id workflow_run_id source_kind source_id propagation_kind exception_class",
        ),
        ("workflow_run_timers", "id workflow_run_id"),
        (
            "workflow_commands",
            "id workflow_instance_id workflow_run_id requested_workflow_run_id \
             resolved_workflow_run_id target_scope source outcome workflow_class workflow_type \
             payload_codec rejection_reason",
        ),
        (
            "workflow_signal_records",
            "id workflow_command_id workflow_instance_id workflow_run_id target_scope \
             requested_workflow_run_id resolved_workflow_run_id signal_name signal_wait_id \
             outcome payload_codec rejection_reason",
        ),
        (
            "workflow_updates",
            "id workflow_command_id workflow_instance_id workflow_run_id target_scope \
             requested_workflow_run_id resolved_workflow_run_id update_name outcome payload_codec \
             rejection_reason failure_id",
        ),
        (
            "workflow_links",
            "id link_type parallel_group_path parent_workflow_instance_id parent_workflow_run_id \
             child_workflow_instance_id child_workflow_run_id parent_close_policy",
        ),
        (
            "workflow_messages",
            "workflow_instance_id workflow_run_id direction channel stream_key \
             source_workflow_instance_id source_workflow_run_id target_workflow_instance_id \
             target_workflow_run_id correlation_id idempotency_key payload_reference consume_state",
        ),
        (
            "workflow_worker_compatibility_heartbeats",
            "worker_id namespace host process_id connection queue supported",
        ),
    ];

    /// Every column of text or JSON is hidden under `*`, or meant to stay; and every column that
    /// the table names is there.
    fn every_column<T: Stored + Default>() -> Vec<&'static str> {
        let everything = policy("{category = '*'}");
        let kept = KEPT.iter().find(|(table, _)| *table == T::TABLE);
        let kept: Vec<&str> = kept.map_or_else(Vec::new, |(_, names)| names.split(' ').collect());
        let mut hidden = Vec::new();
        for name in T::COLUMNS.split(", ") {
            let mut row = T::default();
            let Some(column) = row.column(name) else {
                continue;
            };
            column.set(json!("secret"));
            everything.hide_rows(std::slice::from_mut(&mut row));
            let left = row.column(name).expect("still there").value();
            let stays = left == "secret";
            assert!(stays == kept.contains(&name), "{}.{name}", T::TABLE);
            if !stays {
                hidden.push(name);
            }
        }
        hidden
    }

    #[test]
    fn every_column_is_a_slots_or_meant_to_stay() {
        let hidden = [
            (RunRow::TABLE, every_column::<RunRow>()),
            (ListedRun::TABLE, every_column::<ListedRun>()),
            (RunSummary::TABLE, every_column::<RunSummary>()),
            (TaskRow::TABLE, every_column::<TaskRow>()),
            (ExecutionRow::TABLE, every_column::<ExecutionRow>()),
            (AttemptRow::TABLE, every_column::<AttemptRow>()),
            (FailureRecord::TABLE, every_column::<FailureRecord>()),
            (TimerRow::TABLE, every_column::<TimerRow>()),
            (CommandRow::TABLE, every_column::<CommandRow>()),
            (SignalRow::TABLE, every_column::<SignalRow>()),
            (UpdateRow::TABLE, every_column::<UpdateRow>()),
            (LinkRow::TABLE, every_column::<LinkRow>()),
            (MessageRow::TABLE, every_column::<MessageRow>()),
            (HeartbeatRow::TABLE, every_column::<HeartbeatRow>()),
        ];
        for (slot, place) in COLUMNS {
            let named = match place.under.first() {
                Some(column) => std::slice::from_ref(column),
                None => place.keys,
            };
            let is_event = place.section == HistoryEvent::TABLE && named == ["payload"];
            let is_there = |name: &&str| {
                let mut of_table = hidden.iter().filter(|(table, _)| *table == place.section);
                of_table.any(|(_, names)| names.contains(name))
            };
            assert!(is_event || named.iter().all(is_there), "{slot:?}");
        }
    }

    /// An event that holds a value at this way below its payload.
    fn event(event_type: &str, way: &[&str], value: &str) -> HistoryEvent {
        let mut payload = json!({"command": {"type": "start"}});
        let mut place = &mut payload;
        for step in way {
            place = &mut place[*step];
        }
        *place = value.into();
        HistoryEvent {
            event_type: EventType::from(event_type),
            payload: Some(payload.to_string()),
            ..HistoryEvent::default()
        }
    }

    #[test]
    fn every_slot_is_hidden_in_some_row() {
        for about in TABLE {
            let in_events = about.copies.iter().any(|copies| copies.section == EVENTS);
            let in_a_column = COLUMNS.iter().any(|(slot, _)| *slot == about.slot);
            assert!(in_events || in_a_column, "{:?}", about.slot);
        }
    }

    #[test]
    fn what_ties_an_event_stays_and_its_slots_and_all_else_go() {
        let everything = policy("{category = '*'}");
        let says = |event: HistoryEvent| event.payload.unwrap_or_default();
        for event_type in EventType::KNOWN {
            for ties in TIES.iter().filter(|ties| ties.section == EVENTS) {
                for key in ties.keys {
                    let way = [&ties.under[1..], &[*key]].concat();
                    let told = event(event_type, &way, "tied");
                    assert!(
                        says(everything.told_event(told)).contains("tied"),
                        "{way:?}"
                    );
                    let shown = event(event_type, &way, "tied");
                    assert!(
                        !says(everything.shown_event(shown)).contains("tied"),
                        "{way:?}"
                    );
                }
            }
            let slots = TABLE.iter().flat_map(|about| about.copies);
            for copies in slots.filter(|copies| copies.section == EVENTS) {
                for key in copies.keys {
                    let way = [&copies.under[1..], &[*key]].concat();
                    let told = event(event_type, &way, "secret");
                    let told = says(everything.told_event(told));
                    assert!(!told.contains("secret"), "{way:?}: {told}");
                }
            }
            for way in [&["card"][..], &["activity", "note"], &["card", "id"]] {
                let told = says(everything.told_event(event(event_type, way, "secret")));
                assert!(!told.contains("secret"), "{way:?}: {told}");
            }
        }
    }

    #[test]
    fn a_task_is_still_found_by_what_it_is_for() {
        let everything = policy("{category = '*'}");
        let mut task = TaskRow::default();
        let payload = json!({"timer_id": "t", "workflow_wait_kind": null, "note": "secret"});
        task.column("payload").unwrap().set(payload);
        everything.hide_rows(std::slice::from_mut(&mut task));
        assert_eq!(
            task.payload.value(),
            Some(json!({"timer_id": "t", "workflow_wait_kind": null}))
        );
    }

    #[test]
    fn a_hidden_text_is_a_text_whatever_it_said() {
        let hash = "{category = 'failure_diagnostic', action = 'hash'}";
        for rules in ["{category = 'failure_diagnostic'}", hash] {
            let policy = policy(rules);
            for message in ["secret", "[hidden] secret", "{\"redacted\": true}"] {
                let told = event("WorkflowTerminated", &["message"], message);
                let told: Value =
                    serde_json::from_str(&policy.told_event(told).payload.unwrap()).unwrap();
                let mut row = FailureRecord {
                    message: message.into(),
                    ..FailureRecord::default()
                };
                policy.hide_rows(std::slice::from_mut(&mut row));
                assert!(row.message.starts_with("[hidden"), "{}", row.message);
                // The same text has the same mark wherever it stands.
                assert_eq!(told["message"], row.message, "{rules}");
            }
        }
    }

    #[test]
    fn nothing_is_where_nothing_was() {
        let everything = policy("{category = '*'}");
        let mut row = RunRow::default();
        everything.hide_rows(std::slice::from_mut(&mut row));
        assert_eq!(row, RunRow::default());
    }
}
