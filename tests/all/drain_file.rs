//! `tavern-drain` on a plain task file that knows nothing of Tavern, in a repository without a board.

use serde_json::Value;

use crate::support::{CONFIG, QUEUE, Ran, Scratch};

/// An item whose script writes `NAME.txt`.
fn item(name: &str) -> String {
    format!("- [ ] {name}\n  ```sh\n  echo {name} > {name}.txt\n  ```\n")
}

/// A repository in which `text` is committed as TODO.md.
fn with_file(text: &str) -> Scratch {
    let scratch = Scratch::repository();
    scratch.write("TODO.md", text);
    scratch.commit(&["TODO.md"], "Plan");
    scratch
}

fn drain(scratch: &Scratch, arguments: &[&str]) -> Ran {
    scratch.program("tavern-drain").args(arguments).run()
}

#[test]
fn a_checklist_is_ticked_in_place_and_its_work_is_merged() {
    let text = format!(
        "# Things\r\n\r\nProse stays.\n\n{}\n* [x] was done\n1. [ ] last\n   ```sh\n   echo l > last.txt\n   ```",
        item("one")
    );
    let scratch = with_file(&text);
    let ran = drain(&scratch, &["TODO.md", "--agents", "2", "--format", "json"]).ends(0);
    assert_eq!(
        (&ran.json()["completed"], &ran.json()["left"]),
        (&2.into(), &Value::Array(Vec::new()))
    );
    // Only the lines of the items have changed.
    let after = scratch.read("TODO.md");
    let changed: Vec<(&str, &str)> = text
        .split('\n')
        .zip(after.split('\n'))
        .filter(|(a, b)| a != b)
        .collect();
    assert_eq!(text.split('\n').count(), after.split('\n').count());
    assert!(
        matches!(changed.as_slice(), [("- [ ] one", one), ("1. [ ] last", last)]
        if one.starts_with("- [x] T-") && last.starts_with("1. [x] T-")),
        "{after}"
    );
    assert!(
        after.starts_with("# Things\r\n\r\nProse stays.\n\n") && after.ends_with("   ```"),
        "{after}"
    );
    // Nothing else is to be seen in the checkout: the board hides itself, and work is on its own branch.
    assert_eq!(
        scratch.git(&["status", "--short", "--branch"]),
        "## main\n M TODO.md"
    );
    assert_eq!(scratch.read(".tavern/.gitignore"), "*\n");
    let files = scratch.merged();
    assert_eq!(files, "README.md\nTODO.md\nlast.txt\none.txt");
    assert_eq!(
        scratch.git(&["worktree", "list"]).lines().count(),
        1,
        "worktrees are cleared away"
    );
    // Again: there is nothing to do.
    let again = drain(&scratch, &["TODO.md"]);
    assert_eq!(
        again.to_string(),
        "exit 0\n--- stdout\n0 of 0 completed, 0 left in 0 s\n--- stderr\nnothing to do: no item is open\n"
    );
}

#[test]
fn what_is_left_is_listed_with_the_reason_and_where_to_look() {
    let text = format!(
        "{}- [ ] T-1: fails (max_attempts: 1)\n  ```sh\n  echo half >half.txt; exit 3\n  ```\n\
         - [ ] T-2: is not right (max_attempts: 1)\n  ```sh\n  echo x > x.txt\n  ```\n  ```yaml task\n  done_when: [test -e y.txt]\n  ```\n\
         - [ ] T-3: waits (after: T-1)\n  ```sh\n  true\n  ```\n\
         - [ ] T-4: circles (after: T-5)\n  ```sh\n  true\n  ```\n- [ ] T-5: circles (after: T-4)\n  ```sh\n  true\n  ```\n\
         - [ ] T-6: is a reviewer's (role: reviewer)\n\
         - [ ] T-7: twins\n  ```sh\n  true\n  ```\n- [ ] T-7: twins too\n  ```sh\n  true\n  ```\n",
        item("good")
    );
    let scratch = with_file(&text);
    let ran = drain(&scratch, &["TODO.md"]).ends(5);
    let listed = ran
        .stdout
        .split_once('\n')
        .expect("the totals come first")
        .1;
    assert_eq!(
        listed,
        "TODO.md: T-1 dead — fails\n  exited with code 3\n  see .tavern/runs/T-1@2\n  its work: tavern diff T-1\n  to retry it: tavern retry T-1\n\
         TODO.md: T-2 dead — is not right\n  `test -e y.txt` exited with code 1\n  see .tavern/runs/T-2@3\n  its work: tavern diff T-2\n  to retry it: tavern retry T-2\n\
         TODO.md: T-3 pending — waits\n  it waits for T-1 (dead); tavern retry T-1\n\
         TODO.md: T-4 pending — circles\n  dependency cycle: T-4 → T-5 → T-4; remove `T-5` from the `after` of `T-4`, or break the \
         cycle elsewhere: tavern edit T-4\n\
         TODO.md: T-5 pending — circles\n  dependency cycle: T-4 → T-5 → T-4; remove `T-5` from the `after` of `T-4`, or break the \
         cycle elsewhere: tavern edit T-5\n\
         TODO.md: T-6 pending — is a reviewer's\n  agents of role `reviewer` only review; name a role that works, or none: \
         tavern edit T-6\n\
         TODO.md: T-7 pending — twins\n  `T-7` is also the ID of the item at line 33; give one of them another ID, or remove its ID \
         and it gets a fresh one: tavern edit T-7\n\
         TODO.md: T-7 pending — twins too\n  `T-7` is also the ID of the item at line 29; give one of them another ID, or remove its \
         ID and it gets a fresh one: tavern edit T-7\n\
         merged work is on branch tavern/integration: git merge tavern/integration\n"
            .replace("T-1@2", &last_run(&scratch, "T-1"))
            .replace("T-2@3", &last_run(&scratch, "T-2"))
    );
    assert_eq!(scratch.git(&["show", "tavern/T-2:x.txt"]), "x");
    let salvaged = format!(
        "refs/tavern/salvage/{}:half.txt",
        last_run(&scratch, "T-1").replace('@', "/")
    );
    assert_eq!(scratch.git(&["show", &salvaged]), "half");
    scratch
        .run("tavern-status", &["T-2"])
        .ends(0)
        .says("  its work    tavern diff T-2 (tavern/T-2)\n");
    // The folder that it points at holds what the command printed.
    let evidence = scratch
        .run("tavern-runs", &["cat", "T-2", "verify.txt"])
        .succeeds();
    assert!(
        evidence.starts_with("$ test -e y.txt\nexited with code 1 "),
        "{evidence}"
    );
}

fn last_run(scratch: &Scratch, id: &str) -> String {
    scratch.json("tavern-runs", &["list", id])["run"]
        .as_str()
        .expect("it has a name")
        .to_owned()
}

#[test]
fn the_hint_for_what_a_runner_cannot_do_names_the_files_that_it_stands_in() {
    let why = "it has no ```sh block, which the runner `shell` needs";
    let scratch = Scratch::shell(&item("good"), "");
    scratch.write("to do.md", "- [ ] Write the docs\n");
    scratch
        .run("tavern-add", &["--queue", "to do.md", "--quiet", "Another"])
        .succeeds();
    let refused = drain(&scratch, &["to do.md", "--agents", "1"]).ends(4);
    refused
        .says("error: nothing was started: no agent can take 2 items")
        .says(why)
        .says("tavern drain 'to do.md' --runner claude;");
    // What is sound is worked all the same, and each of the others is named once.
    let ran = drain(&scratch, &["--agents", "1"])
        .ends(1)
        .says("1 of 3 completed, 2 left")
        .says(why);
    let ran = ran.says("draining 1 item with 1 agent, runner shell; 2 skipped\n");
    assert_eq!(
        ran.to_string().matches("Write the docs").count(),
        1,
        "{ran}"
    );
}

#[test]
fn a_file_is_worked_once_and_in_the_repository_that_it_is_in() {
    let scratch = with_file(&item("one"));
    scratch.write("../elsewhere/README", "");
    let elsewhere = scratch.folder().join("elsewhere");
    let file = scratch.work().join("TODO.md").display().to_string();
    let ran = scratch
        .program("tavern-drain")
        .args(&[&file, &file])
        .within(&elsewhere)
        .run()
        .ends(0);
    ran.says("draining 1 item with 1 agent")
        .says("1 of 1 completed, 0 left");
    // So it is from within another repository.
    scratch.git(&["init", "--quiet", &elsewhere.display().to_string()]);
    scratch.write("TODO.md", item("two"));
    let ran = scratch
        .program("tavern-drain")
        .args(&["../work/TODO.md"])
        .within(&elsewhere)
        .run();
    ran.ends(0).says("1 of 1 completed, 0 left");
    assert!(!elsewhere.join(".tavern").exists());
}

