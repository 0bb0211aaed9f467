//! `tavern queue`: which queues there are, one more, one less; and nothing that somebody has typed is lost.

use crate::support::{CONFIG, Scratch, item};

const IDEAS: &str = ".tavern/queues/ideas.md";

fn board() -> Scratch {
    let scratch = Scratch::shell(&item("T-1", ""), "");
    scratch.add_queue("ideas");
    scratch
}

#[test]
fn queues_are_listed_in_the_order_in_which_they_are_taken_from() {
    let scratch = board();
    scratch.write(
        ".tavern/queues/urgent.md",
        "---\nid: urgent\npriority: 1\n---\n",
    );
    scratch
        .run("tavern-add", &["--queue", "urgent", "--id", "T-2", "Two"])
        .ends(0);
    let listed = "urgent p1 1 pending\nmain   p2 1 pending\nideas  p2 no items\n";
    assert_eq!(scratch.run("tavern-queue", &[]).succeeds(), listed);
    assert_eq!(
        scratch.run("tavern-queue", &["list", "ideas"]).succeeds(),
        "ideas  p2 no items\n".replace("  ", " ")
    );
    let record = scratch.json("tavern-queue", &["list", "urgent"]);
    assert_eq!(
        (&record["priority"], &record["items"]["pending"]),
        (&1.into(), &1.into())
    );
    scratch.run("tavern-claim", &[]).ends(0).says("T-2 Two");
    scratch
        .run("tavern-add", &["--queue", "a b", "--create", "Three"])
        .ends(2)
        .says("can't be the name of a queue");
    scratch
        .run("tavern-queue", &["remove"])
        .ends(2)
        .says("<QUEUE>");
}

#[test]
fn a_queue_is_removed_when_nothing_is_left_in_it_and_what_has_ended_can_be_brought_back() {
    let scratch = board();
    let remove = || scratch.run("tavern-queue", &["remove", "ideas"]);
    let add = |id: &str| {
        scratch
            .run(
                "tavern-add",
                &["--queue", "ideas", "--id", id, "--draft", "Think"],
            )
            .ends(0)
    };
    add("T-2");
    add("T-3");
    scratch.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    remove()
        .ends(4)
        .says("`ideas` has 1 item left: T-3 is draft")
        .says("tavern cancel T-3");
    scratch.run("tavern-release", &["T-3", "--cancel"]).ends(0);
    let words = scratch.read(IDEAS) + "\nAsk Rosie first.\n";
    scratch.write(IDEAS, &words);
    remove()
        .ends(4)
        .says("`ideas` has text besides its items: `Ask Rosie first.`")
        .says("tavern edit ideas");
    assert_eq!(scratch.read(IDEAS), words);
    scratch.write(IDEAS, words.replace("Ask Rosie first.", ""));
    scratch
        .run("tavern-queue", &["remove", "ideas", "--dry-run"])
        .ends(0)
        .says("queue ideas is removed");
    assert!(scratch.read(IDEAS).contains("T-2"));
    assert_eq!(
        remove().succeeds(),
        "queue ideas is removed; 2 items to queues/archive/ideas.md\n"
    );
    assert!(!scratch.work().join(IDEAS).exists());
    scratch.run("tavern-check", &[]).ends(0).says_not("ideas");
    scratch
        .run("tavern-log", &[])
        .ends(0)
        .says("queue `ideas` was removed");
    scratch
        .run("tavern-status", &["T-2"])
        .ends(0)
        .says("cancelled");
    scratch
        .run("tavern-release", &["T-2", "--reopen"])
        .ends(0)
        .says("T-2 is pending");
    assert_eq!(
        scratch.run("tavern-queue", &["list", "ideas"]).succeeds(),
        "ideas p2 1 pending, 1 archived\n"
    );
}

#[test]
fn a_name_that_is_no_queue_is_answered_by_what_is_there() {
    let scratch = board();
    scratch.write("TODO.md", "- [ ] Do it\n");
    scratch
        .run("tavern-drain", &["TODO"])
        .ends(2)
        .says("hint: name an existing one: TODO.md\n");
    scratch
        .run("tavern-add", &["--queue", "ideas", "Think"])
        .ends(0);
    std::fs::remove_file(scratch.work().join(IDEAS)).expect("it is there");
    let removed = "error: queue `ideas` was removed\nhint: put it back: tavern check --fix; or forget it: rm ";
    scratch
        .run("tavern-add", &["--queue", "ideas", "--create", "Think"])
        .ends(2)
        .says(removed);
}

#[test]
fn a_queue_that_somebody_needs_is_not_removed() {
    let scratch = board();
    scratch.write("TODO.md", "- [x] Done\n");
    scratch.write(CONFIG, "roles: {coder: {queues: [ideas, main]}}\n");
    for (name, why) in [
        ("main", "would be made again"),
        ("ideas", "would be made again"),
        ("TODO.md", "your own file"),
    ] {
        scratch
            .run("tavern-queue", &["remove", name])
            .ends(4)
            .says(why);
    }
    scratch
        .run("tavern-queue", &["remove", "nothing"])
        .ends(2)
        .says("no queue");
    scratch.write(CONFIG, "");
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(scratch.work().join(IDEAS))
        .expect("it is there");
    scratch
        .run("tavern-queue", &["remove", "ideas"])
        .ends(4)
        .says("`ideas` is being saved");
    drop(file);
    assert!(scratch.read(IDEAS).contains("## Pending"));
    scratch.run("tavern-queue", &["remove", "ideas"]).ends(0);
}

#[test]
fn what_git_has_of_a_removed_queue_is_told() {
    let scratch = board();
    scratch
        .run("tavern-queue", &["remove", "ideas"])
        .ends(0)
        .says_not("git");
    scratch.add_queue("ideas");
    scratch.commit(&[IDEAS], "Board");
    let told = scratch
        .run("tavern-queue", &["remove", "ideas"])
        .ends(0)
        .stderr;
    assert!(
        told.starts_with(
            "git still tracks it; to commit the removal: git commit -m 'Remove ideas' /"
        ),
        "{told}"
    );
    scratch.git(&["commit", "--quiet", "-m", "Remove ideas", IDEAS]);
    assert!(!scratch.git(&["ls-files"]).contains(IDEAS));
}

#[test]
fn an_agent_may_look_at_queues_and_remove_none() {
    let script = "tavern queue > list.txt; tavern queue remove main 2> refused.txt || test $? = 4";
    let scratch = Scratch::shell(
        &format!("- [ ] T-1: Look\n  ```sh\n  {script}\n  ```\n"),
        "",
    );
    scratch.run("tavern-agent", &["--until-empty"]).ends(0);
    scratch.stands("T-1", "completed", 1);
    assert_eq!(
        scratch.git(&["show", "tavern/integration:list.txt"]),
        "main p2 1 in progress"
    );
    assert!(
        scratch
            .git(&["show", "tavern/integration:refused.txt"])
            .contains("only a person may do this")
    );
}
