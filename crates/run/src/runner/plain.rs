//! Any program that writes plain text: its exit status decides.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anstream::adapter::strip_str;
use rustix::process::Signal as ProcessSignal;

use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::process::excerpt::Excerpt;
use tavern_sys::process::{LogLine, ProgramExit, Spec};

use super::event::{AgentEvent, Nesting};
use super::job::Job;
use super::outcome::{EndReason, Outcome, SessionEnd};
use super::provider;
use super::reading::provider_outcome;
use super::session::{Output, Session, Speaker, Stream};
use super::signal::Signal;
use super::{MOST_ANSWER, OUTPUT_LOG, OUTPUT_PARTS};

/// The exit code of a shell that didn't find a command.
const NOT_FOUND: i32 = 127;

/// Signals that a program's own fault raises.
const FAULTS: [ProcessSignal; 6] = [
    ProcessSignal::ABORT,
    ProcessSignal::BUS,
    ProcessSignal::FPE,
    ProcessSignal::ILL,
    ProcessSignal::SEGV,
    ProcessSignal::SYS,
];

/// The output of a program, both ends of it.
struct PlainText {
    /// The agent's words: standard output.
    output: Excerpt,
    /// Both outputs, in the order in which they came.
    all: Excerpt,
    /// The complete output for people, as far as it could be written.
    log: File,
    is_logged: bool,
    parts: [PathBuf; 2],
    nonce: Option<String>,
    /// The prompt, which some programs echo.
    prompt: String,
    reports: Option<FailureReport>,
}

/// A program's own report of its provider's failure, among its agent's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureReport {
    /// The beginning of its line.
    pub begins: &'static str,
    /// The beginning of a line that is printed after each answer; `None`: the report is the last line.
    pub answered: Option<&'static str>,
}

impl FailureReport {
    /// Returns the report, if none of the provider's answers came after it.
    fn find(self, output: &str) -> Option<&str> {
        let mut lines = output.lines().rev().filter(|line| !line.trim().is_empty());
        let is_report = |line: &&str| line.starts_with(self.begins);
        match self.answered {
            Some(answered) => lines
                .take_while(|line| !line.starts_with(answered))
                .find(is_report),
            None => lines.next().filter(is_report),
        }
    }
}

/// Starts `spec`. Its two output streams go to a file each, and are merged in the run's output log as they come.
pub(super) fn start(
    spec: Spec,
    job: &Job,
    reports: Option<FailureReport>,
) -> std::io::Result<Session> {
    let text = PlainText {
        output: Excerpt::new(MOST_ANSWER),
        all: Excerpt::new(MOST_ANSWER),
        log: files::open_to_append(job.run_dir.join(OUTPUT_LOG))?,
        is_logged: true,
        parts: OUTPUT_PARTS.map(|name| job.run_dir.join(name)),
        nonce: job.nonce.clone(),
        prompt: job.prompt.trim().to_owned(),
        reports,
    };
    Session::start(spec, job, OUTPUT_PARTS.map(Output::told), |_| {
        Ok(Box::new(text))
    })
}

impl Speaker for PlainText {
    fn read(
        &mut self,
        stream: Stream,
        line: LogLine,
        events: &mut VecDeque<AgentEvent>,
    ) -> Option<EndReason> {
        let mut raw = line.text;
        if line.cut > 0 {
            raw += &format!(" [… {} bytes left out …]", line.cut);
        }
        raw.push('\n');
        self.is_logged &= self.log.write_all(raw.as_bytes()).is_ok();
        if stream == Stream::Late {
            return None;
        }
        // Remove colours.
        let line = strip_str(&raw).to_string();
        self.all.push(line.as_bytes());
        if stream == Stream::Output {
            self.output.push(line.as_bytes());
        }
        let text = line.trim_end_matches('\n').to_owned();
        events.push_back(AgentEvent::Text {
            text,
            nesting: Nesting::Main,
        });
        None
    }

