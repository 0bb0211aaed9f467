//! A planner between a request and its items: all of a plan or none of it, bounded tries, nothing smuggled, and no
//! waking for what has not changed.

use crate::support::{QUEUE, Ran, Scratch, has};

/// A planner that says what `steps/N` holds, N being the number of its runs, and keeps its prompts; a coder that does
/// what its item's `done_when` asks for.
const AGENT: &str = r#"#!/bin/sh -eu
case $TAVERN_ROLE in
planner)
    mkdir -p "$NOTES"
    number=$(($(ls "$NOTES" | wc -l) + 1))
    cat >"$NOTES/$number"
    [ ! -e "$STEPS/$number.file" ] || cp "$STEPS/$number.file" "$TAVERN_RUN/plan.md"
    sed "s/NONCE/$TAVERN_NONCE/" "$STEPS/$number" ;;
coder)
    cat >/dev/null
    echo "$TAVERN_TASK" >>work.txt
    git add --all && git commit -qm 'Go on'
    echo DONE ;;
esac
"#;

fn board(settings: &str, queue: &str) -> Scratch {
    Scratch::with_agent(AGENT, queue, settings)
}

const EMPTY: &str = "## Draft\n\n## Pending\n\n## Waiting\n\n## Completed\n\n## Dead Letter\n";

const PLANNER: [&str; 5] = ["--role", "planner", "--name", "Frodo", "--until-empty"];

fn plan(scratch: &Scratch, number: u32, answer: &str) {
    scratch.write(format!("../home/steps/{number}"), answer);
}

fn agent(scratch: &Scratch, role: &str) -> Ran {
    scratch
        .run(
            "tavern-agent",
            &["--role", role, "--name", "Frodo", "--until-empty"],
        )
        .ends(0)
}

const GOOD: &str = "Two steps.\n\n```markdown NONCE\n- [ ] P-1: Make the table (priority: 1)\n  As in specs/db.md.\n\n  \
    ```yaml task\n  done_when: [grep -q work.1 work.txt || grep -q L-1.1 work.txt]\n  touches: [work.txt]\n  ```\n\
    - [ ] P-2: Log in (after: [P-1, T-1], done_when: test -s work.txt)\n```\n\nDONE\n";
const BAD: &str = "```markdown NONCE\n- [ ] P-1: Make the table\n- [ ] P-2: Log in (after: P-9, done_when: \"true\", \
    status: approved)\n```\nDONE\n";

#[test]
fn a_request_becomes_items_that_are_worked() {
    let scratch = board(
        "",
        &EMPTY.replace(
            "## Pending\n",
            "## Pending\n\n- [ ] T-1: There (done_when: \"true\")\n",
        ),
    );
    scratch.write("specs/db.md", "# Tables\n");
    scratch.commit(&["specs"], "Specify");
    plan(&scratch, 1, GOOD);
    let added = scratch
        .run(
            "tavern-plan",
            &["Build a login page", "--id", "L-1", "--tag", "auth"],
        )
        .ends(0);
    assert_eq!(added.stdout, "L-1\n");
    agent(&scratch, "planner").says("L-1 planned: L-1.1, L-1.2");
    let text = scratch.queue();
    has(
        &text,
        &[
            "- [ ] L-1.1: Make the table (priority: 1, tags: [auth])\n  As in specs/db.md.\n",
            "  touches: [work.txt]\n",
            "- [ ] L-1.2: Log in (after: [L-1.1, T-1], tags: [auth])\n",
            "- [x] L-1: Build a login page",
        ],
    );
    let told = scratch.note("1");
    has(
        &told,
        &[
            "Task: L-1: Build a login page",
            "Queue main: 1 pending\n- T-1 (pending): There",
            "\n- coder\n",
            "\n- drone (model haiku, 5 minutes at most, tried 1 times at most)\n",
            "- specs/db.md",
            "items at most; what it adds begins as pending",
        ],
    );
    assert!(
        !told.contains("- planner") && !told.contains("You were woken"),
        "{told}"
    );
    assert_eq!(
        scratch.read(".tavern/runs/L-1@2/plan.md").lines().count(),
        8,
        "it is on disk"
    );
    assert!(
        !scratch.work().join(".tavern/worktrees/L-1@view").exists(),
        "the view is gone"
    );
    agent(&scratch, "coder")
        .says("L-1.1 merged as")
        .says("L-1.2 merged as");
    let log = scratch.run("tavern-log", &[]).succeeds();
    let planned = log
        .find("Frodo planned L-1: L-1.1, L-1.2")
        .expect("it is told");
    assert!(
        log.find("L-1.2 was added as pending by Frodo: Log in")
            .is_some_and(|added| added < planned),
        "{log}"
    );
    scratch.run("tavern-check", &[]).ends(0);
}

