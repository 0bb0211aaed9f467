//! What Obsidian's Tasks plugin and its editor read of a task list: it is read as they mean it, and stays where they find it.

use crate::support::Scratch;

#[test]
fn the_fields_of_obsidian_tasks_stay_at_the_end_of_the_line() {
    let scratch = Scratch::initialized();
    let tail = "🔺 🔁 every week 📅 2026-12-01 #home %%why%% ^k3j9ab";
    scratch.write(
        "Tasks.md",
        format!("- [ ] Pay #bank {tail}\n\n  ```sh\n  echo paid > paid.txt\n  ```\n- [ ] Fix #123\n"),
    );
    let added =
        scratch.run("tavern-add", &["--queue", "Tasks.md", "Later ⏳ 2026-12-01", "--priority", "3"]).succeeds();
    let added = format!("- [ ] {}: Later (priority: 3) ⏳ 2026-12-01\n", added.trim());
    let token = |id: &str| scratch.claim(id, &["--queue", "Tasks.md"]);
    assert!(scratch.read("Tasks.md").ends_with(&added), "{}", scratch.read("Tasks.md"));
    let drained = scratch.run("tavern-drain", &["Tasks.md"]).ends(1).says("1 of 3 completed, 2 left");
    drained.says("claimed: Pay #bank\n").says("Fix #123\n  it has no ```sh block");
    let text = scratch.read("Tasks.md");
    let [line, below] = [0, 1].map(|at| text.lines().nth(at).expect("it has lines"));
    assert!(line.starts_with("- [x] T-") && line.ends_with(&format!(": Pay #bank {tail}")), "{text}");
    assert!(below.starts_with("  (attempt: 1, commit: "), "{text}");
    let id = added[6..12].trim_end_matches(':');
    token(id);
    assert!(scratch.read("Tasks.md").contains(") ⏳ 2026-12-01\n"), "{}", scratch.read("Tasks.md"));
    assert_eq!(scratch.item(id)["status"], "in_progress");
    assert_eq!(scratch.item(id)["title"], "Later");
}

#[test]
fn what_is_struck_out_or_in_another_state_is_left_alone_and_told() {
    let scratch = Scratch::initialized();
    let own = "- [-] dropped\n- [/] mine\n- [/] mine, too\n- [>] moved\n- [ ] ~~no more~~\n\n  ```sh\n  echo no > no.txt\n  ```\n- [x] ~~done~~\n";
    let script = "\n  ```sh\n  echo yes > yes.txt\n  ```\n";
    scratch.write("Tasks.md", format!("{own}- [ ] do it ~~soon~~ now\n{script}"));
    let told = "Tasks.md:1: `[-]` is cancelled: this line is left alone\n\
                Tasks.md:2: `[/]` is in progress by hand: 2 lines like this are left alone\n\
                Tasks.md:4: `[>]` is a state of its owner's own: this line is left alone\n\
                Tasks.md:5: `~~…~~` is struck out: this line is left alone\n";
    scratch.run("tavern-status", &["Tasks.md"]).ends(0).says(told);
    scratch.run("tavern-drain", &["Tasks.md"]).ends(0).says("1 of 1 completed, 0 left").says(told);
    assert!(scratch.read("Tasks.md").starts_with(own), "{}", scratch.read("Tasks.md"));
    scratch.run("tavern-drain", &["Tasks.md"]).ends(0).says("there is nothing to do").says(told);
    scratch.run("tavern-claim", &["--queue", "Tasks.md"]).ends(3);
}

#[test]
fn what_is_commented_out_is_no_item() {
    let scratch = Scratch::initialized();
    let script = |name: &str| format!("\n  ```sh\n  echo 1 > {name}.txt\n  ```\n");
    let hidden = format!("%%\n- [ ] hidden\n{}\n%%\n", script("hidden"));
    // What only looks like one hides nothing.
    let code = "```tex\n%% a comment of TeX\n```\n";
    scratch.write("Tasks.md", format!("{code}- [ ] one\n{}\n{hidden}\n- [ ] two\n{}", script("one"), script("two")));
    scratch.run("tavern-drain", &["Tasks.md"]).ends(0).says("2 of 2 completed, 0 left");
    assert!(scratch.read("Tasks.md").contains(&hidden), "{}", scratch.read("Tasks.md"));
    assert_eq!(scratch.git(&["ls-tree", "--name-only", "tavern/integration"]), "README.md\none.txt\ntwo.txt");
}
