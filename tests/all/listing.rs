//! Lists for people: what stands in a row, and that a row fits into a terminal.

use std::time::{Duration, SystemTime};

use anstream::adapter::strip_str;
use rustix::process::Signal;
use unicode_width::UnicodeWidthStr;

use crate::support::{CONFIG, ENDLESS, QUEUE, Scratch, has, wait_until};
use crate::terminal::Terminal;

#[test]
fn an_item_is_shown_with_what_it_waits_for_by_its_title_too() {
    let scratch = Scratch::board("- [ ] T-1: One\n- [ ] T-2: Two (after: One)\n");
    scratch
        .run("tavern", &["show", "T-2"])
        .ends(0)
        .says("T-1 (pending)");
}

#[test]
fn open_items_are_listed_without_those_that_are_completed_or_cancelled() {
    let scratch = Scratch::initialized();
    let queue = "## Pending\n\n- [x] T-1: One\n- [ ] T-2: Two\n- [x] ~~T-3: Three~~\n- [ ] T-4: Four (status: dead)\n";
    scratch.write(QUEUE, queue);
    scratch
        .run("tavern", &["list", "--open"])
        .ends(0)
        .says("T-2")
        .says("T-4")
        .says_not("T-1")
        .says_not("T-3");
}

#[test]
fn a_list_says_of_each_item_what_is_next_and_why_the_others_are_not() {
    let queue = "## Pending\n\n- [ ] T-1: One (after: T-3)\n- [ ] T-2: Two\n- [ ] T-3: Three (priority: 0)\n\
                 - [ ] T-4: Four (not_before: 2026-11-22T11:30:00Z)\n- [ ] T-5: Five (role: drone)\n- [ ] T-6: Six (approve: start)\n";
    let scratch = Scratch::initialized();
    scratch.write(
        CONFIG,
        "roles: {coder: {runner: own}, drone: {runner: own}}\nrunners: {own: {kind: command, command: [sh]}}\n",
    );
    scratch.write(QUEUE, queue);
    scratch
        .at(
            "2026-11-22T10:00:00Z",
            "tavern-add",
            &["Eight", "--id", "T-8"],
        )
        .succeeds();
    scratch
        .at(
            "2026-11-22T10:30:00Z",
            "tavern-add",
            &["Seven", "--id", "T-7"],
        )
        .succeeds();
    let list = |more: &[&str]| {
        scratch.at(
            "2026-11-22T11:00:00Z",
            "tavern-status",
            &[&["--items"], more].concat(),
        )
    };
    let shown = list(&[]).succeeds();
    let expected = [
        "  T-1      pending         1h One (it waits for T-3 (pending))\n",
        "  T-2      pending         1h Two (ready)\n",
        "  T-3      pending     p0  1h Three (next)\n",
        "  T-4      pending         1h Four (it may be taken at 11:30:00 +00:00)\n",
        "  T-5      pending         1h Five (next for drone)\n",
        "  T-6      pending         1h Six (a person has to allow it to start)\n",
        "  T-7      pending        30m Seven (ready)\n",
    ];
    has(&shown, &expected);
    let items = list(&["--format", "json"]).ends(0).records();
    let of = |id: &str| {
        items
            .iter()
            .find(|item| item["task"] == id)
            .expect("it is listed")
    };
    assert_eq!(
        (&of("T-3")["next_for"], &of("T-3")["ready"]),
        (&"coder".into(), &true.into())
    );
    assert_eq!(
        (&of("T-1")["waits_for"], &of("T-1")["ready"]),
        (&"it waits for T-3 (pending)".into(), &false.into())
    );
    assert_eq!(of("T-7")["since"], "2026-11-22T10:30:00Z");
}

#[test]
fn where_there_is_nothing_to_show_it_is_said_with_what_to_type() {
    let scratch = Scratch::initialized();
    for (line, told) in [
        (
            "tavern-status",
            "main: no items; add one: tavern add --queue main \"…\"\n",
        ),
        ("tavern-status --stats", "depth       no items\n"),
        (
            "tavern-log",
            "no events yet; add an item: tavern add \"…\"\n",
        ),
        (
            "tavern-log --agent Sam",
            "no events yet; add an item: tavern add",
        ),
        (
            "tavern-runs",
            "no runs yet; begin the first: tavern agent\n",
        ),
        ("tavern-add One --id T-1", "T-1\n"),
        (
            "tavern-log --agent Sam",
            "no events of Sam yet; all events: tavern log\n",
        ),
        ("tavern-commit", "the queues are committed as "),
        (
            "tavern-commit",
            "nothing to commit: the queues in git are up to date; see them: tavern status\n",
        ),
    ] {
        scratch.line(line).run().ends(0).says(told);
    }
    let diff = scratch.run("tavern-diff", &["T-1"]).ends(3);
    diff.says("no commit of T-1 here; see its history: tavern log T-1\n");
}

