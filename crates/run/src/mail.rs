//! The mailbox of a sandboxed run, by which Tavern's own programs inside request writes to the board, which is
//! read-only there.
//!
//! A letter is a command line in a file of its own, which is never changed. The supervisor runs it outside, as an
//! agent's program, so that the rules for agents apply. It puts the reply into a folder that is read-only inside.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::record::Metadata;
use super::sandbox_dir::Cell;
use super::workspace::Workspace;
use tavern_core::event::Kind;
use tavern_store::{Entry, replace_volatile};
use tavern_sys::clock::{self, Deadline};
use tavern_sys::file_watch::FileWatch;
use tavern_sys::files;
use tavern_sys::process::{Bell, Mark, ProgramExit, Ran, Spec, run_program};

/// The variable with the path of the sandbox's mailbox.
pub const MAILBOX: &str = "TAVERN_MAILBOX";

/// The folders of letters and of replies.
const OUT: &str = "out";
const IN: &str = "in";

/// The longest letter, and the most letters of a run.
const MOST_BYTES: u64 = 1 << 20;
const MOST_LETTERS: usize = 1000;

/// The most names read from the folder.
const MOST_NAMES: usize = 10 * MOST_LETTERS;

/// The time limit of a letter's command.
const LIMIT: Duration = Duration::from_secs(60);

/// Verbs that a sandboxed agent may request; all others need no writable board, or are for people.
const VERBS: [&str; 6] = ["add", "learn", "tell", "report", "renew", "commit"];

/// Flags of a report that need no access to work still in its cell.
const SAID: [&str; 4] = ["--failed", "--waiting", "--mode", "--step"];

/// A request of a program in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Letter {
    /// Its name without `tavern-`.
    pub verb: String,
    pub arguments: Vec<String>,
    /// Its whole standard input.
    pub input: String,
}

/// The reply to a letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub code: u8,
    pub stdout: String,
    pub stderr: String,
}

/// Returns true if a program in a sandbox must request this verb by letter.
pub fn is_sent(verb: &str) -> bool {
    VERBS.contains(&verb)
}

/// Puts `letter` into the mailbox at `mailbox`, and waits for the reply.
///
/// # Errors
/// It can't be written, or no reply comes.
pub fn send(mailbox: &Path, letter: &Letter) -> io::Result<Reply> {
    let name = format!("{}.json", uuid::Uuid::new_v4());
    let text = serde_json::to_vec(letter)?;
    replace_volatile(&mailbox.join(OUT).join(&name), &text)
        .map_err(|error| io::Error::other(error.to_string()))?;
    let answer = mailbox.join(IN).join(&name);
    let bell = Bell::new();
    let ringing = bell.clone();
    let _watch = FileWatch::new([mailbox.join(IN)], move |_| ringing.ring());
    let deadline = Deadline::after(2 * LIMIT);
    while !answer.exists() {
        if deadline.has_passed() {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no answer from outside of the sandbox",
            ));
        }
        // The watch may have failed, or begun after the reply came.
        bell.wait(Duration::from_millis(100));
    }
    Ok(serde_json::from_slice(&files::read(&answer)?)?)
}

/// Returns the folder for letters, which an agent's programs write to, and that for replies.
pub fn folders(cell: &Cell) -> [PathBuf; 2] {
    [OUT, IN].map(|name| cell.mail().join(name))
}

/// The supervisor's side of one run's mailbox.
pub struct Mailbox<'a> {
    workspace: &'a Workspace,
    run: &'a Metadata,
    cell: Cell,
    answered: usize,
    waiting: Vec<OsString>,
    _watch: Option<FileWatch>,
}

