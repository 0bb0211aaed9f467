//! Queues on branches, through real git: merges, rebases and picks take what each side did, item by item.

use std::fs;
use std::path::Path;

use crate::support::{QUEUE as MAIN, Scratch, has};

const QUEUE: &str = "\
---
id: main
---

# Work

## Pending

- [ ] T-1: One (tags: [a])
  Words of one.
- [ ] T-2: Two
- [ ] T-3: Three

## In Progress

## Completed

- [x] T-9: Nine
";

/// A board on `main` that git knows, with `QUEUE` in it.
fn board() -> Scratch {
    let scratch = Scratch::shell(QUEUE, "");
    scratch.commit(&["--all"], "Board");
    scratch
}

/// Two branches of the commit that HEAD is at, `ours` (checked out in the end) and `theirs`, each with its version.
fn branches(scratch: &Scratch, ours: &str, theirs: &str) {
    for (name, text) in [("theirs", theirs), ("ours", ours)] {
        scratch.git(&["switch", "--quiet", "--create", name, "main"]);
        scratch.write(MAIN, text);
        scratch.commit(&["--all"], name);
    }
}

/// One side adds, moves and describes, the other one edits, reorders and completes.
fn two_sides() -> (String, String) {
    let one = "- [ ] T-1: One (tags: [a])\n  Words of one.\n";
    let ours = QUEUE
        .replace(one, "")
        .replace(
            "## In Progress\n",
            "## In Progress\n\n- [ ] T-1: One (tags: [a, b])\n  Words of one.\n",
        )
        .replace("- [ ] T-3: Three\n", "- [ ] T-3: Three\n- [ ] T-4: Four\n");
    let theirs = QUEUE
        .replace("One (tags: [a])", "One, said better (tags: [a, c])")
        .replace(
            "- [ ] T-2: Two\n- [ ] T-3: Three\n",
            "- [ ] T-3: Three\n- [ ] T-5: Five\n",
        )
        .replace("- [x] T-9: Nine\n", "- [x] T-9: Nine\n- [x] T-2: Two\n");
    (ours, theirs)
}

/// Lines in any order: who comes first where both add something is the merging side's.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

const UNION: &str = "\
---
id: main
---

# Work

## Pending

- [ ] T-3: Three
- [ ] T-4: Four
- [ ] T-5: Five

## In Progress

- [ ] T-1: One, said better (tags: [a, b, c])
  Words of one.

## Completed

- [x] T-9: Nine
- [x] T-2: Two
";

