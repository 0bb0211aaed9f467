//! What is nobody else's to know: variables of the user's that go to no agent and to no command of an item.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{AT_ONCE, CONFIG, Scratch, has};

/// A board of one item with this script, for which variables are set that nobody has let through.
fn board(script: &str, done_when: &[&str], config: &str) -> Scratch {
    let lines: String = script.lines().map(|line| format!("  {line}\n")).collect();
    let script = if script.is_empty() {
        String::new()
    } else {
        format!("  ```sh\n{lines}  ```\n")
    };
    let task = json!({ "done_when": done_when });
    let queue = format!("- [ ] T-1: Work\n{script}  ```yaml task\n  {task}\n  ```\n");
    Scratch::shell(&queue, &format!("base: main\n{AT_ONCE}{config}"))
}

const VARIABLES: [(&str, &str); 5] = [
    ("DATABASE_URL", "postgres://joe:correct-horse@db/joe"),
    ("REGISTRY_TOKEN", "reg-0123456789abcdef"),
    ("ANTHROPIC_API_KEY", "sk-ant-api03-0123456789abcdefghij"),
    ("CI", "true"),
    ("CARGO_HOME", "/opt/cargo"),
];

fn work(scratch: &Scratch) -> crate::support::Ran {
    let agent = scratch.program("tavern-agent").args(&["--once"]);
    VARIABLES
        .into_iter()
        .fold(agent, |agent, (name, value)| agent.variable(name, value))
        .run()
}

#[test]
fn agents_and_commands_are_given_what_is_let_through_and_nothing_else() {
    let config = "pass: [DATABASE_URL]\nrunners: {shell: {pass: [\"REGISTRY_*\"], env: {OWN: own}}}\n\
                  worktree: {setup: \"env > ../../../setup.txt\"}\n";
    let scratch = board(
        "env > ../../../agent.txt; echo 1 > 1.txt",
        &["env > ../../../check.txt"],
        config,
    );
    work(&scratch).ends(0);
    scratch.stands("T-1", "completed", 1);
    let names = |file: &str| {
        let text = scratch.read(file);
        let names = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, _)| name.to_owned());
        names.collect::<Vec<_>>()
    };
    for (file, is_agent) in [
        ("agent.txt", true),
        ("check.txt", false),
        ("setup.txt", false),
    ] {
        let names = names(file);
        let is_there = |name: &str| names.iter().any(|there| there == name);
        for name in [
            "PATH",
            "HOME",
            "TMPDIR",
            "LC_ALL",
            "CI",
            "CARGO_HOME",
            "DATABASE_URL",
            "TAVERN_TASK",
            "TAVERN_RUN",
        ] {
            assert!(is_there(name), "{file} lacks {name}: {names:?}");
        }
        assert!(!is_there("ANTHROPIC_API_KEY"), "{file}: {names:?}");
        for name in ["REGISTRY_TOKEN", "OWN"] {
            assert_eq!(is_there(name), is_agent, "{file}: {names:?}");
        }
    }
}

#[test]
fn a_program_gets_the_keys_that_it_reads_and_no_other() {
    let config = "roles: {coder: {runner: codex}}\nrunners: {codex: {command: [../home/codex]}}\n";
    let scratch = board("", &["! env | grep OPENAI"], config);
    let codex = scratch.executable(
        "../home/codex",
        "#!/bin/sh\nenv > env.txt\ncat > /dev/null\n",
    );
    scratch.change(
        ".tavern/config.yaml",
        "../home/codex",
        &codex.display().to_string(),
    );
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once"])
        .variable("OPENAI_API_KEY", "sk-0123456789");
    agent
        .variable("ANTHROPIC_API_KEY", "sk-ant-0123456789")
        .run()
        .ends(0);
    let env = scratch.git(&["show", "tavern/integration:env.txt"]);
    assert!(
        env.contains("OPENAI_API_KEY=") && !env.contains("ANTHROPIC"),
        "{env}"
    );
}

#[test]
fn what_was_left_out_is_told_where_something_fails_for_it() {
    let left_out = "DATABASE_URL not passed on: see `pass` in .tavern/config.yaml";
    // In the command itself, and in what it prints.
    for (check, config) in [
        ("test -n \"$DATABASE_URL\"", ""),
        ("./test.sh", ""),
        (
            "true",
            "worktree: {setup: \"test -n \\\"$DATABASE_URL\\\"\"}\n",
        ),
    ] {
        let script = "printf 'echo DATABASE_URL is missing; exit 1' > test.sh; chmod +x test.sh";
        let scratch = board(script, &[check], config);
        work(&scratch);
        has(
            scratch.item("T-1")["reason"].as_str().unwrap_or_default(),
            &[left_out],
        );
    }
    let scratch = board("set -u; echo $DATABASE_URL", &[], "");
    work(&scratch);
    let reason = scratch.item("T-1")["reason"].to_string();
    has(
        &reason,
        &["DATABASE_URL not passed on: see `pass` of the runner `shell` in .tavern/config.yaml"],
    );
    // Who fails for something else is told nothing of it.
    let scratch = board("echo 1 > 1.txt", &["false"], "");
    work(&scratch);
    assert!(
        !scratch.item("T-1")["reason"]
            .to_string()
            .contains("passed on")
    );
}

