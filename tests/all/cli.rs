//! What all programs promise to people and scripts: JSON, signals, places, dry runs.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{CONFIG, ENDLESS, Running, Scratch, item, wait_until};

/// Hears that it should end, says so, and does not.
const STUBBORN: &str = "- [ ] T-1: Stay\n  ```sh\n  trap 'echo told > ../../../told' TERM INT\n  echo $$ > ../../../pid\n  \
                        while :; do sleep 600 & wait $! || :; done\n  ```\n";

fn has(scratch: &Scratch, file: &str) -> bool {
    std::fs::read_to_string(scratch.work().join(file)).is_ok_and(|text| text.ends_with('\n'))
}

/// The item is free again, as if nobody had had it.
#[track_caller]
fn assert_given_back(scratch: &Scratch) {
    let item = scratch.stands("T-1", "pending", 0);
    assert!(item["lease"].is_null(), "{item}");
    scratch.has_no_process();
    assert_eq!(
        scratch.run("tavern-reap", &["--dry-run"]).succeeds(),
        "",
        "nothing is left to clear up"
    );
}

#[test]
fn an_agent_at_work_ends_politely() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 143)] {
        let scratch = Scratch::pending(ENDLESS);
        let agent = scratch
            .program("tavern-agent")
            .args(&["--name", "Sam"])
            .start();
        wait_until("the script runs", || has(&scratch, "pid"));
        agent.signal(signal);
        let ran = agent.end().ends(code);
        assert!(
            ran.stdout.contains("Sam: T-1 killed, now pending: "),
            "{ran}"
        );
        assert_given_back(&scratch);
        assert_eq!(
            scratch.read(".tavern/worktrees/T-1/begun.txt"),
            "begun\n",
            "what was done is kept"
        );
    }
}

#[test]
fn a_waiting_agent_ends_at_once() {
    let scratch = Scratch::pending("");
    let agent = scratch
        .program("tavern-agent")
        .args(&["--name", "Sam"])
        .start();
    wait_until("it waits", || {
        scratch
            .run("tavern-status", &[])
            .stdout
            .contains("Sam        waiting")
    });
    agent.signal(Signal::INT);
    assert_eq!(
        agent.end().to_string(),
        "exit 130\n--- stdout\nSam: waiting for items\n--- stderr\nSam is a coder with runner shell; Ctrl-C ends it\n"
    );
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says("main: no items; add one: tavern add --queue main \"…\"\n");
}

#[test]
fn a_second_signal_hurries() {
    for program in ["tavern-agent", "tavern-drain"] {
        let scratch = Scratch::pending(STUBBORN);
        scratch.write(CONFIG, "grace: 10m\n");
        let running: Running = scratch.program(program).start();
        wait_until("the script runs", || has(&scratch, "pid"));
        running.signal(Signal::INT);
        wait_until("the script was asked to end", || has(&scratch, "told"));
        // How it ends is said by the first.
        running.signal(Signal::TERM);
        running.end().ends(130);
        assert_given_back(&scratch);
    }
}

#[test]
fn an_interrupted_drain_leaves_nothing_running() {
    let scratch = Scratch::pending(&format!("{ENDLESS}{}", item("T-2", "")));
    let drain = scratch
        .program("tavern-drain")
        .args(&["--agents", "2"])
        .in_a_group()
        .start();
    wait_until("the script runs", || has(&scratch, "pid"));
    wait_until("the other item is done", || {
        scratch.item("T-2")["status"] == "completed"
    });
    // As a terminal does it: all of the group hears of it. The agents are told by the drain alone.
    drain.signal_group(Signal::INT);
    let ran = drain.end().ends(130);
    assert!(
        ran.stdout.starts_with("1 of 2 completed, 1 left in "),
        "{ran}"
    );
    assert_given_back(&scratch);
}

#[test]
fn a_demo_that_is_interrupted_leaves_nothing() {
    let scratch = Scratch::empty();
    let demo = scratch.program("tavern").args(&["demo"]).start();
    let tmp = scratch.folder().join("tmp");
    let is_empty = || {
        std::fs::read_dir(&tmp)
            .expect("it is there")
            .next()
            .is_none()
    };
    wait_until("it has begun", || !is_empty());
    demo.signal(Signal::INT);
    assert_eq!(demo.end().code, Some(130));
    assert!(is_empty(), "its folder is gone");
    scratch.has_no_process();
}

