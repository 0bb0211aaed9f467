//! What git makes of a queue by itself: what it puts there is a save. An older text that is known changes nothing; what others have
//! written is merged, no item is lost, and no transition is undone.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tavern_core::task::Status;

use crate::state::State;
use crate::support::{ARCHIVE, CONFIG, QUEUE, Ran, Scratch, has};

const EMPTY: &str = "## Pending\n\n## In Progress\n\n## Completed\n";

/// A committed board, whose branch `other` has the queue `first`, and `main` the queue `then`. Both are known.
fn board(first: &str, then: &str) -> Scratch {
    let scratch = Scratch::board(first);
    scratch.commit(&["--all"], "Board");
    scratch.git(&["branch", "other"]);
    scratch.write(QUEUE, then);
    scratch.settle();
    scratch.commit(&[QUEUE], "More");
    scratch
}

/// One whose queue no program has seen, and one that is known.
fn boards() -> [Scratch; 2] {
    let boards = [Scratch::initialized(), Scratch::initialized()];
    boards[1].settle();
    boards
}

fn pending(items: &str) -> String {
    EMPTY.replacen("\n\n", &format!("\n\n{items}\n"), 1)
}

/// git does this, and Tavern looks.
fn git(scratch: &Scratch, line: &str) {
    scratch.git(&line.split_whitespace().collect::<Vec<_>>());
    scratch.settle();
}

/// As [`git`], which refuses to begin or stops in the middle.
fn git_stops(scratch: &Scratch, line: &str) -> Ran {
    let ran = scratch
        .command(Path::new("git"))
        .args(&line.split_whitespace().collect::<Vec<_>>())
        .run()
        .ends(1);
    scratch.settle();
    ran
}

/// Sam takes the first item: its ID, which it may have got by that, and his token.
fn taken(scratch: &Scratch) -> [String; 2] {
    let claim = scratch.json("tavern-claim", &["--agent", "Sam"]);
    [
        claim["id"].as_str().expect("an ID").to_owned(),
        claim["lease"]["token"].to_string(),
    ]
}

/// The titles of the items with their boxes, in the order of the file.
fn items(scratch: &Scratch) -> Vec<String> {
    let queue = scratch.queue();
    let item = |line: &str| {
        Some(
            line.strip_prefix("- [")?
                .split(" (")
                .next()?
                .replacen(']', "", 1)
                .replace("~~", ""),
        )
    };
    queue
        .lines()
        .filter_map(item)
        .map(|item| item.trim().to_owned())
        .collect()
}

/// Nothing is left to say, and nothing was set aside.
fn is_calm(scratch: &Scratch) {
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says_not("set aside");
}

const FOUR: &str = "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] T-4: four\n";

/// It has other items, words and an order of its own, and lacks what was done and typed since.
#[test]
fn an_older_text_that_git_puts_there_changes_nothing() {
    for line in [
        "checkout --quiet -f other",
        "switch --quiet --discard-changes other",
        "reset --quiet --hard HEAD~1",
        "reset --quiet --hard",
        "restore .",
        "stash --quiet",
    ] {
        let scratch = board(
            &pending("Words.\n\n- [ ] T-3: three\n- [ ] T-2: second\n- [ ] T-9: nine\n"),
            &pending(FOUR),
        );
        scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
        let held = scratch.claim("T-2", &[]);
        scratch.run("tavern-add", &["five", "--id", "T-5"]).ends(0);
        scratch.change(QUEUE, "T-4: four\n", "T-4: four\n  Typed.\n");
        scratch.settle();
        let before = scratch.queue();
        git(&scratch, line);
        assert_eq!(scratch.queue(), before, "{line}");
        scratch
            .run("tavern-log", &[])
            .says("main: an older text was saved");
        is_calm(&scratch);
        git(&scratch, "checkout --quiet -f main");
        assert_eq!(scratch.queue(), before, "{line}");
        scratch
            .run("tavern-renew", &["T-2", "--token", &held])
            .ends(0);
        is_calm(&scratch);
    }
}

/// git writes over nothing that is not committed, and what Tavern has put back is not.
#[test]
fn who_switches_back_commits_what_stayed() {
    let scratch = board(&pending("- [ ] T-2: two\n"), &pending(FOUR));
    let held = scratch.claim("T-2", &[]);
    let before = scratch.queue();
    git(&scratch, "switch --quiet other");
    git_stops(&scratch, "switch --quiet main").says("commit your changes");
    scratch.commit(&[QUEUE], "Held");
    git(&scratch, "switch --quiet main");
    assert_eq!(scratch.queue(), before);
    assert_eq!(scratch.git(&["status", "--porcelain", QUEUE]), "");
    scratch
        .run("tavern-renew", &["T-2", "--token", &held])
        .ends(0);
    is_calm(&scratch);
}

#[test]
fn who_types_in_what_git_has_just_brought_takes_nothing_out() {
    let scratch = board(EMPTY, &pending(FOUR));
    scratch.git(&["switch", "--quiet", "other"]);
    let theirs = "Words.\n\n- [ ] T-1: one\n- [ ] T-2: two\n  More words.\n- [ ] T-3: three\n- [ ] T-4: four\n- [ ] five\n";
    scratch.write(QUEUE, pending(theirs));
    scratch.settle();
    scratch.commit(&[QUEUE], "Typed");
    git(&scratch, "switch --quiet main");
    assert_eq!(
        items(&scratch),
        ["T-1: one", "T-2: two", "T-3: three", "T-4: four", "five"]
    );
    scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    scratch.claim("T-3", &[]);
    scratch.commit(&[QUEUE], "Done");
    scratch.git(&["switch", "--quiet", "other"]);
    // Nobody has looked since.
    scratch.change(QUEUE, "- [ ] five\n", "- [ ] five\n- [ ] six\n");
    scratch.settle();
    has(
        &scratch.queue(),
        &[
            "Words.\n",
            "- [ ] T-2: two\n  More words.\n",
            "- [ ] five\n",
            "- [ ] six\n",
        ],
    );
    scratch.stands("T-1", "cancelled", 0);
    scratch.stands("T-3", "in_progress", 1);
    assert_eq!(items(&scratch).len(), 6);
    is_calm(&scratch);
}

/// What the branch lacked stays, and nobody takes it out who now puts something else in the place of a part of it.
#[test]
fn who_replaces_words_in_what_git_has_just_brought_takes_nothing_else_out() {
    let typed = pending("- [ ] T-1: one\n  Words.\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] four\n");
    let scratch = board(&pending("- [ ] T-1: one\n- [ ] T-2: two\n"), &typed);
    git(&scratch, "switch --quiet other");
    assert_eq!(scratch.queue(), typed);
    scratch
        .run("tavern-log", &[])
        .says("main: an older text was saved, and what it lacks stays: T-3, four")
        .says_not("taken out");
    scratch.claim("T-2", &[]);
    scratch.commit(&[QUEUE], "Held");
    scratch.git(&["switch", "--quiet", "main"]);
    scratch.change(QUEUE, "Words.", "Others.");
    scratch.settle();
    has(
        &scratch.queue(),
        &[
            "T-1: one\n  Others.\n",
            "- [ ] T-3: three\n",
            "- [ ] four\n",
        ],
    );
    scratch.stands("T-2", "in_progress", 1);
    is_calm(&scratch);
}

const WORDS_AND_FIVE: &str = "Words.\n\n- [ ] T-1: one\n- [ ] T-2: two\n  More words.\n- [ ] T-3: three\n- [ ] T-4: four\n- [ ] five\n";

/// A board with four items, on whose branch `other` somebody has typed and committed `theirs` where no program has seen it; `main` is
/// checked out.
fn typed_elsewhere(theirs: &str) -> Scratch {
    let scratch = board(EMPTY, &pending(FOUR));
    scratch.git(&["switch", "--quiet", "other"]);
    scratch.write(QUEUE, pending(theirs));
    scratch.commit(&[QUEUE], "Typed");
    git(&scratch, "switch --quiet main");
    assert_eq!(scratch.queue(), pending(FOUR));
    scratch
}

