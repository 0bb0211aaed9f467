//! Files that a person names for output: a page, JUnit's XML. Only a file of the same kind is overwritten.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::{CliError, Exit};

/// A kind of output file.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenKind {
    /// The beginning of each such file, in lower case.
    pub begins: &'static str,
    /// The flag to type, with an example of a name.
    pub flag: &'static str,
}

/// Writes `text` to `path`, unless a file of another kind is there.
#[expect(
    clippy::disallowed_methods,
    reason = "the file is a person's, and of no use when it is torn"
)]
pub(super) fn write(path: &Path, text: &str, kind: WrittenKind) -> Result<(), CliError> {
    if is_other(path, kind) {
        let message = format!("`{}` exists, and is another kind of file", path.display());
        return Err(CliError::usage(
            message,
            format!("name another file: {}", kind.flag),
        ));
    }
    fs::write(path, text).map_err(|error| {
        let message = format!("can't write `{}`", path.display());
        CliError {
            causes: vec![error.to_string()],
            ..CliError::new(Exit::Failed, message)
        }
        .with_hint(format!("name a file in an existing folder: {}", kind.flag))
    })
}

/// Returns whether `path` is another file of the user, such as a queue or a configuration.
fn is_other(path: &Path, kind: WrittenKind) -> bool {
    // A pipe is not read.
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = fs::File::open(path)
        .and_then(|file| file.take(kind.begins.len() as u64).read_to_end(&mut start));
    read.is_ok() && !start.is_empty() && !start.eq_ignore_ascii_case(kind.begins.as_bytes())
}
