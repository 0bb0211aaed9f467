//! Random conversations with the agents of an item: messages, answers, findings, and what people say when they bring it back. An agent
//! program keeps each prompt; a checker that knows only what was said, and in which order, looks at the prompts and at the log.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;

use crate::dice::{Dice, number, share, slice};
use crate::support::{Ran, Scratch, wait_until};

/// Keeps its prompt under the name of its run, then does what `steps/next` says.
const AGENT: &str = r#"#!/bin/sh -eu
mkdir -p "$NOTES"
cat >"$NOTES/$(basename "$TAVERN_RUN")"
. "$STEPS/next" # DONE
"#;

const QUEUE: &str = "## Pending\n\n- [ ] T-1: Talk (worktree: false, result: answer)\n\n## In Review\n\n\
                     ## Waiting\n\n## Completed\n\n## Dead Letter\n";

/// Where a word belongs in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Note,
    Answer,
    Finding,
}

struct Word {
    place: Place,
    text: String,
}

struct Talk {
    seed: u64,
    scratch: Scratch,
    dice: Dice,
    words: Vec<Word>,
    /// Prompts that were looked at.
    seen: HashMap<String, String>,
    number: u64,
}

impl Talk {
    fn begin(seed: u64) -> Talk {
        let config = "max_attempts: 2\nmax_returns: 99\nrounds: 99\nreview: [reviewer]\n";
        let scratch = Scratch::with_agent(AGENT, QUEUE, config);
        Talk {
            seed,
            scratch,
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            words: Vec::new(),
            seen: HashMap::new(),
            number: 0,
        }
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.dice.below(all.len() as u64)).expect("it is small")]
    }

    /// Words that were never said before.
    fn text(&mut self) -> String {
        let size = self.pick(&[1, 1, 9, 60, 60, 700, 3000, 4096, 4097, 8192]);
        self.number += 1;
        if size == 1 {
            let letter = char::from_u32('!' as u32 + u32::try_from(self.number).expect("small"));
            let letter = letter.expect("it is one");
            return letter.to_string();
        }
        let mut text = format!("w{}.", self.number);
        while text.len() < size {
            let word = self.pick(&[" mug", " ale", "\nbarrel", " stool", "\n\n- door"]);
            text.push_str(word);
        }
        text.truncate(size);
        text.trim().to_owned()
    }

    fn said(&mut self, place: Place, text: String, ran: &Ran) {
        match ran.code {
            Some(0) => self.words.push(Word { place, text }),
            code => assert!(text.len() > 4096, "{code:?}: {}{}", ran.stderr, text.len()),
        }
    }

    fn tell(&mut self) {
        let text = self.text();
        let place = match self.status().as_str() {
            "waiting" => Place::Answer,
            _ => Place::Note,
        };
        let program = self.scratch.program("tavern-tell").args(&["T-1", "-"]);
        let ran = program.variable("USER", "rosie").input(&text).run();
        self.said(place, text, &ran);
    }

    fn status(&self) -> String {
        let status = &self.scratch.item("T-1")["status"];
        status.as_str().expect("it has one").to_owned()
    }

    /// Gives it back with words or without.
    fn release(&mut self, place: Place, flags: &[&str]) {
        let mut arguments = [&["T-1"], flags].concat();
        if self.dice.below(2) == 0 {
            self.scratch.run("tavern-release", &arguments).ends(0);
            return;
        }
        let text = self.text();
        arguments.extend(["-m", &text]);
        let ran = self.scratch.run("tavern-release", &arguments);
        self.said(place, text.clone(), &ran);
        if ran.code != Some(0) {
            self.scratch
                .run("tavern-release", &arguments[..arguments.len() - 2])
                .ends(0);
        }
    }

    /// A run of an agent that takes it.
    fn run(&mut self, role: &str, step: &str) {
        let before = self.words.len();
        let is_held = self.dice.below(4) == 0;
        let hold = "touch \"$STEPS/held\"; until [ -e \"$STEPS/go\" ]; do sleep 0.02; done\n";
        let step = if is_held {
            format!("{hold}{step}")
        } else {
            step.to_owned()
        };
        self.scratch.write("../home/steps/next", step);
        let arguments = ["--role", role, "--name", role, "--once"];
        let running = self
            .scratch
            .program("tavern-agent")
            .args(&arguments)
            .start();
        let home = self.scratch.folder().join("home/steps");
        if is_held {
            wait_until("it runs", || home.join("held").exists());
            self.tell();
            fs::write(home.join("go"), "").expect("the folder is ours");
        }
        running.end();
        for name in ["held", "go"] {
            drop(fs::remove_file(home.join(name)));
        }
        self.look(before);
    }

    /// Looks at the prompt of the last run, of what was said before it began.
    fn look(&mut self, before: usize) {
        let folder = self.scratch.folder().join("home/notes");
        let names = fs::read_dir(folder).into_iter().flatten();
        let names = names.map(|entry| entry.expect("it is there").file_name());
        let mut new: Vec<String> = names
            .map(|name| name.into_string().expect("a run's name"))
            .filter(|name| !self.seen.contains_key(name))
            .collect();
        let run = new.pop().expect("it ran");
        assert!(new.is_empty(), "{new:?}");
        let prompt = format!("seed {}\n{}", self.seed, self.scratch.note(&run));
        for (place, block, open) in [
            (Place::Note, "notes", "<note from="),
            (Place::Answer, "answers", "<answered>"),
            (Place::Finding, "review-findings", "<note from="),
            (Place::Finding, "earlier-findings", "<note from="),
        ] {
            let is_review = prompt.contains("<review-task>");
            if (block == "review-findings") != is_review || place != Place::Finding {
                self.look_at(place, shown(&prompt, block, open), before, &prompt);
            }
        }
        self.seen.insert(run, prompt);
    }

    /// Each word of this place that was said is shown once, in whole; else the prompt says what is not there and where it is.
    fn look_at(&self, place: Place, shown: Vec<String>, before: usize, prompt: &str) {
        let mut left_out = 0;
        let said = self.words[..before].iter();
        let mut said: Vec<&Word> = said.filter(|word| word.place == place).collect();
        for text in shown {
            let number = |behind| marked(&text, "[… ", behind);
            let is_elsewhere = number(" earlier ones left out, which the task's log has …]")
                .or_else(|| number(" more, in the next message …]"));
            if let Some(number) = is_elsewhere {
                left_out += number;
                continue;
            }
            let (kept, mark) = text.rsplit_once("\n[… ").unwrap_or((&text, ""));
            let cut = marked(mark, "", " bytes left out, which the task's log has …]");
            let is_it = |word: &&Word| match cut {
                Some(cut) => word.text.starts_with(kept) && word.text.len() == kept.len() + cut,
                None => word.text == text,
            };
            let found = said.iter().position(is_it);
            let nth =
                found.unwrap_or_else(|| panic!("shown twice, or never said: `{text}`: {prompt}"));
            said.swap_remove(nth);
        }
        let missing: Vec<&str> = said.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(
            missing.len(),
            left_out,
            "not shown, nor told of: {missing:?}: {prompt}"
        );
    }

    /// What the log calls told, the prompt of that run shows in whole; and the log has all that was said.
    fn look_at_log(&self) {
        let entries = self.scratch.records("tavern-log", &["T-1"]);
        let sent: HashMap<u64, &str> = entries
            .iter()
            .filter(|entry| entry["kind"] == "sent")
            .filter_map(|entry| Some((entry["seq"].as_u64()?, entry["cause"].as_str()?)))
            .collect();
        for told in entries.iter().filter(|entry| entry["kind"] == "told") {
            let run = told["run"].as_str().expect("it was told in a run");
            let text = sent[&told["sent"].as_u64().expect("it was sent")].trim();
            assert!(
                self.seen[run].contains(&format!(">\n{text}\n</note>")),
                "{run} was never told `{text}`: {}",
                self.seen[run]
            );
        }
        let causes = |entry: &Value| entry["cause"].as_str().map(|cause| cause.trim().to_owned());
        let causes: Vec<String> = entries.iter().filter_map(causes).collect();
        for word in &self.words {
            assert!(
                causes.contains(&word.text),
                "seed {}: the log has no `{}`",
                self.seed,
                word.text
            );
        }
    }

    /// One thing that may come next.
    fn go_on(&mut self) {
        match self.status().as_str() {
            "waiting" if self.dice.below(2) == 0 => self.tell(),
            "waiting" => self.release(Place::Answer, &[]),
            "dead" => self.release(Place::Note, &["--revive"]),
            "completed" | "approved" => self.release(Place::Note, &["--reopen"]),
            "in_review" => self.review(),
            _ => {
                for _ in 0..self.pick(&[0, 0, 1, 2, 3, 8, 40]) {
                    self.tell();
                }
                let step = self.pick(&[
                    "exit 1",
                    "exit 1",
                    "echo 'WAITING: which?'",
                    "echo Well.; echo DONE",
                ]);
                self.run("coder", step);
            }
        }
    }

    fn review(&mut self) {
        let text = self.text();
        let before = self.words.len();
        let verdict = serde_json::json!({"verdict": "reject", "summary": text}).to_string();
        self.scratch.write("../home/steps/verdict", verdict);
        let step = "printf '```yaml %s\\n' $TAVERN_NONCE; cat \"$STEPS/verdict\"; printf '\\n```\\nDONE\\n'";
        self.run("reviewer", step);
        if self.status() == "pending" {
            let at = before.min(self.words.len());
            self.words.insert(
                at,
                Word {
                    place: Place::Finding,
                    text,
                },
            );
        }
    }
}

