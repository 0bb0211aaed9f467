//! What befalls a watcher: it is killed anywhere, its clock jumps, an item ends while it looks, an inbox is full.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{self, CONFIG, QUEUE, Running, Scratch, has, wait_until};

/// An agent that has broken a rule for which its run is to be paused, and waits until `go` is there.
fn breaking(then: &str) -> (Scratch, Running) {
    working(
        "Break it",
        "mkdir -p db; echo x > db/x",
        &format!("rules: {{schema: {{paths: [db], then: {then}}}}}\n"),
    )
}

/// An agent that has run `script`, and waits until `go` is there; `rules` are those of config.yaml.
fn working(title: &str, script: &str, rules: &str) -> (Scratch, Running) {
    let scratch = Scratch::repository();
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    let wait = "touch ../held; while [ ! -e ../go ]; do sleep 0.02; done";
    scratch.write(
        QUEUE,
        format!("- [ ] T-1: {title}\n  ```sh\n  {script}; {wait}\n  ```\n"),
    );
    scratch.write(
        CONFIG,
        format!("lease: 3h\ngrace: 1s\nwatch: {{every: 0}}\n{rules}"),
    );
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once", "--name", "Frodo"])
        .start();
    wait_until("it holds", || {
        scratch.work().join(".tavern/worktrees/held").exists()
    });
    (scratch, agent)
}

fn diagnoses(scratch: &Scratch) -> Vec<String> {
    scratch
        .run("tavern-log", &["--diagnoses"])
        .succeeds()
        .lines()
        .map(str::to_owned)
        .collect()
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
            let watch = scratch
                .program("tavern-watch")
                .args(&["--once"])
                .variable("TAVERN_TEST_NOW", "+10");
            let killed = watch
                .variable("TAVERN_FAILPOINT", format!("{place}=kill@{nth}"))
                .run();
            let was_killed = killed.code.is_none();
            scratch.at("+20", "tavern-watch", &["--once"]).ends(0);
            agent.end();
            let item = scratch.stands("T-1", "waiting", 0);
            assert_eq!(
                item["question"], "it broke the rule `schema`: db/x. May it? (yes or no)",
                "{place}@{nth}"
            );
            assert!(
                (1..=2).contains(&diagnoses(&scratch).len()),
                "{place}@{nth}: {:?}",
                diagnoses(&scratch)
            );
            assert_eq!(scratch.processes(), Vec::<String>::new());
            places += u32::from(was_killed);
            if !was_killed {
                break;
            }
        }
    }
    assert!(places > 8, "it was killed at {places} places");
}

/// Git is asked for the files of eight runs in a look, and next of those that it was not asked for.
#[test]
fn each_of_many_runs_is_held_to_the_rules_in_its_turn() {
    let scratch = Scratch::repository();
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    let script = "mkdir db; echo x > db/x; touch ../held-$TAVERN_TASK; while [ ! -e ../go ]; do sleep 0.1; done";
    let item = |number| format!("- [ ] T-{number}: Break it\n  ```sh\n  {script}\n  ```\n");
    scratch.write(QUEUE, (1..=10).map(item).collect::<String>());
    scratch.write(
        CONFIG,
        "lease: 3h\nwatch: {every: 0}\nrules: {schema: {paths: [db], then: log}}\n",
    );
    let agents: Vec<Running> = (1..=10)
        .map(|number| {
            scratch
                .program("tavern-agent")
                .args(&["--once", "--name", &format!("A{number}")])
                .start()
        })
        .collect();
    let is_held = |number| {
        scratch
            .work()
            .join(format!(".tavern/worktrees/held-T-{number}"))
            .exists()
    };
    wait_until("they hold", || (1..=10).all(is_held));
    let looks = [10, 11, 12, 13].map(|ahead| {
        scratch
            .at(format!("+{ahead}"), "tavern-watch", &["--once"])
            .succeeds()
            .lines()
            .count()
    });
    assert_eq!(looks, [8, 2, 0, 0]);
    scratch.write(".tavern/worktrees/go", "");
    agents
        .into_iter()
        .for_each(|agent| drop(agent.end().ends(0)));
}

