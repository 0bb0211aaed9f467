//! What is said to agents, and what they say: messages, questions, prods, sessions that go on.

use serde_json::json;

use super::project::{HOLD, Project, bash, merge, say};
use crate::terminal::Terminal;

const ITEM: &str = "- [ ] T-1: Write hello\n";
const COMMIT: &str = "echo hi > hello && git add -A && git commit -qm 'Say hello'";

#[test]
fn a_message_reaches_the_model_between_two_steps() {
    // The model goes on with small steps until it hears.
    let (mut hears, mut ends, mut steps) = (bash(COMMIT), say("DONE"), bash("sleep 0.05"));
    hears["for"] = json!("instead of hello");
    ends["for"] = json!("Say hello");
    steps["repeat"] = json!(true);
    let project = Project::new(ITEM, json!([bash(HOLD), hears, ends, steps]));
    let agent = project.agent().start();
    project.wait_for_hold();
    let said = "Write \"hi\",\ninstead of hello.";
    let told = project.scratch.run("tavern-tell", &["T-1", said, "--from", "rosie"]).succeeds();
    assert_eq!(told, "T-1 is in_progress: Frodo hears it between two steps\n");
    let message = project.scratch.work().join(".tavern/inbox/T-1/001.md");
    assert!(message.exists(), "it was sent");
    project.let_go();
    agent.end().succeeds();
    project.assert_tidy();
    assert_eq!(project.outcomes(), ["success"]);
    let calls = project.provider.calls();
    let heard = calls.iter().position(|call| call.body.to_string().contains("instead of hello"));
    assert!(heard.is_some_and(|heard| heard > 0 && heard + 2 == calls.len()), "{heard:?} of {}", calls.len());
    assert!(!message.exists(), "it was delivered");
    assert!(project.log().contains("T-1 was told by rosie: Write \"hi\","), "{}", project.log());
}

#[test]
fn a_question_waits_for_a_person_and_the_answer_goes_into_the_session() {
    let steps =
        json!([bash("echo half > half"), say("I need to know.\n\nWAITING: red or blue?"), bash(COMMIT), say("DONE")]);
    let project = Project::new(ITEM, steps);
    project.work();
    let item = project.item("T-1");
    let expected = (&json!("waiting"), &json!("red or blue?"), &json!(0));
    assert_eq!((&item["status"], &item["question"], &item["attempt"]), expected, "{item:#}");
    let queue = project.scratch.read(".tavern/queues/main.md");
    let waiting = queue.split("## Waiting").nth(1).and_then(|rest| rest.split("## ").next());
    assert!(waiting.is_some_and(|lane| lane.contains("T-1: Write hello (question: red or blue?")), "{queue}");
    assert_eq!(project.runs()[0]["question"], "red or blue?");
    assert!(project.worktree("T-1", "half").exists());

    let told = project.scratch.run("tavern-tell", &["T-1", "Blue, as the sky.", "--format", "json"]).succeeds();
    assert!(told.contains("\"told\":\"answered\""), "{told}");
    project.work();
    let item = project.item("T-1");
    assert_eq!((&item["status"], &item["attempt"]), (&json!("completed"), &json!(1)), "{item:#}");
    let runs = project.runs();
    assert_eq!(
        (project.outcomes(), &runs[0]["session"]),
        (vec!["waiting".to_owned(), "success".to_owned()], &runs[1]["session"])
    );
    let prompt = project.provider.calls()[2].prompt();
    assert!(prompt.contains("red or blue?") && prompt.contains("Blue, as the sky."), "{prompt}");
}

#[test]
fn an_answer_that_is_typed_goes_into_the_session() {
    let ask = "Either would do.\n\n```yaml\nquestion: red or blue?\noptions: [red, blue]\n```";
    let project = Project::new(ITEM, json!([say(ask), bash(COMMIT), say("DONE")]));
    project.work();
    let queue = project.scratch.read(".tavern/queues/main.md");
    assert!(
        queue.contains("question: red or blue? (1: red; 2: blue)")
            || queue.contains("question: \"red or blue? (1: red; 2: blue)\""),
        "{queue}"
    );
    project.scratch.run("tavern-status", &["T-1"]).ends(0).says("red or blue? (1: red; 2: blue)");
    let at = queue.find("- [ ] T-1").expect("it is there");
    let end = at + queue[at..].find('\n').expect("a line ends") + 1;
    project.scratch.write(".tavern/queues/main.md", format!("{}  Answer: 2\n{}", &queue[..end], &queue[end..]));
    project.work();
    assert_eq!(project.outcomes(), ["waiting", "success"]);
    let (runs, calls) = (project.runs(), project.provider.calls());
    assert_eq!((&runs[0]["session"], &calls[1].session), (&runs[1]["session"], &calls[0].session));
    assert!(calls[1].prompt().contains("2: blue)\nAnswered: 2"), "{}", calls[1].prompt());
}

