//! Lists for people: what stands in a row, and that a row fits into a terminal.

use std::time::{Duration, SystemTime};

use rustix::process::Signal;

use crate::support::{CONFIG, ENDLESS, QUEUE, Scratch, has, wait_until};

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
    scratch.at("2026-11-22T10:00:00Z", "tavern-add", &["Eight", "--id", "T-8"]).succeeds();
    scratch.at("2026-11-22T10:30:00Z", "tavern-add", &["Seven", "--id", "T-7"]).succeeds();
    let list = |more: &[&str]| scratch.at("2026-11-22T11:00:00Z", "tavern-status", &[&["--items"], more].concat());
    let shown = list(&[]).succeeds();
    let expected = [
        "  T-1      pending     p2  1h One (it waits for T-3 (pending))\n",
        "  T-2      pending     p2  1h Two (ready)\n",
        "  T-3      pending     p0  1h Three (next)\n",
        "  T-4      pending     p2  1h Four (it may be taken at 11:30:00 +00:00)\n",
        "  T-5      pending     p2  1h Five (next for drone)\n",
        "  T-6      pending     p2  1h Six (a person has to allow it to start)\n",
        "  T-7      pending     p2 30m Seven (ready)\n",
    ];
    has(&shown, &expected);
    let items = list(&["--format", "json"]).ends(0).records();
    let of = |id: &str| items.iter().find(|item| item["task"] == id).expect("it is listed");
    assert_eq!((&of("T-3")["next_for"], &of("T-3")["ready"]), (&"coder".into(), &true.into()));
    assert_eq!((&of("T-1")["waits_for"], &of("T-1")["ready"]), (&"it waits for T-3 (pending)".into(), &false.into()));
    assert_eq!(of("T-7")["since"], "2026-11-22T10:30:00Z");
}

#[test]
fn no_row_is_wider_than_the_terminal() {
    let long = "Say at length what is to be done here, so that it does not fit into a line of eighty columns";
    let items = |count: usize| (1..=count).map(|n| format!("- [ ] T-{n}: {n} {long}\n")).collect::<String>();
    for count in [0, 500] {
        let scratch = Scratch::pending(&items(count));
        scratch.settle();
        for line in
            ["tavern", "tavern-status", "tavern-status --items", "tavern-log", "tavern-runs", "tavern-undo --list 500"]
        {
            let ran = scratch.line(line).variable("COLUMNS", "80").run();
            let widest = ran.stdout.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
            assert!(widest.chars().count() <= 80, "{line}: {widest}");
            if count > 0 && line.ends_with("--items") {
                assert!(widest.contains("Say at length") && widest.contains('…'), "{widest}");
            }
        }
    }
}

#[test]
fn what_the_holder_is_known_by_is_told_only_to_who_asks() {
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    let token = scratch.claim("T-1", &["--agent", "Rosie"]);
    for (program, told) in [
        ("tavern-log", format!("Rosie claimed T-1 (event {token}, token {token})\n")),
        ("tavern-status", format!("  lease       token {token}, until ")),
    ] {
        let usual = scratch.run(program, &["T-1"]).succeeds();
        assert!(usual.contains("Rosie") && !usual.contains("token") && !usual.contains("lease"), "{usual}");
        scratch.run(program, &["T-1", "--verbose"]).ends(0).says(&told);
    }
}

