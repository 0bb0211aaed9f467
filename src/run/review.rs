//! A review: a reviewer looks at exactly one commit, and its verdict is on disk before it counts.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::artifacts::Artifacts;
use super::error::Error;
use super::result::{AgentAnswer, RunResult};
use super::site::Site;
use crate::board::task::Task;
use crate::git::CommitId;
use crate::runner::answer::last_block;
use crate::store::Claimed;

/// The file in the run's folder that an agent may write its verdict to.
pub const WRITTEN: &str = "verdict.yaml";

/// The verdict as Tavern took it.
const TAKEN: &str = "verdict.json";

/// The commit that is to be looked at; `None` for a task that needs no repository.
///
/// # Errors
/// In words, why there is none.
pub fn commit(site: &Site, task: &Task) -> Result<Result<Option<CommitId>, String>, Error> {
    if !task.worktree {
        return Ok(Ok(None));
    }
    let Some(named) = &task.commit() else {
        return Ok(Err("it names no commit to look at: move it to the Pending lane".to_owned()));
    };
    let found = site.repository()?.commit_of(named)?;
    Ok(found.map(Some).ok_or_else(|| format!("its commit {named} is not in the repository")))
}

/// What a reviewer's run that says that it is done came to: its verdict, if it gave one on the commit that it was to look
/// at. `said` are its last words.
///
/// # Errors
/// The verdict can't be written down.
pub fn judge(
    site: &Site,
    folder: &Path,
    commit: Option<&CommitId>,
    artifacts: &Artifacts,
    said: &str,
) -> Result<AgentAnswer, Error> {
    if let Some(commit) = commit
        && site.tip_of(folder)? != *commit
    {
        let why = "it left the commit that it was to look at, so its verdict is void";
        return Ok(RunResult::failed(why).into());
    }
    let verdict = match Verdict::read(&artifacts.read(WRITTEN), said) {
        Ok(verdict) => Verdict { commit: commit.map(|commit| commit.as_str().to_owned()), ..verdict },
        Err(why) => return Ok(RunResult::failed(format!("it gave no verdict: {why}")).into()),
    };
    let mut text = serde_json::to_string_pretty(&verdict).expect("a verdict is plain data");
    text.push('\n');
    artifacts.write_durable(TAKEN, &text)?;
    Ok(AgentAnswer::Verdict(verdict))
}

/// The verdict that a run has left.
pub fn taken(artifacts: &Artifacts) -> Option<Verdict> {
    serde_json::from_str(&artifacts.read(TAKEN)).ok()
}

/// What is left of a verdict if the work has moved on meanwhile: then it is looked at anew, once it is verified.
///
/// # Errors
/// The repository can't be read.
pub fn confirm(site: &Site, held: &Claimed, mut verdict: Verdict) -> Result<RunResult, Error> {
    let mut reason = verdict.line();
    if let Some(moved) = moved(site, &held.task)? {
        verdict.verdict = Ruling::Reject;
        format!("{moved} {}", verdict.summary).trim().clone_into(&mut verdict.summary);
        reason = moved;
    }
    Ok(RunResult::Reviewed { verdict, reason })
}

/// In words, where the task's branch is by now, if not where it is in review.
///
/// # Errors
/// The repository can't be read.
pub fn moved(site: &Site, task: &Task) -> Result<Option<String>, Error> {
    let (true, Some(named)) = (task.worktree, &task.commit()) else { return Ok(None) };
    let branch = site.branch_of(task);
    let Some(tip) = site.repository()?.branch_tip(&branch)? else { return Ok(None) };
    let is_there = site.repository()?.commit_of(named)?.is_some_and(|commit| commit == tip);
    Ok((!is_there).then(|| format!("`{branch}` has moved on to {}, which nobody has verified.", tip.short())))
}

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
            last_block(answer, &["yaml", "json"]).ok_or("there is no ```yaml block with its verdict in its answer")?.text
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
