//! An agent's own program that would have something merged that nobody has approved.

use std::fs;
use std::path::Path;

use crate::support::{AT_ONCE, CONFIG, QUEUE, Ran, Scratch, has};

/// T-1 is looked at by whom it says; the script of T-2 does this to the files of others.
fn board(review: &str, attack: &str) -> Scratch {
    let scratch = Scratch::initialized();
    let work = "```sh\n  echo good > 1.txt; git add 1.txt; git commit -qm Good\n  ```";
    scratch.write(
        "../home/attack.sh",
        attack.replace("QUEUE", "../../queues/main.md"),
    );
    let items = format!(
        "- [ ] T-1: One (review: {review})\n  {work}\n- [ ] T-2: Two (role: thief, result: answer)\n  ```sh\n  sh -eu ~/attack.sh\n  ```\n"
    );
    scratch.write(
        CONFIG,
        format!("base: main\nroles: {{thief: {{}}}}\n{AT_ONCE}"),
    );
    scratch.write(QUEUE, format!("## Pending\n\n{items}"));
    scratch
        .run("tavern-agent", &["--name", "Frodo", "--once"])
        .ends(0);
    scratch.stands("T-1", "in_review", 1);
    scratch
}

/// The thief works on its item, and whoever comes next merges what is approved.
fn attack(scratch: &Scratch) -> Ran {
    let token = scratch.claim("T-2", &["--agent", "Pip", "--role", "thief"]);
    scratch
        .run("tavern-spawn", &["T-2", "--token", &token])
        .ends(0);
    scratch.run("tavern-merge", &[])
}

#[test]
fn an_approval_that_only_the_queue_has_merges_nothing() {
    let scratch = board("person", "sed -i 's/T-1: One (/&status: approved, /' QUEUE");
    let approve = "tavern approve T-1";
    attack(&scratch)
        .ends(4)
        .says("its queue says that it was approved, and the log does not")
        .says(approve);
    assert!(!scratch.merged().contains("1.txt"));
    // A person's word is all that it lacks.
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(0)
        .says("T-1 is approved");
    scratch
        .run("tavern-merge", &[])
        .ends(0)
        .says("T-1 merged as");
}

#[test]
fn what_an_item_asked_for_at_its_claim_is_not_taken_out_in_silence() {
    for (keys, without, gone) in [
        (
            "review: [reviewer, person]",
            "review: reviewer",
            "`person` in `review`",
        ),
        (
            "review: reviewer, done_when: [\"true\"]",
            "review: reviewer",
            "`true` in `done_when`",
        ),
    ] {
        let scratch = Scratch::initialized();
        scratch.write(
            CONFIG,
            format!("base: main\nroles: {{reviewer: {{does: review}}}}\n{AT_ONCE}"),
        );
        scratch.write(
            QUEUE,
            format!("- [ ] T-1: One ({keys})\n  ```sh\n  echo good > 1.txt\n  ```\n"),
        );
        scratch
            .run("tavern-agent", &["--name", "Frodo", "--once"])
            .ends(0);
        scratch.stands("T-1", "in_review", 1);
        scratch.change(QUEUE, keys, without);
        let token = scratch.claim("T-1", &["--agent", "Sam", "--role", "reviewer"]);
        scratch
            .run("tavern-report", &["T-1", "--approve", "--token", &token])
            .ends(0)
            .says("T-1 is approved");
        let told = format!("it was claimed with {gone}, which its queue no longer has");
        scratch
            .run("tavern-merge", &[])
            .ends(4)
            .says(&told)
            .says("tavern approve T-1");
        // A person's word is all that it lacks.
        scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
        scratch
            .run("tavern-merge", &[])
            .ends(0)
            .says("T-1 merged as");
    }
}

/// Types these keys of a state into the task block of T-1.
fn in_a_task_block(keys: &str) -> String {
    format!("sed -i \"/T-1: One (/a\\  ~~~yaml task\\n  {keys}\\n  ~~~\" QUEUE")
}

