//! Bad input gets a clear error with what to type next, and nothing is lost.

use serde_json::Value;

use crate::support::{CONFIG, QUEUE, Ran, Scratch, has};

/// It ended with `code`, printed nothing, and said just this, where `~` stands for the work folder.
#[track_caller]
fn says(scratch: &Scratch, ran: &Ran, code: i32, words: &str) {
    let place = scratch.folder().join("work");
    let words = words.replace('~', &place.to_string_lossy());
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(code), "", words.as_str()),
        "{ran}"
    );
}

#[test]
fn a_place_that_is_no_board() {
    let nowhere = Scratch::empty();
    let plain = Scratch::repository();
    let bare = Scratch::empty();
    bare.git(&["init", "--quiet", "--bare", "."]);
    let no_repository = "error: `~` is not in a git repository\nhint: create one with `git init` and a first commit, or cd into one\n";
    let no_board = "error: no board in `~`\nhint: create one with `tavern init`, or work a plain file with `tavern drain TODO.md`\n";
    let is_bare = "error: `~` is a bare repository: a board needs a main work tree\nhint: clone it, and run Tavern in the clone\n";
    let (spawn, report) = (
        "tavern-spawn T-1 --token 1",
        "tavern-report T-1 --token 1 --done",
    );
    let (renew, release, agent) = (
        "tavern-renew T-1 --token 1",
        "tavern-release T-1",
        "tavern-agent --until-empty",
    );
    let others = [
        "tavern-add x",
        "tavern-status",
        "tavern-log",
        "tavern-runs",
        "tavern-claim",
        "tavern-merge",
        "tavern-reap",
    ];
    for line in [spawn, report, renew, release, agent]
        .into_iter()
        .chain(others)
    {
        for (scratch, words) in [
            (&nowhere, no_repository),
            (&plain, no_board),
            (&bare, is_bare),
        ] {
            says(scratch, &scratch.line(line).run(), 1, words);
        }
        let named = nowhere.line(line).args(&["--dir", "missing"]).run();
        assert_eq!(
            (named.code, named.stderr),
            (Some(1), no_board.replace('~', "missing")),
            "{line}"
        );
    }
    says(&nowhere, &nowhere.run("tavern-init", &[]), 1, no_repository);
    says(&bare, &bare.run("tavern-init", &[]), 1, is_bare);
    says(
        &nowhere,
        &nowhere.run("tavern-drain", &["TODO.md"]),
        1,
        no_repository,
    );
    assert!(
        !plain.work().join(".tavern").exists(),
        "nobody has made one by the way"
    );
}

#[test]
fn a_board_is_one_and_the_same_from_every_linked_worktree() {
    let has_it = |scratch: &Scratch, folder: &str, more: &[&str]| {
        let ran = scratch
            .program("tavern-status")
            .within(&scratch.work().join(folder))
            .args(&[&["T-1", "--format", "json"], more].concat())
            .run();
        assert_eq!(ran.ends(0).json()["title"], "One", "{folder} {more:?}");
    };
    let plain = Scratch::pending("- [ ] T-0: Zero\n");
    plain.commit(&["--all"], "Board");
    plain.run("tavern-add", &["--id", "T-1", "One"]).succeeds();
    plain.git(&["worktree", "add", "--quiet", "../linked"]);
    let copy = plain.folder().join("linked/.tavern").display().to_string();
    for dir in [&copy, copy.trim_end_matches("/.tavern")] {
        has_it(&plain, ".", &["--dir", dir]);
    }

    let check = || {
        plain
            .program("tavern-check")
            .within(&plain.folder().join("linked"))
            .run()
            .ends(0)
    };
    check().says_not("copy");
    plain.write(
        "../linked/.tavern/queues/main.md",
        "## Pending\n- [ ] T-5: Five\n",
    );
    let there = plain.work().join(QUEUE);
    check()
        .says("this copy was edited")
        .says(&format!("put the lines into {}", there.display()));

    let apart = Scratch::empty();
    apart.git(&[
        "init",
        "--quiet",
        "--initial-branch=main",
        "--separate-git-dir=../apart",
    ]);
    apart.git(&["commit", "--quiet", "--allow-empty", "--message=Begin"]);
    apart
        .run("tavern-init", &["--quiet", "--runner", "shell"])
        .succeeds();
    apart.run("tavern-add", &["--id", "T-1", "One"]).succeeds();
    apart.git(&["worktree", "add", "--quiet", "../linked"]);
    let git_dir = apart.folder().join("apart").display().to_string();
    let told = apart
        .program("tavern-status")
        .within(&apart.work().join("../linked"))
        .run()
        .ends(1);
    let hint = format!(
        "git --git-dir={git_dir} config core.worktree FOLDER; or pass the board: --dir FOLDER"
    );
    told.says(&format!(
        "`{git_dir}` does not say where its main work tree is"
    ))
    .says(&hint);
    has_it(
        &apart,
        "../linked",
        &["--dir", &apart.work().display().to_string()],
    );
    apart.git(&[
        "config",
        "core.worktree",
        &apart.work().display().to_string(),
    ]);
    has_it(&apart, "../linked", &[]);
    apart.run("tavern-check", &[]).ends(0);

    let outer = Scratch::repository();
    let inner = plain.work().display().to_string();
    outer.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &inner,
        "inner",
    ]);
    outer
        .program("tavern-add")
        .within(&outer.work().join("inner"))
        .args(&["--id", "T-1", "One"])
        .run()
        .ends(0);
    outer.git(&["-C", "inner", "worktree", "add", "--quiet", "../../linked"]);
    has_it(&outer, "../linked", &[]);
}

#[test]
fn a_repository_without_commits() {
    let scratch = Scratch::empty();
    scratch.git(&["init", "--quiet", "--initial-branch=main"]);
    scratch
        .run("tavern-init", &["--quiet", "--runner", "shell", "--demo"])
        .succeeds();
    let words = "error: the repository has no commits yet\nhint: make a first one: git add -A && git commit -m 'first'\n";
    says(&scratch, &scratch.run("tavern-drain", &[]), 1, words);
    let check = scratch.run("tavern-check", &[]).ends(5);
    check.says("error: the repository has no commits yet\n  = hint: make a first one");
    assert!(
        scratch
            .run("tavern-status", &[])
            .succeeds()
            .starts_with("main: 3 pending")
    );
}

