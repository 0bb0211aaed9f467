//! Results of runs, reviewers' verdicts included. Knows how an agent's answer becomes a result, and nothing of the
//! effects on the item.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_yaml::Value;

use crate::runner::answer::final_block;
use crate::runner::signal::without_signal;
use crate::runner::{Outcome, SessionEnd, Signal};
use tavern_core::plan::Plan;
use tavern_core::task::{TaskId, Timestamp};
use tavern_core::yaml;
use tavern_git::CommitId;

/// How the agent's part of a run ended: with an answer that still has to be verified, or with a final result.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAnswer {
    /// It ended well: work is to be verified, a plan to be read.
    Done {
        /// For people.
        reason: String,
        /// Whether it did not state that it is done.
        is_silent: bool,
        /// The commit at which `done_when` has passed while its session was open.
        proven: Option<CommitId>,
    },
    /// Its judgment of work, which may have changed meanwhile.
    Verdict(Verdict),
    Result(RunResult),
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunResult {
    /// Work that passed verification at `commit`; `None` if it needs no repository.
    Passed {
        commit: Option<String>,
        reason: String,
        shown_by: ShownBy,
    },
    /// Work that waits for these children.
    Parked(Vec<TaskId>),
    /// Work in review was judged. The reason is the verdict in one line, or that the work has changed.
    Reviewed {
        verdict: Verdict,
        reason: String,
    },
    Planned {
        plan: Plan,
        reason: String,
    },
    /// A question to a person.
    Asks(String),
    /// `done_when` was run and did not pass.
    Refuted(String),
    /// The agent, its program, its work or its environment failed.
    Failed(RunFailure),
}

/// The proof that work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownBy {
    /// Its `done_when` has passed.
    Commands,
    /// No commands: the agent, a person, or a script that exits with 0 states it.
    Word,
    /// No commands, and the agent did not state it: a person has to check.
    Nothing,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFailure {
    pub outcome: Outcome,
    pub reason: String,
    /// The runner, if its provider failed or refused, and until when, if the provider reported that.
    pub runner: Option<String>,
    pub resets_at: Option<Timestamp>,
}

impl AgentAnswer {
    /// The agent states that it is done, without proof yet.
    pub fn done(reason: String) -> AgentAnswer {
        AgentAnswer::Done {
            reason,
            is_silent: false,
            proven: None,
        }
    }

    /// Derives the answer from the structure of the program's end, not from its words. Only a successful end may ask a
    /// question.
    pub fn of(ended: &SessionEnd, runner: &str) -> AgentAnswer {
        match (ended.outcome, &ended.signal) {
            (Outcome::Success, Signal::Waiting(question)) => {
                RunResult::Asks(question.clone()).into()
            }
            (Outcome::Success, signal) => {
                let is_silent = *signal == Signal::None;
                AgentAnswer::Done {
                    reason: ended.reason.clone(),
                    is_silent,
                    proven: None,
                }
            }
            (outcome, _) => RunResult::of(outcome, runner, &ended.reason, ended.resets_at).into(),
        }
    }

    pub fn outcome(&self) -> Outcome {
        match self {
            AgentAnswer::Done { .. } | AgentAnswer::Verdict(_) => Outcome::Success,
            AgentAnswer::Result(result) => result.outcome(),
        }
    }

    /// Formats it in one line, for people.
    pub fn reason(&self) -> String {
        match self {
            AgentAnswer::Done { reason, .. } => reason.clone(),
            AgentAnswer::Verdict(verdict) => verdict.line(),
            AgentAnswer::Result(result) => result.reason(),
        }
    }

    pub fn result(&self) -> Option<&RunResult> {
        match self {
            AgentAnswer::Result(result) => Some(result),
            AgentAnswer::Done { .. } | AgentAnswer::Verdict(_) => None,
        }
    }
}

impl From<RunResult> for AgentAnswer {
    fn from(result: RunResult) -> AgentAnswer {
        AgentAnswer::Result(result)
    }
}

impl RunResult {
    /// Returns the result of a run that did not succeed.
    pub fn of(
        outcome: Outcome,
        runner: &str,
        reason: &str,
        resets_at: Option<Timestamp>,
    ) -> RunResult {
        match outcome {
            Outcome::Waiting => RunResult::Asks(reason.to_owned()),
            Outcome::UsageLimit | Outcome::Overloaded | Outcome::Auth => {
                let (runner, reason) = (Some(runner.to_owned()), reason.to_owned());
                RunResult::Failed(RunFailure {
                    outcome,
                    reason,
                    runner,
                    resets_at,
                })
            }
            outcome => RunResult::failed_as(outcome, reason),
        }
    }

    /// Returns a failure of the agent or its work.
    pub fn failed(reason: impl Into<String>) -> RunResult {
        RunResult::failed_as(Outcome::Failed, reason)
    }

    pub fn failed_as(outcome: Outcome, reason: impl Into<String>) -> RunResult {
        RunResult::Failed(RunFailure {
            outcome,
            reason: reason.into(),
            runner: None,
            resets_at: None,
        })
    }

    pub fn outcome(&self) -> Outcome {
        match self {
            RunResult::Passed { .. }
            | RunResult::Parked(_)
            | RunResult::Reviewed { .. }
            | RunResult::Planned { .. } => Outcome::Success,
            RunResult::Asks(_) => Outcome::Waiting,
            RunResult::Refuted(_) => Outcome::Failed,
            RunResult::Failed(failure) => failure.outcome,
        }
    }

