//! Texts that take far longer to read than to write, and files that have no end of their own.

use std::path::Path;
use std::thread;

use rustix::process::Signal;
use serde_json::json;

use crate::claude::project::{COMMIT, ITEM, Project, bash, say};
use crate::support::{AT_ONCE, QUEUE, Scratch, wait_until};

/// Runs the line, which ends by itself long before this.
#[track_caller]
fn ends(scratch: &Scratch, line: &str, code: i32, says: &str) {
    let words: Vec<&str> = ["-s", "KILL", "50", "tavern"]
        .into_iter()
        .chain(line.split(' '))
        .collect();
    scratch
        .command(Path::new("timeout"))
        .args(&words)
        .run()
        .ends(code)
        .says(says);
}

#[test]
fn yaml_costs_no_more_than_its_length() {
    let block =
        |yaml: &str| format!("- [ ] T-1: One\n  ```yaml task\n  {yaml}\n  ```\n- [ ] T-2: Two\n");
    let levels: String = (1..2000)
        .map(|n| format!("\n  a{n}: &a{n} [{}]", format!("*a{},", n - 1).repeat(10)))
        .collect();
    let long = "reason: \"\\x41\"\n  # ".to_owned() + &"x".repeat(70_000);
    for (text, fault) in [
        (
            block(&format!("tags: {}", "[".repeat(400_000))),
            "more than",
        ),
        (
            block(&format!("tags: {}", "{a: ".repeat(15_000))),
            "more than 64 brackets deep",
        ),
        (block(&format!("a0: &a0 [x, y]{levels}")), "more than"),
        (block(&long), "longer than 65536 bytes"),
    ] {
        let scratch = Scratch::shell(&text, "");
        ends(&scratch, "check", 5, fault.trim_start_matches("more than"));
        ends(&scratch, "claim", 0, "T-2");
        ends(&scratch, "status", 0, "T-2");
    }
    let front = format!("---\ngoal: {}\n---\n- [ ] T-2: Two\n", "[".repeat(60_000));
    let scratch = Scratch::shell(&front, "");
    ends(&scratch, "check", 5, "at most 16384 are allowed");
    ends(
        &scratch,
        "claim",
        3,
        "the front matter of its queue has a problem",
    );
    let scratch = Scratch::shell(
        "- [ ] T-1: One\n",
        &format!("names: {}", "[".repeat(60_000)),
    );
    ends(
        &scratch,
        "claim",
        5,
        "config.yaml:1:72: it is more than 64 brackets deep",
    );
    for file in ["quota/shell.yaml", "agents/Sam.yaml"] {
        let scratch = Scratch::pending("- [ ] T-1: One (runner: shell)\n");
        scratch.write(
            format!(".tavern/{file}"),
            format!("reason: {}", "[".repeat(400_000)),
        );
        ends(&scratch, "status", 0, "main: 1 pending");
    }
    let scratch = Scratch::pending("- [ ] T-1: One\n- [ ] T-2: Two\n");
    scratch.write(
        ".git/tavern/leases/T-1.yaml",
        format!("agent: {}", "[".repeat(400_000)),
    );
    ends(&scratch, "claim", 0, "T-2");
}

