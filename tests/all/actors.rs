//! Who did what: the log has a name at each event, whoever the programs were run by.

use crate::support::{Ran, Scratch, has};

fn by(scratch: &Scratch, user: &str, line: &str) -> Ran {
    scratch.line(line).variable("USER", user).run()
}

#[test]
fn each_event_tells_who_did_it() {
    let queue = "## Pending\n\n- [ ] T-1: One\n- [ ] T-2: Two\n\n## Dead\n\n- [ ] T-3: Three (attempt: 3)\n";
    let scratch = Scratch::board(queue);
    let line = |line: &str| by(&scratch, "pippin", line).ends(0);
    line("tavern-release T-1 --cancel");
    line("tavern-release T-1 --reopen");
    line("tavern-undo T-1");
    line("tavern-undo T-1 --redo");
    line("tavern-release T-3 --revive");
    line("tavern-claim --task T-2 --agent Rosie");
    line("tavern-release T-2 --force");
    line("tavern-add Four --id T-4");
    line("tavern-claim --task T-4 --agent Rosie --lease 1s");
    scratch
        .program("tavern-reap")
        .variable("USER", "merry")
        .variable("TAVERN_TEST_NOW", "+600")
        .run()
        .ends(0);
    let log = scratch.run("tavern-log", &[]).succeeds();
    has(
        &log,
        &[
            "T-1 was cancelled by pippin\n",
            "T-1 was reopened by pippin\n",
            "T-1 was made cancelled again by pippin: ",
            "T-1 was made pending again by pippin: ",
            "T-3 was taken from the dead letter lane by pippin\n",
            "T-2 was taken from Rosie by pippin, now pending\n",
            "T-4 was added as pending by pippin: Four\n",
            "T-4 was taken from Rosie by merry: ",
        ],
    );
    let events = scratch.records("tavern-log", &[]);
    assert!(
        events.iter().all(|event| event["agent"].is_string()),
        "{log}"
    );
    let withdrawn = events
        .iter()
        .find(|event| event["kind"] == "withdrawn")
        .expect("it is logged");
    assert_eq!(
        (&withdrawn["agent"], &withdrawn["by"]),
        (&"Rosie".into(), &"pippin".into())
    );
    scratch
        .run("tavern-log", &["--agent", "merry"])
        .ends(0)
        .says("T-4 was taken from Rosie by merry");
}

#[test]
fn what_an_agent_does_beside_its_runs_is_its_doing() {
    let scratch = Scratch::pending("- [ ] T-1: One\n  ```sh\n  touch one\n  ```\n");
    by(
        &scratch,
        "pippin",
        "tavern-agent --until-empty --name Frodo",
    )
    .ends(0);
    scratch
        .run("tavern-log", &["T-1"])
        .ends(0)
        .says("T-1 was merged by Frodo at ");
    let run = scratch.json("tavern-runs", &["list", "T-1"])["run"]
        .as_str()
        .expect("it has a name")
        .to_owned();
    let token = run.trim_start_matches("T-1@");
    let said = scratch.git(&[
        "log",
        "-1",
        "--format=%s%n%(trailers)",
        "tavern/integration",
    ]);
    let trailers =
        format!("Tavern-Item: T-1\nTavern-Agent: Frodo\nTavern-Run: {run}\nTavern-Token: {token}");
    assert_eq!(said, format!("T-1: One\n{trailers}"));
}
