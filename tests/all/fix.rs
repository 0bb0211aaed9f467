//! `tavern-check --fix` through the real program: each fault that it mends, what it leaves, and what a dry run says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{ARCHIVE, CONFIG, QUEUE, Ran, Scratch, has};

fn fix(scratch: &Scratch, more: &[&str]) -> Ran {
    scratch.run("tavern-check", &[&["--fix"], more].concat())
}

/// Every file of the board.
pub fn files(scratch: &Scratch) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).expect("it can be read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, files);
            } else {
                files.insert(
                    path.display().to_string(),
                    fs::read(&path).expect("it can be read"),
                );
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&scratch.work().join(".tavern"), &mut found);
    found
}

/// A dry run, then the run: both say the same, and only the run changes a byte.
#[track_caller]
fn fixed(scratch: &Scratch) -> Ran {
    let before = files(scratch);
    let plan = fix(scratch, &["--dry-run"]);
    assert_eq!(files(scratch), before, "a dry run changes nothing");
    let done = fix(scratch, &[]);
    assert_eq!(
        (plan.code, &plan.stdout),
        (done.code, &done.stdout),
        "{plan}{done}"
    );
    let again = fix(scratch, &["--dry-run"]);
    assert!(again.stderr.starts_with("nothing can be fixed"), "{again}");
    done
}

#[test]
fn an_id_that_stands_twice_is_mended() {
    let sh = "\n  ```sh\n  true\n  ```\n";
    let scratch = Scratch::board(&format!("- [ ] T-1: One{sh}- [ ] T-1: Two{sh}"));
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("= hint: give all but one a fresh ID: tavern check --fix");
    let done = fixed(&scratch)
        .ends(0)
        .says("\n-- [ ] T-1: Two\n")
        .says("\n+- [ ] T-");
    assert!(
        done.stdout
            .starts_with("--- .tavern/queues/main.md\n+++ .tavern/queues/main.md\n@@ "),
        "{done}"
    );
    scratch.run("tavern-check", &[]).ends(0);
    scratch.run("tavern-log", &[]).ends(0).says("line ");
}

#[test]
fn who_holds_an_id_keeps_it_and_what_waits_for_it_waits_for_the_first() {
    let item = |line: &str| format!("- [ ] {line}\n  ```sh\n  true\n  ```\n");
    let text: String = ["T-1: One", "T-1: Two", "T-3: Three (after: T-1)"]
        .map(item)
        .concat();
    let scratch = Scratch::board(&text.replace("T-1: One", "One"));
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Rosie"])
        .succeeds();
    scratch.change(QUEUE, "] One", "] T-1: One");
    scratch.run("tavern-reap", &[]).succeeds();
    fix(&scratch, &[]);
    let queue = scratch.queue();
    assert!(
        queue.contains("] T-1: Two\n") && queue.contains("(after: T-1)"),
        "{queue}"
    );
    assert_eq!(scratch.stands("T-1", "in_progress", 1)["agent"], "Rosie");
    assert!(!queue.contains("T-1: One"), "{queue}");
    // Nobody holds either: the first.
    let scratch = Scratch::board(&text);
    fixed(&scratch);
    let queue = scratch.queue();
    assert!(
        queue.contains("] T-1: One") && !queue.contains("T-1: Two"),
        "{queue}"
    );
}

#[test]
fn a_queue_that_was_lost_is_put_back() {
    let text = "## Pending\n\n- [ ] T-1: One\n  ```sh\n  true\n  ```\n";
    for is_gone in [true, false] {
        let scratch = Scratch::board(text);
        let path = scratch.work().join(QUEUE);
        if is_gone {
            fs::remove_file(&path)
        } else {
            fs::write(&path, "")
        }
        .expect("it is ours");
        scratch
            .run("tavern-check", &[])
            .says("put it back: tavern check --fix; or forget it: rm ");
        fixed(&scratch).says("\n+- [ ] T-1: One\n");
        assert_eq!(scratch.queue(), text);
    }
    // Renamed, or nothing was left to do in it.
    let scratch = Scratch::board(text);
    fs::rename(
        scratch.work().join(QUEUE),
        scratch.work().join(".tavern/queues/other.md"),
    )
    .expect("it is ours");
    assert_eq!(fix(&scratch, &[]).stdout, "");
    let scratch = Scratch::board(&text.replace("[ ]", "[x]"));
    fs::remove_file(scratch.work().join(QUEUE)).expect("it is ours");
    assert_eq!(fix(&scratch, &[]).stdout, "");
}

