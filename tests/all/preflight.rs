//! Before anything is claimed: what is missing is told, costs no attempt, and keeps nobody from the rest.

use std::fs;

use serde_json::Value;

use crate::support::{CONFIG, QUEUE, Ran, Scratch, wait_until};

/// One that no machine has.
const NO_PROGRAM: &str = "no-such-program-here";

const NEEDS: &str = "its done_when needs `no-such-program-here`, which is not on PATH; install no-such-program-here; if the \
                     item is to bring it: `command -v no-such-program-here && no-such-program-here --check`";

fn item(id: &str, done_when: &str) -> String {
    let task = if done_when.is_empty() {
        String::new()
    } else {
        format!("  ```yaml task\n  done_when: ['{done_when}']\n  ```\n")
    };
    format!("- [ ] {id}: Do {id}\n  ```sh\n  echo {id} > {id}.txt\n  ```\n{task}")
}

fn board(queue: &str, config: &str) -> Scratch {
    Scratch::shell(queue, &format!("base: main\n{config}"))
}

fn agent(scratch: &Scratch) -> Ran {
    scratch.run("tavern-agent", &["--until-empty", "--name", "Frodo"])
}

/// What Frodo shows of himself.
fn doing(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.work().join(".tavern/agents/Frodo.yaml")).unwrap_or_default()
}

#[test]
fn a_branch_that_git_does_not_allow_is_an_error() {
    let scratch = board(&item("T-1", ""), "integration: {branch: a..b}\n");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says("`a..b` can't be the name of a branch");
}

#[test]
fn an_item_that_lacks_a_program_is_passed_over_and_the_rest_goes_on() {
    let check = format!("{NO_PROGRAM} --check");
    let scratch = board(
        &[
            item("T-1", &check),
            item("T-2", ""),
            item("T-3", "grep -q T-3 T-3.txt"),
        ]
        .concat(),
        "",
    );
    let told = agent(&scratch).succeeds();
    assert_eq!(
        told.matches(&format!("Frodo: T-1 skipped: {NEEDS}\n"))
            .count(),
        1,
        "told once\n{told}"
    );
    assert!(
        told.contains("T-2 merged") && told.contains("T-3 merged"),
        "{told}"
    );
    let left = scratch.item("T-1");
    assert_eq!(
        (&left["status"], &left["attempt"], &left["returns"]),
        (&"pending".into(), &0.into(), &0.into())
    );
    assert!(
        !scratch.work().join(".tavern/worktrees/T-1").exists(),
        "nothing was begun"
    );
    // Everybody says why, as `readiness.rs` holds.
    scratch
        .run("tavern-status", &[])
        .ends(0)
        .says(&format!("T-1      pending     Do T-1 ({NEEDS})"));
    scratch
        .run("tavern-check", &[])
        .says("main.md:1:7: warning: this is skipped: its done_when needs");
    let drained = scratch
        .run("tavern-drain", &["main", "--agents", "2"])
        .ends(1);
    assert!(
        drained
            .stdout
            .contains(&format!("main: T-1 pending — Do T-1\n  {NEEDS}\n")),
        "{drained}"
    );
    assert_eq!(
        drained.stderr.matches("T-1 skipped: ").count(),
        1,
        "{drained}"
    );
    // A person may take anything.
    scratch.run("tavern-claim", &["--task", "T-1"]).succeeds();
}

#[test]
fn what_is_left_is_hinted_at_with_its_own_queue() {
    let scratch = board(&item("T-1", ""), "");
    scratch.add_queue("last");
    scratch
        .run(
            "tavern-add",
            &["--queue", "last", "--id", "T-2", "No script"],
        )
        .ends(0);
    let ran = scratch.run("tavern-drain", &["--agents", "1"]).ends(1);
    ran.says("last: T-2 pending")
        .says("or: tavern drain last --runner claude\n")
        .says_not("T-2 skipped");
}

