//! Worktrees in real repositories: odd names, filters, crashes at each step, many at once.
#![expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::super::Furnished;
use super::super::fixture::{Fixture, discover, git_in, id, names, write_in};
use super::super::registration;
use super::super::{CommitId, GitError, Head, Repository};
use tavern_sys::clock;

/// Set for [`a_child_adds_one_worktree`]: repository, path, branch, start and lock file, one a line.
const CHILD: &str = "TAVERN_TEST_ADD_WORKTREE";

/// Returns true if it is new.
fn add(fixture: &Fixture, path: &Path, branch: &str, start: &CommitId) -> bool {
    let furnish = |_: &Path| Ok::<_, GitError>(Furnished::default());
    let added =
        fixture
            .repository()
            .add_worktree(path, branch, start, &fixture.lock_file(), furnish);
    added.expect("it can be made, or is there")
}

fn remove(fixture: &Fixture, name: &str) -> Result<bool, GitError> {
    fixture
        .repository()
        .remove_worktree(&fixture.beside(name), &fixture.lock_file())
}

fn admin(fixture: &Fixture, id: &str) -> PathBuf {
    fixture.root().join(".git/worktrees").join(id)
}

fn is_clean(repository: &Repository, path: &Path) -> bool {
    repository
        .changes(path)
        .expect("it is a worktree")
        .is_clean()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = clock::instant() + Duration::from_secs(60);
    while !holds() {
        assert!(clock::instant() < deadline, "waited for: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_branch_that_exists_is_taken_as_it_is() {
    let fixture = Fixture::new();
    let old = fixture.head();
    fixture.git(&["branch", "x"]);
    fixture.git(&["tag", "x", "HEAD"]);
    fixture.commit(&[("a", "two\n")], "second");
    let made = fixture.add("w", "x").expect("nothing is there");
    let head = fixture
        .repository()
        .head_of(&made)
        .expect("it is registered");
    assert_eq!(
        head,
        Head::Branch {
            name: "x".to_owned(),
            commit: old
        }
    );
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_refused_with_its_place() {
    let fixture = Fixture::new();
    fixture.add("w", "x").expect("nothing is there");
    for (branch, checkout) in [("x", fixture.beside("w")), ("main", fixture.root())] {
        let refused = fixture.add("v", branch);
        assert!(
            matches!(&refused, Err(GitError::CheckedOut { path, .. }) if *path == checkout),
            "{refused:?}"
        );
        assert!(!fixture.beside("v").exists());
    }
}

#[test]
fn folders_may_have_any_name() {
    for (number, name) in [
        "with blank",
        "Fröhlich-é",
        "new\nline",
        "it's \"quoted\"",
        "-dash",
        "$HOME;`x`",
    ]
    .iter()
    .enumerate()
    {
        let fixture = Fixture::named(name);
        fixture.commit(&[("a b\nc", "one\n")], "first");
        let repository = fixture.repository();
        assert_eq!(repository.main_worktree(), fixture.beside(name));
        let path = fixture.root().join("trees").join(format!("{name} tree"));
        let branch = format!("b{number}");
        let start = fixture.head();
        assert!(
            add(&fixture, &path, &branch, &start) && is_clean(&repository, &path),
            "{name:?}"
        );
        assert!(!add(&fixture, &path, &branch, &start), "{name:?}");
        write_in(&path, "new", "");
        fixture
            .commit_all(&path, "work", &[])
            .expect("it can be committed")
            .expect("there is something");
        assert!(
            discover(&path).expect("it is inside").main_worktree() == fixture.root(),
            "{name:?}"
        );
        assert!(
            repository
                .remove_worktree(&path, &fixture.lock_file())
                .expect("it is ours"),
            "{name:?}"
        );
        assert_eq!(names(&fixture.root().join("trees")), [""; 0], "{name:?}");
    }
}

#[test]
fn the_users_filters_run_and_the_users_hooks_do_not() {
    let fixture = Fixture::new();
    let ran = fixture.beside("hook-ran");
    for hook in [
        "post-checkout",
        "pre-commit",
        "post-commit",
        "commit-msg",
        "reference-transaction",
        "post-index-change",
    ] {
        let script = fixture.script(hook, &format!("echo {hook} >> '{}'; exit 1", ran.display()));
        symlink(script, fixture.root().join(".git/hooks").join(hook)).expect("the folder is there");
    }
    let large = fixture.script("large", "sed s/pointer/contents/");
    let small = fixture.script("small", "sed s/contents/pointer/");
    fixture.git(&[
        "config",
        "filter.large.smudge",
        &large.display().to_string(),
    ]);
    fixture.git(&["config", "filter.large.clean", &small.display().to_string()]);
    fixture.git(&["config", "filter.large.required", "true"]);
    fixture.write(
        ".gitattributes",
        "*.bin filter=large\n*.txt text eol=crlf\n",
    );
    fixture.write("x.bin", "contents\n");
    fixture.write("x.txt", "line\r\n");
    fixture.git(&["-c", "core.hooksPath=/dev/null", "add", "--all"]);
    fixture.git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "commit",
        "--quiet",
        "--message",
        "filtered",
    ]);
    assert_eq!(fixture.git(&["show", "HEAD:x.bin"]), "pointer");
    // Making the fixture itself may have moved references.
    let _ = fs::remove_file(&ran);

    let made = fixture.add("w", "x").expect("nothing is there");
    assert_eq!(
        fs::read(made.join("x.bin")).expect("it is there"),
        b"contents\n"
    );
    assert_eq!(
        fs::read(made.join("x.txt")).expect("it is there"),
        b"line\r\n"
    );
    let repository = fixture.repository();
    assert!(is_clean(&repository, &made));
    write_in(&made, "y.bin", "more contents\n");
    let commit = fixture
        .commit_all(&made, "work", &[])
        .expect("it can be committed")
        .expect("there is something");
    assert_eq!(
        fixture.git(&["show", &format!("{commit}:y.bin")]),
        "more pointer"
    );
    write_in(&made, "z.bin", "even more contents\n");
    let saved = repository
        .salvage(&made, "refs/tavern/salvage/x/1", "saved", &[])
        .expect("it can be saved");
    assert_eq!(
        fixture.git(&["show", "refs/tavern/salvage/x/1:z.bin"]),
        "even more pointer"
    );
    assert!(saved.expect("there is something").unsaved.is_empty());
    remove(&fixture, "w").expect("it is ours");
    assert!(
        !ran.exists(),
        "these ran: {}",
        fs::read_to_string(ran).unwrap_or_default()
    );
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let fixture = Fixture::new();
    fixture.commit(&[("in/a", "a\n"), ("out/b", "b\n")], "two folders");
    fixture.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    let before = fixture.photograph();
    let repository = fixture.repository();
    let made = fixture.add("w", "x").expect("nothing is there");
    assert_eq!(names(&made), ["a", "in"]);
    assert!(is_clean(&repository, &made));
    write_in(&made, "in/a", "changed\n");
    write_in(&made, "far/new", "new\n");
    let saved = repository
        .salvage(&made, "refs/tavern/salvage/x/1", "saved", &[])
        .expect("it can be saved");
    let saved = saved.expect("there is something");
    assert!(saved.unsaved.is_empty());
    let listed = fixture.git(&["ls-tree", "-r", "--name-only", saved.commit.as_str()]);
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        ["a", "far/new", "in/a", "out/b"]
    );
    let commit = fixture
        .commit_all(&made, "work", &[".tavern"])
        .expect("it can be committed");
    let listed = fixture.git(&[
        "ls-tree",
        "-r",
        "--name-only",
        commit.expect("there is something").as_str(),
    ]);
    assert_eq!(
        listed.lines().collect::<Vec<_>>(),
        ["a", "far/new", "in/a", "out/b"]
    );
    assert_eq!(fixture.photograph(), before);
}

