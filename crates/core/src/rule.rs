//! Rules that a board's owner sets for agents: forbidden paths and commands, and the size of a change. Pure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shell_line::commands_of;
use super::status::words;
use super::touches::{is_below_root, meant};

/// The rules of config.yaml, by name.
pub type BoardRules = BTreeMap<String, Rule>;

/// A rule for agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// Paths and globs, as in `touches`, that must not be changed.
    pub paths: Vec<String>,
    /// Beginnings of commands that must not be run.
    pub commands: Vec<String>,
    /// Maximum number of added and removed lines of a change.
    pub lines: Option<u64>,
    /// Acts that are not part of the work.
    pub acts: Vec<Act>,
    /// The consequence of a breach.
    #[serde(rename = "then")]
    pub consequence: Consequence,
}

words! {
    /// An act that is not part of an agent's work.
    Act {
        /// Writing a file outside of the worktree with a tool that reports it.
        Outside "outside",
        /// Pushing work to a branch, a tag or a remote.
        Push "push",
        /// Changing the hooks of the repository.
        Hooks "hooks",
        /// Changing the repository's `.git/config`.
        Settings "settings",
    }
}

words! {
    /// The consequence of a breach.
    Consequence {
        /// Recorded in the log only.
        Log "log",
        /// People are notified, too.
        Notify "notify",
        /// The agent gets a message, too, and Claude refuses the call.
        Warn "warn",
        /// The run is paused, with a question to a person.
        Pause "pause",
        /// The run is ended as failed.
        Reap "reap",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro makes the enum")]
impl Default for Consequence {
    fn default() -> Consequence {
        Consequence::Warn
    }
}

impl Consequence {
    /// Returns true if Claude refuses the call, where the breach can be seen before.
    pub fn forbids(self) -> bool {
        self >= Consequence::Warn
    }
}

impl Rule {
    /// Returns true if the rule forbids nothing.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
            && self.commands.is_empty()
            && self.acts.is_empty()
            && self.lines.is_none()
    }

    /// Returns a part of the rule that can't work as intended, with a hint.
    pub fn fault(&self) -> Option<(String, &'static str)> {
        let is_odd = |path: &&String| {
            let plain = path.trim_start_matches("./");
            plain.trim_end_matches(['/', '.']).is_empty()
                || plain.starts_with(['[', '{'])
                || !is_below_root(plain)
        };
        let path = self.paths.iter().find(is_odd).map(|path| {
            let hint = "write paths below the root of the repository, or patterns that begin with a name: db/*.sql";
            (format!("the path `{path}`"), hint)
        });
        let is_empty = self.commands.iter().any(|words| words.trim().is_empty());
        let empty = || {
            is_empty.then(|| {
                (
                    "an empty command".to_owned(),
                    "write how such commands begin: npm publish",
                )
            })
        };
        let compound = self
            .commands
            .iter()
            .find(|words| words.contains(['&', '|', ';', '<', '>', '\n']));
        let compound = || {
            let words = compound?.trim();
            Some((
                format!("`{words}`, which is more than one command"),
                "give each command an entry of its own",
            ))
        };
        path.or_else(empty).or_else(compound)
    }

    /// Returns true if the rule can only be checked for agents that report each call.
    pub fn is_of_calls(&self) -> bool {
        !self.commands.is_empty() || self.acts.contains(&Act::Outside)
    }

    /// Returns the beginnings of forbidden commands.
    pub fn all_commands(&self) -> impl Iterator<Item = &str> {
        let push = self.acts.contains(&Act::Push).then_some("git push");
        self.commands.iter().map(String::as_str).chain(push)
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
pub struct Breach {
    pub rule: String,
    /// A path, a command, or a number of lines.
    pub what: String,
    pub consequence: Consequence,
}

impl Breach {
    /// Returns the breach in words.
    pub fn words(&self) -> String {
        format!("it broke the rule `{}`: {}", self.rule, self.what)
    }
}

/// Maximum breaches in one question; others are asked about later.
const MOST_NAMED: usize = 20;

/// Separator between breaches, and the end of a question.
const AND: &str = "; ";
const END: &str = ". May it? (yes or no)";

/// Returns several breaches in one sentence, grouped by rule.
pub fn in_words(breaches: &[&Breach]) -> String {
    let named = &breaches[..breaches.len().min(MOST_NAMED)];
    let of_rule = |of_rule: &[&Breach]| {
        let more = of_rule[1..]
            .iter()
            .map(|breach| AND.to_owned() + &breach.what);
        of_rule[0].words() + &more.collect::<String>()
    };
    let mut words: Vec<String> = named
        .chunk_by(|one, next| one.rule == next.rule)
        .map(of_rule)
        .collect();
    if breaches.len() > named.len() {
        words.push(format!("and {} more", breaches.len() - named.len()));
    }
    words.join(AND)
}

/// Returns the question to a person about these breaches. A yes allows the breaches it names.
pub fn question(breaches: &str) -> String {
    format!("{breaches}{END}")
}

/// Returns true if the question is also about this breach.
pub fn names(question: &str, breach: &Breach) -> bool {
    let rule = Breach {
        what: String::new(),
        ..breach.clone()
    }
    .words();
    let Some((_, of_rule)) = question.split_once(&rule) else {
        return false;
    };
    let next = of_rule
        .find("; it broke the rule `")
        .unwrap_or(of_rule.len());
    let of_rule = AND.to_owned() + of_rule[..next].trim_end_matches(END) + AND;
    of_rule.contains(&format!("{AND}{}{AND}", breach.what))
}

/// Returns the rules that a command line breaks. Each of its commands counts, also one run by another, but
/// none in quotes.
pub fn of_command(rules: &BoardRules, line: &str) -> Vec<Breach> {
    let commands = commands_of(line);
    let begins = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let is_so = |command: &Vec<String>| {
            command.len() >= words.len()
                && command.iter().zip(&words).all(|(own, word)| own == word)
        };
        !words.is_empty() && commands.iter().any(is_so)
    };
    broken(rules, |rule| {
        rule.all_commands()
            .find(|words| begins(words))
            .map(str::to_owned)
    })
}

/// Returns the rules that a change of these paths breaks, one breach for each path.
pub fn of_paths(rules: &BoardRules, paths: &[String]) -> Vec<Breach> {
    broken(rules, |rule| {
        meant(paths, &rule.paths)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    })
}

/// Returns the rules that this act breaks; `what` describes it.
pub fn of_act(rules: &BoardRules, act: Act, what: &str) -> Vec<Breach> {
    broken(rules, |rule| {
        rule.acts.contains(&act).then(|| what.to_owned())
    })
}

/// Returns the rules that a change of so many lines breaks.
pub fn of_lines(rules: &BoardRules, lines: u64) -> Vec<Breach> {
    broken(rules, |rule| {
        Some(format!("{lines} lines changed"))
            .filter(|_| rule.lines.is_some_and(|most| lines > most))
    })
}

fn broken<W: IntoIterator<Item = String>>(
    rules: &BoardRules,
    what: impl Fn(&Rule) -> W,
) -> Vec<Breach> {
    let of_rule = |(name, rule): (&String, &Rule)| {
        let (name, consequence) = (name.clone(), rule.consequence);
        what(rule).into_iter().map(move |what| Breach {
            rule: name.clone(),
            what,
            consequence,
        })
    };
    rules.iter().flat_map(of_rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_breaks_a_rule_by_how_one_of_its_parts_begins() {
        let rule = Rule {
            commands: vec!["git push".to_owned()],
            ..Rule::default()
        };
        let push = Rule {
            acts: vec![Act::Push],
            ..Rule::default()
        };
        let by_act = BoardRules::from([("no-push".to_owned(), push)]);
        let rules = BoardRules::from([("no-push".to_owned(), rule)]);
        for (command, is_broken) in [
            ("git push", true),
            ("cd x && git push origin", true),
            ("true; (git push)", true),
            ("echo git push", false),
            ("git pushx", false),
            ("FOO=1 git  push", true),
            ("git \"push\" origin", true),
            ("if true; then git push; fi", true),
            ("env X=1 timeout -k 1 5 /usr/bin/git push", true),
            ("sudo -u me git push", true),
            ("bash -c 'cd x; git push'", true),
            ("echo x | xargs git push", true),
            ("git commit -m 'do; git push later'", false),
            ("grep 'git push' notes", false),
        ] {
            assert_eq!(
                !of_command(&rules, command).is_empty(),
                is_broken,
                "{command}"
            );
            assert_eq!(of_command(&rules, command), of_command(&by_act, command));
        }
    }

    #[test]
    fn a_question_names_what_it_is_about() {
        let breach = |rule: &str, what: &str| Breach {
            rule: rule.to_owned(),
            what: what.to_owned(),
            consequence: Consequence::Pause,
        };
        let asked = [
            breach("db", "db/f10"),
            breach("db", "a; b"),
            breach("x", "db/f3"),
        ];
        let question = question(&in_words(&asked.iter().collect::<Vec<_>>()));
        assert_eq!(
            question,
            "it broke the rule `db`: db/f10; a; b; it broke the rule `x`: db/f3. May it? (yes or no)"
        );
        assert!(asked.iter().all(|breach| names(&question, breach)));
        for other in [
            breach("db", "db/f1"),
            breach("db", "db/f3"),
            breach("y", "db/f3"),
            breach("x", "db/f10"),
        ] {
            assert!(!names(&question, &other), "{other:?}");
        }
        assert!(names(
            "it broke the rule `db`: db/f1; it is told",
            &breach("db", "db/f1")
        ));
    }

    #[test]
    fn paths_and_lines_break_the_rules_that_name_them() {
        let rule = |paths: &[&str], lines| Rule {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            lines,
            ..Rule::default()
        };
        let rules = BoardRules::from([
            ("a".to_owned(), rule(&["db/*.sql"], None)),
            ("b".to_owned(), rule(&[], Some(10))),
        ]);
        let paths = ["src/x.rs", "db/1.sql"].map(str::to_owned);
        assert_eq!(
            of_paths(&rules, &paths)
                .iter()
                .map(Breach::words)
                .collect::<Vec<_>>(),
            ["it broke the rule `a`: db/1.sql"]
        );
        assert_eq!(
            (
                of_paths(&rules, &paths[..1]).len(),
                of_lines(&rules, 10).len(),
                of_lines(&rules, 11).len()
            ),
            (0, 0, 1)
        );
    }
}
