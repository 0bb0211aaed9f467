//! `sandbox: true`: an agent program writes where its work is and nowhere else, and ends as any other.
//!
//! Where bubblewrap is missing or may not make namespaces, the same tests hold that nothing is begun without it.

use std::path::Path;

use rustix::process::Signal;

use crate::support::{AT_ONCE, CONFIG, QUEUE, Scratch, seen_in_a_box, wait_until};

const BOXED: &str =
    "base: main\ngrace: 20s\nroles: {coder: {sandbox: true, writable: [~/cache]}}\n";

fn board(script: &str, done_when: &[&str]) -> Scratch {
    let scratch = Scratch::initialized();
    let script: String = script.lines().map(|line| format!("  {line}\n")).collect();
    let task = serde_json::json!({ "done_when": done_when });
    let item =
        format!("- [ ] T-1: Work\n  ```sh\n{script}  ```\n  ```yaml task\n  {task}\n  ```\n");
    scratch.write(QUEUE, item);
    scratch.write(CONFIG, format!("{BOXED}{AT_ONCE}"));
    std::fs::create_dir(scratch.folder().join("home/cache")).expect("the folder is ours");
    scratch
}

/// Whether a sandbox can be had on this machine. If not, an agent that is to work in one says so and begins nothing.
pub fn is_boxed(scratch: &Scratch) -> bool {
    let arguments = [
        "-c",
        "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --unshare-pid --unshare-ipc true",
    ];
    if scratch.command(Path::new("sh")).args(&arguments).run().code == Some(0) {
        return true;
    }
    refuses(scratch, None);
    false
}

#[track_caller]
fn refuses(scratch: &Scratch, path: Option<&str>) -> String {
    let mut agent = scratch.program("tavern-agent").args(&["--until-empty"]);
    if let Some(path) = path {
        agent = agent.variable("PATH", path);
    }
    let ran = agent
        .run()
        .ends(1)
        .says("set `sandbox: false` for the role in .tavern/config.yaml");
    assert!(
        !scratch
            .run("tavern-log", &[])
            .succeeds()
            .contains("claimed"),
        "nothing was begun"
    );
    ran.stderr
}

/// The script is to say where it could write.
const TRIES: &str = r#"echo work > work.txt
git add work.txt
git commit -qm Work
tavern-tell T-9 'From inside' --quiet
echo 'From a sandbox' | tavern-learn --tag inside >/dev/null
tavern learn list --tag inside >listed.txt; git add listed.txt; git commit -qm Listed
try() { if (echo no >> "$1") 2> /dev/null; then echo "$2" >> wrote.txt; fi; }
mkdir "$TAVERN_DIR/templates" "$TAVERN_DIR/../.git/hooks" 2> /dev/null || true
try "$HOME/no" home
try "$TAVERN_DIR/../no" checkout
try "$TAVERN_DIR/../.git/hooks/pre-commit" hooks
try "$TAVERN_DIR/../.git/config" config
try "$TAVERN_DIR/config.yaml" settings
try "$TAVERN_DIR/templates/no" templates
try "$TAVERN_DIR/runs/no" runs
try "$TAVERN_DIR/worktrees/no" worktrees
try "$HOME/cache/yes" cache
try "$TMPDIR/yes" throwaway
try /dev/null null
echo mine > "/tmp/mine"
"#;

