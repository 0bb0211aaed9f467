//! Sixty-one recordings of the real CLI (tests/fixtures/claude, CLI 2.1.197), replayed through the reader: each must yield
//! the outcome in the table below. It is written by hand; no recording may be missing from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::outcome::{EndReason, Outcome, SessionEnd};
use super::reading::Reading;
use super::stream;
use tavern_sys::process::ProgramExit;

/// Recording, outcome, and a part of the reason given to people. All were ended by the recorder or by
/// themselves, none by Tavern.
const EXPECTED: [(&str, Outcome, &str); 61] = [
    // A background shell was killed by the CLI after the result: events after it change nothing.
    ("background-bash", Outcome::Success, "started it, done"),
    // Money is missing: a person must pay.
    ("err-400-credit", Outcome::Auth, "Credit balance is too low"),
    (
        "err-400-prompt-too-long",
        Outcome::Failed,
        "Prompt is too long",
    ),
    (
        "err-400-spend-limit",
        Outcome::UsageLimit,
        "You have reached your specified API usage limits",
    ),
    ("err-401", Outcome::Auth, "Invalid API key"),
    ("err-403", Outcome::Auth, "403 forbidden"),
    (
        "err-404-model",
        Outcome::Auth,
        "issue with the selected model",
    ),
    ("err-429-exhausted", Outcome::UsageLimit, "429"),
    ("err-429-then-ok", Outcome::Success, "All done"),
    ("err-429-unified-reset-headers", Outcome::UsageLimit, "429"),
    (
        "err-429-usage-limit-retry-after",
        Outcome::UsageLimit,
        "429",
    ),
    ("err-500-exhausted", Outcome::Overloaded, "500"),
    ("err-500-midrun", Outcome::Overloaded, "500"),
    // `api_error_status` is null, the error event says `server_error`.
    ("err-529-exhausted", Outcome::Overloaded, "529"),
    ("err-529-then-ok", Outcome::Success, "All done"),
    // SIGKILL by the recorder.
    (
        "err-api-never-answers-killed",
        Outcome::Crashed,
        "was ended by signal 9 without an answer",
    ),
    ("err-api-timeout", Outcome::Overloaded, "Request timed out"),
    (
        "err-connection-refused",
        Outcome::Overloaded,
        "ConnectionRefused",
    ),
    (
        "err-max-output-tokens",
        Outcome::Failed,
        "output token maximum",
    ),
    ("err-no-key", Outcome::Auth, "Not logged in"),
    ("err-refusal", Outcome::Failed, "unable to respond"),
    ("err-sse-error-fallback", Outcome::Success, "partial"),
    ("err-stream-cut-fallback", Outcome::Success, "partial text"),
    ("err-stream-stalled-300s", Outcome::Success, "partial"),
    // Exit 0 and no error, but a hook had stopped it: only `completed` is an answer.
    ("hooks-continue-false", Outcome::Failed, "hook_stopped"),
    ("hooks-include-events", Outcome::Success, "All done"),
    // The result is empty; whether anything was changed is for the worktree to say.
    ("hooks-stop-block-cap", Outcome::Success, "success"),
    ("hooks", Outcome::Success, "really done"),
    ("json-schema-never-called", Outcome::Success, "no struct"),
    ("json-schema", Outcome::Success, "bob"),
    (
        "max-budget-first-turn",
        Outcome::Budget,
        "Reached maximum budget ($0.001)",
    ),
    (
        "max-budget",
        Outcome::Budget,
        "Reached maximum budget ($0.03)",
    ),
    (
        "max-turns-json",
        Outcome::Budget,
        "Reached maximum number of turns (3)",
    ),
    (
        "max-turns",
        Outcome::Budget,
        "Reached maximum number of turns (3)",
    ),
    ("model-fallback", Outcome::Success, "hello there"),
    ("partial-messages", Outcome::Success, "All done"),
    (
        "permission-denied-dontask",
        Outcome::PermissionDenied,
        "Write, Bash",
    ),
    (
        "permission-denied",
        Outcome::PermissionDenied,
        "not allowed to use Bash",
    ),
    ("permission-prompt-stdio", Outcome::Success, "hello there"),
    ("result-json-verbose", Outcome::Success, "All done"),
    ("result-json", Outcome::Success, "All done"),
    ("resume-after-sigkill", Outcome::Success, "resumed fine"),
    ("resume-after-sigterm", Outcome::Success, "resumed fine"),
    ("resume-unknown", Outcome::Crashed, "No conversation found"),
    (
        "resume-unrelated-dir",
        Outcome::Crashed,
        "No conversation found",
    ),
    // Exit 0 without a result proves nothing.
    (
        "sigint-during-api",
        Outcome::Crashed,
        "exited with code 0 without an answer",
    ),
    ("sigint", Outcome::Killed, "aborted_tools"),
    (
        "sigkill",
        Outcome::Crashed,
        "was ended by signal 9 without an answer",
    ),
    (
        "sigterm-with-sessionend-hook",
        Outcome::Crashed,
        "exited with code 143 without an answer",
    ),
    (
        "sigterm",
        Outcome::Crashed,
        "exited with code 143 without an answer",
    ),
    (
        "stdin-control-requests",
        Outcome::Success,
        "first answer MARK-A",
    ),
    (
        "stdin-interrupt-during-api",
        Outcome::Killed,
        "aborted_streaming",
    ),
    ("stdin-interrupt-then-eof", Outcome::Killed, "aborted_tools"),
    // Interrupted, then asked to go on: the last result counts.
    ("stdin-interrupt", Outcome::Success, "first answer MARK-A"),
    (
        "stdin-max-turns",
        Outcome::Budget,
        "Reached maximum number of turns (2)",
    ),
    (
        "stdin-nudge-during-final",
        Outcome::Success,
        "after late MARK-B",
    ),
    (
        "stdin-nudge-priority-later",
        Outcome::Success,
        "second answer MARK-B",
    ),
    (
        "stdin-nudge-priority-now",
        Outcome::Success,
        "first answer MARK-A",
    ),
    ("stdin-nudge", Outcome::Success, "second answer MARK-B"),
    ("subagent", Outcome::Success, "main done"),
    ("success", Outcome::Success, "All done. MARKER-7731"),
];