#[test]
fn words_on_the_command_line() {
    let scratch = Scratch::initialized();
    let id =
        "an ID is capitals, a hyphen and letters with at least one digit, such as T-k3f9 or AUTH-7";
    let title = "error: an item needs a title\nhint: tavern add \"…\"\n";
    let runners = "aider, claude, codex, copilot, gemini, goose, opencode, qwen, shell";
    let rows: [(&str, i32, &str); 40] = [
        (
            "tavern help juggle",
            2,
            "error: no verb `juggle`\nhint: list them all with `tavern`",
        ),
        (
            "tavern ../check",
            2,
            "error: no verb `../check`\nhint: list them all with `tavern`",
        ),
        ("tavern-check --frmat json", 2, "--format"),
        ("tavern-add x --id 'a b'", 2, id),
        ("tavern-add x --id=-rf", 2, id),
        ("tavern-add x --after T-1.lock", 2, id),
        ("tavern-claim --task x/../y", 2, id),
        ("tavern-add '  '", 2, title),
        ("tavern-add T-5:", 2, title),
        (
            "tavern-add 'x \u{1b}[31m'",
            2,
            "a title can't hold the control character '\\u{1b}'",
        ),
        (
            "tavern-add 'T-1: x' --id T-2",
            2,
            "two IDs for one item: --id T-2, and `T-1:` in the title",
        ),
        (
            "tavern-add x --queue nope",
            2,
            "error: no queue or file `nope`\nhint: name an existing one: --queue main",
        ),
        (
            "tavern-add x --queue mian",
            2,
            "hint: name an existing one: --queue main",
        ),
        (
            "tavern-add x --queue ../x --create",
            2,
            "error: `../x` can't be the name of a queue\nhint: use letters",
        ),
        ("tavern-add x --create", 2, "--queue <QUEUE>"),
        (
            "tavern-add x --budget 2",
            2,
            "'2' for '--budget <WHAT=N,…>': name it and its amount: `usd=2`",
        ),
        ("tavern-add x --budget usd=a", 2, "`a` is not a number"),
        (
            "tavern-add x --budget euro=2",
            2,
            "unknown field `euro`, expected one of `usd`, `minutes`",
        ),
        (
            "tavern-add x --budget usd=-1",
            2,
            "error: invalid value for `budget`",
        ),
        (
            "tavern-drain nope",
            2,
            "error: no queue or file `nope`\nhint: name an existing one: main\n",
        ),
        (
            "tavern-drain --junit -",
            2,
            "'-' for '--junit <FILE>': name a file, such as junit.xml\n",
        ),
        (
            "tavern-drain --max-time 0",
            2,
            "it must be greater than 0, such as 45m\n",
        ),
        (
            "tavern-edit T-nope",
            2,
            "error: no queue, file or item `T-nope`\nhint: list the items: tavern",
        ),
        (
            "tavern-add x --queue 'a b' --create",
            2,
            "hint: use letters, digits, `-` and `_`, such as `next-week`\n",
        ),
        (
            "tavern-add x --queue in/x.md --create",
            2,
            "hint: write the file first: touch in/x.md\n",
        ),
        (
            "tavern-add x --due tomorrow",
            2,
            "or 2026-11-22 10:00 where you are\n",
        ),
        (
            "tavern-runs grep naught",
            3,
            "no run has the text `naught`; list them all: tavern runs\n",
        ),
        ("tavern-trust mian", 2, "hint: name an existing one: main\n"),
        (
            "tavern-agent --runner codex",
            1,
            "error: `codex-acp` is not on PATH\nhint: install it (npm install -g @zed-industries/codex-acp @openai/codex), or choose another",
        ),
        (
            "tavern-agent --agent ../x",
            2,
            "'../x' for '--agent <NAME>': use letters, digits",
        ),
        (
            "tavern-add x -p hi",
            2,
            "error: invalid value 'hi' for '--priority <0-9>': a priority is a number",
        ),
        (
            "tavern-plan x -p 10",
            2,
            "error: invalid value '10' for '--priority <0-9>': a priority is a number from 0",
        ),
        ("tavern-init --runner x", 2, runners),
        (
            "tavern-status T-404",
            2,
            "error: no item `T-404` in any queue",
        ),
        ("tavern-log T-404", 2, "error: no item `T-404` in any queue"),
        (
            "tavern-undo T-404",
            2,
            "error: no item `T-404` in any queue",
        ),
        (
            "tavern-status nope",
            2,
            "error: `nope` is neither an item nor a queue\nhint: name an item such as T-k3f9",
        ),
        (
            "tavern-check NO.md",
            2,
            "error: no queue or file `NO.md`\nhint: ",
        ),
        (
            "tavern-runs show nope",
            2,
            "error: no run `nope`\nhint: list them: tavern runs list",
        ),
        (
            "tavern-renew T-1",
            2,
            "hint: take an item first: claim=$(tavern claim --format env) && eval ",
        ),
    ];
    let before = scratch.queue();
    for (line, code, words) in rows {
        // What is not there on this machine is not there at all.
        let ran = scratch.line(line).variable("PATH", "/usr/bin:/bin").run();
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(code), ""),
            "{line}: {ran}"
        );
        assert!(ran.stderr.contains(words), "{line}: {ran}");
    }
    assert_eq!(scratch.queue(), before);
}

#[test]
fn a_mistake_of_the_command_line_is_no_wider_than_the_terminal() {
    let scratch = Scratch::initialized();
    for line in [
        "tavern-status --status foo",
        "tavern log yesterday",
        "tavern-add x -p urgent",
        "tavern-drain --max-time x",
    ] {
        let said = |columns: &str| {
            scratch
                .line(line)
                .variable("COLUMNS", columns)
                .run()
                .ends(2)
                .stderr
        };
        let (narrow, whole) = (said("80"), said(""));
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 80),
            "{narrow}"
        );
        assert!(
            whole
                .lines()
                .next()
                .is_some_and(|line| line.starts_with("error: invalid value '")),
            "{whole}"
        );
        assert_eq!(
            narrow.split_whitespace().collect::<Vec<_>>(),
            whole.split_whitespace().collect::<Vec<_>>()
        );
    }
}

