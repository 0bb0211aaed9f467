//! An item that the real CLI breaks up in its own shell, and takes up again in the same session.

use serde_json::json;

use super::project::{Project, bash, say};

#[test]
fn an_agent_hands_a_part_out_and_goes_on_in_its_session() {
    let steps = json!([
        bash("tavern report --mode delegate && tavern add 'Write hello' --parent -m 'Into the file hello.'"),
        say("I have handed it out.\n\nDONE"),
        bash("echo hi > hello && git add -A && git commit -qm 'Say hello'"),
        say("I chose hi.\n\nDONE"),
        bash("cat hello"),
        say("All is there.\n\nDONE"),
    ]);
    let project = Project::new("- [ ] T-1: Greet (done_when: grep -q hi hello)\n", steps);
    let told = project.work();
    let events: Vec<&str> = told.iter().filter_map(|told| told["event"].as_str()).collect();
    assert_eq!(
        events,
        ["claimed", "ended", "claimed", "ended", "integrated", "claimed", "ended", "integrated"],
        "{told:#?}"
    );
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    let (parent, child) = (project.item("T-1"), project.item("T-1.1"));
    assert_eq!((&parent["status"], &parent["attempt"]), (&json!("completed"), &json!(1)), "{parent:#}");
    assert_eq!((&child["status"], &child["parent"]), (&json!("completed"), &json!("T-1")), "{child:#}");
    // The same session, which is told only what is new.
    let calls = project.provider.calls();
    let woken = &calls[calls.len() - 2];
    assert_eq!(woken.session, calls[0].session);
    let prompt = woken.prompt();
    assert!(prompt.contains("You are Frodo again") && prompt.contains("T-1.1 completed: Write hello"), "{prompt}");
    assert!(prompt.contains("I chose hi."), "{prompt}");
    assert!(project.log().contains("Frodo took T-1 up again"), "{}", project.log());
    project.assert_tidy();
}
