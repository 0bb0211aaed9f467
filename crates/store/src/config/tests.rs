//! Settings as written and as read, and every fault with its caret and hint.

use std::fs::File;
use std::io::Write;

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("config.yaml"))
}

/// The file with every setting uncommented: settings are `#key`, or `#` and two blanks or more; prose is `# Text`.
fn uncommented(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with("  ") || !rest.starts_with(' ') => rest.to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn keys(value: &Value, within: &str, into: &mut Vec<String>) {
    let Value::Mapping(mapping) = value else {
        return;
    };
    for (key, value) in mapping {
        let path = format!("{within}/{}", key.as_str().expect("keys are words"));
        keys(value, &path, into);
        into.push(path);
    }
}

/// Every setting, as the page shows it.
fn page() -> &'static str {
    let page = include_str!("../../../../specs/config.md");
    let (_, settings) = page.split_once("```yaml\n").expect("it has them");
    settings.split_once("```").expect("they end").0
}

#[test]
fn the_page_shows_the_defaults() {
    assert_eq!(parse(page()).expect("it parses"), Config::default());
    let all = uncommented(page());
    assert_eq!(
        parse(&all).expect("it parses uncommented"),
        Config::default()
    );
    assert_eq!(
        yaml::read::<Config>(&all).expect("it needs no defaults under it"),
        Config::default()
    );
}

#[test]
fn the_page_shows_every_key() {
    let (mut shown, mut there) = (Vec::new(), Vec::new());
    keys(
        &yaml::read(&uncommented(page())).expect("parsed"),
        "",
        &mut shown,
    );
    keys(
        &serde_yaml::to_value(Config::default()).expect("it can be written"),
        "",
        &mut there,
    );
    // A role inherits missing keys from the coder.
    let is_coders = |key: &str| {
        let setting = key
            .strip_prefix("/roles/")
            .and_then(|rest| rest.split_once('/'));
        setting.is_some_and(|(_, setting)| shown.contains(&format!("/roles/coder/{setting}")))
    };
    // And keys that a runner leaves out, as Claude's.
    let is_claudes = |key: &str| {
        let setting = key
            .strip_prefix("/runners/")
            .and_then(|rest| rest.split_once('/'));
        setting.is_some_and(|(_, setting)| shown.contains(&format!("/runners/claude/{setting}")))
    };
    there.retain(|key| !shown.contains(key) && !is_coders(key) && !is_claudes(key));
    assert_eq!(
        there,
        Vec::<String>::new(),
        "keys that specs/config.md does not show"
    );
}

#[test]
fn nothing_set_is_the_defaults() {
    for text in [
        TEMPLATE,
        "",
        "\n# a comment\n",
        "---\n",
        "roles:\n",
        "roles: {}\n",
        "outcomes: {failed: {}}\n",
    ] {
        assert_eq!(
            parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}")),
            Config::default()
        );
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "an editor that saves in place")]
fn a_save_in_place_is_never_read_half() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join(FILE);
    let text = "lease: 90\n";
    // As small as the pieces of a save can be.
    let save = || {
        let mut file = File::create(&path).expect("it is ours");
        for byte in text.bytes() {
            file.write_all(&[byte]).expect("it is ours");
        }
    };
    save();
    thread::scope(|scope| {
        let saves = scope.spawn(|| (0..500).for_each(|_| save()));
        while !saves.is_finished() {
            let (config, text) = Config::load_with_text(folder.path()).expect("it is right");
            assert_eq!(
                (config.lease, text.as_str()),
                (Period::seconds(90), "lease: 90\n")
            );
        }
    });
    std::fs::write(&path, "").expect("it is ours");
    assert_eq!(
        Config::load(folder.path()).expect("the writer has ended"),
        Config::default()
    );
}

