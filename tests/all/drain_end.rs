//! How a drain ends, and what it says of itself: what it did, why it waits, why it was ended before all was done.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::support::{CONFIG, QUEUE, Scratch, has, wait_until};
use crate::terminal::Terminal;

#[test]
fn a_drain_tells_what_it_did_and_not_what_was_done_before() {
    let script = "  ```sh\n  echo it > $TAVERN_TASK\n  ```\n";
    let list = format!(
        "- [x] T-0: Before\n- [ ] T-1: Now\n{script}- [ ] T-2: Elsewhere (worktree: false)\n{script}"
    );
    let scratch = Scratch::shell(&list, "");
    let drain = || scratch.records("tavern-drain", &["--agents", "1"]);
    let [summary] = drain().try_into().expect("one record");
    let ended = summary["ended"].as_array().expect("a list");
    let commit = scratch.item("T-1")["commit"].clone();
    assert_eq!(
        (&summary["completed"], ended.len()),
        (&json!(2), 2),
        "{summary:#}"
    );
    assert_eq!(
        (&ended[0]["task"], &ended[0]["commit"]),
        (&json!("T-1"), &commit)
    );
    assert_eq!(
        (&ended[1]["task"], &ended[1]["commit"]),
        (&json!("T-2"), &Value::Null)
    );
    let again = scratch.run("tavern-drain", &["--agents", "1"]).ends(0);
    again
        .says("0 of 0 completed, 0 left")
        .says_not("merged work is on");
}

#[test]
fn a_drain_ends_at_the_first_failure_if_it_is_asked_to() {
    let list = "- [ ] T-1: Fails (max_attempts: 1)\n  ```sh\n  exit 3\n  ```\n- [ ] T-2: Never begun\n  ```sh\n  echo 2 > T-2\n  ```\n";
    let scratch = Scratch::shell(list, "");
    let ran = scratch
        .run("tavern-drain", &["--agents", "1", "--fail-fast"])
        .ends(1);
    ran.says("ended: the attempts of T-1 are used up (--fail-fast)")
        .says("0 of 2 completed, 1 failed, 1 left");
    scratch.stands("T-2", "pending", 0);
    scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(1)
        .says("1 of 2 completed, 1 left");
    scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(1)
        .says("0 of 1 completed, 1 left")
        .says("main: T-1 dead — Fails");
}

#[test]
fn a_drain_ends_when_its_time_is_over() {
    let list = "- [ ] T-1: Lasts\n  ```sh\n  echo it > T-1; git add T-1; git commit -qm it; sleep 600\n  ```\n";
    let scratch = Scratch::shell(list, "");
    let ran = scratch
        .run("tavern-drain", &["--agents", "1", "--max-time", "2s"])
        .ends(7);
    let again = "ended after 2s (--max-time); to go on where it was: tavern drain --agents 1 --max-time 2s\n";
    ran.says(again)
        .says("0 of 1 completed, 1 left")
        .says("  stopped: the drain was ended after 2s (--max-time)\n");
    scratch.stands("T-1", "pending", 0);
    scratch.has_no_process();
}

/// No agent takes the save over before the drain counts: its only one is killed.
#[test]
fn what_a_drain_has_merged_counts_also_where_an_old_text_was_saved_last() {
    let list = "- [ ] T-1: One\n  ```sh\n  echo it > T-1\n  ```\n- [ ] T-2: Lasts\n  ```sh\n  : > begun; sleep 600\n  ```\n";
    let scratch = Scratch::board(list);
    let drain = scratch
        .program("tavern-drain")
        .args(&["--agents", "1", "--junit", "result.xml"])
        .start();
    wait_until("the second one is worked", || {
        scratch.work().join(".tavern/worktrees/T-2/begun").exists()
    });
    drain.signal(Signal::STOP);
    let is_agent = |line: &&String| line.contains("tavern agent ");
    let agent = scratch
        .processes()
        .iter()
        .find(is_agent)
        .and_then(|line| line.split(' ').next()?.parse().ok());
    kill_process(
        Pid::from_raw(agent.expect("it works")).expect("a pid"),
        Signal::KILL,
    )
    .expect("it is ours");
    scratch.write(QUEUE, list);
    drain.signal(Signal::INT);
    drain.signal(Signal::CONT);
    drain
        .end()
        .ends(130)
        .says("1 of 2 completed, 1 left")
        .says("main: T-2 in progress — Lasts");
    has(&scratch.read("result.xml"), &["tests=\"2\""]);
    assert_eq!(
        scratch.stands("T-2", "in_progress", 1)["lease"]["agent"],
        "Frodo"
    );
    scratch.stands("T-1", "completed", 1);
    scratch.has_no_process();
    scratch.settle();
    has(
        &scratch.queue(),
        &["- [x] T-1: One\n", "- [ ] T-2: Lasts\n"],
    );
}

