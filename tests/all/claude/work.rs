//! What agents do and leave becomes verified, merged commits, or says why not.

use serde_json::{Value, json};

use super::project::{HOLD, Project, bash, lines, say};

const HELLO: &str = "- [ ] T-1: Write hello
  Into the file `hello`.
  ```yaml task
  done_when: [grep -q hi hello]
  ```
";

const COMMIT: &str = "echo hi > hello && git add -A && git commit -qm 'Say hello'";

#[test]
fn an_item_becomes_a_verified_and_merged_commit() {
    let project = Project::new(HELLO, json!([bash(COMMIT), say("I wrote it.\n\nDONE")]));
    let told = project.work();
    let events: Vec<&str> = told.iter().filter_map(|told| told["event"].as_str()).collect();
    assert_eq!(events, ["claimed", "ended", "integrated"], "{told:#?}");
    let item = project.item("T-1");
    assert_eq!((&item["status"], &item["attempt"]), (&json!("completed"), &json!(1)), "{item:#}");
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    // The queue names the merge commit; the user's own branch and work tree are as they were.
    let merge = project.scratch.git(&["rev-parse", "--short=7", "tavern/integration"]);
    let queue = project.scratch.read(".tavern/queues/main.md");
    let completed = queue.split("## Completed").nth(1).expect("the lane is there");
    // Quoted if it looks like a number.
    let named = completed.replace('"', "");
    assert!(named.contains(&format!("- [x] T-1: Write hello (attempt: 1, commit: {merge}, completed: ")), "{queue}");
    assert_eq!(project.scratch.git(&["log", "--format=%s", "main"]), "Begin");
    assert!(!project.scratch.work().join("hello").exists());

    // The run's folder holds what was asked, said and done.
    let run = &project.runs()[0];
    assert_eq!((&run["outcome"], &run["verified"], &run["turns"]), (&json!("success"), &json!(true), &json!(2)));
    assert_eq!((&run["usage"]["input"], &run["usage"]["output"]), (&json!(2400), &json!(300)), "{run:#}");
    assert!(run["usage"]["usd"].as_f64().is_some_and(|usd| (usd - 0.031_25).abs() < 1e-9), "{run:#}");
    let artifact = |name: &str| project.scratch.read(format!(".tavern/runs/T-1@1/{name}"));
    assert_eq!(artifact("result.txt"), "I wrote it.\n\nDONE");
    let prompt = artifact("prompt.md");
    assert!(prompt.contains("Task: T-1: Write hello") && prompt.contains("Into the file `hello`."), "{prompt}");
    assert!(prompt.contains("\nDONE\n") && prompt.contains("\nWAITING: "), "{prompt}");
    assert!(
        project.provider.calls()[0].prompt().trim_end().ends_with(prompt.trim_end()),
        "{}",
        project.provider.calls()[0].prompt()
    );
    let thread = lines(&artifact("thread.jsonl"));
    assert!(thread.iter().any(|line| line["type"] == "result"), "{thread:#?}");
    let call = artifact("tool_calls/001_Bash.txt");
    assert!(call.starts_with("Bash {") && call.contains("git commit") && call.contains("--- ok"), "{call}");
    let verify = artifact("verify.txt");
    assert!(verify.starts_with("$ grep -q hi hello\nexited with code 0 in "), "{verify}");
    assert!(artifact("diff.patch").contains("+hi"));
    assert_eq!(artifact("metadata.json").parse::<Value>().expect("it is JSON")["session"], run["session"]);

    let shown = project.scratch.run("tavern-runs", &["show", "T-1"]).succeeds();
    for part in
        ["T-1@1 Write hello", "Frodo (coder), attempt 1, runner claude", "success", "$0.03", "2 turns", "diff.patch"]
    {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let log = project.log();
    assert!(log.contains("Frodo claimed T-1 with token 1") && log.contains("T-1 was merged at"), "{log}");
}

#[test]
fn a_refuted_agent_hears_why_in_its_own_session() {
    let steps = json!([
        bash("echo ho > hello && git add -A && git commit -qm 'Say hello'"),
        say("DONE"),
        bash("echo hi > hello && git commit -qam 'Say it right'"),
        say("DONE"),
    ]);
    let items = HELLO.replace("grep -q hi hello", "echo it says; cat hello; grep -q hi hello");
    let project = Project::new(&items, steps);
    project.work();
    let item = project.item("T-1");
    assert_eq!((&item["status"], &item["attempt"]), (&json!("completed"), &json!(2)), "{item:#}");
    assert_eq!(project.outcomes(), ["failed", "success"]);
    let runs = project.runs();
    assert_eq!((&runs[0]["verified"], &runs[1]["verified"]), (&json!(false), &json!(true)));
    assert_eq!(runs[0]["session"], runs[1]["session"]);

    let calls = project.provider.calls();
    assert_eq!(calls[2].session, calls[0].session);
    // What is new, and not the whole prompt again.
    let prompt = calls[2].prompt();
    for part in ["Attempt 1 ended: failed: `echo it says", "exited with code 1", "it says\nho\n", "Attempt: 2 of 3"] {
        assert!(prompt.contains(part), "{part} in\n{prompt}");
    }
    assert!(!prompt.contains("Into the file") && !prompt.contains("<working-rules>"), "{prompt}");
    assert!(calls[2].messages().contains("Into the file"), "the session remembers");
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
}

#[test]
fn an_agent_that_changes_nothing_is_not_believed() {
    let project =
        Project::with(json!({"max_attempts": 1}), "- [ ] T-1: Write hello\n", json!([say("All is well.\n\nDONE")]));
    assert_eq!(project.agent().run().code, Some(0));
    let item = project.item("T-1");
    assert_eq!((&item["status"], project.outcomes()), (&json!("dead"), vec!["empty".to_owned()]), "{item:#}");
    assert!(item["reason"].as_str().is_some_and(|reason| reason.contains("empty: allowed")), "{item:#}");
    project.assert_tidy();
}

#[test]
fn what_is_left_uncommitted_is_committed() {
    let project = Project::new(HELLO, json!([bash("echo hi > hello; echo x >> README.md"), say("DONE")]));
    project.work();
    assert_eq!(project.outcomes(), ["success"]);
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    assert_eq!(project.scratch.git(&["log", "-1", "--format=%s", "tavern/integration^2"]), "T-1: Write hello");
}

#[test]
fn the_board_and_the_drained_file_are_left_out_of_the_merge() {
    let command = "sed -i 's/\\[ \\]/[x]/' TODO.md; mkdir -p .tavern; echo 'limit: 99' > .tavern/config.yaml; \
        echo hi > hello; git add -Af && git commit -qm all";
    let project = Project::new("", json!([bash(command), say("DONE")]));
    project.scratch.write("TODO.md", "# To do\n\n- [ ] Write hello\n");
    project.scratch.git(&["add", "--all"]);
    project.scratch.git(&["commit", "--quiet", "--message=Plan"]);
    let drained = project.scratch.run("tavern-drain", &["TODO.md", "--agents", "1", "--quiet"]);
    assert_eq!(drained.code, Some(0), "{drained}");
    project.assert_tidy();
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    assert_eq!(project.merged("TODO.md").as_deref(), Some("# To do\n\n- [ ] Write hello\n"));
    // Its port and its folder may well have a 99 in them.
    let config = project.scratch.git(&["show", "main:.tavern/config.yaml"]);
    assert_eq!(project.merged(".tavern/config.yaml").as_deref().map(str::trim_end), Some(config.as_str()));
    let todo = project.scratch.read("TODO.md");
    assert!(todo.contains("- [x] T-") && todo.contains("Write hello (attempt: 1, commit: "), "{todo}");
    let log = project.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("violation")).collect();
    assert!(told.len() == 1 && told[0].contains(".tavern/config.yaml") && told[0].contains("TODO.md"), "{log}");
}

