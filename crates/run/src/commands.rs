//! The commands that a run of an item would start, for display. Starts nothing.

use std::collections::HashMap;

use super::error::Error;
use super::workspace::Workspace;
use tavern_core::eligible::{DEFAULT_ROLE, for_roles};
use tavern_core::task::Task;
use tavern_store::Queue;
use tavern_store::config::{Does, Role, RunnerKind};
use tavern_sys::process::argument;

/// Returns the commands of an agent of `role` for `task` with this `script`: the set-up of its worktree, its agent
/// program, its `done_when`. Roles other than work run the program alone.
pub fn commands(
    workspace: &Workspace,
    task: &Task,
    script: Option<&str>,
    role: &Role,
) -> Vec<String> {
    let program = program(workspace, &workspace.runner_of(task, role), script);
    let set_up = Some(&workspace.config.worktree.setup)
        .filter(|command| task.worktree && !command.is_empty());
    let [set_up, proof] = match role.does {
        Does::Work => [
            set_up.map(std::slice::from_ref).unwrap_or_default(),
            &task.done_when,
        ],
        Does::Review | Does::Plan | Does::Answer => [&[], &[][..]],
    };
    let all = set_up
        .iter()
        .cloned()
        .chain(program)
        .chain(proof.iter().cloned());
    all.map(|command| command.trim_end().to_owned()).collect()
}

/// Returns the same for all items of `queue`, by their lines, each for its own role.
pub fn commands_of(
    workspace: &Workspace,
    queue: &Queue,
) -> Result<HashMap<usize, Vec<String>>, Error> {
    let text = workspace.board.read(queue)?;
    let (document, _) = text.content.parse();
    let roles = workspace.config.known_roles();
    let of = |item| {
        let task = document.task_of(&for_roles(&document, item, &roles));
        let role = workspace
            .config
            .roles
            .get(task.role.as_deref().unwrap_or(DEFAULT_ROLE));
        role.map_or_else(Vec::new, |role| {
            commands(workspace, &task, document.shell(item).as_deref(), role)
        })
    };
    Ok(document
        .items()
        .iter()
        .map(|item| (item.line, of(item)))
        .collect())
}

fn program(workspace: &Workspace, runner: &str, script: Option<&str>) -> Option<String> {
    let line = |words: &[String]| words.iter().map(argument).collect::<Vec<_>>().join(" ");
    let entry = workspace.config.runners.get(runner)?;
    match entry.kind {
        RunnerKind::Shell => script.map(str::to_owned),
        RunnerKind::Command | RunnerKind::Acp => Some(line(&entry.command)),
        RunnerKind::Claude => {
            let program = entry.program.clone().unwrap_or_else(|| "claude".to_owned());
            Some(line(&[&[program], entry.args.as_slice()].concat()))
        }
    }
}