impl<'a> Mailbox<'a> {
    /// Opens it; `None` if the run is in no sandbox. `bell` rings when there may be a letter.
    pub fn open(workspace: &'a Workspace, run: &'a Metadata, bell: &Bell) -> Option<Mailbox<'a>> {
        let cell = Cell::of(workspace, &run.run);
        let [out, _] = folders(&cell);
        if !out.exists() {
            return None;
        }
        let bell = bell.clone();
        let watch = FileWatch::new([out], move |_| bell.ring()).ok();
        Some(Mailbox {
            workspace,
            run,
            cell,
            answered: 0,
            waiting: Vec::new(),
            _watch: watch,
        })
    }

    /// Answers one new letter only, so that the caller can check the run's limits before the next. Returns false if
    /// there is none.
    pub fn answer(&mut self) -> bool {
        if self.answered >= MOST_LETTERS {
            return false;
        }
        if self.waiting.is_empty() {
            self.waiting = self.unanswered();
        }
        let Some(name) = self.waiting.pop() else {
            return false;
        };
        self.answered += 1;
        let [letter, answer] = folders(&self.cell).map(|folder| folder.join(&name));
        let reply = match read(&letter) {
            Ok(letter) => self.done(&letter),
            Err(error) => refusal(&format!("invalid request: {error}")),
        };
        let text = serde_json::to_vec(&reply).expect("a reply is plain data");
        // Without a reply, the program gives up after a while.
        drop(replace_volatile(&answer, &text));
        true
    }

    /// Closes it when the run has ended, and logs the number of unanswered letters.
    pub fn close(self) {
        let left_out = self.unanswered().len();
        if left_out == 0 {
            return;
        }
        let why = if self.answered >= MOST_LETTERS {
            "over the limit of a run"
        } else {
            "it has ended"
        };
        let cause = Some(format!(
            "{left_out} requests of its mailbox were not answered: {why}"
        ));
        let Metadata {
            task, agent, run, ..
        } = self.run.clone();
        let (task, agent, run) = (Some(task), Some(agent), Some(run));
        // Ignored: the report of the run's end meets the same error.
        drop(self.workspace.board.note(Entry {
            task,
            agent,
            run,
            cause,
            ..Entry::new(Kind::Noted, clock::now())
        }));
    }

    /// Returns the letters without a reply, oldest last.
    fn unanswered(&self) -> Vec<OsString> {
        let [out, inside] = folders(&self.cell);
        let entries = fs::read_dir(&out)
            .into_iter()
            .flatten()
            .flatten()
            .take(MOST_NAMES);
        let names = entries.map(|entry| entry.file_name());
        let names = names.filter(|name| is_letter(name) && !inside.join(name).exists());
        let written = |name: &OsString| {
            fs::symlink_metadata(out.join(name))
                .and_then(|file| file.modified())
                .ok()
        };
        let mut names: Vec<(Option<SystemTime>, OsString)> =
            names.map(|name| (written(&name), name)).collect();
        names.sort_by(|one, other| other.cmp(one));
        names.into_iter().map(|(_, name)| name).collect()
    }

    fn done(&self, letter: &Letter) -> Reply {
        if let Some(why) = self.refused(letter) {
            return refusal(&why);
        }
        match self.carried_out(letter) {
            Ok(Some(ran)) => {
                let code = if let ProgramExit::Code(code) = ran.exit {
                    u8::try_from(code).unwrap_or(1)
                } else {
                    1
                };
                let [stdout, stderr] = [ran.stdout, ran.stderr]
                    .map(|text| String::from_utf8_lossy(&text).into_owned());
                Reply {
                    code,
                    stdout,
                    stderr,
                }
            }
            Ok(None) => refusal("it took too long"),
            Err(error) => refusal(&error.to_string()),
        }
    }

    /// Returns why the letter is refused, by the rules that the program itself lacks.
    fn refused(&self, letter: &Letter) -> Option<String> {
        let Letter {
            verb, arguments, ..
        } = letter;
        if !is_sent(verb) {
            return Some(format!("`tavern {verb}` is not available in a sandbox"));
        }
        let has = |flag: &str| {
            arguments
                .iter()
                .any(|word| word == flag || word.starts_with(&format!("{flag}=")))
        };
        if verb == "report" && !SAID.iter().any(|flag| has(flag)) {
            return Some(
                "its work is verified when its run is over: end your answer with DONE".to_owned(),
            );
        }
        // A path would be written with the rights of a process outside.
        let known: Vec<String> = self
            .workspace
            .board
            .queues()
            .unwrap_or_default()
            .into_iter()
            .map(|queue| queue.id)
            .collect();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let named = match word.split_once('=') {
                Some(("--queue", name)) => Some(name),
                _ if word == "--queue" => words.next().map(String::as_str),
                _ => None,
            };
            if let Some(name) = named.filter(|name| !known.iter().any(|queue| queue == name)) {
                return Some(format!("no queue `{name}` can be written from a sandbox"));
            }
        }
        None
    }

    fn carried_out(&self, letter: &Letter) -> io::Result<Option<Ran>> {
        let own = std::env::current_exe()?;
        let single = own.with_file_name(format!("tavern-{}", letter.verb));
        let (program, first) = if single.exists() {
            (single, None)
        } else {
            (own.with_file_name("tavern"), Some(letter.verb.clone()))
        };
        let mut spec = Spec::new(program, self.workspace.board.root());
        // Given here, so that the letter can't give it again.
        let dir = [OsString::from("--dir"), self.workspace.board.dir().into()];
        spec.args = first.into_iter().map(OsString::from).chain(dir).collect();
        spec.args
            .extend(letter.arguments.iter().map(OsString::from));
        spec.input = Some(letter.input.clone().into_bytes());
        // It identifies the run's program, independent of the letter.
        spec.mark = Some(Mark::run(
            self.workspace
                .board
                .run_dir(&self.run.run)
                .to_string_lossy(),
        ));
        let Metadata {
            task,
            token,
            agent,
            role,
            ..
        } = self.run;
        let held = [
            ("TAVERN_TASK", task.to_string()),
            ("TAVERN_TOKEN", token.to_string()),
            ("TAVERN_AGENT", agent.clone()),
            ("TAVERN_ROLE", role.clone()),
        ];
        spec.env = held
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        spec.env_remove = ["TAVERN_DIR", "TAVERN_TRUST", MAILBOX]
            .map(OsString::from)
            .to_vec();
        run_program(spec, LIMIT)
    }
}

fn refusal(why: &str) -> Reply {
    Reply {
        code: REFUSED,
        stdout: String::new(),
        stderr: format!("error: {why}\n"),
    }
}

/// The exit code of a refusal.
const REFUSED: u8 = 4;

/// Returns true if the name is one that [`send`] gives, so that no path comes from an agent.
fn is_letter(name: &OsStr) -> bool {
    let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
    stem.is_some_and(|stem| uuid::Uuid::try_parse(stem).is_ok_and(|id| id.to_string() == stem))
}

fn read(path: &Path) -> io::Result<Letter> {
    let file = files::open(path)?;
    if file.metadata()?.len() > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(serde_json::from_slice(&files::read_all(&file)?)?)
}