#[test]
fn one_heading_makes_no_board() {
    // As in a guide with a checklist in each section, and front matter that YAML can't read.
    let text = format!(
        "---\ntitle: Upgrade: all of it\n---\n# Upgrade\n\n## Gems\n\n{}\n## Assets\n\n{}\n## TODO\n\n{}\n## Done\n\n{}",
        item("gems"),
        item("assets"),
        item("rest"),
        item("last")
    );
    let scratch = with_file(&text);
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says_not("warning")
        .says_not("lane");
    drain(&scratch, &["TODO.md"])
        .ends(0)
        .says("4 of 4 completed, 0 left");
    // Each where it was.
    let after = scratch.read("TODO.md");
    let mut rest = after.as_str();
    for word in [
        "## Gems\n\n- [x]",
        "gems",
        "## Assets\n\n- [x]",
        "## TODO\n\n- [x]",
        "rest",
        "## Done\n\n- [x]",
        "last",
    ] {
        rest = rest
            .split_once(word)
            .unwrap_or_else(|| panic!("no {word} in its place:\n{after}"))
            .1;
    }
}

#[test]
fn headings_that_are_like_a_lanes_name_are_nobodys_slips() {
    let names = "Undone Incomplete Uncompleted Testing Planning Won't_do Working Active Ideas Reviews Drafting";
    let others = names
        .split(' ')
        .map(|name| format!("## {}\n\n- [ ] {name}\n\n", name.replace('_', " ")));
    let others = others.collect::<String>();
    // On a board, and in a task file that is none.
    for front in ["---\nid: x\n---\n", ""] {
        let text = format!("{front}## Pending\n\n- [ ] one\n\n## Completed\n\n{others}");
        let scratch = Scratch::initialized();
        scratch.write("TODO.md", &text);
        scratch
            .run("tavern-check", &["TODO.md"])
            .ends(0)
            .says_not("did you mean");
        scratch.run("tavern-check", &["TODO.md", "--fix"]).ends(0);
        assert_eq!(scratch.read("TODO.md"), text);
    }
}

#[test]
fn items_under_a_heading_of_ones_own_are_left_alone() {
    let own = "## Ideas\n\n- [ ] T-7: Some day (afer: T-1)\n- [ ] T-8: Never (after: nope)\n";
    let text = format!("## Pending\n\n{}\n## Completed\n\n{own}", item("good"));
    let scratch = with_file(&text);
    let told = "TODO.md:10: `Ideas` is not a lane, so agents skip the 2 items under it: `Pending` in line 1 makes this a board\n";
    let ran = drain(&scratch, &["TODO.md"])
        .ends(0)
        .says(told)
        .says("1 of 1 completed, 0 left");
    ran.says("draining 1 item with 1 agent, runner shell\n");
    assert!(
        scratch.read("TODO.md").ends_with(own),
        "{}",
        scratch.read("TODO.md")
    );
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says("`Ideas` is not a lane")
        .says("warning");
    scratch
        .run("tavern-claim", &["--task", "T-7"])
        .ends(3)
        .says("its place marks it as a person's own");
    // A lane that is mistyped is none of one's own.
    let scratch = with_file(&text.replace("Ideas", "Pendign"));
    drain(&scratch, &["TODO.md"])
        .ends(5)
        .says("did you mean `Pending`?");
}

#[test]
fn what_is_told_to_be_worked_is_what_will_be_worked() {
    let script = "\n  ```sh\n  echo > $TAVERN_TASK\n  ```\n";
    let text = format!(
        "- [ ] T-1: dead (status: dead){script}- [ ] T-2: sound{script}- [ ] T-3: broken (afer: T-2){script}\
         - [ ] T-4: asked (approve: start){script}- [ ] T-5: behind (after: T-2){script}\
         - [ ] T-6: planned (role: planner){script}- [x] T-7: done\n"
    );
    let scratch = with_file(&text);
    let counts = "draining 2 items with 2 agents, runner shell; 4 skipped\n";
    let dry = drain(&scratch, &["TODO.md", "--dry-run"])
        .ends(5)
        .says(counts);
    let lines: Vec<&str> = dry
        .stdout
        .lines()
        .filter(|line| !line.starts_with("  "))
        .collect();
    assert_eq!(
        lines,
        [
            "TODO.md:5 pending sound",
            "TODO.md:17 pending behind",
            "left: TODO.md:1 dead dead",
            "left: TODO.md:13 pending asked",
            "left: TODO.md:21 pending planned"
        ]
    );
    crate::support::has(
        &dry.stdout,
        &["  it is dead; bring it back: tavern retry T-1\n"],
    );
    drain(&scratch, &["TODO.md"])
        .ends(5)
        .says(counts)
        .says("2 of 6 completed, 4 left");
}

#[test]
fn other_names_for_what_an_item_waits_for_are_mistyped_keys() {
    for key in [
        "depends_on",
        "Depends-On",
        "dependsOn",
        "blocked_by",
        "requires",
        "deps",
    ] {
        for (line, told) in [
            (
                format!("- [ ] T-1: a ({key}: T-2)\n"),
                format!("unknown key `{key}`, so this parenthesis is part of the title"),
            ),
            (
                format!("- [ ] T-1: a\n  ```yaml task\n  {key}: [T-2]\n  ```\n"),
                format!("unknown key `{key}`\n"),
            ),
        ] {
            let scratch = Scratch::shell(&format!("{line}- [ ] T-2: b\n"), "");
            scratch
                .run("tavern-check", &[])
                .ends(5)
                .says(&told)
                .says("hint: did you mean `after`?");
            scratch
                .run("tavern-claim", &["--task", "T-1"])
                .ends(3)
                .says("its text has a problem");
        }
    }
}

#[test]
fn a_reviewer_that_can_judge_nothing_is_told_of() {
    let scratch = Scratch::shell(&item("good"), "");
    scratch.change(CONFIG, "#review: [person]", "review: [reviewer]");
    let why = "it waits for a reviewer, but the runner `shell` of this role can't review";
    let todo = "name another under `roles:`, or review it yourself: tavern approve";
    let ran = scratch.run("tavern-drain", &["--agents", "1"]).ends(8);
    ran.says(&format!("in review — good\n  {why}\n  to do: {todo}")).says_not("no agent works as one").says(
        "1 item waits for a reviewer, but its runner `shell` can't judge work; use another: tavern agent --role reviewer \
         --runner claude; or judge it yourself: tavern approve ID\n",
    );
    let ran = scratch
        .run("tavern-drain", &["--agents", "coder=1,reviewer=1"])
        .ends(8);
    ran.says(&format!("in review — good\n  {why}\n  to do: {todo}"));
    let status = scratch.run("tavern-status", &[]).succeeds();
    let id = status
        .split_whitespace()
        .find(|word| word.starts_with("T-"))
        .expect("it is listed")
        .to_owned();
    assert!(
        status.contains(&format!("{id}: {why} — {todo} {id}")),
        "{status}"
    );
    scratch
        .run("tavern-status", &[&id])
        .ends(0)
        .says(&format!("{todo} {id}"));
    // A runner that could is no matter.
    scratch.write(
        CONFIG,
        scratch.read(CONFIG) + "roles: {reviewer: {runner: claude}}\n",
    );
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says_not("can't judge");
}

#[test]
fn what_has_an_error_is_told_and_left_and_all_else_is_worked() {
    let script = "\n  ```sh\n  true\n  ```\n";
    let broken = [
        (
            "T-1: a (after: nope)",
            "TODO.md:1:22: there is no item `nope` to wait for, or more than one; an ID is capitals",
        ),
        (
            "T-1: a (after: T-77)",
            "TODO.md:1:22: there is no item `T-77` to wait for",
        ),
        (
            "Eat (after: lunch)",
            "TODO.md:1:19: there is no item `lunch` to wait for, or more than one;",
        ),
        (
            "Pay (budget: 50 EUR)",
            "TODO.md:1:20: invalid value for `budget`; write {usd: 2.00, minutes: 30",
        ),
        (
            "T-1: a (runner: elephant)",
            "TODO.md:1:7: no agent can take this: runner `elephant` is not in config.yaml;",
        ),
        (
            "T-1: a (afer: T-2)",
            "TODO.md:1:15: unknown key `afer`, so this parenthesis is part of the title; did you mean `after`?",
        ),
        (
            "T-1: a (role: coder, Done-When: make)",
            "TODO.md:1:28: unknown key `Done-When`; did you mean `done_when`?",
        ),
    ];
    for (line, error) in broken {
        // What has ended holds nothing up, a key of one's own is no mistake, and an empty box is a field to be filled in.
        let above = format!("- [ ] {line}{script}- [x] T-3: c (priority: soon)\n- [ ]\n");
        let text = format!("{above}- [ ] T-2: b (code: 5)\n  ```sh\n  echo > b.txt\n  ```\n");
        let scratch = with_file(&text);
        scratch
            .run("tavern-check", &["TODO.md"])
            .ends(5)
            .says("1 error, ")
            .says("TODO.md:6:3: warning: this box is empty");
        let told = format!("skipped: 1 error\n  {error}");
        let dry = drain(&scratch, &["TODO.md", "--dry-run"])
            .ends(5)
            .says(&told);
        assert!(
            dry.stdout.starts_with("TODO.md:7 pending b (code: 5)\n"),
            "{dry}"
        );
        let ran = drain(&scratch, &["TODO.md"]).ends(5).says(&told);
        ran.says("1 of 2 completed, 1 left in").says("\nTODO.md:");
        let after = scratch.read("TODO.md");
        assert!(
            after.starts_with(&format!("{above}- [x] T-2: b (code: 5)")),
            "{after}"
        );
        // Nothing is left that could be worked.
        let refused = drain(&scratch, &["TODO.md"]).ends(5);
        refused
            .says(&format!("error: nothing was started: 1 error\n  {error}"))
            .says(": tavern check TODO.md\n");
    }
}

