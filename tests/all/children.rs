//! Items that are broken up: their children are added from an agent's own shell, the parent is put aside and goes on in
//! mode unify when they have ended.

use crate::support::{QUEUE, Ran, Scratch, has, wait_until};

/// An agent program: keeps its prompt as `notes/TASK/N`, then does what `steps/TASK-N` says, in N the number of its
/// runs of that item; else it writes a file named for the item, and is done.
const AGENT: &str = r#"#!/bin/sh -eu
notes=$NOTES/$TAVERN_TASK
mkdir -p "$notes"
number=$(($(ls "$notes" | wc -l) + 1))
cat >"$notes/$number"
script=$STEPS/$TAVERN_TASK-$number
if [ -e "$script" ]; then
    . "$script"
else
    echo "by $TAVERN_AGENT" >"$TAVERN_TASK.txt"
    git add --all && git commit -qm "$TAVERN_TASK"
fi
echo "I made $TAVERN_TASK."
echo DONE
"#;

fn board(queue: &str, config: &str) -> Scratch {
    Scratch::with_agent(AGENT, queue, config)
}

/// What the agent does in its `number`th run of `task`.
fn script(scratch: &Scratch, task: &str, number: u32, text: &str) {
    scratch.write(format!("../home/steps/{task}-{number}"), text);
}

fn agent(scratch: &Scratch) -> Ran {
    scratch
        .run("tavern-agent", &["--name", "Frodo", "--until-empty"])
        .ends(0)
}

const ONE: &str = "## Pending\n\n- [ ] T-1: Make two files (done_when: test -s T-1.1.txt -a -s T-1.2.txt)\n\n## Waiting\n\n## \
                   Completed\n\n## Dead Letter\n";

const BREAK_UP: &str = "tavern report --mode break_up\ntavern-add 'The first' --parent\ntavern-add 'The second' --parent\n";

#[test]
fn an_agent_breaks_its_item_up_and_goes_on_when_the_children_have_ended() {
    let scratch = board(ONE, "");
    script(&scratch, "T-1", 1, BREAK_UP);
    script(&scratch, "T-1", 2, "true\n");
    let ran = agent(&scratch);
    ran.says("T-1 waits for its children: T-1.1, T-1.2")
        .says("T-1 merged as")
        .says_not("failed")
        .says_not("empty");
    let first = scratch.note("T-1/1");
    assert!(
        first.contains("tavern add") && !first.contains("<children>"),
        "{first}"
    );
    let second = scratch.note("T-1/2");
    let told = |id: &str, title: &str| {
        let merged = scratch.item(id);
        format!(
            "{id} completed: {title}\nMerged as {}\nI made {id}.\n",
            merged["commit"].as_str().expect("merged")
        )
    };
    assert!(
        second.contains("all of its children have ended"),
        "{second}"
    );
    assert!(
        second.contains(&told("T-1.1", "The first"))
            && second.contains(&told("T-1.2", "The second")),
        "{second}"
    );
    assert!(
        second.contains("Mode: unify") && second.contains("Attempt: 1 of 3"),
        "{second}"
    );
    assert!(
        second.contains("Attempt 1: parked: waits for its children: T-1.1, T-1.2"),
        "{second}"
    );
    // It did nothing itself, and what its commands looked at is the work of its children.
    assert_eq!(scratch.item("T-1")["status"], "completed");
    let log = scratch.run("tavern-log", &["T-1"]).ends(0);
    log.says("Frodo changed the mode of T-1: break_up")
        .says("Frodo put T-1 aside until its children have ended: T-1.1, T-1.2")
        .says("Frodo took T-1 up again");
    scratch
        .run("tavern-log", &["T-1.1"])
        .ends(0)
        .says("T-1.1 was added as pending by Frodo: The first");
    let queue = scratch.queue();
    assert!(
        queue.contains("- [x] T-1: Make two files") && !queue.contains("mode:"),
        "{queue}"
    );
}

#[test]
fn what_the_parent_has_committed_is_verified_with_what_its_children_made() {
    let scratch = board(
        &ONE.replace("test -s T-1.1.txt", "test -s own.txt -a -s T-1.1.txt")
            .replace(" -a -s T-1.2.txt", ""),
        "",
    );
    script(
        &scratch,
        "T-1",
        1,
        "echo own >own.txt; git add own.txt; git commit -qm Own\ntavern-add --parent One\n",
    );
    script(&scratch, "T-1", 2, "test -s T-1.1.txt && test -s own.txt\n");
    agent(&scratch)
        .says("T-1 merged as")
        .says_not("failed")
        .says_not("attempt 2");
    let merged = scratch.merged();
    assert_eq!(merged, "README.md\nT-1.1.txt\nown.txt");
}