#[test]
fn an_item_is_taken_once_the_programs_and_files_that_it_needs_are_there() {
    let script = "  ```sh\n  echo > a.txt\n  ```\n";
    let queue = format!(
        "- [ ] T-1: a (needs: [sh, no-such-tool])\n{script}- [ ] T-2: b (needs: sh, ./.env)\n{script}"
    );
    let scratch = board(&queue, "");
    for (id, lack) in [
        (
            "T-1",
            "it needs `no-such-tool`, which is not on PATH; install it",
        ),
        ("T-2", "it needs `./.env`, which is not there; make it"),
    ] {
        scratch.run("tavern-claim", &["--role", "coder"]).ends(3);
        scratch.run("tavern-status", &[id]).ends(0).says(lack);
    }
    scratch
        .run("tavern-drain", &[])
        .ends(1)
        .says("0 of 2 completed, 2 left");
    scratch.write(".env", "");
    scratch
        .run("tavern-drain", &[])
        .ends(1)
        .says("1 of 2 completed, 1 left");
    scratch.stands("T-2", "completed", 1);
}

#[test]
fn an_item_is_taken_once_the_variables_that_it_needs_are_set_and_passed_on() {
    let script = "  ```sh\n  test -n \"$DEPLOY_KEY\"; echo > a.txt\n  ```\n";
    let scratch = board(
        &format!("- [ ] T-1: a (needs: [sh, $DEPLOY_KEY])\n{script}"),
        "",
    );
    let status = |value: &str| {
        scratch
            .program("tavern-status")
            .args(&["T-1"])
            .variable("DEPLOY_KEY", value)
            .run()
    };
    for (value, lack) in [
        (
            "",
            "it needs `$DEPLOY_KEY`, which is neither set nor passed on; name it in .tavern/config.yaml: `pass: \
             [DEPLOY_KEY]`; then set it, and start this again: export DEPLOY_KEY=…",
        ),
        (
            "s3cret",
            "it needs `$DEPLOY_KEY`, which is not passed on; name it in .tavern/config.yaml: `pass: [DEPLOY_KEY]`",
        ),
    ] {
        status(value).ends(0).says(lack).says_not("s3cret");
    }
    scratch.write(CONFIG, "pass: [DEPLOY_KEY]\n");
    status("").ends(0).says("which is not set");
    scratch
        .run("tavern-drain", &[])
        .ends(1)
        .says("0 of 1 completed, 1 left");
    scratch
        .program("tavern-drain")
        .variable("DEPLOY_KEY", "s3cret")
        .run()
        .ends(0)
        .says_not("s3cret");
    scratch.stands("T-1", "completed", 1);
}