/// More than 30 days before any test runs.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// The log of a board begins then, with this open item: what has ended there has ended then.
pub fn begin_long_ago(scratch: &Scratch, open: &str) {
    let at = |program, arguments: &[&str]| scratch.at(LONG_AGO, program, arguments).succeeds();
    at("tavern-claim", &["--task", open]);
    at("tavern-release", &[open, "--force"]);
}

#[test]
fn an_archive_that_was_lost_is_put_back_from_the_log() {
    let done = "## Pending\n\n- [ ] T-1: One\n\n## Completed\n\n- [x] T-2: Two\n";
    let scratch = Scratch::shell(done, "archive: {after: 30d}\n");
    begin_long_ago(&scratch, "T-1");
    scratch
        .run("tavern-reap", &[])
        .ends(0)
        .says("move 1 ended item");
    let archived = scratch.read(ARCHIVE);
    let torn = archived.find("Two").expect("it is there") + 1;
    for damage in [None, Some(""), Some("\0\0\0"), Some(&archived[..torn])] {
        match damage {
            Some(text) => drop(scratch.write(ARCHIVE, text)),
            None => fs::remove_dir_all(scratch.work().join(".tavern/queues/archive"))
                .expect("it is ours"),
        }
        scratch
            .run("tavern-check", &[])
            .ends(0)
            .says("the log has its items")
            .says("tavern check --fix");
        fix(&scratch, &[]).says("+- [x] T-2: Two");
        assert_eq!(scratch.read(ARCHIVE), archived);
        scratch.run("tavern-check", &[]).says_not("archive");
    }
    let bytes = [0xff, 0xfe];
    scratch.write(ARCHIVE, bytes);
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("mv .tavern/queues/archive/main.md .tavern/queues/archive/main.md.was;");
    scratch.write(ARCHIVE, &archived);
    scratch.run("tavern-release", &["T-2", "--reopen"]).ends(0);
    fs::remove_dir_all(scratch.work().join(".tavern/queues/archive")).expect("it is ours");
    scratch.run("tavern-check", &[]).says_not("archive");
}

/// What is archived next does not stand there alone.
#[test]
fn an_archive_that_was_lost_is_put_back_before_anything_is_moved_there() {
    let scratch = Scratch::shell(
        "## Pending\n\n- [ ] T-1: One\n\n## Completed\n\n- [x] T-2: Two\n",
        "archive: {after: 30d}\n",
    );
    begin_long_ago(&scratch, "T-1");
    scratch
        .run("tavern-reap", &[])
        .ends(0)
        .says("move 1 ended item");
    let archived = scratch.read(ARCHIVE);
    let torn = &archived[..=archived.find("Two").expect("it is there")];
    for (id, damage) in ["T-3", "T-4", "T-5"]
        .into_iter()
        .zip([None, Some(""), Some(torn)])
    {
        let next = format!("## Completed\n\n- [x] {id}: more\n");
        scratch.change(QUEUE, "## Completed\n", &next);
        scratch.at(LONG_AGO, "tavern-reap", &[]).ends(0);
        match damage {
            Some(text) => drop(scratch.write(ARCHIVE, text)),
            None => fs::remove_file(scratch.work().join(ARCHIVE)).expect("it is there"),
        }
        scratch
            .run("tavern-reap", &[])
            .ends(0)
            .says("move 1 ended item");
        has(&scratch.read(ARCHIVE), &["- [x] T-2: Two\n", id]);
    }
}

#[test]
fn a_plain_task_file_is_left_alone_unless_it_is_named() {
    let text = "- [ ] T-1: One\r\n\r\n- [ ] T-1: Two";
    let scratch = Scratch::board("");
    scratch.write("TODO.md", text);
    scratch.write(".git/tavern/files", "TODO.md\n");
    let left = fix(&scratch, &[]);
    assert!(left.stderr.starts_with("nothing can be fixed"), "{left}");
    assert_eq!(scratch.read("TODO.md"), text);
    let plan = fix(&scratch, &["TODO.md", "--dry-run"]);
    assert_eq!(fix(&scratch, &["TODO.md"]).stdout, plan.stdout);
    let named = scratch.read("TODO.md");
    assert!(
        named.starts_with("- [ ] T-1: One\r\n\r\n- [ ] T-") && !named.contains("T-1: Two"),
        "{named:?}"
    );
}

