//! How a run begins: options, the start command, the first two events, the first task.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value as Json, json};

use super::ids::digest;
use super::model::{Attribute, Command, Memo, Relation, Time};
use super::{IdMint, RunBuilder, blob, iso_offset, object, pascal};

/// What the caller asked for.
#[derive(Clone, Debug)]
pub struct Start {
    pub(super) kind: String,
    pub(super) class: String,
    pub(super) instance: String,
    pub(super) namespace: Option<String>,
    pub(super) business_key: Option<String>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) memo: Vec<(String, Json)>,
    pub(super) attributes: Vec<(String, &'static str, Json)>,
    pub(super) connection: Option<String>,
    pub(super) queue: String,
    pub(super) compatibility: Option<String>,
    pub(super) arguments: Json,
    pub(super) execution_timeout: Option<u32>,
    pub(super) run_timeout: Option<u32>,
    pub(super) signals: Vec<String>,
    pub(super) updates: Vec<String>,
    pub(super) source: &'static str,
    /// The row was written by an engine that kept no typed history.
    pub(super) without_history: bool,
}

impl Start {
    /// A start of `kind` under the caller's instance id, on the default queue.
    pub fn new(kind: &str, instance: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            class: format!(r"App\Workflows\{}Workflow", pascal(kind)),
            instance: instance.into(),
            namespace: None,
            business_key: None,
            labels: Vec::new(),
            memo: Vec::new(),
            attributes: Vec::new(),
            connection: None,
            queue: "default".to_owned(),
            compatibility: None,
            arguments: json!([]),
            execution_timeout: None,
            run_timeout: None,
            signals: Vec::new(),
            updates: Vec::new(),
            source: "php",
            without_history: false,
        }
    }

    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        class.clone_into(&mut self.class);
        self
    }

    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self.source = "control_plane";
        self
    }

    #[must_use]
    pub fn business_key(mut self, key: &str) -> Self {
        self.business_key = Some(key.to_owned());
        self
    }

    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn memo(mut self, key: &str, value: Json) -> Self {
        self.memo.push((key.to_owned(), value));
        self
    }

    #[must_use]
    pub fn attribute(mut self, key: &str, kind: &'static str, value: Json) -> Self {
        self.attributes.push((key.to_owned(), kind, value));
        self
    }

    #[must_use]
    pub fn queue(mut self, queue: &str) -> Self {
        queue.clone_into(&mut self.queue);
        self
    }

    #[must_use]
    pub fn connection(mut self, connection: &str) -> Self {
        self.connection = Some(connection.to_owned());
        self
    }

    #[must_use]
    pub fn compatibility(mut self, marker: &str) -> Self {
        self.compatibility = Some(marker.to_owned());
        self
    }

    #[must_use]
    pub fn args(mut self, arguments: Json) -> Self {
        self.arguments = arguments;
        self
    }

    #[must_use]
    pub fn execution_timeout(mut self, seconds: u32) -> Self {
        self.execution_timeout = Some(seconds);
        self
    }

    #[must_use]
    pub fn run_timeout(mut self, seconds: u32) -> Self {
        self.run_timeout = Some(seconds);
        self
    }

    #[must_use]
    pub fn signals(mut self, names: &[&str]) -> Self {
        self.signals = names.iter().map(ToString::to_string).collect();
        self
    }

    #[must_use]
    pub fn updates(mut self, names: &[&str]) -> Self {
        self.updates = names.iter().map(ToString::to_string).collect();
        self
    }

    /// Rows only: no start events, no first task.
    #[must_use]
    pub fn without_history(mut self) -> Self {
        self.without_history = true;
        self
    }

    pub fn at(self, at: DateTime<Utc>) -> RunBuilder {
        RunBuilder::begin_run(self, at, 1, Origin::Caller)
    }
}

/// Who started the run.
pub(super) enum Origin {
    Caller,
    Parent(Box<Relation>),
    Predecessor(Box<Relation>, Time),
}

impl RunBuilder {
    pub(super) fn begin_run(start: Start, at: Time, run_number: u32, origin: Origin) -> Self {
        let mut mint = IdMint::new(format!("{}/{run_number}", start.instance));
        let run_id = mint.row(at);
        let instance_started_at = match &origin {
            Origin::Predecessor(_, first) => *first,
            _ => at,
        };
        let deadline =
            |seconds: Option<u32>, from: Time| seconds.map(|s| from + TimeDelta::seconds(s.into()));
        let mut run = Self {
            mint,
            at,
            run_id,
            run_number,
            started_at: at,
            instance_started_at,
            last_progress_at: at,
            status: "pending",
            closed_reason: None,
            closed_at: None,
            output: None,
            execution_deadline_at: deadline(start.execution_timeout, instance_started_at),
            run_deadline_at: deadline(start.run_timeout, at),
            archived: None,
            message_sequence: 0,
            message_cursor: 0,
            step: 0,
            is_current: true,
            events: Vec::new(),
            tasks: Vec::new(),
            working: None,
            activities: Vec::new(),
            timers: Vec::new(),
            conditions: Vec::new(),
            signal_waits: Vec::new(),
            signals: Vec::new(),
            updates: Vec::new(),
            commands: Vec::new(),
            failures: Vec::new(),
            children: Vec::new(),
            relations: Vec::new(),
            attributes: Vec::new(),
            memos: Vec::new(),
            extra: Vec::new(),
            mark: None,
            start,
        };
        if run.start.without_history {
            run.status = "waiting";
        } else {
            run.write_start(&origin);
            run.push_task("workflow", json!([]), at);
        }
        match origin {
            Origin::Caller => {}
            Origin::Parent(relation) | Origin::Predecessor(relation, _) => {
                run.relations.push(*relation);
            }
        }
        run
    }