#[test]
fn what_is_set_goes_over_the_defaults() {
    let config = parse(
        "lease: 90\nroles:\n  coder: {model: opus, budget: {usd: 2.5}}\n  reviewer:\n    runner: codex\n\
         runners:\n  claude: {env: {A: b}}\n  codex: {command: [codex, exec]}\n\
         outcomes: {usage_limit: {backoff: 1h}}\nnames: [Ada]\n",
    )
    .expect("it is right");
    assert_eq!(config.lease, Period::seconds(90));
    let coder = &config.roles["coder"];
    assert_eq!(
        (
            coder.model.as_deref(),
            coder.budget.usd,
            coder.runner.as_str()
        ),
        (Some("opus"), Some(2.5), "shell")
    );
    assert_eq!(config.roles["reviewer"].runner, "codex");
    let claude = &config.runners["claude"];
    assert_eq!(
        (claude.kind, claude.program.as_deref()),
        (RunnerKind::Claude, Some("claude"))
    );
    assert_eq!(claude.env["A"], "b");
    assert_eq!(config.runners["codex"].kind, RunnerKind::Command);
    let limit = &config.outcomes.usage_limit;
    assert_eq!(
        (limit.attempt, limit.backoff, limit.max_backoff),
        (false, Some(Period::minutes(60)), Period::minutes(360))
    );
    assert_eq!(config.names, ["Ada"]);
}

#[test]
fn roles_that_name_no_runner_have_the_coders() {
    let config = parse(
        "roles: {coder: {runner: claude}, drone: {runner: shell}, tester: {model: opus}, planner: }\n",
    );
    let roles = config.expect("it is right").roles;
    let runners: Vec<(&str, &str)> = roles
        .iter()
        .map(|(name, role)| (name.as_str(), role.runner.as_str()))
        .collect();
    let expected = [
        ("answerer", "claude"),
        ("coder", "claude"),
        ("drone", "shell"),
        ("planner", "claude"),
        ("reviewer", "claude"),
        ("tester", "claude"),
    ];
    assert_eq!(runners, expected);
    assert_eq!(roles["reviewer"].does, Does::Review);
}

