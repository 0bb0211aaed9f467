//! An agent that waits takes a new item soon, however the file that has it was saved.

use std::time::{Duration, Instant};

use crate::support::{AT_ONCE, CONFIG, Scratch};

/// Each saves `new` as `TODO.md`. The waits are long enough for the agent to look while the file is away.
const WAYS: [(&str, &str); 6] = [
    ("written in place", "cat new >TODO.md"),
    ("renamed into place", "cp new next; mv next TODO.md"),
    (
        "renamed to a backup, then made anew",
        "mv TODO.md TODO.md~; sleep 0.4; cat new >TODO.md; rm TODO.md~",
    ),
    (
        "removed, then renamed into place",
        "rm TODO.md; sleep 0.4; cp new next; mv next TODO.md",
    ),
    (
        "on another branch",
        "git commit -qam Before; git switch -q other; sleep 0.4; git switch -q main; cat new >TODO.md",
    ),
    (
        "rebased",
        "git commit -qam Before; git switch -q other; sleep 0.4; git rebase -q other main; cat new >TODO.md",
    ),
];

/// Shorter than the time after which an agent looks in any case.
const SOON: Duration = Duration::from_secs(15);

fn item(number: usize) -> String {
    format!(
        "- [ ] Item {number} (worktree: false, result: answer)\n  ```sh\n  echo {number} >>\"$HOME/notes\"\n  ```\n"
    )
}

#[test]
fn a_waiting_agent_takes_what_is_saved_in_any_way() {
    for queue in [&["--queue", "TODO.md"][..], &[]] {
        let scratch = Scratch::initialized();
        scratch.write(CONFIG, AT_ONCE);
        scratch.commit(&[CONFIG], "Settings");
        scratch.git(&["branch", "other"]);
        scratch.write("TODO.md", item(0));
        scratch.commit(&["TODO.md"], "Plan");
        // From now on every agent looks at it.
        scratch.run("tavern-drain", &["TODO.md"]).ends(0);
        let arguments = ["--name", "Frodo"];
        let _agent = scratch
            .program("tavern-agent")
            .args(&arguments)
            .args(queue)
            .start();
        for number in 1..=2 * WAYS.len() {
            let (name, way) = WAYS[number % WAYS.len()];
            let text = scratch.read("TODO.md") + &item(number);
            scratch.write("new", text);
            scratch
                .command("sh".as_ref())
                .args(&["-ec", way])
                .run()
                .succeeds();
            let begun = Instant::now();
            let is_done = || {
                let todo = std::fs::read_to_string(scratch.work().join("TODO.md"));
                todo.is_ok_and(|todo| todo.matches("- [x]").count() == number + 1)
            };
            while !is_done() {
                assert!(
                    begun.elapsed() < SOON,
                    "{name}, {queue:?}: {}",
                    scratch.read("TODO.md")
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}
