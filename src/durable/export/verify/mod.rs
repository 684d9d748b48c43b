//! Is this file a bundle, is it what was sealed, and does it make sense?
//!
//! The file is read in pieces, so that its length does not matter.

mod findings;
mod parts;
mod rules;

use std::io::{Read, Seek};

use serde_json::Value;

use super::{
    SigningKey,
    seal::{self, Sealer, same},
    source::{ReadError, Source, find},
};
pub use findings::{BundleFacts, Finding, IntegrityFacts, Report, Seal, Severity, Verdict};

/// Reads the whole file and reports. `progress` hears how many bytes were looked at.
pub fn verify(
    file: impl Read + Seek,
    key: Option<&SigningKey>,
    progress: &mut dyn FnMut(u64),
) -> Report {
    let mut report = Report::default();
    let outcome = Source::new(file)
        .map_err(ReadError::from)
        .and_then(|mut source| check(&mut source, key, &mut report, progress));
    if let Err(error) = outcome {
        let at = match error {
            ReadError::Json { at, .. } => Some(at),
            ReadError::Io(_) => None,
        };
        report.unreadable(error.to_string(), at);
    }
    report.settle();
    report
}

fn check<R: Read + Seek>(
    source: &mut Source<R>,
    key: Option<&SigningKey>,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ReadError> {
    let document = source.document()?;
    if source.first(document)? != Some(b'{') {
        report.unreadable("the document is no object".into(), None);
        return Ok(());
    }
    let members = source.members(document)?;
    rules::schema(source, &members, report)?;
    if report.verdict() == Verdict::NotABundle {
        return Ok(());
    }
    // Before the other rules: they read what is well formed and has no key twice.
    let mut rest = members.clone();
    rest.retain(|(name, _)| name != seal::MEMBER);
    if members.len() - rest.len() > 1 {
        return Err(ReadError::Json {
            at: find(&members, seal::MEMBER).map_or(0, |span| span.from),
            reason: "a key stands twice in a map",
        });
    }
    let mut sealer = Sealer::new(key);
    let mut done = 0;
    source.canonical_map(rest, 0, &mut |piece| {
        sealer.update(piece);
        done += piece.len() as u64;
        progress(done);
    })?;
    let sealed = sealer.finish();
    rules::rules(source, &members, report)?;
    let integrity = match find(&members, seal::MEMBER) {
        Some(span) => {
            source.canonical(span, 1, &mut |_| ())?;
            parts::scalar(source, span)?
        }
        None => Value::Null,
    };
    if !integrity.is_object() {
        report.error("integrity.missing", "the bundle has no seal", "integrity");
        return Ok(());
    }
    // The seal does not cover itself: nothing else may hide in it.
    for (name, _) in integrity.as_object().into_iter().flatten() {
        if !seal::MEMBERS.contains(&name.as_str()) {
            let path = format!("integrity.{name}");
            report.error("integrity.member_unexpected", "not part of a seal", &path);
        }
    }
    let text = |key: &str| {
        integrity[key]
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let facts = &mut report.integrity;
    facts.present = true;
    facts.canonicalization = text("canonicalization");
    facts.checksum_algorithm = text("checksum_algorithm");
    facts.expected_checksum = text("checksum");
    facts.signature_algorithm = text("signature_algorithm");
    facts.signature_present = text("signature").is_some();
    facts.key_id = text("key_id");
    if facts.canonicalization.as_deref() != Some(seal::CANONICALIZATION) {
        report.error(
            "integrity.canonicalization_unsupported",
            "sealed over a canonical form this version does not know",
            "integrity.canonicalization",
        );
        return Ok(());
    }
    if report.integrity.checksum_algorithm.as_deref() != Some(seal::CHECKSUM) {
        report.error(
            "integrity.checksum_algorithm_unsupported",
            "sealed with a checksum this version does not know",
            "integrity.checksum_algorithm",
        );
        return Ok(());
    }
    let matches = report
        .integrity
        .expected_checksum
        .as_deref()
        .map(|expected| same(expected, &sealed.checksum));
    report.integrity.recomputed_checksum = Some(sealed.checksum);
    report.integrity.checksum_matches = matches;
    match matches {
        None => report.error(
            "integrity.checksum_missing",
            "the seal carries no checksum",
            "integrity.checksum",
        ),
        Some(false) => report.error(
            "integrity.checksum_mismatch",
            "the document is not the one that was sealed: something in it was changed. A bundle \
             written by PHP may also have lost the `.0` of a whole float on its way",
            "integrity.checksum",
        ),
        Some(true) => {}
    }
    signature(&integrity, key, sealed.signature.as_deref(), report);
    Ok(())
}

fn signature(
    integrity: &Value,
    key: Option<&SigningKey>,
    computed: Option<&str>,
    report: &mut Report,
) {
    let place = "integrity.signature";
    let (algorithm, stored) = (&integrity["signature_algorithm"], &integrity["signature"]);
    match (algorithm.as_str(), stored.as_str()) {
        // Whoever can change a bundle can also take its signature away.
        (None, None) if algorithm.is_null() && stored.is_null() => {
            if !integrity["key_id"].is_null() {
                report.error(
                    "integrity.key_id_unexpected",
                    "the name of a key, and no signature made with it",
                    "integrity.key_id",
                );
            }
            if key.is_some() {
                report.error(
                    "integrity.signature_missing",
                    "a key was given and the bundle is not signed",
                    place,
                );
            }
        }
        (Some(seal::SIGNATURE), Some(stored)) => match (key, computed) {
            (Some(key), _)
                if key.id.is_some() && key.id.as_deref() != integrity["key_id"].as_str() =>
            {
                report.error(
                    "integrity.signature_key_unavailable",
                    "signed with a key of another name than the one given",
                    "integrity.key_id",
                );
            }
            (Some(_), Some(computed)) => {
                let fits = same(stored, computed);
                report.integrity.signature_verified = Some(fits);
                if !fits {
                    report.error(
                        "integrity.signature_mismatch",
                        "the signature does not fit: another key, or the bundle was changed",
                        place,
                    );
                }
            }
            _ => report.warning(
                "integrity.signature_key_unavailable",
                "signed, and no key was given to check it with",
                place,
            ),
        },
        (Some(seal::SIGNATURE), None) => report.error(
            "integrity.signature_missing",
            "the seal names a signature and carries none",
            place,
        ),
        _ => report.error(
            "integrity.signature_algorithm_unsupported",
            "signed in a way this version does not know",
            "integrity.signature_algorithm",
        ),
    }
}
