//! `tavern` as the door to all programs, and how every program speaks.

use tavern::PROGRAMS;

use crate::support::{CONFIG, Scratch, program};
use crate::terminal::Terminal;

#[test]
fn every_program_is_listed_as_json() {
    let records = Scratch::empty().records("tavern", &[]);
    let listed: Vec<&serde_json::Value> = records.iter().map(|record| &record["name"]).collect();
    assert_eq!(
        listed,
        PROGRAMS
            .iter()
            .map(|program| program.name)
            .collect::<Vec<_>>()
    );
    assert!(
        records
            .iter()
            .all(|record| record["job"].as_str().is_some_and(|job| !job.is_empty())),
        "{records:?}"
    );
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
    assert_eq!(
        scratch.run("tavern", &["check", "--dir", ".tavern"]),
        program
    );
    // Flags before the verb are the verb's.
    assert_eq!(
        scratch.run("tavern", &["--dir", ".tavern", "check"]),
        program
    );
    assert_eq!(
        scratch
            .program("tavern-check")
            .variable("TAVERN_DIR", ".tavern")
            .run(),
        program
    );
}

#[test]
fn help_and_version_are_asked_for_and_no_error() {
    let scratch = Scratch::empty();
    let help = scratch.run("tavern", &["help", "check"]).succeeds();
    assert!(help.contains("Usage: tavern check"), "{help}");
    assert_eq!(scratch.run("tavern", &["check", "--help"]).succeeds(), help);
    let all = scratch.run("tavern", &["help"]).succeeds();
    for program in PROGRAMS {
        assert!(
            all.contains(&program.job()),
            "{} is missing in\n{all}",
            program.name
        );
        let version = scratch.run(program.name, &["--version"]).succeeds();
        assert_eq!(
            version,
            format!("{} {}\n", program.name, env!("CARGO_PKG_VERSION"))
        );
    }
}

#[test]
fn what_tells_of_verbs_is_told_of_too() {
    let scratch = Scratch::empty();
    for verb in ["help", "manual", "completions"] {
        let help = scratch.run("tavern", &["help", verb]).succeeds();
        assert!(help.contains(&format!("Usage: tavern {verb} ")), "{help}");
        assert_eq!(scratch.run("tavern", &[verb, "--help"]).succeeds(), help);
    }
    scratch
        .run("tavern", &["help", "manul"])
        .ends(2)
        .says("hint: did you mean `tavern manual`?\n");
    // The list of verbs is as wide as the terminal, and stays a column.
    let narrow = scratch
        .program("tavern")
        .args(&["--help"])
        .variable("COLUMNS", "60")
        .run()
        .succeeds();
    let list =
        "  manual       Show the man page of a verb, or of `tavern`\n               itself\n";
    assert!(
        narrow.contains(list) && narrow.lines().all(|line| line.chars().count() <= 60),
        "{narrow}"
    );
}

#[test]
fn man_pages_name_values_and_variables() {
    let scratch = Scratch::empty();
    let page = scratch.run("tavern", &["manual", "claim"]).succeeds();
    assert!(
        page.starts_with(".ie") && page.contains("\\fBtavern\\-claim\\fR"),
        "{page}"
    );
    for words in [
        " [ID] ",
        " [\\-\\-wait[=<TIME>]] ",
        "\\fBTAVERN_ROLE\\fR environment variable",
    ] {
        assert!(page.contains(words), "`{words}` is not in\n{page}");
    }
    let own = scratch.run("tavern", &["manual"]).succeeds();
    assert!(
        own.contains("VERB [ARGUMENTS]...") && own.contains("tavern\\-claim"),
        "{own}"
    );
    scratch
        .run("tavern", &["manual", "chek"])
        .ends(2)
        .says("hint: did you mean `tavern check`?\n");
    // On a terminal it is to be read.
    scratch.executable(
        "bin/man",
        "#!/bin/sh\necho \"shown by $* $(grep -c 'TH tavern-claim')\"\n",
    );
    let line = format!(
        "env PATH={}:/usr/bin:/bin {} manual claim",
        scratch.work().join("bin").display(),
        program("tavern").display()
    );
    Terminal::start(&scratch, &line)
        .end()
        .ends(0)
        .says("shown by -l - 1");
}

