//! config.yaml: what `tavern init` writes, and how it is looked over.

use serde_json::Value;

use crate::support::{CONFIG, Scratch};

/// The settings that `tavern init` writes, by the blocks between blank lines.
fn blocks(scratch: &Scratch) -> Vec<String> {
    scratch
        .read(CONFIG)
        .split("\n\n")
        .map(str::to_owned)
        .collect()
}

/// The block without the `#` before its settings; what explains them begins with `# `.
fn uncommented(block: &str) -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with("  ") || !rest.starts_with(' ') => rest.to_owned(),
        _ => line.to_owned(),
    };
    block.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_block_that_init_writes_may_be_uncommented_alone_and_with_any_other() {
    for runner in ["shell", "codex"] {
        let scratch = Scratch::repository();
        scratch
            .run("tavern-init", &["--quiet", "--runner", runner])
            .succeeds();
        let written = blocks(&scratch);
        let length = written.join("\n\n").lines().count();
        assert!((20..=28).contains(&length), "{length} lines");
        let count = written.len();
        for (one, other) in (0..count).flat_map(|one| (one..count).map(move |other| (one, other))) {
            let chosen = |at: usize| at == one || at == other;
            let text = |(at, block): (usize, &String)| {
                if chosen(at) {
                    uncommented(block)
                } else {
                    block.clone()
                }
            };
            let blocks: Vec<String> = written.iter().enumerate().map(text).collect();
            scratch.write(CONFIG, blocks.join("\n\n"));
            // That the program of an agent is not here is told, too.
            let told = scratch.records("tavern-check", &["config.yaml"]);
            let is_error = |fault: &&Value| {
                fault["severity"] == "error" && fault["code"] != "runner-not-ready"
            };
            assert_eq!(told.iter().find(is_error), None, "{}", scratch.read(CONFIG));
        }
    }
}

#[test]
fn settings_go_by_their_name_from_anywhere_in_the_repository() {
    let scratch = Scratch::initialized();
    scratch.write("sub/inner/file", "");
    scratch.write(CONFIG, "leese: 1m\n");
    for folder in ["", "sub/inner/", ".tavern/"] {
        for name in ["config.yaml", ".tavern/config.yaml"] {
            let ran = scratch
                .command(std::path::Path::new("sh"))
                .args(&["-c", &format!("cd ./{folder} && tavern check {name}")]);
            ran.run().ends(5).says("unknown key `leese`");
        }
    }
}

#[test]
fn a_key_whose_own_parent_is_a_comment_is_told_so_wherever_settings_are_read() {
    let scratch = Scratch::initialized();
    // It would be read, as a setting of the whole board.
    scratch.write(CONFIG, "lease: 1m\n#roles:\n#  coder:\n");
    scratch.run("tavern-check", &["config.yaml"]).ends(0);
    scratch.write(CONFIG, "#roles:\n#  coder:\n    max_attempts: 9\n");
    for program in ["tavern-check", "tavern-claim"] {
        scratch
            .run(program, &[])
            .ends(5)
            .says("`max_attempts` belongs below `coder`, which is a comment")
            .says("remove the `#` before `coder:` in line 2");
    }
}

#[test]
fn a_remark_that_ends_with_a_colon_is_no_parent() {
    let scratch = Scratch::initialized();
    for text in [
        "roles:\n  coder:\n# note:\n    max_attempts: 9\n",
        "roles:\n# note:\n  coder:\n    max_attempts: 9\n",
        "# Everything:\n  lease: 1m\n",
        "#roles:\nlease: 1m\n",
        "worktree:\n  setup: make\n#roles:\n#  coder:\n#    runner: shell\n  timeout: 5m\n",
        "worktree:\n# roles:\n  setup: make\n",
        "roles:\n  coder:\n    runner: shell\n#roles:\n  reviewer:\n    runner: shell\n",
        "roles:\n#  planner:\n  coder:\n    max_attempts: 9\n",
    ] {
        scratch.write(CONFIG, text);
        scratch.run("tavern-check", &["config.yaml"]).ends(0);
    }
    for (text, key, parent) in [
        ("#roles:\n  coder:\n    max_attempts: 9\n", "coder", "roles"),
        (
            "# roles:\n#   coder:\n    max_attempts: 9\n",
            "max_attempts",
            "coder",
        ),
        (
            "#roles:\n#  coder:\n#    runner: shell\n    max_attempts: 9\n",
            "max_attempts",
            "coder",
        ),
        ("lease: 1m\n#budget:\n  day: {usd: 5}\n", "day", "budget"),
        (
            "roles:\n  coder:\n    max_attempts: 9\n#  planner:\n\n    model: opus\n",
            "model",
            "planner",
        ),
    ] {
        scratch.write(CONFIG, text);
        let says = format!("`{key}` belongs below `{parent}`, which is a comment");
        scratch
            .run("tavern-check", &["config.yaml"])
            .ends(5)
            .says(&says);
    }
}
