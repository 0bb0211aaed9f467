//! Who watches many runs: settings that differ, a configuration that changes, agents that die, gangs, looks that fail.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::project::{COMMIT, HOLD, ITEM, Project, answer, bash, of, say};
use super::watch::{activity, failing, look, set, told, wait_for_steps, watched};
use crate::support::{CONFIG, QUEUE, Running, Scratch, has, wait_until};

fn diagnoses(scratch: &Scratch) -> String {
    scratch.run("tavern-log", &["--diagnoses"]).succeeds()
}

/// Looks as often as it can, with a clock that is ahead.
fn watcher(project: &Project) -> Running {
    let watcher = project
        .scratch
        .program("tavern-watch")
        .args(&["--every", "5ms"]);
    watcher.variable("TAVERN_TEST_NOW", "+10").start()
}

fn looks(project: &Project) -> u64 {
    let records = project.scratch.records("tavern-status", &["--health"]);
    let watcher = records.iter().find(|record| record["kind"] == "watcher");
    watcher
        .and_then(|watcher| watcher["looks"].as_u64())
        .unwrap_or_default()
}

#[test]
fn an_item_a_queue_and_a_role_say_otherwise_than_the_board() {
    let item = |keys: &str| ITEM.replace("hello", &format!("hello{keys}"));
    for (keys, front, role, is_told) in [
        ("", "", Value::Null, true),
        (" (watch: false)", "", Value::Null, false),
        (" (watch: {failures: 4})", "", Value::Null, false),
        ("", "watch: false", Value::Null, false),
        (" (watch: true)", "watch: false", Value::Null, true),
        ("", "watch: {failures: 3}", json!(false), true),
        ("", "", json!({"failures": 9}), false),
    ] {
        let project = watched(json!({}), failing());
        set(
            &project,
            json!({}),
            json!({"roles": {"coder": {"watch": role}}}),
        );
        let queue = project.scratch.queue().replace(ITEM, &item(keys));
        let front = if front.is_empty() {
            String::new()
        } else {
            format!("---\n{front}\n---\n")
        };
        project.scratch.write(QUEUE, front.clone() + &queue);
        let agent = project.agent().start();
        wait_for_steps(&project, 3);
        assert_eq!(
            look(&project, 10).stdout.contains("looping"),
            is_told,
            "{keys} {front} {role}"
        );
        told(&project, agent);
    }
}

#[test]
fn thresholds_that_are_none_are_told_where_they_stand() {
    let project = watched(json!({}), json!([]));
    for wrong in ["{stuk: 1m}", "{late: 500}", "{repeats: 21}"] {
        project
            .scratch
            .write(QUEUE, format!("---\nwatch: {wrong}\n---\n- [ ] T-1: One\n"));
        project
            .scratch
            .run("tavern-check", &[])
            .says("invalid value for the queue's `watch`")
            .says("stuck: 5m");
    }
    for (said, says) in [
        (
            json!({"late": 500}),
            "`late` is 100 at most; 0 turns it off",
        ),
        (json!({"failures": 19}), "`failures` is 18 at most"),
        (json!({"stuk": 1}), "unknown key `stuk`"),
        (
            json!("soon"),
            "true, false, or numbers such as {stuck: 20m}",
        ),
    ] {
        set(&project, said.clone(), json!({}));
        if said.is_string() {
            project.scratch.write(CONFIG, "watch: soon\n");
        }
        project
            .scratch
            .run("tavern-check", &[])
            .says(says)
            .says(&format!("{CONFIG}:1:"));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "an editor")]
fn a_watcher_reads_the_configuration_again_and_keeps_the_last_good_one() {
    let project = watched(json!({"failures": 0}), failing());
    let agent = project.agent().start();
    wait_for_steps(&project, 3);
    let watcher = watcher(&project);
    let health = || {
        project
            .scratch
            .run("tavern-status", &["--health"])
            .succeeds()
    };
    wait_until("it looks", || looks(&project) > 3);
    let good = std::fs::read_to_string(project.scratch.work().join(CONFIG)).expect("it is there");
    // An editor that has put it aside will put another there.
    std::fs::remove_file(project.scratch.work().join(CONFIG)).expect("it is there");
    let before = looks(&project);
    wait_until("it goes on", || looks(&project) > before + 3);
    project.scratch.write(
        CONFIG,
        good.replace("\"failures\":0", "\"failures\":\"many\""),
    );
    wait_until("it says so", || health().contains("degraded: "));
    let before = looks(&project);
    wait_until("it goes on", || looks(&project) > before + 3);
    assert_eq!(diagnoses(&project.scratch), "");
    project
        .scratch
        .write(CONFIG, good.replace("\"failures\":0", "\"failures\":3"));
    wait_until("it has read it", || {
        diagnoses(&project.scratch).contains("looping")
    });
    wait_until("it has recovered", || !health().contains("degraded"));
    watcher.signal(Signal::INT);
    let ended = watcher.end().ends(130);
    assert_eq!(
        ended
            .stderr
            .matches("supervision is degraded, and goes on: ")
            .count(),
        1,
        "{ended}"
    );
    has(
        &ended.stderr,
        &["config.yaml:1:", "supervision has recovered"],
    );
    told(&project, agent);
    let log = project.log();
    assert_eq!(
        (
            log.matches("is degraded").count(),
            log.matches("has recovered").count()
        ),
        (1, 1),
        "{log}"
    );
    has(
        &project
            .scratch
            .run("tavern-status", &["--stats"])
            .succeeds(),
        &["watched     1 looping, 1 nudge, "],
    );
}

