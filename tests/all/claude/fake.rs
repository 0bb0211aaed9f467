//! The scripted fake (tests/fixtures/fake-claude) speaks the stream that the runner reads: what it is told to do is what
//! the runner sees. Scenario tests rest on it.

use tavern::runner::job::Opening;
use tavern::runner::{AgentEvent, EndReason, Outcome, Signal};

use super::workshop::{Workshop, wait_for, watch};

#[test]
fn each_ending_is_seen_as_what_it_is() {
    let rows = [
        ("answer DONE", Outcome::Success, "DONE"),
        ("say hm; deny Bash; answer 'I could not'", Outcome::PermissionDenied, "Bash"),
        ("fail 429 rate_limit 'Request rejected (429)'", Outcome::UsageLimit, "429"),
        ("fail null server_error 'Repeated 529 Overloaded errors'", Outcome::Overloaded, "529"),
        ("fail 400 billing_error 'Credit balance is too low'", Outcome::Auth, "Credit"),
        ("fail 400 invalid_request 'Prompt is too long'", Outcome::Failed, "too long"),
        ("limit error_max_turns 'Reached maximum number of turns (3)'", Outcome::Budget, "turns"),
        ("say hm; crash", Outcome::Crashed, "signal 9"),
        ("echo 'no such flag' >&2; exit 1", Outcome::Crashed, "no such flag"),
        ("retry 401 authentication_failed; hang", Outcome::Auth, "refused the key"),
    ];
    for (script, outcome, reason) in rows {
        let workshop = Workshop::fake(script);
        let ended = workshop.start().finish();
        assert_eq!(ended.outcome, outcome, "{script}: {ended:?}");
        assert!(ended.reason.contains(reason), "{script}: {ended:?}");
        assert_eq!(workshop.left_running(), []);
    }
}

#[test]
fn it_works_in_the_worktree_and_counts() {
    let workshop = Workshop::fake(
        "say \"a \\\\ 'b'\"; tool 'echo hi > hello; git add -A; git commit -qm hello'; tool false; answer DONE",
    );
    let mut session = workshop.start();
    let events = watch(&mut session);
    let ended = session.finish();
    assert_eq!((ended.outcome, &ended.signal, ended.tool_calls), (Outcome::Success, &Signal::Done, 2), "{ended:?}");
    assert_eq!((ended.usage.input, ended.usage.output, ended.usage.usd), (400, 40, 0.04));
    assert_eq!(workshop.git(&["log", "-1", "--format=%s"]), "hello");
    let results = events.iter().filter_map(|event| match event {
        AgentEvent::ToolResult { ok, .. } => Some(*ok),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [true, false]);
    assert!(matches!(&events[1], AgentEvent::Text { text, .. } if text == "a \\ 'b'"), "{events:#?}");
}

#[test]
fn it_listens_is_interrupted_and_goes_on() {
    let mut workshop = Workshop::fake("say ready; listen; hang");
    let mut session = workshop.start();
    wait_for(&mut session, |event| matches!(event, AgentEvent::Text { .. }));
    session.say("a \"word\"\nor two").expect("it listens");
    let receipt = wait_for(&mut session, |event| matches!(event, AgentEvent::Delivered { .. }));
    assert_eq!(receipt, AgentEvent::Delivered { text: "a \"word\"\nor two".to_owned() });
    session.say("unread").expect("it still listens");
    wait_for(&mut session, |event| matches!(event, AgentEvent::Delivered { .. }));
    session.end(EndReason::Stop);
    let ended = session.finish();
    assert_eq!((ended.outcome, ended.undelivered.len()), (Outcome::Killed, 0), "{ended:?}");

    workshop.job.opening = Opening::Resumed;
    workshop.job.session = ended.session.expect("it has a record");
    workshop.job.env.push(("FAKE_CLAUDE".to_owned(), "answer \"$opening\"".to_owned()));
    let ended = workshop.start().finish();
    assert_eq!((ended.outcome, ended.result.as_str()), (Outcome::Success, "resumed"), "{ended:?}");
}