#[test]
fn an_agent_at_work_is_seen_by_its_lease_and_its_program_by_what_it_says() {
    let scratch = Scratch::pending(ENDLESS);
    let agent = scratch.program("tavern-agent").args(&["--name", "Sam", "--once"]).start();
    wait_until("the script runs", || scratch.work().join("pid").exists());
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3660);
    let backdate = |path: &str| {
        let file = std::fs::File::options().write(true).open(scratch.work().join(path)).expect("it is there");
        file.set_modified(an_hour_ago).expect("it is ours");
    };
    let run = scratch.json("tavern-runs", &["list"])["run"].as_str().expect("it has a name").to_owned();
    backdate(".tavern/agents/Sam.yaml");
    for log in std::fs::read_dir(scratch.work().join(".tavern/runs").join(&run)).expect("it is there").flatten() {
        if log.path().extension().is_some_and(|extension| extension == "log") {
            backdate(&log.path().display().to_string());
        }
    }
    let records = scratch.records("tavern-status", &[]);
    let sam = records.iter().find(|record| record["kind"] == "agent").expect("it is at work");
    assert_eq!(sam["freshness"], "fresh", "{sam}");
    scratch.run("tavern-status", &[]).ends(0).says("its program 1h ago)\n");
    scratch.run("tavern-status", &["T-1"]).ends(0).says("ago (fresh)\n").says("  last output 1h ago\n");
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
    assert_eq!((&run["outcome"], &run["reason"], &run["summary"]), (&"failed".into(), &why.into(), &why.into()));
    scratch.run("tavern-runs", &[]).ends(0).says(why).says_not("code 0").says_not("DONE");
    scratch.run("tavern-status", &["T-1"]).ends(0).says(&format!("failed: {why}\n"));
}

#[test]
fn numbers_count_what_was_typed_by_hand_and_the_queue_that_is_named() {
    let scratch = Scratch::pending("- [ ] Typed\n\n- [ ] T-1: One\n");
    let at = |minute: u32, line: &str| {
        scratch.line(line).variable("TAVERN_TEST_NOW", format!("2026-11-22T10:{minute:02}:00Z")).run().ends(0)
    };
    at(0, "tavern-add Two --id T-2");
    scratch.write(".tavern/queues/other.md", "## Pending\n\n- [ ] T-5: Five\n");
    at(20, "tavern-claim --task T-1 --agent Rosie");
    at(30, "tavern-claim --task T-5 --agent Rosie");
    let stats = |more: &str| at(40, &format!("tavern-status --stats --format json {more}")).json();
    let all = stats("");
    assert_eq!((&all["oldest_pending_seconds"], &all["claims"]), (&2400.into(), &2.into()), "{all}");
    let main = stats("main");
    let numbers = ["oldest_pending_seconds", "median_wait_seconds", "claims"].map(|key| main[key].as_i64());
    assert_eq!(numbers, [Some(2400), Some(1200), Some(1)], "{main}");
    assert_eq!(main["depth"], serde_json::json!({"in_progress": 1, "pending": 2}));
}

#[test]
fn money_and_tokens_are_told_by_task_role_model_and_day() {
    let item = |id: &str| format!("- [ ] {id}: Do\n  ```sh\n  touch {id}\n  ```\n");
    let scratch = Scratch::pending(&(item("T-1") + &item("T-2")));
    scratch.run("tavern-agent", &["--until-empty", "--name", "Sam"]).ends(0);
    for (run, (usd, tokens)) in scratch.records("tavern-runs", &["list"]).iter().zip([(0.5, 1000), (0.25, 500)]) {
        let run = run["run"].as_str().expect("it has a name");
        let path = format!(".tavern/runs/{run}/metadata.json");
        let mut metadata: serde_json::Value = serde_json::from_str(&scratch.read(&path)).expect("it is JSON");
        metadata["usage"]["usd"] = usd.into();
        metadata["usage"]["output"] = tokens.into();
        metadata["model"] = "gaffer".into();
        scratch.write(&path, metadata.to_string());
    }
    let spent = &scratch.json("tavern-status", &["--stats"])["spent_by"];
    let whole = serde_json::json!({"usd": 0.75, "tokens": 1500});
    assert_eq!(spent["task"]["T-2"], serde_json::json!({"usd": 0.25, "tokens": 500}));
    assert_eq!((&spent["role"]["coder"], &spent["model"]["gaffer"]), (&whole, &whole));
    let days = spent["day"].as_object().expect("an object");
    assert_eq!(days.values().collect::<Vec<_>>(), [&whole]);
    let told = scratch.run("tavern-status", &["--stats"]).succeeds();
    has(&told, &["\n  task       $0.50    1.0k tokens  T-1\n", "\n  model      $0.75    1.5k tokens  gaffer\n"]);
}
