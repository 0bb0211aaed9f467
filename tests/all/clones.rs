//! Clones of one repository, and the queue that git merges between them: what people typed and what was completed is there once, the
//! same in all of them.

use crate::support::{CONFIG, QUEUE, Running, Scratch, has, wait_until};

/// Two clones of a repository with this queue, which both have a merge driver, and a bare one between them.
fn clones(items: &str) -> [Scratch; 2] {
    let first = Scratch::shell(
        &format!("## Pending\n\n{items}\n## In Progress\n\n## Completed\n"),
        "base: main\n",
    );
    first.commit(&["--all"], "Board");
    first.git(&["clone", "--quiet", "--bare", ".", "../hub.git"]);
    let hub = first.folder().join("hub.git");
    first.git(&["remote", "add", "origin", &hub.display().to_string()]);
    first.git(&["fetch", "--quiet"]);
    first.git(&["branch", "--quiet", "--set-upstream-to=origin/main"]);
    first.settle();
    let second = another(&first);
    [first, second]
}

/// One more clone of the repository that this is one of.
fn another(clone: &Scratch) -> Scratch {
    let (hub, another) = (
        clone.git(&["remote", "get-url", "origin"]),
        Scratch::empty(),
    );
    another.git(&["clone", "--quiet", &hub, "."]);
    another.run("tavern-init", &["--quiet"]).succeeds();
    another.run("tavern-trust", &["--yes"]).succeeds();
    another.settle();
    another
}

/// Commits the queue.
fn commit(clone: &Scratch) {
    clone.commit(&[QUEUE], "Queue");
}

/// What one clone has committed comes into the other, and the merge of both back into the first.
fn exchange(pushing: &Scratch, pulling: &Scratch) {
    pushing.git(&["push", "--quiet", "origin", "main"]);
    pulling.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
    pulling.git(&["push", "--quiet", "origin", "main"]);
    pushing.git(&["pull", "--quiet", "--ff-only"]);
    for clone in [pushing, pulling] {
        clone.settle();
    }
    assert_eq!(nameless(pushing), nameless(pulling));
}

/// The queue without the IDs of its items.
fn nameless(clone: &Scratch) -> String {
    let text = clone.queue();
    let lines = text.split_inclusive('\n').map(|line| {
        let named = line.split_once("] T-");
        let rest = named.and_then(|(head, rest)| Some((head, rest.split_once(": ")?.1)));
        rest.map_or_else(
            || line.to_owned(),
            |(head, title)| format!("{head}] {title}"),
        )
    });
    lines.collect()
}

/// Whoever pulls first. All is the same in both then, and nothing is left to commit.
fn either_way(clones: &[Scratch; 2], is_turned: bool) {
    either_way_but_for_ids(clones, is_turned);
    let [first, second] = clones;
    assert_eq!(first.queue(), second.queue());
    for clone in clones {
        assert_eq!(clone.git(&["status", "--porcelain"]), "");
    }
}

/// Whoever pulls first. What is held under different IDs keeps them.
fn either_way_but_for_ids(clones: &[Scratch; 2], is_turned: bool) {
    let [first, second] = clones;
    if is_turned {
        exchange(second, first);
    } else {
        exchange(first, second);
    }
}

const SLOW: &str = "- [ ] T-1: Do it\n  ```sh\n  echo mine > 1.txt\n  git add 1.txt\n  git commit -qm Mine\n  touch ~/begun\n  \
                    while [ -e ~/wait ]; do sleep 0.05; done\n  ```\n- [ ] T-2: Two (role: reviewer)\n";

/// An agent of a clone begins T-1; it goes on until `~/wait` is gone.
fn begun(clone: &Scratch) -> Running {
    clone.write("../home/wait", "");
    let agent = clone.program("tavern-agent").args(&["--once"]).start();
    wait_until("it has begun", || {
        clone.work().join("../home/begun").exists()
    });
    agent
}