#[test]
fn a_request_gets_a_short_title_and_is_told_whole() {
    let scratch = board("", EMPTY);
    let long = ["word"; 40].join(" ");
    let cut = format!(
        "- [ ] T-1: {}… (role: planner)\n  {long}\n",
        ["word"; 20].join(" ")
    );
    let headed = "- [ ] T-1: Build it (role: planner)\n\n    - fast\n".to_owned();
    for (request, item) in [
        (long.as_str(), cut),
        ("\n# Build it\r\n\r\n  - fast\n", headed),
    ] {
        let planned = scratch
            .run("tavern-plan", &["--id", "T-1", "--dry-run", request])
            .ends(0);
        assert_eq!(planned.stdout, item);
    }
}

#[test]
fn a_plan_that_is_wrong_goes_back_with_its_problems_and_is_given_up_in_the_end() {
    let scratch = board("max_attempts: 3", EMPTY);
    plan(&scratch, 1, BAD);
    plan(&scratch, 2, GOOD);
    plan(&scratch, 3, &GOOD.replace(", T-1", ""));
    scratch
        .run("tavern-plan", &["Log in", "--id", "L-1"])
        .ends(0);
    let ran = agent(&scratch, "planner");
    ran.says("its plan was rejected: line 1: it has no `done_when`")
        .says("and 2 problems more")
        .says("L-1 planned: L-1.1, L-1.2");
    let second = scratch.note("2");
    has(
        &second,
        &[
            "Your last plan was rejected",
            "plan.md:1:7: error: it has no `done_when`",
            "there is no item `P-9` to wait for",
            "a planner can't set `status`",
            "Attempt: 2 of 3",
        ],
    );
    assert!(
        scratch
            .note("3")
            .contains("there is no item `T-1` to wait for"),
        "each try hears of its own"
    );
    assert_eq!(
        scratch.queue().matches("Log in").count(),
        2,
        "the planning item and one of its items"
    );

    let scratch = board("max_attempts: 2", EMPTY);
    (1..=2).for_each(|number| plan(&scratch, number, BAD));
    scratch
        .run("tavern-plan", &["Log in", "--id", "L-1"])
        .ends(0);
    agent(&scratch, "planner").says("now dead: its plan was rejected");
    assert_eq!(
        scratch.queue().matches("- [ ] ").count(),
        1,
        "nothing was added"
    );
}

#[test]
fn a_planner_may_ask_a_person_or_give_none_and_a_file_is_no_answer() {
    let scratch = board("", EMPTY);
    plan(&scratch, 1, "What is a page?\n\nWAITING: which page?\n");
    plan(&scratch, 2, "I have read it all.\nDONE\n");
    plan(
        &scratch,
        3,
        "```markdown NONCE\n- [ ] Log in (done_when: test -s work.txt)\n```\nDONE\n",
    );
    scratch.write("../home/steps/2.file", "- [ ] Planted (done_when: ls)\n");
    scratch
        .run("tavern-plan", &["A page", "--id", "L-1", "--draft"])
        .ends(0);
    agent(&scratch, "planner").says("L-1 asks: which page?");
    scratch
        .run("tavern-release", &["L-1", "--reason", "the login"])
        .ends(0);
    agent(&scratch, "planner")
        .says("it gave no plan: its answer does not end with a ```markdown block")
        .says("L-1 planned: L-1.1");
    has(
        &scratch.note("2"),
        &["<asked>\nwhich page?\n</asked>\n<answered>\nthe login"],
    );
    let text = scratch.queue();
    assert!(
        text.contains("## Draft\n\n- [ ] L-1.1: Log in\n"),
        "it begins where the person said: {text}"
    );
    assert!(scratch.note("3").contains("begins as draft"));
}

