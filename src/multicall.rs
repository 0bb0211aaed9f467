//! `tavern`: runs every program as a verb, in its own process, and lists them all. Called through a link
//! named `tavern-VERB`, it acts as that program.
//!
//! As in git, an unknown verb runs `tavern-VERB` from the PATH.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, Args, Command, FromArgMatches, value_parser};
use clap_complete::{ArgValueCandidates, CompletionCandidate, Shell};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde::Serialize;

use tavern_core::suggestion::nearest;
use tavern_sys::process::{keep_inherited, quoted};

use super::alias::{ALIASES, Alias, canonical};
use super::complete;
use super::context::Context;
use super::demo;
use super::error::CliError;
use super::exit::Exit;
use super::format;
use super::hints;
use super::output::ROOM;
use super::pause::{Pause, Resume};
use super::program::{PROGRAMS, Program, SMALL, called_verb, usage};
use super::shared::{Format, Shared};

/// One line of the list.
#[derive(Serialize)]
struct ListedProgram {
    name: &'static str,
    job: String,
}

/// The `main` of `tavern`.
pub fn main() -> ExitCode {
    keep_inherited();
    let line: Vec<OsString> = std::env::args_os().collect();
    if let Some(program) = line
        .first()
        .and_then(|called| Program::named(called_verb(called)?))
    {
        return program.start(program.name, &line[1..]).into();
    }
    match complete::answer(whole, &line) {
        Ok(false) => start(line.get(1..).unwrap_or_default()).into(),
        Ok(true) => Exit::Done.into(),
        Err(error) => usage(&error).into(),
    }
}

fn start(arguments: &[OsString]) -> Exit {
    let line = std::iter::once(OsString::from("tavern")).chain(arguments.iter().cloned());
    let matches = match command().try_get_matches_from(line.clone()) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return page()
                .try_get_matches_from(line)
                .map_or_else(|error| usage(&error), |_| Exit::Done);
        }
        Err(error) => return usage(&error),
    };
    let Some((verb, rest)) = matches.subcommand() else {
        return match Shared::from_arg_matches(&matches) {
            Ok(shared) => list(&Context::new(shared, &matches)),
            Err(error) => usage(&error),
        };
    };
    let rest: Vec<OsString> = rest
        .get_many::<OsString>("")
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    if let Some(about) = about_programs(verb) {
        return tell(about, rest);
    }
    // Flags before the verb belong to the verb.
    let flags = arguments.len() - rest.len() - 1;
    let handed: Vec<OsString> = arguments[..flags].iter().cloned().chain(rest).collect();
    if let Some(alias) = Alias::named(verb) {
        let asks = |word: &OsString| word == "--help" || word == "-h";
        if handed.iter().any(asks) {
            return end(print(|page| page.write_all(alias.help().as_bytes())));
        }
        if let Some(lacking) = alias.lacking(&handed) {
            return end(Err(lacking));
        }
        let called = format!("tavern {}", alias.program().verb());
        let lines = alias.of_each_item(handed).into_iter();
        let ends = lines.map(|line| alias.program().start(&called, &alias.arguments(line)));
        return ends.fold(
            Exit::Done,
            |end, next| if end == Exit::Done { next } else { end },
        );
    }
    match named(verb) {
        Some(program) => program.start(&format!("tavern {verb}"), &handed),
        None => foreign(verb, handed),
    }
}

/// Verbs that are no programs of their own.
static OTHERS: [Program; 3] = [
    Program::of::<Pause>(),
    Program::of::<Resume>(),
    Program::of::<demo::Args>(),
];

/// Returns the program that runs a verb.
fn named(verb: &str) -> Option<&'static Program> {
    let verb = canonical(verb);
    Program::named(verb).or_else(|| OTHERS.iter().find(|program| program.verb() == verb))
}