#[test]
fn what_is_approved_when_a_drain_ends_is_to_be_merged() {
    let slow = "  ```yaml task\n  done_when: \"case $PWD in */integration) : > ../../merging; sleep 600;; esac\"\n  ```\n";
    let scratch = Scratch::shell(
        &format!("- [ ] T-1: One\n  ```sh\n  echo it > T-1\n  ```\n{slow}"),
        "",
    );
    let drain = scratch
        .program("tavern-drain")
        .args(&["--agents", "1"])
        .start();
    wait_until("it is merged", || {
        scratch.work().join(".tavern/merging").exists()
    });
    drain.signal(Signal::INT);
    let ran = drain
        .end()
        .ends(130)
        .says("ended by Ctrl-C; to go on where it was: tavern drain --agents 1\n");
    ran.says("approved — One\n  the drain ended before the merge: tavern merge\n");
}

/// What fails by an agent's fault waits, and a drain that waits says for what.
#[test]
fn a_wait_is_told_with_what_ends_it() {
    let list = "- [ ] T-1: Fails once (max_attempts: 2)\n  ```sh\n  test -e ../../../again || { touch ../../../again; exit 3; }; echo it > T-1\n  ```\n";
    for set in [
        "runners: {shell: {kind: shell, backoff: 1h}}\n",
        "outcomes: {failed: {backoff: 1h, max_backoff: 1h}}\n",
    ] {
        let scratch = Scratch::shell(list, set);
        let told = scratch.folder().join("told");
        let drain = scratch
            .program("tavern-drain")
            .args(&["--agents", "1"])
            .told_to(&told)
            .start();
        let said = || fs::read_to_string(&told).unwrap_or_default();
        wait_until("it waits", || {
            said().contains("waiting: T-1: it may be taken at ")
        });
        has(&said(), &["; to try it now: tavern release T-1\n"]);
        scratch.run("tavern-release", &["T-1"]).ends(0);
        drain.end().ends(0);
        has(&said(), &["1 of 1 completed, 0 left"]);
    }
    // Without that, a script is tried again at once.
    let scratch = Scratch::shell(list, "");
    scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(0)
        .says_not("waiting")
        .says("1 of 1 completed, 0 left");
}

#[test]
fn a_long_wait_is_told_with_how_many_wait_and_one_beyond_the_time_is_no_wait() {
    let item = "- [ ] NAME (not_before: 2126-01-01T00:00:00Z)\n  ```sh\n  true\n  ```\n";
    let list = ["One", "Two"]
        .map(|name| item.replace("NAME", name))
        .concat();
    let scratch = Scratch::shell(&list, "");
    let told = scratch.folder().join("told");
    let drain = scratch.program("tavern-drain").told_to(&told).start();
    let said = || fs::read_to_string(&told).unwrap_or_default();
    wait_until("it waits", || said().contains("--max-time 10m\n"));
    has(
        &said(),
        &[
            "2 items left, and no agent can claim one before 2126-01-01 ",
            "; to stop instead of a long wait: --max-time 10m\n",
        ],
    );
    drain.signal(Signal::INT);
    drain.end().ends(130);
    let began = std::time::Instant::now();
    let ran = scratch.run("tavern-drain", &["--max-time", "10m"]).ends(7);
    ran.says("ended at once: no agent can claim an item before 2126-01-01 ")
        .says("after the limit of 10m (--max-time)");
    assert!(began.elapsed().as_secs() < 120);
}

#[test]
fn who_is_to_do_one_item_ends_where_there_is_none() {
    let scratch = Scratch::shell("", "");
    scratch
        .run("tavern-agent", &["--once", "--name", "Frodo"])
        .ends(0);
}