#[test]
fn the_demo_works_three_items_and_leaves_nothing_unless_told_to() {
    let scratch = Scratch::empty();
    let shown = scratch.run("tavern", &["demo"]).succeeds();
    for words in [
        "$ tavern drain --agents 2\n",
        "3 of 3 completed, 0 left",
        "T-2 was merged by ",
        "| * ",
        " Shout the greeting\n",
        "mug.txt\n",
    ] {
        assert!(shown.contains(words), "`{words}` in\n{shown}");
    }
    let order: Vec<usize> = ["T-1 was merged", "claimed T-2"]
        .iter()
        .map(|words| shown.find(words).expect("it is told"))
        .collect();
    assert!(
        order[0] < order[1],
        "what depends on T-1 comes after it:\n{shown}"
    );
    assert_eq!(
        std::fs::read_dir(scratch.folder().join("tmp"))
            .expect("it is there")
            .count(),
        0
    );
    scratch.has_no_process();
    // Run by an agent it does not meet that agent's board.
    let kept = scratch
        .program("tavern")
        .args(&["demo", "--keep"])
        .variable("TAVERN_DIR", "/nowhere")
        .run()
        .succeeds();
    let place = kept
        .lines()
        .find_map(|line| line.strip_prefix("Look around: cd "))
        .expect("it says where");
    let ran = scratch
        .program("tavern-status")
        .within(place.as_ref())
        .run()
        .succeeds();
    assert_eq!(ran, "main: 3 completed\n");
}

#[test]
fn a_board_is_made_and_found_from_everywhere() {
    let scratch = Scratch::repository();
    let below = scratch.work().join("src/deep");
    std::fs::create_dir_all(&below).expect("it is ours");
    let made = scratch
        .program("tavern-init")
        .args(&["--runner", "shell"])
        .within(&below)
        .run()
        .ends(0);
    let place = format!("the board is in {}", scratch.work().display());
    assert!(
        made.stderr
            .ends_with(&format!("{place}, and work begins at its branch `main`\n")),
        "{made}"
    );
    scratch.git(&["worktree", "add", "--quiet", "../linked"]);
    let linked = scratch.folder().join("linked");
    for folder in [scratch.work(), below, linked] {
        let again = scratch.program("tavern-init").within(&folder).run();
        let elsewhere = if folder == scratch.work() {
            String::new()
        } else {
            format!("{place}\n")
        };
        assert_eq!(
            again.stderr,
            format!("the board exists; agents run with `shell`\n{elsewhere}")
        );
        assert_eq!(
            again.stdout.matches("kept .tavern/").count(),
            again.stdout.lines().count(),
            "{again}"
        );
        let id = scratch
            .program("tavern-add")
            .args(&["-q", "x"])
            .within(&folder)
            .run()
            .succeeds();
        assert!(
            scratch
                .queue()
                .contains(&format!("- [ ] {}: x\n", id.trim()))
        );
        assert!(
            !folder.join(".tavern").exists() || folder == scratch.work(),
            "there is one board"
        );
    }
    // What people have written is theirs; sample items go into an empty queue only.
    let before = scratch.queue();
    scratch.run("tavern-init", &["--demo"]).succeeds();
    assert_eq!(scratch.queue(), before);
}

#[test]
fn a_large_board_is_shown_whole() {
    let items: Vec<String> = (1..=10_000)
        .map(|n| format!("- [ ] T-{n}: Item {n}\n"))
        .collect();
    let scratch = Scratch::pending(&items.concat());
    assert_eq!(
        scratch.run("tavern-status", &[]).succeeds(),
        "main: 10000 pending, 10000 that no configured agent can take: tavern check\n"
    );
    let all = scratch.run("tavern-status", &["--items"]).succeeds();
    let last = all.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("  T-10000  pending        ")
            && last.ends_with(" Item 10000 (no agent can take it)"),
        "{last}"
    );
    assert_eq!(all.lines().count(), 10_001);
}