#[test]
fn it_writes_where_its_work_is_and_nowhere_else() {
    // Commands are checked as the agent could have checked: neither its home nor what it threw away is there.
    let scratch = board(
        TRIES,
        &[
            "grep -qx work work.txt",
            "! (echo no > \"$HOME/no\") 2> /dev/null",
            "test ! -e /tmp/mine",
            "echo x > made.txt",
        ],
    );
    if !is_boxed(&scratch) {
        return;
    }
    // What is not there can't be shown read-only, and is not made by the agent either.
    drop(std::fs::remove_dir_all(scratch.work().join(".git/hooks")));
    scratch
        .run("tavern-add", &["Later", "--id", "T-9", "--role", "nobody"])
        .succeeds();
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    assert_eq!(
        scratch.item("T-1")["status"],
        "completed",
        "{}",
        scratch.run("tavern-log", &[]).succeeds()
    );
    let wrote = scratch.git(&["show", "tavern/integration:wrote.txt"]);
    assert_eq!(wrote, "cache\nthrowaway\nnull");
    assert_eq!(
        scratch.git(&["show", "tavern/integration:work.txt"]),
        "work"
    );
    assert!(
        scratch
            .read(&scratch.letters("T-9")[0])
            .contains("From inside"),
        "tavern-tell works in it"
    );
    assert!(
        scratch
            .git(&["show", "tavern/integration:listed.txt"])
            .ends_with("From a sandbox"),
        "tavern-learn does too"
    );
    assert_eq!(
        std::fs::read_to_string(scratch.folder().join("home/cache/yes"))
            .ok()
            .as_deref(),
        Some("no\n")
    );
    assert!(
        !scratch.folder().join("home/no").exists() && !scratch.folder().join("tmp/yes").exists()
    );
    assert_eq!(
        scratch.git(&["status", "--porcelain", "--untracked-files=no"]),
        ""
    );
    scratch.has_no_process();
}

#[test]
fn its_parts_are_handed_out_from_inside_and_come_back_to_it() {
    let script = "if [ -e part.txt ]; then echo whole >whole.txt; exit; fi\n\
                  id=$(printf 'Part\\n```sh\\necho part >part.txt\\n```\\n' | tavern add --parent)\n\
                  echo \"$id\" >id.txt\ntavern report --mode delegate --quiet\necho DONE\n";
    let scratch = board(script, &[]);
    if !is_boxed(&scratch) {
        return;
    }
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    for id in ["T-1", "T-1.1"] {
        assert_eq!(
            scratch.item(id)["status"],
            "completed",
            "{}",
            scratch.run("tavern-log", &[]).succeeds()
        );
    }
    assert_eq!(scratch.git(&["show", "tavern/integration:id.txt"]), "T-1.1");
    assert_eq!(
        scratch.git(&["show", "tavern/integration:whole.txt"]),
        "whole"
    );
}

#[test]
fn what_a_killed_run_made_is_not_lost() {
    let script = "if [ -e second.txt ]; then git log --format=%s >log.txt; git stash pop -q; exit; fi\n\
                  echo 1 >first.txt\ngit add first.txt\ngit commit -qm First\necho 3 >stashed.txt\ngit add stashed.txt\n\
                  git stash -q\necho 2 >second.txt\n: >begun\nsleep 1000\n";
    let scratch = board(script, &[]);
    if !is_boxed(&scratch) {
        return;
    }
    for killed in ["agent", "taken"] {
        let agent = match killed {
            "agent" => scratch.program("tavern-agent").args(&["--once"]).start(),
            // Who takes it over dies, too.
            _ => {
                scratch
                    .failing("cell.taken=kill", "tavern-reap", &[])
                    .ends(None);
                continue;
            }
        };
        wait_until("it works", || {
            scratch.work().join(".tavern/worktrees/T-1/begun").exists()
        });
        agent.kill();
    }
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    assert_eq!(
        scratch.item("T-1")["status"],
        "completed",
        "{}",
        scratch.run("tavern-log", &[]).succeeds()
    );
    let made = ["first.txt", "second.txt", "stashed.txt", "log.txt"];
    let found = made.map(|name| scratch.git(&["show", &format!("tavern/integration:{name}")]));
    assert_eq!(found, ["1", "2", "3", "First\nBegin"]);
    assert!(
        std::fs::read_dir(scratch.work().join(".git/tavern-cells"))
            .expect("it is there")
            .next()
            .is_none()
    );
}

