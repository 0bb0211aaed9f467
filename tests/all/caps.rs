//! What runs may use together, with programs that don't tell what they use: minutes alone.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::support::{CONFIG, Scratch};

/// Of a run, in seconds.
fn length(run: &Value) -> i64 {
    let at = |key: &str| {
        run[key]
            .as_str()
            .unwrap_or_default()
            .parse::<DateTime<Utc>>()
            .expect("it is a time")
    };
    (at("ended") - at("started")).num_seconds()
}

fn board(config: &str) -> Scratch {
    let items = "- [ ] T-1: Sleep\n  ```sh\n  echo begun >begun; git add -A; git commit -qm Begin; sleep 600\n  ```\n\
                 - [ ] T-2: Nap\n  ```sh\n  sleep 600\n  ```\n";
    Scratch::shell(&format!("## Pending\n\n{items}"), config)
}

#[test]
fn minutes_of_an_item_are_capped_whatever_runs_it() {
    let scratch = board("budget: {item: {minutes: 0.05}}\n");
    let ran = scratch.run("tavern-drain", &["--agents", "2"]).ends(7);
    for id in ["T-1", "T-2"] {
        let item = scratch.stands(id, "pending", 0);
        assert!(
            item["reason"]
                .as_str()
                .is_some_and(|why| why.contains("minutes of the item's budget are used")),
            "{item:#}"
        );
        assert!(ran.stdout.contains(&format!("{id} pending")), "{ran}");
    }
    assert_eq!(scratch.git(&["show", "tavern/T-1:begun"]), "begun");
    assert!(
        ran.stdout
            .contains("raise it: `budget: {item: {minutes: …}}` in .tavern/config.yaml"),
        "{ran}"
    );
    // By hand neither: the item may be held, and no program is started for it.
    let claimed = scratch.json("tavern-claim", &["--task", "T-1"]);
    let token = claimed["lease"]["token"].to_string();
    for flags in [
        &["T-1", "--token", &token][..],
        &["T-1", "--token", &token, "--dry-run"],
    ] {
        let refused = scratch.run("tavern-spawn", flags).ends(7);
        assert!(
            refused.stderr.contains("`T-1` has reached its limit: ")
                && refused.stderr.contains("raise it: "),
            "{refused}"
        );
    }
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .succeeds();
    // Their folders may go: what they have used stays known.
    std::fs::remove_dir_all(scratch.work().join(".tavern/runs")).expect("it is there");
    scratch.run("tavern-drain", &[]).ends(7);
}

#[test]
fn a_budget_of_each_run_counts_where_its_role_sets_none() {
    let settings = "roles: {coder: {runner: shell}}\nbudget: {run: {minutes: 0.01}}\ngrace: 1s\nmax_attempts: 1\n";
    let scratch = Scratch::shell("- [ ] T-1: Wait\n  ```sh\n  sleep 60\n  ```\n", settings);
    scratch.run("tavern-agent", &["--once"]);
    let runs = scratch.records("tavern-runs", &["list"]);
    assert_eq!(runs[0]["outcome"], "timeout", "{runs:?}");
    scratch
        .run("tavern-status", &[])
        .says("raise `budget: {minutes: …}` of it or of its role; bring it back: tavern retry T-1");
    scratch.write(CONFIG, settings.replace("0.01", "-1"));
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("invalid amount for `minutes`");
}

#[test]
fn two_runs_at_once_use_a_queues_minutes_up_in_half_the_time() {
    let scratch = board("budget: {queue: {minutes: 0.2}}\n");
    scratch.run("tavern-drain", &["--agents", "2"]).ends(7);
    let seconds: i64 = scratch
        .records("tavern-runs", &["list"])
        .iter()
        .map(length)
        .sum();
    // Each is measured every five seconds, and by its own limit.
    assert!((12..24).contains(&seconds), "{seconds}");
}

#[test]
fn an_agent_ends_when_its_runs_have_taken_what_it_was_given() {
    let scratch = board("");
    let ran = scratch
        .run("tavern-agent", &["--max-minutes", "0.05"])
        .ends(7);
    assert!(
        ran.stderr
            .contains("ends: 0.1 of 0.1 minutes of the agent's budget are used"),
        "{ran}"
    );
    scratch.stands("T-1", "pending", 0);
    scratch.run("tavern-agent", &["--max-usd", "-1"]).ends(2);
}

#[test]
fn caps_that_are_no_amounts_or_that_a_runner_does_not_count_for_are_told() {
    let scratch = board("budget:\n  day:\n    usd: -1\n");
    let wrong = scratch.run("tavern-check", &[]).ends(5);
    assert!(
        wrong.stdout.contains("invalid amount for `usd`")
            && wrong.stdout.contains("config.yaml:3:5"),
        "{wrong}"
    );
    scratch.write(CONFIG, "budget: {day: {usd: 5, minutes: 9}}\n");
    let told = scratch.run("tavern-check", &[]);
    let words = "role `coder`: the runner `shell` does not report its usage, so `budget` in `usd` does not count its runs";
    assert!(
        told.stdout.contains(words) && !told.stdout.contains("`minutes` do not"),
        "{told}"
    );
}

#[test]
fn what_is_begun_once_more_under_one_claim_counts_twice() {
    let scratch = Scratch::pending("- [ ] T-1: Nap\n  ```sh\n  sleep 2\n  ```\n");
    let claimed = scratch.json("tavern-claim", &["--task", "T-1"]);
    let token = claimed["lease"]["token"].to_string();
    for _ in 0..2 {
        scratch
            .run("tavern-spawn", &["T-1", "--token", &token])
            .ends(0);
    }
    scratch.write(CONFIG, "budget: {board: {minutes: 0.05}}\n");
    let status = scratch.run("tavern-status", &[]).succeeds();
    assert!(
        status.contains("spent: 0.1 of 0.1 minutes of the board's budget are used"),
        "{status}"
    );
    scratch
        .run("tavern-spawn", &["T-1", "--token", &token])
        .ends(7);
}

#[test]
fn a_share_that_several_runs_pass_is_told_once() {
    let nap = |id: &str| format!("- [ ] {id}: Nap\n  ```sh\n  sleep 60\n  ```\n");
    let scratch = Scratch::shell(
        &(nap("T-1") + &nap("T-2")),
        "budget: {board: {minutes: 0.25}}\ngrace: 1s\n",
    );
    let agents = ["Frodo", "Sam"].map(|name| {
        scratch
            .program("tavern-agent")
            .args(&["--name", name, "--once"])
            .start()
    });
    agents.into_iter().for_each(|agent| drop(agent.end()));
    let told = scratch.run("tavern-log", &["--diagnoses"]).succeeds();
    for share in ["50 %: ", "75 %: ", "90 %: ", "100 %: "] {
        assert!(told.matches(share).count() <= 1, "{told}");
    }
    assert!(told.contains("50 %: ") || told.contains("75 %: "), "{told}");
}
