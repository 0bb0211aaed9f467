//! Commands that were refused, and their working form: learnings that no agent has to phrase.

use std::collections::{HashMap, VecDeque};

use super::event::{AgentEvent, Nesting};

/// Messages of programs and shells that reject a command line. Other failures are for the agent to judge: a test that
/// fails and passes later is no learning.
const REFUSALS: [&str; 14] = [
    "command not found",
    "invalid option",
    "missing script",
    "no such command",
    "no such option",
    "no such subcommand",
    "unexpected argument",
    "unknown argument",
    "unknown command",
    "unknown flag",
    "unknown option",
    "unrecognized argument",
    "unrecognized option",
    "unrecognized subcommand",
];

/// The most refused commands that are remembered, and the longest line.
const MOST: usize = 3;
const LONGEST: usize = 200;

/// Follows the commands of one agent.
#[derive(Default)]
pub struct MendedCommands {
    running: HashMap<String, String>,
    refused: VecDeque<RefusedCommand>,
}

struct RefusedCommand {
    command: String,
    why: String,
}

impl MendedCommands {
    /// Returns the working form of a command that was refused before, in words, if the event shows one.
    pub fn note(&mut self, event: &AgentEvent) -> Option<String> {
        match event {
            AgentEvent::ToolCall {
                id,
                input,
                nesting: Nesting::Main,
                ..
            } => {
                let command = input["command"].as_str()?.trim();
                let is_short = command.len() <= LONGEST && !command.contains('\n');
                is_short.then(|| self.running.insert(id.clone(), command.to_owned()));
                None
            }
            AgentEvent::ToolResult { id, ok, text } => {
                let command = self.running.remove(id)?;
                if *ok {
                    self.mends(&command)
                } else {
                    self.is_refused(command, text)
                }
            }
            _ => None,
        }
    }

    fn is_refused(&mut self, command: String, said: &str) -> Option<String> {
        let is_refusal = |line: &&str| {
            let line = line.to_lowercase();
            line.len() <= LONGEST && REFUSALS.iter().any(|refusal| line.contains(refusal))
        };
        let why = said.lines().map(str::trim).find(is_refusal)?.to_owned();
        self.refused.push_back(RefusedCommand { command, why });
        self.refused
            .drain(..self.refused.len().saturating_sub(MOST));
        None
    }

    fn mends(&mut self, command: &str) -> Option<String> {
        let at = self
            .refused
            .iter()
            .rposition(|refused| is_variant(&refused.command, command))?;
        let RefusedCommand {
            command: refused,
            why,
        } = self.refused.remove(at)?;
        Some(format!(
            "`{refused}` is refused here ({why}); `{command}` works."
        ))
    }
}

/// Returns true for the same program with other arguments, or another program with the same arguments.
fn is_variant(one: &str, other: &str) -> bool {
    let parts = |command: &str| {
        let mut words = command.split_whitespace().map(str::to_owned);
        (words.next(), words.collect::<Vec<_>>())
    };
    let ((program, words), (other_program, other_words)) = (parts(one), parts(other));
    one != other && (program == other_program || !words.is_empty() && words == other_words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the findings after these commands; those with a text fail with it.
    fn found(commands: &[(&str, Option<&str>)]) -> Vec<String> {
        let mut mended = MendedCommands::default();
        let mut found = Vec::new();
        for (id, (command, error)) in commands.iter().enumerate() {
            let (id, input) = (id.to_string(), json!({"command": command}));
            let call = AgentEvent::ToolCall {
                id: id.clone(),
                name: "Bash".to_owned(),
                input,
                nesting: Nesting::Main,
            };
            let result = AgentEvent::ToolResult {
                id,
                ok: error.is_none(),
                text: error.unwrap_or_default().to_owned(),
            };
            found.extend([call, result].iter().filter_map(|event| mended.note(event)));
        }
        found
    }

    #[test]
    fn what_was_refused_as_typed_and_goes_well_otherwise_is_found() {
        let unknown = Some("error: unexpected argument '--feature' found\n\n  tip: …");
        assert_eq!(
            found(&[
                ("cargo test --feature x", unknown),
                ("ls", None),
                ("cargo test --features x", None)
            ]),
            [
                "`cargo test --feature x` is refused here (error: unexpected argument '--feature' found); `cargo test --features x` works."
            ]
        );
        let missing = Some("sh: 1: python: command not found");
        assert_eq!(
            found(&[
                ("python -m pytest", missing),
                ("python3 -m pytest", None),
                ("python3 -m pytest", None)
            ])
            .len(),
            1
        );
    }

    #[test]
    fn what_fails_for_another_reason_tells_nothing() {
        for commands in [
            [
                ("cargo test", Some("test result: FAILED")),
                ("cargo test", None),
            ],
            [
                ("ls nowhere", Some("ls: nowhere: No such file or directory")),
                ("ls here", None),
            ],
            [("grep -x y z", Some("unknown option")), ("ls", None)],
            [("foo --bar", Some("unknown option")), ("foo --bar", None)],
        ] {
            assert_eq!(found(&commands), Vec::<String>::new(), "{commands:?}");
        }
    }
}
