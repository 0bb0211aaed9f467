//! What git shares between worktrees (stash, branches, tags, notes, settings, hooks, clean-up) is the owner's: nothing that a run does with
//! git reaches it, and what the run made there is kept.

use std::path::Path;

use crate::support::{AT_ONCE, Scratch, wait_until};

/// Agents work on these scripts, an item each.
fn board(scripts: &[&str]) -> Scratch {
    let item = |(number, script): (usize, &&str)| {
        let lines = script.replace('\n', "\n  ");
        format!("- [ ] T-{}: Do it\n  ```sh\n  {lines}\n  ```\n", number + 1)
    };
    let queue: String = scripts.iter().enumerate().map(item).collect();
    let scratch = Scratch::shell(&queue, &format!("base: main\nmax_attempts: 1\n{AT_ONCE}"));
    scratch.write("a.txt", "one\ntwo\nthree\n");
    scratch.write("b.txt", "one\n");
    scratch.commit(&["."], "Files");
    scratch
}

fn work(scratch: &Scratch) -> String {
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .stdout
}

fn sh(scratch: &Scratch, line: &str) -> String {
    let ran = scratch.command(Path::new("sh")).args(&["-c", line]).run();
    ran.succeeds()
}

fn shown(scratch: &Scratch, path: &str) -> String {
    scratch.git(&["show", &format!("tavern/integration:{path}")])
}

/// All that is the owner's in `.git`, but what Tavern has there.
fn owners(scratch: &Scratch) -> String {
    sh(
        scratch,
        "git for-each-ref | grep -v tavern/; git stash list --format=%H; cat .git/config .git/info/exclude; \
         ls -l .git/hooks | grep -v sample; cat .git/hooks/pre-push; git diff -- . ':!.tavern'; git diff --cached; git status --short -- . ':!.tavern'",
    )
}

#[test]
fn the_owners_stash_is_neither_seen_nor_touched() {
    let scratch = board(&[
        "git stash\ngit stash pop || echo 1 >one.txt",
        "echo 2 >b.txt\ngit stash\ngit stash pop",
        "git stash apply || echo 3 >three.txt",
        "git stash drop || git stash clear\necho 4 >four.txt",
    ]);
    scratch.write("a.txt", "one\nmine\nthree\n");
    scratch.git(&["stash"]);
    scratch.write("a.txt", "one\nagain\nthree\n");
    scratch.write("new.txt", "untracked\n");
    scratch.git(&["stash", "--include-untracked"]);
    let before = owners(&scratch);
    let told = work(&scratch);
    assert_eq!(owners(&scratch), before);
    assert_eq!(
        scratch.merged(),
        ".tavern\nREADME.md\na.txt\nb.txt\nfour.txt\none.txt\nthree.txt",
        "{told}"
    );
    assert_eq!(shown(&scratch, "a.txt"), "one\ntwo\nthree");
    assert_eq!(shown(&scratch, "b.txt"), "2");
}

