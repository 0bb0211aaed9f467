//! Shell completion for `tavern` and each `tavern-VERB`: verbs, flags, items, queues, roles and runners of
//! the board.
//!
//! The shell runs `tavern` each time, with a variable set; nothing is written.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use clap::builder::ValueHint;
use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use super::format;
use super::program::{PROGRAMS, Program};
use tavern_store::Board;
use tavern_store::config::Config;

/// The variable with which a shell asks for completions; its value names the shell.
const VARIABLE: &str = "TAVERN_COMPLETE";

/// Answers a shell that asks for completions of `line`, where `front` builds the command of `tavern`. Returns
/// false if no shell asks.
///
/// # Errors
/// Fails if the answer can't be written or the shell is unknown.
pub(super) fn answer(front: impl Fn() -> Command, line: &[OsString]) -> Result<bool, clap::Error> {
    let typed = line.iter().skip_while(|word| *word != "--").nth(1);
    let called = typed
        .and_then(|word| Path::new(word).file_name())
        .unwrap_or_default();
    let command = || {
        let program = PROGRAMS.iter().find(|program| program.name == called);
        offering(program.map_or_else(&front, Program::command))
    };
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .try_complete(line, env::current_dir().ok().as_deref())
}

/// Writes the registration script of `shell`.
pub(super) fn register(shell: Shell, page: &mut Vec<u8>) -> io::Result<()> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&shell.to_string())
        .expect("both lists have the same shells");
    let names = PROGRAMS
        .iter()
        .map(|program| program.name)
        .chain(["tavern"]);
    names
        .into_iter()
        .try_for_each(|name| shell.write_registration(VARIABLE, name, name, "tavern", page))
}

/// Adds completions for values that are on the board, in subcommands too.
fn offering(command: Command) -> Command {
    command.mut_subcommands(offering).mut_args(|arg| {
        let is_new = arg.get_id() == "id";
        let is_path = arg.get_value_hint() != ValueHint::Unknown;
        if is_new || is_path {
            arg
        } else {
            of_board(arg)
        }
    })
}

fn of_board(arg: Arg) -> Arg {
    let names = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string);
    let names = names
        .reduce(|all, more| all + "|" + &more)
        .unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    let kinds: Vec<&Kind> = KINDS
        .iter()
        .filter(|(name, _)| names.split('|').any(|one| one == *name))
        .collect();
    if kinds.is_empty() {
        arg
    } else {
        arg.add(ArgValueCompleter::new(Offer(kinds)))
    }
}

/// The value name in the help, and its completions.
type Kind = (&'static str, fn(&OsStr) -> Vec<CompletionCandidate>);

const KINDS: [Kind; 5] = [
    ("ID", items),
    ("QUEUE", queues),
    ("FILE", queues),
    ("ROLE", roles),
    ("RUNNER", runners),
];

struct Offer(Vec<&'static Kind>);

impl ValueCompleter for Offer {
    fn complete(&self, typed: &OsStr) -> Vec<CompletionCandidate> {
        let is_begun = |one: &CompletionCandidate| {
            let value = one.get_value();
            value
                .as_encoded_bytes()
                .starts_with(typed.as_encoded_bytes())
                && is_plain(value)
        };
        self.0
            .iter()
            .flat_map(|(_, all)| all(typed))
            .filter(is_begun)
            .collect()
    }
}

/// Returns true if the value is safe unquoted: a shell inserts it as it is, and the text is untrusted.
fn is_plain(value: &OsStr) -> bool {
    value.to_str().is_some_and(|value| {
        value
            .chars()
            .all(|c| c.is_alphanumeric() || "-_./@:".contains(c))
    })
}

fn board() -> Option<Board> {
    let board = match env::var_os("TAVERN_DIR") {
        Some(dir) => Board::open(Path::new(&dir)),
        None => Board::find(&env::current_dir().ok()?),
    };
    board.ok().map(Board::dry)
}

fn items(_: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = Vec::new();
    let Some(board) = board() else { return all };
    for queue in board.queues().unwrap_or_default() {
        let Ok(text) = board.read(&queue) else {
            continue;
        };
        let (document, _) = text.content.parse();
        all.extend(document.items().iter().filter_map(|item| {
            let title = format::title(document.title(item)).into_owned();
            Some(CompletionCandidate::new(item.id.as_ref()?.as_str()).help(Some(title.into())))
        }));
    }
    all
}

/// Returns the queues of the board, and task files elsewhere.
fn queues(typed: &OsStr) -> Vec<CompletionCandidate> {
    let own = board()
        .and_then(|board| board.queues().ok())
        .unwrap_or_default();
    let own = own
        .into_iter()
        .map(|queue| CompletionCandidate::new(queue.id));
    let is_list = |path: &Path| path.extension().is_some_and(|extension| extension == "md");
    let mut all: Vec<CompletionCandidate> = own
        .chain(PathCompleter::any().filter(is_list).complete(typed))
        .collect();
    // A task file here is in both lists.
    all.sort_by(|one, other| one.get_value().cmp(other.get_value()));
    all.dedup_by(|one, other| one.get_value() == other.get_value());
    all
}

fn config() -> Config {
    board()
        .and_then(|board| Config::load(board.dir()).ok())
        .unwrap_or_default()
}

fn roles(_: &OsStr) -> Vec<CompletionCandidate> {
    config()
        .roles
        .into_keys()
        .map(CompletionCandidate::new)
        .collect()
}

fn runners(_: &OsStr) -> Vec<CompletionCandidate> {
    config()
        .runners
        .into_keys()
        .map(CompletionCandidate::new)
        .collect()
}