#[test]
fn a_failure_is_told_by_its_error_and_no_line_of_progress_is_wider_than_the_terminal() {
    let script =
        "  ```sh\n  echo 'error: no such remote'; echo; echo 'hint: look at it'; exit 1\n  ```\n";
    let check = "  ```sh\n  echo b > b\n  ```\n  ```yaml task\n  done_when: \"false\"\n  ```\n";
    let title = "A long title ".repeat(9);
    let list = format!(
        "- [ ] T-1: {title}(max_attempts: 1)\n{script}- [ ] T-2: Other (max_attempts: 1)\n{check}"
    );
    let scratch = Scratch::shell(&list, "");
    let ran = scratch.run("tavern-drain", &["--agents", "1"]).ends(1);
    let failed = "Frodo: T-1 failed, now dead: exited with code 1: error: no such remote\n";
    let ran = ran
        .says(failed)
        .says(&format!("Frodo: T-1 claimed: {}\n", title.trim_end()))
        .says_not(", output ");
    let commit = scratch.git(&["rev-parse", "--short=7", "tavern/T-2"]);
    has(&ran.stderr, &[&format!(" s at {commit}\n")]);
    let scratch = Scratch::shell(&list, "");
    let ran = Terminal::start(&scratch, "env COLUMNS=60 tavern-drain --agents 1")
        .end()
        .ends(1);
    let claimed = ran
        .stdout
        .lines()
        .find(|line| line.contains("T-1 claimed"))
        .expect("it is told");
    let claimed = claimed
        .rsplit('\r')
        .find(|line| line.contains("claimed"))
        .expect("it is told");
    let claimed = claimed.trim_start_matches("\u{1b}[J");
    assert!(
        claimed.starts_with("Frodo: ") && claimed.ends_with('…') && claimed.chars().count() < 60,
        "{claimed}"
    );
}

#[test]
fn what_comes_up_meanwhile_is_counted_on_the_terminal() {
    let new = "- [ ] T-2: New\\n  ```sh\\n  until test -e ../../../go; do sleep 0.05; done; : > new\\n  ```\\n";
    let scratch = Scratch::shell("", "");
    let list = format!(
        "- [ ] T-1: First\n  ```sh\n  printf '%b' '{new}' >> ../../../TODO.md; : > first\n  ```\n"
    );
    scratch.write("TODO.md", list);
    let terminal = Terminal::start(&scratch, "tavern-drain TODO.md --agents 1");
    terminal.shows("completed 1/2 ");
    scratch.write("go", "");
    let ran = terminal.end().ends(0);
    assert!(!ran.stdout.contains("2/1 "), "{ran}");
}

/// What may keep an item from being done: a dependency of any kind, a missing program, a runner that a person has to open, roles that
/// nobody works as, reviewers that are not there, failures, questions, permissions.
fn any_item(dice: &mut Dice, number: u64) -> String {
    let mut pick = |words: &[&str]| {
        words[usize::try_from(dice.below(words.len() as u64)).expect("a few")].to_owned()
    };
    let after = pick(&["", "", "", "after: T-1", "after: T-2", "after: T-3"]);
    let keys = [
        if after.ends_with(&number.to_string()) {
            String::new()
        } else {
            after
        },
        pick(&["", "", "", "role: planner"]),
        pick(&[
            "",
            "",
            "",
            "runner: closed",
            "runner: nosuch",
            "runner: mute",
        ]),
        pick(&[
            "",
            "",
            "",
            "review: reviewer",
            "review: person",
            "approve: start",
        ]),
        pick(&[
            "",
            "",
            "",
            "done_when: no-such-program-here",
            "done_when: \"false\"",
        ]),
        pick(&["max_attempts: 1", "max_attempts: 2"]),
    ];
    let keys: Vec<&str> = keys
        .iter()
        .map(String::as_str)
        .filter(|key| !key.is_empty())
        .collect();
    let script = pick(&[
        "true",
        "exit 3",
        "echo it > $TAVERN_TASK",
        "echo it > $TAVERN_TASK",
        "echo 'WAITING: which?'",
    ]);
    format!(
        "- [ ] T-{number}: One ({})\n  ```sh\n  {script}\n  ```\n",
        keys.join(", ")
    )
}

