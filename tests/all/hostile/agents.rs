//! An agent's own program that would act as a person, or for the agents of other items.

use std::collections::BTreeMap;

use tavern_core::task::Task;

use crate::state::State;
use crate::support::{AT_ONCE, Scratch, wait_until};

/// Runs each line of `~/lines` as a verb, and says in `~/said` with which code it ended.
const ATTACK: &str = "while read -r line; do code=0\neval \"tavern $line\" </dev/null >>\"$HOME/out\" 2>&1 || code=$?\n\
                      echo \"$code $line\" >>\"$HOME/said\"\ndone <\"$HOME/lines\"\n: >\"$HOME/over\"\n";

/// How an agent starts it: as it is, without its variables, and as what has neither parent nor group nor session.
const WAYS: [&str; 3] = [
    "sh ~/attack.sh",
    "env -i PATH=\"$PATH\" HOME=\"$HOME\" EDITOR=true sh ~/attack.sh",
    "root=\"$PWD/../../..\"; (cd \"$root\" && setsid env -i PATH=\"$PATH\" HOME=\"$HOME\" EDITOR=true sh ~/attack.sh &)",
];

/// T-4 comes to be in review, and T-5 asks.
const OTHERS: &str = "- [ ] T-2: Two\n- [ ] T-3: Three (approve: start)\n- [ ] T-4: Four (worktree: false, review: person)\n\
                      - [ ] T-5: Five\n\n## Completed\n\n- [x] T-6: Six\n\n\
                      ## Dead Letter\n\n- [ ] T-7: Seven\n";

/// What only a person may do.
const PERSONS: [&str; 25] = [
    "tell T-2 'Stop.' --from Boss",
    "tell T-5 This",
    "release T-2 --cancel",
    "release T-5",
    "release T-7 --revive",
    "release T-6 --reopen",
    "undo T-2",
    "undo",
    "claim",
    "claim --task T-2",
    "report T-3 --approve",
    "report T-4 --approve",
    "report T-4 --reject no",
    "edit main",
    "check --fix",
    "trust --yes",
    "init",
    "add More",
    "add More --parent=T-2",
    "add More --parent=T-1 --review none",
    "plan More",
    "merge",
    "reap",
    "renew T-2 --token 1",
    "agent --once",
];

fn board(way: &str, lines: &[&str]) -> Scratch {
    let script = format!("{way}\n  while [ ! -e ~/over ]; do sleep 0.05; done\n  echo 1 >1.txt");
    let item = format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n");
    let scratch = Scratch::initialized();
    scratch.write(crate::support::CONFIG, AT_ONCE);
    scratch.write(
        crate::support::QUEUE,
        format!("## Pending\n\n{item}{OTHERS}"),
    );
    for (id, how) in [("T-4", &["--done"][..]), ("T-5", &["--waiting", "which?"])] {
        let token = scratch.claim(id, &[]);
        scratch.run("tavern-report", &[&[id, "--token", &token], how].concat());
    }
    scratch.stands("T-4", "in_review", 1);
    scratch.stands("T-5", "waiting", 0);
    scratch.write("../home/attack.sh", ATTACK);
    scratch.write("../home/lines", lines.join("\n") + "\n");
    scratch.settle();
    scratch
}

/// The items of others: how they stand in the text, and all that they are.
fn others(scratch: &Scratch) -> (Vec<String>, BTreeMap<String, Task>) {
    let (queue, mut state) = (scratch.queue(), State::of(scratch));
    state.tasks.remove("T-1");
    let lines = queue
        .lines()
        .filter(|line| line.starts_with("- [") && !line.contains(" T-1: "))
        .map(str::to_owned);
    (lines.collect(), state.tasks)
}

fn said(scratch: &Scratch) -> Vec<String> {
    scratch
        .read("../home/said")
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_only_a_person_may_do_no_agent_does() {
    for way in WAYS {
        let scratch = board(way, &PERSONS);
        let before = others(&scratch);
        scratch
            .run("tavern-agent", &["--name", "Frodo", "--once"])
            .succeeds();
        let refused: Vec<String> = PERSONS.iter().map(|line| format!("4 {line}")).collect();
        assert_eq!(
            said(&scratch),
            refused,
            "{way}\n{}",
            scratch.read("../home/out")
        );
        assert_eq!(others(&scratch), before, "{way}");
        assert!(!scratch.work().join(".tavern/inbox/T-2").exists(), "{way}");
        let out = scratch.read("../home/out");
        assert!(
            out.contains("only a person may do this\nhint: an agent may hand out parts"),
            "{out}"
        );
    }
}

#[test]
fn a_program_that_is_started_by_hand_is_followed_too() {
    let scratch = board(WAYS[2], &PERSONS);
    let before = others(&scratch);
    let token = scratch.claim("T-1", &["--agent", "Frodo"]);
    scratch
        .run("tavern-spawn", &["T-1", "--token", &token])
        .succeeds();
    assert!(
        said(&scratch).iter().all(|line| line.starts_with("4 ")),
        "{:?}",
        said(&scratch)
    );
    assert_eq!(others(&scratch), before);
}

#[test]
fn what_an_agent_may_do_it_does_in_its_own_name() {
    for way in WAYS {
        let lines = [
            "add Part --parent=T-1",
            "tell T-2 'Mind the gap.'",
            "status",
            "log",
            "runs",
            "check",
        ];
        let scratch = board(way, &lines);
        let agent = scratch
            .program("tavern-agent")
            .args(&["--name", "Frodo", "--once"])
            .start();
        wait_until("it has had its try", || {
            scratch.folder().join("home/over").exists()
        });
        agent.end().ends(0);
        let done: Vec<String> = lines.iter().map(|line| format!("0 {line}")).collect();
        assert_eq!(
            said(&scratch)[..5],
            done[..5],
            "{way}\n{}",
            scratch.read("../home/out")
        );
        assert_eq!(scratch.item("T-1.1")["title"], "Part");
        let letter = scratch.read(&scratch.letters("T-2")[0]);
        assert!(
            letter.contains("Frodo") && letter.contains("Mind the gap."),
            "{letter}"
        );
    }
}
