//! What Obsidian's Tasks plugin and its editor read of a task list: it is read as they mean it, and stays where they find it.

use crate::support::{Scratch, has};

#[test]
fn the_fields_of_obsidian_tasks_stay_at_the_end_of_the_line() {
    let scratch = Scratch::initialized();
    let tail = "🔺 🔁 every week 📅 2026-12-01 #home %%why%% ^k3j9ab";
    scratch.write(
        "Tasks.md",
        format!(
            "- [ ] Pay #bank {tail}\n\n  ```sh\n  echo paid > paid.txt\n  ```\n- [ ] Fix #123\n"
        ),
    );
    let added = scratch
        .run(
            "tavern-add",
            &[
                "--queue",
                "Tasks.md",
                "Later ⏳ 2026-12-01",
                "--priority",
                "3",
            ],
        )
        .succeeds();
    let added = format!(
        "- [ ] {}: Later (priority: 3) ⏳ 2026-12-01\n",
        added.trim()
    );
    let token = |id: &str| scratch.claim(id, &["--queue", "Tasks.md"]);
    assert!(
        scratch.read("Tasks.md").ends_with(&added),
        "{}",
        scratch.read("Tasks.md")
    );
    let drained = scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(1)
        .says("1 of 3 completed, 2 left");
    drained
        .says("claimed: Pay #bank\n")
        .says("Fix #123\n  it has no ```sh block");
    let text = scratch.read("Tasks.md");
    let line = text.lines().next().expect("it has lines");
    assert!(
        line.starts_with("- [x] T-") && line.ends_with(&format!(": Pay #bank {tail}")),
        "{text}"
    );
    let id = added[6..12].trim_end_matches(':');
    token(id);
    assert!(
        scratch.read("Tasks.md").contains(") ⏳ 2026-12-01\n"),
        "{}",
        scratch.read("Tasks.md")
    );
    assert_eq!(scratch.item(id)["status"], "in_progress");
    assert_eq!(scratch.item(id)["title"], "Later");
}

#[test]
fn what_is_struck_out_or_in_another_state_is_left_alone_and_told() {
    let scratch = Scratch::initialized();
    let own = "- [-] dropped\n- [/] mine\n- [/] mine, too\n- [>] moved\n- [ ] ~~no more~~\n\n  ```sh\n  echo no > no.txt\n  ```\n- [x] ~~done~~\n";
    let script = "\n  ```sh\n  echo yes > yes.txt\n  ```\n";
    scratch.write(
        "Tasks.md",
        format!("{own}- [ ] do it ~~soon~~ now\n{script}"),
    );
    let told = "Tasks.md:1: `[-]` is cancelled: this line is skipped\n\
                Tasks.md:2: `[/]` is in progress by hand: 2 lines like this are skipped\n\
                Tasks.md:4: `[>]` is in a custom state: this line is skipped\n\
                Tasks.md:5: `~~…~~` is struck out: this line is skipped\n";
    scratch
        .run("tavern-status", &["Tasks.md"])
        .ends(0)
        .says(told);
    scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(0)
        .says("1 of 1 completed, 0 left")
        .says(told);
    assert!(
        scratch.read("Tasks.md").starts_with(own),
        "{}",
        scratch.read("Tasks.md")
    );
    scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(0)
        .says("nothing to do")
        .says(told);
    scratch
        .run("tavern-claim", &["--queue", "Tasks.md"])
        .ends(3);
}

