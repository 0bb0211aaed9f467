//! Does an item cost more, the more items have ended before it? CPU time per item (user and system, with all that is
//! started for it) of a drain of items with worktrees, on boards with ever longer pasts. Prints a Markdown table, and judges nothing.
//!
//! `cargo bench --bench growth`; with numbers behind `--` other pasts than 10, 1,000 and 3,000 items. Another program than
//! the one that was just built is measured where the variable `TAVERN` names it. Works in a folder of its own under `target/`.
//!
//! The upkeep that agents do once an hour is not in it: the past's own drain has done it, and `tavern reap` shows what it costs.
//!
//! The past is real where it is Tavern's: a drain of items that need no worktree leaves the log, the archive and the
//! runs. Where it is git's it is made by `git fast-import`: for each item a merge on the integration branch and the
//! branch of the item, as loose objects and references. Every sixth has left a worktree.
#![expect(
    clippy::disallowed_methods,
    reason = "a measurement starts programs and writes its own files"
)]
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Items whose cost is measured at once.
const ITEMS: usize = 30;

/// The boards take turns, so that whatever else the machine does meets all of them alike.
const ROUNDS: usize = 3;

/// Files of the repository.
const FILES: usize = 20;

fn main() {
    let given: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let pasts = if given.is_empty() {
        vec![10, 1_000, 3_000]
    } else {
        given
    };
    let scratch = tempfile::Builder::new()
        .prefix("growth-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a folder under target/ can be made");
    let boards: Vec<Board> = pasts
        .iter()
        .map(|past| Board::with_past(&scratch.path().join(past.to_string()), *past))
        .collect();
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); boards.len()];
    for round in 0..ROUNDS {
        for (board, costs) in boards.iter().zip(&mut costs) {
            costs.push(board.cost_of_item(round));
        }
    }
    let medians: Vec<f64> = costs.into_iter().map(median).collect();
    println!("| ended items | kept worktrees | CPU ms per item | ratio |\n|---|---|---|---|");
    for (past, cost) in pasts.iter().zip(&medians) {
        println!(
            "| {past} | {} | {cost:.1} | {:.2} × |",
            kept(*past),
            cost / medians[0]
        );
    }
}

/// How many of so many items have left a worktree.
fn kept(past: usize) -> usize {
    past / 6
}

fn median(mut costs: Vec<f64>) -> f64 {
    costs.sort_unstable_by(f64::total_cmp);
    costs[costs.len() / 2]
}

/// A repository with a board.
struct Board {
    folder: PathBuf,
}

impl Board {
    fn with_past(folder: &Path, past: usize) -> Board {
        fs::create_dir_all(folder.join("repo")).expect("the folder is ours");
        let board = Board {
            folder: folder.join("repo"),
        };
        board.git(&["init", "--quiet", "--initial-branch=main"]);
        for number in 0..FILES {
            board.write(
                &format!("file-{number}.txt"),
                &format!("{number}\n").repeat(200),
            );
        }
        board.git(&["add", "--all"]);
        board.git(&["commit", "--quiet", "--message=Begin"]);
        run(board.tavern().args(["init", "--runner", "shell"]));
        board.drain("past", past, "worktree: false", "true");
        board.merge(past);
        for number in 0..kept(past) {
            let path = format!("../kept/{number}");
            board.git(&[
                "worktree",
                "add",
                "--quiet",
                "--no-checkout",
                &path,
                &format!("tavern/past-{number}"),
            ]);
        }
        board
    }

    /// What so many merged items leave in git.
    fn merge(&self, past: usize) {
        let mut stream = String::new();
        let mut before = "refs/heads/main^0".to_owned();
        for number in 0..past {
            let (work, merged) = (2 * number + 1, 2 * number + 2);
            let change = format!(
                "M 100644 inline file-{}.txt\n{}",
                number % FILES,
                data(&format!("{number}\n"))
            );
            let committer = format!(
                "committer Bench <bench@example.invalid> {} +0000",
                1_700_000_000 + 60 * number
            );
            let message = data(&format!("past-{number}: Something"));
            stream.push_str(&format!(
                "commit refs/heads/tavern/past-{number}\nmark :{work}\n{committer}\n{message}from {before}\n{change}\n\
                 commit refs/heads/tavern/integration\nmark :{merged}\n{committer}\n{message}from {before}\nmerge :{work}\n{change}\n"
            ));
            before = format!(":{merged}");
        }
        let path = self.folder.join("../stream");
        fs::write(&path, stream).expect("the folder is ours");
        let stream = File::open(&path).expect("it was just written");
        let loose = [
            "-c",
            "fastimport.unpackLimit=1000000",
            "fast-import",
            "--quiet",
        ];
        run(self.command("git").args(loose).stdin(Stdio::from(stream)));
    }

    /// CPU time in milliseconds.
    fn cost_of_item(&self, round: usize) -> f64 {
        let before = cpu_of_children();
        self.drain(
            &format!("round-{round}"),
            ITEMS,
            "done_when: 'true'",
            "echo done >> file-$((TAVERN_TOKEN % 20)).txt",
        );
        (cpu_of_children() - before) / ITEMS as f64
    }

    /// Has `count` items done.
    fn drain(&self, name: &str, count: usize, keys: &str, script: &str) {
        let items = (0..count).map(|number| {
            format!("- [ ] {name}-{number}: Something ({keys})\n  ```sh\n  {script}\n  ```\n")
        });
        let items: String = items.collect();
        let path = ".tavern/queues/main.md";
        let text = fs::read_to_string(self.folder.join(path)).expect("`tavern init` has made it");
        self.write(
            path,
            &text.replacen("## Pending\n", &format!("## Pending\n\n{items}"), 1),
        );
        run(self.tavern().args(["drain", "main", "--agents", "2"]));
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.folder.join(path), text).expect("the folder is ours");
    }

    fn git(&self, arguments: &[&str]) {
        let identity = [
            "-c",
            "user.name=Bench",
            "-c",
            "user.email=bench@example.invalid",
        ];
        run(self.command("git").args(identity).args(arguments));
    }

    fn tavern(&self) -> Command {
        let program =
            std::env::var_os("TAVERN").unwrap_or_else(|| env!("CARGO_BIN_EXE_tavern").into());
        self.command(program)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }
}

fn data(text: &str) -> String {
    format!("data {}\n{text}\n", text.len())
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program is there");
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&said)
    );
}

/// What all children that have ended have used, and theirs, in milliseconds (proc_pid_stat(5), fields 16 and 17).
fn cpu_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("this is Linux");
    let (_, fields) = stat
        .rsplit_once(')')
        .expect("the name stands in parentheses");
    let ticks: f64 = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(|field| field.parse::<f64>().expect("a number"))
        .sum();
    ticks * 1e3 / rustix::param::clock_ticks_per_second() as f64
}