#[test]
fn an_approval_is_of_one_commit() {
    let evil = "echo evil > 1.txt; git add 1.txt; git commit -qm Evil; commit=$(git rev-parse HEAD)\n\
                git reset -q --hard HEAD~1";
    for is_before in [false, true] {
        let forged = in_a_task_block("commit: $commit");
        let scratch = board("person", &format!("{evil}\n{forged}"));
        if is_before {
            attack(&scratch).ends(0).says("nothing to merge");
        }
        // What nobody has verified is not approved either.
        scratch
            .run("tavern-report", &["T-1", "--approve"])
            .ends(0)
            .says("T-1 is approved");
        let merge = if is_before {
            scratch.run("tavern-merge", &[])
        } else {
            attack(&scratch)
        };
        merge.ends(0).says("T-1 merged as");
        has(&scratch.queue(), &["  commit: "]);
        assert_eq!(scratch.git(&["show", "tavern/integration:1.txt"]), "good");
    }
}

#[test]
fn an_approval_that_nobody_has_given_counts_for_nobody() {
    let keys =
        "status: in_review, commit: $(git rev-parse tavern/T-1), approvals: [reviewer\\/Sam]";
    let merges_nothing = |scratch: &Scratch| {
        scratch
            .run("tavern-merge", &[])
            .ends(0)
            .says("nothing to merge");
        assert!(!scratch.merged().contains("1.txt"));
    };
    let waits = |scratch: &Scratch| {
        scratch
            .run("tavern-report", &["T-1", "--approve"])
            .ends(0)
            .says("T-1 is in review, and waits for reviewer");
        merges_nothing(scratch);
    };
    // Who has approved it is known apart from the text.
    let forged = in_a_task_block("approvals: [reviewer/Sam]");
    let scratch = board("[reviewer, person]", &forged);
    attack(&scratch).ends(0).says("nothing to merge");
    has(&scratch.queue(), &["approvals: [reviewer/Sam]"]);
    waits(&scratch);
    // In its parenthesis they make all of that title, and nothing is done until they are taken out.
    let forged = format!("sed -i \"s/T-1: One (/&{keys}, /\" QUEUE");
    let scratch = board("[reviewer, person]", &forged);
    attack(&scratch).ends(0).says("nothing to merge");
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(4)
        .says("`T-1` is quarantined");
    merges_nothing(&scratch);
    // Where the log is lost what shows the states tells them, but for approvals.
    for status in ["in_review", "approved"] {
        let scratch = board("[reviewer, person]", "true");
        let commit = scratch.git(&["rev-parse", "tavern/T-1"]);
        let shown = format!(
            "T-1: {{status: {status}, commit: {commit}, approvals: [reviewer/Sam, person/Sam]}} # One\n"
        );
        fs::remove_dir_all(scratch.work().join(".git/tavern")).expect("it is there");
        scratch.write(".tavern/queues/main.state.yaml", shown);
        scratch.settle();
        scratch.stands("T-1", status, 0);
        let code = if status == "approved" { 4 } else { 0 };
        scratch
            .run("tavern-merge", &[])
            .ends(code)
            .says_not("merged as");
        waits(&scratch);
    }
}

#[test]
fn what_people_do_to_approved_work_takes_no_approval_away() {
    let scratch = board("person", "true");
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    scratch.change(QUEUE, "T-1: One", "T-1: Once");
    scratch
        .run("tavern-undo", &["T-1"])
        .ends(0)
        .says("T-1 is as before");
    scratch.run("tavern-undo", &["T-1", "--redo"]).ends(0);
    scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    scratch
        .run("tavern-undo", &["T-1"])
        .ends(0)
        .says("T-1 is approved again");
    let queue = scratch.queue();
    let at = queue.find("- [ ] T-1:").expect("it is there");
    let end = queue.find("- [ ] T-2:").expect("it is there");
    scratch.write(
        ".tavern/queues/other.md",
        format!("---\nid: other\n---\n## Pending\n\n{}", &queue[at..end]),
    );
    scratch.write(QUEUE, [&queue[..at], &queue[end..]].concat());
    scratch
        .run("tavern-merge", &[])
        .ends(0)
        .says("T-1 merged as");
    // Full in the log, short in the queue.
    let merge = scratch.git(&["rev-parse", "tavern/integration"]);
    let last = scratch
        .records("tavern-log", &["T-1"])
        .pop()
        .expect("it has a past");
    assert_eq!(
        (&last["kind"], &last["commit"]),
        (&"integrated".into(), &merge.clone().into()),
        "{last}"
    );
    assert_eq!(scratch.item("T-1")["commit"], merge[..7]);
}

