//! `commit:` in config.yaml: the queues are committed after transitions or drains, and nothing else is touched.

use std::fs;

use crate::support::{CONFIG, QUEUE, Scratch, has, item, wait_until};

/// A board that git knows, with three items, and this setting.
fn board(commit: &str) -> Scratch {
    let queue = format!(
        "## Pending\n\n{}\n## Completed\n",
        [item("T-1", ""), item("T-2", ""), item("T-3", "")].concat()
    );
    let scratch = Scratch::shell(&queue, &format!("base: main\ncommit: {commit}\n"));
    scratch.commit(&["--all"], "Board");
    scratch
}

/// The subjects of the branch's commits since the board, the oldest first.
fn subjects(scratch: &Scratch, branch: &str) -> Vec<String> {
    let log = scratch.git(&["log", "--first-parent", "--reverse", "--format=%s", branch]);
    log.lines()
        .skip_while(|line| *line != "Board")
        .skip(1)
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_transition_is_a_commit_of_the_queues_alone() {
    let scratch = board("transition");
    // Staged, changed and new: all of it somebody's, and none of it Tavern's.
    scratch.write("README.md", "staged\n");
    scratch.git(&["add", "README.md"]);
    scratch.write("README.md", "staged, then changed\n");
    scratch.write("new.txt", "new\n");
    scratch.git(&["config", "user.name", "Sam Gamgee"]);
    scratch.git(&["config", "user.email", "sam@example.org"]);
    // A hook of the user's would say no; it is not asked.
    scratch.executable(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ntouch hook-ran\nexit 1\n",
    );
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Sam"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-add", &["One more", "--id", "T-4"])
        .succeeds();
    scratch.run("tavern-status", &[]).succeeds();
    assert_eq!(
        subjects(&scratch, "main"),
        [
            "tavern: T-1 pending → in_progress",
            "tavern: T-2 pending → cancelled",
            "tavern: T-4 added"
        ]
    );
    assert_eq!(
        scratch.git(&["diff", "--name-only", "HEAD~3", "HEAD"]),
        QUEUE
    );
    assert_eq!(
        scratch.git(&["status", "--porcelain"]),
        "MM README.md\n?? new.txt"
    );
    assert_eq!(scratch.git(&["show", ":README.md"]), "staged");
    // git's own order: the environment goes before the repository's settings.
    assert_eq!(scratch.git(&["log", "-1", "--format=%an"]), "Rosie");
}