/// Each agent goes on as long as another might give it something to do: none waits for one that waits for it.
#[test]
fn no_crew_waits_for_ever() {
    let seed = number("TAVERN_TEST_SEED", 0x7461_7665_726e_0013);
    let rounds = number("TAVERN_TEST_ROUNDS", 24);
    let mut dice = Dice(seed);
    let scratch = Scratch::initialized();
    let mute = scratch.executable("../home/mute.sh", "#!/bin/sh\necho it > $TAVERN_TASK\n");
    scratch.write(
        CONFIG,
        format!(
            "base: main\nroles: {{reviewer: {{runner: mute, does: review}}, planner: {{runner: mute}}}}\n\
             runners: {{closed: {{command: [{0}]}}, mute: {{command: [{0}]}}}}\n\
             max_returns: 2\noutcomes: {{failed: {{backoff: 0s}}, empty: {{backoff: 1s}}, not_ready: {{attempt: false, backoff: 0s}}}}\n",
            mute.display()
        ),
    );
    let mut begun = 0;
    for round in 0..rounds {
        let items: Vec<String> = (1..=2 + dice.below(3))
            .map(|number| any_item(&mut dice, number))
            .collect();
        let crew = [
            "1",
            "2",
            "coder=1,reviewer=1",
            "coder=2,planner=1,reviewer=1",
        ];
        let crew = crew[usize::try_from(dice.below(4)).expect("a few")];
        scratch.write(QUEUE, items.concat());
        scratch.write(
            ".tavern/quota/closed.yaml",
            "closed_until: 2099-01-01T00:00:00Z\nreason: no key\nneeds_person: true\n",
        );
        let ran = scratch.run("tavern-drain", &["--agents", crew]);
        begun += u64::from(ran.stderr.contains(" claimed"));
        assert!(
            ran.code.is_some_and(|code| code < 10),
            "seed {seed:#x}, round {round}, {crew}:\n{}\n{ran}",
            items.concat()
        );
        // What shows its states would tell them where the log is gone.
        fs::remove_file(scratch.work().join(".tavern/queues/main.state.yaml")).ok();
        scratch.begin("");
    }
    assert!(begun * 2 >= rounds, "of {rounds} lists {begun} were begun");
}

/// A person who mends the list while it is worked is told what was taken over, and nothing is done by words that stand there no more.
#[test]
fn what_a_person_changes_meanwhile_is_told_and_what_is_worked_counts_as_it_reads_at_its_end() {
    let wait = "until test -e ../../../go; do sleep 0.05; done";
    let list = format!(
        "- [ ] T-1: First (worktree: true)\n  - [ ] a step\n\n  ```sh\n  echo old > a; {wait}\n  ```\n\
         - [ ] T-2: Second (after: T-1)\n  ```sh\n  echo b > b\n  ```\n- [ ] T-3: Third (after: T-1)\n"
    );
    let scratch = Scratch::repository();
    scratch.write("TODO.md", &list);
    scratch.commit(&["TODO.md"], "Plan");
    let told = scratch.folder().join("told");
    let drain = scratch
        .program("tavern-drain")
        .args(&["TODO.md", "--agents", "1"])
        .told_to(&told)
        .start();
    wait_until("it is begun", || {
        scratch.work().join(".tavern/worktrees/T-1/a").exists()
    });
    scratch.change("TODO.md", "echo old", "echo new");
    scratch.change("TODO.md", "- [ ] a step", "- [x] a step");
    scratch.change("TODO.md", "Second", "The second");
    scratch.change(
        "TODO.md",
        "- [ ] T-3: Third (after: T-1)\n",
        "- [ ] Fourth\n  ```sh\n  echo d > d\n  ```\n",
    );
    scratch.write("go", "");
    drain.end().ends(0);
    let said = fs::read_to_string(&told).expect("it is there");
    has(
        &said,
        &[
            "\nT-1 was edited by hand: description\n",
            "\nT-2 was edited by hand: now `The second`\n",
            "`Fourth` of TODO.md was added as pending by hand\n",
            "\nT-3 was taken out of TODO.md by hand\n",
            "T-1 killed, now pending: its text was edited during the run; starting over with the new text\n",
            "3 of 3 completed, 0 left",
        ],
    );
    assert_eq!(said.matches("by hand").count(), 4, "{said}");
    assert_eq!(scratch.git(&["show", "tavern/integration:a"]), "new");
}

/// Whether its steps are ticked, and what its keys say, is none of what is to be done.
#[test]
fn a_step_that_is_ticked_meanwhile_sends_nothing_back() {
    let list = "- [ ] T-1: First\n  - [ ] a step\n\n  ```sh\n  echo a > a\n  ```\n";
    let scratch = Scratch::pending(list);
    let agent = scratch.holding("run.ended", "tavern-agent", &["--once"]);
    scratch.change(QUEUE, "- [ ] a step", "- [x] a step");
    agent.goes_on().ends(0);
    scratch.stands("T-1", "completed", 1);
    // A command that nothing else would run is no step.
    scratch.write(
        QUEUE,
        "- [ ] T-2: Other (worktree: false)\n  ```sh\n  true\n  ```\n",
    );
    let agent = scratch.holding("run.ended", "tavern-agent", &["--once"]);
    scratch.change(
        QUEUE,
        "worktree: false",
        "worktree: false, done_when: test -e nothing",
    );
    agent
        .goes_on()
        .ends(0)
        .says("T-2 killed, now pending: its text was edited during the run");
}

