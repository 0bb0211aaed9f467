//! A reviewer between the coder and the merge: one commit, one verdict, bounded rounds, never one's own work.

use crate::support::{CONFIG, QUEUE, Ran, Scratch, has};

/// An agent program for both roles: the coder writes a line for each round, the reviewer does what its folder's
/// `steps/N` says, N being the number of its runs.
const AGENT: &str = r#"#!/bin/sh -eu
cat >prompt.seen
notes=$NOTES/$TAVERN_TASK
mkdir -p "$notes"
case $TAVERN_ROLE in
coder)
    # T-9 is not done before T-1 was looked at.
    [ "$TAVERN_TASK" != T-9 ] || timeout 40 sh -c 'until [ -e "$NOTES/T-1/1" ]; do sleep 0.05; done'
    # T-5 is not done before somebody else works on T-6.
    [ "$TAVERN_TASK" != T-5 ] || timeout 40 sh -c 'until [ -e "$NOTES/T-6" ]; do sleep 0.05; done'
    echo "round by $TAVERN_AGENT" >>"$TAVERN_TASK.txt"
    rm prompt.seen
    git add --all && git commit -qm 'Go on'
    echo DONE ;;
reviewer)
    number=$(($(ls "$notes" | wc -l) + 1))
    { cat prompt.seen; git rev-parse HEAD; } >"$notes/$number"
    sed "s/NONCE/$TAVERN_NONCE/" "$STEPS/$number" ;;
esac
"#;

pub fn board(queue: &str) -> Scratch {
    Scratch::with_agent(AGENT, queue, "review: [reviewer]\n")
}

pub fn verdict(scratch: &Scratch, number: u32, text: &str) {
    scratch.write(format!("../home/steps/{number}"), text);
}

fn agent(scratch: &Scratch, role: &str, name: &str) -> Ran {
    scratch
        .run(
            "tavern-agent",
            &["--role", role, "--name", name, "--until-empty"],
        )
        .ends(0)
}

pub const ONE: &str = "## Pending\n\n- [ ] T-1: Count (done_when: test -s T-1.txt)\n  Up to three.\n\n## In Review\n\n## Completed\n";
pub const APPROVE: &str =
    "Fine.\n\n```yaml NONCE\nverdict: approve\nsummary: well done\n```\n\nDONE\n";
pub const REJECT: &str = "No.\n\n```yaml NONCE\nverdict: reject\nsummary: it stops at one\nfindings:\n  - {severity: blocker, file: T-1.txt, \
                      line: 1, text: two is missing}\n```\nDONE\n";

#[test]
fn rejected_work_goes_back_with_the_findings_and_is_merged_once_it_is_approved() {
    let scratch = board(ONE);
    verdict(&scratch, 1, REJECT);
    verdict(&scratch, 2, APPROVE);
    agent(&scratch, "coder", "Frodo").says("T-1 done and verified, now in review");
    let commit = scratch.git(&["rev-parse", "tavern/T-1"]);
    scratch.stands("T-1", "in_review", 1);
    agent(&scratch, "reviewer", "Sam").says("T-1 rejected: it stops at one, now pending");
    scratch
        .run("tavern-status", &["T-1"])
        .says("\ntext\n  Up to three.\n")
        .says("\nrejected\n  it stops at one\n  - blocker T-1.txt:1: two is missing\n");
    let first = scratch.note("T-1/1");
    assert!(
        first.ends_with(&format!("{commit}\n")),
        "the reviewer looks at that commit: {first}"
    );
    assert!(
        first.contains("Up to three.")
            && first.contains("Round: 1")
            && first.contains("Author: Frodo"),
        "{first}"
    );
    agent(&scratch, "coder", "Frodo").says("now in review");
    let findings = "it stops at one\n- blocker T-1.txt:1: two is missing";
    let prompts = scratch
        .run("tavern-runs", &["grep", "two is missing"])
        .succeeds();
    assert!(
        prompts.contains("prompt.md"),
        "the coder is told: {prompts}"
    );
    agent(&scratch, "reviewer", "Sam")
        .says("T-1 approved: well done")
        .says("T-1 merged as");
    has(&scratch.note("T-1/2"), &[findings, "Round: 2"]);
    assert_eq!(
        scratch
            .git(&["show", "tavern/integration:T-1.txt"])
            .lines()
            .count(),
        2,
        "both rounds are there"
    );
    let log = scratch.run("tavern-log", &["T-1"]).ends(0);
    log.says("Sam rejected T-1, now pending")
        .says("Sam approved T-1, now approved");
    assert!(scratch.queue().contains("- [x] T-1: Count"));
    assert!(
        !scratch.work().join(".tavern/worktrees/T-1@view").exists(),
        "the view is gone"
    );
    let again = scratch.run("tavern-report", &["T-1", "--approve"]).ends(4);
    again
        .says("`T-1` is completed, so it can't be approved")
        .says("look at it: tavern diff T-1; to redo it: tavern reopen T-1")
        .says_not("moved on");
}