#[test]
fn what_items_wait_for_and_their_number_are_bounded() {
    let ids = |number: usize| {
        (0..number)
            .map(|n| format!("X-{n}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let scratch = Scratch::shell(
        &format!(
            "- [ ] T-1: One (after: [{}])\n- [ ] T-2: Two\n",
            ids(100_000)
        ),
        "",
    );
    ends(
        &scratch,
        "check",
        5,
        "this waits for 100000 items; at most 100 are allowed",
    );
    ends(&scratch, "claim", 0, "T-2");
    let levels: String = (0..1000)
        .map(|n| format!("{}- [ ] X-{n}: One\n", "  ".repeat(n)))
        .collect();
    let scratch = Scratch::shell(&levels, "");
    ends(
        &scratch,
        "check",
        0,
        "this is nested in 16 others, the maximum",
    );
    ends(&scratch, "claim", 0, "X-0");
    let scratch = Scratch::shell(&"- [ ] One\n".repeat(50_001), "");
    scratch.write(
        ".tavern/queues/other.md",
        "---\nid: other\n---\n- [ ] T-2: Two\n",
    );
    for line in ["check", "add Three"] {
        ends(
            &scratch,
            line,
            5,
            "has more than 50000 items, which are the most of a queue",
        );
    }
    ends(&scratch, "claim", 0, "T-2");
    scratch.write(QUEUE, "- [ ] One\n".repeat(50_000));
    ends(&scratch, "add Three", 5, "archive ended items");
}

#[test]
fn many_problems_are_told_in_short() {
    let scratch = Scratch::shell(&"- [] One\n".repeat(49_000), "");
    ends(
        &scratch,
        "check",
        0,
        "48500 more problems are not shown: the limit is 500 per file",
    );
}

#[test]
fn templates_have_an_end() {
    let nested = |inner: &str| {
        format!(
            "{{% for i in range(100000) %}}{{% for j in range(100000) %}}{inner}{{% endfor %}}{{% endfor %}}"
        )
    };
    for (template, fault) in [
        (nested(""), "ran out of fuel"),
        (
            nested(&"x".repeat(10_000)),
            "it writes more than 16777216 bytes",
        ),
        ("{% if 1 %}".repeat(100_000), "at most 262144 are allowed"),
    ] {
        let scratch = Scratch::shell(
            "- [ ] T-1: One\n  ```sh\n  echo 1 > 1.txt\n  ```\n",
            AT_ONCE,
        );
        scratch.write(".tavern/templates/coder.md", template);
        ends(&scratch, "check", 5, fault);
        ends(&scratch, "agent --once --dry-run", 1, fault);
    }
}

#[test]
fn an_agents_last_words_are_kept_in_short() {
    let words = format!("Begin.\n{}\nDONE", "Much was done.\n".repeat(100_000));
    let project = Project::new(ITEM, json!([bash(COMMIT), say(&words)]));
    project.work();
    let kept = project
        .scratch
        .run("tavern-runs", &["cat", "T-1"])
        .succeeds();
    assert!(kept.len() < 300_000, "{}", kept.len());
    assert!(
        kept.starts_with("Begin.\n")
            && kept.contains(" bytes left out …]")
            && kept.ends_with("done.\n\nDONE\n")
    );
}

/// Nobody writes to the pipe that an agent has put in the place of a file.
#[test]
fn no_pipe_of_an_agent_keeps_a_program_from_ending() {
    let conflict = "echo 1 > a; git add a; blob=$(git hash-object -w a); for n in 1 2 3; do \
                    printf '100644 %s %s\\ta\\n' $blob $n; done | git update-index --index-info; at=a";
    let git_dir = "$(git rev-parse --git-dir)";
    let places = [
        ".gitmodules",
        ".gitignore",
        ".gitattributes",
        ".git",
        "$git_dir/index",
        "$git_dir/HEAD",
        "$git_dir/index.lock",
    ];
    let refs = [
        "$git_dir/refs/heads/tavern/T-1",
        "../../../.git/refs/heads/tavern/T-1",
        "../../../.git/worktrees/T-1/index",
        "$git_dir/MERGE_HEAD",
    ];
    let places = places
        .into_iter()
        .chain(refs)
        .map(|place| format!("git_dir={git_dir}; at={place}"));
    let try_each = |places: Vec<String>| {
        for place in places {
            let script = format!(
                "echo 1 > 1.txt; {place}; mkdir -p $(dirname $at); rm -f $at; mkfifo $at; echo > ../../../made"
            );
            let scratch = Scratch::shell(
                &format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n"),
                AT_ONCE,
            );
            let agent = scratch
                .command(Path::new("timeout"))
                .args(&["-s", "KILL", "60", "tavern", "agent", "--once"]);
            let mut agent = agent.start();
            wait_until("the pipe is made", || scratch.work().join("made").exists());
            if !agent.has_ended() {
                agent.signal(Signal::TERM);
            }
            let ran = agent.end();
            assert!([Some(0), Some(143)].contains(&ran.code), "{place}: {ran}");
        }
    };
    let (one, other): (Vec<_>, Vec<_>) = places
        .chain([conflict.to_owned()])
        .partition(|place| place.len() % 2 == 0);
    thread::scope(|scope| {
        scope.spawn(|| try_each(one));
        scope.spawn(|| try_each(other));
    });
}