fn is_the_union(scratch: &Scratch, how: &str) {
    let text = scratch.read(MAIN).replace("[a, c, b]", "[a, b, c]");
    assert_eq!(sorted(&text), sorted(UNION), "{how}\n{text}");
    let headings = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with('#'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(headings(&text), headings(UNION), "{how}\n{text}");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{how}");
    let checked = scratch.run("tavern-check", &["--format", "json"]);
    assert!(
        !checked.stdout.contains("merge-conflict") && !checked.stdout.contains("error"),
        "{how}\n{checked}"
    );
}

#[test]
fn merge_rebase_and_cherry_pick_give_the_union() {
    let scratch = board();
    let (ours, theirs) = two_sides();
    branches(&scratch, &ours, &theirs);
    for (here, there) in [("ours", "theirs"), ("theirs", "ours")] {
        for command in [
            &["merge", "--quiet", "--no-edit"][..],
            &["rebase", "--quiet"],
            &["cherry-pick"],
        ] {
            scratch.git(&["switch", "--quiet", "--detach", here]);
            scratch.git(&[command, &[there]].concat());
            is_the_union(&scratch, &format!("{command:?} {there} on {here}"));
        }
    }
}

#[test]
fn an_id_that_one_side_has_mended_brings_back_no_item_that_the_other_has_removed() {
    for (items, removed) in [
        ("- [ ] T-1: One\n- [ ] T-1: Two\n", "- [ ] T-1: Two\n"),
        ("- [ ] AC-1: One\n- [ ] AC-1: Two\n", "- [ ] AC-1: Two\n"),
    ] {
        let scratch = board();
        let text = QUEUE
            .replace("- [ ] T-2: Two\n", items)
            .replace("- [ ] T-1: One (tags: [a])\n  Words of one.\n", "");
        scratch.git(&["switch", "--quiet", "main"]);
        scratch.write(MAIN, &text);
        scratch.commit(&["--all"], "Twice");
        scratch.settle();
        scratch.run("tavern-check", &["--fix"]).says("\n+- [ ] T-");
        let mended = scratch.read(MAIN);
        scratch.git(&["checkout", "--quiet", "--", MAIN]);
        branches(&scratch, &mended, &text.replace(removed, ""));
        for (here, there) in [("ours", "theirs"), ("theirs", "ours")] {
            scratch.git(&["switch", "--quiet", "--detach", here]);
            scratch.git(&["merge", "--quiet", "--no-edit", there]);
            assert_eq!(
                scratch.git(&["show", &format!("HEAD:{MAIN}")]),
                text.replace(removed, "").trim_end(),
                "{there} on {here}"
            );
        }
    }
}

#[test]
fn what_contradicts_does_not_stop_the_merge_and_is_listed() {
    let scratch = board();
    branches(
        &scratch,
        &QUEUE.replace("T-2: Two", "T-2: Deux"),
        &QUEUE.replace("T-2: Two", "T-2: Zwei"),
    );
    let merged = scratch
        .command("git".as_ref())
        .args(&["merge", "--no-edit", "theirs"])
        .run()
        .ends(0);
    merged
        .says(".tavern/queues/main.md: `T-2`: the two sides changed the title")
        .says("tavern check");
    has(&scratch.read(MAIN), &["- [ ] T-2: Deux\n", "Zwei"]);
    scratch
        .run("tavern-check", &[])
        .says("the other side says: title: Zwei");
    // The others, and the item itself, go on being worked.
    scratch
        .run("tavern-claim", &["--task", "T-2", "--runner", "claude"])
        .succeeds();
}

#[test]
fn without_the_driver_items_that_stand_apart_merge_all_the_same() {
    let scratch = board();
    let live = QUEUE.replace("id: main\n", "id: main\nlive: true\n");
    let apart = live.replace("\n- [ ] T-", "\n\n- [ ] T-");
    scratch.write(MAIN, &apart);
    scratch.commit(&["--all"], "Apart");
    for setting in ["name", "driver"] {
        scratch.git(&["config", "--unset", &format!("merge.tavern.{setting}")]);
    }
    scratch
        .run("tavern-check", &[])
        .says("has no `merge.tavern.driver`")
        .says("tavern init");
    // What a program writes touches the item's own lines only, and a person does the same.
    scratch.git(&["switch", "--quiet", "--create", "claimed", "main"]);
    scratch
        .run(
            "tavern-claim",
            &["--task", "T-1", "--runner", "claude", "--agent", "Sam"],
        )
        .succeeds();
    scratch.commit(&["--all"], "claimed");
    scratch.git(&["switch", "--quiet", "--create", "done", "main"]);
    let done = apart
        .replace("- [ ] T-3: Three\n", "")
        .replace("- [x] T-9: Nine\n", "- [x] T-9: Nine\n- [x] T-3: Three\n");
    scratch.write(MAIN, done);
    scratch.commit(&["--all"], "done");
    scratch.git(&["merge", "--quiet", "--no-edit", "claimed"]);
    let text = scratch.read(MAIN);
    let lanes: Vec<&str> = text.split("## ").collect();
    assert!(
        lanes[1].contains("T-2") && !lanes[1].contains("T-1") && !lanes[1].contains("T-3"),
        "{text}"
    );
    assert!(
        lanes[2].contains("- [ ] T-1: One") && lanes[3].contains("- [x] T-3: Three"),
        "{text}"
    );
}

#[test]
fn a_driver_that_is_gone_or_gives_up_leaves_the_merge_to_git() {
    let scratch = board();
    let driver = scratch.git(&["config", "merge.tavern.driver"]);
    scratch.git(&[
        "config",
        "merge.tavern.driver",
        &driver.replace("tavern-merge-driver", "gone"),
    ]);
    branches(
        &scratch,
        &QUEUE.replace("T-1: One", "T-1: Un"),
        &QUEUE.replace("T-3: Three", "T-3: Drei"),
    );
    scratch.git(&["merge", "--quiet", "--no-edit", "theirs"]);
    has(&scratch.read(MAIN), &["T-1: Un", "T-3: Drei"]);
    // The next `tavern-init` finds the program again.
    scratch
        .run("tavern-init", &["--runner", "shell"])
        .succeeds();
    assert_eq!(scratch.git(&["config", "merge.tavern.driver"]), driver);

    // Not UTF-8: merged by lines, and with git's markers where that can't be.
    scratch.git(&["switch", "--quiet", "main"]);
    for (branch, word) in [("latin-a", &b"caf\xe9"[..]), ("latin-b", b"th\xe9")] {
        scratch.git(&["switch", "--quiet", "--create", branch, "main"]);
        fs::write(scratch.work().join(MAIN), [b"- [ ] ", word, b"\n"].concat())
            .expect("the folder is ours");
        scratch.commit(&["--all"], branch);
    }
    scratch
        .command("git".as_ref())
        .args(&["merge", "--no-edit", "latin-a"])
        .run()
        .ends(1)
        .says("UTF-8");
    let bytes = fs::read(scratch.work().join(MAIN)).expect("it is there");
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        text.contains("<<<<<<< ours") && text.contains("caf") && text.contains("th"),
        "{text}"
    );
}