#[test]
fn several_items_are_shown_one_after_the_other() {
    let scratch = Scratch::board("- [ ] T-1: One\n- [ ] T-2: Two\n");
    let shown = scratch.records("tavern-status", &["T-2", "T-1"]);
    let ids: Vec<_> = shown.iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, ["T-2", "T-1"]);
    let then = scratch.records("tavern-status", &["T-2", "T-1", "--at", "0s ago"]);
    assert_eq!(
        (&then[1]["id"], &then[2]["id"]),
        (&"T-2".into(), &"T-1".into())
    );
    scratch
        .run("tavern-status", &["T-1", "no such"])
        .ends(2)
        .says("`no such` is neither an item nor a queue");
}

#[test]
fn who_acts_without_a_name_in_the_environment_is_called_as_the_system_does() {
    let scratch = Scratch::board("- [ ] T-1: One\n- [ ] T-2: Two\n");
    let system = scratch.command("id".as_ref()).args(&["-un"]).run().stdout;
    let name = if system.is_empty() {
        "unknown"
    } else {
        system.trim()
    };
    assert_eq!(
        scratch.json("tavern-claim", &["--task", "T-1"])["lease"]["agent"],
        name
    );
    let merry = scratch
        .program("tavern-claim")
        .variable("LOGNAME", "merry")
        .args(&["--format", "json"])
        .run();
    assert_eq!(merry.ends(0).json()["lease"]["agent"], "merry");
}

#[test]
fn what_has_died_is_told_with_its_reason_and_the_way_back() {
    let scratch = Scratch::shell(
        "- [ ] T-1: One (max_attempts: 1)\n  ```sh\n  exit 3\n  ```\n",
        "",
    );
    scratch.run("tavern-agent", &["--until-empty"]).ends(0);
    let told = "  T-1: exited with code 3 — bring it back: tavern retry T-1\n";
    for line in [
        "tavern-status",
        "tavern-status --items",
        "tavern-status --status dead",
    ] {
        scratch.line(line).run().ends(0).says(told);
    }
    let item = scratch.item("T-1");
    assert_eq!(
        (&item["reason"], &item["to_do"]),
        (
            &"exited with code 3".into(),
            &"bring it back: tavern retry T-1".into()
        )
    );
}

/// What each program says to people. What `tavern diff`, `runs cat`, `runs diff`, `log --diff`, `trust`, and `spawn --dry-run` show is data, and stays whole.
const SAID: &[&str] = &[
    "tavern",
    "tavern help",
    "tavern add --help",
    "tavern init",
    "tavern add --dry-run 'One more thing to do' --after T-1 --queue main",
    "tavern add 'One more, that no agent can take' --role scribe --needs no-such-program",
    "tavern plan --dry-run 'Build a login page, at length, with all that belongs to it' --queue main",
    "tavern status",
    "tavern list",
    "tavern status --stats",
    "tavern status T-1",
    "tavern status T-3",
    "tavern status T-4",
    "tavern status T-9",
    "tavern check",
    "tavern log",
    "tavern log T-1",
    "tavern runs",
    "tavern runs show T-1",
    "tavern runs cat T-1 no-such-file",
    "tavern claim T-2",
    "tavern claim T-500",
    "tavern claim --role no-such-role-as-this-one-that-nobody-has-ever-heard-of-anywhere-in-the-world",
    "tavern renew T-1 --token 1",
    "tavern report T-2 --token 1 --done",
    "tavern approve T-5",
    "tavern spawn T-2 --token 1",
    "tavern tell T-4 'Use argon2, and not what was there before, for the reasons that were given'",
    "tavern release T-1",
    "tavern diff T-2",
    "tavern merge",
    "tavern undo --list",
    "tavern undo T-7 --dry-run",
    "tavern reap --dry-run",
    "tavern edit --dry-run T-1",
    "tavern commit",
    "tavern trust",
    "tavern agent --dry-run",
    "tavern agent --once --name Frodo",
    "tavern drain --dry-run",
    "tavern demo",
    "tavern nope",
];

