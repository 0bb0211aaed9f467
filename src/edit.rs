//! `tavern-edit`: opens a queue or an item in an editor, and merges the result when the editor ends.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, IsTerminal};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;

use tavern_core::document::parse;
use tavern_core::task::{TaskId, Timestamp};
use tavern_git::Repository;
use tavern_store::config::Config;
use tavern_store::{Board, Edited, Entry, Error, NamedItem, Queue, SetAside, replace};
use tavern_sys::clock;
use tavern_sys::process::{foreground, quoted};

use super::check::{Fault, errors_if};
use super::log::sentence;
use super::{CliError, Context, Exit, ItemName, Verb, hints};

mod set;

/// The prefix of the line above an error.
const MARK: &str = "<!-- tavern-edit: ";

/// After this many failed rounds the copy is kept, and no editor is opened again.
const MOST_ROUNDS: usize = 10;

/// Open a queue or an item in your editor, and merge the saved text
///
/// The editor is $VISUAL, $EDITOR, git's core.editor or vi. It works on a copy: agents go on meanwhile, and all changes are
/// merged when it ends. If there is an error, it is opened again, with the error above its line.
#[derive(clap::Args)]
pub struct Args {
    /// A queue, by name or path; or an item, by its ID or its line, such as TODO.md:12
    #[arg(value_name = "QUEUE|ID", default_value = "main")]
    pub what: String,

    /// Set keys of the item, without an editor: `priority=1`, `after=T-2`; an empty value unsets the key
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., conflicts_with_all = ["accept", "discard", "texts", "show", "restore"])]
    pub set: Vec<String>,

    /// Accept a save that was set aside as the new text of its queue, without an editor
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "discard"])]
    pub accept: Option<PathBuf>,

    /// Discard a save that was set aside
    #[arg(long, value_name = "FILE", conflicts_with = "what")]
    pub discard: Option<PathBuf>,

    /// List the earlier texts of the queue, newest first
    #[arg(long, conflicts_with_all = ["accept", "discard", "show", "restore"])]
    pub texts: bool,

    /// Print one of these texts
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["accept", "discard", "restore"])]
    pub show: Option<String>,

    /// Restore one of these texts, except for items that are held or have ended since
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["accept", "discard"])]
    pub restore: Option<String>,
}

#[derive(Serialize)]
struct TextRecord<'a> {
    queue: &'a str,
    text: &'a str,
    time: Timestamp,
    /// The writer: `tavern`, or `hand` (an editor, a sync tool, git).
    by: &'a str,
    lines: usize,
    added: usize,
    removed: usize,
}

#[derive(Serialize)]
struct Record<'a> {
    queue: &'a str,
    /// Whether the queue differs from before.
    changed: bool,
    /// The logged events of the edit.
    events: &'a [Entry],
    conflicts: Vec<String>,
}

impl Verb for Args {
    const NAME: &'static str = "tavern-edit";
    const EXAMPLES: &'static [&'static str] = &[
        "tavern edit T-3",
        "tavern edit T-3 --set priority=1 due=2026-12-24",
        "tavern edit main --texts",
    ];

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        let board = context.board()?;
        // An old text that an editor saved may lack the item to edit.
        board.settle()?;
        if let Some(file) = self.accept.as_ref().or(self.discard.as_ref()) {
            let aside = aside(context, &board, file)?;
            let edited = self
                .accept
                .as_ref()
                .map(|_| board.accept(&aside))
                .transpose()?;
            board.discard(&aside)?;
            let words = format!("the save is discarded; {} is unchanged", aside.queue.id);
            return told(context, &aside.queue.id, edited.as_ref(), &words);
        }
        if self.texts || self.show.is_some() || self.restore.is_some() {
            return self.past(context, &board);
        }
        if !self.set.is_empty() {
            let name: ItemName = self.what.parse().map_err(|_| {
                let hint = "name the item: tavern edit ID --set KEY=VALUE";
                CliError::usage(format!("`{}` is no item", self.what), hint)
            })?;
            let item = context.item(&board, &name)?;
            let queue = board.named(&item)?.queue;
            let edited = set::set(&board, &queue, &item, &self.set)?;
            return told(context, &queue.id, Some(&edited), "nothing was changed");
        }
        let copy = Copy::of(context, &board, &self.what)?;
        let editor = editor(&board)?;
        // Ctrl-C belongs to the editor: the user must not lose typed text.
        context.interrupt()?;
        let merge = |typed: String| board.edit(&copy.queue, &copy.loaded, &copy.whole(&typed));
        let edited = copy
            .typed(context, &board, &editor)
            .and_then(|typed| Ok(typed.map(merge).transpose()?));
        let queue = copy.queue.id.clone();
        told(
            context,
            &queue,
            edited.map_err(|error| copy.kept(error))?.as_ref(),
            "nothing was changed",
        )
    }
}

