//! Failures of providers and programs, which are not the agent's.

use serde_json::json;

use super::project::{COMMIT, ITEM, Project, fail, run};
use crate::support::{CONFIG, has};

#[test]
fn a_limit_a_bad_key_and_an_overload_use_no_attempt() {
    let internal = |details: &str| json!({"code": -32603, "message": "Internal error", "data": {"details": details}});
    for (error, outcome) in [
        (
            internal("429 Rate limit reached, try again in 3h"),
            "usage_limit",
        ),
        (internal("401 Incorrect API key provided"), "auth"),
        (
            json!({"code": -32000, "message": "Authentication required"}),
            "auth",
        ),
        (
            json!({"code": 503, "message": "{\"error\":{\"code\":503,\"message\":\"The model is overloaded\"}}"}),
            "overloaded",
        ),
        (
            json!({"code": -32603, "message": "Internal error: Incorrect API key provided", "data": {"errorName": "APIError"}}),
            "auth",
        ),
    ] {
        let project = Project::new(ITEM, json!([fail(error.clone()), run(COMMIT, "DONE")]));
        project.run_once("coder");
        assert_eq!(project.outcomes(), [outcome], "{error}");
        project.scratch.stands("T-1", "pending", 0);
        let quota = project.scratch.read(".tavern/quota/agent.yaml");
        if outcome == "usage_limit" {
            has(&quota, &["until"]);
            let resets = project.runs()[0]["resets_at"].clone();
            assert!(resets.is_string(), "{resets}");
        }
    }
}

#[test]
fn an_outage_is_waited_out_twice_as_long_each_time() {
    let error = json!({"code": 503, "message": "The model is overloaded"});
    let mut step = fail(error);
    step["repeat"] = json!(true);
    let settings =
        json!({"outcomes": {"overloaded": {"backoff": "1000s", "max_backoff": "3000s"}}});
    let project = Project::with(settings, ITEM, json!({}), json!([step]));
    let quota = project.scratch.work().join(".tavern/quota/agent.yaml");
    for least in [1000, 2000, 3000, 3000] {
        project.run_once("coder");
        let until = project.scratch.read(&quota);
        let until = until
            .lines()
            .find_map(|line| line.strip_prefix("closed_until: "))
            .expect("it is closed");
        let until = chrono::DateTime::parse_from_rfc3339(until.trim_matches(['\'', '"']))
            .expect("it is a time");
        let wait = (until.to_utc() - chrono::Utc::now()).num_seconds();
        // A tenth at most comes on top, and the program has ended since.
        assert!(
            (least - 30..least + 15).contains(&wait),
            "{wait} s, not {least}"
        );
        std::fs::remove_file(&quota).expect("it is ours");
    }
    project.scratch.stands("T-1", "pending", 0);
}

#[test]
fn an_error_of_its_own_is_a_failed_attempt() {
    let error = json!({"code": -32603, "message": "Internal error: the tool crashed"});
    let project = Project::new(ITEM, json!([fail(error), run(COMMIT, "DONE")]));
    project.work();
    project.scratch.stands("T-1", "completed", 2);
    assert_eq!(project.outcomes(), ["failed", "success"]);
    has(
        &project.runs()[0]["reason"].to_string(),
        &["the tool crashed"],
    );
}

#[test]
fn a_provider_that_never_answers_ends_the_run_and_is_no_attempt() {
    for habits in [
        json!({}),
        json!({"when_cancelled": "end"}),
        json!({"when_cancelled": "fail"}),
    ] {
        let settings = json!({"roles": {"coder": {"idle": "1s", "prods": 3}}});
        let project = Project::with(
            settings,
            ITEM,
            habits.clone(),
            json!([{"do": [{"hang": true}]}]),
        );
        project.run_once("coder");
        assert_eq!(project.outcomes(), ["overloaded"]);
        project.scratch.stands("T-1", "pending", 0);
        has(
            &project.runs()[0]["reason"].to_string(),
            &["its model did not answer"],
        );
        assert_eq!(project.sent("session/cancel").len(), 1, "it is not prodded");
    }
}

#[test]
fn an_agent_that_falls_silent_in_the_middle_is_woken() {
    let settings = json!({"roles": {"coder": {"idle": "1s", "prods": 1}}});
    let steps =
        json!([{"do": [{"say": "I think about it."}, {"hang": true}]}, run(COMMIT, "DONE")]);
    let project = Project::with(settings, ITEM, json!({}), steps);
    project.work();
    project.scratch.stands("T-1", "completed", 1);
    assert_eq!(project.sent("session/cancel").len(), 1);
    assert_eq!(project.prompts().len(), 2);
}

#[test]
fn codex_with_its_own_sandbox_in_one_is_refused_before_it_starts() {
    let project = Project::new(ITEM, json!([]));
    for name in ["codex", "codex-acp"] {
        project
            .scratch
            .executable(&format!("../bin/{name}"), "#!/bin/sh\n");
    }
    let bin = project.scratch.folder().join("bin");
    let check = |sandbox: bool, runner: &str| {
        let runner = runner.replace("BIN", &bin.display().to_string());
        let config = format!(
            "base: main\nroles: {{coder: {{runner: codex, sandbox: {sandbox}}}}}\nrunners: {{codex: {{{runner}}}}}\n"
        );
        project.scratch.write(CONFIG, config);
        let ran = project.scratch.run("tavern-check", &[]);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let exec = "command: [BIN/codex, exec, --sandbox, workspace-write, -]";
    let acp = "kind: acp, mode: auto, command: [BIN/codex-acp]";
    let own = "which fails in Tavern's";
    has(
        &check(true, exec),
        &[
            "the runner `codex` has codex's own",
            own,
            "danger-full-access",
        ],
    );
    has(
        &check(true, acp),
        &["in the mode `auto`", own, "mode: full-access"],
    );
    has(
        &check(false, "command: [BIN/codex, exec, --full-auto, -]"),
        &["`--full-auto`", "is gone"],
    );
    for (sandbox, works) in [
        (false, exec),
        (false, acp),
        (
            true,
            "command: [BIN/codex, exec, --sandbox, danger-full-access, -]",
        ),
        (true, "kind: acp, command: [BIN/codex-acp]"),
    ] {
        let told = check(sandbox, works);
        assert!(!told.contains("in Tavern's"), "{told}");
    }
}

#[test]
fn a_program_that_ends_or_speaks_something_else_is_said_to() {
    let project = Project::new(ITEM, json!([{"do": [{"exit": 3}]}, run(COMMIT, "DONE")]));
    project.work();
    assert_eq!(project.outcomes(), ["crashed", "success"]);
    let project = Project::with(
        json!({"max_attempts": 1}),
        ITEM,
        json!({"version": 7}),
        json!([]),
    );
    project.run_once("coder");
    has(
        &project.runs()[0]["reason"].to_string(),
        &["version 7 of the Agent Client Protocol"],
    );
}