#[test]
fn nothing_that_is_said_is_wider_than_the_terminal() {
    const AGENT: &str = "an-agent-whose-name-is-so-long";
    let title = "Say at length, 漢字 and all, what is to be done here, so that it does not fit into a line of 八十 columns";
    let kinds = [
        "(status: dead, attempt: 3, reason: `cargo test --workspace --all-features` exited with code 101 in some module of it)",
        "(after: T-1)",
        "(status: waiting, question: 'Should the old tokens be kept for a while, or be dropped as soon as there are new ones?')",
        "(status: in_review, review: person, commit: 1a2b3c4, worktree: false)",
        "(needs: a-program-that-nobody-has-ever-installed-on-any-machine-that-there-is-in-this-world)",
        "(approve: start, due: 2026-11-22, priority: 1)",
        "(status: draft)",
        "(afer: T-2)",
        "(not_before: 2096-11-22, role: scribe)",
        "(runner: no-such-runner)",
    ];
    let item = |n: usize| {
        format!(
            "- [ ] T-{n}: {n} {title} {}\n  ```sh\n  echo Words that are said\n  ```\n",
            kinds[n % 10]
        )
    };
    for count in [0, 500] {
        let scratch = Scratch::shell(
            &(1..=count).map(item).collect::<String>(),
            "max_attempts: 1\n",
        );
        if count > 0 {
            let queue = format!(
                "{}-{}",
                "a-queue-with-a-name-that-is-longer-than-most",
                "漢字".repeat(12)
            );
            scratch.write(
                format!(".tavern/queues/{queue}.md"),
                format!("---\nid: {queue}\n---\n- [ ] T-501: {title}\n  ```sh\n  exit 1\n  ```\n"),
            );
            scratch
                .run("tavern-claim", &["--task", "T-501", "--agent", AGENT])
                .ends(0);
            scratch.settle();
        }
        let lines = SAID
            .iter()
            .map(|line| format!("echo '== {}'; {line} </dev/null\n", line.replace('\'', "")));
        scratch.write(
            "../home/lines",
            format!("stty cols 80 rows 24\n{}true\n", lines.collect::<String>()),
        );
        let said = Terminal::start(&scratch, "sh ../home/lines")
            .end()
            .ends(0)
            .stdout;
        let mut wide = String::new();
        let mut of = "";
        let plain = strip_str(&said).to_string();
        for line in plain.lines().map(|line| line.trim_end_matches('\r')) {
            if line.starts_with("== ") {
                of = line;
            } else if line.width() > 80 {
                wide.push_str(&format!("{of}\n{line}\n"));
            }
        }
        assert_eq!(wide, "", "of {count} items");
        assert!(count == 0 || plain.contains('…'), "{plain}");
    }
}

#[test]
fn what_the_holder_is_known_by_is_told_only_to_who_asks() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    let token = scratch.claim("T-1", &["--agent", "Rosie"]);
    for (program, told) in [
        (
            "tavern-log",
            format!("Rosie claimed T-1 (event {token}, token {token})\n"),
        ),
        (
            "tavern-status",
            format!("  lease       token {token}, until "),
        ),
    ] {
        let usual = scratch.run(program, &["T-1"]).succeeds();
        assert!(
            usual.contains("Rosie") && !usual.contains("token") && !usual.contains("lease"),
            "{usual}"
        );
        scratch
            .run(program, &["T-1", "--verbose"])
            .ends(0)
            .says(&told);
    }
}

#[test]
fn an_agent_at_work_is_seen_by_its_lease_and_its_program_by_what_it_says() {
    let scratch = Scratch::pending(ENDLESS);
    let agent = scratch
        .program("tavern-agent")
        .args(&["--name", "Sam", "--once"])
        .start();
    wait_until("the script runs", || scratch.work().join("pid").exists());
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3660);
    let backdate = |path: &str| {
        let file = std::fs::File::options()
            .write(true)
            .open(scratch.work().join(path))
            .expect("it is there");
        file.set_modified(an_hour_ago).expect("it is ours");
    };
    let run = scratch.json("tavern-runs", &["list"])["run"]
        .as_str()
        .expect("it has a name")
        .to_owned();
    backdate(".tavern/agents/Sam.yaml");
    for log in std::fs::read_dir(scratch.work().join(".tavern/runs").join(&run))
        .expect("it is there")
        .flatten()
    {
        if log
            .path()
            .extension()
            .is_some_and(|extension| extension == "log")
        {
            backdate(&log.path().display().to_string());
        }
    }
    let records = scratch.records("tavern-status", &[]);
    let sam = records
        .iter()
        .find(|record| record["kind"] == "agent")
        .expect("it is at work");
    assert_eq!(sam["freshness"], "very_stale", "{sam}");
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says("its program 1h ago)\n");
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("ago\n  last output 1h ago (very stale)\n");
    agent.signal(Signal::INT);
    agent.end();
}

