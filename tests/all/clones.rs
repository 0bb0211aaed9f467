//! Two clones of one repository, and the queue that git merges between them: of two that took an item one counts, the same in both.

use std::path::Path;

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
    assert_eq!(pushing.queue(), pulling.queue());
    for clone in [pushing, pulling] {
        assert_eq!(clone.git(&["status", "--porcelain"]), "");
    }
}

/// Whoever pulls first.
fn either_way(clones: &[Scratch; 2], is_turned: bool) {
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
    commit(clone);
    agent
}

#[test]
fn of_two_that_took_an_item_the_first_has_it_in_both_clones() {
    for is_turned in [false, true] {
        let clones = clones("- [ ] T-1: One\n- [ ] T-2: Two\n");
        let took = |clone: &Scratch, now: &str, agent: &str| {
            let took = clone.at(
                now,
                "tavern-claim",
                &["--task", "T-1", "--agent", agent, "--format", "json"],
            );
            commit(clone);
            took.ends(0).json()["lease"]["token"].to_string()
        };
        let tokens = [
            took(&clones[0], "+0", "Frodo"),
            took(&clones[1], "+2", "Sam"),
        ];
        either_way(&clones, is_turned);
        assert_eq!(clones[0].item("T-1")["agent"], "Frodo");
        let report = |at: usize| clones[at].run("tavern-release", &["T-1", "--token", &tokens[at]]);
        report(1).ends(4);
        clones[1]
            .run("tavern-log", &["T-1"])
            .ends(0)
            .says("it is in_progress by Frodo in another clone, and that counts");
        report(0).ends(0);
    }
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
            .says("it is completed in another clone, and that counts");
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
fn of_two_that_took_an_item_in_one_second_under_one_name_the_first_that_ends_has_it() {
    for is_turned in [false, true] {
        let clones = clones(SLOW);
        let [first, second] = &clones;
        let late = begun(second);
        let taken = second.item("T-1");
        let word = |key: &str| taken[key].as_str().expect("it is held").to_owned();
        let claim = [
            "--task",
            "T-1",
            "--agent",
            &word("agent"),
            "--format",
            "json",
        ];
        let token = first
            .at(word("started"), "tavern-claim", &claim)
            .ends(0)
            .json()["lease"]["token"]
            .to_string();
        commit(first);
        either_way(&clones, is_turned);
        for clone in &clones {
            clone.stands("T-1", "in_progress", 1);
        }
        first
            .run("tavern-spawn", &["T-1", "--token", &token])
            .ends(0);
        first
            .run("tavern-report", &["T-1", "--token", &token])
            .ends(0);
        first.run("tavern-merge", &[]).ends(0);
        commit(first);
        either_way(&clones, is_turned);
        std::fs::remove_file(second.work().join("../home/wait")).expect("it is there");
        late.end().says("T-1 blocked");
        for clone in &clones {
            clone.stands("T-1", "completed", 1);
        }
        has(&second.git(&["show", "tavern/T-1"]), &["+mine"]);
        second
            .run("tavern-status", &["T-1"])
            .ends(0)
            .says("tavern diff T-1 (tavern/T-1)\n");
        second
            .run("tavern-log", &["T-1"])
            .ends(0)
            .says("it is completed in another clone, and that counts");
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
        for clone in &clones {
            assert_eq!(clone.stands("T-1", "completed", 1)["commit"], *commits[0]);
        }
        clones[1]
            .run("tavern-log", &["T-1"])
            .ends(0)
            .says(&format!("what was made of it here is at {}", commits[1]));
        assert!(
            clones[1]
                .command(Path::new("git"))
                .args(&[
                    "merge-base",
                    "--is-ancestor",
                    &commits[1],
                    "tavern/integration"
                ])
                .run()
                .code
                == Some(0)
        );
    }
}

#[test]
fn a_late_holder_gives_up_at_its_next_heartbeat() {
    let clones = clones(SLOW);
    let [first, second] = &clones;
    second.write(CONFIG, "base: main\nlease: 3s\n");
    let late = begun(second);
    first.run("tavern-agent", &["--once"]).succeeds();
    commit(first);
    first.git(&["push", "--quiet", "origin", "main"]);
    second.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
    late.end().says("T-1 blocked");
    has(&second.git(&["show", "tavern/T-1"]), &["+mine"]);
}

#[test]
fn what_another_clone_holds_is_left_to_it_until_a_person_takes_it_or_a_day_is_over() {
    let [first, second] = clones("- [ ] T-1: One\n  ```sh\n  true\n  ```\n");
    first.claim("T-1", &["--agent", "Frodo"]);
    commit(&first);
    exchange(&first, &second);
    let queue = second.queue();
    for line in [
        "tavern-reap",
        "tavern-agent --until-empty",
        "tavern-check",
        "tavern-claim --task T-1",
    ] {
        second
            .line(line)
            .run()
            .says_not("nobody holds a lease")
            .says_not("T-1 claimed");
        assert_eq!(second.queue(), queue, "{line}");
    }
    second
        .run("tavern-claim", &["--task", "T-1"])
        .ends(3)
        .says("tavern release T-1 --force");
    second
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says("held by     Frodo, not in this clone");
    second
        .at("+86500", "tavern-reap", &["--dry-run"])
        .says("give T-1 back: nobody holds a lease for it");
    second.run("tavern-release", &["T-1"]).ends(4);
    second.run("tavern-release", &["T-1", "--force"]).ends(0);
    second.stands("T-1", "pending", 0);
}

#[test]
fn without_the_driver_the_first_has_it_whatever_a_person_chooses() {
    for choice in ["--ours", "--theirs"] {
        let clones = clones("- [ ] T-1: One\n- [ ] T-2: Two\n");
        let [first, second] = &clones;
        for (clone, now, agent) in [(first, "+0", "Frodo"), (second, "+2", "Sam")] {
            clone.git(&["config", "--remove-section", "merge.tavern"]);
            clone
                .at(now, "tavern-claim", &["--task", "T-1", "--agent", agent])
                .ends(0);
            commit(clone);
        }
        first.git(&["push", "--quiet", "origin", "main"]);
        second
            .command(Path::new("git"))
            .args(&["pull", "--no-rebase", "--no-edit"])
            .run()
            .ends(1);
        // Nothing is decided between git's markers.
        second.settle();
        second.run("tavern-renew", &["T-1", "--token", "1"]).ends(0);
        second.git(&["checkout", choice, QUEUE]);
        second.settle();
        commit(second);
        exchange_until_even(second, first);
        for clone in &clones {
            assert_eq!(clone.item("T-1")["agent"], "Frodo", "{choice}");
        }
        first.run("tavern-renew", &["T-1", "--token", "1"]).ends(0);
        second.run("tavern-renew", &["T-1", "--token", "1"]).ends(4);
    }
}

/// The one pulls what the other has pushed, and commits what it makes of it, if anything; then the other way round.
fn exchange_until_even(pushing: &Scratch, pulling: &Scratch) {
    for (from, to) in [(pushing, pulling), (pulling, pushing)] {
        from.git(&["push", "--quiet", "origin", "main"]);
        to.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
        to.settle();
        to.git(&[
            "commit",
            "--quiet",
            "--all",
            "--allow-empty",
            "--message=Queue",
        ]);
    }
}

/// A merge base that a shallow clone lacks is none that there is not: what was deleted since would come back.
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
        &[
            "Ask Ana first.\n",
            "Ask Bert, too.\n",
            "- [ ] T-2: two\n",
            "T-1: one (agent: A",
        ],
    );
}

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

