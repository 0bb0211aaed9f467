//! From a runner's name in config.yaml to the program that runs.

use std::path::PathBuf;

use super::error::Error;
use crate::config::{Config, Role, RunnerKind};
use crate::runner::{Claude, CommandRunner, Runner, Shell};

/// The runner called `name`, as agents of `role` use it.
pub fn runner(config: &Config, name: &str, role: &Role) -> Result<Box<dyn Runner>, Error> {
    let Some(entry) = config.runners.get(name) else {
        let preset = CommandRunner::preset(name).ok_or_else(|| Error::NoRunner(name.to_owned()))?;
        return Ok(Box::new(preset));
    };
    Ok(match entry.kind {
        RunnerKind::Shell => Box::new(Shell),
        RunnerKind::Command => Box::new(CommandRunner::new(name, entry.command.iter().cloned())),
        RunnerKind::Claude => Box::new(Claude {
            program: PathBuf::from(entry.program.as_deref().unwrap_or("claude")),
            permission_mode: role.permission_mode.clone(),
            allowed_tools: role.allowed_tools.clone(),
            extra_args: entry.args.clone(),
        }),
    })
}

/// What config.yaml sets in the environment of a runner's agents.
pub fn environment(config: &Config, name: &str) -> Vec<(String, String)> {
    let entry = config.runners.get(name);
    entry.map(|entry| entry.env.clone().into_iter().collect()).unwrap_or_default()
}
