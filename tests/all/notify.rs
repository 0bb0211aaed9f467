//! People are told what needs them: once by each channel, whoever tells it, and with what to type.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::support::{CONFIG, QUEUE, Ran, Scratch, has, wait_until};

/// Asks, dies or is done, as the title says.
const AGENT: &str = r#"#!/bin/sh -eu
prompt=$(cat)
case $prompt in
*Ask*) printf 'WAITING: red or blue?\033[31m\n'; exit 0 ;;
*Note*) echo DONE; exit 0 ;;
*Fail*) echo 'the tests are red' >&2; exit 1 ;;
esac
echo 1 >"$TAVERN_TASK.txt"
git add --all; git commit -qm Work
echo DONE
"#;

const ITEMS: &str = "- [ ] T-1: Ask it\n- [ ] T-2: Fail at it\n- [ ] T-3: Do it\n";

/// A board with `items`, whose people are told by `channels`.
fn board(items: &str, channels: &str) -> Scratch {
    let scratch = Scratch::with_agent(
        AGENT,
        items,
        &format!("max_attempts: 1\nnotify:\n{channels}"),
    );
    scratch.settle();
    scratch
}

fn work(scratch: &Scratch) -> Ran {
    scratch.run("tavern-agent", &["--name", "Frodo", "--until-empty"])
}

/// What a file of notices has, without the times.
fn told(scratch: &Scratch, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(scratch.work().join(file)).unwrap_or_default();
    text.lines()
        .map(|line| line.splitn(4, ' ').nth(3).unwrap_or(line).to_owned())
        .collect()
}

fn notify(scratch: &Scratch, arguments: &[&str]) -> Ran {
    scratch.run("tavern-notify", arguments)
}

const ASKED: &str = "warning needs_you: T-1 asks: red or blue?: tavern answer T-1 \"…\"";
const DIED: &str = "warning died: T-2 is dead: exited with code 1: the tests are red: bring it back: tavern retry T-2";

#[test]
fn each_channel_tells_what_it_takes_once() {
    let scratch = board(
        ITEMS,
        "  usual: {file: usual.txt}\n  all: {file: all.txt, severity: info}\n  end: {file: end.txt, on: [finished]}\n  \
         worst: {file: worst.txt, severity: critical}\n  \
         mine: {command: 'cat >>../mine; echo \"$TAVERN_NOTICE\" >>../mine', on: [died]}\n",
    );
    work(&scratch).ends(0);
    let mut usual = told(&scratch, "usual.txt");
    usual.sort();
    assert_eq!(usual, [DIED, ASKED]);
    assert_eq!(
        told(&scratch, "end.txt"),
        ["info finished: T-3 is completed"]
    );
    assert_eq!(told(&scratch, "all.txt").len(), 3);
    assert_eq!(told(&scratch, "worst.txt"), [""; 0]);
    let mine = scratch.read("../mine");
    assert_eq!(
        mine,
        "T-2 is dead: exited with code 1: the tests are red: bring it back: tavern retry T-2\nwork: T-2 is dead: Fail at it\n"
    );
    // Whoever comes next has nothing to tell, until it happens again.
    notify(&scratch, &[]).ends(0).says("no notices to send");
    work(&scratch).ends(0);
    assert_eq!(told(&scratch, "usual.txt").len(), 2);
    scratch.run("tavern-tell", &["T-1", "Ask again"]).succeeds();
    work(&scratch).ends(0);
    assert_eq!(told(&scratch, "usual.txt")[2..], [ASKED]);
}

#[test]
fn work_that_a_person_has_to_approve_is_told() {
    let scratch = board(
        "- [ ] T-1: Do it (review: [person])\n- [ ] T-2: Do it (review: [reviewer])\n",
        "  mine: {file: mine.txt}\n",
    );
    work(&scratch).ends(0);
    let says = "warning needs_you: T-1 needs you: ";
    let told = told(&scratch, "mine.txt");
    assert!(told.len() == 1 && told[0].starts_with(says), "{told:?}");
    has(&told[0], &["tavern diff T-1, then tavern approve T-1"]);
}

