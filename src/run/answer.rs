//! What stands in an agent's answer for Tavern to read: its last fenced block of some kind. Pure.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// The last fenced block of `text` whose info string begins with one of `kinds`; an empty kind takes a bare fence.
pub fn last_block(text: &str, kinds: &[&str]) -> Option<String> {
    let mut last = None;
    let mut open: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let kind = info.split_whitespace().next().unwrap_or_default();
                open = kinds.iter().any(|known| known.eq_ignore_ascii_case(kind)).then(String::new);
            }
            Event::Text(text) => {
                if let Some(block) = &mut open {
                    block.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => last = open.take().or(last),
            _ => {}
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_of_its_kind_counts() {
        let text = "I looked.\n\n```yaml\na: 1\n```\nNo:\n\n```YAML verdict\nb: 2\nc: |\n  ```x\n```\n\n```sh\nls\n```\nDONE\n";
        assert_eq!(last_block(text, &["yaml", "json"]).as_deref(), Some("b: 2\nc: |\n  ```x\n"));
        assert_eq!(last_block(text, &["json"]), None);
        assert_eq!(last_block("```\nx\n```", &[""]).as_deref(), Some("x\n"));
        assert_eq!(last_block("```yaml\ncut off", &["yaml"]).as_deref(), Some("cut off"));
    }
}
