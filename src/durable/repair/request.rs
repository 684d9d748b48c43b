//! Who asks for a repair, and how it is recorded.

use serde_json::{Value, json};
use ulid::Ulid;

use super::change::object;

/// The name under which our commands are recorded.
pub const SOURCE: &str = "plimsoll";

/// Whether the missing rows are written, or the engine is brought to write them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Direct,
    /// Two columns of the stored summary; the engine's next pass rebuilds the task.
    Nudge,
}

/// What the caller named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Instance,
    Run,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Run => "run",
        }
    }
}

/// One wish for a repair.
#[derive(Clone, Debug)]
pub struct Request {
    pub scope: Scope,
    pub mode: Mode,
    pub reason: Option<String>,
    pub caller: Caller,
}

/// Who asked, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    pub principal: Option<Principal>,
    pub request: Option<HttpRequest>,
}

#[derive(Clone, Debug)]
pub struct Principal {
    pub kind: String,
    pub id: String,
    pub label: Option<String>,
}

#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: String,
    pub path: String,
    pub request_id: Option<String>,
    pub correlation_id: Option<String>,
}

impl Caller {
    pub const LABEL: &'static str = "Plimsoll";

    /// Whether someone was asked who they are: not before there is access control.
    pub fn auth(&self) -> (&'static str, &'static str) {
        match self.principal {
            Some(_) => ("authorized", SOURCE),
            None => ("not_configured", "none"),
        }
    }

    /// The public part of the context: who it was.
    pub fn public_context(&self) -> Option<Value> {
        let principal = self.principal.as_ref()?;
        Some(json!({"principal": object([
            ("type", json!(principal.kind)),
            ("id", json!(principal.id)),
            ("label", json!(principal.label)),
        ])}))
    }

    /// `workflow_commands.context`.
    pub fn context(&self) -> Value {
        let (status, method) = self.auth();
        let mut context = json!({
            "caller": {"type": SOURCE, "label": Self::LABEL},
            "auth": {"status": status, "method": method},
        });
        if let Some(request) = &self.request {
            context["request"] = object([
                ("method", json!(request.method)),
                ("path", json!(request.path)),
                ("request_id", json!(request.request_id)),
                ("correlation_id", json!(request.correlation_id)),
            ]);
        }
        if let Some(principal) = self.public_context() {
            context["principal"] = principal["principal"].clone();
        }
        context
    }
}

/// Ids for the rows a repair may insert: minted outside, so that a plan is a function of what it
/// is given.
#[derive(Clone, Debug, Default)]
pub struct NewIds {
    pub task: String,
    pub command: String,
    pub event: String,
    /// Upper case, as the engine writes the ids of attempts.
    pub attempt: String,
}

impl NewIds {
    pub fn mint() -> Self {
        let id = || Ulid::generate().to_string();
        Self {
            task: id().to_lowercase(),
            command: id().to_lowercase(),
            event: id().to_lowercase(),
            attempt: id(),
        }
    }

    pub fn all(&self) -> [&str; 4] {
        [&self.task, &self.command, &self.event, &self.attempt]
    }
}