/// Not only transitions: whatever the queues say is committed, and the message tells what it was.
#[test]
fn what_was_typed_added_or_taken_out_is_committed_too() {
    let scratch = board("never");
    scratch.settle();
    let committed = |change: &dyn Fn(String) -> String| {
        scratch.write(QUEUE, change(scratch.queue()));
        scratch.run("tavern-commit", &[]).succeeds();
        assert_eq!(scratch.git(&["status", "--porcelain"]), "");
        scratch.git(&["log", "-1", "--format=%s"])
    };
    assert_eq!(
        committed(&|text| format!("Words.\n\n{text}")),
        "tavern: main changed"
    );
    assert_eq!(
        committed(&|text| text.replace(&item("T-2", ""), "")),
        "tavern: T-2 removed"
    );
    assert_eq!(
        committed(&|text| text.replace("## Completed", "- [ ] New\n\n## Completed")),
        "tavern: main changed"
    );
    let swapped = |text: String| {
        text.replace(&item("T-3", ""), "").replace(
            "## Pending\n\n",
            &format!("## Pending\n\n{}", item("T-3", "")),
        )
    };
    assert_eq!(committed(&swapped), "tavern: the queues");
    let before = scratch.git(&["rev-parse", "HEAD"]);
    scratch.run("tavern-commit", &[]).succeeds();
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn by_default_nothing_is_committed() {
    let scratch = board("never");
    scratch.run("tavern-agent", &["--until-empty"]).succeeds();
    assert_eq!(subjects(&scratch, "main"), Vec::<String>::new());
    assert_eq!(
        scratch.git(&["status", "--porcelain"]),
        format!(" M {QUEUE}")
    );
}

#[test]
fn a_half_done_merge_is_left_alone_and_the_commit_is_made_up_for() {
    let scratch = board("transition");
    for (branch, text) in [("theirs", "theirs\n"), ("ours", "ours\n")] {
        scratch.git(&["switch", "--quiet", "--create", branch, "main"]);
        scratch.write("README.md", text);
        scratch.git(&["commit", "--quiet", "--all", "--message=README"]);
    }
    scratch
        .command("git".as_ref())
        .args(&["merge", "theirs"])
        .run()
        .ends(1);
    let state = |scratch: &Scratch| {
        let head = scratch.git(&["rev-parse", "HEAD", "MERGE_HEAD"]);
        (
            head,
            scratch.git(&["ls-files", "--stage"]),
            scratch.read("README.md"),
            scratch.read(".git/MERGE_MSG"),
        )
    };
    let before = state(&scratch);
    let first = scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Sam"])
        .ends(0);
    first
        .says("the queues are not committed for now: ")
        .says("merge");
    // Said once.
    let second = scratch.run("tavern-release", &["T-2", "--cancel"]);
    assert_eq!(
        (second.code, second.stderr.as_str()),
        (Some(0), ""),
        "{second}"
    );
    assert_eq!(state(&scratch), before);

    scratch.write("README.md", "both\n");
    scratch.commit(&["README.md"], "Merged");
    assert_eq!(
        scratch.git(&["status", "--porcelain"]),
        format!(" M {QUEUE}")
    );
    scratch
        .run("tavern-add", &["One more", "--id", "T-4"])
        .succeeds();
    assert_eq!(
        subjects(&scratch, "ours").last().map(String::as_str),
        Some("tavern: T-1 pending → in_progress, T-2 pending → cancelled, T-4 added")
    );
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn no_state_of_the_checkout_fails_a_transition() {
    let scratch = board("transition");
    let main = scratch.git(&["rev-parse", "main"]);
    let claim = |task: &str| scratch.run("tavern-claim", &["--task", task, "--agent", "Sam"]);
    // On no branch.
    scratch.git(&["switch", "--quiet", "--detach"]);
    claim("T-1").ends(0).says("on no branch");
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), main);
    // A git that died, or takes for ever.
    scratch.git(&["switch", "--quiet", "main"]);
    for (task, lock) in [("T-2", "index.lock"), ("T-3", "refs/heads/main.lock")] {
        let file = scratch.write(format!(".git/{lock}"), "");
        claim(task).ends(0).says(lock);
        fs::remove_file(file).expect("nobody else has removed it");
        assert_eq!(scratch.git(&["rev-parse", "HEAD"]), main);
    }
    // No git at all.
    scratch
        .program("tavern-add")
        .args(&["Without git"])
        .variable("PATH", "/nowhere")
        .run()
        .ends(0);
    scratch.run("tavern-add", &["One more"]).succeeds();
    assert_eq!(subjects(&scratch, "main").len(), 1);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn agents_side_by_side_lose_no_commit() {
    let scratch = board("transition");
    let items: String = (1..=12)
        .map(|number| item(&format!("T-{number}"), ""))
        .collect();
    scratch.write(
        QUEUE,
        format!("## Pending\n\n{items}\n## In Progress\n\n## Completed\n"),
    );
    scratch.git(&["commit", "--quiet", "--all", "--message=Board"]);
    scratch.write("README.md", "staged\n");
    scratch.git(&["add", "README.md"]);
    scratch
        .run("tavern-drain", &["--agents", "4"])
        .ends(0)
        .says_not("not committed");
    // Each transition is told once, in the first line or below, whoever made the commit.
    let told = scratch.git(&["log", "--first-parent", "--format=%B", "main"]);
    for number in 1..=12 {
        for status in ["in_progress", "completed"] {
            let words = told
                .lines()
                .flat_map(|line| line.trim_start_matches("tavern: ").split(", "));
            let is_told = |word: &&str| {
                word.starts_with(&format!("T-{number} ")) && word.contains(&format!("→ {status}"))
            };
            assert_eq!(
                words.filter(is_told).count(),
                1,
                "T-{number} {status}\n{told}"
            );
        }
    }
    assert_eq!(scratch.git(&["status", "--porcelain"]), "M  README.md");
    // The branches of agents began before these commits: that is no change of theirs.
    scratch
        .run("tavern-log", &["--format", "json"])
        .ends(0)
        .says_not("violation");
}

#[test]
fn a_drain_is_one_commit_at_its_end() {
    let scratch = board("drain");
    scratch
        .run(
            "tavern-add",
            &[
                "One more",
                "--id",
                "T-4",
                "--description",
                "```sh\necho 4 > 4.txt\n```",
            ],
        )
        .succeeds();
    assert_eq!(subjects(&scratch, "main"), Vec::<String>::new());
    scratch.write(
        "TODO.md",
        "- [ ] T-9: Count\n  ```sh\n  echo 9 > 9.txt\n  ```\n",
    );
    scratch.git(&["add", "TODO.md"]);
    scratch.git(&["commit", "--quiet", "--message=List", "TODO.md"]);
    scratch
        .run("tavern-drain", &["main", "TODO.md", "--agents", "2"])
        .succeeds();
    assert_eq!(subjects(&scratch, "main"), ["List", "tavern: 5 items"]);
    has(
        &scratch.git(&["log", "-1", "--format=%b", "main"]),
        &["T-9 pending → in_progress → approved → completed"],
    );
    assert_eq!(
        scratch.git(&["diff", "--name-only", "HEAD~1", "HEAD"]),
        format!("{QUEUE}\nTODO.md")
    );
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_branch_of_an_agent_smuggles_no_change_of_the_board_in() {
    let scratch = board("never");
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