#[test]
fn an_item_that_ends_while_it_is_looked_at_is_left_alone() {
    for then in ["warn", "pause"] {
        let (scratch, agent) = breaking(then);
        let go = scratch.folder().join("look-on");
        let watch = scratch
            .program("tavern-watch")
            .args(&["--once"])
            .variable("TAVERN_TEST_NOW", "+10");
        // Once before what was found is written down, and once with the board's lock in its hands.
        let place = if then == "warn" {
            "replace.staged"
        } else {
            "log.open"
        };
        let watch = watch
            .variable(
                "TAVERN_FAILPOINT",
                format!("{place}=hold:{}@1", go.display()),
            )
            .start();
        wait_until("it is about to tell", || {
            scratch.folder().join("look-on.held").exists()
        });
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
        assert_eq!(
            status,
            if then == "warn" {
                "completed"
            } else {
                "waiting"
            }
        );
        wait_until("it is ended", || scratch.processes().is_empty());
    }
}

#[test]
fn a_clock_that_jumps_an_hour_either_way_ends_nothing() {
    let (scratch, agent) = breaking("log");
    for (jump, found) in [
        ("+10", 1),
        ("-3600", 0),
        ("+3600", 0),
        ("-3600", 0),
        ("+20", 0),
    ] {
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
    scratch
        .at("+10", "tavern-watch", &["--once"])
        .ends(0)
        .says("violation");
    scratch.run("tavern-tell", &["T-1", "two"]).succeeds();
    scratch.write(".tavern/worktrees/go", "");
    agent.end().ends(0);
    has(
        &scratch.run("tavern-status", &["T-1"]).succeeds(),
        &["T-1 Break it"],
    );
}

/// One line of 50 MB, and as much in many.
#[test]
fn a_flood_of_output_keeps_nobody_from_looking_or_working() {
    let flood = "head -c 10000000 /dev/zero | tr '\\0' x; echo; yes $(seq 100) | head -c 10000000; echo x > x";
    let (scratch, agent) = working("Flood it", flood, "");
    for ahead in ["+10", "+250"] {
        assert_eq!(
            scratch.at(ahead, "tavern-watch", &["--once"]).succeeds(),
            "",
            "{ahead}"
        );
    }
    has(
        &scratch.run("tavern-status", &["T-1"]).succeeds(),
        &["in progress"],
    );
    scratch.write(".tavern/worktrees/go", "");
    agent.end().ends(0).says("T-1");
    scratch.stands("T-1", "completed", 1);
}

#[test]
fn who_interrupts_a_watcher_ends_it_at_once() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    let watcher = scratch
        .program("tavern-watch")
        .args(&["--format", "json"])
        .start();
    let looks = || {
        scratch
            .records("tavern-status", &["--health"])
            .first()
            .map(|first: &Value| first["looks"].clone())
    };
    wait_until("it has looked", || looks() == Some(1.into()));
    watcher.signal(Signal::TERM);
    let ended = watcher.end();
    assert!(ended.stdout.is_empty(), "{ended}");
}

