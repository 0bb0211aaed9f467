//! What a day's work costs more because it is watched: tokens that the model reads, and no call of its own.

use serde_json::{Value, json};

use super::project::{HOLD, Project, bash, of, say};
use super::watch::{look, set};
use crate::support::wait_until;

/// How many bytes of `text` stand from one of `open` to the next `close`.
fn bytes_within(text: &str, open: &str, close: &str) -> usize {
    text.split(open)
        .skip(1)
        .map(|rest| open.len() + rest.find(close).map_or(rest.len(), |end| end + close.len()))
        .sum()
}

/// Eight items of which the third fails three times at the same, and the first finds out what the fifth is told.
#[test]
fn who_is_watched_and_gets_on_costs_nothing_and_who_does_not_costs_a_few_words() {
    let item = |number: u32| match number {
        1 => "- [ ] T-1: Do 1 (tags: api)\n".to_owned(),
        5 => "- [ ] T-5: Do 5 (tags: api, after: T-1)\n".to_owned(),
        number => format!("- [ ] T-{number}: Do {number}\n"),
    };
    let steps = (1..=8).flat_map(|number| {
        let mut steps: Vec<Value> = match number {
            3 => ["exit 1", "exit 1", "exit 1", HOLD].map(bash).to_vec(),
            _ => ["ls", "git log --oneline", "git status"].map(bash).to_vec(),
        };
        steps.push(bash(&format!(
            "echo {number} > {number} && git add -A && git commit -qm 'Do {number}'"
        )));
        steps.push(say(if number == 1 {
            "LEARNED: The API needs a trailing slash.\n\nDONE"
        } else {
            "DONE"
        }));
        steps
            .into_iter()
            .map(move |step| of(&format!("Task: T-{number}"), step))
    });
    let project = Project::new(&(1..=8).map(item).collect::<String>(), steps.collect());
    set(&project, json!({}), json!({}));
    let agent = project.agent().start();
    project.wait_for_hold();
    wait_until("it is told", || {
        look(&project, 10).stdout.contains("it is nudged (hint)")
    });
    project.let_go();
    agent.end().ends(0);
    project.assert_tidy();
    let calls = project.provider.calls();
    assert_eq!(calls.len(), 7 * 5 + 6, "none is made for supervision");
    let (mut all, mut nudged, mut known) = (0, 0, 0);
    for call in calls {
        let messages = call.messages();
        let nudges = bytes_within(&messages, "<system-nudge", "</system-nudge>");
        let knowledge = bytes_within(&messages, "<knowledge>", "</knowledge>");
        assert!(nudges == 0 || messages.contains("Task: T-3"), "{messages}");
        assert!(
            knowledge == 0 || messages.contains("Task: T-5"),
            "{messages}"
        );
        all += call.body.to_string().len();
        nudged += nudges;
        known += knowledge;
    }
    // 1,836 of 894,221 with version 2.1 of the CLI: 120 tokens, and what is read again of them with each later call.
    assert!(nudged > 0 && known > 0, "{nudged} and {known}");
    assert!(
        (nudged + known) * 200 < all,
        "{nudged} and {known} of {all} bytes"
    );
}