#[test]
fn init_sets_it_up_once_and_leaves_a_persons_settings() {
    let scratch = board();
    let config = fs::read_to_string(scratch.work().join(".git/config")).expect("it is there");
    let again = scratch
        .run("tavern-init", &["--runner", "shell"])
        .succeeds();
    assert!(!again.contains("set "), "{again}");
    assert_eq!(
        fs::read_to_string(scratch.work().join(".git/config")).expect("it is there"),
        config
    );
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");

    // A person's own, in the repository or for all of theirs.
    scratch.git(&["config", "merge.tavern.driver", "mine %A"]);
    scratch
        .run("tavern-init", &["--runner", "shell"])
        .succeeds();
    assert_eq!(scratch.git(&["config", "merge.tavern.driver"]), "mine %A");

    let plain = Scratch::repository();
    let made = plain
        .run("tavern-init", &["--runner", "shell", "--no-merge-driver"])
        .succeeds();
    assert!(
        !made.contains("attributes") && !made.contains("set "),
        "{made}"
    );
    assert!(!plain.work().join(".tavern/.gitattributes").exists());
    plain
        .command("git".as_ref())
        .args(&["config", "merge.tavern.driver"])
        .run()
        .ends(1);
}

#[test]
fn the_driver_is_found_with_an_odd_path_and_a_strange_path_variable() {
    let scratch = board();
    // The one program, installed where a shell and git's own placeholders would trip over the name.
    let odd = scratch.folder().join("it's 100%P \"here\"");
    fs::create_dir(&odd).expect("the folder is ours");
    let front = super::support::program("tavern");
    fs::hard_link(&front, odd.join("tavern"))
        .or_else(|_| fs::copy(&front, odd.join("tavern")).map(drop))
        .expect("room");
    scratch.git(&["config", "--unset", "merge.tavern.driver"]);
    scratch
        .command(&odd.join("tavern"))
        .args(&["init", "--runner", "shell"])
        .run()
        .succeeds();
    let (ours, theirs) = two_sides();
    branches(&scratch, &ours, &theirs);
    let git = scratch
        .command("git".as_ref())
        .variable("PATH", "/usr/bin:/bin");
    git.args(&["merge", "--quiet", "--no-edit", "theirs"])
        .run()
        .succeeds();
    is_the_union(&scratch, "an odd path");
}