#[test]
fn titles_of_all_kinds_are_read_again_as_they_were_typed() {
    let scratch = Scratch::initialized();
    let long = "x".repeat(300);
    for (typed, kept) in [
        (long.as_str(), long.as_str()),
        ("🍺🍺", "🍺🍺"),
        ("Fix [ ] box: thing", "Fix [ ] box: thing"),
        ("Support (a, b)", "Support (a, b)"),
        ("Support (this: too)", "Support (this: too)"),
        ("ends with (", "ends with ("),
        ("two\nlines", "two lines"),
        (
            "`code` *stars* _under_ # hash",
            "`code` *stars* _under_ # hash",
        ),
        ("- [ ] boxed", "boxed"),
        ("AUTH-7: named", "named"),
    ] {
        let id = scratch
            .program("tavern-add")
            .args(&["--", typed])
            .run()
            .succeeds();
        let item = scratch.json("tavern-status", &[id.trim()]);
        assert_eq!(item["title"], kept, "{typed}");
    }
    scratch.run("tavern-check", &[]).ends(0);
}

#[test]
fn items_on_standard_input() {
    let scratch = Scratch::initialized();
    let item = "- [ ] T-7: Whole (priority: 1)\n  More.\n\n  ```sh\n  echo hi\n    two\n  ```\n  ```yaml task\n  done_when: [true]\n  ```\n";
    assert_eq!(
        scratch.program("tavern-add").input(item).run().succeeds(),
        "T-7\n"
    );
    assert!(scratch.queue().contains(item));
    let rows: [(&[u8], &str); 4] = [
        (b"", "error: an item needs a title\n"),
        (
            b"caf\xe9\n",
            "error: can't read the item from standard input: ",
        ),
        (b"- [ ] a\n- [ ] b\n", "error: one item at a time\n"),
        (
            b"nul \0\n",
            "error: a title can't hold the control character '\\0'\n",
        ),
    ];
    let before = scratch.queue();
    for (input, words) in rows {
        let ran = scratch.program("tavern-add").input(input).run().ends(2);
        assert!(
            ran.stderr.starts_with(words) && ran.stderr.contains("\nhint: "),
            "{ran}"
        );
    }
    assert_eq!(scratch.queue(), before);
}

#[test]
fn everything_wrong_with_a_board_is_told_with_its_place() {
    let scratch = Scratch::initialized();
    scratch.write(
        QUEUE,
        "## Pending\n- [ ] T-1: One (max_attempts: few)\n- [ ] T-2: Two (after: T-3)\n- [ ] T-3: Three (after: T-2)\n\
         - [ ] T-4: Four (role: codr)\n- [ ] T-5: Five (runner: shel)\n- [ ] T-6: Six\n- [ ] T-8: Eight (after: T-99)\n",
    );
    scratch.write(
        ".tavern/queues/other.md",
        "---\nid: other\n---\n- [ ] T-6: Six again\n  ```sh\n  true\n  ```\n",
    );
    scratch.write(".tavern/queues/latin.md", b"- [ ] caf\xe9\n");
    scratch.write(".tavern/queues/folder.md/x", "");
    scratch.write(".tavern/templates/coder.md", "Do\n{{ this }}\n");
    scratch.write(".git/tavern/leases/T-1.yaml", "nonsense: 1\n");
    scratch.write(".tavern/PAUSE", "lunch\n");
    scratch.write(
        CONFIG,
        "roles: {coder: {runner: own}}\nrunners: {own: {command: [no-such-program]}}\n",
    );
    let ran = scratch.run("tavern-check", &[]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(5), "10 errors, 3 warnings\n"),
        "{ran}"
    );
    let heads: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with('.'))
        .collect();
    assert_eq!(
        heads,
        [
            ".tavern/queues/latin.md:1:10: error: this byte is not UTF-8: the whole file is skipped",
            ".tavern/queues/folder.md: error: this is a folder, not a file",
            ".tavern/queues/main.md:2:31: error: invalid value for `max_attempts`",
            ".tavern/queues/main.md:3:24: error: dependency cycle: T-2 → T-3 → T-2",
            ".tavern/queues/main.md:5:7: warning: no agent can take this: role `codr` is not in config.yaml",
            ".tavern/queues/main.md:6:7: error: no agent can take this: runner `shel` is not in config.yaml",
            ".tavern/queues/main.md:8:26: error: there is no item `T-99` to wait for",
            ".tavern/queues/other.md:4:7: error: `T-6` is also the ID of the item at .tavern/queues/main.md, line 7",
            ".tavern/templates/coder.md:2:4: error: undefined value: `this` is undefined",
            ".git/tavern/leases/T-1.yaml: error: not a lease: missing field `task`",
            ".tavern/PAUSE: warning: while this file is here, nothing new starts: lunch",
            ".tavern/config.yaml: error: roles `answerer`, `coder`, `drone`, `planner`, `reviewer` can't work with runner `own`: `no-such-program` is not on PATH",
            ".git/tavern/leases/T-1.yaml: warning: left by a process that died; to do: remove the lease of T-1, which can't be read",
        ]
    );
    assert_eq!(
        ran.stdout.matches(" = hint: ").count(),
        heads.len(),
        "each has a hint"
    );
    ran.says(
        "\n2 | - [ ] T-1: One (max_attempts: few)\n  |                               ^^^\n  = hint: write a whole ",
    );
    // One file, and what others say of it.
    let one = scratch.run("tavern-check", &["other"]);
    assert_eq!(
        (one.code, one.stdout.lines().count()),
        (Some(5), 4),
        "{one}"
    );
    let broken = scratch.write(CONFIG, "leese: 2m\n");
    // The queues are looked at all the same.
    let ran = scratch
        .run("tavern-check", &[])
        .says("main.md:3:24: error: dependency cycle");
    assert!(
        ran.stdout
            .starts_with(".tavern/config.yaml:1:1: error: unknown key `leese`\n1 | leese: 2m\n"),
        "{ran}"
    );
    std::fs::remove_file(broken).expect("it is ours");
}

