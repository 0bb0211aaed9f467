//! The branch `tavern/board`: it has the history of the queues, and git's work on other branches does not touch them.

use std::fs;

use crate::support::{CONFIG, QUEUE, Scratch, has, item, wait_until};

const BOARD: &str = "tavern/board";

/// A board with three items, whose settings are committed.
fn board() -> Scratch {
    let items = [item("T-1", ""), item("T-2", ""), item("T-3", "")].concat();
    let queue = format!("## Pending\n\n{items}\n## Completed\n");
    let scratch = Scratch::shell(&queue, "base: main\n");
    scratch.commit(&[CONFIG, ".tavern/.gitignore"], "Settings");
    scratch
}

fn held() -> Scratch {
    let scratch = board();
    scratch.claim("T-1", &["--agent", "Sam"]);
    scratch
}

/// All that the branch has is what stands there.
#[track_caller]
fn has_the_newest(scratch: &Scratch) {
    let committed = scratch.git(&["show", &format!("{BOARD}:{QUEUE}")]);
    assert_eq!(committed, scratch.queue().trim_end());
}

#[test]
fn the_history_of_a_board_is_on_a_branch_of_its_own() {
    let scratch = board();
    // Staged, changed and new: all of it somebody's, and none of it Tavern's.
    scratch.write("README.md", "staged\n");
    scratch.git(&["add", "README.md"]);
    scratch.write("README.md", "staged, then changed\n");
    scratch.write("new.txt", "new\n");
    // A hook of the user's would say no; it is not asked.
    scratch.executable(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ntouch hook-ran\nexit 1\n",
    );
    let before = (
        scratch.git(&["status", "--porcelain", "--untracked-files=all"]),
        scratch.git(&["log", "--format=%H %D"]),
    );
    scratch.run("tavern-drain", &["--agents", "3"]).ends(0);
    let after = (
        scratch.git(&["status", "--porcelain", "--untracked-files=all"]),
        scratch.git(&["log", "--format=%H %D"]),
    );
    assert_eq!(after, before);
    has_the_newest(&scratch);
    let log = scratch.git(&["log", "--format=%B", BOARD]);
    for number in 1..=3 {
        has(&log, &[&format!("T-{number} Do T-{number}: ")]);
    }
    has(&log, &[" → completed"]);
    assert!(!scratch.work().join("hook-ran").exists());
    // So fast three items are a commit or two, and one at the end.
    let count = scratch.git(&["rev-list", "--count", BOARD]);
    assert!(count.parse::<u32>().expect("a number") <= 4, "{log}");
}

#[test]
fn a_commit_is_made_at_once_if_asked_for() {
    let scratch = board();
    let commit = || scratch.run("tavern-commit", &[]).ends(0);
    commit().says("the queues are committed as ");
    scratch
        .run("tavern-add", &["Write a greeting", "--id", "T-4"])
        .ends(0);
    commit();
    let subject = ["log", "-1", "--format=%s", BOARD];
    assert_eq!(scratch.git(&subject), "T-4 Write a greeting: added");
    has_the_newest(&scratch);
    commit().says("nothing to commit");
    scratch.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    scratch.write(QUEUE, scratch.queue().replace("Do T-3", "Do it"));
    commit();
    assert_eq!(
        scratch.git(&subject),
        "T-2 Do T-2: pending → cancelled, T-3 Do it: changed"
    );
    has_the_newest(&scratch);
}

#[test]
fn what_git_does_on_other_branches_does_not_touch_the_board() {
    let scratch = held();
    scratch.run("tavern-commit", &[]).ends(0);
    scratch.git(&["branch", "old", "main~1"]);
    scratch.write("README.md", "more\n");
    scratch.commit(&["README.md"], "More");
    let before = scratch.queue();
    for line in [
        "git switch -q -c other && git switch -q main",
        "git switch -q old && git switch -q main",
        "echo x >>README.md && git stash -q && git stash pop -q",
        "git reset -q --hard && git clean -qfd",
        "git checkout -q . && git rebase -q old",
        "git checkout -q --detach && git checkout -q main",
    ] {
        scratch
            .command("sh".as_ref())
            .args(&["-ec", line])
            .run()
            .ends(0);
        assert_eq!(scratch.queue(), before, "{line}");
        scratch.stands("T-1", "in_progress", 1);
    }
}