/// How an item without an ID is typed on in one clone before it is taken there.
type TypedOn = Option<(&'static str, &'static str)>;

/// Lists in which the first item is taken in both clones, and what is typed in the second one before that.
const NAMELESS: [(&str, TypedOn); 6] = [
    ("- [ ] Do it\n", None),
    (
        "- [ ] Do it\n- [ ] Do that\n- [ ] T-2: Two\n- [ ] Do more\n",
        None,
    ),
    // Two that read the same.
    ("- [ ] Do it\n- [ ] Do it\n", None),
    (
        "- [ ] Do it\n  Words.\n\n  - [ ] T-1.1: A part (status: waiting)\n  - [ ] a step\n- [ ] Do that\n",
        None,
    ),
    (
        "- [ ] Do it\n- [ ] Do that\n",
        Some(("Do it", "Do it well")),
    ),
    (
        "- [ ] Do it\n  Words.\n- [ ] Do that\n",
        Some(("Words.", "Words of another.\n  And more.")),
    ),
];

/// Both clones take the first item, which has no ID, Frodo first; gives the leases.
fn taken_by_both(clones: &[Scratch; 2], typed_on: TypedOn) -> [serde_json::Value; 2] {
    if let Some((from, to)) = typed_on {
        clones[1].change(QUEUE, from, to);
    }
    let take = |at: usize, now, agent| {
        let took = clones[at]
            .at(now, "tavern-claim", &["--agent", agent, "--format", "json"])
            .ends(0)
            .json();
        commit(&clones[at]);
        took["lease"].clone()
    };
    [take(0, "+0", "Frodo"), take(1, "+2", "Sam")]
}

