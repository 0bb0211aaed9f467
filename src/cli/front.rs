//! `tavern`: runs every program as a verb, in its own process, and lists them all.
//!
//! A `tavern-VERB` on the PATH that is none of ours is run too, as git does.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command, FromArgMatches};
use serde::Serialize;

use crate::near::nearest;

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::program::{PROGRAMS, Program, usage};
use super::shared::Shared;

/// One line of the list.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    job: String,
}

/// The whole of `tavern`'s `main`.
pub fn main() -> ExitCode {
    start(&std::env::args_os().skip(1).collect::<Vec<_>>()).into()
}

fn start(arguments: &[OsString]) -> Exit {
    let line = std::iter::once(OsString::from("tavern")).chain(arguments.iter().cloned());
    let matches = match command().try_get_matches_from(line) {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    let Some((verb, rest)) = matches.subcommand() else {
        return match Shared::from_arg_matches(&matches) {
            Ok(shared) => list(&Context::new(shared)),
            Err(error) => usage(&error),
        };
    };
    let rest: Vec<OsString> = rest.get_many::<OsString>("").into_iter().flatten().cloned().collect();
    if verb == "help" {
        return help(rest.first().map(OsString::as_os_str));
    }
    // Flags may stand before the verb: they are the verb's.
    let flags = arguments.len() - rest.len() - 1;
    let handed: Vec<OsString> = arguments[..flags].iter().cloned().chain(rest).collect();
    match Program::named(verb) {
        Some(program) => program.start(&format!("tavern {verb}"), handed),
        None => foreign(verb, handed),
    }
}

fn command() -> Command {
    let list: String = PROGRAMS.iter().map(|program| format!("  {:<14}{}\n", program.verb(), program.job())).collect();
    Shared::augment_args(Command::new("tavern"))
        .about("A file-based blackboard for coding agents: a Markdown queue, worked to merged commits")
        .long_about(None)
        .version(env!("CARGO_PKG_VERSION"))
        .override_usage("tavern [OPTIONS] VERB [ARGUMENTS]...")
        .help_template("{about}\n\nUsage: {usage}\n\n{before-help}{options}\n\nMore about one: tavern help VERB\n")
        .before_help(format!("Verbs, each a program of its own too (tavern-VERB):\n{list}"))
        .allow_external_subcommands(true)
        .disable_help_subcommand(true)
}

fn list(context: &Context) -> Exit {
    let printed = PROGRAMS.iter().try_for_each(|program| {
        let entry = Entry { name: program.name, job: program.job() };
        let text = format!("{:<20}{}", entry.name, entry.job);
        context.out.record(&entry, text)
    });
    end(printed.and_then(|()| context.out.flush()).map(|()| Exit::Done))
}

fn help(verb: Option<&OsStr>) -> Exit {
    let Some(verb) = verb else {
        return start(&["--help".into()]);
    };
    let verb = verb.to_string_lossy();
    match Program::named(verb.strip_prefix("tavern-").unwrap_or(&verb)) {
        Some(program) => program.start(&format!("tavern {}", program.verb()), vec!["--help".into()]),
        None => end(Err(unknown(&verb))),
    }
}

/// Becomes the `tavern-VERB` on the PATH.
#[expect(clippy::disallowed_methods, reason = "it takes the place of this program: no child that someone must end")]
fn foreign(verb: &str, arguments: Vec<OsString>) -> Exit {
    let Some(path) = on_path(&format!("tavern-{verb}")) else {
        return end(Err(unknown(verb)));
    };
    let error = std::process::Command::new(&path).args(arguments).exec();
    let message = format!("can't run `{}`", path.display());
    end(Err(CliError { causes: vec![error.to_string()], ..CliError::new(Exit::Failed, message) }
        .with_hint(format!("see whether it may be run: ls -l {}", path.display()))))
}

fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn unknown(verb: &str) -> CliError {
    let hint = match nearest(verb, PROGRAMS.iter().map(Program::verb)) {
        Some(guess) => format!("did you mean `tavern {guess}`?"),
        None => "list them all with `tavern`".to_owned(),
    };
    CliError::new(Exit::Usage, format!("no verb `{verb}`")).with_hint(hint)
}

fn end(result: Result<Exit, CliError>) -> Exit {
    result.unwrap_or_else(|error| {
        error.print();
        error.exit
    })
}