#[test]
fn planned_items_begin_in_draft_if_the_board_says_so() {
    let scratch = board("plan: {lane: draft, most: 1}", EMPTY);
    plan(&scratch, 1, &GOOD.replace(", T-1", ""));
    plan(
        &scratch,
        2,
        "```markdown NONCE\n- [ ] Log in (done_when: \"true\", role: drone)\n```\nDONE\n",
    );
    scratch
        .run("tavern-plan", &["A page", "--id", "L-1", "-p", "0"])
        .ends(0);
    agent(&scratch, "planner")
        .says("the plan has 2 items; at most 1 are allowed")
        .says("L-1 planned: L-1.1");
    has(
        &scratch.queue(),
        &["## Draft\n\n- [ ] L-1.1: Log in (priority: 0, role: drone)\n"],
    );
}

#[test]
fn without_a_model_the_request_is_the_item() {
    let scratch = board("", &format!("---\nrole: planner\n---\n{EMPTY}"));
    let plan = scratch
        .program("tavern-plan")
        .args(&["--no-model", "--id", "L-1"]);
    plan.input("Build a login page\n\nWith a name.\n")
        .run()
        .ends(0)
        .says_not("no planner is running");
    agent(&scratch, "planner").says_not("L-1");
    has(
        &scratch.queue(),
        &["- [ ] L-1: Build a login page (role: coder)\n  With a name.\n"],
    );
    agent(&scratch, "coder").says("L-1 merged as");
}

#[test]
fn a_reopened_request_is_planned_beside_what_came_of_it() {
    let scratch = board("", EMPTY);
    let good = GOOD.replace(", T-1", "");
    plan(&scratch, 1, &good);
    plan(&scratch, 2, &good);
    scratch
        .run("tavern-plan", &["A page", "--id", "L-1"])
        .ends(0);
    agent(&scratch, "planner").says("L-1 planned: L-1.1, L-1.2");
    scratch
        .run("tavern-release", &["L-1", "--reopen", "--reason", "more"])
        .ends(0);
    agent(&scratch, "planner").says("L-1 planned: L-1.3, L-1.4");
    has(&scratch.queue(), &["- [ ] L-1.4: Log in (after: L-1.3)"]);
    scratch.run("tavern-check", &[]).ends(0);
}

