//! What `--dry-run` prints is what the run prints, and it changes no byte of the board: every verb that has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tavern::PROGRAMS;

use crate::support::{CONFIG, QUEUE, Ran, Scratch};

const ITEMS: &str = "\
# Main

## Pending

- [ ] T-1: One
  ```sh
  echo 1 >one
  ```
- [ ] Two

## In Progress

- [ ] T-3: Three

## In Review

- [ ] T-4: Four (status: approved, worktree: false)

## Waiting

- [ ] T-5: Five
- [ ] T-11: Eleven (question: red or blue?)
- [ ] T-12: A part of it (parent: T-11, question: which?)

## Completed

- [x] T-6: Six
- [x] T-7: Seven

## Dead Letter

- [ ] T-8: Eight
";

const LEARNING: &str =
    "---\nkind: fact\nby: rosie\ncreated: 2026-01-31T12:00:00Z\n---\n\nIt needs a slash.\n";

/// Programs without a dry run, and why.
const WITHOUT: [(&str, &str); 10] = [
    (
        "tavern-commit",
        "it is started by the others, where config.yaml asks for it",
    ),
    ("tavern-status", "it only reads"),
    ("tavern-diff", "it only reads"),
    ("tavern-log", "it only reads"),
    ("tavern-runs", "it only reads"),
    (
        "tavern-report-html",
        "it reads the board, and writes one file that is named",
    ),
    (
        "tavern-edit",
        "nobody knows what will be saved before the editor is closed; to leave changes nothing",
    ),
    (
        "tavern-merge-driver",
        "git's: it writes the file that git gives it, and no board",
    ),
    (
        "tavern-serve",
        "shows only, and what its page does is another program's",
    ),
    (
        "tavern-top",
        "shows only, and what a key does is another program's",
    ),
];

/// How the run's output has to do with that of the dry run.
#[derive(PartialEq)]
enum Same {
    /// All is the same: standard output, standard error and the exit code.
    Lines,
    /// The dry run prints what the queue then has, where the run prints an ID.
    Text,
    /// The run goes on where the dry run ends, and tells afterwards: the items are the same, and the dry run's standard error
    /// is how the run's begins.
    Items,
}

/// A board on which nothing is half done: the item in progress is held by nobody.
fn board() -> Scratch {
    let scratch = Scratch::repository();
    scratch
        .run("tavern-init", &["--quiet", "--runner", "shell"])
        .succeeds();
    scratch.write(
        CONFIG,
        "base: main\narchive: {keep: 1}\nnotify: {list: {file: told}}\n",
    );
    scratch.write(QUEUE, ITEMS);
    scratch.write(".tavern/knowledge/L-1.md", LEARNING);
    scratch
        .run("tavern-add", &["--id", "T-0", "Begin"])
        .succeeds();
    scratch
}

/// What is written anywhere in the work tree, and when: a lease is renewed by its time alone.
fn photograph(scratch: &Scratch) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let walk = walkdir::WalkDir::new(scratch.work())
        .into_iter()
        .map(|entry| entry.expect("it can be read"));
    let shot = |entry: walkdir::DirEntry| {
        let time = entry
            .metadata()
            .expect("it is there")
            .modified()
            .expect("files have a time");
        (
            entry.path().to_owned(),
            (time, fs::read(entry.path()).expect("it can be read")),
        )
    };
    walk.filter(|entry| entry.file_type().is_file())
        .map(shot)
        .collect()
}

/// Runs `program` with `--dry-run`, which changes nothing, then without.
#[track_caller]
fn planned_and_done(scratch: &Scratch, program: &str, arguments: &[&str]) -> (Ran, Ran) {
    let run = |more: &[&str]| {
        // Else a second may pass in between. Who waits for one that never comes gets the real time.
        let now = if LASTING.contains(&program) {
            "+0"
        } else {
            "2027-01-01T12:00:00Z"
        };
        scratch
            .program(program)
            .args(arguments)
            .args(more)
            .variable("TAVERN_TEST_NOW", now)
            .run()
    };
    let before = photograph(scratch);
    let plan = run(&["--dry-run"]);
    let after = photograph(scratch);
    let changed: Vec<_> = before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .collect();
    assert!(
        changed.is_empty(),
        "{program} {arguments:?}: {changed:?}\n{plan}"
    );
    (plan, run(&[]))
}

/// Their runs start agents.
const LASTING: [&str; 2] = ["tavern-agent", "tavern-drain"];