#[test]
fn who_switches_and_types_while_a_claim_goes_on_takes_nothing_out() {
    for place in ["log.appended", "replace.synced@1"] {
        let scratch = typed_elsewhere(WORDS_AND_FIVE);
        let claim = scratch.holding(place, "tavern-claim", &["--agent", "Sam", "--task", "T-1"]);
        scratch.git(&["switch", "--quiet", "other"]);
        scratch.change(QUEUE, "- [ ] five\n", "- [ ] five\n- [ ] six\n");
        claim.goes_on().ends(0);
        scratch.settle();
        has(
            &scratch.queue(),
            &[
                "Words.\n",
                "- [ ] T-2: two\n  More words.\n",
                "- [ ] five\n",
                "- [ ] six\n",
            ],
        );
        scratch.stands("T-1", "in_progress", 1);
        is_calm(&scratch);
    }
}

/// git writes the files and the index before it moves HEAD. Others may look between the two.
#[test]
fn what_git_is_about_to_bring_is_no_save() {
    let scratch = typed_elsewhere(WORDS_AND_FIVE);
    scratch.claim("T-1", &[]);
    scratch.git(&["read-tree", "-m", "-u", "HEAD", "other"]);
    scratch.claim("T-2", &[]);
    scratch.git(&[
        "symbolic-ref",
        "-m",
        "checkout: moving from main to other",
        "HEAD",
        "refs/heads/other",
    ]);
    scratch.settle();
    has(
        &scratch.queue(),
        &["Words.\n", "  More words.\n", "- [ ] five\n"],
    );
    scratch.stands("T-1", "in_progress", 1);
    scratch.stands("T-2", "in_progress", 1);
    is_calm(&scratch);
}

/// Vim takes the file away before it writes the new one.
#[test]
fn a_queue_that_is_put_back_after_a_switch_is_not_what_git_brought() {
    let scratch = typed_elsewhere(WORDS_AND_FIVE);
    scratch.claim("T-1", &[]);
    scratch.git(&["switch", "--quiet", "other"]);
    let buffer = scratch.queue();
    std::fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
    scratch.settle();
    scratch.stands("T-1", "in_progress", 1);
    for item in ["eight", "nine"] {
        scratch.run("tavern-add", &[item]).ends(0);
    }
    scratch.write(QUEUE, buffer.replace("T-2: two", "T-2: second"));
    scratch.settle();
    has(
        &scratch.queue(),
        &[
            "Words.\n",
            "- [ ] T-2: second\n  More words.\n",
            ": eight\n",
            ": nine\n",
        ],
    );
    scratch.stands("T-1", "in_progress", 1);
    is_calm(&scratch);
}

/// An editor takes the file away just after git brought it, and before anybody looks.
#[test]
fn what_git_had_brought_is_put_back() {
    let scratch = typed_elsewhere(WORDS_AND_FIVE);
    scratch.git(&["switch", "--quiet", "other"]);
    let brought = scratch.queue();
    std::fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
    scratch.run("tavern-check", &["--fix"]).ends(0);
    has(&scratch.queue(), &["Words.\n", "  More words.\n"]);
    scratch.write(QUEUE, brought.replace("T-1: one", "T-1: first"));
    scratch.settle();
    has(
        &scratch.queue(),
        &["Words.\n", "T-1: first", "- [ ] T-2: two\n  More words.\n"],
    );
    is_calm(&scratch);
}

/// A clone, and the repository that it pulls from, with these items.
fn clone_of(items: &str) -> [Scratch; 2] {
    let origin = Scratch::board(&pending(items));
    origin.commit(&["--all"], "Board");
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &origin.work().display().to_string(),
        ".",
    ]);
    clone.run("tavern-init", &["--quiet"]).succeeds();
    clone.settle();
    [origin, clone]
}

fn pull(origin: &Scratch, clone: &Scratch, queue: &str) {
    origin.write(QUEUE, queue);
    origin.commit(&[QUEUE], "Changed");
    git(clone, "pull --quiet --ff-only");
}

#[test]
fn a_pull_may_take_most_items_away_and_then_the_last() {
    let [origin, clone] = clone_of(FOUR);
    for left in [&pending("- [ ] T-4: four\n"), EMPTY] {
        pull(&origin, &clone, left);
        assert_eq!(clone.queue(), left);
        is_calm(&clone);
    }
    // All at once nobody believes.
    let [origin, clone] = clone_of(FOUR);
    pull(&origin, &clone, EMPTY);
    assert_eq!(clone.queue(), pending(FOUR));
    clone.run("tavern-check", &[]).says("set aside");
}

#[test]
fn what_is_held_stays_where_a_pull_takes_it_away() {
    let [origin, clone] = clone_of(FOUR);
    let held = clone.claim("T-2", &[]);
    origin.write(QUEUE, pending("- [ ] T-1: one\n- [ ] T-3: three\n"));
    origin.commit(&[QUEUE], "Changed");
    git(&clone, "pull --quiet --ff-only");
    assert_eq!(items(&clone), ["T-1: one", "T-2: two", "T-3: three"]);
    clone.stands("T-2", "in_progress", 1);
    clone
        .run("tavern-log", &[])
        .says("T-4 was taken out of main by git itself")
        .says("it is held, so it was put back");
    clone
        .run("tavern-renew", &["T-2", "--token", &held])
        .ends(0);
}

/// Somebody has taken items out elsewhere, and what stood here is in none of their commits.
#[test]
fn what_does_not_go_on_from_what_stood_there_takes_nothing_out() {
    let [origin, clone] = clone_of(FOUR);
    clone.claim("T-2", &[]);
    clone.change(QUEUE, "T-3: three\n", "T-3: three\n  Typed.\n");
    clone.commit(&[QUEUE], "Typed");
    origin.write(
        QUEUE,
        pending("- [ ] T-1: first\n- [ ] T-3: three\n- [ ] T-6: six\n"),
    );
    origin.commit(&[QUEUE], "Changed");
    git(&clone, "fetch --quiet");
    git(&clone, "reset --quiet --hard origin/main");
    let mut stand = items(&clone);
    stand.sort();
    assert_eq!(
        stand,
        [
            "T-1: first",
            "T-2: two",
            "T-3: three",
            "T-4: four",
            "T-6: six"
        ]
    );
    has(&clone.queue(), &["  Typed.\n"]);
    clone.stands("T-2", "in_progress", 1);
}

#[test]
fn a_pull_may_turn_the_order_round() {
    let [origin, clone] = clone_of(FOUR);
    let turned = pending("- [ ] T-4: four\n- [ ] T-2: two\n- [ ] T-1: one\n- [ ] T-3: three\n");
    pull(&origin, &clone, &turned);
    assert_eq!(clone.queue(), turned);
    assert_eq!(clone.git(&["status", "--porcelain", QUEUE]), "");
}

#[test]
fn what_was_reopened_elsewhere_is_open_here() {
    let [origin, clone] = clone_of(FOUR);
    let done = |text: &str| text.replace("- [ ] T-1", "- [x] T-1");
    pull(&origin, &clone, &done(&pending(FOUR)));
    clone.stands("T-1", "completed", 0);
    pull(&origin, &clone, &pending(FOUR));
    clone.stands("T-1", "pending", 0);
}

#[test]
fn what_was_given_back_is_not_held_again_after_a_merge() {
    for (how, status) in [("--waiting which?", "waiting"), ("--failed no", "pending")] {
        let scratch = board(EMPTY, &pending(FOUR));
        git(&scratch, "switch --quiet -C other");
        let token = scratch.claim("T-1", &[]);
        scratch.change(QUEUE, "T-2: two", "T-2: second");
        scratch.commit(&[QUEUE], "Held");
        git(&scratch, "switch --quiet main");
        let report = scratch
            .line(&format!("tavern-report T-1 --token {token} {how}"))
            .run();
        assert!(matches!(report.code, Some(1 | 8)), "{report}");
        scratch.change(QUEUE, "T-4: four", "T-4: fourth");
        scratch.commit(&[QUEUE], "Given back");
        git(&scratch, "merge --quiet --no-edit other");
        scratch.run("tavern-status", &["T-1"]).ends(0).says(status);
        scratch.run("tavern-reap", &[]).ends(0).says_not("T-1");
        has(&scratch.queue(), &["T-2: second", "T-4: fourth"]);
    }
}