#[test]
fn what_will_be_left_out_is_told_before_anything_runs() {
    let config = "runners: {shell: {pass: [\"REGISTRY_*\"], env: {OWN: own}}}\nworktree: {setup: \"./seed $DATABASE_URL\"}\n";
    let script = "echo $DATABASE_URL $REGISTRY_TOKEN $CI $OWN $NOT_SET ${ANTHROPIC_API_KEY:-none}";
    let check = |done_when: &[&str], config: &str| {
        let scratch = board(script, done_when, config);
        scratch.executable("seed", "");
        let check = scratch.program("tavern-check").variable("OWN", "mine");
        VARIABLES
            .into_iter()
            .fold(check, |check, (name, value)| check.variable(name, value))
            .run()
    };
    let told = check(
        &[
            "test -n \"${REGISTRY_TOKEN}\"",
            "DATABASE_URL=x; echo $DATABASE_URL",
        ],
        config,
    )
    .ends(0);
    let lines: Vec<&str> = told
        .stderr
        .lines()
        .chain(told.stdout.lines())
        .filter(|line| line.contains(" is set here"))
        .collect();
    assert_eq!(lines.len(), 3, "{told}");
    told.says("$DATABASE_URL is set here, but not passed on to `worktree.setup`")
        .says("warning: $DATABASE_URL is set here, but not passed on to the script of this")
        .says("$REGISTRY_TOKEN is set here, but not passed on to the commands of this")
        .says("hint: to pass it on: `pass: [REGISTRY_TOKEN]` in .tavern/config.yaml");
    let told = check(
        &["test -n \"$REGISTRY_TOKEN\""],
        "pass: [DATABASE_URL, REGISTRY_TOKEN, OWN]\n",
    )
    .ends(0);
    assert!(!told.to_string().contains("passed on"), "{told}");
}

const KEY: &str = "correct-horse-4711";
const TOKEN: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

/// All files of the board and of its private part but scripts and queues, and what programs show, hold neither.
#[track_caller]
fn is_told_nowhere(scratch: &Scratch) {
    let files =
        [".tavern", ".git/tavern"].map(|folder| walkdir::WalkDir::new(scratch.work().join(folder)));
    let files = files
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_file());
    for file in
        files.filter(|file| file.file_name() != "script.sh" && file.file_name() != "leak.sh")
    {
        let text =
            String::from_utf8_lossy(&std::fs::read(file.path()).expect("it is ours")).into_owned();
        assert!(
            !text.contains(KEY) && !text.contains(TOKEN),
            "{}:\n{text}",
            file.path().display()
        );
    }
    for line in [
        "tavern-status T-1",
        "tavern-log",
        "tavern-runs show T-1",
        "tavern-runs cat T-1",
        "tavern-runs grep redacted",
    ] {
        for form in ["", " --format json"] {
            let ran = scratch
                .line(&format!("{line}{form}"))
                .variable("MY_API_KEY", KEY)
                .run();
            assert!(
                !ran.to_string().contains(KEY) && !ran.to_string().contains(TOKEN),
                "{line}: {ran}"
            );
        }
    }
}

/// A board whose agent's script prints both in pieces, and whose check does.
fn leaking(end: &str, done_when: &[&str]) -> Scratch {
    let script = format!(
        "printf 'correct-' > half; printf 'horse-4711 ghp_0123456789abcdef' >> half; sleep 0.1\n\
         printf 'ABCDEF0123456789abcd' >> half; cat half >&2; echo; cat half; echo; rm half; echo 1 > 1.txt\n{end}"
    );
    board(&script, done_when, "max_attempts: 1\n")
}

fn leak(scratch: &Scratch) {
    drop(
        scratch
            .program("tavern-agent")
            .args(&["--once"])
            .variable("MY_API_KEY", KEY)
            .run(),
    );
}

#[test]
fn keys_and_tokens_are_in_nothing_that_is_written_or_shown() {
    let scratch = leaking("exit 3", &[]);
    leak(&scratch);
    is_told_nowhere(&scratch);
    let reason = scratch.item("T-1")["reason"].to_string();
    has(
        &reason,
        &["[redacted MY_API_KEY]", "[redacted GitHub token]"],
    );
    has(
        &scratch
            .run("tavern-runs", &["cat", "T-1", "output.log"])
            .succeeds(),
        &["[redacted GitHub token]"],
    );

    let print = "printf correct-; sleep 0.1; printf horse-4711; printf ' ghp_0123456789abcdef'; sleep 0.1; \
                 echo ABCDEF0123456789abcd; exit 3";
    let scratch = leaking("", &[print]);
    leak(&scratch);
    is_told_nowhere(&scratch);
    has(
        &scratch
            .run("tavern-runs", &["cat", "T-1", "verify.txt"])
            .succeeds(),
        &["[redacted MY_API_KEY] [redacted GitHub token]"],
    );
}