/// What git shows and takes in the place of an object (`git replace`) is no part of what was approved, nor of what is verified.
#[test]
fn what_is_merged_and_verified_is_what_its_ids_name() {
    let other = "export GIT_DIR=$PWD/../../../.git\nevil=$(echo evil | git hash-object -w --stdin)\n\
                 tree=$(git ls-tree tavern/T-1 | sed \"s/[0-9a-f]*\\t1.txt/$evil\\t1.txt/\" | git mktree)\n";
    for replace in [
        "git replace tavern/T-1^{tree} $tree",
        "git replace tavern/T-1 $(git commit-tree -p tavern/T-1^ -m Evil $tree)",
        "git replace tavern/T-1:1.txt $evil",
    ] {
        let scratch = board(
            "person, done_when: [test \"$(git show HEAD:1.txt)\" = good]",
            &format!("{other}{replace}"),
        );
        scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
        attack(&scratch).ends(0).says("T-1 merged as");
        let told = "git shows other objects in the place of 1 of yours (refs/replace/)";
        scratch
            .run("tavern-check", &[])
            .says(told)
            .says("git --no-replace-objects show");
        assert_eq!(
            scratch.git(&["--no-replace-objects", "show", "tavern/integration:1.txt"]),
            "good",
            "{replace}"
        );
    }
    let pass = "printf '#!/bin/sh\\n' | git hash-object -w --stdin";
    let scratch = board(
        "person",
        &format!("export GIT_DIR=$PWD/../../../.git\ngit replace main:check.sh $({pass})"),
    );
    scratch.executable("check.sh", "#!/bin/sh\ngrep good 2.txt\n");
    scratch.commit(&["check.sh"], "Check");
    attack(&scratch);
    let script = "```sh\necho evil > 2.txt\n```";
    scratch
        .run(
            "tavern-add",
            &[
                "Write",
                "--id",
                "T-3",
                "--description",
                script,
                "--done-when",
                "./check.sh",
            ],
        )
        .ends(0);
    scratch.run("tavern-agent", &["--once"]);
    scratch.stands("T-3", "pending", 1);
}

/// A file of git's by which the commit `tip` rests on `work`, and that on nothing (gitformat-commit-graph(5)).
fn commit_graph(tip: &str, work: &str) -> Vec<u8> {
    const NONE: u32 = 0x7000_0000;
    let mut ids = [tip, work].map(|id| {
        let byte = |at| u8::from_str_radix(&id[at..at + 2], 16).expect("it is an ID");
        (0..40).step_by(2).map(byte).collect::<Vec<u8>>()
    });
    let last = ids[1].clone();
    ids.sort();
    let at_work = ids
        .iter()
        .position(|id| *id == last)
        .expect("it is one of them");
    let fanout = (0..=255).map(|byte| ids.iter().filter(|id| id[0] <= byte).count() as u32);
    let fanout: Vec<u8> = fanout.flat_map(u32::to_be_bytes).collect();
    let commits = ids.iter().enumerate().flat_map(|(at, _)| {
        let (parent, generation) = if at == at_work {
            (NONE, 1)
        } else {
            (at_work as u32, 2)
        };
        let numbers = [parent, NONE, generation << 2, 1].map(u32::to_be_bytes);
        [vec![0; 20], numbers.concat()].concat()
    });
    let chunks = [fanout, ids.concat(), commits.collect()];
    let (mut table, mut data) = (b"CGPH\x01\x01\x03\x00".to_vec(), Vec::new());
    for (name, chunk) in [b"OIDF", b"OIDL", b"CDAT", &[0; 4]]
        .iter()
        .zip(chunks.iter().chain([&Vec::new()]))
    {
        table.extend([&name[..], &(56 + data.len() as u64).to_be_bytes()].concat());
        data.extend(chunk);
    }
    [table, data, vec![0; 20]].concat()
}