#[test]
fn a_dry_run_says_what_the_run_does_and_does_nothing() {
    let rows: &[(&str, &[&str], Same)] = &[
        ("tavern-init", &[], Same::Lines),
        ("tavern-reap", &[], Same::Lines),
        ("tavern-check", &["--fix"], Same::Lines),
        ("tavern-trust", &["--yes"], Same::Lines),
        ("tavern-release", &["T-5"], Same::Lines),
        ("tavern-release", &["T-6", "--reopen"], Same::Lines),
        (
            "tavern-release",
            &["T-8", "--revive", "--reason", "again"],
            Same::Lines,
        ),
        ("tavern-release", &["T-1", "--cancel"], Same::Lines),
        ("tavern-release", &["T-6", "--cancel"], Same::Lines),
        (
            "tavern-release",
            &["T-11", "--cancel", "--children"],
            Same::Lines,
        ),
        ("tavern-release", &["T-1", "--token", "7"], Same::Lines),
        ("tavern-release", &["T-99"], Same::Lines),
        (
            "tavern-add",
            &["--id", "T-9", "-p", "1", "Nine", "-m", "More."],
            Same::Text,
        ),
        ("tavern-add", &["--id", "T-1", "One more"], Same::Lines),
        (
            "tavern-add",
            &["--parent=T-6", "Of what has ended"],
            Same::Lines,
        ),
        ("tavern-add", &["--parent=T-99", "Of nobody"], Same::Lines),
        (
            "tavern-plan",
            &["--id", "T-9", "-p", "1", "--draft", "Nine\n\nMore."],
            Same::Text,
        ),
        ("tavern-plan", &["--id", "T-1", "One more"], Same::Lines),
        ("tavern-queue", &["remove", "main"], Same::Lines),
        ("tavern-tell", &["T-1", "Mind", "the", "gap."], Same::Lines),
        (
            "tavern-tell",
            &["T-11", "blue", "--format", "json"],
            Same::Lines,
        ),
        ("tavern-tell", &["T-8", "Try again."], Same::Lines),
        ("tavern-tell", &["T-99", "Hello."], Same::Lines),
        ("tavern-watch", &["--once"], Same::Lines),
        ("tavern-schedule", &[], Same::Lines),
        ("tavern-notify", &[], Same::Lines),
        ("tavern-notify", &["--test"], Same::Lines),
        ("tavern-learn", &["expire", "L-1"], Same::Lines),
        ("tavern-ask", &["What", "needs", "a", "slash?"], Same::Lines),
        (
            "tavern-learn",
            &["expire", "L-9", "--format", "json"],
            Same::Lines,
        ),
        ("tavern-undo", &["T-0"], Same::Lines),
        ("tavern-merge", &[], Same::Items),
        ("tavern-drain", &["--agents", "1"], Same::Items),
        ("tavern-claim", &["--agent", "Rosie"], Same::Lines),
        (
            "tavern-claim",
            &["--agent", "Rosie", "--format", "json", "--lease", "1h"],
            Same::Lines,
        ),
        (
            "tavern-claim",
            &["--agent", "Rosie", "--format", "env", "--runner", "shell"],
            Same::Lines,
        ),
        ("tavern-claim", &["--task", "T-6"], Same::Lines),
        ("tavern-claim", &["--role", "tester"], Same::Lines),
        (
            "tavern-agent",
            &["--name", "Frodo", "--until-empty"],
            Same::Items,
        ),
        (
            "tavern-agent",
            &["--name", "Frodo", "--until-empty", "--queue", "none"],
            Same::Lines,
        ),
    ];
    for (program, arguments, same) in rows {
        let name = format!("{program} {arguments:?}");
        let scratch = board();
        let (plan, done) = planned_and_done(&scratch, program, arguments);
        match same {
            // A token is there once the item is held.
            Same::Lines => assert_eq!(
                plan.stdout,
                done.stdout.replace(" (token 2)", ""),
                "{name}\n{plan}{done}"
            ),
            Same::Text => assert!(
                scratch.queue().contains(&plan.stdout),
                "{name}\n{plan}{}",
                scratch.queue()
            ),
            Same::Items => {
                for id in plan
                    .stdout
                    .split_whitespace()
                    .filter(|word| word.starts_with("T-"))
                {
                    assert!(done.stdout.contains(id), "{name}: {id}\n{plan}{done}");
                }
                assert!(
                    done.stderr.starts_with(&plan.stderr),
                    "{name}\n{plan}{done}"
                );
                continue;
            }
        }
        assert_eq!((plan.code, plan.stderr), (done.code, done.stderr), "{name}");
    }
    for program in PROGRAMS {
        let help = Scratch::empty().run(program.name, &["--help"]).succeeds();
        let tried = rows
            .iter()
            .map(|(name, _, _)| *name)
            .chain(HELD.iter().map(|(name, _)| *name));
        let is_tried = tried.into_iter().any(|name| name == program.name);
        let is_without = WITHOUT.iter().any(|(name, _)| *name == program.name);
        assert_eq!(
            help.contains("--dry-run  "),
            is_tried,
            "{}: tried here if it has a --dry-run",
            program.name
        );
        assert_ne!(
            is_tried, is_without,
            "{}: each program has a dry run, or a reason to have none",
            program.name
        );
    }
}