#[test]
fn a_thousand_looks_over_the_same_trouble_tell_it_once() {
    let project = watched(json!({}), failing());
    let agent = project.agent().start();
    wait_for_steps(&project, 3);
    let watcher = watcher(&project);
    wait_until("it has looked a thousand times", || looks(&project) > 1000);
    watcher.signal(Signal::INT);
    assert_eq!(watcher.end().ends(130).stdout.lines().count(), 1);
    assert_eq!(diagnoses(&project.scratch).lines().count(), 1);
    told(&project, agent);
}

#[test]
fn what_a_dead_agent_held_is_given_back() {
    let project = watched(json!({}), json!([bash(HOLD)]));
    let agent = project.agent().start();
    project.wait_for_hold();
    assert_eq!(look(&project, 10).stdout, "");
    agent.kill();
    let dry = project
        .scratch
        .run("tavern-watch", &["--once", "--dry-run"])
        .ends(0);
    has(
        &dry.stdout,
        &["give T-1 back from Frodo: its supervisor is gone"],
    );
    project.scratch.stands("T-1", "in_progress", 1);
    assert_eq!(
        look(&project, 10).stdout.lines().count(),
        2,
        "its processes are ended, and its item is given back"
    );
    project.scratch.stands("T-1", "pending", 0);
    assert_eq!(look(&project, 10).stdout, "");
    wait_until("it is ended", || {
        !project
            .scratch
            .processes()
            .iter()
            .any(|process| process.contains("claude"))
    });
}

#[test]
fn children_that_fail_alike_begin_anew_once_and_are_paused_then() {
    let names = ["one", "two", "three"];
    let fails = |name: &&str| {
        let mut fails = of(name, bash("sleep 0.1; exit 1"));
        fails["repeat"] = json!(true);
        fails
    };
    let project = watched(
        json!({}),
        json!(names.iter().map(fails).collect::<Vec<_>>()),
    );
    set(
        &project,
        json!({"failures": 1, "nudges": 0}),
        json!({"roles": {"coder": {"idle": 0}}}),
    );
    let items: String = names
        .iter()
        .map(|name| format!("- [ ] Do {name} (parent: T-1)\n"))
        .collect();
    project
        .scratch
        .write(QUEUE, format!("- [x] T-1: All\n{items}"));
    let agents: Vec<Running> = ["Frodo", "Sam", "Merry"]
        .map(|name| {
            project
                .scratch
                .program("tavern-agent")
                .args(&["--name", name, "--until-empty"])
                .start()
        })
        .into_iter()
        .collect();
    let count = |what: &str| diagnoses(&project.scratch).matches(what).count();
    wait_until("they begin anew", || {
        look(&project, 10);
        count("; it is restarted") == 3
    });
    has(
        &diagnoses(&project.scratch),
        &["divergence: 3 children of T-1 have the same problem (looping), and nudges did not help"],
    );
    wait_until("they are paused", || {
        look(&project, 10);
        count("; it is paused") == 3
    });
    assert_eq!(count("; it is restarted"), 3);
    agents.into_iter().for_each(|agent| drop(agent.end()));
    project.assert_tidy();
    let records = project.scratch.records("tavern-status", &["--items"]);
    let waiting: Vec<&Value> = records
        .iter()
        .filter(|record| record["status"] == "waiting")
        .collect();
    assert_eq!(waiting.len(), 3, "{records:?}");
    let sessions = project.sessions();
    assert_eq!(sessions.len(), 6);
    assert!(
        sessions
            .iter()
            .all(|session| sessions.iter().filter(|other| *other == session).count() == 1)
    );
}

