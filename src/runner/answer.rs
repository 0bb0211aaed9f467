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

/// The last checklist of `text`: the lines between a fence ` ```markdown ` (or `md`) and the one that closes it.
///
/// Models put fences of the same kind inside, indented under their items: only one that stands no further in closes the
/// block.
pub fn checklist(text: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut last = None;
    let mut at = 0;
    while at < lines.len() {
        let open = CodeFence::of(lines[at]);
        at += 1;
        let Some(open) = open else { continue };
        let is_close = |line: &&str| CodeFence::of(line).is_some_and(|fence| fence.closes(&open));
        let end = lines[at..].iter().position(is_close).map(|length| at + length);
        if ["markdown", "md"].iter().any(|kind| kind.eq_ignore_ascii_case(open.kind)) {
            last = Some((at, end));
        }
        at = end.map_or(lines.len(), |end| end + 1);
    }
    match last {
        None => Err("there is no ```markdown block with its items in its answer".to_owned()),
        Some((_, None)) => Err("the ```markdown block of its answer is not closed".to_owned()),
        Some((start, Some(end))) => Ok(lines[start..end].iter().map(|line| format!("{line}\n")).collect()),
    }
}

/// A line of a fence.
struct CodeFence<'t> {
    indent: usize,
    mark: char,
    length: usize,
    kind: &'t str,
}

impl CodeFence<'_> {
    fn of(line: &str) -> Option<CodeFence<'_>> {
        let bare = line.trim_start_matches(' ');
        let mark = bare.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let kind = bare.trim_start_matches(mark);
        let (indent, length) = (line.len() - bare.len(), bare.len() - kind.len());
        let kind = kind.split_whitespace().next().unwrap_or_default();
        (length >= 3).then_some(CodeFence { indent, mark, length, kind })
    }

    fn closes(&self, open: &CodeFence<'_>) -> bool {
        self.mark == open.mark && self.length >= open.length && self.kind.is_empty() && self.indent <= open.indent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_may_hold_fences_of_its_own() {
        let inner = "- [ ] P-1: a\n  ```yaml task\n  done_when: [ls]\n  ```\n- [ ] P-2: b\n";
        for (fence, close) in
            [("```markdown", "```"), ("````md", "````"), ("~~~ Markdown", "~~~"), ("```markdown", "```  ")]
        {
            let text = format!("```sh\nls\n```\nFirst:\n```markdown\nold\n```\nNo:\n{fence}\n{inner}{close}\n\nDONE\n");
            assert_eq!(checklist(&text).as_deref(), Ok(inner), "{text}");
        }
        assert_eq!(
            checklist("```sh\n```markdown\n- [ ] a\n```\n").map_err(|why| why.contains("no ```markdown")),
            Err(true)
        );
        assert_eq!(checklist("```markdown\n- [ ] a\nDONE").map_err(|why| why.contains("not closed")), Err(true));
    }

    #[test]
    fn the_last_block_of_its_kind_counts() {
        let text = "I looked.\n\n```yaml\na: 1\n```\nNo:\n\n```YAML verdict\nb: 2\nc: |\n  ```x\n```\n\n```sh\nls\n```\nDONE\n";
        assert_eq!(last_block(text, &["yaml", "json"]).as_deref(), Some("b: 2\nc: |\n  ```x\n"));
        assert_eq!(last_block(text, &["json"]), None);
        assert_eq!(last_block("```\nx\n```", &[""]).as_deref(), Some("x\n"));
        assert_eq!(last_block("```yaml\ncut off", &["yaml"]).as_deref(), Some("cut off"));
    }
}
