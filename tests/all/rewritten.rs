//! A base that its owner has rewritten (reset, amended, rebased): what it dropped does not come back through the integration branch
//! without a word.

use crate::support::{AT_ONCE, CONFIG, QUEUE, Scratch};

fn item(id: &str, keys: &str) -> String {
    format!("- [ ] {id}: Do it{keys}\n  ```sh\n  echo 1 >{id}.txt\n  ```\n")
}

/// The base has the commit `Secret`, and an item has been worked upon it, unless it is left out.
fn board(first: Option<&str>) -> Scratch {
    let scratch = Scratch::repository();
    scratch.run("tavern-init", &["--quiet"]).succeeds();
    scratch.write(CONFIG, format!("base: main\n{AT_ONCE}"));
    scratch.write(QUEUE, "");
    scratch.write(".gitignore", ".tavern\n");
    scratch.commit(&[".gitignore"], "Ignore");
    scratch.write("secret.txt", "hunter2\n");
    scratch.commit(&["secret.txt"], "Secret");
    scratch.write(
        QUEUE,
        first.unwrap_or("- [ ] T-0: Fail (max_attempts: 1)\n  ```sh\n  exit 1\n  ```\n"),
    );
    scratch.run("tavern-drain", &["--agents", "1"]);
    scratch
}

fn add(scratch: &Scratch, id: &str) {
    let queue = scratch.queue();
    scratch.write(QUEUE, format!("{queue}\n{}", item(id, "")));
}

/// What its owner does.
const WAYS: [&[&[&str]]; 3] = [
    &[&["reset", "--quiet", "--hard", "HEAD~1"]],
    &[
        &["rm", "--quiet", "secret.txt"],
        &[
            "commit",
            "--quiet",
            "--amend",
            "--message=Not",
            "--allow-empty",
        ],
    ],
    &[
        &["rebase", "--quiet", "--onto", "HEAD~1", "HEAD"],
        &["commit", "--quiet", "--allow-empty", "--message=More"],
    ],
];

#[test]
fn a_dropped_commit_is_told_and_nothing_is_merged_until_a_person_has_decided() {
    for way in WAYS {
        for keeps in [false, true] {
            let scratch = board(Some(&item("T-1", "")));
            assert_eq!(scratch.item("T-1")["status"], "completed");
            way.iter().for_each(|line| drop(scratch.git(line)));
            add(&scratch, "T-2");
            let told =
                "`main` was rewritten, and `tavern/integration` still has a commit that it dropped";
            let drained = scratch.run("tavern-drain", &["--agents", "1"]);
            assert!(format!("{drained}").contains(told), "{drained}");
            assert_eq!(scratch.item("T-2")["status"], "approved", "{drained}");
            scratch.run("tavern-check", &[]).says(told);
            let merge = scratch.run("tavern-merge", &[]).ends(4).says(told);
            let hint = merge
                .stdout
                .lines()
                .find_map(|line| line.split("leave them out: ").nth(1))
                .unwrap_or_else(|| panic!("{merge}"));
            let line = if keeps {
                hint.split("keep them: ").nth(1)
            } else {
                hint.split("; or").next()
            };
            let line = line
                .expect("it is told")
                .trim()
                .replace("tavern merge", "tavern-merge");
            for line in line.split(" && ") {
                let words: Vec<&str> = line.split(' ').collect();
                if words[0] == "git" {
                    scratch.git(&words[1..]);
                } else {
                    scratch.run(words[0], &words[1..]).ends(0);
                }
            }
            assert_eq!(scratch.git(&["branch", "--show-current"]), "main");
            // Its work has what was dropped, too.
            let merge = scratch.run("tavern-merge", &[]);
            if !keeps {
                merge.says("T-2 sent back: its branch has commits that `main` has dropped");
                scratch.run("tavern-agent", &["--until-empty"]).ends(0);
            }
            assert_eq!(scratch.item("T-2")["status"], "completed");
            let files = scratch.merged();
            assert!(
                files.contains("T-1.txt") && files.contains("T-2.txt"),
                "{files}"
            );
            assert_eq!(files.contains("secret.txt"), keeps, "{way:?}: {files}");
            let subjects = scratch.git(&["log", "--format=%s", "tavern/integration"]);
            assert_eq!(subjects.contains("Secret"), keeps, "{way:?}: {subjects}");
            // Once is enough.
            scratch.run("tavern-check", &[]).says_not("was rewritten");
        }
    }
}

#[test]
fn an_integration_branch_with_nothing_of_its_own_begins_anew() {
    for way in WAYS {
        let scratch = board(None);
        way.iter().for_each(|line| drop(scratch.git(line)));
        scratch.run("tavern-check", &[]).says_not("was rewritten");
        add(&scratch, "T-2");
        let drained = scratch.run("tavern-drain", &["--agents", "1"]);
        assert_eq!(scratch.item("T-2")["status"], "completed", "{drained}");
        assert!(!scratch.merged().contains("secret.txt"), "{drained}");
        let subjects = scratch.git(&["log", "--format=%s", "tavern/integration"]);
        assert!(!subjects.contains("Secret"), "{subjects}");
    }
}

#[test]
fn work_that_began_upon_what_was_dropped_is_done_anew() {
    let scratch = board(Some(&item("T-1", " (review: person)")));
    scratch.stands("T-1", "in_review", 1);
    scratch.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    scratch.run("tavern-merge", &[]).says("T-1");
    let item = scratch.item("T-1");
    assert_eq!(item["status"], "pending", "{item}");
    let reason = item["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("has commits that `main` has dropped"),
        "{reason}"
    );
    scratch.run("tavern-agent", &["--until-empty"]);
    scratch.run("tavern-report", &["T-1", "--approve"]).ends(0);
    scratch
        .run("tavern-merge", &[])
        .ends(0)
        .says("T-1 merged as");
    let files = scratch.merged();
    assert!(
        files.contains("T-1.txt") && !files.contains("secret.txt"),
        "{files}"
    );
}

#[test]
fn a_base_that_only_goes_on_is_followed_as_ever() {
    let scratch = board(Some(&item("T-1", "")));
    scratch.git(&["merge", "--quiet", "tavern/integration"]);
    scratch.write("more.txt", "more\n");
    scratch.commit(&["more.txt"], "More");
    add(&scratch, "T-2");
    scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(0)
        .says_not("was rewritten");
    assert!(scratch.merged().contains("more.txt"));
}
