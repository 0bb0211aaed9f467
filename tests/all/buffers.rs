//! Texts that somebody loaded long ago: what they show tells which version they rest on, whatever others saved since.

use crate::support::{CONFIG, QUEUE, Scratch, has};

const NAMELESS: &str = "- [ ] new item (worktree: false)\n";

fn save(scratch: &Scratch, text: &str) {
    scratch.write(QUEUE, text);
    scratch.settle();
}

/// Takes an item; gives its ID and the token.
fn take(scratch: &Scratch) -> [String; 2] {
    let lease = &scratch.json("tavern-claim", &[])["lease"];
    [
        lease["task"].as_str().expect("it has got one").to_owned(),
        lease["token"].to_string(),
    ]
}

#[test]
fn what_became_of_an_item_stays_whoever_goes_on_in_a_text_from_before_it_had_an_id() {
    let ends: [(&str, &[&str], &str, &str); 4] = [
        ("tavern-report", &["--done"], "completed", ""),
        (
            "tavern-report",
            &["--waiting", "what?"],
            "question",
            "what?",
        ),
        ("tavern-release", &[], "reason", "given back"),
        ("", &[], "agent", ""),
    ];
    let retitled = |title: &str| NAMELESS.replace("new item", title);
    let described = NAMELESS.to_owned() + "  more about it\n";
    // As it was, and then typed on.
    let saves = [
        [NAMELESS.to_owned(), retitled("new item MORE")],
        [retitled("new item MO"), retitled("new item MORE")],
        [
            retitled("new item MO"),
            described.replace("new item", "new item MO"),
        ],
        [described.clone(), described.clone() + "  and more\n"],
    ];
    for (program, how, key, shown) in ends {
        for saves in &saves {
            let scratch = Scratch::pending(NAMELESS);
            scratch.settle();
            let loaded = scratch.queue();
            let [id, token] = take(&scratch);
            if !program.is_empty() {
                scratch.run(program, &[&[id.as_str(), "--token", &token], how].concat());
            }
            for text in saves {
                save(&scratch, &loaded.replace(NAMELESS, text));
            }
            let queue = scratch.queue();
            let items: Vec<&str> = queue
                .lines()
                .filter(|line| line.starts_with("- ["))
                .collect();
            assert!(
                items.len() == 1 && items[0].contains(&id),
                "{saves:#?}\n{queue}"
            );
            let item = scratch.item(&id);
            let told = item[key].as_str().expect("it is remembered");
            assert!(told.starts_with(shown), "{saves:#?}\n{item:#}");
            assert_eq!(items[0].starts_with("- [x] "), key == "completed");
            let words = saves[1].lines().filter_map(|line| line.split(" (").next());
            words.for_each(|words| has(&queue, &[words.trim_start_matches("- [ ] ")]));
        }
    }
}

#[test]
fn an_old_text_that_is_first_saved_after_another_from_between_takes_nothing_out() {
    for (program, how) in [
        ("tavern-report", "--done"),
        ("tavern-report", "--failed=no"),
        ("tavern-release", "--quiet"),
    ] {
        let scratch = Scratch::pending("- [ ] T-9: old item\n");
        scratch.settle();
        let first = scratch.queue();
        scratch
            .run("tavern-add", &["one (worktree: false)", "--id", "T-1"])
            .succeeds();
        let second = scratch.queue();
        let token = scratch.claim("T-1", &[]);
        scratch.run(program, &["T-1", "--token", &token, how]);
        let became = scratch.item("T-1")["status"].clone();
        save(&scratch, &second.replace("old item", "old item BOB"));
        save(&scratch, &first);
        has(&scratch.queue(), &["T-1: one", "old item BOB"]);
        assert_eq!(scratch.item("T-1")["status"], became);
    }
}