#[test]
fn what_others_have_merged_is_none_of_a_runs_own_work() {
    let (scratch, agent) = breaking("log");
    // One more began before that is merged, and takes it over.
    let take_over = "touch ../held2; while [ ! -e ../go2 ]; do sleep 0.02; done; git merge -q tavern/integration; \
                     echo 2 > two; touch ../held3; while [ ! -e ../go3 ]; do sleep 0.02; done";
    scratch.write(
        QUEUE,
        format!(
            "{}- [ ] T-2: Take it over\n  ```sh\n  {take_over}\n  ```\n",
            scratch.queue()
        ),
    );
    let second = scratch
        .program("tavern-agent")
        .args(&["--once", "--name", "Sam"])
        .start();
    let exists = |name: &str| scratch.work().join(".tavern/worktrees").join(name).exists();
    wait_until("it holds", || exists("held2"));
    scratch.write(".tavern/worktrees/go", "");
    agent.end().ends(0);
    scratch.stands("T-1", "completed", 1);
    scratch.write(".tavern/worktrees/go2", "");
    wait_until("it holds again", || exists("held3"));
    assert!(
        scratch
            .at("+10", "tavern-watch", &["--once"])
            .ends(0)
            .stdout
            .is_empty()
    );
    scratch.write(".tavern/worktrees/go3", "");
    second.end().ends(0);
    assert_eq!(diagnoses(&scratch).len(), 1, "of the first one alone");
}

#[test]
fn a_run_whose_set_up_took_long_is_looked_at_as_soon_as_it_begins() {
    let scratch = Scratch::repository();
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    scratch.write(QUEUE, "- [ ] T-1: One\n  ```sh\n  echo x > one\n  ```\n");
    let agent = scratch.holding("run.ready", "tavern-agent", &["--once"]);
    scratch.at("+60", "tavern-watch", &["--once"]).succeeds();
    agent.goes_on().ends(0);
}

#[test]
fn whose_files_are_spoilt_is_not_watched_and_that_is_said() {
    let (scratch, agent) = breaking("warn");
    // It would write the file anew.
    agent.stops();
    scratch.write(".tavern/runs/T-1@1/activity.json", "garbage");
    let ran = scratch.at("+10", "tavern-watch", &["--once"]);
    assert!(ran.code != Some(0), "{ran}");
    ran.says("the activity of run `T-1@1` can't be read");
    scratch
        .run("tavern-status", &["--health"])
        .says("the agents' activity can't be read");
    agent.signal(Signal::CONT);
    scratch.write(".tavern/worktrees/go", "");
    agent.end().ends(0);
}

#[test]
fn a_run_whose_supervisor_died_is_told_of_until_it_is_ended() {
    let (scratch, agent) = breaking("warn");
    let health = || scratch.run("tavern-status", &["--health"]);
    let says = "T-1 Frodo: its supervisor died; end it: tavern reap";
    health().says_not(says);
    agent.kill();
    health().says(says);
    scratch.run("tavern-reap", &[]).ends(0);
    health().says("no agent works");
    scratch.has_no_process();
}

#[test]
fn a_run_is_followed_until_it_has_ended_or_nobody_is_left_to_end_it() {
    for is_killed in [false, true] {
        let (scratch, agent) = working("Say it", "echo one; printf 'two\\033[2J\\n'", "");
        let runs = scratch.work().join(".tavern/runs");
        let is_copied = |run: walkdir::DirEntry| {
            run.file_name() == "output.log"
                && std::fs::read_to_string(run.path()).is_ok_and(|output| output.contains("two"))
        };
        // An agent that is killed before copies none of it.
        wait_until("its output is copied", || {
            walkdir::WalkDir::new(&runs)
                .into_iter()
                .flatten()
                .any(is_copied)
        });
        let followed = scratch
            .program("tavern-runs")
            .args(&["follow", "T-1"])
            .start();
        if is_killed {
            agent.kill();
        } else {
            scratch.write(".tavern/worktrees/go", "");
            agent.end();
        }
        assert_eq!(followed.end().ends(0).stdout, "one\ntwo·[2J\n");
        scratch.run("tavern-reap", &[]).ends(0);
        scratch.has_no_process();
    }
}

