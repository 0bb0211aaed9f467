//! Brings a message to people: a notice of the desktop, a command, a post, a line of a file.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use xxhash_rust::xxh3::xxh3_64;

use super::site::Site;
use super::surroundings;
use super::trust::Trust;
use crate::board::notice::{Notice, NoticeSeverity, subject, text};
use crate::clock;
use crate::config::Channel;
use crate::files;
use crate::process::{CommandSpec, Spec, find_program, run_command, run_program};
use crate::secrets::{learn, redact};
use crate::store::Board;

/// How long a program, and a post, may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
const POST_LIMIT: Duration = Duration::from_secs(10);

/// Bytes of the notices that a message has as JSON: a variable of a program's environment may have 128 KiB.
const MOST_BYTES: usize = 64 << 10;

/// Shows a notice on the desktop, by the rules of freedesktop.org.
const DESKTOP: &str = "notify-send";

/// One or more notices, as they are told.
pub(super) struct NoticeMessage<'a> {
    /// The same one has the same, however often it is sent.
    id: String,
    board: String,
    subject: String,
    text: String,
    severity: NoticeSeverity,
    notices: &'a [Notice],
}

impl<'a> NoticeMessage<'a> {
    /// Of at least one.
    pub(super) fn of(board: &Board, notices: &'a [Notice]) -> NoticeMessage<'a> {
        let root = board.root();
        let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy().into_owned();
        let events: Vec<String> = notices.iter().map(|notice| notice.seq.to_string()).collect();
        NoticeMessage {
            id: format!("tavern-{:016x}-{}", xxh3_64(root.as_os_str().as_encoded_bytes()), events.join("-")),
            subject: format!("{name}: {}", subject(notices)),
            board: name,
            text: text(notices),
            severity: notices.iter().map(|notice| notice.severity).max().unwrap_or(NoticeSeverity::Info),
            notices,
        }
    }

    /// As a post has it. `text` alone is what Slack and those like it show.
    fn json(&self) -> String {
        let text = format!("{}\n{}", self.subject, self.text);
        let (mut told, mut bytes) = (Vec::new(), 0);
        for notice in self.notices {
            let notice = json!(notice);
            bytes += notice.to_string().len();
            if bytes > MOST_BYTES {
                break;
            }
            told.push(notice);
        }
        let left_off = self.notices.len() - told.len();
        let data = json!({"board": self.board, "notices": told, "left_off": left_off});
        json!({"type": "tavern.notice", "timestamp": clock::now(), "text": text, "data": data}).to_string()
    }
}

/// Tells people, or says why it can't. On a dry board it does neither.
pub(super) fn deliver(site: &Site, channel: &Channel, message: &NoticeMessage<'_>) -> Result<(), String> {
    if site.board.is_dry() {
        return Ok(());
    }
    if Trust::of(site).settings().is_err() {
        return Err("config.yaml is not trusted here".to_owned());
    }
    let told = if let Some(command) = &channel.command {
        run(site, command, message)
    } else if let Some(address) = &channel.webhook {
        post(address, channel.secret.as_deref(), message)
    } else if let Some(file) = &channel.file {
        append(site, file, message)
    } else {
        show(site, message)
    };
    told.map_err(|why| redact(&why).into_owned())
}

fn run(site: &Site, command: &str, message: &NoticeMessage<'_>) -> Result<(), String> {
    let ours = [("TAVERN_NOTICE", message.subject.clone()), ("TAVERN_NOTICE_JSON", message.json())];
    let spec = CommandSpec {
        env: surroundings::of_commands(site, ours),
        inherits: false,
        timeout: COMMAND_LIMIT,
        input: format!("{}\n", message.text).into_bytes(),
        ..CommandSpec::new(command, site.board.root())
    };
    let ran = run_command(&spec, &site.interrupt).map_err(|error| error.to_string())?;
    if ran.is_success() { Ok(()) } else { Err(format!("`{command}` {}{}", ran.end, last_line(&ran.output))) }
}

fn show(site: &Site, message: &NoticeMessage<'_>) -> Result<(), String> {
    let program =
        find_program(DESKTOP.as_ref()).ok_or("there is no `notify-send`: install libnotify-bin, or what has it")?;
    let urgency = match message.severity {
        NoticeSeverity::Info => "low",
        NoticeSeverity::Warning => "normal",
        NoticeSeverity::Critical => "critical",
    };
    let args = ["--app-name=Tavern", &format!("--urgency={urgency}"), "--", &message.subject, &message.text];
    let ran = run_program(Spec::new(program, site.board.root()).args(args), COMMAND_LIMIT);
    match ran.map_err(|error| error.to_string())? {
        None => Err(format!("{DESKTOP} took longer than {} s", COMMAND_LIMIT.as_secs())),
        Some(ran) if ran.exit.is_success() => Ok(()),
        Some(ran) => Err(format!("{DESKTOP} {}{}", ran.exit, last_line(&String::from_utf8_lossy(&ran.stderr)))),
    }
}

fn last_line(output: &str) -> String {
    output
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(|line| format!(": {}", line.trim()))
        .unwrap_or_default()
}

fn append(site: &Site, file: &Path, message: &NoticeMessage<'_>) -> Result<(), String> {
    let path = site.board.root().join(file);
    let failed = |error: io::Error| format!("can't write {}: {error}", path.display());
    let folder = fs::canonicalize(path.parent().unwrap_or(&path)).map_err(failed)?;
    let own = [site.board.dir().to_owned(), site.board.private("")];
    let is_own = own.iter().filter_map(|own| fs::canonicalize(own).ok()).any(|own| folder.starts_with(own));
    if is_own || folder.iter().any(|part| part == ".git") {
        return Err(format!("{} is the board's own: name a file beside it", path.display()));
    }
    let line = |notice: &Notice| {
        format!("{} {} {}: {}\n", clock::dated(notice.time), notice.severity, notice.kind, notice.line())
    };
    let lines: String = message.notices.iter().map(line).collect();
    let write = || files::open_to_append(&path)?.write_all(lines.as_bytes());
    write().map_err(failed)
}

/// Posts it, signed as Standard Webhooks says (standardwebhooks.com) where there is a key.
fn post(address: &str, secret: Option<&str>, message: &NoticeMessage<'_>) -> Result<(), String> {
    let address = match address.strip_prefix('$') {
        Some(name) => variable(name)?,
        None => address.to_owned(),
    };
    let (body, at) = (message.json(), clock::now().timestamp().to_string());
    let config = ureq::Agent::config_builder().timeout_global(Some(POST_LIMIT)).max_redirects(0).build();
    let mut request = ureq::Agent::new_with_config(config)
        .post(&address)
        .header("content-type", "application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", &at);
    if let Some(name) = secret {
        request = request.header("webhook-signature", signature(&variable(name)?, &message.id, &at, &body));
    }
    // The address may be a secret itself.
    let host = address.split('/').nth(2).unwrap_or_default().rsplit('@').next().unwrap_or_default();
    let answer = request.send(body).map_err(|error| format!("{host}: {error}"))?;
    // What leads elsewhere is not followed.
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(format!("{host}: http status: {}", answer.status().as_u16()))
    }
}

