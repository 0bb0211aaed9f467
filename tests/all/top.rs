//! `tavern-top` on a terminal of its own: what its screen shows, led by keys, while agents work.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::support::{CONFIG, QUEUE, Ran, Running, Scratch, has, wait_until};
use crate::terminal::Window;

/// The view in a window.
struct Top(Window);

impl Deref for Top {
    type Target = Window;

    fn deref(&self) -> &Window {
        &self.0
    }
}

impl DerefMut for Top {
    fn deref_mut(&mut self) -> &mut Window {
        &mut self.0
    }
}

impl Top {
    fn start(scratch: &Scratch, rows: u16, columns: u16, words: &str) -> Top {
        Top(Window::start(scratch, rows, columns, words))
    }

    fn usual(scratch: &Scratch) -> Top {
        let top = Top::start(scratch, 24, 80, "tavern-top");
        top.shows(&["Queues", "? keys"]);
        top
    }

    /// Goes to the row that begins so, from the first one.
    #[track_caller]
    fn choose(&mut self, begins: &str) {
        self.press("g");
        // Below the head and the first heading.
        wait_until("the first row is chosen", || self.chosen_row() == Some(2));
        while !self.chosen().trim_start().starts_with(begins) {
            let chosen = self.chosen_row();
            let last = self.size().0 - 2;
            assert!(
                chosen < Some(last),
                "no row begins with `{begins}` in\n{}",
                self.screen()
            );
            self.press("j");
            wait_until("another row is chosen", || self.chosen_row() > chosen);
        }
    }

    /// The row that is shown in reverse.
    fn chosen_row(&self) -> Option<u16> {
        let parser = self.parsed();
        let is_chosen = |row: &u16| {
            parser
                .screen()
                .cell(*row, 0)
                .is_some_and(vt100::Cell::inverse)
        };
        (0..self.size().0).find(is_chosen)
    }

    /// What stands in it.
    fn chosen(&self) -> String {
        let row = self.chosen_row().unwrap_or_default();
        self.parsed()
            .screen()
            .contents_between(row, 0, row, self.size().1)
    }

    /// Leaves it; the terminal is as it was.
    #[track_caller]
    fn quit(mut self) {
        self.press("q");
        self.end(0);
    }

    #[track_caller]
    fn end(self, code: i32) -> Ran {
        let (ran, _) = self.0.end(code);
        has(
            &ran.stdout,
            &["\u{1b}[?1049h", "\u{1b}[?1049l", "\u{1b}[?25h"],
        );
        ran
    }
}

/// Items whose scripts say something, and go on until `~/go` is there.
fn held(id: &str, says: &str) -> String {
    let script = "until [ -e ~/go ]; do sleep 0.1; done";
    format!("- [ ] {id}: Do {id}\n  ```sh\n  {says}\n  {script}\n  echo 1 >{id}.txt\n  ```\n")
}

fn agent(scratch: &Scratch, name: &str) -> Running {
    scratch
        .program("tavern-agent")
        .args(&["--once", "--name", name])
        .start()
}

