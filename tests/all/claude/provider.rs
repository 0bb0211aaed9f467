//! A provider that refuses, limits or fails: the runner is closed for the board, and no attempt is used.

use serde_json::{Value, json};

use super::project::{COMMIT, ITEM, Project, bash, say};
use crate::support::{has, wait_until};

const QUOTA: &str = ".tavern/quota/claude.yaml";

/// What the agent tells of a runner that it closed.
fn closings(told: &[Value]) -> Vec<&Value> {
    told.iter()
        .filter(|told| told["event"] == "closed")
        .collect()
}

#[test]
fn a_refused_key_closes_the_runner_and_ends_a_drain() {
    let items = "- [ ] T-1: Write hello\n- [ ] T-2: Write more\n- [ ] T-3: Need nobody (runner: shell)\n  ```sh\n  echo x > x\n  ```\n";
    let steps = json!([{"error": 401, "message": "invalid x-api-key", "repeat": true}]);
    let project = Project::with(
        json!({"notify": {"mine": {"file": "../told"}}}),
        items,
        steps,
    );
    let drained = project
        .scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(1);
    project.assert_tidy();
    let said: Vec<&str> = drained
        .stderr
        .lines()
        .filter(|line| line.contains("closed until"))
        .collect();
    assert!(
        said.len() == 1 && said[0].contains("Invalid API key · Fix external API key; sign in"),
        "{drained}"
    );
    assert!(
        drained.stdout.starts_with("1 of 3 completed, 2 left"),
        "{drained}"
    );
    assert_eq!(project.scratch.stands("T-1", "pending", 0)["returns"], 1);
    assert_eq!(project.item("T-2")["runs"], json!([]));
    has(
        &project.scratch.read(QUOTA),
        &["needs_person: true", "Invalid API key"],
    );
    let told = project.scratch.read("../told");
    assert_eq!(told.lines().count(), 1, "{told}");
    has(
        &told,
        &[
            "needs_you: runner claude is closed: ",
            "Invalid API key",
            "rm .tavern/quota/claude.yaml",
        ],
    );
}

/// The CLI tries again by itself.
#[test]
fn one_refusal_ends_nothing() {
    let steps = json!([{"error": 401, "message": "invalid x-api-key"}, bash(COMMIT), say("DONE")]);
    let project = Project::new(ITEM, steps);
    let told = project.work();
    assert_eq!(
        (project.outcomes(), closings(&told).len()),
        (vec!["success".to_owned()], 0),
        "{told:#?}"
    );
}

#[test]
fn a_limit_closes_the_runner_until_its_end_or_until_its_file_goes() {
    let limit = "You have reached your specified API usage limits. You will regain access on 2096-12-01 at 00:00 UTC.";
    let steps = json!([
        bash("echo begun > begun"),
        {"error": 400, "message": limit},
        bash(COMMIT), say("DONE"),
    ]);
    let project = Project::new(ITEM, steps);
    let agent = project.agent().start();
    let quota = project.scratch.work().join(QUOTA);
    wait_until("the runner is closed", || quota.exists());
    wait_until("the agent waits", || {
        project
            .scratch
            .read(".tavern/agents/Frodo.yaml")
            .contains("state: waiting")
    });
    has(
        &project.scratch.read(QUOTA),
        &["closed_until: 2096-12-01T00:00:0"],
    );
    assert_eq!(project.runs()[0]["resets_at"], "2096-12-01T00:00:00Z");
    let item = project.scratch.stands("T-1", "pending", 0);
    assert_eq!(
        (&item["returns"], &item["not_before"]),
        (&json!(1), &Value::Null),
        "{item:#}"
    );
    assert!(
        project.worktree("T-1", "begun").exists(),
        "the work is kept"
    );
    assert!(
        project
            .scratch
            .run("tavern-status", &[])
            .succeeds()
            .contains("claude"),
        "a person is told"
    );
    std::fs::remove_file(&quota).expect("it is ours");
    let told = agent.end().ends(0).records();
    project.assert_tidy();
    assert_eq!(closings(&told).len(), 1, "{told:#?}");
    project.scratch.stands("T-1", "completed", 1);
    assert_eq!(project.outcomes(), ["usage_limit", "success"]);
    // It went on with what it knew.
    let sessions = project.sessions();
    assert_eq!(sessions[0], sessions[1]);
    has(
        &project.provider.calls()[2].prompt(),
        &["Attempt 1 ended: usage_limit"],
    );
    assert!(project.merged("begun").is_some() && project.merged("hello").is_some());
}

#[test]
fn short_limits_are_waited_out() {
    // The CLI itself waits as it is told; without that it gives up soon, and the board waits.
    let steps = json!([
        {"error": 429, "message": "slow down", "headers": {"retry-after": "1"}},
        {"error": 429, "message": "too much", "repeat": 2},
        {"error": 529, "message": "Overloaded", "repeat": 2},
        bash(COMMIT), say("DONE"),
    ]);
    let soon = json!({"backoff": "1s"});
    let project = Project::with(
        json!({"outcomes": {"usage_limit": soon, "overloaded": soon}}),
        ITEM,
        steps,
    );
    let told = project.work();
    assert_eq!(project.outcomes(), ["usage_limit", "overloaded", "success"]);
    project.scratch.stands("T-1", "completed", 1);
    assert_eq!(closings(&told).len(), 2, "{told:#?}");
    assert!(
        told.iter().any(|told| told["event"] == "waiting"),
        "{told:#?}"
    );
}