#[test]
fn an_item_is_taken_once_somebody_is_signed_in_to_the_accounts_that_it_needs() {
    let script = "  ```sh\n  echo > a.txt\n  ```\n";
    let config =
        "accounts: {github: {check: 'echo >> checks; test -e signed-in', hint: gh auth login}}\n";
    let scratch = board("", config);
    let checks = || {
        fs::read_to_string(scratch.work().join("checks"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    scratch.run("tavern-status", &[]).ends(0);
    assert_eq!(checks(), 0, "no item needs it");
    let add = |id: &str, needs: &str| {
        let input = format!(
            "{id}: Push it\n\n{}",
            script.replace("\n  ", "\n").trim_start()
        );
        scratch
            .program("tavern-add")
            .args(&["--due", "2036-01-02", "--needs", needs])
            .input(input)
            .run()
    };
    let lack = "it needs account `github`: `echo >> checks; test -e signed-in` exited with code 1; gh auth login";
    add("T-1", "sh,github").ends(0).says(lack);
    scratch
        .run("tavern-status", &["T-1"])
        .ends(0)
        .says(lack)
        .says("due         2036-01-02");
    scratch
        .run("tavern-check", &[])
        .says("it needs account `github`")
        .says("= hint: gh auth login");
    add("T-2", "githbu")
        .ends(0)
        .says("which is neither an account nor on PATH; did you mean `github`?");
    scratch
        .run("tavern-check", &[])
        .says("= hint: did you mean `github`?");
    scratch.run("tavern-release", &["T-2", "--cancel"]).ends(0);
    scratch
        .run("tavern-drain", &[])
        .ends(1)
        .says("0 of 1 completed, 1 left");
    let (item, before) = (scratch.item("T-1"), checks());
    assert_eq!(
        (&item["status"], &item["attempt"]),
        (&"pending".into(), &0.into())
    );
    scratch.write("signed-in", "");
    scratch.run("tavern-agent", &["--until-empty"]).ends(0);
    assert_eq!(checks(), before + 1, "what was found is kept");
    scratch.stands("T-1", "completed", 1);
}

/// What git has brought is run by nobody before a person has trusted it.
#[test]
fn no_check_of_an_account_is_run_that_nobody_trusts() {
    let own = board(
        "- [ ] T-1: a (needs: github)\n",
        "accounts: {github: {check: touch ran}}\n",
    );
    own.commit(&[".tavern"], "Board");
    let scratch = Scratch::empty();
    scratch.git(&["clone", "--quiet", &own.work().to_string_lossy(), "."]);
    scratch.run("tavern-status", &["T-1"]).ends(0);
    assert!(!scratch.work().join("ran").exists());
    scratch.run("tavern-trust", &["--yes"]).ends(0);
    scratch.run("tavern-status", &["T-1"]).ends(0);
    assert!(scratch.work().join("ran").exists());
}

#[test]
fn nothing_depends_on_the_folder_for_temporary_files() {
    let scratch = board(
        &[item("T-1", "test -e T-1.txt"), item("T-2", "")].concat(),
        "",
    );
    scratch
        .program("tavern-drain")
        .variable("TMPDIR", "/nonexistent")
        .run()
        .ends(0);
    scratch.stands("T-1", "completed", 1);
}

/// It would be claimed and given back again and again.
#[test]
fn a_base_that_is_not_there_is_told_before_anything_is_claimed() {
    let scratch = Scratch::shell(&item("T-1", ""), "base: mian\n");
    for line in ["tavern-agent --until-empty", "tavern-drain"] {
        let ran = scratch.line(line).run().ends(1);
        ran.says("`base` in config.yaml names the branch `mian`, which does not exist")
            .says("did you mean `main`?");
    }
    let left = scratch.item("T-1");
    assert_eq!(
        (&left["status"], &left["returns"]),
        (&"pending".into(), &0.into())
    );
}

#[test]
fn what_was_missing_is_found_when_it_is_there() {
    let scratch = board(&item("T-1", &format!("{NO_PROGRAM} --check")), "");
    let bin = scratch.folder().join("bin");
    fs::create_dir(&bin).expect("the folder is ours");
    let path = std::env::var("PATH").expect("PATH is set");
    let path = format!("{}:{path}", bin.display());
    let arguments = ["--name", "Frodo"];
    let agent = scratch
        .program("tavern-agent")
        .args(&arguments)
        .variable("PATH", &path)
        .start();
    wait_until("it waits", || {
        doing(&scratch).contains("1 item needs a person")
    });
    scratch.executable("../bin/no-such-program-here", "#!/bin/sh\nexit 0\n");
    // Any change of the board makes it look again; without one it does by itself, later.
    scratch
        .run("tavern-add", &["Another", "--role", "nobody"])
        .succeeds();
    wait_until("it has done it", || {
        scratch.item("T-1")["status"] == "completed"
    });
    scratch.write(".tavern/STOP", "");
    assert!(agent.end().succeeds().contains("T-1 done and verified"));
}

#[test]
fn nothing_is_claimed_where_the_surroundings_lack_something() {
    let rows = [
        (
            "free_disk: 1000000GiB\n",
            "less than 1000000GiB are free on the disk of ",
            "set `free_disk` in .tavern/config.yaml",
        ),
        (
            "worktree: {setup: 'no-such-program-here install'}\n",
            "`no-such-program-here`, which `worktree.setup` begins with, is not on PATH",
            "fix `worktree.setup`",
        ),
        (
            "roles: {coder: {runner: own}}\nrunners: {own: {command: [no-such-program-here]}}\n",
            "`no-such-program-here` is not on PATH",
            "choose another runner",
        ),
        (
            "roles: {coder: {runner: claude, permission_mode: plan}}\nrunners: {claude: {program: sh}}\n",
            "with `permission_mode: plan` the Claude CLI changes nothing",
            "set `permission_mode: acceptEdits`",
        ),
        (
            "roles: {coder: {runner: claude}}\nrunners: {claude: {program: 'false'}}\n",
            "--version` exited with code 1",
            "install it again",
        ),
    ];
    for (config, message, hint) in rows {
        let scratch = board(&item("T-1", ""), config);
        for (program, arguments) in [
            ("tavern-agent", vec!["--until-empty"]),
            ("tavern-drain", vec!["main"]),
        ] {
            let ran = scratch.run(program, &arguments).ends(1);
            assert!(
                ran.stderr.starts_with("error: ") && ran.stderr.contains(message),
                "{config}{ran}"
            );
            assert!(
                ran.stderr.contains("\nhint: ") && ran.stderr.contains(hint),
                "{config}{ran}"
            );
            assert_eq!(ran.stderr.lines().count(), 2, "one clear message\n{ran}");
        }
        scratch
            .run("tavern-check", &[])
            .ends(5)
            .says(message)
            .says(hint);
        assert_eq!(scratch.item("T-1")["attempt"], 0);
        assert!(
            !scratch
                .run("tavern-log", &[])
                .succeeds()
                .contains("claimed")
        );
    }
}

#[test]
fn in_the_middle_of_work_it_waits_and_says_so_once() {
    let scratch = board(&item("T-1", ""), "");
    let template = scratch.folder().join("work/.tavern/templates/coder.md");
    let mut agent = scratch
        .program("tavern-agent")
        .args(&["--until-empty", "--name", "Frodo"])
        .variable("TAVERN_TEST_NOW", "+0");
    agent = agent.told_to(&scratch.folder().join("told"));
    // The first item breaks what the second would need.
    let breaks = format!(
        "mkdir -p {0}; echo '{{{{ taks }}}}' > {1}",
        template.parent().expect("a folder").display(),
        template.display()
    );
    let queue = format!(
        "{}{}",
        item("T-1", "").replace("echo T-1", &format!("{breaks}; echo T-1")),
        item("T-2", "")
    );
    scratch.write(QUEUE, queue);
    let mut agent = agent.start();
    let told = || fs::read_to_string(scratch.folder().join("told")).unwrap_or_default();
    wait_until("it waits", || told().contains("can't start anything"));
    let place = format!(
        "Frodo: can't start anything: {}:1:4: undefined value: `taks` is undefined; edit",
        template.display()
    );
    assert!(told().contains(&place), "{}", told());
    // Looked at again and again, and told of once.
    scratch
        .run("tavern-add", &["Another", "--role", "nobody"])
        .succeeds();
    let waits = || doing(&scratch).contains("undefined value");
    wait_until("the board shows it", waits);
    assert_eq!(scratch.item("T-2")["status"], "pending");
    fs::remove_file(&template).expect("it was written");
    scratch
        .run("tavern-add", &["One more", "--role", "nobody"])
        .succeeds();
    wait_until("it has ended", || agent.has_ended());
    agent.end().succeeds();
    assert_eq!(
        told().matches("can't start anything").count(),
        1,
        "{}",
        told()
    );
    assert!(told().contains("T-2 merged"), "{}", told());
    assert_eq!(
        (
            scratch.item("T-2")["attempt"].clone(),
            scratch.item("T-2")["returns"].clone()
        ),
        (1.into(), 0.into())
    );
}

#[test]
fn a_template_with_a_mistake_is_told_with_its_place_before_the_first_claim() {
    let scratch = board(&item("T-1", ""), "");
    scratch.write(
        ".tavern/templates/coder.md",
        "Do this:\n- {{ task.titel }}\n",
    );
    agent(&scratch)
        .ends(1)
        .says(".tavern/templates/coder.md:2:6: undefined value: `task.titel` is undefined");
    scratch
        .run("tavern-check", &[])
        .ends(5)
        .says(".tavern/templates/coder.md:2:6: error: undefined value");
    assert_eq!(scratch.item("T-1")["attempt"], 0);
    // The board's own one takes the place of the built-in one, and what came of it is kept with the run.
    scratch.write(
        ".tavern/templates/coder.md",
        "Do this:\n- {{ task.title }}\n",
    );
    agent(&scratch).succeeds();
    let prompt = scratch
        .run("tavern-runs", &["cat", "T-1", "prompt.md"])
        .succeeds();
    assert!(
        prompt.starts_with("Do this:\n- Do T-1\n\nYou work unattended"),
        "{prompt}"
    );
    // So are the rules, which follow.
    scratch.write(".tavern/templates/rules-work.md", "Be quick.\n");
    scratch.write(QUEUE, format!("{}{}", scratch.queue(), item("T-2", "")));
    agent(&scratch).succeeds();
    let prompt = scratch
        .run("tavern-runs", &["cat", "T-2", "prompt.md"])
        .succeeds();
    assert_eq!(prompt, "Do this:\n- Do T-2\n\nBe quick.\n");
    assert!(
        scratch
            .run("tavern-runs", &["show", "T-1"])
            .succeeds()
            .contains(" prompt.md ")
    );
}

#[test]
fn nothing_is_said_of_an_account_but_where_it_is() {
    let board = |env: &str| {
        board(
            "",
            &format!(
                "roles: {{coder: {{runner: claude}}}}\nrunners: {{claude: {{program: 'true', env: {{{env}}}}}}}\n"
            ),
        )
    };
    let none = board("").run("tavern-check", &[]);
    none.says("warning: can't tell whether claude is signed in: no key is set")
        .ends(0);
    agent(&board("")).says("Frodo: can't tell whether claude is signed in");
    let keyed = board("ANTHROPIC_API_KEY: sk-very-secret").run("tavern-check", &[]);
    assert!(
        keyed.stderr.contains(", account from ANTHROPIC_API_KEY\n"),
        "{keyed}"
    );
    assert!(
        !keyed.stdout.contains("signed in") && !format!("{keyed}").contains("sk-very-secret"),
        "{keyed}"
    );
}

#[test]
fn limits_that_a_runner_does_not_keep_are_told() {
    let scratch = board(
        "- [ ] T-1: One (budget: {usd: 2, minutes: 5})\n  ```sh\n  true\n  ```\n\
         - [ ] T-2: Two (runner: claude, budget: {usd: 2, turns: 9})\n\
         - [ ] T-3: Three (role: careful, runner: shell)\n  ```sh\n  true\n  ```\n",
        "roles: {drone: {budget: {tokens: 5, turns: 3}}, careful: {runner: claude, budget: {turns: 4}}}\n",
    );
    let faults = scratch.records("tavern-check", &[]);
    let unkept = faults
        .iter()
        .filter(|fault| fault["code"] == "unkept-limit" && fault["severity"] == "warning");
    let mut unkept: Vec<String> = unkept
        .map(|fault| format!("{} {}", fault["line"], fault["message"]))
        .collect();
    unkept.sort();
    let expected = [
        r#"1 "of this, the runner `shell` does not enforce the limit on `usd`""#,
        r#"6 "of this, the runner `shell` does not enforce the limit on `turns`""#,
        r#"null "role `drone`: the runner `shell` does not enforce the limit on `tokens`, `turns`""#,
    ];
    assert_eq!(unkept, expected);
}

#[test]
fn files_that_an_item_sends_to_are_there_or_are_told_of() {
    let scratch = board(
        "- [ ] T-1: Log in\n  Follow specs/auth.md#login and see [here](specs/here.md).\n- [ ] T-2: Write specs/new.md\n- [ ] T-3: see specs/merged.md\n",
        "",
    );
    scratch.write("specs/here.md", "x\n");
    scratch.git(&["switch", "--quiet", "--create", "tavern/integration"]);
    scratch.write("specs/merged.md", "x\n");
    scratch.commit(&["specs/merged.md"], "merged");
    scratch.git(&["switch", "--quiet", "main"]);
    let faults = scratch.records("tavern-check", &[]);
    let missing: Vec<&Value> = faults
        .iter()
        .filter(|fault| fault["code"] == "no-such-file")
        .collect();
    assert_eq!(missing.len(), 1, "{faults:?}");
    assert_eq!(
        (
            &missing[0]["line"],
            &missing[0]["column"],
            &missing[0]["severity"]
        ),
        (&2.into(), &10.into(), &"warning".into())
    );
    assert!(
        missing[0]["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("`specs/auth.md`")),
        "{faults:?}"
    );
}

#[test]
fn only_files_that_an_item_clearly_means_are_looked_for() {
    let queue = "- [ ] T-1: Log in, see `docs/a-b/c.md`: twice\n\
        - [ ] T-2: As [described](specs/linked.md).\n\
        - [ ] T-3: according to\n  specs/phrase.md:12\n\
        - [ ] T-4: Write docs/new.md, since the docs in docs/new.md are old\n\
        - [ ] T-5: see https://example.org/a/b.md, or [x](https://example.org/a/b.md)\n\
        - [ ] T-6: see NO.md, see ~/notes/a.md and read /etc/a/b.md\n\
        - [ ] T-7: see specs/*.md, read ../a/b.md, read src/lib.rs\n\
        - [ ] T-8: x\n  ```sh\n  read specs/code.md\n  ```\n";
    let scratch = board(queue, "");
    for folder in ["docs", "specs", "src", "https:", "~"] {
        scratch.write(format!("{folder}/there.md"), "x\n");
    }
    let faults = scratch.records("tavern-check", &[]);
    let missing = faults
        .iter()
        .filter(|fault| fault["code"] == "no-such-file");
    let missing: Vec<&str> = missing
        .filter_map(|fault| fault["message"].as_str()?.split('`').nth(1))
        .collect();
    assert_eq!(
        missing,
        ["docs/a-b/c.md", "specs/linked.md", "specs/phrase.md"]
    );
}

#[test]
fn what_prods_a_reviewer_or_a_planner_is_looked_at_too() {
    let scratch = board(&item("T-1", ""), "");
    for (role, name) in [("reviewer", "prod-review.md"), ("planner", "prod-plan.md")] {
        scratch.write(
            format!(".tavern/templates/{name}"),
            "Go on:\n- {{ task.titel }}\n",
        );
        let ran = scratch
            .run("tavern-agent", &["--role", role, "--until-empty"])
            .ends(1);
        ran.says(&format!(".tavern/templates/{name}:2:6: undefined value"));
    }
}

#[test]
fn settings_that_are_gone_are_told() {
    let scratch = Scratch::board("## Pending\n");
    scratch.run("tavern-check", &[]).ends(0).says_not("warning");
    fs::remove_file(scratch.work().join(CONFIG)).expect("it is there");
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says("config.yaml was removed: Tavern has its text");
    fs::remove_file(scratch.work().join(".git/tavern/typed/config.yaml")).expect("it is there");
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says(".tavern/config.yaml: warning: this file is gone")
        .says("tavern init");
    // A plain file needs none.
    let scratch = Scratch::repository();
    scratch.write(
        "TODO.md",
        "- [ ] One (result: answer)\n  ```sh\n  true\n  ```\n",
    );
    scratch.run("tavern-drain", &["TODO.md"]).ends(0);
    scratch
        .run("tavern-check", &[])
        .ends(0)
        .says_not("config.yaml");
}

#[test]
fn a_branch_in_the_way_of_taverns_is_told_before_anything_is_claimed() {
    for (branch, config) in [
        ("tavern", ""),
        ("tavern/integration/old", ""),
        ("tavern", "integration: {branch: next}\n"),
    ] {
        let scratch = board(&item("T-1", ""), config);
        scratch.git(&["branch", branch]);
        let told = format!("git branch -m {branch} {branch}-old");
        scratch.run("tavern-check", &[]).ends(5).says(&told);
        let dry = scratch.run("tavern-agent", &["--once", "--dry-run"]);
        assert!(format!("{dry}").contains(&told), "{dry}");
        let drained = scratch.run("tavern-drain", &[]);
        assert!(format!("{drained}").contains(&told), "{drained}");
        scratch.stands("T-1", "pending", 0);
        scratch.git(&["branch", "-m", branch, &format!("{branch}-old")]);
        if branch == "tavern" {
            scratch.run("tavern-drain", &[]).ends(0);
            scratch.stands("T-1", "completed", 1);
        }
    }
}

#[test]
fn a_repository_of_another_user_is_taken_where_git_takes_it() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = board(&item("T-1", ""), "");
    let work = scratch.work();
    let chown = ["-R", "12345", &work.to_string_lossy()];
    let owned = scratch
        .command(std::path::Path::new("chown"))
        .args(&chown)
        .run();
    owned.succeeds();
    let refused = scratch.run("tavern-agent", &["--once"]);
    assert!(format!("{refused}").contains("safe.directory"), "{refused}");
    for value in [
        work.to_string_lossy().into_owned(),
        format!("{}/*", scratch.folder().display()),
        "*".to_owned(),
    ] {
        let checked = scratch
            .program("tavern-check")
            .variable("GIT_CONFIG_COUNT", "1")
            .variable("GIT_CONFIG_KEY_0", "safe.directory")
            .variable("GIT_CONFIG_VALUE_0", &value)
            .run();
        assert!(
            !format!("{checked}").contains("safe.directory"),
            "{value}: {checked}"
        );
    }
    scratch.write(
        "../home/gitconfig",
        format!("[safe]\n\tdirectory = {}/*\n", scratch.folder().display()),
    );
    let agent = scratch
        .program("tavern-agent")
        .args(&["--once"])
        .variable("GIT_CONFIG_GLOBAL", scratch.folder().join("home/gitconfig"));
    agent.run().ends(0).says("T-1 merged as");
}