/// Files of git's own say that the integration branch has the work already.
#[test]
fn approved_work_is_merged_whatever_is_forged_of_its_history() {
    for place in ["objects/info/commit-graph", "info/grafts"] {
        let scratch = board("person", &format!("cp ~/forged ../../../.git/{place}"));
        let [tip, work] = ["main", "tavern/T-1"].map(|name| scratch.git(&["rev-parse", name]));
        let forged = match place {
            "info/grafts" => format!("{tip} {work}\n").into_bytes(),
            _ => commit_graph(&tip, &work),
        };
        scratch.write("../home/forged", forged);
        scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
        let merge = attack(&scratch);
        if place == "info/grafts" {
            merge
                .says("info/grafts` replaces the parents of commits")
                .says("rm ");
            fs::remove_file(scratch.work().join(".git").join(place)).expect("it is there");
            scratch.run("tavern-merge", &[]).says("T-1 merged as");
        } else {
            merge.ends(0).says("T-1 merged as");
        }
        assert!(scratch.merged().contains("1.txt"), "{place}");
    }
}

/// T-1 puts the integration branch to a commit of its own; T-2 works.
fn moved() -> (Scratch, Ran) {
    let evil = "echo evil > evil.txt; git add evil.txt; git commit -qm Evil; git push -q ../../../.git HEAD:refs/x/evil\n  \
                git --git-dir=../../../.git update-ref refs/heads/tavern/integration refs/x/evil; echo 1 > 1.txt";
    let scratch = Scratch::pending(&format!(
        "- [ ] T-1: One (review: person)\n  ```sh\n  {evil}\n  ```\n- [ ] T-2: Two\n  ```sh\n  echo 2 > 2.txt\n  ```\n"
    ));
    scratch
        .run("tavern-agent", &["--name", "Frodo", "--once"])
        .ends(0);
    scratch.stands("T-1", "in_review", 1);
    assert_eq!(
        scratch.git(&["log", "-1", "--format=%s", "tavern/integration"]),
        "Evil"
    );
    let ran = scratch.run("tavern-agent", &["--name", "Frodo", "--once"]);
    (scratch, ran)
}

#[test]
fn a_tip_that_an_agent_has_set_is_neither_merged_into_nor_built_upon() {
    let (scratch, ran) = moved();
    let tip = scratch.git(&["rev-parse", "--short=7", "tavern/integration"]);
    let told = format!("`tavern/integration` was moved to {tip}, but not by Tavern or you");
    ran.says(&told);
    scratch.stands("T-2", "approved", 1);
    assert!(
        !scratch
            .git(&["ls-tree", "--name-only", "tavern/T-2"])
            .contains("evil.txt")
    );
    scratch.run("tavern-log", &[]).ends(0).says(&told);
    let ways = format!(
        "tavern merge --accept {tip}; or put it back: git update-ref -m back refs/heads/tavern/integration "
    );
    let merge = scratch
        .run("tavern-merge", &[])
        .ends(4)
        .says(&told)
        .says(&ways);
    let known = merge
        .stdout
        .trim()
        .rsplit(' ')
        .next()
        .expect("it is named")
        .to_owned();
    // The user only looks at it.
    scratch.git(&["switch", "--quiet", "tavern/integration"]);
    scratch.git(&["switch", "--quiet", "main"]);
    scratch.run("tavern-merge", &[]).ends(4).says(&told);
    scratch
        .run("tavern-merge", &["--accept", "main"])
        .ends(4)
        .says("`tavern/integration` is not at main");
    scratch.git(&[
        "update-ref",
        "-m",
        "back",
        "refs/heads/tavern/integration",
        &known,
    ]);
    scratch
        .run("tavern-merge", &[])
        .ends(0)
        .says("T-2 merged as");
    assert!(!scratch.merged().contains("evil.txt"));
}

