//! An agent in a sandbox that tries to get out of it: into what people and Tavern obey, into the items of others, to the terminal.
//!
//! Where no sandbox can be had these hold that nothing is begun.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use serde_json::{Value, json};

use crate::sandbox::is_boxed;
use crate::support::{AT_ONCE, CONFIG, QUEUE, Scratch, program, seen_in_a_box, wait_until};
use crate::terminal::Terminal;

/// A board on which `T-1` is worked in a sandbox by a script, and judged by these commands. Beside it another item waits.
pub fn board(script: &str, done_when: &[&str], settings: &Value) -> Option<Scratch> {
    let scratch = Scratch::initialized();
    let script: String = script.lines().map(|line| format!("  {line}\n")).collect();
    let commands = json!(done_when);
    let item = format!(
        "- [ ] T-1: Work\n  ```sh\n{script}  ```\n  ```yaml task\n  done_when: {commands}\n  ```\n"
    );
    scratch.write(QUEUE, format!("{item}- [ ] T-2: Other (role: nobody)\n"));
    let mut config = json!({"base": "main", "roles": {"coder": {"sandbox": true}, "free": {}}});
    for (name, value) in settings.as_object().expect("settings") {
        config[name] = value.clone();
    }
    scratch.write(CONFIG, format!("{}\n{AT_ONCE}", to_yaml(&config)));
    scratch.settle();
    is_boxed(&scratch).then_some(scratch)
}

