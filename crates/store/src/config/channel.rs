//! Channels: ways of notifying people, each named by the user.

use std::path::{Component, PathBuf};

use serde::{Deserialize, Serialize};

use tavern_core::notice::{NoticeKind, NoticeSeverity};

/// A way of notifying people: exactly one of the first four fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Channel {
    /// A desktop notification, by `notify-send`.
    pub desktop: bool,
    /// A shell command, which gets the text on its standard input.
    pub command: Option<String>,
    /// The URL to which JSON is posted; `$NAME` reads it from an environment variable.
    pub webhook: Option<String>,
    /// The file to which one line per notice is appended, relative to the repository's root.
    pub file: Option<PathBuf>,
    /// The environment variable with the key that signs the posts.
    pub secret: Option<String>,
    /// The kinds of notices sent; empty: all.
    pub on: Vec<NoticeKind>,
    /// The least severity sent. Unset: `warning`, or `info` if `on` is set.
    pub severity: Option<NoticeSeverity>,
}

impl Channel {
    /// Returns true if the channel sends such notices.
    pub fn takes(&self, kind: NoticeKind, severity: NoticeSeverity) -> bool {
        let usual = if self.on.is_empty() {
            NoticeSeverity::Warning
        } else {
            NoticeSeverity::Info
        };
        (self.on.is_empty() || self.on.contains(&kind))
            && severity >= self.severity.unwrap_or(usual)
    }

    /// Returns a contradiction in the settings, if any, with a hint.
    pub fn fault(&self) -> Option<(&'static str, &'static str)> {
        let is_set =
            |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        let ways = [
            self.desktop,
            is_set(&self.command),
            is_set(&self.webhook),
            self.file.is_some(),
        ];
        let is_address = self.webhook.as_deref().is_none_or(|address| {
            address
                .strip_prefix('$')
                .map_or_else(|| is_of_web(address), is_name_of_variable)
        });
        let is_of_variable =
            |secret: &str| is_name_of_variable(secret.strip_prefix('$').unwrap_or(secret));
        let mut parts = self
            .file
            .iter()
            .flat_map(|file| file.components())
            .map(Component::as_os_str);
        let is_own = parts
            .clone()
            .any(|part| part == ".git" || part == ".tavern");
        let is_folder = self.file.is_some()
            && parts
                .next_back()
                .is_none_or(|last| last == "." || last == "..");
        match ways.iter().filter(|is_one| **is_one).count() {
            0 => Some((
                "has no address",
                "set `desktop: true`, `command`, `webhook` or `file`",
            )),
            2.. => Some((
                "has more than one target",
                "give each a name of its own under `notify`",
            )),
            _ if !is_address => Some((
                "has no address",
                "write `webhook: https://…`, or `webhook: $NAME` for a variable",
            )),
            _ if is_own || is_folder => Some((
                "has no file",
                "name one beside the board: `file: notices.txt`",
            )),
            _ if self.secret.is_some() && self.webhook.is_none() => Some((
                "has a `secret` but no `webhook`",
                "`secret` is for a `webhook`: leave it out",
            )),
            _ if !self.secret.as_deref().is_none_or(is_of_variable) => Some((
                "has no name of a variable",
                "put the key into an environment variable, and name that: `secret: $NAME`",
            )),
            _ => None,
        }
    }
}

fn is_of_web(address: &str) -> bool {
    ["http://", "https://"].iter().any(|start| {
        address
            .strip_prefix(start)
            .is_some_and(|rest| !rest.is_empty())
    })
}

fn is_name_of_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
