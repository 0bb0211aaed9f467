//! What agents are not to do, of programs that tell nothing of what they do: what they have done is looked at.

use crate::support::{CONFIG, Scratch, has, wait_until};

/// A board with one item, which is this script, and these settings.
fn board(script: &str, settings: &str) -> Scratch {
    let queue = format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n");
    let scratch = Scratch::shell(
        &queue,
        &format!("outcomes: {{failed: {{backoff: 0s}}}}\nwatch: {{every: 0}}\n{settings}"),
    );
    scratch.settle();
    scratch
}

fn work(scratch: &Scratch) {
    scratch.run("tavern-agent", &["--name", "Frodo", "--until-empty"]);
}

fn question(scratch: &Scratch) -> String {
    scratch.stands("T-1", "waiting", 0)["question"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn lines_that_are_not_committed_count() {
    let rules = "rules: {small: {lines: 10, then: pause}}\n";
    for (script, question_is) in [
        (
            "seq 100 >big",
            "it broke the rule `small`: 100 lines changed. May it? (yes or no)",
        ),
        (
            "seq 8 >>README.md; seq 3 >new; git add new",
            "it broke the rule `small`: 11 lines changed. May it? (yes or no)",
        ),
        (
            "seq 100 >big; git add big; git commit -qm x; seq 101 >big",
            "it broke the rule `small`: 101 lines changed. May it? (yes or no)",
        ),
    ] {
        let scratch = board(script, rules);
        work(&scratch);
        assert_eq!(question(&scratch), question_is, "{script}");
    }
    for script in ["seq 10 >new", "head -c 100000 /dev/zero >blob"] {
        let scratch = board(script, rules);
        work(&scratch);
        scratch.stands("T-1", "completed", 1);
    }
}

const HOOK: &str = "hooks=../../../.git/hooks; mkdir -p $hooks; echo true >$hooks/post-commit";

#[test]
fn an_act_is_asked_about_whatever_its_run_came_to() {
    // Others may have done what is found by comparing: nobody fails for it.
    for then in ["pause", "reap"] {
        let script = format!("[ -e ~/once ] && echo ok >ok && exit; touch ~/once; {HOOK}; exit 3");
        let scratch = board(
            &script,
            &format!("rules: {{mine: {{acts: [hooks], then: {then}}}}}\n"),
        );
        work(&scratch);
        let item = scratch.stands("T-1", "waiting", 1);
        assert_eq!(
            item["question"],
            "it broke the rule `mine`: .git/hooks/post-commit was changed. May it? (yes or no)"
        );
        scratch.run("tavern-tell", &["T-1", "yes"]).succeeds();
        work(&scratch);
        assert_eq!(scratch.item("T-1")["status"], "completed");
    }
}

#[test]
fn an_act_is_asked_about_though_its_supervisor_was_killed() {
    let script = format!("[ -e ~/once ] && echo ok >ok && exit; {HOOK}; touch ~/once; sleep 600");
    let scratch = board(&script, "rules: {mine: {acts: [hooks], then: pause}}\n");
    let agent = scratch
        .program("tavern-agent")
        .args(&["--name", "Frodo"])
        .start();
    wait_until("it has changed a hook", || {
        scratch.folder().join("home/once").exists()
    });
    agent.kill();
    scratch.run("tavern-reap", &[]).ends(0);
    let log = scratch.run("tavern-log", &[]).succeeds();
    has(
        &log,
        &["while Frodo ran T-1: .git/hooks/post-commit was changed"],
    );
    work(&scratch);
    assert_eq!(
        question(&scratch),
        "it broke the rule `mine`: .git/hooks/post-commit was changed. May it? (yes or no)"
    );
    scratch.has_no_process();
}

#[test]
fn a_question_names_all_paths_and_a_yes_allows_these() {
    // It could not be run twice.
    let script = "mkdir -p db; echo 1 >db/f1; echo 1 >db/f10; git add db; git commit -qm db";
    let scratch = board(script, "rules: {schema: {paths: [db], then: pause}}\n");
    work(&scratch);
    let broke = "it broke the rule `schema`:";
    assert_eq!(
        question(&scratch),
        format!("{broke} db/f1; db/f10. May it? (yes or no)")
    );
    scratch.write(".tavern/worktrees/T-1/db/f2", "");
    scratch.run("tavern-tell", &["T-1", "yes"]).succeeds();
    work(&scratch);
    assert_eq!(
        question(&scratch),
        format!("{broke} db/f2. May it? (yes or no)")
    );
    scratch.run("tavern-tell", &["T-1", "no"]).succeeds();
    work(&scratch);
    assert_eq!(
        question(&scratch),
        format!("{broke} db/f2. May it? (yes or no)")
    );
    scratch.run("tavern-tell", &["T-1", "yes"]).succeeds();
    work(&scratch);
    scratch.stands("T-1", "completed", 1);
    let diagnoses = scratch.run("tavern-log", &["--diagnoses"]).succeeds();
    assert_eq!(diagnoses.lines().count(), 3, "{diagnoses}");
    has(&diagnoses, &[&format!("{broke} db/f1; db/f10\n")]);
}

#[test]
fn of_many_paths_twenty_are_named() {
    let scratch = board(
        "mkdir db; for i in $(seq 10 34); do echo 1 >db/$i; done",
        "rules: {schema: {paths: [db], then: pause}}\n",
    );
    work(&scratch);
    assert!(
        question(&scratch).ends_with("db/29; and 5 more. May it? (yes or no)"),
        "{}",
        question(&scratch)
    );
    scratch.run("tavern-tell", &["T-1", "yes"]).succeeds();
    work(&scratch);
    assert!(
        question(&scratch).starts_with("it broke the rule `schema`: db/30; "),
        "{}",
        question(&scratch)
    );
    scratch.run("tavern-tell", &["T-1", "yes"]).succeeds();
    work(&scratch);
    scratch.stands("T-1", "completed", 1);
}

#[test]
fn rules_that_nobody_can_keep_are_told() {
    let rules =
        "rules: {tag: {commands: [git tag]}, out: {acts: [outside]}, files: {paths: [db]}}\n";
    let scratch = board("true", rules);
    let checked = scratch.run("tavern-check", &[]).ends(0).stdout;
    has(
        &checked,
        &["the runner `shell` does not report its commands: `out`, `tag` can't be enforced"],
    );
    assert!(!checked.contains("files"), "{checked}");
    scratch.write(CONFIG, "rules: {tag: {commands: ['git push && x']}}\n");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("is more than one command");
}

#[test]
fn who_is_ended_for_a_rule_begins_clean_and_what_it_left_is_kept() {
    let script = "[ -e ~/once ] || echo bad >bad; touch ~/once; echo good >good";
    let scratch = board(script, "rules: {mine: {paths: [bad], then: reap}}\n");
    work(&scratch);
    scratch.stands("T-1", "completed", 2);
    assert_eq!(
        scratch.git(&["ls-tree", "--name-only", "tavern/integration"]),
        "README.md\ngood"
    );
    let kept = scratch.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/tavern/salvage/T-1",
    ]);
    assert_eq!(scratch.git(&["show", &format!("{kept}:bad")]), "bad");
}