#[test]
fn a_role_that_nobody_has_is_title_alone_and_told_beside_other_keys() {
    let scratch = with_file(&format!(
        "{}- [ ] Ask (role: admin, priority: 1)\n",
        item("good")
    ));
    let told = "role `admin` is not in config.yaml";
    let hint = "add it under `roles:` in .tavern/config.yaml, or name another";
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says(&format!("no agent can take this: {told}\n"))
        .says(hint);
    let ran = drain(&scratch, &["TODO.md"])
        .ends(1)
        .says("1 of 2 completed, 1 left");
    ran.says(&format!(
        " pending — Ask\n  {told}; {hint}: tavern edit TODO.md\n"
    ));
    scratch.change("TODO.md", ", priority: 1", "");
    let said = "no role is called `admin`, so this parenthesis is part of the title";
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says(said)
        .says("to have agents of a role take it, name one: ");
}

#[test]
fn a_link_in_the_place_of_what_hides_a_board_is_told() {
    let scratch = with_file(&item("good"));
    drain(&scratch, &["TODO.md"]).ends(0);
    scratch.write("ignored", "*\n");
    std::fs::remove_file(scratch.work().join(".tavern/.gitignore")).expect("a drain made it");
    std::os::unix::fs::symlink("../ignored", scratch.work().join(".tavern/.gitignore"))
        .expect("the folder is ours");
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says(".tavern/.gitignore: warning: this can't be read")
        .says("it is a link");
}

#[test]
fn work_that_nobody_but_a_person_can_review_waits_for_a_person() {
    let scratch = with_file("- [ ] good (review: Alice)\n  ```sh\n  echo > good.txt\n  ```\n");
    drain(&scratch, &["TODO.md"])
        .ends(8)
        .says("  no role `Alice` reviews\n  to do: review it yourself: tavern approve T-");
}

#[test]
fn an_error_of_a_whole_file_stops_that_file() {
    let scratch = Scratch::shell(
        &format!("---\nreveiw: [person]\n---\n{}", item("T-1: a")),
        "",
    );
    scratch.write("TODO.md", item("T-2: b"));
    let ran = drain(&scratch, &["main", "TODO.md"])
        .ends(5)
        .says("skipped: 1 error\n");
    ran.says("main.md:2:1: unknown key `reveiw`")
        .says("1 of 2 completed, 1 left")
        .says("main: T-1 pending");
}

#[test]
fn an_item_may_wait_for_others_by_their_titles_and_headings() {
    let work = |needs: &str, makes: &str| {
        format!("\n  ```sh\n  cat README.md {needs} >/dev/null && echo > {makes}\n  ```\n")
    };
    let text = format!(
        "# Last\n- [ ] All of it (after: [set-up, Write the docs])\n{}# Set-up\n- [ ] editorconfig: add it{}\
         - [ ] Configure CI (after: editorconfig){}# Docs\n- [x] done: before\n- [ ] T-1: Write the docs (after: done){}",
        work("a b c", "d").trim_start_matches('\n'),
        work("", "a"),
        work("a", "b"),
        work("", "c"),
    );
    let scratch = with_file(&text);
    scratch.run("tavern-check", &["TODO.md"]).ends(0);
    drain(&scratch, &["TODO.md"])
        .ends(0)
        .says("4 of 4 completed, 0 left")
        .says_not("failed");
    // They are read, and stay as they were typed.
    crate::support::has(
        &scratch.read("TODO.md"),
        &[
            "(after: [set-up, Write the docs])\n",
            "(after: editorconfig)\n",
        ],
    );
}

#[test]
fn a_name_that_several_items_have_or_that_leads_in_a_circle_is_an_error() {
    for (text, error) in [
        (
            "- [ ] a (after: b)\n- [ ] b\n- [ ] B\n",
            "there is no item `b` to wait for, or more than one",
        ),
        (
            "- [ ] a (after: b)\n- [ ] b (after: a)\n",
            "dependency cycle: a → b → a",
        ),
        ("# Docs\n- [ ] a (after: docs)\n", "dependency cycle: a → a"),
    ] {
        let scratch = with_file(text);
        drain(&scratch, &["TODO.md"]).ends(5).says(error);
        scratch.write(QUEUE, text);
        scratch.run("tavern-claim", &[]).says_not(" a\n");
    }
}

#[test]
fn a_list_with_times_and_keys_of_its_owners_is_worked_and_keeps_them() {
    let script = "  ```sh\n  echo > $TAVERN_TASK.txt\n  ```\n";
    let keys = "created: last week, estimate: 3h, tags: old";
    let text = format!(
        "- [x] Old (completed: 2026-10-01, {keys})\n\
         - [ ] T-1: One (started: 2026-10-02 09:30, {keys})\n{script}\
         - [ ] T-2: Two (started: yesterday, {keys})\n{script}\
         - [ ] T-3: Three (not_before: 2026-10-03, {keys})\n{script}"
    );
    let scratch = with_file(&text);
    drain(&scratch, &["TODO.md"])
        .ends(0)
        .says("3 of 3 completed, 0 left");
    let after = scratch.read("TODO.md");
    assert_eq!(after.matches(keys).count(), 4, "{after}");
    assert!(
        after.starts_with(text.lines().next().expect("it has lines")),
        "{after}"
    );
}

#[test]
fn errors_that_come_up_while_a_list_is_worked_are_told_by_the_exit_code() {
    let typed = "- [ ] T-2: b (afer: T-1)";
    let text = format!(
        "- [ ] T-1: a\n  ```sh\n  echo '{typed}' >> ../../../TODO.md; echo > a.txt\n  ```\n"
    );
    let scratch = with_file(&text);
    let ran = drain(&scratch, &["TODO.md"])
        .ends(5)
        .says("1 of 2 completed, 1 left in");
    ran.says("T-2 pending — b (afer: T-1)\n  its text has a problem; see where and why: tavern check TODO.md\n");
}

#[test]
fn nobody_takes_an_item_of_a_queue_whose_front_matter_has_an_error() {
    for (front, error) in [
        (
            "reveiw: [person]",
            "unknown key `reveiw`; did you mean `review`?",
        ),
        (
            "approve: strat",
            "invalid value for the queue's `approve`; write start, merge or [start, merge]",
        ),
        ("role: a: b", "the front matter can't be read:"),
        (
            "done_when: test -e a.txt",
            "`done_when` is a key of items, and has no effect here; set it on each of the items",
        ),
    ] {
        let scratch = Scratch::shell(&format!("---\n{front}\n---\n{}", item("T-1: a")), "");
        drain(&scratch, &[]).ends(5).says(error);
        scratch.run("tavern-claim", &[]).ends(3);
        let said = "the front matter of its queue has a problem; see where and why: tavern check";
        scratch.run("tavern-status", &["T-1"]).ends(0).says(said);
    }
}

#[test]
fn a_queue_says_for_all_of_its_items_whether_they_may_change_nothing() {
    let items = "- [ ] T-1: a\n  ```sh\n  true\n  ```\n- [ ] T-2: b (result: change, max_attempts: 1)\n  ```sh\n  true\n  ```\n";
    let scratch = with_file(&format!("---\nresult: answer\n---\n{items}"));
    let ran = drain(&scratch, &["TODO.md"])
        .ends(1)
        .says("1 of 2 completed, 1 failed, 0 left");
    ran.says("TODO.md: T-2 dead — b");
}

#[test]
fn what_would_wait_for_its_own_item_is_refused_within_its_run() {
    let script = "for verb in drain agent; do timeout 10 tavern-$verb 2>>said.txt || echo $? >>said.txt; done";
    let scratch = Scratch::shell(
        &format!("- [ ] T-1: Nest\n  ```sh\n  {script}\n  ```\n"),
        "",
    );
    scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(0)
        .says("1 of 1 completed, 0 left");
    let said = scratch.git(&["show", "tavern/integration:said.txt"]);
    let refused = "error: this shell holds `T-1`, and an agent started here would wait for it\n\
                   hint: end it first; to hand out parts of it: tavern add \"…\" --parent\n4";
    assert_eq!(said, format!("{refused}\n{refused}"));
    // Nor under another name than its own.
    let script = "for verb in drain agent; do env -u TAVERN_TOKEN -u TAVERN_TASK -u TAVERN_RUN timeout 10 tavern-$verb \
                  2>>hidden.txt || echo $? >>hidden.txt; done";
    scratch.write(
        QUEUE,
        format!("- [ ] T-2: Nest\n  ```sh\n  {script}\n  ```\n"),
    );
    scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(0)
        .says("1 of 1 completed, 0 left");
    let said = scratch.git(&["show", "tavern/integration:hidden.txt"]);
    let told = said
        .matches(", and an agent started here would wait for it\nhint: end it first;")
        .count();
    assert_eq!(
        (told, said.matches("error: this is run T-2@").count()),
        (2, 2),
        "{said}"
    );
}