#[test]
fn a_run_that_was_refuted_is_summed_up_by_why() {
    let scratch = Scratch::pending(
        "- [ ] T-1: One (done_when: test -e two)\n  ```sh\n  touch one; echo All is well.; echo DONE\n  ```\n",
    );
    scratch.run("tavern-agent", &["--once"]).ends(0);
    let run = scratch.json("tavern-runs", &["list"]);
    let why = "`test -e two` exited with code 1";
    assert_eq!(
        (&run["outcome"], &run["reason"], &run["summary"]),
        (&"failed".into(), &why.into(), &why.into())
    );
    scratch
        .run("tavern-runs", &[])
        .ends(0)
        .says(why)
        .says_not("code 0")
        .says_not("DONE");
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says(&format!("failed: {why}\n"));
}

#[test]
fn numbers_count_what_was_typed_by_hand_and_the_queue_that_is_named() {
    let scratch = Scratch::pending("- [ ] Typed\n\n- [ ] T-1: One\n");
    let at = |minute: u32, line: &str| {
        scratch
            .line(line)
            .variable("TAVERN_TEST_NOW", format!("2026-11-22T10:{minute:02}:00Z"))
            .run()
            .ends(0)
    };
    at(0, "tavern-add Two --id T-2");
    scratch.write(
        ".tavern/queues/other.md",
        "---\nid: other\n---\n## Pending\n\n- [ ] T-5: Five\n",
    );
    at(20, "tavern-claim --task T-1 --agent Rosie");
    at(30, "tavern-claim --task T-5 --agent Rosie");
    let stats = |more: &str| at(40, &format!("tavern-status --stats --format json {more}")).json();
    let all = stats("");
    assert_eq!(
        (&all["oldest_pending_seconds"], &all["claims"]),
        (&2400.into(), &2.into()),
        "{all}"
    );
    let main = stats("main");
    let numbers =
        ["oldest_pending_seconds", "median_wait_seconds", "claims"].map(|key| main[key].as_i64());
    assert_eq!(numbers, [Some(2400), Some(1200), Some(1)], "{main}");
    assert_eq!(
        main["depth"],
        serde_json::json!({"in_progress": 1, "pending": 2})
    );
}

#[test]
fn money_and_tokens_are_told_by_task_role_model_and_day() {
    let item = |id: &str| format!("- [ ] {id}: Do\n  ```sh\n  touch {id}\n  ```\n");
    let scratch = Scratch::pending(&(item("T-1") + &item("T-2")));
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Sam"])
        .ends(0);
    for (run, (usd, tokens)) in scratch
        .records("tavern-runs", &["list"])
        .iter()
        .zip([(0.5, 1000), (0.25, 500)])
    {
        let run = run["run"].as_str().expect("it has a name");
        let path = format!(".tavern/runs/{run}/metadata.json");
        let mut metadata: serde_json::Value =
            serde_json::from_str(&scratch.read(&path)).expect("it is JSON");
        metadata["usage"]["usd"] = usd.into();
        metadata["usage"]["output"] = tokens.into();
        metadata["model"] = "gaffer".into();
        scratch.write(&path, metadata.to_string());
    }
    let spent = &scratch.json("tavern-status", &["--stats"])["spent_by"];
    let whole = serde_json::json!({"usd": 0.75, "tokens": 1500});
    assert_eq!(
        spent["task"]["T-2"],
        serde_json::json!({"usd": 0.25, "tokens": 500})
    );
    assert_eq!(
        (&spent["role"]["coder"], &spent["model"]["gaffer"]),
        (&whole, &whole)
    );
    let days = spent["day"].as_object().expect("an object");
    assert_eq!(days.values().collect::<Vec<_>>(), [&whole]);
    let told = scratch.run("tavern-status", &["--stats"]).succeeds();
    has(
        &told,
        &[
            "\n  task       $0.50    1.0k tokens  T-1\n",
            "\n  model      $0.75    1.5k tokens  gaffer\n",
        ],
    );
}
