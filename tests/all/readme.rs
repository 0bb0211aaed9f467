//! The console blocks of README.md, run as they stand, one after the other in one folder. `$` begins a command and `>`
//! goes on with it. What follows is its output, in which `…` stands for anything on the rest of a line and a line `…`
//! for any lines.

use std::path::PathBuf;

use super::support::{Scratch, program};

/// One command of a block, and what it should print.
struct Step {
    command: String,
    output: Vec<String>,
}

#[test]
fn the_tour_is_true() {
    let readme = include_str!("../../README.md");
    let steps = steps(readme);
    assert!(steps.len() >= 10, "the tour is there");
    let scratch = Scratch::empty();
    let programs = program("tavern").parent().expect("it is in a folder").to_owned();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("PATH is set"));
    let mut folder = scratch.work();
    for step in steps {
        if let Some(inner) = step.command.strip_prefix("cd ") {
            folder = folder.join(inner);
            continue;
        }
        let shell = scratch.command(&PathBuf::from("sh")).args(&["-c", &step.command]);
        let ran = shell.variable("PATH", &path).within(&folder).run();
        let printed: Vec<&str> = ran.stdout.lines().collect();
        let expected: Vec<&str> = step.output.iter().map(String::as_str).collect();
        assert!(matches(&expected, &printed), "$ {}\n{ran}\nthe README has\n{}", step.command, expected.join("\n"));
    }
}

fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_inside = false;
    for line in readme.lines() {
        match line {
            "```console" => is_inside = true,
            "```" if is_inside => is_inside = false,
            _ if !is_inside => {}
            _ => match (line.strip_prefix("$ "), line.strip_prefix("> "), steps.last_mut()) {
                (Some(command), ..) => steps.push(Step { command: command.to_owned(), output: Vec::new() }),
                (None, Some(more), Some(step)) if step.output.is_empty() => step.command.push_str(&format!("\n{more}")),
                (None, _, Some(step)) => step.output.push(line.to_owned()),
                (None, _, None) => panic!("`{line}` belongs to no command"),
            },
        }
    }
    steps
}

fn matches(expected: &[&str], printed: &[&str]) -> bool {
    match (expected, printed) {
        ([], []) => true,
        (["…", rest @ ..], _) => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        ([line, rest @ ..], [first, others @ ..]) => matches_line(line, first) && matches(rest, others),
        _ => false,
    }
}

fn matches_line(expected: &str, printed: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut is_exact = true;
    for part in parts {
        is_exact = part.is_empty();
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.is_empty() || (is_exact && expected.ends_with('…'))
}

#[test]
fn a_tour_that_lies_is_found_out() {
    assert!(matches(&["a…", "…", "z"], &["abc", "1", "2", "z"]));
    assert!(matches(&["… merged as …"], &["Sam: T-1 merged as 1a2b3c4"]));
    for (expected, printed) in [("a", "ab"), ("a… z", "a b"), ("… end", "the end of it"), ("b", "a")] {
        assert!(!matches(&[expected], &[printed]), "{expected} is not {printed}");
    }
    assert!(!matches(&["a"], &["a", "b"]) && !matches(&["a", "b"], &["a"]));
}