#[test]
fn the_log_is_followed_as_json_with_a_heartbeat() {
    let scratch = Scratch::pending("");
    let line = "exec tavern log --follow --format json --heartbeat 100ms > ../out";
    let log = scratch.command("sh".as_ref()).args(&["-c", line]).start();
    let seen = |kind: &str| {
        let text = std::fs::read_to_string(scratch.folder().join("out")).unwrap_or_default();
        let mut kinds = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        kinds.any(|event| event["kind"] == kind && event["time"].is_string())
    };
    wait_until("there is a heartbeat", || seen("heartbeat"));
    scratch.run("tavern-add", &["-q", "x"]).succeeds();
    wait_until("the event is told", || seen("added"));
    log.signal(Signal::INT);
    assert_eq!(
        log.end().to_string(),
        "ended by a signal\n--- stdout\n--- stderr\n"
    );
}

#[test]
fn who_reads_the_log_goes_on_where_they_ended() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    ["one", "two", "three"]
        .iter()
        .for_each(|words| drop(scratch.run("tavern-tell", &["T-1", words]).succeeds()));
    let all = scratch.records("tavern-log", &[]);
    let seq = |at: usize| all[at]["seq"].to_string();
    let (last, middle) = (all.len() - 1, all.len() - 3);
    assert_eq!(
        scratch.records("tavern-log", &["--since-event", &seq(middle)]),
        all[middle + 1..]
    );
    assert_eq!(
        scratch.records(
            "tavern-log",
            &["--since-event", &seq(middle), "--last", "1"]
        ),
        all[last..]
    );
    let nothing = format!("no events since; the last event is {}", seq(last));
    scratch
        .run("tavern-log", &["--since-event", &seq(last)])
        .ends(0)
        .says(&nothing);
    scratch.run("tavern-log", &["--since-event", "x"]).ends(2);
}

#[test]
fn a_follower_ends_with_its_reader() {
    let scratch = Scratch::pending("");
    scratch.run("tavern-add", &["-q", "x"]).succeeds();
    // The reader goes after a line, and nothing more happens that could be written.
    let line = "timeout 60 tavern log --follow --heartbeat 1h | head -n 1; echo ended";
    let ran = scratch
        .command("sh".as_ref())
        .args(&["-c", line])
        .run()
        .says(" was added as pending: ");
    assert!(
        ran.stdout.ends_with("\nended\n") && ran.stderr.is_empty(),
        "{ran}"
    );
}

