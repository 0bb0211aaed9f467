//! Evidence: `done_when`, run by Tavern, outside the agent, at one commit.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::artifacts::Artifacts;
use super::environment;
use super::error::Error;
use super::sandbox;
use super::trust::Trust;
use super::workspace::Workspace;
use tavern_core::task::Task;
use tavern_git::CommitId;
use tavern_store::config::Role;
use tavern_sys::process::{CommandEnd, CommandResult, CommandSpec, Mark, run_command};

/// The result of running them.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    Passed,
    /// The first command that failed, in one line.
    Failed(String),
    /// An interrupt came before the last command had ended, so there is no evidence.
    CutShort,
}

/// The setting in which `done_when` runs: folder, commit, role and process mark.
#[derive(Clone, Debug)]
pub struct Bench<'a> {
    /// The role of the work, even if the item names another by now.
    pub role: &'a Role,
    pub folder: &'a Path,
    pub commit: Option<&'a CommitId>,
    /// Identifies the commands' processes, to end them if Tavern is killed meanwhile.
    pub mark: Mark,
}

/// Runs the task's `done_when`, one after another until one fails, and keeps the output in `artifact` of `run`.
/// Without commands there is no artifact.
pub fn run_done_when(
    workspace: &Workspace,
    task: &Task,
    bench: &Bench<'_>,
    run: &str,
    artifact: &str,
) -> Result<Evidence, Error> {
    if task.done_when.is_empty() {
        return Ok(Evidence::Passed);
    }
    let (evidence, text) = run_commands(
        workspace,
        task,
        bench,
        &sandbox::of_command(workspace, bench.role, bench.folder)?,
    )?;
    if bench.role.sandbox {
        // Remove nested repositories that the commands made; the agent's own were removed when its program ended.
        workspace.repository()?.remove_inner(bench.folder)?;
    }
    Artifacts::create(&workspace.board, run)?.write(artifact, &text)?;
    Ok(evidence)
}

/// Runs the commands in the sandbox of `wrapper`, if any. Returns the result and all output.
pub fn run_commands(
    workspace: &Workspace,
    task: &Task,
    bench: &Bench<'_>,
    wrapper: &[OsString],
) -> Result<(Evidence, String), Error> {
    Trust::of(workspace).item(task)?;
    let mut evidence = Evidence::Passed;
    let mut text = String::new();
    for command in &task.done_when {
        let result = run_one(workspace, task, command, bench, wrapper)?;
        text.push_str(&summary(command, &result, bench.commit));
        evidence = match result.end {
            CommandEnd::Interrupted => Evidence::CutShort,
            _ if result.is_success() => Evidence::Passed,
            end => {
                let lack =
                    environment::lack_of_commands(&workspace.config, &[command, &result.output]);
                Evidence::Failed(format!("`{command}` {end}{lack}"))
            }
        };
        if evidence != Evidence::Passed {
            break;
        }
    }
    if evidence == Evidence::CutShort {
        text.push_str("interrupted before the last command had ended\n");
    }
    Ok((evidence, text))
}

/// Runs one command in the environment of `done_when`.
pub fn run_one(
    workspace: &Workspace,
    task: &Task,
    command: &str,
    bench: &Bench<'_>,
    wrapper: &[OsString],
) -> Result<CommandResult, Error> {
    let spec = CommandSpec {
        timeout: workspace.config.verify.timeout.limit(),
        grace: workspace
            .config
            .grace
            .duration()
            .min(Duration::from_secs(10)),
        keep: usize::try_from(workspace.config.verify.output.bytes()).unwrap_or(usize::MAX),
        env: environment::of_commands(workspace, [("TAVERN_TASK", task.id.to_string())]),
        inherits: false,
        run: Some(bench.mark.clone()),
        wrapper: wrapper.to_owned(),
        ..CommandSpec::new(command, bench.folder)
    };
    run_command(&spec, &workspace.interrupt).map_err(Error::io("run commands in", bench.folder))
}

/// Returns one command's part of the artifact.
fn summary(command: &str, result: &CommandResult, commit: Option<&CommitId>) -> String {
    let CommandResult {
        end,
        duration,
        output,
        digest,
    } = result;
    let (seconds, commit) = (
        duration.as_secs_f64(),
        commit.map_or("no commit", CommitId::as_str),
    );
    let line_end = if output.is_empty() || output.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("$ {command}\n{end} in {seconds:.1} s at {commit}, output {digest}\n{output}{line_end}")
}