/// All verbs, grouped by purpose.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["init", "add", "plan", "drain", "agent", "demo"]),
    (
        "Look",
        &[
            "status",
            "stats",
            "list",
            "show",
            "next",
            "top",
            "serve",
            "diff",
            "log",
            "runs",
            "report-html",
            "ask",
        ],
    ),
    (
        "Steer",
        &[
            "approve", "reject", "answer", "retry", "reopen", "cancel", "pause", "resume", "tell",
            "release", "edit", "set", "undo", "redo", "merge",
        ],
    ),
    ("In scripts", &["claim", "spawn", "report", "renew", "reap"]),
    (
        "Upkeep",
        &[
            "check",
            "trust",
            "queue",
            "commit",
            "learn",
            "schedule",
            "watch",
            "notify",
            "merge-driver",
        ],
    ),
    ("About Tavern", &ABOUT),
];

/// The verbs that people type on the first day.
const FIRST: [&str; 12] = [
    "init", "add", "drain", "agent", "status", "top", "diff", "log", "approve", "answer", "retry",
    "undo",
];

/// Returns the verbs for which `is_wanted`, with their jobs, under their groups' headings.
fn grouped(is_wanted: &dyn Fn(&str) -> bool) -> String {
    let width = format::columns_of(io::stdout()).unwrap_or(usize::MAX);
    let mut text = String::new();
    for (heading, verbs) in GROUPS {
        let wanted: Vec<&str> = verbs
            .iter()
            .copied()
            .filter(|verb| is_wanted(verb))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let rows = wanted.iter().map(|verb| row(verb, &job(verb), width));
        text += &format!("{heading}\n{}\n", rows.collect::<String>());
    }
    text
}

/// Returns a row of a verb and its job, wrapped within its column.
fn row(verb: &str, job: &str, width: usize) -> String {
    let (mut row, mut length) = (format!("  {verb:<12}"), 0);
    for word in job.split(' ') {
        let blank = usize::from(length > 0);
        if length > 0 && VERB_COLUMN + length + blank + word.chars().count() > width {
            row += &format!("\n{:VERB_COLUMN$}", "");
            length = 0;
        }
        row += " ";
        row += word;
        length += 1 + word.chars().count();
    }
    row + "\n"
}

/// The width of the column of verbs.
const VERB_COLUMN: usize = 14;

/// Returns the verb's job, in one line.
fn job(verb: &str) -> String {
    let of_program = named(verb).map(Program::job);
    let of_alias = || Alias::named(verb).map(|alias| alias.job.to_owned());
    let of_others = || about_programs(verb)?.get_about().map(ToString::to_string);
    of_program
        .or_else(of_alias)
        .or_else(of_others)
        .unwrap_or_default()
}

/// Returns the command for parsing: any verb, with its own arguments.
fn command() -> Command {
    Shared::augment_args(Command::new("tavern"))
        .about(
            "A file-based blackboard for coding agents: a Markdown queue, worked to merged commits",
        )
        .long_about(None)
        .version(env!("CARGO_PKG_VERSION"))
        .override_usage("tavern [OPTIONS] VERB [ARGUMENTS]...")
        .allow_external_subcommands(true)
        .disable_help_subcommand(true)
}

/// Returns the command for the help: all verbs, by purpose.
fn page() -> Command {
    let verbs = grouped(&|_| true);
    command().help_template(format!("{{about}}\n\nUsage: {{usage}}\n\n{verbs}Most verbs are programs, too: tavern-VERB\n\n{{options}}\n"))
}

/// Returns the command for completion: all verbs with all flags.
fn whole() -> Command {
    let verbs = PROGRAMS
        .iter()
        .chain(&OTHERS)
        .map(|program| program.command().name(program.verb()));
    let aliases = ALIASES
        .iter()
        .map(|alias| alias.program().command().name(alias.verb));
    let others = ABOUT.iter().filter_map(|verb| about_programs(verb));
    command().subcommands(verbs.chain(aliases).chain(others))
}

/// The verbs about other verbs.
const ABOUT: [&str; 4] = ["help", "manual", "completions", "links"];

