//! What ends a run before its agent would, and what follows from it.

use serde_json::{Value, json};

use super::project::{COMMIT, Project, bash, say};
use super::workshop::versions;

/// The one run of an item with one attempt, under `settings`.
fn one_run(settings: Value, item: &str, steps: Value) -> (Project, Value) {
    let mut all = json!({"max_attempts": 1});
    super::project::merge(&mut all, settings);
    let project = Project::with(all, item, steps);
    project.work();
    let item = project.scratch.stands("T-1", "dead", 1);
    let mut runs = project.runs();
    assert_eq!(runs.len(), 1, "{runs:#?}");
    let run = runs.remove(0);
    assert_eq!(item["reason"], run["reason"]);
    (project, run)
}

const ITEM: &str = "- [ ] T-1: Work\n";

#[test]
fn what_is_not_allowed_is_in_the_outcome() {
    let role = json!({"denied_tools": ["Bash(touch *)"], "prods": 0});
    let settings = json!({"roles": {"coder": role}});
    let (project, run) = one_run(
        settings,
        ITEM,
        json!([bash("touch made"), say("I could not.")]),
    );
    assert_eq!(run["outcome"], "permission_denied", "{run:#}");
    let denial = run["denials"][0].as_str().unwrap_or_default();
    assert!(
        denial.starts_with("Bash ") && denial.contains("touch made"),
        "{run:#}"
    );
    assert!(
        project
            .scratch
            .run("tavern-runs", &["show", "T-1"])
            .succeeds()
            .contains("denied    Bash ")
    );
}

/// However it is spelt: a denied command is seen through options and shells.
#[test]
fn a_push_is_denied_by_default() {
    for push in [
        "git -C . push there HEAD",
        "git -c a.b=c push there HEAD",
        "sh -c 'git  push there HEAD'",
    ] {
        let remote =
            "git init --quiet --bare \"$HOME/there\" && git remote add there \"$HOME/there\"";
        let steps = json!([bash(remote), bash(push), bash(COMMIT), say("DONE")]);
        let project = Project::new(ITEM, steps);
        project.work();
        let there = project.scratch.folder().join("home/there");
        let refs = project
            .scratch
            .git(&["-C", &there.display().to_string(), "for-each-ref"]);
        assert_eq!(refs, "", "{push}");
        project.scratch.stands("T-1", "completed", 1);
    }
}

