//! Failures of a model's provider, in the words of the programs that report them. Pure. Never used on an agent's own
//! words.

use chrono::{DateTime, Duration, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use serde_json::Value;

/// Words of providers and programs, in lower case, and the kind of failure that they report.
const WORDS: [(&str, &[&str]); 4] = [
    (
        "model_not_found",
        &[
            "model not found",
            "model_not_found",
            "modelnotfound",
            "does not exist or you do not have access",
        ],
    ),
    (
        "rate_limit",
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "usage limit",
            "usage_limit",
            "too many requests",
            "resource_exhausted",
            "quota",
        ],
    ),
    (
        "authentication_failed",
        &[
            "api key",
            "api_key",
            "authentication",
            "unauthenticated",
            "unauthorized",
            "not logged in",
            "credit balance",
            "billing",
        ],
    ),
    (
        "overloaded",
        &[
            "overloaded",
            "service unavailable",
            "server error",
            "server_error",
            "bad gateway",
            "gateway timeout",
            "econnrefused",
            "econnreset",
            "enotfound",
            "fetch failed",
            "unable to connect",
            "cannot connect",
            "connection error",
            "connection refused",
            "stream disconnected",
            "error sending request",
        ],
    ),
];

/// Returns the kind of failure that `text` reports; empty: none that is known.
pub fn kind(text: &str) -> &'static str {
    let text = text.to_lowercase();
    let found = WORDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| text.contains(word)));
    found.map_or("", |(kind, _)| kind)
}

/// Returns the words of a JSON-RPC error: its message and, if that says nothing, its details.
pub fn message(error: &Value) -> String {
    let data = &error["data"];
    let message = error["message"].as_str().unwrap_or_default();
    // A provider's own report.
    let inner = serde_json::from_str::<Value>(message).ok();
    let inner = inner
        .as_ref()
        .and_then(|inner| inner["error"]["message"].as_str());
    let details = [&data["details"], &data["message"], data]
        .into_iter()
        .find_map(Value::as_str);
    let message = inner.unwrap_or(message);
    match details {
        Some(details) if message.is_empty() || message == "Internal error" => details.to_owned(),
        Some(details) if !message.contains(details) => format!("{message}: {details}"),
        _ => message.to_owned(),
    }
}

/// Returns the HTTP status of a JSON-RPC error: from its structure, else from the words that it begins with or calls a
/// status.
pub fn status(error: &Value) -> Option<u16> {
    let of_message = error["message"]
        .as_str()
        .and_then(|message| serde_json::from_str::<Value>(message).ok());
    http_status(&error["code"])
        .or_else(|| nested_status(&error["data"], 4))
        .or_else(|| nested_status(&of_message?, 4))
        .or_else(|| status_in(&message(error)))
}

fn http_status(value: &Value) -> Option<u16> {
    let status = u16::try_from(value.as_u64()?).ok()?;
    (400..600).contains(&status).then_some(status)
}

fn nested_status(value: &Value, depth: u32) -> Option<u16> {
    const NAMES: [&str; 5] = [
        "status",
        "statusCode",
        "status_code",
        "http_status_code",
        "code",
    ];
    let fields = value.as_object()?;
    let own = NAMES
        .iter()
        .find_map(|name| http_status(fields.get(*name)?));
    own.or_else(|| {
        let depth = depth.checked_sub(1)?;
        fields
            .values()
            .find_map(|value| nested_status(value, depth))
    })
}

/// Returns the HTTP status in `text`: its first word, or the one behind "status", "error" or "code".
pub fn status_in(text: &str) -> Option<u16> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let mut is_announced = true;
    for word in words.filter(|word| !word.is_empty()) {
        let status = (word.len() == 3).then(|| word.parse().ok()).flatten();
        if let Some(status) = status.filter(|status| is_announced && (400..600).contains(status)) {
            return Some(status);
        }
        is_announced = ["status", "error", "code", "http"].contains(&&*word.to_lowercase());
    }
    None
}

/// Returns when a limit ends, by the words of its report: `try again in 2h 5m`, `retryDelay: "34s"`, `try again at Dec
/// 3rd, 2026 3:05 PM`, `try again at 3:05 PM`.
pub fn limit_ends(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let after = |mark: &str| text.split_once(mark).map(|(_, rest)| rest);
    let waits = [
        "try again in ",
        "retry in ",
        "retryDelay",
        "resets in ",
        "reset after ",
    ];
    let wait = waits.into_iter().find_map(|mark| wait(after(mark)?));
    wait.map(|wait| now + wait)
        .or_else(|| moment(after("try again at ")?, now))
}