/// One setting a line, so that others can follow.
fn to_yaml(config: &Value) -> String {
    let lines = config
        .as_object()
        .expect("settings")
        .iter()
        .map(|(name, value)| format!("{name}: {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

pub fn work(scratch: &Scratch) {
    scratch
        .run("tavern-agent", &["--until-empty", "--name", "Frodo"])
        .succeeds();
}

#[track_caller]
pub fn is_done(scratch: &Scratch) {
    let item = scratch.item("T-1");
    assert_eq!(
        item["status"],
        "completed",
        "{item:#}\n{}",
        scratch.run("tavern-log", &[]).succeeds()
    );
}

fn is_at_home(scratch: &Scratch, name: &str) -> bool {
    scratch.folder().join("home").join(name).exists()
}

const ESCAPE: &str = "(echo >\"$HOME/escaped\") 2>/dev/null || true";

/// Works until `~/go` is there.
const WAITS: &str =
    "echo x >x.txt\n: >begun\nwhile [ ! -e \"$HOME/go\" ]; do sleep 0.05; done\nrm begun\n";

#[test]
fn a_role_that_is_changed_meanwhile_lets_no_command_out() {
    for role in ["free", "nowhere"] {
        let Some(scratch) = board(WAITS, &[ESCAPE], &json!({})) else {
            return;
        };
        let agent = scratch
            .program("tavern-agent")
            .args(&["--once", "--name", "Frodo"])
            .start();
        wait_until("it works", || {
            scratch.work().join(".tavern/worktrees/T-1/begun").exists()
        });
        scratch.change(QUEUE, "T-1: Work\n", &format!("T-1: Work (role: {role})\n"));
        scratch.write("../home/go", "");
        agent.end().ends(0);
        is_done(&scratch);
        assert!(!is_at_home(&scratch, "escaped"), "{role}");
    }
}

/// A run puts a link in the place of what the next one may write to.
#[test]
fn a_link_in_a_folder_that_may_be_written_to_lets_nobody_out() {
    let script = "mkdir -p ~/cache\nln -sfn ../kept ~/cache/inner || true\necho out >~/cache/inner/x || true\necho 1 >x.txt\nfalse";
    let role = |writable: &[&str]| json!({"sandbox": true, "writable": writable});
    let nested = json!({"roles": {"coder": role(&["~/cache", "~/cache/inner"]), "free": {}}, "max_attempts": 2});
    let Some(scratch) = board(script, &["true"], &nested) else {
        return;
    };
    for folder in ["home/kept", "home/cache"] {
        fs::create_dir_all(scratch.folder().join(folder)).expect("it is ours");
    }
    scratch.run("tavern-agent", &["--until-empty", "--name", "Frodo"]);
    assert_eq!(scratch.item("T-1")["attempt"], 2);
    assert!(
        scratch.folder().join("home/cache/inner").is_symlink(),
        "the script has run"
    );
    assert!(!is_at_home(&scratch, "kept/x"));
    // Of two roles neither is told to know of the other's.
    let apart = json!({"base": "main", "roles": {"coder": role(&["~/cache/inner"]), "drone": role(&["~/cache"])}});
    scratch.write(CONFIG, apart.to_string());
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("cache/inner, which is in")
        .says("role `drone`");
    scratch.run("tavern-agent", &["--once"]).ends(1);
}

/// Of `writable`, what people's programs and shells obey, and what they find on PATH.
#[test]
fn nothing_that_is_run_or_obeyed_may_be_written_to() {
    let Some(scratch) = board("echo x >x.txt", &["true"], &json!({})) else {
        return;
    };
    let home = scratch.folder().join("home");
    for folder in [
        ".cargo/bin",
        ".cargo/registry",
        "tools/bin",
        "apart",
        ".npm/_cacache",
    ] {
        fs::create_dir_all(home.join(folder)).expect("it is ours");
    }
    let tool = scratch.executable("../home/apart/tool", "#!/bin/sh\n");
    symlink(tool, home.join(".cargo/bin/tool")).expect("it is ours");
    symlink(home.join(".cargo"), home.join("link")).expect("it is ours");
    let path = std::env::var_os("PATH").expect("it is set");
    let own = std::iter::once(home.join(".cargo/bin"));
    let path = std::env::join_paths(own.chain(std::env::split_paths(&path)));
    let path = path.expect("none has a colon");
    let begin = |program: &str, arguments: &[&str], place: &str| {
        let role = json!({"coder": {"sandbox": true, "writable": [place]}});
        scratch.write(CONFIG, json!({"base": "main", "roles": role}).to_string());
        let program = scratch.program(program).args(arguments);
        program.variable("PATH", &path).run()
    };
    for (place, why) in [
        ("~/.cargo", "`~/.cargo/bin` is on PATH"),
        ("~/.cargo/bin/tool", "`~/.cargo/bin` is on PATH"),
        ("~/link", "`~/.cargo/bin` is on PATH"),
        ("~/apart", "`~/.cargo/bin/tool` is on PATH"),
        ("~/tools", "`~/tools/bin`"),
        ("~", "~/"),
        ("/", "/"),
        ("~/.npm", "`~/.npm/_npx`"),
        ("~/.bashrc", "`~/.bashrc`"),
        ("~/.profile", "`~/.profile`"),
        ("~/.config", "`~/.config`"),
        ("~/.config/fish", "`~/.config`"),
        ("~/.gitconfig", "`~/.gitconfig`"),
        ("~/.ssh", "`~/.ssh`"),
        ("~/.claude/settings.json", "`~/.claude`"),
        ("~/.local", "`~/.local/bin`"),
        ("~/.local/share", "`~/.local/share"),
    ] {
        let ran = begin("tavern-check", &[], place).ends(5);
        ran.says(&format!("`writable` has {place}")).says(why);
        begin("tavern-agent", &["--once"], place).ends(1);
    }
    begin("tavern-check", &[], "~/.cargo").says("~/.cargo/registry, ~/.cargo/git");
    for place in [
        "~/.cargo/registry",
        "~/.npm/_cacache",
        "~/.cache/go-build",
        "~/new",
    ] {
        begin("tavern-check", &[], place).says_not("`writable` has");
    }
}

#[test]
fn the_set_up_is_bounded_too() {
    let Some(scratch) = board(
        "echo x >x.txt",
        &["true"],
        &json!({"worktree": {"setup": ESCAPE}}),
    ) else {
        return;
    };
    work(&scratch);
    is_done(&scratch);
    assert!(!is_at_home(&scratch, "escaped"));
}

#[test]
fn who_reviews_sets_up_the_work_of_a_sandbox_in_one() {
    let verdict =
        "printf '```yaml %s\nverdict: approve\nsummary: good\n```\n\nDONE\n' $TAVERN_NONCE";
    let settings = json!({
        "worktree": {"setup": ESCAPE}, "review": ["reviewer"], "runners": {"judge": {"command": ["sh", "-c", verdict]}},
        "roles": {"coder": {"sandbox": true}, "reviewer": {"does": "review", "runner": "judge"}},
    });
    let Some(scratch) = board("echo x >x.txt", &["true"], &settings) else {
        return;
    };
    work(&scratch);
    scratch
        .run(
            "tavern-agent",
            &["--role", "reviewer", "--name", "Sam", "--until-empty"],
        )
        .succeeds();
    is_done(&scratch);
    assert!(!is_at_home(&scratch, "escaped"));
}

#[test]
fn keys_and_what_listens_are_not_seen() {
    let script = "for path in \"$HOME/.ssh/id\" \"$HOME/.gnupg/key\" /run/user/0 /run/docker.sock; do\n\
                  if [ -e \"$path\" ]; then echo \"$path\" >>seen.txt; fi\ndone\n\
                  if [ -S \"$SSH_AUTH_SOCK\" ]; then echo agent >>seen.txt; fi\n\
                  cat /proc/[0-9]*/comm | grep tavern >>seen.txt || true\n: >>seen.txt\n";
    let Some(scratch) = board(script, &[], &json!({"pass": ["SSH_AUTH_SOCK"]})) else {
        return;
    };
    for file in ["../home/.ssh/id", "../home/.gnupg/key"] {
        scratch.write(file, "key");
    }
    let socket = scratch.folder().join("home/agent.sock");
    let _listener = UnixListener::bind(&socket).expect("the folder is ours");
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty"])
        .variable("SSH_AUTH_SOCK", &socket);
    agent.run().succeeds();
    is_done(&scratch);
    assert_eq!(scratch.git(&["show", "tavern/integration:seen.txt"]), "");
}

#[test]
fn what_browsers_know_of_the_user_is_not_seen() {
    let hidden = [
        ".mozilla/firefox/a.default/places.sqlite",
        ".librewolf/a.default/cookies.sqlite",
        ".thunderbird/a.default/key4.db",
        ".config/google-chrome/Default/History",
        ".config/google-chrome-beta/Default/Cookies",
        ".config/chromium/Default/History",
        ".config/BraveSoftware/Brave-Browser/Default/History",
        ".config/vivaldi/Default/History",
        ".config/microsoft-edge-dev/Default/History",
        ".config/mozilla/firefox/a.default/places.sqlite",
        ".cache/mozilla/firefox/a.default/cache2/entries/1",
        ".cache/google-chrome/Default/Cache/1",
        ".local/share/qutebrowser/history.sqlite",
        "elsewhere/opera/History",
        "snap/firefox/common/.mozilla/firefox/a/places.sqlite",
        ".var/app/org.mozilla.firefox/.mozilla/firefox/a/places.sqlite",
        // A profile that is kept elsewhere.
        ".config/chrome/Default/History",
    ];
    let shown = [".config/zenith/settings", ".cache/pip/1", "chromium/README"];
    let script = "cat ../files | while read -r file; do\n\
                  if [ -e \"$HOME/$file\" ]; then echo \"$file\"; fi\ndone >seen.txt";
    let script = script.replace("../files", "\"$HOME/files\"");
    let Some(scratch) = board(&script, &[], &json!({})) else {
        return;
    };
    for file in hidden.iter().chain(&shown) {
        scratch.write(format!("../home/{file}"), "secret");
    }
    let chrome = scratch.folder().join("home/.config/chrome");
    fs::rename(&chrome, scratch.folder().join("home/kept")).expect("it was written");
    symlink(scratch.folder().join("home/kept"), &chrome).expect("the folder is ours");
    let all = [&hidden[..], &["kept/Default/History"], &shown].concat();
    scratch.write("../home/files", all.join("\n") + "\n");
    scratch
        .program("tavern-agent")
        .args(&["--until-empty"])
        .variable("XDG_CONFIG_HOME", scratch.folder().join("home/elsewhere"))
        .run()
        .succeeds();
    is_done(&scratch);
    assert_eq!(
        scratch.git(&["show", "tavern/integration:seen.txt"]),
        shown.join("\n")
    );
}

/// Whoever starts Tavern has a lock, a job server or a folder open: `flock 9 … 9<folder`.
#[test]
fn what_was_open_before_leads_nobody_out() {
    let way = "(echo x >/proc/self/fd/9/escaped) 2>/dev/null || true";
    let Some(scratch) = board(&format!("{way}\necho x >x.txt"), &[way], &json!({})) else {
        return;
    };
    let line = format!(
        "exec {} --until-empty 9<\"$HOME\"",
        program("tavern-agent").display()
    );
    scratch
        .command(Path::new("sh"))
        .args(&["-c", &line])
        .run()
        .succeeds();
    is_done(&scratch);
    assert!(!is_at_home(&scratch, "escaped"));
}

#[test]
fn nobody_is_typed_for() {
    // What can't open the terminal can't put keys into it either (TIOCSTI).
    let script =
        "if (: </dev/tty) 2>/dev/null; then echo terminal >seen.txt; else echo none >seen.txt; fi";
    let Some(scratch) = board(script, &[], &json!({})) else {
        return;
    };
    let terminal = Terminal::start(
        &scratch,
        &format!("{} --until-empty", program("tavern-agent").display()),
    );
    terminal.end().ends(0);
    is_done(&scratch);
    assert_eq!(
        scratch.git(&["show", "tavern/integration:seen.txt"]),
        "none"
    );
}

/// Types for whoever sits before the terminal, as far as it can; tells what came of it.
const TYPES: &str = r#"#!/bin/sh
perl -e 'open(my $t, "+<", "/dev/tty") or exit 3; my $k = "x"; exit(ioctl($t, 0x5412, $k) ? 0 : 7)'
echo "$?" >typed.txt
"#;

#[test]
fn who_has_the_terminal_types_nothing_into_it() {
    let talk = |role: &str| {
        let scratch = Scratch::with_agent(TYPES, "- [ ] T-1: Talk\n", "");
        scratch.change(CONFIG, "{runner: own}", &format!("{{runner: own{role}}}"));
        scratch.settle();
        if !is_boxed(&scratch) {
            return None;
        }
        let line = format!(
            "{} --chat T-1 --name Frodo",
            program("tavern-agent").display()
        );
        Terminal::start(&scratch, &line).end().ends(0);
        Some(scratch.read(".tavern/worktrees/T-1/typed.txt"))
    };
    assert!(talk(", sandbox: true").is_none_or(|code| code == "7\n"));
}

#[test]
fn the_keys_that_the_kernel_keeps_are_not_reached() {
    // `add_key` to a keyring that goes with the process.
    let Some(number) = [("x86_64", 248), ("aarch64", 217)]
        .into_iter()
        .find(|(arch, _)| *arch == std::env::consts::ARCH)
    else {
        return;
    };
    let adds = format!(
        "perl -e 'my ($t, $n, $v) = qw(user tavern x); exit(syscall({}, $t, $n, $v, 1, -2) < 0 ? 0 : 7)'",
        number.1
    );
    let Some(scratch) = board(&format!("{adds}\necho x >x.txt"), &[&adds], &json!({})) else {
        return;
    };
    work(&scratch);
    is_done(&scratch);
}

#[test]
fn no_lock_of_the_board_is_held_from_inside() {
    let lock = "exec 9<\"$(git -C \"$TAVERN_DIR/..\" rev-parse --absolute-git-dir)/tavern/lock\"\nflock 9\n";
    let Some(scratch) = board(&format!("{lock}{WAITS}"), &[], &json!({})) else {
        return;
    };
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty", "--name", "Frodo"])
        .start();
    let begun = scratch.work().join(".tavern/worktrees/T-1/begun");
    wait_until("it has begun", || begun.exists());
    let added = scratch.run("tavern-add", &["More", "--id", "T-3"]);
    scratch.write("../home/go", "");
    agent.end().ends(0);
    added.ends(0);
    is_done(&scratch);
}

/// Writes to each of these what is to be found nowhere.
const OVERWRITES: &str = r#"common=$(git -C "$TAVERN_DIR/.." rev-parse --absolute-git-dir)
own=$(git rev-parse --absolute-git-dir)
echo x >x.txt
for path in "$TAVERN_DIR/queues/main.md" "$TAVERN_DIR/config.yaml" "$TAVERN_DIR/inbox/T-2/001.md" \
    "$TAVERN_DIR/STOP" "$TAVERN_DIR/quota/shell.yaml" "$TAVERN_DIR/runs/x" \
    "$common/tavern/log/x" "$common/tavern/leases/T-2.yaml" "$common/tavern/applied" "$common/tavern-cells/x" \
    "$common/worktrees/T-1/commondir" "$common/worktrees/T-1/gitdir" "$common/worktrees/T-1/config.worktree" \
    "$common/worktrees/T-1/HEAD" "$common/config" "$common/hooks/pre-commit" "$common/info/attributes" \
    "$common/refs/heads/main" "$common/packed-refs" "$common/objects/x" .git \
    "$TAVERN_DIR/../README.md" "$HOME/.bashrc"; do
    mkdir -p "${path%/*}" 2>/dev/null || true
    if (echo FORGED >>"$path") 2>/dev/null; then echo "$path" >>wrote.txt; fi
    if (ln -sf "$HOME/.bashrc" "$path") 2>/dev/null; then echo "$path" >>wrote.txt; fi
done
for path in .git "$TAVERN_DIR" "$common" "$common/worktrees/T-1"; do
    if mv "$path" "$path.old" 2>/dev/null; then echo "moved $path" >>wrote.txt; fi
done
"#;

#[test]
fn nothing_that_others_obey_can_be_written() {
    let Some(scratch) = board(OVERWRITES, &[], &json!({})) else {
        return;
    };
    scratch.write("../home/.bashrc", "");
    let before = scratch.git(&["for-each-ref"]);
    work(&scratch);
    is_done(&scratch);
    assert!(
        !scratch
            .git(&["ls-tree", "--name-only", "tavern/integration"])
            .contains("wrote.txt"),
        "{}",
        { scratch.git(&["show", "tavern/integration:wrote.txt"]) }
    );
    assert!(scratch.git(&["for-each-ref"]).starts_with(before.as_str()));
    assert_eq!(scratch.read("../home/.bashrc"), "");
    let grep = scratch.command("grep".as_ref()).args(&[
        "-rl",
        "--exclude-dir=worktrees",
        "FORGED",
        ".",
        "../home",
    ]);
    let holders = grep.run().stdout;
    // The item's own script says the word: in its queue, in the log, in its run.
    let others: Vec<&str> = holders
        .lines()
        .filter(|path| {
            !path.contains("/queues/")
                && !path.contains(".git/tavern/")
                && !path.contains("/runs/T-1@")
        })
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_branches_of_others_stay_where_they_are() {
    let script = "echo x >x.txt\ngit add x.txt\ngit commit -qm Work\n\
                  git update-ref refs/heads/tavern/integration HEAD\ngit update-ref refs/heads/main HEAD\n\
                  git branch -f mine HEAD\ngit tag -f v1 HEAD\n: >\"$HOME/x\" 2>/dev/null || true\nfalse\n";
    let Some(scratch) = board(script, &[], &json!({"max_attempts": 1})) else {
        return;
    };
    scratch.run("tavern-agent", &["--once", "--name", "Frodo"]);
    let main = scratch.git(&["rev-parse", "main"]);
    assert_eq!(
        scratch.git(&["rev-parse", "tavern/integration"]),
        main,
        "its base"
    );
    assert_eq!(scratch.git(&["log", "--format=%s", "-1", "main"]), "Begin");
    assert_eq!(scratch.git(&["branch", "--list", "mine"]), "");
    assert_eq!(scratch.git(&["tag", "--list"]), "");
    // What it made is kept, where nobody looks for anything.
    assert_eq!(
        scratch.git(&[
            "log",
            "--format=%s",
            "-1",
            "refs/tavern/cells/T-1/heads/mine"
        ]),
        "Work"
    );
}

/// Settings of git by which commands would be run outside.
const TRAPS: &str = r#"trap=": >'$HOME/escaped'"
echo x >x.txt
git config filter.trap.clean "$trap; cat"
git config core.fsmonitor "$trap; false"
git config core.hooksPath "$PWD/hooks"
mkdir hooks
printf '#!/bin/sh\n%s\n' "$trap" >hooks/pre-commit
chmod +x hooks/pre-commit
echo '* filter=trap' >.gitattributes
git init -q inner
(cd inner && git commit -q --allow-empty -m Inner && git config core.fsmonitor "$trap; false" && echo x >x)
git add inner 2>/dev/null
git -c core.hooksPath=/dev/null commit -qm 'With a repository inside'
echo more >inner/x
(cd inner && git config filter.trap.clean "$trap; cat" && echo '* filter=trap' >.gitattributes)
echo y >y.txt
"#;

#[test]
fn no_setting_of_its_git_counts_outside() {
    let Some(scratch) = board(TRAPS, &[], &json!({})) else {
        return;
    };
    work(&scratch);
    // It names a commit of a repository of its own, which its owner has to want.
    scratch.stands("T-1", "approved", 1);
    let bundle = ".tavern/runs/T-1@1/submodules/inner.git.bundle";
    scratch.git(&["clone", "--quiet", bundle, "inner"]);
    scratch.run("tavern-merge", &["T-1"]).succeeds();
    is_done(&scratch);
    assert!(
        !is_at_home(&scratch, "escaped"),
        "{}",
        scratch.run("tavern-log", &[]).succeeds()
    );
    assert_eq!(
        scratch.git(&["show", "tavern/integration:y.txt"]),
        "y",
        "what it left uncommitted is committed"
    );
}

#[test]
fn links_in_the_runs_folder_lead_nowhere() {
    let script = "echo x >x.txt\nfor name in result.txt metadata.json prompt.md verify.txt diff.patch plan.md \
                  verdict.yaml tool_calls output.log; do\nln -sf \"$HOME/.bashrc\" \"$TAVERN_RUN/$name\" 2>/dev/null || true\ndone\n";
    let Some(scratch) = board(script, &["true"], &json!({})) else {
        return;
    };
    scratch.write("../home/.bashrc", "mine\n");
    work(&scratch);
    is_done(&scratch);
    assert_eq!(scratch.read("../home/.bashrc"), "mine\n");
    let run = fs::read_dir(scratch.work().join(".tavern/runs"))
        .expect("it ran")
        .flatten()
        .next()
        .expect("one");
    let links = fs::read_dir(run.path())
        .expect("it ran")
        .flatten()
        .filter(|entry| entry.path().is_symlink());
    assert_eq!(links.count(), 0);
}

#[test]
fn a_git_directory_that_is_a_trap_is_kept_aside_and_hangs_nobody() {
    let script = "echo x >x.txt\ngit=$(git rev-parse --absolute-git-dir)\nrm \"$git/HEAD\"\nmkfifo \"$git/HEAD\"\n\
                  rm \"$git/index\"\nln -s /dev/zero \"$git/index\"\n";
    let Some(scratch) = board(script, &[], &json!({"max_attempts": 1})) else {
        return;
    };
    scratch.run("tavern-agent", &["--once", "--name", "Frodo"]);
    let item = scratch.item("T-1");
    let reason = item["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("its git directory can't be read, and is kept in"),
        "{item:#}"
    );
    assert_eq!(item["status"], "dead");
}

/// Where git looks for files, also for a repository within.
#[test]
fn pipes_in_the_worktree_hang_nobody() {
    let script = "echo x >x.txt\nmkdir -p q/.git sub\nmkfifo .gitattributes .gitignore sub/.gitignore q/.git/HEAD\n";
    let Some(scratch) = board(script, &["test -e x.txt"], &json!({})) else {
        return;
    };
    work(&scratch);
    is_done(&scratch);
}

/// Makes pipes again and again, also in the place of what is tracked.
const PIPES: &str = r#"echo x >x.txt
while [ ! -e "$HOME/go" ]; do
    rm -f README.md
    mkfifo README.md .gitattributes .gitignore 2>/dev/null || true
done
rm -f README.md .gitattributes .gitignore
git checkout README.md
"#;

fn has_pipe(scratch: &Scratch) -> bool {
    let place = scratch.work().join(".tavern/worktrees/T-1/.gitignore");
    place
        .symlink_metadata()
        .is_ok_and(|found| found.file_type().is_fifo())
}

#[test]
fn pipes_that_are_made_again_and_again_hang_nobody() {
    let Some(scratch) = board(PIPES, &["test -e x.txt"], &json!({})) else {
        return;
    };
    let agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty", "--name", "Frodo"])
        .start();
    wait_until("it makes pipes", || has_pipe(&scratch));
    for words in [["tavern", "diff"], ["tavern", "status"]] {
        let timed = [&["30"], &words[..], &["T-1"]].concat();
        let ran = scratch.command(Path::new("timeout")).args(&timed).run();
        assert_ne!(ran.code, Some(124), "{words:?}: {ran}");
    }
    let is_looking = || {
        let all = scratch.processes();
        all.iter().any(|line| line.contains(" --porcelain=v2 "))
    };
    wait_until("nobody looks", || !is_looking());
    let diff = scratch.program("tavern-diff").args(&["T-1"]).start();
    wait_until("git waits for a pipe", is_looking);
    diff.kill();
    wait_until("git has ended with who started it", || !is_looking());
    scratch.write("../home/go", "");
    agent.end().ends(0);
    is_done(&scratch);
}

/// The looks at its files are made by the program that keeps its limits.
#[test]
fn pipes_that_are_made_again_and_again_are_within_the_limit() {
    let settings = json!({
        "roles": {"coder": {"sandbox": true, "budget": {"minutes": 0.2}}},
        "rules": {"small": {"lines": 1000, "then": "pause"}},
        "watch": {"every": "1s"},
        "max_attempts": 1,
    });
    let Some(scratch) = board(PIPES, &[], &settings) else {
        return;
    };
    let timed = ["60", "tavern", "drain"];
    let ran = scratch.command(Path::new("timeout")).args(&timed).run();
    assert_ne!(ran.code, Some(124), "{ran}");
    let item = scratch.item("T-1");
    assert_eq!(item["status"], "dead", "{item:#}");
    assert!(
        item["reason"]
            .as_str()
            .is_some_and(|why| why.contains("time")),
        "{item:#}"
    );
    scratch.has_no_process();
}

/// Puts letters of its own into the mailbox.
const LETTERS: &str = r#"echo x >x.txt
letter() {
    name=$(cat /proc/sys/kernel/random/uuid).json
    printf '%s' "$1" >"$TAVERN_MAILBOX/out/.new" && mv "$TAVERN_MAILBOX/out/.new" "$TAVERN_MAILBOX/out/$name"
    while [ ! -e "$TAVERN_MAILBOX/in/$name" ]; do sleep 0.05; done
    grep -o '"code":[0-9]*' "$TAVERN_MAILBOX/in/$name" >>codes.txt
}
letter '{"verb": "release", "arguments": ["T-2", "--cancel"], "input": ""}'
letter '{"verb": "../../../bin/sh", "arguments": ["-c", "true"], "input": ""}'
letter '{"verb": "add", "arguments": ["Mine"], "input": ""}'
letter '{"verb": "add", "arguments": ["Mine", "--parent=T-2"], "input": ""}'
letter '{"verb": "add", "arguments": ["Mine", "--parent", "--queue", "README.md"], "input": ""}'
letter '{"verb": "add", "arguments": ["Mine", "--parent", "--queue=../home/notes.md"], "input": ""}'
letter '{"verb": "add", "arguments": ["Mine", "--dir", "/elsewhere"], "input": ""}'
letter '{"verb": "add", "arguments": ["Mine", "--parent", "--role", "free"], "input": ""}'
letter '{"verb": "add", "arguments": ["--parent"], "input": "Mine\n```yaml task\nrole: free\n```"}'
letter '{"verb": "tell", "arguments": ["T-2", "Stop", "--from", "Boss"], "input": ""}'
letter '{"verb": "report", "arguments": ["T-2", "--failed", "no", "--token", "1"], "input": ""}'
letter '{"verb": "report", "arguments": ["--approve"], "input": ""}'
letter 'no letter'
name=$(cat /proc/sys/kernel/random/uuid).json
ln -s "$HOME/.bashrc" "$TAVERN_MAILBOX/out/$name"
name=$(cat /proc/sys/kernel/random/uuid).json
mkfifo "$TAVERN_MAILBOX/out/$name"
while [ ! -e "$TAVERN_MAILBOX/in/$name" ]; do sleep 0.05; done
letter '{"verb": "tell", "arguments": ["T-2", "In my own name"], "input": ""}'
if (: >"$TAVERN_MAILBOX/in/x") 2>/dev/null; then echo forged >>codes.txt; fi
"#;

/// What of the machine root can write to: opened, and nothing written.
const MACHINE: &str = r#"for path in /proc/sys/kernel/core_pattern /proc/sys/kernel/usermodehelper/bset /proc/sys/vm/swappiness /proc/sysrq-trigger; do
    if (: >>"$path") 2>/dev/null; then echo "$path" >>seen.txt; fi
done
: >>seen.txt
"#;

#[test]
fn nothing_of_the_machine_can_be_written() {
    let Some(scratch) = board(MACHINE, &[], &json!({})) else {
        return;
    };
    work(&scratch);
    is_done(&scratch);
    assert_eq!(scratch.git(&["show", "tavern/integration:seen.txt"]), "");
}

/// A part of what is handed out that has an ID would be an item of its own, with a role of its own.
#[test]
fn what_is_handed_out_has_no_items_in_it() {
    let parts = ["- [ ] T-9: out (role: free)", "- [ ] T-9: out"];
    let add = |part: &&str| {
        format!(
            "printf 'Child\n\n{part}\n' | tavern-add --parent --role coder >>out.txt 2>>out.txt || true\n"
        )
    };
    let script: String = parts.iter().map(add).collect();
    let Some(scratch) = board(&script, &[], &json!({})) else {
        return;
    };
    work(&scratch);
    is_done(&scratch);
    let said = scratch.git(&["show", "tavern/integration:out.txt"]);
    assert_eq!(
        said.matches("a step of an item can't have an ID, keys or a tick")
            .count(),
        parts.len(),
        "{said}"
    );
    assert_eq!(
        scratch.item("T-1")["children"].as_array().map(Vec::len),
        Some(0)
    );
}

#[test]
fn the_mailbox_does_what_agents_may_and_nothing_else() {
    let Some(scratch) = board(LETTERS, &[], &json!({})) else {
        return;
    };
    scratch.write("../home/notes.md", "# Notes\n");
    work(&scratch);
    is_done(&scratch);
    let codes = scratch.git(&["show", "tavern/integration:codes.txt"]);
    let codes: Vec<&str> = codes
        .lines()
        .map(|line| line.trim_start_matches("\"code\":"))
        .collect();
    assert_eq!(
        codes,
        [
            "4", "4", "4", "4", "4", "4", "2", "4", "4", "4", "4", "4", "4", "0"
        ]
    );
    assert_eq!(scratch.item("T-2")["status"], "pending");
    assert_eq!(scratch.read("../home/notes.md"), "# Notes\n");
    assert_eq!(scratch.read("README.md"), "# A project\n");
    let letters = scratch.letters("T-2");
    assert_eq!(letters.len(), 1);
    let letter = scratch.read(&letters[0]);
    assert!(
        letter.contains("Frodo") && letter.contains("In my own name"),
        "{letter}"
    );
}

/// Speaks to a port and to an abstract socket.
const SPEAKS: &str = "perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0); \
    exit(connect($s, pack_sockaddr_un(\"\\0$ENV{HOME}\")) ? 0 : 1)' && echo";

#[test]
fn the_network_is_reached_by_whom_the_role_says() {
    for (network, expected) in [("all", "agent done_when"), ("agent", "agent"), ("none", "")] {
        let script = format!("{SPEAKS} agent >>spoke.txt || true\n: >>spoke.txt");
        let speaks = format!("{SPEAKS} done_when >>spoke.txt || true");
        let spoke = format!("test \"$(xargs <spoke.txt)\" = '{expected}'");
        let settings = json!({"roles": {"coder": {"sandbox": true, "network": network}}});
        let Some(scratch) = board(&script, &[&speaks, &spoke], &settings) else {
            return;
        };
        let name =
            SocketAddr::from_abstract_name(scratch.folder().join("home").as_os_str().as_bytes());
        let _listener = UnixListener::bind_addr(&name.expect("a name")).expect("nobody has it");
        work(&scratch);
        is_done(&scratch);
    }
}

#[test]
fn neither_git_nor_the_sandbox_is_taken_from_the_work() {
    let Some(scratch) = board("echo x >x.txt", &["true"], &json!({})) else {
        return;
    };
    for name in ["git", "bwrap", "sh"] {
        let own = scratch.write(
            name,
            "(: >\"$HOME/escaped\") 2>/dev/null\nPATH=${PATH#.:}\nexec ${0##*/} \"$@\"\n",
        );
        fs::set_permissions(own, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    scratch.git(&["add", "git", "bwrap", "sh"]);
    scratch.git(&["commit", "-qm", "Programs"]);
    let path = format!(".:{}", std::env::var("PATH").expect("it is set"));
    scratch
        .program("tavern-agent")
        .args(&["--until-empty"])
        .variable("PATH", path)
        .run()
        .succeeds();
    is_done(&scratch);
    assert!(!is_at_home(&scratch, "escaped"));
}

/// A program of the repository that the user's settings name as a filter, as its agent would have it.
const FILTER: &str = r#"cat >filter.sh <<'END'
(echo "$0" >>"$HOME/escaped") 2>/dev/null
(echo "$0" >>"$(git rev-parse --git-common-dir)/escaped") 2>/dev/null
tr a-z A-Z
END
printf '#!/bin/sh\n(: >"$HOME/escaped") 2>/dev/null\nexec /usr/bin/tr "$@"\n' >tr
chmod +x tr
git add filter.sh tr
git commit -qm Trap
echo work >"it's \$(echo 100%) x.txt"
"#;

#[test]
fn a_filter_of_the_users_is_run_in_a_sandbox_over_what_was_worked_in_one() {
    let line = |name: &str| format!("PATH=.:$PATH && sh ./filter.sh {name} %f");
    let Some(scratch) = board(FILTER, &["true"], &json!({"review": ["reviewer"]})) else {
        return;
    };
    scratch.write("filter.sh", "tr a-z A-Z\n");
    scratch.write(".gitattributes", "*.txt filter=own\n");
    scratch.git(&["add", "--all"]);
    scratch.git(&["commit", "-qm", "Filter"]);
    scratch.git(&["config", "filter.own.clean", &line("clean")]);
    scratch.git(&[
        "config",
        "filter.own.smudge",
        "sh -c 'sh ./filter.sh | tr A-Z a-z'",
    ]);
    scratch.settle();
    work(&scratch);
    assert_eq!(
        scratch.item("T-1")["status"],
        "in_review",
        "{}",
        scratch.run("tavern-log", &[]).succeeds()
    );
    scratch
        .run("tavern-report", &["T-1", "--approve"])
        .succeeds();
    scratch.run("tavern-merge", &[]).succeeds();
    is_done(&scratch);
    assert_eq!(
        scratch.git(&["show", "tavern/integration:it's $(echo 100%) x.txt"]),
        "WORK"
    );
    assert!(!is_at_home(&scratch, "escaped") && !scratch.work().join(".git/escaped").exists());
}

/// As git-lfs does it: `.lfsconfig` of the work says whom it asks.
const LFS: &str = r#"#!/bin/sh
port=$(git config --file .lfsconfig lfs.url | tr -dc 0-9)
perl -MIO::Socket::INET -e "exit !IO::Socket::INET->new(q(127.0.0.1:$port))" && echo "$1" >>"$HOME/reached"
store=$(git rev-parse --path-format=absolute --git-common-dir)/lfs/objects
if [ "$1" = smudge ]; then
    read -r id
    file=$store/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-4)/$id
    [ -e "$file" ] && exec cat "$file"
    echo "$id"
    [ -n "$GIT_LFS_SKIP_DOWNLOAD_ERRORS" ] || exit 2
    exit
fi
mkdir -p "$store" && cat >"$store/$$" || exit
grep -qxE '[0-9a-f]{64}' "$store/$$" && exec cat "$store/$$"
id=$(sha256sum <"$store/$$" | cut -c1-64)
folder=$store/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-4)
mkdir -p "$folder" && mv "$store/$$" "$folder/$id" && echo "$id"
"#;

#[test]
fn git_lfs_asks_nobody_whom_the_work_names() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback");
    let port = listener.local_addr().expect("it has one").port();
    listener.set_nonblocking(true).expect("it can be asked");
    // Its own pointer leads to nothing.
    let script = format!(
        "git config --file .lfsconfig lfs.url http:{port}\nprintf '%064d\\n' 7 >lost.bin\n\
         git add lost.bin\ngit commit -qm Lost\necho big >x.bin\n"
    );
    let role = json!({"coder": {"sandbox": true, "network": "none"}});
    let Some(scratch) = board(&script, &["grep big x.bin"], &json!({ "roles": role })) else {
        return;
    };
    scratch.executable("../home/bin/git-lfs", LFS);
    scratch.write(".gitattributes", "*.bin filter=lfs\n");
    scratch.commit(&[".gitattributes"], "Large files");
    for name in ["clean", "smudge"] {
        let line = format!("git-lfs {name} -- %f");
        scratch.git(&["config", &format!("filter.lfs.{name}"), &line]);
    }
    scratch.git(&["config", "filter.lfs.required", "true"]);
    let bin = scratch.folder().join("home/bin");
    let path = std::env::var_os("PATH").expect("it is set");
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)));
    let agent = scratch.program("tavern-agent").args(&["--until-empty"]);
    let agent = agent.variable("PATH", path.expect("none has a colon"));
    agent.run().succeeds();
    is_done(&scratch);
    let id = scratch.git(&["show", "tavern/integration:x.bin"]);
    let kept = format!(".git/lfs/objects/{}/{}/{id}", &id[..2], &id[2..4]);
    assert_eq!(scratch.read(kept), "big\n");
    assert!(
        listener.accept().is_err() && !is_at_home(&scratch, "reached"),
        "{}",
        scratch.read("../home/reached")
    );
}

