//! What stands in a worktree before its agent begins is not the agent's work: neither committed nor merged, and no change.

use std::path::Path;

use crate::support::{AT_ONCE, Scratch};

/// Agents work on these scripts, an item each.
fn board(scripts: &[&str], config: &str) -> Scratch {
    let item = |(number, script): (usize, &&str)| {
        let lines = script.replace('\n', "\n  ");
        format!("- [ ] T-{}: Do it\n  ```sh\n  {lines}\n  ```\n", number + 1)
    };
    let queue: String = scripts.iter().enumerate().map(item).collect();
    Scratch::shell(
        &queue,
        &format!("base: main\nmax_attempts: 1\n{AT_ONCE}{config}"),
    )
}

fn work(scratch: &Scratch) -> String {
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .stdout
}

fn shown(scratch: &Scratch, path: &str) -> String {
    scratch.git(&["show", &format!("tavern/integration:{path}")])
}

/// Nowhere in the history of the integration branch.
fn never_had(scratch: &Scratch, path: &str) {
    let log = ["log", "--format=%h", "tavern/integration", "--", path];
    assert_eq!(scratch.git(&log), "", "{path}");
}

#[test]
fn copied_files_are_not_merged_whoever_commits() {
    let scripts = [
        "echo 1 >one.txt",
        "echo 2 >two.txt\ngit add --all\ngit commit --quiet --message=All",
        // It takes the secret back, and its history has it all the same.
        "git add --all\ngit commit --quiet --message=All\ngit rm --quiet --cached .env\necho 3 >three.txt\ngit add three.txt\ngit commit --quiet --message=Three",
        "mkdir -p in\necho 4 >in/four.txt\ngit add --all\ngit commit --quiet --message=Four\necho 5 >five.txt",
    ];
    let scratch = board(&scripts, "worktree: {copy: [.env, node_modules]}\n");
    scratch.write(".gitignore", "node_modules/\n");
    scratch.commit(&[".gitignore"], "Ignore");
    scratch.write(".env", "SECRET=hunter2\n");
    // A link is no folder, so the line above does not ignore it.
    std::fs::create_dir(scratch.folder().join("home/modules")).expect("the folder is ours");
    std::os::unix::fs::symlink(
        scratch.folder().join("home/modules"),
        scratch.work().join("node_modules"),
    )
    .expect("the folder is ours");
    work(&scratch);
    assert_eq!(
        scratch.merged(),
        ".gitignore\nREADME.md\nfive.txt\nin\none.txt\nthree.txt\ntwo.txt"
    );
    never_had(&scratch, ".env");
    never_had(&scratch, "node_modules");
    let subjects = scratch.git(&[
        "log",
        "--no-merges",
        "--format=%s",
        "main..tavern/integration",
    ]);
    for subject in ["T-1: Do it", "All", "Three", "Four", "T-4: Do it"] {
        assert!(subjects.lines().any(|line| line == subject), "{subjects}");
    }
}

/// Git takes a file for unchanged whose length and second are as in the index, if the index is of a later second.
#[test]
fn a_change_of_the_same_length_in_the_second_of_the_checkout_is_work() {
    let script = "was=$(stat -c %Y report.txt)\necho 2 >report.txt\n\
                  index=$(stat -c %Y \"$(git rev-parse --git-path index)\")\n\
                  [ \"$index\" -gt \"$was\" ] || touch -d \"@$was\" report.txt\n\
                  until [ \"$(date +%s)\" -gt \"$was\" ]; do sleep 0.01; done";
    for config in ["", "worktree: {copy: [.env]}\n"] {
        let scratch = board(&[script], config);
        scratch.git(&["config", "core.trustctime", "false"]);
        scratch.write("report.txt", "1\n");
        scratch.commit(&["report.txt"], "Report");
        scratch.write(".env", "SECRET=hunter2\n");
        work(&scratch);
        assert_eq!(shown(&scratch, "report.txt"), "2", "{config}");
    }
}

#[test]
fn what_the_set_up_changes_is_no_work() {
    let scripts = [
        "true",
        "echo 2 >two.txt",
        "sed -i '1i package: three' Lock.txt",
        "git commit --quiet --all --message=Lock\ngrep -q set-up Lock.txt",
        "echo 5 >five.txt\ngit commit --quiet --all --message=Lock",
    ];
    let setup = "echo set-up >>Lock.txt; echo made >made.txt; rm gone.txt";
    let scratch = board(&scripts, &format!("worktree: {{setup: \"{setup}\"}}\n"));
    scratch.write("Lock.txt", "package: one\npackage: two\npackage: more\n");
    scratch.write("gone.txt", "not gone\n");
    scratch.commit(&["Lock.txt", "gone.txt"], "Lock");
    work(&scratch);
    for (id, status) in [
        ("T-1", "dead"),
        ("T-2", "completed"),
        ("T-3", "completed"),
        ("T-4", "dead"),
        ("T-5", "completed"),
    ] {
        let item = scratch.item(id);
        assert_eq!(item["status"], status, "{item}");
    }
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("it changed nothing");
    assert_eq!(
        scratch.merged(),
        "Lock.txt\nREADME.md\nfive.txt\ngone.txt\ntwo.txt"
    );
    assert_eq!(
        shown(&scratch, "Lock.txt"),
        "package: three\npackage: one\npackage: two\npackage: more"
    );
    never_had(&scratch, "made.txt");
}

