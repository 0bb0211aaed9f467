//! Failures of providers and programs, which are not the agent's.

use serde_json::json;

use super::project::{COMMIT, ITEM, Project, fail, run};
use crate::support::has;

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
