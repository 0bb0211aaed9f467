//! Evidence: `done_when`, run by us, outside the agent, at one commit.

use std::path::Path;
use std::time::Duration;

use super::artifacts::Artifacts;
use super::error::Error;
use super::sandbox;
use super::site::Site;
use crate::board::eligible::DEFAULT_ROLE;
use crate::board::task::Task;
use crate::git::CommitId;
use crate::process::{CommandResult, CommandSpec, Mark, run_command};

/// One command's part of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    pub command: String,
    /// In words that follow it: `exited with code 1`, `was ended by signal 9`, `timed out after 600 s`.
    pub how: String,
    pub passed: bool,
    pub seconds: f64,
    pub commit: Option<String>,
    /// Digest of the whole output (XXH3, 128 bits, hexadecimal).
    pub digest: String,
    /// Its beginning and its end, as much as config.yaml's `verify.output` keeps.
    pub output: String,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    pub proofs: Vec<Proof>,
    /// An interrupt came before the last command had ended: it says nothing then.
    pub is_cut_short: bool,
}

impl Evidence {
    pub fn passed(&self) -> bool {
        !self.is_cut_short && self.proofs.iter().all(|proof| proof.passed)
    }

    /// The first command that failed, in one line.
    pub fn failure(&self) -> Option<String> {
        self.proofs.iter().find(|proof| !proof.passed).map(|proof| format!("`{}` {}", proof.command, proof.how))
    }

    /// `verify.txt`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for proof in &self.proofs {
            let commit = proof.commit.as_deref().unwrap_or("no commit");
            text.push_str(&format!(
                "$ {}\n{} in {:.1} s at {commit}, output {}\n{}",
                proof.command, proof.how, proof.seconds, proof.digest, proof.output
            ));
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        if self.is_cut_short {
            text.push_str("interrupted before the last command had ended\n");
        }
        text
    }
}

/// Where, at which commit and as whose processes `done_when` is run.
#[derive(Clone, Debug)]
pub struct Bench<'a> {
    pub folder: &'a Path,
    pub commit: Option<&'a CommitId>,
    /// By it the commands are found and ended if we are killed meanwhile.
    pub mark: Mark,
}

/// Runs the task's `done_when`, one after another until one fails, and keeps what they did in `artifact`; where there is
/// nothing to run, there is none.
pub fn run_done_when(
    site: &Site,
    task: &Task,
    bench: Bench<'_>,
    artifacts: &Artifacts,
    artifact: &str,
) -> Result<Evidence, Error> {
    let Bench { folder, commit, mark } = bench;
    let mut evidence = Evidence::default();
    let role = site.config.roles.get(task.role.as_deref().unwrap_or(DEFAULT_ROLE));
    let wrapper = sandbox::of_command(site, role, folder)?;
    for command in &task.done_when {
        let spec = CommandSpec {
            timeout: site.config.verify.timeout.limit(),
            grace: site.config.grace.duration().min(Duration::from_secs(10)),
            keep: usize::try_from(site.config.verify.output.bytes()).unwrap_or(usize::MAX),
            env: vec![("TAVERN_TASK".into(), task.id.to_string())],
            run: Some(mark.clone()),
            wrapper: wrapper.clone(),
            ..CommandSpec::new(command, folder)
        };
        let result = run_command(&spec, &site.interrupt).map_err(|source| Error::Io {
            action: "run commands in",
            path: folder.to_owned(),
            source,
        })?;
        evidence.is_cut_short = result.is_interrupted;
        let passed = result.is_success();
        evidence.proofs.push(proof(command, result, spec.timeout, commit));
        if !passed {
            break;
        }
    }
    if !task.done_when.is_empty() {
        artifacts.write_derived(artifact, &evidence.to_text())?;
    }
    Ok(evidence)
}

fn proof(command: &str, result: CommandResult, limit: Duration, commit: Option<&CommitId>) -> Proof {
    Proof {
        command: command.to_owned(),
        how: how(&result, limit),
        passed: result.is_success(),
        seconds: result.duration.as_secs_f64(),
        commit: commit.map(|commit| commit.as_str().to_owned()),
        digest: result.digest,
        output: result.output,
    }
}

/// How a command ended, in words that follow its name.
pub fn how(result: &CommandResult, limit: Duration) -> String {
    if result.has_timed_out {
        format!("timed out after {} s", limit.as_secs())
    } else if result.is_interrupted {
        "was interrupted".to_owned()
    } else {
        result.exit.to_string()
    }
}