#[test]
fn a_file_added_on_both_sides_and_an_archive_are_merged_too() {
    let scratch = board();
    for name in ["late", "archive/main"] {
        let path = format!(".tavern/queues/{name}.md");
        let base = scratch.git(&["rev-parse", "HEAD"]);
        for (branch, item) in [
            ("a", "- [x] T-20: Twenty\n"),
            ("b", "- [x] T-21: Twenty-one\n"),
        ] {
            scratch.git(&["switch", "--quiet", "--force-create", branch, &base]);
            scratch.write(&path, item);
            scratch.commit(&["--all"], branch);
        }
        scratch.git(&["merge", "--quiet", "--no-edit", "a"]);
        let text = scratch.read(&path);
        assert_eq!(
            sorted(&text),
            ["- [x] T-20: Twenty", "- [x] T-21: Twenty-one"],
            "{path}"
        );
    }
}

#[test]
fn the_driver_writes_nothing_where_it_fails() {
    let scratch = Scratch::empty();
    scratch.write("a", "- [ ] T-1: a\n");
    scratch
        .run("tavern-merge-driver", &["none", "a", "a"])
        .ends(1)
        .says("hint:");
    scratch.write("bad", b"- [ ] \xff\n");
    scratch
        .run(
            "tavern-merge-driver",
            &["a", "a", "bad", "7", "queues/main.md"],
        )
        .ends(5)
        .says("queues/main.md");
    assert_eq!(scratch.read("a"), "- [ ] T-1: a\n");
}

/// The board on which Tavern itself is planned, whatever stands in it now.
#[test]
fn our_own_board_has_no_problem_and_two_branches_of_it_merge() {
    let scratch = Scratch::repository();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".tavern");
    for file in walkdir::WalkDir::new(&own).into_iter().flatten() {
        let name = file.path().strip_prefix(&own).expect("it is in there");
        let is_ours = ["config.yaml", "queues", ".git"]
            .iter()
            .any(|part| name.to_string_lossy().starts_with(part));
        if is_ours && file.file_type().is_file() {
            let text = fs::read(file.path()).expect("it is readable");
            scratch.write(Path::new(".tavern").join(name), text);
        }
    }
    scratch.commit(&["--all"], "Our own board");
    // A clone names the driver for itself.
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    scratch.run("tavern-trust", &["--yes"]).succeeds();
    scratch
        .run("tavern-check", &["main"])
        .ends(0)
        .says("no problems");

    let text = scratch.read(MAIN);
    let items = scratch.records("tavern-status", &["--items"]);
    let ids: Vec<&str> = items
        .iter()
        .filter_map(|item| item["task"].as_str())
        .collect();
    let [first, .., last] = &ids[..] else {
        // With one item, or none, there is nothing to merge.
        return;
    };
    let with =
        |id: &str, word: &str| text.replacen(&format!("{id}: "), &format!("{id}: {word} "), 1);
    branches(&scratch, &with(first, "Ours"), &with(last, "Theirs"));
    scratch.git(&["merge", "--quiet", "--no-edit", "theirs"]);
    has(
        &scratch.read(MAIN),
        &[&format!("{first}: Ours "), &format!("{last}: Theirs ")],
    );
}

#[test]
fn an_approved_item_that_a_person_ticks_is_not_merged_without_an_event() {
    let scratch =
        Scratch::pending("- [ ] T-1: One (review: person)\n  ```sh\n  echo 1 >one\n  ```\n");
    scratch.run("tavern-agent", &["--once"]).ends(0);
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    let before = scratch.git(&["rev-parse", "tavern/integration"]);
    scratch.change(MAIN, "- [ ] T-1", "- [x] T-1");
    scratch
        .run("tavern-merge", &["T-1"])
        .ends(4)
        .says("`T-1` is completed: only approved items are merged");
    scratch
        .run("tavern-merge", &[])
        .ends(0)
        .says("nothing to merge");
    assert_eq!(before, scratch.git(&["rev-parse", "tavern/integration"]));
}
