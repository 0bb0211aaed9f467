//! The tools that a role allows and denies, for programs that leave the decision to Tavern. Pure.

use std::env::temp_dir;
use std::path::Path;

use serde_json::Value;

use super::forbidden::{breaches, forbids};
use super::permission::Leave;
use super::reading::may_change;
use tavern_core::rule::{BoardRules, Rule, of_command};
use tavern_core::shell_line::commands_of;

/// Rules in the syntax of the Claude CLI: `Edit`, `Bash`, `Bash(git push:*)`, `Edit(db/**)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRules {
    pub allowed: Vec<String>,
    pub denied: Vec<String>,
    /// Whether all tools are allowed that no rule denies.
    pub allows_all: bool,
}

/// Tools that change files.
const EDITS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

impl ToolRules {
    /// Returns the decision on a call in `worktree`, by the rules of the board and of the role; `None` if they leave it
    /// to a person.
    pub fn leave(
        &self,
        board: &BoardRules,
        worktree: &Path,
        tool: &str,
        input: &Value,
    ) -> Option<Leave> {
        let places = [worktree, &*temp_dir()];
        let is_forbidden =
            |rules: &BoardRules| forbids(breaches(rules, places, tool, input)).is_some();
        let is_denied = self.denied.iter().any(|rule| is_tool(rule, tool));
        if is_denied || is_forbidden(board) || is_forbidden(&self.denials()) {
            return Some(Leave::Forbidden);
        }
        let only_reads = !may_change(tool) && !tool.starts_with("Web");
        let is_allowed = self.allows_all
            || only_reads
            || self.allowed.iter().any(|rule| is_tool(rule, tool))
            || tool == "Bash" && self.allows_line(input["command"].as_str()?);
        is_allowed.then_some(Leave::Given)
    }

    /// Returns true if a command line is allowed without asking.
    pub fn may_run(&self, line: &str) -> bool {
        let input = serde_json::json!({"command": line});
        self.leave(&BoardRules::new(), Path::new("/"), "Bash", &input) == Some(Leave::Given)
    }

    /// Returns true if each command of `line` begins as a rule allows.
    fn allows_line(&self, line: &str) -> bool {
        let commands = self
            .allowed
            .iter()
            .filter_map(|rule| pattern(rule, "Bash"))
            .map(str::to_owned)
            .collect();
        let rules = BoardRules::from([(
            String::new(),
            Rule {
                commands,
                ..Rule::default()
            },
        )]);
        let all = commands_of(line);
        // A line without a readable command is not allowed.
        !all.is_empty()
            && !line.contains(['`', '<', '>'])
            && !line.contains("$(")
            && all
                .iter()
                .all(|words| !of_command(&rules, &words.join(" ")).is_empty())
    }

    /// Returns the denied commands and paths as rules of a board, which see through shells and options.
    pub fn denials(&self) -> BoardRules {
        let of = |tools: &[&str]| {
            let patterns = self
                .denied
                .iter()
                .filter_map(|rule| tools.iter().find_map(|tool| pattern(rule, tool)));
            patterns.map(str::to_owned).collect()
        };
        let rule = Rule {
            commands: of(&["Bash"]),
            paths: of(&EDITS),
            ..Rule::default()
        };
        BoardRules::from([("denied_tools".to_owned(), rule)])
    }
}

/// Returns true if the rule is about each call of `tool`.
fn is_tool(rule: &str, tool: &str) -> bool {
    let rule = rule.trim().trim_end_matches("(*)");
    rule == tool || EDITS.contains(&tool) && EDITS.contains(&rule)
}

/// Returns how the calls begin that a rule for `tool` is about.
fn pattern<'r>(rule: &'r str, tool: &str) -> Option<&'r str> {
    let pattern = rule
        .trim()
        .strip_prefix(tool)?
        .strip_prefix('(')?
        .strip_suffix(')')?;
    let begins = pattern
        .trim_end_matches("/**")
        .trim_end_matches('*')
        .trim_end_matches([':', ' ']);
    (!begins.is_empty()).then_some(begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_allowed_denied_or_left_to_a_person() {
        let rules = ToolRules {
            allowed: ["Read", "Edit", "Bash(git:*)", "Bash(make test)"]
                .map(str::to_owned)
                .into(),
            denied: ["CronCreate", "Bash(git push:*)", "Edit(db/**)"]
                .map(str::to_owned)
                .into(),
            allows_all: false,
        };
        let bash = |line: &str| ("Bash", json!({"command": line}));
        let edit = |path: &str| ("Edit", json!({"file_path": path}));
        for ((tool, input), leave) in [
            (bash("git log"), Some(Leave::Given)),
            (bash("cd x && git log"), None),
            (bash("git log && git status"), Some(Leave::Given)),
            (bash("git log > /etc/x"), None),
            (bash("git log $(rm -rf /)"), None),
            (bash("make test"), Some(Leave::Given)),
            (bash("rm x"), None),
            (bash("git push"), Some(Leave::Forbidden)),
            (bash("git -C . push"), Some(Leave::Forbidden)),
            (bash("sh -c 'git  push'"), Some(Leave::Forbidden)),
            (edit("src/a.rs"), Some(Leave::Given)),
            (edit("db/1.sql"), Some(Leave::Forbidden)),
            (("Read", json!({})), Some(Leave::Given)),
            (("WebFetch", json!({"url": "http://x"})), None),
            (("CronCreate", json!({})), Some(Leave::Forbidden)),
            (("deploy", json!({})), None),
        ] {
            let found = rules.leave(&BoardRules::new(), Path::new("/w"), tool, &input);
            assert_eq!(found, leave, "{tool} {input}");
        }
        let all = ToolRules {
            allows_all: true,
            ..rules
        };
        let (tool, input) = bash("git push");
        let of =
            |tool: &str, input: &Value| all.leave(&BoardRules::new(), Path::new("/w"), tool, input);
        assert_eq!(of(tool, &input), Some(Leave::Forbidden));
        assert_eq!(of("deploy", &json!({})), Some(Leave::Given));
    }
}
