//! The table of programs, and how one is run.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::context::Context;
use super::error::CliError;
use super::exit::Exit;
use super::output::no_variables;
use super::shared::{Format, Shared};
use super::verb::Verb;
use super::{
    add, agent, ask, check, claim, commit, diff, drain, edit, help, hints, init, learn, log, mail,
    merge, merge_driver, notify, plan, queue, reap, release, renew, report, report_html, runs,
    schedule, serve, spawn, status, tell, top, trust, undo, watch,
};
use tavern_sys::process::keep_inherited;

/// A job, as a program of its own and as a verb of `tavern`.
pub struct Program {
    /// The program's name, such as `tavern-check`.
    pub name: &'static str,
    /// Command lines for its help.
    pub(super) examples: &'static [&'static str],
    augment: fn(Command) -> Command,
    run: fn(&ArgMatches, &Context) -> Result<Exit, CliError>,
}

/// All programs, in the order in which users meet them. A test checks the table against the spec.
pub const PROGRAMS: &[Program] = &[
    Program::of::<init::Args>(),
    Program::of::<add::Args>(),
    Program::of::<plan::Args>(),
    Program::of::<schedule::Args>(),
    Program::of::<agent::Args>(),
    Program::of::<drain::Args>(),
    Program::of::<status::Args>(),
    Program::of::<top::Args>(),
    Program::of::<serve::Args>(),
    Program::of::<diff::Args>(),
    Program::of::<log::Args>(),
    Program::of::<runs::Args>(),
    Program::of::<report_html::Args>(),
    Program::of::<tell::Args>(),
    Program::of::<learn::Args>(),
    Program::of::<ask::Args>(),
    Program::of::<watch::Args>(),
    Program::of::<notify::Args>(),
    Program::of::<claim::Args>(),
    Program::of::<spawn::Args>(),
    Program::of::<report::Args>(),
    Program::of::<merge::Args>(),
    Program::of::<renew::Args>(),
    Program::of::<release::Args>(),
    Program::of::<queue::Args>(),
    Program::of::<edit::Args>(),
    Program::of::<undo::Args>(),
    Program::of::<reap::Args>(),
    Program::of::<check::Args>(),
    Program::of::<trust::Args>(),
    Program::of::<commit::Args>(),
    Program::of::<merge_driver::Args>(),
];

/// The programs that the file `tavern-claim` holds, by its links' names.
pub const SMALL: [Program; 3] = [
    Program::of::<claim::Args>(),
    Program::of::<report::Args>(),
    Program::of::<reap::Args>(),
];

/// The `main` of `tavern-claim`.
pub fn small() -> ExitCode {
    keep_inherited();
    let line: Vec<OsString> = std::env::args_os().collect();
    let called = line.first().and_then(|called| called_verb(called));
    let is_called = |program: &&Program| called == Some(program.verb());
    let program = SMALL.iter().find(is_called).unwrap_or(&SMALL[0]);
    program
        .start(program.name, line.get(1..).unwrap_or_default())
        .into()
}

/// Returns the verb of a program called through a link named `tavern-VERB`.
pub(super) fn called_verb(called: &OsStr) -> Option<&str> {
    let name = Path::new(called).file_name()?.to_str()?;
    name.strip_prefix("tavern-")
}

impl Program {
    pub(super) const fn of<V: Verb>() -> Program {
        Program {
            name: V::NAME,
            examples: V::EXAMPLES,
            augment: V::augment_args,
            run: run::<V>,
        }
    }