#[test]
fn a_board_with_warnings_alone_is_fit_for_work() {
    let scratch = Scratch::initialized();
    scratch.run("tavern-add", &["No script"]).succeeds();
    let ran = scratch.run("tavern-check", &[]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), "1 warning\n"),
        "{ran}"
    );
    // What is left is told as `tavern-reap` would.
    let own = std::process::id().to_string();
    scratch.run("tavern-claim", &["--pid", &own]).succeeds();
    scratch
        .run("tavern-check", &[])
        .says("no problems in queue main and .tavern\n");
    scratch.write(".tavern/worktrees/T-404/x", "");
    let planned = scratch.run("tavern-reap", &["--dry-run"]).succeeds();
    assert!(
        planned.starts_with("remove the worktree of T-404 "),
        "{planned}"
    );
    let told = format!("warning: to do: {}", planned.trim_end());
    scratch.run("tavern-check", &[]).says(&told);
}

#[test]
fn what_has_a_problem_is_not_claimed_and_all_else_is() {
    let script = "\n  ```sh\n  true\n  ```\n";
    let item = |text: &str| format!("- [ ] {text}{script}");
    let rows = [
        // The queue, and which item is taken.
        (
            item("T-1: twin") + &item("T-1: twin") + &item("T-2: fine"),
            "T-2",
        ),
        (
            item("T-1: circle (after: T-3)")
                + &item("T-3: circle (after: T-1)")
                + &item("T-2: fine"),
            "T-2",
        ),
        (item("T-1: itself (after: T-1)") + &item("T-2: fine"), "T-2"),
        (
            item("T-1: unknown (after: T-9)") + &item("T-2: fine"),
            "T-2",
        ),
        (item("T-1: wrong (budget: 5)") + &item("T-2: fine"), "T-2"),
        (
            item("T-7: also in the other queue") + &item("T-2: fine"),
            "T-7",
        ),
        (
            format!(
                "<<<<<<< a\n{}=======\n{}>>>>>>> b\n",
                item("T-1: mine"),
                item("T-1: theirs")
            ) + &item("T-2: fine"),
            "T-2",
        ),
        (
            "\u{feff}- [ ] nul \0 and more\n".to_owned() + &item("T-2: fine (priority: 0)"),
            "T-2",
        ),
        (
            format!("- [ ] {} (priority: 9)\n", "long ".repeat(1_000_000)) + &item("T-2: fine"),
            "T-2",
        ),
    ];
    for (text, taken) in rows {
        let scratch = Scratch::initialized();
        scratch.write(QUEUE, &text);
        scratch.write(
            ".tavern/queues/other.md",
            "---\nid: other\n---\n".to_owned() + &item("T-7: also in the main queue"),
        );
        scratch.write(".tavern/queues/zlatin.md", b"- [ ] caf\xe9\n");
        let held = scratch.json("tavern-claim", &[]);
        assert_eq!(
            held["id"],
            taken,
            "{}",
            text.chars().take(200).collect::<String>()
        );
        // All other bytes are as they were.
        let after = scratch.queue();
        let first = text.lines().next().unwrap_or_default();
        assert!(
            after.starts_with(first),
            "{}",
            after.chars().take(200).collect::<String>()
        );
        assert!(after.lines().count() == text.lines().count());
    }
}

#[test]
fn a_queue_that_can_not_be_read_stops_who_wants_it_alone() {
    let scratch = Scratch::initialized();
    scratch.write(QUEUE, b"- [ ] caf\xe9\n");
    let words = "error: `~/.tavern/queues/main.md` is not UTF-8 (line 1)\n\
                 hint: save the file as UTF-8; to see the place: tavern check ~/.tavern/queues/main.md\n";
    says(
        &scratch,
        &scratch.run("tavern-claim", &["--queue", "main"]),
        5,
        words,
    );
    says(&scratch, &scratch.run("tavern-add", &["x"]), 5, words);
    scratch.write(
        ".tavern/queues/other.md",
        "---\nid: other\n---\n- [ ] T-1: fine\n",
    );
    assert_eq!(
        scratch.run("tavern-claim", &[]).succeeds(),
        "T-1 fine (token 1)\n"
    );
    // Where the others have nothing, it is told: nobody waits for what he does not see.
    says(&scratch, &scratch.run("tavern-claim", &[]), 5, words);
    scratch
        .run("tavern-agent", &["--once"])
        .says("is not UTF-8");
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says("other: 1 in progress")
        .says("is not UTF-8");
}

#[test]
fn a_drain_of_a_board_works_the_queues_beside_one_that_is_no_text() {
    let scratch = Scratch::shell("- [ ] T-1: One\n  ```sh\n  echo > one\n  ```\n", "");
    scratch.write(".tavern/queues/latin.md", b"- [ ] caf\xe9\n");
    for (flags, words) in [
        (&["--dry-run"][..], "main:1 pending One"),
        (&[], "1 of 1 completed"),
    ] {
        let told = scratch.run("tavern-drain", flags).ends(5).says(words);
        told.says("skipped: `")
            .says("latin.md` is not UTF-8 (line 1); save the file as UTF-8");
    }
    // Who names it means it.
    scratch
        .run("tavern-drain", &["latin"])
        .ends(5)
        .says("error: `")
        .says("is not UTF-8")
        .says_not("completed");
}

#[test]
fn a_broken_configuration_is_shown_with_its_place() {
    let scratch = Scratch::initialized();
    scratch.write(CONFIG, "lease: soon\n");
    for program in [
        "tavern-agent",
        "tavern-drain",
        "tavern-claim",
        "tavern-reap",
        "tavern-merge",
    ] {
        let ran = scratch.run(program, &[]).ends(5);
        let place = scratch.folder().join("work/.tavern/config.yaml");
        assert!(
            ran.stderr
                .starts_with(&format!("error: {}:1:", place.display())),
            "{program}: {ran}"
        );
        assert!(
            ran.stderr.contains("\n1 | lease: soon\n  | "),
            "{program}: {ran}"
        );
    }
    // What needs no setting works.
    scratch.run("tavern-status", &[]).succeeds();
    scratch.run("tavern-log", &[]).succeeds();
    scratch.run("tavern-add", &["x"]).succeeds();
}

