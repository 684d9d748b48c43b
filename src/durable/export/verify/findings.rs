//! What a verification says, in the engine's own shape.

use std::collections::BTreeMap;

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    pub severity: Severity,
    pub message: String,
    /// Where in the document.
    pub path: Option<String>,
    /// The byte of the file, where the file cannot be read on.
    pub byte: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BundleFacts {
    pub schema: Option<String>,
    pub schema_version: Option<i64>,
    pub exported_at: Option<String>,
    pub dedupe_key: Option<String>,
    pub workflow_run_id: Option<String>,
    pub workflow_instance_id: Option<String>,
    pub history_event_count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IntegrityFacts {
    pub present: bool,
    pub canonicalization: Option<String>,
    pub checksum_algorithm: Option<String>,
    pub expected_checksum: Option<String>,
    pub recomputed_checksum: Option<String>,
    pub checksum_matches: Option<bool>,
    pub signature_algorithm: Option<String>,
    pub signature_present: bool,
    pub signature_verified: Option<bool>,
    pub key_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub errors: usize,
    pub warnings: usize,
    pub info: usize,
    pub findings_by_rule: BTreeMap<&'static str, usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub schema_version: u32,
    /// `ok`, `warning`, `failed`.
    pub status: &'static str,
    pub bundle: BundleFacts,
    pub integrity: IntegrityFacts,
    pub summary: Summary,
    pub findings: Vec<Finding>,
}

/// The one word for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Sealed and intact; the signature, if any, fits the key or was not checked.
    Intact,
    /// Changed since it was sealed, not sealed, or signed with another key.
    Altered,
    NotABundle,
}

/// What a page says of a bundle: who vouches for it, if anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Signed with the key we have.
    Signed,
    /// As it was sealed; whoever changed it could have sealed it again.
    Unsigned,
    /// As it was sealed; signed with a key we do not have.
    UnknownKey,
    Altered,
    NotABundle,
}

/// Most findings of one rule that are listed; all are counted.
const LISTED: usize = 20;

impl Default for Report {
    fn default() -> Self {
        Self {
            schema: "durable-workflow.v2.history-bundle-verification",
            schema_version: 1,
            status: "ok",
            bundle: BundleFacts::default(),
            integrity: IntegrityFacts::default(),
            summary: Summary::default(),
            findings: Vec::new(),
        }
    }
}

impl Report {
    pub fn error(&mut self, rule: &'static str, message: &str, path: &str) {
        self.found(
            rule,
            Severity::Error,
            message.to_owned(),
            Some(path.to_owned()),
            None,
        );
    }

    pub fn warning(&mut self, rule: &'static str, message: &str, path: &str) {
        self.found(
            rule,
            Severity::Warning,
            message.to_owned(),
            Some(path.to_owned()),
            None,
        );
    }

    pub fn info(&mut self, rule: &'static str, message: &str, path: &str) {
        self.found(
            rule,
            Severity::Info,
            message.to_owned(),
            Some(path.to_owned()),
            None,
        );
    }

    pub fn unreadable(&mut self, message: String, byte: Option<u64>) {
        self.found("bundle.unparseable", Severity::Error, message, None, byte);
    }

    fn found(
        &mut self,
        rule: &'static str,
        severity: Severity,
        message: String,
        path: Option<String>,
        byte: Option<u64>,
    ) {
        let count = self.summary.findings_by_rule.entry(rule).or_default();
        *count += 1;
        match severity {
            Severity::Error => self.summary.errors += 1,
            Severity::Warning => self.summary.warnings += 1,
            Severity::Info => self.summary.info += 1,
        }
        if *count <= LISTED {
            self.findings.push(Finding {
                rule,
                severity,
                message,
                path,
                byte,
            });
        }
    }

    pub fn settle(&mut self) {
        self.status = match (self.summary.errors, self.summary.warnings) {
            (0, 0) => "ok",
            (0, _) => "warning",
            _ => "failed",
        };
    }

    pub fn seal(&self) -> Seal {
        // With a key at hand, a missing or foreign signature counts as an error; of the bundle
        // itself it says nothing.
        let of_key = [
            "integrity.signature_missing",
            "integrity.signature_key_unavailable",
        ];
        let only_of_key = self
            .broken_seal()
            .all(|finding| of_key.contains(&finding.rule));
        let unnamed = self.integrity.signature_algorithm.is_none();
        match self.verdict() {
            Verdict::NotABundle => Seal::NotABundle,
            Verdict::Altered if !only_of_key => Seal::Altered,
            _ if self.integrity.signature_verified == Some(true) => Seal::Signed,
            _ if self.integrity.signature_present => Seal::UnknownKey,
            // A seal that names a signature and carries none has lost it.
            _ if unnamed => Seal::Unsigned,
            _ => Seal::Altered,
        }
    }

    /// The seal alone decides: what else is wrong was wrong when it was sealed, unless the file
    /// is none of ours to begin with.
    pub fn verdict(&self) -> Verdict {
        // A section that is gone leaves it a bundle.
        let not_ours = |finding: &Finding| {
            finding.severity == Severity::Error
                && finding.rule.starts_with("bundle.")
                && !finding.rule.starts_with("bundle.section_")
        };
        if self.findings.iter().any(not_ours) {
            Verdict::NotABundle
        } else if self.broken_seal().next().is_some() {
            Verdict::Altered
        } else {
            Verdict::Intact
        }
    }

    fn broken_seal(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| {
            finding.severity == Severity::Error && finding.rule.starts_with("integrity.")
        })
    }

    /// The findings, those that decide the verdict first.
    pub fn decisive_first(&self) -> Vec<&Finding> {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| {
            let part = finding.rule.split('.').next();
            let decides = matches!(part, Some("bundle" | "integrity"));
            std::cmp::Reverse((finding.severity, decides))
        });
        findings
    }
}