/// What the values in the block of this name are.
fn shown(prompt: &str, block: &str, open: &str) -> Vec<String> {
    let close = if open.starts_with("<note") {
        "\n</note>"
    } else {
        "\n</answered>"
    };
    let found = prompt.split_once(&format!("\n<{block}>\n"));
    let Some((text, _)) = found.and_then(|(_, rest)| rest.split_once(&format!("\n</{block}>")))
    else {
        return Vec::new();
    };
    let parts = text.split(open).skip(1);
    parts
        .map(|part| {
            let (_, text) = part.split_once('\n').expect("a line of its own");
            let (text, _) = text.split_once(close).expect("it is closed");
            text.to_owned()
        })
        .collect()
}

fn marked(text: &str, before: &str, behind: &str) -> Option<usize> {
    text.strip_prefix(before)?
        .strip_suffix(behind)?
        .parse()
        .ok()
}

#[test]
fn what_is_said_is_shown_once_or_the_prompt_says_where_it_is() {
    let first = number("TAVERN_TEST_SEED", 1 + 1000 * slice().unwrap_or(0) as u64);
    let rounds = number("TAVERN_TEST_ROUNDS", share(64, 16).into());
    for seed in first..first + rounds {
        let mut talk = Talk::begin(seed);
        for _ in 0..3 + talk.dice.below(6) {
            talk.go_on();
        }
        // Until nothing waits to be told.
        for _ in 0..40 {
            match talk.status().as_str() {
                "waiting" => talk.release(Place::Answer, &[]),
                "dead" => talk.release(Place::Note, &["--revive"]),
                "completed" | "approved" => talk.release(Place::Note, &["--reopen"]),
                "in_review" => talk.review(),
                _ if talk.scratch.letters("T-1").is_empty() && !talk.seen.is_empty() => break,
                _ => talk.run("coder", "exit 1"),
            }
        }
        assert!(
            talk.scratch.letters("T-1").is_empty(),
            "{:?}",
            talk.words.len()
        );
        talk.look_at_log();
    }
}
