//! What stands in an agent's answer for Tavern to read: its last fenced block of some kind. Pure.

/// A fenced block.
pub struct AnswerBlock {
    pub text: String,
    is_closed: bool,
    /// It is closed, and nothing stands behind it.
    pub is_at_end: bool,
}

/// The last fenced block of `text` whose info string begins with one of `kinds`; an empty kind takes a bare fence. One that is
/// not closed goes to the end.
///
/// Models put fences of the same kind inside, indented under their items: only one that stands no further in closes the
/// block.
pub fn last_block(text: &str, kinds: &[&str]) -> Option<AnswerBlock> {
    let lines: Vec<&str> = text.lines().collect();
    let is_kind = |block: &FencedLines<'_>| {
        kinds
            .iter()
            .any(|kind| kind.eq_ignore_ascii_case(block.open.kind))
    };
    let FencedLines { at, close, .. } = fenced(&lines).into_iter().rev().find(is_kind)?;
    let is_at_end =
        close.is_some_and(|close| lines[close + 1..].iter().all(|line| line.trim().is_empty()));
    let text = lines[at..close.unwrap_or(lines.len())]
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    Some(AnswerBlock {
        text,
        is_closed: close.is_some(),
        is_at_end,
    })
}

/// The length of the longest fence of `text`; 0 if it has none.
pub fn longest_fence(text: &str) -> usize {
    text.lines()
        .filter_map(|line| Some(CodeFence::of(line)?.length))
        .max()
        .unwrap_or(0)
}

/// The end of `text` stands in a fenced block.
pub fn ends_in_block(text: &str) -> bool {
    fenced(&text.lines().collect::<Vec<_>>())
        .last()
        .is_some_and(|block| block.close.is_none())
}

/// The lines of `text` that stand in no fenced block.
pub fn unfenced(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut outside, mut from) = (Vec::new(), 0);
    for FencedLines { at, close, .. } in fenced(&lines) {
        outside.extend(&lines[from..at - 1]);
        from = close.map_or(lines.len(), |close| close + 1);
    }
    outside.extend(&lines[from..]);
    outside
}

/// The last checklist of `text`: the lines between a fence ` ```markdown ` (or `md`) and the one that closes it.
pub fn checklist(text: &str) -> Result<String, String> {
    match last_block(text, &["markdown", "md"]) {
        None => Err("there is no ```markdown block with its items in its answer".to_owned()),
        Some(block) if !block.is_closed => {
            Err("the ```markdown block of its answer is not closed".to_owned())
        }
        Some(block) => Ok(block.text),
    }
}

/// A block: from which line on its text stands, and which line closes it.
struct FencedLines<'t> {
    open: CodeFence<'t>,
    at: usize,
    close: Option<usize>,
}

fn fenced<'t>(lines: &[&'t str]) -> Vec<FencedLines<'t>> {
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let open = CodeFence::of(lines[at]);
        at += 1;
        let Some(open) = open else { continue };
        let is_close = |line: &&str| CodeFence::of(line).is_some_and(|fence| fence.closes(&open));
        let close = lines[at..]
            .iter()
            .position(is_close)
            .map(|length| at + length);
        blocks.push(FencedLines { open, at, close });
        at = close.unwrap_or(lines.len()) + 1;
    }
    blocks
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
        let mark = bare
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let kind = bare.trim_start_matches(mark);
        let (indent, length) = (line.len() - bare.len(), bare.len() - kind.len());
        // What is quoted within a line is no fence.
        let is_fence = length >= 3 && !(mark == '`' && kind.contains('`'));
        let kind = kind.split_whitespace().next().unwrap_or_default();
        is_fence.then_some(CodeFence {
            indent,
            mark,
            length,
            kind,
        })
    }

    fn closes(&self, open: &CodeFence<'_>) -> bool {
        self.mark == open.mark
            && self.length >= open.length
            && self.kind.is_empty()
            && self.indent <= open.indent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_may_hold_fences_of_its_own() {
        let inner = "- [ ] P-1: a\n  ```yaml task\n  done_when: [ls]\n  ```\n- [ ] P-2: b\n";
        for (fence, close) in [
            ("```markdown", "```"),
            ("````md", "````"),
            ("~~~ Markdown", "~~~"),
            ("```markdown", "```  "),
        ] {
            let text = format!(
                "```sh\nls\n```\nFirst:\n```markdown\nold\n```\nNo:\n{fence}\n{inner}{close}\n\nDONE\n"
            );
            assert_eq!(checklist(&text).as_deref(), Ok(inner), "{text}");
        }
        assert_eq!(
            checklist("```sh\n```markdown\n- [ ] a\n```\n")
                .map_err(|why| why.contains("no ```markdown")),
            Err(true)
        );
        assert_eq!(
            checklist("```markdown\n- [ ] a\nDONE").map_err(|why| why.contains("not closed")),
            Err(true)
        );
    }

    #[test]
    fn the_last_block_of_its_kind_counts() {
        let text = "I looked.\n\n```yaml\na: 1\n```\nNo:\n\n```YAML verdict\nb: 2\nc: |\n  ```x\n```\n\n```sh\nls\n```\nDONE\n";
        let last = |text: &str, kind: &str| {
            last_block(text, &[kind]).map(|block| (block.text, block.is_at_end))
        };
        assert_eq!(
            last(text, "yaml"),
            Some(("b: 2\nc: |\n  ```x\n".to_owned(), false))
        );
        assert_eq!(last(text, "json"), None);
        assert_eq!(
            last("```x```\n```\nx\n```\n\n", ""),
            Some(("x\n".to_owned(), true))
        );
        assert_eq!(
            last("```yaml\ncut off", "yaml"),
            Some(("cut off\n".to_owned(), false))
        );
    }
}