    fn conclude(&mut self, exit: ProgramExit, ended_by_us: Option<EndReason>) -> SessionEnd {
        if self.is_logged && !ended_by_us.is_some_and(EndReason::is_urgent) {
            // A part that can't be removed only duplicates output.
            self.parts
                .iter()
                .for_each(|part| drop(files::remove_tree(part)));
        }
        let text = |excerpt: &Excerpt| {
            let text = excerpt.text();
            let text = text.trim_end_matches('\n');
            if self.prompt.lines().nth(1).is_some() {
                text.replace(&self.prompt, "[the prompt]")
            } else {
                text.to_owned()
            }
        };
        let result = text(&self.all);
        let (outcome, reason) = match (exit, ended_by_us) {
            // A clean exit counts even if an ending began in the same moment.
            (ProgramExit::Code(0), _) => (Outcome::Success, exit.to_string()),
            (_, Some(why)) => (why.outcome(), why.describe().to_owned()),
            (exit, None) => {
                let outcome = match exit {
                    ProgramExit::Code(NOT_FOUND) => Outcome::NotFound,
                    ProgramExit::Code(_) => Outcome::Failed,
                    ProgramExit::Signal(signal)
                        if !FAULTS.iter().any(|fault| fault.as_raw() == signal) =>
                    {
                        Outcome::Killed
                    }
                    ProgramExit::Signal(_) | ProgramExit::Lost => Outcome::Crashed,
                };
                // Hints of git and others after an error are not the error.
                let is_advice = |line: &str| {
                    line.get(..5)
                        .is_some_and(|start| start.eq_ignore_ascii_case("hint:"))
                };
                let lines = || {
                    result
                        .lines()
                        .map(str::trim)
                        .filter(|line| !line.is_empty())
                };
                let last = lines()
                    .rfind(|line| !is_advice(line))
                    .or_else(|| lines().next_back());
                let output =
                    last.map(|line| format!(": {}", line.chars().take(200).collect::<String>()));
                (outcome, format!("{exit}{}", output.unwrap_or_default()))
            }
        };
        let is_own = matches!(outcome, Outcome::Success | Outcome::Failed);
        if let Some(report) = self.reports.filter(|_| is_own)
            && let Some(line) = report.find(&text(&self.output))
        {
            let status = provider::status_in(line.trim_start_matches(['[']));
            let failed = provider_outcome(status, provider::kind(line), line);
            return SessionEnd {
                resets_at: provider::limit_ends(line, clock::now())
                    .filter(|_| failed == Outcome::UsageLimit),
                result,
                ..SessionEnd::of(failed, line.chars().take(300).collect())
            };
        }
        if outcome != Outcome::Success {
            return SessionEnd {
                result,
                ..SessionEnd::of(outcome, reason)
            };
        }
        let answer = self.output.end();
        SessionEnd {
            result: text(&self.output),
            signal: Signal::read(&answer, self.nonce.as_deref()),
            answer,
            ..SessionEnd::of(outcome, reason)
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::*;
    use crate::runner::{CommandRunner, Limits, Next, Runner, Shell};
    use std::fs;
    use std::path::Path;
    use std::time::Duration;
    use tavern_sys::process::table;

    fn shell(folder: &Path, script: &str) -> (Job, Session) {
        let mut job = Job::in_folder(folder);
        job.script = Some(script.to_owned());
        let session = Shell.start(&job).expect("sh starts");
        (job, session)
    }

    fn run(script: &str) -> SessionEnd {
        let folder = tempfile::tempdir().expect("a temporary folder");
        shell(folder.path(), script).1.finish()
    }

    fn wait_until_ready(session: &mut Session) {
        loop {
            match session.next(Duration::from_secs(20)) {
                Next::Event(AgentEvent::Text { text, .. }) if text == "ready" => return,
                Next::Quiet => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_exit_status_decides_and_the_last_line_tells() {
        let rows = [
            (
                "echo work",
                Outcome::Success,
                "exited with code 0",
                Signal::None,
            ),
            (
                "echo work; echo DONE",
                Outcome::Success,
                "exited with code 0",
                Signal::Done,
            ),
            (
                "echo 'WAITING: red or blue?'",
                Outcome::Success,
                "exited with code 0",
                Signal::Waiting("red or blue?".to_owned()),
            ),
            (
                "echo oh no >&2; exit 3",
                Outcome::Failed,
                "exited with code 3: oh no",
                Signal::None,
            ),
            (
                "echo DONE; exit 1",
                Outcome::Failed,
                "exited with code 1: DONE",
                Signal::None,
            ),
            // `sh -eu`: neither a failing command nor an unset variable is passed over.
            (
                "false; echo DONE",
                Outcome::Failed,
                "exited with code 1",
                Signal::None,
            ),
            (
                "echo $no_such_variable; echo DONE",
                Outcome::Failed,
                "exited with code 2: ",
                Signal::None,
            ),
            (
                "no-such-program",
                Outcome::NotFound,
                "exited with code 127: ",
                Signal::None,
            ),
            (
                "kill -SEGV $$",
                Outcome::Crashed,
                "was ended by signal 11",
                Signal::None,
            ),
            (
                "kill -9 $$",
                Outcome::Killed,
                "was ended by signal 9",
                Signal::None,
            ),
        ];
        for (script, outcome, reason, signal) in rows {
            let ended = run(script);
            assert_eq!(
                (ended.outcome, &ended.signal),
                (outcome, &signal),
                "{script}: {ended:?}"
            );
            assert!(ended.reason.starts_with(reason), "{script}: {ended:?}");
        }
    }

    #[test]
    fn only_standard_output_is_the_answer_and_the_log_has_both_in_order() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join("run").join(OUTPUT_LOG);
        let script = format!(
            "seen() {{ until grep -q $1 '{}'; do sleep 0.01; done; }}\n\
             echo one; seen one; echo two >&2; seen two; printf '\\033[1mDONE\\033[0m\\n'; seen DONE; echo chatter >&2",
            log.display()
        );
        let ended = shell(folder.path(), &script).1.finish();
        assert_eq!(
            (ended.result.as_str(), ended.answer.as_str(), ended.signal),
            ("one\nDONE", "one\nDONE\n", Signal::Done)
        );
        assert_eq!(
            fs::read_to_string(&log).expect("it is there"),
            "one\ntwo\n\u{1b}[1mDONE\u{1b}[0m\nchatter\n"
        );
        for part in OUTPUT_PARTS {
            assert!(!folder.path().join("run").join(part).exists(), "{part}");
        }
        let ended = run("echo no; echo DONE >&2");
        assert_eq!(ended.signal, Signal::None);
        let ended = run("echo one; echo two >&2; exit 1");
        assert!(ended.result.contains("one") && ended.result.contains("two"));
    }

    #[test]
    fn a_report_of_a_failure_is_no_answer_although_the_program_exits_with_0() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let refused = "litellm.AuthenticationError: OpenAIException - Incorrect API key provided";
        let limited = "litellm.RateLimitError: RateLimitError - try again in 2h";
        let rows = [
            (
                "aider",
                format!("{refused}\nThe API provider is not able to authenticate you."),
                Outcome::Auth,
            ),
            ("aider", limited.to_owned(), Outcome::UsageLimit),
            // It tried again, and was answered.
            (
                "aider",
                format!("{limited}\nHello\nTokens: 1k sent. Cost: $0.01\nDONE"),
                Outcome::Success,
            ),
            ("aider", format!("I quote:\n> {refused}"), Outcome::Success),
            (
                "qwen",
                "[API Error: 401 Incorrect API key provided]".to_owned(),
                Outcome::Auth,
            ),
            (
                "qwen",
                "[API Error: 401 Incorrect API key provided]\nDONE".to_owned(),
                Outcome::Success,
            ),
            ("mine", refused.to_owned(), Outcome::Success),
        ];
        for (name, output, outcome) in rows {
            let program = folder.path().join(name);
            let text = format!("#!/bin/sh\ncat >/dev/null\ncat <<'END'\n{output}\nEND\n");
            fs::write(&program, text).expect("writable");
            let job = Job::in_folder(folder.path());
            fs::set_permissions(
                &program,
                std::os::unix::fs::PermissionsExt::from_mode(0o755),
            )
            .expect("it is ours");
            let ended = CommandRunner::new("x", [program.display().to_string()])
                .start(&job)
                .expect("it starts")
                .finish();
            fs::remove_file(job.run_dir.join(OUTPUT_LOG)).expect("each run writes its log");
            assert_eq!(ended.outcome, outcome, "{name} {output}: {ended:?}");
            assert_eq!(ended.resets_at.is_some(), outcome == Outcome::UsageLimit);
        }
    }

    #[test]
    fn an_echo_of_the_prompt_is_no_word_of_the_program() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut job = Job::in_folder(folder.path());
        job.prompt = "# Task\ndo it\n".to_owned();
        let print = "cat >&2; echo; echo failed; exit 1";
        let ended = CommandRunner::new("x", ["sh", "-c", print])
            .start(&job)
            .expect("it starts")
            .finish();
        assert!(
            ended.result.contains("[the prompt]") && ended.result.contains("failed"),
            "{ended:?}"
        );
        assert!(!ended.result.contains("do it"), "{ended:?}");
    }

    #[test]
    fn without_a_script_it_says_what_to_do() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let job = Job::in_folder(folder.path());
        let Err(error) = Shell.start(&job) else {
            panic!("it has no script")
        };
        assert!(
            error.hint.as_deref().unwrap_or_default().contains("```sh"),
            "{error:?}"
        );
    }

    #[test]
    fn limits_end_the_whole_tree() {
        let second = Duration::from_millis(300);
        let rows: [(Limits, &str, Outcome); 4] = [
            (
                Limits {
                    wall: Some(second),
                    ..Default::default()
                },
                "sleep 100",
                Outcome::Timeout,
            ),
            (
                Limits {
                    idle: Some(second),
                    ..Default::default()
                },
                "sleep 100",
                Outcome::Timeout,
            ),
            (
                Limits {
                    memory_mib: Some(0),
                    ..Default::default()
                },
                "sleep 100",
                Outcome::Budget,
            ),
            (
                Limits {
                    log_mib: Some(2),
                    ..Default::default()
                },
                "head -c 40000000 /dev/zero",
                Outcome::Budget,
            ),
        ];
        for (limits, script, outcome) in rows {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut job = Job::in_folder(folder.path());
            job.script = Some(format!("trap '' TERM; setsid {script} & wait; sleep 100"));
            job.limits = limits;
            let session = Shell.start(&job).expect("sh starts");
            let ended = session.finish();
            assert_eq!(ended.outcome, outcome, "{script}: {ended:?}");
            assert_eq!(table::marked(&job.mark()), []);
        }
    }

    #[test]
    fn a_request_to_end_is_polite_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (job, mut session) = shell(
            folder.path(),
            "trap 'echo saved; exit 9' TERM; echo ready; sleep 100 & wait",
        );
        wait_until_ready(&mut session);
        assert!(!table::marked(&job.mark()).is_empty());
        session.end(EndReason::Stop);
        session.end(EndReason::Wall);
        let ended = session.finish();
        assert_eq!(
            (ended.outcome, ended.reason.as_str()),
            (Outcome::Killed, "it was stopped")
        );
        assert_eq!(ended.result, "ready\nsaved");
    }

