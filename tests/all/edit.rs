//! `tavern-edit` with editors that are scripts: what they save is merged, and never lost.

use std::fs;
use std::path::PathBuf;

use tavern_core::task::Status;
use tavern_store::HAND;

use crate::state::State;
use crate::support::{ARCHIVE, CONFIG, OWNED, QUEUE, Ran, Scratch, has};

/// Runs it with a shell script for an editor; `$1` is the copy.
fn edit(scratch: &Scratch, arguments: &[&str], script: &str) -> Ran {
    let editor = scratch.executable("../editor", &format!("#!/bin/sh\nset -e\n{script}\n"));
    scratch
        .program("tavern-edit")
        .args(arguments)
        .variable("EDITOR", editor)
        .run()
}

/// The copies that are still there.
fn copies(scratch: &Scratch) -> Vec<PathBuf> {
    let folders = fs::read_dir(scratch.folder().join("tmp"))
        .expect("it is there")
        .flatten();
    folders
        .flat_map(|folder| fs::read_dir(folder.path()).expect("a folder").flatten())
        .map(|file| file.path())
        .collect()
}

#[test]
fn keys_are_set_without_an_editor() {
    let scratch = Scratch::board("- [ ] T-1: One (priority: 3)\n- [ ] T-2: Two\n");
    let set = |words: &[&str]| scratch.run("tavern", &[&["set", "T-1"], words].concat());
    set(&["priority=0", "after=T-2", "done_when=env A=1 make test"]).ends(0);
    has(
        &scratch.queue(),
        &["- [ ] T-1: One (priority: 0, after: T-2, done_when: env A=1 make test)\n"],
    );
    set(&["after=", "done_when="]).ends(0);
    let text = scratch.queue();
    has(
        &text,
        &["- [ ] T-1: One (priority: 0)\n", "- [ ] T-2: Two\n"],
    );
    for (words, says) in [
        ("priority=99", "hint: write 0 (most urgent) to 9"),
        ("prioritty=1", "hint: did you mean `priority`?"),
        ("status=dead", "unknown key `status`"),
        ("urgent", "hint: write KEY=VALUE"),
    ] {
        set(&[words]).ends(2).says(says);
    }
    assert_eq!(scratch.queue(), text);
    scratch
        .run("tavern-edit", &["main", "--set", "priority=1"])
        .ends(2)
        .says("`main` is no item");
}

#[test]
fn what_is_saved_is_merged_with_what_others_did_meanwhile() {
    let scratch = Scratch::board(OWNED);
    // Meanwhile one is taken, and one is added.
    let script = "tavern claim T-2 --agent Frodo >/dev/null; tavern add more --id T-9 >/dev/null
        sed -i 's/T-1: one/T-1: first/; /T-3/d; s/the owner/the owner, again/' \"$1\"";
    let told = edit(&scratch, &[], script).ends(0);
    told.says("T-1 was edited by hand: now `first`")
        .says("T-3 was taken out of main by hand");
    let state = State::of(&scratch);
    state.agrees();
    let statuses = ["T-1", "T-2", "T-3", "T-9"].map(|id| state.status(id));
    assert_eq!(
        statuses,
        [
            Some(Status::Pending),
            Some(Status::InProgress),
            None,
            Some(Status::Pending)
        ]
    );
    assert!(
        state.texts["main"].contains("T-1: first\n")
            && state.texts["main"].contains("the owner, again.")
    );
    let by_hand = state
        .log
        .iter()
        .filter(|entry| entry.agent.as_deref() == Some(HAND));
    let kinds: Vec<&str> = by_hand.map(|entry| entry.kind.as_str()).collect();
    // The words around the items are in the log too.
    assert_eq!(kinds, ["edited", "removed", "edited"]);
    // It is in the log already: nobody takes it over a second time.
    scratch.run("tavern-reap", &[]).succeeds();
    assert_eq!(State::of(&scratch).log.len(), state.log.len());
    assert_eq!(copies(&scratch), Vec::<PathBuf>::new());
}

#[test]
fn a_mark_in_the_box_of_a_held_item_takes_it_from_its_holder() {
    let list = "- [ ] T-1: one\n  Words.\n- [ ] T-2: two\n";
    let scratch = Scratch::board(list);
    scratch.claim("T-1", &[]);
    let told = edit(&scratch, &["main"], "sed -i 's/\\[ \\] T-1/[-] T-1/' $1").ends(0);
    told.says("it was marked `[-]` by hand");
    assert_eq!(scratch.queue(), list.replace("[ ] T-1", "[-] T-1"));
    assert!(State::of(&scratch).leases.is_empty());
    State::of(&scratch).agrees();
}