#[test]
fn faults_are_shown_in_place_with_what_to_type() {
    let cases = [
        (
            "review: [reviewer, coder]\n",
            "config.yaml:1:1: no role `coder` reviews\n1 | review: [reviewer, coder]\n  | ^^^^^^",
            "one of: reviewer, person; or set `does: review` for that role",
        ),
        (
            "version: 1\nleese: 2m\n",
            "config.yaml:2:1: unknown key `leese`\n2 | leese: 2m\n  | ^^^^^",
            "did you mean `lease`?",
        ),
        (
            "roles:\n  coder:\n    # model: x\n    modle: x\n",
            "config.yaml:4:5: unknown key `modle` in `roles.coder`\n4 |     modle: x\n  |     ^^^^^",
            "did you mean `model`?",
        ),
        (
            "roles: {coder: {colour: red}}\n",
            "config.yaml:1:17: unknown key `colour` in `roles.coder`\n1 | roles: {coder: {colour: red}}\n  |                 ^^^^^^",
            "one of: does, runner, queues, template, model, effort, fallback_model, budget, idle, prods, watch, max_attempts, result, once, permission_mode, allowed_tools, denied_tools, sandbox, writable, network",
        ),
        (
            "roles:\n  coder:\n    network: none\n",
            "config.yaml:3:5: network isolation needs a sandbox\n3 |     network: none\n  |     ^^^^^^^",
            "write `sandbox: true` beside it",
        ),
        (
            "dirty: comit\n",
            "config.yaml:1:8: unknown value `comit` in `dirty`\n1 | dirty: comit\n  |        ^^^^^",
            "did you mean `commit`?",
        ),
        (
            "lease: soon\n",
            "config.yaml:1:8: `lease`: `soon` is not a duration such as 30s, 2m, 1h30m or 1d\n1 | lease: soon\n  |        ^^^^",
            "",
        ),
        (
            "limit: many\n",
            "config.yaml:1:8: `limit`: `many` where a whole number that is not negative is expected\n1 | limit: many\n  |        ^^^^",
            "",
        ),
        (
            "names: [\n",
            "config.yaml:2:1: did not find expected node content\n2 | \n  | ^",
            "",
        ),
        (
            "version: 2\n",
            "config.yaml:1:1: unsupported version 2 of this file\n1 | version: 2\n  | ^^^^^^^",
            "write `version: 1`, or use a newer Tavern",
        ),
        (
            "lease: 0\n",
            "config.yaml:1:1: `lease` is less than a second\n1 | lease: 0\n  | ^^^^^",
            "try `lease: 10s`",
        ),
        (
            "roles:\n  coder:\n    prods: 1\n\n    runner: cluade\n",
            "config.yaml:5:5: no runner `cluade`\n5 |     runner: cluade\n  |     ^^^^^^",
            "did you mean `claude`?",
        ),
        (
            "runners:\n  mine: {env: {}}\n",
            "config.yaml:2:3: runner `mine` has no `command`\n2 |   mine: {env: {}}\n  |   ^^^^",
            "add one, such as `command: [codex, exec, -]`",
        ),
        (
            "#roles:\n  coder:\n    model: opus\n",
            "config.yaml:2:3: `coder` belongs below `roles`, which is a comment\n2 |   coder:\n  |   ^^^^^",
            "remove the `#` before `roles:` in line 1",
        ),
        (
            "lease: 1m\n# roles:\n#   coder:\n    max_attempts: 5\n",
            "config.yaml:4:5: `max_attempts` belongs below `coder`, which is a comment\n4 |     max_attempts: 5\n  |     ^^^^^^^^^^^^",
            "remove the `#` before `coder:` in line 3",
        ),
        (
            "roles:\n  coder: {}\n#  drone:\n    model: haiku\n",
            "config.yaml:4:5: `model` belongs below `drone`, which is a comment\n4 |     model: haiku\n  |     ^^^^^",
            "remove the `#` before `drone:` in line 3",
        ),
        (
            "# worktree:\n#   keep: false\n# budget: {day: {}}\n  day: {usd: 5}\n",
            "config.yaml:4:3: `day` belongs below `budget`, which is a comment\n4 |   day: {usd: 5}\n  |   ^^^",
            "remove the `#` before `budget:` in line 3, and set it between the braces",
        ),
        (
            "names: [Ada, ada]\n",
            "config.yaml:1:1: duplicate name `ada`\n1 | names: [Ada, ada]\n  | ^^^^^",
            "remove one",
        ),
    ];
    for (text, message, hint) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.hint().unwrap_or_default(), hint, "{message}");
    }
}

#[test]
fn built_in_names_are_good_ones() {
    let names = Config::default().names;
    assert_eq!(names.len(), 40);
    for bad in ["", "-rf", "../x", "a b", "1st", &"x".repeat(41)] {
        assert!(!is_agent_name(bad), "`{bad}`");
    }
}

const PIECES: &[&str] = &[
    "roles",
    "runners",
    "coder",
    "runner",
    "claude",
    "env",
    "pass",
    "review",
    "names",
    "lease",
    "limit",
    "outcomes",
    "budget",
    "version",
    ": ",
    ":",
    "\n",
    "\n  ",
    "\n    ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "- ",
    "&a ",
    "*a",
    "!!str ",
    "\"",
    "'",
    "\\x0",
    "|",
    "#",
    "0",
    "1e999",
    "-1",
    "18446744073709551616",
    "30s",
    "2MiB",
    "99999999999d",
    "é",
    "\u{202e}",
    "\0",
    "<<",
    "? ",
    "~",
    "\t",
    "\u{feff}",
];

proptest::proptest! {
    #[test]
    fn every_flaw_has_its_place(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24)) {
        let text = pieces.concat();
        if let Err(ConfigError::Flawed(flaw)) = parse(&text) {
            if let Some(span) = &flaw.span {
                assert!(text.get(span.clone()).is_some(), "{text:?}: {span:?}");
            }
            assert!(!flaw.message.is_empty(), "{text:?}");
        }
    }
}