#[test]
fn two_children_that_fail_alike_are_told_each() {
    let fails = |name: &str| {
        let mut fails = of(name, bash("sleep 0.1; exit 1"));
        fails["repeat"] = json!(true);
        fails
    };
    let project = watched(json!({}), json!([fails("one"), fails("two")]));
    set(
        &project,
        json!({"failures": 1, "nudges": 2}),
        json!({"roles": {"coder": {"idle": 0}}}),
    );
    project.scratch.write(
        QUEUE,
        "- [x] T-1: All\n- [ ] Do one (parent: T-1)\n- [ ] Do two (parent: T-1)\n",
    );
    let agents = ["Frodo", "Sam"].map(|name| {
        project
            .scratch
            .program("tavern-agent")
            .args(&["--name", name, "--until-empty"])
            .start()
    });
    wait_until("they are paused", || {
        look(&project, 10);
        diagnoses(&project.scratch)
            .matches("; it is paused")
            .count()
            == 2
    });
    assert!(!diagnoses(&project.scratch).contains("divergence"));
    agents.into_iter().for_each(|agent| drop(agent.end()));
    project.assert_tidy();
}

#[test]
fn what_is_no_part_of_the_work_is_kept_by_rules_too() {
    let outside = format!("/dev/shm/tavern-test-{}", std::process::id());
    let hook = "hooks=../../../.git/hooks; mkdir -p $hooks && echo true > $hooks/post-commit";
    for (acts, then, is_broken) in [
        (json!(["hooks"]), "pause", true),
        (json!(["settings"]), "pause", false),
        (json!(["hooks"]), "reap", true),
    ] {
        let project = watched(
            json!({}),
            json!([bash(hook), bash(COMMIT), say("DONE"), say("DONE")]),
        );
        set(
            &project,
            json!({}),
            json!({"max_attempts": 1, "rules": {"mine": {"acts": acts, "then": then}}}),
        );
        project.agent().run().succeeds();
        let (status, attempt) = if is_broken {
            ("waiting", 0)
        } else {
            ("completed", 1)
        };
        let item = project.scratch.stands("T-1", status, attempt);
        assert_eq!(
            item.to_string()
                .contains("it broke the rule `mine`: .git/hooks/post-commit was changed"),
            is_broken
        );
        if status == "waiting" {
            project
                .scratch
                .run("tavern-tell", &["T-1", "yes"])
                .succeeds();
            project.work();
            project.scratch.stands("T-1", "completed", 1);
        }
    }
    let write = json!({"tool": "Write", "input": {"file_path": outside, "content": "x"}});
    for (then, is_made) in [("warn", false), ("log", true)] {
        let project = watched(
            json!({}),
            json!([write, bash(HOLD), bash(COMMIT), say("DONE")]),
        );
        let rules = json!({"mine": {"acts": ["outside"], "then": then}});
        set(&project, json!({}), json!({"rules": rules}));
        let agent = project.agent().start();
        wait_for_steps(&project, 1);
        let broken = "violation: it broke the rule `mine`: ";
        if is_made {
            wait_until("it is told", || {
                diagnoses(&project.scratch).contains(broken)
            });
        }
        let told = told(&project, agent);
        let why = format!("the rule `mine` of this board forbids it ({outside}). Do without it.");
        assert_eq!(
            (
                told.contains(&why),
                diagnoses(&project.scratch).contains(broken)
            ),
            (!is_made, is_made),
            "{told}"
        );
        assert_eq!(std::fs::remove_file(&outside).is_ok(), is_made);
    }
    let project = watched(json!({}), json!([]));
    set(
        &project,
        json!({}),
        json!({"rules": {"x": {"acts": ["dance"]}}}),
    );
    project
        .scratch
        .run("tavern-check", &[])
        .says("outside")
        .says("settings");
}

#[test]
fn a_watcher_tells_what_supervisors_have_found() {
    let project = watched(json!({}), json!([bash(HOLD), bash(COMMIT), say("DONE")]));
    set(
        &project,
        json!({}),
        json!({"budget": {"board": {"usd": 0.05}}}),
    );
    let agent = project.agent().start();
    project.wait_for_hold();
    let watcher = watcher(&project);
    wait_until("it looks", || looks(&project) > 1);
    project.let_go();
    agent.end().succeeds();
    wait_until("it looks", || {
        diagnoses(&project.scratch).contains("spending: ")
    });
    let before = looks(&project);
    wait_until("it has looked again", || looks(&project) > before + 2);
    watcher.signal(Signal::INT);
    let ended = watcher.end().ends(130);
    has(
        &ended.stdout,
        &[
            "Frodo works on T-1: spending: ",
            " of the board's budget are used",
        ],
    );
}