/// Parses `2h 5m`, `3 days 4 hours`, `34.1s` or `": "34s"` at the beginning of `text`.
fn wait(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start_matches([' ', ':', '"', '\\']);
    let mut seconds = 0.0;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let Ok(number) = number.parse::<f64>() else {
            break;
        };
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        seconds += number
            * match unit {
                "ms" => 0.001,
                "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
                "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
                "h" | "hour" | "hours" => 3600.0,
                "d" | "day" | "days" => 86_400.0,
                _ => break,
            };
        rest = behind.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    // A longer wait is a misreading.
    (seconds > 0.0 && seconds < 40.0 * 86_400.0)
        .then(|| Duration::milliseconds((seconds * 1000.0) as i64))
}

/// Parses a date and time of this machine, or a time alone: its next occurrence.
fn moment(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let end = ["AM", "PM"]
        .iter()
        .filter_map(|half| text.find(half))
        .min()?;
    let words = text.get(..end + 2)?.replace(',', " ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let local = |moment: NaiveDateTime| Local.from_local_datetime(&moment).earliest();
    let time = |words: &[&str]| NaiveTime::parse_from_str(&words.join(" "), "%I:%M %p").ok();
    let found = match words.as_slice() {
        [month, day, year, time_of @ ..] if !time_of.is_empty() => {
            let day = day.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let date = NaiveDate::parse_from_str(&format!("{month} {day} {year}"), "%b %d %Y");
            local(date.ok()?.and_time(time(time_of)?))?
        }
        words => {
            let today = now.with_timezone(&Local).date_naive();
            let time = time(words)?;
            let at = local(today.and_time(time))?;
            if at.to_utc() > now {
                at
            } else {
                local(today.succ_opt()?.and_time(time))?
            }
        }
    };
    Some(found.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The errors are recorded: gemini 0.61, opencode 1.18, qwen 0.15, codex-acp 0.16.
    #[test]
    fn an_error_of_each_program_tells_its_kind() {
        let rows = [
            (
                json!({"code": 401, "message": "{\"error\":{\"code\":401,\"message\":\"Incorrect API key provided\",\"status\":\"UNAUTHENTICATED\"}}"}),
                Some(401),
                "authentication_failed",
            ),
            (
                json!({"code": -32603, "message": "Internal error: Incorrect API key provided", "data": {"service": "session", "errorName": "APIError"}}),
                None,
                "authentication_failed",
            ),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"details": "401 Incorrect API key provided"}}),
                Some(401),
                "authentication_failed",
            ),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"message": "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:1/v1/responses", "codex_error_info": "other"}}),
                Some(401),
                "authentication_failed",
            ),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"message": "exceeded retry limit, last status: 429 Too Many Requests", "codex_error_info": {"response_too_many_failed_attempts": {"http_status_code": 429}}}}),
                Some(429),
                "rate_limit",
            ),
            (
                json!({"code": -32603, "message": "Internal error: the file has 404 lines"}),
                None,
                "",
            ),
        ];
        for (error, of, kind_of) in rows {
            assert_eq!(
                (status(&error), kind(&message(&error))),
                (of, kind_of),
                "{error}"
            );
        }
    }

    #[test]
    fn the_end_of_a_limit_is_read_from_the_words_of_its_report() {
        let now = Utc.with_ymd_and_hms(2026, 12, 1, 12, 0, 0).unwrap();
        let local = |text: &str| {
            let moment = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").expect("a time");
            Local.from_local_datetime(&moment).unwrap().to_utc()
        };
        for (text, ends) in [
            (
                "Rate limit: try again in 3h",
                Some(now + Duration::hours(3)),
            ),
            (
                "Please try again in 1m30.5s.",
                Some(now + Duration::milliseconds(90_500)),
            ),
            (
                "try again in 3 days 4 hours 5 minutes.",
                Some(now + Duration::minutes((3 * 24 + 4) * 60 + 5)),
            ),
            (
                "{\"retryDelay\":\"34s\"}",
                Some(now + Duration::seconds(34)),
            ),
            (
                "or try again at Dec 3rd, 2026 3:05 PM.",
                Some(local("2026-12-03 15:05")),
            ),
            ("try again in a while", None),
            ("try again at noon", None),
            ("You are out of quota", None),
        ] {
            assert_eq!(limit_ends(text, now), ends, "{text}");
        }
        let next = limit_ends("try again at 3:05 PM", now).expect("a time");
        assert!(next > now && next - now <= Duration::hours(24));
    }
}
