//! One readiness: why an item can't be worked on here and now is said in the same words wherever it is said.

use std::path::Path;

use crate::support::{QUEUE, Scratch};

const NO_SCRIPT: &str = "it has no ```sh block, which the runner `shell` needs";
const NO_PROGRAM: &str = "its done_when needs `no-such-program-here`, which is not on PATH";
const NO_ROLE: &str = "role `scribe` is not in config.yaml";
const NO_RUNNER: &str = "runner `shel` is not in config.yaml";
const PERMISSION: &str = "a person has to allow it to start";
const DEPENDENCY: &str = "it waits for T-8 (draft)";

/// What lacks, and what shows it: a line, and its exit code.
type Row = (&'static str, &'static str, &'static [(&'static str, i32)]);

const ONLY_REVIEWS: &str = "agents of role `reviewer` only review";
const CYCLE: &str = "dependency cycle: T-1 → T-8 → T-1";
const TO_BREAK_IT: &str =
    "remove `T-8` from the `after` of `T-1`, or break the cycle elsewhere: tavern edit T-1";

/// An item that no agent can take: the same wherever it is asked for.
const NOBODYS: &[(&str, i32)] = &[
    ("tavern-status T-1", 0),
    ("tavern-status --items --format json", 0),
    ("tavern-check", 0),
    ("tavern-claim", 3),
    ("tavern-claim --role coder", 3),
    ("tavern-claim --role reviewer", 3),
    ("tavern-claim --role planner", 3),
    ("tavern-claim --task T-1", 3),
    ("tavern-agent --dry-run", 0),
    ("tavern-agent --dry-run --role planner", 0),
    ("tavern-drain", 1),
    ("tavern-drain --role reviewer", 1),
];

