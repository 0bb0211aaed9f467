//! Agents, supervisors and boards that are ended in the middle: work is kept, sessions go on, nothing is left running.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::project::{HOLD, Project, bash, lines, say};
use crate::support::wait_until;

const ITEM: &str = "- [ ] T-1: Write hello\n";
const COMMIT: &str = "echo hi > hello && git add -A && git commit -qm 'Say hello'";

/// An agent that has begun, and stands in the middle of a command in a session of its own; and how it goes on.
fn in_the_middle() -> Project {
    let hold = bash(&format!("echo half > half; (setsid sleep 1000 &); {HOLD}"));
    Project::new(ITEM, json!([hold, bash(COMMIT), say("DONE")]))
}

fn assert_went_on(project: &Project, outcomes: &[&str], attempt: u32) {
    let item = project.item("T-1");
    assert_eq!((&item["status"], &item["attempt"]), (&json!("completed"), &json!(attempt)), "{item:#}");
    assert_eq!(project.outcomes(), outcomes);
    let runs = project.runs();
    assert!(runs.windows(2).all(|pair| pair[0]["session"] == pair[1]["session"]), "{runs:#?}");
    assert!(project.merged("half").is_some(), "what was there before is there");
    assert!(project.merged("hello").is_some());
    project.assert_tidy();
}

#[test]
fn a_killed_agent_has_crashed_and_is_started_again() {
    let project = in_the_middle();
    let agent = project.agent().start();
    project.wait_for_hold();
    project.let_go();
    project.kill("claude");
    agent.end().succeeds();
    assert_went_on(&project, &["crashed", "success"], 2);
    let run = &project.runs()[0];
    assert_eq!(run["reason"], "was ended by signal 9 without an answer", "{run:#}");
    assert_eq!(run["usage"]["output"], 150, "{run:#}");
    assert!(project.provider.calls()[1].prompt().contains("Attempt 1 ended: crashed"));
}

#[test]
fn a_killed_supervisor_is_succeeded() {
    let project = in_the_middle();
    let agent = project.agent().start();
    project.wait_for_hold();
    agent.signal(Signal::KILL);
    drop(agent.end());
    // The agent and its commands live on, in sessions of their own.
    assert!(project.processes().len() >= 3, "{:?}", project.processes());
    let told = project.work();
    let cleared: Vec<&Value> = told.iter().filter(|told| told["event"] == "cleared").collect();
    assert_eq!(cleared.len(), 2, "{told:#?}");
    assert_went_on(&project, &["killed", "success"], 1);
    let run = &project.runs()[0];
    assert_eq!(run["reason"], "its supervisor died", "{run:#}");
    assert_eq!((&run["usage"]["output"], &run["usage"]["is_estimate"]), (&json!(150), &json!(true)), "{run:#}");
}

#[test]
fn ctrl_c_ends_politely_and_uses_no_attempt() {
    let project = in_the_middle();
    let agent = project.agent().start();
    project.wait_for_hold();
    agent.signal(Signal::INT);
    let ended = agent.end();
    assert_eq!(ended.code, Some(130), "{ended}");
    project.assert_tidy();
    let item = project.item("T-1");
    assert_eq!(
        (&item["status"], &item["attempt"], &item["not_before"]),
        (&json!("pending"), &json!(0), &Value::Null),
        "{item:#}"
    );
    assert!(project.worktree("T-1", "half").exists());
    let run = &project.runs()[0];
    assert_eq!((&run["outcome"], &run["reason"]), (&json!("killed"), &json!("it was stopped")), "{run:#}");
    // It was asked, and gave its own account.
    assert!(run["usage"]["is_estimate"].is_null() && run["usage"]["output"] == 150, "{run:#}");
    project.let_go();
    project.work();
    assert_went_on(&project, &["killed", "success"], 1);
}

#[test]
fn a_second_ctrl_c_hurries() {
    let project = Project::with(json!({"grace": "1h"}), ITEM, json!([bash(&format!("trap '' INT TERM; {HOLD}"))]));
    let agent = project.agent().start();
    project.wait_for_hold();
    agent.signal(Signal::INT);
    wait_until("it has begun to end", || project.scratch.read(".tavern/runs/T-1@1/thread.jsonl").contains("tavern-"));
    agent.signal(Signal::INT);
    let ended = agent.end();
    assert_eq!(ended.code, Some(130), "{ended}");
    project.assert_tidy();
    assert_eq!(project.outcomes(), ["killed"]);
}

#[test]
fn the_stop_file_ends_every_agent_and_a_drain() {
    let project = in_the_middle();
    let drain = project.scratch.program("tavern-drain").args(&["--agents", "2", "--format", "json"]).start();
    project.wait_for_hold();
    project.scratch.write(".tavern/STOP", "the fire alarm\n");
    let ended = drain.end();
    assert_eq!(ended.code, Some(1), "{ended}");
    project.assert_tidy();
    assert!(ended.stderr.contains("the fire alarm"), "{ended}");
    let summary = &lines(&ended.stdout)[0];
    assert_eq!(summary["left"][0]["task"], "T-1", "{summary:#}");
    assert_eq!(project.outcomes(), ["killed"]);
    assert_eq!(project.item("T-1")["attempt"], 0);
    // Nothing begins while it is there.
    let refused = project.scratch.run("tavern-drain", &[]);
    assert_eq!(refused.code, Some(4), "{refused}");
    std::fs::remove_file(project.scratch.work().join(".tavern/STOP")).expect("it is ours");
    project.let_go();
    project.work();
    assert_went_on(&project, &["killed", "success"], 1);
}

#[test]
fn ctrl_c_ends_a_whole_drain() {
    let project = in_the_middle();
    let drain = project.scratch.program("tavern-drain").args(&["--agents", "1", "--quiet"]).start();
    project.wait_for_hold();
    drain.signal(Signal::INT);
    let ended = drain.end();
    assert_eq!(ended.code, Some(130), "{ended}");
    project.assert_tidy();
    assert_eq!(project.outcomes(), ["killed"]);
    assert_eq!(project.item("T-1")["attempt"], 0);
}