/// What the holder of T-1 does with token 2.
const HELD: [(&str, &[&str]); 13] = [
    ("tavern-renew", &[]),
    ("tavern-renew", &["--format", "json"]),
    ("tavern-renew", &["--token", "7"]),
    ("tavern-report", &["--failed", "no"]),
    ("tavern-report", &["--failed", "no", "--format", "json"]),
    ("tavern-report", &["--failed", "no", "--token", "7"]),
    ("tavern-report", &["--waiting", "Which?"]),
    ("tavern-report", &[]),
    ("tavern-report", &["--done"]),
    ("tavern-spawn", &["--token", "7"]),
    ("tavern-spawn", &["--runner", "none"]),
    ("tavern-release", &[]),
    ("tavern-release", &["--force", "--reason", "mine"]),
];

#[test]
fn what_a_holder_does_can_be_tried_before() {
    for (program, arguments) in HELD {
        let scratch = board();
        scratch
            .run(
                "tavern-claim",
                &["--task", "T-1", "--agent", "Rosie", "--lease", "1d"],
            )
            .succeeds();
        let own = if arguments.contains(&"--token") {
            vec!["T-1"]
        } else {
            vec!["T-1", "--token", "2"]
        };
        let (plan, done) =
            planned_and_done(&scratch, program, &[own.as_slice(), arguments].concat());
        let name = format!("{program} {arguments:?}\n{plan}{done}");
        assert_eq!(
            (plan.code, plan.stdout, plan.stderr),
            (done.code, done.stdout, done.stderr),
            "{name}"
        );
    }
}

#[test]
fn what_a_claim_alone_can_tell_is_left_out() {
    let scratch = board();
    // Saved by hand and not looked at by anybody: it is logged first, so nobody knows the token.
    scratch.write(QUEUE, ITEMS.replace("- [ ] Two", "- [ ] Two (priority: 0)"));
    let (plan, done) = planned_and_done(&scratch, "tavern-claim", &["--agent", "Rosie"]);
    assert_eq!(plan.succeeds(), "main:9 Two\n");
    assert!(done.stdout.contains(" Two (token "), "{done}");

    let scratch = board();
    scratch.write(QUEUE, ITEMS.replace("- [ ] Two", "- [ ] Two (priority: 0)"));
    let (plan, done) = planned_and_done(
        &scratch,
        "tavern-claim",
        &["--agent", "Rosie", "--format", "json"],
    );
    let (plan, done) = (plan.ends(0).json(), done.ends(0).json());
    assert_eq!(plan["title"], done["title"]);
    assert!(
        plan["id"].is_null() && plan["lease"]["token"].is_null() && plan["lease"]["task"].is_null(),
        "{plan}"
    );
    scratch.write(QUEUE, ITEMS);
    let env = scratch.run(
        "tavern-claim",
        &[
            "--task",
            "T-1",
            "--agent",
            "Rosie",
            "--format",
            "env",
            "--dry-run",
        ],
    );
    env.ends(0).says("TAVERN_TASK=T-1").says_not("TAVERN_TOKEN");

    let scratch = board();
    scratch.write(
        QUEUE,
        ITEMS.replace(
            "- [ ] Two",
            "- [ ] Two (priority: 0)\n  ```sh\n  true\n  ```",
        ),
    );
    let plan = scratch.run("tavern-agent", &["--name", "Frodo", "--dry-run"]);
    assert!(
        plan.stdout
            .ends_with("Frodo: `Two` claimed, and given an ID\n  $ true\n"),
        "{plan}"
    );
    assert!(
        plan.stderr.contains("Frodo is a coder with runner shell"),
        "{plan}"
    );
    scratch.write(".tavern/PAUSE", "lunch");
    assert_eq!(
        scratch
            .run("tavern-agent", &["--name", "Frodo", "--dry-run"])
            .succeeds(),
        "Frodo: paused: lunch\n"
    );
}