#[test]
fn what_was_given_back_is_not_held_again_because_git_has_a_text_of_then() {
    let scratch = board(EMPTY, &pending(FOUR));
    git(&scratch, "switch --quiet -C other");
    let token = scratch.claim("T-1", &[]);
    scratch.change(QUEUE, "T-2: two", "T-2: second");
    scratch.commit(&[QUEUE], "Held");
    git(&scratch, "switch --quiet main");
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    git(&scratch, "reset --quiet --hard other");
    scratch.stands("T-1", "waiting", 0);
    // Of this text, in which it is held, nobody but git ever knew.
    git(&scratch, "checkout --quiet .");
    scratch.stands("T-1", "waiting", 0);
    let theirs = scratch.git(&["show", &format!("HEAD:{QUEUE}")]);
    scratch.write(QUEUE, theirs.replace("T-3: three", "T-3: third"));
    scratch.settle();
    scratch.stands("T-1", "waiting", 0);
    has(&scratch.queue(), &["T-2: second", "T-3: third"]);
}

#[test]
fn what_an_old_save_lacks_is_not_lost_because_it_was_committed_at_once() {
    for (line, is_word) in [
        ("switch --quiet other", true),
        ("reset --quiet --hard other", true),
        ("pull --quiet --no-rebase --no-edit . other", false),
    ] {
        let scratch = board(EMPTY, &pending(FOUR));
        scratch.git(&["switch", "--quiet", "other"]);
        scratch.write(
            QUEUE,
            pending("Theirs.\n\n- [ ] T-1: one\n- [ ] T-2: two\n"),
        );
        scratch.commit(&[QUEUE], "Theirs");
        git(&scratch, "switch --quiet main");
        if !is_word {
            git(&scratch, "reset --quiet --hard other");
        }
        let buffer = scratch.queue();
        let typed = buffer.replace(
            "- [ ] T-1: one\n",
            "Words.\n\n- [ ] T-1: first\n  More words.\n",
        );
        scratch.write(QUEUE, typed);
        scratch.settle();
        scratch.run("tavern-add", &["nine", "--id", "T-9"]).ends(0);
        // Somebody else's editor, with the old text, and nobody looks before they go on.
        scratch.write(QUEUE, buffer.replace("T-2: two", "T-2: second"));
        scratch.commit(&[QUEUE], "Typed");
        if !is_word {
            scratch.git(&["switch", "--quiet", "other"]);
            scratch.change(QUEUE, "Theirs.", "Theirs, too.");
            scratch.commit(&[QUEUE], "Theirs, too");
            scratch.git(&["switch", "--quiet", "main"]);
        }
        scratch.git(&line.split(' ').collect::<Vec<_>>());
        scratch.settle();
        has(
            &scratch.queue(),
            &[
                "Words.\n",
                "T-1: first\n  More words.\n",
                "T-9: nine\n",
                "Theirs",
            ],
        );
        assert_eq!(
            scratch.queue().contains("T-2: second"),
            !is_word,
            "{}",
            scratch.queue()
        );
        is_calm(&scratch);
    }
}

/// A commit that lacks what the one before it had is what an old save makes.
#[test]
fn what_was_committed_is_not_lost_because_an_old_save_was_committed_over_it() {
    for line in ["switch --quiet other", "reset --quiet --hard other"] {
        let scratch = board(&pending("- [ ] T-1: one\n"), &pending(FOUR));
        let buffer = scratch.queue();
        let typed = buffer.replace(
            "- [ ] T-1: one\n",
            "Words.\n\n- [ ] T-1: first\n  More words.\n- [ ] five\n",
        );
        scratch.write(QUEUE, typed);
        scratch.settle();
        scratch.commit(&[QUEUE], "Typed");
        scratch.run("tavern-add", &["nine", "--id", "T-9"]).ends(0);
        scratch.write(QUEUE, buffer.replace("T-2: two", "T-2: second"));
        scratch.commit(&[QUEUE], "An old text");
        git(&scratch, line);
        has(
            &scratch.queue(),
            &["Words.\n", "  More words.\n", "- [ ] five\n", "T-9: nine\n"],
        );
        is_calm(&scratch);
    }
}