#[test]
fn an_editor_that_saves_a_text_from_before_a_claim_makes_no_second_item_of_it() {
    for board in [
        "## Todo\n\n- [ ] one\n  Words.\n- [ ] two\n\n## Doing\n\n## Done\n",
        "- [ ] one\n  Words.\n- [ ] two\n",
    ] {
        let scratch = Scratch::board(board);
        scratch.write("../home/old.md", board.replace("Words.", "More words."));
        scratch.run("tavern-claim", &[]).ends(0);
        let claimed = scratch.queue();
        edit(&scratch, &["main"], "cat $HOME/old.md > $1").ends(0);
        assert_eq!(scratch.queue(), claimed.replace("Words.", "More words."));
    }
}

#[test]
fn one_item_is_edited_in_its_place() {
    let items = OWNED.replace("T-1: one", "T-1: one\n  Words under it.");
    let scratch = Scratch::board(&items);
    let script = "test \"$(basename \"$1\")\" = T-1.md; test \"$(cat \"$1\")\" = \"$(printf -- '- [ ] T-1: one\\n  Words under it.')\"
        printf -- '- [ ] T-1: one (priority: 0)\\n  Other words.' >\"$1\"";
    edit(&scratch, &["T-1"], script).succeeds();
    let expected = items.replace(
        "T-1: one\n  Words under it.",
        "T-1: one (priority: 0)\n  Other words.",
    );
    assert_eq!(scratch.queue(), expected);
    let record = edit(&scratch, &["T-1", "--format", "json"], "touch \"$1\"").succeeds();
    assert_eq!(
        record,
        "{\"queue\":\"main\",\"changed\":false,\"events\":[],\"conflicts\":[]}\n"
    );
    assert_eq!(edit(&scratch, &["T-77"], "true").code, Some(2));
}

#[test]
fn nothing_saved_changes_nothing() {
    let scratch = Scratch::board(OWNED);
    assert_eq!(
        edit(&scratch, &[], "true").succeeds(),
        "nothing was changed\n"
    );
    assert_eq!(
        edit(&scratch, &[], ": >\"$1\"").succeeds(),
        "nothing was changed\n"
    );
    edit(&scratch, &[], "exit 127")
        .ends(1)
        .says("nothing was changed");
    let ran = edit(&scratch, &[], "sed -i s/one/uno/ \"$1\"; exit 3").ends(1);
    assert_eq!(scratch.queue(), OWNED);
    // What was typed is kept, where it says.
    let [kept] = &copies(&scratch)[..] else {
        panic!("{ran}")
    };
    assert!(
        ran.stderr
            .contains(&format!("your copy is kept: {}\n", kept.display())),
        "{ran}"
    );
    assert!(
        fs::read_to_string(kept)
            .expect("it is there")
            .contains("T-1: uno")
    );
    assert!(kept.ends_with("main.md"));
}

#[test]
fn a_mistake_opens_the_editor_again_with_the_mistake_above_its_line() {
    let scratch = Scratch::board(OWNED);
    let script = "if grep -q '^<!-- tavern-edit: ' \"$1\"; then
          grep -A1 '^<!-- tavern-edit: ' \"$1\" >seen
          sed -i 's/T-2: deux/T-4: deux/' \"$1\"
        else
          sed -i 's/T-3: three/T-2: deux/' \"$1\"
        fi";
    edit(&scratch, &[], script).succeeds();
    let seen = scratch.read("seen");
    assert!(
        seen.contains("error: ") && seen.ends_with("-->\n- [ ] T-2: deux\n"),
        "{seen}"
    );
    assert_eq!(
        scratch.queue(),
        OWNED.replace("T-3: three", "T-4: deux"),
        "no mark is left"
    );
    // Who saves the mistake again gives up.
    let ran = edit(&scratch, &["T-4"], "sed -i 's/T-4: deux/T-2: deux/' \"$1\"").ends(4);
    assert!(!scratch.queue().contains("T-2: deux"));
    let [kept] = &copies(&scratch)[..] else {
        panic!("{ran}")
    };
    assert_eq!(
        fs::read_to_string(kept).expect("it is there"),
        "- [ ] T-2: deux\n"
    );
}