/// Killed or failing at each step, a plan is there whole, once; or not at all, and the next run makes it.
#[test]
fn a_plan_is_taken_whole_and_once() {
    let good = GOOD.replace(", T-1", "");
    let places = [
        "run.ended",
        "log.torn",
        "log.appended",
        "submit.replaced",
        "submit.leased",
    ];
    for (place, action) in places
        .iter()
        .flat_map(|place| [(place, "kill"), (place, "error")])
    {
        // The claim and the start reach all but the first before.
        for nth in if *place == "run.ended" { 1..=1 } else { 3..=3 } {
            let scratch = board("", EMPTY);
            (1..=3).for_each(|number| plan(&scratch, number, &good));
            scratch
                .run("tavern-plan", &["A page", "--id", "L-1"])
                .ends(0);
            let fault = format!("{place}={action}@{nth}");
            let ran = scratch.failing(&fault, "tavern-agent", &PLANNER);
            assert!(
                ran.stderr.contains(&format!("failpoint: {place}")),
                "{fault}\n{ran}"
            );
            scratch
                .run(
                    "tavern-add",
                    &["The next", "--id", "T-8", "--role", "nobody"],
                )
                .succeeds();
            let text = scratch.queue();
            let is_there = text.contains("- [x] L-1:");
            assert_eq!(
                text.matches("L-1.1:").count(),
                usize::from(is_there),
                "{fault}\n{ran}{text}"
            );
            assert_eq!(
                text.matches("L-1.2:").count(),
                usize::from(is_there),
                "{fault}\n{ran}{text}"
            );
            scratch.run("tavern-reap", &[]).ends(0);
            agent(&scratch, "planner");
            let text = scratch.queue();
            let names = ["- [x] L-1: ", "- [ ] L-1.1: ", "- [ ] L-1.2: ", "L-1.3"];
            assert_eq!(
                names.map(|name| text.matches(name).count()),
                [1, 1, 1, 0],
                "{fault}\n{ran}{text}"
            );
            let log = scratch.run("tavern-log", &[]).succeeds();
            assert_eq!(log.matches("L-1.1 was added").count(), 1, "{fault}\n{log}");
            scratch.run("tavern-check", &["--quiet"]).ends(0);
        }
    }
}

/// A plan is saved over by a person at the moment that it is taken.
#[test]
fn a_person_may_save_while_a_plan_is_taken() {
    let scratch = board("", EMPTY);
    plan(&scratch, 1, &GOOD.replace(", T-1", ""));
    scratch
        .run("tavern-plan", &["A page", "--id", "L-1"])
        .ends(0);
    let planner = scratch.holding("run.ended", "tavern-agent", &PLANNER);
    scratch.change(QUEUE, "## Waiting", "- [ ] Mine\n\n## Waiting");
    planner.goes_on().ends(0).says("L-1 planned: L-1.1, L-1.2");
    has(
        &scratch.queue(),
        &["- [ ] Mine", "- [ ] L-1.2:", "- [x] L-1:"],
    );
}

/// Who only looks while the log is being written does not cut it short.
#[test]
fn a_look_at_the_board_while_a_plan_is_logged_takes_nothing_from_it() {
    let scratch = board("", EMPTY);
    plan(&scratch, 1, &GOOD.replace(", T-1", ""));
    scratch
        .run("tavern-plan", &["A page", "--id", "L-1"])
        .ends(0);
    let planner = scratch.holding("log.torn@3", "tavern-agent", &PLANNER);
    scratch
        .run("tavern-claim", &["--role", "planner", "--dry-run"])
        .ends(3);
    planner.goes_on().ends(0).says("L-1 planned: L-1.1, L-1.2");
    let log = scratch.run("tavern-log", &[]).succeeds();
    let names = ["L-1.1 was added", "L-1.2 was added"];
    assert_eq!(names.map(|name| log.matches(name).count()), [1, 1], "{log}");
}

const NOTHING: &str = "```markdown NONCE\nOnly a person can help.\n```\nDONE\n";
const WAKE: &str = "plan: {wake: [dead, integration, blocked, goal]}\narchive: {after: 1s}";

/// The IDs of the planning items that planners have queued for themselves.
fn woken(scratch: &Scratch) -> Vec<String> {
    let log = scratch.run("tavern-log", &[]).succeeds();
    let added = log
        .lines()
        .filter(|line| line.contains(" was added") && line.contains(" WAKE-"));
    let ids = added.map(|line| {
        line.split(' ')
            .find(|word| word.starts_with("WAKE-"))
            .expect("it is there")
            .to_owned()
    });
    ids.filter(|id| !id.contains('.')).collect()
}

