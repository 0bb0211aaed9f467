//! One run of the real CLI through the runner, without a board: what the tests of whole programs beside this one don't see.

use std::time::Duration;

use serde_json::{Value, json};
use tavern_run::runner::job::Opening;
use tavern_run::runner::{
    AgentEvent, EndReason, Outcome, Prodding, Prods, SessionEnd, Signal, Usage,
};

use super::project::{bash, of, say};
use super::workshop::{Workshop, versions, wait_for, wait_for_record, watch};

fn is_call(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ToolCall { .. })
}

fn run(workshop: &Workshop) -> SessionEnd {
    let ended = workshop.start().finish();
    assert_eq!(workshop.scratch.processes(), Vec::<String>::new());
    ended
}

#[test]
fn a_message_reaches_the_very_next_call() {
    let workshop = Workshop::new(
        json!([bash("touch begun; while [ ! -e go ]; do sleep 0.05; done"), {"text": "DONE"}]),
    );
    let mut session = workshop.start();
    wait_for(&mut session, is_call);
    workshop.has_begun();
    let message = "<system-nudge severity=\"hint\">look at \"b\"\nfirst</system-nudge>\n";
    assert!(session.say(message));
    assert!(session.say("  and then at c"));
    workshop.scratch.write("go", "");
    let receipt = wait_for(&mut session, |event| {
        matches!(event, AgentEvent::Delivered { .. })
    });
    assert_eq!(
        receipt,
        AgentEvent::Delivered {
            text: message.to_owned()
        }
    );
    let receipt = wait_for(&mut session, |event| {
        matches!(event, AgentEvent::Delivered { .. })
    });
    assert_eq!(
        receipt,
        AgentEvent::Delivered {
            text: "  and then at c".to_owned()
        }
    );
    wait_for(&mut session, |event| matches!(event, AgentEvent::Turn(_)));
    // The end of a turn is answered once its event was taken.
    session.next(Duration::ZERO);
    assert!(!session.say("too late"));
    let ended = session.finish();
    assert_eq!(
        (ended.outcome, ended.turns),
        (Outcome::Success, 2),
        "{ended:?}"
    );
    let calls = workshop.provider.calls();
    assert_eq!(calls.len(), 2);
    assert!(!calls[0].messages().contains("system-nudge severity"));
    let second = calls[1].body.to_string();
    assert!(
        second.contains("look at") && second.contains("and then at c"),
        "{}",
        calls[1].messages()
    );
}

#[test]
fn a_message_during_the_last_words_is_answered_too() {
    let workshop =
        Workshop::new(json!([{"text": "first answer", "delay": 2}, {"text": "second answer"}]));
    let mut session = workshop.start();
    workshop.provider.wait_for_calls(1);
    assert!(session.say("one more thing"));
    let ended = session.finish();
    assert_eq!(
        (ended.outcome, ended.result.as_str()),
        (Outcome::Success, "second answer"),
        "{ended:?}"
    );
    assert!(
        workshop.provider.calls()[1]
            .body
            .to_string()
            .contains("one more thing")
    );
}

#[test]
fn a_silent_agent_is_broken_off_and_told_to_go_on() {
    for silence in [
        json!({"hang": true}),
        json!({"text": "half of it", "stall": true}),
    ] {
        let mut workshop = Workshop::new(json!([silence, {"text": "Here I am.\n\nDONE"}]));
        workshop.job.limits.idle = Some(Duration::from_secs(10));
        // On a busy machine the program is silent for longer before its first word.
        workshop.job.prods = Prods {
            most: 15,
            undecided: String::new(),
            silent: "Wake up.".to_owned(),
        };
        let mut session = workshop.start();
        let events = watch(&mut session);
        let ended = session.finish();
        assert_eq!(
            (ended.outcome, &ended.signal),
            (Outcome::Success, &Signal::Done),
            "{silence}: {ended:?}"
        );
        assert!(
            events.contains(&AgentEvent::Prodded {
                why: Prodding::Silent,
                number: 1,
                most: 15
            }),
            "{events:#?}"
        );
        let last = workshop.provider.calls().pop().expect("it was called");
        assert!(last.prompt().contains("Wake up."), "{}", last.prompt());
    }
}