/// Where it found the key its own programs do not know it from.
#[test]
fn a_key_is_redacted_also_where_an_agents_own_program_is_told_it() {
    let script = "key=$(cat ~/found)\ntavern tell T-1 \"I used $key\" || true\ntavern add \"Rotate $key\" --parent --draft\n\
                  tavern report --failed \"401 for $key\"";
    let scratch = board(script, &[], "max_attempts: 1\n");
    scratch.write("../home/found", KEY);
    leak(&scratch);
    has(&scratch.queue(), &["Rotate [redacted MY_API_KEY]"]);
    let reason = scratch.item("T-1")["reason"].to_string();
    has(&reason, &["401 for [redacted MY_API_KEY]"]);
    is_told_nowhere(&scratch);
}

#[test]
fn a_key_is_known_as_addresses_and_base64_have_it() {
    let script = "printf 'joe:%s' \"$MY_API_KEY\" | base64 | tr '\\n' ' '\nprintf %s 'a=correct%2Fhorse%204711&b=1'\nexit 3";
    let scratch = board(script, &[], "max_attempts: 1\npass: [MY_API_KEY]\n");
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once"])
        .variable("MY_API_KEY", "correct/horse 4711")
        .run();
    let log = scratch
        .run("tavern-runs", &["cat", "T-1", "output.log"])
        .succeeds();
    for told in [
        log,
        scratch.item("T-1")["reason"].to_string(),
        agent.to_string(),
    ] {
        assert!(
            !told.contains("Y29ycmVjdC9ob3JzZSA0NzEx") && !told.contains("%2F"),
            "{told}"
        );
        has(
            &told,
            &["am9lOm[redacted MY_API_KEY]", "a=[redacted MY_API_KEY]&b=1"],
        );
    }
}

#[test]
fn the_log_that_a_killed_supervisor_leaves_loses_its_secrets_in_the_clean_up() {
    let scratch = leaking("", &[]);
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once"])
        .variable("MY_API_KEY", KEY);
    agent
        .variable("TAVERN_FAILPOINT", "run.ended=kill")
        .run()
        .ends(None);
    let mut runs = std::fs::read_dir(scratch.work().join(".tavern/runs"))
        .expect("it is there")
        .flatten();
    let run = runs.next().expect("it has begun").path();
    let log = || scratch.read(run.join("output.log"));
    assert!(log().contains(KEY), "the program wrote it itself");
    scratch
        .program("tavern-reap")
        .variable("MY_API_KEY", KEY)
        .run()
        .ends(0);
    has(&log(), &["[redacted MY_API_KEY] [redacted GitHub token]"]);
    is_told_nowhere(&scratch);
}

#[test]
fn a_secret_that_is_cut_out_of_the_middle_leaves_no_half() {
    let print = "head -c 500 /dev/zero | tr '\\0' x; printf 'correct-'; printf 'horse-4711'; head -c 9000 /dev/zero | tr '\\0' y; exit 3";
    let scratch = board(
        "echo 1 > 1.txt",
        &[print],
        "max_attempts: 1\nverify: {output: 1KiB}\n",
    );
    leak(&scratch);
    let text = scratch
        .run("tavern-runs", &["cat", "T-1", "verify.txt"])
        .succeeds();
    assert!(!text.contains("xcorrect-"), "{text}");
}