#[test]
fn who_takes_an_item_out_of_an_old_text_takes_it_out_though_it_has_another_id_by_now() {
    for items in [
        "- [ ] T-1: one\n- [ ] T-1: two\n- [ ] T-3: three\n",
        "- [ ] AC-1: one\n- [ ] AC-1: two\n- [ ] T-3: three\n",
    ] {
        let scratch = Scratch::pending(items);
        scratch.settle();
        let loaded = scratch.queue();
        scratch.run("tavern-check", &["--fix"]).says("\n+- [ ] T-");
        scratch.settle();
        let two = loaded
            .lines()
            .find(|line| line.ends_with(": two"))
            .expect("it is there");
        let saved = loaded.replace(&format!("{two}\n"), "");
        save(&scratch, &saved);
        assert_eq!(scratch.queue(), saved);
    }
}

#[test]
fn what_was_typed_in_an_item_that_is_new_stays_with_it_where_an_old_text_lacks_both() {
    let scratch = Scratch::pending("- [ ] T-9: old item\n");
    scratch.settle();
    let loaded = scratch.queue();
    scratch
        .run("tavern-add", &["one", "--id", "T-1"])
        .succeeds();
    save(
        &scratch,
        &scratch
            .queue()
            .replace("T-1: one", "T-1: one\n  a step that Bob typed"),
    );
    save(&scratch, &loaded.replace("old item", "old item ANN"));
    has(
        &scratch.queue(),
        &["T-1: one\n  a step that Bob typed", "old item ANN"],
    );
}

/// Both typed in texts of their own. Who saves the one that the first had loaded is taken for the first, who takes theirs back.
#[test]
fn an_old_text_takes_back_no_line_but_those_of_who_went_on_in_it() {
    let scratch = Scratch::pending("- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n");
    scratch.settle();
    let old = scratch.queue();
    let token = scratch.claim("T-1", &[]);
    scratch.run(
        "tavern-report",
        &["T-1", "--token", &token, "--failed", "no luck"],
    );
    scratch
        .run("tavern-add", &["four", "--id", "T-4"])
        .succeeds();
    let newer = scratch.queue();
    save(&scratch, &old.replace("three", "three CYD"));
    save(&scratch, &newer.replace("three", "three\n  BOB"));
    has(&scratch.queue(), &["three CYD\n  BOB"]);
    save(&scratch, &old);
    has(&scratch.queue(), &["three\n  BOB", "T-4: four\n"]);
    assert_eq!(scratch.stands("T-1", "pending", 1)["reason"], "no luck");
    scratch
        .run("tavern-log", &[])
        .says("the changes of that save are undone");
}

/// An editor does not load what became of its save.
#[test]
fn who_goes_on_in_an_old_text_takes_nothing_out_by_the_next_saves() {
    let scratch = Scratch::board(
        "## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n\n## In Progress\n\n## Completed\n",
    );
    scratch.settle();
    let mut buffer = scratch.queue();
    save(
        &scratch,
        &scratch.queue().replace("T-1: one", "T-1: one, others'"),
    );
    save(
        &scratch,
        &scratch
            .queue()
            .replace("- [ ] T-3", "- [ ] nine\n- [ ] T-3"),
    );
    scratch
        .run("tavern-add", &["eight", "--id", "T-8"])
        .succeeds();
    for (from, to) in [
        ("two", "two, typed"),
        ("three", "three, typed"),
        ("two, typed", "two, typed, and more"),
        ("", ""),
    ] {
        buffer = buffer.replace(from, to);
        save(&scratch, &buffer);
        let typed = buffer
            .lines()
            .find(|line| line.contains(to))
            .unwrap_or_default()
            .to_owned();
        has(
            &scratch.queue(),
            &["T-1: one, others'", "- [ ] nine\n", "T-8: eight\n", &typed],
        );
    }
}