#[test]
fn what_contradicts_stands_from_both_sides_and_what_is_held_stays() {
    let scratch = Scratch::board(OWNED);
    let script =
        "sed -i 's/T-1: one/T-1: mine/' .tavern/queues/main.md; tavern claim T-2 --agent Frodo >/dev/null
        sed -i 's/T-1: one/T-1: yours/; /T-2/d' \"$1\"";
    let told = edit(&scratch, &[], script)
        .says("T-1: title")
        .says("; see where: tavern check\n");
    told.says("T-2 was removed by hand; it is held, so it was put back")
        .says("; to take it from its holder: tavern release T-2 --force\n");
    scratch
        .run("tavern-release", &["T-2", "--force", "--dry-run"])
        .ends(0);
    has(
        &scratch.queue(),
        &["T-1: mine", "<!-- conflict: title: yours -->"],
    );
    assert_eq!(State::of(&scratch).status("T-2"), Some(Status::InProgress));
}

#[test]
fn a_board_that_can_not_be_written_keeps_what_was_typed() {
    let scratch = Scratch::board(OWNED);
    for (number, point) in ["log.torn=error", "replace.written=error@2"]
        .into_iter()
        .enumerate()
    {
        let editor = scratch.executable(
            "../editor",
            &format!("#!/bin/sh\nsed -i 's/T-2: .*/T-2: word {number}/' \"$1\"\n"),
        );
        let ran = scratch
            .program("tavern-edit")
            .variable("EDITOR", editor)
            .variable("TAVERN_FAILPOINT", point)
            .run();
        assert_eq!(ran.code, Some(1), "{point}\n{ran}");
        let copies = copies(&scratch);
        let kept = copies
            .iter()
            .map(|path| fs::read_to_string(path).expect("it is there"));
        assert!(
            kept.into_iter()
                .any(|text| text.contains(&format!("T-2: word {number}"))),
            "{point}\n{ran}"
        );
    }
}

#[test]
fn the_editor_is_found_and_without_a_terminal_none_is_opened() {
    let scratch = Scratch::board(OWNED);
    scratch
        .run("tavern-edit", &[])
        .ends(2)
        .says("hint: name an editor");
    let script = |word: &str| {
        let text = format!(
            "#!/bin/sh\nsed -i 's/the owner/{word}/; s/git/{word}/; s/plain/{word}/' \"$1\"\n"
        );
        scratch
            .executable(&format!("../{word}"), &text)
            .display()
            .to_string()
    };
    let (git, plain, visual) = (script("git"), script("plain"), script("visual"));
    scratch.git(&["config", "core.editor", &git]);
    scratch.run("tavern-edit", &[]).succeeds();
    assert!(scratch.queue().contains("Words of git."));
    scratch
        .program("tavern-edit")
        .variable("EDITOR", &plain)
        .run()
        .succeeds();
    assert!(scratch.queue().contains("Words of plain."));
    scratch
        .program("tavern-edit")
        .variable("EDITOR", &plain)
        .variable("VISUAL", &visual)
        .run()
        .succeeds();
    assert!(scratch.queue().contains("Words of visual."));
}

#[test]
fn a_task_file_that_no_program_works_on_is_edited_as_often_as_one_likes() {
    let scratch = Scratch::board(OWNED);
    scratch.write("TODO.md", "- [ ] T-7: seven\n- [ ] T-8: eight\n");
    edit(&scratch, &["TODO.md"], "sed -i s/seven/7/ \"$1\"").succeeds();
    scratch.write("TODO.md", scratch.read("TODO.md").replace("eight", "8"));
    edit(&scratch, &["TODO.md"], "sed -i s/7$/sieben/ \"$1\"").succeeds();
    assert_eq!(scratch.read("TODO.md"), "- [ ] T-7: sieben\n- [ ] T-8: 8\n");
    // It is nobody's but its owner's.
    fs::remove_file(scratch.work().join("TODO.md")).expect("it is there");
    scratch.run("tavern-check", &[]).says_not("was removed");
}

#[test]
fn what_is_archived_is_not_edited_into_work_that_nobody_sees() {
    let scratch = Scratch::board(
        &OWNED
            .replace("[ ] T-1", "[x] T-1")
            .replace("[ ] T-2", "[x] T-2"),
    );
    scratch.write(CONFIG, "base: main\narchive: {keep: 1}\n");
    scratch.settle();
    let before = scratch.read(ARCHIVE);
    assert!(before.contains("- [x] T-1"), "{before}");
    edit(&scratch, &["T-1"], "sed -i 's/x]/ ]/' \"$1\"")
        .ends(4)
        .says("`T-1` is in the archive")
        .says("tavern reopen T-1");
    assert_eq!(scratch.read(ARCHIVE), before);
}

