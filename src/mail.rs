//! Runs commands of a sandboxed program outside the sandbox, where the board can be written.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::ArgMatches;

use tavern_run::mail::{Letter, MAILBOX, Reply, is_sent, send};

use super::error::CliError;
use super::exit::Exit;

/// Runs `verb` outside if this is a sandbox in which it can't run, and prints its output here. Otherwise
/// returns `None`.
pub(super) fn sent(verb: &str, arguments: &[OsString], matches: &ArgMatches) -> Option<Exit> {
    let mailbox = std::env::var_os(MAILBOX).filter(|_| is_sent(verb))?;
    Some(
        reply(Path::new(&mailbox), verb, arguments, matches).unwrap_or_else(|error| {
            let error = CliError::from_error(Exit::Failed, &error);
            error.print();
            error.exit
        }),
    )
}

fn reply(
    mailbox: &Path,
    verb: &str,
    arguments: &[OsString],
    matches: &ArgMatches,
) -> io::Result<Exit> {
    let input = if reads(verb, matches) {
        io::read_to_string(io::stdin())?
    } else {
        String::new()
    };
    let arguments = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let Reply {
        code,
        stdout,
        stderr,
    } = send(
        mailbox,
        &Letter {
            verb: verb.to_owned(),
            arguments,
            input,
        },
    )?;
    io::stdout().write_all(stdout.as_bytes())?;
    io::stderr().write_all(stderr.as_bytes())?;
    Ok(Exit::ALL
        .into_iter()
        .find(|exit| exit.code() == code)
        .unwrap_or(Exit::Failed))
}

/// Returns true if the text comes from standard input, not from the arguments.
fn reads(verb: &str, matches: &ArgMatches) -> bool {
    let place = match verb {
        "add" => "title",
        "learn" if matches.subcommand_name().is_some() => return false,
        "learn" | "tell" => "text",
        _ => return false,
    };
    let words: Vec<&String> = matches
        .try_get_many(place)
        .ok()
        .flatten()
        .into_iter()
        .flatten()
        .collect();
    words.is_empty() || words == ["-"]
}
