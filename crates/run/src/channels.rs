//! Delivers a message to people: a desktop notification, a command, a webhook post, or a line of a file.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use xxhash_rust::xxh3::xxh3_64;

use super::environment;
use super::trust::Trust;
use super::workspace::Workspace;
use tavern_core::notice::{Notice, NoticeSeverity, by_severity, subject, text};
use tavern_store::config::Channel;
use tavern_sys::clock;
use tavern_sys::files;
use tavern_sys::interrupt::Interrupt;
use tavern_sys::process::{CommandSpec, Spec, find_program, run_command, run_program};
use tavern_sys::secrets::{learn, redact};

/// The time limits of a program and of a post.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
const POST_LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of notices in a message's JSON: an environment variable may have 128 KiB.
const MOST_BYTES: usize = 64 << 10;

/// Shows a desktop notification, by the rules of freedesktop.org.
const DESKTOP: &str = "notify-send";

/// A message with one or more notices.
struct NoticeMessage<'a> {
    /// The same for each delivery of the same message.
    id: String,
    board: String,
    subject: String,
    text: String,
    severity: NoticeSeverity,
    /// Most severe first.
    notices: Vec<&'a Notice>,
}

impl<'a> NoticeMessage<'a> {
    /// `notices` is not empty.
    fn of(root: &Path, notices: &'a [Notice]) -> NoticeMessage<'a> {
        let name = root
            .file_name()
            .unwrap_or(root.as_os_str())
            .to_string_lossy()
            .into_owned();
        let events: Vec<String> = notices
            .iter()
            .map(|notice| notice.seq.to_string())
            .collect();
        let notices = by_severity(notices);
        NoticeMessage {
            id: format!(
                "tavern-{:016x}-{}",
                xxh3_64(root.as_os_str().as_encoded_bytes()),
                events.join("-")
            ),
            subject: format!("{name}: {}", subject(&notices)),
            board: name,
            text: text(&notices),
            severity: notices
                .first()
                .map_or(NoticeSeverity::Info, |first| first.severity),
            notices,
        }
    }

    /// Returns the body of a post. Slack and similar services show only `text`.
    fn json(&self) -> String {
        let text = for_chat(&format!("{}\n{}", self.subject, self.text));
        let (mut sent, mut bytes) = (Vec::new(), 0);
        for notice in &self.notices {
            let notice = json!(notice);
            bytes += notice.to_string().len();
            if bytes > MOST_BYTES {
                break;
            }
            sent.push(notice);
        }
        let left_off = self.notices.len() - sent.len();
        let data = json!({"board": self.board, "notices": sent, "left_off": left_off});
        json!({"type": "tavern.notice", "timestamp": clock::now(), "text": text, "data": data})
            .to_string()
    }
}

/// Sends notices, from any thread.
pub(super) struct Sender {
    root: PathBuf,
    /// Folders that no channel writes to.
    own: Vec<PathBuf>,
    env: Vec<(String, String)>,
    is_dry: bool,
    is_trusted: bool,
    /// Interrupts the sending.
    pub interrupt: Interrupt,
}

impl Sender {
    pub(super) fn of(workspace: &Workspace) -> Sender {
        let own = [
            workspace.board.dir().to_owned(),
            workspace.board.private(""),
        ];
        Sender {
            root: workspace.board.root().to_owned(),
            own: own
                .iter()
                .filter_map(|own| fs::canonicalize(own).ok())
                .collect(),
            env: environment::of_commands(workspace, []),
            is_dry: workspace.board.is_dry(),
            is_trusted: Trust::of(workspace).settings().is_ok(),
            interrupt: workspace.interrupt.clone(),
        }
    }

    /// Sends these notices, or returns why it can't. On a dry board it does nothing.
    pub(super) fn send(&self, channel: &Channel, notices: &[Notice]) -> Result<(), String> {
        if self.is_dry {
            return Ok(());
        }
        if !self.is_trusted {
            return Err("config.yaml is not trusted here".to_owned());
        }
        let message = NoticeMessage::of(&self.root, notices);
        let sent = if let Some(command) = &channel.command {
            self.run(command, &message)
        } else if let Some(address) = &channel.webhook {
            post(address, channel.secret.as_deref(), &message)
        } else if let Some(file) = &channel.file {
            self.append(file, notices)
        } else {
            self.show(&message)
        };
        sent.map_err(|why| redact(&why).into_owned())
    }

    fn run(&self, command: &str, message: &NoticeMessage<'_>) -> Result<(), String> {
        let ours = [
            ("TAVERN_NOTICE", message.subject.clone()),
            ("TAVERN_NOTICE_JSON", message.json()),
        ];
        let ours = ours.map(|(name, value)| (name.to_owned(), value));
        let spec = CommandSpec {
            env: self.env.iter().cloned().chain(ours).collect(),
            inherits: false,
            timeout: COMMAND_LIMIT,
            input: format!("{}\n", message.text).into_bytes(),
            ..CommandSpec::new(command, &self.root)
        };
        let ran = run_command(&spec, &self.interrupt).map_err(|error| error.to_string())?;
        if ran.is_success() {
            Ok(())
        } else {
            Err(format!("`{command}` {}{}", ran.end, last_line(&ran.output)))
        }
    }