impl Args {
    /// Lists earlier texts of the queue, or shows or restores one.
    fn past(&self, context: &Context, board: &Board) -> Result<Exit, CliError> {
        let queue = board.queue(&self.what, &context.here())?;
        let Some(name) = self.show.as_ref().or(self.restore.as_ref()) else {
            return list(context, board, &queue);
        };
        let Some(text) = board.past_text(&queue, name) else {
            return Err(CliError::usage(
                format!("no text `{name}` of {} is kept", queue.id),
                format!("list them: tavern edit {} --texts", quoted(&queue.id)),
            ));
        };
        if self.show.is_some() {
            let record = json!({ "queue": queue.id, "text": name, "content": text });
            context.out.record(&record, text.trim_end_matches('\n'))?;
            return Ok(Exit::Done);
        }
        let restored = board.restore(&queue, &text)?;
        told(context, &queue.id, Some(&restored), "nothing was changed")
    }
}

/// Lists earlier texts of the queue.
fn list(context: &Context, board: &Board, queue: &Queue) -> Result<Exit, CliError> {
    for past in board.past_texts(queue) {
        let record = TextRecord {
            queue: &queue.id,
            text: &past.name,
            time: past.time,
            by: if past.is_save { "hand" } else { "tavern" },
            lines: past.lines,
            added: past.added,
            removed: past.removed,
        };
        let how = if past.is_save {
            "saved by hand"
        } else {
            "written by Tavern"
        };
        let line = format!(
            "{}  {}  {} lines, +{} -{}, {how}",
            past.name,
            clock::dated(past.time),
            past.lines,
            past.added,
            past.removed,
        );
        context.out.record(&record, line)?;
    }
    Ok(Exit::Done)
}

/// Returns the save that was set aside in `file`.
fn aside(context: &Context, board: &Board, file: &Path) -> Result<SetAside, CliError> {
    let path = fs::canonicalize(context.here().join(file)).ok();
    let found = board
        .set_aside()
        .into_iter()
        .find(|aside| fs::canonicalize(&aside.path).ok() == path);
    let hint = "list them: tavern check";
    found.ok_or_else(|| {
        CliError::usage(
            format!("`{}` is not a save that was set aside", file.display()),
            hint,
        )
    })
}

/// Prints the result for `queue`; prints `words` if it did not change.
fn told(
    context: &Context,
    queue: &str,
    edited: Option<&Edited>,
    words: &str,
) -> Result<Exit, CliError> {
    let Some(edited) = edited else {
        let record = Record {
            queue,
            changed: false,
            events: &[],
            conflicts: Vec::new(),
        };
        context.out.record(&record, words)?;
        return Ok(Exit::Done);
    };
    let record = Record {
        queue,
        changed: edited.is_changed,
        events: &edited.entries,
        conflicts: edited.conflicts.iter().map(ToString::to_string).collect(),
    };
    let words: Vec<String> = edited.entries.iter().map(sentence).collect();
    let text = match (words.is_empty(), edited.is_changed) {
        (false, _) => words.join("\n"),
        (true, true) => format!("the text of {queue} was changed"),
        (true, false) => {
            "nothing was changed: others made the same change, or hold the item".to_owned()
        }
    };
    context.out.record(&record, text)?;
    edited
        .conflicts
        .iter()
        .for_each(|settled| context.out.note(hints::settled(settled)));
    Ok(Exit::Done)
}