#[test]
fn pause_and_stop_say_how_to_go_on() {
    let scratch = Scratch::initialized();
    scratch
        .run("tavern-add", &["x", "-m", "```sh\ntrue\n```"])
        .succeeds();
    scratch.write(".tavern/PAUSE", "lunch\n");
    let paused = "error: the board is paused: lunch\nhint: to go on: tavern resume\n";
    says(&scratch, &scratch.run("tavern-claim", &[]), 3, paused);
    says(
        &scratch,
        &scratch.run("tavern-claim", &["--wait=10ms"]),
        3,
        paused,
    );
    says(&scratch, &scratch.run("tavern-drain", &[]), 4, paused);
    assert!(
        scratch
            .run("tavern-status", &[])
            .succeeds()
            .starts_with("the board is paused: lunch\n")
    );
    scratch.write(".tavern/STOP", "");
    let stopped = "error: the board is stopped\nhint: to go on: tavern resume\n";
    says(
        &scratch,
        &scratch.run("tavern-claim", &["--wait"]),
        4,
        stopped,
    );
    says(&scratch, &scratch.run("tavern-drain", &[]), 4, stopped);
    let agent = scratch.run("tavern-agent", &["--name", "Sam"]);
    assert!(
        agent
            .ends(0)
            .stderr
            .ends_with("Sam ends: .tavern/STOP exists\n")
    );
}

#[test]
fn what_has_ended_can_not_be_taken_or_revived() {
    let scratch = Scratch::initialized();
    scratch.write(QUEUE, "- [x] T-2: two\n");
    let taken =
        "error: `T-2` can't be taken: it is completed\nhint: to redo it: tavern reopen T-2\n";
    says(
        &scratch,
        &scratch.run("tavern-claim", &["--task", "T-2"]),
        3,
        taken,
    );
    let revived = scratch.run("tavern-release", &["T-2", "--revive"]).ends(4);
    revived
        .says("error: `T-2` is completed, so it can't be revived")
        .says("\nhint: ");
}

#[test]
fn what_people_read_is_never_an_endless_line() {
    let scratch = Scratch::initialized();
    let (endless, long) = ("x".repeat(100_000), "y".repeat(300));
    let script = "  ```sh\n  echo 1 >one\n  ```\n";
    let failing = "  ```sh\n  false\n  ```\n";
    let queue =
        format!("- [ ] T-1: {endless} (max_attempts: 1)\n{failing}- [ ] T-2: {long}\n{script}");
    scratch.write(QUEUE, &queue);
    // Another queue's items have nothing to run.
    scratch.write("PLAIN.md", format!("- [ ] {endless}\n"));
    for line in [
        "tavern-claim --task T-1 --agent Rosie",
        "tavern-release T-1 --force",
        "tavern-status --items",
        "tavern-status T-1",
        "tavern-drain --dry-run",
        "tavern-drain PLAIN.md",
        "tavern-drain --agents 1",
        "tavern-status --items",
        "tavern-runs list",
        "tavern-runs show T-1",
        "tavern-log --diff",
        "tavern-check",
    ] {
        let ran = scratch.line(line).run();
        let longest = ran
            .stdout
            .lines()
            .chain(ran.stderr.lines())
            .map(|line| line.chars().count())
            .max();
        assert!(longest < Some(400), "{line}: {longest:?}");
        assert!(matches!(ran.code, Some(0 | 1 | 4)), "{line}: {ran}");
    }
    scratch
        .run("tavern-status", &["--items"])
        .ends(0)
        .says(&format!(" {}…\n", "y".repeat(120)));
    let whole = scratch
        .run("tavern-status", &["--items", "--format", "json"])
        .succeeds();
    assert!(
        whole.contains(&endless) && whole.contains(&long),
        "JSON has them whole"
    );
}

#[test]
fn a_task_file_that_is_hardly_one() {
    let scratch = Scratch::repository();
    let work = |name: &str| format!("\n  ```sh\n  echo 1 >{name}.txt\n  ```\n");
    let drain = |file: &str| {
        scratch.run(
            "tavern-drain",
            &[file, "--agents", "1", "--runner", "shell"],
        )
    };
    // A NUL goes no further than the file; in a command nothing could be started with it.
    let nul = format!("- [ ] nul \0 here{}- [ ] b{}", work("nul"), work("b"));
    scratch.write(
        "NUL.md",
        nul.clone() + "- [ ] c (done_when: \"a\\0\")" + &work("c"),
    );
    let ran = drain("NUL.md").ends(5);
    assert!(
        ran.stdout.starts_with("2 of 3 completed, 1 left") && ran.stdout.contains("has a problem"),
        "{ran}"
    );
    let kept = scratch.read("NUL.md").replace("[x]", "[ ]");
    assert!(kept.contains(": nul \0 here\n  ```sh\n"), "{kept:?}");
    scratch.write("real/todo.md", format!("- [ ] linked{}", work("linked")));
    std::os::unix::fs::symlink("real/todo.md", scratch.work().join("LINK.md"))
        .expect("the folder is ours");
    assert_eq!(drain("LINK.md").code, Some(0));
    assert!(
        scratch.work().join("LINK.md").is_symlink(),
        "a link stays one"
    );
    assert!(
        scratch.read("real/todo.md").starts_with("- [x] T-"),
        "and is written through"
    );
}

#[test]
fn a_role_that_is_not_there_is_a_mistake_wherever_it_is_typed() {
    let scratch = Scratch::board("- [ ] T-1: Do it\n");
    for line in [
        "tavern-claim --role rogue",
        "tavern-agent --role rogue",
        "tavern-drain --role rogue",
    ] {
        scratch
            .line(line)
            .run()
            .ends(2)
            .says("there is no role `rogue`")
            .says("others are added under `roles:`");
    }
    scratch.run("tavern-claim", &["T-1"]).ends(0);
}

#[test]
fn a_task_file_that_is_not_read_says_what_is_odd_about_it() {
    let scratch = Scratch::repository();
    scratch.write("wide.md", b"\xff\xfe-\0 \0[\0 \0]\0 \0a\0\n\0");
    scratch
        .run("tavern-drain", &["wide.md"])
        .ends(5)
        .says("wide.md` is UTF-16, not UTF-8 (line 1)\nhint: save the file as UTF-8");
    scratch
        .run("tavern-check", &["wide.md"])
        .ends(5)
        .says("this text is UTF-16, not UTF-8")
        .says("iconv -f UTF-16 -t UTF-8 wide.md");
    scratch.write("-x.md", "- [ ] a\n");
    let words = "the name of `./-x.md` begins with `-`, as a flag does: Tavern ignores it\nhint: give it another name";
    scratch
        .run("tavern-drain", &["./-x.md"])
        .ends(2)
        .says(words);
}