#[test]
fn each_recording_yields_its_outcome() {
    let exits = exits();
    for (name, outcome, reason) in EXPECTED {
        let verdict = judge(name, exits.get(name).copied(), None);
        assert_eq!(verdict.outcome, outcome, "{name}: {verdict:?}");
        assert!(verdict.reason.contains(reason), "{name}: {verdict:?}");
        assert_eq!(
            reading(name).is_unknown(),
            reason == "No conversation found",
            "{name}: {verdict:?}"
        );
        let resets_at = verdict.resets_at.map(|moment| moment.to_rfc3339());
        let expected =
            (name == "err-400-spend-limit").then_some("2026-12-01T00:00:00+00:00".to_owned());
        assert_eq!(resets_at, expected, "{name}");
    }
}

#[test]
fn why_it_was_ended_counts_only_where_there_is_no_answer() {
    let rows = [
        // Silence after a failed call is the provider's.
        (
            "err-api-never-answers-killed",
            EndReason::Idle,
            Outcome::Overloaded,
        ),
        (
            "err-api-never-answers-killed",
            EndReason::Stop,
            Outcome::Killed,
        ),
        ("sigkill", EndReason::Wall, Outcome::Timeout),
        ("sigterm", EndReason::Stop, Outcome::Killed),
        ("stdin-interrupt-then-eof", EndReason::Usd, Outcome::Budget),
        (
            "stdin-interrupt-then-eof",
            EndReason::Memory,
            Outcome::Budget,
        ),
        ("sigint-during-api", EndReason::Idle, Outcome::Timeout),
        ("sigint", EndReason::Stop, Outcome::Killed),
        ("success", EndReason::Lingering, Outcome::Success),
        ("success", EndReason::Wall, Outcome::Success),
        ("err-429-exhausted", EndReason::Wall, Outcome::UsageLimit),
    ];
    for (name, why, outcome) in rows {
        let verdict = judge(name, Some(ProgramExit::Signal(9)), Some(why));
        assert_eq!(verdict.outcome, outcome, "{name} {why:?}: {verdict:?}");
    }
    // Not ended from here: an exit that isn't clean invalidates the answer.
    assert_eq!(
        judge("success", Some(ProgramExit::Signal(9)), None).outcome,
        Outcome::Crashed
    );
    assert_eq!(
        judge("success", Some(ProgramExit::Code(1)), None).outcome,
        Outcome::Crashed
    );
}

