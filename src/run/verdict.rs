//! A reviewer's verdict, as it is written down. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::runner::answer::last_block;

/// What a reviewer says of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub verdict: Ruling,
    /// In a line or two.
    #[serde(default)]
    pub summary: String,
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The commit that was looked at; what an agent writes there does not count.
    #[serde(default)]
    pub commit: Option<String>,
}

/// Approve or reject: there is nothing between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    #[serde(alias = "approved", alias = "APPROVE", alias = "APPROVED")]
    Approve,
    #[serde(alias = "rejected", alias = "REJECT", alias = "REJECTED", alias = "request_changes")]
    Reject,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    #[serde(default)]
    pub severity: Severity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(alias = "message", alias = "description")]
    pub text: String,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Nit,
    Minor,
    #[default]
    Major,
    /// It must not be merged like this.
    #[serde(alias = "critical")]
    Blocker,
}

impl Verdict {
    /// The verdict that `written` (a file of its own) or the `answer` gives, or why it is none.
    pub fn read(written: &str, answer: &str) -> Result<Verdict, String> {
        let block = if written.trim().is_empty() {
            last_block(answer, &["yaml", "json"])
                .ok_or("there is no ```yaml block with its verdict in its answer")?
                .text
        } else {
            written.to_owned()
        };
        // JSON is YAML.
        let verdict: Verdict =
            serde_yaml::from_str(&block).map_err(|error| format!("its verdict can't be read: {error}"))?;
        match verdict.verdict {
            Ruling::Reject if verdict.words().trim().is_empty() => {
                Err("it rejects the work and does not say why".to_owned())
            }
            Ruling::Approve if verdict.findings.iter().any(|finding| finding.severity == Severity::Blocker) => {
                Err("it approves the work and finds a blocker in it".to_owned())
            }
            _ => Ok(verdict),
        }
    }

    /// The summary and the findings, the worst first, a line each.
    pub fn words(&self) -> String {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let summary = Some(self.summary.trim().to_owned()).filter(|summary| !summary.is_empty());
        let lines: Vec<String> =
            summary.into_iter().chain(findings.into_iter().map(|one| format!("- {one}"))).collect();
        lines.join("\n")
    }
}

impl Verdict {
    /// The ruling and the first of its words.
    pub fn line(&self) -> String {
        let ruling = if self.verdict == Ruling::Approve { "approved" } else { "rejected" };
        match self.words().lines().next() {
            Some(first) => format!("{ruling}: {first}"),
            None => ruling.to_owned(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.severity.as_str())?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " {file}:{line}")?,
            (Some(file), None) => write!(f, " {file}")?,
            (None, _) => {}
        }
        write!(f, ": {}", self.text.trim())
    }
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Nit => "nit",
            Severity::Minor => "minor",
            Severity::Major => "major",
            Severity::Blocker => "blocker",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_read_from_a_file_or_from_the_answer() {
        let answer = "It leaks.\n\n```yaml\nverdict: reject\nsummary: It leaks.\nfindings:\n  - {severity: nit, text: spelling}\n  - severity: blocker\n    file: src/a.rs\n    line: 7\n    text: never closed\n```\nDONE";
        let verdict = Verdict::read("", answer).expect("it is one");
        assert_eq!(verdict.verdict, Ruling::Reject);
        assert_eq!(verdict.words(), "It leaks.\n- blocker src/a.rs:7: never closed\n- nit: spelling");
        let file = Verdict::read("{\"verdict\": \"approve\"}", answer).expect("the file goes first");
        assert_eq!((file.verdict, file.words().as_str()), (Ruling::Approve, ""));
    }

    #[test]
    fn what_is_no_verdict_says_why() {
        for (answer, why) in [
            ("Fine.\nDONE", "no ```yaml block"),
            ("```yaml\nverdict: maybe\n```", "can't be read"),
            ("```yaml\nverdict: reject\n```", "does not say why"),
            ("```yaml\nverdict: approve\nfindings: [{severity: blocker, text: no}]\n```", "finds a blocker"),
            ("```yaml\n- a\n```", "can't be read"),
        ] {
            let error = Verdict::read("", answer).expect_err(answer);
            assert!(error.contains(why), "{answer}: {error}");
        }
    }
}