#[test]
fn a_dry_undo_counts_what_was_saved_by_hand() {
    let scratch = board();
    scratch.change(QUEUE, "- [ ] T-1:", "- [x] T-1:");
    let (plan, done) = planned_and_done(&scratch, "tavern-undo", &[]);
    // The save is logged first, and undone.
    assert_eq!((plan.code, &plan.stdout), (done.code, &done.stdout));
    assert!(done.stdout.contains("T-1 is pending again"), "{done}");
}

/// What is done under the lock before anything is decided counts for the dry run, too.
#[test]
fn a_dry_claim_takes_what_the_run_takes_whatever_was_done_by_hand() {
    // It is removed, or saved with this text; the last is a text from before the claim.
    for by_hand in [None, Some(""), Some("## Pending\n"), Some("# Main")] {
        for (program, arguments) in [
            ("tavern-claim", &["--agent", "Rosie"][..]),
            ("tavern-claim", &["--agent", "Rosie", "--queue", "main"]),
            ("tavern-claim", &["--task", "T-1"]),
            ("tavern-agent", &["--name", "Frodo", "--once"]),
        ] {
            let scratch = board();
            let old = scratch.queue();
            scratch
                .run(
                    "tavern-claim",
                    &["--task", "T-0", "--agent", "Sam", "--lease", "1d"],
                )
                .succeeds();
            match by_hand {
                None => fs::remove_file(scratch.work().join(QUEUE)).expect("it is there"),
                Some("# Main") => drop(scratch.write(QUEUE, old + "\nMore.\n")),
                Some(text) => drop(scratch.write(QUEUE, text)),
            }
            let status = scratch.run("tavern-status", &[]).stdout;
            assert!(status.contains("T-0 "), "{by_hand:?}: {status}");
            let (plan, done) = planned_and_done(&scratch, program, arguments);
            let name = format!("{by_hand:?}: {program} {arguments:?}\n{plan}{done}");
            if program == "tavern-claim" {
                // The token is known to the run alone.
                let item = |ran: &Ran| {
                    ran.stdout
                        .split(" (token")
                        .next()
                        .unwrap_or_default()
                        .trim_end()
                        .to_owned()
                };
                assert_eq!((plan.code, item(&plan)), (Some(0), item(&done)), "{name}");
                assert_eq!(done.code, Some(0), "{name}");
            } else {
                assert!(
                    plan.stdout.contains("T-1") && done.to_string().contains("T-1"),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_dry_reap_leaves_what_is_half_done_to_the_run() {
    let scratch = board();
    scratch.change(QUEUE, "- [ ] T-1:", "- [x] T-1:");
    let (plan, _) = planned_and_done(&scratch, "tavern-reap", &[]);
    assert!(plan.stderr.contains("may find more to do"), "{plan}");
    let claim = scratch.program("tavern-claim").args(&["--agent", "Sam"]);
    assert_eq!(
        claim
            .variable("TAVERN_FAILPOINT", "log.appended=kill")
            .run()
            .code,
        None
    );
    let (plan, _) = planned_and_done(&scratch, "tavern-reap", &[]);
    assert!(plan.stderr.contains("may find more to do"), "{plan}");
    let (plan, _) = planned_and_done(&scratch, "tavern-reap", &[]);
    assert_eq!(plan.stderr, "");
}

#[test]
fn a_dry_spawn_prints_what_is_run_where_and_with_which_prompt() {
    let scratch = board();
    let command = r#"command: [sh, -c, "pwd; tr '\\0' '\\n' </proc/$$/cmdline; true", "{task}", "a b {worktree}"]"#;
    scratch.write(
        CONFIG,
        format!("base: main\nrunners: {{mine: {{{command}}}}}\n"),
    );
    scratch
        .run("tavern-claim", &["--task", "T-1", "--agent", "Rosie"])
        .succeeds();
    let own = ["T-1", "--token", "2", "--runner", "mine"];
    let (plan, done) = planned_and_done(
        &scratch,
        "tavern-spawn",
        &[&own[..], &["--format", "json"]].concat(),
    );
    let plan = plan.ends(0).json();
    done.succeeds();
    let mut lines = vec![plan["worktree"].clone()];
    lines.extend(
        plan["command"]
            .as_array()
            .expect("it is a list")
            .iter()
            .cloned(),
    );
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.as_str().expect("it is text"))
        .collect();
    assert_eq!(
        scratch
            .read(".tavern/runs/T-1@2/output.log")
            .lines()
            .collect::<Vec<_>>(),
        lines
    );
    let prompt = scratch.read(".tavern/runs/T-1@2/prompt.md");
    let (_, rest) = prompt.split_once("```yaml ").expect("it names its nonce");
    let nonce = rest.split('"').next().expect("it is quoted");
    assert_eq!(
        prompt.replace(nonce, "NEW-NONCE"),
        plan["prompt"].as_str().expect("it is text")
    );

    // As a shell takes it, with what the run before has left in the prompt.
    let plan = scratch
        .run(
            "tavern-spawn",
            &[&own[..], &["--dry-run", "--prompt"]].concat(),
        )
        .succeeds();
    let (line, prompt) = plan
        .split_once('\n')
        .expect("the prompt is behind the line");
    let ran = scratch
        .command(Path::new("sh"))
        .args(&["-c", line])
        .run()
        .succeeds();
    assert_eq!(ran.lines().collect::<Vec<_>>(), lines);
    assert!(prompt.contains("Task: T-1: One"), "{prompt}");
}

#[test]
fn a_dry_report_names_the_commands_that_would_have_to_pass() {
    let scratch = board();
    let item = "- [ ] T-1: One (result: change, done_when: [\"test -s one\", \"false\"])\n";
    scratch.begin(&(item.to_owned() + "- [ ] T-2: Two (worktree: false)\n"));
    let token = scratch.claim("T-2", &["--agent", "Rosie"]);
    let (plan, done) = planned_and_done(
        &scratch,
        "tavern-report",
        &["T-2", "--token", &token, "--done"],
    );
    assert_eq!(
        (plan.code, plan.stdout),
        (done.code, done.stdout),
        "there is nothing to run"
    );

    let token = scratch.claim("T-1", &["--agent", "Rosie"]);
    let own = ["T-1", "--token", &token];
    let folder = scratch.work().join(".tavern/worktrees/T-1");
    let tip = scratch.git(&["rev-parse", "HEAD"]);
    scratch.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "tavern/T-1",
        &folder.display().to_string(),
        &tip,
    ]);
    scratch.git(&["branch", "tavern/integration"]);
    let report = [&own[..], &["--done"]].concat();
    let plan = scratch
        .run("tavern-report", &[&report[..], &["--dry-run"]].concat())
        .ends(1);
    assert!(
        plan.stdout.starts_with("T-1 dead: it changed nothing"),
        "{plan}"
    );
    fs::write(folder.join("one"), "1\n").expect("the folder is ours");
    let (plan, done) = planned_and_done(&scratch, "tavern-report", &report);
    let expected = "T-1 approved, if all of this passes at its commit:\n  test -s one\n  false\n";
    assert_eq!(plan.succeeds(), expected);
    assert_eq!(done.code, Some(6), "{done}");
}

#[test]
fn a_dry_report_knows_of_children_and_of_plans() {
    let scratch = board();
    scratch.begin(
        "- [ ] T-1: One\n- [ ] T-2: A part of it (parent: T-1)\n- [ ] T-3: Plan (role: planner)\n",
    );
    let hold = |task: &str, role: &str| scratch.claim(task, &["--role", role, "--agent", "Rosie"]);
    let tried = |task: &str, token: &str| {
        let (plan, done) = planned_and_done(
            &scratch,
            "tavern-report",
            &[task, "--token", token, "--done"],
        );
        assert_eq!(plan.code, done.code, "{plan}{done}");
        (plan.stdout, done.stdout)
    };
    let (plan, done) = tried("T-1", &hold("T-1", "coder"));
    assert_eq!(
        (plan.as_str(), &plan),
        ("T-1 waiting: waits for its children: T-2\n", &done)
    );
    let (plan, done) = tried("T-3", &hold("T-3", "planner"));
    assert!(
        plan.starts_with("T-3 pending: it gave no plan") && plan == done,
        "{plan}{done}"
    );
    let token = hold("T-3", "planner");
    scratch.write(
        format!(".tavern/runs/T-3@{token}/plan.md"),
        "- [ ] P-1: Bare\n",
    );
    let (plan, done) = tried("T-3", &token);
    assert!(
        plan.starts_with("T-3 pending: its plan was rejected: line 1") && plan == done,
        "{plan}{done}"
    );
}
