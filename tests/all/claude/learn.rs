//! What the agents' own words tell: discoveries, and who is told of them.

use serde_json::{Value, json};

use super::project::{COMMIT, Project, bash, of, say};
use crate::support::has;

/// A step in which the model says `text`, and makes the call of `step`.
fn saying(text: &str, mut step: Value) -> Value {
    step["text"] = json!(text);
    step
}

#[test]
fn what_an_agent_says_that_it_learned_is_known_to_later_work() {
    let items = "- [ ] T-1: Write hello (tags: api, touches: [hello])\n- [ ] T-2: Use it (after: T-1, tags: api)\n";
    let sub = json!({"description": "sub", "prompt": "do it", "subagent_type": "general-purpose"});
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let many: String = (1..30).map(|number| format!("LEARNED: Fact {number}.\n")).collect();
    let one = |step: Value| of("Task: T-1", step);
    let two = |step: Value| of("Task: T-2", step);
    let steps = json!([
        one(saying("LEARNED: Say it inside.", json!({"tool": "Task", "input": sub}))),
        one(saying("I see:\n- **Learned:** It needs a slash.\n```\nLEARNED: Quoted.\n```", bash(COMMIT))),
        one(say(&format!(
            "LEARNED: It needs a slash.\nLEARNED: The key is {key}\nLEARNED: {}\n\nDONE",
            "x".repeat(5000)
        ))),
        two(saying("LEARNED: It needs a slash.", bash("echo 2 > two && git add -A && git commit -qm Two"))),
        two(say(&format!("{many}\nDONE"))),
        say("LEARNED: A sub-agent says so."),
        one(say("DONE")),
    ]);
    let project = Project::with(json!({"roles": {"coder": {"allowed_tools": ["Bash", "Task"]}}}), items, steps);
    project.work();
    let known = project.scratch.records("tavern-learn", &["list"]);
    let of_run = |run: &str| {
        known.iter().filter(|known| known["run"].as_str().is_some_and(|name| name.starts_with(run))).collect::<Vec<_>>()
    };
    let mut texts: Vec<&str> = of_run("T-1@").iter().filter_map(|known| known["text"].as_str()).collect();
    texts.sort_unstable();
    assert_eq!(texts[..2], ["It needs a slash.", "Say it inside."], "{texts:?}");
    assert!(texts.len() == 3 && texts[2].starts_with("The key is [redacted"), "{texts:?}");
    let slash = known.iter().find(|known| known["text"] == "It needs a slash.").expect("it was said");
    let is_said = json!({"kind": "learning", "by": "Frodo", "task": "T-1", "tags": ["api"], "scope": ["hello"], "state": "valid"});
    for (key, value) in is_said.as_object().expect("it is one") {
        assert_eq!(&slash[key], value, "{slash}");
    }
    assert!(slash["commit"].is_string() && slash["expires"].is_string(), "{slash}");
    // Of what is known already there is no second one, and a run has 20 at most.
    assert_eq!(of_run("T-2@").len(), 19, "{known:?}");
    let calls = project.provider.calls();
    assert!(
        calls.iter().any(|call| !call.messages().contains("Task: T-")),
        "a sub-agent was asked: {}",
        calls[1].messages()
    );
    let second = calls.iter().find(|call| call.messages().contains("Task: T-2")).expect("it ran").prompt();
    has(&second, &["kind=\"learning\" from=\"Frodo, an agent\"", "\nIt needs a slash.\n</learning>"]);
    has(&project.log(), &["Frodo learned: It needs a slash. (L-"]);
}