/// Each with what to type on a board without settings and without a queue of its own.
#[test]
fn what_is_not_on_a_board_of_one_file_is_told_with_what_is() {
    let scratch = with_file(&item("one"));
    drain(&scratch, &["TODO.md"]).ends(0);
    // The only queue is meant where none is named.
    for line in ["tavern-add two", "tavern-plan three"] {
        scratch.line(line).run().ends(0);
    }
    let list = scratch.read("TODO.md");
    assert!(list.contains("two") && list.contains("three"), "{list}");
    let crew = scratch
        .run("tavern-drain", &["TODO.md", "--agents", "coder=1,nosuch=1"])
        .ends(2);
    crew.says("there is no role `nosuch`")
        .says("hint: one of: answerer, coder, drone, planner, reviewer; ");
    scratch
        .run("tavern-plan", &["two", "--id", "P-1", "--queue", "TODO.md"])
        .ends(0);
    scratch
        .run("tavern-status", &["P-1"])
        .ends(0)
        .says("  role        planner\n");
}

/// What the agent's program says of its item counts, and its agent says so too.
#[test]
fn an_item_may_be_reported_by_the_script_that_works_it() {
    let script = |id: &str, report: &str| {
        format!("- [ ] {id}: Do\n  ```sh\n  echo {id} > {id}\n  tavern report {report}\n  ```\n")
    };
    let failed = script("T-2", "--failed no");
    let items = [
        script("T-1", "--done"),
        failed,
        script("T-3", "--waiting which?"),
    ]
    .concat();
    let scratch = Scratch::shell(&items, "max_attempts: 1\n");
    let ran = scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .ends(0);
    for told in ["T-1 done", "T-2 failed, now dead: no", "T-3 asks: which?"] {
        assert!(ran.stdout.contains(&format!("Frodo: {told}\n")), "{ran}");
    }
    assert!(!ran.stdout.contains("blocked"), "{ran}");
    scratch.stands("T-1", "completed", 1);
    let runs = scratch.records("tavern-runs", &["list"]);
    let ends: Vec<_> = runs
        .iter()
        .map(|run| [&run["outcome"], &run["reason"]].map(|text| text.as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        ends,
        [
            ["success", "its agent has reported it"],
            ["failed", "no"],
            ["waiting", "which?"]
        ]
    );
}

#[test]
fn a_file_that_is_no_work_is_told() {
    let scratch = Scratch::repository();
    scratch.write("EMPTY.md", "");
    scratch.write("PROSE.md", "# Only words\n\nAnd more of them.\n");
    scratch.write("folder/x.md", "");
    for name in ["EMPTY.md", "PROSE.md"] {
        let ran = drain(&scratch, &[name]);
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (Some(0), "nothing to do: no item is open\n"),
            "{ran}"
        );
        assert_eq!(ran.stdout, "0 of 0 completed, 0 left in 0 s\n");
    }
    assert_eq!(scratch.read("EMPTY.md"), "");
    for (name, words) in [
        (
            "NO.md",
            "no queue or file `NO.md`\nhint: write a list first: echo '- [ ] Say hello' > TODO.md",
        ),
        (
            "folder",
            "`folder` is a folder, not a file\nhint: name a file in it, such as folder/TODO.md",
        ),
    ] {
        let ran = drain(&scratch, &[name]);
        assert_eq!(
            (ran.code, ran.stderr),
            (Some(2), format!("error: {words}\n"))
        );
    }
    // What has no items does not become the board's.
    drain(&scratch, &[])
        .ends(2)
        .says("there is no queue to drain");
}

#[test]
fn a_dry_run_and_a_refusal_change_nothing() {
    for (text, flags, code) in [
        (item("good"), &["--dry-run"][..], 0),
        ("- [ ] Write the docs\n  - [ ] a step\n".to_owned(), &[], 4),
    ] {
        let scratch = with_file(&text);
        drain(&scratch, &[&["TODO.md"], flags].concat()).ends(code);
        drain(&scratch, &["MISTYPED.md"])
            .ends(2)
            .says("hint: name an existing one: TODO.md\n");
        drain(&scratch, &["TODO.md", "--junit", "none/junit.xml"]);
        assert_eq!(
            (scratch.read("TODO.md"), scratch.git(&["branch", "--list"])),
            (text, "* main".to_owned())
        );
        assert!(!scratch.work().join(".tavern").exists());
    }
}

#[test]
fn it_works_on_a_detached_head_and_from_a_folder_below() {
    let scratch = Scratch::repository();
    scratch.git(&["checkout", "--quiet", "--detach"]);
    scratch.write("docs/PLAN.md", item("good"));
    let ran = scratch
        .program("tavern-drain")
        .args(&["PLAN.md"])
        .within(&scratch.work().join("docs"))
        .run()
        .ends(0);
    assert!(
        scratch.read("docs/PLAN.md").starts_with("- [x] T-"),
        "{ran}"
    );
    assert!(!scratch.work().join("docs/.tavern").exists());
}

#[test]
fn a_checked_out_integration_branch_is_not_moved_under_anybody() {
    let scratch = with_file(&item("good"));
    scratch.git(&["checkout", "--quiet", "-b", "tavern/integration"]);
    let before = scratch.git(&["rev-parse", "HEAD"]);
    let ran = drain(&scratch, &["TODO.md"]).ends(1);
    let place = scratch.work().canonicalize().expect("it is there");
    let way_out = format!(
        "`tavern/integration` is checked out in {0}: git -C {0} switch --detach",
        place.display()
    );
    assert_eq!(ran.stderr.matches(&way_out).count(), 1, "told once: {ran}");
    assert!(
        ran.stdout
            .contains("approved — good\n  not merged; for the reason: tavern merge\n"),
        "{ran}"
    );
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(scratch.run("tavern-merge", &[]).code, Some(4));
    // What the hint says is what helps.
    scratch.git(&["switch", "--quiet", "--detach"]);
    scratch.run("tavern-merge", &[]).succeeds();
    assert!(scratch.read("TODO.md").starts_with("- [x] T-"));
}

#[test]
fn words_of_a_title_that_look_like_tavern_s_keys_stay_title() {
    let titles = [
        "Login fails (reason: token expired)",
        "Ask them (agent: bob)",
        "Ask (question: may we?)",
        "Undo it (commit: abc1234)",
        "Go on (started: in May)",
        "Settings (mode: protected, SSO)",
        "Call back (status: urgent)",
        "Order (Reason: none left)",
        "Tell them (after: the launch)",
    ];
    let scratch = Scratch::repository();
    let item =
        |title: &&str| format!("- [ ] {title}\n  ```sh\n  echo x > $TAVERN_TASK.txt\n  ```\n");
    scratch.write("TODO.md", titles.iter().map(item).collect::<String>());
    scratch.run("tavern-drain", &["TODO.md"]).succeeds();
    let list = scratch.read("TODO.md");
    for title in titles {
        // What is written behind some of them keeps them title.
        let mut lines = list
            .lines()
            .map(|line| line.trim_end_matches(" (status: null)"));
        assert!(
            lines.any(|line| line.starts_with("- [x] ") && line.ends_with(&format!(": {title}"))),
            "{list}"
        );
    }
    // In a board they are as safe: taken, given back, and added.
    let scratch = Scratch::shell(
        "## Pending\n\n- [ ] Login fails (reason: token expired)\n\n## In Progress\n",
        "",
    );
    scratch.run("tavern-claim", &[]).succeeds();
    let id = scratch
        .queue()
        .split_once("- [ ] ")
        .map(|(_, item)| item[..6].to_owned())
        .expect("it is there");
    scratch.run("tavern-release", &[&id, "--force"]).succeeds();
    let title = |id: &str| scratch.json("tavern-status", &[id])["title"].clone();
    assert_eq!(title(&id), titles[0], "{}", scratch.queue());
    scratch
        .run("tavern-add", &[titles[1], "--id", "T-9"])
        .succeeds();
    assert_eq!(title("T-9"), titles[1], "{}", scratch.queue());
}

