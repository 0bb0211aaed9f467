//! `tavern` as the door to all programs, and how every program speaks.

use crate::support::{CONFIG, Scratch};

#[test]
fn every_program_is_listed_as_json() {
    let records = Scratch::empty().records("tavern", &[]);
    let listed: Vec<&serde_json::Value> = records.iter().map(|record| &record["name"]).collect();
    assert_eq!(listed, tavern::cli::PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>());
    assert!(records.iter().all(|record| record["job"].as_str().is_some_and(|job| !job.is_empty())), "{records:?}");
}

#[test]
fn a_verb_is_the_program_in_process() {
    let scratch = Scratch::repository();
    scratch.write(CONFIG, "leese: 2m\n");
    let program = scratch.run("tavern-check", &["--dir", ".tavern"]);
    assert_eq!(
        program.to_string(),
        "exit 5\n--- stdout\n.tavern/config.yaml:1:1: error: unknown key `leese`\n1 | leese: 2m\n  | ^^^^^\n  \
         = hint: did you mean `lease`?\n--- stderr\n1 error\n"
    );
    assert_eq!(scratch.run("tavern", &["check", "--dir", ".tavern"]), program);
    // Flags before the verb are the verb's.
    assert_eq!(scratch.run("tavern", &["--dir", ".tavern", "check"]), program);
    assert_eq!(scratch.program("tavern-check").variable("TAVERN_DIR", ".tavern").run(), program);
}

#[test]
fn help_and_version_are_asked_for_and_no_error() {
    let scratch = Scratch::empty();
    let help = scratch.run("tavern", &["help", "check"]).succeeds();
    assert!(help.contains("Usage: tavern check"), "{help}");
    assert_eq!(scratch.run("tavern", &["check", "--help"]).succeeds(), help);
    let all = scratch.run("tavern", &["help"]).succeeds();
    for program in tavern::cli::PROGRAMS {
        assert!(all.contains(&program.job()), "{} is missing in\n{all}", program.name);
        let version = scratch.run(program.name, &["--version"]).succeeds();
        assert_eq!(version, format!("{} {}\n", program.name, env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn manuals_and_completions_come_from_the_same_definitions() {
    let scratch = Scratch::empty();
    let page = scratch.run("tavern", &["manual", "check"]).succeeds();
    assert!(page.starts_with(".ie") && page.contains("tavern\\-check") && page.contains("\\-\\-format"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        scratch.run("tavern", &["completions", shell]).ends(0).says("tavern-check").says("format");
    }
    let script = scratch.run("tavern", &["completions", "bash"]).succeeds();
    let line = "COMP_WORDS=(tavern ch); COMP_CWORD=1; _tavern tavern ch tavern; echo \"${COMPREPLY[@]}\"";
    let ran = scratch.command("bash".as_ref()).args(&["-c", &format!("{script}\n{line}")]).run();
    assert_eq!(ran.to_string(), "exit 0\n--- stdout\ncheck\n--- stderr\n");
    scratch.run("tavern", &["completions", "smallsh"]).ends(2);
    scratch.run("tavern", &["manual", "chek"]).ends(2);
}

#[test]
fn a_foreign_program_on_the_path_is_a_verb() {
    let scratch = Scratch::empty();
    scratch.executable("bin/tavern-sing", "#!/bin/sh\necho \"sings $*\"\nexit 9\n");
    let path = format!("{}:{}", scratch.work().join("bin").display(), std::env::var("PATH").expect("PATH is set"));
    let ran = scratch.program("tavern").args(&["--quiet", "sing", "a song"]).variable("PATH", path).run();
    assert_eq!(ran.to_string(), "exit 9\n--- stdout\nsings --quiet a song\n--- stderr\n");
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let scratch = Scratch::repository();
    let plain = scratch.run("tavern-check", &[]).ends(1);
    assert!(plain.stderr.starts_with("error: no board in `"), "{plain}");
    let coloured = scratch.run("tavern-check", &["--color", "always"]);
    assert!(coloured.stderr.starts_with("\u{1b}["), "{coloured}");
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let scratch = Scratch::empty();
    let program = crate::support::program("tavern");
    let line = format!("({}; echo $? >&2) | true", program.display());
    let ran = scratch.command("sh".as_ref()).args(&["-c", &line]).run();
    assert_eq!(ran.stderr, "0\n");
}