/// The reply comes word by word, and takes longer than anybody may be silent.
#[test]
fn who_speaks_slowly_is_not_silent() {
    for program in versions() {
        let text = "word ".repeat(36) + "\n\nDONE";
        let mut workshop = Workshop::new(json!([{"text": text, "drip": 0.5}]));
        workshop.claude.program.clone_from(program);
        // On a busy machine the program is silent for long before its first word.
        workshop.job.limits.idle = Some(Duration::from_secs(12));
        let ended = run(&workshop);
        assert_eq!(
            (ended.outcome, &ended.signal),
            (Outcome::Success, &Signal::Done),
            "{ended:?}"
        );
        assert_eq!(workshop.provider.calls().len(), 1, "{}", program.display());
    }
}

#[test]
fn a_stop_while_the_provider_is_silent_is_quick() {
    let workshop = Workshop::new(json!([{"hang": true}]));
    let mut session = workshop.start();
    workshop.provider.wait_for_calls(1);
    session.end(EndReason::Stop);
    let ended = session.finish();
    assert_eq!(ended.outcome, Outcome::Killed, "{ended:?}");
    assert_eq!(workshop.scratch.processes(), Vec::<String>::new());
}

#[test]
fn a_background_shell_ends_with_its_agent() {
    let command = json!({"command": "sleep 300", "run_in_background": true});
    let workshop = Workshop::new(json!([{"tool": "Bash", "input": command}, {"text": "DONE"}]));
    let ended = run(&workshop);
    assert_eq!(
        (ended.outcome, &ended.signal),
        (Outcome::Success, &Signal::Done),
        "{ended:?}"
    );
}

/// The CLI goes on by itself when the command has ended.
#[test]
fn who_waits_for_a_command_in_the_background_is_not_prodded() {
    for program in versions() {
        let command = "while [ ! -e go ]; do sleep 0.05; done; echo ready";
        let wait = json!({"command": command, "run_in_background": true});
        let mut workshop = Workshop::new(json!([
            {"tool": "Bash", "input": wait},
            say("I am told when it ends."),
            say("It has ended.\n\nDONE"),
        ]));
        workshop.claude.program.clone_from(program);
        workshop.job.prods = Prods {
            most: 3,
            undecided: "Go on.".to_owned(),
            silent: "Wake up.".to_owned(),
        };
        let mut session = workshop.start();
        wait_for(&mut session, |event| matches!(event, AgentEvent::Turn(_)));
        workshop.scratch.write("go", "");
        let events = watch(&mut session);
        let ended = session.finish();
        let is_prod = |event: &AgentEvent| matches!(event, AgentEvent::Prodded { .. });
        assert!(
            !events.iter().any(is_prod),
            "{}: {events:#?}",
            program.display()
        );
        assert_eq!(
            (ended.outcome, &ended.signal),
            (Outcome::Success, &Signal::Done),
            "{ended:?}"
        );
        assert_eq!(workshop.provider.calls().len(), 3, "{}", program.display());
    }
}

/// Its work is the agent's: before it has ended, nothing is verified and no process is ended.
#[test]
fn an_agent_is_done_when_its_agents_in_the_background_are() {
    for program in versions() {
        let hand_out = json!({"description": "part", "prompt": "Do the part.", "subagent_type": "general-purpose", "run_in_background": true});
        let main = |step: Value| of("make hello", step);
        let mut workshop = Workshop::new(json!([
            main(json!({"tool": "Agent", "input": hand_out})),
            main(say("Handed out.\n\nDONE")),
            main(say("All done.\n\nDONE")),
            bash("while [ ! -e go ]; do sleep 0.05; done; touch part"),
            say("The part is there."),
        ]));
        workshop.claude.allowed_tools.push("Agent".to_owned());
        workshop.claude.program.clone_from(program);
        let mut session = workshop.start();
        wait_for(&mut session, |event| matches!(event, AgentEvent::Turn(_)));
        workshop.scratch.write("go", "");
        let ended = {
            watch(&mut session);
            session.finish()
        };
        assert!(
            workshop.scratch.work().join("part").exists(),
            "{}: {ended:?}",
            program.display()
        );
        assert_eq!(
            (ended.outcome, ended.result.as_str()),
            (Outcome::Success, "All done.\n\nDONE"),
            "{}: {ended:?}",
            program.display()
        );
    }
}