#[test]
fn children_that_fail_do_what_is_set_for_each() {
    let scratch = board(
        "- [ ] T-1: Break it up (result: answer)\n",
        "max_attempts: 1\n",
    );
    let add = "tavern add --parent Fails --done-when false --on-failure go_on\n\
               tavern add --parent 'Fails and matters' --done-when 'test -e ok' --on-failure escalate\n\
               tavern add --parent 'Succeeds the second time' --done-when 'test -s 2.txt' --on-failure retry\n";
    script(&scratch, "T-1", 1, add);
    script(&scratch, "T-1", 2, "true\n");
    script(&scratch, "T-1.3", 1, "echo 1 >1.txt\n");
    script(&scratch, "T-1.3", 2, "echo 2 >2.txt\n");
    agent(&scratch)
        .says("T-1.3 failed, now pending")
        .says("T-1.3 merged as")
        .says_not("T-1 merged");
    let statuses =
        ["T-1", "T-1.1", "T-1.2", "T-1.3"].map(|task| scratch.item(task)["status"].clone());
    assert_eq!(statuses, ["waiting", "dead", "dead", "completed"]);
    let shown = scratch.run("tavern-status", &["T-1"]).ends(0);
    shown
        .says("child       T-1.1 (dead): Fails")
        .says("child       T-1.3 (completed): Succeeds the second time")
        .says("to do       tavern retry T-1.2, or tavern cancel T-1.2 to go on without it")
        .says_not("release T-1.1");
    scratch
        .run("tavern-status", &["T-1.2"])
        .ends(0)
        .says("parent      T-1 (waiting)");
    let needed = "waits for you:\n  T-1: its child T-1.2 failed — tavern retry T-1.2, or tavern cancel T-1.2 to go on without it\n";
    scratch.run("tavern-status", &[]).ends(0).says(needed);
    let refused = scratch.run("tavern-claim", &["--task", "T-1"]).ends(3);
    refused
        .says("its child T-1.2 failed")
        .says("hint: tavern retry T-1.2");
    scratch
        .run("tavern-release", &["T-1.2", "--cancel"])
        .ends(0);
    agent(&scratch).says("T-1 merged as");
    let told = scratch.note("T-1/2");
    assert!(
        told.contains(
            "T-1.1 dead: Fails\nNot merged; its work: `git diff HEAD...tavern/T-1.1`\n`false` exited with code 1"
        ),
        "{told}"
    );
    assert!(
        told.contains("T-1.2 cancelled: Fails and matters"),
        "{told}"
    );
}

#[test]
fn a_parent_that_makes_nothing_of_nothing_is_not_believed() {
    let scratch = board("- [ ] T-1: Break it up (max_attempts: 1)\n", "");
    script(&scratch, "T-1", 1, "tavern add --parent Fails --id T-2\n");
    script(&scratch, "T-2", 1, "true\n");
    script(&scratch, "T-2", 2, "true\n");
    script(&scratch, "T-2", 3, "true\n");
    script(&scratch, "T-1", 2, "true\n");
    agent(&scratch)
        .says("T-2 empty, now dead")
        .says("T-1 empty, now dead");
}

#[test]
fn a_supervisor_that_dies_before_it_parks_leaves_an_item_that_knows_its_children() {
    let scratch = board(&ONE.replace(" -a -s T-1.2.txt", ""), "");
    script(
        &scratch,
        "T-1",
        1,
        "tavern add --parent One\nkill -KILL $PPID\nsleep 600\n",
    );
    script(&scratch, "T-1", 2, "true\n");
    script(&scratch, "T-1", 3, "true\n");
    scratch
        .run("tavern-agent", &["--name", "Sam", "--until-empty"])
        .ends(None);
    agent(&scratch)
        .says("T-1 waits for its children: T-1.1")
        .says("T-1 merged as");
    let told = scratch.note("T-1/2");
    assert!(
        told.contains("leave to them") && told.contains("T-1.1 pending: One"),
        "{told}"
    );
    assert!(!told.contains("Mode:"), "{told}");
    scratch.has_no_process();
}

