//! The real CLI as a planner: it reads, writes a plan, hears in its own session what is wrong with it, and is done.

use serde_json::json;

use super::project::{Project, bash, say};
use crate::support::has;

const PLAN: &str = "I read it.\n\n```markdown\n- [ ] P-1: Say hi (priority: 1)\n  See README.md.\n\n  ```yaml task\n  \
    done_when: [grep -q hi hello]\n  touches: [hello]\n  ```\n- [ ] P-2: Say it twice (after: P-1, done_when: \"test 2 = \
    $(wc -l < hello)\")\n```\n\nDONE";

#[test]
fn a_request_is_planned_and_worked() {
    let steps = json!([
        bash("ls && git log --oneline && ! git symbolic-ref -q HEAD && touch mine"),
        say("I think that two items will do."),
        say("It is a small project.\n\n```markdown\n- [ ] P-1: Say hi\n```\n\nDONE"),
        say(PLAN),
        bash("echo hi > hello && git add -A && git commit -qm 'Say hi'"),
        say("DONE"),
        bash("echo ho >> hello && git commit -qam 'Say it twice'"),
        say("DONE"),
    ]);
    let project = Project::with(json!({"roles": {"planner": {"runner": "claude", "prods": 1}}}), "", steps);
    let added = project.scratch.run("tavern-plan", &["Build a greeting", "--id", "T-1"]).succeeds();
    assert_eq!(added, "T-1\n");
    let planner = project.agent().args(&["--role", "planner"]).run().succeeds();
    assert!(planner.contains("\"reason\":\"T-1.1, T-1.2\""), "{planner}");
    project.assert_tidy();
    assert_eq!(project.outcomes(), ["failed", "success"]);

    let calls = project.provider.calls();
    assert_eq!(calls.len(), 4);
    let first = ["working as planner", "Task: T-1: Build a greeting", "Roles that take items:\n- coder", "- README.md"];
    has(&calls[0].prompt(), &first);
    has(&calls[1].messages(), &["Begin"]);
    has(&calls[2].prompt(), &["Finish your plan for task\nT-1 (Build a greeting) now"]);
    assert_eq!(calls[3].session, calls[0].session, "it goes on in its session");
    has(&calls[3].prompt(), &["Your last plan was not taken", "plan.md:1:7: error: it has no `done_when`"]);
    has(&calls[3].messages(), &["It is a small project."]);

    project.work();
    let status = |task: &str| project.item(task)["status"].clone();
    assert_eq!(["T-1", "T-1.1", "T-1.2"].map(status), ["completed", "completed", "completed"]);
    assert_eq!(project.merged("hello").as_deref(), Some("hi\nho\n"));
    assert_eq!(project.merged("mine"), None, "what the planner wrote is thrown away");
}