#[test]
fn what_a_clean_up_takes_away_is_back_at_the_next_command() {
    for is_config_committed in [true, false] {
        for line in [
            "tavern-status",
            "tavern-check",
            "tavern-log",
            "tavern-add More --id T-9",
            "tavern-claim --task T-2",
            "tavern-drain --dry-run",
        ] {
            let scratch = held();
            if !is_config_committed {
                scratch.git(&["reset", "-q", "--soft", "HEAD~1"]);
                scratch.git(&["rm", "-q", "--cached", CONFIG, ".tavern/.gitignore"]);
            }
            scratch.write(
                ".tavern/knowledge/K-1.md",
                "---\nid: K-1\n---\nUse the other door.\n",
            );
            scratch.run("tavern-commit", &[]).ends(0);
            let (queue, config) = (scratch.queue(), scratch.read(CONFIG));
            scratch.git(&["clean", "-qfdx"]);
            assert!(!scratch.work().join(QUEUE).exists());
            let ran = scratch.line(line).run();
            if line.contains("--dry-run") {
                scratch.run("tavern-status", &[]).ends(0);
            } else {
                has(&ran.stderr, &["was missing; its queues were restored"]);
            }
            if ["tavern-status", "tavern-check", "tavern-log"].contains(&line) {
                assert_eq!(scratch.queue(), queue, "{line}: {ran}");
            }
            scratch.stands("T-1", "in_progress", 1);
            assert_eq!(scratch.read(CONFIG), config, "{line}");
            has(
                &scratch.read(".tavern/knowledge/K-1.md"),
                &["the other door"],
            );
        }
    }
}

#[test]
fn what_a_clean_up_takes_away_of_a_board_whose_items_have_ended_is_back_too() {
    for is_config_committed in [true, false] {
        let scratch = board();
        if !is_config_committed {
            scratch.git(&["reset", "-q", "--soft", "HEAD~1"]);
            scratch.git(&["rm", "-q", "--cached", CONFIG, ".tavern/.gitignore"]);
        }
        scratch.run("tavern-drain", &[]).ends(0);
        let queue = scratch.queue();
        scratch.git(&["clean", "-qfdx"]);
        scratch
            .run("tavern-status", &[])
            .ends(0)
            .says("was missing; its queues were restored");
        assert_eq!(scratch.queue(), queue);
    }
}

/// The remote of a clone has the branch, and nobody here has read what stands there.
#[test]
fn a_clone_takes_the_board_up_and_trusts_none_of_it() {
    let first = board();
    first.run("tavern-drain", &["--max-items", "1"]);
    first.run("tavern-commit", &[]);
    let clone = Scratch::empty();
    let origin = first.work().display().to_string();
    clone.git(&["clone", "--quiet", &origin, "."]);
    clone
        .run("tavern-status", &[])
        .says("restore them: tavern init");
    clone
        .run("tavern-init", &[])
        .ends(0)
        .says("written .tavern/queues/main.md")
        .says("restored from the branch tavern/board");
    assert_eq!(clone.queue(), first.queue());
    clone.run("tavern-claim", &["--agent", "Sam"]).says("trust");
    clone.run("tavern-add", &["My own", "--id", "T-9"]).ends(0);
    clone
        .run("tavern-status", &["--items"])
        .says("untrusted changes from git");
    clone.run("tavern-trust", &["--yes"]).ends(0);
    clone.run("tavern-claim", &["--agent", "Sam"]).ends(0);
    clone.run("tavern-commit", &[]).ends(0);
    has_the_newest(&clone);
    // It goes on where the other ended.
    clone.git(&["merge-base", "--is-ancestor", "origin/tavern/board", BOARD]);
}