#[test]
fn children_are_bounded_in_depth_and_number_and_named_by_their_parent() {
    let queue = "## Pending\n\n- [ ] T-1: One\n\n## Completed\n\n- [x] T-9: Done\n";
    let scratch = board(queue, "children: {depth: 2, most: 3}\n");
    let add = |arguments: &[&str]| scratch.run("tavern-add", &[&["Do it"], arguments].concat());
    assert_eq!(add(&["--parent=T-1"]).succeeds(), "T-1.1\n");
    assert_eq!(add(&["--parent", "T-1"]).succeeds(), "T-1.2\n");
    assert_eq!(
        add(&["--parent=T-1.1", "--queue", "main"]).succeeds(),
        "T-1.1.1\n"
    );
    add(&["--parent=T-1.1.1"])
        .ends(4)
        .says("`T-1.1.1` is 2 levels down already")
        .says("hint: do it within the item");
    add(&["--parent=T-9"])
        .ends(4)
        .says("`T-9` is completed")
        .says("tavern reopen T-9");
    add(&["--parent=T-7"]).ends(2).says("no item `T-7`");
    add(&["--parent=T-1.1", "--after", "T-1"])
        .ends(4)
        .says("none of them can wait for it");
    add(&["--parent"])
        .ends(2)
        .says("TAVERN_TASK is not set to one");
    add(&["--parent=T-1", "--on-failure", "cry"])
        .ends(2)
        .says("retry, escalate, go_on");
    let typed = scratch.run(
        "tavern-add",
        &["B-1: Typed (parent: T-1, on_failure: escalate)"],
    );
    assert_eq!(typed.succeeds(), "B-1\n");
    scratch
        .run("tavern-add", &["B-2: Typed (parent: T-1)"])
        .ends(4)
        .says("`T-1` has 3 children already");
    // One that a person has deleted leaves its number free, unless it was worked on: its branch is still there.
    let queue = scratch.queue();
    let kept: Vec<&str> = queue
        .lines()
        .filter(|line| !line.contains("T-1.2") && !line.contains("T-1.1:"))
        .collect();
    scratch.write(QUEUE, kept.join("\n") + "\n");
    scratch.write(".tavern/runs/T-1.1@7/metadata.json", "{}");
    assert_eq!(add(&["--parent=T-1"]).succeeds(), "T-1.2\n");
}

/// What a person adds counts for nobody.
#[test]
fn what_runs_add_in_a_day_is_bounded_over_all_items() {
    let scratch = board("- [ ] T-1: One\n- [ ] T-2: Two\n", "children: {day: 3}\n");
    let add = "for one in A B; do tavern add $one --parent 2>> \"$NOTES/refused\" || true; done\n";
    script(&scratch, "T-1", 1, add);
    script(&scratch, "T-2", 1, add);
    scratch
        .run("tavern-add", &["Mine", "--parent=T-1", "--draft"])
        .ends(0);
    for _ in 0..2 {
        scratch
            .run("tavern-agent", &["--name", "Frodo", "--once"])
            .ends(0);
    }
    let refused = scratch.note("refused");
    assert_eq!(
        refused
            .matches("runs have added 3 children within a day already")
            .count(),
        1,
        "{refused}"
    );
    scratch.run("tavern-add", &["Mine", "--parent=T-2"]).ends(0);
}

#[test]
fn a_child_is_put_where_its_parent_is_and_archived_ones_count() {
    let scratch = board(
        "## Pending\n\n- [ ] T-1: One\n",
        "archive: {keep: 1, after: 0s}\n",
    );
    scratch.write(".tavern/queues/other.md", "---\nid: other\n---\n## Pending\n\n- [ ] T-2: Two\n\n## Completed\n\n- [x] T-2.1: A (parent: T-2)\n- [x] T-5: B\n");
    scratch.run("tavern-reap", &[]).ends(0);
    assert!(
        scratch
            .read(".tavern/queues/archive/other.md")
            .contains("T-2.1")
    );
    let add = scratch
        .program("tavern-add")
        .args(&["Do it", "--parent"])
        .variable("TAVERN_TASK", "T-2");
    assert_eq!(add.run().succeeds(), "T-2.2\n");
    assert!(
        scratch
            .read(".tavern/queues/other.md")
            .contains("- [ ] T-2.2: Do it (parent: T-2)")
    );
    scratch
        .run("tavern-status", &["T-2"])
        .ends(0)
        .says("T-2.1 (completed): A")
        .says("T-2.2 (pending): Do it");
}

