//! What agents do and leave becomes verified, merged commits, or says why not.

use serde_json::{Value, json};

use super::project::{COMMIT, HOLD, Project, bash, of, say};
use super::stand_in::StandIn;
use super::workshop::installed;
use crate::support::{Scratch, has, program};

const HELLO: &str = "- [ ] T-1: Write hello
  Into the file `hello`.
  ```yaml task
  done_when: [grep -q hi hello]
  ```
";

#[test]
fn an_item_becomes_a_verified_and_merged_commit() {
    let project = Project::new(HELLO, json!([bash(COMMIT), say("I wrote it.\n\nDONE")]));
    let told = project.work();
    let events: Vec<&str> = told
        .iter()
        .filter_map(|told| told["event"].as_str())
        .collect();
    assert_eq!(events, ["claimed", "ended", "integrated"], "{told:#?}");
    let item = project.scratch.stands("T-1", "completed", 1);
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    // The item names the merge commit; the user's own branch and work tree are as they were.
    let merge = project
        .scratch
        .git(&["rev-parse", "--short=7", "tavern/integration"]);
    assert_eq!(item["commit"], merge);
    assert!(!item["completed"].is_null(), "{item:#}");
    let queue = project.scratch.read(".tavern/queues/main.md");
    let completed = queue
        .split("## Completed")
        .nth(1)
        .expect("the lane is there");
    has(completed, &["- [x] T-1: Write hello\n  Into"]);
    assert_eq!(
        project.scratch.git(&["log", "--format=%s", "main"]),
        "Begin"
    );
    assert!(!project.scratch.work().join("hello").exists());

    // The run's folder holds what was asked, said and done.
    let run = &project.runs()[0];
    assert_eq!(
        (&run["outcome"], &run["verified"], &run["turns"]),
        (&json!("success"), &json!(true), &json!(2))
    );
    assert_eq!(
        (&run["usage"]["input"], &run["usage"]["output"]),
        (&json!(2400), &json!(300)),
        "{run:#}"
    );
    assert!(
        run["usage"]["usd"]
            .as_f64()
            .is_some_and(|usd| (usd - 0.031_25).abs() < 1e-9),
        "{run:#}"
    );
    let artifact = |name: &str| project.scratch.read(format!(".tavern/runs/T-1@1/{name}"));
    assert_eq!(artifact("result.txt"), "I wrote it.\n\nDONE");
    let prompt = artifact("prompt.md");
    has(
        &prompt,
        &["Task: T-1: Write hello", "Into the file `hello`."],
    );
    let calls = project.provider.calls();
    let told = calls[0].prompt();
    assert!(told.trim_end().ends_with(prompt.trim_end()), "{told}");
    // What holds for every task stands apart from it, and goes with each call.
    let rules = artifact("rules.md");
    has(
        &rules,
        &["<working-rules>", "is \"DONE\" when", "it is \"WAITING:\""],
    );
    let escaped = serde_json::to_string(rules.trim()).expect("it is text");
    for call in &calls {
        has(&call.system(), &[escaped.trim_matches('"')]);
        assert!(
            !call.messages().contains("<working-rules>"),
            "{}",
            call.messages()
        );
    }
    let thread = artifact("thread.jsonl");
    let mut types = thread
        .lines()
        .map(|line| line.parse::<Value>().expect("it is JSON")["type"].clone());
    assert!(types.any(|kind| kind == "result"), "{thread}");
    has(
        &artifact("tool_calls/001_Bash.txt"),
        &["Bash {", "git commit", "--- ok"],
    );
    let verify = artifact("verify.txt");
    assert!(
        verify.starts_with("$ grep -q hi hello\nexited with code 0 in "),
        "{verify}"
    );
    assert!(artifact("diff.patch").contains("+hi"));
    assert_eq!(
        artifact("metadata.json")
            .parse::<Value>()
            .expect("it is JSON")["session"],
        run["session"]
    );

    let shown = project
        .scratch
        .run("tavern-runs", &["show", "T-1"])
        .succeeds();
    has(
        &shown,
        &[
            "T-1@1 Write hello",
            "Frodo (coder), attempt 1, runner claude",
            "success",
            "$0.03",
            "2 turns",
            "diff.patch",
        ],
    );
    has(
        &project.log(),
        &["Frodo claimed T-1\n", "T-1 was merged by Frodo at"],
    );
}