#[test]
fn what_is_pushed_and_fetched_again_stays_its_authors() {
    let scratch = board();
    scratch.git(&["init", "--quiet", "--bare", "../hub.git"]);
    scratch.git(&["remote", "add", "origin", "../hub.git"]);
    scratch.run("tavern-commit", &[]).ends(0);
    scratch.git(&["push", "--quiet", "origin", BOARD]);
    scratch.git(&["fetch", "--quiet"]);
    scratch.run("tavern-add", &["More", "--id", "T-9"]).ends(0);
    scratch.run("tavern-claim", &["--agent", "Sam"]).ends(0);
}

#[test]
fn a_board_that_git_tracks_is_told_with_what_moves_it() {
    let scratch = board().tracked();
    scratch.commit(&["--all"], "Board");
    scratch
        .run("tavern-check", &[])
        .says_not("git tracks the queues");
    // As boards were before.
    let ignored = scratch.read(".tavern/.gitignore");
    let own = |line: &&str| !line.contains("queues") && !line.contains("knowledge");
    let before: String = ignored
        .lines()
        .filter(own)
        .map(|line| format!("{line}\n"))
        .collect();
    scratch.write(".tavern/.gitignore", before);
    scratch.run("tavern-init", &[]).ends(0);
    let told = scratch
        .run("tavern-check", &[])
        .says("git tracks the queues");
    let hint = told.stdout.lines().find(|line| line.contains("git rm -r"));
    let hint = hint.unwrap_or_else(|| panic!("{told}"));
    let (_, commands) = hint.split_once("of their own: ").expect("the commands");
    let (commands, _) = commands.split_once(" (").expect("what else");
    let program = crate::support::program("tavern").display().to_string();
    let line = commands.replace("tavern init", &format!("{program} init"));
    let sh = scratch.command("sh".as_ref()).args(&["-ec", &line]).run();
    sh.ends(0);
    scratch
        .run("tavern-check", &[])
        .says_not("git tracks the queues");
    scratch.git(&["commit", "--quiet", "--all", "--message=Move"]);
    let queue = scratch.queue();
    scratch.git(&["switch", "--quiet", "-c", "other"]);
    scratch.git(&["switch", "--quiet", "main"]);
    assert_eq!(scratch.queue(), queue);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    fs::remove_dir_all(scratch.work().join(".tavern/queues")).expect("it is there");
    scratch.run("tavern-status", &[]).ends(0);
    assert_eq!(scratch.queue(), queue);
}

#[test]
fn a_branch_of_an_agent_smuggles_no_change_of_the_board_in() {
    let scratch = board().tracked();
    scratch.commit(&["--all"], "Board");
    let script = "echo x > x.txt; echo '- [x] T-3: Do T-3' > .tavern/queues/main.md; echo hi > .tavern/new.md; \
                  rm .tavern/config.yaml; git add --all; git commit --quiet --message=Smuggled";
    scratch.write(
        QUEUE,
        format!("- [ ] T-1: Smuggle\n  ```sh\n  {script}\n  ```\n"),
    );
    scratch.git(&["commit", "--quiet", "--all", "--message=Item"]);
    scratch.run("tavern-agent", &["--until-empty"]).succeeds();
    let changed = scratch.git(&["diff", "--name-only", "main", "tavern/integration"]);
    assert_eq!(changed, "x.txt");
    assert!(scratch.queue().contains("- [x] T-1: Smuggle"));
    let log = scratch.run("tavern-log", &["--format", "json"]).succeeds();
    wait_until("the violation is told", || {
        log.contains("violation: its branch changed")
    });
    has(&log, &[QUEUE, ".tavern/new.md", CONFIG]);
}