#[test]
fn an_item_that_got_its_id_since_is_the_same_on_another_branch() {
    let scratch = board(EMPTY, &pending("- [ ] one\n- [ ] T-2: two\n"));
    git(&scratch, "switch --quiet -C other");
    git(&scratch, "switch --quiet main");
    let [id, token] = taken(&scratch);
    scratch
        .run(
            "tavern-report",
            &[&id, "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    scratch.commit(&[QUEUE], "Asked");
    git(&scratch, "switch --quiet other");
    scratch.stands(&id, "waiting", 0);
    assert_eq!(
        scratch.queue().matches("one").count(),
        1,
        "{}",
        scratch.queue()
    );
    is_calm(&scratch);
}

/// Nobody takes it a second time because another branch was looked at in between.
#[test]
fn an_item_that_got_its_id_since_is_the_same_on_a_third_branch() {
    let scratch = board(EMPTY, &pending("- [ ] one\n- [ ] two\n"));
    scratch.git(&["branch", "third"]);
    let [id, token] = taken(&scratch);
    scratch
        .run(
            "tavern-report",
            &[&id, "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    scratch.commit(&[QUEUE], "Asked");
    git(&scratch, "switch --quiet other");
    scratch.stands(&id, "waiting", 0);
    git(&scratch, "switch --quiet --discard-changes third");
    scratch.stands(&id, "waiting", 0);
    assert_eq!(items(&scratch), [format!("{id}: one"), "two".to_owned()]);
    is_calm(&scratch);
}

#[test]
fn an_item_that_got_a_longer_title_and_its_id_is_the_same_on_another_branch() {
    let scratch = board(EMPTY, &pending("- [ ] one\n"));
    scratch.git(&["branch", "third"]);
    scratch.change(QUEUE, "- [ ] one\n", "- [ ] one, all\n");
    let [id, _] = taken(&scratch);
    scratch.commit(&[QUEUE], "Held");
    git(&scratch, "switch --quiet third");
    scratch.stands(&id, "in_progress", 1);
    assert_eq!(items(&scratch).len(), 1, "{}", scratch.queue());
    is_calm(&scratch);
}

#[test]
fn what_was_typed_without_an_id_and_archived_is_not_open_on_a_branch_from_before() {
    let scratch = board(
        EMPTY,
        &pending("- [ ] one (worktree: false, result: answer)\n"),
    );
    scratch.git(&["branch", "third"]);
    let [id, token] = taken(&scratch);
    scratch
        .run("tavern-report", &[&id, "--token", &token, "--done"])
        .ends(0);
    scratch.write(CONFIG, "archive: {after: 1h}\n");
    scratch.at("+7200", "tavern-reap", &[]).succeeds();
    assert!(items(&scratch).is_empty(), "{}", scratch.queue());
    scratch.commit(&["--all"], "Done");
    scratch.git(&["switch", "--quiet", "third"]);
    scratch.run("tavern-claim", &["--agent", "Sam"]).ends(3);
    assert!(items(&scratch).is_empty(), "{}", scratch.queue());
}

/// git merges the item without its ID, Tavern knows it, and git puts back what it had merged.
#[test]
fn what_git_puts_back_without_its_id_is_the_item_also_where_it_was_merged_so() {
    let others: String = (1..8).map(|id| format!("- [ ] T-{id}: other\n")).collect();
    let brought = format!("- [ ] one\n{others}- [ ] T-8: brought\n- [ ] T-9: brought\n");
    let scratch = board(&pending(&others), &pending(&brought));
    scratch.git(&["branch", "third"]);
    let give_back = || {
        let [id, token] = taken(&scratch);
        scratch
            .run("tavern-release", &[&id, "--token", &token])
            .succeeds();
        id
    };
    let id = give_back();
    scratch.commit(&[QUEUE], "Given back");
    git(&scratch, "switch --quiet other");
    (1..8).for_each(|_| drop(give_back()));
    scratch.commit(&[QUEUE], "Given back");
    git(&scratch, "merge --quiet --no-edit third");
    give_back();
    git(&scratch, "reset --quiet --hard");
    scratch.stands(&id, "pending", 0);
    assert_eq!(items(&scratch).len(), 10, "{}", scratch.queue());
}

/// git takes the archive back, so that an item which ended shows again: no text from before opens it, or takes it out of nowhere.
#[test]
fn what_git_has_taken_out_of_the_archive_stays_as_it_is_whatever_old_text_is_saved() {
    for [was_archived, is_saved_since] in [[false, false], [true, false], [true, true]] {
        let scratch = board(
            EMPTY,
            &pending(&FOUR.replace("one", "one (worktree: false, result: answer)")),
        );
        scratch.write(ARCHIVE, "# Archive of main\n");
        scratch.git(&["add", ARCHIVE]);
        scratch.commit(&["--all"], "Archive");
        let token = scratch.claim("T-1", &[]);
        scratch
            .run("tavern-release", &["T-1", "--token", &token])
            .succeeds();
        let given_back = scratch.queue();
        scratch.change(QUEUE, "T-1: one", "T-1: one, typed");
        scratch.settle();
        let token = scratch.claim("T-1", &[]);
        scratch
            .run("tavern-report", &["T-1", "--token", &token, "--done"])
            .ends(0);
        scratch.write(CONFIG, "archive: {after: 1h}\n");
        scratch.at("+7200", "tavern-reap", &[]).succeeds();
        let archived = scratch.queue();
        assert_eq!(items(&scratch).len(), 3, "{archived}");
        git(&scratch, "stash --quiet --all");
        let mut loaded = if was_archived { archived } else { given_back };
        if is_saved_since {
            // By whoever saves again.
            let typed = |text: &str| text.replace("T-4: four", "T-4: four, typed");
            scratch.write(QUEUE, typed(&scratch.queue()));
            scratch.settle();
            loaded = typed(&loaded);
        }
        scratch.write(QUEUE, loaded.replace("T-3: three", "T-3: three, typed"));
        scratch.settle();
        has(
            &scratch.queue(),
            &["- [x] T-1: one, typed (worktree", "T-3: three, typed"],
        );
    }
}

#[test]
fn an_old_buffer_takes_nothing_out_that_another_branch_lacked() {
    let scratch = board(&pending("- [ ] zero\n"), &pending("- [ ] one\n"));
    let buffer = scratch.queue();
    scratch.run("tavern-add", &["five", "--id", "T-5"]).ends(0);
    scratch.commit(&[QUEUE], "Added");
    git(&scratch, "switch --quiet other");
    git(&scratch, "switch --quiet --discard-changes main");
    let [id, _] = taken(&scratch);
    scratch.write(
        QUEUE,
        buffer.replace("- [ ] one\n", "- [ ] one\n  Words.\n"),
    );
    scratch.settle();
    scratch.stands("T-5", "pending", 0);
    scratch.stands(&id, "in_progress", 1);
    has(&scratch.queue(), &["  Words.\n"]);
    is_calm(&scratch);
}

/// Its items were taken away and brought back since.
#[test]
fn a_buffer_from_before_a_switch_and_back_contradicts_nothing_that_was_done_since() {
    let scratch = board(&pending("- [ ] T-1: one\n"), &pending(FOUR));
    let buffer = scratch.queue();
    git(&scratch, "switch --quiet other");
    let token = scratch.claim("T-1", &[]);
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    scratch.commit(&[QUEUE], "Asked");
    git(&scratch, "switch --quiet main");
    let token = scratch.claim("T-4", &[]);
    scratch
        .run("tavern-release", &["T-4", "--token", &token])
        .succeeds();
    scratch.change(QUEUE, "T-2: two\n", "T-2: second\n");
    scratch.settle();
    scratch.commit(&[QUEUE], "Second");
    scratch.write(
        QUEUE,
        buffer.replace("T-3: three\n", "T-3: three\n  Typed.\n"),
    );
    scratch.git(&["add", QUEUE]);
    scratch.settle();
    assert!(!scratch.queue().contains("conflict"), "{}", scratch.queue());
    has(
        &scratch.queue(),
        &[
            "T-2: second\n",
            "T-3: three\n  Typed.\n",
            "T-1: one\n",
            "T-4: four\n",
        ],
    );
    assert_eq!(scratch.stands("T-4", "pending", 0)["returns"], 1);
    assert_eq!(scratch.stands("T-1", "waiting", 0)["question"], "which?");
    is_calm(&scratch);
}

#[test]
fn an_old_buffer_that_is_saved_just_after_a_pull_undoes_nothing() {
    let [origin, clone] = clone_of(FOUR);
    let buffer = clone.queue();
    clone.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    clone.commit(&[QUEUE], "Cancelled");
    origin.git(&[
        "pull",
        "--quiet",
        "--ff-only",
        &clone.work().display().to_string(),
        "main",
    ]);
    origin.change(QUEUE, "T-3: three", "T-3: third");
    origin.change(QUEUE, "T-4: four", "T-4: fourth");
    origin.commit(&[QUEUE], "Changed");
    clone.settle();
    clone.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    clone.commit(&[QUEUE], "Cancelled, too");
    clone.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
    clone.write(QUEUE, buffer.replace("T-2: two", "T-2: second"));
    clone.settle();
    clone.stands("T-1", "cancelled", 0);
    clone.stands("T-2", "cancelled", 0);
    has(
        &clone.queue(),
        &["T-2: ~~second~~", "T-3: third", "T-4: fourth"],
    );
}

/// Tavern takes over at once what was pulled and what somebody saved upon it.
#[test]
fn who_loaded_what_was_pulled_takes_nothing_out_that_was_saved_upon_it() {
    let [origin, clone] = clone_of(FOUR);
    pull(
        &origin,
        &clone,
        &format!(
            "Words.\n\n{}",
            pending(&FOUR.replace("two", "2").replace("three", "3"))
        ),
    );
    pull(
        &origin,
        &clone,
        &format!(
            "Words.\n\nMore words.\n\n{}",
            pending(&FOUR.replace("two", "2!"))
        ),
    );
    origin.change(QUEUE, "2!", "two, 3 and 4");
    origin.change(QUEUE, "four\n", "four\n  Still more.\n");
    origin.commit(&[QUEUE], "Still more");
    clone.git(&["pull", "--quiet", "--ff-only"]);
    let loaded = clone.queue();
    clone.change(QUEUE, "- [ ] T-3", "- [ ] another\n- [ ] T-3");
    clone.settle();
    clone.claim("T-4", &[]);
    clone.change(QUEUE, "Words.\n", "Words.\n\nBetween.\n");
    clone.settle();
    for typed in ["T-1: one MORE", "T-1: one MORE AND MORE"] {
        clone.write(QUEUE, loaded.replace("T-1: one", typed));
        clone.settle();
        let queue = clone.queue();
        has(
            &queue,
            &[typed, "- [ ] another\n", "Between.\n", "T-2: two, 3 and 4"],
        );
        let mut words = ["Words.", "More words.", "Still more."].into_iter();
        assert!(
            words.all(|words| queue.matches(&format!("{words}\n")).count() == 1),
            "{queue}"
        );
        clone.stands("T-4", "in_progress", 1);
    }
    is_calm(&clone);
}

/// The same, with nothing in the text that Tavern has changed: it is no version of Tavern's all the same.
#[test]
fn who_loaded_what_was_pulled_takes_nothing_out_that_was_typed_in_it_at_once() {
    let [origin, clone] = clone_of("- [ ] T-1: one\n- [ ] T-2: two\n");
    pull(
        &origin,
        &clone,
        &pending("- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] T-4: four\n"),
    );
    origin.change(QUEUE, "T-3: three", "T-3: three, theirs");
    origin.change(
        QUEUE,
        "- [ ] T-4: four\n",
        "- [ ] T-4: four\n- [ ] T-5: five\n",
    );
    origin.commit(&[QUEUE], "Theirs");
    clone.git(&["pull", "--quiet", "--ff-only"]);
    let loaded = clone.queue();
    clone.change(QUEUE, "- [ ] T-3", "- [ ] another\n- [ ] T-3");
    clone.settle();
    let token = clone.claim("T-2", &[]);
    clone
        .run("tavern-release", &["T-2", "--token", &token])
        .succeeds();
    clone.write(QUEUE, loaded.replace("T-1: one", "T-1: one, typed"));
    clone.settle();
    has(&clone.queue(), &["T-1: one, typed\n", "- [ ] another\n"]);
    assert_eq!(clone.stands("T-2", "pending", 0)["returns"], 1);
}

/// Others have been done since HEAD: an editor loads what git puts back, and saves it twice.
#[test]
fn who_saves_again_what_head_has_finds_nothing_twice() {
    let apart = |items: &str| pending(&items.replace('\n', "\n\n"));
    let scratch = board(&apart(FOUR), &apart(&format!("{FOUR}- [ ] T-5: five\n")));
    git(&scratch, "switch --quiet other");
    git(&scratch, "switch --quiet --discard-changes main");
    let cancel = |ids: &[&str]| {
        ids.iter()
            .for_each(|id| drop(scratch.run("tavern-release", &[id, "--cancel"]).ends(0)));
    };
    cancel(&["T-1", "T-2", "T-3"]);
    scratch.git(&["reset", "--quiet", "--hard"]);
    let first = scratch
        .queue()
        .replacen("- [ ] T-1", "\n  First.\n- [ ] T-1", 1);
    scratch.write(QUEUE, &first);
    scratch.settle();
    cancel(&["T-4", "T-5"]);
    scratch.write(QUEUE, format!("Second.\n\n{first}"));
    scratch.settle();
    let queue = scratch.queue();
    assert_eq!(
        [
            queue.matches("First.").count(),
            queue.matches("Second.").count()
        ],
        [1, 1],
        "{queue}"
    );
    scratch.stands("T-1", "cancelled", 0);
    is_calm(&scratch);
}

/// Bob's editor still has what was committed; as it saves that, his prompt runs `git status`.
#[test]
fn who_saves_what_head_has_throws_nothing_away_that_another_typed() {
    let scratch = Scratch::board(&pending(FOUR));
    scratch.commit(&[QUEUE], "Four items");
    let loaded = scratch.queue();
    scratch.write(
        QUEUE,
        loaded.replace("T-2: two\n", "T-2: two\n  Alice's.\n"),
    );
    scratch.settle();
    scratch.claim("T-4", &[]);
    scratch.write(QUEUE, &loaded);
    git(&scratch, "status --short");
    scratch.settle();
    has(&scratch.queue(), &["  Alice's.\n"]);
    scratch.stands("T-4", "in_progress", 1);
    is_calm(&scratch);
}

/// Bob loads what was committed, which no program has taken over by then; Alice types, and only then somebody looks.
#[test]
fn what_was_typed_since_a_commit_stays_whoever_goes_on_in_what_was_committed() {
    for scratch in boards() {
        scratch.write(QUEUE, pending(FOUR));
        scratch.commit(&["--all"], "Four items");
        scratch.run("tavern-status", &[]).succeeds();
        let loaded = scratch.queue();
        let typed = loaded
            .replace("T-2: two\n", "T-2: two\n  Alice's.\n")
            .replace("\n## In", "- [ ] T-5: five\n\n## In");
        scratch.write(QUEUE, format!("Hers.\n\n{typed}"));
        scratch.settle();
        taken(&scratch);
        scratch.write(
            QUEUE,
            loaded.replace("T-3: three\n", "T-3: three\n  Bob's.\n"),
        );
        scratch.settle();
        has(
            &scratch.queue(),
            &["Hers.\n", "  Alice's.\n", "T-5: five\n", "  Bob's.\n"],
        );
        is_calm(&scratch);
    }
}

/// What was archived before somebody loaded the queue says nothing of which text that was.
#[test]
fn what_was_committed_stays_whoever_goes_on_in_a_text_from_after_an_archiving() {
    let done: String = (5..9)
        .map(|n| format!("- [ ] T-{n}: done (worktree: false, result: answer)\n"))
        .collect();
    let scratch = Scratch::board(&pending(&format!("{done}{FOUR}")));
    for item in ["T-5", "T-6", "T-7", "T-8"] {
        let token = scratch.claim(item, &[]);
        scratch
            .run("tavern-report", &[item, "--token", &token, "--done"])
            .ends(0);
    }
    scratch.write(CONFIG, "archive: {after: 1h, keep: 0}\n");
    scratch.at("+7200", "tavern-reap", &[]).succeeds();
    let mut buffer = scratch.queue();
    assert!(!buffer.contains("T-8"), "{buffer}");
    let mut save = |from: &str, to: &str| {
        buffer = buffer.replacen(from, to, 1);
        scratch.write(QUEUE, &buffer);
        scratch.settle();
    };
    save("## Pending", "Mine.\n\n## Pending");
    save("- [ ] T-4", "- [ ] Mine, too\n- [ ] T-4");
    scratch.change(QUEUE, "T-1: one\n", "T-1: one\n  Others'.\n");
    scratch.settle();
    let token = scratch.claim("T-3", &[]);
    scratch
        .run(
            "tavern-report",
            &["T-3", "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    scratch.commit(&["--all"], "All of it");
    scratch.claim("T-2", &[]);
    git(&scratch, "reset --quiet --hard");
    scratch.stands("T-2", "in_progress", 1);
    save("Mine, too", "Mine again");
    has(
        &scratch.queue(),
        &["Mine.\n", "Mine again", "T-1: one\n  Others'.\n"],
    );
    scratch.stands("T-3", "waiting", 0);
    is_calm(&scratch);
}

#[test]
fn what_was_corrected_since_a_commit_stands_once() {
    for scratch in boards() {
        scratch.write(
            QUEUE,
            format!(
                "Wrods.\n\n{}",
                pending("- [ ] Fix lgoin\n- [ ] T-2: two, soon\n- [ ] three\n")
            ),
        );
        scratch.commit(&["--all"], "Items");
        let corrected = pending("- [ ] Fix login\n- [ ] T-2: two, very soon\n");
        scratch.write(QUEUE, format!("Words.\n\n{corrected}"));
        scratch.settle();
        assert_eq!(scratch.queue(), format!("Words.\n\n{corrected}"));
    }
}

/// Nobody looks after git, and then somebody saves a text from before.
#[test]
fn what_git_has_put_behind_what_stood_there_stays_whatever_old_text_is_saved() {
    for lines in [
        &["switch --quiet main", "cherry-pick feature"][..],
        &[
            "switch --quiet main",
            "cherry-pick more",
            "cherry-pick feature",
        ],
        &["rebase --quiet main"],
        &["switch --quiet main", "switch --quiet feature"],
        &["switch --quiet main", "reset --quiet --hard feature"],
        &["switch --quiet main", "rebase --quiet feature"],
    ] {
        let scratch = board(EMPTY, &pending(FOUR));
        let loaded = scratch.queue();
        scratch.git(&["branch", "feature"]);
        let taken = taken(&scratch);
        scratch.change(QUEUE, "T-3: three\n", "T-3: three\n  Others'.\n");
        scratch.commit(&[QUEUE], "Typed");
        if lines[0] != "rebase --quiet main" {
            scratch.git(&["branch", "--force", "feature"]);
        }
        git(&scratch, "switch --quiet -c more");
        scratch.write(QUEUE, format!("More.\n\n{}", scratch.queue()));
        scratch.commit(&[QUEUE], "More");
        git(&scratch, "switch --quiet feature");
        scratch.change(QUEUE, "T-4: four\n", "T-4: four\n  Theirs.\n");
        scratch.git(&["add", QUEUE]);
        // What is picked within the second would be the very same commit.
        let commit =
            scratch
                .command(Path::new("git"))
                .args(&["commit", "--quiet", "--message=Words"]);
        commit
            .variable("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
            .run()
            .succeeds();
        lines
            .iter()
            .for_each(|line| drop(scratch.git(&line.split(' ').collect::<Vec<_>>())));
        scratch.write(QUEUE, loaded.replace("T-2: two\n", "T-2: two\n  Mine.\n"));
        scratch.settle();
        has(
            &scratch.queue(),
            &["  Others'.\n", "  Theirs.\n", "  Mine.\n"],
        );
        scratch.stands(&taken[0], "in_progress", 1);
        is_calm(&scratch);
    }
}

/// Nobody looks before the pick: what was ticked on the other branch was never so here, and never otherwise.
#[test]
fn what_was_ticked_on_another_branch_and_picked_is_done() {
    let scratch = board(EMPTY, &pending(FOUR));
    scratch.git(&["switch", "--quiet", "-c", "feature"]);
    scratch.change(QUEUE, "- [ ] T-2: two\n", "- [x] T-2: two\n  Theirs.\n");
    scratch.git(&["add", QUEUE]);
    // What is picked within the second would be the very same commit.
    let commit = scratch
        .command(Path::new("git"))
        .args(&["commit", "--quiet", "--message=Ticked"]);
    commit
        .variable("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
        .run()
        .succeeds();
    scratch.git(&["switch", "--quiet", "main"]);
    scratch.git(&["cherry-pick", "feature"]);
    scratch.settle();
    scratch.stands("T-2", "completed", 0);
    has(&scratch.queue(), &["  Theirs.\n"]);
    is_calm(&scratch);
}

/// What is staged is older than what stands in the file, or a part of it.
#[test]
fn what_was_committed_in_part_throws_nothing_away() {
    for is_taken in [false, true] {
        let scratch = board(EMPTY, &pending(FOUR));
        scratch.write(QUEUE, format!("Staged.\n\n{}", scratch.queue()));
        scratch.git(&["add", QUEUE]);
        scratch.change(QUEUE, "T-2: two\n", "T-2: two\n  Not staged.\n");
        scratch.change(QUEUE, "\n## In", "- [ ] nor this\n\n## In");
        scratch.settle();
        if is_taken {
            taken(&scratch);
        }
        scratch.git(&["commit", "--quiet", "--message", "A part"]);
        scratch.change(QUEUE, "T-4: four\n", "T-4: four\n  Typed since.\n");
        let typed = scratch.queue();
        scratch.settle();
        assert_eq!(scratch.queue(), typed);
        is_calm(&scratch);
    }
}

/// Nobody looked between what was committed and what git did then.
#[test]
fn what_was_committed_just_before_a_pull_is_there() {
    let typed = |text: &str| {
        let text = text
            .replacen("- [ ] T-1: one", "- [x] T-1: one", 1)
            .replacen("T-2: two", "T-2: two MORE", 1);
        format!(
            "Words.\n\n{}",
            text.replacen("- [ ] nameless", "- [ ] nameless, typed on", 1)
        )
    };
    for how in [
        "pull --quiet --no-rebase --no-edit",
        "cherry-pick FETCH_HEAD",
        "pull --quiet --rebase",
    ] {
        let [origin, clone] = clone_of(&format!("{FOUR}- [ ] nameless\n"));
        origin.change(QUEUE, "T-4: four", "T-4: four, theirs");
        origin.commit(&[QUEUE], "Theirs");
        clone.write(QUEUE, typed(&clone.queue()));
        clone.commit(&[QUEUE], "Mine");
        clone.git(&["fetch", "--quiet"]);
        git(&clone, how);
        has(
            &clone.queue(),
            &[
                "Words.\n",
                "- [x] T-1: one",
                "T-2: two MORE\n",
                "T-4: four, theirs\n",
            ],
        );
        assert_eq!(items(&clone).len(), 5, "{how}\n{}", clone.queue());
        clone
            .run("tavern-log", &[])
            .says("T-2 was edited by")
            .says("T-4 was edited by git");
        is_calm(&clone);
    }
}

/// git brings it as it was, until Tavern makes it right.
#[test]
fn what_was_archived_and_is_pulled_is_not_opened_by_whoever_loaded_what_git_wrote() {
    let [origin, clone] =
        clone_of("- [ ] T-1: one (worktree: false, result: answer)\n- [ ] T-2: two\n");
    let token = clone.claim("T-1", &[]);
    clone
        .run("tavern-report", &["T-1", "--token", &token, "--done"])
        .ends(0);
    clone.write(CONFIG, "archive: {after: 1h}\n");
    clone.at("+7200", "tavern-reap", &[]).succeeds();
    clone.commit(&["--all"], "Archived");
    origin.change(QUEUE, "T-1: one", "T-1: one, theirs");
    origin.commit(&[QUEUE], "Theirs");
    clone.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
    let loaded = clone.queue();
    has(&loaded, &["- [ ] T-1: one, theirs"]);
    clone.settle();
    clone.stands("T-1", "completed", 1);
    clone.commit(&[QUEUE], "Made right");
    clone.write(QUEUE, loaded.replace("T-2: two", "T-2: two, typed"));
    clone.settle();
    has(&clone.queue(), &["T-2: two, typed\n", "T-1: one, theirs"]);
    clone.stands("T-1", "completed", 1);
}

/// HEAD has two items as they stood at different times, so no version of the queue tells of both.
#[test]
fn a_reset_to_what_was_merged_undoes_nothing() {
    let scratch = board(
        &pending("- [ ] T-1: one\n- [ ] T-2: two\n"),
        &pending("- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n"),
    );
    scratch.git(&["branch", "old"]);
    let token = scratch.claim("T-1", &[]);
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--failed", "no"],
        )
        .ends(1);
    git(&scratch, "switch --quiet other");
    scratch
        .run("tavern-add", &["nine", "--id", "T-9"])
        .succeeds();
    let token = scratch.claim("T-9", &[]);
    scratch.commit(&[QUEUE], "Added");
    git(&scratch, "merge --quiet --no-edit old");
    scratch
        .run(
            "tavern-report",
            &["T-9", "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    let before = scratch.queue();
    git(&scratch, "reset --quiet --hard");
    assert_eq!(items(&scratch).len(), 4, "{}", scratch.queue());
    for (item, status) in [("T-9", "waiting"), ("T-1", "pending")] {
        assert_eq!(
            scratch.item(item)["status"],
            status,
            "{before}\n{}",
            scratch.queue()
        );
    }
    assert_eq!(scratch.stands("T-1", "pending", 1)["reason"], "no");
    is_calm(&scratch);
}

/// The same, loaded before Tavern made it right, and saved long after.
#[test]
fn who_loaded_what_was_merged_undoes_nothing() {
    let items = "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n";
    let scratch = board(
        &pending(items),
        &pending(&format!("{items}- [ ] T-4: four\n")),
    );
    scratch.git(&["branch", "old"]);
    let token = scratch.claim("T-1", &[]);
    scratch
        .run(
            "tavern-report",
            &["T-1", "--token", &token, "--failed", "no"],
        )
        .ends(1);
    git(&scratch, "switch --quiet other");
    let token = scratch.claim("T-2", &[]);
    scratch
        .run(
            "tavern-report",
            &["T-2", "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    scratch.commit(&[QUEUE], "Asked");
    scratch.git(&["merge", "--quiet", "--no-edit", "old"]);
    let loaded = scratch.queue();
    scratch.settle();
    let asked_and_failed = || {
        assert_eq!(scratch.stands("T-1", "pending", 1)["reason"], "no");
        assert_eq!(scratch.stands("T-2", "waiting", 0)["question"], "which?");
    };
    asked_and_failed();
    let token = scratch.claim("T-3", &[]);
    scratch
        .run("tavern-release", &["T-3", "--token", &token])
        .succeeds();
    scratch.write(QUEUE, loaded.replace("T-3: three", "T-3: three, typed"));
    scratch.settle();
    has(&scratch.queue(), &["T-3: three, typed\n"]);
    asked_and_failed();
    assert_eq!(scratch.stands("T-3", "pending", 0)["returns"], 1);
}

#[test]
fn a_stash_without_items_is_no_broken_save() {
    let scratch = Scratch::empty();
    let long_ago = |arguments: &[&str]| {
        let git = scratch
            .command(Path::new("git"))
            .variable("GIT_COMMITTER_DATE", "2026-01-01T10:00:00Z");
        git.args(arguments).run().succeeds();
    };
    long_ago(&["init", "--quiet", "--initial-branch=main"]);
    scratch
        .run("tavern-init", &["--quiet", "--tracked"])
        .succeeds();
    scratch.write(QUEUE, EMPTY);
    long_ago(&["add", "--all"]);
    long_ago(&["commit", "--quiet", "--message=Board"]);
    scratch.write(QUEUE, pending(FOUR));
    scratch.settle();
    let held = scratch.claim("T-2", &[]);
    let before = scratch.queue();
    git(&scratch, "stash --quiet --all");
    assert_eq!(scratch.queue(), before);
    is_calm(&scratch);
    // `--all` has taken what is ignored, too, and git does not write over what stands there; the stash has the same.
    git_stops(&scratch, "stash pop");
    scratch.git(&["checkout", "--quiet", "."]);
    std::fs::remove_file(scratch.work().join(".tavern/queues/main.state.yaml"))
        .expect("it was written again");
    git(&scratch, "stash pop --quiet");
    assert_eq!(scratch.queue(), before);
    git(&scratch, "clean -fdxq");
    assert_eq!(scratch.queue(), before);
    scratch
        .run("tavern-renew", &["T-2", "--token", &held])
        .ends(0);
    is_calm(&scratch);
}

/// What was only typed stays when it is stashed; git refuses to pop that upon it.
#[test]
fn what_was_stashed_stays_and_is_there_once_when_it_is_popped() {
    let scratch = Scratch::board(&pending(
        "- [x] T-0: none\n- [ ] T-1: one\n- [ ] T-2: two\n",
    ));
    scratch.commit(&["--all"], "Board");
    let typed =
        "Words.\n\n- [ ] T-1: first\n  More words.\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] four\n";
    scratch.write(QUEUE, pending(typed));
    scratch.settle();
    git(&scratch, "stash --quiet");
    assert_eq!(scratch.queue(), pending(typed));
    let held = scratch.claim("T-2", &[]);
    scratch.run("tavern-add", &["five", "--id", "T-5"]).ends(0);
    scratch.run("tavern-release", &["T-5", "--cancel"]).ends(0);
    git_stops(&scratch, "stash pop");
    scratch.git(&["checkout", "--quiet", "."]);
    git(&scratch, "stash pop --quiet");
    for words in ["Words.\n\n", "T-1: first\n  More words.\n", "- [ ] four\n"] {
        assert_eq!(
            scratch.queue().matches(words).count(),
            1,
            "{}",
            scratch.queue()
        );
    }
    assert_eq!(items(&scratch).len(), 5, "{}", scratch.queue());
    scratch.stands("T-2", "in_progress", 1);
    scratch.stands("T-3", "pending", 0);
    scratch.stands("T-5", "cancelled", 0);
    scratch
        .run("tavern-renew", &["T-2", "--token", &held])
        .ends(0);
    is_calm(&scratch);
}

/// The stash has what an editor with an old buffer saved for the second time.
#[test]
fn what_a_stash_took_from_an_old_buffer_stays_and_is_there_when_it_is_popped() {
    let scratch = Scratch::board(&pending(FOUR));
    scratch.settle();
    let buffer = scratch.queue();
    let token = scratch.claim("T-4", &[]);
    scratch.commit(&["--all"], "Board");
    let buffer = buffer.replace("T-2: two\n", "T-2: second\n");
    scratch.write(QUEUE, &buffer);
    scratch.settle();
    scratch.write(QUEUE, &buffer);
    git(&scratch, "stash --quiet");
    has(&scratch.queue(), &["T-2: second\n"]);
    scratch
        .run("tavern-release", &["T-4", "--token", &token])
        .succeeds();
    scratch.claim("T-3", &[]);
    scratch.git(&["checkout", "--quiet", "."]);
    git(&scratch, "stash pop --quiet");
    has(&scratch.queue(), &["T-2: second\n"]);
    scratch.stands("T-3", "in_progress", 1);
    is_calm(&scratch);
}

#[test]
fn what_a_person_saved_and_committed_is_theirs() {
    let scratch = Scratch::board(&pending(FOUR));
    scratch.commit(&["--all"], "Board");
    let old = scratch.queue();
    scratch.run("tavern-add", &["five", "--id", "T-5"]).ends(0);
    // An editor with an old text, and a commit of it.
    scratch.write(QUEUE, old.replace("T-1: one", "T-1: first"));
    scratch.commit(&["--all"], "Typed");
    scratch.settle();
    assert_eq!(
        items(&scratch),
        [
            "T-1: first",
            "T-2: two",
            "T-3: three",
            "T-4: four",
            "T-5: five"
        ]
    );
    // Nobody believes that they took out all that there is.
    scratch.write(QUEUE, EMPTY);
    scratch.commit(&["--all"], "Emptied");
    scratch.settle();
    scratch
        .run("tavern-check", &[])
        .says("what it lacks stays: T-1, T-2, T-3, T-4, T-5");
    assert_eq!(items(&scratch).len(), 5);
}

#[test]
fn while_git_is_about_it_nothing_is_taken_over() {
    let two = pending("- [ ] T-1: one\n- [ ] T-2: two\n");
    let scratch = board(&two, &pending(FOUR));
    let lock = scratch.write(".git/index.lock", "");
    scratch.write(QUEUE, &two);
    scratch.run("tavern-add", &["five", "--id", "T-5"]).ends(0);
    assert_eq!(scratch.queue(), two);
    std::fs::remove_file(&lock).expect("it is there");
    scratch.git(&["symbolic-ref", "HEAD", "refs/heads/other"]);
    scratch.settle();
    is_calm(&scratch);
    let five = [
        "T-1: one",
        "T-2: two",
        "T-3: three",
        "T-4: four",
        "T-5: five",
    ];
    assert_eq!(items(&scratch), five);
    // One that a killed git has left keeps nobody.
    let lock = std::fs::File::create(&lock).expect("the folder is ours");
    lock.set_modified(SystemTime::now() - Duration::from_secs(60))
        .expect("it is ours");
    scratch.change(QUEUE, "T-5: five\n", "T-5: five\n- [ ] T-6: six\n");
    scratch.settle();
    assert_eq!(items(&scratch), [&five[..], &["T-6: six"]].concat());
}

/// git has put a text of another commit there and into its index: until it is known where that comes from nobody takes it over.
#[test]
fn what_git_has_just_put_there_from_another_commit_is_shown_as_it_was_before() {
    let scratch = Scratch::board(&pending(FOUR));
    scratch.commit(&[QUEUE], "Four items");
    scratch.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    scratch.commit(&[QUEUE], "Cancelled");
    scratch.git(&["checkout", "--quiet", "HEAD~1", "--", QUEUE]);
    scratch.stands("T-2", "cancelled", 0);
}

#[test]
fn a_rebase_with_markers_in_the_queue_loses_nothing() {
    let [origin, clone] = clone_of(FOUR);
    clone.git(&["config", "--remove-section", "merge.tavern"]);
    clone.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    clone.commit(&[QUEUE], "Cancelled");
    let held = clone.claim("T-2", &[]);
    origin.write(
        QUEUE,
        pending("- [ ] T-1: first\n- [ ] T-2: second\n- [ ] T-4: four\n- [ ] T-6: six\n"),
    );
    origin.commit(&[QUEUE], "Changed");
    git_stops(&clone, "pull --quiet --rebase");
    clone
        .run("tavern-renew", &["T-2", "--token", &held])
        .ends(0);
    clone.git(&["rebase", "--abort"]);
    clone.settle();
    clone.stands("T-1", "cancelled", 0);
    clone.stands("T-2", "in_progress", 1);
    assert_eq!(
        items(&clone),
        ["T-2: two", "T-3: three", "T-4: four", "x T-1: one"]
    );
    // With the driver there are none.
    clone.run("tavern-init", &["--quiet"]).succeeds();
    clone.git(&["stash", "--quiet"]);
    git(&clone, "pull --quiet --rebase");
    clone.stands("T-1", "cancelled", 0);
    clone.stands("T-2", "in_progress", 1);
    // What stood here is in no commit that is left: nothing is taken out.
    assert_eq!(
        items(&clone),
        [
            "T-2: second",
            "T-3: three",
            "T-4: four",
            "T-6: six",
            "x T-1: first"
        ]
    );
}

/// What stood in others' commits below those that git puts there anew was never here.
#[test]
fn what_others_finished_stays_so_whose_commits_are_put_upon_theirs() {
    let plain = "(worktree: false, result: answer)";
    for lines in [
        &["pull --quiet --rebase"][..],
        &["fetch --quiet", "rebase --quiet --apply origin/main"],
        &[
            "fetch --quiet",
            "reset --quiet --hard origin/main",
            "cherry-pick ORIG_HEAD",
        ],
    ] {
        let [origin, clone] = clone_of(
            &["T-1", "T-3", "T-4"]
                .map(|id| format!("- [ ] {id}: do {plain}\n"))
                .concat(),
        );
        let done = |scratch: &Scratch, id: &str, how: &[&str]| {
            let token = scratch.claim(id, &[]);
            scratch.run("tavern-report", &[&[id, "--token", &token], how].concat());
        };
        done(&origin, "T-1", &["--done"]);
        origin.run("tavern-release", &["T-3", "--cancel"]).ends(0);
        origin.commit(&[QUEUE], "Theirs");
        done(&clone, "T-4", &["--done"]);
        clone.commit(&[QUEUE], "Mine");
        lines
            .iter()
            .for_each(|line| drop(clone.git(&line.split(' ').collect::<Vec<_>>())));
        clone.settle();
        for (id, status) in [
            ("T-1", "completed"),
            ("T-3", "cancelled"),
            ("T-4", "completed"),
        ] {
            assert_eq!(
                clone.item(id)["status"],
                status,
                "{lines:?} {id}\n{}",
                clone.queue()
            );
        }
        is_calm(&clone);
    }
}

/// A commit that a rebase leaves out takes back nothing that was done here.
#[test]
fn a_rebase_that_skips_a_commit_undoes_nothing() {
    for is_last in [true, false] {
        let [origin, clone] =
            clone_of("- [ ] T-1: do (worktree: false, result: answer)\n- [ ] T-2: two\n");
        let changed = |scratch: &Scratch, text: &str| {
            scratch.write("code", text);
            scratch.git(&["add", "code"]);
        };
        changed(&origin, "theirs\n");
        origin.commit(&["code"], "Theirs");
        changed(&clone, "mine\n");
        let token = clone.claim("T-1", &[]);
        clone
            .run("tavern-report", &["T-1", "--token", &token, "--done"])
            .ends(0);
        clone.commit(&[QUEUE], "Mine");
        if !is_last {
            clone.change(QUEUE, "T-2: two", "T-2: two, mine");
            clone.commit(&[QUEUE], "More");
        }
        git_stops(&clone, "pull --quiet --rebase");
        clone.git(&["rebase", "--skip"]);
        clone.settle();
        clone.stands("T-1", "completed", 1);
        is_calm(&clone);
    }
}

#[test]
fn a_branch_without_a_queue_keeps_what_is_held() {
    let scratch = Scratch::board(&pending(FOUR));
    scratch.git(&["branch", "other"]);
    scratch.commit(&["--all"], "Board");
    scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    git(&scratch, "checkout --quiet -f other");
    git(&scratch, "checkout --quiet -f main");
    scratch.stands("T-1", "cancelled", 0);
    assert_eq!(items(&scratch).len(), 4);
    is_calm(&scratch);
}

/// The item got its ID and its question on another branch; a pull has brought it as it was typed, among others.
#[test]
fn what_git_puts_back_without_its_id_undoes_no_question() {
    let items: String = (1..=6)
        .map(|number| format!("- [ ] A-{number}: x{number}\n"))
        .collect();
    let scratch = Scratch::board(&format!(
        "## Pending\n\n{items}\n## Waiting\n\n## Completed\n\n- [x] A-9: nine\n"
    ));
    scratch.settle();
    scratch.commit(&["--all"], "Board");
    let lines = r#"git branch other
        git clone -q . ../elsewhere
        sed -i 's/^- \[ \] A-1: x1/- [ ] Typed.\n&/' .tavern/queues/main.md
        tavern reap
        git commit -qam Typed
        git -C ../elsewhere pull -q
        eval "$(tavern claim --agent Frodo --format env)"
        tavern report "$TAVERN_TASK" --token "$TAVERN_TOKEN" --waiting 'which?' || true
        git commit -qam Asked
        git switch -q other
        tavern reap
        sed -i 's/^- .x. A-9: nine/- [x] B-1: b (status: cancelled)\n- [x] B-2: b\n- [x] B-3: b (status: cancelled)/' \
            ../elsewhere/.tavern/queues/main.md
        git -C ../elsewhere commit -qam Elsewhere
        for number in 1 3 4 5 6; do tavern release "A-$number" --cancel; done
        git commit -qam Cancelled
        git pull -q --no-rebase --no-edit ../elsewhere main
        tavern cancel A-2
        git reset -q --hard
        tavern reap"#;
    scratch
        .command(Path::new("sh"))
        .args(&["-ec", lines])
        .run()
        .ends(0);
    has(&scratch.queue(), &[": Typed.\n"]);
    let state = State::of(&scratch);
    let asked = state.tasks.values().find(|task| task.title == "Typed.");
    let asked = asked.expect("it is there");
    assert_eq!(
        (asked.status(), asked.question()),
        (Status::Waiting, Some("which?"))
    );
    state.agrees();
}

/// Whoever goes on in what a switch has put there has their own words once, however they correct them.
#[test]
fn who_corrects_what_they_typed_in_what_was_switched_to_has_it_once() {
    let scratch = Scratch::board(
        "## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n\n## In Progress\n\n## Completed\n",
    );
    scratch.commit(&["--all"], "Board");
    scratch.git(&["branch", "other"]);
    let token = scratch.claim("T-2", &[]);
    scratch
        .run("tavern-release", &["T-2", "--token", &token])
        .succeeds();
    scratch.claim("T-1", &[]);
    scratch.git(&["switch", "--quiet", "other"]);
    let mut buffer = scratch.queue();
    let edits = [
        ("\n\n## In", "\n- [ ] Write teh manual\n\n## In"),
        ("teh", "the"),
        ("T-2: two", "T-2: two, mine"),
    ];
    for (from, to) in edits {
        buffer = buffer.replacen(from, to, 1);
        scratch.write(QUEUE, &buffer);
        scratch.settle();
        scratch.run("tavern-add", &["More"]).succeeds();
    }
    let queue = scratch.queue();
    assert_eq!(
        (
            queue.matches("the manual").count(),
            queue.matches("teh manual").count()
        ),
        (1, 0),
        "{queue}"
    );
}