#[test]
fn who_holds_what_another_clone_has_completed_gives_up_and_keeps_their_work() {
    for is_turned in [false, true] {
        let clones = clones(SLOW);
        let [first, second] = &clones;
        let late = begun(second);
        first.run("tavern-agent", &["--once"]).succeeds();
        commit(first);
        either_way(&clones, is_turned);
        let queue = first.queue();
        assert_eq!(first.item("T-1")["status"], "completed");
        std::fs::remove_file(second.work().join("../home/wait")).expect("it is there");
        late.end().says("T-1 blocked");
        assert_eq!(second.queue(), queue);
        has(&second.git(&["show", "tavern/T-1"]), &["+mine"]);
        second.settle();
        second
            .run("tavern-status", &["T-1"])
            .ends(0)
            .says("tavern diff T-1 (tavern/T-1)\n");
        second
            .run("tavern-check", &[])
            .says("T-1 was completed without the work that is kept at tavern/T-1");
        second
            .run("tavern-log", &["T-1"])
            .ends(0)
            .says("it has ended in another clone; its work here is kept on tavern/T-1");
        // Nobody does it again.
        for clone in &clones {
            clone
                .run("tavern-agent", &["--until-empty"])
                .ends(0)
                .says_not("T-1 claimed");
        }
    }
}

#[test]
fn what_both_clones_completed_is_completed_once_and_both_commits_are_told() {
    for is_turned in [false, true] {
        let clones = clones("- [ ] T-1: One\n  ```sh\n  pwd > 1.txt\n  ```\n");
        for (clone, now) in clones.iter().zip(["+0", "+2"]) {
            clone.at(now, "tavern-agent", &["--once"]).succeeds();
            commit(clone);
        }
        let commits = clones.each_ref().map(|clone| {
            clone.item("T-1")["commit"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        });
        either_way(&clones, is_turned);
        for (clone, commit) in clones.iter().zip(&commits) {
            assert_eq!(clone.queue().matches("One").count(), 1);
            assert_eq!(clone.stands("T-1", "completed", 1)["commit"], **commit);
            clone.git(&["merge-base", "--is-ancestor", commit, "tavern/integration"]);
        }
    }
}

#[test]
fn a_late_holder_gives_up_at_its_next_heartbeat() {
    let clones = clones(SLOW);
    let [first, second] = &clones;
    second.write(CONFIG, "base: main\nlease: 3s\n");
    let mut late = begun(second);
    first.run("tavern-agent", &["--once"]).succeeds();
    commit(first);
    first.git(&["push", "--quiet", "origin", "main"]);
    second.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
    wait_until("it gives up", || late.has_ended());
    late.end().says("T-1 blocked");
    has(&second.git(&["show", "tavern/T-1"]), &["+mine"]);
}

#[test]
fn who_loaded_what_was_pulled_takes_nothing_out_that_another_typed_before_any_look() {
    let [first, second] = clones("- [ ] T-1: one\n");
    first.write(
        QUEUE,
        first
            .queue()
            .replace("- [ ] T-1: one\n", "- [ ] T-1: one\n- [ ] T-2: two\n"),
    );
    first.settle();
    commit(&first);
    first.git(&["push", "--quiet", "origin", "main"]);
    second.git(&["pull", "--quiet", "--ff-only"]);
    let loaded = second.queue();
    second.write(
        QUEUE,
        loaded.replace("## Pending\n", "Ask Ana first.\n\n## Pending\n"),
    );
    second.settle();
    second
        .run("tavern-claim", &["--task", "T-1", "--agent", "A"])
        .succeeds();
    commit(&second);
    second.write(
        QUEUE,
        loaded.replace("## Pending\n", "Ask Bert, too.\n\n## Pending\n"),
    );
    second.settle();
    has(
        &second.queue(),
        &["Ask Ana first.\n", "Ask Bert, too.\n", "- [ ] T-2: two\n"],
    );
    assert_eq!(second.stands("T-1", "in_progress", 1)["agent"], "A");
}

/// A merge base that a shallow clone lacks is none that there is not: what was deleted since would come back.
#[test]
fn a_shallow_clone_refuses_to_merge_what_it_can_not_tell_apart() {
    let hub = Scratch::shell(
        "## Pending\n\n- [ ] T-1: One\n  ```sh\n  echo one > one.txt\n  ```\n",
        "base: main\n",
    );
    hub.write("old.txt", "old\n");
    hub.commit(&["--all"], "Board");
    hub.git(&["branch", "tavern/integration"]);
    hub.git(&["rm", "--quiet", "old.txt"]);
    hub.git(&["commit", "--quiet", "--message=Without"]);
    hub.git(&["switch", "--quiet", "tavern/integration"]);
    hub.write("two.txt", "two\n");
    hub.commit(&["--all"], "Merged elsewhere");
    hub.git(&["switch", "--quiet", "main"]);
    let url = format!("file://{}", hub.work().display());
    let clone = |arguments: &[&str]| {
        let clone = Scratch::empty();
        clone.git(&[&["clone", "--quiet"], arguments, &[&url, "."]].concat());
        clone.run("tavern-init", &["--quiet"]).succeeds();
        clone.run("tavern-trust", &["--yes"]).succeeds();
        clone
    };
    let scratch = clone(&["--depth=1", "--no-single-branch"]);
    let unshallow = "git fetch --unshallow";
    for program in ["tavern-drain", "tavern-agent"] {
        scratch
            .run(program, &[])
            .ends(1)
            .says("is a shallow clone")
            .says(unshallow);
    }
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("is a shallow clone")
        .says(unshallow);
    scratch.stands("T-1", "pending", 0);
    scratch.git(&["fetch", "--quiet", "--unshallow"]);
    scratch.run("tavern-drain", &[]).ends(0);
    assert_eq!(scratch.merged(), ".tavern\nREADME.md\none.txt\ntwo.txt");
    // Work that was approved before waits as well.
    let scratch = clone(&[]);
    scratch.git(&[
        "branch",
        "--quiet",
        "tavern/integration",
        "origin/tavern/integration",
    ]);
    let token = scratch.claim("T-1", &["--agent", "Frodo"]);
    scratch.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "tavern/T-1",
        ".tavern/worktrees/T-1",
    ]);
    scratch.write(".tavern/worktrees/T-1/one.txt", "one\n");
    scratch
        .run("tavern-report", &["T-1", "--token", &token, "--done"])
        .ends(0);
    scratch.stands("T-1", "approved", 1);
    scratch.git(&["fetch", "--quiet", "--depth=1", "origin", "main"]);
    scratch
        .run("tavern-merge", &[])
        .says("is a shallow clone")
        .says(unshallow);
    scratch.stands("T-1", "approved", 1);
    scratch.git(&["fetch", "--quiet", "--unshallow"]);
    scratch.run("tavern-merge", &[]).ends(0);
    scratch.stands("T-1", "completed", 1);
    assert_eq!(scratch.merged(), ".tavern\nREADME.md\none.txt\ntwo.txt");
    // All that matters is there.
    let scratch = clone(&["--depth=1"]);
    scratch.run("tavern-drain", &[]).ends(0);
    assert!(!scratch.merged().contains("old.txt") && scratch.merged().contains("one.txt"));
}