#[test]
fn a_role_that_nobody_has_is_a_word_of_the_title_until_a_program_has_written_the_line() {
    let item =
        |title: &str| format!("- [ ] {title}\n  ```sh\n  echo x > $TAVERN_TASK.txt\n  ```\n");
    let (admin, slip) = ("Login page (role: admin)", "Slip (role: codr)");
    let scratch = with_file(&[item(admin), item(slip)].concat());
    drain(&scratch, &["TODO.md", "--dry-run"])
        .says("echo x")
        .says("TODO.md:1")
        .says(admin)
        .says_not("`admin`");
    drain(&scratch, &["TODO.md"])
        .ends(1)
        .says("1 of 2 completed")
        .says("role `codr` is not in config.yaml");
    let list = scratch.read("TODO.md");
    assert!(
        list.lines()
            .next()
            .is_some_and(|line| line.starts_with("- [x] T-")
                && line.ends_with(&format!(": {admin} (status: null)"))),
        "{list}"
    );
    assert!(list.contains(&item(slip)), "{list}");
    // What is told of it, what its agent is told, and what is left when it is given back.
    let scratch = Scratch::shell(
        &format!("## Pending\n\n{}\n## In Progress\n", item(admin)),
        "",
    );
    let told = "no role is called `admin`, so this parenthesis is part of the title";
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says(told)
        .says("name one: answerer, coder");
    scratch
        .run("tavern-status", &["--items"])
        .says(admin)
        .says("next")
        .says_not("no agent");
    scratch
        .run("tavern-claim", &["--dry-run"])
        .ends(0)
        .says(admin);
    scratch.run("tavern-claim", &[]).ends(0).says(admin);
    let id = scratch
        .queue()
        .split_once("- [ ] ")
        .map(|(_, item)| item[..6].to_owned())
        .expect("it is there");
    assert!(
        scratch.queue().contains(&format!("{id}: {admin} (")),
        "{}",
        scratch.queue()
    );
    scratch.run("tavern-release", &[&id, "--force"]).succeeds();
    assert_eq!(
        scratch.json("tavern-status", &[&id])["title"],
        admin,
        "{}",
        scratch.queue()
    );
}

#[test]
fn a_title_with_a_role_that_nobody_has_is_trusted_by_a_person_first_where_git_has_brought_it() {
    let origin = with_file(
        "- [ ] Login page (role: admin)\n  ```sh\n  echo x > x.txt\n  ```\n- [ ] Wipe it (role: root)\n",
    );
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &origin.work().display().to_string(),
        ".",
    ]);
    clone
        .run("tavern-trust", &["TODO.md"])
        .says("Login page (role: admin)")
        .says("Wipe it (role: root)");
    drain(&clone, &["TODO.md"])
        .says("untrusted changes from git")
        .says_not("1 of 2 completed");
    assert_eq!(clone.read("TODO.md"), origin.read("TODO.md"));
    clone.run("tavern-trust", &["TODO.md", "--yes"]).succeeds();
    drain(&clone, &["TODO.md"]).ends(1).says("1 of 2 completed");
}

#[test]
fn what_a_person_is_doing_is_left_to_them() {
    let script =
        |head: &str| format!("- [ ] {head}\n  ```sh\n  echo x > $TAVERN_TASK.txt\n  ```\n");
    let mine = format!("## Doing\n\n{}{}", script("Mine"), script("T-7: Mine, too"));
    let scratch = Scratch::repository();
    scratch.write(
        "TODO.md",
        format!("## Todo\n\n{}\n{mine}\n## Done\n", script("T-1: Theirs")),
    );
    let drained = scratch
        .run("tavern-drain", &["TODO.md", "--agents", "2"])
        .ends(0);
    drained
        .says("1 of 1 completed, 0 left")
        .says("2 items are in progress by hand; agents skip them");
    let list = scratch.read("TODO.md");
    assert!(
        list.contains(&mine) && list.contains("- [x] T-1: Theirs"),
        "{list}"
    );
    scratch.run("tavern-reap", &[]).succeeds();
    assert!(scratch.read("TODO.md").contains(&mine));
    let checked = scratch.run("tavern-check", &["TODO.md"]).ends(0);
    checked
        .says("no agent holds this")
        .says("move it under Pending")
        .says("tavern release T-7 --force");
    scratch
        .run("tavern-release", &["T-7", "--force"])
        .succeeds();
    scratch.run("tavern-drain", &["TODO.md"]).succeeds();
    assert!(
        scratch.read("TODO.md").contains("- [x] T-7: Mine, too"),
        "{}",
        scratch.read("TODO.md")
    );
}

#[test]
fn conflict_markers_hold_up_their_items_alone() {
    let text = format!(
        "{}<<<<<<< HEAD\n{}=======\n{}>>>>>>> other\n{}",
        item("a"),
        item("b"),
        item("c"),
        item("d")
    );
    let scratch = with_file(&text);
    drain(&scratch, &["TODO.md"]).ends(5);
    let after = scratch.read("TODO.md");
    assert!(
        after.contains(&format!(
            "<<<<<<< HEAD\n{}=======\n{}>>>>>>> other\n",
            item("b"),
            item("c")
        )),
        "{after}"
    );
    assert_eq!(after.matches("- [x] ").count(), 2, "{after}");
}

#[test]
fn a_list_whose_lines_are_no_items_is_no_success_and_says_how_they_become_some() {
    let boxes = "TODO.md:1: `[]` is not a checkbox, so this line is not an item, and 1 line like it\n\
                 hint: write `[ ]` or `[x]`, and a plain blank before and behind it\n";
    let plain = "TODO.md:3: the list has no boxes, so none of its 2 lines is an item\n\
                 hint: write `- [ ] ` before the title\n";
    let odd = "TODO.md:2: `[v]` is not a checkbox, so this line is not an item\n\
               hint: write `[ ]` or `[x]`, and a plain blank before and behind it\n";
    let quoted = "TODO.md:1: the 2 boxes stand in quotes, so none of their lines is an item\n\
                  hint: remove the `>` before the box\n";
    for (text, told) in [
        ("- [] a\n- [v] b\n", boxes),
        ("# List\n\n- a\n  - part\n* b\n", plain),
        ("- [x] a\n- [v] b\n", odd),
        ("> - [ ] a\n> - [ ] b\n", quoted),
    ] {
        let scratch = with_file(text);
        let ran = drain(&scratch, &["TODO.md"]).ends(3);
        assert_eq!(
            ran.stderr,
            format!("{told}nothing to do: no item is open\n")
        );
        drain(&scratch, &["TODO.md", "-n"]).ends(3).says(told);
        scratch
            .run("tavern-status", &["TODO.md"])
            .ends(0)
            .says(told);
        assert_eq!(scratch.read("TODO.md"), text);
    }
    for text in ["", "Prose.\n", "- [x] a\n- b\n", "> - a\n"] {
        let ran = drain(&with_file(text), &["TODO.md"]).ends(0);
        assert_eq!(ran.stderr, "nothing to do: no item is open\n", "{text}");
    }
}

#[test]
fn a_bash_block_is_run_by_bash_and_a_script_of_a_step_is_not_the_items() {
    let scratch = with_file(
        "- [ ] in bash (max_attempts: 1)\n  ```bash\n  words=(a b); [[ ${#words[@]} == 2 ]] && echo \"${words[1]}\" > bash.txt\n  ```\n\
         - [ ] with its own (max_attempts: 1)\n  - [ ] step\n    ```sh\n    echo step > step.txt\n    ```\n  - where\n\n    ```sh\n    echo own > own.txt\n    ```\n\
         - [ ] with steps alone\n  1. [ ] step\n     - how\n       ```sh\n       echo how > how.txt\n       ```\n",
    );
    let ran = drain(&scratch, &["TODO.md"]).ends(1);
    ran.says("2 of 3 completed, 1 left")
        .says("with steps alone\n  it has no ```sh block");
    assert_eq!(scratch.merged(), "README.md\nTODO.md\nbash.txt\nown.txt");
}

#[test]
fn a_task_file_is_looked_at_without_a_board_and_its_ids_are_known_once_it_is_mended() {
    let text = "- [ ] T-1: one\n- [ ] T-1: two\n";
    let scratch = with_file(text);
    // Nothing is begun, and all is as it was.
    drain(&scratch, &["TODO.md"])
        .ends(5)
        .says("nothing was started: 2 errors");
    drain(&scratch, &["TODO.md", "--dry-run"]).ends(5);
    assert_eq!(scratch.read("TODO.md"), text);
    scratch
        .run("tavern-status", &["TODO.md"])
        .ends(0)
        .says("TODO.md: 2 pending");
    assert!(
        !scratch.work().join(".tavern").exists(),
        "nothing is made by a look"
    );
    scratch
        .run("tavern-check", &["--fix", "TODO.md", "--dry-run"])
        .ends(0);
    assert!(!scratch.work().join(".tavern").exists(), "nor by a dry run");
    scratch.run("tavern-check", &["--fix", "TODO.md"]).ends(0);
    for (program, arguments) in [
        ("tavern-status", vec!["T-1"]),
        ("tavern-claim", vec!["--task", "T-1"]),
        ("tavern-release", vec!["T-1", "--force"]),
    ] {
        scratch.run(program, &arguments).ends(0);
    }
}

