//! What a drain shows at the foot of its terminal while agents work, and what it leaves there.

use std::fs;

use crate::support::{Scratch, wait_until};
use crate::terminal::Window;

/// Items whose scripts do something, and go on until `~/go` is there.
fn held(id: &str, does: &str) -> String {
    let script = "until [ -e ~/go ]; do sleep 0.1; done";
    format!("- [ ] {id}: Do {id}\n  ```sh\n  {does}\n  {script}\n  echo 1 >{id}.txt\n  ```\n")
}

fn both_held() -> Scratch {
    Scratch::pending(&[held("T-1", "echo one"), held("T-2", "echo two")].concat())
}

fn go(scratch: &Scratch) {
    fs::write(scratch.folder().join("home/go"), "").expect("it is ours");
}

/// The lines of agents at work, and the sum beneath.
fn foot(screen: &str) -> Vec<&str> {
    screen
        .lines()
        .filter(|line| line.contains(" shell ") || line.starts_with("completed "))
        .collect()
}

/// All that stays is told, and nothing of the foot.
#[track_caller]
fn is_clean(screen: &str, told: &[&str]) {
    assert_eq!(foot(screen), Vec::<&str>::new(), "{screen}");
    for part in told {
        assert_eq!(screen.matches(part).count(), 1, "`{part}` in\n{screen}");
    }
}

const TOLD: [&str; 6] = [
    "draining 2 items",
    "T-1 claimed",
    "T-2 claimed",
    "T-1 merged",
    "T-2 merged",
    "2 of 2 completed, 0 left",
];

#[test]
fn each_agent_has_a_line_while_it_works_and_what_is_told_stays_above() {
    let scratch = both_held();
    let mut window = Window::start(&scratch, 24, 80, "tavern-drain --agents 2");
    window.shows(&["T-1 claimed", "T-2 claimed", "completed 0/2 · "]);
    wait_until("both are shown", || foot(&window.screen()).len() == 3);
    let screen = window.screen();
    let lines = foot(&screen);
    assert!(
        lines[..2]
            .iter()
            .all(|line| line.starts_with("Frodo ") || line.starts_with("Sam ")),
        "{screen}"
    );
    assert!(lines[2].starts_with("completed 0/2"), "{screen}");
    for (rows, columns) in [(24, 40), (10, 100)] {
        // After what was drawn at the size before.
        let before = window.written().len();
        wait_until("seconds go by", || window.written().len() > before);
        window.resize(&scratch, rows, columns);
        let before = window.written().len();
        wait_until("it is drawn anew", || window.written().len() > before);
        wait_until("it fits", || {
            let screen = window.screen();
            foot(&screen).len() == 3
                && screen
                    .lines()
                    .last()
                    .is_some_and(|line| line.starts_with("completed 0/2"))
        });
    }
    go(&scratch);
    let (_, screen) = window.end(0);
    is_clean(&screen, &TOLD[3..]);
}

#[test]
fn what_is_left_on_the_terminal_is_what_is_printed_without_one() {
    for (columns, words) in [(80, ""), (40, "NO_COLOR=1 "), (80, "LC_ALL=C ")] {
        let scratch = both_held();
        let window = Window::start(
            &scratch,
            40,
            columns,
            &format!("{words}tavern-drain --agents 2"),
        );
        wait_until("both are shown", || foot(&window.screen()).len() == 3);
        go(&scratch);
        let (ran, screen) = window.end(0);
        is_clean(&screen, &TOLD[..5]);
        assert!(
            screen
                .lines()
                .next()
                .is_some_and(|line| line.starts_with("draining 2 items")),
            "{screen}"
        );
        let has_colours = ran.stdout.contains("\u{1b}[38;5;2") || ran.stdout.contains("\u{1b}[32");
        assert_eq!(has_colours, !words.contains("NO_COLOR"), "{words}");
        assert_eq!(
            ran.stdout.contains(" · "),
            !words.contains("LC_ALL"),
            "{words}"
        );
    }
    let scratch = both_held();
    let window = Window::start(&scratch, 24, 80, "TERM=dumb tavern-drain --agents 2");
    window.shows(&["T-1 claimed", "T-2 claimed"]);
    go(&scratch);
    let (ran, screen) = window.end(0);
    is_clean(&screen, &TOLD);
    assert!(!ran.stdout.contains('\u{1b}'), "{ran}");
}

#[test]
fn interrupted_it_leaves_a_clean_screen() {
    let scratch = both_held();
    let mut window = Window::start(&scratch, 24, 80, "tavern-drain --agents 2");
    wait_until("both are shown", || foot(&window.screen()).len() == 3);
    window.press("\u{3}");
    let (_, screen) = window.end(130);
    is_clean(
        &screen,
        &[
            "T-1 claimed",
            "T-2 claimed",
            "0 of 2 completed, 2 left",
            "to go on where it was: tavern drain",
        ],
    );
}

#[test]
fn what_an_agent_starts_has_no_terminal_to_write_to() {
    let tries = "{ echo over >/dev/tty; } 2>/dev/null && echo wrote >~/wrote";
    let scratch = Scratch::pending(&[held("T-1", tries), held("T-2", tries)].concat());
    let window = Window::start(&scratch, 24, 80, "tavern-drain --agents 2");
    wait_until("both are shown", || foot(&window.screen()).len() == 3);
    go(&scratch);
    let (ran, screen) = window.end(0);
    is_clean(&screen, &TOLD);
    assert!(!ran.stdout.contains("over"), "{ran}");
    assert!(!scratch.folder().join("home/wrote").exists());
}
