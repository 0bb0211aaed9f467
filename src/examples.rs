//! Examples of each verb, for its help.

/// Returns command lines for a verb of `tavern`.
pub(super) fn examples(verb: &str) -> &'static [&'static str] {
    EXAMPLES
        .iter()
        .find(|(of, _)| *of == verb)
        .map_or(&[], |(_, lines)| lines)
}

const EXAMPLES: [(&str, &[&str]); 32] = [
    ("init", &["tavern init --runner claude"]),
    (
        "add",
        &[
            "tavern add \"Log out (priority: 1)\" --done-when \"cargo test\"",
            "tavern add \"Write the manual\" --after T-1 --queue docs --create",
        ],
    ),
    ("plan", &["tavern plan \"Build a login page\" --draft"]),
    ("schedule", &["tavern schedule --list"]),
    (
        "agent",
        &[
            "tavern agent --until-empty --max-usd 5",
            "tavern agent --role reviewer --runner claude",
        ],
    ),
    (
        "drain",
        &[
            "tavern drain TODO.md --dry-run",
            "tavern drain TODO.md --agents 3 --max-usd 10",
            "tavern drain --agents coder=2,reviewer=1 --junit result.xml",
        ],
    ),
    (
        "status",
        &[
            "tavern status T-2",
            "tavern status --since yesterday",
            "tavern status --items --json",
        ],
    ),
    ("top", &["tavern top main"]),
    ("serve", &["tavern serve --write --port 8080"]),
    ("diff", &["tavern diff T-3"]),
    (
        "log",
        &["tavern log T-1 --diff", "tavern log --since 2h --follow"],
    ),
    (
        "runs",
        &[
            "tavern runs list --outcome failed",
            "tavern runs cat T-3 prompt.md",
        ],
    ),
    (
        "report-html",
        &["tavern report-html --since yesterday -o page.html"],
    ),
    (
        "tell",
        &[
            "tavern tell T-1 \"In Sindarin, please.\"",
            "tavern tell T-1 --pause \"Wait for the new schema.\"",
        ],
    ),
    (
        "learn",
        &["tavern learn \"The API needs a trailing slash\" --tag api"],
    ),
    ("ask", &["tavern ask \"did we check the backups before?\""]),
    ("watch", &["tavern watch --every 1m"]),
    ("notify", &["tavern notify --test"]),
    (
        "claim",
        &[
            "tavern claim T-3 --dry-run",
            "claim=$(tavern claim --pid $$ --format env) && eval \"export $claim\"",
        ],
    ),
    ("spawn", &["tavern spawn T-1 --token 3"]),
    (
        "report",
        &[
            "tavern report T-1 --token 3 --done",
            "tavern report T-1 --approve",
        ],
    ),
    ("merge", &["tavern merge --dry-run", "tavern merge T-1"]),
    ("renew", &["tavern renew T-1 --token 3"]),
    (
        "release",
        &[
            "tavern release T-1 --force --reason \"Rosie is at lunch\"",
            "tavern release T-3 --reopen --reason \"it broke again\"",
        ],
    ),
    (
        "queue",
        &["tavern queue", "tavern queue add urgent --priority 0"],
    ),
    ("edit", &["tavern edit T-3", "tavern edit main --texts"]),
    ("undo", &["tavern undo --dry-run", "tavern undo T-2"]),
    ("reap", &["tavern reap --dry-run"]),
    (
        "check",
        &["tavern check TODO.md", "tavern check --fix --dry-run"],
    ),
    ("trust", &["tavern trust", "tavern trust --yes TODO.md"]),
    ("commit", &["tavern commit"]),
    (
        "merge-driver",
        &["tavern merge-driver base.md ours.md theirs.md"],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PROGRAMS;

    #[test]
    fn each_verb_has_examples_that_it_understands() {
        for program in PROGRAMS {
            assert!(!examples(program.verb()).is_empty(), "{}", program.name);
            for line in examples(program.verb()) {
                let (_, rest) = line.split_once("tavern ").expect("it calls Tavern");
                let rest = rest.split([')', '|']).next().unwrap_or_default();
                let words = words(&rest.replace("$$", "1"));
                assert_eq!(words.first().map(String::as_str), Some(program.verb()));
                let parsed = program.command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    /// Returns the words of a command line, in which `"` quotes.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            1 => vec![part.to_owned()],
            _ => part.split_whitespace().map(str::to_owned).collect(),
        });
        words.collect()
    }
}
