//! Short forms of verbs: `tavern approve T-1` is `tavern report T-1 --approve`.

use std::ffi::{OsStr, OsString};

use clap::Arg;

use super::error::CliError;
use super::program::Program;

/// A verb that is another one with flags.
pub(super) struct Alias {
    pub(super) verb: &'static str,
    /// Its one job, in one line.
    pub(super) job: &'static str,
    /// Usage, such as `ID "WHY"`.
    arguments: &'static str,
    of: &'static str,
    flags: &'static [&'static str],
    /// The flag that takes the second word as its value.
    word: Option<&'static str>,
}

pub(super) const ALIASES: [Alias; 12] = [
    Alias {
        verb: "list",
        job: "List the items of the board, or of a queue",
        arguments: "[QUEUE]",
        of: "status",
        flags: &["--items"],
        word: None,
    },
    Alias {
        verb: "show",
        job: "Show an item in full",
        arguments: "ID",
        of: "status",
        flags: &[],
        word: None,
    },
    Alias {
        verb: "next",
        job: "Show the item that would be claimed next",
        arguments: "",
        of: "claim",
        flags: &["--dry-run"],
        word: None,
    },
    Alias {
        verb: "approve",
        job: "Approve the work of an item, so that it is merged; or allow it to start",
        arguments: "ID",
        of: "report",
        flags: &["--approve"],
        word: None,
    },
    Alias {
        verb: "reject",
        job: "Send the work of an item back to its author",
        arguments: "ID \"WHY\"",
        of: "report",
        flags: &[],
        word: Some("--reject"),
    },
    Alias {
        verb: "answer",
        job: "Answer the question of an item, which then goes on",
        arguments: "ID \"ANSWER\"",
        of: "tell",
        flags: &[],
        word: None,
    },
    Alias {
        verb: "cancel",
        job: "Cancel an item",
        arguments: "ID [\"WHY\"]",
        of: "release",
        flags: &["--cancel"],
        word: Some("--reason"),
    },
    Alias {
        verb: "retry",
        job: "Retry a dead item, with all its attempts",
        arguments: "ID",
        of: "release",
        flags: &["--revive"],
        word: None,
    },
    Alias {
        verb: "set",
        job: "Set keys of an item: priority=1, after=T-2, due=2026-12-24",
        arguments: "ID KEY=VALUE...",
        of: "edit",
        flags: &[],
        word: Some("--set"),
    },
    Alias {
        verb: "stats",
        job: "Show times, throughput, retries and spending",
        arguments: "[QUEUE]",
        of: "status",
        flags: &["--stats"],
        word: None,
    },
    Alias {
        verb: "redo",
        job: "Undo the last undo",
        arguments: "[ID]",
        of: "undo",
        flags: &["--redo"],
        word: None,
    },
    Alias {
        verb: "reopen",
        job: "Have a completed or cancelled item done again",
        arguments: "ID",
        of: "release",
        flags: &["--reopen"],
        word: None,
    },
];

/// Verbs, and the words for them in other programs.
const SYNONYMS: [(&str, &[&str]); 16] = [
    ("add", &["new", "create"]),
    ("approve", &["accept"]),
    ("cancel", &["delete", "drop", "remove", "rm"]),
    ("check", &["doctor", "lint", "validate"]),
    ("claim", &["take"]),
    ("list", &["ls", "items"]),
    ("log", &["logs"]),
    ("queue", &["queues"]),
    ("release", &["unclaim", "unblock"]),
    ("reopen", &["uncancel"]),
    ("retry", &["revive"]),
    ("set", &["update", "modify"]),
    ("show", &["view", "info", "describe", "why"]),
    ("stats", &["cost", "spending", "usage"]),
    ("status", &["ps"]),
    ("tell", &["comment", "message"]),
];

/// Returns the verb that `typed` is another word for, else `typed`.
pub(super) fn canonical(typed: &str) -> &str {
    let is_it = |(_, others): &&(&str, &[&str])| others.contains(&typed);
    let verb = SYNONYMS.iter().find(is_it);
    verb.map_or(typed, |(verb, _)| verb)
}

