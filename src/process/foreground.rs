//! A program that is given the terminal: an editor. It is in our own group, or it could not read keys, and nobody ends it
//! but who sits before it.
#![expect(clippy::disallowed_methods, reason = "`process` starts programs")]

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Runs a shell's command line, such as `code --wait`, with one more argument, and waits for its end.
pub fn foreground(line: &str, argument: &Path) -> io::Result<ExitStatus> {
    Command::new("sh").arg("-c").arg(format!("{line} \"$@\"")).arg(line).arg(argument).status()
}