#[test]
fn a_planner_is_woken_once_for_each_state() {
    let item = "- [ ] T-1: Write it (max_attempts: 1)\n";
    let scratch = board(
        WAKE,
        &EMPTY.replace("## Pending\n", &format!("## Pending\n\n{item}")),
    );
    let dies = |why: &str| {
        let token = scratch.claim("T-1", &[]);
        scratch
            .run(
                "tavern-report",
                &["T-1", "--token", &token, "--failed", why],
            )
            .ends(1);
        scratch.stands("T-1", "dead", 1);
    };
    dies("tests failed");
    plan(&scratch, 1, NOTHING);
    plan(
        &scratch,
        2,
        "```markdown NONCE\n- [ ] Write less (done_when: \"false\", tags: [small])\n```\nDONE\n",
    );
    agent(&scratch, "planner")
        .says("queued: T-1 used up its attempts: tests failed")
        .says("planned: Only a person can help.");
    let told = scratch.note("1");
    assert!(
        told.contains("You were woken by: T-1 used up its attempts: tests failed\n"),
        "{told}"
    );
    has(
        &told,
        &[
            "- T-1 (dead): Write it [tests failed]\n",
            "say why, in one line",
        ],
    );
    let first = woken(&scratch);
    assert_eq!(first.len(), 1);
    has(
        &scratch.queue(),
        &[&format!(
            "- [x] {}: Replace T-1 (role: planner, trigger: ",
            first[0]
        )],
    );

    // Neither an unchanged state, nor one whose planning item was archived, or removed by hand, wakes it again.
    agent(&scratch, "planner").says_not("queued");
    scratch.at("+100000", "tavern-reap", &[]).ends(0);
    assert!(!scratch.queue().contains("WAKE-"), "it was archived");
    agent(&scratch, "planner").says_not("queued");
    std::fs::remove_dir_all(scratch.work().join(".tavern/queues/archive")).expect("it is there");
    agent(&scratch, "planner").says_not("queued");

    // It died of something else.
    scratch
        .run("tavern-release", &["T-1", "--revive"])
        .succeeds();
    dies("it can't be merged");
    agent(&scratch, "planner")
        .says("it can't be merged")
        .says("planned: WAKE-");
    assert_eq!(woken(&scratch).len(), 2);
    // What came of that dies too, and is left to a person.
    let child = format!("{}.1", woken(&scratch)[1]);
    assert!(
        scratch
            .queue()
            .contains(&format!("- [ ] {child}: Write less (tags: [small])")),
        "{}",
        scratch.queue()
    );
    agent(&scratch, "coder").says(&format!("{child} failed, now dead"));
    agent(&scratch, "planner").says_not("queued");
    scratch
        .run("tavern-drain", &["--role", "planner"])
        .says_not("queued");
}

#[test]
fn nobody_is_woken_unasked() {
    let text = "---\ngoal: a shop\n---\n".to_owned() + EMPTY + "\n- [ ] T-1: a\n";
    let scratch = board("", &text);
    agent(&scratch, "planner").says_not("queued");
    let scratch = board(WAKE, &text);
    agent(&scratch, "coder").says_not("queued");
}