fn about_programs(verb: &str) -> Option<Command> {
    let of_verb = || {
        Arg::new("verb")
            .value_name("VERB")
            .help("The verb")
            .value_parser(value_parser!(OsString))
            .add(ArgValueCandidates::new(verbs))
    };
    let command = Command::new("tavern").disable_version_flag(true);
    Some(match verb {
        "help" => command
            .name("help")
            .about("Explain a verb, or list them all")
            .arg(of_verb()),
        "manual" => command
            .name("manual")
            .about("Show the man page of a verb, or of `tavern` itself")
            .after_help(
                "Without a terminal it is printed as troff source: tavern manual VERB > VERB.1",
            )
            .arg(of_verb()),
        "completions" => command
            .name("completions")
            .about("Print a shell's completion script for verbs, flags, and names on the board")
            .after_help("In ~/.bashrc: eval \"$(tavern completions bash)\"")
            .arg(
                Arg::new("shell")
                    .value_name("SHELL")
                    .required(true)
                    .value_parser(value_parser!(Shell))
                    .help("The shell"),
            ),
        "links" => command
            .name("links")
            .about("Make each verb a program of its own in a folder: links from tavern-VERB to this one")
            .arg(
                Arg::new("folder")
                    .value_name("DIR")
                    .required(true)
                    .value_parser(value_parser!(PathBuf))
                    .help("The folder, such as ~/.local/bin"),
            ),
        _ => return None,
    })
}

fn verbs() -> Vec<CompletionCandidate> {
    all_verbs().map(CompletionCandidate::new).collect()
}

/// Returns all verbs of `tavern` except external programs.
fn all_verbs() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied())
}

fn is_verb(word: &str) -> bool {
    named(word).is_some() || Alias::named(word).is_some() || ABOUT.contains(&word)
}

/// Runs one of the verbs in `ABOUT`.
fn tell(about: Command, rest: Vec<OsString>) -> Exit {
    let verb = about.get_name().to_owned();
    let called = format!("tavern {verb}");
    let matches = match about
        .bin_name(&called)
        .try_get_matches_from([OsString::from(called)].into_iter().chain(rest))
    {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    if verb == "completions" {
        let shell = *matches.get_one::<Shell>("shell").expect("it is required");
        return end(print(|page| complete::register(shell, page)));
    }
    if verb == "links" {
        let folder: &PathBuf = matches.get_one("folder").expect("it is required");
        return end(links(folder));
    }
    let of = matches
        .get_one::<OsString>("verb")
        .map(|verb| verb.to_string_lossy());
    let of = of
        .as_deref()
        .map(|verb| verb.strip_prefix("tavern-").unwrap_or(verb));
    match (of, verb.as_str()) {
        (None, "help") => start(&["--help".into()]),
        (Some(of), "help") if is_verb(of) => start(&[of.into(), "--help".into()]),
        (None, _) => {
            let verbs = all_verbs().map(|verb| Command::new(verb).about(job(verb)));
            end(manual(command().subcommands(verbs)))
        }
        (Some(of), _) => match named(of).or_else(|| Alias::named(of).map(Alias::program)) {
            Some(program) => end(manual(program.command())),
            None => end(Err(unknown(of))),
        },
    }
}

/// Links `tavern-VERB` in `folder` to this program for each verb. Files that are not links are kept: claim,
/// spawn, report and reap are programs of their own.
#[expect(
    clippy::disallowed_methods,
    reason = "it installs programs where the user says, outside of any board"
)]
fn links(folder: &Path) -> Result<Exit, CliError> {
    let own = std::env::current_exe()?;
    let is_here = own
        .parent()
        .is_some_and(|parent| folder.canonicalize().is_ok_and(|folder| folder == parent));
    let small = own.with_file_name(SMALL[0].name);
    let has_small = std::fs::symlink_metadata(&small).is_ok_and(|file| file.is_file());
    let mut made = 0_usize;
    for program in PROGRAMS {
        let link = folder.join(program.name);
        let is_small = has_small && SMALL.iter().any(|small| small.name == program.name);
        let file = if is_small { &small } else { &own };
        let target = match file.file_name() {
            Some(name) if is_here => Path::new(name),
            _ => file,
        };
        match std::fs::read_link(&link) {
            Ok(old) if old == target => continue,
            Ok(_) => std::fs::remove_file(&link)?,
            Err(_) if link.exists() => continue,
            Err(_) => {}
        }
        std::os::unix::fs::symlink(target, &link).map_err(|error| CliError {
            causes: vec![error.to_string()],
            ..CliError::new(
                Exit::Failed,
                format!("can't create the link `{}`", link.display()),
            )
        })?;
        made += 1;
    }
    print(|page| writeln!(page, "{made} links made in {}", folder.display()))
}

