//! What ends a run before its agent would, and what follows from it.

use serde_json::{Value, json};

use super::project::{Project, bash, say};

/// The one run of an item with one attempt, under `settings`.
fn one_run(settings: Value, item: &str, steps: Value) -> (Project, Value) {
    let mut all = json!({"max_attempts": 1});
    super::project::merge(&mut all, settings);
    let project = Project::with(all, item, steps);
    project.work();
    let item = project.item("T-1");
    assert_eq!((&item["status"], &item["attempt"]), (&json!("dead"), &json!(1)), "{item:#}");
    let mut runs = project.runs();
    assert_eq!(runs.len(), 1, "{runs:#?}");
    let run = runs.remove(0);
    assert_eq!(item["reason"], run["reason"]);
    (project, run)
}

fn again_and_again(mut step: Value) -> Value {
    step["repeat"] = json!(true);
    json!([step])
}

const ITEM: &str = "- [ ] T-1: Work\n";

#[test]
fn what_is_not_allowed_is_in_the_outcome() {
    let settings = json!({"roles": {"coder": {"permission_mode": "default", "allowed_tools": []}}});
    let (project, run) = one_run(settings, ITEM, json!([bash("touch made"), say("I could not.")]));
    assert_eq!(run["outcome"], "permission_denied", "{run:#}");
    let denial = run["denials"][0].as_str().unwrap_or_default();
    assert!(denial.starts_with("Bash ") && denial.contains("touch made"), "{run:#}");
    assert!(project.scratch.run("tavern-runs", &["show", "T-1"]).succeeds().contains("denied    Bash "));
}

#[test]
fn turns_are_bounded() {
    let settings = json!({"roles": {"coder": {"budget": {"turns": 2}}}});
    let (_, run) = one_run(settings, ITEM, again_and_again(bash("true")));
    assert_eq!(run["outcome"], "budget", "{run:#}");
    assert!(run["reason"].as_str().is_some_and(|reason| reason.contains("turns (2)")), "{run:#}");
}

#[test]
fn money_is_bounded_by_the_item_before_the_role() {
    let settings = json!({"roles": {"coder": {"budget": {"usd": 100}}}});
    let item = "- [ ] T-1: Work (budget: {usd: 0.02})\n";
    let (_, run) = one_run(settings, item, again_and_again(bash("true")));
    assert_eq!(run["outcome"], "budget", "{run:#}");
    assert!(run["reason"].as_str().is_some_and(|reason| reason.contains("maximum budget ($0.02)")), "{run:#}");
    assert!(run["usage"]["usd"].as_f64().is_some_and(|usd| (0.02..0.1).contains(&usd)), "{run:#}");
}

#[test]
fn tokens_are_bounded() {
    let settings = json!({"roles": {"coder": {"budget": {"tokens": 1000}}}});
    let (_, run) = one_run(settings, ITEM, json!([bash("sleep 2.1"), bash("sleep 300")]));
    assert_eq!((&run["outcome"], &run["reason"]), (&json!("budget"), &json!("token limit reached")), "{run:#}");
}

#[test]
fn a_stalled_stream_is_bounded() {
    let settings = json!({"roles": {"coder": {"idle": "2s"}}});
    let (_, run) = one_run(settings, ITEM, again_and_again(json!({"text": "half of", "stall": true})));
    let reason = "no sign of life for too long";
    assert_eq!((&run["outcome"], &run["reason"]), (&json!("timeout"), &json!(reason)), "{run:#}");
}

#[test]
fn time_and_memory_bound_every_kind_of_program() {
    let rows = [
        ("{minutes: 0.01}", "echo begun; sleep 1000", "timeout", "time limit reached"),
        (
            "{memory_mb: 100}",
            "echo begun; head -c 300000000 /dev/zero | tail -c 300000000 | sleep 1000",
            "budget",
            "memory limit exceeded",
        ),
    ];
    for (budget, script, outcome, reason) in rows {
        let item = format!("- [ ] T-1: Work (runner: shell, budget: {budget})\n  ```sh\n  {script}\n  ```\n");
        let (project, run) = one_run(json!({}), &item, json!([]));
        assert_eq!((&run["outcome"], &run["reason"]), (&json!(outcome), &json!(reason)), "{run:#}");
        // What it had to say until then is kept.
        assert_eq!(project.scratch.read(".tavern/runs/T-1@1/result.txt").trim_end(), "begun");
    }
}