#[test]
fn what_waits_for_what_is_left_alone_says_so() {
    let scratch = Scratch::initialized();
    let lines = "- [-] Build ❌ 2026-11-20\n- [/] T-8: Paint\n- [ ] ~~Sweep~~\n- [ ] T-5: ~~Five~~\n- [ ] ~~T-6: Six~~\n";
    let script = "\n  ```sh\n  echo 1 > done.txt\n  ```\n";
    let waits = |name: &str| format!("- [ ] After {name} (after: {name})\n{script}");
    let rows = [
        ("Build", "cancelled (`[-]`)"),
        ("T-8", "in progress by hand (`[/]`)"),
        ("Sweep", "struck out (`~~`)"),
        ("T-5", "struck out (`~~`)"),
        ("T-6", "struck out (`~~`)"),
    ];
    scratch.write(
        "Tasks.md",
        format!("{lines}{}", rows.map(|(name, _)| waits(name)).concat()),
    );
    let mut check = scratch.run("tavern-check", &["Tasks.md"]).ends(0);
    let status = scratch
        .run("tavern-status", &["--items", "Tasks.md"])
        .succeeds();
    has(
        &status,
        &[
            "5 pending, 3 struck out\n",
            "~~Sweep~~ (it is struck out)\n",
        ],
    );
    let mut drained = scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(1)
        .says("0 of 5 completed, 5 left");
    for (name, state) in rows {
        let told = format!("waits for `{name}`, which is {state}");
        check = check.says(&format!("warning: this {told}"));
        drained = drained.says(&told);
        has(
            &status,
            &[&format!(
                "it {told}; if it is done write `[x]` there, else remove it from `after`"
            )],
        );
    }
    scratch
        .run("tavern-claim", &["--queue", "Tasks.md", "--task", "T-5"])
        .ends(3)
        .says("`T-5` can't be taken: it is struck out\nhint: to have agents take it, remove the `~~` from its title: tavern edit T-5\n");
    // Ticked it is done.
    scratch.write("Tasks.md", scratch.read("Tasks.md").replace("[-]", "[x]"));
    scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(1)
        .says("1 of 5 completed, 4 left");
}

#[test]
fn what_is_commented_out_is_no_item() {
    let scratch = Scratch::initialized();
    let script = |name: &str| format!("\n  ```sh\n  echo 1 > {name}.txt\n  ```\n");
    let hidden = format!("%%\n- [ ] hidden\n{}\n%%\n", script("hidden"));
    // What only looks like one hides nothing.
    let code = "```tex\n%% a comment of TeX\n```\n";
    scratch.write(
        "Tasks.md",
        format!(
            "{code}- [ ] one\n{}\n{hidden}\n- [ ] two\n{}",
            script("one"),
            script("two")
        ),
    );
    scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(0)
        .says("2 of 2 completed, 0 left");
    assert!(
        scratch.read("Tasks.md").contains(&hidden),
        "{}",
        scratch.read("Tasks.md")
    );
    assert_eq!(
        scratch.git(&["ls-tree", "--name-only", "tavern/integration"]),
        "README.md\none.txt\ntwo.txt"
    );
}

#[test]
fn what_is_commented_out_in_a_line_or_in_an_item_says_nothing() {
    let scratch = Scratch::initialized();
    let script = |name: &str| format!("  ```sh\n  echo 1 > {name}.txt\n  ```\n");
    let pay = "Pay %%(after: Later, budget: {usd: 1})%% the bill";
    let hidden = format!(
        "  %%\n  - [ ] T-7: hidden\n  - [ ] a step\n\n{}  ```yaml task\n  done_when: \"false\"\n  ```\n  %%\n",
        script("hidden")
    );
    // Code opens none, and one that is not closed in its item is none.
    let code = "- [ ] Show `%%`\n  ```%%``` is code (`%%`).\n\n";
    let open = format!("- [ ] Half\n\n{}  %%\n", script("half"));
    let list = format!(
        "- [ ] {pay}\n{hidden}\n{}{code}{}{open}- [ ] Later\n\n{}  %%\n",
        script("pay"),
        script("show"),
        script("later")
    );
    scratch.write("Tasks.md", &list);
    scratch.run("tavern-check", &["Tasks.md"]).ends(0);
    let items = scratch
        .run("tavern-status", &["--items", "Tasks.md"])
        .succeeds();
    has(&items, &["4 pending", pay, "Show `%%`", "Half", "Later"]);
    assert!(
        !items.contains("hidden") && !items.contains("steps"),
        "{items}"
    );
    scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(0)
        .says("4 of 4 completed, 0 left");
    has(&scratch.read("Tasks.md"), &[&hidden, &format!(": {pay}\n")]);
    assert_eq!(
        scratch.git(&["ls-tree", "--name-only", "tavern/integration"]),
        "README.md\nhalf.txt\nlater.txt\npay.txt\nshow.txt"
    );
}