#[test]
fn a_branch_that_only_touches_the_board_has_changed_nothing() {
    let command = "mkdir -p .tavern; echo 'limit: 99' > .tavern/config.yaml; git add -Af && git commit -qm board";
    let steps = json!([bash(command), say("DONE")]);
    let project = Project::with(json!({"max_attempts": 1}), "- [ ] T-1: Write hello\n", steps);
    assert_eq!(project.agent().run().code, Some(0));
    assert_eq!((&project.item("T-1")["status"], project.outcomes()), (&json!("dead"), vec!["empty".to_owned()]));
}

#[test]
fn work_on_another_branch_is_found() {
    let steps = json!([
        bash("git switch -qc elsewhere && echo ho > hello && git add -A && git commit -qm first"),
        say("DONE"),
        bash("git branch --show-current > branch; echo hi > hello"),
        say("DONE"),
    ]);
    let project = Project::new(HELLO, steps);
    project.work();
    assert_eq!(project.outcomes(), ["failed", "success"]);
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    // The second attempt went on from the first, on the branch that is the item's.
    assert_eq!(project.merged("branch").as_deref(), Some("tavern/T-1\n"));
    assert!(project.scratch.git(&["log", "--format=%s", "tavern/integration"]).contains("first"));
    assert!(project.log().contains("its work was on `elsewhere`"), "{}", project.log());
}