    /// Formats it in one line, for the item, the log and people.
    pub fn reason(&self) -> String {
        match self {
            RunResult::Parked(children) => {
                let names: Vec<&str> = children.iter().map(TaskId::as_str).collect();
                format!("waits for its children: {}", names.join(", "))
            }
            RunResult::Passed { reason, .. }
            | RunResult::Reviewed { reason, .. }
            | RunResult::Planned { reason, .. }
            | RunResult::Failed(RunFailure { reason, .. })
            | RunResult::Asks(reason)
            | RunResult::Refuted(reason) => reason.clone(),
        }
    }

    /// Returns the commit that passed.
    pub fn commit(&self) -> Option<&str> {
        match self {
            RunResult::Passed { commit, .. } => commit.as_deref(),
            _ => None,
        }
    }

    /// Returns when the provider's limit ends, if the provider reported that.
    pub fn resets_at(&self) -> Option<Timestamp> {
        match self {
            RunResult::Failed(failure) => failure.resets_at,
            _ => None,
        }
    }

    /// Returns the question to a person.
    pub fn question(&self) -> Option<&str> {
        match self {
            RunResult::Asks(question) => Some(question),
            _ => None,
        }
    }
}

/// A reviewer's verdict on one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub verdict: Ruling,
    /// One or two lines.
    #[serde(default)]
    pub summary: String,
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The commit that was reviewed. An agent's own entry is ignored.
    #[serde(default)]
    pub commit: Option<String>,
}

/// Approve or reject; there is no third choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    #[serde(alias = "approved", alias = "APPROVE", alias = "APPROVED")]
    Approve,
    #[serde(
        alias = "rejected",
        alias = "REJECT",
        alias = "REJECTED",
        alias = "request_changes"
    )]
    Reject,
}

/// A finding of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    #[serde(default)]
    pub severity: FindingSeverity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(alias = "message", alias = "description")]
    pub text: String,
}

/// The weight of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    Nit,
    Minor,
    #[default]
    Major,
    /// Must not be merged like this.
    #[serde(alias = "critical")]
    Blocker,
}

const FORM_OF_VERDICT: &str = "its verdict is not of the form: `verdict: approve` or `verdict: reject`, \
    `summary: …`, `findings: [{severity: nit, minor, major or blocker, file: …, line: …, text: …}]`";

impl Verdict {
    /// Parses the verdict in `answer`, which must name the `nonce` if there is one. Returns why there is none
    /// otherwise.
    pub fn read(answer: &str, nonce: Option<&str>) -> Result<Verdict, String> {
        let block = final_block(without_signal(answer), &["yaml", "json"], nonce)?;
        // JSON is YAML.
        yaml::read::<Value>(&block)
            .map_err(|error| format!("its verdict can't be read: {error}"))?;
        let verdict: Verdict = yaml::read(&block).map_err(|_| FORM_OF_VERDICT)?;
        match verdict.verdict {
            Ruling::Reject if verdict.words().trim().is_empty() => {
                Err("it rejects the work and does not say why".to_owned())
            }
            Ruling::Approve
                if verdict
                    .findings
                    .iter()
                    .any(|finding| finding.severity == FindingSeverity::Blocker) =>
            {
                Err("it approves the work despite a blocker".to_owned())
            }
            _ => Ok(verdict),
        }
    }

    /// Formats the summary and the findings, worst first, one per line.
    pub fn words(&self) -> String {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let summary = Some(self.summary.trim().to_owned()).filter(|summary| !summary.is_empty());
        let lines: Vec<String> = summary
            .into_iter()
            .chain(findings.into_iter().map(|one| format!("- {one}")))
            .collect();
        lines.join("\n")
    }

    /// Formats the ruling and the first line of its words.
    pub fn line(&self) -> String {
        let ruling = if self.verdict == Ruling::Approve {
            "approved"
        } else {
            "rejected"
        };
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

impl FindingSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            FindingSeverity::Nit => "nit",
            FindingSeverity::Minor => "minor",
            FindingSeverity::Major => "major",
            FindingSeverity::Blocker => "blocker",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_read_from_the_answer() {
        let answer = "It leaks.\n\n```yaml 5f1e\nverdict: reject\nsummary: It leaks.\nfindings:\n  - {severity: nit, text: spelling}\n  - severity: blocker\n    file: src/a.rs\n    line: 7\n    text: never closed\n```\nDONE";
        let verdict = Verdict::read(answer, Some("5f1e")).expect("it is one");
        assert_eq!(verdict.verdict, Ruling::Reject);
        assert_eq!(
            verdict.words(),
            "It leaks.\n- blocker src/a.rs:7: never closed\n- nit: spelling"
        );
    }

    #[test]
    fn what_is_no_verdict_says_why() {
        for (answer, why) in [
            ("Fine.\nDONE", "does not end with a ```yaml block"),
            (
                "```yaml 5f1e\nverdict: maybe\n```",
                "not of the form: `verdict: approve` or",
            ),
            ("```yaml 5f1e\nverdict: [approve\n```", "can't be read"),
            ("```yaml 5f1e\nverdict: reject\n```", "does not say why"),
            (
                "```yaml 5f1e\nverdict: approve\nfindings: [{severity: blocker, text: no}]\n```",
                "despite a blocker",
            ),
            ("```yaml 5f1e\n- a\n```", "not of the form"),
            (
                "```yaml\nverdict: approve\n```\nDONE",
                "does not begin with ```yaml 5f1e",
            ),
        ] {
            let error = Verdict::read(answer, Some("5f1e")).expect_err(answer);
            assert!(error.contains(why), "{answer}: {error}");
        }
    }
}
