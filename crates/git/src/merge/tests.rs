//! Merges of real commits: exclusions, drivers.

use std::path::PathBuf;

use super::super::fixture::{Fixture, id};
use super::super::{CommitId, GitError};
use super::{Follow, Merge};

/// Commits `files` on a branch that leaves `main` at its present tip; `None` deletes. Leaves `main` checked out.
fn branch(fixture: &Fixture, name: &str, files: &[(&str, Option<&str>)]) -> CommitId {
    fixture.git(&["checkout", "--quiet", "-b", name]);
    let tip = change(fixture, files);
    fixture.git(&["checkout", "--quiet", "main"]);
    tip
}

fn change(fixture: &Fixture, files: &[(&str, Option<&str>)]) -> CommitId {
    for (path, text) in files {
        match text {
            Some(text) => fixture.write(path, text),
            None => drop(fixture.git(&["rm", "-r", "--quiet", path])),
        }
    }
    fixture.commit(&[], "work")
}

fn listing(fixture: &Fixture, commit: &CommitId) -> Vec<String> {
    fixture
        .git(&["ls-tree", "-r", "--name-only", commit.as_str()])
        .lines()
        .map(str::to_owned)
        .collect()
}

fn show(fixture: &Fixture, commit: &CommitId, path: &str) -> String {
    fixture.git(&["show", &format!("{commit}:{path}")])
}

fn clean(merge: Result<Merge, GitError>) -> (CommitId, Vec<PathBuf>) {
    match merge {
        Ok(Merge::Clean { commit, left_out }) => (commit, left_out),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_left_out_is_taken_from_the_side_that_is_merged_into() {
    type Files = &'static [(&'static str, Option<&'static str>)];
    struct Row {
        name: &'static str,
        into: Files,
        from: Files,
        left_out: &'static [&'static str],
        merged: &'static [&'static str],
    }
    let rows = [
        Row {
            name: "changed on both sides",
            into: &[(".tavern/q", Some("main\n"))],
            from: &[(".tavern/q", Some("x\n")), ("b", Some("b\n"))],
            left_out: &[".tavern/q"],
            merged: &[
                ".tavern/q=main",
                ".tavern/r=1",
                ".tavernx=1",
                "a=one",
                "b=b",
            ],
        },
        Row {
            name: "deleted",
            into: &[],
            from: &[(".tavern", None), ("b", Some("b\n"))],
            left_out: &[".tavern/q", ".tavern/r"],
            merged: &[".tavern/q=1", ".tavern/r=1", ".tavernx=1", "a=one", "b=b"],
        },
        Row {
            name: "deleted on the side that is merged into",
            into: &[(".tavern", None)],
            from: &[(".tavern/q", Some("x\n")), ("b", Some("b\n"))],
            left_out: &[".tavern/q"],
            merged: &[".tavernx=1", "a=one", "b=b"],
        },
        Row {
            name: "a folder made a file",
            into: &[],
            from: &[
                (".tavern", None),
                (".tavern", Some("x\n")),
                ("b", Some("b\n")),
            ],
            left_out: &[".tavern", ".tavern/q", ".tavern/r"],
            merged: &[".tavern/q=1", ".tavern/r=1", ".tavernx=1", "a=one", "b=b"],
        },
        Row {
            name: "moved out of it",
            into: &[],
            from: &[(".tavern/r", None), ("r", Some("1\n"))],
            left_out: &[".tavern/r"],
            merged: &[".tavern/q=1", ".tavern/r=1", ".tavernx=1", "a=one", "r=1"],
        },
        Row {
            name: "only what is left out",
            into: &[("b", Some("main\n"))],
            from: &[
                (".tavern/q", Some("x\n")),
                (".tavern/new/deep", Some("x\n")),
            ],
            left_out: &[".tavern/new/deep", ".tavern/q"],
            merged: &[
                ".tavern/q=1",
                ".tavern/r=1",
                ".tavernx=1",
                "a=one",
                "b=main",
            ],
        },
        Row {
            name: "a name that only begins like it",
            into: &[],
            from: &[(".tavernx", Some("x\n"))],
            left_out: &[],
            merged: &[".tavern/q=1", ".tavern/r=1", ".tavernx=x", "a=one"],
        },
        Row {
            name: "the same on both sides",
            into: &[("b", Some("b\n")), ("c", Some("c\n"))],
            from: &[("b", Some("b\n"))],
            left_out: &[],
            merged: &[
                ".tavern/q=1",
                ".tavern/r=1",
                ".tavernx=1",
                "a=one",
                "b=b",
                "c=c",
            ],
        },
    ];
    for row in rows {
        for prefix in [".tavern", ".tavern/"] {
            let fixture = Fixture::new();
            fixture.commit(
                &[
                    (".tavern/q", "1\n"),
                    (".tavern/r", "1\n"),
                    (".tavernx", "1\n"),
                ],
                "board",
            );
            let from = branch(&fixture, "x", row.from);
            let into = change(&fixture, row.into);
            let merge =
                fixture
                    .repository()
                    .merge(&into, &from, &[prefix, "no/such/folder", ""], "merge");
            let left_out: Vec<PathBuf> = row.left_out.iter().map(PathBuf::from).collect();
            let (commit, found) = clean(merge);
            assert_eq!(found, left_out, "{}", row.name);
            let files = listing(&fixture, &commit);
            let texts: Vec<String> = files
                .iter()
                .map(|path| format!("{path}={}", show(&fixture, &commit, path)))
                .collect();
            assert_eq!(texts, row.merged, "{}", row.name);
            let parents = fixture.git(&["log", "-1", "--format=%P", commit.as_str()]);
            assert_eq!(parents, format!("{into} {from}"), "{}", row.name);
            assert_eq!(
                fixture
                    .repository()
                    .merge(&commit, &from, &[], "merge")
                    .expect(row.name),
                Merge::UpToDate
            );
        }
    }
}