#[test]
fn a_process_left_behind_is_ended() {
    let command =
        format!("{COMMIT}; (setsid sleep 1000 > /dev/null 2>&1 &); setsid nohup sleep 1000 > /dev/null 2>&1 &");
    let project = Project::new(HELLO, json!([bash(&command), say("DONE")]));
    project.work();
    assert_eq!(project.outcomes(), ["success"]);
}

#[test]
fn the_small_programs_do_the_same() {
    let project = Project::new(HELLO, json!([bash(COMMIT), say("DONE")]));
    let script = "set -e; claim=$(tavern claim --agent Sam --format env); eval \"export $claim\"
        tavern spawn --format json; tavern report; tavern merge";
    let programs = crate::support::program("tavern-claim");
    let path = format!(
        "{}:{}",
        programs.parent().expect("it is in a folder").display(),
        std::env::var("PATH").expect("PATH is set")
    );
    let ran = project.scratch.command("sh".as_ref()).args(&["-c", script]).variable("PATH", path).run();
    assert_eq!(ran.code, Some(0), "{ran}");
    project.assert_tidy();
    assert!(ran.stdout.contains("\"outcome\":\"success\"") && ran.stdout.contains("T-1 approved"), "{ran}");
    assert_eq!(project.item("T-1")["status"], "completed");
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
}

/// `step`, for the agent of `task` alone.
fn of(task: &str, mut step: Value) -> Value {
    step["for"] = json!(format!("Task: {task}:"));
    step
}

#[test]
fn several_agents_work_side_by_side() {
    let write = |task: &str| of(task, bash(&format!("echo {task} > {task}; git add -A; git commit -qm {task}")));
    let after = bash("cat T-1 T-2 > T-3; git add -A; git commit -qm T-3");
    let done = |task: &str| of(task, say("DONE"));
    let steps = json!([write("T-1"), done("T-1"), write("T-2"), done("T-2"), of("T-3", after), done("T-3")]);
    let items = "- [ ] T-3: Put them together (after: [T-1, T-2], priority: 1)\n- [ ] T-1: One\n- [ ] T-2: Two\n";
    let project = Project::new(items, steps);
    let drained = project.scratch.run("tavern-drain", &["--agents", "2", "--format", "json"]);
    assert_eq!(drained.code, Some(0), "{drained}");
    project.assert_tidy();
    let summary = &lines(&drained.stdout)[0];
    assert_eq!((&summary["completed"], &summary["left"]), (&json!(3), &json!([])), "{summary:#}");
    assert!(summary["usd"].as_f64().is_some_and(|usd| (usd - 3.0 * 0.031_25).abs() < 1e-9), "{summary:#}");
    assert_eq!(project.merged("T-3").as_deref(), Some("T-1\nT-2\n"));
    let runs = project.runs();
    let sessions: std::collections::BTreeSet<&str> = runs.iter().filter_map(|run| run["session"].as_str()).collect();
    assert_eq!((runs.len(), sessions.len()), (3, 3), "{runs:#?}");
}