#[test]
fn two_agents_are_watched_paused_answered_and_told() {
    let items = [held("T-1", "echo first line"), held("T-2", "echo other")].concat();
    let scratch = Scratch::pending(&items);
    let agents = [agent(&scratch, "Frodo"), agent(&scratch, "Sam")];
    wait_until("both work", || {
        scratch
            .run("tavern-status", &[])
            .stdout
            .matches(" working ")
            .count()
            == 2
    });
    let mut top = Top::usual(&scratch);
    top.shows(&[
        "2 agents work",
        "Frodo",
        "Sam",
        "T-1",
        "T-2",
        "in progress",
        "2 in progress",
    ]);
    top.choose("Frodo");
    let (own, other) = if top.chosen().contains("T-1") {
        ("T-1", "T-2")
    } else {
        ("T-2", "T-1")
    };
    let says = |id: &str| if id == "T-1" { "first line" } else { "other" };
    top.press("\r");
    top.shows(&[" · output", says(own)]);
    // It is followed as it comes.
    let log = fs::read_dir(scratch.work().join(".tavern/runs"))
        .expect("there are runs")
        .flatten();
    let log = log
        .map(|run| run.path())
        .find(|run| run.to_string_lossy().contains(&format!("{own}@")));
    let log = log.expect("its run").join("output.log");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(log)
        .expect("it is ours");
    std::io::Write::write_all(&mut file, b"and one more\n").expect("it is ours");
    top.shows(&[says(own), "and one more"]);
    top.press("\u{1b}");
    top.shows(&["Queues"]);
    top.press("thurry up\r");
    top.shows(&["runner shell takes no messages", "prompt of its next run"]);
    top.press("ptoo slow\r");
    top.shows(&["1 agent works", "Needs you", "too slow", "a answers"]);
    scratch.stands(own, "waiting", 0);
    scratch.stands(other, "in_progress", 1);
    top.choose(own);
    top.press("ago on\r");
    top.hides("Needs you");
    scratch.stands(own, "pending", 0);
    fs::write(scratch.folder().join("home/go"), "").expect("it is ours");
    top.shows(&["no agent works", "1 completed"]);
    top.quit();
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

#[test]
fn work_is_looked_at_rejected_and_approved() {
    let script = "\n  ```sh\n  echo new >>one.txt\n  ```\n";
    let scratch = Scratch::pending(&format!(
        "- [ ] T-1: One (review: person){script}- [ ] T-2: Two (approve: start){script}"
    ));
    scratch
        .run("tavern-agent", &["--once"])
        .ends(0)
        .says("in review");
    let mut top = Top::usual(&scratch);
    top.shows(&["2 items need you"]);
    top.choose("T-2");
    top.press("y");
    top.shows(&["approve T-2? Enter does, Esc does not"]);
    top.press("\u{1b}");
    top.hides("approve T-2?");
    scratch.stands("T-2", "pending", 0);
    top.press("y\r");
    top.shows(&["1 item needs you"]);
    top.choose("T-1");
    top.press("d");
    top.shows(&["T-1: One", "+new", "+++ b/one.txt"]);
    top.press("q\r");
    top.shows(&["status      in review", "T-1 One"]);
    top.press("xsay more\r");
    top.shows(&["status      pending"]);
    scratch.stands("T-1", "pending", 0);
    top.press("q");
    top.quit();
}

#[test]
fn nothing_is_written_when_nothing_changes() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    let top = Top::usual(&scratch);
    let before = top.written().len();
    // That nothing comes can only be waited for.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(top.written().len(), before);
    scratch.change(QUEUE, "One", "Another");
    top.shows(&["Another"]);
    top.quit();
}

#[test]
fn titles_and_streams_do_not_steer_the_terminal() {
    let title = "a\u{1b}]0;owned\u{7}b\u{1b}[2Jc\u{202e}d\u{2066}e\u{200b}f";
    let says = r"printf '\033[2J\033]0;owned\007\342\200\256said\n'";
    let scratch = Scratch::pending(&format!("- [ ] T-2: {title}\n{}", held("T-1", says)));
    let agent = agent(&scratch, "Frodo");
    let mut top = Top::usual(&scratch);
    top.shows(&["a·]0;owned·b·[2Jc·d·e·f", "Frodo"]);
    top.choose("Frodo");
    top.press("\r");
    top.shows(&["·[2J·]0;owned··said"]);
    fs::write(scratch.folder().join("home/go"), "").expect("it is ours");
    drop(agent.end());
    top.press("q");
    top.hides(" · output");
    top.press("q");
    let written = top.end(0).stdout;
    let hostile = [
        "\u{1b}]",
        "\u{7}",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "said\u{1b}[2J",
    ];
    assert!(
        hostile.iter().all(|part| !written.contains(part)),
        "{written:?}"
    );
}

