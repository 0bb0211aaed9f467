//! Agents, supervisors and boards that are ended in the middle: work is kept, sessions go on, nothing is left running.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::project::{COMMIT, HOLD, ITEM, Project, bash, say};

/// An agent that has begun, and stands in the middle of a command in a session of its own; and how it goes on.
fn in_the_middle() -> Project {
    let hold = bash(&format!("echo half > half; (setsid sleep 1000 &); {HOLD}"));
    Project::new(ITEM, json!([hold, bash(COMMIT), say("DONE")]))
}

fn assert_went_on(project: &Project, outcomes: &[&str], attempt: u32) {
    project.scratch.stands("T-1", "completed", attempt);
    assert_eq!(project.outcomes(), outcomes);
    let sessions = project.sessions();
    assert!(
        sessions.windows(2).all(|pair| pair[0] == pair[1]),
        "{sessions:#?}"
    );
    assert!(
        project.merged("half").is_some(),
        "what was there before is there"
    );
    assert!(project.merged("hello").is_some());
    project.assert_tidy();
}

#[test]
fn a_killed_agent_has_crashed_and_is_started_again() {
    let project = in_the_middle();
    let agent = project.agent().start();
    project.wait_for_hold();
    project.kill("claude");
    project.let_go();
    agent.end().succeeds();
    assert_went_on(&project, &["crashed", "success"], 2);
    let run = &project.runs()[0];
    assert_eq!(
        run["reason"], "was ended by signal 9 without an answer",
        "{run:#}"
    );
    assert_eq!(run["usage"]["output"], 150, "{run:#}");
    assert!(
        project.provider.calls()[1]
            .prompt()
            .contains("Attempt 1 ended: crashed")
    );
}

#[test]
fn a_killed_supervisor_is_succeeded() {
    let project = in_the_middle();
    // As those have it who keep their settings elsewhere: what was used up is read through the link.
    let home = project.scratch.folder().join("home");
    std::fs::create_dir_all(home.join("dotfiles/claude")).expect("it is ours");
    std::os::unix::fs::symlink("dotfiles/claude", home.join(".claude")).expect("it is ours");
    let agent = project.agent().start();
    project.wait_for_hold();
    agent.signal(Signal::KILL);
    drop(agent.end());
    // The agent and its commands live on, in sessions of their own.
    assert!(
        project.scratch.processes().len() >= 3,
        "{:?}",
        project.scratch.processes()
    );
    let told = project.work();
    let cleared: Vec<&Value> = told
        .iter()
        .filter(|told| told["event"] == "cleared")
        .collect();
    assert_eq!(cleared.len(), 2, "{told:#?}");
    assert_went_on(&project, &["killed", "success"], 1);
    let run = &project.runs()[0];
    assert_eq!(run["reason"], "its supervisor died", "{run:#}");
    assert_eq!(
        (&run["usage"]["output"], &run["usage"]["is_estimate"]),
        (&json!(150), &json!(true)),
        "{run:#}"
    );
}

#[test]
fn ctrl_c_ends_politely_and_uses_no_attempt() {
    let project = in_the_middle();
    let agent = project.agent().start();
    project.wait_for_hold();
    agent.signal(Signal::INT);
    agent.end().ends(130);
    project.assert_tidy();
    assert_eq!(
        project.scratch.stands("T-1", "pending", 0)["not_before"],
        Value::Null
    );
    assert!(project.worktree("T-1", "half").exists());
    let run = &project.runs()[0];
    assert_eq!(
        (&run["outcome"], &run["reason"]),
        (&json!("killed"), &json!("it was stopped")),
        "{run:#}"
    );
    // It was asked, and gave its own account.
    assert!(
        run["usage"]["is_estimate"].is_null() && run["usage"]["output"] == 150,
        "{run:#}"
    );
    project.let_go();
    project.work();
    assert_went_on(&project, &["killed", "success"], 1);
}

#[test]
fn the_stop_file_ends_every_agent_and_a_drain() {
    let project = in_the_middle();
    let drain = project
        .scratch
        .program("tavern-drain")
        .args(&["--agents", "2", "--format", "json"])
        .start();
    project.wait_for_hold();
    project.scratch.write(".tavern/STOP", "the fire alarm\n");
    let ended = drain.end().ends(1).says("the fire alarm");
    project.assert_tidy();
    let summary = ended.json();
    assert_eq!(summary["left"][0]["task"], "T-1", "{summary:#}");
    assert_eq!(project.outcomes(), ["killed"]);
    assert_eq!(project.item("T-1")["attempt"], 0);
    // Nothing begins while it is there.
    project.scratch.run("tavern-drain", &[]).ends(4);
    std::fs::remove_file(project.scratch.work().join(".tavern/STOP")).expect("it is ours");
    project.let_go();
    project.work();
    assert_went_on(&project, &["killed", "success"], 1);
}