#[test]
fn unrelated_histories_have_a_result() {
    let fixture = Fixture::new();
    let one = fixture.head();
    fixture.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    fixture.git(&["rm", "-r", "--quiet", "--force", "."]);
    let fresh = fixture.commit(&[("fresh", "1\n"), (".tavern/q", "x\n")], "fresh");
    let (commit, left_out) = clean(fixture.repository().merge(
        &one,
        &fresh,
        &[".tavern"],
        "unrelated",
    ));
    assert_eq!(listing(&fixture, &commit), ["a", "fresh"]);
    assert_eq!(left_out, [PathBuf::from(".tavern/q")]);
}

#[test]
fn the_users_merge_drivers_decide_whatever_is_checked_out() {
    let fixture = Fixture::new();
    let bare = fixture.head();
    let driver = fixture.script("driver", "cat \"$1\" \"$2\" > both; mv both \"$1\"");
    fixture.git(&[
        "config",
        "merge.both.driver",
        &format!("'{}' %A %B", driver.display()),
    ]);
    fixture.commit(
        &[(".gitattributes", "*.lock merge=both\n"), ("x.lock", "0\n")],
        "attributes",
    );
    let from = branch(&fixture, "x", &[("x.lock", Some("from\n"))]);
    let into = change(&fixture, &[("x.lock", Some("into\n"))]);
    fixture.git(&["checkout", "--quiet", "--detach", bare.as_str()]);
    let (commit, _) = clean(fixture.repository().merge(&into, &from, &[], "merge"));
    assert_eq!(show(&fixture, &commit, "x.lock"), "into\nfrom");
}

#[test]
fn a_branch_follows_its_base() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let repository = fixture.repository();
    repository
        .start_branch("tavern/integration", &first)
        .expect("the name is free");
    let follow = |base: &CommitId| {
        repository
            .follow("tavern/integration", base)
            .expect("it can follow")
    };
    let tip = || {
        repository
            .branch_tip("tavern/integration")
            .expect("it can be read")
            .expect("it is there")
    };
    assert_eq!(follow(&first), Follow::UpToDate);
    let second = fixture.commit(&[("b", "b\n")], "second");
    assert_eq!(follow(&second), Follow::FastForwarded(second.clone()));
    assert_eq!(tip(), second);
    assert_eq!(follow(&first), Follow::UpToDate);
    // Work is integrated, and the base moves on.
    fixture.git(&["checkout", "--quiet", "--detach"]);
    let work = fixture.commit(&[("w", "w\n")], "work");
    let (merged, _) = clean(repository.merge(&tip(), &work, &[], "integrate"));
    repository
        .advance(
            "refs/heads/tavern/integration",
            &second,
            &merged,
            "integrate",
        )
        .expect("it is where it was");
    fixture.git(&["checkout", "--quiet", "main"]);
    let third = fixture.commit(&[("a", "three\n")], "third");
    let Follow::Merged(caught_up) = follow(&third) else {
        panic!("both have commits of their own")
    };
    assert_eq!(tip(), caught_up);
    assert_eq!(listing(&fixture, &caught_up), ["a", "b", "w"]);
    assert_eq!(
        fixture.git(&["log", "-1", "--format=%P", caught_up.as_str()]),
        format!("{merged} {third}")
    );
    // A conflict moves nothing.
    let fourth = fixture.commit(&[("w", "main's\n")], "fourth");
    assert_eq!(follow(&fourth), Follow::Conflict(vec![PathBuf::from("w")]));
    assert_eq!(tip(), caught_up);
    let unknown = repository.follow("nowhere", &first);
    assert!(
        matches!(unknown, Err(GitError::UnknownReference { .. })),
        "{unknown:?}"
    );
    fixture.git(&["checkout", "--quiet", "tavern/integration"]);
    let fifth = fixture.git(&[
        "commit-tree",
        "-p",
        third.as_str(),
        "-m",
        "fifth",
        "main~1^{tree}",
    ]);
    let refused = repository.follow("tavern/integration", &id(&fifth));
    assert!(
        matches!(refused, Err(GitError::CheckedOut { .. })),
        "{refused:?}"
    );
}