#[test]
fn it_fits_any_size_and_is_drawn_anew_when_that_changes() {
    let items: String = (1..=500)
        .map(|n| format!("- [ ] T-{n}: {n} {}\n", "漢字 and more ".repeat(30)))
        .collect();
    let scratch = Scratch::board(&items);
    for (rows, columns) in [(24, 80), (60, 200), (7, 30)] {
        let mut top = Top::start(&scratch, rows, columns, "tavern-top");
        top.shows(&["T-1 "]);
        top.press("G");
        top.shows(&["T-500"]);
        top.press("g");
        top.shows(&["Queues"]);
        top.resize(&scratch, 30, 100);
        top.shows(&["T-25 ", "? keys"]);
        top.quit();
    }
}

#[test]
fn it_needs_no_colours_no_signs_and_no_terminal() {
    let scratch = Scratch::board("- [ ] T-1: Ä … 漢\n- [ ] T-2: Two (approve: start)\n");
    let colour = |written: &str| {
        ["\u{1b}[3", "\u{1b}[38;5;3m"].iter().any(|part| {
            written
                .match_indices(part)
                .any(|(at, _)| written[at + 3..].starts_with(['1', '2', '3', '8']))
        })
    };
    let top = Top::usual(&scratch);
    top.shows(&["Ä … 漢"]);
    assert!(colour(&String::from_utf8_lossy(&top.written())));
    top.quit();
    for words in [
        "NO_COLOR=1 tavern-top",
        "tavern-top --color never",
        "tavern-status --watch --color never",
    ] {
        let top = Top::start(&scratch, 24, 80, words);
        top.shows(&["Needs you"]);
        assert!(!colour(&String::from_utf8_lossy(&top.written())), "{words}");
        top.quit();
    }
    let top = Top::start(&scratch, 24, 80, "LC_ALL=C tavern-top");
    top.shows(&["? . ?"]);
    let start = "\u{1b}[?1049h".as_bytes();
    let written = top.written();
    let begin = written
        .windows(start.len())
        .position(|part| part == start)
        .expect("it is drawn");
    assert!(written[begin..].is_ascii());
    top.quit();
    let mut top = Top::start(&scratch, 24, 80, "TERM=dumb tavern-top");
    top.shows(&["main: 2 pending"]);
    scratch.change(QUEUE, "Two", "Three");
    top.press("\u{3}");
    let said = top.0.end(130).0.stdout;
    assert!(!said.contains("\u{1b}["), "{said:?}");
    scratch
        .run("tavern-top", &[])
        .ends(0)
        .says("main: 2 pending")
        .says("not a terminal: printing the output of tavern status");
}

#[test]
fn signals_end_stop_and_continue_it() {
    use rustix::process::Signal;
    let scratch = Scratch::board("- [ ] T-1: One\n");
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 143)] {
        let top = Top::usual(&scratch);
        top.signal(signal);
        top.end(code);
    }
    let mut top = Top::usual(&scratch);
    top.press("\u{3}");
    top.end(130);
    let mut top = Top::usual(&scratch);
    for way in ["signal", "key"] {
        if way == "key" {
            top.press("\u{1a}");
        } else {
            top.signal(Signal::TSTP);
        }
        let stat = format!("/proc/{}/stat", top.pid().as_raw_nonzero());
        wait_until("it stands still", || {
            fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))
        });
        top.hides("Queues");
        top.signal(Signal::CONT);
        top.shows(&["Queues"]);
    }
    top.quit();
}