/// What its holder works on stays; that a person's word did not count is no secret of the log.
#[test]
fn who_takes_out_or_ticks_what_is_worked_on_is_told_that_it_was_put_back() {
    let wait = "until test -e ../../../go; do sleep 0.05; done";
    let item = |id: &str| format!("- [ ] {id}: Work\n  ```sh\n  echo x > {id}; {wait}\n  ```\n");
    let scratch = Scratch::repository();
    scratch.write("TODO.md", [item("T-1"), item("T-2")].concat());
    let told = scratch.folder().join("told");
    let drain = scratch
        .program("tavern-drain")
        .args(&["TODO.md", "--agents", "2"])
        .told_to(&told)
        .start();
    let is_begun = |id: &str| {
        scratch
            .work()
            .join(format!(".tavern/worktrees/{id}/{id}"))
            .exists()
    };
    wait_until("both are begun", || is_begun("T-1") && is_begun("T-2"));
    let text = scratch.read("TODO.md");
    let second = text.find("- [ ] T-2").expect("it is there");
    scratch.write("TODO.md", text[..second].replace("- [ ] T-1", "- [x] T-1"));
    scratch.write("go", "");
    drain.end().ends(0);
    let said = fs::read_to_string(&told).expect("it is there");
    has(
        &said,
        &[
            "the status of T-1 was changed by hand; it is held, so it was put back\n",
            "T-2 was removed by hand; it is held, so it was put back\n",
        ],
    );
}

#[test]
fn a_drain_that_waits_for_what_a_person_holds_says_for_whom() {
    let scratch = Scratch::pending("- [ ] T-1: Mine\n  ```sh\n  echo x > x\n  ```\n");
    scratch.claim("T-1", &["--agent", "Rosie"]);
    let told = scratch.folder().join("told");
    let drain = scratch
        .program("tavern-drain")
        .args(&["--agents", "2"])
        .told_to(&told)
        .start();
    let line =
        "waiting: T-1: it is held by Rosie; take it from its holder: tavern release T-1 --force\n";
    wait_until("it is told", || {
        fs::read_to_string(&told).is_ok_and(|said| said.contains(line))
    });
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    drain.end().ends(0);
    let said = fs::read_to_string(&told).expect("it is there");
    assert!(
        said.contains("1 of 1 completed") && said.matches("held by Rosie").count() == 1,
        "{said}"
    );
}

#[test]
fn what_waits_for_a_person_is_listed_though_no_agent_can_take_the_rest() {
    let scratch = Scratch::repository();
    let words = "- [ ] T-2: Words only\n";
    scratch.write(
        "TODO.md",
        format!("- [ ] T-1: Look (approve: merge)\n  ```sh\n  echo x > x\n  ```\n{words}"),
    );
    scratch.run("tavern-drain", &["TODO.md"]).ends(1);
    let again = scratch
        .run("tavern-drain", &["TODO.md", "--junit", "j.xml"])
        .ends(1);
    again
        .says("T-1 in review")
        .says("tavern approve T-1")
        .says("no ```sh block");
    assert!(scratch.read("j.xml").contains("T-1"));
    // Alone, it is a mistake of the command line.
    scratch.write("TODO.md", words);
    scratch
        .run("tavern-drain", &["TODO.md"])
        .ends(4)
        .says("nothing was started");
}

#[test]
fn a_signal_that_is_ignored_from_the_beginning_ends_nothing() {
    let script = "touch ../held; while [ ! -e ../go ]; do sleep 0.02; done; echo x >x";
    let queue = format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n");
    let scratch = Scratch::shell(&queue, "");
    let trees = scratch.work().join(".tavern/worktrees");
    let nohup = ["-c", "trap '' HUP; exec tavern-drain --agents 1"];
    let drain = scratch.command(Path::new("sh")).args(&nohup).start();
    wait_until("it is at work", || trees.join("held").exists());
    drain.signal(Signal::HUP);
    scratch.write(".tavern/worktrees/go", "");
    drain.end().ends(0).says("T-1 merged as");
}
