//! The stylesheet, scripts and pictures, inside the binary. Each is served under a name that
//! carries a hash of its content, so a browser may keep it for ever and never sees an old one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::web::error::AppError;
use crate::web::state::BasePath;

#[derive(RustEmbed)]
#[folder = "static/"]
struct Files;

static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::load);

#[derive(Debug)]
pub struct Assets {
    /// `plimsoll.css` to `plimsoll-0a1b2c3d.css`.
    fingerprinted: HashMap<String, String>,
    /// By fingerprinted name.
    served: HashMap<String, Asset>,
}

#[derive(Clone, Debug)]
struct Asset {
    content_type: &'static str,
    body: Bytes,
}

impl Assets {
    /// The address of an asset by its name below `static/`.
    pub fn url(base: &BasePath, name: &str) -> String {
        let known = ASSETS.fingerprinted.get(name);
        // A misspelt name is a bug a test should find, but not a reason to lose the page.
        debug_assert!(known.is_some(), "no asset named {name}");
        base.path(&format!("/assets/{}", known.map_or(name, String::as_str)))
    }

    fn load() -> Self {
        let mut assets = Self {
            fingerprinted: HashMap::new(),
            served: HashMap::new(),
        };
        for name in Files::iter() {
            if let (Some(content_type), Some(file)) = (content_type(&name), Files::get(&name)) {
                let address = fingerprinted(&name, &file.metadata.sha256_hash());
                let body = body(file);
                assets
                    .served
                    .insert(address.clone(), Asset { content_type, body });
                assets.fingerprinted.insert(name.into_owned(), address);
            }
        }
        assets
    }
}

/// Only these are served; licences and notes beside them are not.
fn content_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

fn body(file: EmbeddedFile) -> Bytes {
    match file.data {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    }
}

fn fingerprinted(name: &str, hash: &[u8; 32]) -> String {
    let [a, b, c, d, ..] = hash;
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    format!("{stem}-{a:02x}{b:02x}{c:02x}{d:02x}.{extension}")
}

/// `{base}/assets/{*path}`
pub async fn show(Path(path): Path<String>) -> Result<Response, AppError> {
    let asset = ASSETS.served.get(&path).ok_or_else(|| AppError::NotFound {
        what: format!("asset {path}"),
        how: "Reload the page: it may have been served by another version.".to_owned(),
    })?;
    Ok(respond(asset, "public, max-age=31536000, immutable"))
}

/// `/favicon.ico`: asked for at the root by browsers that show JSON or a probe.
pub async fn favicon() -> Result<Response, AppError> {
    let asset = ASSETS
        .fingerprinted
        .get("favicon.svg")
        .and_then(|address| ASSETS.served.get(address))
        .ok_or_else(AppError::no_such_page)?;
    Ok(respond(asset, "public, max-age=86400"))
}

fn respond(asset: &Asset, cache: &'static str) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(asset.content_type),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static(cache)),
    ];
    (headers, asset.body.clone()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest as _, Sha384};

    #[test]
    fn an_address_changes_with_the_content() {
        assert_eq!(
            fingerprinted("vendor/htmx.min.js", &[0xab; 32]),
            "vendor/htmx.min-abababab.js"
        );
        assert_ne!(
            fingerprinted("plimsoll.css", &[1; 32]),
            fingerprinted("plimsoll.css", &[2; 32])
        );
    }

    #[test]
    fn vendored_files_are_what_their_list_says() {
        let list = Files::get("vendor/VENDORED.md").expect("the list of vendored files");
        let list = String::from_utf8(list.data.into_owned()).unwrap();
        let mut listed = Vec::new();
        for line in list.lines().filter(|line| line.starts_with("| ")).skip(2) {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [file, package, version, licence, sha384] = cells[..] else {
                panic!("not five cells: {line}");
            };
            assert!(!package.is_empty() && !version.is_empty());
            let content = Files::get(&format!("vendor/{file}")).expect(file).data;
            assert_eq!(
                STANDARD.encode(Sha384::digest(&content)),
                sha384,
                "{file} differs from {package} {version}"
            );
            let (_, licence) = licence
                .split_once('(')
                .expect("the licence file in brackets");
            let licence = licence.trim_end_matches(')');
            assert!(Files::get(&format!("vendor/{licence}")).is_some());
            listed.push(format!("vendor/{file}"));
        }
        let scripts = Files::iter().filter(|name| name.starts_with("vendor/"));
        for script in scripts.filter(|name| content_type(name).is_some()) {
            assert!(
                listed.contains(&script.to_string()),
                "{script} is not listed"
            );
        }
    }
}