fn variable(name: &str) -> Result<String, String> {
    let name = name.trim_start_matches('$');
    let value = std::env::var(name).map_err(|_| format!("the variable `{name}` is not set here"))?;
    learn([(name.to_owned(), value.clone())]);
    Ok(value)
}

/// By the key's bytes, or where it begins with `whsec_` by those that the rest spells.
fn signature(key: &str, id: &str, at: &str, body: &str) -> String {
    let spelt = key.strip_prefix("whsec_").and_then(|spelt| STANDARD.decode(spelt).ok());
    let key = spelt.unwrap_or_else(|| key.as_bytes().to_vec());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key may have any length");
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::notice::NoticeKind;

    #[test]
    fn a_message_of_very_many_fits_into_a_variable_and_says_how_many_are_left_off() {
        let of = |seq: u64| Notice {
            seq,
            time: clock::now(),
            kind: NoticeKind::Died,
            severity: NoticeSeverity::Warning,
            task: None,
            queue: None,
            title: None,
            text: "\u{1f6d1}".repeat(250),
            todo: None,
        };
        let notices: Vec<Notice> = (0..1000).map(of).collect();
        let (id, board, subject) = (String::new(), String::new(), String::new());
        let text = text(&notices);
        let message = NoticeMessage { id, board, subject, text, severity: NoticeSeverity::Warning, notices: &notices };
        let json = message.json();
        assert!(json.len() < 128 << 10, "{}", json.len());
        let data: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        let told = data["data"]["notices"].as_array().expect("a list").len() as u64;
        assert_eq!((told > 10, data["data"]["left_off"].as_u64()), (true, Some(1000 - told)));
    }

    #[test]
    fn a_signature_is_that_of_the_standard() {
        // The example of its libraries.
        let signed = signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            "{\"test\": 2432232314}",
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