#[test]
fn what_is_struck_out_is_not_added() {
    let scratch = Scratch::initialized();
    let before = scratch.queue();
    let told = "error: agents skip an item that is struck out: `~~x~~`\nhint: leave out the `~~` around its title\n";
    scratch.run("tavern-add", &["~~x~~"]).ends(2).says(told);
    assert_eq!(scratch.queue(), before);
}

#[test]
fn what_is_left_of_a_title_that_is_struck_or_commented_out_may_be_marks_and_tags() {
    let scratch = Scratch::initialized();
    let own = [
        "~~a~~ #home",
        "~~b~~ 📅 2026-12-01",
        "~~c~~.",
        "**~~d~~**",
        "~~e~~ ~~f~~",
        "<del>g</del>",
        "<s>h</s>",
        "%%i%%",
        "<!-- j -->",
    ];
    let own = own
        .map(|title| format!("- [ ] {title}\n\n  ```sh\n  echo no > no.txt\n  ```\n"))
        .concat();
    let item =
        |title: &str, file: &str| format!("- [ ] {title}\n\n  ```sh\n  echo 1 > {file}\n  ```\n");
    let worked = [
        item("~~x~~ → moved to #12", "one.txt"),
        item("~~old~~ new title", "two.txt"),
    ]
    .concat();
    scratch.write("Tasks.md", format!("{own}{worked}"));
    let status = scratch.run("tavern-status", &["Tasks.md"]).ends(0);
    status
        .says("2 pending, 2 commented out, 7 struck out")
        .says("Tasks.md:1: `~~…~~` is struck out: 5 lines like this are skipped\n")
        .says("`<del>` is struck out: this line is skipped\n")
        .says("`%%` is commented out: this line is skipped\n");
    scratch
        .run("tavern-drain", &["Tasks.md"])
        .ends(0)
        .says("2 of 2 completed, 0 left");
    assert!(
        scratch.read("Tasks.md").starts_with(&own),
        "{}",
        scratch.read("Tasks.md")
    );
    assert_eq!(
        scratch.git(&["ls-tree", "--name-only", "tavern/integration"]),
        "README.md\none.txt\ntwo.txt"
    );
}

#[test]
fn what_is_below_a_line_that_is_left_alone_is_left_alone_with_it() {
    for own in [
        "[-] dropped",
        "[>] forwarded",
        "[/] mine",
        "[ ] ~~struck~~",
        "[ ] <!-- hidden -->",
    ] {
        let scratch = Scratch::initialized();
        let script = "\n    ```sh\n    echo no > no.txt\n    ```\n";
        let below = format!(
            "  - [ ] part\n{script}  - plain\n    - [ ] T-7: named\n  {}",
            script.replace('\n', "\n  ")
        );
        let own = format!("- {own}\n{}\n", below.trim_end());
        scratch.write(
            "Tasks.md",
            format!("{own}- [ ] do it\n\n  ```sh\n  echo 1 > one.txt\n  ```\n"),
        );
        scratch
            .run("tavern-drain", &["Tasks.md"])
            .ends(0)
            .says("1 of 1 completed, 0 left");
        assert!(
            scratch.read("Tasks.md").starts_with(&own),
            "{}",
            scratch.read("Tasks.md")
        );
        assert_eq!(
            scratch.git(&["ls-tree", "--name-only", "tavern/integration"]),
            "README.md\none.txt"
        );
        scratch
            .run("tavern-claim", &["--queue", "Tasks.md", "--task", "T-7"])
            .ends(3)
            .says("a person's own");
    }
}