#[test]
fn a_file_that_goes_by_two_names_is_one_queue() {
    let scratch = Scratch::initialized();
    let text = "## Pending\n\n- [ ] T-1: one\n  ```sh\n  true\n  ```\n";
    fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
    scratch.write("TODO.md", text);
    for name in ["main.md", "other.md"] {
        let link = scratch.work().join(".tavern/queues").join(name);
        std::os::unix::fs::symlink("../../TODO.md", link).expect("the folder is ours");
    }
    let told = scratch.run("tavern-check", &[]).ends(0);
    assert!(
        told.stdout
            .contains("other.md: warning: this is the same file as .tavern/queues/main.md"),
        "{told}"
    );
    fix(&scratch, &[]).ends(0);
    assert_eq!(scratch.read("TODO.md"), text);
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says("main: 1 pending")
        .says_not("other");
    for name in ["TODO.md", "other"] {
        scratch
            .run("tavern-claim", &["--queue", name, "--format", "json"])
            .ends(0)
            .says("\"queue\":\"main\"");
        scratch.run("tavern-release", &["T-1", "--force"]).ends(0);
    }
    assert!(
        scratch.work().join(QUEUE).is_symlink(),
        "it is written through"
    );
    scratch.run("tavern-log", &[]).ends(0).says_not("by hand");
}

/// To give it another ID would be to do the same work twice.
#[test]
fn a_copy_of_an_item_is_left_to_a_person() {
    let item = "- [ ] T-1: Do it (result: answer)\n  ```sh\n  true\n  ```\n";
    for has_ended in [false, true] {
        let scratch = Scratch::board(&format!(
            "## Pending\n\n{item}\n## In Progress\n\n## Completed\n"
        ));
        if has_ended {
            scratch.run("tavern-drain", &[]).ends(0);
        } else {
            scratch
                .run("tavern-claim", &["--task", "T-1", "--agent", "Rosie"])
                .succeeds();
        }
        scratch.change(QUEUE, "## Pending\n", &format!("## Pending\n\n{item}"));
        scratch
            .run("tavern-check", &[])
            .ends(5)
            .says("= hint: remove one of them");
        scratch
            .run("tavern-check", &["--fix"])
            .ends(5)
            .says("nothing can be fixed automatically");
        scratch
            .run("tavern-claim", &["--task", "T-1", "--agent", "Sam"])
            .ends(3);
        if !has_ended {
            scratch
                .run("tavern-renew", &["T-1", "--token", "1"])
                .ends(0);
        }
        // With another title it is something else.
        scratch.write(
            QUEUE,
            scratch.queue().replacen("T-1: Do it", "T-1: Do that", 1),
        );
        assert_eq!(fixed(&scratch).code, Some(0));
        let queue = scratch.queue();
        assert!(
            queue.contains(": Do that") && !queue.contains("T-1: Do that"),
            "{queue}"
        );
        assert_eq!(queue.matches("T-1: Do it").count(), 1, "{queue}");
        let status = if has_ended {
            "completed"
        } else {
            "in_progress"
        };
        scratch.stands("T-1", status, 1);
    }
}

#[test]
fn an_id_that_stands_twice_in_a_task_file_is_mended_as_the_hint_says() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    scratch.write("TODO.md", "- [ ] T-2: Two\n- [ ] T-2: Three\n");
    scratch.write(".git/tavern/files", "TODO.md\n");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("tavern check --fix TODO.md\n");
    fix(&scratch, &["TODO.md"]);
    scratch.run("tavern-check", &[]).ends(0);
    // Of one in each file the item keeps its ID that the log knows.
    scratch.write("TODO.md", "- [ ] T-1: Two\n");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("a fresh ID: tavern check --fix TODO.md\n");
    fix(&scratch, &["TODO.md"]).ends(0);
    assert_eq!(scratch.queue(), "- [ ] T-1: One\n");
}