#[test]
fn what_a_person_does_is_told_to_nobody() {
    let scratch = board(
        "- [ ] T-1: One\n- [ ] T-2: Two\n",
        "  all: {file: all.txt, severity: info}\n",
    );
    notify(&scratch, &[]).ends(0);
    scratch.change(QUEUE, "[ ] T-1", "[x] T-1");
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    notify(&scratch, &[]).ends(0).says("no notices to send");
    assert_eq!(told(&scratch, "all.txt"), [""; 0]);
}

#[test]
fn many_at_once_are_one_message() {
    let items: String = (1..9)
        .map(|number| format!("- [ ] T-{number}: Fail at it\n"))
        .collect();
    let scratch = board(
        &items,
        "  mine: {command: 'cat >>../mine; echo \"$TAVERN_NOTICE\" >>../mine'}\n",
    );
    untold(&scratch, || drop(work(&scratch).ends(0)));
    let dry = notify(&scratch, &["--dry-run"]).ends(0);
    assert_eq!(dry.stdout.lines().count(), 8, "{dry}");
    assert!(!scratch.folder().join("mine").exists());
    notify(&scratch, &[]).ends(0);
    let mine = scratch.read("../mine");
    assert_eq!(mine.lines().count(), 9, "{mine}");
    has(&mine, &["T-8 is dead", "\nwork: 8 notices: 8 died\n"]);
}

/// Answers posts with these statuses, one after the other, and returns them.
fn server(statuses: &'static [u16]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!(
        "http://{}/secret-path",
        server.local_addr().expect("it has one")
    );
    let answer = move |(status, stream): (&u16, std::io::Result<TcpStream>)| {
        let mut stream = stream.expect("somebody calls");
        let mut reader = BufReader::new(stream.try_clone().expect("it is open"));
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let from = head.len();
            reader.read_line(&mut head).expect("it is text");
            let line = head[from..].to_lowercase();
            length = line
                .strip_prefix("content-length:")
                .map_or(length, |it| it.trim().parse().expect("a number"));
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("it is sent");
        let place = if *status == 302 {
            "location: http://127.0.0.1:9/\r\n"
        } else {
            ""
        };
        write!(
            stream,
            "HTTP/1.1 {status} X\r\n{place}content-length: 0\r\nconnection: close\r\n\r\n"
        )
        .expect("it reads");
        head + &String::from_utf8(body).expect("it is text")
    };
    (
        address,
        std::thread::spawn(move || statuses.iter().zip(server.incoming()).map(answer).collect()),
    )
}

fn header<'t>(post: &'t str, name: &str) -> &'t str {
    let found = post
        .lines()
        .find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
    found
        .and_then(|line| line.split_once(": "))
        .unwrap_or_else(|| panic!("no {name}: {post}"))
        .1
}

#[test]
fn an_items_words_call_nobody_in_a_chat_and_link_nowhere() {
    let (address, posts) = server(&[200]);
    let title = "<!channel> Fail at @here <http://evil.example|it> & <@U123>";
    let scratch = board(
        &format!("- [ ] T-2: {title}\n"),
        "  ops: {webhook: $OPS, on: [died]}\n",
    );
    scratch
        .program("tavern-agent")
        .args(&["--name", "Frodo", "--until-empty"])
        .variable("OPS", &address)
        .run()
        .ends(0);
    let posts = posts.join().expect("it answers");
    let body = posts[0].split("\r\n\r\n").nth(1).expect("a body");
    let body: Value = serde_json::from_str(body).expect("it is JSON");
    has(
        body["text"].as_str().expect("words"),
        &[
            "&lt;!channel&gt; Fail at @\u{200b}here &lt;http://evil.example|it&gt; &amp; &lt;@\u{200b}U123&gt;",
        ],
    );
    // Programs have them as they were written.
    assert_eq!(body["data"]["notices"][0]["title"], title);
}

