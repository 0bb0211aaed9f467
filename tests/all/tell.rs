//! What people say to items: answers to questions, and messages to agents that run, and to those that will.

use crate::support::{CONFIG, QUEUE, Ran, Scratch, has, wait_until};

/// Keeps its prompts, and does what `steps/N` says, N being the number of its runs.
const AGENT: &str = r#"#!/bin/sh -eu
mkdir -p "$NOTES"
number=$(($(ls "$NOTES" | wc -l) + 1))
cat >"$NOTES/$number"
. "$STEPS/$number"
"#;

const ONE: &str = "## Pending\n\n- [ ] T-1: Paint it\n  With care.\n\n## Waiting\n\n## Completed\n";
const WORK: &str = "date >>work.txt; git add --all; git commit -qm Work; echo DONE";

/// A board whose agents are deaf, and its runs' deeds.
fn board(queue: &str, steps: &[&str]) -> Scratch {
    let scratch = Scratch::with_agent(AGENT, queue, "");
    for (number, step) in (1..).zip(steps) {
        scratch.write(format!("../home/steps/{number}"), step);
    }
    scratch
}

fn agent(scratch: &Scratch) -> Ran {
    scratch
        .run("tavern-agent", &["--name", "Frodo", "--until-empty"])
        .ends(0)
}

fn tell(scratch: &Scratch, text: &str) -> Ran {
    scratch
        .program("tavern-tell")
        .args(&["T-1", text])
        .variable("USER", "rosie")
        .run()
}

#[test]
fn an_answer_brings_the_item_back_and_is_told() {
    let scratch = board(ONE, &["echo 'WAITING: red or blue?'", WORK]);
    agent(&scratch).says("T-1 asks: red or blue?");
    tell(&scratch, "Blue,\nas the sky.")
        .ends(0)
        .says("T-1 is pending: the agent that takes T-1 goes on with your answer");
    let item = scratch.item("T-1");
    assert_eq!(
        (&item["reason"], &item["question"]),
        (&"Blue, as the sky.".into(), &serde_json::Value::Null),
        "one line of it"
    );
    agent(&scratch).says("T-1 merged");
    has(
        &scratch.note("2"),
        &["<asked>\nred or blue?\n</asked>\n<answered>\nBlue,\nas the sky.\n</answered>"],
    );
    scratch
        .run("tavern-log", &["T-1"])
        .ends(0)
        .says("T-1 was resumed by rosie: Blue,");
}

#[test]
fn a_message_to_an_item_that_nobody_works_on_is_told_once_in_each_session() {
    // The program has no sessions: each of its runs begins anew, and is told all.
    let scratch = board(ONE, &["exit 1", "exit 1", WORK]);
    tell(&scratch, "Mind the gap.")
        .ends(0)
        .says("T-1 is pending: it is passed on with the prompt of its next run");
    agent(&scratch);
    for number in 1..=3 {
        let prompt = scratch.note(number.to_string());
        assert_eq!(
            prompt
                .matches("<note from=\"rosie\">\nMind the gap.\n</note>")
                .count(),
            1,
            "{number}: {prompt}"
        );
    }
    assert!(scratch.letters("T-1").is_empty(), "it was told");
    let log = scratch.run("tavern-log", &["T-1"]).succeeds();
    assert_eq!(
        log.matches("T-1 was notified by rosie: Mind the gap.")
            .count(),
        1,
        "{log}"
    );
    tell(&scratch, "Too late.")
        .ends(4)
        .says("tavern reopen T-1 -m");
}