/// The keys of an object in the order in which they are printed.
fn keys(line: &str) -> BTreeSet<String> {
    let object: serde_json::Map<String, Value> =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    object.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn variables_are_refused_before_anything_is_done() {
    let scratch = Scratch::pending("- [ ] T-1: Keep it\n");
    let before = scratch.queue();
    for variable in ["text", "env"] {
        let flags: &[&str] = if variable == "text" {
            &["--format", "env"]
        } else {
            &[]
        };
        let cancel = scratch
            .program("tavern-release")
            .args(&["T-1", "--cancel"])
            .args(flags);
        let ran = cancel.variable("TAVERN_FORMAT", variable).run().ends(2);
        assert_eq!(
            ran.stderr,
            "error: this program has no variables to print\nhint: use `--format text` or `--format json`\n"
        );
        assert_eq!(scratch.queue(), before);
    }
}

#[test]
fn a_limit_of_no_time_is_none() {
    let scratch = Scratch::pending(
        "- [ ] T-1: One (done_when: test -e T-1.txt)\n  ```sh\n  echo 1 > T-1.txt\n  ```\n",
    );
    scratch.write(
        CONFIG,
        "verify: {timeout: 0}\nworktree: {setup: 'sleep 0.1', timeout: 0}\n",
    );
    scratch
        .run("tavern-agent", &["--until-empty"])
        .ends(0)
        .says("T-1 merged as");
}

#[test]
fn every_program_speaks_json_one_object_a_line_with_stable_keys() {
    let scratch = Scratch::pending(
        &[
            item("T-1", ""),
            item("T-2", ""),
            item("T-3", ""),
            item("T-4", ""),
        ]
        .concat(),
    )
    .tracked();
    let task = "id title description status attempt returns not_before agent started completed commit reason retried allowed author \
                approvals rounds mode question answer answers priority due after role tags parent runner model needs done_when touches \
                budget worktree result max_attempts approve review on_failure trigger lane";
    let outcome = "task run outcome reason commit resets_at";
    let mut token = String::new();
    scratch.write(".tavern/worktrees/T-404/x", "");
    scratch.git(&["config", "--unset", "merge.tavern.driver"]);
    let changed = "task result commit reason";
    let queue = "kind queue items quarantined unfit archived";
    let listed = "kind queue line task status priority title quarantined since ready mode";
    let started = "agent event task title attempt runner";
    let ended = "agent event task run outcome reason status verified silent again_at";
    let planned = "queue line task title status reason run kept commands";
    let run = "run task title queue agent role attempt token runner worktree branch base started ended outcome reason \
               commit usage turns tool_calls summary";
    let claim = format!("{task} queue lease worktree_path");
    let status =
        format!("kind {task} queue line lease expires_at freshness last_output runs kept children");
    let file = "file action";
    let rows: [(&str, &[&str]); 24] = [
        (
            "tavern-init",
            &[file, file, file, file, "setting value action"],
        ),
        ("tavern-reap --dry-run", &["action task path"]),
        ("tavern-add x --draft", &["task queue"]),
        ("tavern-claim --task T-1", &[&claim]),
        ("tavern-renew T-1 --token TOKEN", &["task token expires_at"]),
        ("tavern-spawn T-1 --token TOKEN", &[outcome]),
        ("tavern-status T-1", &[&status]),
        (
            "tavern-report T-1 --token TOKEN",
            &["task run outcome reason commit resets_at status"],
        ),
        ("tavern-merge --dry-run", &[changed]),
        ("tavern-merge", &[changed]),
        ("tavern-release T-2 --cancel", &["task status"]),
        (
            "tavern-agent --once",
            &[started, ended, "agent event task commit"],
        ),
        ("tavern-drain --dry-run", &[planned, planned]),
        (
            "tavern-drain",
            &["completed cancelled failed ended left strayed usd seconds"],
        ),
        (
            "tavern-status --status completed",
            &["kind version board seq time", queue, listed, listed, listed],
        ),
        ("tavern-runs list --last 1", &[run]),
        ("tavern-runs cat T-1", &["file run text"]),
        (
            "tavern-runs grep 'Task: T-1' --task T-1",
            &["run file line text"],
        ),
        (
            "tavern-log --last 1",
            &["seq time kind task queue agent commit from to before after moved state"],
        ),
        ("tavern-plan y --draft --no-model", &["task queue"]),
        (
            "tavern-learn y --tag t",
            &["id state kind tags by created expires text"],
        ),
        ("tavern-queue list main", &["queue priority items archived"]),
        ("tavern-queue remove q", &["queue action"]),
        (
            "tavern-check",
            &["file line column severity code message hint"],
        ),
    ];
    for (line, expected) in rows {
        if line == "tavern-check" {
            scratch.write(".tavern/PAUSE", "lunch\n");
        }
        if line == "tavern-queue remove q" {
            scratch.write(".tavern/queues/q.md", "---\nid: q\n---\n");
        }
        let ran = scratch
            .line(&line.replace("TOKEN", &token))
            .args(&["--format", "json"])
            .run();
        let printed: Vec<_> = ran.stdout.lines().map(keys).collect();
        let expected: Vec<BTreeSet<_>> = expected
            .iter()
            .map(|keys| keys.split(' ').map(str::to_owned).collect())
            .collect();
        assert_eq!(printed, expected, "{line}: {ran}");
        if line.starts_with("tavern-claim") {
            token = ran.json()["lease"]["token"].to_string();
        }
    }
    std::fs::remove_file(scratch.work().join(".tavern/PAUSE")).expect("it was written above");
    // And what shells take variables from.
    let line = scratch
        .run("tavern-add", &["y", "--format", "env", "--draft"])
        .succeeds();
    assert!(
        line.starts_with("TAVERN_TASK=T-") && line.ends_with(" TAVERN_QUEUE=main\n"),
        "{line}"
    );
    scratch
        .run("tavern-release", &["T-2", "--reopen"])
        .succeeds();
    let line = scratch
        .run(
            "tavern-claim",
            &["--format", "env", "--agent", "Sam", "--runner", "shell"],
        )
        .succeeds();
    let names: Vec<&str> = line
        .split_whitespace()
        .map(|pair| pair.split('=').next().unwrap_or_default())
        .collect();
    let expected = [
        "TAVERN_TASK",
        "TAVERN_TOKEN",
        "TAVERN_AGENT",
        "TAVERN_QUEUE",
        "TAVERN_WORKTREE",
        "TAVERN_RUNNER",
    ];
    assert_eq!(names, expected);
    scratch
        .run("tavern-status", &["--format", "env"])
        .ends(2)
        .says("error: this program has no variables to print\n");
}
