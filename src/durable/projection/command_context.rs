//! Who sent a command, as far as a page may say: the request's address, agent and headers are
//! never read.

use serde::Serialize;

use crate::durable::stored::payloads::command::CommandContext;

/// The public part of a command's context; what is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PublicContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<ParentWorkflow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intake: Option<Intake>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
}

/// The workflow that sent it: a parent starting a child, or a run continued as new.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ParentWorkflow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_call_id: Option<String>,
}

/// Several commands that were taken in as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Intake {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Principal {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The labels beside the context, under the keys commands and the timeline share.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Caller {
    pub context: PublicContext,
    pub caller_label: Option<String>,
    pub principal_type: Option<String>,
    pub principal_id: Option<String>,
    pub principal_label: Option<String>,
    pub auth_status: Option<String>,
    pub auth_method: Option<String>,
    pub request_method: Option<String>,
    pub request_path: Option<String>,
    pub request_route_name: Option<String>,
    pub request_fingerprint: Option<String>,
}

impl Caller {
    /// Whoever asked, by label and id.
    pub fn principal(&self) -> Option<String> {
        match (&self.principal_label, &self.principal_id) {
            (Some(label), Some(id)) if label != id => Some(format!("{label} ({id})")),
            (Some(name), _) | (None, Some(name)) => Some(name.clone()),
            (None, None) => None,
        }
    }
}

pub fn public_context(context: &CommandContext) -> PublicContext {
    PublicContext {
        workflow: context.workflow.as_ref().and_then(|part| {
            non_empty(ParentWorkflow {
                parent_instance_id: part.parent_instance_id.0.clone(),
                parent_run_id: part.parent_run_id.0.clone(),
                sequence: part.sequence.strict(),
                child_call_id: part.child_call_id.0.clone(),
            })
        }),
        intake: context.intake.as_ref().and_then(|part| {
            non_empty(Intake {
                mode: part.mode.0.clone(),
                group_id: part.group_id.0.clone(),
            })
        }),
        principal: context.principal.as_ref().and_then(|part| {
            non_empty(Principal {
                kind: part.kind.0.clone(),
                id: part.id.0.clone(),
                label: part.label.0.clone(),
            })
        }),
    }
}

pub fn caller(context: &CommandContext) -> Caller {
    let public = public_context(context);
    let principal = public.principal.clone().unwrap_or_default();
    let auth = context.auth.as_deref().cloned().unwrap_or_default();
    let request = context.request.as_deref().cloned().unwrap_or_default();
    Caller {
        context: public,
        caller_label: context
            .caller
            .as_ref()
            .and_then(|caller| caller.label.0.clone()),
        principal_type: principal.kind,
        principal_id: principal.id,
        principal_label: principal.label,
        auth_status: auth.status.0,
        auth_method: auth.method.0,
        request_method: request.method.0,
        request_path: request.path.0,
        request_route_name: request.route_name.0,
        request_fingerprint: request.fingerprint.0,
    }
}

fn non_empty<T: Default + PartialEq>(part: T) -> Option<T> {
    (part != T::default()).then_some(part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::durable::stored::loose;

    #[test]
    fn of_a_request_only_what_names_it_is_shown() {
        let context: CommandContext = loose::read_value(&json!({
            "caller": {"type": "waterline", "label": "Waterline UI"},
            "auth": {"status": "authorized", "method": "waterline"},
            "request": {"method": "POST", "path": "/signal", "ip": "10.9.8.7",
                "user_agent": "curl", "headers": {"cookie": "secret"}, "fingerprint": "sha256:a"},
            "principal": {"type": "user", "id": "7"},
            "workflow": {},
            "intake": [],
            "server": {"namespace": "default"},
        }));
        let shown = json!(caller(&context));
        assert_eq!(
            shown["context"],
            json!({"principal": {"type": "user", "id": "7"}})
        );
        assert_eq!(shown["caller_label"], "Waterline UI");
        assert_eq!(shown["request_path"], "/signal");
        for hidden in ["10.9.8.7", "curl", "secret"] {
            assert!(!shown.to_string().contains(hidden), "{hidden}");
        }
    }
}