#[test]
fn an_agent_is_told_what_stands_above_its_item() {
    let scratch = with_file(
        "# Shop\n\nAll prices are in cents.\n\n## Cart\n\n- Page\n  It is in `cart/`.\n  - [ ] T-1: Add tests\n- Total\n  - [ ] T-2: Add tests\n",
    );
    scratch.write(
        CONFIG,
        "base: main\nrunners: {own: {command: [sh, -c, 'cat > $TAVERN_TASK.txt; echo DONE']}}\n",
    );
    scratch
        .run("tavern-claim", &["--task", "T-1", "--queue", "TODO.md"])
        .succeeds();
    let token = scratch.item("T-1")["lease"]["token"].to_string();
    let dry = [
        "T-1",
        "--token",
        &token,
        "--runner",
        "own",
        "--dry-run",
        "--prompt",
    ];
    let above = "\n# Shop\n\nAll prices are in cents.\n\n## Cart\n\n- Page\n  It is in `cart/`.\n</around-the-task>\n";
    scratch.run("tavern-spawn", &dry).ends(0).says(above);
    scratch
        .run("tavern-release", &["T-1", "--token", &token])
        .succeeds();
    drain(&scratch, &["TODO.md", "--runner", "own"]).ends(0);
    let told = scratch.git(&["show", "tavern/integration:T-2.txt"]);
    assert!(
        told.contains("\n## Cart\n\n- Total\n</around-the-task>\n"),
        "{told}"
    );
}

#[test]
fn a_script_is_told_what_stands_above_its_item() {
    let long = format!("- {}\n", "word ".repeat(300));
    let nested: String = (0..12).map(|depth| "  ".repeat(depth) + &long).collect();
    let script = |margin: &str| {
        format!(
            "{margin}  ```sh\n{margin}  printf %s \"$TAVERN_AROUND\" > $TAVERN_TASK.txt\n{margin}  ```\n"
        )
    };
    let text = format!(
        "# Shop\0$(id)\n\nAll prices are in cents.\n\n- Page\n  - [ ] T-1: Add tests\n{}{nested}{}- [ ] T-2: Add tests\n{}",
        script("  "),
        "  ".repeat(12),
        script(&"  ".repeat(12))
    );
    let scratch = with_file(&text);
    drain(&scratch, &["TODO.md"]).ends(0);
    let told = |id: &str| scratch.git(&["show", &format!("tavern/integration:{id}.txt")]);
    assert_eq!(
        told("T-1").trim_end(),
        "# Shop$(id)\n\nAll prices are in cents.\n\n- Page"
    );
    let told = told("T-2");
    assert!(
        told.len() < 8300 && told.ends_with("bytes left out …]"),
        "{} bytes: {told}",
        told.len()
    );
}

#[test]
fn items_of_one_title_are_told_apart_in_lists() {
    let list = "## Install\n\n- [ ] Run tests\n- [ ] Tidy up\n  ```sh\n  echo > tidy\n  ```\n\n## Deploy\n\n- Web\n  - [ ] Run tests\n";
    let scratch = with_file(list);
    let listed = scratch
        .run("tavern-status", &["TODO.md", "--items"])
        .ends(0)
        .says(" Install › Run tests (");
    let listed = listed
        .says(" Tidy up")
        .says_not("› Tidy up")
        .says(" Web › Run tests (");
    let rows = listed
        .stdout
        .lines()
        .filter(|line| line.starts_with("  TODO.md:"));
    let mut columns: Vec<_> = rows.map(|row| row.find("pending")).collect();
    assert_eq!(columns.len(), 3);
    columns.dedup();
    assert_eq!(columns.len(), 1, "{listed}");
    let titles: Vec<_> = scratch.records("tavern-status", &["TODO.md", "--items"]);
    assert!(
        titles.iter().any(|record| record["title"] == "Run tests"),
        "{titles:?}"
    );
    scratch.write(CONFIG, "base: main\n");
    let claim = ["--queue", "TODO.md", "--task", "TODO.md:12", "--dry-run"];
    assert_eq!(
        scratch.run("tavern-claim", &claim).succeeds(),
        "TODO.md:12 Web › Run tests\n"
    );
    assert_eq!(scratch.json("tavern-claim", &claim)["title"], "Run tests");
    let shell = ["TODO.md", "--runner", "shell", "--dry-run"];
    drain(&scratch, &shell)
        .says("TODO.md:3 pending Install › Run tests\n")
        .says("TODO.md:12 pending Web › Run tests\n");
    drain(&scratch, &shell[..3])
        .ends(1)
        .says("TODO.md:3 pending — Install › Run tests\n")
        .says("— Web › Run tests\n");
    let taken = ["--queue", "TODO.md", "--task", "TODO.md:12"];
    scratch
        .run("tavern-claim", &taken)
        .ends(0)
        .says(" Web › Run tests (token ");
    let scratch = with_file("## Install\n\n- [ ] Run tests\n\n## Deploy\n\n- [ ] Run tests\n");
    let refused = drain(&scratch, &["TODO.md", "--runner", "shell"]);
    refused
        .ends(4)
        .says("TODO.md:3: Install › Run tests: ")
        .says("TODO.md:7: Deploy › Run tests: ");
}

#[test]
fn all_that_an_agent_is_told_of_an_item_in_a_list_of_others() {
    let list = "# Shop\n\nAll prices are in cents.\n\n## Cart\n\nNot for phones.\n\n- Page\n  It is in `cart/`.\n  - [ ] Add tests (of all)\n    \
                For the totals.\n\n    - [x] up\n    - [ ] down\n\n  Beside it.\n- [x] Done before\n\n## Later\n\nNever told.\n";
    let scratch = with_file(list);
    scratch.write(
        CONFIG,
        "base: main\nrunners: {own: {command: [sh, -c, 'cat > told.txt; echo DONE']}}\n",
    );
    drain(&scratch, &["TODO.md", "--runner", "own", "--agents", "1"]).ends(0);
    let told = scratch.git(&["show", "tavern/integration:told.txt"]);
    let after = scratch.read("TODO.md");
    let id = after
        .split_whitespace()
        .find_map(|word| word.strip_suffix(':').filter(|id| id.starts_with("T-")));
    let commit = scratch.git(&["rev-parse", "--short=7", "main"]);
    let (id, folder) = (
        id.expect("it has an ID"),
        scratch.work().display().to_string(),
    );
    let own = format!(
        "You are Frodo, working as coder on the queue `TODO.md`. This task is yours:\n\n<assigned-task>\nTask: {id}: Add tests (of all)\n\
         Worktree: {folder}/.tavern/worktrees/{id}\nBranch: tavern/{id} (from commit {commit})\nAttempt: 1 of 3\n\n\
         For the totals.\n\n- [x] up\n- [ ] down\n\nFiles that are named above are the specification: read them first.\n\n\
         Its open steps. Tick each as soon as it is done: `tavern report --step N`\n    2. down\n</assigned-task>\n\n\
         <around-the-task>\nThe text above it in `TODO.md`. It is context, not a task of yours:\n\n\
         # Shop\n\nAll prices are in cents.\n\n## Cart\n\nNot for phones.\n\n- Page\n  It is in `cart/`.\n</around-the-task>\n\n\
         <done-when>\nNo command checks this task."
    );
    assert!(told.starts_with(&own), "{told}\n--- is not\n{own}");
    // What follows is the same for all items.
    crate::support::has(&told, &["<working-rules>", "<how-to-end>"]);
    assert!(
        !["Done before", "Never told", "Beside it"]
            .iter()
            .any(|other| told.contains(other)),
        "{told}"
    );
}

#[test]
fn steps_are_counted_and_those_that_stay_open_are_told_at_the_end() {
    let steps = "  - [x] one\n  - [ ] two\n    - [ ] three\n";
    let scratch = with_file(&format!(
        "{}{steps}{}  - [x] all\n",
        item("T-1: cook"),
        item("T-2: wash")
    ));
    scratch
        .run("tavern-status", &["TODO.md", "--items"])
        .ends(0)
        .says("cook")
        .says("1 of 3 steps")
        .says_not("1 of 1");
    let ran = drain(&scratch, &["TODO.md"]).ends(0);
    ran.says("TODO.md: T-1 completed, with 2 steps open: two; three\n")
        .says_not("T-2 completed, with");
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("1 of 3 steps");
    assert!(
        scratch.read("TODO.md").contains(steps),
        "{}",
        scratch.read("TODO.md")
    );
}

#[test]
fn what_a_drain_leaves_for_one_reason_is_a_group() {
    let waits = (2..60).map(|number| {
        format!(
            "- [ ] T-{number}: Wait (after: T-{})\n  ```sh\n  true\n  ```\n",
            number - 1
        )
    });
    let scratch = with_file(&format!(
        "- [ ] T-1: Ask (approve: start)\n{}",
        waits.collect::<String>()
    ));
    let ran = drain(&scratch, &["TODO.md"]);
    assert!(ran.stdout.lines().count() < 30, "{ran}");
    ran.says("… and 48 more: TODO.md: pending, ");
}

#[test]
fn an_item_without_an_id_is_called_by_none() {
    let scratch = with_file(&format!(
        "{}- [ ] Look (status: in_review)\n- [ ] Wait (role: planner)\n",
        item("good")
    ));
    for flags in [&["--dry-run"][..], &[]] {
        let ran = drain(&scratch, &[&["TODO.md"], flags].concat());
        assert!(
            ran.stdout.contains("Look") && ran.stdout.contains("Wait"),
            "{ran}"
        );
        ran.says_not("T-0");
    }
}

