//! Who may write: a page of ours, or a script. Another site's page, which a browser would lend
//! the operator's network and identity to, may not.

use std::fmt;

use axum::http::{HeaderMap, header};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use ulid::Ulid;

use crate::{
    durable::export::seal::{hex, same},
    web::error::AppError,
};

/// Refuses what a browser sends on behalf of another site. A script sends neither header.
pub fn refuse_other_sites(headers: &HeaderMap) -> Result<(), AppError> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let ours = match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let host = text("host").unwrap_or("");
            let place = origin.split_once("://").map(|(_, place)| place);
            !host.is_empty() && place == Some(host)
        }
        (None, None) => true,
    };
    if ours {
        return Ok(());
    }
    Err(AppError::Forbidden {
        message: "This request comes from another site.".to_owned(),
        how: "Send it from Plimsoll's own pages, or from a script that sends no Origin.".to_owned(),
    })
}

/// Refuses what is not declared to be JSON: a form of another site cannot declare that without
/// the browser asking us first.
pub fn require_json(headers: &HeaderMap) -> Result<(), AppError> {
    let declared = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(str::trim);
    if declared.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(AppError::BadRequest {
        message: "Send Content-Type: application/json.".to_owned(),
    })
}

/// What our forms carry, so that no other site's page can have made one: a token for one purpose
/// that only this process can give, or only copies that share a secret.
#[derive(Clone)]
pub struct Forms(Hmac<Sha256>);

impl fmt::Debug for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forms").finish_non_exhaustive()
    }
}

impl Default for Forms {
    fn default() -> Self {
        let secret = [Ulid::generate(), Ulid::generate()].map(|id| id.to_bytes());
        Self(Hmac::new_from_slice(&secret.concat()).expect("a key of any length will do"))
    }
}

impl Forms {
    /// Those of every copy that has this secret.
    pub fn shared(secret: &str) -> Self {
        Self(Hmac::new_from_slice(secret.as_bytes()).expect("a key of any length will do"))
    }

    pub fn token(&self, purpose: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(purpose.as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    pub fn check(&self, purpose: &str, token: &str) -> Result<(), AppError> {
        if same(&self.token(purpose), token) {
            return Ok(());
        }
        Err(AppError::Forbidden {
            message:
                "This form is not from this copy of Plimsoll, or from before it was restarted."
                    .to_owned(),
            how: "Open the page again and repeat. Copies behind one address need the same --form-secret-file."
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn only_our_own_pages_and_scripts_may_write() {
        for (sent, allowed) in [
            (&[("host", "ops.example")][..], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (
                &[("host", "ops.example"), ("origin", "https://ops.example")],
                true,
            ),
            (
                &[("host", "ops.example"), ("origin", "https://evil.example")],
                false,
            ),
            (
                &[
                    ("host", "ops.example:7420"),
                    ("origin", "http://ops.example"),
                ],
                false,
            ),
            (&[("host", "ops.example"), ("origin", "null")], false),
            (&[("origin", "https://")], false),
            // What the browser says of itself comes first.
            (
                &[
                    ("host", "ops.example"),
                    ("origin", "https://ops.example"),
                    ("sec-fetch-site", "cross-site"),
                ],
                false,
            ),
        ] {
            assert_eq!(
                refuse_other_sites(&headers(sent)).is_ok(),
                allowed,
                "{sent:?}"
            );
        }
    }

    #[test]
    fn copies_that_share_a_secret_know_each_others_forms() {
        let (one, other) = (Forms::shared("of the fleet"), Forms::shared("of the fleet"));
        assert!(other.check("repair x", &one.token("repair x")).is_ok());
        assert!(other.check("repair y", &one.token("repair x")).is_err());
        let alone = Forms::default();
        for stranger in [&one, &Forms::shared("of another fleet"), &Forms::default()] {
            assert!(
                alone
                    .check("repair x", &stranger.token("repair x"))
                    .is_err()
            );
        }
    }

    #[test]
    fn a_form_is_not_json() {
        for (kind, allowed) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/json-seq", false),
        ] {
            let mut sent = HeaderMap::new();
            sent.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            assert_eq!(require_json(&sent).is_ok(), allowed, "{kind}");
        }
        assert!(require_json(&HeaderMap::new()).is_err());
    }
}