#[test]
fn what_is_typed_is_judged_as_the_check_judges_it() {
    let scratch = Scratch::board(OWNED);
    scratch.write(
        ARCHIVE,
        "- [x] T-0: zero (completed: 2026-11-22T10:00:00Z)\n",
    );
    // An item may wait for one that is in the archive.
    edit(
        &scratch,
        &["T-1"],
        "sed -i 's/T-1: one/T-1: one (after: T-0)/' \"$1\"",
    )
    .succeeds();
    scratch.run("tavern-check", &[QUEUE]).ends(0);
    // What the check calls an error is not saved.
    let ran = edit(
        &scratch,
        &["T-2"],
        "sed -i 's/T-2: two$/T-2: two (runner: shel)/' \"$1\"",
    );
    ran.ends(4)
        .says("runner `shel` is not in config.yaml")
        .says("your copy is kept");
    scratch.write(QUEUE, OWNED.replace("T-2: two", "T-2: two (runner: shel)"));
    scratch
        .run("tavern-check", &[QUEUE])
        .ends(5)
        .says("runner `shel` is not in config.yaml");
}

#[test]
fn an_editor_that_always_saves_another_mistake_is_ended() {
    let scratch = Scratch::board(OWNED);
    let script = "echo again >>rounds; sed -i \"s/T-3: three.*/T-3: three (after: T-9$(wc -l <rounds))/\" \"$1\"";
    edit(&scratch, &[], script)
        .ends(4)
        .says("nothing was changed")
        .says("your copy is kept");
    assert!(scratch.read("rounds").lines().count() <= 10);
    assert_eq!(scratch.queue(), OWNED);
}

#[test]
fn one_mistake_of_several_may_be_mended_by_itself() {
    let queue = OWNED
        .replace("T-2: two", "T-2: two (runner: shel)")
        .replace("T-3: three", "T-3: three (runner: shel)");
    let scratch = Scratch::board(&queue);
    edit(&scratch, &["T-3"], "sed -i 's/ (runner: shel)//' \"$1\"").succeeds();
    assert!(scratch.queue().contains("T-3: three\n"));
}

/// The names of the texts that stood in the queue, the newest first.
fn texts(scratch: &Scratch) -> Vec<String> {
    let all = scratch.records("tavern-edit", &["--texts"]);
    let name = |text: &serde_json::Value| text["text"].as_str().expect("a name").to_owned();
    all.iter().map(name).collect()
}

#[test]
fn a_text_that_stood_in_the_queue_comes_back_but_for_what_is_done_or_held() {
    let scratch = Scratch::board(
        "Words.\n\n- [ ] T-1: one\n- [ ] T-2: two\n  Of two.\n- [ ] T-3: three\n- [ ] T-4: four\n- [ ] T-5: five\n",
    );
    let before = scratch.queue();
    scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    // It was archived since, and one was taken out by mistake.
    scratch.run("tavern-release", &["T-4", "--cancel"]).ends(0);
    let far = "2036-01-01T00:00:00Z";
    scratch.write(CONFIG, "archive: {after: 30d, keep: 1}\n");
    scratch.at(far, "tavern-reap", &[]).ends(0);
    let archived = scratch.read(ARCHIVE);
    scratch.claim("T-3", &["--agent", "Sam"]);
    let text = scratch.queue();
    let lost = text
        .replace("- [ ] T-2: two\n  Of two.\n", "")
        .replace("Words.", "Other words.");
    scratch.write(QUEUE, &lost);
    scratch.settle();
    let names = texts(&scratch);
    let oldest = names.last().expect("there are some");
    let shown = scratch.run("tavern-edit", &["--show", oldest]).succeeds();
    assert_eq!(shown, before);
    scratch
        .run("tavern-edit", &["main", "--restore", oldest])
        .ends(0)
        .says("T-2 was added");
    let restored = scratch.queue();
    has(
        &restored,
        &[
            "Words.\n",
            "- [ ] T-2: two\n  Of two.\n",
            "- [ ] T-3: three\n",
        ],
    );
    assert!(!restored.contains("Other words"), "{restored}");
    for id in ["T-1", "T-4"] {
        assert_eq!(scratch.item(id)["status"], "cancelled");
        let archived = archived.contains(id);
        assert_eq!(
            restored.contains(&format!("{id}: ")),
            !archived,
            "{restored}"
        );
    }
    scratch.stands("T-3", "in_progress", 1);
    State::of(&scratch).agrees();
    // The text before is kept as well.
    let again = texts(&scratch);
    let newest = names.first().expect("there are some");
    assert!(again.contains(newest));
    scratch
        .run("tavern-edit", &["--restore", "zzz"])
        .ends(2)
        .says("list them: tavern edit main --texts");
}