/// What the base has is a person's, so an agent would put its commit there.
#[test]
fn a_base_that_an_agent_has_moved_is_not_followed() {
    let main = "../../../.git/refs/heads/main";
    let log = "../../../.git/logs/refs/heads/main";
    let theirs = "git --git-dir=../../../.git";
    let update = &format!("{theirs} update-ref refs/heads/main $evil");
    for (way, moved) in [
        (update.to_owned(), &["main"][..]),
        (
            format!("{update}\n{theirs} update-ref refs/heads/tavern/integration $evil"),
            &["tavern/integration", "main"],
        ),
        (format!("echo $evil >{main}"), &["main"]),
        (
            format!("echo $evil refs/heads/main >../../../.git/packed-refs\nrm {main}"),
            &["main"],
        ),
        (
            format!(
                "rm {log}\n{theirs} -c core.logAllRefUpdates=false update-ref refs/heads/main $evil"
            ),
            &["main"],
        ),
        (
            format!("{theirs} update-ref -d refs/heads/main\n{update}"),
            &["main"],
        ),
    ] {
        let scratch = board(
            "person",
            &format!(
                "echo evil >evil.txt\ngit add evil.txt\nevil=$(git commit-tree -p HEAD -m Evil $(git write-tree))\n\
                 git rm -qf evil.txt\ngit push -q ../../../.git $evil:refs/x/evil\n{way}"
            ),
        );
        scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
        let mut ran = attack(&scratch);
        for branch in moved {
            let told = format!("`{branch}` was moved to ");
            ran = ran.ends(4).says(&told).says(", but not by Tavern or you");
            scratch
                .run("tavern-check", &[])
                .ends(5)
                .says("`main` was moved to ");
            assert!(
                !scratch
                    .git(&["ls-tree", "--name-only", "tavern/T-1"])
                    .contains("evil.txt")
            );
            let back = ran
                .stdout
                .lines()
                .find_map(|line| line.split("put it back: git ").nth(1))
                .expect("it is told");
            scratch.git(&back.split(' ').collect::<Vec<_>>());
            ran = scratch.run("tavern-merge", &[]);
        }
        ran.ends(0).says("T-1 merged as");
        assert!(!scratch.merged().contains("evil.txt"), "{way}");
    }
}

/// It is no person's, though git has a word for it.
#[test]
fn what_an_agent_commits_in_the_checkout_is_not_followed() {
    for way in [
        "git commit --quiet --message=Evil",
        "git stash --quiet; git stash pop --quiet --index; git commit -qm Evil",
    ] {
        let scratch = board(
            "person",
            &format!(
                "cd ../../..\ngit switch -q main\necho evil > evil.txt\ngit add evil.txt\n{way}"
            ),
        );
        let script = scratch.folder().join("home/attack.sh");
        let runner = format!(
            "roles: {{thief: {{runner: own}}}}\nrunners: {{own: {{command: [sh, -eu, {}]}}}}",
            script.display()
        );
        scratch.change(CONFIG, "roles: {thief: {}}", &runner);
        scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
        let ran = attack(&scratch)
            .ends(4)
            .says("`main` was moved to ")
            .says(", but not by Tavern or you");
        scratch
            .run("tavern-status", &[])
            .says("`main` was moved to ");
        let back = ran
            .stdout
            .lines()
            .find_map(|line| line.split("put it back: git ").nth(1))
            .expect("it is told");
        assert!(back.starts_with("update-ref"), "{back}");
        scratch.run("tavern-merge", &["--accept", "main"]).ends(0);
        scratch
            .run("tavern-merge", &[])
            .ends(0)
            .says("T-1 merged as");
        assert!(scratch.merged().contains("evil.txt"), "it was accepted");
    }
}

/// What a run has done to the repository outside of its worktree is told where people look.
#[test]
fn what_an_agent_changes_outside_of_its_worktree_is_told() {
    let scratch = Scratch::initialized();
    scratch.git(&["init", "--quiet", "--bare", "../far"]);
    scratch.git(&[
        "remote",
        "add",
        "origin",
        &scratch.folder().join("far").to_string_lossy(),
    ]);
    scratch.git(&["push", "--quiet", "origin", "main"]);
    let script = "echo 1 > 1.txt; git add 1.txt; git commit -qm One\n  git push -q origin HEAD:main; git push -q ../../../.git HEAD:refs/heads/dev\n  \
                  cd ../../..; git config core.hooksPath ~/hooks; git config --unset user.name; git config branch.main.remote evil\n  echo true > .git/hooks/pre-push; \
                  printf evil > .git/hooks/same; touch -d @0 .git/hooks/same; chmod +x .git/hooks/mode; echo '* -text' > .git/info/attributes\n  \
                  git config --file .git/config.worktree core.bare false; echo > .git/objects/info/alternates";
    scratch.git(&["config", "user.name", "Joe"]);
    scratch.write(".git/hooks/same", "good");
    scratch.write(".git/hooks/mode", "good");
    let old = ["-d", "@0", ".git/hooks/same"];
    let touched = scratch.command(Path::new("touch")).args(&old).run();
    touched.succeeds();
    scratch.write(
        QUEUE,
        format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n- [ ] T-2: Two\n  ```sh\n  echo 2 > 2.txt\n  ```\n"),
    );
    scratch.write(CONFIG, format!("base: main\n{AT_ONCE}"));
    let told = [
        "its work was put on `origin/main` (",
        "its work was put on `dev` (",
        "`core.hookspath` was set in .git/config",
        "`user.name` was taken out of .git/config",
        "`branch.main.remote` was set in .git/config",
        ".git/hooks/pre-push was changed",
        ".git/hooks/same was changed",
        ".git/hooks/mode was changed",
        ".git/info/attributes was changed",
        ".git/config.worktree was changed",
        ".git/objects/info/alternates was changed",
    ];
    let drained = scratch.run("tavern-drain", &["--agents", "1"]).succeeds();
    let [status, log] =
        ["tavern-status", "tavern-log"].map(|program| scratch.run(program, &[]).succeeds());
    for told in told {
        for shown in [&drained, &status, &log] {
            assert_eq!(shown.matches(told).count(), 1, "{told}: {shown}");
            assert!(!shown.contains(" ran T-2"), "{shown}");
        }
    }
    let changes = scratch
        .records("tavern-status", &[])
        .into_iter()
        .filter(|record| record["kind"] == "strayed")
        .count();
    assert_eq!(changes, told.len());
    // A day later it is the log's.
    scratch
        .at("+90000", "tavern-status", &[])
        .ends(0)
        .says_not(" ran T-1");
}

