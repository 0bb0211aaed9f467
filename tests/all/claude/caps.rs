//! What runs may use together, with programs that tell what they use: the real CLI.

use serde_json::{Value, json};

use super::project::{COMMIT, HOLD, Project, bash, of, say};
use super::workshop::{all_versions, versions};
use crate::support::Ran;

/// Of each reply of the stand-in, in US dollars.
const REPLY: f64 = 0.015_6;

const TWO: &str = "- [ ] T-1: One\n- [ ] T-2: Two\n";

/// A step in which an item's work is done.
fn done(id: &str) -> [Value; 2] {
    let make = format!("echo hi > {id} && git add -A && git commit -qm 'Make it'");
    [
        of(&format!("{id}:"), bash(&make)),
        of(&format!("{id}:"), say("DONE")),
    ]
}

fn all_done(ids: &[&str]) -> Value {
    json!(ids.iter().flat_map(|id| done(id)).collect::<Vec<Value>>())
}

fn again(mut step: Value) -> Value {
    step["repeat"] = json!(true);
    step
}

impl Project {
    fn drain(&self, flags: &[&str]) -> Ran {
        self.scratch
            .program("tavern-drain")
            .args(&[&["--agents", "1"], flags].concat())
            .run()
    }

    /// The US dollars of all runs.
    fn usd(&self) -> f64 {
        self.runs()
            .iter()
            .filter_map(|run| run["usage"]["usd"].as_f64())
            .sum()
    }
}

#[test]
fn an_items_cap_ends_its_second_attempt_a_reply_beyond_it_at_most() {
    for program in versions() {
        let most = 0.05;
        let settings =
            json!({"budget": {"item": {"usd": most}}, "runners": {"claude": {"program": program}}});
        let steps = json!([bash(COMMIT), say("DONE"), again(bash("true"))]);
        let item = "- [ ] T-1: Write hello (done_when: test -e never)\n";
        let project = Project::with(settings, item, steps);
        let ran = project.drain(&[]).ends(7);
        let version = program.display();
        assert_eq!(
            project.outcomes(),
            ["failed", "capped"],
            "{version}\n{:#?}",
            project.runs()
        );
        let used = project.usd();
        // Without the last of its replies it is below.
        let replies = project.provider.calls().len();
        #[expect(clippy::cast_precision_loss, reason = "it is a handful")]
        let before = used - used / replies as f64;
        assert!(
            before < most && used >= most,
            "{version}: ${used} in {replies} replies"
        );
        // The second attempt was not used, and the work is where it was.
        let item = project.scratch.stands("T-1", "pending", 1);
        let reason = "of $0.05 of the item's budget are used";
        assert!(
            item["reason"]
                .as_str()
                .is_some_and(|told| told.ends_with(reason)),
            "{item:#}"
        );
        assert_eq!(project.scratch.git(&["show", "tavern/T-1:hello"]), "hi");
        assert!(
            ran.stdout.contains("raise it: `budget: {item: {usd: …}}`"),
            "{ran}"
        );
        // Nothing more of it is begun.
        project.drain(&[]).ends(7);
        assert_eq!(project.provider.calls().len(), replies, "{version}");
        project.assert_tidy();
    }
}