/// Works until it is killed; in another run it ends.
const KILLED: &str = "if [ -e begun ]; then exit; fi\necho 1 >first.txt\ngit add first.txt\ngit commit -qm First\n\
                      : >begun\nsleep 1000\n";

#[test]
fn what_a_killed_run_made_is_found_in_a_repository_that_was_moved() {
    let scratch = board(KILLED, &[]);
    if !is_boxed(&scratch) {
        return;
    }
    let agent = scratch.program("tavern-agent").args(&["--once"]).start();
    wait_until("it works", || {
        scratch.work().join(".tavern/worktrees/T-1/begun").exists()
    });
    agent.kill();
    let moved = scratch.folder().join("moved");
    std::fs::rename(scratch.work(), &moved).expect("both are ours");
    let line = format!(
        "cd {} && tavern agent --trust --until-empty --name Frodo",
        moved.display()
    );
    let ran = scratch
        .command(Path::new("sh"))
        .within(&scratch.folder())
        .args(&["-c", &line])
        .run();
    std::fs::rename(&moved, scratch.work()).expect("both are ours");
    ran.succeeds();
    assert_eq!(
        scratch.item("T-1")["status"],
        "completed",
        "{}",
        scratch.run("tavern-log", &[]).succeeds()
    );
    assert_eq!(scratch.git(&["show", "tavern/integration:first.txt"]), "1");
    assert!(
        scratch
            .git(&["log", "--format=%s", "tavern/integration"])
            .contains("First")
    );
}

#[test]
fn a_cell_goes_when_it_is_taken_over_or_its_item_completed_and_not_before() {
    let scratch = board(
        "echo 1 >first.txt\nrm -rf \"$(git rev-parse --absolute-git-dir)/objects\"\nfalse\n",
        &[],
    );
    if !is_boxed(&scratch) {
        return;
    }
    scratch.change(CONFIG, "base: main", "base: main\nmax_attempts: 1");
    scratch.run("tavern-agent", &["--once", "--name", "Frodo"]);
    let cells = scratch.work().join(".git/tavern-cells");
    let names = || {
        let entries = std::fs::read_dir(&cells).expect("it is there").flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let broken = names();
    assert!(
        matches!(&broken[..], [name] if name.starts_with(".broken-T-1@")),
        "{broken:?}"
    );
    std::fs::create_dir_all(cells.join(".spent-T-9@4/git")).expect("it is ours");
    scratch
        .run("tavern-reap", &["--dry-run"])
        .ends(0)
        .says("remove the remains of the cell of run T-9@4");
    assert_eq!(names().len(), 2);
    // Nobody has what is in the other one.
    scratch.run("tavern-reap", &[]).ends(0);
    assert_eq!(names(), broken);
    scratch.run("tavern-release", &["T-1", "--revive"]).ends(0);
    scratch.change(QUEUE, "false\n", "true\n");
    scratch.change(QUEUE, "rm -rf", ": ");
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    assert_eq!(scratch.item("T-1")["status"], "completed");
    // The agent itself may have reaped.
    scratch.run("tavern-reap", &[]).ends(0);
    assert_eq!(names().len(), 0);
}

#[test]
fn who_plans_in_a_sandbox_plans_for_those_in_one() {
    let plans =
        |role: &str| format!("- [ ] P-1: Make it (role: {role}, done_when: test -e it.txt)\n");
    for (role, status, told) in [
        ("coder", "completed", "L-1.1"),
        (
            "free",
            "dead",
            "no role `free` works on items (one of: coder)",
        ),
    ] {
        let scratch = Scratch::initialized();
        let script = "cat >/dev/null\n(: >\"$HOME/escaped\") 2>/dev/null\nprintf '```markdown %s\\n%s\\n```\\nDONE\\n' $TAVERN_NONCE \"$(cat \"$PLAN\")\"\n";
        let program = scratch.executable(
            "../home/planner",
            &format!("#!/bin/sh\nPLAN=$HOME/plan.md\n{script}"),
        );
        scratch.write("../home/plan.md", plans(role));
        let config = serde_json::json!({
            "base": "main", "max_attempts": 1,
            "roles": {"coder": {"sandbox": true}, "free": {}, "planner": {"does": "plan", "sandbox": true, "runner": "own"}},
            "runners": {"own": {"kind": "command", "command": [program]}},
        });
        let lines = config
            .as_object()
            .expect("settings")
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"));
        scratch.write(CONFIG, lines.collect::<String>() + AT_ONCE);
        if !is_boxed(&scratch) {
            return;
        }
        scratch
            .run("tavern-plan", &["Build it", "--id", "L-1"])
            .ends(0);
        scratch.run(
            "tavern-agent",
            &["--role", "planner", "--name", "Sam", "--once"],
        );
        let log = scratch.run("tavern-log", &[]).succeeds();
        assert_eq!(scratch.item("L-1")["status"], status, "{log}");
        assert!(log.contains(told), "{log}");
        assert!(!scratch.folder().join("home/escaped").exists());
    }
}

/// Commits in a submodule, and puts a file to where git-lfs has its own.
const INNER: &str = r#"git -c protocol.file.allow=always submodule update --init --quiet
(cd lib && echo 2 >lib.txt && git commit -qam Inner)
git add lib
echo big >big.bin
id=$(sha256sum <big.bin | cut -c1-64)
lfs=$(git rev-parse --absolute-git-dir)/lfs/objects/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-4)
mkdir -p "$lfs"
mv big.bin "$lfs/$id"
echo forged >"$lfs/$(echo "$id" | tr 0-9a-f f0-9a-e)"
git commit -qm Outer
"#;