#[test]
fn a_commit_may_be_larger_than_what_is_read_of_a_file() {
    let script = "for name in core.compression core.looseCompression pack.compression; do git config $name 0; done\n\
                  git config core.bigFileThreshold 1m\ntruncate -s 257M large && git add large && git commit -qm Large\n\
                  git rm -q large && echo small >small.txt && git add small.txt && git commit -qm Small";
    let Some(scratch) = board(script, &["true"], &json!({})) else {
        return;
    };
    work(&scratch);
    is_done(&scratch);
    assert_eq!(
        scratch.git(&["show", "tavern/integration:small.txt"]),
        "small"
    );
}

#[test]
fn what_a_sandbox_does_not_show_is_not_worked_in_one() {
    for hidden in [".", ".git"] {
        let Some(scratch) = board("echo x >x.txt", &["true"], &json!({})) else {
            return;
        };
        // What a sandbox hides is where this leads.
        symlink(
            scratch.work().join(hidden),
            scratch.folder().join("home/.gnupg"),
        )
        .expect("it is free");
        scratch
            .run("tavern-agent", &["--until-empty"])
            .ends(1)
            .says("the folder")
            .says("is hidden in a sandbox");
        let item = scratch.item("T-1");
        assert_eq!(
            (&item["status"], &item["attempt"]),
            (&json!("pending"), &json!(0)),
            "{hidden}: {item:#}"
        );
    }
}

