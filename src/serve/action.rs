//! Turns the page's requests into command lines. Pure: it does not know how they are run.

use serde::Deserialize;

use crate::live::typed_line::TypedLine;
use tavern_core::task::TaskId;

/// A request of the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errand {
    deed: ErrandKind,
    item: String,
    #[serde(default)]
    text: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrandKind {
    Tell,
    Approve,
    Reject,
    Pause,
    Resume,
    Release,
    Revive,
    Merge,
}

impl Errand {
    /// Returns the verb and its arguments as a user would type them, or why there are none.
    pub fn words(&self) -> Result<Vec<String>, String> {
        let item: TaskId = self
            .item
            .parse()
            .map_err(|_| format!("`{}` is not an item with an ID", self.item))?;
        let line = match self.deed {
            ErrandKind::Tell => TypedLine::tell(item.as_str()),
            ErrandKind::Approve => TypedLine::approve(item.as_str()),
            ErrandKind::Reject => TypedLine::reject(item.as_str()),
            ErrandKind::Pause => TypedLine::pause(item.as_str()),
            ErrandKind::Resume => TypedLine::resume(item.as_str()),
            ErrandKind::Release => TypedLine::release(item.as_str()),
            ErrandKind::Revive => TypedLine::revive(item.as_str()),
            ErrandKind::Merge => return Ok(vec!["merge".to_owned(), item.to_string()]),
        };
        line.words_for(&self.text)
            .ok_or_else(|| "type a message first".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_typed_as_one_argument() {
        let words = |json: &str| {
            serde_json::from_str::<Errand>(json)
                .map_err(|_| "no errand".to_owned())?
                .words()
        };
        let rows = [
            (
                r#"{"deed":"tell","item":"T-1","text":"-x $(id)\n'now'"}"#,
                Ok("tell|T-1|--|-x $(id) 'now'"),
            ),
            (
                r#"{"deed":"tell","item":"T-1","text":"\u202e\u001b[2J"}"#,
                Ok("tell|T-1|--|[2J"),
            ),
            (
                r#"{"deed":"approve","item":"T-1","text":"ignored"}"#,
                Ok("report|T-1|--approve"),
            ),
            (
                r#"{"deed":"reject","item":"T-1","text":"no"}"#,
                Ok("report|T-1|--reject=no"),
            ),
            (r#"{"deed":"pause","item":"T-1"}"#, Ok("tell|T-1|--pause")),
            (r#"{"deed":"merge","item":"T-1"}"#, Ok("merge|T-1")),
            (
                r#"{"deed":"reject","item":"T-1","text":" "}"#,
                Err("type a message first"),
            ),
            (
                r#"{"deed":"tell","item":"--all","text":"x"}"#,
                Err("`--all` is not an item with an ID"),
            ),
            (r#"{"deed":"edit","item":"T-1"}"#, Err("no errand")),
        ];
        for (json, expected) in rows {
            let words = words(json).map(|words| words.join("|"));
            assert_eq!(words.as_deref().map_err(String::as_str), expected, "{json}");
        }
    }
}
