//! `tavern demo`: the whole way of three items, in a temporary repository.
//!
//! Nothing in it is staged: it types what a user would type, and shows what the programs print.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde::Serialize;
use tempfile::TempDir;

use crate::process::start::Output;
use crate::process::{Bell, Child, Spec, find_program, start};

use super::{CliError, Context, Exit, Format, Verb};

/// Show it all at work: three items, two agents, a temporary repository
///
/// No model, no key and no network: the items are worked by the shell runner. Nothing is left behind.
#[derive(clap::Args)]
pub struct Args {
    /// Leave the repository there, to look around in
    #[arg(long)]
    pub keep: bool,
}

/// One command that was typed.
#[derive(Serialize)]
struct Record<'a> {
    command: String,
    exit: Option<i32>,
    output: &'a str,
}

const README: &str = "# A project\n\nSoon with a greeting, and something to drink.\n";

impl Verb for Args {
    const NAME: &'static str = "tavern-demo";

    fn run(self, context: &Context) -> Result<Exit, CliError> {
        if find_program("git".as_ref()).is_none() {
            let hint = "install git, or put it on the PATH".to_owned();
            return Err(CliError::new(Exit::Failed, "`git` is not on the PATH").with_hint(hint));
        }
        context.interrupt()?;
        let folder = tempfile::Builder::new().prefix("tavern-demo-").tempdir().map_err(|error| failed(&error))?;
        let stage = DemoRepository::new(&folder, context).map_err(|error| failed(&error))?;
        let played = stage.play();
        let place = stage.project.display().to_string();
        drop(stage);
        if self.keep {
            let kept = folder.keep();
            context.out.text(format!("\nLook around: cd {place}\nTake it away: rm -rf {}", kept.display()))?;
        } else if let Err(error) = folder.close() {
            let hint = format!("remove it by hand: rm -rf {place}");
            return Err(CliError::from_error(Exit::Failed, &error).with_hint(hint));
        }
        let exit = played?;
        if exit == Exit::Done && !self.keep {
            context
                .out
                .text("\nNow in a repository of yours: tavern init. (`tavern demo --keep` leaves this one there.)")?;
        }
        Ok(exit)
    }
}

fn failed(error: &io::Error) -> CliError {
    CliError::from_error(Exit::Failed, error)
        .with_hint("see whether there is room in the folder for temporary files; TMPDIR names another".to_owned())
}

/// A repository of its own, and surroundings that nothing of the user's reaches into.
struct DemoRepository<'a> {
    context: &'a Context,
    home: PathBuf,
    project: PathBuf,
    tavern: PathBuf,
}