#[test]
fn a_deaf_agent_is_told_at_its_next_run() {
    let hold = "env -u TAVERN_TASK -u TAVERN_TOKEN tavern tell T-1 'I am great.' 2>\"$STEPS/own\" || true\n\
                touch \"$STEPS/held\"; while [ ! -e \"$STEPS/go\" ]; do sleep 0.05; done; exit 1";
    let scratch = board(ONE, &[hold, WORK]);
    let running = scratch
        .program("tavern-agent")
        .args(&["--name", "Frodo", "--until-empty"])
        .start();
    wait_until("it runs", || {
        scratch.folder().join("home/steps/held").exists()
    });
    tell(&scratch, "Mind the gap.")
        .ends(0)
        .says("runner own takes no messages while it runs, so it is passed on");
    let own = scratch.program("tavern-tell").args(&["T-1", "I am great."]);
    own.variable("TAVERN_TASK", "T-1")
        .variable("TAVERN_TOKEN", "1")
        .run()
        .ends(4)
        .says("env -u TAVERN_TOKEN");
    let own = scratch.read("../home/steps/own");
    assert!(
        own.contains("is held by the agent that runs this") && !own.contains("env -u"),
        "{own}"
    );
    scratch.write("../home/steps/go", "");
    running.end().ends(0);
    assert!(!scratch.note("1").contains("Mind the gap."));
    has(
        &scratch.note("2"),
        &["<note from=\"rosie\">\nMind the gap."],
    );
}

#[test]
fn what_can_not_be_told_says_what_to_type() {
    let scratch = board(
        &ONE.replace(
            "## Waiting\n",
            "## Waiting\n\n## Dead Letter\n\n- [ ] T-2: Two\n",
        ),
        &[],
    );
    scratch
        .run("tavern-tell", &["T-2", "Go on."])
        .ends(4)
        .says("tavern retry T-2 -m");
    scratch
        .run("tavern-tell", &["T-1"])
        .ends(2)
        .says("the message is empty")
        .says("tavern tell T-1");
    scratch
        .run("tavern-tell", &["T-1", "x", "--from", "a b"])
        .ends(2)
        .says("use letters, digits");
    scratch.run("tavern-tell", &["T-9", "x"]).ends(2);
    let told = scratch
        .program("tavern-tell")
        .args(&["T-1", "-", "--from", "Sam", "--format", "json"])
        .input("Hi.\n")
        .run();
    let expected =
        "{\"task\":\"T-1\",\"status\":\"pending\",\"from\":\"Sam\",\"told\":\"next_run\"}\n";
    assert_eq!(told.succeeds(), expected);
}

#[test]
fn answers_are_typed_under_the_item_while_agents_wait() {
    let steps = [
        "echo 'WAITING: red or blue?'",
        "echo 'WAITING: light or dark?'",
        "echo 'WAITING: how often?'",
        WORK,
    ];
    let scratch = board(ONE, &steps);
    let queue = || scratch.queue();
    let asks = |question: &str| {
        wait_until(question, || scratch.item("T-1")["question"] == question);
        let told = format!("waits for you:\n  T-1 asks: {question} — tavern answer T-1 \"…\"");
        scratch.run("tavern-status", &[]).ends(0).says(&told);
    };
    let has_prompt = |number: u32| {
        wait_until("it was told", || {
            scratch
                .folder()
                .join(format!("home/notes/{number}"))
                .exists()
        });
    };
    let running = scratch
        .program("tavern-agent")
        .args(&["--name", "Frodo"])
        .start();
    asks("red or blue?");
    // A word that is no answer wakes it, too, and it waits on.
    scratch.write(QUEUE, queue().replace("With care.", "With great care."));
    scratch.write(
        QUEUE,
        queue().replace(
            "great care.\n",
            "great care.\n  Answer: blue,\n  as the sky\n",
        ),
    );
    has_prompt(2);
    asks("light or dark?");
    has(
        &scratch.note("2"),
        &["<asked>\nred or blue?\n</asked>\n<answered>\nblue,\nas the sky"],
    );
    assert_eq!(
        scratch.item("T-1")["answers"],
        1,
        "what was answered is no answer to this one"
    );
    scratch.write(
        QUEUE,
        queue().replace("as the sky\n", "as the sky\n  answer: light\n"),
    );
    has_prompt(3);
    asks("how often?");
    has(
        &scratch.note("3"),
        &["<asked>\nlight or dark?\n</asked>\n<answered>\nlight\n"],
    );
    scratch.write(
        QUEUE,
        queue().replace("T-1: Paint it\n", "T-1: Paint it (answer: twice)\n"),
    );
    has_prompt(4);
    wait_until("it is merged", || queue().contains("- [x] T-1"));
    running.signal(rustix::process::Signal::INT);
    running.end().ends(130);
    has(
        &scratch.note("4"),
        &["<asked>\nhow often?\n</asked>\n<answered>\ntwice"],
    );
    let log = scratch.run("tavern-log", &["T-1"]).succeeds();
    for line in [
        "Frodo needs a person for T-1: red or blue?",
        "which was answered: blue, as the sky",
        "which was answered: twice",
    ] {
        assert!(log.replace('·', " ").contains(line), "{line} in\n{log}");
    }
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says_not("waits for you");
}

