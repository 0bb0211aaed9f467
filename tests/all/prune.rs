//! What is left when an item has ended: its branch goes when it is merged, and its runs when they are old or too many.

use crate::support::{CONFIG, QUEUE, Scratch};

/// T-1 is merged, T-2 has died with a commit of its own, T-3 has left files that are nowhere else.
fn worked(config: &str) -> Scratch {
    let scratch = Scratch::initialized();
    let change = "echo $TAVERN_TASK >$TAVERN_TASK.txt; git add .; git commit -qm Work";
    let item = |id: &str, notes: &str, script: &str| {
        format!("- [ ] {id}: Work{notes}\n  ```sh\n  {script}\n  ```\n")
    };
    let items = [
        item("T-1", "", change),
        item("T-2", "", &format!("{change}; exit 1")),
        item("T-3", " (worktree: false)", "echo precious >text"),
    ];
    scratch.write(QUEUE, items.concat());
    scratch.write(CONFIG, format!("max_attempts: 1\n{config}"));
    scratch.run("tavern-agent", &["--until-empty"]).succeeds();
    scratch
}

fn branches(scratch: &Scratch) -> String {
    scratch.git(&[
        "for-each-ref",
        "--format=%(refname:short)",
        "--exclude=refs/heads/tavern/board",
        "refs/heads/tavern/",
    ])
}

#[test]
fn the_branch_of_an_item_is_deleted_when_it_is_merged_and_kept_while_it_is_not() {
    let scratch = worked("");
    assert_eq!(branches(&scratch), "tavern/T-2\ntavern/integration");
    assert_eq!(scratch.git(&["show", "tavern/integration:T-1.txt"]), "T-1");

    // One of an item that was given up with nothing of its own, and one that is checked out elsewhere.
    scratch.write(QUEUE, scratch.queue() + "- [ ] T-4: No\n- [ ] T-5: No\n");
    scratch.git(&["branch", "tavern/T-4", "tavern/integration"]);
    scratch.git(&["branch", "tavern/T-5", "tavern/integration"]);
    scratch.git(&["branch", "tavern/mine", "tavern/integration"]);
    scratch.git(&["worktree", "add", "--quiet", "../elsewhere", "tavern/T-5"]);
    scratch
        .run("tavern-release", &["T-4", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-5", "--cancel"])
        .succeeds();
    let told = "delete the branch tavern/T-4 of T-4, which is merged\n";
    assert_eq!(scratch.run("tavern-reap", &["--dry-run"]).succeeds(), told);
    assert_eq!(scratch.run("tavern-reap", &[]).succeeds(), told);
    assert_eq!(
        branches(&scratch),
        "tavern/T-2\ntavern/T-5\ntavern/integration\ntavern/mine"
    );
}

#[test]
fn work_that_came_to_the_same_as_others_is_merged_and_cleared_up() {
    let item = |id: &str| format!("- [ ] {id}: Say it\n  ```sh\n  echo same >same.txt\n  ```\n");
    let scratch = Scratch::pending(&[item("T-1"), item("T-2")].concat());
    // Both have begun before one is merged.
    let tokens = ["T-1", "T-2"].map(|id| scratch.claim(id, &["--runner", "shell"]));
    for (id, token) in ["T-1", "T-2"].iter().zip(&tokens) {
        scratch.run("tavern-spawn", &[id, "--token", token]).ends(0);
        scratch
            .run("tavern-report", &[id, "--token", token])
            .ends(0);
    }
    let merged = scratch.run("tavern-merge", &[]).succeeds();
    assert_eq!(merged.lines().count(), 2, "{merged}");
    assert_eq!(branches(&scratch), "tavern/integration");
    let subjects = scratch.git(&[
        "log",
        "--first-parent",
        "--format=%s",
        "main..tavern/integration",
    ]);
    assert_eq!(subjects, "T-2: Say it\nT-1: Say it");
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says_not("is kept at");
}

#[test]
fn runs_whose_work_is_merged_are_removed_when_they_are_old_or_too_many() {
    for (config, later) in [
        ("runs: {keep: 1d, size: 0}\n", "+172800"),
        ("runs: {keep: 0, size: 1}\n", "+0"),
    ] {
        let scratch = worked(config);
        let reap = |arguments: &[&str]| scratch.at(later, "tavern-reap", arguments).succeeds();
        let told = "remove the files of run T-1@1, of which nothing is left to be merged\n";
        // The agent cleared up at its end: where only room counts, that was then.
        if later == "+0" {
            assert!(!scratch.work().join(".tavern/runs/T-1@1").exists());
        } else {
            assert_eq!(
                (reap(&["--dry-run"]), reap(&[])),
                (told.to_owned(), told.to_owned())
            );
        }
        let runs = scratch.run("tavern-runs", &["list"]).succeeds();
        let kept: Vec<&str> = runs
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert!(
            kept.len() == 2 && kept[0].starts_with("T-2@") && kept[1].starts_with("T-3@"),
            "{config}: {runs}"
        );
        assert_eq!(reap(&[]), "");
    }
}

#[test]
fn a_run_that_was_half_removed_is_not_listed_and_goes() {
    let scratch = worked("");
    let runs = scratch.work().join(".tavern/runs");
    let run = scratch.run("tavern-runs", &["list", "T-1"]).succeeds();
    let run = run
        .split_whitespace()
        .next()
        .expect("it has run")
        .to_owned();
    std::fs::rename(runs.join(&run), runs.join(format!(".tavern-{run}"))).expect("it is there");
    assert!(
        !scratch
            .run("tavern-runs", &["list"])
            .succeeds()
            .contains("T-1@")
    );
    scratch.at("+3600", "tavern-reap", &[]).succeeds();
    assert!(!runs.join(format!(".tavern-{run}")).exists());
}

/// As files that an agent leaves where it needs no repository, or a log that it has made look long.
#[test]
fn a_file_counts_for_what_it_takes_of_the_disk() {
    let scratch = worked("runs: {keep: 0, size: 1GiB}\n");
    let run = scratch.run("tavern-runs", &["list", "T-3"]).succeeds();
    let run = run
        .split_whitespace()
        .next()
        .expect("it has run")
        .to_owned();
    let sparse = scratch.write(format!(".tavern/runs/{run}/files/sparse"), "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(sparse)
        .and_then(|file| file.set_len(2 << 30))
        .expect("it is ours");
    assert_eq!(scratch.run("tavern-reap", &[]).succeeds(), "");
    assert!(
        scratch
            .run("tavern-runs", &["list"])
            .succeeds()
            .contains("T-1@")
    );
}

#[test]
fn the_run_of_work_that_is_salvaged_alone_stays() {
    let item = |id: &str, script: &str| format!("- [ ] {id}: Work\n  ```sh\n  {script}\n  ```\n");
    let items = [
        item("T-1", "echo precious >text; exit 1"),
        item("T-2", "exit 1"),
    ];
    let scratch = Scratch::shell(&items.concat(), "max_attempts: 1\nruns: {keep: 1d}\n");
    scratch.run("tavern-agent", &["--until-empty"]).succeeds();
    assert_eq!(
        scratch.git(&["show", "refs/tavern/salvage/T-1/1:text"]),
        "precious"
    );
    let told = scratch.at("+172800", "tavern-reap", &[]).succeeds();
    assert!(
        told.starts_with("remove the files of run T-2@") && told.lines().count() == 1,
        "{told}"
    );
    assert!(
        scratch
            .run("tavern-runs", &["list"])
            .succeeds()
            .contains("T-1@1")
    );
}