#[test]
fn a_post_is_signed_and_tried_again_until_it_arrives() {
    let (address, posts) = server(&[500, 302, 200]);
    let scratch = board(
        ITEMS,
        "  ops: {webhook: $OPS, secret: $OPS_KEY, on: [died]}\n",
    );
    let run = |program: &str, arguments: &[&str], now: &str| {
        let run = scratch
            .program(program)
            .args(arguments)
            .variable("OPS", &address);
        run.variable("OPS_KEY", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .variable("TAVERN_TEST_NOW", now)
            .run()
    };
    run("tavern-agent", &["--name", "Frodo", "--until-empty"], "+0").ends(0);
    let health = scratch.run("tavern-status", &["--health"]).succeeds();
    has(&health, &["the channel `ops` fails: ", "http status: 500"]);
    // An agent does not try it at once.
    run("tavern-agent", &["--name", "Frodo", "--until-empty"], "+1").ends(0);
    run("tavern-notify", &[], "+60")
        .ends(1)
        .says("not sent: ")
        .says("302")
        .says_not("secret-path");
    let told = run("tavern-notify", &[], "+200").ends(0);
    assert!(told.stdout.starts_with("ops: T-2 is dead"), "{told}");
    run("tavern-notify", &[], "+9999")
        .ends(0)
        .says("no notices to send");
    let posts = posts.join().expect("it answers");
    let ids: Vec<&str> = posts
        .iter()
        .map(|post| header(post, "webhook-id"))
        .collect();
    assert!(
        ids.iter().all(|id| *id == ids[0]) && ids[0].starts_with("tavern-"),
        "{ids:?}"
    );
    assert!(header(&posts[0], "webhook-signature").starts_with("v1,"));
    let body: Value = serde_json::from_str(posts[2].split("\r\n\r\n").nth(1).expect("a body"))
        .expect("it is JSON");
    assert_eq!(body["data"]["notices"][0]["task"], "T-2");
    has(
        body["text"].as_str().expect("words"),
        &["work: T-2 is dead: Fail at it\n", "tavern retry T-2"],
    );
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert_eq!(
        log.matches("the channel `ops` of `notify` failed; it will be retried")
            .count(),
        1,
        "{log}"
    );
}

#[test]
fn what_can_t_be_told_for_a_day_is_told_no_more() {
    let scratch = board(
        ITEMS,
        "  ops: {command: 'echo no mail today; exit 3', on: [died]}\n",
    );
    work(&scratch).ends(0);
    for (now, says) in [
        ("+60", "not sent: "),
        ("+90000", "not sent: "),
        ("+200000", "no notices to send"),
    ] {
        scratch.at(now, "tavern-notify", &[]).says(says);
    }
    let log = scratch.run("tavern-log", &[]).succeeds();
    has(
        &log,
        &["exited with code 3: no mail today", "failed for a day"],
    );
}

#[test]
fn what_fails_is_tried_once() {
    let scratch = board(
        ITEMS,
        "  mine: {command: 'echo 1 >>../tries; exit 1', on: [died]}\n",
    );
    untold(&scratch, || drop(work(&scratch).ends(0)));
    let failed = notify(&scratch, &[]).ends(1);
    assert_eq!(
        (
            failed.stdout.lines().count(),
            scratch.read("../tries").lines().count()
        ),
        (1, 1),
        "{failed}"
    );
}

#[test]
fn who_is_killed_while_he_tells_loses_nothing() {
    let mut places = 0;
    for place in [
        "replace.staged",
        "replace.synced",
        "replace.renamed",
        "notices.sent",
    ] {
        for nth in 1.. {
            let scratch = board(ITEMS, "  mine: {file: mine.txt}\n");
            untold(&scratch, || drop(work(&scratch).ends(0)));
            let killed = scratch.failing(format!("{place}=kill@{nth}"), "tavern-notify", &[]);
            notify(&scratch, &[]).ends(0);
            let told = told(&scratch, "mine.txt");
            let count = |line: &str| told.iter().filter(|told| *told == line).count();
            let counts = [count(ASKED), count(DIED)];
            // Twice at most, and once each where nobody was killed.
            assert!(
                counts.iter().all(|count| (1..=2).contains(count)) && told.len() <= 3,
                "{place}@{nth}: {told:?}"
            );
            if killed.code.is_some() {
                assert_eq!(counts, [1, 1], "{place}@{nth}");
                break;
            }
            places += 1;
        }
    }
    assert!(places > 2, "it was killed at {places} places");
}

#[test]
fn what_may_be_started_by_now_with_your_leave_is_told_when_all_before_it_is_done() {
    let items = "- [ ] T-1: Do it\n- [ ] T-2: Do more\n- [ ] T-3: Deploy (after: [T-1, T-2], approve: start)\n";
    let scratch = board(items, "  mine: {file: mine.txt}\n");
    let agent = || {
        scratch
            .run("tavern-agent", &["--name", "Frodo", "--once"])
            .ends(0)
    };
    drop(agent());
    notify(&scratch, &[]);
    assert_eq!(told(&scratch, "mine.txt"), [""; 0], "T-2 is to be done yet");
    drop(agent());
    notify(&scratch, &[]);
    let line = "warning needs_you: T-3 needs you: ";
    let once = told(&scratch, "mine.txt");
    assert!(
        matches!(&once[..], [told] if told.starts_with(line) && told.ends_with("tavern approve T-3")),
        "{once:?}"
    );
    scratch.run("tavern-report", &["T-3", "--approve"]).ends(0);
    drop(agent());
    notify(&scratch, &[]);
    assert_eq!(told(&scratch, "mine.txt").len(), 1);
}

/// What the agent does is told when this is over.
fn untold(scratch: &Scratch, work: impl Fn()) {
    notify(scratch, &[]).ends(0);
    let settings = scratch.read(CONFIG);
    scratch.write(CONFIG, settings.split("notify:").next().expect("a part"));
    work();
    scratch.write(CONFIG, settings);
}

#[test]
fn what_happens_while_another_tells_is_told_by_that_one() {
    let channel = "command: 'cat >>../mine; until [ -e ../go ]; do sleep 0.02; done'";
    let scratch = board(ITEMS, &format!("  mine: {{{channel}}}\n"));
    untold(&scratch, || {
        drop(scratch.run("tavern-agent", &["--once"]).ends(0));
    });
    let first = scratch.program("tavern-notify").start();
    wait_until("it tells", || scratch.folder().join("mine").exists());
    work(&scratch).ends(0);
    notify(&scratch, &[])
        .ends(0)
        .says("another program is sending notices now, these too");
    scratch.write("../go", "");
    let told = first.end().ends(0).stdout;
    has(&told, &["mine: T-1 asks", "mine: T-2 is dead"]);
    assert_eq!(scratch.read("../mine").lines().count(), 2);
}

#[test]
fn a_channel_that_could_not_tell_what_is_over_by_now_is_well_again() {
    let scratch = board("- [ ] T-1: Ask it\n", "  mine: {command: exit 1}\n");
    untold(&scratch, || drop(work(&scratch).ends(0)));
    notify(&scratch, &[]).ends(1);
    let health = || scratch.run("tavern-status", &["--health"]).to_string();
    has(&health(), &["the channel `mine` fails"]);
    scratch
        .run("tavern-release", &["T-1", "--cancel"])
        .succeeds();
    notify(&scratch, &[]).ends(0).says("no notices to send");
    assert!(!health().contains("the channel `mine`"), "{}", health());
    let log = scratch.run("tavern-log", &[]).succeeds();
    assert_eq!(log.matches("it will be retried").count(), 1, "{log}");
}

#[test]
fn nobody_waits_for_a_slow_channel() {
    // It ends when this test says so.
    let slow = "command: 'cat >>../slow; until [ -e ../go ]; do sleep 0.02; done', severity: info";
    let scratch = board(
        "- [ ] T-1: Do it\n- [ ] T-2: Ask it\n- [ ] T-3: Do it\n",
        &format!("  a: {{{slow}}}\n  z: {{file: z.txt, severity: info}}\n"),
    );
    let agent = scratch
        .program("tavern-agent")
        .args(&["--name", "Frodo", "--until-empty"])
        .start();
    wait_until("it tells of the first item", || {
        scratch.folder().join("slow").exists()
    });
    wait_until("the others are done", || {
        scratch.item("T-3")["status"] == "completed"
    });
    wait_until("the next channel tells", || {
        !told(&scratch, "z.txt").is_empty()
    });
    assert_eq!(scratch.read("../slow"), "T-1 is completed\n");
    scratch.write("../go", "");
    agent.end().ends(0);
    assert_eq!(scratch.read("../slow").lines().count(), 3);
    assert_eq!(told(&scratch, "z.txt").len(), 3);
}

#[test]
fn a_watch_that_takes_another_config_waits_for_no_slow_channel() {
    let slow = "command: 'cat >>../slow; until [ -e ../go ]; do sleep 0.02; done'";
    let scratch = board("- [ ] T-1: Ask it\n", &format!("  a: {{{slow}}}\n"));
    untold(&scratch, || drop(work(&scratch).ends(0)));
    let seq = || {
        let states: Value =
            serde_json::from_str(&scratch.read(".git/tavern/notices.json")).expect("JSON");
        states["a"]["seq"].clone()
    };
    let before = seq();
    let watch = scratch
        .program("tavern-watch")
        .args(&["--every", "1s"])
        .start();
    wait_until("it tells", || scratch.folder().join("slow").exists());
    scratch.change(
        CONFIG,
        "notify:\n",
        "notify:\n  z: {file: z.txt, severity: info}\n",
    );
    // What is there after the change is seen by a look after it.
    scratch.write(".tavern/schedules.yaml", "a:\n  every: hour\n  title: A\n");
    wait_until("it looks again", || {
        scratch
            .run("tavern-log", &[])
            .stdout
            .contains("schedule a counts from now on")
    });
    scratch.write("../go", "");
    wait_until("it has told", || seq() != before);
    watch.signal(rustix::process::Signal::INT);
    watch.end().ends(130);
    assert_eq!(
        scratch.read("../slow").lines().count(),
        1,
        "it was not broken off, and told again"
    );
}

#[test]
fn who_is_interrupted_breaks_off_what_he_tells_and_the_next_one_tells_it() {
    // It does not hear that it is to end.
    let slow = "command: 'trap : TERM INT; cat >>../slow; until [ -e ../go ]; do sleep 0.02; done'";
    let scratch = board("- [ ] T-1: Ask it\n", &format!("  a: {{{slow}}}\n"));
    let agent = scratch
        .program("tavern-agent")
        .args(&["--name", "Frodo"])
        .start();
    wait_until("it tells", || scratch.folder().join("slow").exists());
    agent.signal(rustix::process::Signal::INT);
    agent.end().ends(130);
    scratch.has_no_process();
    scratch.write("../go", "");
    notify(&scratch, &[]).ends(0).says("T-1 asks");
}

#[test]
fn of_many_notices_what_needs_a_person_stands_first() {
    let items: String = (10..34)
        .map(|number| format!("- [ ] T-{number}: Note it (worktree: false)\n"))
        .collect();
    let scratch = board(
        &format!("{items}- [ ] T-99: Ask it (priority: 9)\n"),
        "  mine: {command: 'cat >../mine', severity: info}\n",
    );
    untold(&scratch, || drop(work(&scratch).ends(0)));
    notify(&scratch, &[]).ends(0);
    let mine = scratch.read("../mine");
    assert!(mine.starts_with("T-99 asks: "), "{mine}");
    assert!(mine.ends_with("and 5 more\n"), "{mine}");
}

#[test]
fn channels_that_git_has_brought_are_not_run() {
    let origin = board(
        ITEMS,
        "  mine: {command: 'touch ../ran', on: [finished, died, needs_you]}\n",
    );
    origin.commit(&["--all"], "Board");
    let clone = Scratch::empty();
    clone.git(&[
        "clone",
        "--quiet",
        &origin.work().display().to_string(),
        ".",
    ]);
    notify(&clone, &["--test"]).ends(4).says("tavern trust");
    notify(&clone, &[]).ends(4).says("tavern trust");
    let token = clone.claim("T-2", &[]);
    clone
        .run(
            "tavern-report",
            &["T-2", "--failed", "x", "--token", &token],
        )
        .ends(1);
    notify(&clone, &[]).ends(4).says("tavern trust");
    assert!(!clone.folder().join("ran").exists());
}

#[test]
fn a_test_shows_whether_each_channel_works() {
    let scratch = board(
        "",
        "  a: {file: a.txt}\n  b: {command: exit 7}\n  c: {file: board/main.md}\n  d: {desktop: true}\n  \
         e: {file: hooks/post-commit}\n",
    );
    let path = scratch.folder().join("bin");
    for (link, target) in [("board", ".tavern/queues"), ("hooks", ".git/hooks")] {
        std::os::unix::fs::symlink(target, scratch.work().join(link)).expect("it is not there");
    }
    let ran = notify(&scratch, &["--test", "--format", "json"]).ends(1);
    let failures: Vec<Value> = ran
        .records()
        .iter()
        .map(|record| record["failure"].clone())
        .collect();
    assert_eq!((failures.len(), &failures[0]), (5, &Value::Null));
    has(&ran.stdout, &["`exit 7` exited with code 7"]);
    for own in [2, 4] {
        let failure = failures[own].as_str().unwrap_or_default();
        assert!(
            failure.ends_with("is the board's own: name a file beside it"),
            "{failure}"
        );
    }
    assert!(!scratch.work().join(".git/hooks/post-commit").exists());
    assert_eq!(
        told(&scratch, "a.txt"),
        ["info test: a test: nothing happened"]
    );
    assert_eq!(scratch.queue(), "");
    scratch.executable(
        "../bin/notify-send",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >../desktop\n",
    );
    let ways = format!(
        "{}:{}",
        path.display(),
        std::env::var("PATH").expect("there is one")
    );
    scratch
        .program("tavern-notify")
        .args(&["--test"])
        .variable("PATH", ways)
        .run()
        .ends(1);
    assert_eq!(
        scratch.read("../desktop"),
        "--app-name=Tavern\n--urgency=low\n--\nwork: a test: nothing happened\na test: nothing happened\n"
    );
}

#[test]
fn channels_that_can_tell_nobody_are_errors() {
    for (channel, says) in [
        ("{}", "`mine` has no address"),
        ("{desktop: false}", "`mine` has no address"),
        ("{file: a, command: b}", "`mine` has more than one target"),
        ("{webhook: example.org}", "`mine` has no address"),
        (
            "{file: a, secret: $KEY}",
            "`mine` has a `secret` but no `webhook`",
        ),
        ("{webhook: $A$B}", "`mine` has no address"),
        ("{webhook: $}", "`mine` has no address"),
        (
            "{webhook: $A, secret: whsec_ab/c=}",
            "`mine` has no name of a variable",
        ),
        ("{file: .tavern/queues/main.md}", "`mine` has no file"),
        ("{file: x/../.git/config}", "`mine` has no file"),
        ("{file: .}", "`mine` has no file"),
        ("5", "`5` where a mapping is expected"),
        ("{fil: a}", "unknown key `fil`"),
        ("{file: a, on: [finishd]}", "finished"),
        ("{file: a, severity: error}", "critical"),
    ] {
        let scratch = Scratch::shell("", &format!("notify:\n  mine: {channel}\n"));
        scratch
            .run("tavern-check", &[])
            .ends(5)
            .says(says)
            .says(&format!("{CONFIG}:2:"));
    }
    let scratch = Scratch::shell("", "");
    notify(&scratch, &[])
        .ends(0)
        .says("config.yaml names no channel");
}

#[test]
fn a_rule_may_have_people_told_and_lets_it_be_done() {
    for (script, count) in [("mkdir -p db; echo x >db/x", 1), ("echo x >y", 0)] {
        let queue = format!("- [ ] T-1: One\n  ```sh\n  {script}\n  ```\n");
        let rules =
            "rules: {schema: {paths: [db], then: notify}}\nnotify: {mine: {file: mine.txt}}\n";
        let scratch = Scratch::shell(&queue, rules);
        scratch.settle();
        work(&scratch).ends(0);
        scratch.stands("T-1", "completed", 1);
        let told = told(&scratch, "mine.txt");
        let says =
            "warning trouble: Frodo works on T-1: violation: it broke the rule `schema`: db/x";
        assert_eq!(
            told.iter().filter(|told| told.starts_with(says)).count(),
            count,
            "{told:?}"
        );
        assert_eq!(told.len(), count, "{told:?}");
    }
}

#[test]
fn a_digest_tells_what_needs_a_person_and_what_has_ended_since() {
    let scratch = board(
        &format!("{ITEMS}- [x] T-4: Done before\n- [ ] T-5: Later (after: T-2)\n"),
        "  mine: {file: mine.txt}\n",
    );
    work(&scratch).ends(0);
    let since = |now: &str, more: &[&str]| {
        let arguments = [&["--since", "1h ago"], more].concat();
        scratch.at(now, "tavern-status", &arguments).ends(0)
    };
    let text = since("+0", &[]).stdout;
    has(
        &text,
        &[
            ": 1 completed, 1 dead; 3 runs\n",
            "waits for you:\n  T-1 asks: red or blue?",
        ],
    );
    has(
        &text,
        &[
            "\ndead:\n  T-2 ",
            "exited with code 1: the tests are red",
            "\ncompleted:\n  T-3 ",
            "Do it (Frodo)\n",
        ],
    );
    let later = since("+7200", &[]).stdout;
    has(
        &later,
        &[": nothing has ended; 0 runs\n", "  T-1 asks: red or blue?"],
    );
    assert!(!later.contains("\ndead:"), "{later}");
    let kinds: Vec<String> = since("+0", &["--format", "json"])
        .records()
        .iter()
        .map(|record| {
            format!(
                "{} {}",
                record["kind"].as_str().unwrap_or("?"),
                record["task"]
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "digest null",
            "need \"T-1\"",
            "need \"T-2\"",
            "ended \"T-2\"",
            "ended \"T-3\""
        ]
    );
    scratch
        .run("tavern-release", &["T-2", "--revive"])
        .succeeds();
    assert!(!since("+0", &[]).stdout.contains("dead:"), "it came back");
}

#[test]
fn the_end_of_all_that_was_planned_of_a_request_is_told_once_with_a_summary() {
    let queue = "## Pending\n\n- [ ] T-1.1: Note it (worktree: false)\n- [ ] T-1.2: Fail at it\n- [ ] T-1.3: Wait\n\
        - [ ] T-2: Note it (worktree: false)\n\n## Completed\n\n- [x] T-1: Build a bridge\n";
    let scratch = board(
        queue,
        "  mine: {file: mine.txt, on: [request]}\n  all: {file: all.txt, severity: info}\n",
    );
    scratch
        .run("tavern-release", &["T-1.3", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-release", &["T-2", "--cancel"])
        .succeeds();
    scratch
        .run("tavern-agent", &["--name", "Frodo", "--once"])
        .ends(0);
    assert_eq!(told(&scratch, "mine.txt"), [""; 0], "T-1.2 is open");
    work(&scratch).ends(0);
    let done = "warning request: all items planned for T-1 have ended: 1 completed, 1 dead, 1 cancelled; runs: 2";
    assert_eq!(told(&scratch, "mine.txt"), [done]);
    assert_eq!(
        told(&scratch, "all.txt")
            .iter()
            .filter(|line| *line == done)
            .count(),
        1
    );
    notify(&scratch, &[]).ends(0);
    assert_eq!(told(&scratch, "mine.txt").len(), 1);
    let runs = scratch.records("tavern-runs", &["list", "--request", "T-1"]);
    assert_eq!(
        runs.len(),
        2,
        "of its items, though they are not its children: {runs:?}"
    );
}

#[test]
fn of_requests_that_end_together_each_is_told_with_its_own() {
    let queue = "- [ ] T-7: A part's part's part (parent: T-6)\n- [ ] T-6: A part's part (parent: T-1.1)\n- [x] T-1: Build a bridge\n\
        - [ ] T-1.1: A part\n- [x] T-2: Build a boat\n- [ ] T-2.1: A part\n- [x] T-3: Build a house\n- [ ] T-3.1: A part\n\
        - [ ] T-3.2: Another\n";
    let scratch = board(queue, "  mine: {file: mine.txt, on: [request]}\n");
    // A new channel begins with what comes.
    notify(&scratch, &[]);
    for part in ["T-7", "T-6", "T-1.1", "T-2.1", "T-3.1"] {
        scratch
            .run("tavern-release", &[part, "--cancel"])
            .succeeds();
    }
    notify(&scratch, &[]).ends(0);
    let told = told(&scratch, "mine.txt");
    let of = |request: &str, cancelled: usize| {
        let of =
            format!("all items planned for {request} have ended: {cancelled} cancelled; runs: 0");
        told.iter().filter(|line| line.contains(&of)).count()
    };
    assert_eq!(
        [of("T-1", 3), of("T-1.1", 2), of("T-6", 1), of("T-2", 1)],
        [1; 4],
        "{told:#?}"
    );
    assert!(
        !told.iter().any(|line| line.contains("of T-3 ")),
        "T-3.2 is open: {told:#?}"
    );
}

#[test]
fn runs_are_found_by_day_and_request_and_their_files_by_an_expression() {
    let scratch = board(
        "- [ ] T-1: Note it (worktree: false)\n- [ ] T-1.1: Note more (worktree: false, parent: T-1)\n- [ ] T-2: Fail at it\n",
        "  mine: {file: mine.txt}\n",
    );
    work(&scratch).ends(0);
    let list = |arguments: &[&str]| {
        let records = scratch.records("tavern-runs", &[&["list"], arguments].concat());
        records
            .iter()
            .map(|run| run["task"].as_str().unwrap_or("?").to_owned())
            .collect::<Vec<_>>()
    };
    // What its child came to is put together in a run of its own.
    assert_eq!(list(&[]), ["T-1", "T-1.1", "T-1", "T-2"]);
    assert_eq!(list(&["--request", "T-1"]), ["T-1", "T-1.1", "T-1"]);
    assert_eq!(list(&["--since", "1h ago"]).len(), 4);
    assert_eq!(list(&["--day", "2020-01-01"]), [""; 0]);
    let later = scratch
        .at("+7200", "tavern-runs", &["list", "--since", "1h ago"])
        .ends(0);
    later.says("no matching runs");
    let grep = |arguments: &[&str]| scratch.run("tavern-runs", &[&["grep"], arguments].concat());
    grep(&["tests (are|were) red"]).ends(0).says("T-2@");
    grep(&["TESTS ARE RED", "--ignore-case", "--task", "T-2"]).ends(0);
    grep(&["TESTS ARE RED"]).ends(3);
    grep(&["tests (are", "--fixed"]).ends(3);
    grep(&["tests (are"])
        .ends(2)
        .says("`tests (are` is not a regular expression: unclosed group")
        .says("--fixed");
}