/// Gives the board a submodule at `lib`, whose origin stays as long as the value.
fn with_library(scratch: &Scratch) -> tempfile::TempDir {
    let folder = seen_in_a_box();
    let lib = folder.path().join("lib");
    let line = format!(
        "git init -q {0} && cd {0} && echo 1 >lib.txt && git add lib.txt && git commit -qm Lib",
        lib.display()
    );
    scratch
        .command(Path::new("sh"))
        .args(&["-c", &line])
        .run()
        .succeeds();
    scratch.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        &lib.to_string_lossy(),
        "lib",
    ]);
    scratch.git(&["commit", "-qm", "With a library"]);
    scratch.settle();
    folder
}

#[test]
fn what_is_left_uncommitted_in_a_submodule_is_not_done() {
    let init = "git -c protocol.file.allow=always submodule update --init --quiet\n";
    let scratch = board(
        &format!("{init}echo 2 >lib/lib.txt\necho outer >outer.txt"),
        &[],
    );
    if !is_boxed(&scratch) {
        return;
    }
    let _folder = with_library(&scratch);
    scratch.change(CONFIG, "base: main", "base: main\nmax_attempts: 1");
    scratch.run("tavern-agent", &["--until-empty", "--name", "Frodo"]);
    let item = scratch.item("T-1");
    assert_eq!(item["status"], "dead", "{item}");
    let reason = item["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("uncommitted in the submodule `lib`"),
        "{reason}"
    );
}

#[test]
fn what_is_committed_in_repositories_of_its_own_comes_out_as_data() {
    let made = "(echo 1 >in.txt && git add . && git commit -qm First)";
    let script = format!(
        "for name in plain build/deep; do git init -q $name; (cd $name; {made}; git config core.fsmonitor 'echo x >>\"$HOME/escaped\"; :'); done\n\
         echo build >.gitignore\ngit add .gitignore\ngit commit -qm Work"
    );
    let scratch = board(&script, &[]);
    if !is_boxed(&scratch) {
        return;
    }
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert_eq!(scratch.item("T-1")["status"], "completed", "{log}");
    for (place, file) in [("plain", "plain"), ("build/deep", "build%2Fdeep")] {
        assert!(
            log.contains(&format!("in the repository `{place}` are on no remote")),
            "{log}"
        );
        let bundle = format!(".tavern/runs/T-1@1/submodules/{file}.git.bundle");
        let heads = scratch.git(&["bundle", "list-heads", &bundle]);
        assert!(heads.contains("HEAD"), "{heads}");
    }
    assert!(!scratch.folder().join("home/escaped").exists());
}