#[test]
fn all_that_is_looked_at_is_filled_by_runs() {
    // What was used is asked every two seconds.
    let mut small = bash("sleep 0.3");
    small["repeat"] = json!(8);
    let steps = json!([
        bash("exit 1"),
        bash("git tag mark"),
        small,
        bash(HOLD),
        bash(COMMIT),
        say("DONE")
    ]);
    let project = watched(json!({}), steps);
    let rules = json!({"no-tags": {"commands": ["git tag"], "then": "log"}});
    set(
        &project,
        json!({}),
        json!({"rules": rules, "roles": {"coder": {"budget": {"minutes": 9}}}}),
    );
    let item = ITEM.replace("hello\n", "hello (parent: T-0, watch: {late: 90})\n");
    project
        .scratch
        .write(QUEUE, format!("- [x] T-0: All\n{item}"));
    let agent = project.agent().start();
    wait_for_steps(&project, 10);
    let midway = activity(&project);
    told(&project, agent);
    let end = activity(&project);
    let is_filled = |value: &Value| match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() > Some(0.0),
        Value::String(text) => !text.is_empty() && !text.starts_with("1970"),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    };
    // A provider tells of windows where somebody is signed in: `budget` looks at them.
    let keys = end
        .as_object()
        .expect("it is a map")
        .keys()
        .filter(|key| *key != "windows");
    let keys: Vec<&String> = keys.collect();
    assert!(keys.len() > 14, "{keys:?}");
    for key in keys {
        assert!(
            is_filled(&midway[key]) || is_filled(&end[key]),
            "{key}: {midway} {end}"
        );
        // These two may fall into one second, and the others are set when the run begins.
        let may_be_same = [
            "seen",
            "progress_at",
            "began",
            "limit",
            "makes_changes",
            "hears",
            "watch",
            "parent",
            "breaches",
            "failed",
        ];
        assert!(
            midway[key] != end[key] || may_be_same.contains(&key.as_str()),
            "{key}: {midway} {end}"
        );
    }
    for key in ["tool", "input", "ok", "seconds"] {
        assert!(!end["calls"][0][key].is_null(), "{end}");
    }
}

#[test]
fn a_watcher_that_hangs_keeps_no_supervisor_from_looking() {
    let (mut hears, mut ends, mut fails) = (bash(COMMIT), say("DONE"), bash("sleep 0.1; exit 1"));
    hears["for"] = json!("system-nudge");
    ends["for"] = json!("Say hello");
    fails["repeat"] = json!(true);
    let project = watched(json!({}), json!([hears, ends, fails]));
    let watcher = project
        .scratch
        .program("tavern-watch")
        .args(&["--every", "1s"])
        .start();
    wait_until("it looks", || looks(&project) > 0);
    watcher.signal(Signal::STOP);
    project
        .scratch
        .at("+300", "tavern-watch", &["--once"])
        .ends(0)
        .says("ago: end it, if it hangs");
    set(&project, json!({"every": "1s"}), json!({}));
    project
        .agent()
        .variable("TAVERN_TEST_NOW", "+300")
        .run()
        .ends(0);
    has(&diagnoses(&project.scratch), &["looping: "]);
    watcher.kill();
    project.assert_tidy();
}

#[test]
fn who_reads_and_writes_much_to_judge_work_is_left_alone() {
    let mut steps = vec![bash(COMMIT), say("DONE")];
    steps.extend(["a*", "b*", "c*"].map(|pattern| {
        let usage = json!({"input_tokens": 70_000, "output_tokens": 30_000});
        json!({"tool": "Glob", "input": {"pattern": pattern}, "usage": usage})
    }));
    steps.extend([
        bash(HOLD),
        answer(json!({"verdict": "approve", "summary": "well"})),
    ]);
    let project = watched(json!({}), json!(steps));
    let reviewer = json!({"runner": "claude", "prods": 0});
    set(
        &project,
        json!({}),
        json!({"review": ["reviewer"], "roles": {"reviewer": reviewer}}),
    );
    project.work();
    let arguments = ["--name", "Sam", "--role", "reviewer", "--until-empty"];
    let agent = project
        .scratch
        .program("tavern-agent")
        .args(&arguments)
        .start();
    project.wait_for_hold();
    let is_seen = || {
        project
            .scratch
            .run("tavern-status", &["--health"])
            .succeeds()
            .contains("Bash")
    };
    wait_until("its command is seen", is_seen);
    for ahead in [10, 250, 1000] {
        assert_eq!(look(&project, ahead).stdout, "", "{ahead}");
    }
    project.let_go();
    agent.end().succeeds();
    project.scratch.stands("T-1", "completed", 1);
    assert_eq!(diagnoses(&project.scratch), "");
}

#[test]
fn who_waits_for_a_command_in_the_background_is_left_alone() {
    let mut wait = bash(HOLD);
    wait["input"]["run_in_background"] = json!(true);
    let project = watched(
        json!({}),
        json!([
            bash(COMMIT),
            wait,
            say("I am told when it ends."),
            say("DONE")
        ]),
    );
    let agent = project.agent().start();
    wait_until("it waits", || activity(&project)["tool"] == "background");
    for ahead in [10, 250, 1000] {
        assert_eq!(look(&project, ahead).stdout, "", "{ahead}");
    }
    let _ = told(&project, agent);
    assert_eq!(diagnoses(&project.scratch), "");
}