#[test]
fn set_ups_of_items_at_once_do_not_conflict() {
    let scripts = ["echo 1 >one.txt", "echo 2 >two.txt", "echo 3 >three.txt"];
    let scratch = board(
        &scripts,
        "worktree: {setup: \"echo $TAVERN_TASK >>Lock.txt\"}\n",
    );
    scratch.write("Lock.txt", "locked\n");
    scratch.commit(&["Lock.txt"], "Lock");
    scratch.run("tavern-drain", &["--agents", "3"]).ends(0);
    assert_eq!(
        scratch.merged(),
        "Lock.txt\nREADME.md\none.txt\nthree.txt\ntwo.txt"
    );
    assert_eq!(shown(&scratch, "Lock.txt"), "locked");
}

#[test]
fn line_ends_and_filters_that_git_would_change_are_no_work() {
    let scratch = board(&["echo 1 >one.txt", "true"], "");
    scratch.write("dos.txt", "one\r\ntwo\r\n");
    scratch.commit(&["dos.txt"], "As it is");
    scratch.write(".gitattributes", "*.txt text\n");
    scratch.commit(&[".gitattributes"], "Attributes");
    work(&scratch);
    assert_eq!(
        scratch.merged(),
        ".gitattributes\nREADME.md\ndos.txt\none.txt"
    );
    let changed = scratch.git(&["diff", "--name-only", "main", "tavern/integration"]);
    assert_eq!(changed, "one.txt");
    assert_eq!(scratch.item("T-2")["status"], "dead");
}

#[test]
fn the_next_attempt_and_the_integration_branch_know_it_still() {
    // The first attempt fails with all committed, the second goes on; meanwhile others make the change of the set-up for good.
    let first = "test -e tried || { touch tried; echo 1 >one.txt; git add --all; git commit --quiet --message=One; exit 1; }\n\
                 git merge --quiet tavern/integration\necho more >>one.txt\ngit add --all\ngit commit --quiet --message=More";
    let second = "echo set-up >>Lock.txt; echo x >>Lock.txt";
    let scratch = board(
        &[first, second],
        "worktree: {setup: \"echo set-up >>Lock.txt; echo made >made.txt\"}\n",
    );
    scratch.change(".tavern/config.yaml", "max_attempts: 1", "max_attempts: 2");
    scratch.change(
        ".tavern/queues/main.md",
        "T-2: Do it",
        "T-2: Do it (priority: 0)",
    );
    scratch.write("Lock.txt", "locked\n");
    scratch.write(".gitignore", "tried\n");
    scratch.commit(&["Lock.txt", ".gitignore"], "Lock");
    work(&scratch);
    assert_eq!(scratch.merged(), ".gitignore\nLock.txt\nREADME.md\none.txt");
    assert_eq!(shown(&scratch, "one.txt"), "1\nmore");
    // What a script appends is its work, be it the same line.
    assert_eq!(shown(&scratch, "Lock.txt"), "locked\nset-up\nx");
    never_had(&scratch, "made.txt");
}

#[test]
fn nothing_of_it_is_left_behind() {
    let scratch = board(
        &["echo 1 >one.txt", "exit 1"],
        "worktree: {setup: \"echo made >made.txt\"}\n",
    );
    work(&scratch);
    assert_eq!(scratch.item("T-2")["status"], "dead");
    assert_eq!(
        scratch.git(&["for-each-ref", "--format=%(refname)", "refs/tavern"]),
        ""
    );
    assert!(!scratch.work().join(".tavern/worktrees/T-2").exists());
    assert!(Path::new(&scratch.work().join("README.md")).exists());
}