#[test]
fn what_a_days_cap_keeps_back_is_taken_when_it_is_raised() {
    let project = Project::new(TWO, all_done(&["T-1", "T-2"]));
    project.agent().args(&["--once"]).run().ends(0);
    project.scratch.stands("T-1", "completed", 1);
    project.set(json!({"budget": {"day": {"usd": 0.03}}}));
    let told = project.work();
    let skipped = told
        .iter()
        .find(|told| told["event"] == "skipped")
        .expect("it is told");
    assert!(
        skipped["why"]
            .as_str()
            .is_some_and(|why| why.contains("$0.03 of $0.03 of the day's budget")),
        "{skipped:#}"
    );
    let ran = project.drain(&[]).ends(7);
    assert!(
        ran.stdout.contains("the day's budget are used; raise it:"),
        "{ran}"
    );
    project.scratch.stands("T-2", "pending", 0);
    assert_eq!(project.provider.calls().len(), 2);
    let status = project.scratch.run("tavern-status", &[]).succeeds();
    let line = "spent: $0.03 today, $0.03 in all; $0.03 of $0.03 of the day's budget are used";
    assert!(status.contains(line), "{status}");
    let records = project.scratch.records("tavern-status", &[]);
    let spending = records
        .iter()
        .find(|record| record["kind"] == "spending")
        .expect("it is there");
    assert_eq!(
        (
            &spending["budgets"][0]["scope"],
            &spending["budgets"][0]["most"]
        ),
        (&json!("day"), &json!(0.03))
    );
    // What ended yesterday does not count, and does for the board.
    let tomorrow = project
        .scratch
        .at("+90000", "tavern-status", &[])
        .succeeds();
    assert!(
        tomorrow.contains("spent: $0.00 today, $0.03 in all; $0.00 of $0.03 of"),
        "{tomorrow}"
    );
    project.set(json!({"budget": {"day": {"usd": 1}}}));
    project.drain(&[]).ends(0);
    project.scratch.stands("T-2", "completed", 1);
}

#[test]
fn shares_of_a_cap_are_told_once_each() {
    let ids = ["T-1", "T-2", "T-3", "T-4", "T-5"];
    let items: String = ids.iter().map(|id| format!("- [ ] {id}: Work\n")).collect();
    let project = Project::with(
        json!({"budget": {"board": {"usd": 0.165}}}),
        &items,
        all_done(&ids),
    );
    project.work();
    let log = project.log();
    let told: Vec<&str> = ["50 %: ", "75 %: ", "90 %: "]
        .into_iter()
        .filter(|told| log.contains(*told))
        .collect();
    assert_eq!((told.len(), log.matches(" %: $").count()), (3, 3), "{log}");
    assert!(
        log.contains("90 %: $0.16 of $0.17 of the board's budget are used"),
        "{log}"
    );
}

#[test]
fn a_drain_ends_when_it_has_spent_what_it_was_given() {
    let project = Project::new(
        &format!("{TWO}- [ ] T-3: Three\n"),
        all_done(&["T-1", "T-2", "T-3"]),
    );
    let ran = project.drain(&["--max-usd", "0.04"]).ends(7);
    project.scratch.stands("T-1", "completed", 1);
    for id in ["T-2", "T-3"] {
        project.scratch.stands(id, "pending", 0);
        assert!(ran.stdout.contains(&format!("main: {id} pending")), "{ran}");
    }
    assert_eq!(project.provider.calls().len(), 3);
    assert!(
        ran.stdout.contains(
            "$0.05 of $0.04 of the drain's budget are used; to go on: start another drain"
        ),
        "{ran}"
    );
    // Another one counts anew.
    let steps = project.drain(&["--max-usd", "1"]);
    assert!(project.provider.calls().len() > 3, "{steps}");
}

#[test]
fn what_several_runs_use_at_once_is_ended_in_all_of_them() {
    let most = 0.1;
    let settings = json!({"budget": {"queue": {"usd": most}}, "grace": "2s"});
    let items = format!("{TWO}- [ ] T-3: Three\n");
    let project = Project::with(settings, &items, json!([again(bash("sleep 0.5"))]));
    project
        .scratch
        .program("tavern-drain")
        .args(&["--agents", "3"])
        .run()
        .ends(7);
    assert_eq!(project.outcomes(), ["capped"; 3], "{:#?}", project.runs());
    let (used, replies) = (project.usd(), project.provider.calls().len());
    // Each notices within the seconds in which it asks what was spent.
    assert!(
        (most..most + 3.0 * 6.0 * REPLY).contains(&used),
        "${used} in {replies} replies"
    );
}

