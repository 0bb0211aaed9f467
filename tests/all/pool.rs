//! A drain with agents of several roles: as many as there is work for, room for whoever is needed, and a word about roles
//! that nobody works as.

use std::thread;

use crate::review::{APPROVE, ONE, REJECT, board, verdict};
use crate::support::{ENDLESS, Scratch, item, wait_until};

const THREE: &str = "## Pending\n\n- [ ] T-1: One\n- [ ] T-2: Two\n- [ ] T-3: Three\n\n## In Review\n\n## Completed\n";

#[test]
fn one_place_is_enough_for_two_roles() {
    let scratch = board(ONE);
    verdict(&scratch, 1, REJECT);
    verdict(&scratch, 2, APPROVE);
    let ran = scratch
        .run("tavern-drain", &["--agents", "coder=1,reviewer=1,all=1"])
        .ends(0);
    ran.says("1 item with 1 coder, 1 reviewer")
        .says("T-1 rejected")
        .says("1 of 1 completed, 0 left");
    scratch.has_no_process();
}

#[test]
fn an_idle_agent_makes_room_for_one_that_is_needed() {
    // The coder of T-1 waits for work while T-9 is under way, and both places are taken.
    let queue = "## Pending\n\n- [ ] T-1: One\n- [ ] T-9: Nine\n\n## In Review\n\n## Completed\n";
    let scratch = board(queue);
    verdict(&scratch, 1, APPROVE);
    let ran = scratch
        .run(
            "tavern-drain",
            &["--agents", " coder = 2 , reviewer = 1, all = 2"],
        )
        .ends(0);
    let ran = ran.says("T-1 approved");
    // Nobody has waited for a heartbeat.
    let (_, took) = ran
        .stdout
        .split_once("2 of 2 completed, 0 left in ")
        .expect("it says so");
    let seconds = took
        .split(' ')
        .next()
        .and_then(|seconds| seconds.parse::<u32>().ok());
    assert!(seconds.is_some_and(|seconds| seconds < 25), "{ran}");
}

#[test]
fn items_that_come_up_meanwhile_get_agents_of_their_own() {
    for agents in ["2", "coder=2,reviewer=1"] {
        let scratch = board("## Pending\n\n- [ ] T-5: Five (review: none)\n\n## Completed\n");
        let is_begun = || scratch.folder().join("home/notes/T-5").exists();
        let ran = thread::scope(|scope| {
            scope.spawn(|| {
                wait_until("T-5 is worked on", is_begun);
                scratch
                    .run("tavern-add", &["T-6: Six (review: none)"])
                    .succeeds();
            });
            scratch.run("tavern-drain", &["--agents", agents])
        });
        ran.ends(0).says("2 of 2 completed, 0 left");
    }
}

#[test]
fn a_role_that_nobody_works_as_is_told_once() {
    let scratch = board(&THREE.replace("Three", "Three (role: drone)"));
    let ran = scratch.run("tavern-drain", &["--agents", "2"]).ends(1);
    let lines = |text: &str| {
        ran.stderr
            .lines()
            .filter(|line| line.contains(text))
            .count()
    };
    assert_eq!(lines("for a drone, and no agent works as one"), 1, "{ran}");
    assert_eq!(
        lines("for a reviewer, and no agent works as one"),
        1,
        "{ran}"
    );
    assert!(
        ran.stdout.contains(
            "T-3 pending — Three\n  it is for role drone, and no agent here works as one"
        ),
        "{ran}"
    );
    let why = "T-1 in review — One\n  it waits for a reviewer, and no agent here works as one: tavern agent --role reviewer; or \
               approve it yourself: tavern approve T-1\n";
    assert!(ran.stdout.contains(why), "{ran}");
    // Of a role that there is not, nobody could.
    let scratch = board(&THREE.replace("Three", "Three (role: tester)"));
    let ran = scratch
        .run("tavern-drain", &["--agents", "2"])
        .ends(1)
        .says("role `tester` is not in config.yaml");
    ran.says_not("for a tester, and no agent works as one");
}

#[test]
fn a_crew_that_can_not_be_is_refused() {
    let scratch = board(ONE);
    scratch
        .run("tavern-drain", &["--agents", "coder=1,coder=2"])
        .ends(2)
        .says("`coder` is given twice");
    scratch
        .run("tavern-drain", &["--agents", "coder=1,wizard=1"])
        .ends(2)
        .says("there is no role `wizard`");
    for count in ["", "0", "1001", "many", "coder=", "coder=0"] {
        scratch
            .run("tavern-drain", &["--agents", count])
            .ends(2)
            .says("not a number from 1 to 1000");
    }
    for post in ["coder=1,2", "coder=1,"] {
        scratch
            .run("tavern-drain", &["--agents", post])
            .ends(2)
            .says("is not ROLE=N");
    }
}

#[test]
fn what_dies_at_once_is_started_again_a_few_times_and_then_given_up() {
    let scratch = board(&ONE.replace("done_when:", "review: none, done_when:"));
    let ran = scratch.failing("run.ready=kill", "tavern-drain", &["--agents", "1"]);
    let ran = ran.ends(1);
    let lines = |text: &str| {
        ran.stderr
            .lines()
            .filter(|line| line.contains(text))
            .count()
    };
    assert_eq!(
        (lines("started again in"), lines("giving up")),
        (4, 1),
        "{ran}"
    );
    // What they held is given back, and whole: the next drain does it.
    scratch
        .run("tavern-drain", &["--agents", "1"])
        .ends(0)
        .says("1 of 1 completed, 0 left");
}

#[test]
fn agents_of_a_drain_that_is_killed_give_back_what_they_hold_and_end() {
    let script = "```sh\n  test -e ../../../go || { touch ../../../begun-$$; sleep 600; }\n  echo > $$\n  ```\n";
    let items: Vec<String> = (1..=4)
        .map(|number| format!("- [ ] T-{number}: Do it\n  {script}"))
        .collect();
    let scratch = Scratch::pending(&items.concat());
    let drain = scratch
        .program("tavern-drain")
        .args(&["--agents", "2"])
        .start();
    let begun = || {
        std::fs::read_dir(scratch.work())
            .expect("it is ours")
            .flatten()
            .map(|entry| entry.file_name())
    };
    let count = || {
        begun()
            .filter(|name| name.to_string_lossy().starts_with("begun-"))
            .count()
    };
    wait_until("both agents work", || count() == 2);
    drain.kill();
    scratch.has_no_process();
    assert_eq!(scratch.item("T-1")["attempt"], 0, "{}", scratch.queue());
    scratch.write("go", "");
    scratch
        .run("tavern-drain", &["--agents", "2"])
        .ends(0)
        .says("4 of 4 completed, 0 left");
}

#[test]
fn names_go_on_when_all_are_taken() {
    let queue = format!("{ENDLESS}{}{}", item("T-2", ""), item("T-3", ""));
    let scratch = Scratch::shell(&queue, "names: [Frodo]\n");
    let first = scratch.program("tavern-agent").start();
    wait_until("it works", || scratch.work().join("pid").exists());
    for _ in 0..2 {
        scratch
            .run("tavern-agent", &["--once"])
            .ends(0)
            .says("Frodo-2: T-");
    }
    first.signal(rustix::process::Signal::TERM);
    first.end();
}