#[test]
fn modes_and_folders_of_the_set_up_are_no_work() {
    let scripts = [
        "echo more >>b.txt",
        "true",
        "echo 3 >three.txt\ngit add --all\ngit commit --quiet --message=All",
    ];
    let setup = "chmod +x b.txt; rm gone.txt; mkdir gone.txt; echo in >gone.txt/in; rm dir/file; rmdir dir; echo flat >dir";
    let scratch = board(&scripts, &format!("worktree: {{setup: \"{setup}\"}}\n"));
    for name in ["b.txt", "gone.txt", "dir/file"] {
        scratch.write(name, "it\n");
    }
    scratch.commit(&["b.txt", "gone.txt", "dir/file"], "Files");
    work(&scratch);
    for (id, status) in [("T-1", "completed"), ("T-2", "dead"), ("T-3", "completed")] {
        let item = scratch.item(id);
        assert_eq!(item["status"], status, "{item}");
    }
    let changed = scratch.git(&["diff", "--raw", "--abbrev=1", "main", "tavern/integration"]);
    let changed: Vec<&str> = changed.lines().map(|line| &line[..15]).collect();
    assert_eq!(
        changed,
        [":100644 100644 ", ":000000 100644 "],
        "{changed:?}"
    );
}

#[test]
fn a_set_up_that_commits_or_leaves_the_branch_is_refused() {
    let commit = "git -c user.name=S -c user.email=s@example.org commit --quiet --message=Setup";
    let moved = "a set-up must neither commit nor switch branches";
    for (setup, how) in [
        (format!("{commit} --all"), moved),
        (format!("{commit} --all; exit 3"), "exited with code 3"),
        ("git checkout --quiet -B other".to_owned(), moved),
        ("git checkout --quiet --detach".to_owned(), moved),
        (
            format!("{commit} --all; git checkout --quiet -B other"),
            moved,
        ),
    ] {
        let scratch = board(
            &["echo 1 >one.txt"],
            &format!("max_returns: 1\nworktree: {{setup: \"echo set-up >>Lock.txt; {setup}\"}}\n"),
        );
        scratch.write("Lock.txt", "locked\n");
        scratch.commit(&["Lock.txt"], "Lock");
        work(&scratch);
        let item = scratch.item("T-1");
        let reason = item["reason"].as_str().unwrap_or_default();
        assert_eq!(item["status"], "waiting", "{setup}: {item}");
        assert!(reason.contains(how), "{setup}: {reason}");
        // Whoever mends it finds nothing of what it committed.
        scratch.change(".tavern/config.yaml", &format!("; {setup}"), "");
        scratch.run("tavern-release", &["T-1"]).succeeds();
        work(&scratch);
        assert_eq!(scratch.item("T-1")["status"], "completed", "{setup}");
        assert_eq!(scratch.merged(), "Lock.txt\nREADME.md\none.txt", "{setup}");
        assert_eq!(shown(&scratch, "Lock.txt"), "locked", "{setup}");
    }
}

#[test]
fn what_the_set_up_renames_is_no_work() {
    let scripts = [
        "true",
        "echo 2 >two.txt\ngit commit --quiet --all --message=Staged\ngit add two.txt\ngit commit --quiet --message=Two",
        "echo 3 >three.txt",
    ];
    let scratch = board(
        &scripts,
        "worktree: {setup: \"git mv a.txt b.txt; git rm --quiet gone.txt; echo new >new.txt; git add new.txt\"}\n",
    );
    for name in ["a.txt", "gone.txt"] {
        scratch.write(name, format!("{name}\nand more\n"));
    }
    scratch.commit(&["a.txt", "gone.txt"], "Files");
    work(&scratch);
    assert_eq!(scratch.item("T-1")["status"], "dead");
    assert_eq!(
        scratch.merged(),
        "README.md\na.txt\ngone.txt\nthree.txt\ntwo.txt"
    );
    never_had(&scratch, "b.txt");
    never_had(&scratch, "new.txt");
}

/// Each script has files of its own, `N-` with the item's number: what is merged of them then.
const SEPARATE: &[(&str, &[(&str, &str)])] = &[
    ("sed -i s/c_/C/ N-abc", &[("N-abc", "a\nb\nC\nd\ne")]),
    ("sed -i s/a/A/ N-abc", &[("N-abc", "A\nb\nc\nd\ne")]),
    ("sed -i /d/d N-abc", &[("N-abc", "a\nb\nc\ne")]),
    (
        "git mv N-abc N-moved",
        &[("N-abc", ""), ("N-moved", "a\nb\nc\nd\ne")],
    ),
    (
        "mv N-abc N-moved; sed -i s/e/E/ N-moved; git add --all; git commit --quiet --message=Moved",
        &[("N-abc", ""), ("N-moved", "a\nb\nc\nd\nE")],
    ),
    (
        "cp N-abc N-copy",
        &[("N-abc", "a\nb\nc\nd\ne"), ("N-copy", "a\nb\nc\nd\ne")],
    ),
    ("sed -i s/one/One/ N-list", &[("N-list", "One\ntwo")]),
    ("sed -i s/two/Two/ N-list", &[("N-list", "one\nTwo")]),
    ("echo three >>N-list", &[("N-list", "one\ntwo\nthree")]),
    ("echo more >>N-open", &[("N-open", "open\nmore")]),
    (
        "sed -i 1d N-short; echo y >>N-short",
        &[("N-short", "y\ngone")],
    ),
    ("echo x >>N-dos", &[("N-dos", "a\nb\nx")]),
    // Distinct lines that stand elsewhere by then, and what anybody may have written.
    (
        "sed -n 2p N-abc >>N-abc; sed -i 2d N-abc",
        &[("N-abc", "a\nc\nd\ne\nb")],
    ),
    ("echo '{}' >N-json", &[("N-json", "{}")]),
    (
        "echo n >N-new; git add --all; git commit --quiet --message=All",
        &[("N-new", "n"), ("vendor", "")],
    ),
    // What git ignored at first comes by no change of what it ignores.
    (
        "echo N >.gitignore",
        &[(".env", ""), ("set-up.log", ""), ("cache", "")],
    ),
];

