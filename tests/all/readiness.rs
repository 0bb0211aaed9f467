//! One readiness: why an item can't be worked on here and now is said in the same words wherever it is said.

use crate::support::Scratch;

const NO_SCRIPT: &str = "it has no ```sh block, which the runner `shell` needs";
const NO_PROGRAM: &str = "its done_when needs `no-such-program-here`, which is not on PATH";
const NO_ROLE: &str = "role `scribe` is not in config.yaml";
const NO_RUNNER: &str = "runner `shel` is not in config.yaml";
const PERMISSION: &str = "a person has to allow it to start";
const DEPENDENCY: &str = "it waits for T-8 (draft)";

/// What lacks, and what shows it: a line, and its exit code.
type Row = (&'static str, &'static str, &'static [(&'static str, i32)]);

const ROWS: [Row; 7] = [
    (
        "- [ ] T-1: Do it\n",
        NO_SCRIPT,
        &[
            ("tavern-status T-1", 0),
            ("tavern-status --items --format json", 0),
            ("tavern-check", 0),
            ("tavern-claim --role coder", 3),
            ("tavern-claim --role coder --dry-run", 3),
            ("tavern-agent --dry-run", 0),
            ("tavern-drain", 4),
            ("tavern-drain --dry-run", 4),
            ("tavern-add Another", 0),
        ],
    ),
    (
        "- [ ] T-1: Do it (done_when: no-such-program-here)\n  ```sh\n  true\n  ```\n",
        NO_PROGRAM,
        &[
            ("tavern-status", 0),
            ("tavern-status T-1", 0),
            ("tavern-check", 0),
            ("tavern-claim --role coder", 3),
            ("tavern-agent --dry-run", 0),
            ("tavern-agent --until-empty", 0),
            ("tavern-drain", 1),
            ("tavern-add Another --done-when no-such-program-here -m '```sh\ntrue\n```'", 0),
        ],
    ),
    (
        "- [ ] T-1: Do it (role: scribe)\n",
        NO_ROLE,
        &[
            ("tavern-status T-1", 0),
            ("tavern-status --items --format json", 0),
            ("tavern-check", 0),
            ("tavern-add Another --role scribe", 0),
        ],
    ),
    (
        "- [ ] T-1: Do it (runner: shel)\n",
        NO_RUNNER,
        &[("tavern-status T-1", 0), ("tavern-check", 5), ("tavern-add Another --runner shel", 0)],
    ),
    ("- [ ] T-1: Do it\n", NO_RUNNER, &[("tavern-edit", 4)]),
    (
        "- [ ] T-1: Do it (approve: start)\n  ```sh\n  true\n  ```\n",
        PERMISSION,
        &[
            ("tavern-status", 0),
            ("tavern-claim --role coder", 3),
            ("tavern-claim --task T-1", 3),
            ("tavern-agent --dry-run", 0),
            ("tavern-drain --format json", 8),
        ],
    ),
    (
        "- [ ] T-1: Do it (after: T-8)\n  ```sh\n  true\n  ```\n## Draft\n- [ ] T-8: First\n",
        DEPENDENCY,
        &[
            ("tavern-claim --role coder", 3),
            ("tavern-claim --task T-1", 3),
            ("tavern-agent --dry-run", 0),
            ("tavern-drain", 1),
        ],
    ),
];

#[test]
fn every_program_says_in_the_same_words_what_an_item_lacks() {
    for (queue, lack, lines) in ROWS {
        for (line, code) in lines {
            let scratch = Scratch::board(&format!("## Pending\n{queue}"));
            // Makes a mistake, and leaves it.
            let editor = scratch.executable(
                "../editor",
                "#!/bin/sh\ngrep -q T-7 \"$1\" || echo '- [ ] T-7: New (runner: shel, tags: [a])' >>\"$1\"\n",
            );
            let ran = scratch.line(line).variable("EDITOR", editor).run();
            let told = format!("{}{}", ran.stdout, ran.stderr);
            assert!(told.contains(lack), "{line} says: {lack}\n{ran}");
            assert_eq!(ran.code, Some(*code), "{line}\n{ran}");
        }
    }
}