#[test]
fn a_base_of_which_git_keeps_no_log_is_followed() {
    let scratch = Scratch::pending("- [ ] T-1: One\n  ```sh\n  echo 1 > 1.txt\n  ```\n");
    scratch.git(&["config", "core.logAllRefUpdates", "false"]);
    fs::remove_dir_all(scratch.work().join(".git/logs")).expect("it is ours");
    scratch
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("T-1 merged as");
    scratch.write("mine.txt", "mine");
    scratch.commit(&["mine.txt"], "Mine");
    let script = "```sh\necho 2 > 2.txt\n```";
    scratch
        .run(
            "tavern-add",
            &["Two", "--id", "T-2", "--description", script],
        )
        .ends(0);
    scratch
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("T-2 merged as");
    assert!(scratch.merged().contains("mine.txt"));
}

/// What the remote has is a person's, too.
#[test]
fn a_remotes_branch_that_nobody_has_fetched_vouches_for_no_tip() {
    let (theirs, remote) = ("git --git-dir=../../../.git", "refs/remotes/origin/tavern");
    for plant in [
        format!("{theirs} update-ref {remote}/integration $evil"),
        format!(
            "mkdir -p ../../../.git/{remote}\n  echo $evil >../../../.git/{remote}/integration"
        ),
    ] {
        for moved in [
            "-d refs/heads/tavern/integration",
            "refs/heads/tavern/integration $evil",
        ] {
            let evil = "echo evil > evil.txt; git add evil.txt\n  evil=$(git commit-tree -p HEAD -m Evil $(git write-tree))";
            let scratch = Scratch::pending(&format!(
                "- [ ] T-1: One\n  ```sh\n  echo 1 > 1.txt\n  ```\n\
                 - [ ] T-2: Two (result: answer)\n  ```sh\n  {evil}\n  git rm -qf evil.txt\n  git push -q ../../../.git $evil:refs/x/evil\n  {plant}\n  {theirs} update-ref {moved}\n  ```\n\
                 - [ ] T-3: Three\n  ```sh\n  echo 3 > 3.txt\n  ```\n"
            ));
            scratch.git(&["remote", "add", "origin", "../nowhere"]);
            scratch
                .run("tavern-agent", &["--once"])
                .ends(0)
                .says("T-1 merged as");
            scratch.run("tavern-agent", &["--once"]);
            scratch.run("tavern-agent", &["--once"]);
            scratch.stands("T-3", "approved", 1);
            assert_eq!(
                scratch.git(&["ls-tree", "--name-only", "tavern/T-3"]),
                "1.txt\n3.txt\nREADME.md",
                "{plant}"
            );
            let ran = scratch
                .run("tavern-merge", &[])
                .ends(4)
                .says("`tavern/integration` was moved to ");
            let accept = ran
                .stdout
                .split(" --accept ")
                .nth(1)
                .expect("it is told")
                .split(';')
                .next()
                .expect("a word");
            scratch
                .run("tavern-merge", &["--accept", accept, "--dry-run"])
                .ends(0);
            let back = ran
                .stdout
                .lines()
                .find_map(|line| line.split("put it back: git ").nth(1))
                .expect("it is told");
            scratch.git(&back.split(' ').collect::<Vec<_>>());
            scratch
                .run("tavern-merge", &[])
                .ends(0)
                .says("T-3 merged as");
            assert_eq!(scratch.merged(), "1.txt\n3.txt\nREADME.md");
        }
    }
}