#[test]
fn a_shell_and_an_editor_have_the_terminal_meanwhile() {
    let scratch = Scratch::pending(&held("T-1", "true"));
    let agent = agent(&scratch, "Frodo");
    scratch.executable(
        "../home/shell",
        "#!/bin/sh\npwd\nread line\necho \"$line\" >~/typed\n",
    );
    scratch.executable(
        "../home/editor",
        "#!/bin/sh\nread line\nsed -i \"s/Do/$line/\" \"$1\"\n",
    );
    scratch.write(
        QUEUE,
        scratch.queue() + "\n- [ ] T-9: Do nine (draft: true)\n",
    );
    let home = scratch.folder().join("home");
    wait_until("it works", || {
        scratch
            .run("tavern-status", &[])
            .stdout
            .contains(" working ")
    });
    let words = format!(
        "SHELL={0}/shell EDITOR={0}/editor tavern-top",
        home.display()
    );
    let mut top = Top::start(&scratch, 24, 80, &words);
    top.shows(&["1 agent works"]);
    top.choose("Frodo");
    top.press("!");
    wait_until("the shell runs", || {
        String::from_utf8_lossy(&top.written()).contains("worktrees/T-1\r\n")
    });
    // Keys of the view are words of the shell.
    top.press("quit\r");
    top.shows(&["1 agent works"]);
    assert_eq!(
        fs::read_to_string(home.join("typed")).ok().as_deref(),
        Some("quit\n")
    );
    top.choose("T-9");
    top.press("e");
    top.hides("1 agent works");
    top.press("Make\r");
    top.shows(&["1 agent works", "Make nine"]);
    fs::write(home.join("go"), "").expect("it is ours");
    drop(agent.end());
    top.quit();
}

#[test]
fn keys_are_heard_after_a_shell_on_a_board_where_nothing_happens() {
    let scratch = Scratch::pending("- [ ] T-1: One\n- [ ] T-2: Two\n");
    fs::create_dir_all(scratch.work().join(".tavern/worktrees/T-1")).expect("it is not there");
    scratch.executable("../home/shell", "#!/bin/sh\npwd\nread line\n");
    let home = scratch.folder().join("home");
    let mut top = Top::start(
        &scratch,
        24,
        80,
        &format!("SHELL={}/shell tavern-top", home.display()),
    );
    top.shows(&["Queues", "? keys"]);
    top.choose("T-1");
    top.press("!");
    wait_until("the shell runs", || {
        String::from_utf8_lossy(&top.written()).contains("worktrees/T-1\r\n")
    });
    top.press("it\r");
    top.shows(&["Queues", "? keys"]);
    top.choose("T-2");
    top.quit();
}

#[test]
fn what_died_and_queues_that_are_lost_are_shown() {
    let scratch = Scratch::shell(
        "- [ ] T-1: One\n  ```sh\n  exit 1\n  ```\n- [ ] T-2: Two\n",
        "max_attempts: 1\n",
    );
    scratch.settle();
    scratch.run("tavern-agent", &["--once"]);
    let mut top = Top::usual(&scratch);
    top.choose("T-1");
    top.shows(&["T-1       dead", "T-1       exited with code 1 (r revives)"]);
    top.press("x");
    top.shows(&["`T-1` is dead, so it can't be rejected"]);
    fs::remove_file(scratch.work().join(QUEUE)).expect("it is there");
    top.shows(&["Problems", "queue main was removed"]);
    top.quit();
}

#[test]
fn settings_that_cannot_be_read_keep_nobody_from_looking() {
    let scratch = Scratch::board("- [ ] T-1: One\n");
    scratch.write(CONFIG, "base: [\n");
    let top = Top::usual(&scratch);
    top.shows(&["T-1 ", "One"]);
    top.quit();
}

#[test]
fn a_text_is_mended_kept_and_comes_back() {
    let draft = "\n## Draft\n\n- [ ] T-3: Three\n";
    let scratch = Scratch::pending(&format!(
        "- [ ] T-1: One\n- [ ] T-2: Two (approve: start)\n{draft}"
    ));
    let mut top = Top::start(&scratch, 24, 100, "tavern-top");
    top.shows(&["Queues", "? keys"]);
    top.choose("T-3");
    top.shows(&["a answer · y approve · r release"]);
    top.choose("T-2");
    top.hides("r release");
    top.shows(&["a answer · y approve"]);
    top.choose("T-1");
    top.hides("a answer · y approve");
    top.press("r");
    top.shows(&["`T-1` can't be released: it is pending"]);
    top.press("tgo north\u{1b}");
    top.hides("go north");
    top.press("t");
    top.shows(&["tell T-1: go north"]);
    // Left, Ctrl-W, Ctrl-A, Delete, End.
    top.press("\u{1b}[D\u{17}sout\u{1}\u{1b}[3~G\u{1b}[F!\r");
    top.shows(&["T-1", "prompt of its next run"]);
    wait_until("it is told", || scratch.letters("T-1").len() == 1);
    let letter = fs::read_to_string(&scratch.letters("T-1")[0]).expect("it is there");
    assert!(letter.contains("Go south!"), "{letter}");
    top.press("t");
    top.shows(&["tell T-1: "]);
    top.hides("Go south!");
    top.press("\u{1b}");
    top.hides("tell T-1: ");
    top.choose("main");
    top.press("y");
    top.shows(&["y needs an item"]);
    top.quit();
}