#[test]
fn what_the_agent_says_of_limits_is_not_the_provider_speaking() {
    // RCC #183: a time-out was taken for a usage limit because of words that the agent had echoed.
    let echo = r#"{"type":"assistant","message":{"id":"m","model":"claude-opus-4-8","content":[{"type":"text","text":"API Error: 429 usage limit reached|1795314466"}]}}"#;
    let failed = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":500,"result":"API Error: 500"}"#;
    let init = r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#;
    let judge = |lines: &[&str], exit, ended| {
        let mut reading = Reading::default();
        lines
            .iter()
            .flat_map(|line| stream::read(line))
            .for_each(|event| reading.note(&event));
        reading.judge(exit, ended, "usage limit reached")
    };
    assert_eq!(
        judge(&[init, echo], ProgramExit::Signal(9), Some(EndReason::Idle)).outcome,
        Outcome::Timeout
    );
    assert_eq!(
        judge(&[init, echo], ProgramExit::Code(143), None).outcome,
        Outcome::Crashed
    );
    assert_eq!(
        judge(&[init, echo, failed], ProgramExit::Code(1), None).outcome,
        Outcome::Overloaded
    );
    // The same words from the CLI itself are the provider's.
    let report = r#"{"type":"assistant","error":"unknown","message":{"model":"<synthetic>","content":[{"type":"text","text":"Claude AI usage limit reached|1795314466"}]}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"Claude AI usage limit reached|1795314466"}"#;
    let verdict = judge(&[init, report, result], ProgramExit::Code(1), None);
    assert_eq!(verdict.outcome, Outcome::UsageLimit);
    assert_eq!(
        verdict.resets_at.map(|moment| moment.timestamp()),
        Some(1_795_314_466)
    );
    // And a subscription's reset time comes as an event of its own.
    let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795310000,"rateLimitType":"five_hour"}}"#;
    let verdict = judge(&[init, limit, report, result], ProgramExit::Code(1), None);
    assert_eq!(
        verdict.resets_at.map(|moment| moment.timestamp()),
        Some(1_795_310_000)
    );
}

#[test]
fn figures_are_those_of_the_whole_process() {
    // Two turns: the second result holds the sum.
    let usage = reading("stdin-nudge").usage;
    assert_eq!(
        (
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write
        ),
        (4800, 600, 32_000, 1200)
    );
    assert!((usage.usd - 0.0625).abs() < 1e-9, "{usage:?}");
    assert_eq!(usage.fresh(), 6600);
    assert_eq!(
        usage.models.keys().collect::<Vec<_>>(),
        ["claude-opus-4-8[1m]"]
    );
    // Asked for in the middle of the run.
    let text = fs::read_to_string(folder().join("sample-stdin-control-requests.jsonl"))
        .expect("it is there");
    let spent = text
        .lines()
        .flat_map(stream::read)
        .find_map(|event| match event {
            super::AgentEvent::Spent { usage } => Some(usage),
            _ => None,
        });
    let spent = spent.expect("get_usage was asked for");
    assert_eq!((spent.output, spent.cache_read), (150, 8000));
    assert!((spent.usd - 0.015_625).abs() < 1e-9, "{spent:?}");
    // A sub-agent's tokens are in it, too, and its tools are seen.
    let reading = reading("subagent");
    assert_eq!(
        (reading.usage.output, reading.tool_calls, reading.deeds),
        (600, 2, 1)
    );
}

#[test]
fn no_recording_is_forgotten() {
    let mut on_disk: Vec<String> = fs::read_dir(folder())
        .expect("the recordings are in the repository")
        .filter_map(|entry| sample_name(&entry.expect("readable").path()))
        .collect();
    on_disk.sort();
    let mut expected: Vec<String> = EXPECTED
        .iter()
        .map(|(name, ..)| (*name).to_owned())
        .collect();
    expected.sort();
    assert_eq!(on_disk, expected);
}

fn judge(name: &str, exit: Option<ProgramExit>, ended: Option<EndReason>) -> SessionEnd {
    let exit = exit.unwrap_or_else(|| panic!("INDEX.json has no exit code of {name}"));
    reading(name).judge(exit, ended, "")
}

fn reading(name: &str) -> Reading {
    let path = folder().join(format!("sample-{name}.jsonl"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reading = Reading::default();
    for event in text.lines().flat_map(stream::read) {
        reading.note(&event);
    }
    reading
}

/// The exit of each recording, from INDEX.json, where -9 is SIGKILL.
fn exits() -> BTreeMap<String, ProgramExit> {
    let text =
        fs::read_to_string(folder().join("INDEX.json")).expect("the index is in the repository");
    let index: Vec<Value> = serde_json::from_str(&text).expect("the index is an array");
    index
        .iter()
        .filter_map(|entry| {
            let name = sample_name(Path::new(entry["sample"].as_str()?))?;
            let code = i32::try_from(entry["exit_code"].as_i64()?).ok()?;
            Some((
                name,
                if code < 0 {
                    ProgramExit::Signal(-code)
                } else {
                    ProgramExit::Code(code)
                },
            ))
        })
        .collect()
}

fn sample_name(path: &Path) -> Option<String> {
    Some(
        path.file_name()?
            .to_str()?
            .strip_prefix("sample-")?
            .strip_suffix(".jsonl")?
            .to_owned(),
    )
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/claude")
}