#[test]
fn a_base_that_a_person_accepts_is_followed() {
    let scratch = board(
        "person",
        "git push -q ../../../.git $(git commit-tree -p HEAD -m New HEAD^{tree}):refs/x/new\ngit --git-dir=../../../.git update-ref refs/heads/main refs/x/new",
    );
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    attack(&scratch).ends(4);
    scratch
        .run("tavern-merge", &["--accept", "main"])
        .ends(0)
        .says("main is accepted");
    scratch
        .run("tavern-merge", &[])
        .ends(0)
        .says("T-1 merged as");
}

#[test]
fn a_tip_that_a_person_accepts_is_gone_on_from() {
    let (scratch, _) = moved();
    let accept = ["--accept", "tavern/integration"];
    let dry = scratch.run("tavern-merge", &[&accept[..], &["--dry-run"]].concat());
    dry.ends(0);
    scratch.run("tavern-merge", &[]).ends(4);
    scratch
        .run("tavern-merge", &accept)
        .ends(0)
        .says("tavern/integration is accepted");
    scratch
        .run("tavern-merge", &[])
        .ends(0)
        .says("T-2 merged as");
    assert!(scratch.merged().contains("2.txt\nREADME.md\nevil.txt"));
    scratch
        .run("tavern-log", &[])
        .ends(0)
        .says("`tavern/integration` was accepted at its current commit");
}

#[test]
fn what_people_do_to_the_integration_branch_does_not_ask() {
    let scratch = Scratch::pending("");
    let work = |id: &str| {
        let script = format!("```sh\necho 1 > {id}.txt\n```");
        scratch
            .run(
                "tavern-add",
                &["Write", "--id", id, "--description", &script],
            )
            .ends(0);
        scratch
            .run("tavern-agent", &["--once"])
            .ends(0)
            .says(&format!("{id} merged as"));
    };
    let steps: [&[&[&str]]; 4] = [
        // It is merged into main, which goes on; and follows.
        &[&[
            "merge",
            "--quiet",
            "--no-ff",
            "--message=All",
            "tavern/integration",
        ]],
        // It begins again where main is.
        &[
            &["merge", "--quiet", "tavern/integration"],
            &["branch", "--quiet", "--force", "tavern/integration", "main"],
        ],
        // A person's own commit there.
        &[
            &["switch", "--quiet", "tavern/integration"],
            &["commit", "--quiet", "--allow-empty", "--message=Mine"],
            &["switch", "--quiet", "main"],
        ],
        &[&["branch", "--quiet", "-D", "tavern/integration"]],
    ];
    for (number, step) in (1..).zip(steps) {
        work(&format!("T-{number}"));
        for line in step {
            scratch.git(line);
        }
    }
    work("T-5");
}

/// git refuses to name what is behind a link.
#[test]
fn a_link_in_the_place_of_the_list_keeps_no_work_from_being_merged() {
    let script = |folder: &str| {
        format!("  ```sh\n  rm -rf {folder}; ln -s /nowhere {folder}; echo 1 > 1.txt\n  ```\n")
    };
    let scratch = Scratch::shell(&format!("- [ ] T-1: One\n{}", script(".tavern")), AT_ONCE);
    scratch
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("T-1 merged as");
    assert_eq!(scratch.merged(), "1.txt\nREADME.md");
    let scratch = Scratch::repository();
    scratch.write("docs/TODO.md", format!("- [ ] One\n{}", script("docs")));
    scratch.commit(&["--all"], "A list");
    scratch
        .run("tavern-drain", &["docs/TODO.md"])
        .ends(0)
        .says("1 of 1 completed");
    assert_eq!(scratch.merged(), "1.txt\nREADME.md\ndocs");
    assert!(
        scratch
            .git(&["show", "tavern/integration:docs/TODO.md"])
            .starts_with("- [ ] One")
    );
}
