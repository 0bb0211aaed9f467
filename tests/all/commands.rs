//! The manuals in `tests/commands` and the tour in `specs/tour.md`, run as they stand: what they show is what is printed.
//!
//! A fenced block of `console` holds commands after `$ ` (going on after `> `), each with what it prints. `? 4` right
//! under a command is its exit code, if it isn't 0. A block of `markdown NAME` is written to that file, and one of `sh` is
//! not run. All blocks of a page are one shell's, in a repository of one commit. What differs from run to run (times,
//! commits, fresh IDs, the folder) is not compared.
//!
//! `TAVERN_WRITE_MANUALS=1 cargo test --test all commands` writes into the pages what is printed now.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use snapbox::assert_data_eq;
use tavern::PROGRAMS;

use crate::support::Scratch;

/// What the pages call the folder of the repository.
const PLACE: &str = "/home/rosie/project";

/// A part of a page.
enum Part {
    /// Lines that are not run, with their ends.
    Text(String),
    /// A file to be written.
    File {
        name: String,
        content: String,
    },
    Command(Command),
}

struct Command {
    /// As it is typed, over several lines perhaps.
    typed: String,
    exit: i32,
    /// What it prints, with the last line's end.
    printed: String,
}

fn read(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = page.split_inclusive('\n');
    while let Some(line) = lines.next() {
        parts.push(Part::Text(line.to_owned()));
        let info = line.trim_end().trim_start_matches('`');
        let fence = &line.trim_end()[..line.trim_end().len() - info.len()];
        if fence.len() < 3 {
            continue;
        }
        let mut block: Vec<&str> = Vec::new();
        let end = loop {
            match lines.next() {
                Some(line) if line.trim_end() == fence => break line,
                Some(line) => block.push(line),
                None => panic!("a block is not closed: {info}"),
            }
        };
        match info.split_once(' ') {
            _ if info == "console" => parts.extend(commands(&block).into_iter().map(Part::Command)),
            Some(("markdown" | "yaml", name)) => {
                parts.push(Part::File {
                    name: name.to_owned(),
                    content: block.concat(),
                });
            }
            _ => parts.push(Part::Text(block.concat())),
        }
        parts.push(Part::Text(end.to_owned()));
    }
    parts
}

fn commands(block: &[&str]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for line in block {
        if let Some(typed) = line.strip_prefix("$ ") {
            commands.push(Command {
                typed: typed.trim_end().to_owned(),
                exit: 0,
                printed: String::new(),
            });
            continue;
        }
        let command = commands.last_mut().expect("a block begins with a command");
        match (line.strip_prefix("> "), line.strip_prefix("? ")) {
            (Some(more), _) if command.printed.is_empty() => {
                let _ = write!(command.typed, "\n{}", more.trim_end());
            }
            (_, Some(code)) if command.printed.is_empty() => {
                command.exit = code.trim().parse().expect("a number");
            }
            _ => command.printed.push_str(line),
        }
    }
    commands
}

fn show(parts: &[Part]) -> String {
    let mut page = String::new();
    for part in parts {
        match part {
            Part::Text(text) => page.push_str(text),
            Part::File { content, .. } => page.push_str(content),
            Part::Command(command) => {
                let exit = if command.exit == 0 {
                    String::new()
                } else {
                    format!("? {}\n", command.exit)
                };
                let _ = write!(
                    page,
                    "$ {}\n{exit}{}",
                    command.typed.replace('\n', "\n> "),
                    command.printed
                );
            }
        }
    }
    page
}

/// Runs all of a page in one shell; gives what each command printed, and its exit code.
fn run(parts: &[Part]) -> Vec<(String, i32)> {
    /// No program prints it: the ASCII record separator.
    const MARK: char = '\u{1e}';
    let mut script = String::from("exec 2>&1\n");
    for part in parts {
        match part {
            Part::Text(_) => {}
            Part::File { name, content } => {
                let _ = writeln!(
                    script,
                    "mkdir -p \"$(dirname '{name}')\"\ncat > '{name}' <<'END OF FILE'\n{content}END OF FILE"
                );
            }
            Part::Command(command) => {
                let _ = writeln!(script, "{}\nprintf '\\036%s\\036' $?", command.typed);
            }
        }
    }
    let scratch = Scratch::repository();
    let ran = scratch
        .command(Path::new("sh"))
        .args(&["-c", &script])
        .variable("USER", "rosie")
        .run();
    scratch.has_no_process();
    let work = scratch.folder().join("work");
    let printed = ran.stdout.replace(&*work.to_string_lossy(), PLACE);
    let pieces: Vec<&str> = printed.split(MARK).collect();
    let ended = |piece: &[&str]| {
        (
            piece[0].to_owned(),
            piece[1].parse().expect("the shell prints a number"),
        )
    };
    pieces.chunks_exact(2).map(ended).collect()
}