/// Prints a man page; on a terminal, `man` shows it if installed.
#[expect(
    clippy::disallowed_methods,
    reason = "it takes the place of this program: no child that someone must end"
)]
fn manual(command: Command) -> Result<Exit, CliError> {
    let mut page = Vec::new();
    man_page(command, &mut page)?;
    if let Some(man) = on_path("man").filter(|_| io::stdout().is_terminal() && page.len() < ROOM) {
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(&page)?;
        drop(writer);
        // If `man` can't be run, the page is printed.
        drop(
            std::process::Command::new(man)
                .args(["-l", "-"])
                .stdin(reader)
                .exec(),
        );
    }
    print(|out| out.write_all(&page))
}

/// Writes the man page, with the values of flags in its synopsis.
fn man_page(mut command: Command, out: &mut Vec<u8>) -> io::Result<()> {
    command.build();
    let mut synopsis = Roff::default();
    synopsis.control("SH", ["SYNOPSIS"]);
    let flag = |arg: &Arg| {
        if arg.is_positional() {
            arg.to_string()
        } else {
            format!("[{arg}]")
        }
    };
    let flags = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .map(flag);
    let verb = command
        .has_subcommands()
        .then(|| "VERB [ARGUMENTS]...".to_owned());
    let flags: Vec<String> = flags.chain(verb).collect();
    synopsis.text([
        bold(command.get_name()),
        roman(format!(" {}", flags.join(" "))),
    ]);
    let man = Man::new(command);
    man.render_title(out)?;
    man.render_name_section(out)?;
    synopsis.to_writer(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    man.render_subcommands_section(out)?;
    man.render_version_section(out)
}

fn list(context: &Context) -> Exit {
    if context.out.format() == Format::Text {
        let verbs = grouped(&|verb| FIRST.contains(&verb));
        let text = format!("{verbs}All verbs: tavern help; one of them: tavern help VERB");
        let told = context.out.text(text).and_then(|()| context.out.flush());
        return end(told.map(|()| Exit::Done));
    }
    let printed = PROGRAMS.iter().try_for_each(|program| {
        let listed = ListedProgram {
            name: program.name,
            job: program.job(),
        };
        context.out.row(
            &listed,
            &format!("tavern {:<13}", program.verb()),
            &listed.job,
            "",
        )
    });
    end(printed
        .and_then(|()| context.out.flush())
        .map(|()| Exit::Done))
}

/// Writes to memory first: the generators can't handle a closed pipe.
fn print(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<Exit, CliError> {
    let mut page = Vec::new();
    write(&mut page)
        .and_then(|()| io::stdout().lock().write_all(&page))
        .and_then(|()| io::stdout().flush())
        .map(|()| Exit::Done)
        .map_err(|error| CliError::output(&error))
}

/// Replaces this process with the `tavern-VERB` on the PATH.
#[expect(
    clippy::disallowed_methods,
    reason = "it takes the place of this program: no child that someone must end"
)]
fn foreign(verb: &str, arguments: Vec<OsString>) -> Exit {
    let Some(path) = on_path(&format!("tavern-{verb}")) else {
        return end(Err(unknown(verb)));
    };
    let error = std::process::Command::new(&path).args(arguments).exec();
    let message = format!("can't run `{}`", path.display());
    end(Err(CliError {
        causes: vec![error.to_string()],
        ..CliError::new(Exit::Failed, message)
    }
    .with_hint(format!(
        "see whether it may be run: ls -l {}",
        quoted(&path)
    ))))
}

fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

fn unknown(verb: &str) -> CliError {
    let hint = match (hints::for_verb(verb), nearest(verb, all_verbs())) {
        (Some(hint), _) => hint.to_owned(),
        (None, Some(guess)) => format!("did you mean `tavern {guess}`?"),
        (None, None) => "list them all with `tavern`".to_owned(),
    };
    CliError::usage(format!("no verb `{verb}`"), hint)
}

fn end(result: Result<Exit, CliError>) -> Exit {
    result.unwrap_or_else(|error| {
        error.print();
        error.exit
    })
}
