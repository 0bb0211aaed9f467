//! `tavern`: runs every program as a verb, in its own process, and lists them all.
//!
//! A `tavern-VERB` on the PATH that is none of ours is run too, as git does.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, Args, Command, FromArgMatches};
use clap_complete::Shell;
use serde::Serialize;

use crate::near::nearest;
use crate::process::{keep_inherited, quoted};

use super::context::Context;
use super::demo;
use super::error::CliError;
use super::exit::Exit;
use super::program::{PROGRAMS, Program, usage};
use super::shared::Shared;

/// One line of the list.
#[derive(Serialize)]
struct ListedProgram {
    name: &'static str,
    job: String,
}

/// The whole of `tavern`'s `main`.
pub fn main() -> ExitCode {
    keep_inherited();
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
            Ok(shared) => list(&Context::new(shared, &matches)),
            Err(error) => usage(&error),
        };
    };
    let rest: Vec<OsString> = rest.get_many::<OsString>("").into_iter().flatten().cloned().collect();
    match verb {
        "help" => return help(rest.first().map(OsString::as_os_str)),
        "manual" => return manual(rest.first().map(OsString::as_os_str)),
        "completions" => return completions(rest),
        _ => {}
    }
    // Flags may stand before the verb: they are the verb's.
    let flags = arguments.len() - rest.len() - 1;
    let handed: Vec<OsString> = arguments[..flags].iter().cloned().chain(rest).collect();
    match Program::named(verb) {
        Some(program) => program.start(&format!("tavern {verb}"), &handed),
        None if verb == "demo" => Program::of::<demo::Args>().start("tavern demo", &handed),
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
        .help_template("{about}\n\nUsage: {usage}\n\n{before-help}{options}{after-help}\n")
        .after_help(
            "More:\n  tavern demo                see it all at work, in a temporary repository\n  \
             tavern help VERB           all about one\n  tavern manual VERB         the same as a man page: \
             tavern manual VERB | man -l -\n  tavern completions SHELL   for bash, zsh, fish and others: \
             eval \"$(tavern completions bash)\"",
        )
        .before_help(format!("Verbs, each a program of its own too (tavern-VERB):\n{list}"))
        .allow_external_subcommands(true)
        .disable_help_subcommand(true)
}

fn list(context: &Context) -> Exit {
    let printed = PROGRAMS.iter().try_for_each(|program| {
        let listed = ListedProgram { name: program.name, job: program.job() };
        context.out.row(&listed, &format!("tavern {:<13}", program.verb()), &listed.job, "")
    });
    end(printed.and_then(|()| context.out.flush()).map(|()| Exit::Done))
}

fn help(verb: Option<&OsStr>) -> Exit {
    let Some(verb) = verb else {
        return start(&["--help".into()]);
    };
    let verb = verb.to_string_lossy();
    match Program::named(verb.strip_prefix("tavern-").unwrap_or(&verb)) {
        Some(program) => program.start(&format!("tavern {}", program.verb()), &["--help".into()]),
        None if verb == "demo" => start(&["demo".into(), "--help".into()]),
        None => end(Err(unknown(&verb))),
    }
}

/// Prints a man page.
fn manual(verb: Option<&OsStr>) -> Exit {
    let verb = verb.unwrap_or_default().to_string_lossy();
    let Some(program) = Program::named(verb.strip_prefix("tavern-").unwrap_or(&verb)) else {
        return end(Err(unknown(&verb)));
    };
    end(print(|page| clap_mangen::Man::new(program.command()).render(page)))
}

/// Prints what makes a shell complete `tavern VERB` and each `tavern-VERB`.
fn completions(rest: Vec<OsString>) -> Exit {
    let shell = Arg::new("shell").required(true).value_parser(clap::value_parser!(Shell)).help("The shell");
    let usage_of_this = Command::new("tavern completions").arg(shell);
    let line = std::iter::once(OsString::from("tavern completions")).chain(rest);
    let shell = match usage_of_this.try_get_matches_from(line) {
        Ok(matches) => *matches.get_one::<Shell>("shell").expect("it is required"),
        Err(error) => return usage(&error),
    };
    let demo = Program::of::<demo::Args>();
    let verbs = PROGRAMS.iter().chain([&demo]).map(|program| program.command().name(program.verb()));
    let mut front = Shared::augment_args(Command::new("tavern")).subcommands(verbs);
    end(print(|page| {
        clap_complete::generate(shell, &mut front, "tavern", page);
        for program in PROGRAMS {
            clap_complete::generate(shell, &mut program.command(), program.name, page);
        }
        Ok(())
    }))
}

/// Writes to memory first: the generators can't be told that a reader has gone.
fn print(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<Exit, CliError> {
    let mut page = Vec::new();
    write(&mut page)
        .and_then(|()| io::stdout().lock().write_all(&page))
        .map(|()| Exit::Done)
        .map_err(|error| CliError::output(&error))
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
        .with_hint(format!("see whether it may be run: ls -l {}", quoted(&path)))))
}

fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn unknown(verb: &str) -> CliError {
    let hint = match nearest(verb, PROGRAMS.iter().map(Program::verb).chain(["demo"])) {
        Some(guess) => format!("did you mean `tavern {guess}`?"),
        None => "list them all with `tavern`".to_owned(),
    };
    CliError::usage(format!("no verb `{verb}`"), hint)
}

fn end(result: Result<Exit, CliError>) -> Exit {
    result.unwrap_or_else(|error| {
        error.print();
        error.exit
    })
}