#[test]
fn a_link_that_a_clone_has_brought_is_kept_where_a_file_of_the_board_would_be() {
    let scratch = Scratch::repository();
    std::fs::create_dir(scratch.work().join(".tavern")).expect("it is not there");
    std::os::unix::fs::symlink(
        "/nowhere/at/all",
        scratch.work().join(".tavern/config.yaml"),
    )
    .expect("it is not there");
    scratch
        .run("tavern-init", &["--runner", "shell"])
        .succeeds();
    assert!(scratch.work().join(".tavern/config.yaml").is_symlink());
    scratch.run("tavern-check", &[]).ends(5).says("config.yaml");
}

#[test]
fn a_text_may_begin_as_a_list_does() {
    let scratch = Scratch::board("");
    scratch
        .run("tavern-add", &["x", "--description", "- first\n- second"])
        .succeeds();
    assert!(
        scratch.queue().contains("x\n\n  - first\n  - second\n"),
        "{}",
        scratch.queue()
    );
}

#[test]
fn an_item_that_names_itself_in_the_middle_of_its_title_is_told_as_a_mistake() {
    let list = "- [ ] T-1: a (after: T-1) b\n- [ ] T-2: b (after: T-3) c\n- [ ] T-3: c (after: T-2) d\n- [ ] T-4: d\n";
    let scratch = Scratch::board(list);
    scratch.run("tavern-status", &["T-1"]).succeeds();
    scratch.run("tavern-claim", &["--task", "T-2"]).ends(3);
    scratch.run("tavern-claim", &[]).ends(0).says("T-4");
}

#[test]
fn words_behind_an_id_that_look_like_tavern_s_keys_stay_title() {
    for words in [
        "reason: token expired",
        "returns: 404",
        "attempt: 2",
        "agent: bob, commit: abc1234",
        "author: Jane, rounds: 3",
        "Reason: token expired",
        "return: 404",
        "started: 2026-01-05T10:00:00Z",
        "completed: 3 of 5",
        "attempt: second try",
        "mode: protected",
    ] {
        let title = format!("AUTH-7: Login fails ({words})");
        let list = format!("## Pending\n\n- [ ] {title}\n- [ ] T-2: two\n");
        let scratch = Scratch::board(&list);
        scratch.run("tavern-check", &[]).ends(0);
        let claimed = scratch.json("tavern-claim", &["--task", "AUTH-7"]);
        assert_eq!(
            format!("AUTH-7: {}", claimed["title"].as_str().unwrap_or("")),
            title
        );
        assert_eq!(scratch.queue(), list);
        scratch.stands("AUTH-7", "in_progress", 1);
        // Taken, taken back and taken again it is what was typed.
        scratch
            .run("tavern-release", &["AUTH-7", "--force"])
            .succeeds();
        scratch.run("tavern-undo", &[]).succeeds();
        assert_eq!(scratch.queue(), list);
        scratch.claim("AUTH-7", &[]);
        scratch
            .run("tavern-release", &["AUTH-7", "--force"])
            .succeeds();
        assert_eq!(scratch.queue(), list);
        assert_eq!(scratch.stands("AUTH-7", "pending", 0)["returns"], 1);
    }
}

#[test]
fn a_parenthesis_of_which_nothing_can_be_read_is_title_with_an_id_and_without() {
    for (words, hint) in [
        ("status: urgent", "write draft, pending, in_progress, "),
        (
            "lane: fast",
            "write draft or pending; here it is part of the title",
        ),
        (
            "after: the launch",
            "to wait for an item, write its ID or its title",
        ),
        ("due: friday", "write a time such as 2026-11-22T10:00:00Z"),
        ("Due: friday", "did you mean `due`?"),
        ("role: two words", "write one word"),
        ("parent: my mum", "an ID is capitals"),
        ("priority: urgent", "write 0 (most urgent) to 9"),
        ("Priority: High", "did you mean `priority`?"),
        ("Status: open, Priority: High", "did you mean `status`?"),
    ] {
        for id in ["AUTH-7: ", ""] {
            let title = format!("Login fails ({words})");
            let list = format!("## Pending\n\n- [ ] {id}{title}\n");
            let scratch = Scratch::board(&list);
            scratch
                .run("tavern-check", &[])
                .ends(0)
                .says("warning: ")
                .says("part of the title")
                .says(hint);
            let claimed = scratch.json("tavern-claim", &[]);
            assert_eq!(claimed["title"], title);
            let name = claimed["id"].as_str().expect("it has one").to_owned();
            has(&scratch.queue(), &[&format!("- [ ] {name}: {title}")]);
            scratch
                .run("tavern-release", &[&name, "--force"])
                .succeeds();
            scratch.run("tavern-undo", &[]).succeeds();
            assert_eq!(scratch.queue(), list);
            let claimed = scratch.json("tavern-claim", &[]);
            let name = claimed["id"].as_str().expect("it has one");
            for then in [
                ["--force"].as_slice(),
                &["--cancel"],
                &["--reopen", "-m", "again"],
            ] {
                scratch
                    .run("tavern-release", &[&[name], then].concat())
                    .succeeds();
                assert_eq!(
                    scratch.json("tavern-status", &[name])["title"],
                    title,
                    "{}",
                    scratch.queue()
                );
            }
        }
    }
}

#[test]
fn what_an_item_is_not_to_be_worked_without_stops_it_with_an_id_and_without() {
    for words in [
        "budget: 50 EUR",
        "not_before: noon",
        "approve: me",
        "max_attempts: two",
        "after: lunch",
        "after: the secnd",
        "status: darft",
        "status: Draft",
        "status: on hold",
        "lane: drafft",
        "Status: Draft",
        "After: T-2",
        "Priority: High, Done-When: make",
        "after: T-2, priority: urgnt",
        "priority: 1, status: urgent",
    ] {
        for id in ["T-1: ", ""] {
            let scratch = Scratch::board(&format!(
                "## Pending\n\n- [ ] {id}one ({words})\n- [x] T-2: the second\n"
            ));
            scratch.run("tavern-check", &[]).ends(5).says("error: ");
            scratch.run("tavern-claim", &[]).ends(3);
        }
    }
}

