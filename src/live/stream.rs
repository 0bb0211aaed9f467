//! Follows the output of a run's program, as lines for people. It only reads files.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::format;
use tavern_run::record::is_over;
use tavern_run::runner::thread::ThreadLines;
use tavern_run::runner::{AgentEvent, LOGS, THREAD_LOG};
use tavern_sys::files;

use super::style::{Tone, line, lines};

/// Bytes of a log that are shown at first, from its end, and that are read at once.
const MOST: u64 = 256 << 10;

/// A longer line is shown before it ends.
const LONGEST: usize = 16 << 20;

/// The logs of one run, and their read positions.
#[derive(Debug)]
pub struct LogTail {
    folder: PathBuf,
    logs: Vec<LogPart>,
    is_behind: bool,
}

/// The read position of a log, and its last, incomplete line.
#[derive(Debug)]
struct LogPart {
    path: PathBuf,
    at: u64,
    rest: Vec<u8>,
    /// Omitted bytes before it that no line has reported yet.
    passed: u64,
    lines: ThreadLines,
}

impl LogPart {
    /// Returns the last part of a log, from the start of a line; if the last line is longer, its end.
    fn last(path: PathBuf) -> LogPart {
        let length = path.metadata().map_or(0, |file| file.len());
        let Some(before) = length.checked_sub(MOST + 1) else {
            return LogPart {
                path,
                at: 0,
                rest: Vec::new(),
                passed: 0,
                lines: ThreadLines::default(),
            };
        };
        let part = read_from(&path, before).unwrap_or_default();
        let end = part
            .iter()
            .position(|byte| *byte == b'\n')
            .filter(|end| end + 1 < part.len());
        let at = before + 1 + end.unwrap_or_default() as u64;
        LogPart {
            path,
            at,
            rest: Vec::new(),
            passed: at,
            lines: ThreadLines::from_middle(),
        }
    }
}

impl LogTail {
    /// Follows the run of this folder.
    pub fn of(folder: &Path) -> LogTail {
        let log = |name: &str| LogPart::last(folder.join(name));
        LogTail {
            folder: folder.to_owned(),
            logs: LOGS.map(log).into(),
            is_behind: false,
        }
    }

    /// Continues at a [`LogTail::place`]; starts as usual if `place` is invalid.
    pub fn after(folder: &Path, place: &str) -> LogTail {
        let mut tail = LogTail::of(folder);
        let places: Vec<u64> = place
            .split('-')
            .map_while(|place| place.parse().ok())
            .collect();
        if places.len() == tail.logs.len() {
            for (log, place) in tail.logs.iter_mut().zip(places) {
                // The log may have been replaced by a shorter one.
                if log.path.metadata().is_ok_and(|file| place <= file.len()) {
                    (log.at, log.passed) = (place, 0);
                    if place > 0 {
                        log.lines = ThreadLines::from_middle();
                    }
                }
            }
        }
        tail
    }

    /// Returns the positions after the last whole lines, as `123-0`.
    pub fn place(&self) -> String {
        let places: Vec<String> = self
            .logs
            .iter()
            .map(|log| (log.at - log.rest.len() as u64).to_string())
            .collect();
        places.join("-")
    }

    /// Returns true if the last call did not read everything.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Returns new lines. An incomplete line counts only after the run has ended.
    pub fn more(&mut self) -> Vec<(String, Tone)> {
        let mut more = Vec::new();
        self.is_behind = false;
        for LogPart {
            path,
            at,
            rest,
            passed,
            lines,
        } in &mut self.logs
        {
            let Some(part) = read_from(path, *at) else {
                continue;
            };
            if std::mem::take(passed) > 0 {
                more.push((format!("— the first {at} bytes are not shown"), Tone::Faint));
            }
            *at += part.len() as u64;
            self.is_behind |= part.len() as u64 == MOST;
            rest.extend_from_slice(&part);
            let is_all = rest.len() > LONGEST
                || (part.len() as u64) < MOST && !rest.is_empty() && is_over(&self.folder);
            let last = if is_all {
                Some(rest.len() - 1)
            } else {
                rest.iter().rposition(|byte| *byte == b'\n')
            };
            let Some(end) = last else { continue };
            let text: Vec<u8> = rest.drain(..=end).collect();
            let is_thread = path.ends_with(THREAD_LOG);
            for line in String::from_utf8_lossy(&text).lines() {
                if is_thread {
                    more.extend(lines.read(line).iter().flat_map(told));
                } else {
                    more.extend(plain(line));
                }
            }
        }
        more
    }
}

fn read_from(path: &Path, at: u64) -> Option<Vec<u8>> {
    let mut file = files::open(path).ok()?;
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut part = Vec::new();
    file.take(MOST).read_to_end(&mut part).ok()?;
    Some(part)
}

fn plain(text: &str) -> impl Iterator<Item = (String, Tone)> {
    lines(text).into_iter().map(|line| (line, Tone::Plain))
}

/// The maximal number of lines of a tool's result.
const RESULT: usize = 12;