#[test]
fn what_a_killed_call_left_behind_is_no_hindrance() {
    type Leave = fn(&Fixture, &Path, &str);
    // The reason that a call for this path writes.
    let rows: [(&str, Leave); 9] = [
        ("a registration alone", |fixture, path, reason| {
            drop(registration::add(
                &fixture.root().join(".git"),
                path,
                "ref: refs/heads/x",
                reason,
            ));
        }),
        ("a folder without files", |fixture, path, reason| {
            let path = path.display().to_string();
            fixture.git(&[
                "worktree",
                "add",
                "-q",
                "--no-checkout",
                "--lock",
                "--reason",
                reason,
                "-b",
                "x",
                &path,
            ]);
        }),
        (
            "a folder with half of the files and locks",
            |fixture, path, reason| {
                let path = path.display().to_string();
                fixture.git(&[
                    "worktree",
                    "add",
                    "-q",
                    "--no-checkout",
                    "--lock",
                    "--reason",
                    reason,
                    "-b",
                    "x",
                    &path,
                ]);
                write_in(Path::new(&path), "a", "on");
                write_in(&admin(fixture, "w"), "index.lock", "");
                write_in(&admin(fixture, "w"), "HEAD.lock", "");
            },
        ),
        (
            "an earlier attempt for another branch",
            |fixture, path, reason| {
                let path = path.display().to_string();
                fixture.git(&[
                    "worktree",
                    "add",
                    "-q",
                    "--no-checkout",
                    "--lock",
                    "--reason",
                    reason,
                    "-b",
                    "y",
                    &path,
                ]);
                write_in(Path::new(&path), "a", "on");
            },
        ),
        (
            "a whole worktree with the lock of a killed git",
            |fixture, path, _| {
                fixture.git(&[
                    "worktree",
                    "add",
                    "-q",
                    "-b",
                    "x",
                    &path.display().to_string(),
                ]);
                write_in(&admin(fixture, "w"), "index.lock", "");
            },
        ),
        ("a registration whose folder is gone", |fixture, path, _| {
            fixture.git(&[
                "worktree",
                "add",
                "-q",
                "-b",
                "x",
                &path.display().to_string(),
            ]);
            fs::remove_dir_all(path).expect("it is ours");
        }),
        (
            "a registration whose folder was emptied",
            |fixture, path, _| {
                fixture.git(&[
                    "worktree",
                    "add",
                    "-q",
                    "-b",
                    "x",
                    &path.display().to_string(),
                ]);
                fs::remove_dir_all(path).expect("it is ours");
                fs::create_dir(path).expect("the folder is writable");
            },
        ),
        (
            "another registration that names the branch, without a folder",
            |fixture, _, _| {
                fixture.git(&["worktree", "add", "-q", "-b", "x", "../moved"]);
                fs::remove_dir_all(fixture.beside("moved")).expect("it is ours");
            },
        ),
        ("an empty folder", |_, path, _| {
            fs::create_dir(path).expect("the folder is writable");
        }),
    ];
    for (left, leave) in rows {
        let fixture = Fixture::new();
        fixture.git(&["worktree", "add", "-q", "--detach", "../others"]);
        fs::remove_dir_all(fixture.beside("others")).expect("it is ours");
        let path = fixture.beside("w");
        leave(&fixture, &path, &super::reason(&path));
        let made = fixture
            .add("w", "x")
            .unwrap_or_else(|error| panic!("{left}: {error}"));
        assert_eq!(names(&path), ["a"], "{left}");
        assert_eq!(
            fs::read_to_string(path.join("a")).expect("it is there"),
            "one\n",
            "{left}"
        );
        let repository = fixture.repository();
        assert!(is_clean(&repository, &path), "{left}");
        assert_eq!(
            git_in(&made, &["rev-parse", "HEAD"]),
            fixture.head().as_str(),
            "{left}"
        );
        write_in(&path, "a", "work\n");
        assert!(
            fixture
                .commit_all(&path, "work", &[])
                .expect("no lock is left")
                .is_some(),
            "{left}"
        );
        let listed = git_in(&path, &["worktree", "list", "--porcelain"]);
        assert!(listed.contains("\nbranch refs/heads/x"), "{left}: {listed}");
        assert!(!listed.contains("locked"), "{left}: {listed}");
        let registered = names(&admin(&fixture, ""));
        let strays = registered
            .iter()
            .filter(|name| !["others", "moved", "w"].contains(&name.as_str()));
        assert_eq!(strays.count(), 0, "{left}: {registered:?}");
        assert!(
            admin(&fixture, "others").exists(),
            "{left}: it pruned a foreign registration"
        );
    }
}

