//! Repositories within a worktree: what a run commits there is kept where git finds it, and what it leaves uncommitted there is no
//! "done".

use std::path::Path;

use crate::support::{AT_ONCE, Scratch};

/// How an agent gets its submodule.
const INIT: &str = "git -c protocol.file.allow=always submodule update --init --quiet";

/// A repository with the submodule `lib`, whose only commit has `lib.txt`, and an item for each of these scripts.
fn board(scripts: &[&str]) -> Scratch {
    let scratch = beside(scripts);
    sh(
        &scratch,
        "git -c protocol.file.allow=always submodule --quiet add \"$HOME/lib\" lib && git commit -qm 'With a library'",
    );
    scratch
}

/// The same without the submodule.
fn beside(scripts: &[&str]) -> Scratch {
    let item = |(number, script): (usize, &&str)| {
        let lines = script.replace("INIT", INIT).replace('\n', "\n  ");
        format!("- [ ] T-{}: Do it\n  ```sh\n  {lines}\n  ```\n", number + 1)
    };
    let queue: String = scripts.iter().enumerate().map(item).collect();
    let scratch = Scratch::shell(&queue, &format!("base: main\nmax_attempts: 1\n{AT_ONCE}"));
    sh(
        &scratch,
        "git init -q -b main ../home/lib && cd ../home/lib && echo 1 >lib.txt && git add lib.txt && git commit -qm Lib",
    );
    scratch
}

fn sh(scratch: &Scratch, line: &str) -> String {
    let ran = scratch.command(Path::new("sh")).args(&["-c", line]).run();
    ran.succeeds()
}

fn work(scratch: &Scratch) {
    scratch.run("tavern-agent", &["--until-empty", "--name", "Frodo"]);
    assert_eq!(sh(scratch, "ls .tavern/worktrees"), "");
}

#[test]
fn a_commit_in_a_submodule_is_there_when_its_worktree_is_gone() {
    for script in [
        "INIT\n(cd lib && echo 2 >lib.txt && git commit -qam Two)\ngit add lib\ngit commit -qm Outer",
        // Nobody but the end of its run commits the link.
        "INIT\n(cd lib && git checkout -q -b own && echo 3 >three.txt && git add . && git commit -qm Two)",
    ] {
        let scratch = board(&[script]);
        work(&scratch);
        let log = scratch.run("tavern-log", &[]).succeeds();
        assert_eq!(scratch.item("T-1")["status"], "completed", "{log}");
        assert!(log.contains("in the submodule `lib`"), "{log}");
        // As its owner goes on.
        let line = "git merge -q tavern/integration && git -c protocol.file.allow=never submodule update --quiet";
        sh(&scratch, line);
        assert_eq!(
            sh(&scratch, "git -C lib rev-parse HEAD"),
            sh(&scratch, "git rev-parse tavern/integration:lib")
        );
        assert_eq!(sh(&scratch, "git -C lib log -1 --format=%s"), "Two\n");
    }
}