#[test]
fn a_conflict_goes_back_into_the_session() {
    let change = |word: &str| format!("echo {word} > README.md; git commit -qam {word}");
    let steps = json!([
        of("T-1", bash(&format!("{}; {HOLD}", change("one")))),
        of("T-2", bash(&change("two"))),
        of("T-2", say("DONE")),
        of("T-1", say("DONE")),
        of("T-1", bash("echo one and two > README.md; git commit -qam both")),
        of("T-1", say("DONE")),
    ]);
    let project = Project::new("- [ ] T-1: One\n- [ ] T-2: Two\n", steps);
    let first = project.agent().start();
    project.wait_for_hold();
    let second = project.scratch.run("tavern-agent", &["--name", "Sam", "--once"]);
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(project.merged("README.md").as_deref(), Some("two\n"));
    project.let_go();
    first.end().succeeds();
    project.assert_tidy();
    assert_eq!(project.merged("README.md").as_deref(), Some("one and two\n"));
    let item = project.item("T-1");
    assert_eq!((&item["status"], &item["attempt"]), (&json!("completed"), &json!(2)), "{item:#}");
    let calls = project.provider.calls();
    let prompt = calls[calls.len() - 2].prompt();
    let told = "Attempt 1 ended: sent back: conflict with `tavern/integration` in README.md";
    assert!(prompt.contains(told) && prompt.contains("refs/tavern/salvage/T-1/"), "{prompt}");
    assert_eq!(calls[calls.len() - 2].session, calls[0].session);
}

#[test]
fn in_a_sandbox_the_cli_keeps_its_session_and_goes_on_in_it() {
    let boxed = json!({"roles": {"coder": {"sandbox": true}}});
    let outside = "(echo x > \"$HOME/outside\") 2>/dev/null || echo kept-out > hello-box; ";
    let commit = format!("{outside}{COMMIT} && git add hello-box && git commit -qm box");
    let steps = json!([say("Which one?\n\nWAITING: which one?"), bash(&commit), say("DONE")]);
    let project = Project::with(boxed, HELLO, steps);
    let probe = ["-c", "bwrap --ro-bind / / --dev /dev --tmpfs /tmp true"];
    if project.scratch.command("sh".as_ref()).args(&probe).run().code != Some(0) {
        assert_eq!(project.agent().run().code, Some(1), "nothing is begun without one");
        return;
    }
    project.work();
    assert_eq!(project.item("T-1")["status"], "waiting", "{}", project.log());
    project.scratch.run("tavern-release", &["T-1", "-m", "the first"]).succeeds();
    project.work();
    assert_eq!(project.item("T-1")["status"], "completed", "{}", project.log());
    assert_eq!(project.merged("hello-box").as_deref(), Some("kept-out\n"));
    let sessions: Vec<Value> = project.runs().iter().map(|run| run["session"].clone()).collect();
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[0], sessions[1], "its record was kept");
}

#[test]
fn a_reviewer_that_failed_goes_on_in_its_session() {
    let approve = "```yaml\nverdict: approve\nsummary: well done\n```\n\nDONE";
    let steps = json!([bash(COMMIT), say("DONE"), say("Hm."), say(approve)]);
    let settings = json!({"review": ["reviewer"], "roles": {"reviewer": {"prods": 0}}});
    let project = Project::with(settings, HELLO, steps);
    project.work();
    let reviewer = ["--role", "reviewer", "--name", "Sam", "--until-empty"];
    project.scratch.run("tavern-agent", &reviewer).succeeds();
    let runs = project.runs();
    assert_eq!(project.outcomes(), ["success", "failed", "success"], "{runs:#?}");
    assert_eq!(runs[1]["session"], runs[2]["session"], "{runs:#?}");
    assert_ne!(runs[0]["session"], runs[1]["session"], "{runs:#?}");
}
