//! The supervisor is killed while its agent works: the agent is seen to live, its words are kept, and it is ended with
//! all that it started, by somebody who knows nothing but the run's folder and mark.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tavern::process::{Mark, end_marked, table};
use tavern::runner::{AgentEvent, is_live, stream};

use super::workshop::{Workshop, wait_for, wait_for_file};

/// Set in the process that plays the supervisor.
const INNER: &str = "TAVERN_TEST_SUPERVISES";

#[test]
fn an_agent_whose_supervisor_was_killed_is_found_and_ended() {
    if std::env::var_os(INNER).is_some() {
        supervise();
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut supervisor = Command::new(std::env::current_exe().expect("a test is a program"))
        .args(["--exact", "claude::orphan::an_agent_whose_supervisor_was_killed_is_found_and_ended", "--nocapture"])
        .env(INNER, "1")
        // What it leaves behind is removed with this folder.
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started again");
    let output = BufReader::new(supervisor.stdout.take().expect("it is piped"));
    let mut lines = output.lines().map(|line| line.expect("it is text"));
    let run_dir = lines.find_map(|line| line.split_once("run folder: ").map(|(_, path)| PathBuf::from(path)));
    let run_dir = run_dir.expect("it tells when its agent works");
    supervisor.kill().and_then(|()| supervisor.wait()).expect("it is ours");

    let mark = Mark::run(run_dir.display().to_string());
    assert!(is_live(&run_dir).expect("it can be asked"), "the agent lives on and holds its log");
    assert!(table::marked(&mark).len() >= 2, "the agent and its shell");
    let swept = end_marked(&mark, Duration::from_secs(5));
    assert!(swept.ended.len() >= 2 && swept.survivors.is_empty(), "{swept:?}");
    assert_eq!(table::marked(&mark), []);
    let deadline = Instant::now() + Duration::from_secs(20);
    while is_live(&run_dir).expect("it can be asked") {
        assert!(Instant::now() < deadline, "the log stays locked");
        std::thread::sleep(Duration::from_millis(5));
    }
    let log = std::fs::read_to_string(run_dir.join("thread.jsonl")).expect("the log is there");
    let events: Vec<AgentEvent> = log.lines().flat_map(stream::read).collect();
    assert!(events.iter().any(|event| matches!(event, AgentEvent::ToolCall { .. })), "{events:#?}");
}

fn supervise() -> ! {
    let command = json!({"command": "touch begun; sleep 300"});
    let workshop = Workshop::new(json!([{"tool": "Bash", "input": command}, {"text": "never"}]));
    let mut session = workshop.start();
    wait_for(&mut session, |event| matches!(event, AgentEvent::ToolCall { .. }));
    wait_for_file(&workshop.path("begun"));
    #[expect(clippy::print_stdout, reason = "the parent test reads it")]
    let () = println!("run folder: {}", workshop.job.run_dir.display());
    loop {
        std::thread::park();
    }
}