/// Two go on in texts from before a claim. What one corrects in their own words is none of the other's.
#[test]
fn who_corrects_themselves_in_an_old_text_takes_nothing_out_that_another_typed() {
    let items = "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n  line a\n  line b\n";
    let scratch = Scratch::board(&format!(
        "## Pending\n\n{items}\n## In Progress\n\n## Completed\n"
    ));
    scratch.settle();
    scratch.claim("T-1", &[]);
    let (alice, mut bob) = (scratch.queue(), scratch.queue());
    scratch.claim("T-2", &[]);
    let edit = |bob: &mut String, from: &str, to: &str| {
        *bob = bob.replacen(from, to, 1);
        save(&scratch, bob);
    };
    edit(
        &mut bob,
        "- [ ] T-3: three\n",
        "- [ ] nine\n- [ ] T-3: three\n  typed one\n",
    );
    save(
        &scratch,
        &alice.replace("line b\n", "line b\n  Ask Anna first\n"),
    );
    edit(&mut bob, "T-3: three", "T-3: the three");
    edit(
        &mut bob,
        "T-3: the three\n  typed one",
        "T-3: the three, too\n  typed two",
    );
    scratch
        .run("tavern-add", &["four", "--id", "T-4"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-4", "--cancel"])
        .succeeds();
    edit(&mut bob, "typed two", "typed three");
    for _ in 0..3 {
        has(
            &scratch.queue(),
            &["the three, too\n", "  typed three\n", "  Ask Anna first\n"],
        );
        save(&scratch, &bob);
    }
}

/// What they see in their editor is what they meant, but for what an agent has done since.
#[test]
fn who_corrects_what_they_typed_in_an_old_text_has_it_once() {
    let typed = "- [ ] T-3: three\n";
    let corrections = [
        (
            "- [ ] T-3: three\n  ```sh\n  make tset\n  ```\n",
            "tset",
            "test",
        ),
        (
            "- [ ] T-3: three\n  ```sh\n  make tset\n  ```\n",
            "tset",
            "test -j2",
        ),
        (
            "- [ ] T-3: three\n  - [ ] step A\n  - [ ] step B\n",
            "[ ] step A",
            "[x] step A",
        ),
        ("- [ ] T-3: three\n  Ask Ana first.\n", "Ana", "Anna"),
        ("- [ ] T-3: three and detla\n", "detla", "delta"),
        ("\nAsk teh boss.\n\n- [ ] T-3: three\n", "teh", "the"),
        ("- [ ] T-3: three (done_when: make tset)\n", "tset", "test"),
        ("- [ ] T-3: three (role: reviewr)\n", "reviewr", "reviewer"),
        ("- [ ] Fix teh tests\n- [ ] T-3: three\n", "teh", "the"),
        (
            "- [ ] Write manual\n- [ ] T-3: three\n",
            "manual",
            "the manual",
        ),
        (
            "- [ ] Other thing\n- [ ] T-3: three\n",
            "Other",
            "Please do the other",
        ),
    ];
    let lines = |text: &str| {
        text.lines()
            .filter(|line| !line.contains("T-1"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (text, from, to) in corrections {
        let scratch = Scratch::board(&format!(
            "## Pending\n\n- [ ] T-1: one\n{typed}\n## In Progress\n\n## Completed\n"
        ));
        let mut buffer = scratch.queue().replace(typed, text);
        save(&scratch, &buffer);
        scratch.claim("T-1", &[]);
        buffer = buffer.replace(from, to);
        for _ in 0..2 {
            save(&scratch, &buffer);
            let queue = scratch.queue();
            let [saved, stands] = [&buffer, &queue].map(|text| lines(text.trim()));
            assert!(
                saved
                    .iter()
                    .filter(|line| !line.is_empty())
                    .eq(stands.iter().filter(|line| !line.is_empty())),
                "{queue}"
            );
        }
    }
}

/// Others typed meanwhile what they have not seen, and they save again and again.
#[test]
fn who_corrects_what_they_typed_after_several_saves_has_it_once() {
    let items = "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] T-4: four\n";
    for (typed, to) in [
        (
            "- [ ] T-3: three\n  typed teh end\n",
            "- [ ] T-3: three\n  typed the end\n",
        ),
        (
            "Typed teh end.\n\n- [ ] T-3: three\n",
            "Typed the end.\n\n- [ ] T-3: three\n",
        ),
    ] {
        let scratch = Scratch::board(&format!(
            "## Pending\n\n{items}\n## In Progress\n\n## Completed\n"
        ));
        let mut buffer = scratch.queue();
        scratch.claim("T-1", &[]);
        let edits = [
            ("T-4: four", "T-4: four, mine"),
            ("- [ ] T-2", "- [ ] nine\n- [ ] T-2"),
            ("- [ ] T-3: three\n", typed),
            (typed, to),
            ("nine", "nine, all mine"),
        ];
        for (from, to) in edits {
            buffer = buffer.replacen(from, to, 1);
            save(&scratch, &buffer);
            save(
                &scratch,
                &scratch.queue().replacen("T-2: two", "T-2: two x", 1),
            );
        }
        let queue = scratch.queue();
        assert_eq!(
            (
                queue.matches("yped the end").count(),
                queue.matches("yped teh end").count()
            ),
            (1, 0),
            "{queue}"
        );
        has(&queue, &["two x x x x x", "nine, all mine", "four, mine"]);
    }
}

#[test]
fn lines_between_the_items_stand_once_however_often_an_old_text_is_saved() {
    let items = "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n";
    let scratch = Scratch::board(&format!(
        "## In Progress\n\n## Completed\n\n## Pending\n\n{items}"
    ));
    let typed = "A note.\n\n- [ ] T-1: one\n- [ ] T-2: two\n- [ ] four\n\nA second note.\n\n- [ ] T-3: three\n";
    save(&scratch, &scratch.queue().replace(items, typed));
    let mut buffer = scratch.queue();
    scratch.claim("T-1", &[]);
    scratch.claim("T-2", &[]);
    for (before, typed) in [
        ("- [ ] four", "Ask Anna first."),
        ("- [ ] T-1", "Ask Bert, too."),
        ("", ""),
    ] {
        buffer = buffer.replacen(before, &format!("\n{typed}\n\n{before}"), 1);
        save(&scratch, &buffer);
    }
    let words = |text: &str| {
        let words = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("- [ ]"));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(&scratch.queue()), words(&buffer));
}

/// What is only much like what another typed is none of it, and what was so before it was corrected neither.
#[test]
fn an_old_text_takes_no_other_line_for_one_that_was_typed_since() {
    let items = "- [ ] T-1: one\n- [ ] T-2: teh two\n- [ ] Test the parser\n- [ ] T-3: three\n";
    let others = [
        ("- [ ] T-3", "- [ ] Test\n- [ ] T-3", "- [ ] Test\n"),
        (
            "- [ ] T-3",
            "- [ ] Test the parsers\n- [ ] T-3",
            "- [ ] Test the parsers\n",
        ),
        (
            "- [ ] T-3: three\n",
            "- [ ] T-3: three\n  Chapter 1.\n",
            "  Chapter 1.\n",
        ),
        ("teh two", "the two", "the two"),
    ];
    for (from, to, stays) in others {
        let scratch = Scratch::board(&format!(
            "## Pending\n\n{items}\n## In Progress\n\n## Completed\n"
        ));
        let mut buffer = scratch.queue();
        save(&scratch, &scratch.queue().replace(from, to));
        scratch.claim("T-1", &[]);
        for (from, to) in [
            ("T-3: three\n", "T-3: three\n  Chapter 2.\n"),
            ("teh two", "teh two, mine"),
        ] {
            buffer = buffer.replace(from, to);
            save(&scratch, &buffer);
            has(
                &scratch.queue(),
                &[stays, "- [ ] Test the parser\n", "  Chapter 2.\n"],
            );
        }
        has(&scratch.queue(), &["mine"]);
    }
}

/// They tick what they saw done, where it stood then: that is no tick in the newest text.
#[test]
fn who_ticks_in_an_old_text_what_an_agent_has_just_done_undoes_nothing() {
    let items =
        "- [ ] T-1: one (worktree: false, result: answer)\n- [ ] T-2: two\n- [ ] T-3: three\n";
    let scratch = Scratch::board(&format!(
        "## Pending\n\n{items}\n## In Progress\n\n## Completed\n"
    ));
    scratch.settle();
    let loaded = scratch.queue();
    let token = scratch.claim("T-1", &[]);
    scratch
        .run("tavern-report", &["T-1", "--token", &token, "--done"])
        .ends(0);
    save(
        &scratch,
        &scratch
            .queue()
            .replace("- [ ] T-3", "- [ ] T-9: nine\n- [ ] T-3"),
    );
    save(
        &scratch,
        &scratch.queue().replace("T-2: two", "T-2: two, others'"),
    );
    save(&scratch, &loaded.replace("[ ] T-1", "[x] T-1"));
    let parts = [
        "T-9: nine\n",
        "T-2: two, others'\n",
        "- [x] T-1: one (worktree: false, result: answer)\n",
    ];
    has(&scratch.queue(), &parts);
    scratch.stands("T-1", "completed", 1);
}

/// The same of what has been cancelled. Then another, whose text is older still, goes on in an item of their own.
#[test]
fn who_ticks_in_an_old_text_what_has_been_cancelled_undoes_nothing() {
    let items = "- [ ] T-1: one\n- [ ] T-2: two\n- [ ] T-3: three\n- [ ] no ID yet\n  Its words.\n";
    let scratch = Scratch::board(&format!(
        "## Pending\n\n{items}\n## In Progress\n\n## Completed\n"
    ));
    scratch.settle();
    let oldest = scratch.queue();
    let token = scratch.claim("T-3", &[]);
    save(
        &scratch,
        &scratch.queue().replace("T-1: one", "T-1: one zulu"),
    );
    let old = scratch.queue();
    scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    scratch
        .run(
            "tavern-report",
            &["T-3", "--token", &token, "--waiting", "which?"],
        )
        .ends(8);
    save(
        &scratch,
        &scratch
            .queue()
            .replace("- [ ] T-2", "- [ ] T-9: nine\n- [ ] T-2"),
    );
    save(
        &scratch,
        &old.replace("[ ] T-1", "[x] T-1")
            .replace("T-2: two", "T-2: two xray"),
    );
    has(
        &scratch.queue(),
        &["T-9: nine\n", "T-2: two xray\n", "- [x] T-1: one zulu"],
    );
    save(
        &scratch,
        &oldest.replace("Its words.", "Its words, and more."),
    );
    has(
        &scratch.queue(),
        &[
            "T-9: nine\n",
            "T-2: two xray\n",
            "- [x] T-1: one zulu",
            "Its words, and more.",
        ],
    );
    scratch.stands("T-3", "waiting", 0);
}

/// What took the place of a line is known where it stands, and not behind the lines that the save has changed next to it.
#[test]
fn who_changes_the_line_beside_one_that_was_changed_doubles_nothing() {
    for (before, after) in [("WORD two\n\n", "WORD 2\n\n"), ("", "WORD 2\n\n")] {
        let words = format!("WORD one\n\n{before}WORD three\n\nWORD four\n\n");
        let scratch = Scratch::board(&format!(
            "{words}## Pending\n\n- [ ] T-1: item\n\n## In Progress\n\n## Completed\n"
        ));
        let token = scratch.claim("T-1", &[]);
        let place = format!("{before}WORD three");
        save(
            &scratch,
            &scratch
                .queue()
                .replace(&place, &format!("{after}WORD three")),
        );
        let loaded = scratch.queue();
        scratch
            .run("tavern-release", &["T-1", "--token", &token])
            .succeeds();
        save(&scratch, &loaded.replace("three", "3"));
        let queue = scratch.queue();
        let lines: Vec<&str> = queue
            .lines()
            .filter(|line| line.contains("WORD") || line.contains("conflict"))
            .collect();
        assert_eq!(lines, ["WORD one", "WORD 2", "WORD 3", "WORD four"]);
    }
}

/// What was archived a second time tells nothing of a text that never had it.
#[test]
fn a_text_from_between_two_archivings_of_the_same_items_undoes_nothing() {
    let ended = |id| format!("- [x] T-{id}: Ended (completed: 2026-01-01T00:00:00Z)\n");
    let lines: String = (5..9).map(ended).collect();
    let scratch = Scratch::board(&format!(
        "## Pending\n\n- [ ] T-1: one\n- [ ] T-2: two\n\n## Completed\n\n{lines}"
    ));
    let archive = |after| {
        scratch.write(CONFIG, format!("archive: {{after: {after}}}\n"));
        scratch.settle();
    };
    let give_back = |id| {
        let token = scratch.claim(id, &[]);
        scratch
            .run("tavern-release", &[id, "--token", &token])
            .succeeds();
    };
    archive("30d");
    let loaded = scratch.queue();
    archive("9000d");
    let again = lines.replace("Ended", "Ended, and more");
    save(
        &scratch,
        &scratch
            .queue()
            .replace("## Completed\n", &format!("## Completed\n\n{again}")),
    );
    give_back("T-1");
    save(&scratch, &loaded);
    give_back("T-2");
    archive("30d");
    save(&scratch, &loaded.replace("T-2: two", "T-2: two, typed"));
    has(&scratch.queue(), &["T-1: one\n", "T-2: two, typed\n"]);
    for id in ["T-1", "T-2"] {
        assert_eq!(scratch.item(id)["returns"], 1);
    }
}

/// It is nearer to the text in which the first of them was alone.
#[test]
fn who_takes_most_items_out_that_were_added_one_by_one_is_told_that_they_stay() {
    let scratch = Scratch::pending("");
    for number in 1..=6 {
        scratch
            .run(
                "tavern-add",
                &[&format!("work {number}"), "--id", &format!("T-{number}")],
            )
            .succeeds();
    }
    let queue = scratch.queue();
    let is_kept = |line: &&str| {
        !["T-2", "T-3", "T-4", "T-5"]
            .iter()
            .any(|id| line.contains(id))
    };
    save(
        &scratch,
        &queue
            .split_inclusive('\n')
            .filter(is_kept)
            .collect::<String>(),
    );
    assert_eq!(scratch.queue(), queue);
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says("what it lacks stays: T-2, T-3, T-4, T-5\n");
    save(
        &scratch,
        &queue
            .split_inclusive('\n')
            .filter(|line| !line.contains("T-3"))
            .collect::<String>(),
    );
    assert!(!scratch.queue().contains("T-3"), "{}", scratch.queue());
}

/// What was typed in an item before it was taken tells nothing of whether the text is from before that.
#[test]
fn what_was_typed_in_an_item_stays_though_somebody_had_typed_in_it_before_it_was_taken() {
    let scratch =
        Scratch::pending("- [ ] T-1: one (worktree: false, result: answer)\n- [ ] T-2: two\n");
    scratch.settle();
    save(
        &scratch,
        &scratch.queue().replace("T-1: one", "T-1: number one"),
    );
    let [id, token] = take(&scratch);
    let loaded = scratch.queue();
    save(&scratch, &loaded.replace("number one", "number one, typed"));
    scratch
        .run("tavern-report", &[&id, "--token", &token, "--done"])
        .ends(0);
    save(
        &scratch,
        &loaded.replace("T-2: two", "T-2: two, typed, too"),
    );
    scratch.stands("T-1", "completed", 1);
    has(
        &scratch.queue(),
        &[
            "- [x] T-1: number one, typed (worktree: false",
            "T-2: two, typed, too",
        ],
    );
}

/// Whoever typed the item shows nothing of the text's age, and whoever took it does.
#[test]
fn what_was_typed_in_a_held_item_stays_whoever_goes_on_in_a_text_from_before() {
    let typed = [
        ("one", "one WORD"),
        ("one", "WORD"),
        ("(", "(tags: WORD, "),
        ("\n- [ ] T-2", "\n  WORD\n- [ ] T-2"),
    ];
    let ends: [(&str, &[&str]); 3] = [
        ("tavern-report", &["--done"]),
        ("tavern-report", &["--failed", "no luck"]),
        ("tavern-release", &["--quiet"]),
    ];
    for (program, how) in ends {
        for (from, to) in typed {
            let scratch = Scratch::board("## In Progress\n\n## Completed\n\n## Pending\n\n");
            save(
                &scratch,
                &(scratch.queue()
                    + "- [ ] T-1: one (worktree: false, result: answer)\n- [ ] T-2: two\n"),
            );
            let token = scratch.claim("T-1", &[]);
            let loaded = scratch.queue();
            save(&scratch, &loaded.replacen(from, to, 1));
            scratch.run(program, &[&["T-1", "--token", &token], how].concat());
            let became = scratch.item("T-1")["status"].clone();
            save(&scratch, &(loaded + "- [ ] another\n"));
            has(&scratch.queue(), &["WORD", "- [ ] another"]);
            assert_eq!(scratch.item("T-1")["status"], became);
        }
    }
}

/// An editor saves an old text, and goes on in it or loads it again before anybody has made the queue show what became of it.
#[test]
fn who_goes_on_in_a_text_from_before_others_added_takes_out_nothing_of_theirs() {
    let item = |number: usize| format!("- [ ] T-{number}: one\n");
    let added = ["T-11", "T-12", "T-13", "T-14"];
    for fault in ["", "log.appended=kill"] {
        let scratch = Scratch::pending(&(1..9).map(item).collect::<String>());
        scratch.settle();
        let mut buffer = scratch.queue();
        for id in added {
            scratch.failing(
                if id == "T-14" { fault } else { "" },
                "tavern-add",
                &["added", "--id", id],
            );
        }
        for word in ["typed", "more", "still more"] {
            buffer += &format!("- [ ] {word}\n");
            scratch.write(QUEUE, &buffer);
            scratch.failing(fault, "tavern-reap", &[]);
        }
        scratch.settle();
        let queue = scratch.queue();
        has(&queue, &added);
        has(
            &queue,
            &["- [ ] typed\n", "- [ ] more\n", "- [ ] still more\n"],
        );
        // Who takes them out after a reload saves what was in the buffer: that is told.
        save(&scratch, &buffer);
        assert_eq!(scratch.queue(), queue, "{fault}");
        scratch
            .run("tavern-check", &[])
            .says("what it lacks stays: T-11, T-12, T-13, T-14\n");
    }
}

#[test]
fn what_was_typed_in_a_copy_of_an_item_stays_whoever_goes_on_in_a_text_from_before() {
    let copy = "- [ ] T-1: one copied\n  Typed.\n\n";
    for (held, before) in [
        ("T-3", "- [ ] T-1"),
        ("T-3", "- [ ] T-2"),
        ("T-1", "- [ ] T-2"),
        ("T-1", "## In Progress"),
    ] {
        let scratch = Scratch::board(
            "## Pending\n\n- [ ] T-1: one\n  Words.\n- [ ] T-2: two\n- [ ] T-3: three\n\n## In Progress\n\n## Completed\n",
        );
        let loaded = scratch.queue();
        let token = scratch.claim(held, &[]);
        let typed = scratch
            .queue()
            .replacen(before, &format!("{copy}{before}"), 1);
        save(&scratch, &typed);
        save(&scratch, &typed.replace("Typed.", "Typed, and typed on."));
        for more in ["End.\n", "End.\nMore.\n"] {
            save(&scratch, &(loaded.clone() + more));
            let stays = format!("{}{more}", typed.replace("Typed.", "Typed, and typed on."));
            assert_eq!(scratch.queue(), stays, "{held}, {before}");
        }
        scratch
            .run("tavern-release", &[held, "--token", &token])
            .succeeds();
        save(&scratch, &(typed + "Others'.\n"));
        has(
            &scratch.queue(),
            &[
                "T-1: one copied\n  Typed, and typed on.",
                "  Words.",
                "End.",
                "Others'.",
            ],
        );
    }
}
