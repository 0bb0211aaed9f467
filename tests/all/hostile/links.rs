//! Links that lead out of the repository, pipes and devices in the places of Tavern's own files and folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::dice::is_in_slice;
use crate::support::{AT_ONCE, QUEUE, Scratch, item};

/// What a person and an agent do with a board.
const LINES: [&str; 14] = [
    "status",
    "check",
    "add More --id T-9",
    "claim --task T-2",
    "tell T-2 Hello",
    "agent --once --name Sam",
    "release T-2 --force",
    "archive",
    "undo",
    "log",
    "runs",
    "check --fix",
    "reap",
    "init",
];

/// A board on which something has happened.
fn used_board() -> Scratch {
    let items: String = (1..=3)
        .map(|number| item(&format!("T-{number}"), ""))
        .collect();
    let queue = format!("{items}- [ ] T-0: Do T-0\n\n## Completed\n");
    let scratch = Scratch::shell(&queue, &format!("{AT_ONCE}archive: {{after: 30d}}\n"));
    scratch.cancel_long_ago("T-0");
    scratch
        .run("tavern-agent", &["--once", "--name", "Frodo"])
        .succeeds();
    scratch.claim("T-2", &[]);
    scratch
        .run("tavern-tell", &["T-2", "Use argon2."])
        .succeeds();
    scratch.run("tavern-reap", &[]).succeeds();
    scratch
        .run("tavern-release", &["T-2", "--force"])
        .succeeds();
    scratch.write(".tavern/templates/own.md", "Do it.\n");
    scratch.write(
        ".tavern/quota/other.yaml",
        "closed_until: 2020-01-01T00:00:00Z\nreason: spent\n",
    );
    scratch
}

/// Tavern's own folders, or its files.
fn own(scratch: &Scratch, is_folder: bool) -> Vec<PathBuf> {
    let below = |root: &str| {
        walkdir::WalkDir::new(scratch.work().join(root))
            .min_depth(1)
            .into_iter()
    };
    let all = [".tavern", ".git/tavern"]
        .into_iter()
        .flat_map(below)
        .filter_map(Result::ok);
    let own = all
        .filter(|entry| entry.file_type().is_dir() == is_folder && !is_in_worktree(entry.path()));
    own.map(|entry| {
        entry
            .path()
            .strip_prefix(scratch.work())
            .expect("it is in there")
            .to_owned()
    })
    .collect()
}

/// What is in a worktree is an item's.
fn is_in_worktree(path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .any(|above| above.ends_with(".tavern/worktrees"))
}

/// All that is in a folder: paths, and what the files say.
fn everything(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let entries = walkdir::WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok);
    entries
        .map(|entry| (entry.path().to_owned(), fs::read(entry.path()).ok()))
        .collect()
}

/// Runs the programs in turn; each ends, whatever it says.
fn work_on(scratch: &Scratch, place: &str) {
    for line in LINES {
        let line: Vec<&str> = ["60", "tavern"]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        let ran = scratch.command(Path::new("timeout")).args(&line).run();
        assert!(
            ran.code.is_some_and(|code| ![101, 124].contains(&code)),
            "{place}: {line:?}: {ran}"
        );
    }
}

/// So many slices has the gate; the places are dealt out to them.
const SLICES: usize = 4;

/// Calls `attack` with a board for each of its files, or folders.
fn on_each(is_folder: bool, attack: impl Fn(&Scratch, &Path) + Sync) {
    let places = own(&used_board(), is_folder);
    assert!(places.len() >= 10, "{places:?}");
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = places.get(nth) else { return };
            if !is_in_slice(nth, SLICES) {
                continue;
            }
            let scratch = used_board();
            // Some are of one board only: temporary ones, and those that are called after a moment.
            if scratch.work().join(place).exists() {
                attack(&scratch, place);
            }
        }
    };
    thread::scope(|scope| (0..3).map(|_| scope.spawn(work)).for_each(drop));
}

/// What is at the place is moved out of the repository, and a link leads there: whoever follows it finds all as it should be.
fn lead_out(scratch: &Scratch, place: &Path) {
    let (outside, own) = (scratch.folder().join("outside"), scratch.work().join(place));
    fs::create_dir(&outside).expect("the folder is ours");
    fs::rename(&own, outside.join("it")).expect("the folder is ours");
    symlink(outside.join("it"), &own).expect("the folder is ours");
    let before = everything(&outside);
    work_on(scratch, &place.display().to_string());
    assert_eq!(everything(&outside), before, "{}", place.display());
}

#[test]
fn nothing_is_written_through_a_link() {
    on_each(true, lead_out);
    on_each(false, lead_out);
}