#[test]
fn what_is_in_submodules_and_of_git_lfs_comes_out_as_data() {
    let scratch = board(INNER, &[]);
    if !is_boxed(&scratch) {
        return;
    }
    let _folder = with_library(&scratch);
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert_eq!(scratch.item("T-1")["status"], "completed", "{log}");
    let (_, kept) = log
        .split_once(
            "the submodule `lib` are on no remote of that, your own clone of it has them below `refs/tavern/T-1@1/`, and are kept in the bundle ",
        )
        .expect(&log);
    let bundle = kept.lines().next().expect("a path");
    let commit = scratch.git(&["rev-parse", "tavern/integration:lib"]);
    scratch.git(&["-C", "lib", "fetch", "-q", bundle, "HEAD"]);
    assert_eq!(
        scratch.git(&["-C", "lib", "rev-parse", "FETCH_HEAD"]),
        commit
    );
    let lfs = scratch
        .command(Path::new("sh"))
        .args(&[
            "-c",
            "find .git/lfs/objects ! -type d | sort; cat .git/lfs/objects/*/*/*",
        ])
        .run();
    let lines: Vec<&str> = lfs.stdout.lines().collect();
    assert!(
        matches!(lines[..], [path, "big"] if path.len() > 64),
        "{lfs}"
    );
    assert_eq!(scratch.run("tavern-reap", &[]).ends(0).stdout, "");
}

#[test]
fn a_program_finds_its_account_and_makes_its_databases_anew() {
    let codex = "#!/bin/sh\ncat >/dev/null\ncd \"$HOME/.codex\" || exit\n\
                 { test -e state_5.sqlite && echo seen; cat auth.json config.toml; } >\"$OLDPWD/found.txt\"\n\
                 echo new >state_5.sqlite && echo new >installation_id && echo new >auth.json || exit\n\
                 (echo new >config.toml) 2>/dev/null\necho DONE\n";
    let scratch = Scratch::initialized();
    scratch.write(QUEUE, "- [ ] T-1: Work\n");
    scratch.write(
        CONFIG,
        format!("base: main\nroles: {{coder: {{sandbox: true}}}}\nrunners: {{codex: {{command: [codex]}}}}\n{AT_ONCE}"),
    );
    let names = [
        "state_5.sqlite",
        "installation_id",
        "auth.json",
        "config.toml",
    ];
    let paths = names.map(|name| format!("../home/.codex/{name}"));
    for path in &paths {
        scratch.write(path, "old\n");
    }
    scratch.executable("../bin/codex", codex);
    if !is_boxed(&scratch) {
        return;
    }
    let path = format!(
        "{}:{}",
        scratch.folder().join("bin").display(),
        std::env::var("PATH").expect("it is set")
    );
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty", "--runner", "codex"])
        .variable("PATH", path);
    agent.run().succeeds();
    assert_eq!(
        scratch.item("T-1")["status"],
        "completed",
        "{}",
        scratch.run("tavern-log", &[]).succeeds()
    );
    assert_eq!(
        scratch.git(&["show", "tavern/integration:found.txt"]),
        "old\nold"
    );
    assert_eq!(
        paths.map(|path| scratch.read(path)),
        ["old\n", "old\n", "new\n", "old\n"]
    );
}

/// Ends only after a while when it is asked to, and has started what is in no group or session of its own.
const SLOW: &str = r"trap 'sleep 1; echo bye > bye.txt; exit 3' TERM
setsid sleep 1000 &
(env -i sleep 1000 &)
echo $$ > pid
while :; do sleep 0.1; done
";