#[test]
fn an_agent_looks_now_and_then_where_nothing_can_be_watched() {
    let scratch = Scratch::shell("", "");
    let without = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
    let within = |program: &str, arguments: &[&str]| {
        let path = support::program(program).display().to_string();
        let arguments = [
            &["--user", "--map-root-user", "sh", "-c", without, &path],
            arguments,
        ]
        .concat();
        scratch.command(Path::new("unshare")).args(&arguments)
    };
    if within("tavern-status", &[]).run().code != Some(0) {
        return;
    }
    let agent = within("tavern-agent", &["--name", "Frodo"]).start();
    wait_until("it waits", || {
        scratch
            .run("tavern-status", &[])
            .stdout
            .contains("Frodo      waiting")
    });
    scratch.write(QUEUE, "- [ ] T-1: One\n  ```sh\n  echo x > one\n  ```\n");
    wait_until("it finds the item", || {
        scratch.item("T-1")["status"] == "completed"
    });
    agent.signal(Signal::TERM);
    agent.end();
}

#[test]
fn a_run_that_the_watcher_ends_is_not_tried_again_at_once() {
    let (scratch, agent) = breaking("reap");
    let config = std::fs::read_to_string(scratch.work().join(CONFIG)).expect("it is there");
    scratch.write(
        CONFIG,
        config + "runners: {shell: {kind: shell, backoff: 1h}}\n",
    );
    scratch
        .at("+10", "tavern-watch", &["--once"])
        .ends(0)
        .says("violation: it broke the rule `schema`: db/x; it is ended");
    agent.end();
    let item = scratch.stands("T-1", "pending", 1);
    assert!(item["not_before"].is_string(), "{item}");
}

#[test]
fn words_of_anybodys_make_no_rows_of_their_own() {
    let (scratch, agent) = breaking("log");
    scratch
        .run(
            "tavern-tell",
            &["T-1", "--pause", "lunch\n  status      completed"],
        )
        .succeeds();
    agent.end();
    for (program, arguments) in [
        ("tavern-status", ["T-1"].as_slice()),
        ("tavern-runs", &["show", "T-1"]),
    ] {
        let shown = scratch.run(program, arguments).succeeds();
        assert!(!shown.contains("\n  status      completed"), "{shown}");
        has(&shown, &["lunch"]);
    }
}

#[test]
fn rules_that_mean_nothing_are_errors() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    for (rule, says) in [
        ("paths: ['[']", "has the path `[`"),
        ("paths: [/etc/passwd]", "has the path `/etc/passwd`"),
        ("paths: [../x]", "has the path `../x`"),
        ("paths: ['']", "has the path ``"),
        ("commands: ['']", "has an empty command"),
    ] {
        scratch.write(CONFIG, format!("rules:\n  mine: {{{rule}}}\n"));
        scratch
            .run("tavern-check", &[])
            .ends(5)
            .says(says)
            .says(&format!("{CONFIG}:2:3"));
    }
    scratch.write(CONFIG, "watch: {late: 200}\n");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("`late` is 100 at most; 0 turns it off");
    scratch
        .run("tavern-watch", &["--every", "0s"])
        .ends(2)
        .says("tavern watch --every 30s");
}

#[test]
fn what_is_typed_at_an_item_that_is_worked_counts_without_another_program() {
    let (scratch, mut agent) = working("Write it", "echo made >made", "");
    let begun = Instant::now();
    scratch.change(QUEUE, "- [ ] T-1", "- [x] T-1");
    wait_until("its tick is put back", || {
        scratch.queue().contains("- [ ] T-1")
    });
    scratch.change(QUEUE, "- [ ] T-1", "- [-] T-1");
    wait_until("it has ended", || agent.has_ended());
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "the next heartbeat was waited for"
    );
    agent.end();
    assert!(
        scratch.queue().contains("- [-] T-1: Write it\n"),
        "{}",
        scratch.queue()
    );
    scratch
        .run("tavern-log", &["T-1"])
        .says("its work is kept, on tavern/T-1 or under refs/tavern/salvage/T-1");
    scratch.settle();
    scratch
        .run("tavern-runs", &["show", "T-1@1"])
        .ends(0)
        .says("  kept      refs/tavern/salvage/T-1/");
    assert_eq!(
        scratch.git(&["show", "refs/tavern/salvage/T-1/1:made"]),
        "made"
    );
}