    fn write_start(&mut self, origin: &Origin) {
        let at = self.at;
        let (source, caller, context) = match origin {
            Origin::Caller if self.start.source == "control_plane" => (
                "control_plane",
                "Control plane",
                json!({"caller": {"type": "control_plane", "label": "Control plane"},
                       "auth": {"status": "authorized", "method": "token"}}),
            ),
            Origin::Caller => (
                "php",
                "PHP API",
                json!({"caller": {"type": "php", "label": "PHP API"},
                       "auth": {"status": "not_applicable", "method": "none"}}),
            ),
            Origin::Parent(parent) | Origin::Predecessor(parent, _) => {
                let mut workflow = json!({
                    "parent_instance_id": parent.instance,
                    "parent_run_id": parent.run,
                    "sequence": parent.sequence,
                });
                if let Some(call) = &parent.child_call_id {
                    workflow["child_call_id"] = json!(call);
                }
                (
                    "workflow",
                    "Workflow",
                    json!({"caller": {"type": "workflow", "label": "Workflow"},
                           "auth": {"status": "not_applicable", "method": "none"},
                           "workflow": workflow}),
                )
            }
        };
        let command = Command {
            id: self.mint.row(at),
            kind: "start",
            scope: "instance",
            source,
            context,
            caller,
            status: "accepted",
            outcome: Some("started_new"),
            rejection_reason: None,
            payload: Some(blob(&self.start.arguments)),
            target: None,
            sequence: 1,
            message_sequence: None,
            at,
            applied_at: Some(at),
        };
        let command_id = command.id.clone();
        self.commands.push(command);

        for (key, kind, value) in self.start.attributes.clone() {
            self.attributes.push(Attribute {
                key,
                kind,
                value,
                sequence: 0,
            });
        }
        for (key, value) in self.start.memo.clone() {
            self.memos.push(Memo {
                key,
                value,
                sequence: 0,
            });
        }

        let nothing_is_null = |json: Json| match &json {
            Json::Array(items) if items.is_empty() => Json::Null,
            _ => json,
        };
        let visible = [
            ("business_key", json!(self.start.business_key)),
            ("visibility_labels", nothing_is_null(self.labels_json())),
            (
                "memo",
                nothing_is_null(object(self.start.memo.iter().cloned())),
            ),
            (
                "search_attributes",
                nothing_is_null(object(
                    self.start
                        .attributes
                        .iter()
                        .map(|(key, _, value)| (key.clone(), value.clone())),
                )),
            ),
        ];
        let is_child = matches!(origin, Origin::Parent(_));
        let mut accepted = json!({
            "workflow_command_id": command_id,
            "workflow_instance_id": self.start.instance,
            "workflow_run_id": self.run_id,
            "workflow_class": self.start.class,
            "workflow_type": self.start.kind,
        });
        let mut started = json!({
            "workflow_class": self.start.class,
            "workflow_type": self.start.kind,
            "workflow_instance_id": self.start.instance,
            "workflow_run_id": self.run_id,
            "workflow_command_id": command_id,
        });
        // A child start carries none of the caller's visibility keys.
        if !is_child {
            for (key, value) in visible {
                accepted[key] = value.clone();
                started[key] = value;
            }
        }
        accepted["outcome"] = json!("started_new");
        self.event("StartAccepted", accepted, None, Some(0));

        if matches!(origin, Origin::Caller) {
            started["execution_timeout_seconds"] = json!(self.start.execution_timeout);
            started["run_timeout_seconds"] = json!(self.start.run_timeout);
            started["execution_deadline_at"] = json!(self.execution_deadline_at.map(iso_offset));
            started["run_deadline_at"] = json!(self.run_deadline_at.map(iso_offset));
        }
        started["workflow_definition_fingerprint"] =
            json!(format!("sha256:{}", digest(&self.start.class)));
        match origin {
            Origin::Caller => {}
            Origin::Parent(parent) => {
                started["parent_workflow_instance_id"] = json!(parent.instance);
                started["parent_workflow_run_id"] = json!(parent.run);
                started["parent_sequence"] = json!(parent.sequence);
                started["workflow_link_id"] = json!(parent.link_id);
                started["child_call_id"] = json!(parent.child_call_id);
            }
            Origin::Predecessor(previous, _) => {
                started["continued_from_run_id"] = json!(previous.run);
                started["workflow_link_id"] = json!(previous.link_id);
                started["child_call_id"] = Json::Null;
            }
        }
        started["declared_queries"] = json!(["status"]);
        started["declared_query_contracts"] = json!([{"name": "status", "parameters": []}]);
        started["declared_signals"] = json!(self.start.signals);
        started["declared_signal_contracts"] = json!([]);
        started["declared_updates"] = json!(self.start.updates);
        started["declared_update_contracts"] = json!([]);
        started["declared_entry_method"] = json!("handle");
        started["declared_entry_mode"] = json!("canonical");
        started["declared_entry_declaring_class"] = json!(self.start.class);
        self.event("WorkflowStarted", started, None, Some(0));
    }

    pub(super) fn labels_json(&self) -> Json {
        object(
            self.start
                .labels
                .iter()
                .map(|(key, value)| (key.clone(), json!(value))),
        )
    }
}