#[test]
fn the_second_script_of_an_item_is_told_to_whoever_runs_the_first() {
    let scratch = with_file(&format!(
        "{}  ```bash\n  exit 1\n  ```\n{}",
        item("one"),
        item("two")
    ));
    let said = "TODO.md:5:3: warning: only the first script of this is run";
    scratch.run("tavern-check", &["TODO.md"]).ends(0).says(said);
    for flags in [&["--dry-run"][..], &[]] {
        let ran = drain(&scratch, &[&["TODO.md"], flags].concat()).ends(0);
        ran.says("only the first script of an item is run; skipped: TODO.md:5\n");
    }
    // An agent reads both.
    scratch.write(
        "TODO.md",
        format!(
            "---\nrunner: claude\n---\n{}  ```bash\n  exit 1\n  ```\n",
            item("one")
        ),
    );
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says_not("script");
}

#[test]
fn what_is_to_wait_is_not_worked_because_its_key_stands_in_the_middle_of_the_title() {
    let text = "- [ ] Build\n  ```sh\n  exit 1\n  ```\n- [ ] Deploy (after: Build).\n  ```sh\n  touch deployed\n  ```\n";
    let scratch = with_file(text);
    drain(&scratch, &["TODO.md"])
        .ends(5)
        .says("TODO.md:5 pending");
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(5)
        .says("`after` is not read here\n");
    assert!(!scratch.read("TODO.md").contains("[x]"));
}

#[test]
fn what_is_to_wait_is_not_worked_wherever_its_key_stands() {
    for deploy in [
        "Deploy (after: Build,\n  Test)",
        "Deploy (priority: 1,\n  after: Build)",
        "Deploy\n  (after: Build)",
        "Deploy (est: 2h, after: Build).",
        "Deploy (@bob, after: Build)",
        "Deploy (blocked_by: Build) now",
        "Deploy (tags: a; after: Build)",
        "Deploy (after: Build; due: 2026-12-01)",
        "Deploy (after: Build and Test)",
        "Deploy (after: AUTH-7: Fix)",
        "Deploy (after: auth-7)",
    ] {
        let script = |line: &str| format!("  ```sh\n  {line}\n  ```\n");
        let (build, touch) = (script("exit 1"), script("touch deployed"));
        let text = format!(
            "- [ ] Build\n{build}- [ ] {deploy}\n{touch}- [ ] Test\n- [ ] AUTH-7: Fix\n{build}"
        );
        let scratch = with_file(&text);
        drain(&scratch, &["TODO.md"]);
        assert!(!scratch.read("TODO.md").contains("[x]"), "{deploy}");
    }
}

#[test]
fn what_waits_in_other_words_or_signs_is_not_worked() {
    let deploys = [
        "T-6: Deploy\n  (priority: 1,\n  after: Build)",
        "Deploy (after : Build)",
        "Deploy (after： Build)",
        "Deploy {after: Build}",
        "Deploy (after: [[Build]]) now",
        "Deploy (tags: x | after: Build)",
        "Deploy (dependsOn: Build)",
        "Deploy (depends on Build)",
        "Deploy (depends: Build)",
        "Deploy (Blocked by: Build)",
        "Deploy (requires: Build)",
        "Deploy (tags: x, blocked by: Build)",
        "Deploy (2h, after Build)",
        "Deploy (blocked: Build)",
        "Deploy (blocked on: Build)",
        "T-7: Deploy (waits for: Build)",
        "Deploy (waiting for Build)",
        "Deploy (tags: x, waiting for: Build)",
        "Deploy (needs: Build)",
        "Deploy (needs Build)",
        "Deploy (after=Build)",
        "Deploy <!-- after: Build -->",
        "Deploy (not before: 2126-12-01)",
        "Deploy (not-before: 2126-12-01)",
        "Deploy (done when: exit 1)",
        "T-8: Deploy\n  Some words (after: Build)",
        "Deploy\n\n  Some words.\n\n  (waits for Build)",
    ];
    let items = deploys
        .map(|deploy| format!("- [ ] {deploy}\n  ```sh\n  touch deployed\n  ```\n"))
        .concat();
    let scratch = with_file(&format!("- [ ] Build\n  ```sh\n  exit 1\n  ```\n{items}"));
    let said = "`depends on` is not read here\n";
    let hint = "write `(after: …)` at the end of the first line, with nothing behind it, or use other words";
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(5)
        .says(said)
        .says(hint);
    drain(&scratch, &["TODO.md"]).ends(5);
    assert!(
        !scratch.read("TODO.md").contains("[x]"),
        "{}",
        scratch.read("TODO.md")
    );
}

#[test]
fn what_guards_an_item_in_a_plain_yaml_block_is_told_and_an_example_is_not() {
    let item = |title: &str, keys: &str| {
        format!("- [ ] {title}\n  ```yaml\n{keys}  ```\n  ```sh\n  true\n  ```\n")
    };
    let guarded = [
        item("Deploy", "  after: Build\n  priority: 1\n"),
        item("Test", "  done_when:\n    - cargo test\n"),
        item("T-7: Ship", "  max_attempts: 1\n").replace("yaml", "yml"),
        item("Tell", "  depends_on: [Build]\n"),
    ];
    let scratch = with_file(&format!(
        "- [ ] Build\n  ```sh\n  exit 1\n  ```\n{}",
        guarded.concat()
    ));
    let ran = scratch.run("tavern-check", &["TODO.md"]).ends(5);
    ran.says("TODO.md:7:3: error: `after` is not read here\n")
        .says("write ```yaml task above it");
    drain(&scratch, &["TODO.md"]).ends(5);
    assert!(
        !scratch.read("TODO.md").contains("[x]"),
        "{}",
        scratch.read("TODO.md")
    );

    let examples = [
        item("Add a service", "  image: x\n  after: Build\n"),
        item("Add a job", "  build:\n    needs: test\n"),
        item("Add labels", "  tags: [a]\n"),
        item("List", "  - after: Build\n"),
    ];
    scratch.write(
        "TODO.md",
        format!("---\nresult: answer\n---\n{}", examples.concat()),
    );
    drain(&scratch, &["TODO.md"]).ends(0);
    assert!(!scratch.read("TODO.md").contains("[ ]"));
}

#[test]
fn prose_that_names_no_item_and_code_are_title() {
    let titles = [
        "Train (requires: pip install torch)",
        "Ask (blocked by Bob)",
        "Sail (depends on the weather)",
        "Wait (blocked: Bob is ill, needs=rest)",
        "Walk (waiting for the rain) <!-- after lunch -->",
        "Call `foo(needs: x)`",
        "Call retry(max_attempts: 3) twice",
        "Read (pages: 3)",
    ];
    let items = titles
        .map(|title| format!("- [ ] {title}\n  ```sh\n  true\n  ```\n"))
        .concat();
    let scratch = with_file(&format!("---\nresult: answer\n---\n{items}"));
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says_not("key");
    drain(&scratch, &["TODO.md"]).ends(0);
    titles
        .iter()
        .for_each(|title| assert!(scratch.read("TODO.md").contains(title), "{title}"));
}

#[test]
fn words_of_a_person_are_kept_beside_keys_of_theirs() {
    let titles = [
        "Fix (reason: unknown, priority: 1)",
        "Ask (priority: 1, agent: bob)",
        "Migrate (started: 2026-01-05T10:00:00Z)",
        "Paint it (question: which colour, priority: 1)",
        "Count (answer: 42)",
    ];
    let items = titles
        .map(|title| format!("- [ ] {title}\n  ```sh\n  true\n  ```\n"))
        .concat();
    let scratch = with_file(&format!("---\nresult: answer\n---\n{items}"));
    let said = "`reason` can't be set in a text, so this parenthesis is part of the title";
    scratch.run("tavern-check", &["TODO.md"]).ends(0).says(said);
    drain(&scratch, &["TODO.md"]).ends(0);
    titles
        .iter()
        .for_each(|title| assert!(scratch.read("TODO.md").contains(title), "{title}"));
}

#[test]
fn an_item_goes_by_its_title_without_its_last_parenthesis() {
    let script = "  ```sh\n  true\n  ```\n";
    let items = [
        "Fix (role: admin)",
        "Party (after: Fix)",
        "Freeze (agent: bob)",
        "Thaw (after: Freeze)",
    ];
    let items = items.map(|item| format!("- [ ] {item}\n{script}")).concat();
    let scratch = with_file(&format!("---\nresult: answer\n---\n{items}"));
    drain(&scratch, &["TODO.md"]).ends(0);
    assert!(!scratch.read("TODO.md").contains("[ ]"));
    // Of two such titles nobody knows which is meant; the title itself comes before both.
    let text =
        "- [ ] Freeze (x)\n- [ ] Freeze (y)\n- [ ] Thaw (x)\n- [ ] Thaw\n- [ ] Melt (after: ";
    scratch.write("TODO.md", format!("{text}Thaw)\n"));
    scratch.run("tavern-check", &["TODO.md"]).ends(0);
    scratch.write("TODO.md", format!("{text}Freeze)\n"));
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(5)
        .says("there is no item `Freeze` to wait for, or more than one");
}