#[test]
fn runs_at_once_do_not_swap_their_stashes() {
    // Each waits with its work stashed until all three have done so.
    let script = |number: u32| {
        format!(
            "echo {number} >own-{number}.txt\ngit add .\ngit stash --quiet\ntouch ../../../stashed-{number}\n\
             for other in 1 2 3; do until test -e ../../../stashed-$other; do sleep 0.05; done; done\ngit stash pop --quiet"
        )
    };
    let scripts = [script(1), script(2), script(3)];
    let scratch = board(&scripts.each_ref().map(String::as_str));
    scratch.run("tavern-drain", &["--agents", "3"]).ends(0);
    for number in 1..=3 {
        let id = format!("T-{number}");
        let commit = scratch.item(&id)["commit"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let files = scratch.git(&["diff", "--name-only", &format!("{commit}^1"), &commit]);
        assert_eq!(files, format!("own-{number}.txt"), "{id}");
    }
}

#[test]
fn what_a_run_leaves_on_its_stash_is_kept_and_told() {
    let scratch = board(&["echo 1 >one.txt\necho 2 >b.txt\ngit stash push --quiet b.txt"]);
    work(&scratch);
    assert_eq!(scratch.item("T-1")["status"], "completed");
    scratch
        .run("tavern-log", &[])
        .ends(0)
        .says("its work on `stash` is kept at `refs/tavern/cells/T-1/stashed-");
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/tavern/cells"]);
    assert_eq!(scratch.git(&["show", &format!("{kept}:b.txt")]), "2");
    assert_eq!(scratch.git(&["stash", "list"]), "");
}

#[test]
fn references_settings_and_hooks_are_the_owners() {
    let scratch = board(&[
        "git tag new\ngit tag --delete v1\ngit tag --force v2 HEAD~1\ngit notes add --force --message=theirs\n\
         git branch topic\ngit branch --quiet --delete --force other\ngit config user.name Mallory\ngit config alias.x '!false'\n\
         common=$(git rev-parse --git-common-dir)\necho exit 1 >\"$common/hooks/pre-commit\"\nchmod +x \"$common/hooks/pre-commit\"\n\
         echo '*' >>\"$common/info/exclude\"\necho '* -text' >\"$common/info/attributes\"\necho 1 >one.txt\ngit add --force one.txt\n\
         git update-ref refs/heads/main HEAD~1\ngit commit --quiet --no-verify --message=One",
    ]);
    scratch.git(&["tag", "v1"]);
    scratch.git(&["tag", "v2"]);
    scratch.git(&["branch", "other"]);
    scratch.git(&["notes", "add", "--message=mine"]);
    scratch.executable(".git/hooks/pre-push", "#!/bin/sh\nexit 0\n");
    let before = owners(&scratch);
    let told = work(&scratch);
    assert_eq!(owners(&scratch), before, "{told}");
    assert_eq!(
        scratch.merged(),
        ".tavern\nREADME.md\na.txt\nb.txt\none.txt"
    );
    let log = scratch.run("tavern-log", &[]).succeeds();
    for name in ["tags/new", "tags/v2", "heads/topic", "notes/commits"] {
        let told = format!("its work on `{name}` is kept at `refs/tavern/cells/T-1/{name}`");
        assert!(log.contains(&told), "{told}\n{log}");
        scratch.git(&["rev-parse", &format!("refs/tavern/cells/T-1/{name}")]);
    }
    for what in [
        "the setting `user.name`",
        "the setting `alias.x`",
        "`.git/hooks/pre-commit`",
        "`.git/info/exclude`",
        "`.git/info/attributes`",
    ] {
        assert!(
            log.contains(&format!("it changed {what} in its run only")),
            "{what}\n{log}"
        );
    }
}

#[test]
fn hooks_of_the_owner_run_for_what_an_agent_commits() {
    let scratch = board(&["echo 1 >one.txt\ngit add .\ngit commit --quiet --message=One"]);
    scratch.executable(
        ".git/hooks/commit-msg",
        "#!/bin/sh\necho checked >>\"$1\"\n",
    );
    work(&scratch);
    let log = ["log", "-1", "--format=%B", "tavern/integration^2"];
    assert_eq!(scratch.git(&log), "One\nchecked");
}

#[test]
fn a_worktree_within_a_worktree_goes_and_its_work_is_kept() {
    let inner = "git worktree add --quiet -b sub .claude/worktrees/sub\n\
                 (cd .claude/worktrees/sub && echo 1 >sub.txt && git add . && git commit --quiet --message=Sub && echo 2 >left.txt)";
    let scratch = board(&[
        &format!("{inner}\necho 1 >one.txt"),
        &format!("{inner}\nexit 1"),
        "git worktree add --quiet --detach ../beside\necho 3 >three.txt",
    ]);
    work(&scratch);
    assert_eq!(scratch.item("T-1")["status"], "completed");
    assert_eq!(scratch.item("T-3")["status"], "completed");
    assert_eq!(
        scratch.merged(),
        ".tavern\nREADME.md\na.txt\nb.txt\none.txt\nthree.txt"
    );
    let log = scratch.run("tavern-log", &[]).succeeds();
    for id in ["T-1", "T-2"] {
        let kept = format!("refs/tavern/cells/{id}/worktrees/sub");
        assert!(log.contains(&kept), "{log}");
        assert_eq!(scratch.git(&["show", &format!("{kept}:sub.txt")]), "1");
        assert_eq!(scratch.git(&["show", &format!("{kept}:left.txt")]), "2");
        assert!(!scratch.work().join(".tavern/worktrees").join(id).exists());
    }
    assert_eq!(scratch.git(&["branch", "--list", "sub"]), "");
    scratch.run("tavern-reap", &[]).ends(0);
}

#[test]
fn a_clean_up_in_a_run_takes_nothing_from_others() {
    let scratch = board(&[
        "echo 1 >one.txt\ngit gc --quiet --prune=now\ngit add .\ngit commit --quiet --message=One\ngit gc --quiet --prune=now\ngit reflog expire --expire=now --all",
    ]);
    // Nothing names it, and its owner may want it back.
    scratch.write("lost.txt", "lost\n");
    let lost = scratch.git(&["hash-object", "-w", "lost.txt"]);
    std::fs::remove_file(scratch.work().join("lost.txt")).expect("it is ours");
    work(&scratch);
    assert_eq!(scratch.item("T-1")["status"], "completed");
    assert_eq!(scratch.git(&["cat-file", "-p", &lost]), "lost");
    assert_eq!(shown(&scratch, "one.txt"), "1");
    scratch.git(&["fsck", "--strict"]);
}

#[test]
fn killed_at_any_point_its_cell_is_taken_over_by_the_next() {
    let script = "echo 1 >one.txt\ngit add .\ngit commit --quiet --message=One\necho 2 >two.txt\ntest -e ../../../again || { touch ../../../again ../../../here; sleep 600; }";
    let scratch = board(&[script]);
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty", "--name", "Frodo"])
        .start();
    wait_until("it works", || scratch.work().join("here").exists());
    // Its owner can look.
    let log = sh(&scratch, "git -C .tavern/worktrees/T-1 log --format=%s");
    assert!(log.starts_with("One\n"), "{log}");
    scratch
        .run("tavern-diff", &["T-1"])
        .ends(0)
        .says("one.txt")
        .says("two.txt");
    agent.kill();
    scratch.run("tavern-reap", &[]).ends(0);
    work(&scratch);
    assert_eq!(scratch.item("T-1")["status"], "completed");
    assert_eq!(
        scratch.merged(),
        ".tavern\nREADME.md\na.txt\nb.txt\none.txt\ntwo.txt"
    );
    assert_eq!(
        sh(&scratch, "ls -A .git/tavern-cells .tavern/worktrees"),
        ".git/tavern-cells:\n\n.tavern/worktrees:\n"
    );
}

#[test]
fn commits_are_made_by_who_git_says_for_this_repository() {
    let scratch = board(&["echo 1 >one.txt"]);
    scratch.git(&["remote", "add", "origin", "https://work.example/team/it"]);
    scratch.write(
        "../home/gitconfig",
        "[user]\n\tname = Ann\n\temail = ann@home.example\n[includeIf \"hasconfig:remote.*.url:https://work.example/**\"]\n\tpath = work\n\
         [includeIf \"onbranch:main\"]\n\tpath = main\n",
    );
    scratch.write("../home/work", "[user]\n\temail = ann@work.example\n");
    scratch.write("../home/main", "[user]\n\tname = Ann Main\n");
    let mut agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty"])
        .variable("GIT_CONFIG_GLOBAL", scratch.folder().join("home/gitconfig"));
    for name in [
        "AUTHOR_NAME",
        "AUTHOR_EMAIL",
        "COMMITTER_NAME",
        "COMMITTER_EMAIL",
    ] {
        agent = agent.without(&format!("GIT_{name}"));
    }
    agent.run().ends(0);
    let ann = "Ann Main <ann@work.example>";
    for commit in ["tavern/integration", "tavern/integration^2"] {
        let who = ["log", "-1", "--format=%an <%ae> %cn <%ce>", commit];
        assert_eq!(scratch.git(&who), format!("{ann} {ann}"));
    }
}

#[test]
fn a_clean_up_in_a_loop_ends_no_run() {
    let script = |number: u32| {
        format!(
            "for n in 1 2 3; do echo $n >>{number}.txt; git add .; git commit --quiet --message=$n; done"
        )
    };
    let scripts: Vec<String> = (1..=6).map(script).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let scratch = board(&scripts);
    let line = "until test -e ../end; do git gc --quiet --prune=now || true; done";
    let clean_up = scratch.command(Path::new("sh")).args(&["-c", line]).start();
    let drained = scratch.run("tavern-drain", &["--agents", "3"]);
    scratch.write("../end", "");
    clean_up.end().ends(0);
    drained.ends(0);
    assert_eq!(
        scratch
            .merged()
            .lines()
            .filter(|name| name.ends_with(".txt"))
            .count(),
        8
    );
    scratch.git(&["fsck", "--strict"]);
}

#[test]
fn what_its_owner_and_others_do_meanwhile_is_not_taken_for_the_runs() {
    let scratch = board(&[
        "touch ../../../here; until test -e ../../../go; do sleep 0.02; done; echo 1 >one.txt",
        "echo 2 >two.txt",
    ]);
    let drain = scratch
        .program("tavern-drain")
        .args(&["--agents", "2"])
        .start();
    wait_until("it works", || scratch.work().join("here").exists());
    wait_until("the other is merged", || {
        scratch.item("T-2")["status"] == "completed"
    });
    scratch.write("mine.txt", "mine\n");
    scratch.commit(&["mine.txt"], "Mine");
    scratch.git(&["tag", "mine"]);
    scratch.git(&["config", "alias.mine", "status"]);
    scratch.executable(".git/hooks/pre-push", "#!/bin/sh\n");
    scratch.write("go", "");
    drain.end().ends(0);
    assert_eq!(
        scratch.git(&["for-each-ref", "--format=%(refname)", "refs/tavern"]),
        ""
    );
    scratch
        .run("tavern-log", &[])
        .ends(0)
        .says_not("its work on `")
        .says_not("in its run only");
}

#[test]
fn what_a_run_rests_on_is_there_whatever_its_owner_removes() {
    let scratch = board(&[
        "git merge --quiet --no-ff --message=Feat feat\ntouch ../../../here\nuntil test -e ../../../go; do sleep 0.02; done\necho 1 >one.txt",
    ]);
    sh(
        &scratch,
        "echo feat >feat.txt; git add feat.txt; id=$(git commit-tree -p HEAD -m F $(git write-tree)); git rm -q --cached feat.txt; rm feat.txt; git update-ref refs/heads/feat $id",
    );
    let drain = scratch.program("tavern-drain").start();
    wait_until("it works", || scratch.work().join("here").exists());
    scratch.git(&["branch", "--quiet", "-D", "feat"]);
    scratch.git(&["gc", "--quiet", "--prune=now"]);
    scratch.write("go", "");
    drain.end().ends(0);
    assert_eq!(shown(&scratch, "feat.txt"), "feat");
    scratch.git(&["fsck", "--strict"]);
}

#[test]
fn no_folder_outside_is_removed_with_a_worktree_within() {
    let scratch = board(&[
        "git worktree add --quiet inner\necho \"$PWD/../../../victim/.git\" >\"$(git rev-parse --git-common-dir)/worktrees/inner/gitdir\"\necho 1 >one.txt",
    ]);
    scratch.write("victim/precious.txt", "precious\n");
    work(&scratch);
    assert_eq!(scratch.read("victim/precious.txt"), "precious\n");
}