/// Whoever looks, or looks for work, is told, and not only who checks.
#[test]
fn a_queue_that_was_removed_is_told_with_what_puts_it_back() {
    let scratch =
        Scratch::board("## Pending\n\n- [ ] T-1: One (result: answer)\n  ```sh\n  true\n  ```\n");
    let before = scratch.queue();
    fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
    for (line, code) in [
        ("tavern-status", 0),
        ("tavern-status T-1", 2),
        ("tavern-claim", 3),
        ("tavern-drain", 2),
        ("tavern-agent --until-empty", 0),
        ("tavern-add more", 2),
    ] {
        let told = scratch
            .line(line)
            .run()
            .ends(code)
            .says("put it back: tavern check --fix; or forget it: rm ");
        told.says_not("add one");
    }
    fix(&scratch, &[]).ends(0);
    assert_eq!(scratch.queue(), before);
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says_not("removed");
    scratch.run("tavern-drain", &[]).ends(0);
    // Nothing is left to do in it: nothing is lost, and it is made when somebody needs it.
    fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says_not("removed");
    scratch.run("tavern-add", &["More"]).ends(0);
    assert!(scratch.queue().ends_with(": More\n"));
}

#[test]
fn a_queue_that_a_role_takes_from_is_made_by_whoever_needs_it_first() {
    let scratch =
        Scratch::board("## Pending\n\n- [ ] T-1: One (result: answer)\n  ```sh\n  true\n  ```\n");
    scratch.write(
        CONFIG,
        "roles: {coder: {runner: shell, queues: [urgent, main]}}\n",
    );
    let urgent = ".tavern/queues/urgent.md";
    scratch
        .run("tavern-add", &["x", "--queue", "urgent", "--dry-run"])
        .ends(0);
    scratch
        .run("tavern-add", &["x", "--queue", "urgency"])
        .ends(2)
        .says("no queue or file `urgency`");
    assert!(!scratch.work().join(urgent).exists());
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .ends(0)
        .says("T-1 done\n");
    let made = scratch.read(urgent);
    assert!(
        made.starts_with("---\nid: urgent\n---\n") && made.ends_with("## Pending\n"),
        "{made}"
    );
    scratch
        .run("tavern-add", &["Two", "--queue", "urgent"])
        .ends(0);
    scratch.run("tavern-check", &["--quiet"]).ends(0);
    assert!(scratch.read(urgent).starts_with(&made));
}

const TEMPLATE: &str = ".tavern/templates/own.md";

/// What a person typed is nowhere else before it is committed.
#[test]
fn settings_and_templates_that_went_before_they_were_committed_are_put_back() {
    let settings = "base: main\nreview: [reviewer]\n";
    let board = || {
        let scratch = Scratch::board("## Pending\n\n- [ ] T-1: One\n");
        scratch.write(CONFIG, settings);
        scratch.write(TEMPLATE, "Words of mine.\n");
        scratch.settle();
        // A save that nobody can read takes the place of none.
        scratch.write(CONFIG, "review: [\0\0\0");
        scratch.line("tavern-claim").run();
        scratch
    };
    let is_back = |scratch: &Scratch| {
        assert_eq!(
            [CONFIG, TEMPLATE].map(|path| scratch.read(path)),
            [settings, "Words of mine.\n"]
        );
        scratch.run("tavern-check", &[]).says_not("put it back");
        scratch.run("tavern-status", &[]).says_not("put it back");
    };
    let scratch = board();
    scratch.git(&["clean", "-fdxq"]);
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    is_back(&scratch);
    // One after the other; the settings are emptied, as a power cut does it.
    for damage in ["removed", "emptied"] {
        let scratch = board();
        fs::remove_file(scratch.work().join(TEMPLATE)).expect("it is there");
        if damage == "removed" {
            fs::remove_file(scratch.work().join(CONFIG)).expect("it is there");
        } else {
            scratch.write(CONFIG, "\0\0\0\0");
        }
        for line in ["tavern-check", "tavern-status", "tavern-claim"]
            .iter()
            .take(if damage == "removed" { 3 } else { 2 })
        {
            let told = scratch.line(line).run();
            told.says(&format!("config.yaml was {damage}"))
                .says("put it back: tavern check --fix; or forget it: rm ");
        }
        fix(&scratch, &[]);
        is_back(&scratch);
        scratch
            .run("tavern-log", &[])
            .says("config.yaml: the file was removed; it was put back");
    }
    // Who means it says so. What git has, git brings back.
    let scratch = board();
    fs::remove_file(scratch.work().join(CONFIG)).expect("it is there");
    fs::remove_file(scratch.work().join(".git/tavern/typed/config.yaml")).expect("it is there");
    scratch
        .run("tavern-status", &[])
        .says_not("config.yaml was removed");
    let scratch = board();
    scratch.write(CONFIG, settings);
    scratch.commit(&["--all"], "Board");
    scratch.git(&["switch", "--quiet", "--create", "other"]);
    scratch.git(&["rm", "--quiet", CONFIG]);
    scratch.git(&["commit", "--quiet", "--message=Without"]);
    scratch
        .run("tavern-status", &[])
        .says_not("config.yaml was removed");
}