#[test]
fn what_looks_like_a_bullet_is_told_and_a_list_of_such_lines_is_no_success() {
    let odd = ["-\u{a0}[ ] x\n", "-\u{3000}[ ] x\n", "1.\u{a0}[ ]\u{a0}x\n"];
    for list in ["1.[ ] x\n", "• [ ] x\n", "– [ ] x\n"].iter().chain(&odd) {
        drain(&with_file(list), &["TODO.md"])
            .ends(3)
            .says("begins no list item");
    }
    for list in [
        "- \u{a0}[ ] x\n",
        "- [\u{a0}] x\n",
        "- [\u{3000}] x\n",
        "- [ ]\u{a0}x\n",
    ] {
        drain(&with_file(list), &["TODO.md"])
            .ends(3)
            .says("is not a checkbox")
            .says("a plain blank before and behind");
    }
    for list in [
        "- [] x\n-[ ] y\n",
        "- [-] x\n-[ ] y\n-[ ] z\n",
        "- plain\n-[ ] y\n[x] z\n",
    ] {
        let checked = with_file(list).run("tavern-check", &["TODO.md"]).ends(0);
        assert_eq!(
            checked.stdout.matches("TODO.md:").count(),
            list.matches("] ").count(),
            "{checked}"
        );
    }
    for list in [
        "Text <!-- so\n[x] y\n-->\n",
        "<!-- so\n-[x] y\n-->\n",
        "Text %% so\n[x] y\n%%\n",
        "%%\n-[x] y\n%%\n",
    ] {
        drain(&with_file(list), &["TODO.md"])
            .ends(0)
            .says_not("no list item");
    }
    let scratch = with_file("- [ ] Buy bread\n-[ ] Buy milk\n");
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says("TODO.md:2:1: warning: `-[ ]` begins no list item");
}

#[test]
fn what_a_person_typed_as_a_reason_is_not_why_an_item_was_left() {
    let scratch = with_file(&format!(
        "{}- [ ] T-2: Ask (reason: I like it, priority: 1)\n",
        item("good")
    ));
    drain(&scratch, &["TODO.md"])
        .ends(1)
        .says("T-2 pending — Ask (reason: I like it, priority: 1)\n  it has no ```sh block");
}

#[test]
fn a_script_is_told_what_stands_above_also_where_an_old_copy_was_saved_over_its_claim() {
    let text = "# Shop\n\n- [ ] Add\n  ```sh\n  printf %s \"$TAVERN_AROUND\" > around.txt\n  ```\n";
    let scratch = with_file(text);
    scratch.write(CONFIG, "base: main\n");
    let claimed = scratch.json("tavern-claim", &["--queue", "TODO.md"]);
    let (id, token) = (
        claimed["id"].as_str().expect("it has one"),
        claimed["lease"]["token"].to_string(),
    );
    scratch.write("TODO.md", text);
    scratch
        .run(
            "tavern-spawn",
            &[id, "--token", &token, "--runner", "shell"],
        )
        .ends(0);
    assert_eq!(
        scratch
            .read(format!(".tavern/worktrees/{id}/around.txt"))
            .trim_end(),
        "# Shop"
    );
}

#[test]
fn boxes_that_are_open_again_are_named_and_never_silently_old() {
    let list = "# Nightly\n\n- [ ] Write the report\n  ```sh\n  date +%N >report.txt\n  ```\n\
                - [ ] Update the index\n  ```sh\n  date +%N >index.txt\n  ```\n";
    for save in ["cp list.md TODO.md", "git checkout -q -- TODO.md"] {
        let scratch = with_file(list);
        scratch.write("list.md", list);
        scratch.commit(&["list.md", "TODO.md"], "Plan");
        drain(&scratch, &["TODO.md"]).ends(0);
        scratch
            .command("sh".as_ref())
            .args(&["-c", save])
            .run()
            .succeeds();
        drain(&scratch, &["TODO.md", "--dry-run"])
            .ends(3)
            .says("2 open items ended before, and stay ended: ");
        let second = drain(&scratch, &["TODO.md"]).ends(3);
        let id = second
            .stderr
            .split_once("tavern reopen ")
            .unwrap_or_else(|| panic!("{second}"))
            .1
            .lines()
            .next()
            .expect("an ID")
            .to_owned();
        let second = second
            .says("TODO.md: 2 open items ended before, and stay ended: ")
            .says(" Write the report, ");
        assert!(second.stderr.contains(" Update the index; "), "{second}");
        scratch.run("tavern-release", &["--reopen", &id]).succeeds();
        drain(&scratch, &["TODO.md"])
            .ends(0)
            .says("1 of 1 completed")
            .says_not("ended before");
    }
}

#[test]
fn a_new_item_with_the_title_of_one_that_ended_is_worked() {
    let item = "- [ ] Write the report\n  ```sh\n  date +%N >report.txt\n  ```\n";
    let scratch = with_file(item);
    drain(&scratch, &["TODO.md"]).ends(0);
    let text = scratch.read("TODO.md");
    scratch.write("TODO.md", text + item);
    drain(&scratch, &["TODO.md"])
        .ends(0)
        .says("1 of 1 completed")
        .says_not("ended before");
}

#[test]
fn a_new_item_under_the_id_or_the_title_of_one_that_ended_is_named_also_beside_others() {
    let script = |name: &str| format!("  ```sh\n  echo {name} >{name}.txt\n  ```\n");
    for (old, new) in [
        ("T-1: Build", "T-1: Deploy"),
        ("T-1: Build", "T-1: Build"),
        ("Build", "Build"),
    ] {
        let scratch = with_file(&format!("- [ ] {old}\n{}", script("old")));
        drain(&scratch, &["TODO.md"]).ends(0);
        let other = format!("- [ ] Other\n{}", script("other"));
        scratch.write("TODO.md", format!("- [ ] {new}\n{}{other}", script("new")));
        let ran = drain(&scratch, &["TODO.md"]).ends(3);
        let ran = ran.says("1 open item ended before, and stay ended: T-");
        ran.says("tavern reopen T-").says("1 of 1 completed");
    }
}

#[test]
fn a_list_made_anew_names_what_brings_back_an_item_that_failed() {
    let list =
        |script: &str| format!("- [ ] T-1: Fail (max_attempts: 1)\n  ```sh\n  {script}\n  ```\n");
    let scratch = with_file(&list("false"));
    drain(&scratch, &["TODO.md"]).ends(1);
    scratch.write("TODO.md", list("echo 1 >one.txt"));
    drain(&scratch, &["TODO.md"])
        .ends(1)
        .says("T-1 dead — Fail\n")
        .says("to retry it: tavern retry T-1\n");
    scratch
        .run("tavern-release", &["--revive", "T-1"])
        .succeeds();
    drain(&scratch, &["TODO.md"]).ends(0);
}

#[test]
fn a_list_that_is_emptied_makes_no_board() {
    let scratch = with_file(&item("one"));
    drain(&scratch, &["TODO.md"]).ends(0);
    scratch.write("TODO.md", "");
    drain(&scratch, &["TODO.md"]).ends(0).says_not("queues");
    assert!(!scratch.work().join(".tavern/queues").exists());
    assert!(!scratch.work().join(CONFIG).exists());
}

#[test]
fn what_waits_behind_an_item_that_a_person_has_to_allow_waits_for_a_person() {
    let scratch = with_file(
        "- [ ] T-1: One (approve: start)\n  ```sh\n  echo 1 >one.txt\n  ```\n- [ ] T-2: Two (after: T-1)\n  ```sh\n  echo 2 >two.txt\n  ```\n",
    );
    drain(&scratch, &["TODO.md"]).ends(8);
}

#[test]
fn a_key_with_a_typo_is_told_before_anything_is_worked() {
    let list =
        "- [ ] One (prioritty: 1)\n  ```sh\n  echo 1 >one\n  ```\n- [x] Old (prioritty: 1)\n";
    let scratch = with_file(list);
    let ran = drain(&scratch, &["TODO.md"]).ends(0);
    let (told, _) = ran.stderr.split_once("draining").expect("it begins");
    assert!(
        told.contains("TODO.md:1: unknown key `prioritty`")
            && told.contains("did you mean `priority`?"),
        "{ran}"
    );
    assert!(!ran.stderr.contains("more: tavern check"), "{ran}");
}

#[test]
fn a_finished_line_that_is_replaced_by_new_words_is_new_work() {
    let script = "  ```sh\n  date >>log.txt\n  ```\n";
    let list =
        format!("- [ ] Sweep the floor\n{script}- [ ] Add unit tests for the parser\n{script}");
    let scratch = with_file(&list);
    drain(&scratch, &["TODO.md", "--agents", "1"]).ends(0);
    let now = scratch.read("TODO.md");
    let line = now
        .lines()
        .find(|line| line.contains("parser"))
        .expect("it is there");
    scratch.write(
        "TODO.md",
        now.replace(line, "- [ ] Add unit tests for the lexer"),
    );
    drain(&scratch, &["TODO.md"])
        .ends(0)
        .says("1 of 1 completed");
    assert!(
        scratch
            .read("TODO.md")
            .contains(": Add unit tests for the lexer\n")
    );
}
