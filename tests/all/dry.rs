//! What `--dry-run` prints is what the run prints, and it changes no byte of the board: every verb that has it.

use tavern::cli::PROGRAMS;

use crate::fix::files;
use crate::support::Scratch;

const QUEUE: &str = ".tavern/queues/main.md";

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

## Completed

- [x] T-6: Six
- [x] T-7: Seven

## Dead Letter

- [ ] T-8: Eight
";

/// How the run's output has to do with that of the dry run.
#[derive(PartialEq)]
enum Same {
    /// The same lines.
    Lines,
    /// The dry run prints what the queue then has.
    Text,
    /// The run can only tell afterwards; the items are the same.
    Items,
}

/// A board on which nothing is half done: the item in progress is held by nobody.
fn board() -> Scratch {
    let scratch = Scratch::repository();
    scratch.run("tavern-init", &["--quiet", "--runner", "shell"]).succeeds();
    scratch.write(".tavern/config.yaml", "base: main\narchive: {keep: 1}\n");
    scratch.write(QUEUE, ITEMS);
    scratch.run("tavern-add", &["--id", "T-0", "Begin"]).succeeds();
    scratch
}

#[test]
fn a_dry_run_says_what_the_run_does_and_does_nothing() {
    let rows: &[(&str, &[&str], Same)] = &[
        ("tavern-init", &[], Same::Lines),
        ("tavern-reap", &[], Same::Lines),
        ("tavern-check", &["--fix"], Same::Lines),
        ("tavern-release", &["T-5"], Same::Lines),
        ("tavern-release", &["T-6", "--reopen"], Same::Lines),
        ("tavern-release", &["T-8", "--revive", "--reason", "again"], Same::Lines),
        ("tavern-release", &["T-1", "--cancel"], Same::Lines),
        ("tavern-release", &["T-6", "--cancel"], Same::Lines),
        ("tavern-release", &["T-1", "--token", "7"], Same::Lines),
        ("tavern-release", &["T-99"], Same::Lines),
        ("tavern-add", &["--id", "T-9", "-p", "1", "Nine", "-m", "More."], Same::Text),
        ("tavern-undo", &["T-0"], Same::Items),
        ("tavern-merge", &[], Same::Items),
        ("tavern-drain", &["--agents", "1"], Same::Items),
    ];
    for (program, arguments, same) in rows {
        let name = format!("{program} {arguments:?}");
        let scratch = board();
        let before = files(&scratch);
        let plan = scratch.run(program, &[*arguments, &["--dry-run"]].concat());
        let after = files(&scratch);
        let changed: Vec<&String> =
            before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
        // Locks are made where they are first taken, and hold nothing.
        let changed: Vec<&&String> = changed.iter().filter(|path| !path.ends_with(".lock")).collect();
        assert!(changed.is_empty(), "{name}: {changed:?}");
        let done = scratch.run(program, arguments);
        match same {
            Same::Lines => {
                assert_eq!((plan.code, &plan.stdout), (done.code, &done.stdout), "{name}\n{plan}{done}");
                if plan.code != Some(0) {
                    assert_eq!(plan.stderr, done.stderr, "{name}");
                }
            }
            Same::Text => assert!(scratch.read(QUEUE).contains(&plan.stdout), "{name}\n{plan}{}", scratch.read(QUEUE)),
            Same::Items => {
                for id in plan.stdout.split_whitespace().filter(|word| word.starts_with("T-")) {
                    assert!(done.stdout.contains(id), "{name}: {id}\n{plan}{done}");
                }
            }
        }
    }
    let mut forgotten = Vec::new();
    for program in PROGRAMS {
        let help = Scratch::empty().run(program.name, &["--help"]).succeeds();
        let is_tried = rows.iter().any(|(name, _, _)| *name == program.name);
        if help.contains("--dry-run\n") && !is_tried {
            forgotten.push(program.name);
        }
    }
    assert_eq!(forgotten, [""; 0], "programs whose --dry-run is not tried here");
}