/// Lists whose first item is taken in both clones.
const NAMELESS: [&str; 4] = [
    "- [ ] Do it\n",
    "- [ ] Do it\n- [ ] Do that\n- [ ] T-2: Two\n- [ ] Do more\n",
    // Two that read the same.
    "- [ ] Do it\n- [ ] Do it\n",
    "- [ ] Do it\n  Words.\n\n  - [ ] T-1.1: A part (status: waiting)\n  - [ ] a step\n- [ ] Do that\n",
];

/// As [`NAMELESS`], and what is typed in the second clone before that.
const TYPED_ON: [(&str, [&str; 2]); 2] = [
    ("- [ ] Do it\n- [ ] Do that\n", ["Do it", "Do it well"]),
    (
        "- [ ] Do it\n  Words.\n- [ ] Do that\n",
        ["Words.", "Words of another.\n  And more."],
    ),
];

/// The clone takes the first item, which has no ID; gives its ID and the token.
fn taken(clone: &Scratch) -> [String; 2] {
    let claim = clone.json("tavern-claim", &["--agent", "Sam"]);
    commit(clone);
    ["task", "token"].map(|key| claim["lease"][key].to_string().replace('"', ""))
}

/// They have the same text, but for IDs, with as many open items as in `items`.
#[track_caller]
fn are_even(clones: &[Scratch], items: &str) {
    for clone in clones {
        let queue = clone.queue();
        assert_eq!(
            queue.matches("- [ ]").count(),
            items.matches("- [ ]").count(),
            "{queue}"
        );
        clone.settle();
        assert_eq!(clone.queue(), queue);
        assert_eq!(nameless(clone), nameless(&clones[0]));
    }
}