#[test]
fn a_planner_is_woken_for_what_is_blocked_not_merged_or_not_begun() {
    let scratch = board(
        WAKE,
        &EMPTY.replace(
            "## Pending\n",
            "## Pending\n\n- [ ] T-1: a (after: T-2)\n- [ ] T-2: b\n",
        ),
    );
    plan(&scratch, 1, NOTHING);
    agent(&scratch, "planner").says_not("queued");
    scratch.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    let drained = scratch.run("tavern-drain", &["--role", "planner", "--agents", "1"]);
    drained.says("planned: Only a person can help.");
    assert!(
        scratch
            .note("1")
            .contains("T-1 waits for T-2, which will never be completed")
    );

    let scratch = board(
        WAKE,
        &format!("---\ngoal: A shop that sells mugs.\n---\n{EMPTY}"),
    );
    plan(
        &scratch,
        1,
        "```markdown NONCE\n- [ ] Sell a mug (done_when: test -s work.txt)\n```\nDONE\n",
    );
    agent(&scratch, "planner")
        .says("queued: nothing is planned")
        .says("planned: WAKE-");
    has(&scratch.note("1"), &["A shop that sells mugs."]);
    agent(&scratch, "coder").says(".1 merged as");
    agent(&scratch, "planner").says_not("queued");

    // Each merge fails, since its command only holds where the other's work is not.
    let item = "- [ ] T-1: a (max_attempts: 9, done_when: test ! -e theirs.txt)\n";
    let scratch = board(
        WAKE,
        &EMPTY.replace("## Pending\n", &format!("## Pending\n\n{item}")),
    );
    plan(&scratch, 1, NOTHING);
    for times in 1..=2 {
        let coder = scratch.holding("run.ended", "tavern-agent", &["--name", "Sam", "--once"]);
        scratch.write("theirs.txt", format!("{times}\n"));
        scratch.commit(&["theirs.txt"], "Theirs");
        coder
            .goes_on()
            .ends(0)
            .says("T-1 sent back: after the merge into");
        scratch.git(&["rm", "--quiet", "theirs.txt"]);
        scratch.git(&["commit", "--quiet", "--message=Theirs no more"]);
        if times == 1 {
            agent(&scratch, "planner").says_not("queued");
        }
    }
    agent(&scratch, "planner")
        .says("queued: T-1 passes its commands, but its merge failed 2 times");
    agent(&scratch, "planner").says_not("queued");
}

#[test]
fn a_note_wakes_it_too() {
    let scratch = board("", EMPTY);
    plan(&scratch, 1, NOTHING);
    scratch
        .run(
            "tavern-plan",
            &[
                "--note",
                "The provider of the database has changed",
                "--id",
                "L-1",
            ],
        )
        .ends(0);
    agent(&scratch, "planner").says("L-1 planned: Only a person can help.");
    has(
        &scratch.note("1"),
        &[
            "The provider of the database has changed",
            "You were woken by: a note",
        ],
    );
    scratch
        .run("tavern-status", &["L-1"])
        .ends(0)
        .says("Only a person can help.");
}

#[test]
fn a_plan_is_made_step_by_step_from_a_shell() {
    let scratch = board("", EMPTY);
    plan(&scratch, 1, &GOOD.replace(", T-1", ""));
    for id in ["L-1", "L-2"] {
        scratch.run("tavern-plan", &["A page", "--id", id]).ends(0);
    }
    // Each program by itself, as scripts/agent-loop.sh has it.
    let claim = |id| scratch.claim(id, &["--role", "planner", "--agent", "Rosie"]);
    let token = claim("L-1");
    scratch
        .run("tavern-spawn", &["L-1", "--token", &token])
        .ends(0)
        .says("planned 2 items");
    assert!(
        !scratch.queue().contains("L-1.1"),
        "nothing is added before it is reported"
    );
    scratch
        .run("tavern-report", &["L-1", "--token", &token])
        .ends(0)
        .says("L-1 planned: L-1.1, L-1.2");
    // A person plans, in a file.
    let token = claim("L-2");
    let report = scratch.run("tavern-report", &["L-2", "--token", &token, "--done"]);
    report.ends(1).says("it gave no plan: there is none in ");
    let token = claim("L-2");
    scratch.write(
        format!(".tavern/runs/L-2@{token}/plan.md"),
        "- [ ] Log out (after: L-1.2, done_when: \"true\")\n",
    );
    scratch
        .run("tavern-report", &["L-2", "--token", &token, "--done"])
        .ends(0)
        .says("L-2 planned: L-2.1");
    has(&scratch.queue(), &["- [ ] L-2.1: Log out (after: L-1.2)\n"]);
}

#[test]
fn an_id_that_is_too_long_for_a_plan_says_so() {
    let scratch = board("max_attempts: 1", EMPTY);
    plan(&scratch, 1, &GOOD.replace(", T-1", ""));
    let id = format!("L-{}", "1".repeat(60));
    scratch.run("tavern-plan", &["A page", "--id", &id]).ends(0);
    agent(&scratch, "planner").says("now dead: its ID is too long as a prefix of new IDs");
}