#[test]
fn what_an_item_waits_for_or_needs_is_told_where_it_is_not_read() {
    let stops = [
        " (waiting on Build)",
        " (depends upon: Build)",
        " (blocked until Build)",
        " (after [[Build]])",
        " (after **Build**)",
        " (after `Build`)",
        "\n  <!-- after: Build -->",
        "\n\n  (done_when: false)",
        "\n\n  Words (priority: 1, budget: {usd: 1}).",
        "\n  - [ ] step\n    of it\n\n  (approve: merge)",
        "\n  - [ ] step\n  - words (after: Build)",
        "\n  ```task\n  done_when: make\n  ```",
        "\n  ```Yaml\n  after: Build\n  ```",
        "\n  ```YAML task\n  done_when: make\n  ```",
        "\n  ```yml\n  done_when: make\n  ```",
    ];
    let words = [
        " fn run(after: Build)",
        " run(after Build) it",
        " {\"after\": \"Build\"} x",
        " $f (after: Build)$ x",
        "\n\n  > quoted\n  (after: Build)",
        "\n\n  - > quoted (after: Build)",
        "\n  - [ ] step\n\n    (after: Build)",
        "\n\n  (done_when: make, see: there)",
        "\n\n  (budget: 50 EUR)",
        "\n  ```task\n  done_when: make\n  steps: 3\n  ```",
    ];
    for id in ["T-1: ", ""] {
        for (below, code) in stops
            .map(|it| (it, 5))
            .into_iter()
            .chain(words.map(|it| (it, 0)))
        {
            let scratch = Scratch::board(&format!(
                "## Pending\n\n- [ ] {id}Ship{below}\n- [x] Build\n"
            ));
            let told = scratch.run("tavern-check", &[]);
            assert_eq!(
                (told.code, told.stdout.contains("is not read here")),
                (Some(code), code == 5),
                "{below}: {told}"
            );
            scratch
                .run("tavern-claim", &[])
                .ends(if code == 5 { 3 } else { 0 });
        }
    }
    // What was begun can be ended whatever stands there by then.
    let scratch = Scratch::board(
        "## Pending\n\n- [ ] T-1: Tell them (after: the launch)\n  ```sh\n  true\n  ```\n",
    );
    scratch.claim("T-1", &[]);
    scratch.run("tavern-add", &["The launch"]).succeeds();
    scratch.run("tavern-check", &[]).ends(0);
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    scratch.run("tavern-check", &[]).ends(0);
    scratch
        .run("tavern-claim", &["--task", "T-1"])
        .ends(3)
        .says("it waits for ");
    // What it says already is words below.
    let scratch =
        Scratch::board("## Pending\n\n- [ ] Ship (done_when: make)\n\n  See (done_when: make).\n");
    scratch.run("tavern-check", &[]).ends(0);
}

#[test]
fn what_is_cancelled_does_not_look_done_whatever_its_title_ends_with() {
    for (title, below, shown) in [
        (
            "ends with \\",
            "",
            "- [x] T-1: ends with \\ (status: cancelled)\n",
        ),
        ("odd `", "", "- [x] T-1: ~~odd `~~ (status: cancelled)\n"),
        (
            "odd `",
            "  and `x`\n",
            "- [x] T-1: odd ` (status: cancelled)\n  and `x`\n",
        ),
    ] {
        let list = format!("- [ ] T-1: {title}\n{below}- [ ] T-2: two\n");
        let scratch = Scratch::board(&list);
        scratch
            .run(
                "tavern-release",
                &["T-1", "--cancel", "-m", "for a long while no longer"],
            )
            .succeeds();
        has(&scratch.queue(), &[shown]);
        scratch.run("tavern-undo", &[]).succeeds();
        assert_eq!(scratch.queue(), list);
    }
}