/// An ID is made of the text: both clones have given it the same.
#[test]
fn what_both_clones_took_without_an_id_is_there_once_and_each_holds_it() {
    for items in NAMELESS {
        for is_turned in [false, true] {
            let clones = clones(items);
            let leases = clones.each_ref().map(taken);
            either_way(&clones, is_turned);
            are_even(&clones, items);
            for (clone, [id, token]) in clones.iter().zip(&leases) {
                clone.run("tavern-renew", &[id, "--token", token]).ends(0);
                clone.stands(id, "in_progress", 1);
            }
        }
    }
}

#[test]
fn what_both_clones_took_without_an_id_and_one_typed_on_is_there_once_and_each_holds_it() {
    for (items, [from, to]) in TYPED_ON {
        for is_turned in [false, true] {
            let clones = clones(items);
            clones[1].change(QUEUE, from, to);
            let leases = clones.each_ref().map(taken);
            either_way_but_for_ids(&clones, is_turned);
            are_even(&clones, items);
            has(&clones[0].queue(), &[to]);
            for (clone, [id, token]) in clones.iter().zip(&leases) {
                clone.run("tavern-renew", &[id, "--token", token]).ends(0);
                clone.stands(id, "in_progress", 1);
            }
        }
    }
}

/// The ID of the item with this title.
fn id_of(clone: &Scratch, title: &str) -> String {
    let queue = clone.queue();
    let (before, _) = queue
        .split_once(&format!(": {title}"))
        .unwrap_or_else(|| panic!("`{title}` is not in\n{queue}"));
    before
        .rsplit(' ')
        .next()
        .expect("there is a word")
        .to_owned()
}

#[test]
fn who_lost_an_item_without_an_id_that_was_typed_on_keeps_their_work() {
    for is_turned in [false, true] {
        let clones = clones(&SLOW.replace("T-1: ", ""));
        let [first, second] = &clones;
        second.change(QUEUE, "Do it", "Do it well");
        let late = begun(second);
        commit(second);
        let lost = id_of(second, "Do it");
        first.run("tavern-agent", &["--once"]).succeeds();
        commit(first);
        either_way_but_for_ids(&clones, is_turned);
        let queue = nameless(first);
        assert_eq!(first.item(&id_of(first, "Do it"))["status"], "completed");
        std::fs::remove_file(second.work().join("../home/wait")).expect("it is there");
        late.end().says(&format!("{lost} blocked"));
        assert_eq!(nameless(second), queue);
        let branch = format!("tavern/{lost}");
        has(&second.git(&["show", &branch]), &["+mine"]);
        second.settle();
        second.run("tavern-check", &[]).says(&format!(
            "{lost} was completed without the work that is kept at {branch}"
        ));
        let words = format!("it has ended in another clone; its work here is kept on {branch}");
        second.run("tavern-log", &[&lost]).ends(0).says(&words);
        assert_eq!(second.item(&lost)["status"], "completed");
        second
            .run("tavern-report", &[&lost, "--token", "1", "--done"])
            .ends(4);
        // Nobody does it again.
        for clone in &clones {
            clone
                .run("tavern-agent", &["--until-empty"])
                .ends(0)
                .says_not("claimed");
        }
    }
}

#[test]
fn what_both_clones_completed_without_an_id_is_completed_once() {
    for is_turned in [false, true] {
        let clones =
            clones("- [ ] Do it\n  ```sh\n  pwd > 1.txt\n  ```\n- [ ] Do that (role: reviewer)\n");
        clones[1].change(QUEUE, "Do it", "Do it well");
        for (clone, now) in clones.iter().zip(["+0", "+2"]) {
            clone.at(now, "tavern-agent", &["--once"]).succeeds();
            commit(clone);
        }
        let done = clones.each_ref().map(|clone| {
            let id = id_of(clone, "Do it");
            let commit = clone.item(&id)["commit"].as_str().map(str::to_owned);
            (id, commit.expect("it was merged"))
        });
        either_way(&clones, is_turned);
        for (clone, (id, commit)) in clones.iter().zip(&done) {
            assert_eq!(clone.queue().matches("Do it").count(), 1);
            assert_eq!(clone.item(&id_of(clone, "Do it"))["status"], "completed");
            clone.git(&["merge-base", "--is-ancestor", commit, "tavern/integration"]);
            clone.run("tavern-log", &[id]).ends(0).says(commit);
            clone
                .run("tavern-agent", &["--until-empty"])
                .ends(0)
                .says_not("claimed");
        }
    }
}