/// The copy that the editor opens.
struct Copy {
    queue: Queue,
    /// The whole queue as it was read.
    loaded: String,
    /// The range of the queue that is edited.
    part: Range<usize>,
    folder: TempDir,
    path: PathBuf,
}

impl Copy {
    fn of(context: &Context, board: &Board, what: &str) -> Result<Copy, CliError> {
        let queue = board.queue(what, &context.here());
        let name: Option<ItemName> = if queue.is_err() {
            what.parse().ok()
        } else {
            None
        };
        let item = name
            .as_ref()
            .map(|name| context.item(board, name))
            .transpose()?;
        let queue_of = |item: &NamedItem| match item {
            NamedItem::Id(task) => Ok(board.live_task(task)?.queue),
            NamedItem::At { queue, .. } => Ok(queue.clone()),
        };
        let queue = item
            .as_ref()
            .map_or(queue, queue_of)
            .map_err(|error| match error {
                Error::NoQueue(name) => {
                    let hint = "list the items: tavern list; the queues: tavern queue";
                    CliError::usage(format!("no queue, file or item `{name}`"), hint)
                }
                error => error.into(),
            })?;
        let loaded = board.read(&queue)?.content.into_string();
        let (name, part) = match item {
            None => (
                queue
                    .path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                0..loaded.len(),
            ),
            Some(item) => {
                let (document, _) = parse(&loaded);
                let part = item
                    .index_in(&queue, &document)
                    .map(|at| document.item(at).span.clone());
                (
                    item.id()
                        .map_or_else(|| "item".to_owned(), TaskId::to_string),
                    part.ok_or_else(|| item.lost())?,
                )
            }
        };
        let own = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new()
            .prefix("tavern-edit-")
            .permissions(own)
            .tempdir()?;
        let path = folder.path().join(format!("{name}.md"));
        replace(&path, &loaded.as_bytes()[part.clone()])?;
        Ok(Copy {
            queue,
            loaded,
            part,
            folder,
            path,
        })
    }

    fn own(&self) -> &str {
        &self.loaded[self.part.clone()]
    }

    /// Returns the whole queue, with the edited part replaced.
    fn whole(&self, typed: &str) -> String {
        let (before, after) = (
            &self.loaded[..self.part.start],
            &self.loaded[self.part.end..],
        );
        let end = if after.is_empty() || typed.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        format!("{before}{typed}{end}{after}")
    }

    /// Returns the edited text once it has no new errors; `None` if it did not change.
    fn typed(
        &self,
        context: &Context,
        board: &Board,
        editor: &str,
    ) -> Result<Option<String>, CliError> {
        let mut faulty = None;
        for _ in 0..MOST_ROUNDS {
            self.edit(editor)?;
            if context.interrupted() == Some(Exit::Terminated) {
                return Err(CliError::new(
                    Exit::Terminated,
                    "ended while the editor was open: nothing was changed",
                ));
            }
            let typed = fs::read_to_string(&self.path).map_err(|error| {
                CliError::from_error(Exit::Failed, &Error::io("read", &self.path)(error))
            })?;
            let typed = if faulty.is_some() {
                without_marks(&typed)
            } else {
                typed
            };
            if typed == self.own() {
                return Ok(None);
            }
            if typed.trim().is_empty() && !self.own().trim().is_empty() {
                context.out.note("the copy is empty and was ignored");
                return Ok(None);
            }
            let faults = self.faults(context, board, &typed)?;
            if faults.is_empty() {
                return Ok(Some(typed));
            }
            if faulty.as_ref() == Some(&typed) {
                replace(&self.path, typed.as_bytes())?;
                let messages: Vec<&str> = faults
                    .iter()
                    .map(|fault| fault.1.message.as_str())
                    .collect();
                let message = format!(
                    "nothing was changed: these errors are still there: {}",
                    messages.join("; ")
                );
                return Err(CliError::new(Exit::Refused, message));
            }
            for (line, fault) in &faults {
                context.out.note(format!("line {line}: {}", fault.message));
            }
            replace(&self.path, with_marks(&typed, &faults).as_bytes())?;
            faulty = Some(typed);
        }
        Err(CliError::new(
            Exit::Refused,
            "nothing was changed: there was another error each time",
        ))
    }