#[test]
fn its_end_is_as_polite_and_as_whole_as_without() {
    let scratch = board(SLOW, &[]);
    if !is_boxed(&scratch) {
        return;
    }
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty"])
        .start();
    let worktree = scratch.work().join(".tavern/worktrees/T-1");
    wait_until("the script runs", || worktree.join("pid").exists());
    agent.signal(Signal::TERM);
    assert_eq!(agent.end().code, Some(143));
    assert_eq!(
        std::fs::read_to_string(worktree.join("bye.txt"))
            .ok()
            .as_deref(),
        Some("bye\n"),
        "it had its time"
    );
    scratch.has_no_process();
    scratch.stands("T-1", "pending", 0);
}

#[test]
fn it_is_gone_with_a_supervisor_that_was_killed() {
    let scratch = board(SLOW, &[]);
    if !is_boxed(&scratch) {
        return;
    }
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty"])
        .start();
    wait_until("the script runs", || {
        scratch.work().join(".tavern/worktrees/T-1/pid").exists()
    });
    agent.kill();
    scratch.has_no_process();
    scratch.run("tavern-reap", &[]).succeeds();
    assert_eq!(scratch.item("T-1")["status"], "pending");
}

#[test]
fn without_bubblewrap_nothing_is_begun() {
    let scratch = board("true", &[]);
    // All programs but that one.
    let bin = scratch.folder().join("bin");
    let line = format!(
        "mkdir {0} && ln -s /usr/bin/* {0} && ln -sf /bin/* {0}; rm -f {0}/bwrap",
        bin.display()
    );
    scratch
        .command(Path::new("sh"))
        .args(&["-c", &line])
        .run()
        .succeeds();
    let told = refuses(&scratch, Some(&bin.to_string_lossy()));
    assert!(
        told.starts_with(
            "error: `bwrap`, which `sandbox: true` needs, is not on PATH\nhint: install it"
        ),
        "{told}"
    );
    scratch.executable(
        "../bin/bwrap",
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n",
    );
    let told = refuses(&scratch, Some(&bin.to_string_lossy()));
    let why = "error: `sandbox: true` does not work here: bwrap: No permissions to create new namespace\n";
    assert!(told.starts_with(why), "{told}");
    let checked = scratch
        .program("tavern-check")
        .variable("PATH", &bin)
        .run()
        .ends(5);
    checked.says("error: role `coder`: `sandbox: true` does not work here");
}

#[test]
fn init_says_where_one_can_be_had() {
    for (code, is_told) in [(0, true), (1, false)] {
        let scratch = Scratch::repository();
        scratch.executable("../bin/bwrap", &format!("#!/bin/sh\nexit {code}\n"));
        let bin = scratch.folder().join("bin");
        let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(
            &std::env::var_os("PATH").expect("it is set"),
        )));
        let init = scratch.program("tavern-init").args(&["--runner", "codex"]);
        let ran = init
            .variable("PATH", path.expect("no folder has a colon in its name"))
            .run()
            .ends(0);
        assert_eq!(
            ran.stderr.contains("bubblewrap works here"),
            is_told,
            "{ran}"
        );
    }
}

#[test]
fn a_repository_in_the_memory_of_the_machine_is_seen() {
    let scratch = board("echo work >work.txt", &["test -s work.txt"]);
    let Ok(memory) = tempfile::Builder::new()
        .prefix("tavern-")
        .tempdir_in("/dev/shm")
    else {
        return;
    };
    if !is_boxed(&scratch) {
        return;
    }
    let place = memory.path().join("work");
    let (from, to) = (
        scratch.work().display().to_string(),
        place.display().to_string(),
    );
    scratch
        .command(Path::new("cp"))
        .args(&["-a", &from, &to])
        .run()
        .succeeds();
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty", "--name", "Frodo"]);
    agent.within(&place).run().says("T-1 merged");
}