#[test]
fn no_list_is_a_link_to_what_git_or_tavern_keeps() {
    for target in [
        ".git/config",
        ".git/description",
        ".tavern/config.yaml",
        ".tavern/templates/own.md",
    ] {
        let scratch = used_board();
        let before = scratch.read(target);
        symlink(
            format!("../../{target}"),
            scratch.work().join(".tavern/queues/other.md"),
        )
        .expect("the folder is ours");
        symlink(target, scratch.work().join("TODO.md")).expect("the folder is ours");
        for line in [
            "add More --queue other",
            "add More --queue TODO.md",
            "drain TODO.md",
        ] {
            let ran = scratch.line(&format!("tavern {line}")).run();
            assert_ne!(ran.code, Some(0), "{line}: {ran}");
            ran.says("it is a link into the private files of git or Tavern");
        }
        scratch
            .run("tavern-check", &[])
            .ends(5)
            .says("it is a link into the private files of git or Tavern");
        assert_eq!(scratch.read(target), before, "{target}");
    }
}

#[test]
fn no_program_waits_for_a_pipe() {
    on_each(false, |scratch, place| {
        let own = scratch.work().join(place);
        fs::remove_file(&own).expect("the folder is ours");
        mkfifoat(CWD, &own, Mode::from_raw_mode(0o600)).expect("the folder is ours");
        work_on(scratch, &place.display().to_string());
    });
}

/// Which git reads beside any file.
#[test]
fn no_git_of_ours_waits_for_a_pipe_in_the_checkout() {
    for place in [
        ".gitattributes",
        ".gitignore",
        ".tavern/.gitattributes",
        ".tavern/queues/.gitattributes",
    ] {
        let scratch = used_board();
        let own = scratch.work().join(place);
        drop(fs::remove_file(&own));
        mkfifoat(CWD, &own, Mode::from_raw_mode(0o600)).expect("the folder is ours");
        for line in [
            "tavern commit",
            "tavern add More",
            "tavern check",
            "tavern agent --until-empty",
            "tavern merge",
        ] {
            let words: Vec<&str> = ["20"].into_iter().chain(line.split(' ')).collect();
            let ran = scratch.command(Path::new("timeout")).args(&words).run();
            assert_ne!(ran.code, Some(124), "{place}: {line}: {ran}");
        }
        scratch.has_no_process();
    }
}

#[test]
fn the_board_is_no_link() {
    let scratch = used_board();
    lead_out(&scratch, Path::new(".tavern"));
    scratch
        .run("tavern-status", &[])
        .ends(1)
        .says("it is a link")
        .says("mv ");
}

#[test]
fn a_file_without_an_end_is_not_read() {
    for place in [".tavern/STOP", ".tavern/config.yaml", QUEUE] {
        let scratch = used_board();
        drop(fs::remove_file(scratch.work().join(place)));
        symlink("/dev/zero", scratch.work().join(place)).expect("the folder is ours");
        work_on(&scratch, place);
    }
}

/// Not even the names in it are told.
#[test]
fn the_folder_of_the_queues_leads_nowhere() {
    let scratch = Scratch::repository();
    scratch.write("../home/private/pay-of-bob.md", "- [ ] T-1: One\n");
    fs::create_dir(scratch.work().join(".tavern")).expect("the folder is ours");
    symlink(
        scratch.folder().join("home/private"),
        scratch.work().join(".tavern/queues"),
    )
    .expect("the folder is ours");
    for line in ["status", "check", "claim", "drain --dry-run"] {
        let ran = scratch.line(&format!("tavern-{line}")).run();
        assert!(!ran.to_string().contains("pay-of-bob"), "{line}: {ran}");
        assert_ne!(ran.code, Some(0), "{line}: {ran}");
        ran.says("it is a link that leads out of the repository");
    }
}

/// An agent without a sandbox, in the folder of its own run.
#[test]
fn what_an_agent_puts_into_its_runs_folder_leads_nowhere() {
    for put in ["ln -sf ~/kept", "ln -f ~/kept", "mkfifo"] {
        let names = "result.txt verify.txt diff.patch prompt.md verdict.yaml plan.md";
        let script = format!(
            "  echo x >x.txt\n  for name in {names}; do rm -f \"$TAVERN_RUN/$name\"; {put} \"$TAVERN_RUN/$name\" || true; done"
        );
        let scratch = Scratch::shell(
            &format!("- [ ] T-1: One\n  ```sh\n{script}\n  ```\n"),
            AT_ONCE,
        );
        scratch.write("../home/kept", "kept");
        scratch
            .run("tavern-agent", &["--once", "--name", "Frodo"])
            .succeeds();
        scratch.stands("T-1", "completed", 1);
        assert_eq!(scratch.read("../home/kept"), "kept", "{put}");
    }
}