#[test]
fn a_refuted_agent_hears_why_in_its_own_session() {
    let steps = json!([
        bash("echo ho > hello && git add -A && git commit -qm 'Say hello'"),
        say("DONE"),
        bash("echo hi > hello && git commit -qam 'Say it right'"),
        say("DONE"),
    ]);
    let items = HELLO.replace(
        "grep -q hi hello",
        "echo it says; cat hello; grep -q hi hello",
    );
    let project = Project::new(&items, steps);
    project.work();
    project.scratch.stands("T-1", "completed", 2);
    assert_eq!(project.outcomes(), ["failed", "success"]);
    let (runs, sessions) = (project.runs(), project.sessions());
    assert_eq!(
        (&runs[0]["verified"], &runs[1]["verified"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(sessions[0], sessions[1]);

    let calls = project.provider.calls();
    assert_eq!(calls[2].session, calls[0].session);
    // The CLI's own choice for a session that it resumes would be another variant of the model.
    assert_eq!(
        (&calls[2].body["model"], &calls[2].betas),
        (&calls[0].body["model"], &calls[0].betas)
    );
    assert_eq!(runs[0]["model"], runs[1]["model"]);
    // What is new, and not the whole prompt again.
    let prompt = calls[2].prompt();
    let parts = [
        "Attempt 1 ended: failed: `echo it says",
        "exited with code 1",
        "it says\nho\n",
        "Attempt: 2 of 3",
    ];
    has(&prompt, &parts);
    assert!(
        !prompt.contains("Into the file") && !prompt.contains("<working-rules>"),
        "{prompt}"
    );
    assert!(
        calls[2].messages().contains("Into the file"),
        "the session remembers"
    );
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
}

#[test]
fn a_session_that_goes_on_is_told_what_others_have_found_out_since() {
    let learning = |text: &str| {
        format!(
            "---\nkind: fact\ntags: [x]\nby: rosie\ncreated: 2026-01-31T12:00:00Z\n---\n\n{text}\n"
        )
    };
    let first = format!(
        "tavern learn 'It needs a slash.' --tag x; printf -- '{}' > \"$TAVERN_DIR/knowledge/L-2.md\"; \
         echo ho > hello && git add -A && git commit -qm 'Say hello'",
        learning("It is down on Sundays.").replace('\n', "\\n")
    );
    let right = bash("echo hi > hello && git commit -qam 'Say it right'");
    let items = HELLO.replace("Write hello", "Write hello (tags: x)");
    let project = Project::new(
        &items,
        json!([bash(&first), say("DONE"), right, say("DONE")]),
    );
    project
        .scratch
        .write(".tavern/knowledge/L-1.md", learning("It speaks English."));
    project.work();
    assert_eq!(project.outcomes(), ["failed", "success"]);
    let (runs, calls) = (project.runs(), project.provider.calls());
    assert_eq!(calls[2].session, calls[0].session);
    assert_eq!(
        (&runs[0]["knowledge"], &runs[1]["knowledge"]),
        (&json!(["L-1"]), &json!(["L-2"]))
    );
    let prompt = calls[2].prompt();
    assert!(prompt.contains("It is down on Sundays."), "{prompt}");
    assert!(
        !prompt.contains("It speaks English.") && !prompt.contains("It needs a slash."),
        "{prompt}"
    );
}

#[test]
fn the_board_and_the_drained_file_are_left_out_of_the_merge() {
    let command = "sed -i 's/\\[ \\]/[x]/' TODO.md; mkdir -p .tavern; echo 'limit: 99' > .tavern/config.yaml; \
        echo hi > hello; git add -Af && git commit -qm all";
    let project = Project::new("", json!([bash(command), say("DONE")]));
    project
        .scratch
        .write("TODO.md", "# To do\n\n- [ ] Write hello\n");
    project.scratch.git(&["add", "--all"]);
    project
        .scratch
        .git(&["commit", "--quiet", "--message=Plan"]);
    let summary = project
        .scratch
        .json("tavern-drain", &["TODO.md", "--agents", "1"]);
    project.assert_tidy();
    assert_eq!(
        (&summary["completed"], &summary["left"]),
        (&json!(1), &json!([])),
        "{summary:#}"
    );
    assert!(
        summary["usd"]
            .as_f64()
            .is_some_and(|usd| (usd - 0.031_25).abs() < 1e-9),
        "{summary:#}"
    );
    assert_eq!(project.merged("hello").as_deref(), Some("hi\n"));
    assert_eq!(
        project.merged("TODO.md").as_deref(),
        Some("# To do\n\n- [ ] Write hello\n")
    );
    // Its port and its folder may well have a 99 in them.
    let config = project.scratch.git(&["show", "main:.tavern/config.yaml"]);
    assert_eq!(
        project
            .merged(".tavern/config.yaml")
            .as_deref()
            .map(str::trim_end),
        Some(config.as_str())
    );
    let todo = project.scratch.read("TODO.md");
    let id = todo
        .strip_prefix("# To do\n\n- [x] ")
        .and_then(|item| item.strip_suffix(": Write hello\n"));
    let item = project.item(id.unwrap_or_else(|| panic!("{todo}")));
    assert!(!item["commit"].is_null(), "{item:#}");
    let log = project.log();
    let told: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("violation"))
        .collect();
    assert!(
        told.len() == 1 && told[0].contains(".tavern/config.yaml") && told[0].contains("TODO.md"),
        "{log}"
    );
}

#[test]
fn a_branch_that_only_touches_the_board_has_changed_nothing() {
    let command = "mkdir -p .tavern; echo 'limit: 99' > .tavern/config.yaml; git add -Af && git commit -qm board";
    let steps = json!([bash(command), say("DONE")]);
    let project = Project::with(
        json!({"max_attempts": 1}),
        "- [ ] T-1: Write hello\n",
        steps,
    );
    project.agent().run().succeeds();
    let item = project.item("T-1");
    assert_eq!(
        (&item["status"], project.outcomes()),
        (&json!("dead"), vec!["empty".to_owned()]),
        "{item:#}"
    );
    has(
        item["reason"].as_str().expect("it says why"),
        &["result: answer"],
    );
    project.assert_tidy();
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
    assert!(
        project
            .scratch
            .git(&["log", "--format=%s", "tavern/integration"])
            .contains("first")
    );
    assert!(
        project.log().contains("its work was on `elsewhere`"),
        "{}",
        project.log()
    );
}

#[test]
fn a_conflict_goes_back_into_the_session() {
    let change = |word: &str| format!("echo {word} > README.md; git commit -qam {word}");
    let steps = json!([
        of("Task: T-1:", bash(&format!("{}; {HOLD}", change("one")))),
        of("Task: T-2:", bash(&change("two"))),
        of("Task: T-2:", say("DONE")),
        of("Task: T-1:", say("DONE")),
        of(
            "Task: T-1:",
            bash(
                "git merge tavern/integration; echo one and two > README.md; git commit -qam both"
            )
        ),
        of("Task: T-1:", say("DONE")),
    ]);
    let project = Project::new("- [ ] T-1: One\n- [ ] T-2: Two\n", steps);
    let first = project.agent().start();
    project.wait_for_hold();
    project
        .scratch
        .run("tavern-agent", &["--name", "Sam", "--once"])
        .succeeds();
    assert_eq!(project.merged("README.md").as_deref(), Some("two\n"));
    project.let_go();
    first.end().succeeds();
    project.assert_tidy();
    assert_eq!(
        project.merged("README.md").as_deref(),
        Some("one and two\n")
    );
    project.scratch.stands("T-1", "completed", 1);
    let calls = project.provider.calls();
    let told = "Attempt 1 ended: sent back: conflict with `tavern/integration` in README.md";
    let shown = "$ git merge tavern/integration\nconflict in README.md\n";
    let prompt = calls[calls.len() - 2].prompt();
    has(
        &prompt,
        &[
            told,
            shown,
            "+<<<<<<< ",
            "+two\n+=======\n one\n",
            "\n`git merge tavern/integration` here",
        ],
    );
    assert!(!prompt.contains("salvage"), "{prompt}");
    assert!(
        project
            .scratch
            .git(&["log", "--format=%s", "tavern/integration"])
            .contains("\none\n")
    );
    let patch = project
        .scratch
        .run("tavern-runs", &["cat", "T-1", "diff.patch"])
        .succeeds();
    has(&patch, &["-two\n+one and two\n"]);
    assert_eq!(calls[calls.len() - 2].session, calls[0].session);
}

#[test]
fn in_a_sandbox_the_cli_keeps_its_session_and_goes_on_in_it() {
    let boxed = json!({"roles": {"coder": {"sandbox": true}}});
    let outside = "(echo x > \"$HOME/outside\") 2>/dev/null || echo kept-out > hello-box; ";
    let commit = format!("{outside}{COMMIT} && git add hello-box && git commit -qm box");
    let steps = json!([
        say("Which one?\n\nWAITING: which one?"),
        bash(&commit),
        say("DONE")
    ]);
    let project = Project::with(boxed, HELLO, steps);
    if !project.has_sandboxes() {
        assert_eq!(
            project.agent().run().code,
            Some(1),
            "nothing is begun without one"
        );
        return;
    }
    project.work();
    assert_eq!(
        project.item("T-1")["status"],
        "waiting",
        "{}",
        project.log()
    );
    project
        .scratch
        .run("tavern-release", &["T-1", "-m", "the first"])
        .succeeds();
    project.work();
    assert_eq!(
        project.item("T-1")["status"],
        "completed",
        "{}",
        project.log()
    );
    assert_eq!(project.merged("hello-box").as_deref(), Some("kept-out\n"));
    let sessions = project.sessions();
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[0], sessions[1], "its record was kept");
}

/// Who is reminded of the form by its program, and answers in words all the same, is heard.
#[test]
fn a_reviewer_that_failed_goes_on_in_its_session() {
    let approve = "```yaml\nverdict: approve\nsummary: well done\n```\n\nDONE";
    let steps = json!([
        bash(COMMIT),
        say("DONE"),
        say("Hm."),
        say("Hm."),
        say(approve),
        say(approve)
    ]);
    let settings = json!({"review": ["reviewer"], "roles": {"reviewer": {"prods": 0}}});
    let project = Project::with(settings, HELLO, steps);
    project.work();
    let reviewer = ["--role", "reviewer", "--name", "Sam", "--until-empty"];
    project.scratch.run("tavern-agent", &reviewer).succeeds();
    assert_eq!(project.outcomes(), ["success", "failed", "success"]);
    let sessions = project.sessions();
    assert!(
        sessions[1] == sessions[2] && sessions[0] != sessions[1],
        "{sessions:#?}"
    );
}

#[test]
fn one_that_had_a_single_attempt_is_brought_back_with_a_clear_head() {
    let items = "- [ ] T-1: Say hello (max_attempts: 1, done_when: test -s hello)\n\
                 - [ ] T-2: Say it twice (max_attempts: 1, on_failure: retry, done_when: test -s twice)\n";
    let steps = json!([
        say("I could not.\n\nDONE"),
        say("I could not.\n\nDONE"),
        bash("echo hi > twice && git add -A && git commit -qm 'Say it twice'"),
        say("DONE"),
        bash("echo hi > hello && git add -A && git commit -qm 'Say hello'"),
        say("DONE"),
    ]);
    let project = Project::new(items, steps);
    project.work();
    assert_eq!(project.item("T-1")["status"], "dead");
    project
        .scratch
        .run("tavern-release", &["T-1", "--revive"])
        .succeeds();
    project.work();
    for task in ["T-1", "T-2"] {
        assert_eq!(
            project.item(task)["status"],
            "completed",
            "{}",
            project.log()
        );
        let sessions: Vec<_> = project
            .runs()
            .into_iter()
            .filter(|run| run["task"] == task)
            .map(|run| run["session"].clone())
            .collect();
        assert!(
            sessions.len() == 2 && sessions[0] != sessions[1],
            "{task}: {sessions:?}"
        );
    }
}

#[test]
fn a_role_says_how_hard_it_thinks_and_what_it_falls_back_to() {
    let settings = json!({"roles": {"coder": {"effort": "low", "fallback_model": "haiku"}}});
    let project = Project::with(settings, HELLO, json!([bash(COMMIT), say("DONE")]));
    project.work();
    project.scratch.stands("T-1", "completed", 1);
    let call = &project.provider.calls()[0];
    assert_eq!(
        call.body["output_config"]["effort"], "low",
        "{:#}",
        call.body["output_config"]
    );
}

/// With nothing but the program, a key and a repository.
#[test]
fn the_first_run_of_the_readme_ends_with_merged_work() {
    let readme = include_str!("../../../README.md");
    let blocks = readme.split("```sh\n").nth(1);
    let script = blocks
        .and_then(|rest| rest.split("```").next())
        .expect("it is there");
    let steps = ["hello", "goodbye"].map(|word| {
        let file = format!("{word}.txt");
        let command = format!("echo {word} > {file} && git add {file} && git commit -qm {word}");
        [of(&file, bash(&command)), of(&file, say("DONE"))]
    });
    let (scratch, provider) = (Scratch::repository(), StandIn::start(json!(steps.concat())));
    let path = std::env::var_os("PATH").expect("PATH is set");
    let own = program("tavern");
    let folders = [&own, &installed()].map(|program| {
        let folder = program.parent().expect("it is in a folder");
        folder.to_owned()
    });
    let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path)));
    let ran = scratch
        .command("sh".as_ref())
        .args(&["-euc", script])
        .variable("PATH", path.expect("no folder has a colon in its name"))
        .variable("ANTHROPIC_BASE_URL", provider.url())
        .variable("ANTHROPIC_API_KEY", "sk-ant-test-not-real")
        .variable("DISABLE_TELEMETRY", "1")
        .run()
        .ends(0);
    has(&ran.stdout, &["2 of 2 completed"]);
    for word in ["hello", "goodbye"] {
        assert_eq!(scratch.read(format!("{word}.txt")), format!("{word}\n"));
        has(&ran.stdout, &[&format!(" {word}.txt")]);
    }
    let ticked = scratch.read("TODO.md");
    assert_eq!(ticked.matches("- [x] ").count(), 2, "{ticked}");
}