    #[test]
    fn a_command_line_is_filled_in_and_gets_the_prompt() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = |argv: &[&str], model: Option<&str>| {
            let mut job = Job::in_folder(folder.path());
            job.model = model.map(str::to_owned);
            job.task = "T-{run}".to_owned();
            let ended = CommandRunner::new("mine", argv.iter().copied())
                .start(&job)
                .expect("it starts")
                .finish();
            fs::remove_file(job.run_dir.join(OUTPUT_LOG)).expect("each run writes its log");
            ended.result
        };
        let print = "for arg; do echo \"[$arg]\"; done; cat";
        let argv = [
            "sh",
            "-c",
            print,
            "sh",
            "{task}/{run}",
            "{odd} {",
            "--model",
            "{model}",
            "-x",
        ];
        assert_eq!(
            run(&argv, Some("m")),
            "[T-{run}/T-1-1]\n[{odd} {]\n[--model]\n[m]\n[-x]\ndo it"
        );
        assert_eq!(run(&argv, None), "[T-{run}/T-1-1]\n[{odd} {]\n[-x]\ndo it");
        // Named in the command line, the prompt is no input.
        assert_eq!(
            run(
                &["sh", "-c", "cat; cat \"$1\"", "sh", "{prompt_file}"],
                None
            ),
            "do it"
        );
    }

    #[test]
    fn a_missing_command_line_is_told_with_where_to_set_it() {
        let error = CommandRunner::new("mine", [""; 0])
            .check(&[])
            .expect_err("it has no command line");
        assert!(
            error.hint.as_deref().unwrap_or_default().contains("mine"),
            "{error:?}"
        );
    }
}
