//! One run of the real CLI through the runner, without a board.

use std::time::Duration;

use rustix::process::{Pid, Signal as UnixSignal, kill_process};
use serde_json::{Value, json};
use tavern::process::Exit;
use tavern::runner::job::Opening;
use tavern::runner::{AgentEvent, EndReason, Ended, NotHeard, Outcome, Prodding, Prods, Signal, is_live};

use super::workshop::{Workshop, wait_for, wait_for_file, watch};

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command, "description": "test"}})
}

fn say(text: &str) -> Value {
    json!({"text": text})
}

fn is_call(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ToolCall { .. })
}

fn run(workshop: &Workshop) -> Ended {
    let ended = workshop.start().finish();
    assert_eq!(workshop.left_running(), []);
    ended
}

#[test]
fn work_is_done_and_committed() {
    let workshop = Workshop::new(json!([
        {"text": "I will write it.", "tool": "Bash", "input": {"command": "echo hi > hello && git add -A && git commit -qm hello"}},
        {"text": "All is committed.\n\nDONE"},
    ]));
    let mut session = workshop.start();
    assert!(is_live(&workshop.job.run_dir).expect("it can be asked"));
    let events = watch(&mut session);
    let ended = session.finish();
    assert_eq!(ended.outcome, Outcome::Success, "{ended:?}");
    assert_eq!((ended.exit, &ended.signal, ended.tool_calls), (Exit::Code(0), &Signal::Done, 1));
    assert_eq!(ended.result, "All is committed.\n\nDONE");
    assert_eq!(ended.ended_by_us, None, "its input was closed, and it ended by itself");
    assert_eq!((ended.usage.input, ended.usage.output, ended.usage.is_estimate), (2400, 300, false));
    assert!((ended.usage.usd - 0.031_25).abs() < 1e-9, "{:?}", ended.usage);
    assert_eq!(ended.session.as_deref(), Some(workshop.job.session.as_str()));
    assert_eq!(workshop.git(&["log", "-1", "--format=%s"]), "hello");
    assert!(
        matches!(&events[0], AgentEvent::Started { session, .. } if *session == workshop.job.session),
        "{events:#?}"
    );
    assert!(events.iter().any(|event| matches!(event, AgentEvent::ToolResult { ok: true, .. })), "{events:#?}");
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::Delivered { .. })), "the prompt is no message");
    assert_eq!(workshop.left_running(), []);
    assert!(!is_live(&workshop.job.run_dir).expect("it can be asked"));
    // The prompt is what the model was given.
    assert!(workshop.provider.calls()[0].messages().contains("make hello"));
}

#[test]
fn what_is_not_allowed_is_denied_and_hangs_nothing() {
    let mut workshop = Workshop::new(json!([bash("echo hi > hello"), {"text": "I could not."}]));
    workshop.claude.permission_mode = "default".to_owned();
    workshop.claude.allowed_tools = Vec::new();
    let ended = run(&workshop);
    assert_eq!((ended.outcome, ended.exit), (Outcome::PermissionDenied, Exit::Code(0)), "{ended:?}");
    assert_eq!(ended.denials[0].tool, "Bash");
    assert!(!workshop.path("hello").exists());
}

#[test]
fn turns_and_money_are_bounded_by_the_program() {
    let mut step = bash("true");
    step["repeat"] = json!(true);
    let mut workshop = Workshop::new(json!([step]));
    workshop.job.limits.turns = Some(2);
    let ended = run(&workshop);
    assert_eq!((ended.outcome, ended.exit), (Outcome::Budget, Exit::Code(1)), "{ended:?}");
    assert!(ended.reason.contains("maximum number of turns"), "{ended:?}");

    workshop.job.limits.turns = None;
    workshop.job.limits.usd = Some(0.02);
    workshop.job.session = uuid::Uuid::new_v4().to_string();
    let ended = run(&workshop);
    assert_eq!(ended.outcome, Outcome::Budget, "{ended:?}");
    assert!(ended.reason.contains("maximum budget"), "{ended:?}");
    assert!(ended.usage.usd >= 0.02, "{ended:?}");
}

#[test]
fn tokens_are_bounded_while_it_runs() {
    let mut workshop = Workshop::new(json!([bash("sleep 2.5"), bash("sleep 300"), {"text": "never"}]));
    workshop.job.limits.tokens = Some(1000);
    let ended = run(&workshop);
    assert_eq!((ended.outcome, ended.ended_by_us), (Outcome::Budget, Some(EndReason::Tokens)), "{ended:?}");
    assert!(ended.usage.fresh() >= 1000, "{ended:?}");
}

