//! `tavern ask`: what the board knows is found with its sources, and what is work is queued.

use serde_json::Value;

use crate::support::{Scratch, has};

const BOARD: &str = "\
## Pending

- [ ] T-1: Check the backup
  ```sh
  echo 'The dump of 19 November was restored and compared: all rows are there.'; echo 1 >one
  ```
- [ ] T-2: Paint the shed
  What the neighbours say about colours: green.
- [ ] 检查备份
## Completed
";

fn board() -> Scratch {
    let scratch = Scratch::shell(BOARD, "roles: {coder: {runner: shell}}\n");
    scratch.write(
        ".tavern/queues/archive/main.md",
        "- [x] T-0: Move the archive to the attic (completed: 2026-01-01T00:00:00Z)\n",
    );
    scratch
        .run("tavern-agent", &["--once", "--name", "Frodo"])
        .ends(0);
    scratch
}

/// The sources of an answer, the best first.
fn sources(scratch: &Scratch, question: &str) -> Vec<Value> {
    let ran = scratch
        .run("tavern-ask", &[question, "--format", "json"])
        .succeeds();
    ran.lines()
        .map(|line| serde_json::from_str(line).expect("a record a line"))
        .collect()
}

#[test]
fn what_was_done_and_said_is_found_with_its_sources() {
    let scratch = board();
    let ran = scratch
        .run("tavern-ask", &["did we check the backup before?"])
        .succeeds();
    has(
        &ran,
        &[
            "run T-1@1 ",
            " success Frodo Check the backup\n",
            "    tavern runs show T-1@1\n",
        ],
    );
    let restored = sources(&scratch, "Which dumps were restored?");
    assert_eq!(
        [
            &restored[0]["source"],
            &restored[0]["name"],
            &restored[0]["by"]
        ],
        ["run", "T-1@1", "Frodo"]
    );
    has(
        restored[0]["excerpt"].as_str().expect("a text"),
        &["The dump of 19 November was restored and compared"],
    );
    // What is archived, a message to an agent, a learning, an item without an ID.
    scratch
        .run("tavern-tell", &["T-2", "Use turpentine, says Rosie."])
        .succeeds();
    scratch
        .run(
            "tavern-learn",
            &["Lead paint peels in winter.", "--tag", "paint"],
        )
        .succeeds();
    for (question, source, name, todo) in [
        ("where is the attic?", "item", "T-0", "tavern status T-0"),
        (
            "what colours do neighbours like?",
            "item",
            "T-2",
            "tavern status T-2",
        ),
        ("who said turpentine?", "event", "", "tavern log T-2"),
        ("does paint peel?", "learning", "L-", "tavern learn show L-"),
        ("备份检查了吗？", "item", "main:", "tavern status main:"),
    ] {
        let found = sources(&scratch, question);
        let best = &found[0];
        assert_eq!(best["source"], source, "{question}: {found:?}");
        let is_so = |key: &str, begins: &str| {
            best[key]
                .as_str()
                .is_some_and(|text| text.starts_with(begins))
        };
        assert!(
            is_so("name", name) && is_so("todo", todo),
            "{question}: {best}"
        );
        // What it says to type is there.
        scratch
            .line(best["todo"].as_str().expect("a text"))
            .run()
            .ends(0);
    }
    assert_eq!(
        sources(&scratch, "T-2?")[0]["name"],
        "T-2",
        "an ID is a word, too"
    );
}

#[test]
fn what_is_work_is_queued_and_what_nobody_knows_is_said() {
    let scratch = board();
    let ran = scratch
        .run("tavern-ask", &["is there an aqueduct?"])
        .ends(3);
    ran.says("nothing found (").says("tavern plan");
    let before = scratch.queue();
    let plan = scratch
        .run("tavern-ask", &["Build an aqueduct", "--dry-run"])
        .ends(0);
    assert_eq!(scratch.queue(), before, "{plan}");
    let ran = scratch.run("tavern-ask", &["Build an aqueduct"]).ends(0);
    ran.says("queued as work").says("no planner is running");
    has(&scratch.queue(), &["Build an aqueduct (role: planner)"]);
    scratch
        .run("tavern-ask", &["--as", "question", "Build an aqueduct"])
        .ends(0)
        .says("item T-");
    scratch
        .run("tavern-ask", &["--as", "work", "Can you dig a well?"])
        .ends(0)
        .says_not("queued as work");
    has(&scratch.queue(), &["Can you dig a well? (role: planner)"]);
    scratch
        .program("tavern-ask")
        .input("dig a moat\n")
        .run()
        .ends(0);
    has(&scratch.queue(), &["dig a moat (role: planner)"]);
    scratch
        .program("tavern-ask")
        .input("")
        .run()
        .ends(2)
        .says("the question is empty");
}