#[test]
fn an_item_without_an_id_stays_chosen_when_its_line_is_another() {
    let scratch = Scratch::pending("- [ ] One\n- [ ] Two\n- [ ] Three (after: T-77)\n");
    let mut top = Top::usual(&scratch);
    top.shows(&["T-77"]);
    let line = |title: &str| {
        1 + scratch
            .queue()
            .lines()
            .position(|line| line.contains(title))
            .expect("it is there")
    };
    top.choose(&format!("main:{}", line("Two")));
    scratch.change(QUEUE, "- [ ] One\n", "- [ ] One\n- [ ] New\n");
    top.shows(&["New"]);
    assert!(top.chosen().contains("Two"), "{}", top.screen());
    top.press("\r");
    top.shows(&["Two"]);
    scratch.change(QUEUE, "- [ ] One\n", "");
    top.shows(&[&format!("main:{} ", line("Two"))]);
    top.hides("no longer");
    top.press("q");
    top.quit();
}

#[test]
fn a_shell_ends_with_the_view_that_gave_it_the_terminal() {
    use rustix::process::Signal;
    let scratch = Scratch::pending("- [ ] T-1: One\n");
    fs::create_dir_all(scratch.work().join(".tavern/worktrees/T-1")).expect("it is not there");
    let shell = "#!/bin/sh\ntrap \"\" TERM\ntrap \"echo bye >~/bye; exit\" HUP\npwd\necho $$ >~/shell-pid\nwhile :; do sleep 0.1; done\n";
    scratch.executable("../home/shell", shell);
    let home = scratch.folder().join("home");
    let mut top = Top::start(
        &scratch,
        24,
        80,
        &format!("SHELL={}/shell tavern-top", home.display()),
    );
    top.shows(&["Queues", "? keys"]);
    top.choose("T-1");
    top.press("!");
    wait_until("the shell runs", || {
        fs::read_to_string(home.join("shell-pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    top.signal(Signal::TERM);
    top.end(143);
    assert_eq!(
        fs::read_to_string(home.join("bye")).ok().as_deref(),
        Some("bye\n")
    );
    scratch.has_no_process();
}

#[test]
fn a_wide_terminal_shows_what_is_chosen_beside_the_list() {
    let scratch = Scratch::pending(
        &[
            held("T-1", "echo first line"),
            "- [ ] T-2: Two\n".to_owned(),
        ]
        .concat(),
    );
    let agent = agent(&scratch, "Frodo");
    wait_until("it works", || {
        scratch
            .run("tavern-status", &[])
            .stdout
            .contains(" working ")
    });
    let mut top = Top::start(&scratch, 60, 200, "tavern-top");
    top.shows(&["Queues", "? keys", "│"]);
    top.choose("Frodo");
    top.shows(&["Queues", " · output", "first line"]);
    top.choose("T-2");
    top.shows(&["Queues", "status      pending", "T-2 Two"]);
    top.hides("first line");
    scratch.change(QUEUE, "Two", "Second");
    top.shows(&["T-2 Second"]);
    top.choose("T-1");
    top.press("d");
    top.shows(&["Queues", " · changes", "no commit of T-1"]);
    let worktree = scratch.work().join(".tavern/worktrees/T-1");
    fs::write(worktree.join("new.txt"), "made now\n").expect("it is ours");
    top.shows(&["not committed yet", "+made now"]);
    let git = |words: &[&str]| scratch.git(&[&["-C", ".tavern/worktrees/T-1"], words].concat());
    git(&["add", "new.txt"]);
    git(&["commit", "--quiet", "--message=Newest"]);
    top.shows(&["Newest", "+made now"]);
    top.hides("not committed yet");
    let before = top.written().len();
    top.resize(&scratch, 24, 80);
    wait_until("it is drawn anew", || {
        top.written().len() > before && !top.screen().contains("Queues")
    });
    top.shows(&["+made now"]);
    top.press("q");
    top.shows(&["Queues"]);
    fs::write(scratch.folder().join("home/go"), "").expect("it is ours");
    drop(agent.end());
    top.quit();
}

#[test]
fn a_broken_item_says_what_is_wrong_with_it() {
    let block = "  ```yaml task\n  priority: urgent\n  ```\n";
    let scratch = Scratch::pending(&format!("- [ ] T-1: One\n{block}- [ ] T-2: Two\n"));
    scratch
        .run("tavern-check", &[])
        .says("invalid value for `priority`");
    let mut top = Top::start(&scratch, 24, 140, "tavern-top");
    top.shows(&["Queues", "? keys"]);
    top.choose("T-1");
    assert!(
        top.chosen().contains("invalid value for `priority`"),
        "{}",
        top.screen()
    );
    top.quit();
}

#[test]
fn what_died_needs_a_person_in_every_view_and_r_has_it_tried_again() {
    let scratch = Scratch::pending("- [ ] T-1: One\n  ```sh\n  echo oh; exit 3\n  ```\n");
    scratch.run("tavern-agent", &["--until-empty"]);
    scratch.stands("T-1", "dead", 3);
    let why = "exited with code 3: oh";
    let todo = "tavern retry T-1";
    let needs = format!("waits for you:\n  T-1: {why} — bring it back: {todo}\n");
    for arguments in [&[][..], &["--since", "1h ago"], &["--items"]] {
        scratch.run("tavern-status", arguments).says(&needs);
    }
    scratch
        .run("tavern-status", &["--metrics"])
        .says("need=\"dead\"} 1");
    scratch.run("tavern-report-html", &[]).succeeds();
    has(&scratch.read("tavern-report.html"), &[why, todo]);
    let mut top = Top::usual(&scratch);
    top.shows(&["1 item needs you", why]);
    top.choose("T-1");
    top.shows(&["r revive"]);
    top.press("r");
    top.shows(&["retry T-1?"]);
    top.press("\r");
    wait_until("it is pending", || {
        scratch.item("T-1")["status"] == "pending"
    });
    top.press("q");
    top.end(0);
}

/// Its terminal is gone before a signal or a key has told it so: it may be about to draw.
#[test]
fn a_terminal_that_is_closed_ends_it_as_a_hang_up_does() {
    use rustix::process::{Pid, Signal, kill_process};
    let scratch = Scratch::board("- [ ] T-1: One\n");
    let script =
        "#!/bin/sh\ntrap : HUP\nsh -c 'echo $$ >~/top; exec tavern-top'\necho $? >~/code\n";
    scratch.executable("../home/closed", script);
    let home = scratch.folder().join("home");
    for round in 0..6 {
        let top = Top::start(&scratch, 24, 80, "sh ../home/closed");
        top.shows(&["Queues", "? keys"]);
        let pid = fs::read_to_string(home.join("top")).expect("it runs");
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a pid");
        kill_process(pid, Signal::STOP).expect("it is ours");
        scratch.change(QUEUE, "- [ ] T-1", "- [ ] Before\n- [ ] T-1");
        drop(top);
        // It may have ended already: whose session ends is told to go on.
        let _ = kill_process(pid, Signal::CONT);
        wait_until("it has ended", || home.join("code").exists());
        let code = || fs::read_to_string(home.join("code")).unwrap_or_default();
        wait_until("its end is told", || code().ends_with('\n'));
        assert_eq!(code(), "143\n", "round {round}");
        fs::remove_file(home.join("code")).expect("it is ours");
    }
}
