//! The environment of what is started for items: of Tavern's own only what is let through, and what config.yaml sets.
//!
//! An agent, or what it has written, reads all that it is given. A variable that is not UTF-8 is let through to nobody.

use super::site::Site;
use crate::runner::{Runner, Shell};
use tavern_store::config::{Config, Pass, RunnerConfig};

/// Of commands that are run for items: `done_when`, `worktree.setup`, with `ours` over it. No agent program's key is in it.
pub fn of_commands<const N: usize>(
    site: &Site,
    ours: [(&str, String); N],
) -> Vec<(String, String)> {
    let ours = ours.map(|(name, value)| (name.to_owned(), value));
    own(|name| site.config.pass.lets(name))
        .chain([ceiling(site)])
        .chain(ours)
        .collect()
}

/// Of the agents of the runner `name`, which is `program`: `ours` goes over what is let through, and what config.yaml sets for
/// the runner over both.
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
    // An outer session's own: `*` means no more than what a user has set.
    let is_meant = |name: &str| !name.starts_with("CLAUDE") || pass.names_one(name);
    own(|name| pass.lets(name) && is_meant(name))
        .chain(ours)
        .chain(set)
        .collect()
}

/// git that is started in the folder of an item looks for its repository no further up than there: above is the user's own, which it
/// would take where the folder has none, or has none any more.
pub fn ceiling(site: &Site) -> (String, String) {
    const NAME: &str = "GIT_CEILING_DIRECTORIES";
    let folder = site.board.path("worktrees");
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

/// What `commands` lack that one of these texts names, in words that follow its failure: variables that are set here and not
/// let through.
pub fn lack_of_commands(config: &Config, texts: &[&str]) -> String {
    lack(|name| config.pass.lets(name), texts, "`pass`")
}

/// The same of agents of the runner `name`.
pub fn lack_of_agents(config: &Config, name: &str, program: &dyn Runner, texts: &[&str]) -> String {
    let pass = pass_of_agents(config, name, program);
    lack(
        |name| pass.lets(name),
        texts,
        &format!("`pass` of the runner `{name}`"),
    )
}

/// Variables that `command` needs, and that are set here and not let through to commands.
pub fn needs_of_command(config: &Config, command: &str) -> Vec<String> {
    needed(|name| config.pass.lets(name), command)
}

/// The same of an item's own `script`, which the shell runner `name` runs.
pub fn needs_of_script(config: &Config, name: &str, script: &str) -> Vec<String> {
    let pass = pass_of_agents(config, name, &Shell);
    needed(|name| pass.lets(name), script)
}

/// Which variables are let through to the agents of the runner `name`.
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

/// Names that are no words of a text by chance.
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

/// Names of variables that are set here and not let through, and for which this holds.
fn kept_back(lets: impl Fn(&str) -> bool, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let all = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = all
        .filter(|name| name.len() >= SHORTEST && !lets(name) && is_wanted(name))
        .collect();
    names.sort();
    names
}

/// Those of them that a script needs: few scripts of a long list expand any.
fn needed(lets: impl Fn(&str) -> bool, script: &str) -> Vec<String> {
    if script.contains('$') {
        kept_back(lets, |name| needs(script, name))
    } else {
        Vec::new()
    }
}

/// A script only ever expands this variable, without anything in its place. What is named otherwise too may be set there.
fn needs(script: &str, name: &str) -> bool {
    let is_expanded = |(before, after): (&str, &str)| {
        let has_default = after.trim_start_matches(':').starts_with(['-', '+', '=']);
        before.ends_with('$') || before.ends_with("${") && !has_default
    };
    places(script, name).next().is_some() && places(script, name).all(is_expanded)
}

/// What stands before and after the word `name`, wherever it is.
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