    fn edit(&self, editor: &str) -> Result<(), CliError> {
        let why = match foreground(editor, &self.path) {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Err(CliError::new(
            Exit::Failed,
            format!("the editor `{editor}` failed ({why}): nothing was changed"),
        ))
    }

    /// Returns errors that the queue did not have before, with their lines in the copy.
    fn faults(
        &self,
        context: &Context,
        board: &Board,
        typed: &str,
    ) -> Result<Vec<(usize, Fault)>, CliError> {
        let (here, config) = (context.here(), Config::load(board.dir()).ok());
        let errors = |text: &str| errors_if(board, &[(&self.queue, text)], config.as_ref(), &here);
        let mut known: HashMap<(&str, String), usize> = HashMap::new();
        for fault in errors(&self.loaded)? {
            *known.entry(mistake(&fault)).or_default() += 1;
        }
        let mut faults = errors(&self.whole(typed))?;
        faults.retain(|fault| match known.get_mut(&mistake(fault)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        });
        let above = self.loaded[..self.part.start].matches('\n').count();
        let last = typed.split_inclusive('\n').count().max(1);
        let line = |fault: &Fault| fault.line.unwrap_or(1).saturating_sub(above).clamp(1, last);
        Ok(faults
            .into_iter()
            .map(|fault| (line(&fault), fault))
            .collect())
    }

    /// Adds the place of the kept copy to the error, if the copy was edited.
    fn kept(self, error: CliError) -> CliError {
        if fs::read(&self.path).is_ok_and(|left| left == self.own().as_bytes()) {
            return error;
        }
        // The folder is not removed at the end.
        let _ = self.folder.keep();
        let place = format!("your copy is kept: {}", self.path.display());
        let hint: Vec<String> = error.hint.iter().cloned().chain([place]).collect();
        error.with_hint(hint.join("\n"))
    }
}

/// Returns code and message of a fault without its place, to compare faults.
fn mistake(fault: &Fault) -> (&'static str, String) {
    let message = fault
        .message
        .strip_prefix("no agent can take this")
        .and_then(|rest| rest.split_once(": "));
    (
        fault.code,
        message.map_or_else(|| fault.message.clone(), |(_, lack)| lack.to_owned()),
    )
}

fn with_marks(typed: &str, faults: &[(usize, Fault)]) -> String {
    let mut text = String::new();
    for (number, line) in (1..).zip(typed.split_inclusive('\n')) {
        for (_, fault) in faults.iter().filter(|fault| fault.0 == number) {
            let hint = fault
                .hint
                .as_ref()
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            let words = format!("{}{hint}", fault.message)
                .replace("--", "- -")
                .replace('\n', " ");
            text.push_str(&format!("{MARK}error: {words} -->\n"));
        }
        text.push_str(line);
    }
    text
}

fn without_marks(typed: &str) -> String {
    typed
        .split_inclusive('\n')
        .filter(|line| !line.starts_with(MARK))
        .collect()
}

/// Returns the command line of the editor.
fn editor(board: &Board) -> Result<String, CliError> {
    let is_set = |line: &String| !line.trim().is_empty();
    let variable = |name: &str| std::env::var(name).ok().filter(is_set);
    let of_git = || {
        Repository::discover(board.root())
            .ok()?
            .setting("core.editor")
            .ok()?
            .filter(is_set)
    };
    if let Some(line) = variable("VISUAL")
        .or_else(|| variable("EDITOR"))
        .or_else(of_git)
    {
        return Ok(line);
    }
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        return Ok("vi".to_owned());
    }
    let hint = "name an editor that needs no terminal: EDITOR=… tavern edit; or edit the queue's file directly";
    Err(CliError::usage(
        "there is no terminal to open an editor in",
        hint,
    ))
}
