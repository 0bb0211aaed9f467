//! `tavern-trust`: allow untrusted changes from git to run.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use tavern_run::{Trust, UntrustedUnit, Workspace};
use tavern_store::config::{FILE, without_comments};
use tavern_sys::process::quoted;

use super::flags::DryRun;
use super::format::Painted;
use super::unified::{Names, painted, unified};
use super::{CliError, Context, Exit, Verb, format};

/// Trust changes from git, so that they may run in this clone
///
/// Shows the untrusted changes of a clone, a pull or a switch: settings, templates and open items, each whole or as a diff
/// against the trusted text. On a terminal it then asks; elsewhere pass --yes. Until then they are not run, and no agent gets
/// them. Your own changes in this clone are trusted.
#[derive(clap::Args)]
pub struct Args {
    /// Task files besides the board's queues
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// Trust all of them without asking
    #[arg(long, short = 'y')]
    pub yes: bool,

    /// Revoke the trust in all changes from git
    #[arg(long, conflicts_with_all = ["yes", "dry_run", "files"])]
    pub revoke: bool,

    #[command(flatten)]
    pub plan: DryRun,
}

#[derive(Serialize)]
struct Record<'a> {
    /// The file's path from the root of the repository.
    file: &'a Path,
    line: Option<usize>,
    /// The item's ID or title, or the file's name in the board.
    name: &'a str,
    text: &'a str,
    /// The text that was trusted last.
    was: Option<&'a str>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-trust";
    const EXAMPLES: &'static [&'static str] = &["tavern trust", "tavern trust --yes TODO.md"];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board_or_place(&self.files)?;
        let mut workspace = context.light_site(board)?;
        if self.revoke {
            let words = if Trust::of(&workspace).forget()? {
                "are no longer trusted"
            } else {
                "were not trusted"
            };
            context.out.note(format!("changes from git {words}"));
            return Ok(Exit::Done);
        }
        workspace.named = context.files(&workspace.board, &self.files)?;
        let unknown = Trust::of(&workspace).unknown();
        if unknown.is_empty() {
            let files = if self.files.is_empty() {
                "; for a task file: tavern trust FILE"
            } else {
                ""
            };
            context.out.note(format!("no untrusted changes{files}"));
            return Ok(Exit::Done);
        }
        let count = shown(context, &workspace, &unknown)?;
        if !self.yes && (self.plan.dry_run || !is_wanted(&count)?) {
            let files: String = self
                .files
                .iter()
                .map(|file| format!(" {}", quoted(file)))
                .collect();
            return Err(CliError::refused(
                format!("not trusted: {count}"),
                format!("if all of them may run: tavern trust --yes{files}"),
            ));
        }
        if self.plan.dry_run {
            tell(context, &count);
        } else {
            allow(context, &workspace, unknown)?;
        }
        Ok(Exit::Done)
    }
}

/// Shows untrusted parts and asks to trust them, if a person can answer. Returns whether all of them are trusted now.
pub(super) fn offer(context: &Context, workspace: &Workspace) -> Result<bool, CliError> {
    if !can_ask() || !io::stdout().is_terminal() {
        return Ok(false);
    }
    let unknown = Trust::of(workspace).unknown();
    if !is_wanted(&shown(context, workspace, &unknown)?)? {
        return Ok(false);
    }
    allow(context, workspace, unknown)?;
    Ok(true)
}

/// Shows all untrusted parts, and returns their number in words.
fn shown(
    context: &Context,
    workspace: &Workspace,
    unknown: &[UntrustedUnit],
) -> Result<String, CliError> {
    for one in unknown {
        show(context, workspace.board.root(), one)?;
    }
    context.out.flush()?;
    Ok(format::count(unknown.len(), "thing"))
}

fn allow(
    context: &Context,
    workspace: &Workspace,
    unknown: Vec<UntrustedUnit>,
) -> Result<(), CliError> {
    let count = format::count(unknown.len(), "thing");
    // Settle first, so that later removals are noticed.
    workspace.board.settle()?;
    Trust::of(workspace).allow(unknown)?;
    tell(context, &count);
    Ok(())
}

fn tell(context: &Context, count: &str) {
    context.out.note(format!("trusted from now on: {count}"));
}

fn show(context: &Context, root: &Path, one: &UntrustedUnit) -> Result<(), CliError> {
    let UntrustedUnit {
        part,
        place,
        line,
        was,
        ..
    } = one;
    let file = place.strip_prefix(root).unwrap_or(place);
    let record = Record {
        file,
        line: *line,
        name: &part.name,
        text: &part.text,
        was: was.as_deref(),
    };
    let line = line.filter(|_| !file.ends_with(&part.name));
    let place = line.map_or_else(
        || file.display().to_string(),
        |line| format!("{}:{line}: {}", file.display(), part.name),
    );
    let text = match was {
        Some(was) => {
            let difference = unified(
                Names {
                    old: "trusted",
                    new: "brought",
                },
                was,
                &part.text,
            );
            painted(&format::without_gaps(&difference))
        }
        None => {
            // Agents read any other file whole, comments included.
            let settings = Some(&part.text)
                .filter(|_| part.name == FILE)
                .and_then(|text| without_comments(text));
            let text = settings.unwrap_or_else(|| part.text.clone());
            Painted::whole(&format::without_gaps(&format::indented(text.lines())))
        }
    };
    let heading = Painted::from(format!("{}\n", format::words(&place)));
    context
        .out
        .record(&record, heading.followed_by(&text).trimmed())
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn is_wanted(count: &str) -> Result<bool, CliError> {
    if !can_ask() {
        return Ok(false);
    }
    let mut terminal = anstream::stderr().lock();
    write!(
        terminal,
        "Trust all of this ({count})? It may be run on this machine as you. [y/N] "
    )?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
