//! Words that a terminal would obey.

use crate::support::{AT_ONCE, CONFIG, QUEUE, Scratch};

/// Hides and moves what is shown, sets the window's title, types an answer, turns the direction of text.
const WORDS: &str = "\u{1b}[8m\u{1b}[2J\u{1b}]0;mine\u{7}\u{1b}[6n\u{9b}31m\u{202e}gpj.exe\u{2066}\u{8}\r\u{7f}\u{200b}\u{2060}\u{feff}\u{e0041}end";

/// All that a terminal is told by Tavern itself.
const OWN: [&str; 6] = [
    "\n",
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[36m",
];

#[test]
fn words_of_others_are_shown_and_not_obeyed() {
    let scratch = Scratch::shell("- [ ] T-6: asks\n", AT_ONCE);
    let token = scratch.claim("T-6", &[]);
    let asked = ["T-6", "--token", &token, "--waiting", WORDS];
    scratch.run("tavern-report", &asked).ends(8);
    let script = format!(
        "printf '%s\\n' '{WORDS}'; printf '%s\\n' '{WORDS}' >&2; echo '{WORDS}' > file; exit 3"
    );
    scratch.write(
        QUEUE,
        format!(
            "---\nname: \"{WORDS}\"\n{WORDS}: 1\n---\n\n{WORDS}\n\n## Pending {WORDS}\n\n\
             - [ ] T-1: {WORDS} (role: coder, {WORDS}: 1)\n  ```sh\n  {script}\n  ```\n\
             - [ ] T-2: x (after: \"{WORDS}\", status: {WORDS})\n- [{WORDS}] T-3: y\n\
             \n## Pending\n\n- [ ] T-4: fails {WORDS} (max_attempts: 1)\n\n  ```sh\n  {script}\n  ```\n\
             - [ ] T-5: {WORDS} (done_when: \"{WORDS}\")\n  {WORDS}\n\
             - [ ] T-6: asks {WORDS}\n"
        ),
    );
    scratch.write(
        format!(".tavern/queues/{}.md", WORDS.replace('/', "")),
        format!("- [ ] T-7: {WORDS}\n"),
    );
    scratch.write(
        format!(".tavern/templates/{WORDS}.md.j2"),
        format!("{{{{ {WORDS} }}}}"),
    );
    scratch.run("tavern-agent", &["--until-empty", "--name", "one"]);
    scratch.run("tavern-add", &[WORDS]);
    let lines = [
        "status",
        "status T-4",
        "status T-6",
        "check",
        "log",
        "log --diff",
        "runs",
        "runs T-4",
        "claim --dry-run",
        "agent --dry-run --once",
        "drain --dry-run",
        "reap --dry-run",
        "undo --dry-run",
        "check --fix --dry-run",
    ];
    let shown = |line: &str| {
        for format in ["text", "json"] {
            let line = format!("tavern {line} --color always --format {format}");
            let ran = scratch.line(&line).run();
            for (stream, printed) in [("output", &ran.stdout), ("errors", &ran.stderr)] {
                let left = OWN
                    .iter()
                    .fold(printed.clone(), |text, own| text.replace(own, ""));
                let obeyed = left.find(|c: char| {
                    c.is_control() && c != '\t'
                        || ('\u{200b}'..='\u{202e}').contains(&c)
                            && !"‐‑‒–—―‖‗‘’‚‛“”„‟†‡•‣․‥…‧".contains(c)
                        || ('\u{2060}'..='\u{206f}').contains(&c)
                        || ('\u{e0000}'..='\u{e007f}').contains(&c)
                        || c == '\u{feff}'
                });
                assert_eq!(obeyed.map(|at| &left[at..]), None, "{line}: {stream}");
            }
        }
    };
    lines.iter().for_each(|line| shown(line));
    scratch.write(".tavern/STOP", WORDS);
    shown("claim");
    shown("agent --once");
    scratch.write(CONFIG, format!("{WORDS}: \"{WORDS}\"\n"));
    shown("check");
    shown("status");
    shown("no-such-verb");
}

#[test]
fn what_is_to_be_trusted_is_shown_whole() {
    let origin = Scratch::repository();
    let gap = " ".repeat(5_000);
    let script = format!(
        "echo 1 > 1.txt;{gap}touch ~/late\n{}  touch ~/later",
        "\n".repeat(300)
    );
    origin.write(
        "TODO.md",
        format!("- [ ] O\u{200b}ne\u{e0041}\u{e0042}\n  ```sh\n  {script}\n  ```\n"),
    );
    origin.commit(&["--all"], "A list");
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &origin.work().display().to_string(),
        ".",
    ]);
    let shown = clone
        .run("tavern-trust", &["TODO.md"])
        .ends(4)
        .says("O·ne··");
    let shown = shown
        .says("1.txt; [… 5000 blanks …] touch ~/late")
        .says("[… 297 more empty lines …]")
        .says("touch ~/later");
    assert!(shown.stdout.lines().count() < 20, "{shown}");
}

