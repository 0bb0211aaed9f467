//! Requests of an agent for permission: in words that show a person their effect, and that a later run recognizes.
//! Pure.

use serde_json::{Value, json};

use tavern_core::rule::Breach;

/// The hook that runs before a call.
pub const HOOK: &str = "PreToolUse";

/// The message to an agent after a refused call.
const REFUSED: &str = "No person is here to allow this. Do without it if you can. If you can't, say why you need it in your last line, which \
                       begins with WAITING: and a person can allow it.";

/// Fields of a call that describe it fully.
const TELLING: [&str; 4] = ["command", "file_path", "notebook_path", "url"];

/// A person would not read a longer call.
const LONGEST: usize = 300;

/// Formats the call in one line; `None` if that is impossible, and the call then can't be allowed.
pub fn called(tool: &str, input: &Value) -> Option<String> {
    let telling = TELLING
        .iter()
        .find_map(|name| input[*name].as_str().map(str::to_owned));
    let line = format!("{tool} {}", telling.unwrap_or_else(|| input.to_string()));
    (line.len() <= LONGEST && !line.contains(char::is_control)).then_some(line)
}

/// Returns `question`, of an agent that had these calls refused, with the calls that a "yes" allows.
pub fn asking(question: &str, refused: &[String]) -> String {
    let calls: Vec<String> = refused.iter().map(|call| format!("`{call}`")).collect();
    format!("{question} (yes allows: {})", calls.join(", "))
}

/// Returns true if the answer allows the request.
pub fn is_yes(answer: &str) -> bool {
    let first = answer
        .split(|c: char| !c.is_alphanumeric())
        .find(|word| !word.is_empty())
        .unwrap_or_default();
    ["yes", "y", "ok", "okay", "allow", "allowed"].contains(&first.to_lowercase().as_str())
}

/// Returns the reply to the permission request with this ID, for a call with this input.
pub fn reply(request: &str, input: &Value, is: Leave) -> Value {
    let said = match is {
        Leave::Given => json!({"behavior": "allow", "updatedInput": input}),
        Leave::Refused | Leave::Forbidden => json!({"behavior": "deny", "message": REFUSED}),
    };
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": request, "response": said}})
}

/// Returns the reply to the hook request with this ID, for a call that breaks a rule, or none.
pub fn verdict(request: &str, breach: Option<&Breach>) -> Value {
    let said = breach.map_or_else(
        || json!({}),
        |breach| {
            let why = format!("the rule `{}` of this board forbids it ({}). Do without it.", breach.rule, breach.what);
            let decision =
                json!({"permissionDecision": "deny", "permissionDecisionReason": why, "hookEventName": HOOK});
            json!({"hookSpecificOutput": decision})
        },
    );
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": request, "response": said}})
}

/// Whether a call is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    Given,
    /// A person can allow it later.
    Refused,
    /// A rule denies it, even if a person allows it.
    Forbidden,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_in_a_line_or_allowed_by_nobody() {
        let called = |input: Value| called("Bash", &input);
        assert_eq!(
            called(json!({"command": "git push", "timeout": 3})).as_deref(),
            Some("Bash git push")
        );
        assert_eq!(called(json!({"x": 1})).as_deref(), Some("Bash {\"x\":1}"));
        assert_eq!(called(json!({"command": "ls\nrm -rf ."})), None);
        assert_eq!(called(json!({"command": "x".repeat(400)})), None);
    }

    #[test]
    fn a_yes_is_its_first_word() {
        assert!(
            ["yes", "Yes, please.", "OK", " y", "allow it"]
                .into_iter()
                .all(is_yes)
        );
        assert!(
            !["no", "", "I said yes", "yesterday", "not ok"]
                .into_iter()
                .any(is_yes)
        );
    }
}