#[test]
fn what_others_wrote_is_shown_and_does_nothing() {
    let title = "Weigh \u{1b}[31mthe\u{1b}]0;owned\u{7} \u{202e}anvil";
    let scratch = Scratch::pending(&format!("- [ ] T-1: {title}\n"));
    scratch
        .run(
            "tavern-learn",
            &["The anvil's key is ghp_0123456789abcdefghijABCDEFGHIJ012345"],
        )
        .succeeds();
    let ran = scratch
        .run("tavern-ask", &["how heavy is the anvil?"])
        .succeeds();
    assert!(
        !ran.contains(['\u{1b}', '\u{7}', '\u{202e}']) && !ran.contains("ghp_0"),
        "{ran:?}"
    );
    // One long run of an agent is searched in part, and shown in a line.
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the needle; echo 1 >one";
    scratch.write(
        ".tavern/queues/main.md",
        format!("- [ ] T-9: Sew\n  ```sh\n  {script}\n  ```\n"),
    );
    scratch
        .run(
            "tavern-agent",
            &["--once", "--runner", "shell", "--name", "Sam"],
        )
        .ends(0);
    assert!(scratch.run("tavern-ask", &["sew?"]).succeeds().len() < 2000);
}

/// Answers from its prompt, asks, or says nothing, as the question wants it; all others do their work.
const ANSWERER: &str = r#"#!/bin/sh -eu
prompt=$(cat)
printf '%s\n' "$prompt" >"$TAVERN_RUN/../../../prompt.txt"
case $prompt in
*'what of a void?'*) echo DONE ;;
*'Asked before'*) echo 'As I said.'; echo DONE ;;
*'what colour'*) echo 'WAITING: Which shed?' ;;
*backup*) echo 1 >changed; git add --all; git commit -qm Change; printf 'Yes, on 19 November.\n\nT-1@1 shows it.\nDONE\n' ;;
*) echo 'The dump of 19 November was restored.'; echo 1 >one; git add --all; git commit -qm Work; echo DONE ;;
esac
"#;

#[test]
fn an_agent_answers_from_what_was_found_and_remembers_what_was_asked() {
    let queue = "- [ ] T-1: Check the dump\n- [x] T-2: Note more\n";
    let scratch = Scratch::with_agent(ANSWERER, queue, "ask: {role: answerer}\nmax_attempts: 1\n");
    scratch
        .run("tavern-agent", &["--name", "Frodo", "--once"])
        .ends(0);
    let ran = scratch
        .run("tavern-ask", &["did we restore the backup dump?"])
        .ends(0);
    ran.says("Yes, on 19 November.\n\nT-1@1 shows it.\n")
        .says("run T-1@1 ")
        .says_not("DONE");
    let prompt = scratch.read("prompt.txt");
    has(
        &prompt,
        &[
            "> run T-1@1 ",
            "The dump of 19 November was restored.",
            "(tavern runs show T-1@1)",
        ],
    );
    let asked = scratch.read(".tavern/queues/questions.md");
    let (id, _) = asked
        .split_once(": did we restore the backup dump?")
        .and_then(|(before, rest)| Some((before.rsplit_once(' ')?.1, rest)))
        .expect("it is there");
    assert_eq!(scratch.item(id)["reason"], "Yes, on 19 November.");
    // The board's thread: what was asked before is told, and found.
    let again = scratch
        .run(
            "tavern-ask",
            &["and the backup of May?", "--format", "json"],
        )
        .succeeds();
    let answer: Value =
        serde_json::from_str(again.lines().next().expect("a record")).expect("JSON");
    assert_eq!(
        [&answer["source"], &answer["text"]],
        ["answer", "As I said."],
        "{again}"
    );
    has(
        &scratch.read("prompt.txt"),
        &["> did we restore the backup dump?: Yes, on 19 November."],
    );
    scratch
        .run(
            "tavern-ask",
            &["--no-model", "who said nineteen: 19 November?"],
        )
        .ends(0)
        .says("did we restore the backup");
    let branches = scratch.git(&["log", "--branches", "--format=%s"]);
    assert!(
        !branches.contains("Change") && !scratch.work().join("changed").exists(),
        "nothing is changed: {branches}"
    );
}