#[test]
fn what_is_to_be_pasted_is_quoted() {
    let scratch = Scratch::initialized();
    std::fs::write(
        scratch.work().join(".tavern/queues/a; touch b $(c).md"),
        b"- [ ] \xff\n",
    )
    .expect("the folder is ours");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("'.tavern/queues/a; touch b $(c).md'");
}

/// A branch may be called so, and a queue.
#[test]
fn names_of_branches_and_queues_are_quoted_where_they_are_to_be_pasted() {
    let name = "x;touch${IFS}y";
    let scratch = Scratch::shell(
        "",
        &format!("{AT_ONCE}base: main\nintegration: {{branch: '{name}'}}\n"),
    );
    let write = |id: &str| format!("```sh\necho 1 > {id}.txt\n```");
    scratch
        .run(
            "tavern-add",
            &["One", "--id", "T-1", "--description", &write("T-1")],
        )
        .succeeds();
    scratch
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("T-1 merged as");
    let shown = scratch.run("tavern-undo", &["T-1"]).to_string();
    scratch
        .run(
            "tavern-add",
            &[
                "Two",
                "--id",
                "T-2",
                "--after",
                "T-1",
                "--description",
                &write("T-2"),
            ],
        )
        .succeeds();
    // It is moved, then lost.
    scratch.git(&["update-ref", &format!("refs/heads/{name}"), "HEAD"]);
    let shown = shown
        + &scratch.run("tavern-merge", &[]).to_string()
        + &scratch.run("tavern-status", &["T-2"]).to_string();
    scratch.git(&["update-ref", "-d", &format!("refs/heads/{name}")]);
    let shown = shown + &scratch.run("tavern-check", &[]).to_string();
    let shown = shown
        + &scratch
            .run("tavern-merge", &["--accept", "main"])
            .to_string();
    scratch.write(format!(".tavern/queues/{name}.md"), "");
    let shown = shown + &scratch.run("tavern-status", &[]).to_string();
    let commands = shown.lines().filter(|line| {
        ["git ", "tavern "]
            .iter()
            .any(|command| line.contains(command))
    });
    let pasted: Vec<&str> = commands.filter(|line| line.contains(name)).collect();
    assert!(pasted.len() >= 4, "{pasted:?}\n{shown}");
    for line in pasted {
        // Between backquotes, and before a colon, it is only named.
        let bare = line
            .trim_start_matches(&format!("{name}: "))
            .replace(&format!("'{name}'"), "")
            .replace(&format!("`{name}`"), "");
        assert!(!bare.contains(name), "{line}");
    }
}