#[test]
fn what_was_not_furnished_to_the_end_is_made_anew() {
    let fixture = Fixture::new();
    let (repository, path, start) = (fixture.repository(), fixture.beside("w"), fixture.head());
    let failing = |folder: &Path| {
        write_in(folder, "half", "");
        let checkout = repository.checkout(folder)?;
        assert!(checkout.git_dir.join("locked").exists() && names(folder) == ["a", "half"]);
        // As if killed here: it contains no work yet.
        let saved = repository.salvage(folder, "refs/tavern/salvage/x/1", "saved", &[])?;
        assert_eq!(saved, None);
        Err(GitError::ProgramMissing)
    };
    let failed = repository.add_worktree(&path, "x", &start, &fixture.lock_file(), failing);
    assert!(
        matches!(failed, Err(GitError::ProgramMissing)),
        "{failed:?}"
    );
    assert!(!path.exists() && !admin(&fixture, "w").exists());
    add(&fixture, &path, "x", &start);
    write_in(&admin(&fixture, "w"), "locked", super::reason(&path));
    write_in(&path, "half", "");
    assert!(add(&fixture, &path, "x", &start) && names(&path) == ["a"]);
}

#[test]
fn the_git_of_a_killed_process_ends_with_it_and_the_next_begins_anew() {
    let fixture = Fixture::new();
    let filter = fixture.script(
        "filter",
        "cd \"$(dirname \"$0\")\"; echo >> started; until [ -e go ]; do sleep 0.01; done; cat",
    );
    fixture.git(&[
        "config",
        "filter.slow.smudge",
        &filter.display().to_string(),
    ]);
    fixture.git(&["config", "filter.slow.clean", "cat"]);
    fixture.write("go-once", "");
    fixture.commit(
        &[
            (".gitattributes", "m filter=slow\n"),
            ("m", "m\n"),
            ("z", "z\n"),
        ],
        "slow",
    );
    let mut child = child(&fixture, "w", "x", &fixture.head());
    wait_until("the checkout has begun", || {
        fixture.beside("started").exists()
    });
    let lock = admin(&fixture, "w").join("index.lock");
    assert!(lock.exists());
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    wait_until("its git has taken its lock away", || !lock.exists());
    fs::write(fixture.beside("go"), "").expect("the folder is writable");
    let made = fixture.add("w", "x").expect("no other git is at work");
    assert!(is_clean(&fixture.repository(), &made));
    assert_eq!(names(&made), [".gitattributes", "a", "go-once", "m", "z"]);
}

