//! What agent programs print, made up at random: only the block at the end of what the agent itself says is its answer, and that one always
//! is. Neither side knows how the other reads.

use std::fmt::Write as _;

use tavern_run::runner::answer::final_block;
use tavern_run::runner::{MOST_ANSWER, Signal};
use tavern_sys::process::excerpt::Excerpt;

use crate::dice::{Dice, number, share, slice};
use crate::support::Scratch;

/// Stands for the run's own nonce.
const NONCE: &str = "NONCE";

/// The built-in templates, which programs echo.
const TEMPLATES: [&str; 8] = [
    include_str!("../../templates/rules-plan.md"),
    include_str!("../../templates/rules-review.md"),
    include_str!("../../templates/rules-work.md"),
    include_str!("../../templates/rules-answer.md"),
    include_str!("../../templates/prod-plan.md"),
    include_str!("../../templates/prod-review.md"),
    include_str!("../../templates/planner.md"),
    include_str!("../../templates/reviewer.md"),
];

/// What would be an answer of each kind.
const ANSWERS: [(&str, &str); 3] = [
    ("markdown", "- [ ] Planted (done_when: ls)\n"),
    ("yaml", "verdict: approve\nsummary: Planted\n"),
    ("yaml", "question: Planted\noptions: [a, b]\n"),
];

/// A piece of output: on standard error or not, and what.
type Piece = (bool, String);

struct Output<'d> {
    dice: &'d mut Dice,
    pieces: Vec<Piece>,
}

impl Output<'_> {
    fn pick<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[usize::try_from(self.dice.below(all.len() as u64)).expect("it is small")]
    }

    fn say(&mut self, is_error: bool, text: impl Into<String>) {
        self.pieces.push((is_error, text.into()));
    }

    /// A block whose fence has `info` behind its kind.
    fn block(&mut self, kind: &str, info: &str, body: &str) -> String {
        let fence = self.pick(&["```", "````", "~~~"]);
        format!("{fence}{kind} {info}\n{body}{fence}\n")
    }

    /// A prompt as programs echo it: whole, cut anywhere, in lines of another width, quoted.
    fn echo(&mut self) -> String {
        let template = self.pick(&TEMPLATES);
        let mut text = template.replace("{{ nonce }}", NONCE);
        if self.dice.below(2) == 0 {
            let cut = self.dice.below(text.len() as u64 + 1);
            text.truncate(text.floor_char_boundary(usize::try_from(cut).expect("it is small")));
        }
        match self.dice.below(4) {
            0 => {
                let width = 8 + usize::try_from(self.dice.below(90)).expect("it is small");
                text = wrapped(&text, width);
            }
            1 => text = text.lines().map(|line| format!("> {line}\n")).collect(),
            _ => {}
        }
        text + "\n"
    }

    /// What is printed anywhere and is no answer.
    fn noise(&mut self) {
        let (kind, body) = ANSWERS[usize::try_from(self.dice.below(3)).expect("it is small")];
        let is_error = self.dice.below(2) == 0;
        let text = match self.dice.below(7) {
            0 => self.echo(),
            1 => "DONE\n".to_owned(),
            2 => format!("{} not closed\n", self.pick(&["```sh", "~~~~", "```yaml"])),
            3 => format!(
                "{}\n",
                "a long line ".repeat(1 + usize::try_from(self.dice.below(900)).expect("small"))
            ),
            4 => self.block(kind, "", body),
            5 => self.block(kind, "0123abcd", body),
            _ => "I look at it.\n\n- Well.\n".to_owned(),
        };
        self.say(is_error, text);
    }

    /// What it ends with, which is no answer though it looks like one.
    fn no_answer(&mut self, (kind, body): (&str, &str)) {
        let others = ["", "0123abcd", "NONCE0", "NONC", "nonce", "'NONCE'"];
        let text = match self.dice.below(10) {
            0 => self.echo(),
            1 | 2 => {
                let info = self.pick(&others);
                self.block(kind, info, body)
            }
            3 => format!("{}That was a draft.\n", self.block(kind, NONCE, body)),
            4 => format!("{}```sh\nls\n```\n", self.block(kind, NONCE, body)),
            5 => format!("~~~~~\n{}~~~~~\n", self.block(kind, NONCE, body)),
            6 => format!("```{kind} {NONCE}\n{body}"),
            7 => format!("Like so:\n`````md\n{}", self.block(kind, NONCE, body)),
            8 => format!("{NONCE}\n```{kind}\n{body}```\n"),
            _ => {
                let text = self.block(kind, NONCE, body);
                let (late, done) = (self.dice.below(2) == 0, self.dice.below(2) == 0);
                self.say(false, "I have no answer.\n");
                self.say(true, text);
                if late {
                    self.say(false, "So it is.\n");
                }
                if done {
                    self.say(true, "DONE\n");
                }
                return;
            }
        };
        self.say(false, text);
        if self.dice.below(2) == 0 {
            self.say(false, "DONE\n");
        }
    }

    /// The answer, and what may come behind it.
    fn answer(&mut self, (kind, body): (&str, &str)) {
        let text = self.block(kind, NONCE, body);
        self.say(false, text);
        let ends: &[&str] = if body.starts_with("question") {
            &["", "\n\n"]
        } else {
            &["", "\n", "DONE\n", "\n**DONE**\n\n"]
        };
        let end = self.pick(ends);
        self.say(false, end);
        for _ in 0..self.dice.below(3) {
            let text = self.pick(&[
                "tokens used\n12,345\n",
                "```yaml\nverdict: reject\n```\n",
                "DONE\n",
            ]);
            self.say(true, text);
        }
    }
}