#[test]
fn a_refused_key_fails_at_once() {
    let mut workshop = Workshop::new(json!([{"error": 401, "message": "invalid x-api-key", "repeat": true}]));
    // Left to itself it would try for three minutes.
    workshop.job.env.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), "10".to_owned()));
    let ended = run(&workshop);
    assert_eq!((ended.outcome, ended.ended_by_us), (Outcome::Auth, Some(EndReason::Auth)), "{ended:?}");
    assert!(workshop.provider.calls().len() < 4, "{} calls", workshop.provider.calls().len());
}

#[test]
fn limits_and_failures_of_the_provider_are_told_apart() {
    let rows = [
        (json!({"error": 429, "message": "too much", "repeat": true}), Outcome::UsageLimit),
        (json!({"error": 429, "message": "too much", "headers": {"retry-after": "3600"}}), Outcome::UsageLimit),
        (json!({"error": 529, "message": "Overloaded", "repeat": true}), Outcome::Overloaded),
        (
            json!({"error": 400, "message": "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}),
            Outcome::UsageLimit,
        ),
        (json!({"error": 403, "message": "forbidden"}), Outcome::Auth),
    ];
    for (step, outcome) in rows {
        let workshop = Workshop::new(json!([step]));
        let ended = run(&workshop);
        assert_eq!((ended.outcome, ended.exit), (outcome, Exit::Code(1)), "{step}: {ended:?}");
        let resets_at = ended.resets_at.map(|moment| moment.to_rfc3339());
        let is_told = step["message"].to_string().contains("regain");
        assert_eq!(resets_at, is_told.then_some("2026-12-01T00:00:00+00:00".to_owned()), "{step}");
    }
}

#[test]
fn silence_is_bounded() {
    let mut workshop = Workshop::new(json!([{"text": "half of", "stall": true, "repeat": true}]));
    workshop.job.limits.idle = Some(Duration::from_secs(3));
    let ended = run(&workshop);
    assert_eq!((ended.outcome, ended.ended_by_us), (Outcome::Timeout, Some(EndReason::Idle)), "{ended:?}");
}

#[test]
fn a_killed_agent_has_crashed_and_its_session_goes_on() {
    let mut workshop = Workshop::new(json!([
        {"text": "step one", "tool": "Bash", "input": {"command": "touch begun; sleep 300"}},
        {"text": "resumed\nDONE"},
    ]));
    let mut session = workshop.start();
    wait_for(&mut session, is_call);
    wait_for_file(&workshop.path("begun"));
    // The CLI writes its transcript with some delay; without one there would be nothing to resume.
    workshop.wait_for_transcript("touch begun");
    let pid = i32::try_from(session.pid()).ok().and_then(Pid::from_raw).expect("it runs");
    kill_process(pid, UnixSignal::KILL).expect("it is ours");
    let ended = session.finish();
    assert_eq!((ended.outcome, ended.exit), (Outcome::Crashed, Exit::Signal(9)), "{ended:?}");
    // The shell had a session of its own and outlived the agent: it was found and ended.
    assert!(!ended.swept.ended.is_empty(), "{ended:?}");
    assert_eq!(workshop.left_running(), []);
    // There was no result: the figures are those of the transcript, or those that it was asked for in time.
    assert_eq!(ended.usage.output, 150, "{ended:?}");
    // Money that nobody has reported is not guessed.
    assert!([0.0, 0.015_625].iter().any(|usd| (ended.usage.usd - usd).abs() < 1e-9), "{ended:?}");
    assert!(ended.usage.is_estimate, "{ended:?}");

    workshop.job.opening = Opening::Resumed;
    workshop.job.session = ended.session.expect("the transcript is there");
    workshop.job.prompt = "go on".to_owned();
    let ended = run(&workshop);
    assert_eq!((ended.outcome, &ended.signal), (Outcome::Success, &Signal::Done), "{ended:?}");
    let calls = workshop.provider.calls();
    let messages = calls.last().expect("it was called").messages();
    assert!(messages.contains("step one") && messages.contains("go on"), "{messages}");
}

#[test]
fn a_message_reaches_the_very_next_call() {
    let workshop =
        Workshop::new(json!([bash("touch begun; while [ ! -e go ]; do sleep 0.05; done"), {"text": "DONE"}]));
    let mut session = workshop.start();
    wait_for(&mut session, is_call);
    wait_for_file(&workshop.path("begun"));
    let message = "<system-nudge severity=\"hint\">look at \"b\"\nfirst</system-nudge>\n";
    session.say(message).expect("it listens");
    session.say("  and then at c").expect("it listens");
    std::fs::write(workshop.path("go"), "").expect("the worktree is writable");
    let receipt = wait_for(&mut session, |event| matches!(event, AgentEvent::Delivered { .. }));
    assert_eq!(receipt, AgentEvent::Delivered { text: message.to_owned() });
    let receipt = wait_for(&mut session, |event| matches!(event, AgentEvent::Delivered { .. }));
    assert_eq!(receipt, AgentEvent::Delivered { text: "  and then at c".to_owned() });
    wait_for(&mut session, |event| matches!(event, AgentEvent::Turn(_)));
    assert_eq!(session.say("too late"), Err(NotHeard::Ending));
    let ended = session.finish();
    assert_eq!((ended.outcome, ended.undelivered.len(), ended.turns), (Outcome::Success, 0, 2), "{ended:?}");
    let calls = workshop.provider.calls();
    assert_eq!(calls.len(), 2);
    assert!(!calls[0].messages().contains("system-nudge severity"));
    let second = calls[1].body.to_string();
    assert!(second.contains("look at") && second.contains("and then at c"), "{}", calls[1].messages());
}

#[test]
fn a_message_during_the_last_words_is_answered_too() {
    let workshop = Workshop::new(json!([{"text": "first answer", "delay": 2}, {"text": "second answer"}]));
    let mut session = workshop.start();
    workshop.provider.wait_for_calls(1);
    session.say("one more thing").expect("it listens");
    let ended = session.finish();
    assert_eq!((ended.outcome, ended.result.as_str()), (Outcome::Success, "second answer"), "{ended:?}");
    assert_eq!(ended.undelivered, Vec::<String>::new());
    assert!(workshop.provider.calls()[1].body.to_string().contains("one more thing"));
}

#[test]
fn an_undecided_agent_is_prodded_on_a_bounded_number_of_times() {
    let mut workshop =
        Workshop::new(json!([{"text": "What now?"}, bash("touch more"), {"text": "All is there.\n\nDONE"}]));
    workshop.job.prods = Prods { most: 2, undecided: "Go on.".to_owned(), silent: String::new() };
    let mut session = workshop.start();
    let events = watch(&mut session);
    let ended = session.finish();
    assert_eq!((ended.outcome, &ended.signal), (Outcome::Success, &Signal::Done), "{ended:?}");
    assert!(workshop.path("more").exists());
    assert!(events.contains(&AgentEvent::Prodded { why: Prodding::Undecided, number: 1, most: 2 }), "{events:#?}");
    assert!(!events.iter().any(|event| matches!(event, AgentEvent::Delivered { .. })), "a prod is no message");
    assert_eq!(workshop.provider.calls()[1].prompt(), "Go on.");

    let mut workshop = Workshop::new(json!([{"text": "Hm.", "repeat": true}]));
    workshop.job.prods = Prods { most: 2, undecided: "Go on.".to_owned(), silent: String::new() };
    let ended = run(&workshop);
    assert_eq!((ended.outcome, &ended.signal), (Outcome::Success, &Signal::None), "{ended:?}");
    assert_eq!(workshop.provider.calls().len(), 3);
}

#[test]
fn a_silent_agent_is_broken_off_and_told_to_go_on() {
    for silence in [json!({"hang": true}), json!({"text": "half of it", "stall": true})] {
        let mut workshop = Workshop::new(json!([silence, {"text": "Here I am.\n\nDONE"}]));
        // Longer than the program needs to say its first word on a busy machine.
        workshop.job.limits.idle = Some(Duration::from_secs(6));
        workshop.job.prods = Prods { most: 1, undecided: String::new(), silent: "Wake up.".to_owned() };
        let mut session = workshop.start();
        let events = watch(&mut session);
        let ended = session.finish();
        assert_eq!((ended.outcome, &ended.signal), (Outcome::Success, &Signal::Done), "{silence}: {ended:?}");
        assert!(events.contains(&AgentEvent::Prodded { why: Prodding::Silent, number: 1, most: 1 }), "{events:#?}");
        assert!(workshop.provider.calls()[1].prompt().contains("Wake up."));
    }
}

#[test]
fn an_ending_is_polite_and_leaves_no_process() {
    let workshop = Workshop::new(json!([bash("touch begun; (setsid sleep 300 &); sleep 300"), {"text": "never"}]));
    let mut session = workshop.start();
    wait_for(&mut session, is_call);
    wait_for_file(&workshop.path("begun"));
    session.end(EndReason::Stop);
    assert_eq!(session.say("hello"), Err(NotHeard::Ending));
    let ended = session.finish();
    assert_eq!((ended.outcome, ended.ended_by_us), (Outcome::Killed, Some(EndReason::Stop)), "{ended:?}");
    // It gave its result and ended by itself.
    assert!(matches!(ended.exit, Exit::Code(_)), "{ended:?}");
    assert!(ended.usage.output > 0 && !ended.usage.is_estimate, "{ended:?}");
    assert!(ended.session.is_some());
    assert_eq!(workshop.left_running(), []);
}

#[test]
fn a_stop_while_the_provider_is_silent_is_quick() {
    let workshop = Workshop::new(json!([{"hang": true}]));
    let mut session = workshop.start();
    workshop.provider.wait_for_calls(1);
    session.end(EndReason::Stop);
    let ended = session.finish();
    assert_eq!(ended.outcome, Outcome::Killed, "{ended:?}");
    assert_eq!(workshop.left_running(), []);
}

#[test]
fn a_hurried_ending_leaves_no_process_either() {
    let workshop = Workshop::new(json!([bash("trap '' TERM; touch begun; sleep 300"), {"text": "never"}]));
    let mut session = workshop.start();
    wait_for_file(&workshop.path("begun"));
    session.hurry();
    let ended = session.finish();
    assert_eq!((ended.outcome, ended.exit), (Outcome::Killed, Exit::Signal(9)), "{ended:?}");
    assert_eq!(workshop.left_running(), []);
}

#[test]
fn a_background_shell_ends_with_its_agent() {
    let command = json!({"command": "sleep 300", "run_in_background": true});
    let workshop = Workshop::new(json!([{"tool": "Bash", "input": command}, {"text": "DONE"}]));
    let ended = run(&workshop);
    assert_eq!((ended.outcome, &ended.signal), (Outcome::Success, &Signal::Done), "{ended:?}");
}

#[test]
fn a_start_that_fails_says_why() {
    let mut workshop = Workshop::new(json!([{"text": "DONE"}, {"text": "DONE"}]));
    workshop.job.session = "not-a-uuid".to_owned();
    let ended = run(&workshop);
    assert_eq!((ended.outcome, ended.exit), (Outcome::Crashed, Exit::Code(1)), "{ended:?}");
    assert!(ended.reason.contains("UUID") && ended.session.is_none(), "{ended:?}");

    // A session that isn't there (any more) can't be resumed, and says so.
    workshop.job.session = uuid::Uuid::new_v4().to_string();
    workshop.job.opening = Opening::Resumed;
    let ended = run(&workshop);
    assert_eq!((ended.outcome, ended.session.is_none()), (Outcome::Crashed, true), "{ended:?}");
    assert!(ended.reason.contains("No conversation found"), "{ended:?}");
}

#[test]
fn what_a_sub_agent_used_is_recovered_after_a_kill() {
    let task = json!({"description": "sub", "prompt": "do it", "subagent_type": "general-purpose"});
    let workshop = Workshop::new(json!([
        {"tool": "Task", "input": task},
        bash("touch begun; sleep 300"),
        {"text": "never"},
    ]));
    let mut session = workshop.start();
    wait_for_file(&workshop.path("begun"));
    // Each has a record of its own, written with some delay.
    workshop.wait_for_transcript("general-purpose");
    workshop.wait_for_transcript("touch begun");
    session.hurry();
    let ended = session.finish();
    assert_eq!((ended.outcome, ended.usage.output), (Outcome::Killed, 300), "{ended:?}");
}

#[test]
fn what_its_tool_was_to_ask_is_a_question_to_a_person() {
    let ask = json!({"tool": "AskUserQuestion", "input": {"questions": [{
        "question": "Red or blue?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    }]}});
    let workshop = Workshop::new(json!([ask.clone(), say("I could not ask.")]));
    let ended = run(&workshop);
    let question = "Red or blue? (1: Red, warm; 2: Blue, cold)".to_owned();
    assert_eq!((ended.outcome, ended.signal), (Outcome::Success, Signal::Waiting(question)));

    // Who goes on without an answer has none to wait for.
    let done = [ask.clone(), bash("touch red"), say("I took red.")];
    let found = [ask, say("I took red.\n\nDONE")];
    for (steps, signal) in [(done.to_vec(), Signal::None), (found.to_vec(), Signal::Done)] {
        let ended = run(&Workshop::new(json!(steps)));
        assert_eq!((ended.outcome, ended.signal), (Outcome::Success, signal));
    }
}

#[test]
fn a_block_with_a_question_is_not_prodded() {
    let mut workshop =
        Workshop::new(json!([say("Either.\n\n```yaml\nquestion: red or blue?\noptions: [red, blue]\n```")]));
    workshop.job.prods = Prods { most: 3, undecided: "Go on.".to_owned(), silent: String::new() };
    let ended = run(&workshop);
    assert_eq!(ended.signal, Signal::Waiting("red or blue? (1: red; 2: blue)".to_owned()));
    assert_eq!(workshop.provider.calls().len(), 1);
}

#[test]
fn what_has_spent_its_tokens_is_not_prodded_on() {
    let mut workshop = Workshop::new(json!([{"text": "I think so.", "repeat": true}]));
    workshop.job.prods = Prods { most: 3, undecided: "Go on.".to_owned(), silent: "Wake up.".to_owned() };
    workshop.job.limits.tokens = Some(1000);
    let ended = run(&workshop);
    assert_eq!(workshop.provider.calls().len(), 1, "{ended:?}");
}