#[test]
fn the_queues_may_be_committed_from_inside() {
    let Some(scratch) = board(
        "tavern commit >x.txt || echo refused >x.txt",
        &["true"],
        &json!({}),
    ) else {
        return;
    };
    work(&scratch);
    is_done(&scratch);
    let said = scratch.git(&["show", "tavern/integration:x.txt"]);
    let commit = said.strip_prefix("the queues are committed as ");
    let log = scratch.git(&["log", "--format=%h", "tavern/board"]);
    assert!(log.lines().any(|id| Some(id) == commit), "{said}: {log}");
}

/// What a person does first with work that has failed.
#[test]
fn a_look_at_the_worktree_obeys_no_repository_in_it() {
    let bait = "git config core.fsmonitor 'echo x >>\"$HOME/escaped\"; :'";
    let made = format!(
        "git init -q here && (cd here && echo 1 >f && git add f && git commit -qm In; {bait})"
    );
    let script = format!(
        "rm -rf lib && git -c protocol.file.allow=always submodule update --init --quiet lib\n(cd lib && {bait})\n{made}\n\
         git init -q plain && (cd plain && {bait} && git commit -q --allow-empty -m In)\ngit add here\n\
         ln -s \"$HOME\" away && git update-index --add --cacheinfo 160000,$(git -C here rev-parse HEAD),away/own\n\
         chmod 500 here here/.git\necho again >>tries.txt\ngit add tries.txt && git commit -qm Work\n\
         test -e lib/lib.txt && git -C lib log -1 --format=%s >said.txt"
    );
    let Some(scratch) = board(&script, &["false"], &json!({"max_attempts": 2})) else {
        return;
    };
    let folder = seen_in_a_box();
    let lib = folder.path().join("lib").display().to_string();
    let line = format!(
        "git init -q {lib} && cd {lib} && echo 1 >lib.txt && git add lib.txt && git commit -qm Lib"
    );
    scratch
        .command(Path::new("sh"))
        .args(&["-c", &line])
        .run()
        .succeeds();
    scratch.git(&["init", "-q", "../home/own"]);
    scratch.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        &lib,
        "lib",
    ]);
    scratch.git(&["commit", "-qm", "With a library"]);
    scratch.settle();
    scratch.run("tavern-agent", &["--once", "--name", "Frodo"]);
    let item = scratch.stands("T-1", "pending", 1);
    let worktree = scratch
        .work()
        .join(".tavern/worktrees/T-1")
        .display()
        .to_string();
    assert!(scratch.work().join(".tavern/worktrees/T-1/here/f").exists());
    for look in ["status", "diff", "add --all", "stash"] {
        let words: Vec<&str> = ["-C", &worktree]
            .into_iter()
            .chain(look.split(' '))
            .collect();
        scratch
            .command(Path::new("git"))
            .args(&words)
            .run()
            .succeeds();
        assert!(!is_at_home(&scratch, "escaped"), "{look}: {item:#}");
    }
    work(&scratch);
    scratch.stands("T-1", "dead", 2);
    assert!(
        is_at_home(&scratch, "own/.git"),
        "behind a link nothing is taken"
    );
    // What was committed there is kept, and the second run has set up its submodule anew.
    scratch
        .run("tavern-log", &[])
        .says("the submodule `here` are on no remote of that");
    assert_eq!(
        scratch.git(&["show", "tavern/T-1:tries.txt"]),
        "again\nagain"
    );
    assert_eq!(scratch.git(&["show", "tavern/T-1:said.txt"]), "Lib");
}