#[test]
fn a_start_that_fails_says_why() {
    let mut workshop = Workshop::new(json!([{"text": "DONE"}]));
    workshop.job.session = "not-a-uuid".to_owned();
    let ended = run(&workshop);
    assert_eq!(ended.outcome, Outcome::Crashed, "{ended:?}");
    assert!(
        ended.reason.contains("exited with code 1")
            && ended.reason.contains("UUID")
            && ended.session.is_none(),
        "{ended:?}"
    );
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
    workshop.has_begun();
    // Each has a record of its own, written with some delay.
    wait_for_record(&workshop.scratch, "general-purpose");
    wait_for_record(&workshop.scratch, "touch begun");
    session.hurry();
    let ended = session.finish();
    assert_eq!(
        (ended.outcome, ended.usage.output),
        (Outcome::Killed, 300),
        "{ended:?}"
    );
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
    assert_eq!(
        (ended.outcome, ended.signal),
        (Outcome::Success, Signal::Waiting(question))
    );

    // Who goes on without an answer has none to wait for.
    let done = [ask.clone(), bash("touch red"), say("I took red.")];
    let found = [ask, say("I took red.\n\nDONE")];
    for (steps, signal) in [
        (done.to_vec(), Signal::None),
        (found.to_vec(), Signal::Done),
    ] {
        let ended = run(&Workshop::new(json!(steps)));
        assert_eq!((ended.outcome, ended.signal), (Outcome::Success, signal));
    }
}

#[test]
fn a_block_with_a_question_is_not_prodded() {
    let mut workshop = Workshop::new(json!([say(
        "Either.\n\n```yaml\nquestion: red or blue?\noptions: [red, blue]\n```"
    )]));
    workshop.job.prods = Prods {
        most: 3,
        undecided: "Go on.".to_owned(),
        silent: String::new(),
    };
    let ended = run(&workshop);
    assert_eq!(
        ended.signal,
        Signal::Waiting("red or blue? (1: red; 2: blue)".to_owned())
    );
    assert_eq!(workshop.provider.calls().len(), 1);
}

#[test]
fn what_has_spent_its_tokens_is_not_prodded_on() {
    let mut workshop = Workshop::new(json!([{"text": "I think so.", "repeat": true}]));
    workshop.job.prods = Prods {
        most: 3,
        undecided: "Go on.".to_owned(),
        silent: "Wake up.".to_owned(),
    };
    workshop.job.limits.tokens = Some(1000);
    let ended = run(&workshop);
    assert_eq!(workshop.provider.calls().len(), 1, "{ended:?}");
}

/// Newer versions go on counting from what the session had used before.
#[test]
fn a_run_that_goes_on_in_a_session_has_used_what_it_used_itself() {
    for program in versions() {
        let mut workshop = Workshop::new(json!([{"text": "DONE", "repeat": true}]));
        workshop.claude.program.clone_from(program);
        let first = run(&workshop);
        assert!(first.usage.usd > 0.0, "{}: {first:?}", program.display());
        workshop.job.opening = Opening::Resumed;
        workshop.job.limits.usd = Some(first.usage.usd * 1.5);
        workshop.job.limits.tokens = Some(first.usage.fresh() * 3 / 2);
        for _ in 0..2 {
            let next = run(&workshop);
            let models: u64 = next.usage.models.values().map(Usage::total).sum();
            assert_eq!(
                next.outcome,
                Outcome::Success,
                "{}: {next:?}",
                program.display()
            );
            assert_eq!(
                (next.usage.total(), models),
                (first.usage.total(), first.usage.total()),
                "{next:?}"
            );
            assert!((next.usage.usd - first.usage.usd).abs() < 1e-9, "{next:?}");
        }
    }
}
