//! The floor: what any program costs that changes one file of a board under its lock, durably. It reads its flags, locks,
//! reads, replaces (write, sync, rename, sync the folder), and neither parses nor decides.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use fs2::FileExt;

use crate::tool::{self, Tool};

/// First argument of this program when it is to be the floor.
pub const NAME: &str = "floor";

#[derive(Parser)]
struct Args {
    #[arg(long)]
    lock: PathBuf,
    #[arg(long)]
    file: PathBuf,
}

/// Replaces the file by itself.
pub fn main() -> ExitCode {
    let args = Args::parse_from(std::env::args_os().skip(1));
    match replace(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn replace(args: &Args) -> io::Result<()> {
    let lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&args.lock)?;
    FileExt::lock(&lock)?;
    let text = fs::read(&args.file)?;
    let temp = args.file.with_extension("new");
    let mut file = File::create(&temp)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&temp, &args.file)?;
    File::open(args.file.parent().unwrap_or(&args.file))?.sync_all()
}

/// The floor as a tool: each of its operations is the same.
pub struct Floor {
    folder: PathBuf,
}

impl Floor {
    pub fn new(folder: PathBuf, size: usize) -> Floor {
        fs::write(folder.join("board.md"), tool::lanes(size)).expect("the folder is ours");
        Floor { folder }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command
            .arg(NAME)
            .arg("--lock")
            .arg(self.folder.join("lock"))
            .arg("--file")
            .arg(self.folder.join("board.md"));
        command
    }
}

impl Tool for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn add(&self, _title: &str) -> Command {
        self.command()
    }

    fn claim(&self) -> Command {
        self.command()
    }

    fn taken(&self, _said: &str) -> Option<String> {
        Some(String::new())
    }

    fn done(&self, _id: &str) -> Command {
        self.command()
    }

    fn held(&self) -> Vec<String> {
        Vec::new()
    }
}