/// With what differs from run to run made the same.
fn normal(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '@' | '.');
    let mut out = String::new();
    // Columns are as wide as what is in them, and an age may fill the one that it is in.
    let text: String = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
        .collect();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(is_word) {
        let end = rest[start..]
            .find(|c| !is_word(c))
            .map_or(rest.len(), |length| start + length);
        out.push_str(&rest[..start]);
        let word = &rest[start..end];
        let is_number = word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let is_seconds = is_number
            && [" s\n", " s at ", " s …"]
                .iter()
                .any(|after| rest[end..].starts_with(after));
        out.push_str(&if is_seconds {
            "some".to_owned()
        } else {
            normal_word(word)
        });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn normal_word(word: &str) -> String {
    let core = word.trim_end_matches([':', '.']);
    let core = core.split_once('@').map_or(core, |(core, _)| core);
    let tail = &word[core.len()..];
    let shape: String = core
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let is_minted = core
        .strip_prefix(['T', 'L'])
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|rest| rest.len() == 4 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    let is_commit = (7..=40).contains(&core.len())
        && core.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_time = [
        "0000-00-00",
        "00-00",
        "00:00",
        "00:00:00",
        "00:00:00Z",
        "0000-00-00T00:00:00Z",
    ]
    .contains(&shape.as_str());
    let is_length = ["0ms", "00ms", "000ms", "0.0s", "0s", "00s"].contains(&shape.as_str());
    match () {
        () if is_minted => format!("T-mint{tail}"),
        // One commit in a thousand has no digit in its first seven.
        () if is_commit => format!("commit{tail}"),
        () if is_time => format!("time{tail}"),
        () if is_length => format!("length{tail}"),
        () => word.to_owned(),
    }
}

/// The page is as it was printed, but for what differs from run to run.
fn holds(page: &Path) {
    let text =
        fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let mut parts = read(&text);
    let ran = run(&parts);
    let commands = parts.iter_mut().filter_map(|part| {
        if let Part::Command(command) = part {
            Some(command)
        } else {
            None
        }
    });
    let commands: Vec<&mut Command> = commands.collect();
    assert_eq!(
        commands.len(),
        ran.len(),
        "the shell has not ended before the page: {}",
        page.display()
    );
    for (command, (printed, exit)) in commands.into_iter().zip(ran) {
        command.exit = exit;
        if normal(&command.printed) != normal(&printed) {
            command.printed = printed;
        }
    }
    if std::env::var_os("TAVERN_WRITE_MANUALS").is_some() {
        fs::write(page, show(&parts)).expect("the page can be written");
        return;
    }
    assert_data_eq!(show(&parts), snapbox::IntoData::into_data(text).raw());
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands")
}

#[test]
fn every_program_has_a_manual() {
    for program in PROGRAMS {
        let path = folder().join(format!("{}.md", program.name));
        let page =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(
            page.starts_with(&format!("# {}\n\n{}", program.name, program.job())),
            "{} begins with its job",
            program.name
        );
        for heading in ["## Examples\n", "## Exit codes\n"] {
            assert!(
                page.contains(heading),
                "{} has `{}`",
                program.name,
                heading.trim_end()
            );
        }
    }
}

#[test]
fn the_manuals_show_what_is_printed() {
    let mut pages: Vec<PathBuf> = fs::read_dir(folder())
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    pages.sort();
    assert!(pages.len() >= PROGRAMS.len());
    std::thread::scope(|scope| {
        let pages: Vec<_> = pages
            .iter()
            .map(|page| (page, scope.spawn(|| holds(page))))
            .collect();
        for (page, thread) in pages {
            assert!(thread.join().is_ok(), "{}", page.display());
        }
    });
}

/// Its blocks are run in one folder. `…` stands for anything on the rest of a line, a line `…` for any lines.
#[test]
fn the_tour_is_true() {
    let scratch = Scratch::empty();
    let mut folder = scratch.work();
    let is_command = |part| {
        if let Part::Command(command) = part {
            Some(command)
        } else {
            None
        }
    };
    let steps: Vec<Command> = read(include_str!("../../specs/tour.md"))
        .into_iter()
        .filter_map(is_command)
        .collect();
    assert!(steps.len() >= 10, "the tour is there");
    for Command { typed, printed, .. } in steps {
        if let Some(inner) = typed.strip_prefix("cd ") {
            folder = folder.join(inner);
            continue;
        }
        let ran = scratch
            .command(Path::new("sh"))
            .args(&["-c", &typed])
            .within(&folder)
            .run();
        // What is printed is compared with `/` for each backslash.
        let line = |line: &str| {
            if line == "…\n" {
                "...\n".to_owned()
            } else {
                line.replace('…', "[..]")
            }
        };
        let expected: String = printed
            .replace('\\', "/")
            .split_inclusive('\n')
            .map(line)
            .collect();
        assert_data_eq!(ran.stdout, snapbox::IntoData::into_data(expected));
    }
}

#[test]
fn what_differs_from_run_to_run_is_not_compared() {
    for (one, other) in [
        ("T-k3f9 merged as 1a2b3c4\n", "T-0000 merged as ffffff0\n"),
        ("T-1 merged as 1234567", "T-1 merged as bdaebbc"),
        (
            "3 of 3 completed, 0 left in 0 s\nsee .tavern/runs/T-k3f9@5",
            "3 of 3 completed, 0 left in 12 s\nsee .tavern/runs/T-0000@5",
        ),
        (
            "exited with code 1 in 0.0 s at 1a2b3c4, output",
            "exited with code 1 in 12.5 s at ffffff0, output",
        ),
        ("2026-11-22 10:00:00 Sam", "2030-01-02 23:59:59 Sam"),
        (
            "(completed: 2026-11-22T10:00:00Z, commit: 896644d)",
            "(completed: 2026-11-23T10:00:01Z, commit: 0000000)",
        ),
    ] {
        assert_eq!(normal(one), normal(other));
    }
    for (one, other) in [
        ("T-1", "T-2"),
        ("1 item", "2 items"),
        ("added", "decade"),
        ("exit 4", "exit 5"),
    ] {
        assert_ne!(normal(one), normal(other));
    }
}