const ROWS: [Row; 13] = [
    ("- [ ] T-1: Do it (role: reviewer)\n", ONLY_REVIEWS, NOBODYS),
    ("- [ ] T-1: Do it (role: scribe)\n", NO_ROLE, NOBODYS),
    (
        "- [ ] T-1: Plan it (role: planner)\n",
        NO_SCRIPT,
        &[
            ("tavern-status T-1", 0),
            ("tavern-check", 0),
            ("tavern-claim", 3),
            ("tavern-claim --role planner", 3),
            ("tavern-agent --dry-run", 0),
            ("tavern-agent --dry-run --role planner", 0),
            ("tavern-drain", 1),
            ("tavern-drain --role planner", 4),
        ],
    ),
    (
        "- [ ] T-1: Do it (after: T-8)\n  ```sh\n  true\n  ```\n- [ ] T-8: First (after: T-1)\n  ```sh\n  true\n  ```\n",
        CYCLE,
        &[
            ("tavern-status T-1", 0),
            ("tavern-status T-8", 0),
            ("tavern-check", 5),
            ("tavern-claim --task T-8", 3),
            ("tavern-drain", 5),
        ],
    ),
    (
        "- [ ] T-1: Do it (after: T-8)\n  ```sh\n  true\n  ```\n- [ ] T-8: First (after: T-1)\n  ```sh\n  true\n  ```\n",
        TO_BREAK_IT,
        &[
            ("tavern-status T-1", 0),
            ("tavern-claim --role coder", 3),
            ("tavern-claim --task T-1", 3),
            ("tavern-agent --dry-run", 0),
        ],
    ),
    (
        "- [ ] Do it (after: T-7)\n",
        "there is no item `T-7` to wait for",
        &[("tavern-check", 5)],
    ),
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
            ("tavern-claim", 3),
            ("tavern-claim --role coder", 3),
            ("tavern-claim --task T-1", 0),
            ("tavern-agent --dry-run", 0),
            ("tavern-agent --until-empty", 0),
            ("tavern-drain", 1),
            (
                "tavern-add Another --done-when no-such-program-here -m '```sh\ntrue\n```'",
                0,
            ),
        ],
    ),
    (
        "- [ ] T-1: Do it\n",
        NO_ROLE,
        &[("tavern-add Another --role scribe", 0)],
    ),
    (
        "- [ ] T-1: Do it (runner: shel)\n",
        NO_RUNNER,
        &[
            ("tavern-status T-1", 0),
            ("tavern-check", 5),
            ("tavern-add Another --runner shel", 0),
        ],
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

#[test]
fn a_program_that_is_named_by_its_path_is_not_looked_for_elsewhere() {
    let scratch = Scratch::shell(
        "- [ ] T-1: One (done_when: /no/such/check)\n",
        "roles: {coder: {runner: own}}\nrunners: {own: {kind: command, command: [/no/such/program]}}\n",
    );
    for told in [
        "`/no/such/program` is not there",
        "`/no/such/check`, which is not there",
    ] {
        scratch
            .run("tavern-check", &[])
            .says(told)
            .says_not("not on PATH");
    }
    scratch
        .run("tavern-agent", &[])
        .ends(1)
        .says("error: `/no/such/program` is not there\nhint: install it");
}

#[test]
fn a_report_that_says_nothing_is_answered_by_where_the_item_stands() {
    let scratch = Scratch::board(
        "- [ ] T-1: One\n- [ ] T-2: Two (status: in_review, review: person, worktree: false)\n\
         - [ ] T-3: Three (status: dead)\n- [x] T-4: Four\n",
    );
    for (id, told) in [
        (
            "T-1",
            "hint: take it: claim=$(tavern claim T-1 --format env) && eval \"export $claim\"\n",
        ),
        (
            "T-2",
            "hint: tavern diff T-2, then tavern approve T-2, or tavern reject T-2 \"…\"\n",
        ),
        ("T-3", "hint: bring it back: tavern retry T-3\n"),
        ("T-4", "hint: look at it: tavern diff T-4\n"),
    ] {
        scratch.run("tavern-report", &[id]).ends(2).says(told);
    }
}

#[test]
fn what_waits_for_a_person_is_added_with_a_flag() {
    let scratch = Scratch::initialized();
    scratch
        .run(
            "tavern-add",
            &["One", "--id", "T-1", "--approve", "start,merge"],
        )
        .succeeds();
    scratch
        .run("tavern-add", &["Two", "--id", "T-2", "--approve", "merge"])
        .succeeds();
    assert_eq!(
        scratch.item("T-1")["approve"],
        serde_json::json!(["start", "merge"])
    );
    assert_eq!(scratch.item("T-2")["approve"], serde_json::json!(["merge"]));
    scratch
        .run("tavern-claim", &["--task", "T-1"])
        .ends(3)
        .says("a person has to allow it to start");
    scratch
        .run("tavern-add", &["Three", "--approve", "never"])
        .ends(2)
        .says("one of start, merge");
}

#[test]
fn what_a_person_takes_is_what_the_list_calls_next() {
    let script = "  ```sh\n  true\n  ```\n";
    for notes in [
        "needs: no-such-program",
        "needs: ./no-such-file",
        "done_when: no-such-program here",
    ] {
        let scratch = Scratch::board(&format!(
            "- [ ] T-1: One ({notes})\n{script}- [ ] T-2: Two\n{script}"
        ));
        let items = scratch.records("tavern-status", &["--items"]);
        let next: Vec<_> = items
            .iter()
            .filter(|item| !item["next_for"].is_null())
            .map(|item| &item["task"])
            .collect();
        assert_eq!(next, ["T-2"], "{items:#?}");
        let claimed = scratch.json("tavern-claim", &[]);
        assert_eq!(claimed["id"], "T-2", "{claimed:#}");
    }
}

#[test]
fn when_an_item_may_be_taken_again_is_read_and_told_in_the_readers_time_zone() {
    for typed in [
        "2026-11-22T12:00:00Z",
        "2026-11-22 21:00",
        "2026-11-22T21:00:00",
    ] {
        let scratch = Scratch::board(&format!(
            "- [ ] T-1: Do it (not_before: {typed})\n  ```sh\n  true\n  ```\n"
        ));
        for line in ["tavern-claim --task T-1", "tavern-status T-1"] {
            let there = scratch
                .line(line)
                .variable("TZ", "JST-9")
                .variable("TAVERN_TEST_NOW", "2026-11-22T10:00:00Z");
            there.run().says("21:00:00").says_not("12:00:00");
        }
    }
}

#[test]
fn what_a_drain_of_a_plain_file_says_to_type_can_be_typed() {
    let scratch = Scratch::repository();
    let sh = "\n  ```sh\n  true\n  ```\n";
    let items = [
        "Plan it (role: planner)\n",
        &format!("Write it (role: codr){sh}"),
        &format!("Do nothing (result: answer){sh}"),
        &format!("T-9: Do it (approve: start){sh}"),
    ];
    scratch.write(
        "TODO.md",
        items.map(|item| format!("- [ ] {item}")).concat(),
    );
    let ran = scratch
        .run("tavern-drain", &["TODO.md", "--agents", "coder=1"])
        .ends(1);
    ran.says("no agent works as one: tavern agent --role planner --queue TODO.md\n")
        .says("or: tavern drain TODO.md --role planner --runner claude\n")
        .says("or name another: tavern edit TODO.md\n")
        .says("to do: tavern approve T-9\n");
    let editor = scratch.executable("../editor", "#!/bin/sh\nsed -i 's/(role: codr)//' \"$1\"\n");
    for line in [
        "tavern-agent --role planner --queue TODO.md --dry-run",
        "tavern-drain TODO.md --role planner --runner codex --dry-run",
        "tavern-edit TODO.md",
        "tavern-report T-9 --approve",
    ] {
        scratch.executable("../home/bin/codex-acp", "#!/bin/sh\n");
        let path = format!(
            "{}:/usr/bin:/bin",
            scratch.folder().join("home/bin").display()
        );
        scratch
            .line(line)
            .variable("EDITOR", &editor)
            .variable("PATH", path)
            .run()
            .ends(0);
    }
    assert!(!scratch.read("TODO.md").contains("scribe"));
}

#[test]
fn what_builds_on_work_that_was_taken_back_waits_until_it_is_there_again() {
    let items = "- [ ] T-1: One\n  ```sh\n  echo 1 > 1.txt\n  ```\n- [ ] T-2: Two (after: T-1)\n  ```sh\n  cp 1.txt 2.txt\n  ```\n";
    let again: [&[&str]; 2] = [&["revert", "--no-edit", "HEAD"], &[]];
    for (taken_back, again) in [&["-m", "1", "HEAD"] as &[_], &["HEAD^2"]]
        .into_iter()
        .zip(again)
    {
        let scratch = Scratch::pending(items);
        scratch.run("tavern-agent", &["--once"]).succeeds();
        let commit = scratch.git(&["log", "-1", "--format=%h", "tavern/integration"]);
        scratch.git(&["checkout", "--quiet", "tavern/integration"]);
        scratch.git(&[&["revert", "--no-edit"], taken_back].concat());
        let revert = scratch.git(&["log", "-1", "--format=%h"]);
        scratch.git(&["checkout", "--quiet", "main"]);
        let lack =
            format!("the work of T-1, {commit}, was reverted on `tavern/integration` by {revert}");
        for (line, code) in [
            ("tavern-status T-2", 0),
            ("tavern-check", 0),
            ("tavern-claim", 3),
            ("tavern-drain", 1),
        ] {
            scratch.line(line).run().ends(code).says(&lack);
        }
        scratch.stands("T-2", "pending", 0);
        if again.is_empty() {
            scratch
                .run("tavern-release", &["T-1", "--reopen"])
                .succeeds();
        } else {
            scratch.git(&["checkout", "--quiet", "tavern/integration"]);
            scratch.git(again);
            scratch.git(&["checkout", "--quiet", "main"]);
        }
        scratch.run("tavern-drain", &[]).ends(0);
        assert!(
            scratch.merged().contains("1.txt\n2.txt\n"),
            "{taken_back:?}"
        );
    }
}

#[test]
fn what_builds_on_work_begins_where_that_work_is_also_in_another_clone() {
    let items = "- [ ] T-1: One\n  ```sh\n  echo 1 > 1.txt\n  ```\n- [ ] T-2: Two (after: T-1)\n  ```sh\n  cp 1.txt 2.txt\n  ```\n";
    let first = Scratch::pending(items);
    first.run("tavern-agent", &["--once"]).succeeds();
    first.commit(&["--all"], "Queue");
    let commit = first.git(&["log", "-1", "--format=%h", "tavern/integration"]);
    let lack = format!("the work of T-1, {commit}, is not on `tavern/integration` here; ");
    let squash = "git merge --squash origin/tavern/integration && git commit -m All && git branch -rd origin/tavern/integration";
    for (clone, change) in [
        ("clone", "true"),
        ("clone --origin up", "git checkout --detach"),
        ("clone", squash),
    ] {
        let scratch = Scratch::empty();
        let sh = |line: &str| {
            scratch
                .command(Path::new("sh"))
                .args(&["-c", line])
                .run()
                .ends(0)
        };
        sh(&format!(
            "git {clone} file://{} . && {change} && tavern trust --yes",
            first.work().display()
        ));
        scratch.run("tavern-drain", &[]).ends(0);
        assert!(
            scratch.merged().contains("1.txt\n2.txt\n"),
            "{clone}, {change}"
        );
    }
    // Whoever moves the branch back, or deletes it, is told, by `check` though nothing depends on the work.
    for change in [
        &["branch", "--force", "tavern/integration", "main"],
        &["branch", "-D", "--", "tavern/integration"],
    ] {
        first.git(change);
        first.run("tavern-claim", &[]).ends(3).says(&lack);
        first.run("tavern-check", &[]).says(&lack[..lack.len() - 2]);
        // Who takes it by its name means it, and is told.
        first
            .run("tavern-claim", &["--task", "T-2"])
            .ends(0)
            .says(&lack[..lack.len() - 2]);
        first.run("tavern-release", &["T-2", "--force"]).ends(0);
    }
    first.run("tavern-add", &["Three"]).ends(0);
    assert_eq!(
        first.json("tavern-claim", &[])["title"],
        "Three",
        "what needs none of that work is taken"
    );
    first.change(QUEUE, " (after: T-1)", "");
    first.run("tavern-check", &[]).says(&lack[..lack.len() - 2]);
    first.run("tavern-claim", &[]).ends(0).says("T-2 Two");
}

#[test]
fn what_is_due_first_is_taken_first_and_told_when_it_is_near_or_past() {
    let items = [
        "T-1: Some day",
        "T-2: Next week (due: 2026-11-30)",
        "T-3: Tomorrow (due: 2026-11-23T09:00:00Z)",
        "T-4: Yesterday (due: 2026-11-21 18:00)",
        "T-5: Urgent (priority: 1)",
        "T-6: Whenever (due: soon)",
    ];
    let queue: String = items
        .map(|item| format!("- [ ] {item}\n- [x] Done (due: 2026-11-21)\n"))
        .concat();
    let scratch = Scratch::board(&queue);
    let now = "2026-11-22T10:00:00Z";
    let status = scratch.at(now, "tavern-status", &[]).succeeds();
    let told: Vec<&str> = status
        .lines()
        .filter(|line| line.contains("due"))
        .map(str::trim)
        .collect();
    let expected = [
        "T-3      pending     Tomorrow (due 2026-11-23 09:00:00 +00:00; no agent can take it)",
        "T-4      pending     Yesterday (was due 2026-11-21 18:00:00 +00:00; no agent can take it)",
    ];
    assert_eq!(told, expected, "{status}");
    scratch
        .at(now, "tavern-status", &["T-4"])
        .ends(0)
        .says("  due         2026-11-21 18:00:00 +00:00 (passed)\n");
    scratch
        .run("tavern-check", &[])
        .says("warning: invalid value for `due`");
    for id in ["T-5", "T-4", "T-3", "T-2", "T-1", "T-6"] {
        let taken = scratch.at(now, "tavern-claim", &[]).succeeds();
        assert!(taken.starts_with(&format!("{id} ")), "{id}: {taken}");
    }
}