#[test]
fn what_waits_for_a_person_is_seen_at_a_glance() {
    let queue = "## Pending\n\n- [ ] T-1: Ask\n- [ ] T-2: May I (approve: start)\n- [ ] T-3: Look (approve: merge)\n\
                 - [ ] Nameless (approve: start)\n- [ ] T-4: Come back\n\n## In Review\n\n## Completed\n";
    let scratch = board(queue, &["echo 'WAITING: red or blue?'", WORK]);
    scratch.write(CONFIG, scratch.read(CONFIG) + "max_returns: 1\n");
    let why = "it came back too often";
    for _ in 0..2 {
        scratch.claim("T-4", &[]);
        scratch
            .run("tavern-release", &["T-4", "--force", "-m", why])
            .ends(0);
    }
    scratch.stands("T-4", "waiting", 0);
    let drained = scratch.run("tavern-drain", &["--agents", "1"]).ends(8);
    let drained = drained
        .says("T-1 waiting — Ask\n  it asks: red or blue?\n  to do: tavern answer T-1 \"…\"");
    drained
        .says("to do: tavern approve T-2")
        .says("to do: tavern release T-4");
    let seen = scratch.run("tavern-status", &[]).succeeds();
    has(
        &seen,
        &[
            "waits for you:\n",
            "  T-1 asks: red or blue? — tavern answer T-1 \"…\"\n",
            "  T-2: a person has to allow it to start — tavern approve T-2\n",
            "  T-3: a person has to approve its work — tavern diff T-3, then tavern approve T-3, or tavern reject T-3 \"…\"\n",
            "  T-4: it came back too often — tavern release T-4\n",
            ": a person has to allow it to start — give it an ID in its file first, such as T-7\n",
        ],
    );
    let json = scratch.run("tavern-status", &["--format", "json"]).ends(0);
    json.says("{\"kind\":\"need\",\"queue\":\"main\",")
        .says("\"title\":\"Ask\",\"need\":\"answer\",\"why\":\"red or blue?\"");
    let full = scratch.run("tavern-status", &["T-1"]).ends(0);
    full.says("asks        red or blue?")
        .says("to do       tavern answer T-1");
    // What an agent could still do is no person's.
    scratch
        .run("tavern-add", &["--id", "T-9", "--role", "planner", "Plan"])
        .ends(0);
    scratch.run("tavern-drain", &["--agents", "1"]).ends(1);
}

#[test]
fn what_does_not_fit_into_a_prompt_stays_unread_and_comes_next() {
    for (number, size) in [(3, 100), (25, 100), (17, 3_900), (9, 4_000), (60, 1_500)] {
        let queue = ONE.replace("Paint it", "Paint it (max_attempts: 99)");
        let scratch = board(&queue, &["exit 3"; 20]);
        let words = |nth: usize| format!("M{nth:03} {}", "word ".repeat(size / 5));
        (0..number).for_each(|nth| {
            tell(&scratch, &words(nth)).ends(0);
        });
        let waiting = || -> String {
            let letters = scratch.letters("T-1").into_iter();
            letters
                .map(|path| std::fs::read_to_string(path).expect("it is there"))
                .collect()
        };
        for run in 1..=20 {
            scratch.run("tavern-agent", &["--name", "Frodo", "--once"]);
            let prompts: String = (1..=run).map(|run| scratch.note(run.to_string())).collect();
            let waiting = waiting();
            for nth in 0..number {
                let is_shown = prompts.contains(words(nth).trim());
                let is_waiting = waiting.contains(&format!("M{nth:03} "));
                assert!(
                    is_shown != is_waiting,
                    "{number} of {size}: {nth} after {run}"
                );
            }
            if waiting.is_empty() {
                break;
            }
            has(
                &scratch.note(run.to_string()),
                &["more, in the next message"],
            );
        }
        assert!(scratch.letters("T-1").is_empty(), "{number} of {size}");
    }
}
