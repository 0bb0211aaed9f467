//! A request becomes merged work by way of everything that can happen to it. Of four planned items one is broken up,
//! one is rejected, one asks a person, one hits a usage limit; the part of the first uses up its attempts.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::project::{Project, answer, bash, of, say};
use super::workshop::versions;

const PLAN: &str = "- [ ] P-1: Put it together (done_when: test -s whole.txt)\n\
    - [ ] P-2: Count to two (done_when: test -s two.txt)\n\
    - [ ] P-3: Choose a colour (done_when: test -s colour.txt)\n\
    - [ ] P-4: Survive a limit (done_when: test -s four.txt)\n";
fn reject() -> Value {
    let finding =
        json!({"severity": "major", "file": "two.txt", "line": 2, "text": "two is missing"});
    answer(json!({"verdict": "reject", "summary": "it stops at one", "findings": [finding]}))
}

fn approve() -> Value {
    answer(json!({"verdict": "approve", "summary": "as it should be"}))
}

fn forever(mut step: Value) -> Value {
    step["repeat"] = json!(true);
    step
}

fn commit(file: &str, text: &str) -> Value {
    bash(&format!(
        "echo {text} >> {file} && git add -A && git commit -qm 'Write {file}'"
    ))
}

#[test]
fn a_request_goes_all_ways_and_ends_merged() {
    for program in versions() {
        goes_all_ways(program);
    }
}

fn goes_all_ways(program: &Path) {
    let [whole, two, colour, four] = ["T-1.1 (from", "T-1.2 (from", "T-1.3 (from", "T-1.4 (from"]
        .map(|id| format!("Branch: tavern/{id}"));
    let part = "Branch: tavern/T-1.1.1 (from";
    let limit = json!({"error": 429, "message": "You have hit your limit", "headers": {"x-should-retry": "false"}});
    let hand_out =
        "tavern add 'Write the part' --parent --on-failure escalate --done-when 'test -s part.txt'";
    let steps = json!([
        of("working as planner", answer(json!({"plan": PLAN}))),
        of(part, say("I forgot.\n\nDONE")),
        of(part, commit("part.txt", "part")),
        of(part, say("DONE")),
        of(&whole, bash(hand_out)),
        of(&whole, say("I have handed the part out.\n\nDONE")),
        of(
            &whole,
            bash("cat part.txt > whole.txt && git add -A && git commit -qm 'Put it together'")
        ),
        of(&whole, say("DONE")),
        of(&two, commit("two.txt", "one")),
        of(&two, say("DONE")),
        of(&two, commit("two.txt", "two")),
        of(&two, say("DONE")),
        of(&colour, say("WAITING: red or blue?")),
        of(&colour, commit("colour.txt", "blue")),
        of(&colour, say("DONE")),
        of(&four, limit),
        of(&four, commit("four.txt", "four")),
        of(&four, say("DONE")),
        of("<review-task>\\nTask: T-1.2:", reject()),
        of("<review-task>", forever(approve())),
    ]);
    let settings = json!({
        "review": ["reviewer"],
        "max_attempts": 1,
        "outcomes": {"usage_limit": {"backoff": "1s"}},
        "runners": {"claude": {"program": program}},
    });
    let project = Project::with(settings, "", steps);
    let drain = || {
        project.scratch.run(
            "tavern-drain",
            &["--agents", "coder=2,reviewer=1,planner=1,all=3"],
        )
    };
    let status = |task: &str| {
        project.item(task)["status"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    project
        .scratch
        .run("tavern-plan", &["Make four things", "--id", "T-1"])
        .succeeds();

    let first = drain();
    assert_ne!(first.code, Some(0), "{first}");
    let left = ["T-1.1", "T-1.1.1", "T-1.2", "T-1.3", "T-1.4"].map(status);
    assert_eq!(
        left,
        ["waiting", "dead", "completed", "waiting", "completed"],
        "{first}\n{}",
        project.log()
    );
    let first = first
        .says("T-1 planned")
        .says("T-1.2 rejected: it stops at one")
        .says("is closed until");
    first
        .says("tavern answer T-1.3")
        .says("tavern retry T-1.1.1");
    project.assert_tidy();

    project
        .scratch
        .run("tavern-tell", &["T-1.3", "blue"])
        .succeeds();
    project
        .scratch
        .run(
            "tavern-release",
            &["T-1.1.1", "--revive", "-m", "Write part.txt."],
        )
        .succeeds();
    let second = drain();
    assert_eq!(second.code, Some(0), "{second}\n{}", project.log());
    project.assert_tidy();
    for (file, text) in [
        ("whole.txt", "part\n"),
        ("two.txt", "one\ntwo\n"),
        ("colour.txt", "blue\n"),
        ("four.txt", "four\n"),
    ] {
        assert_eq!(project.merged(file).as_deref(), Some(text), "{file}");
    }
    assert_eq!(
        ["T-1.2", "T-1.4"].map(|task| project.item(task)["attempt"].clone()),
        [1, 1]
    );
    // Each coder's work went on in its own session, and was told what was new.
    let told = |marker: &str, word: &str| {
        let calls = project.provider.calls();
        let own: Vec<_> = calls
            .iter()
            .filter(|call| call.messages().contains(marker))
            .collect();
        assert!(
            own.iter().all(|call| call.session == own[0].session),
            "{marker}: one session"
        );
        let heard = own
            .iter()
            .find(|call| call.prompt().contains(word))
            .expect("it is told")
            .prompt();
        assert!(
            heard.contains("is yours again, in the same session")
                && !heard.contains("<working-rules>"),
            "{marker}: what is new\n{heard}"
        );
        own[0].session.clone()
    };
    let sessions = [
        (&two, "two is missing"),
        (&colour, "<answered>\nblue"),
        (&whole, "T-1.1.1 completed: Write the part"),
    ]
    .map(|(marker, word)| told(marker, word));
    assert_eq!(
        BTreeSet::from(sessions).len(),
        3,
        "each has a session of its own"
    );
}