#[test]
fn a_child_is_approved_before_its_merge_as_its_parent_is_and_can_be_read() {
    let scratch = board("- [ ] T-1: One (approve: merge)\n", "");
    scratch.write(
        ".tavern/queues/asking.md",
        "---\nid: asking\napprove: [start]\n---\n\n## Pending\n",
    );
    let add = scratch.run(
        "tavern-add",
        &["Do it", "--parent=T-1", "--queue", "asking"],
    );
    assert_eq!(add.succeeds(), "T-1.1\n");
    scratch.run("tavern-check", &[]).ends(0);
    assert!(
        scratch
            .read(".tavern/queues/asking.md")
            .contains("T-1.1: Do it (parent: T-1, approve: [start, merge])")
    );
    // What an earlier version wrote for that.
    scratch.write(
        ".tavern/queues/asking.md",
        "- [ ] T-5: Old (approve: both)\n",
    );
    scratch.run("tavern-check", &[]).ends(0);
    scratch
        .run("tavern-status", &["T-5"])
        .ends(0)
        .says("tavern approve T-5");
}

#[test]
fn two_at_once_get_different_numbers() {
    let scratch = board("- [ ] T-1: One\n", "");
    let add = || {
        scratch
            .program("tavern-add")
            .args(&["Do it", "--parent=T-1"])
            .start()
    };
    let all: Vec<_> = (0..8).map(|_| add()).collect();
    let mut ids: Vec<String> = all.into_iter().map(|one| one.end().succeeds()).collect();
    ids.sort();
    let expected: Vec<String> = (1..=8).map(|number| format!("T-1.{number}\n")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn whoever_holds_the_parent_no_more_adds_nothing_to_it() {
    let scratch = board("- [ ] T-1: One\n", "");
    let token = scratch.claim("T-1", &[]);
    let add = |token: &str| {
        let program = scratch
            .program("tavern-add")
            .args(&["Do it", "--parent"])
            .variable("TAVERN_TASK", "T-1");
        program.variable("TAVERN_TOKEN", token).run()
    };
    add(&token).succeeds();
    add("99").ends(4).says("stale");
    // The same verbs as a supervisor's: what has open children is put aside.
    let reported = scratch
        .run("tavern-report", &["T-1", "--token", &token, "--done"])
        .ends(0);
    reported.says("T-1 waiting: waits for its children: T-1.1");
    add(&token).ends(4).says("`T-1` is no longer held");
    scratch.run("tavern-claim", &["--task", "T-1"]).ends(3);
    let shown = scratch
        .run("tavern-status", &["T-1", "--verbose"])
        .ends(0)
        .says("mode        unify");
    shown.says("it waits for its children T-1.1; to go on without them: tavern release T-1");
    // A person may have it go on before.
    scratch
        .run("tavern-release", &["T-1"])
        .ends(0)
        .says("T-1 is pending");
    assert_eq!(scratch.item("T-1")["mode"], "execute");
}

#[test]
fn giving_up_a_parent_says_what_becomes_of_its_children() {
    let queue = "- [ ] T-1: One\n- [ ] T-1.1: A (parent: T-1)\n- [ ] T-1.1.1: B (parent: T-1.1)\n- [x] T-1.2: C (parent: T-1)\n";
    let scratch = board(queue, "");
    let alone = scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    alone.says("its children go on: T-1.1, T-1.1.1; to give them up too: tavern release T-1 --cancel --children");
    scratch
        .run("tavern-status", &["T-1.1"])
        .ends(0)
        .says("parent      T-1 (cancelled)");
    scratch
        .run(
            "tavern-release",
            &["T-1", "--cancel", "--children", "--dry-run"],
        )
        .ends(0)
        .says("T-1.1 is cancelled");
    let all = scratch
        .run("tavern-release", &["T-1", "--cancel", "--children"])
        .ends(0);
    assert_eq!(all.stdout, "T-1.1 is cancelled\nT-1.1.1 is cancelled\n");
    assert_eq!(scratch.item("T-1.2")["status"], "completed");
}

#[test]
fn people_move_and_delete_children_and_the_parent_goes_on() {
    let queue = "## Pending\n\n- [ ] T-1.1: A (parent: T-1, role: nobody)\n- [ ] T-1.2: B (parent: T-1, role: nobody)\n\
                 - [ ] T-1: One\n\n## Completed\n";
    let scratch = board(queue, "");
    let token = scratch.claim("T-1", &[]);
    scratch
        .run("tavern-report", &["T-1", "--token", &token, "--done"])
        .ends(0)
        .says("T-1 waiting: waits for its children: T-1.1, T-1.2");
    agent(&scratch).says_not("claimed");
    let deleted = queue
        .replace("- [ ] T-1.2: B (parent: T-1, role: nobody)\n", "")
        .replace("- [ ] T-1.1", "- [x] T-1.1");
    scratch.write(QUEUE, deleted);
    agent(&scratch).says("T-1 merged as");
    let told = scratch.note("T-1/1");
    assert!(
        told.contains("T-1.1 completed: A") && !told.contains("T-1.2"),
        "{told}"
    );
}

#[test]
fn parts_of_an_item_are_its_children() {
    let scratch = board(
        "- [ ] T-1: Whole\n  - [ ] T-2: First part\n  - [ ] a step\n  - [ ] T-3: Second part\n",
        "",
    );
    script(&scratch, "T-1", 1, "echo 1 >whole.txt\n");
    script(&scratch, "T-1", 2, "true\n");
    agent(&scratch)
        .says("T-1 waits for its children: T-2, T-3")
        .says("T-1 merged as")
        .says_not("failed");
    has(
        &scratch.note("T-1/1"),
        &["leave to them", "T-2 pending: First part"],
    );
    has(&scratch.queue(), &["- [x] T-1", "- [x] T-2", "- [x] T-3"]);
}

#[test]
fn modes_are_reported_shown_and_logged() {
    let scratch = board("- [ ] T-1: One\n", "");
    let look = "for mode in plan delegate break_up unify; do\n    tavern report --mode $mode\n    tavern status >>\"$NOTES/seen\"\n    \
                tavern status --format json >>\"$NOTES/seen.json\"\ndone\ntavern-report --mode execute\necho 1 >one.txt\n";
    script(&scratch, "T-1", 1, look);
    agent(&scratch).says("T-1 merged as");
    let (seen, json) = (
        scratch.read("../home/notes/seen"),
        scratch.read("../home/notes/seen.json"),
    );
    let log = scratch.run("tavern-log", &["T-1"]).succeeds();
    for mode in ["plan", "delegate", "break_up", "unify"] {
        let shown = mode.replace('_', " ");
        assert!(
            seen.contains(&format!("T-1      in progress One ({shown})")),
            "{seen}"
        );
        assert!(
            seen.contains(&format!("Frodo      {shown:<8} T-1")),
            "{seen}"
        );
        assert_eq!(
            json.matches(&format!("\"mode\":\"{mode}\"")).count(),
            2,
            "{json}"
        );
        assert!(
            log.contains(&format!("Frodo changed the mode of T-1: {mode}")),
            "{log}"
        );
    }
    assert!(
        log.contains("Frodo changed the mode of T-1: execute"),
        "{log}"
    );
}

#[test]
fn a_plain_checklist_grows_while_it_is_drained() {
    let scratch = Scratch::repository();
    let item = "---\nmax_attempts: 1\n---\n- [ ] T-1: Break it up (done_when: test -s T-1.1.txt)\n  ```sh\n  [ -e T-1.1.txt ] || printf 'Part\\n\\n```sh\\n%s\\n```\\n' \"$(cat ~/part)\" | tavern add --parent --on-failure escalate\n  ```\n";
    scratch.write("TODO.md", item);
    let drain = |part: &str, code| {
        scratch.write("../home/part", part);
        scratch
            .run("tavern-drain", &["TODO.md", "--runner", "shell"])
            .ends(code)
    };
    drain("exit 3", 1).says(
        "  its child T-1.1 failed\n  to do: tavern retry T-1.1, or tavern cancel T-1.1 to go on without it",
    );
    let todo = scratch.read("TODO.md");
    has(&todo, &["T-1.1: Part"]);
    assert_eq!(scratch.item("T-1")["mode"], "unify");
    scratch.write("TODO.md", todo.replace("exit 3", "echo 1 >T-1.1.txt"));
    scratch
        .run("tavern-release", &["T-1.1", "--revive"])
        .ends(0);
    drain("", 0).says("2 of 2 completed, 0 left");
}

#[test]
fn a_child_that_fails_while_its_parent_is_worked_on_keeps_it_waiting_too() {
    let scratch = board(
        "- [ ] T-1: Break it up (result: answer)\n",
        "max_attempts: 1\n",
    );
    let add = "tavern add --parent 'Fails and matters' --done-when 'test -e ok' --on-failure escalate\n\
               mkfifo \"$NOTES/go\"\necho added >\"$NOTES/added\"\ncat \"$NOTES/go\"\n";
    script(&scratch, "T-1", 1, add);
    let running = scratch
        .program("tavern-agent")
        .args(&["--name", "Frodo", "--until-empty"])
        .start();
    let notes = scratch.folder().join("home/notes");
    wait_until("the child is added", || notes.join("added").exists());
    scratch
        .run("tavern-agent", &["--name", "Sam", "--once"])
        .ends(0);
    std::fs::write(notes.join("go"), "").expect("the script reads it");
    let ran = running.end().ends(0);
    assert_eq!(
        ["T-1", "T-1.1"].map(|task| scratch.item(task)["status"].clone()),
        ["waiting", "dead"],
        "{ran}"
    );
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("to do       tavern retry T-1.1");
}

#[test]
fn breaking_it_up_is_no_way_round_those_who_have_to_approve_it() {
    let queue = "## Pending\n\n- [ ] T-1: Break it up (approve: merge, review: none, done_when: test -s T-1.1.txt)\n\n## In Review\n\n\
                 ## Waiting\n\n## Completed\n";
    let scratch = board(queue, "review: [reviewer]\n");
    let add = "tavern add --parent One\ntavern-add 'Two (parent: T-1, tags: [a])'\n\
               for keys in 'review: none' 'budget: {usd: 99}' 'max_attempts: 9'; do\n\
               tavern add \"Sneak (parent: T-1, $keys)\" 2>>\"$NOTES/refused\" && exit 1\ndone\n";
    script(&scratch, "T-1", 1, add);
    agent(&scratch)
        .says("T-1.1 done, now in review")
        .says_not("merged");
    for id in ["T-1.1", "T-1.2"] {
        scratch
            .run("tavern-status", &[id])
            .ends(0)
            .says("status      in review")
            .says("waits for   person");
    }
    let refused = scratch.read("../home/notes/refused");
    assert_eq!(
        refused.matches("an agent can't set `").count(),
        3,
        "{refused}"
    );
    assert!(
        refused.contains("an agent can't set `review`\nhint: leave it out"),
        "{refused}"
    );
}

#[test]
fn a_queue_without_reviews_is_no_way_round_those_of_the_board() {
    let scratch = board(
        "- [ ] T-1: Hand it out (result: answer)\n",
        "review: [person]\n",
    );
    scratch.write(
        ".tavern/queues/chores.md",
        "---\nid: chores\nreview: none\n---\n",
    );
    scratch
        .run("tavern-add", &["Look", "--parent=T-1", "--queue", "chores"])
        .succeeds();
    assert!(
        scratch
            .read(".tavern/queues/chores.md")
            .contains("review: [person]"),
        "the board's reviewers hold"
    );
    scratch
        .run("tavern-add", &["Sweep", "--queue", "chores", "--id", "T-2"])
        .succeeds();
    scratch
        .run("tavern-status", &["T-2"])
        .ends(0)
        .says_not("person");
}

#[test]
fn a_drain_whose_parents_wait_for_children_that_ask_waits_for_a_person() {
    let scratch = board(ONE, "");
    script(&scratch, "T-1", 1, BREAK_UP);
    script(
        &scratch,
        "T-1.2",
        1,
        "echo 'WAITING: red or blue?'; exit 0\n",
    );
    let drained = scratch.run("tavern-drain", &["--agents", "1"]).ends(8);
    drained
        .says("T-1 waiting")
        .says("to do: tavern answer T-1.2");
    // A draft is for nobody to take, and nobody asks about it.
    scratch
        .run("tavern-add", &["Later", "--draft", "--parent=T-1"])
        .ends(0);
    scratch.run("tavern-drain", &["--agents", "1"]).ends(1);
}