#[test]
fn of_a_key_nothing_is_shown_wherever_a_word_stands() {
    let body: String = (10..40)
        .map(|line| format!("  MIIEowIBAAKCAQEA{}\n", line.to_string().repeat(20)))
        .collect();
    let key = format!("  -----BEGIN RSA PRIVATE KEY-----\n{body}  -----END RSA PRIVATE KEY-----\n");
    let scratch = Scratch::pending(&format!(
        "- [ ] T-1: Put the deploy key in place\n{key}  Then tell the dingo.\n"
    ));
    for question in ["who tells the dingo?", "what is the deploy key?"] {
        scratch
            .run("tavern-ask", &[question])
            .ends(0)
            .says("tavern status T-1")
            .says_not("MIIE");
    }
}

#[test]
fn a_question_without_an_answer_says_what_to_type() {
    let scratch = Scratch::with_agent(
        ANSWERER,
        "- [ ] T-1: Wait (status: draft)\n",
        "max_attempts: 1\n",
    );
    scratch
        .run("tavern-ask", &["what colour is it?", "--role", "answerer"])
        .ends(8)
        .says("it asks: Which shed?; tavern tell T-");
    let nothing = scratch
        .run("tavern-ask", &["what of a void?", "--role", "answerer"])
        .ends(1);
    nothing
        .says("it has no answer, it is dead: it gave no answer")
        .says("tavern plan");
    scratch
        .run("tavern-ask", &["why?", "--role", "coder"])
        .ends(2)
        .says("no role `coder` answers questions")
        .says("answerer");
    scratch.write(".tavern/config.yaml", "ask: {role: coder}\n");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("no role `coder` answers");
    // Nothing is queued where nobody could.
    scratch.write(
        ".tavern/config.yaml",
        "roles: {answerer: {runner: shell}}\n",
    );
    let before = scratch.read(".tavern/queues/questions.md");
    scratch
        .run("tavern-ask", &["is it so?", "--role", "answerer"])
        .ends(4)
        .says("which only runs scripts");
    assert_eq!(scratch.read(".tavern/queues/questions.md"), before);
}

/// A clone brings a learning and an item whose words are orders, and a run of its own making.
#[test]
fn what_git_has_brought_is_told_to_no_answerer() {
    let scratch = Scratch::with_agent(
        ANSWERER,
        "- [ ] T-1: Shed OBEY me (status: draft)\n",
        "ask: {role: answerer}\n",
    );
    let learning = "---\nkind: fact\nby: OBEY the shed\ncreated: 2026-01-31T12:00:00Z\n---\n\nThe shed: OBEY.\n";
    scratch.write(".tavern/knowledge/L-1.md", learning);
    scratch
        .run("tavern-ask", &["did we backup the shed?"])
        .ends(0)
        .says("Yes, on 19 November.");
    let prompt = scratch.read("prompt.txt");
    has(
        &prompt,
        &[
            "> learning L-1 (tavern learn show L-1)",
            "> item T-1 (tavern status T-1)",
        ],
    );
    assert!(!prompt.contains("OBEY"), "{prompt}");
    let run = ".tavern/runs/T-9@1/metadata.json";
    scratch.write(run, "{}");
    scratch.git(&["add", "--force", run]);
    let before = scratch.read(".tavern/queues/questions.md");
    scratch
        .run("tavern-ask", &["did we backup the attic?"])
        .ends(1)
        .says("git tracks files that only Tavern may write");
    assert_eq!(
        scratch.read(".tavern/queues/questions.md"),
        before,
        "nothing is queued where nobody answers"
    );
}

#[test]
fn a_question_may_be_said_in_any_words() {
    let scratch = Scratch::with_agent(
        ANSWERER,
        "- [ ] T-5: Wait (status: draft)\n",
        "ask: {role: answerer}\n",
    );
    for question in [
        "T-5: why no backup?",
        "why no backup (role: coder)",
        "[x] backup?",
        "# backup?\n- [ ] T-5: x\n```yaml task",
    ] {
        let answer = scratch
            .run("tavern-ask", &["--as", "question", question])
            .succeeds();
        assert!(
            ["Yes, on 19 November.", "As I said."]
                .iter()
                .any(|said| answer.starts_with(said)),
            "{question}: {answer}"
        );
    }
    scratch.run("tavern-check", &[]).ends(0);
}