/// It is asked of a person, who knows what they allow.
#[test]
fn what_needs_leave_is_a_question_and_a_yes_gives_it() {
    let made = "perl -e 'print 1' > made";
    for (said, asked) in [
        ("WAITING: may I use perl?", "may I use perl?"),
        ("I could not.", "it needs permission to continue"),
    ] {
        let answers = [("No, you may not.", "waiting"), ("yes", "success")];
        let tries = |last: &Value| vec![bash(made), last.clone()];
        let committed = [
            bash(made),
            bash("git add made && git commit -qm Made"),
            say("DONE"),
        ];
        let steps: Vec<Value> = [tries(&say(said)), tries(&say(said)), committed.to_vec()].concat();
        let role = json!({"allowed_tools": ["Bash(git *)"], "prods": 0});
        let project = Project::with(json!({"roles": {"coder": role}}), ITEM, json!(steps));
        project.work();
        for (answer, outcome) in answers {
            let question = project.scratch.stands("T-1", "waiting", 0)["question"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            assert_eq!(question, format!("{asked} (yes allows: `Bash {made}`)"));
            assert!(!project.worktree("T-1", "made").exists());
            project
                .scratch
                .run("tavern-tell", &["T-1", answer])
                .succeeds();
            project.work();
            assert_eq!(
                project.outcomes().last().map(String::as_str),
                Some(outcome),
                "{}",
                project.log()
            );
        }
        assert_eq!(project.merged("made").as_deref(), Some("1"));
        let calls = project.provider.calls();
        assert!(
            calls[1]
                .body
                .to_string()
                .contains("No person is here to allow this"),
            "{}",
            calls[1].body
        );
    }
}

#[test]
fn turns_money_tokens_and_silence_are_bounded() {
    let again = |mut step: Value| {
        step["repeat"] = json!(true);
        json!([step])
    };
    let budget = |of: Value| json!({"budget": of});
    // The item's own limit goes before its role's.
    let cheap = "- [ ] T-1: Work (budget: {usd: 0.02})\n";
    let stalled = json!({"text": "half of", "stall": true});
    let rows = [
        (
            budget(json!({"turns": 2})),
            ITEM,
            again(bash("true")),
            "budget",
            "…turns (2)",
        ),
        (
            budget(json!({"usd": 100})),
            cheap,
            again(bash("true")),
            "budget",
            "…maximum budget ($0.02)",
        ),
        (
            budget(json!({"tokens": 1000})),
            ITEM,
            json!([bash("sleep 2.1"), bash("sleep 300")]),
            "budget",
            "token limit reached",
        ),
        (
            json!({"idle": "2s"}),
            ITEM,
            again(stalled),
            "timeout",
            "no sign of life for too long",
        ),
    ];
    for (role, item, steps, outcome, reason) in rows {
        let (_, run) = one_run(json!({"roles": {"coder": role}}), item, steps);
        assert_eq!(run["outcome"], outcome, "{run:#}");
        // `…` stands for words of the CLI's.
        let is_it = |told: &str| {
            reason
                .strip_prefix('…')
                .map_or(told == reason, |part| told.contains(part))
        };
        assert!(run["reason"].as_str().is_some_and(is_it), "{run:#}");
        let is_bounded = item != cheap
            || run["usage"]["usd"]
                .as_f64()
                .is_some_and(|usd| (0.02..0.1).contains(&usd));
        assert!(is_bounded, "{run:#}");
    }
}

#[test]
fn time_and_memory_bound_every_kind_of_program() {
    let rows = [
        (
            "{minutes: 0.01}",
            "echo begun; sleep 1000",
            "timeout",
            "time limit reached",
        ),
        (
            "{memory_mb: 100}",
            "echo begun; head -c 300000000 /dev/zero | tail -c 300000000 | sleep 1000",
            "budget",
            "memory limit exceeded",
        ),
    ];
    for (budget, script, outcome, reason) in rows {
        let item = format!(
            "- [ ] T-1: Work (runner: shell, budget: {budget})\n  ```sh\n  {script}\n  ```\n"
        );
        let (project, run) = one_run(json!({}), &item, json!([]));
        assert_eq!(
            (&run["outcome"], &run["reason"]),
            (&json!(outcome), &json!(reason)),
            "{run:#}"
        );
        // What it had to say until then is kept.
        assert_eq!(
            project
                .scratch
                .read(".tavern/runs/T-1@1/result.txt")
                .trim_end(),
            "begun"
        );
    }
}

/// Each tool is described in every call, and paid for.
#[test]
fn no_tool_is_offered_that_a_role_may_not_use() {
    for program in versions() {
        let settings = |mode: &str, tools: &[&str]| {
            json!({
                "roles": {"coder": {"permission_mode": mode, "allowed_tools": tools}},
                "runners": {"claude": {"program": program, "env": {"IS_SANDBOX": "1"}}}
            })
        };
        let first = |settings| {
            let project = Project::with(settings, ITEM, json!([bash(COMMIT), say("DONE")]));
            project.work();
            let call = project.provider.calls().swap_remove(0);
            let tools = call.body["tools"].as_array().cloned().unwrap_or_default();
            let mut names: Vec<String> = tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap_or_default().to_owned())
                .collect();
            names.sort();
            (names, call.body.to_string().len())
        };
        let (few, short) = first(settings(
            "acceptEdits",
            &["Bash(git:*)", "Bash", "Read", "Edit", "mcp__x__y"],
        ));
        // Newer versions have no `TaskOutput`, and a name that stands for what they might load.
        let may_be = [
            "Bash",
            "DeferredToolPlaceholder",
            "Edit",
            "Read",
            "TaskOutput",
            "TaskStop",
        ];
        assert!(
            few.iter().all(|name| may_be.contains(&name.as_str())),
            "{}: {few:?}",
            program.display()
        );
        assert!(
            ["Bash", "Edit", "Read"]
                .iter()
                .all(|name| few.contains(&(*name).to_owned())),
            "{few:?}"
        );
        let (all, long) = first(settings("bypassPermissions", &["Bash"]));
        assert!(all.len() > few.len(), "{}: {all:?}", program.display());
        assert!(
            3 * short < 2 * long,
            "{}: {short} bytes of {long}",
            program.display()
        );
    }
}

/// It would work elsewhere than where its work is looked for, or hand it on before anybody has verified it.
#[test]
fn nobody_unattended_pushes_or_leaves_the_worktree() {
    for program in versions() {
        let push =
            "git init -q --bare ../elsewhere; cd .; git push ../elsewhere HEAD:refs/heads/pushed";
        let steps = json!([
            bash(push),
            bash("git push"),
            bash("echo hi > hello; git add -A; git commit -qm hi"),
            say("DONE")
        ]);
        let project = Project::with(
            json!({"runners": {"claude": {"program": program}}}),
            ITEM,
            steps,
        );
        project.work();
        project.scratch.stands("T-1", "completed", 1);
        let calls = project.provider.calls();
        let offered = calls[0].body["tools"].to_string();
        for tool in ["EnterWorktree", "ExitWorktree", "CronCreate"] {
            assert!(
                !offered.contains(&format!("\"name\":\"{tool}\"")),
                "{}: {tool}",
                program.display()
            );
        }
        assert!(
            !project
                .worktree("T-1", "../elsewhere/refs/heads/pushed")
                .exists(),
            "{}",
            program.display()
        );
        assert_eq!(
            project.runs()[0]["denials"].as_array().map(Vec::len),
            Some(2),
            "{:#}",
            project.runs()[0]
        );
    }
}