/// A plain checklist has no lanes: what is to wait says so itself.
#[test]
fn a_task_file_is_planned_in_place() {
    let scratch = board("", EMPTY);
    plan(&scratch, 1, &GOOD.replace(", T-1", ""));
    scratch.write(
        "TODO.md",
        "# To do\n\n* [ ] Sweep (done_when: \"true\")\n\nThe end.\n",
    );
    scratch
        .run(
            "tavern-plan",
            &["A page", "--queue", "TODO.md", "--id", "L-1", "--draft"],
        )
        .ends(0);
    scratch
        .line("tavern-agent --role planner --queue TODO.md --until-empty")
        .run()
        .ends(0)
        .says("L-1 planned");
    let text = scratch.read("TODO.md");
    assert!(
        text.contains("* [ ] L-1.1: Make the table (priority: 1, status: draft)\n"),
        "{text}"
    );
    assert!(
        text.starts_with("# To do\n\n* [ ] Sweep") && text.ends_with("\n\nThe end.\n"),
        "{text}"
    );
}

#[test]
fn planned_items_of_a_queue_for_planners_are_for_those_who_work() {
    let scratch = board("", &format!("---\nrole: planner\n---\n{EMPTY}"));
    plan(&scratch, 1, &GOOD.replace(", T-1", ""));
    plan(&scratch, 2, &GOOD.replace(", T-1", ""));
    scratch
        .run("tavern-plan", &["Build a login page", "--id", "L-1"])
        .ends(0);
    let ran = agent(&scratch, "planner");
    ran.says("L-1 planned: L-1.1, L-1.2")
        .says_not("L-1.1 claimed");
    has(
        &scratch.queue(),
        &["L-1.1: Make the table (priority: 1, role: coder)"],
    );
    agent(&scratch, "coder")
        .says("L-1.1 merged as")
        .says("L-1.2 merged as");
}

#[test]
fn what_can_not_be_read_wakes_no_planner() {
    let scratch = board(
        WAKE,
        &EMPTY.replace("## Pending\n", "## Pending\n\n- [ ] T-1: a (after: B-1)\n"),
    );
    scratch.write(".tavern/queues/b.md", b"- [ ] B-1: Caf\xe9\n");
    let planner = [
        "--role",
        "planner",
        "--name",
        "Frodo",
        "--queue",
        "main",
        "--until-empty",
    ];
    scratch.run("tavern-agent", &planner).says_not("queued");
    assert_eq!(woken(&scratch), Vec::<String>::new());
    // Nor is it taken for woken.
    scratch.write(".tavern/queues/b.md", "---\nid: b\n---\n- [ ] B-2: Café\n");
    plan(&scratch, 1, NOTHING);
    scratch
        .run("tavern-agent", &planner)
        .ends(0)
        .says("queued: T-1 waits for B-1");
}

#[test]
fn a_plan_with_a_secret_in_a_command_is_refused_and_never_written_otherwise() {
    let scratch = board("max_attempts: 2", EMPTY);
    let plan_of = |command: &str| {
        format!(
            "```markdown NONCE\n- [ ] With zq81ks03mfh2 (done_when: \"true\")\n  ```sh\n  {command}\n  ```\n```\nDONE\n"
        )
    };
    plan(&scratch, 1, &plan_of("echo zq81ks03mfh2"));
    plan(&scratch, 2, &plan_of("echo $MY_API_KEY"));
    scratch
        .run("tavern-plan", &["Log in", "--id", "L-1"])
        .ends(0);
    let planner = scratch.program("tavern-agent").args(&PLANNER);
    let ran = planner.variable("MY_API_KEY", "zq81ks03mfh2").run().ends(0);
    ran.says("line 3: a command holds a secret, MY_API_KEY, which would be committed")
        .says("L-1 planned: L-1.1");
    has(
        &scratch.queue(),
        &["With [redacted MY_API_KEY]", "  echo $MY_API_KEY\n"],
    );
}