#[test]
fn a_process_may_be_killed_at_any_moment() {
    let fixture = Fixture::new();
    let files: Vec<(String, String)> = (0..300)
        .map(|n| (format!("d/f{n}"), format!("{n}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    fixture.commit(&files, "many");
    let signs = [
        "lock",
        "repo/.git/tavern/worktree/locked",
        "repo/.git/worktrees/w",
        "repo/.git/worktrees/w/HEAD",
        "w",
        "w/.git",
        "w/a",
        "w/d/f0",
        "w/d/f99",
    ];
    // As if the previous call had been killed here.
    write_in(&fixture.root(), ".git/tavern/worktree/half", "");
    for (round, sign) in signs.into_iter().enumerate() {
        let branch = format!("x{round}");
        let mut child = child(&fixture, "w", &branch, &fixture.head());
        wait_until(sign, || {
            fixture.beside(sign).exists() || child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        let _ = child.kill();
        child.wait().expect("it is ours");
        // It is stale, and would be removed some seconds later (tests/all/locks.rs).
        let _ = fs::remove_file(
            fixture
                .root()
                .join(format!(".git/refs/heads/{branch}.lock")),
        );
        let made = fixture
            .add("w", &branch)
            .unwrap_or_else(|error| panic!("killed at {sign}: {error}"));
        assert!(is_clean(&fixture.repository(), &made), "killed at {sign}");
        assert_eq!(names(&made.join("d")).len(), 300, "killed at {sign}");
        assert_eq!(
            names(&fixture.root().join(".git/tavern")),
            [""; 0],
            "killed at {sign}"
        );
        assert!(
            !admin(&fixture, "w").join("half").exists(),
            "killed at {sign}"
        );
        assert!(
            remove(&fixture, "w").expect("it is ours"),
            "killed at {sign}"
        );
        fs::remove_file(fixture.lock_file()).expect("it is unlocked");
        // Killed between creating the entry's folder and filling it; `git worktree prune` removes it.
        let _ = fs::remove_dir(admin(&fixture, "w"));
        fs::remove_dir(admin(&fixture, ""))
            .unwrap_or_else(|error| panic!("killed at {sign}: {error}"));
        assert_eq!(
            names(&fixture.beside("")),
            ["current", "repo"],
            "killed at {sign}"
        );
    }
}

#[test]
fn what_is_somebody_elses_is_refused_and_left_alone() {
    let fixture = Fixture::new();
    // A folder with something in it, a file, another repository.
    write_in(&fixture.beside("full"), "precious", "1");
    fs::write(fixture.beside("file"), "precious").expect("the folder is writable");
    fs::create_dir(fixture.beside("repository")).expect("the folder is writable");
    git_in(&fixture.beside("repository"), &["init", "--quiet"]);
    for name in ["full", "file", "repository"] {
        let refused = fixture.add(name, "x");
        assert!(
            matches!(&refused, Err(GitError::FolderInTheWay { path }) if *path == fixture.beside(name)),
            "{refused:?}"
        );
        let refused = remove(&fixture, name);
        assert!(
            matches!(&refused, Err(GitError::NotAWorktree { .. })),
            "{refused:?}"
        );
        assert!(fixture.beside(name).exists());
    }
    // Locked by a person, with the folder on a disk that is away just now.
    fixture.git(&[
        "worktree",
        "add",
        "-q",
        "--lock",
        "--reason",
        "on a stick",
        "-b",
        "stick",
        "../stick",
    ]);
    fs::rename(fixture.beside("stick"), fixture.beside("away")).expect("it is ours");
    let refused = fixture.add("stick", "stick");
    assert!(
        matches!(&refused, Err(GitError::Locked { reason, .. }) if reason == "on a stick"),
        "{refused:?}"
    );
    assert!(matches!(
        remove(&fixture, "stick"),
        Err(GitError::Locked { .. })
    ));
    assert!(matches!(
        fixture.add("other", "stick"),
        Err(GitError::CheckedOut { .. })
    ));
    fs::rename(fixture.beside("away"), fixture.beside("stick")).expect("it is ours");
    assert!(matches!(
        remove(&fixture, "stick"),
        Err(GitError::Locked { .. })
    ));
    assert_eq!(names(&fixture.beside("stick")), ["a"]);
}

#[test]
fn a_worktree_on_something_else_is_told_with_what_it_is_on() {
    let fixture = Fixture::new();
    let made = fixture.add("w", "x").expect("nothing is there");
    git_in(&made, &["switch", "--quiet", "--create", "other"]);
    let refused = fixture.add("w", "x").expect_err("it is on another branch");
    assert!(
        matches!(&refused, GitError::OtherHead { found, .. } if found == "branch `other`"),
        "{refused:?}"
    );
    git_in(&made, &["switch", "--quiet", "--detach"]);
    let refused = fixture.add("w", "x").expect_err("it is on no branch");
    assert!(
        refused.to_string().contains("without a branch"),
        "{refused}"
    );
    assert!(refused.hint().contains("switch x"), "{}", refused.hint());
}

#[test]
fn an_agent_that_deletes_the_git_file_harms_only_itself() {
    let fixture = Fixture::new();
    let root = fixture.root();
    let path = root.join(".tavern/worktrees/T-1");
    fixture.write(".tavern/.gitignore", "worktrees/\n");
    fixture.commit(&[], "ignore worktrees");
    let repository = fixture.repository();
    let start = fixture.head();
    add(&fixture, &path, "x", &start);
    fixture.write("users-own", "untracked\n");
    let before = fixture.photograph();
    fs::remove_file(path.join(".git")).expect("it is there");
    write_in(&path, "work", "1\n");
    // From here a search upwards would find the user's own checkout.
    let found = repository.changes(&path).expect("it is registered");
    assert_eq!(found.untracked, [PathBuf::from("work")]);
    let saved = repository.salvage(
        &path,
        "refs/tavern/salvage/T-1/1",
        "saved",
        std::slice::from_ref(&start),
    );
    let saved = saved.expect("it can be saved").expect("there is something");
    assert_eq!(
        fixture.git(&["diff", "--name-only", "HEAD", saved.commit.as_str()]),
        "work"
    );
    let commit = fixture
        .commit_all(&path, "work", &[])
        .expect("it can be committed")
        .expect("there is something");
    assert_eq!(
        fixture.git(&["diff", "--name-only", "HEAD", commit.as_str()]),
        "work"
    );
    fs::remove_file(path.join("work")).expect("it is there");
    assert_eq!(fixture.head(), start);
    assert!(!add(&fixture, &path, "x", &start) && path.join(".git").is_file());
    fs::remove_file(path.join(".git")).expect("it is there");
    assert!(
        repository
            .remove_worktree(&path, &fixture.lock_file())
            .expect("it is registered")
    );
    let after = fixture.photograph();
    let of_the_user = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with(".tavern/worktrees"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(of_the_user(&after), of_the_user(&before));
}

#[test]
fn an_agent_that_begins_a_repository_of_its_own_there_keeps_it() {
    let fixture = Fixture::new();
    let made = fixture.add("w", "x").expect("nothing is there");
    fs::remove_file(made.join(".git")).expect("it is there");
    git_in(&made, &["init", "--quiet"]);
    assert!(matches!(
        remove(&fixture, "w"),
        Err(GitError::FolderInTheWay { .. })
    ));
    assert!(matches!(
        fixture.add("w", "x"),
        Err(GitError::FolderInTheWay { .. })
    ));
    fs::rename(&made, fixture.beside("w.old")).expect("it is ours");
    assert!(
        add(&fixture, &made, "x", &fixture.head()),
        "the hint was followed"
    );
}

#[test]
fn a_worktree_is_found_however_git_has_called_its_registration() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.beside("deep")).expect("the folder is writable");
    fixture.git(&["worktree", "add", "-q", "--detach", "../first"]);
    fixture.git(&["worktree", "add", "-q", "--detach", "../deep/first"]);
    fixture.git(&["worktree", "add", "-q", "--detach", "../o.d d"]);
    fixture.git(&["worktree", "move", "../first", "../moved"]);
    let repository = fixture.repository();
    for (name, expected) in [
        ("moved", true),
        ("deep/first", true),
        ("o.d d", true),
        ("first", false),
        ("deep", false),
    ] {
        assert_eq!(
            repository
                .is_worktree(&fixture.beside(name))
                .expect("it can be read"),
            expected,
            "{name}"
        );
    }
    // One that was not moved is found by its name, even if its folder is gone.
    for name in ["deep/first", "o.d d"] {
        fs::remove_dir_all(fixture.beside(name)).expect("it is ours");
        assert!(
            repository
                .is_worktree(&fixture.beside(name))
                .expect("it can be read"),
            "{name}"
        );
    }
}

#[test]
fn removing_takes_folder_and_registration_and_nothing_else() {
    let fixture = Fixture::new();
    let made = fixture.add("w", "x").expect("nothing is there");
    fixture.add("v", "y").expect("nothing is there");
    write_in(&made, "cache/deep/file", "1");
    for folder in ["cache/deep", "cache"] {
        fs::set_permissions(made.join(folder), fs::Permissions::from_mode(0o555))
            .expect("it is ours");
    }
    symlink(fixture.root(), made.join("link")).expect("the folder is writable");
    let before = fixture.photograph();
    assert!(remove(&fixture, "w").expect("it is ours"));
    assert!(!made.exists() && !admin(&fixture, "w").exists());
    assert!(fixture.beside("v").join("a").exists() && admin(&fixture, "v").exists());
    assert!(
        fixture
            .repository()
            .branch_tip("x")
            .expect("it can be read")
            .is_some()
    );
    assert!(!remove(&fixture, "w").expect("nothing is there"));
    assert_eq!(fixture.photograph(), before);
    assert_eq!(names(&fixture.beside("")), ["current", "lock", "repo", "v"]);
}

#[test]
fn removing_goes_on_where_a_killed_call_stopped() {
    type Leave = fn(&Fixture, &Path);
    let rows: [(&str, bool, Leave); 5] = [
        ("the folder is moved away", true, |fixture, path| {
            fs::rename(path, fixture.beside(".tavern-removed-1")).expect("it is ours");
        }),
        ("half of the registration is gone", true, |fixture, path| {
            fs::remove_dir_all(path).expect("it is ours");
            for name in ["HEAD", "commondir", "index"] {
                fs::remove_file(admin(fixture, "w").join(name)).expect("git made it");
            }
        }),
        ("the registration is gone", true, |fixture, _| {
            fs::remove_dir_all(admin(fixture, "w")).expect("it is ours");
        }),
        ("all is gone but the rest", false, |fixture, path| {
            write_in(&fixture.beside(".tavern-removed-1"), "a", "");
            fs::remove_dir_all(path).expect("it is ours");
            fs::remove_dir_all(admin(fixture, "w")).expect("it is ours");
        }),
        ("it was half made", true, |fixture, path| {
            write_in(&admin(fixture, "w"), "locked", super::reason(path));
        }),
    ];
    for (left, expected, leave) in rows {
        let fixture = Fixture::new();
        let made = fixture.add("w", "x").expect("nothing is there");
        leave(&fixture, &made);
        let listed = fixture
            .repository()
            .worktrees_in(&fixture.beside(""))
            .expect("they can be listed");
        let is_listed = admin(&fixture, "w").exists();
        assert_eq!(listed.contains(&made), is_listed, "{left}: {listed:?}");
        let removed = remove(&fixture, "w").unwrap_or_else(|error| panic!("{left}: {error}"));
        assert_eq!(removed, expected, "{left}");
        assert_eq!(
            names(&fixture.beside("")),
            ["current", "lock", "repo"],
            "{left}"
        );
        assert!(!admin(&fixture, "w").exists(), "{left}");
    }
}

#[test]
fn what_is_no_linked_worktree_is_never_removed() {
    let fixture = Fixture::new();
    let made = fixture.add("w", "x").expect("nothing is there");
    let inside = made.join("inner");
    git_in(&made, &["worktree", "add", "--quiet", "--detach", "inner"]);
    write_in(&made, "sub/file", "");
    symlink(fixture.root(), fixture.beside("link")).expect("the folder is writable");
    for name in [
        "repo",
        "link",
        "",
        "w/sub",
        "repo/.git",
        "repo/.git/worktrees",
    ] {
        let refused = remove(&fixture, name);
        assert!(
            matches!(&refused, Err(GitError::NotAWorktree { .. })),
            "{name}: {refused:?}"
        );
    }
    let refused = remove(&fixture, "w");
    assert!(
        matches!(&refused, Err(GitError::HoldsWorktree { inner, .. }) if *inner == inside),
        "{refused:?}"
    );
    assert!(fixture.root().join("a").exists() && inside.join("a").exists());
    assert!(remove(&fixture, "w/inner").expect("it is a linked worktree"));
    assert!(remove(&fixture, "w").expect("it holds no other now"));
}

#[test]
fn a_scratch_worktree_has_exactly_the_files_of_its_commit() {
    let fixture = Fixture::new();
    let first = fixture.head();
    let second = fixture.commit(
        &[("a", "two\n"), ("b", "b\n"), (".gitignore", "*.o\n")],
        "second",
    );
    let (repository, path, lock) = (
        fixture.repository(),
        fixture.beside("scratch"),
        fixture.lock_file(),
    );
    repository
        .checkout_scratch(&path, &second, &lock)
        .expect("nothing is there");
    assert_eq!(
        repository.head_of(&path).expect("it is there"),
        Head::Detached {
            commit: second.clone()
        }
    );
    // Possible leftovers of a verification, and a merge on top.
    write_in(&path, "a", "changed\n");
    write_in(&path, "x.o", "ignored");
    write_in(&path, "new/file", "untracked");
    git_in(&path, &["init", "--quiet", "inner"]);
    write_in(&path, "staged", "");
    git_in(&path, &["add", "staged", "a"]);
    write_in(&admin(&fixture, "scratch"), "index.lock", "");
    repository
        .checkout_scratch(&path, &first, &lock)
        .expect("it is there");
    assert_eq!(names(&path), ["a"]);
    assert!(is_clean(&repository, &path));
    assert_eq!(
        repository.head_of(&path).expect("it is there"),
        Head::Detached {
            commit: first.clone()
        }
    );
    // A branch there may be work.
    git_in(&path, &["switch", "--quiet", "--create", "work"]);
    let refused = repository.checkout_scratch(&path, &second, &lock);
    assert!(
        matches!(&refused, Err(GitError::OtherHead { expected: None, .. })),
        "{refused:?}"
    );
    assert_eq!(
        repository.branch_tip("work").expect("it can be read"),
        Some(first)
    );
    let unknown = repository.checkout_scratch(&fixture.beside("s2"), &id(&"1".repeat(40)), &lock);
    assert!(matches!(unknown, Err(GitError::UnknownCommit { .. })));
}

#[test]
fn twelve_processes_all_succeed_also_for_one_path() {
    let fixture = Fixture::new();
    let start = fixture.head();
    let children: Vec<_> = (0..12)
        .map(|n| {
            child(
                &fixture,
                &format!("w{}", n / 2),
                &format!("b{}", n / 2),
                &start,
            )
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it is ours").success());
    }
    for n in 0..6 {
        assert!(is_clean(
            &fixture.repository(),
            &fixture.beside(&format!("w{n}"))
        ));
    }
}

#[test]
fn a_surrounding_git_does_not_lead_astray() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    other.write("a", "the user's\n");
    other.git(&["add", "a"]);
    let before = other.photograph();
    let git = other.root().join(".git");
    // As in a hook, or in an alias, of the other repository.
    let status = command(&fixture, "w", "x", &fixture.head())
        .env("GIT_DIR", &git)
        .env("GIT_COMMON_DIR", &git)
        .env("GIT_WORK_TREE", other.root())
        .env("GIT_INDEX_FILE", git.join("index"))
        .env("GIT_OBJECT_DIRECTORY", git.join("objects"))
        .env("GIT_PREFIX", "sub/")
        .env("GIT_LITERAL_PATHSPECS", "1")
        .status()
        .expect("the test program can be started again");
    assert!(status.success());
    assert_eq!(other.photograph(), before);
    assert!(is_clean(&fixture.repository(), &fixture.beside("w")));
}

fn child(fixture: &Fixture, name: &str, branch: &str, start: &CommitId) -> std::process::Child {
    command(fixture, name, branch, start)
        .spawn()
        .expect("the test program can be started again")
}

/// This test program again, for the one test below.
fn command(fixture: &Fixture, name: &str, branch: &str, start: &CommitId) -> Command {
    let parts = [
        fixture.root().display().to_string(),
        fixture.beside(name).display().to_string(),
        branch.to_owned(),
        start.to_string(),
        fixture.lock_file().display().to_string(),
    ];
    let mut command = Command::new(std::env::current_exe().expect("a test program knows its path"));
    command
        .args([
            "--exact",
            "worktree::tests::a_child_adds_one_worktree",
            "--test-threads=1",
        ])
        .env(CHILD, parts.join("\n"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Does nothing unless [`command`] has started this process.
#[test]
fn a_child_adds_one_worktree() {
    let Ok(text) = std::env::var(CHILD) else {
        return;
    };
    let parts: Vec<&str> = text.lines().collect();
    let [root, path, branch, start, lock_file] = parts[..] else {
        panic!("five lines are given")
    };
    let repository = discover(Path::new(root)).expect("it is a repository");
    let furnish = |_: &Path| Ok::<_, GitError>(Furnished::default());
    repository
        .add_worktree(
            Path::new(path),
            branch,
            &id(start),
            Path::new(lock_file),
            furnish,
        )
        .expect("all succeed");
}
