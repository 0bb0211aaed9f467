//! `tavern-merge-driver`: merges a queue for git.

use std::fs;
use std::path::{Path, PathBuf};

use tavern_core::merge::merge;
use tavern_store::{Error, replace};
use tavern_sys::process::quoted;

use super::{CliError, Context, Exit, Verb};

/// Merge two versions of a queue item by item, for git
///
/// git calls it, once `tavern init` has set it up; any two versions of a task file can be merged by hand. The result replaces
/// OURS. Conflicts are written from both sides, in comments that `tavern check` lists, so the merge goes on. If it exits with
/// anything but 0 it has written nothing.
#[derive(clap::Args)]
pub struct Args {
    /// The common ancestor (git's `%O`)
    pub base: PathBuf,

    /// Our version, which the result replaces (`%A`)
    pub ours: PathBuf,

    /// Their version (`%B`)
    pub theirs: PathBuf,

    /// The length of git's conflict markers (`%L`); none are written, so it changes nothing
    pub marker_size: Option<u32>,

    /// The name of the file in messages (`%P`)
    #[arg(allow_hyphen_values = true)]
    pub path: Option<String>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-merge-driver";
    const EXAMPLES: &'static [&'static str] = &["tavern merge-driver base.md ours.md theirs.md"];
    // It prints no records, and git passes a person's variables on to it.
    const HAS_VARIABLES: bool = true;
    const FOR_AGENTS: bool = true;

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let name = self
            .path
            .clone()
            .unwrap_or_else(|| self.ours.display().to_string());
        let read = |path: &Path| read(path, &name);
        let (base, ours, theirs) = (read(&self.base)?, read(&self.ours)?, read(&self.theirs)?);
        // Leases are known on one machine only; the two histories may be of two machines.
        let merged = merge(&base, &ours, &theirs, &|_| false);
        if merged.has_markers {
            let message = format!("`{name}` can't be merged item by item");
            let hint = format!(
                "resolve it by hand: git checkout --conflict=merge -- {}",
                quoted(&name)
            );
            return Err(CliError::new(Exit::BoardHasErrors, message).with_hint(hint));
        }
        if merged.text != ours {
            replace(&self.ours, merged.text.as_bytes())?;
        }
        for conflict in &merged.conflicts {
            context.out.note(format!("{name}: {conflict}"));
        }
        if !merged.conflicts.is_empty() {
            context.out.note("to list the conflicts: tavern check");
        }
        Ok(Exit::Done)
    }
}

/// Reads one of git's files; messages call it `name`.
fn read(path: &Path, name: &str) -> Result<String, CliError> {
    let bytes = fs::read(path).map_err(|error| {
        let message = format!("can't read `{}`", path.display());
        let hint =
            "git calls this program; by hand: tavern merge-driver BASE OURS THEIRS".to_owned();
        CliError {
            causes: vec![error.to_string()],
            ..CliError::new(Exit::Failed, message)
        }
        .with_hint(hint)
    })?;
    String::from_utf8(bytes).map_err(|error| Error::not_text(Path::new(name), &error).into())
}
