//! Checks tool calls against the rules of the board. Pure.

use std::path::Path;

use serde_json::Value;

use super::reading::may_change;
use tavern_core::rule::{Act, BoardRules, Breach, of_act, of_command, of_paths};
use tavern_sys::files::plain_path;

/// Tools that can break a rule, as a matcher of the Claude CLI.
pub(super) const TOOLS: &str = "Bash|Edit|MultiEdit|Write|NotebookEdit";

/// Returns the rules that a call breaks, of an agent that works in `worktree`; `scratch` is its folder for temporary
/// files.
pub fn breaches(
    rules: &BoardRules,
    [worktree, scratch]: [&Path; 2],
    tool: &str,
    input: &Value,
) -> Vec<Breach> {
    if !may_change(tool) {
        return Vec::new();
    }
    let command = input["command"]
        .as_str()
        .map(|command| of_command(rules, command));
    let path = ["file_path", "notebook_path"]
        .iter()
        .find_map(|name| input[*name].as_str());
    let path = path.map(|path| plain_path(&worktree.join(path)));
    let path = path.map(|path| match path.strip_prefix(worktree) {
        Ok(within) => of_paths(rules, &[within.to_string_lossy().into_owned()]),
        Err(_) if path.starts_with(scratch) => Vec::new(),
        Err(_) => of_act(rules, Act::Outside, &path.to_string_lossy()),
    });
    command.into_iter().chain(path).flatten().collect()
}

/// Returns the gravest breach, if it forbids the call and is not only logged.
pub(super) fn forbids(breaches: Vec<Breach>) -> Option<Breach> {
    breaches
        .into_iter()
        .filter(|breach| breach.consequence.forbids())
        .max_by_key(|breach| breach.consequence)
}

/// Returns true if a call can break one of the rules that forbid it.
pub(super) fn may_forbid(rules: &BoardRules) -> bool {
    let is_seen = |act: &Act| matches!(act, Act::Outside | Act::Push);
    rules.values().any(|rule| {
        let is_of_calls =
            !rule.commands.is_empty() || !rule.paths.is_empty() || rule.acts.iter().any(is_seen);
        is_of_calls && rule.consequence.forbids()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use tavern_core::rule::{Consequence, Rule};

    #[test]
    fn a_call_is_forbidden_by_what_it_would_do_and_one_that_looks_by_nothing() {
        let rule = |consequence| Rule {
            commands: vec!["npm publish".to_owned()],
            paths: vec!["db/*.sql".to_owned()],
            acts: vec![Act::Outside],
            consequence,
            ..Rule::default()
        };
        let rules = BoardRules::from([
            ("mild".to_owned(), rule(Consequence::Notify)),
            ("r".to_owned(), rule(Consequence::Pause)),
        ]);
        let places = [Path::new("/w"), Path::new("/tmp")];
        let says = |tool, input: Value| {
            forbids(breaches(&rules, places, tool, &input)).map(|breach| (breach.rule, breach.what))
        };
        let breach = |what: &str| Some(("r".to_owned(), what.to_owned()));
        assert_eq!(
            says("Bash", json!({"command": "sh -c 'npm publish'"})),
            breach("npm publish")
        );
        for path in [
            "/w/db/1.sql",
            "db/1.sql",
            "/w/db//1.sql",
            "/w/x/../db/./1.sql",
            "/x/../w/db/1.sql",
        ] {
            assert_eq!(
                says("Write", json!({"file_path": path})),
                breach("db/1.sql"),
                "{path}"
            );
        }
        assert_eq!(
            says("Write", json!({"file_path": "/etc/x"})),
            breach("/etc/x")
        );
        for path in ["/w/src/1.rs", "/tmp/x", "src/1.rs"] {
            assert_eq!(says("Edit", json!({"file_path": path})), None, "{path}");
        }
        assert_eq!(says("Read", json!({"file_path": "/etc/x"})), None);
        let mild = BoardRules::from([("mild".to_owned(), rule(Consequence::Log))]);
        assert!(may_forbid(&rules) && !may_forbid(&mild));
        assert_eq!(
            forbids(breaches(
                &mild,
                places,
                "Bash",
                &json!({"command": "npm publish"})
            )),
            None
        );
    }
}