/// What a program prints that is no verdict of its agent, though there is one in it.
const NOT_GIVEN: [(&str, &str); 11] = [
    ("an echo of its prompt", "cat prompt.seen; echo DONE"),
    (
        "an echo on the other stream",
        "echo 'I give no verdict.'; cat prompt.seen >&2; echo DONE",
    ),
    ("a committed file", "cat verdict.md; echo DONE"),
    (
        "a committed file behind its own words",
        "echo 'I reject it.'; cat verdict.md",
    ),
    (
        "another run's",
        "sed 's/yaml/yaml 0123abcd/' verdict.md; echo DONE",
    ),
    (
        "one that it quotes",
        "echo 'One would write:'; echo '````md'; sed \"s/yaml/yaml $TAVERN_NONCE/\" verdict.md; echo DONE",
    ),
    (
        "one that it takes back",
        "sed \"s/yaml/yaml $TAVERN_NONCE/\" verdict.md; echo 'No, wait: I reject it.'; echo DONE",
    ),
    (
        "one that is not closed",
        "sed \"s/yaml/yaml $TAVERN_NONCE/; \\$d\" verdict.md; echo DONE",
    ),
    (
        "a draft on the other stream",
        "echo 'I reject it.'; sed \"s/yaml/yaml $TAVERN_NONCE/\" verdict.md >&2; echo DONE >&2",
    ),
    (
        "only on the other stream",
        "sed \"s/yaml/yaml $TAVERN_NONCE/\" verdict.md >&2; echo DONE",
    ),
    (
        "a file that any of its programs can write",
        "grep -v '```' verdict.md >\"$TAVERN_RUN/verdict.yaml\"; echo DONE",
    ),
];

/// How a program may print the verdict that its agent gives.
const GIVEN: [(&str, &str); 4] = [
    ("with DONE", "given; echo DONE"),
    ("and nothing else", "given"),
    (
        "with chatter on the other stream",
        "echo thinking >&2; given; echo DONE; printf 'tokens used\\n12,345\\n' >&2",
    ),
    (
        "in colour",
        "given | sed \"s/.*/$(printf '\\033')[1;32m&$(printf '\\033')[0m/\"; echo DONE",
    ),
];

#[test]
fn a_verdict_at_the_end_of_what_the_agent_says_is_taken() {
    for (how, prints) in GIVEN {
        let agent_text = format!(
            "#!/bin/sh -eu\ncat >prompt.seen\n\
             given() {{ printf '```yaml %s\\nverdict: approve\\nsummary: fine\\n```\\n' $TAVERN_NONCE; }}\n\
             case $TAVERN_ROLE in\n\
             coder) rm prompt.seen; echo one >T-1.txt; git add T-1.txt; git commit -qm One; echo DONE ;;\n\
             reviewer) {prints} ;;\nesac\n"
        );
        let scratch = Scratch::with_agent(&agent_text, ONE, "review: [reviewer]\n");
        agent(&scratch, "coder", "Frodo").says("now in review");
        agent(&scratch, "reviewer", "Sam").says("T-1 approved: fine");
        assert_eq!(scratch.item("T-1")["status"], "completed", "{how}");
    }
}