/// A real shell asks, as it does when somebody presses the tab key.
#[test]
fn a_shell_completes_what_is_on_the_board() {
    let items = "- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] AUTH-7: Three\n";
    let scratch = Scratch::shell(
        items,
        "roles: {scribe: {queues: [urgent]}}\nrunners: {own: {command: [cat]}}\n",
    );
    scratch.write(".tavern/queues/urgent.md", "");
    scratch.write(".tavern/queues/$(touch made).md", "");
    scratch.write("TODO.md", "");
    scratch.settle();
    for shell in ["bash", "zsh", "fish", "elvish"] {
        scratch
            .run("tavern", &["completions", shell])
            .ends(0)
            .says("tavern-check");
    }
    scratch.run("tavern", &["completions", "smallsh"]).ends(2);
    let script = scratch.run("tavern", &["completions", "bash"]).succeeds();
    for (line, expected) in [
        ("tavern ch", "check"),
        ("tavern status T-", "T-1 T-2"),
        ("tavern claim A", "AUTH-7"),
        ("tavern-release T-", "T-1 T-2"),
        ("tavern add --after T-1,A", "T-1,AUTH-7"),
        ("tavern add --id T", ""),
        ("tavern claim --queue ", "README.md TODO.md main urgent"),
        ("tavern drain T", "TODO.md"),
        ("tavern agent --role s", "scribe"),
        ("tavern-agent --runner ow", "own"),
        ("tavern manual comp", "completions"),
        ("tavern renew --f", "--format"),
    ] {
        let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
        let (first, last) = (
            words[0].trim_matches('\''),
            words.last().map_or("", String::as_str),
        );
        let ask = format!(
            "COMP_WORDS=({}); COMP_CWORD={}; _clap_complete_{} {first} {last} x; echo \"${{COMPREPLY[*]}}\"",
            words.join(" "),
            words.len() - 1,
            first.replace('-', "_")
        );
        let ran = scratch
            .command("bash".as_ref())
            .args(&["-c", &format!("{script}\n{ask}")])
            .run();
        assert_eq!(
            ran.to_string(),
            format!("exit 0\n--- stdout\n{expected}\n--- stderr\n"),
            "{line}"
        );
    }
    assert!(!scratch.work().join("made").exists());
}

#[test]
fn what_cannot_be_printed_is_a_failure_of_help_too() {
    let scratch = Scratch::empty();
    for line in [
        "tavern --help",
        "tavern claim --version",
        "tavern help add",
        "tavern manual add",
        "tavern",
    ] {
        let ran = scratch
            .command("sh".as_ref())
            .args(&["-c", &format!("{line} >/dev/full")])
            .run();
        ran.ends(1)
            .says("error: can't write standard output")
            .says("hint: check where standard output goes");
    }
}

#[test]
fn a_foreign_program_on_the_path_is_a_verb() {
    let scratch = Scratch::empty();
    scratch.executable("bin/tavern-sing", "#!/bin/sh\necho \"sings $*\"\nexit 9\n");
    let path = format!(
        "{}:{}",
        scratch.work().join("bin").display(),
        std::env::var("PATH").expect("PATH is set")
    );
    let ran = scratch
        .program("tavern")
        .args(&["--quiet", "sing", "a song"])
        .variable("PATH", path)
        .run();
    assert_eq!(
        ran.to_string(),
        "exit 9\n--- stdout\nsings --quiet a song\n--- stderr\n"
    );
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
    let program = program("tavern");
    let line = format!("({}; echo $? >&2) | true", program.display());
    let ran = scratch.command("sh".as_ref()).args(&["-c", &line]).run();
    assert_eq!(ran.stderr, "0\n");
}

