//! The environment of what is started for items: of Tavern's own only what is let through, and what config.yaml sets.
//!
//! An agent, or what it has written, reads all that it is given. A variable that is not UTF-8 is let through to nobody.

use crate::config::{Config, Pass};
use crate::runner::Runner;

/// Of commands that are run for items: `done_when`, `worktree.setup`, with `ours` over it. No agent program's key is in it.
pub fn of_commands<const N: usize>(config: &Config, ours: [(&str, String); N]) -> Vec<(String, String)> {
    own(|name| config.pass.lets(name)).chain(ours.map(|(name, value)| (name.to_owned(), value))).collect()
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
    let set = config.runners.get(name).map(|entry| entry.env.clone()).unwrap_or_default();
    own(|name| pass.lets(name)).chain(ours).chain(set).collect()
}

/// What `commands` lack that one of these texts names, in words that follow its failure: variables that are set here and not
/// let through.
pub fn lack_of_commands(config: &Config, texts: &[&str]) -> String {
    lack(|name| config.pass.lets(name), texts, "`pass`")
}

/// The same of agents of the runner `name`.
pub fn lack_of_agents(config: &Config, name: &str, program: &dyn Runner, texts: &[&str]) -> String {
    let pass = pass_of_agents(config, name, program);
    lack(|name| pass.lets(name), texts, &format!("`pass` of the runner `{name}`"))
}

fn pass_of_agents(config: &Config, name: &str, program: &dyn Runner) -> Pass {
    let of_runner = config.runners.get(name).into_iter().flat_map(|entry| entry.pass.names());
    config.pass.and(of_runner.chain(program.variables()))
}

fn own(lets: impl Fn(&str) -> bool) -> impl Iterator<Item = (String, String)> {
    let all =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(move |(name, _)| lets(name))
}

/// Names that are no words of a text by chance.
const SHORTEST: usize = 3;

fn lack(lets: impl Fn(&str) -> bool, texts: &[&str], place: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    names.retain(|name| {
        let is_word = |text: &&str| text.split(|c| !is_part(c)).any(|word| word == name);
        name.len() >= SHORTEST && !lets(name) && texts.iter().any(is_word)
    });
    if names.is_empty() {
        return String::new();
    }
    names.sort();
    format!(" ({} not passed on: see {place} in .tavern/config.yaml)", names.join(", "))
}