fn is_flag(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

impl Alias {
    pub(super) fn named(verb: &str) -> Option<&'static Alias> {
        let verb = canonical(verb);
        ALIASES.iter().find(|alias| alias.verb == verb)
    }

    pub(super) fn program(&self) -> &'static Program {
        Program::named(self.of).expect("a test runs each of them")
    }

    /// Returns the help text: usage, and the command that the alias is short for.
    pub(super) fn help(&self) -> String {
        let word = self.word.map(|flag| format!(" {flag}")).unwrap_or_default();
        let (first, second) = self
            .arguments
            .split_once(' ')
            .unwrap_or((self.arguments, ""));
        let parts = [&["tavern", self.of, first][..], self.flags].concat();
        let whole = parts.join(" ") + &word + if second.is_empty() { "" } else { " " } + second;
        let whole = whole.replace("  ", " ");
        format!(
            "{job}\n\nUsage: {usage}\n\nShort for `{whole}`; for its options: tavern help {of}\n",
            job = self.job,
            usage = format!("tavern {} {}", self.verb, self.arguments).trim_end(),
            of = self.of,
        )
    }

    /// Returns the error for a line without the words that it needs.
    pub(super) fn lacking(&self, typed: &[OsString]) -> Option<CliError> {
        let needed = self.arguments.split(' ').filter(|word| !word.is_empty());
        let needed = needed.filter(|word| !word.starts_with('[')).count();
        // A value of a flag, or text from standard input, counts too: the aliased verb looks closer.
        let given = typed.iter().filter(|word| !is_flag(word) || **word == *"-");
        let message = if given.clone().next().is_none() && needed > 0 {
            "name the item"
        } else if given.count() < needed && !typed.iter().any(|word| is_flag(word)) {
            "type the words, too"
        } else {
            return None;
        };
        let hint = format!("tavern {} {}", self.verb, self.arguments);
        Some(CliError::usage(message.to_owned(), hint))
    }

    /// Returns a line for each item, if the verb takes only items.
    pub(super) fn of_each_item(&self, typed: Vec<OsString>) -> Vec<Vec<OsString>> {
        if self.arguments != "ID" || self.of == "status" || typed.iter().any(|word| is_flag(word)) {
            return vec![typed];
        }
        typed.into_iter().map(|word| vec![word]).collect()
    }

    /// Returns the arguments for the aliased verb.
    pub(super) fn arguments(&self, typed: Vec<OsString>) -> Vec<OsString> {
        let command = self.program().command();
        let takes_value = |typed: &OsStr| {
            let typed = typed.to_str().unwrap_or_default();
            let is_typed = |flag: &&Arg| {
                let long = flag.get_long().map(|long| format!("--{long}"));
                let short = flag.get_short().map(|short| format!("-{short}"));
                [long, short]
                    .into_iter()
                    .flatten()
                    .any(|name| name == typed)
            };
            let flag = command.get_arguments().find(is_typed);
            flag.is_some_and(|flag| flag.get_action().takes_values())
        };
        let (mut line, mut words, mut is_value) = (Vec::new(), Vec::new(), false);
        let mut has_item = false;
        for argument in typed {
            // The words of a message, as in git.
            let is_message = argument == *"-m" || argument == *"--message";
            if has_item && self.word.is_some() && is_message && !takes_value(&argument) {
                continue;
            }
            let is_flag = is_flag(&argument) && argument != *"-";
            let is_word = has_item && self.word.is_some() && !is_flag && !is_value;
            has_item |= !is_flag && !is_value;
            is_value = takes_value(&argument);
            if is_word {
                words.push(argument);
            } else {
                line.push(argument);
            }
        }
        // Without a value, clap prints an error that names the flag.
        let is_needed = !self.arguments.contains('[');
        if let Some(flag) = self.word.filter(|_| is_needed || !words.is_empty()) {
            line.push(flag.into());
            line.extend((!words.is_empty()).then(|| words.join(OsStr::new(" "))));
        }
        line.extend(self.flags.iter().map(OsString::from));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_the_line_that_its_help_shows() {
        let line = |verb: &str, typed: &[&str]| {
            let alias = Alias::named(verb).expect("it is there");
            let typed = typed.iter().map(OsString::from).collect();
            let line = alias.arguments(typed).into_iter();
            let words: Vec<String> = line
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            format!("{} {}", alias.of, words.join(" "))
        };
        for (verb, typed, meant) in [
            (
                "list",
                &["--dir", "x", "main"][..],
                "status --dir x main --items",
            ),
            ("show", &["T-1"], "status T-1"),
            (
                "reject",
                &["--dir", "x", "T-1", "why"],
                "report --dir x T-1 --reject why",
            ),
            (
                "reject",
                &["T-1", "--format=json", "that", "is", "it"],
                "report T-1 --format=json --reject that is it",
            ),
            ("reject", &["T-1", "-m", "why"], "report T-1 --reject why"),
            ("reject", &["T-1"], "report T-1 --reject"),
            ("cancel", &["T-1"], "release T-1 --cancel"),
            (
                "cancel",
                &["T-1", "why"],
                "release T-1 --reason why --cancel",
            ),
            (
                "cancel",
                &["T-1", "-m", "why"],
                "release T-1 -m why --cancel",
            ),
            ("answer", &["T-1", "red", "-"], "tell T-1 red -"),
        ] {
            assert_eq!(line(verb, typed), meant);
        }
        let help = Alias::named("cancel").expect("it is there").help();
        assert!(
            help.contains("`tavern release ID --cancel --reason [\"WHY\"]`"),
            "{help}"
        );
    }
}