#[test]
fn no_verdict_is_taken_that_the_agent_did_not_give() {
    let agent_of = |prints: &str| {
        let verdict = "printf '```yaml\\nverdict: approve\\nsummary: fine\\n```\\n' >verdict.md";
        format!(
            "#!/bin/sh -eu\ncat >prompt.seen\ncase $TAVERN_ROLE in\n\
             coder) {verdict}; echo one >T-1.txt; git add verdict.md T-1.txt; git commit -qm One; echo DONE ;;\n\
             reviewer) {prints} ;;\nesac\n"
        )
    };
    for (what, prints) in NOT_GIVEN {
        let scratch = Scratch::with_agent(&agent_of(prints), ONE, "review: [reviewer]\n");
        agent(&scratch, "coder", "Frodo").says("now in review");
        agent(&scratch, "reviewer", "Sam")
            .says("it gave no verdict")
            .says_not("approved");
        assert_eq!(scratch.item("T-1")["status"], "waiting", "{what}");
    }
}

#[test]
fn a_review_without_a_verdict_is_no_rejection_and_is_tried_again_a_few_times() {
    let scratch = board(ONE);
    let odd = [
        "DONE\n",
        "```yaml NONCE\nverdict: perhaps\n```\nDONE\n",
        "```yaml NONCE\nverdict: reject\n```\nDONE\n",
    ];
    for (number, text) in (1..).zip(odd) {
        verdict(&scratch, number, text);
    }
    agent(&scratch, "coder", "Frodo");
    let ran = agent(&scratch, "reviewer", "Sam");
    let ran = ran
        .says("now in review: it gave no verdict")
        .says("now waiting: it gave no verdict");
    ran.says("its verdict is not of the form: `verdict: approve` or")
        .says_not("variant");
    assert_eq!(scratch.stands("T-1", "waiting", 1)["rounds"], 0);
    // A person lets it be looked at again: it is still in review at its commit.
    verdict(&scratch, 4, APPROVE);
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(4)
        .says("back into review: tavern release T-1\n");
    scratch
        .run("tavern-release", &["T-1"])
        .ends(0)
        .says("T-1 is in review");
    agent(&scratch, "reviewer", "Sam")
        .says("T-1 approved")
        .says("T-1 merged as");
}

/// Silence is not success: where no command shows it either, a person looks at the work before it is merged.
#[test]
fn who_does_not_say_that_it_is_done_is_looked_at_by_a_person() {
    let queue = "- [ ] T-1: Alone\n- [ ] T-2: With a command (done_when: test -s T-2)\n- [ ] T-3: A script (runner: shell)\n  ```sh\n  echo 3 > T-3\n  ```\n";
    let scratch = Scratch::with_agent(
        "#!/bin/sh\necho it > $TAVERN_TASK; echo 'I am not sure'; exit 0 # DONE\n",
        queue,
        "",
    );
    let first = agent(&scratch, "coder", "Frodo");
    first
        .says("T-1 in review: its agent did not say that it is done, and no command shows it\n")
        .says_not("T-1 merged")
        .says("T-2 done and verified\n")
        .says("T-2 merged")
        .says("T-3 done\n")
        .says("T-3 merged");
    has(&scratch.queue(), &["T-1: Alone (approve: merge)\n"]);
    let item = scratch.stands("T-1", "in_review", 1);
    has(
        item["reason"].as_str().expect("it has one"),
        &["its agent did not say that it is done"],
    );
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("waits for   person")
        .says("tavern approve T-1");
    let drain = || scratch.run("tavern-drain", &["--agents", "1"]);
    drain()
        .ends(8)
        .says("a person has to approve its work: its agent did not say that it is done")
        .says("to do: tavern diff T-1, then tavern approve T-1");
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    drain().ends(0).says("T-1 merged as");
    // Step by step, as a loop of one's own does it.
    scratch
        .run("tavern-add", &["By hand", "--id", "T-4"])
        .ends(0);
    let token = scratch.claim("T-4", &[]);
    scratch
        .run("tavern-spawn", &["T-4", "--token", &token])
        .ends(0);
    scratch
        .run("tavern-report", &["T-4", "--token", &token])
        .ends(0)
        .says("T-4 in review");
}