#[test]
fn of_two_that_took_an_item_without_an_id_the_first_has_it_in_both_clones() {
    for (items, typed_on) in NAMELESS {
        for is_turned in [false, true] {
            let clones = clones(items);
            let [own, lost] = taken_by_both(&clones, typed_on);
            either_way(&clones, is_turned);
            let queue = clones[0].queue();
            assert_eq!(
                queue.matches("- [ ]").count(),
                items.matches("- [ ]").count(),
                "{queue}"
            );
            assert_eq!(queue.matches("agent:").count(), 1, "{queue}");
            if let Some((_, to)) = typed_on {
                has(&queue, &[to]);
            }
            let word = |lease: &serde_json::Value, key| {
                lease[key].to_string().trim_matches('"').to_owned()
            };
            let renew = |at: usize, lease| {
                clones[at].run(
                    "tavern-renew",
                    &[&word(lease, "task"), "--token", &word(lease, "token")],
                )
            };
            renew(1, &lost).ends(4);
            clones[1]
                .run("tavern-log", &[])
                .ends(0)
                .says("in_progress by Frodo in another clone, and that counts");
            renew(0, &own).ends(0);
            for clone in &clones {
                assert_eq!(clone.item(&word(&own, "task"))["agent"], "Frodo");
                clone.settle();
                assert_eq!(clone.queue(), queue);
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
        let lost = id_of(second, "Do it");
        first.run("tavern-agent", &["--once"]).succeeds();
        commit(first);
        either_way(&clones, is_turned);
        let (queue, own) = (first.queue(), id_of(first, "Do it"));
        assert_eq!(first.item(&own)["status"], "completed");
        std::fs::remove_file(second.work().join("../home/wait")).expect("it is there");
        late.end().says(&format!("{lost} blocked"));
        assert_eq!(second.queue(), queue);
        let branch = format!("tavern/{lost}");
        has(&second.git(&["show", &branch]), &["+mine"]);
        second.settle();
        second.run("tavern-check", &[]).says(&format!(
            "{lost} is in no queue, and its work is kept at {branch}"
        ));
        let words = format!(
            "it is {own}, completed in another clone, and that counts; what was made of it here stays on {branch}"
        );
        second.run("tavern-log", &[&lost]).ends(0).says(&words);
        second
            .run("tavern-log", &[&own])
            .ends(0)
            .says(&format!("it was {lost} here"))
            .says(&branch);
        second
            .run("tavern-status", &[&lost])
            .ends(2)
            .says(&format!("tavern log {lost}"));
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
fn of_three_that_took_an_item_without_an_id_the_first_has_it_in_all_clones() {
    for turns in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
        let [first, second] = clones("- [ ] Do it\n- [ ] Do that\n");
        let third = another(&first);
        second.change(QUEUE, "Do it", "Do it well");
        third.change(QUEUE, "Do it", "Do it: soon");
        let clones = [first, second, third];
        for (clone, (now, agent)) in
            clones
                .iter()
                .zip([("+0", "Frodo"), ("+2", "Sam"), ("+4", "Rosie")])
        {
            clone.at(now, "tavern-claim", &["--agent", agent]).ends(0);
            commit(clone);
        }
        // Each in its turn, and then once more.
        for (turn, at) in turns.into_iter().chain(turns).enumerate() {
            let clone = &clones[at];
            if turn > 0 {
                clone.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
            }
            clone.settle();
            assert_eq!(
                clone.git(&["status", "--porcelain"]),
                "",
                "{turns:?} {turn}\n{}",
                clone.queue()
            );
            clone.git(&["push", "--quiet", "origin", "main"]);
        }
        let queue = clones[0].queue();
        assert_eq!(
            (
                queue.matches("- [ ]").count(),
                queue.matches("agent:").count()
            ),
            (2, 1),
            "{queue}"
        );
        let own = id_of(&clones[0], "Do it");
        for (at, clone) in clones.iter().enumerate() {
            assert_eq!(clone.queue(), queue);
            clone
                .run("tavern-renew", &[&own, "--token", "1"])
                .ends(if at == 0 { 0 } else { 4 });
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
        let [own, lost] = clones.each_ref().map(|clone| id_of(clone, "Do it"));
        let [first, second] =
            [(0, &own), (1, &lost)].map(|(at, id)| clones[at].item(id)["commit"].clone());
        either_way(&clones, is_turned);
        // How often it was tried is remembered where that was.
        for (clone, attempt) in clones.iter().zip([1, 0]) {
            assert_eq!(clone.queue().matches("Do it").count(), 1);
            assert_eq!(clone.stands(&own, "completed", attempt)["commit"], first);
        }
        let words = format!(
            "what was made of it here is at {}",
            second.as_str().unwrap_or_default()
        );
        clones[1].run("tavern-log", &[&lost]).ends(0).says(&words);
    }
}

/// Whoever settles what git could not merge may take the one that came later.
#[test]
fn without_the_driver_the_first_has_an_item_without_an_id_whatever_a_person_chooses() {
    for choice in ["--ours", "--theirs"] {
        let clones = clones("- [ ] Do it\n- [ ] Do that\n");
        let [first, second] = &clones;
        second.change(QUEUE, "Do it", "Do it well");
        for (clone, now, agent) in [(first, "+0", "Frodo"), (second, "+2", "Sam")] {
            clone.git(&["config", "--remove-section", "merge.tavern"]);
            clone.at(now, "tavern-claim", &["--agent", agent]).ends(0);
            commit(clone);
        }
        let own = id_of(first, "Do it");
        for (pushing, pulling) in [(first, second), (second, first)] {
            pushing.git(&["push", "--quiet", "origin", "main"]);
            if pulling
                .command(Path::new("git"))
                .args(&["pull", "--no-rebase", "--no-edit"])
                .run()
                .code
                != Some(0)
            {
                pulling.git(&["checkout", choice, QUEUE]);
            }
            pulling.settle();
            pulling.git(&[
                "commit",
                "--quiet",
                "--all",
                "--allow-empty",
                "--message=Queue",
            ]);
        }
        first.git(&["push", "--quiet", "origin", "main"]);
        second.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]);
        second.settle();
        for clone in &clones {
            assert_eq!(clone.item(&own)["agent"], "Frodo", "{choice}");
            assert_eq!(
                clone.queue().matches("agent:").count(),
                1,
                "{choice} {}",
                clone.queue()
            );
        }
        first.run("tavern-renew", &[&own, "--token", "1"]).ends(0);
        second.run("tavern-renew", &[&own, "--token", "1"]).ends(4);
    }
}