#[test]
fn no_signal_is_prodded_on_before_the_work_is_verified() {
    let settings = json!({"roles": {"coder": {"prods": 2}}});
    let item = "- [ ] T-1: Write hello\n  ```yaml task\n  done_when: [test -e hello]\n  ```\n";
    let steps = json!([say("Shall I begin?"), bash(COMMIT), say("That is all."), say("As I said.")]);
    let project = Project::with(settings, item, steps);
    project.work();
    assert_eq!(project.outcomes(), ["success"]);
    let calls = project.provider.calls();
    assert_eq!(calls.len(), 4);
    assert!(calls[1].prompt().contains("You ended your turn without saying what it came to"), "{}", calls[1].prompt());
    let log = project.log();
    assert!(log.contains("prodded on, 1 of 2") && log.contains("prodded on, 2 of 2"), "{log}");
}

#[test]
fn a_session_that_is_gone_is_begun_anew_in_the_same_attempt() {
    let steps = json!([bash("touch half"), say("WAITING: what now?"), bash(COMMIT), say("DONE")]);
    let project = Project::new(ITEM, steps);
    project.work();
    let home = project.scratch.folder().join("home/.claude/projects");
    // One is lost with its record; of another, only what the CLI itself says tells that it is lost.
    let record = find(&home, "jsonl");
    std::fs::rename(&record, record.with_file_name("elsewhere")).expect("it is ours");
    let folder = home.join("-another-project");
    std::fs::create_dir(&folder).expect("it is ours");
    std::fs::write(folder.join(record.file_name().expect("it has a name")), "{}\n").expect("it is ours");
    project.scratch.run("tavern-release", &["T-1"]).succeeds();
    project.work();
    assert_eq!(project.outcomes(), ["waiting", "success"]);
    let runs = project.runs();
    assert_ne!(runs[0]["session"], runs[1]["session"]);
    assert!(project.log().contains("its session is not known any more"), "{}", project.log());
    let prompt = project.provider.calls()[2].prompt();
    assert!(prompt.contains("<working-rules>") && prompt.contains("Attempt 1: waiting: what now?"), "{prompt}");
    assert_eq!(project.item("T-1")["attempt"], 1);
}

fn find(folder: &std::path::Path, extension: &str) -> std::path::PathBuf {
    let files = walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok).map(walkdir::DirEntry::into_path);
    let mut found = files.filter(|path| path.extension().is_some_and(|found| found == extension));
    found.next().expect("it was recorded")
}

#[test]
fn a_person_goes_on_in_the_session_that_asked_and_the_agent_after_them() {
    let steps = json!([say("WAITING: red or blue?"), say("Hello, person."), bash(COMMIT), say("DONE")]);
    let project = Project::new(ITEM, steps);
    project.work();
    let before = project.scratch.read(".tavern/queues/main.md");
    has_been_welcomed(&project);
    let mut terminal = Terminal::start(&project.scratch, "tavern agent --chat T-1 --name Frodo");
    project.provider.wait_for_calls(2);
    terminal.shows("person.");
    terminal.type_in("/exit");
    terminal.shows("/exit");
    terminal.type_in("\r");
    terminal.end().ends(0).says("T-1 is waiting, as it was").says("tavern tell T-1");
    assert_eq!(project.scratch.read(".tavern/queues/main.md"), before);
    project.assert_tidy();

    project.scratch.run("tavern-tell", &["T-1", "Blue."]).succeeds();
    project.work();
    assert_eq!(project.outcomes(), ["waiting", "success", "success"]);
    let calls = project.provider.calls();
    assert!(calls.iter().all(|call| call.session == calls[0].session), "it is one session");
    assert!(calls[2].prompt().contains("Asked: red or blue?\nAnswered: Blue."), "{}", calls[2].prompt());
    assert!(calls[2].messages().contains("Hello, person."));
}

/// What the CLI asks a person who first starts it, and of each folder, was answered.
fn has_been_welcomed(project: &Project) {
    let path = project.scratch.folder().join("home/.claude.json");
    let mut settings = std::fs::read_to_string(&path)
        .map_or_else(|_| json!({}), |text| serde_json::from_str(&text).expect("it is JSON"));
    let trusted = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let folders = [project.scratch.work(), project.scratch.work().join(".tavern/worktrees/T-1")];
    let folders: serde_json::Map<_, _> =
        folders.iter().map(|folder| (folder.display().to_string(), trusted.clone())).collect();
    let over = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "projects": folders,
        // The last twenty characters of the key.
        "customApiKeyResponses": {"approved": ["sk-ant-test-not-real"], "rejected": []},
    });
    merge(&mut settings, over);
    std::fs::write(path, settings.to_string()).expect("the folder is ours");
}
