//! A drone with the real CLI: one run of a cheaper model, and no second one.

use serde_json::json;

use super::project::{Project, bash, say};

#[test]
fn a_drone_is_a_cheaper_model_and_has_one_run() {
    let steps = json!([
        bash("echo hi > hello && git add -A && git commit -qm 'Say hello'"),
        say("DONE"),
        say("I could not.\n\nDONE"),
    ]);
    let items = "- [ ] T-1: Say hello (role: drone)\n- [ ] T-2: Do the impossible (role: drone)\n";
    let project = Project::new(items, steps);
    for _ in 0..2 {
        project.agent().args(&["--role", "drone"]).run().ends(0);
    }
    project.assert_tidy();
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    assert_eq!(project.item("T-1")["status"], "completed");
    let left = project.item("T-2");
    assert_eq!((&left["status"], &left["attempt"]), (&json!("dead"), &json!(1)), "no second run: {left:#}");
    let calls = project.provider.calls();
    let models: Vec<&str> = calls.iter().filter_map(|call| call.body["model"].as_str()).collect();
    assert!(models.len() == 3 && models.iter().all(|model| model.contains("haiku")), "{models:?}");
    assert!(calls[0].prompt().contains("one small task, one try"), "{}", calls[0].prompt());
}

#[test]
fn one_that_had_a_single_attempt_is_brought_back_with_a_clear_head() {
    let items = "- [ ] T-1: Say hello (max_attempts: 1, done_when: test -s hello)\n\
                 - [ ] T-2: Say it twice (max_attempts: 1, on_failure: retry, done_when: test -s twice)\n";
    let steps = json!([
        say("I could not.\n\nDONE"),
        say("I could not.\n\nDONE"),
        bash("echo hi > twice && git add -A && git commit -qm 'Say it twice'"),
        say("DONE"),
        bash("echo hi > hello && git add -A && git commit -qm 'Say hello'"),
        say("DONE"),
    ]);
    let project = Project::new(items, steps);
    project.work();
    assert_eq!(project.item("T-1")["status"], "dead");
    project.scratch.run("tavern-release", &["T-1", "--revive"]).succeeds();
    project.work();
    for task in ["T-1", "T-2"] {
        assert_eq!(project.item(task)["status"], "completed", "{}", project.log());
        let sessions: Vec<_> =
            project.runs().into_iter().filter(|run| run["task"] == task).map(|run| run["session"].clone()).collect();
        assert!(sessions.len() == 2 && sessions[0] != sessions[1], "{task}: {sessions:?}");
    }
}