#[test]
fn rounds_are_bounded_and_a_revived_item_begins_anew() {
    let scratch = board(ONE);
    let config = scratch.read(CONFIG);
    scratch.write(CONFIG, format!("rounds: 2\n{config}"));
    for number in 1..=3 {
        verdict(&scratch, number, REJECT);
    }
    for _ in 0..2 {
        agent(&scratch, "coder", "Frodo");
        agent(&scratch, "reviewer", "Sam");
    }
    let item = scratch.item("T-1");
    has(
        item["reason"].as_str().expect("it has one"),
        &["rejected by Sam"],
    );
    assert_eq!(item["rounds"], 2);
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("status      dead")
        .says("rejected    2 times");
    scratch.run("tavern-release", &["T-1", "--revive"]).ends(0);
    agent(&scratch, "coder", "Frodo").says("now in review");
}

#[test]
fn nobody_reviews_their_own_work_and_two_approvals_are_of_two_agents() {
    let scratch = board(&ONE.replace("done_when:", "review: 2, done_when:"));
    for number in 1..=2 {
        verdict(&scratch, number, APPROVE);
    }
    agent(&scratch, "coder", "Frodo");
    let own = scratch
        .run(
            "tavern-agent",
            &["--role", "reviewer", "--name", "Frodo", "--until-empty"],
        )
        .ends(0);
    own.says_not("T-1");
    agent(&scratch, "reviewer", "Sam")
        .says("T-1 approved: well done, now in review")
        .says_not("merged");
    agent(&scratch, "reviewer", "Sam").says_not("T-1");
    agent(&scratch, "reviewer", "Merry")
        .says("T-1 approved: well done")
        .says("T-1 merged as");
}

#[test]
fn a_person_approves_or_rejects_by_hand() {
    let scratch = board(&ONE.replace("done_when:", "approve: merge, review: none, done_when:"));
    agent(&scratch, "coder", "Frodo");
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("waits for   person")
        .says("tavern approve T-1");
    agent(&scratch, "reviewer", "Sam").says_not("T-1");
    scratch
        .run("tavern-report", &["T-1", "--reject", " "])
        .ends(2)
        .says("needs findings");
    let rejected = scratch
        .program("tavern-report")
        .args(&["T-1", "--reject", "-"])
        .input("Count on.\nTo three.\n");
    rejected
        .variable("USER", "rosie")
        .run()
        .ends(0)
        .says("T-1 is pending");
    agent(&scratch, "coder", "Frodo");
    // A commit that is not verified is not approved with the rest.
    let worktree = scratch
        .work()
        .join(".tavern/worktrees/T-1")
        .display()
        .to_string();
    scratch.git(&[
        "-C",
        &worktree,
        "commit",
        "--quiet",
        "--allow-empty",
        "--message=Mine",
    ]);
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(4)
        .says("is not verified");
    scratch.git(&["-C", &worktree, "reset", "--quiet", "--hard", "HEAD~1"]);
    let approved = scratch
        .program("tavern-report")
        .args(&["T-1", "--approve"])
        .variable("USER", "rosie")
        .run();
    approved.ends(0).says("T-1 is approved");
    let again = scratch
        .program("tavern-report")
        .args(&["T-1", "--approve"])
        .variable("USER", "rosie")
        .run();
    again.ends(4).says("rosie has approved `T-1` already");
    scratch.run("tavern-merge", &[]).ends(0).says("T-1");
    scratch
        .run("tavern-log", &["T-1"])
        .ends(0)
        .says("rosie rejected T-1, now pending: Count on.");
}

#[test]
fn work_that_comes_back_as_it_was_rejected_is_no_work() {
    let agent_once = AGENT.replace(
        "    echo \"round by",
        "    [ -e T-1.txt ] || echo \"round by",
    );
    let agent_once = agent_once.replace("git commit", "git diff --cached --quiet || git commit");
    let queue = ONE.replace("done_when:", "approve: merge, review: none, done_when:");
    let scratch = Scratch::with_agent(&agent_once, &queue, "max_attempts: 1\n");
    agent(&scratch, "coder", "Frodo");
    scratch
        .run("tavern", &["reject", "T-1", "Count on."])
        .succeeds();
    agent(&scratch, "coder", "Frodo").says("it changed nothing since its work was rejected");
    scratch.stands("T-1", "dead", 1);
}