#[test]
fn words_that_are_typed_behind_an_id_later_are_title_as_well() {
    let scratch = Scratch::board("## Pending\n\n- [ ] AUTH-7: Login fails\n- [ ] AUTH-8: Other\n");
    scratch.claim("AUTH-8", &[]);
    scratch.change(QUEUE, "fails", "fails (reason: token expired)");
    scratch.claim("AUTH-7", &[]);
    has(
        &scratch.queue(),
        &["AUTH-7: Login fails (reason: token expired)\n"],
    );
    assert_eq!(
        scratch.item("AUTH-7")["title"],
        "Login fails (reason: token expired)"
    );
    // Also behind what has a reason already.
    scratch.begin("## Pending\n\n- [ ] AUTH-9: Nine\n");
    scratch
        .run("tavern-release", &["AUTH-9", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["AUTH-9", "--reopen", "-m", "again"])
        .succeeds();
    has(&scratch.queue(), &["AUTH-9: Nine\n"]);
    scratch.change(QUEUE, "Nine", "Nine (reason: again and again)");
    assert_eq!(
        scratch.json("tavern-claim", &["--task", "AUTH-9", "--dry-run"])["title"],
        "Nine (reason: again and again)"
    );
}

#[test]
fn keys_of_an_items_state_that_are_typed_behind_an_id_are_told() {
    let list = "## Pending\n\n- [ ] AUTH-7: Login fails (priority: 1, reason: token expired)\n- [ ] T-2: two\n";
    let scratch = Scratch::board(list);
    let told = "`reason` can't be set in a text, so this parenthesis is part of the title";
    scratch
        .run("tavern-check", &[])
        .says(told)
        .says("put the other keys into parentheses of their own");
    scratch.change(
        QUEUE,
        "(priority: 1, reason: token expired)",
        "(reason: token expired) (priority: 1)",
    );
    scratch.run("tavern-check", &[]).says_not(told);
    let item = scratch.item("AUTH-7");
    assert_eq!(
        (&item["title"], &item["priority"], &item["reason"]),
        (
            &"Login fails (reason: token expired)".into(),
            &1.into(),
            &Value::Null
        )
    );
    // What Tavern keeps itself is no news.
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-2", "--reopen", "-m", "again"])
        .succeeds();
    assert_eq!(scratch.item("T-2")["reason"], "again");
    scratch.run("tavern-check", &[]).says_not("`reason`");
    for (typed, told) in [
        ("author: Anna", "`author` can't be set in a text"),
        ("approvals: Anna", "`approvals` can't be set in a text"),
        ("mode: plan", "`mode` can't be set in a text"),
        ("returns: 404", "unknown key `returns`"),
        ("rounds: 3", "unknown key `rounds`"),
    ] {
        scratch.begin(&format!(
            "## Pending\n\n- [ ] AUTH-7: Login fails ({typed}, priority: 1)\n"
        ));
        scratch.run("tavern-check", &[]).ends(0).says(told);
        let item = scratch.item("AUTH-7");
        assert_eq!(
            (&item["returns"], &item["rounds"], &item["approvals"]),
            (&0.into(), &0.into(), &Value::Array(Vec::new()))
        );
    }
    // Nor is how often Tavern says that it was tried.
    scratch.begin("## Pending\n\n- [ ] AUTH-7: Login fails (priority: 1)\n");
    let token = scratch.claim("AUTH-7", &[]);
    scratch
        .run(
            "tavern-report",
            &["AUTH-7", "--token", &token, "--failed", "no time"],
        )
        .ends(1);
    scratch.stands("AUTH-7", "pending", 1);
    scratch
        .run("tavern-check", &[])
        .says_not("`attempt`")
        .says_not("`reason`");
    for id in ["", "AUTH-7: "] {
        let block = "  ```yaml task\n  reason: token expired\n  ```";
        scratch.begin(&format!(
            "## Pending\n\n- [ ] {id}Login fails\n{block}\n- [ ] T-2: two\n"
        ));
        scratch
            .run("tavern-check", &[])
            .says("unknown key `reason`")
            .says("Tavern stores it outside of the text: here it has no effect");
    }
}

#[test]
fn a_status_beside_keys_that_stand_below_stops_its_item() {
    let scratch =
        Scratch::board("## Pending\n\n- [ ] T-1: Deploy (status: draft)\n  (tags: ops)\n");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("`status` is not read here");
    scratch.run("tavern-claim", &[]).ends(3);
    scratch.change(
        QUEUE,
        " (status: draft)\n  (tags: ops)",
        "\n  (status: draft, tags: ops)",
    );
    has(
        &scratch.run("tavern-status", &[]).ends(0).stdout,
        &["1 draft"],
    );
}

#[test]
fn who_waits_by_the_signs_of_obsidian_is_left_while_that_is_open() {
    let list = "- [ ] Build 🆔 abc-1 📅 2026-12-01\n- [ ] Ship 📅 2026-12-02 ⛔ xyz, abc-1\n- [ ] Tell them ⛔ abc\n- [x] Plan 🆔 p\n- [ ] Draw ⛔ p\n";
    let scratch = Scratch::board(list);
    let told = ".tavern/queues/main.md:2:25: error: `⛔` is not read here";
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says(told)
        .says("`(after: …)`");
    let taken = || scratch.run("tavern-claim", &["--agent", "Sam"]);
    for title in ["Build", "Tell them", "Draw"] {
        taken().ends(0).says(title);
    }
    taken().ends(3);
    scratch.change(QUEUE, " ⛔ xyz, abc-1", " (after: Build)");
    scratch.run("tavern-check", &[]).says_not("⛔");
}

#[test]
fn keys_of_an_items_state_below_a_typed_id_are_its_words() {
    let below = "- [ ] T-2: b\n  (reason: legal wants it)\n  ```sh\n  echo 2 > b\n  ```\n";
    let scratch = Scratch::repository();
    scratch.write(
        "TODO.md",
        format!("- [ ] T-1: a\n  ```sh\n  echo 1 > a\n  ```\n{below}- [ ] T-3: c\n  ```sh\n  echo 3 > c\n  ```\n"),
    );
    scratch
        .run("tavern-check", &["TODO.md"])
        .ends(0)
        .says("no problems");
    scratch
        .run("tavern-drain", &["TODO.md"])
        .ends(0)
        .says("3 of 3 completed");
    has(
        &scratch.read("TODO.md"),
        &["\n  (reason: legal wants it)\n"],
    );
}

#[test]
fn a_card_that_a_person_has_begun_is_left_alone_whatever_keys_it_has() {
    let scratch = Scratch::repository();
    let card =
        "- [ ] JIRA-12: mine (agent: bob, started: 2026-11-01)\n  ```sh\n  echo 1 > a\n  ```\n";
    let other = "- [ ] JIRA-13: free\n  ```sh\n  echo 2 > b\n  ```\n";
    scratch.write(
        "TODO.md",
        format!("## Todo\n\n{other}\n## In Progress\n\n{card}\n## Done\n"),
    );
    scratch.run("tavern-drain", &["TODO.md"]);
    let left = std::fs::read_to_string(scratch.work().join("TODO.md")).expect("it is there");
    assert!(
        left.contains(card) && left.contains("- [x] JIRA-13: free"),
        "{left}"
    );
}

#[test]
fn what_is_added_begins_as_it_says_or_not_at_all() {
    let scratch = Scratch::pending("");
    scratch
        .run("tavern-add", &["Wipe it (status: draft)"])
        .ends(0);
    assert_eq!(
        scratch.records("tavern-status", &["--items"])[2]["status"],
        "draft"
    );
    scratch
        .run("tavern-add", &["Wipe it (status: completed)"])
        .ends(2)
        .says("a new item is pending or draft, not completed");
    for ticked in ["- [x] Done", "- [-] Dropped"] {
        let add = scratch
            .program("tavern-add")
            .input(format!("{ticked}\n"))
            .run();
        add.ends(2).says("write an empty box");
    }
}

#[test]
fn a_heading_or_a_key_that_everybody_has_makes_no_board_and_stops_nothing() {
    let item = "- [ ] Look at it\n  ```sh\n  echo 1 > a\n  ```\n";
    for head in [
        "# Review\n\n",
        "---\npriority: P1\n---\n",
        "---\nname: [a, b]\n---\n",
    ] {
        let scratch = Scratch::repository();
        scratch.write("TODO.md", format!("{head}{item}"));
        scratch
            .run("tavern-drain", &["TODO.md"])
            .ends(0)
            .says("1 of 1 completed");
    }
    // Two are a board, and a key that only queues have is meant.
    let scratch = Scratch::repository();
    scratch.write("TODO.md", format!("## Review\n\n{item}\n## Pending\n"));
    scratch
        .run("tavern-drain", &["TODO.md"])
        .ends(1)
        .says("waits for");
    scratch.write("TODO.md", format!("---\nmax_attempts: many\n---\n{item}"));
    scratch
        .run("tavern-drain", &["TODO.md"])
        .ends(5)
        .says("invalid value for the queue's `max_attempts`");
}