#[test]
fn what_is_said_of_an_item_names_no_secret() {
    let scratch = Scratch::board("- [ ] T-1: One\n- [ ] T-2: Two\n");
    let words = format!("because of {TOKEN} and {KEY}");
    let run = |program: &str, arguments: &[&str]| {
        scratch
            .program(program)
            .args(arguments)
            .variable("MY_API_KEY", KEY)
            .run()
    };
    run("tavern-claim", &["--task", "T-1"]).ends(0);
    run("tavern-release", &["T-1", "--reason", &words, "--force"]);
    run("tavern-tell", &["T-1", &words]).ends(0);
    assert_eq!(scratch.letters("T-1").len(), 1);
    run("tavern-release", &["T-2", "--cancel", "--reason", &words]).ends(0);
    run("tavern-add", &["Three", "--description", &words]).ends(0);
    let check = format!("curl -H 'token: {KEY}'");
    run("tavern-add", &["Four", "--done-when", &check])
        .ends(2)
        .says("a command holds a secret, MY_API_KEY, which would be committed: `curl -H 'token: [redacted MY_API_KEY]'`")
        .says("name its variable there ($NAME)");
    let script = format!("Four\n```sh\n{check}\n```\n");
    scratch
        .program("tavern-add")
        .variable("MY_API_KEY", KEY)
        .input(&script)
        .run()
        .ends(2)
        .says("a command holds a secret");
    let fields = [
        "--tag",
        KEY,
        "--done-when",
        "curl -H \"token: $MY_API_KEY\"",
        "--touches",
        KEY,
        "--model",
        TOKEN,
        "--tag",
        "mine",
    ];
    run(
        "tavern-add",
        &[&["Four", "--id", "T-4"], &fields[..]].concat(),
    )
    .ends(0);
    run("tavern-plan", &["Five", "--tag", KEY]).ends(0);
    run("tavern-tell", &["T-1", "Go on.", "--from", KEY]).ends(0);
    let four = scratch.item("T-4");
    assert_eq!(
        four["tags"],
        serde_json::json!(["[redacted MY_API_KEY]", "mine"]),
        "{four}"
    );
    assert_eq!(
        four["done_when"][0], "curl -H \"token: $MY_API_KEY\"",
        "{four}"
    );
    assert_eq!(four["model"], "[redacted GitHub token]", "{four}");
    is_told_nowhere(&scratch);
    has(
        &scratch.queue(),
        &["[redacted GitHub token] and [redacted MY_API_KEY]"],
    );
}

#[test]
fn nobody_else_looks_into_what_is_not_committed() {
    let scratch = leaking("", &["true"]);
    scratch.git(&[
        "config",
        "core.editor",
        "stat -c %a \"$(dirname \"$1\")\" > ../home/mode; true",
    ]);
    leak(&scratch);
    let mode = |path: &str| {
        let metadata = std::fs::metadata(scratch.work().join(path)).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    for folder in [
        ".git/tavern",
        ".git/tavern/events",
        ".tavern/runs",
        ".tavern/worktrees",
        ".tavern/inbox",
        ".tavern/agents",
    ] {
        assert_eq!(mode(folder), 0o700, "{folder}");
        for entry in walkdir::WalkDir::new(scratch.work().join(folder)) {
            let entry = entry.expect("it is there");
            // A worktree is as git makes it, and a queue that was replaced as its owner has it.
            let is_theirs = folder == ".tavern/worktrees"
                || entry
                    .path()
                    .starts_with(scratch.work().join(".git/tavern/seen"));
            let mode = entry.metadata().expect("it is there").permissions().mode() & 0o777;
            assert!(
                is_theirs || mode | 0o700 == 0o700,
                "{mode:o} {}",
                entry.path().display()
            );
        }
    }
    assert_eq!(
        mode(".tavern/queues/main.md") & 0o044,
        0o044,
        "what people commit is as they have it"
    );
    scratch.run("tavern-edit", &[]).ends(0);
    assert_eq!(scratch.read("../home/mode"), "700\n");
    assert_eq!(
        std::fs::read_dir(scratch.folder().join("tmp"))
            .expect("it is there")
            .count(),
        0,
        "the copy is gone"
    );
}

#[test]
fn names_that_are_none_are_told() {
    for config in [
        "pass: [\"*_KEY\"]\n",
        "runners: {shell: {pass: [\"A=b\"]}}\n",
    ] {
        let scratch = board("", &[], config);
        scratch
            .run("tavern-check", &[])
            .ends(5)
            .says("in `pass` is not a variable name");
    }
}

#[test]
fn nothing_of_an_outer_claude_session_reaches_an_agent() {
    for pass in ["[]", "['*']"] {
        let scratch = Scratch::pending("- [ ] T-1: One (max_attempts: 1)\n");
        let fake = "#!/bin/sh\ncase $* in --version) echo '2.1.330 (Claude Code)' ;; *) env >~/seen; exit 1 ;; esac\n";
        let program = scratch.executable("../home/fake", fake);
        scratch.write(
            CONFIG,
            format!(
                "pass: {pass}\nroles: {{coder: {{runner: claude}}}}\nrunners: {{claude: {{program: {}}}}}\n",
                program.display()
            ),
        );
        let mut agent = scratch
            .program("tavern-agent")
            .args(&["--once", "--name", "Frodo"]);
        for name in [
            "CLAUDECODE",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_EFFORT",
            "CLAUDE_PID",
        ] {
            agent = agent.variable(name, "outer");
        }
        agent
            .variable("CLAUDE_CODE_OAUTH_TOKEN", "the-users-own")
            .run();
        let seen = scratch.read("../home/seen");
        assert!(!seen.contains("outer"), "{pass}: {seen}");
        has(&seen, &["CLAUDE_CODE_OAUTH_TOKEN=the-users-own"]);
    }
}