#[test]
fn a_start_that_asks_for_a_person_waits_for_one() {
    let scratch = board(&ONE.replace("done_when:", "approve: start, review: none, done_when:"));
    agent(&scratch, "coder", "Frodo").says_not("claimed");
    scratch
        .run("tavern-claim", &["--task", "T-1"])
        .ends(3)
        .says("tavern approve T-1");
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(0)
        .says("T-1 is pending");
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(4)
        .says("does not wait for permission");
    agent(&scratch, "coder", "Frodo").says("T-1 merged as");
}

#[test]
fn work_that_passes_every_review_and_no_merge_does_not_go_round_for_ever() {
    let scratch = board(&ONE.replace("test -s T-1.txt", "'! pwd | grep -q integration'"));
    let config = scratch
        .read(CONFIG)
        .replace("failed: {", "failed: {attempt: false, ");
    scratch.write(CONFIG, format!("{config}max_attempts: 2\n"));
    for round in 1..=2 {
        verdict(&scratch, round, APPROVE);
        agent(&scratch, "coder", "Frodo").says("now in review");
        agent(&scratch, "reviewer", "Sam")
            .says("T-1 approved")
            .says("`! pwd | grep -q integration`");
    }
    assert_eq!(scratch.item("T-1")["status"], "dead");
    // A reviewer was there in between.
    let runs = std::fs::read_dir(scratch.work().join(".tavern/runs"))
        .expect("it is there")
        .flatten();
    let prompts = runs.filter_map(|run| std::fs::read_to_string(run.path().join("prompt.md")).ok());
    let is_told = |prompt: &String| {
        prompt.contains("You are Frodo") && prompt.contains("sent back: after the merge")
    };
    assert_eq!(prompts.filter(is_told).count(), 1, "the next coder is told");
}

#[test]
fn no_agent_stands_in_for_a_person() {
    let queue = "## Pending\n\n- [ ] T-1: One (approve: merge, review: none, done_when: test -s T-1.txt)\n\n\
                 - [ ] T-2: Two (approve: start)\n\n- [ ] T-3: Three (after: T-1)\n\n- [ ] T-4: Four\n\n\
                 ## In Review\n\n## Completed\n\n- [x] T-6: Six\n\n\
                 ## Dead\n\n- [ ] T-5: Five\n";
    let scratch = board(queue);
    let token = scratch.claim("T-4", &[]);
    let asks = ["T-4", "--token", &token, "--waiting", "Which?"];
    scratch.run("tavern-report", &asks).ends(8);
    agent(&scratch, "coder", "Frodo").says("now in review");
    let env = "env -u TAVERN_TOKEN -u TAVERN_RUN -u TAVERN_TASK -u TAVERN_AGENT";
    let lines = [
        "tavern approve T-1".to_owned(),
        format!("{env} tavern approve T-1"),
        format!("{env} tavern report T-1 --reject 'It is mine'"),
        format!("{env} tavern approve T-2"),
        "tavern release T-4".to_owned(),
        format!("{env} tavern release T-4"),
        "tavern retry T-4".to_owned(),
        format!("{env} tavern retry T-5"),
        format!("{env} tavern reopen T-6"),
    ];
    for line in lines {
        let script = format!("({line}) >\"$OUT\" 2>&1 || echo \"ended with $?\" >>\"$OUT\"");
        scratch.write("../home/line.sh", script);
        let out = scratch.folder().join("home/out").display().to_string();
        scratch.write(
            CONFIG,
            "base: main\nrunners: {own: {command: [sh, ../../../../home/line.sh], pass: [OUT]}}\n",
        );
        scratch.run("tavern-add", &["Try"]).succeeds();
        let tried = scratch
            .program("tavern-agent")
            .args(&["--once", "--runner", "own"])
            .variable("OUT", &out)
            .run();
        let said = scratch.read("../home/out");
        assert!(said.ends_with("ended with 4\n"), "{line}: {said}{tried}");
        assert!(
            said.contains("only a person may do this") && !said.contains("env -u"),
            "{line}: {said}"
        );
    }
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .ends(0)
        .says("T-1 is approved");
    scratch
        .run("tavern-report", &["T-2", "--approve"])
        .ends(0)
        .says("T-2 is pending");
}

