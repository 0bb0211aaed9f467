//! What befalls a watcher: it is killed anywhere, its clock jumps, an item ends while it looks, an inbox is full.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{CONFIG, QUEUE, Running, Scratch, has, wait_until};

/// An agent that has broken a rule for which its run is to be paused, and waits until `go` is there.
fn breaking(then: &str) -> (Scratch, Running) {
    let scratch = Scratch::repository();
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    let script = "mkdir -p db; echo x > db/x; touch ../held; while [ ! -e ../go ]; do sleep 0.02; done";
    scratch.write(QUEUE, format!("- [ ] T-1: Break it\n  ```sh\n  {script}\n  ```\n"));
    scratch.write(
        CONFIG,
        format!("lease: 3h\ngrace: 1s\nwatch: {{every: 0}}\nrules: {{schema: {{paths: [db], then: {then}}}}}\n"),
    );
    let agent = scratch.program("tavern-agent").args(&["--once", "--name", "Frodo"]).start();
    wait_until("it holds", || scratch.work().join(".tavern/worktrees/held").exists());
    (scratch, agent)
}

fn diagnoses(scratch: &Scratch) -> Vec<String> {
    scratch.run("tavern-log", &["--diagnoses"]).succeeds().lines().map(str::to_owned).collect()
}

#[test]
fn a_watcher_that_is_killed_anywhere_pauses_all_the_same() {
    let mut places = 0;
    for place in [
        "queue.open",
        "replace.staged",
        "replace.renamed",
        "log.open",
        "log.torn",
        "log.appended",
        "submit.replaced",
        "submit.leased",
    ] {
        for nth in 1.. {
            let (scratch, agent) = breaking("pause");
            let watch = scratch.program("tavern-watch").args(&["--once"]).variable("TAVERN_TEST_NOW", "+10");
            let killed = watch.variable("TAVERN_FAILPOINT", format!("{place}=kill@{nth}")).run();
            let was_killed = killed.code.is_none();
            scratch.at("+20", "tavern-watch", &["--once"]).ends(0);
            agent.end();
            let item = scratch.stands("T-1", "waiting", 0);
            assert_eq!(item["question"], "it broke the rule `schema`: db/x. May it? (yes or no)", "{place}@{nth}");
            assert!((1..=2).contains(&diagnoses(&scratch).len()), "{place}@{nth}: {:?}", diagnoses(&scratch));
            assert_eq!(scratch.processes(), Vec::<String>::new());
            places += u32::from(was_killed);
            if !was_killed {
                break;
            }
        }
    }
    assert!(places > 8, "it was killed at {places} places");
}

#[test]
fn an_item_that_ends_while_it_is_looked_at_is_left_alone() {
    for then in ["warn", "pause"] {
        let (scratch, agent) = breaking(then);
        let go = scratch.folder().join("look-on");
        let watch = scratch.program("tavern-watch").args(&["--once"]).variable("TAVERN_TEST_NOW", "+10");
        // Once before what was found is written down, and once with the board's lock in its hands.
        let place = if then == "warn" { "replace.staged" } else { "log.open" };
        let watch = watch.variable("TAVERN_FAILPOINT", format!("{place}=hold:{}@1", go.display())).start();
        wait_until("it is about to tell", || scratch.folder().join("look-on.held").exists());
        if then == "warn" {
            scratch.write(".tavern/worktrees/go", "");
            agent.end().ends(0);
        } else {
            agent.kill();
        }
        scratch.write("../look-on", "");
        watch.end().ends(0);
        scratch.run("tavern-reap", &[]).succeeds();
        scratch.at("+20", "tavern-watch", &["--once"]).ends(0);
        let status = scratch.item("T-1")["status"].clone();
        assert_eq!(status, if then == "warn" { "completed" } else { "waiting" });
        wait_until("it is ended", || scratch.processes().is_empty());
    }
}

#[test]
fn a_clock_that_jumps_an_hour_either_way_ends_nothing() {
    let (scratch, agent) = breaking("log");
    for (jump, found) in [("+10", 1), ("-3600", 0), ("+3600", 0), ("-3600", 0), ("+20", 0)] {
        let ran = scratch.at(jump, "tavern-watch", &["--once"]).ends(0);
        assert_eq!(ran.stdout.lines().count(), found, "{jump}: {ran}");
        scratch.stands("T-1", "in_progress", 1);
    }
    scratch.write(".tavern/worktrees/go", "");
    agent.end().ends(0);
}

#[test]
fn a_full_inbox_keeps_nobody_from_looking_or_working() {
    let (scratch, agent) = breaking("log");
    // As a program that runs wild would do.
    scratch.run("tavern-tell", &["T-1", "one"]).succeeds();
    let first = scratch.letters("T-1").pop().expect("it is there");
    let text = std::fs::read_to_string(&first).expect("it can be read");
    for number in 2..10_000 {
        let name = first.with_file_name(format!("{number:05}.md"));
        std::fs::write(name, &text).expect("it is ours");
    }
    scratch.at("+10", "tavern-watch", &["--once"]).ends(0).says("violation");
    scratch.run("tavern-tell", &["T-1", "two"]).succeeds();
    scratch.write(".tavern/worktrees/go", "");
    agent.end().ends(0);
    has(&scratch.run("tavern-status", &["T-1"]).succeeds(), &["T-1 Break it"]);
}

#[test]
fn who_interrupts_a_watcher_ends_it_at_once() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    let watcher = scratch.program("tavern-watch").args(&["--format", "json"]).start();
    let looks = || scratch.records("tavern-status", &["--health"]).first().map(|first: &Value| first["looks"].clone());
    wait_until("it has looked", || looks() == Some(1.into()));
    watcher.signal(Signal::TERM);
    let ended = watcher.end();
    assert!(ended.stdout.is_empty(), "{ended}");
}