    /// Returns the program for `tavern VERB`.
    pub fn named(verb: &str) -> Option<&'static Program> {
        PROGRAMS.iter().find(|program| program.verb() == verb)
    }

    /// Returns the verb, such as `check` of `tavern-check`.
    pub fn verb(&self) -> &'static str {
        self.name.strip_prefix("tavern-").unwrap_or(self.name)
    }

    /// Returns a one-line description.
    pub fn job(&self) -> String {
        self.command()
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// Returns its flags and help, for parsing, manuals and completions.
    pub fn command(&self) -> Command {
        // The verb's arguments come last, so that its own description becomes the program's help.
        let shared = Shared::augment_args(Command::new(self.name)).next_help_heading(None);
        (self.augment)(shared).version(env!("CARGO_PKG_VERSION"))
    }

    /// Runs the program with `arguments`, without the program's name; `called` is the name that the user typed.
    pub fn start(&self, called: &str, arguments: &[OsString]) -> Exit {
        let command = self.command().bin_name(called);
        let arguments = &by_position(&command, arguments);
        let line = std::iter::once(OsString::from(called)).chain(arguments.iter().cloned());
        match command.try_get_matches_from(line.clone()) {
            Ok(matches) => {
                mail::sent(self.verb(), arguments, &matches).unwrap_or_else(|| self.end(&matches))
            }
            Err(error) if error.kind() == ErrorKind::DisplayHelp => {
                let command = help::laid_out(self.command(), self.examples).bin_name(called);
                usage(
                    &command
                        .try_get_matches_from(line)
                        .expect_err("it asks for help"),
                )
            }
            Err(mut error) => {
                hints::usage(&mut error, &self.command().bin_name(called));
                usage(&error)
            }
        }
    }

    fn end(&self, matches: &ArgMatches) -> Exit {
        let shared = match Shared::from_arg_matches(matches) {
            Ok(shared) => shared,
            Err(error) => return usage(&error),
        };
        let context = Context::new(shared, matches);
        let result = (self.run)(matches, &context);
        let result = result.and_then(|exit| match context.out.flush() {
            // After a signal the program ends with its exit code, even if the closed terminal takes no output.
            Err(error) if ![Exit::Interrupted, Exit::Terminated].contains(&exit) => Err(error),
            _ => Ok(exit),
        });
        result.unwrap_or_else(|error| {
            // Output from before the error still belongs to the reader.
            let _ = context.out.flush();
            error.print();
            error.exit
        })
    }
}

/// Returns the arguments of a verb that takes queues by position, without `--queue` before their names.
fn by_position(command: &Command, arguments: &[OsString]) -> Vec<OsString> {
    let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"--queue");
    if !arguments.iter().any(is_flag) {
        return arguments.to_vec();
    }
    let takes_queues = |argument: &Arg| {
        let names = argument.get_value_names().into_iter().flatten();
        argument.is_positional()
            && names
                .into_iter()
                .any(|name| name.contains("QUEUE") || name == "FILE")
    };
    let has_flag = |argument: &Arg| argument.get_long() == Some("queue");
    let is_wanted =
        command.get_arguments().any(takes_queues) && !command.get_arguments().any(has_flag);
    let words = arguments
        .iter()
        .filter(|word| !is_wanted || *word != "--queue");
    let named = |word: &OsString| Some(word.to_str()?.strip_prefix("--queue=")?.into());
    words
        .map(|word| {
            named(word)
                .filter(|_| is_wanted)
                .unwrap_or_else(|| word.clone())
        })
        .collect()
}

fn run<V: Verb>(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    match V::from_arg_matches(matches) {
        Ok(_) if context.out.format() == Format::Env && !V::HAS_VARIABLES => Err(no_variables()),
        Ok(verb) => {
            let run = if V::FOR_AGENTS {
                None
            } else {
                context.own_run()
            };
            let may = run.map_or(Ok(()), |run| verb.within(&run));
            may.and_then(|()| verb.run(context))
        }
        Err(error) => Ok(usage(&error)),
    }
}

/// Prints clap's message: a usage error, or the requested help or version.
pub(super) fn usage(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        let text = error.render().to_string();
        CliError::new(Exit::Usage, text.trim_start_matches("error: ").trim_end()).print();
        return Exit::Usage;
    }
    match error.print().and_then(|()| io::stdout().flush()) {
        Ok(()) => Exit::Done,
        Err(unwritten) => {
            let failed = CliError::output(&unwritten);
            failed.print();
            failed.exit
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_examples_that_it_understands() {
        for program in PROGRAMS {
            assert!(!program.examples.is_empty(), "{}", program.name);
            for line in program.examples {
                let (_, rest) = line.split_once("tavern ").expect("it calls Tavern");
                let rest = rest.split([')', '|']).next().unwrap_or_default();
                let words = words(&rest.replace("$$", "1"));
                assert_eq!(words.first().map(String::as_str), Some(program.verb()));
                let parsed = program.command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    /// Returns the words of a command line, in which `"` quotes.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            1 => vec![part.to_owned()],
            _ => part.split_whitespace().map(str::to_owned).collect(),
        });
        words.collect()
    }
}