/// Returns an event as lines for people; many events have none.
fn told(event: &AgentEvent) -> Vec<(String, Tone)> {
    match event {
        AgentEvent::Started { model, .. } => {
            let model = model.as_deref().map(|model| format!(" ({})", line(model)));
            vec![(
                format!("— a turn begins{}", model.unwrap_or_default()),
                Tone::Faint,
            )]
        }
        AgentEvent::Text { text, .. } => plain(text).collect(),
        AgentEvent::ToolCall { name, input, .. } => {
            let input = line(&format::words(&input.to_string()));
            vec![(format!("→ {} {input}", line(name)), Tone::Works)]
        }
        AgentEvent::ToolResult { ok, text, .. } => {
            let tone = if *ok { Tone::Faint } else { Tone::Bad };
            let all = lines(text);
            let left_out = all.len().saturating_sub(RESULT);
            let more = (left_out > 0).then(|| format!("  … {left_out} more lines"));
            let shown = all.into_iter().take(RESULT).map(|line| format!("  {line}"));
            shown.chain(more).map(|line| (line, tone)).collect()
        }
        AgentEvent::Delivered { text } => plain(text)
            .map(|(line, _)| (format!("> {line}"), Tone::Asks))
            .collect(),
        AgentEvent::Retry { error, .. } => {
            vec![(format!("— it tries again: {}", line(error)), Tone::Bad)]
        }
        AgentEvent::Failure { error, text } => {
            vec![(
                format!(
                    "— it failed: {}: {}",
                    line(error),
                    line(&format::words(text))
                ),
                Tone::Bad,
            )]
        }
        AgentEvent::Turn(turn) => {
            let usage = &turn.usage;
            vec![(
                format!(
                    "— a turn is over: {}, {} turns",
                    format::money(usage.usd),
                    turn.turns
                ),
                Tone::Faint,
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_as_it_comes() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let write = |text: &str| {
            let mut file = files::open_to_append(folder.join("output.log")).expect("it is ours");
            std::io::Write::write_all(&mut file, text.as_bytes()).expect("it is ours");
        };
        let mut tail = LogTail::of(&folder);
        assert_eq!(tail.more(), []);
        let metadata = |ended: &str| {
            let text = format!(
                r#"{{"run":"T-1@1","task":"T-1","title":"","queue":"main","agent":"a","role":"coder","attempt":1,"token":1,"runner":"x","worktree":"/x","started":"2026-11-28T20:00:00Z"{ended}}}"#
            );
            files::write(folder.join("metadata.json"), text.as_bytes()).expect("it is ours");
        };
        metadata("");
        write("one\ntw");
        assert_eq!(tail.more(), [("one".to_owned(), Tone::Plain)]);
        assert_eq!(tail.more(), []);
        write("o\u{1b}[2J\n");
        let place = tail.place();
        assert_eq!(tail.more(), [("two·[2J".to_owned(), Tone::Plain)]);
        write("open");
        assert_eq!(tail.more(), [], "it may go on");
        metadata(r#","ended":"2026-11-28T20:01:00Z""#);
        assert_eq!(tail.more(), [("open".to_owned(), Tone::Plain)]);
        assert_eq!(tail.more(), []);
        // Continues between two whole lines.
        let after = LogTail::after(&folder, &place).more();
        assert_eq!(
            after,
            [
                ("two·[2J".to_owned(), Tone::Plain),
                ("open".to_owned(), Tone::Plain)
            ]
        );
        assert_eq!(LogTail::after(&folder, &tail.place()).more(), []);
        assert_eq!(LogTail::after(&folder, "no place").more().len(), 3);
        assert_eq!(LogTail::after(&folder, "999-999").more().len(), 3);
    }

    #[test]
    fn of_a_long_log_no_half_line_is_shown() {
        let first = |log: &str| {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path().canonicalize().expect("it is there");
            let mut file = files::open_to_append(folder.join("output.log")).expect("it is ours");
            std::io::Write::write_all(&mut file, log.as_bytes()).expect("it is ours");
            let shown = LogTail::of(&folder).more();
            assert!(
                shown[0].0.starts_with("— the first ")
                    && shown[0].0.ends_with(" bytes are not shown"),
                "{shown:?}"
            );
            shown
                .get(1)
                .map(|(line, _)| line.clone())
                .unwrap_or_default()
        };
        let most = MOST as usize;
        assert_eq!(
            first(&format!(
                "{}\nsecond\n{}",
                "x".repeat(100),
                "y".repeat(most - 20) + "\n"
            )),
            "second"
        );
        // The line before ends right before the part that is read; one is longer than that part, and so is the last one.
        assert_eq!(
            first(&format!("before\nfirst\n{}\n", "y".repeat(most - 7))),
            "first"
        );
        assert_eq!(first(&format!("{}\nlast\n", "x".repeat(3 * most))), "last");
        assert_eq!(
            first(&format!("before\n{}\n", "x".repeat(3 * most))).len(),
            most - 1
        );
    }

    #[test]
    fn events_are_told_in_words() {
        let call = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}}"#;
        let told: Vec<String> = ThreadLines::default()
            .read(call)
            .iter()
            .flat_map(told)
            .map(|(line, _)| line)
            .collect();
        assert_eq!(told, ["I look.", r#"→ Bash {"command":"ls"}"#]);
    }
}
