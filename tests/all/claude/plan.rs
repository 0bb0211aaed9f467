//! The real CLI as a planner: it reads, writes a plan, hears in its own session what is wrong with it, and is done.

use serde_json::json;

use super::project::{Project, answer, bash, say};
use crate::support::has;

const PLAN: &str = "- [ ] P-1: Say hi (priority: 1)\n  See README.md.\n\n  ```yaml task\n  \
    done_when: [grep -q hi hello]\n  touches: [hello]\n  ```\n- [ ] P-2: Say it twice (after: P-1, done_when: \"test 2 = \
    $(wc -l < hello)\")";

#[test]
fn a_request_is_planned_and_worked() {
    let steps = json!([
        bash("ls && git log --oneline && ! git symbolic-ref -q HEAD && touch mine"),
        say("I think that two items will do."),
        say("It is a small project."),
        answer(json!({"plan": "- [ ] P-1: Say hi"})),
        answer(json!({"plan": PLAN})),
        bash("echo hi > hello && git add -A && git commit -qm 'Say hi'"),
        say("DONE"),
        bash("echo ho >> hello && git commit -qam 'Say it twice'"),
        say("DONE"),
    ]);
    let project = Project::with(
        json!({"roles": {"planner": {"runner": "claude", "prods": 1}}}),
        "",
        steps,
    );
    let added = project
        .scratch
        .run("tavern-plan", &["Build a greeting", "--id", "T-1"])
        .succeeds();
    assert_eq!(added, "T-1\n");
    let planner = project
        .agent()
        .args(&["--role", "planner"])
        .run()
        .succeeds();
    assert!(planner.contains("\"reason\":\"T-1.1, T-1.2\""), "{planner}");
    project.assert_tidy();
    assert_eq!(project.outcomes(), ["failed", "success"]);

    let calls = project.provider.calls();
    assert_eq!(calls.len(), 5);
    let first = [
        "working as planner",
        "Task: T-1: Build a greeting",
        "Roles that take items:\n- coder",
        "- README.md",
    ];
    has(&calls[0].prompt(), &first);
    has(&calls[1].messages(), &["Begin"]);
    has(
        &calls[2].prompt(),
        &["You MUST call the StructuredOutput tool"],
    );
    has(
        &calls[3].prompt(),
        &[
            "Finish your plan for task\nT-1 (Build a greeting) now",
            "call StructuredOutput once",
        ],
    );
    assert_eq!(
        calls[4].session, calls[0].session,
        "it goes on in its session"
    );
    has(
        &calls[4].prompt(),
        &[
            "Your last plan was rejected",
            "plan.md:1:7: error: it has no `done_when`",
        ],
    );
    has(&calls[4].messages(), &["It is a small project."]);

    project.work();
    let status = |task: &str| project.item(task)["status"].clone();
    assert_eq!(
        ["T-1", "T-1.1", "T-1.2"].map(status),
        ["completed", "completed", "completed"]
    );
    assert_eq!(project.merged("hello").as_deref(), Some("hi\nho\n"));
    assert_eq!(
        project.merged("mine"),
        None,
        "what the planner wrote is thrown away"
    );
}

#[test]
fn a_planner_asks_in_the_form_of_its_answer() {
    let steps = json!([
        answer(json!({"plan": "", "question": "which language?"})),
        answer(json!({"plan": PLAN}))
    ]);
    let project = Project::with(
        json!({"roles": {"planner": {"runner": "claude", "prods": 1}}}),
        "",
        steps,
    );
    project
        .scratch
        .run("tavern-plan", &["Build a greeting", "--id", "T-1"])
        .succeeds();
    let planner = || {
        project
            .agent()
            .args(&["--role", "planner"])
            .run()
            .succeeds()
    };
    planner();
    project
        .scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("waiting")
        .says("which language?");
    project
        .scratch
        .run("tavern-tell", &["T-1", "English"])
        .succeeds();
    planner();
    has(
        &project.provider.calls()[1].prompt(),
        &["<answered>\nEnglish"],
    );
    assert_eq!(project.item("T-1.2")["title"], "Say it twice");
}