/// What is the agent's of these can't be told.
const MIXED: &[&str] = &[
    "echo MINE=1 >>.env",
    "sed -i 1d .env",
    "mkdir in; mv .env in/.env",
    "cp .env prod.env",
    "echo MINE=1 >>.env; git add .env; git commit --quiet --message=Env",
    "echo MINE=1 >>.env; git add .env; git commit --quiet --message=Env; git rm --quiet --cached .env; git commit --quiet --message=No",
    "echo mine >>made.txt",
    "git mv made.txt other.txt || mv made.txt other.txt",
    "git add --force cache/key; git commit --quiet --message=Cache",
    "cp cache/key N-key",
    "mv cache/key N-key",
    "cat cache/key >N-key; git add N-key; git commit --quiet --message=Key; git rm --quiet N-key",
    "sed -i 's/set-up 2/mine/' N-list",
    "sort -r N-list >sorted; mv sorted N-list",
];

#[test]
fn beside_work_on_the_same_file_too_nothing_of_it_is_merged() {
    let separate = SEPARATE.iter().map(|(script, _)| *script);
    let all = MIXED.iter().copied().chain(separate);
    let named = |(nth, text): (usize, &str)| text.replace("N-", &format!("{}-", nth + 1));
    let scripts: Vec<String> = all
        .enumerate()
        .map(|(nth, script)| named((nth, script)) + "\ntouch \"$TAVERN_TASK\"")
        .collect();
    let setup = "for file in *-abc; do sed -i 's/[bc]$/&_/' $file; done; \
                 for file in *-list; do printf 'set-up 1\\nset-up 2\\n' >>$file; done; \
                 for file in *-open; do printf '\\nset-up\\n' >>$file; done; \
                 for file in *-short; do sed -i /gone/d $file; done; echo set-up >made.txt; \
                 echo '{}' >local.json; echo set-up >set-up.log; git init -q vendor; git -C vendor -c user.name=V -c user.email=v@example.org commit -q --allow-empty -m V";
    let config = serde_json::json!({"copy": [".env", "cache"], "setup": setup});
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let scratch = board(&scripts, &format!("worktree: {config}\n"));
    scratch.write(".gitignore", "cache/\n*.log\n");
    for nth in 1..=scripts.len() {
        for (name, text) in [
            ("abc", "a\nb\nc\nd\ne\n"),
            ("list", "one\ntwo\n"),
            ("open", "open"),
            ("short", "x\ngone\n"),
            ("dos", "a\r\nb\r\n"),
        ] {
            scratch.write(format!("{nth}-{name}"), text);
        }
    }
    scratch.commit(&["."], "Files");
    scratch.write(".gitattributes", "*-dos text\n");
    scratch.commit(&[".gitattributes"], "Attributes");
    scratch.write(".env", "SECRET=hunter2\nMORE=set-up\n");
    scratch.write("cache/key", "SECRET=hunter3\n");
    work(&scratch);
    for (nth, (script, files)) in (MIXED.len()..).zip(SEPARATE) {
        let item = scratch.item(&format!("T-{}", nth + 1));
        assert_eq!(item["status"], "completed", "{script}: {item}");
        for (path, text) in *files {
            let path = named((nth, path));
            let is = scratch.git(&["ls-tree", "tavern/integration", &path]);
            let is = if is.is_empty() {
                String::new()
            } else {
                shown(&scratch, &path)
            };
            assert_eq!(is, *text, "{script}: {path}");
        }
    }
    for (nth, script) in MIXED.iter().enumerate() {
        let item = scratch.item(&format!("T-{}", nth + 1));
        assert_eq!(item["status"], "dead", "{script}: {item}");
        let reason = item["reason"].as_str().unwrap_or_default();
        assert!(
            reason.contains("before its agent started") && reason.contains("have git ignore them"),
            "{script}: {item}"
        );
    }
    for word in ["hunter", "set-up", "_"] {
        let log = ["log", "--format=%h", "-S", word, "main..tavern/integration"];
        assert_eq!(scratch.git(&log), "", "{word}");
    }
}
