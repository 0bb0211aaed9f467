//! An agent's own program that would have something merged that nobody has approved.

use crate::support::{AT_ONCE, CONFIG, QUEUE, Ran, Scratch, has};

/// T-1 is looked at by whom it says; the script of T-2 does this to the files of others.
fn board(review: &str, attack: &str) -> Scratch {
    let scratch = Scratch::initialized();
    let work = "```sh\n  echo good > 1.txt; git add 1.txt; git commit -qm Good\n  ```";
    scratch.write("../home/attack.sh", attack.replace("QUEUE", "../../queues/main.md"));
    let items = format!(
        "- [ ] T-1: One (review: {review})\n  {work}\n- [ ] T-2: Two (role: thief, empty: allowed)\n  ```sh\n  sh -eu ~/attack.sh\n  ```\n"
    );
    scratch.write(CONFIG, format!("base: main\nroles: {{thief: {{}}}}\n{AT_ONCE}"));
    scratch.write(QUEUE, format!("## Pending\n\n{items}"));
    scratch.run("tavern-agent", &["--name", "Frodo", "--once"]).ends(0);
    scratch.stands("T-1", "in_review", 1);
    scratch
}

/// The thief works on its item, and whoever comes next merges what is approved.
fn attack(scratch: &Scratch) -> Ran {
    let token = scratch.claim("T-2", &["--agent", "Pip", "--role", "thief"]);
    scratch.run("tavern-spawn", &["T-2", "--token", &token]).ends(0);
    scratch.run("tavern-merge", &[])
}

#[test]
fn an_approval_that_only_the_queue_has_merges_nothing() {
    let scratch = board("person", "sed -i 's/status: in_review/status: approved/' QUEUE");
    let approve = "tavern report T-1 --approve";
    attack(&scratch).ends(4).says("its queue says that it was approved, and the log does not").says(approve);
    assert!(!scratch.merged().contains("1.txt"));
    // A person's word is all that it lacks.
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0).says("T-1 is approved");
    scratch.run("tavern-merge", &[]).ends(0).says("T-1 merged as");
}

#[test]
fn an_approval_is_of_one_commit() {
    let evil = "echo evil > 1.txt; git add 1.txt; git commit -qm Evil\n\
                sed -i \"/ T-1: /s/commit: [0-9a-f]*/commit: $(git rev-parse HEAD)/\" QUEUE\n\
                git reset -q --hard HEAD~1";
    let scratch = board("person", evil);
    let approved = scratch.git(&["rev-parse", "--short=7", "tavern/T-1"]);
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0).says("T-1 is approved");
    let ran = attack(&scratch).ends(4);
    ran.says(&format!("it was approved at {approved}, and its queue says"));
    assert!(!scratch.merged().contains("1.txt"));
    // What nobody has verified is not approved either.
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(4);
}

#[test]
fn an_approval_that_nobody_has_given_counts_for_nobody() {
    let forged = "sed -i '/ T-1: /s/status: in_review/status: in_review, approvals: [reviewer\\/Sam]/' QUEUE";
    let scratch = board("[reviewer, person]", forged);
    attack(&scratch).ends(0).says("nothing to merge");
    has(&scratch.queue(), &["approvals: [reviewer/Sam]"]);
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0).says("T-1 is approved");
    scratch.run("tavern-merge", &[]).ends(4).says("the log has no approval of reviewer/Sam; take it out");
    assert!(!scratch.merged().contains("1.txt"));
}

#[test]
fn what_people_do_to_approved_work_takes_no_approval_away() {
    let scratch = board("person", "true");
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    scratch.change(QUEUE, "T-1: One", "T-1: Once");
    scratch.run("tavern-undo", &["T-1"]).ends(0).says("T-1 is as before");
    scratch.run("tavern-undo", &["T-1", "--redo"]).ends(0);
    scratch.run("tavern-release", &["T-1", "--cancel"]).ends(0);
    scratch.run("tavern-undo", &["T-1"]).ends(0).says("T-1 is approved again");
    let queue = scratch.queue();
    let at = queue.find("- [ ] T-1:").expect("it is there");
    let end = queue.find("- [ ] T-2:").expect("it is there");
    scratch.write(".tavern/queues/other.md", format!("## Pending\n\n{}", &queue[at..end]));
    scratch.write(QUEUE, [&queue[..at], &queue[end..]].concat());
    scratch.run("tavern-merge", &[]).ends(0).says("T-1 merged as");
    // Full in the log, short in the queue.
    let merge = scratch.git(&["rev-parse", "tavern/integration"]);
    let last = scratch.records("tavern-log", &["T-1"]).pop().expect("it has a past");
    assert_eq!((&last["kind"], &last["commit"]), (&"integrated".into(), &merge.clone().into()), "{last}");
    assert_eq!(scratch.item("T-1")["commit"], merge[..7]);
}