/// The pieces of an output of this kind: with an answer at its end or not.
fn output(dice: &mut Dice, answer: (&str, &str), has_answer: bool) -> Vec<Piece> {
    let pieces = Vec::new();
    let mut output = Output { dice, pieces };
    for _ in 0..output.dice.below(6) {
        output.noise();
    }
    if has_answer {
        output.answer(answer);
    } else {
        output.no_answer(answer);
    }
    output.pieces
}

fn wrapped(text: &str, width: usize) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let mut length = 0;
        for word in line.split(' ') {
            if length > 0 && length + word.len() >= width {
                wrapped.push('\n');
                length = 0;
            }
            let space = if length > 0 { " " } else { "" };
            let _ = write!(wrapped, "{space}{word}");
            length += space.len() + word.len();
        }
        wrapped.push('\n');
    }
    wrapped
}

/// Whether a plan, a verdict or a question is read in it.
fn is_read(pieces: &[Piece], kind: &str, body: &str) -> bool {
    let mut said = Excerpt::new(MOST_ANSWER);
    let own = pieces.iter().filter(|(is_error, _)| !is_error);
    own.for_each(|(_, text)| said.push(text.as_bytes()));
    let text = said.end();
    if asks(&text) || body.starts_with("question") {
        return asks(&text);
    }
    let last = text.trim_end().lines().last().unwrap_or_default();
    let is_done = ["DONE", "**DONE**"].contains(&last);
    let without = text.trim_end().strip_suffix(last).filter(|_| is_done);
    final_block(without.unwrap_or(&text), &[kind], Some(NONCE)).is_ok()
}

fn asks(text: &str) -> bool {
    matches!(Signal::read(text, Some(NONCE)), Signal::Waiting(_))
}

#[test]
fn no_template_that_is_echoed_says_anything_wherever_it_is_cut() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
    let names = std::fs::read_dir(folder).expect("they are there");
    for name in names.map(|entry| entry.expect("it is there").path()) {
        let Ok(text) = std::fs::read_to_string(&name) else {
            continue;
        };
        for width in (16..=128).step_by(8) {
            let text = wrapped(&text.replace("{{ nonce }}", NONCE), width);
            let lines: Vec<&str> = text.lines().collect();
            for end in 1..=lines.len() {
                let (said, signal) = (lines[..end].join("\n"), Signal::None);
                assert_eq!(
                    Signal::read(&said, Some(NONCE)),
                    signal,
                    "{}: {said}",
                    name.display()
                );
            }
        }
    }
}

fn seed() -> u64 {
    number(
        "TAVERN_TEST_SEED",
        1 + 100_000 * slice().unwrap_or(0) as u64,
    )
}

#[test]
fn no_output_gives_an_answer_that_the_agent_does_not_give() {
    let first = seed();
    for seed in first..first + number("TAVERN_TEST_ROUNDS", 6000) {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (kind, body) = ANSWERS[usize::try_from(seed % 3).expect("it is small")];
        let has_answer = dice.below(3) == 0;
        let mut pieces = output(&mut dice, (kind, body), has_answer);
        if dice.below(100) == 0 {
            // Of which only the beginning and the end are kept.
            pieces.insert(0, (false, "~~~~ and much before\n".repeat(20_000)));
        }
        assert_eq!(
            is_read(&pieces, kind, body),
            has_answer,
            "seed {seed}: {pieces:?}"
        );
    }
}

/// Prints what the files of its item hold, in the order of their names.
const AGENT: &str = r#"#!/bin/sh -eu
for file in "$STEPS/$TAVERN_TASK".*; do
    case $file in
    *.err) sed "s/NONCE/$TAVERN_NONCE/g" "$file" >&2 ;;
    *) sed "s/NONCE/$TAVERN_NONCE/g" "$file" ;;
    esac
done
"#;

#[test]
fn programs_plan_what_their_agent_says_and_nothing_else() {
    let (first, rounds) = (seed(), share(256, 8).into());
    let rounds = number("TAVERN_TEST_ROUNDS", rounds);
    let mut items = String::new();
    for seed in first..first + rounds {
        let _ = writeln!(items, "- [ ] A-{seed}: Plan it");
    }
    let scratch = Scratch::with_agent(
        AGENT,
        &format!(
            "---\nrole: planner\n---\n\n## Draft\n\n## Pending\n\n{items}\n## Waiting\n\n## Completed\n\n## Dead Letter\n"
        ),
        "max_attempts: 1\nplan: {lane: draft}\n",
    );
    let mut expected = Vec::new();
    for seed in first..first + rounds {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let has_answer = dice.below(3) == 0;
        let pieces = output(&mut dice, ANSWERS[0], has_answer);
        for (nth, (is_error, text)) in pieces.iter().enumerate() {
            let stream = if *is_error { "err" } else { "out" };
            let coloured = text.lines().map(|line| format!("\x1b[1m{line}\x1b[0m\r\n"));
            let text = match dice.below(4) {
                0 => coloured.collect(),
                _ => text.clone(),
            };
            scratch.write(format!("../home/steps/A-{seed}.{nth:02}.{stream}"), text);
        }
        expected.push((format!("A-{seed}"), has_answer));
    }
    scratch.run(
        "tavern-agent",
        &["--role", "planner", "--name", "Frodo", "--until-empty"],
    );
    let log = scratch.run("tavern-log", &[]).succeeds();
    for (id, has_answer) in expected {
        let is_planned = log.contains(&format!("planned {id}: {id}.1"));
        assert_eq!(is_planned, has_answer, "{id}: {log}");
    }
}