#[test]
fn what_a_killed_supervisors_run_has_used_counts() {
    let project = Project::with(
        json!({"budget": {"item": {"tokens": 4000}}}),
        "- [ ] T-1: Work\n",
        json!([bash("sleep 2.1"), bash("true"), bash(HOLD)]),
    );
    let agent = project.agent().start();
    project.wait_for_hold();
    project.kill("tavern-agent");
    drop(agent);
    let ran = project.drain(&[]).ends(7);
    assert!(
        ran.stdout
            .contains("of 4000 tokens of the item's budget are used"),
        "{ran}"
    );
    assert_eq!(project.outcomes(), ["killed"]);
    // Of its money what it had told by then.
    assert!(project.usd() >= REPLY, "{:#?}", project.runs());
    assert_eq!(project.provider.calls().len(), 3);
}

#[test]
fn hardly_anything_is_begun_in_a_window_that_is_nearly_used_up() {
    let resets = (std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .expect("it is later")
        .as_secs()
        + 3600)
        .to_string();
    let headers = |used: &str| {
        json!({
            "anthropic-ratelimit-unified-status": "allowed",
            "anthropic-ratelimit-unified-reset": resets,
            "anthropic-ratelimit-unified-representative-claim": "five_hour",
            "anthropic-ratelimit-unified-5h-status": "allowed",
            "anthropic-ratelimit-unified-5h-utilization": used,
            "anthropic-ratelimit-unified-5h-reset": resets,
        })
    };
    let mut steps = all_done(&["T-1", "T-2"]);
    steps[0]["headers"] = headers("0.97");
    steps[1]["headers"] = headers("0.97");
    let token =
        json!({"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-test-not-real", "ANTHROPIC_API_KEY": ""});
    let program = all_versions()
        .iter()
        .find(|program| program.to_string_lossy().contains("2.1.330"));
    let settings = json!({"runners": {"claude": {"program": program, "env": token}}});
    let project = Project::with(settings, TWO, steps);
    project.agent().args(&["--once"]).run().ends(0);
    // The run itself goes on to its end.
    project.scratch.stands("T-1", "completed", 1);
    let activity = project
        .scratch
        .run("tavern-runs", &["cat", "T-1", "activity.json"])
        .succeeds();
    let activity: Value = serde_json::from_str(&activity).expect("JSON");
    assert_eq!(activity["windows"][0]["used"], 0.97, "{activity}");
    let status = project.scratch.run("tavern-status", &[]).succeeds();
    assert!(
        status.contains("97 % of the provider's window are used"),
        "{status}\n{}",
        project.log()
    );
    let nothing = project
        .scratch
        .run("tavern-claim", &["--role", "coder"])
        .ends(3);
    assert!(nothing.stderr.contains("can be claimed at"), "{nothing}");
    project
        .scratch
        .at("+3700", "tavern-claim", &["--role", "coder", "--dry-run"])
        .ends(0);
}

/// Each turn's usage counts before the next prompt, with what others have used meanwhile.
#[test]
fn a_run_whose_turn_ends_beyond_a_budget_is_not_prompted_again() {
    let steps = [
        of("T-1:", bash(HOLD)),
        of("T-1:", say("I have looked at it.")),
        of(
            "T-2:",
            bash("echo hi > two && git add -A && git commit -qm Two"),
        ),
        of("T-2:", say("DONE")),
        again(say("DONE")),
    ];
    let roles = json!({"coder": {"runner": "claude", "idle": "60s", "prods": 3}});
    // Neither run alone uses it up.
    let settings = json!({"roles": roles, "budget": {"day": {"usd": 3.5 * REPLY}}});
    let items = "- [ ] T-1: One\n- [ ] T-2: Two (done_when: touch \"$HOME/go\")\n";
    let project = Project::with(settings, items, json!(steps));
    let ran = project
        .scratch
        .program("tavern-drain")
        .args(&["--agents", "2"])
        .run()
        .ends(7);
    project.scratch.stands("T-2", "completed", 1);
    let runs = project.runs();
    let first = runs
        .iter()
        .find(|run| run["task"] == "T-1")
        .expect("it ran");
    assert_eq!(first["outcome"], "capped", "{first:#}\n{ran}");
    assert_eq!(project.provider.calls().len(), 4, "{ran}");
}