impl<'a> DemoRepository<'a> {
    fn new(folder: &TempDir, context: &'a Context) -> io::Result<DemoRepository<'a>> {
        let folder = folder.path().canonicalize()?;
        let (home, project) = (folder.join("home"), folder.join("project"));
        fs::create_dir(&home)?;
        fs::create_dir(&project)?;
        Ok(DemoRepository { context, home, project, tavern: std::env::current_exe()? })
    }

    fn play(&self) -> Result<Exit, CliError> {
        crate::store::replace(&self.project.join("README.md"), README.as_bytes())?;
        let steps: [(&str, &[&str]); 11] = [
            ("", &["git", "init", "--quiet", "--initial-branch=main"]),
            ("", &["git", "add", "README.md"]),
            ("", &["git", "commit", "--quiet", "--message=Begin"]),
            (
                "A board in a repository, with three items. One waits for another:",
                &["tavern", "init", "--demo", "--runner", "shell"],
            ),
            ("", &["sed", "-n", "/^## Pending/,/^## In/p", ".tavern/queues/main.md"]),
            (
                "Two agents. Each item gets a worktree and a branch; what passes its `done_when` is merged:",
                &["tavern", "drain", "--agents", "2"],
            ),
            ("What happened, from the event log:", &["tavern", "log"]),
            (
                "The integration branch, and what is in it:",
                &["git", "log", "--graph", "--oneline", "tavern/integration"],
            ),
            ("", &["git", "ls-tree", "--name-only", "tavern/integration"]),
            ("", &["git", "show", "tavern/integration:mug.txt"]),
            ("Your own checkout is as it was, but for the board:", &["git", "status", "--short", "--branch"]),
        ];
        for (heading, words) in steps {
            if !heading.is_empty() {
                self.context.out.text(format!("\n# {heading}"))?;
            }
            let exit = self.step(words)?;
            if exit != Exit::Done {
                return Ok(exit);
            }
        }
        Ok(Exit::Done)
    }

    /// Runs one command, and shows it with what it prints as it comes.
    fn step(&self, words: &[&str]) -> Result<Exit, CliError> {
        let out = &self.context.out;
        let command = words.join(" ");
        out.text(format!("$ {command}"))?;
        out.flush()?;
        let (child, lines, bell) = self.start(words)?;
        let interrupt = self.context.interrupt()?;
        let _subscription = interrupt.subscribe_for_now({
            let bell = bell.clone();
            move |_| bell.ring()
        });
        let mut output = String::new();
        let mut asked = None;
        let mut is_over = false;
        while !is_over {
            bell.wait(Duration::from_secs(60));
            // Looked at before the lines: what it printed before its end is there then.
            is_over = child.exit().is_some();
            if interrupt.urgency() > asked {
                asked = interrupt.urgency();
                child.signal(Signal::TERM);
            }
            let patience = if is_over { Duration::from_secs(2) } else { Duration::ZERO };
            while let Ok(line) = lines.recv_timeout(patience) {
                out.text(&line)?;
                output.push_str(&line);
                output.push('\n');
            }
            out.flush()?;
        }
        let exit = match child.exit() {
            Some(crate::process::Exit::Code(code)) => Some(code),
            _ => None,
        };
        if out.format() == Format::Json {
            out.record(&Record { command, exit, output: &output }, "")?;
        }
        match self.context.interrupted() {
            Some(interrupted) => Ok(interrupted),
            None if exit == Some(0) => Ok(Exit::Done),
            None => Ok(Exit::Failed),
        }
    }

    fn start(&self, words: &[&str]) -> io::Result<(Child, Receiver<String>, Bell)> {
        let program = if words[0] == "tavern" { self.tavern.clone() } else { PathBuf::from(words[0]) };
        let (reader, writer) = io::pipe()?;
        let mut spec = Spec::new(program, &self.project).args(&words[1..]);
        spec.env = self.surroundings();
        spec.env_remove = own_variables();
        // One pipe for both streams keeps their order.
        spec.stdout = Output::Pipe(writer.try_clone()?);
        spec.stderr = Output::Pipe(writer);
        let child = start(spec)?;
        let bell = Bell::new();
        child.wake(&bell);
        let (sender, lines) = channel();
        let ringer = bell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
                ringer.ring();
            }
        });
        Ok((child, lines, bell))
    }

    /// The demo is the same for everybody: no configuration, hook or signing key of the user's has a part in it.
    fn surroundings(&self) -> Vec<(OsString, OsString)> {
        let home: &Path = &self.home;
        let mut variables: Vec<(OsString, OsString)> = vec![("HOME".into(), home.into())];
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_PAGER", "cat"),
            ("GIT_AUTHOR_NAME", "Rosie"),
            ("GIT_AUTHOR_EMAIL", "rosie@example.org"),
            ("GIT_COMMITTER_NAME", "Rosie"),
            ("GIT_COMMITTER_EMAIL", "rosie@example.org"),
        ] {
            variables.push((name.into(), value.into()));
        }
        variables
    }
}

/// Run by an agent, the demo must not find that agent's board.
fn own_variables() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.to_string_lossy().starts_with("TAVERN_")).collect()
}
