//! The environment of programs started for items: variables of Tavern's own that are let through, and those that
//! config.yaml sets.
//!
//! An agent, or code that it has written, can read all of it. A variable that is not UTF-8 is never let through.

use super::workspace::Workspace;
use crate::runner::{Runner, Shell};
use tavern_store::config::{Config, Pass, RunnerConfig};

/// Returns the environment of commands that are run for items (`done_when`, `worktree.setup`), overridden by `ours`. It
/// has no agent program's key.
pub fn of_commands<const N: usize>(
    workspace: &Workspace,
    ours: [(&str, String); N],
) -> Vec<(String, String)> {
    let ours = ours.map(|(name, value)| (name.to_owned(), value));
    own(|name| workspace.config.pass.lets(name))
        .chain([ceiling(workspace)])
        .chain(ours)
        .collect()
}

/// Returns the environment of agents of the runner `name`, which is `program`: variables let through, overridden by
/// `ours`, overridden by the runner's `env` of config.yaml.
pub fn of_agents(
    config: &Config,
    name: &str,
    program: &dyn Runner,
    ours: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let pass = pass_of_agents(config, name, program);
    let set = config
        .runners
        .get(name)
        .map(|entry| entry.env.clone())
        .unwrap_or_default();
    // An outer Claude session sets variables of its own, which `*` must not let through.
    let is_meant = |name: &str| !name.starts_with("CLAUDE") || pass.names_one(name);
    own(|name| pass.lets(name) && is_meant(name))
        .chain(ours)
        .chain(set)
        .collect()
}

/// Keeps git, started in an item's folder, from looking for a repository above. There it would find the user's own if
/// the folder has none, or no longer has one.
pub fn ceiling(workspace: &Workspace) -> (String, String) {
    const NAME: &str = "GIT_CEILING_DIRECTORIES";
    let folder = workspace.board.path("worktrees");
    let folder = folder
        .canonicalize()
        .unwrap_or(folder)
        .to_string_lossy()
        .into_owned();
    let own = std::env::var(NAME).ok().filter(|own| !own.is_empty());
    (
        NAME.to_owned(),
        [folder]
            .into_iter()
            .chain(own)
            .collect::<Vec<_>>()
            .join(":"),
    )
}

/// Names the variables that are set here, not let through to commands, and named in one of these texts. The text is
/// appended to a failure.
pub fn lack_of_commands(config: &Config, texts: &[&str]) -> String {
    lack(|name| config.pass.lets(name), texts, "`pass`")
}

/// Returns the same for agents of the runner `name`.
pub fn lack_of_agents(config: &Config, name: &str, program: &dyn Runner, texts: &[&str]) -> String {
    let pass = pass_of_agents(config, name, program);
    lack(
        |name| pass.lets(name),
        texts,
        &format!("`pass` of the runner `{name}`"),
    )
}

/// Returns the variables that `command` needs, and that are set here but not let through to commands.
pub fn needs_of_command(config: &Config, command: &str) -> Vec<String> {
    needed(|name| config.pass.lets(name), command)
}

/// Returns the same for an item's own `script`, which the shell runner `name` runs.
pub fn needs_of_script(config: &Config, name: &str, script: &str) -> Vec<String> {
    let pass = pass_of_agents(config, name, &Shell);
    needed(|name| pass.lets(name), script)
}

/// Returns which variables are let through to agents of the runner `name`.
pub fn pass_of_agents<'a>(config: &'a Config, name: &str, program: &dyn Runner) -> Pass {
    let of_entry = |entry: &'a RunnerConfig| {
        entry
            .pass
            .names()
            .chain(entry.env.keys().map(String::as_str))
    };
    let of_runner = config.runners.get(name).into_iter().flat_map(of_entry);
    config.pass.and(of_runner.chain(program.variables()))
}

fn own(lets: impl Fn(&str) -> bool) -> impl Iterator<Item = (String, String)> {
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(move |(name, _)| lets(name))
}

/// Shorter names may appear in a text by chance.
const SHORTEST: usize = 3;

fn lack(lets: impl Fn(&str) -> bool, texts: &[&str], place: &str) -> String {
    let is_named = |name: &str| texts.iter().any(|text| places(text, name).next().is_some());
    let names = kept_back(lets, is_named);
    if names.is_empty() {
        return String::new();
    }
    format!(
        " ({} not passed on: see {place} in .tavern/config.yaml)",
        names.join(", ")
    )
}

/// Returns the wanted variables that are set here and not let through.
fn kept_back(lets: impl Fn(&str) -> bool, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let all = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = all
        .filter(|name| name.len() >= SHORTEST && !lets(name) && is_wanted(name))
        .collect();
    names.sort();
    names
}

/// Returns those that a script needs; a script without `$` needs none.
fn needed(lets: impl Fn(&str) -> bool, script: &str) -> Vec<String> {
    if script.contains('$') {
        kept_back(lets, |name| needs(script, name))
    } else {
        Vec::new()
    }
}

/// Returns true if a script only expands this variable, without a default. Any other mention may set it.
fn needs(script: &str, name: &str) -> bool {
    let is_expanded = |(before, after): (&str, &str)| {
        let has_default = after.trim_start_matches(':').starts_with(['-', '+', '=']);
        before.ends_with('$') || before.ends_with("${") && !has_default
    };
    places(script, name).next().is_some() && places(script, name).all(is_expanded)
}

/// Returns the text before and after each occurrence of the word `name`.
fn places<'t>(text: &'t str, name: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let places = text
        .match_indices(name)
        .map(|(at, found)| (&text[..at], &text[at + found.len()..]));
    places.filter(move |(before, after)| !before.ends_with(is_part) && !after.starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_needs_is_told_from_what_it_names() {
        for script in [
            "echo $KEY",
            "curl \"x/${KEY}-1\"",
            "test -n \"$KEY\" && echo ${KEY%x}",
            "set -u; echo ${KEY:?}",
        ] {
            assert!(needs(script, "KEY"), "{script}");
        }
        for script in [
            "echo KEY $KEYS $MY_KEY",
            "KEY=1; echo $KEY",
            "for KEY in a; do echo $KEY; done",
            "${KEY:-a} ${KEY-}",
            "",
        ] {
            assert!(!needs(script, "KEY"), "{script}");
        }
    }
}