/// Its commit has a submodule that its index has no more, until a person puts that back.
#[test]
fn a_look_after_a_reset_obeys_no_repository_in_the_worktree() {
    let script = "git init -q sub && git -C sub commit -q --allow-empty -m In\n\
                  git -C sub config core.fsmonitor 'echo x >>\"$HOME/escaped\"; :'\n\
                  git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub\n\
                  git commit -qm Work && git rm -q --cached sub; exit 1";
    let Some(scratch) = board(script, &["true"], &json!({"max_attempts": 2})) else {
        return;
    };
    scratch.run("tavern-agent", &["--once", "--name", "Frodo"]);
    let item = scratch.stands("T-1", "pending", 1);
    let worktree = scratch
        .work()
        .join(".tavern/worktrees/T-1")
        .display()
        .to_string();
    assert_eq!(
        scratch.git(&["ls-tree", "--name-only", "tavern/T-1", "sub"]),
        "sub",
        "{item:#}"
    );
    for look in ["reset -q", "status", "checkout HEAD -- .", "diff"] {
        let words: Vec<&str> = ["-C", &worktree]
            .into_iter()
            .chain(look.split(' '))
            .collect();
        scratch
            .command(Path::new("git"))
            .args(&words)
            .run()
            .succeeds();
        assert!(!is_at_home(&scratch, "escaped"), "{look}: {item:#}");
    }
}

/// They run what the agent has made, after its program has ended.
#[test]
fn a_look_at_the_worktree_obeys_no_repository_of_its_commands() {
    let check = "mkdir -p sub && git init -q sub && git -C sub commit -q --allow-empty -m In\n\
                 git -C sub config core.fsmonitor 'echo x >>\"$HOME/escaped\"; :'";
    let script = format!(
        "cat >check.sh <<'X'\n{check}\nX\ngit add check.sh\n\
         git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub\ngit commit -qm Work"
    );
    let Some(scratch) = board(&script, &["sh check.sh"], &json!({"review": ["person"]})) else {
        return;
    };
    scratch
        .run("tavern-agent", &["--once", "--name", "Frodo"])
        .succeeds();
    scratch.stands("T-1", "in_review", 1);
    let worktree = scratch.work().join(".tavern/worktrees/T-1");
    assert!(worktree.join("sub").exists());
    scratch
        .command(Path::new("git"))
        .args(&["-C", &worktree.display().to_string(), "status"])
        .run()
        .succeeds();
    assert!(!is_at_home(&scratch, "escaped"));
}
