//! A terminal of its own for one program, by util-linux's `script`: what is typed, and what is shown.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{Ran, Running, Scratch, wait_until};

pub struct Terminal {
    running: Running,
    keys: File,
    shown: PathBuf,
}

impl Terminal {
    /// Starts a shell's command line in a new terminal.
    pub fn start(scratch: &Scratch, line: &str) -> Terminal {
        let home = scratch.folder().join("home");
        let (keys, shown) = (home.join("keys"), home.join("shown"));
        // Another one may have been before.
        [&keys, &shown].into_iter().for_each(|path| drop(fs::remove_file(path)));
        scratch.command(Path::new("mkfifo")).args(&[&keys.display().to_string()]).run().succeeds();
        let typed = format!("exec script -qefc 'exec {line}' '{}' <'{}'", shown.display(), keys.display());
        let shell = scratch.command(Path::new("sh")).args(&["-c", &typed]).variable("TERM", "xterm");
        let running = shell.start();
        let keys = OpenOptions::new().write(true).open(&keys).expect("script reads it");
        Terminal { running, keys, shown }
    }

    pub fn type_in(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("script reads it");
    }

    /// Returns once `text` was shown.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        let has_text = || fs::read(&self.shown).is_ok_and(|shown| String::from_utf8_lossy(&shown).contains(text));
        wait_until(&format!("`{text}` is shown"), has_text);
    }

    /// All that was written to it so far.
    pub fn written(&self) -> Vec<u8> {
        fs::read(&self.shown).unwrap_or_default()
    }

    /// Waits for the program's end; its exit code, and all that was shown.
    pub fn end(self) -> Ran {
        self.running.end()
    }
}