#[test]
fn verbs_that_are_known_from_elsewhere_lead_to_what_does_their_work() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    let verbs = "done start kill stop run work restore history";
    for verb in verbs.split(' ') {
        let ran = scratch.run("tavern", &[verb, "T-1"]).ends(2);
        ran.says(&format!("error: no verb `{verb}`\nhint: "))
            .says_not("did you mean");
    }
    for (line, same) in [
        ("ls", "list"),
        ("items main", "list main"),
        ("view T-1", "show T-1"),
        ("take -n", "claim -n"),
        ("queues", "queue"),
        ("help rm", "help cancel"),
        ("describe T-1", "show T-1"),
        ("stats main", "status main --stats"),
        ("status --queue main", "status main"),
        ("queue --json", "queue --format json"),
    ] {
        // Both show the same ages.
        let [ran, same] = [line, same].map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            scratch.at("2030-01-01T12:00:00Z", "tavern", &words).ends(0)
        });
        assert_eq!(ran.stdout, same.stdout, "{line}");
    }
    for verb in ["retry", "approve", "cancel"] {
        let ran = scratch.run("tavern", &[verb]).ends(2);
        ran.says(&format!("error: name the item\nhint: tavern {verb} ID"));
    }
    scratch
        .run("tavern", &["reject", "T-1"])
        .ends(2)
        .says("hint: tavern reject ID \"WHY\"");
    scratch
        .run("tavern", &["pause", "T-1"])
        .ends(2)
        .says("tavern tell T-1 --pause");
    scratch.run("tavern", &["create", "Two"]).ends(0);
    let ran = scratch
        .run("tavern", &["add", "Three", "--needs", "T-1"])
        .ends(2);
    ran.says("to have it completed first: --after T-1");
    scratch
        .run("tavern", &["log", "-n", "2"])
        .ends(2)
        .says("--last N");
    scratch.run("tavern", &["rm", "T-1"]).ends(0);
    scratch.stands("T-1", "cancelled", 0);
    scratch.run("tavern", &["reopen", "T-1"]).ends(0);
    scratch.stands("T-1", "pending", 0);
    scratch
        .run("tavern", &["statsu"])
        .ends(2)
        .says("hint: did you mean `tavern status`?\n");
    scratch
        .run("tavern", &["runs", "T-1"])
        .ends(2)
        .says("tavern runs list T-1, or tavern runs show T-1\n");
}

/// Each does what it is short for.
#[test]
fn what_people_type_first_is_a_verb() {
    let scratch = Scratch::board("- [ ] T-1: One (approve: start)\n- [ ] T-2: Two\n");
    let tavern = |line: &str| scratch.line(&format!("tavern {line}")).run();
    tavern("list").ends(0).says("T-2");
    tavern("show T-2").ends(0).says("Two");
    tavern("next").ends(0).says("T-2 Two");
    tavern("approve T-1").ends(0);
    assert_eq!(scratch.item("T-1")["allowed"], true);
    tavern("cancel T-2 unneeded").ends(0);
    assert_eq!(scratch.item("T-2")["reason"], "unneeded");
    tavern("retry T-2").ends(4).says("tavern reopen T-2");
    tavern("reject T-1").ends(2).says("tavern reject ID");
    tavern("pause lunch")
        .ends(0)
        .says("paused; to go on: tavern resume");
    tavern("claim").ends(3).says("lunch");
    tavern("resume").ends(0);
    tavern("resume").ends(3).says("the board is not paused");
    let token = scratch.claim("T-1", &[]);
    tavern(&format!("report T-1 --token {token} --waiting which?")).ends(8);
    tavern("answer T-1 red").ends(0);
    scratch.stands("T-1", "pending", 0);
    tavern("approve --help")
        .ends(0)
        .says("Short for `tavern report ID --approve`; for its options: tavern help report");
}

#[test]
fn each_verb_is_in_one_group() {
    let scratch = Scratch::empty();
    let help = scratch.run("tavern", &["help"]).succeeds();
    for program in PROGRAMS {
        let row = format!("\n  {:<13}{}\n", program.verb(), program.job());
        assert_eq!(help.matches(&row).count(), 1, "{row}{help}");
    }
}