#[test]
fn what_git_is_told_of_a_board_is_made_whole_and_a_persons_lines_stay() {
    const IGNORE: &str = ".tavern/.gitignore";
    const ATTRIBUTES: &str = ".tavern/.gitattributes";
    const MERGES: &str = "/queues/**/*.md merge=tavern";
    let half = "# Mine.\n*.bak\n/agents\nruns/";
    for (path, damage, told) in [
        (IGNORE, "", "this file is gone"),
        (IGNORE, "\0\0\0\0", "this file is empty"),
        (IGNORE, half, "this lacks /applied, /events/"),
        (ATTRIBUTES, "", "this file is gone"),
        (ATTRIBUTES, " \n", "this file is empty"),
        (
            ATTRIBUTES,
            "* text",
            "this lacks /queues/**/*.md merge=tavern",
        ),
    ] {
        for line in ["tavern-check --fix", "tavern-init"] {
            let scratch = Scratch::board("## Pending\n\n- [ ] T-1: One\n");
            if path == ATTRIBUTES {
                scratch.track();
            }
            let whole = scratch.read(path);
            scratch.write(path, damage);
            if damage.is_empty() {
                fs::remove_file(scratch.work().join(path)).expect("it is there");
            }
            let checked = scratch.run("tavern-check", &[]).ends(0);
            checked
                .says(&format!("{path}: warning: {told}"))
                .says("tavern check --fix");
            let dry = scratch.line(&format!("{line} --dry-run")).run().ends(0);
            let ran = scratch.line(line).run().ends(0).says(path);
            let text = scratch.read(path);
            if line == "tavern-check --fix" {
                assert_eq!(dry.stdout, ran.stdout);
            }
            if damage.trim_matches(['\0', ' ', '\n']).is_empty() {
                assert_eq!(text, whole, "{line}");
            } else {
                assert!(text.starts_with(&format!("{damage}\n")), "{text}");
            }
            let lines = if path == IGNORE {
                ["agents", "runs", "worktrees"].as_slice()
            } else {
                &[MERGES]
            };
            for line in lines.iter().map(|line| line.trim_matches('/')) {
                assert_eq!(
                    text.lines()
                        .filter(|found| found.trim_matches('/') == line)
                        .count(),
                    1,
                    "{line}\n{text}"
                );
            }
            scratch.run("tavern-check", &[]).says_not(path);
        }
    }
    // No text: a person looks at it.
    let scratch = Scratch::board("");
    scratch.write(IGNORE, b"caf\xe9\n");
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says("mv .tavern/.gitignore")
        .says("tavern check --fix");
    // A person's own way to say it.
    scratch.write(IGNORE, "*\n");
    scratch.write(ATTRIBUTES, "queues/* -merge\n");
    scratch.run("tavern-check", &[]).says_not(".git");
    let plain = Scratch::repository();
    plain
        .run(
            "tavern-init",
            &["--quiet", "--runner", "shell", "--no-merge-driver"],
        )
        .succeeds();
    plain.run("tavern-check", &[]).says("no problems");
}

/// Nobody is told that commands have passed where there were none.
#[test]
fn only_what_commands_have_shown_is_told_as_verified() {
    let script = "  ```sh\n  echo done > $TAVERN_TASK.txt\n  ```\n";
    let items =
        format!("- [ ] T-1: One\n{script}- [ ] T-2: Two (done_when: test -s T-2.txt)\n{script}");
    let scratch = Scratch::board(&format!("## Pending\n\n{items}\n## Completed\n"));
    let told = scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    assert!(
        told.contains("T-1 done\n") && told.contains("T-2 done and verified\n"),
        "{told}"
    );
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert!(
        log.contains("finished T-1 at ")
            && log.contains("finished T-2, and its commands passed at "),
        "{log}"
    );
    let runs = scratch.records("tavern-runs", &["list"]);
    assert_eq!(
        (&runs[0]["verified"], &runs[1]["verified"]),
        (&serde_json::Value::Null, &serde_json::json!(true))
    );
}