/// A hook in a clone is a program of others.
#[test]
fn settings_that_git_brought_are_not_obeyed_until_they_are_trusted() {
    let steps = json!([
        bash(COMMIT),
        say("DONE"),
        bash("touch two && git add -A && git commit -qm Two"),
        say("DONE")
    ]);
    let project = Project::new("", steps);
    let scratch = &project.scratch;
    let hook = json!({"type": "command", "command": "touch \"$HOME/obeyed\""});
    let hooks = json!({"hooks": {"SessionStart": [{"hooks": [hook]}]}});
    let other = scratch.folder().join("other").display().to_string();
    scratch.git(&["clone", "--quiet", ".", &other]);
    scratch.write("../other/.claude/settings.json", hooks.to_string());
    scratch.git(&["-C", &other, "add", "--all"]);
    scratch.git(&["-C", &other, "commit", "--quiet", "--message=Hooks"]);
    scratch.git(&["pull", "--quiet", &other, "main"]);
    let obeyed = scratch.folder().join("home/obeyed");
    let drain = || {
        scratch
            .program("tavern-drain")
            .args(&["--agents", "1"])
            .run()
            .ends(0)
    };
    scratch.run("tavern-add", &["Write hello"]).succeeds();
    drain().says("claude does not obey .claude/settings.json, which is not trusted: tavern trust");
    assert!(!obeyed.exists());
    scratch
        .run("tavern-trust", &["--yes"])
        .ends(0)
        .says("SessionStart");
    scratch.run("tavern-add", &["Write two"]).succeeds();
    drain().says_not("does not obey");
    assert!(obeyed.exists());
}