#[test]
fn a_reviewer_that_dies_leaves_the_work_in_review() {
    let scratch = board(ONE);
    agent(&scratch, "coder", "Frodo");
    let mut child = scratch
        .program("tavern-claim")
        .args(&["--role", "reviewer", "--agent", "Sam", "--format", "json"]);
    child = child.variable("TAVERN_ROLE", "reviewer");
    child.run().ends(0).says("\"status\":\"reviewing\"");
    scratch
        .run("tavern-claim", &["--role", "reviewer", "--agent", "Merry"])
        .ends(3);
    scratch
        .run("tavern-release", &["T-1", "--force"])
        .ends(0)
        .says("T-1 is in review");
    verdict(&scratch, 1, APPROVE);
    agent(&scratch, "reviewer", "Merry").says("T-1 merged as");
}

#[test]
fn what_no_agent_may_do_says_how_a_person_does_it() {
    let queue = "## Draft\n\n- [ ] T-1: Written down\n\n## Pending\n\n- [ ] T-2: Asked for (approve: start)\n\n## Dead\n\n\
                 - [ ] T-3: Tried\n\n## Completed\n\n- [x] T-4: Done\n";
    let scratch = board(queue);
    for (line, typed) in [
        ("report T-1 --approve", "approve T-1"),
        ("report T-2 --approve", "approve T-2"),
        ("release T-3 --revive", "release T-3 --revive"),
        ("release T-4 --reopen", "release T-4 --reopen"),
    ] {
        let run = || scratch.line(&format!("tavern-{line}"));
        let agent = run()
            .variable("TAVERN_AGENT", "Frodo")
            .variable("TAVERN_TASK", "T-9")
            .variable("TAVERN_TOKEN", "7");
        agent
            .run()
            .ends(4)
            .says(&format!("env -u TAVERN_TOKEN tavern {typed}"));
        run().run().ends(0).says(" is pending");
    }
}

#[test]
fn what_came_back_while_it_was_worked_on_is_no_failed_review() {
    let scratch = board(ONE);
    for _ in 0..2 {
        scratch.claim("T-1", &[]);
        scratch
            .run("tavern-release", &["T-1", "--force"])
            .succeeds();
    }
    assert_eq!(scratch.stands("T-1", "pending", 0)["returns"], 2);
    verdict(&scratch, 1, "DONE\n");
    verdict(&scratch, 2, APPROVE);
    agent(&scratch, "coder", "Frodo");
    let ran = agent(&scratch, "reviewer", "Sam");
    ran.says("now in review: it gave no verdict")
        .says("T-1 merged as");
}

#[test]
fn what_is_in_review_without_a_commit_says_what_to_type() {
    let items = "- [ ] T-1: One\n- [ ] T-2: Two (status: approved)\n";
    let scratch = board(
        &ONE.replace("## In Review\n", &format!("## In Review\n\n{items}"))
            .replace("T-1: Count", "T-9: Nine"),
    );
    let ran = agent(&scratch, "reviewer", "Sam");
    ran.says("it names no commit to look at: move it to the Pending lane")
        .says("`T-2` names no commit: move it to the Pending lane");
}

#[test]
fn what_nobody_reviews_is_told() {
    let scratch = board(
        "## Pending\n\n- [ ] T-1: One (review: [sekurity, 2, person])\n- [ ] T-2: Two (review: coder)\n\n## Completed\n",
    );
    let told = scratch.run("tavern-check", &[]).ends(0);
    told.says("main.md:3:7: warning: no role `sekurity` reviews this")
        .says("no role `coder` reviews this")
        .says_not("no role `reviewer` reviews this");
    scratch.change(
        QUEUE,
        "## Completed",
        "## In Review\n\n- [ ] T-3: Three (review: [bob], worktree: false)\n\n## Completed",
    );
    let told = scratch.run("tavern-check", &[]).ends(0);
    assert_eq!(told.stdout.matches("bob`").count(), 1, "{told}");
}
