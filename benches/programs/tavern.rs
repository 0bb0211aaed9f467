//! Tavern's own programs on a board of one queue.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::timed::timed;
use crate::tool::{self, Tool};

/// Returns the path of the program, as it is installed: a file of its own, or a link to `tavern`.
pub fn program(name: &str) -> PathBuf {
    let one = Path::new(env!("CARGO_BIN_EXE_tavern"));
    let folder = one.parent().expect("it is in a folder");
    timed(Command::new(one).arg("links").arg(folder));
    folder.join(name)
}

/// A repository with a board.
pub struct Board {
    folder: PathBuf,
}

impl Board {
    /// With one queue of `size` items that need no worktree.
    pub fn new(folder: &Path, size: usize) -> Board {
        fs::create_dir_all(folder).expect("the folder is ours");
        let board = Board {
            folder: folder.to_owned(),
        };
        board.git(&["init", "--quiet"]);
        board.git(&["commit", "--quiet", "--allow-empty", "--message=Begin"]);
        timed(&mut board.command("tavern-init"));
        board.write("queues/main.md", &tool::lanes(size));
        // Else an item that was reported as failed could not be taken again at once.
        board.write(
            "config.yaml",
            "outcomes: {failed: {attempt: false, backoff: 0s}}\nmax_returns: 1000000\n",
        );
        board
    }

    fn git(&self, arguments: &[&str]) {
        let identity = [
            "-c",
            "user.name=Bench",
            "-c",
            "user.email=bench@example.invalid",
        ];
        timed(
            self.in_folder(&mut Command::new("git"))
                .args(identity)
                .args(arguments),
        );
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.folder.join(".tavern").join(path), text).expect("the folder is ours");
    }

    fn in_folder<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
    }

    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        self.in_folder(&mut command);
        command
    }

    /// All items, a line each.
    pub fn list(&self) -> Command {
        let mut command = self.command("tavern-status");
        command.arg("--items");
        command
    }

    pub fn waiting_claim(&self) -> Command {
        let mut command = self.claim();
        command.arg("--wait=60s");
        command
    }

    pub fn failed(&self, taken: &str) -> Command {
        self.report(taken, "--failed")
    }

    fn report(&self, taken: &str, how: &str) -> Command {
        let (task, token) = taken.split_once(' ').expect("`taken` gave both");
        let mut command = self.command("tavern-report");
        command.args([task, "--token", token, how]);
        command
    }
}

impl Tool for Board {
    fn name(&self) -> &'static str {
        "tavern"
    }

    fn add(&self, title: &str) -> Command {
        let mut command = self.command("tavern-add");
        command.arg(title);
        command
    }

    fn claim(&self) -> Command {
        let mut command = self.command("tavern-claim");
        command.args(["--agent", "bench", "--format", "env"]);
        command
    }

    /// The ID and the token.
    fn taken(&self, said: &str) -> Option<String> {
        let value = |name: &str| {
            said.split_whitespace()
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        Some(format!(
            "{} {}",
            value("TAVERN_TASK")?,
            value("TAVERN_TOKEN")?
        ))
    }

    fn done(&self, taken: &str) -> Command {
        self.report(taken, "--done")
    }

    fn held(&self) -> Vec<String> {
        let mut list = self.list();
        let (_, said) = timed(list.args(["--status", "in_progress"]));
        said.lines()
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("T-")))
            .map(str::to_owned)
            .collect()
    }
}