#[test]
fn what_another_says_has_no_colours_of_ours() {
    let own = [
        "\u{1b}[0m",
        "\u{1b}[1m",
        "\u{1b}[31m",
        "\u{1b}[32m",
        "\u{1b}[36m",
    ]
    .concat();
    let origin = Scratch::initialized();
    origin.write(
        CONFIG,
        format!(
            "{}\nroles: {{coder: {{runner: \"x{own}y\"}}}}\n# {own}\n",
            origin.read(CONFIG)
        ),
    );
    let script = format!("echo '{own}'");
    origin.write(
        QUEUE,
        format!("- [ ] T-1: On{own}e (done_when: \"{script}\")\n  ```sh\n  {script}\n  ```\n"),
    );
    origin.write(".tavern/templates/coder.md", own.clone());
    origin.commit(&["--all"], "A list");
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &origin.work().display().to_string(),
        ".",
    ]);
    for line in [
        "trust",
        "drain --dry-run",
        "check",
        "status",
        "status T-1",
        "claim --dry-run",
    ] {
        let ran = clone.line(&format!("tavern {line} --color always")).run();
        let shown = ran.stdout.clone() + &ran.stderr;
        for mark in ["On", "echo '", "`x"] {
            assert!(
                !shown.contains(&format!("{mark}\u{1b}")),
                "{line}: {shown:?}"
            );
        }
        assert!(!shown.contains(&own), "{line}: {shown:?}");
    }
}

#[test]
fn a_name_that_ends_a_line_forges_none() {
    let forged = "x\nerror: forged";
    let clone = Scratch::shell("- [ ] T-1: One\n", "base: main\n");
    clone.write(format!(".tavern/queues/{forged}.md"), "- [ ] T-2: Two\n");
    clone.write(format!(".tavern/templates/{forged}.md"), "Words\n");
    clone.write(format!("{forged}.md"), "- [ ] T-3: Three\n");
    clone.write(
        ".tavern/queues/more.md",
        "---\n\"go\\nal\": x\n\"review\\nerror: forged\": x\n---\n- [ ] T-4: Four\n",
    );
    clone.commit(&["--all"], "A list");
    let other = Scratch::empty();
    other.git(&["clone", "--quiet", &clone.work().display().to_string(), "."]);
    let look = |scratch: &Scratch, line: &str| {
        let ran = scratch.line(&format!("tavern {line}")).run().to_string();
        let forged = ran
            .lines()
            .any(|line| line.trim_start().starts_with("error: forged"));
        assert!(!forged, "{line}: {ran}");
        ran
    };
    let lines = [
        "status",
        "status --items",
        "check",
        "drain --dry-run",
        "claim --dry-run",
        "trust",
        "log",
        "runs",
        "reap --dry-run",
    ];
    for line in lines {
        look(&clone, line);
        look(&other, line);
    }
    assert!(look(&clone, "check").contains("its name has control characters"));
    clone
        .run("tavern-drain", &[&format!("{forged}.md")])
        .ends(2)
        .says_not("\nerror: forged");
    for (key, value) in [
        (forged, "1"),
        ("roles", "{\"x\\nerror: forged\": {does: y}}"),
        ("base", "\"x\\nerror: forged\""),
    ] {
        clone.write(CONFIG, format!("{}: {value}\n", serde_json::json!(key)));
        lines.iter().for_each(|line| drop(look(&clone, line)));
    }
}

#[test]
fn what_is_told_to_be_typed_has_no_name_for_a_flag() {
    let items = "- [ ] T-2: Two\n- [ ] T-3: Three (status: draft)\n";
    let clone = Scratch::shell("- [ ] T-1: One (after: T-2)\n", "base: main\n");
    clone.write(".tavern/queues/--trust.md", items);
    clone.write("--trust.md", items);
    for line in [
        "check",
        "check --dir .tavern -- --trust.md",
        "status",
        "drain --dry-run -- --trust.md",
        "add X --queue=--trust",
        "claim",
    ] {
        let ran = clone.line(&format!("tavern {line}")).run();
        for told in ran
            .to_string()
            .lines()
            .filter_map(|line| line.split_once("tavern ").map(|(_, told)| told))
        {
            assert!(
                !told.starts_with('-') && !told.split(' ').any(|word| word.starts_with("--trust")),
                "{line}: {ran}"
            );
        }
    }
    let told = "its name begins with `-`, as a flag does: Tavern ignores it";
    clone
        .run("tavern-check", &[])
        .ends(5)
        .says(told)
        .says("give it another name");
    std::fs::remove_file(clone.work().join(".tavern/queues/--trust.md")).expect("it is ours");
    clone.run("tavern-check", &[]).says_not(told);
}