#[test]
fn a_commit_that_its_owner_would_have_nowhere_is_not_merged() {
    let two =
        "(cd lib && echo 2 >lib.txt && git commit -qam Two)\ngit add lib\ngit commit -qm Outer";
    let add = "git -c protocol.file.allow=always submodule --quiet add \"$HOME/lib\" lib";
    let inner = "git init -q inner\n(cd inner && echo 1 >in.txt && git add . && git commit -qm First)\ngit add inner 2>/dev/null\ngit commit -qm Inner";
    let known = board(&[&format!("INIT\n{two}")]);
    // As after a plain `git clone`.
    sh(
        &known,
        "git submodule --quiet deinit --force lib && rm -r .git/modules/lib",
    );
    let new = beside(&[&format!("{add}\n{two}")]);
    let bundle = ".tavern/runs/T-1@1/submodules/inner.git.bundle";
    for (scratch, place, way) in [
        (known, "lib", "git submodule update --init lib"),
        (new, "lib", "git clone --quiet \"$HOME/lib\" lib"),
        (
            beside(&[inner]),
            "inner",
            &*format!("git clone --quiet {bundle} inner"),
        ),
    ] {
        scratch.run("tavern-agent", &["--until-empty", "--name", "Frodo"]);
        let item = scratch.item("T-1");
        assert_eq!(item["status"], "approved", "{item}");
        let refused = scratch.run("tavern-merge", &["T-1"]);
        assert_eq!(refused.code, Some(4), "{refused}");
        let submodule = format!("the submodule {place}, ");
        let hint = format!(
            "git submodule update --init {place}; or, where it is new, clone its remote to there, or "
        );
        for told in [&submodule, &hint] {
            assert!(refused.stdout.contains(told), "{told}: {refused}");
        }
        assert!(!scratch.merged().contains("inner"));
        // Told once.
        let log = scratch.run("tavern-log", &[]).succeeds();
        assert_eq!(log.matches("are on no remote of that").count(), 1, "{log}");
        sh(
            &scratch,
            &way.replace("git ", "git -c protocol.file.allow=always "),
        );
        scratch.run("tavern-merge", &["T-1"]).succeeds();
        assert_eq!(scratch.item("T-1")["status"], "completed");
        assert_eq!(sh(&scratch, "ls .tavern/worktrees"), "");
        let has = "cat-file -e $(git rev-parse tavern/integration";
        sh(&scratch, &format!("git -C {place} {has}:{place})"));
    }
}

#[test]
fn a_commit_that_is_on_a_remote_is_merged_whether_its_owner_has_it_or_not() {
    let scratch = board(&[
        "INIT\n(cd lib && echo 2 >lib.txt && git commit -qam Two && git push -q origin HEAD:refs/heads/two)\ngit add lib\ngit commit -qm Outer",
        "INIT\n(cd \"$HOME/lib\" && echo 3 >three.txt && git add . && git commit -qm Three)\n(cd lib && git fetch -q && git checkout -q origin/main)\ngit add lib\ngit commit -qm Newer",
    ]);
    sh(
        &scratch,
        "git submodule --quiet deinit --force lib && rm -r .git/modules/lib",
    );
    work(&scratch);
    for id in ["T-1", "T-2"] {
        let item = scratch.item(id);
        assert_eq!(item["status"], "completed", "{item}");
    }
}

/// Repositories in a folder that git ignores.
const IGNORED: &str = "echo build >>.gitignore\ngit add .gitignore\ngit commit -qm Ignore\nmkdir -p build/deep\ncd build\n\
    git clone -q \"$HOME/lib\" whole\ngit clone -q --depth 1 --branch v1 \"file://$HOME/lib\" tagged 2>/dev/null\n\
    git clone -q \"$HOME/lib\" deep/own\n(cd deep/own && echo own >own.txt && git add . && git commit -qm Own)\n\
    git init -q made\n(cd made && echo 1 >in.txt && git add . && git commit -qm First)";

#[test]
fn what_is_committed_in_repositories_in_ignored_folders_is_kept() {
    let scratch = board(&[IGNORED]);
    // A release that is on no branch any more.
    sh(
        &scratch,
        "cd ../home/lib && git checkout -q --detach && echo v1 >v1.txt && git add . && git commit -qm V1 && git tag v1 && git checkout -q main",
    );
    work(&scratch);
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert_eq!(scratch.item("T-1")["status"], "completed", "{log}");
    assert_eq!(
        sh(&scratch, "ls .tavern/runs/T-1@1/submodules"),
        "build%2Fdeep%2Fown.git.bundle\nbuild%2Fmade.git.bundle\n"
    );
    for name in ["build/deep/own", "build/made"] {
        assert!(
            log.contains(&format!("in the repository `{name}`")),
            "{log}"
        );
    }
    sh(
        &scratch,
        "git clone -q .tavern/runs/T-1@1/submodules/build%2Fmade.git.bundle ../home/made",
    );
    assert_eq!(
        sh(&scratch, "git -C ../home/made log --format=%s"),
        "First\n"
    );
}

