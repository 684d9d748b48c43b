//! Who is answered: whoever asks under a name that is ours. And who may write: a page of ours, or a
//! script. Another site's page, which a browser would lend the operator's network and identity to,
//! may neither read nor write.

use std::{fmt, net::IpAddr};

use axum::http::{HeaderMap, Method, header, uri::Authority};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::web::error::AppError;

/// The names this copy is reached by, beside localhost and plain addresses.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    pub fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Whether a request was meant for us. A page of another site can have its own name lead to
    /// us, and is then of our origin to the browser; it cannot do so with a name that is ours.
    fn know(&self, host: &str) -> bool {
        let Ok(place) = host.parse::<Authority>() else {
            return false;
        };
        let name = place.host().trim_end_matches('.').to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok()
            || name == "localhost"
            || name.ends_with(".localhost")
            || self.0.contains(&name)
    }
}

/// Refuses what is sent to a name that is not ours, and what a browser sends on behalf of another
/// site if it may write. A script sends neither Origin nor Sec-Fetch-Site.
pub fn refuse_strangers(
    hosts: &Hosts,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), AppError> {
    if let Some(host) = headers.get(header::HOST) {
        let host = host.to_str().unwrap_or("");
        // A name without a dot is given inside a network, to a container for example: no site
        // of somebody else has one.
        let inside = method.is_safe() && host.parse::<Authority>().is_ok() && !host.contains('.');
        if !hosts.know(host) && !inside {
            return Err(AppError::Forbidden {
                message: format!(
                    "Plimsoll does not answer to the name {host:?}. If it is one of this copy's, start it with --public-host and that name."
                ),
                how: "Meanwhile, reach it by its address or as localhost.".to_owned(),
            });
        }
    }
    if method.is_safe() {
        return Ok(());
    }
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
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the system gives random bytes");
        Self(Hmac::new_from_slice(&secret).expect("a key of any length will do"))
    }
}

impl Forms {
    /// Those of every copy that has this secret.
    pub fn shared(secret: &str) -> Self {
        Self(Hmac::new_from_slice(secret.as_bytes()).expect("a key of any length will do"))
    }

    fn seal(&self, purpose: &str) -> Hmac<Sha256> {
        let mut seal = self.0.clone();
        seal.update(purpose.as_bytes());
        seal
    }

    pub fn token(&self, purpose: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.seal(purpose).finalize().into_bytes())
    }

    pub fn check(&self, purpose: &str, token: &str) -> Result<(), AppError> {
        let sent = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
        if self.seal(purpose).verify_slice(&sent).is_ok() {
            return Ok(());
        }
        Err(AppError::Forbidden {
            message: "This form has expired: Plimsoll was restarted, or another copy made it."
                .to_owned(),
            how: "Reload the page and send it again. Copies behind one address need the same --form-secret-file."
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
    fn nothing_is_read_or_written_under_a_strange_name() {
        let hosts = Hosts::new(vec!["ops.example".to_owned()]);
        for (host, ours) in [
            ("127.0.0.1", true),
            ("127.0.0.1:7420", true),
            ("192.168.4.2:7420", true),
            ("[::1]:7420", true),
            ("[::1]", true),
            ("localhost:7420", true),
            ("LOCALHOST", true),
            ("plimsoll.localhost:80", true),
            ("ops.example", true),
            ("Ops.Example.:8443", true),
            ("evil.example:7420", false),
            ("ops.example.evil.example", false),
            ("notlocalhost", false),
            ("127.0.0.1.evil.example", false),
            ("localhost@evil.example", false),
            ("", false),
            (" ", false),
        ] {
            let origin = format!("http://{host}");
            let mut sent = HeaderMap::new();
            sent.insert("host", HeaderValue::from_static(host));
            let inside = host == "notlocalhost";
            for (method, ours) in [(Method::GET, ours || inside), (Method::POST, ours)] {
                let answered = refuse_strangers(&hosts, &method, &sent).is_ok();
                assert_eq!(answered, ours, "{method} {host:?}");
            }
            // A name that leads here makes its pages ours to the browser.
            sent.insert("origin", HeaderValue::from_str(&origin).unwrap());
            sent.insert("sec-fetch-site", HeaderValue::from_static("same-origin"));
            for (method, ours) in [(Method::GET, ours || inside), (Method::POST, ours)] {
                let answered = refuse_strangers(&hosts, &method, &sent).is_ok();
                assert_eq!(answered, ours, "{method} {host:?}");
            }
        }
    }

    #[test]
    fn only_our_own_pages_and_scripts_may_write() {
        let hosts = Hosts::new(vec!["ops.example".to_owned()]);
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
            let sent = headers(sent);
            let may = |method| refuse_strangers(&hosts, &method, &sent).is_ok();
            assert_eq!(may(Method::POST), allowed, "{sent:?}");
            assert!(may(Method::GET), "a link from elsewhere: {sent:?}");
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