    fn show(&self, message: &NoticeMessage<'_>) -> Result<(), String> {
        let program = find_program(DESKTOP.as_ref())
            .ok_or("`notify-send` not found: install libnotify-bin, or the package that has it")?;
        let urgency = match message.severity {
            NoticeSeverity::Info => "low",
            NoticeSeverity::Warning => "normal",
            NoticeSeverity::Critical => "critical",
        };
        let text = for_desktop(&message.text);
        let args = [
            "--app-name=Tavern",
            &format!("--urgency={urgency}"),
            "--",
            &message.subject,
            &text,
        ];
        let ran = run_program(Spec::new(program, &self.root).args(args), COMMAND_LIMIT);
        match ran.map_err(|error| error.to_string())? {
            None => Err(format!(
                "{DESKTOP} took longer than {} s",
                COMMAND_LIMIT.as_secs()
            )),
            Some(ran) if ran.exit.is_success() => Ok(()),
            Some(ran) => Err(format!(
                "{DESKTOP} {}{}",
                ran.exit,
                last_line(&String::from_utf8_lossy(&ran.stderr))
            )),
        }
    }

    fn append(&self, file: &Path, notices: &[Notice]) -> Result<(), String> {
        let path = self.root.join(file);
        let failed = |error: io::Error| format!("can't write {}: {error}", path.display());
        let folder = fs::canonicalize(path.parent().unwrap_or(&path)).map_err(failed)?;
        let is_own = self.own.iter().any(|own| folder.starts_with(own));
        if is_own || folder.iter().any(|part| part == ".git") {
            return Err(format!(
                "{} is the board's own: name a file beside it",
                path.display()
            ));
        }
        let line = |notice: &Notice| {
            format!(
                "{} {} {}: {}\n",
                clock::dated(notice.time),
                notice.severity,
                notice.kind.as_str(),
                notice.line()
            )
        };
        let lines: String = notices.iter().map(line).collect();
        let write = || files::open_to_append(&path)?.write_all(lines.as_bytes());
        write().map_err(failed)
    }
}

/// `notify-send` treats backslashes in the body as C escapes, and desktops treat tags in it as markup.
fn for_desktop(text: &str) -> String {
    without_tags(&text.replace('\\', "\\\\"))
}

/// Slack reads `<!channel>`, `<@U123>` and `<https://…|words>` as mentions and links (docs.slack.dev, formatting
/// message text). Similar services read a bare `@channel`: a zero-width space after the sign prevents that.
fn for_chat(text: &str) -> String {
    let (mut shown, mut before) = (String::new(), ' ');
    let text = without_tags(text);
    for (at, c) in text.char_indices() {
        shown.push(c);
        let calls = c == '@' && !before.is_alphanumeric();
        if calls && text[at + 1..].starts_with(char::is_alphabetic) {
            shown.push('\u{200b}');
        }
        before = c;
    }
    shown
}

fn without_tags(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn last_line(output: &str) -> String {
    output
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(|line| format!(": {}", line.trim()))
        .unwrap_or_default()
}

/// Posts it, signed by Standard Webhooks (standardwebhooks.com) if there is a key.
fn post(address: &str, secret: Option<&str>, message: &NoticeMessage<'_>) -> Result<(), String> {
    let address = match address.strip_prefix('$') {
        Some(name) => variable(name)?,
        None => address.to_owned(),
    };
    let (body, at) = (message.json(), clock::now().timestamp().to_string());
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(POST_LIMIT))
        .max_redirects(0)
        .build();
    let mut request = ureq::Agent::new_with_config(config)
        .post(&address)
        .header("content-type", "application/json")
        .header("webhook-id", &message.id)
        .header("webhook-timestamp", &at);
    if let Some(name) = secret {
        request = request.header(
            "webhook-signature",
            signature(&variable(name)?, &message.id, &at, &body),
        );
    }
    // The address may be a secret itself.
    let host = address
        .split('/')
        .nth(2)
        .unwrap_or_default()
        .rsplit('@')
        .next()
        .unwrap_or_default();
    let answer = request
        .send(body)
        .map_err(|error| format!("{host}: {error}"))?;
    // Redirects are not followed.
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(format!("{host}: http status: {}", answer.status().as_u16()))
    }
}

fn variable(name: &str) -> Result<String, String> {
    let name = name.trim_start_matches('$');
    let value =
        std::env::var(name).map_err(|_| format!("the variable `{name}` is not set here"))?;
    learn([(name.to_owned(), value.clone())]);
    Ok(value)
}

/// Signs with the key's bytes, or, after `whsec_`, with the base64 bytes of the rest.
fn signature(key: &str, id: &str, at: &str, body: &str) -> String {
    let spelt = key
        .strip_prefix("whsec_")
        .and_then(|spelt| STANDARD.decode(spelt).ok());
    let key = spelt.unwrap_or_else(|| key.as_bytes().to_vec());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key may have any length");
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tavern_core::notice::NoticeKind;

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
        let json = NoticeMessage::of(Path::new("/shop"), &notices).json();
        assert!(json.len() < 128 << 10, "{}", json.len());
        let data: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        let sent = data["data"]["notices"].as_array().expect("a list").len() as u64;
        assert_eq!(
            (sent > 10, data["data"]["left_off"].as_u64()),
            (true, Some(1000 - sent))
        );
    }

    #[test]
    fn the_desktop_shows_an_agents_words_as_they_are() {
        assert_eq!(
            for_desktop("\\377 \\n <b>&amp;"),
            "\\\\377 \\\\n &lt;b&gt;&amp;amp;"
        );
    }

    #[test]
    fn a_chat_calls_nobody_and_links_nothing() {
        for (text, shown) in [
            ("<!channel> a & b", "&lt;!channel&gt; a &amp; b"),
            ("<@U123>", "&lt;@\u{200b}U123&gt;"),
            ("<http://a|tavern>", "&lt;http://a|tavern&gt;"),
            ("ask @here, @all", "ask @\u{200b}here, @\u{200b}all"),
            ("T-1@2 me@example.org @2", "T-1@2 me@example.org @2"),
        ] {
            assert_eq!(for_chat(text), shown);
        }
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