#[test]
fn what_is_left_uncommitted_in_a_submodule_is_not_done() {
    let scratch = board(&[
        "INIT\necho 2 >lib/lib.txt\necho outer >outer.txt",
        "INIT\necho new >lib/new.txt",
    ]);
    work(&scratch);
    for (id, path, text) in [("T-1", "lib/lib.txt", "2"), ("T-2", "lib/new.txt", "new")] {
        let item = scratch.item(id);
        assert_eq!(item["status"], "dead", "{item}");
        let reason = item["reason"].as_str().unwrap_or_default();
        assert!(
            reason.contains("uncommitted in the submodule `lib`"),
            "{reason}"
        );
        let kept = item["kept"][0].as_str().unwrap_or_default().to_owned();
        let kept = if kept.is_empty() {
            format!(
                "refs/tavern/salvage/{id}/{}",
                if id == "T-1" { 1 } else { 2 }
            )
        } else {
            kept
        };
        assert_eq!(scratch.git(&["show", &format!("{kept}:{path}")]), text);
    }
}

#[test]
fn what_the_set_up_left_there_is_not_the_agents() {
    let scratch = board(&["echo 1 >one.txt", "echo 2 >lib/made.txt\necho 2 >two.txt"]);
    let config = scratch.read(".tavern/config.yaml");
    scratch.write(
        ".tavern/config.yaml",
        format!("{config}worktree: {{setup: '{INIT} && echo made >lib/made.txt'}}\n"),
    );
    work(&scratch);
    assert_eq!(scratch.item("T-1")["status"], "completed");
    assert_eq!(
        scratch.merged(),
        ".gitmodules\nREADME.md\nlib\none.txt\ntwo.txt"
    );
}

#[test]
fn a_repository_that_an_agent_made_is_kept_with_its_history() {
    let scratch = board(&[
        "git init -q inner\n(cd inner && echo 1 >in.txt && git add . && git commit -qm First && echo 2 >in.txt && git commit -qam Second && echo 3 >in.txt)\necho 1 >one.txt",
        "git init -q only\n(cd only && echo 1 >in.txt && git add . && git commit -qm First)",
    ]);
    work(&scratch);
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert_eq!(scratch.item("T-1")["status"], "completed", "{log}");
    // A commit can't hold it, so it is not merged, and that is told.
    assert_eq!(scratch.merged(), ".gitmodules\nREADME.md\nlib\none.txt");
    for (id, name) in [("T-1", "inner"), ("T-2", "only")] {
        assert!(log.contains(&format!("`{name}`")), "{log}");
        let bundle = sh(
            &scratch,
            &format!("ls .tavern/runs/{id}@*/submodules/*.bundle"),
        );
        sh(
            &scratch,
            &format!("git clone -q {} ../home/{name}", bundle.trim()),
        );
    }
    assert_eq!(
        sh(&scratch, "git -C ../home/inner log --format=%s"),
        "Second\nFirst\n"
    );
    assert_eq!(
        sh(&scratch, "git show refs/tavern/salvage/T-1/1:inner/in.txt"),
        "3\n"
    );
    let item = scratch.item("T-2");
    assert_eq!(item["status"], "dead", "{item}");
    assert!(
        item["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("`only`")),
        "{item}"
    );
}

#[test]
fn a_stash_within_is_kept() {
    let scratch = board(&[
        "INIT\n(cd lib && echo 2 >>lib.txt && git stash -q && echo 3 >>lib.txt && git stash -q)\necho 1 >one.txt",
    ]);
    work(&scratch);
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert_eq!(scratch.item("T-1")["status"], "completed", "{log}");
    let heads = sh(
        &scratch,
        "git bundle list-heads .tavern/runs/T-1@*/submodules/*.bundle",
    );
    assert!(heads.contains("refs/stash"), "{heads}");
    // The older one, too.
    let kept = "git -C lib fetch -q \"$PWD\"/.tavern/runs/T-1@*/submodules/lib.bundle refs/stash && git -C lib fsck --lost-found 2>/dev/null | wc -l";
    assert_eq!(sh(&scratch, kept).trim(), "1");
}
