//! Fenced blocks in an agent's answer, for Tavern to read. Pure.

/// Returns the length of the longest fence in `text`; 0 if it has none.
pub fn longest_fence(text: &str) -> usize {
    text.lines()
        .filter_map(|line| Some(CodeFence::of(line)?.length))
        .max()
        .unwrap_or(0)
}

/// Returns true if `text` ends inside a fenced block.
pub fn ends_in_block(text: &str) -> bool {
    fenced(&text.lines().collect::<Vec<_>>())
        .last()
        .is_some_and(|block| block.close.is_none())
}

/// Returns the lines of `text` outside of fenced blocks.
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

/// Returns the block at the end of `answer`, which has no signal, or why there is none. Its fence names one of `kinds`.
/// If a program may print more than its agent's words, the fence also names the run's `nonce`, which quoted or echoed
/// text lacks.
///
/// Models put fences of the same kind inside, indented under their items: only a fence that is not indented further
/// closes the block.
pub fn final_block(answer: &str, kinds: &[&str], nonce: Option<&str>) -> Result<String, String> {
    let kind = kinds[0];
    let lines: Vec<&str> = answer.lines().collect();
    let is_kind =
        |open: &CodeFence<'_>| kinds.iter().any(|it| it.eq_ignore_ascii_case(open.kind()));
    let named = nonce.and_then(|nonce| {
        // Earlier output does not matter, such as an unclosed fence, unless it quotes this block.
        let (at, open) = (0..lines.len()).rev().find_map(|at| {
            let open = CodeFence::of(lines[at])?;
            (is_kind(&open) && open.names(nonce)).then_some((at, open))
        })?;
        (!open.is_quoted(&lines[..at])).then(|| FencedLines::from(&lines, open, at + 1))
    });
    let quoted = || {
        fenced(&lines)
            .into_iter()
            .rfind(|block| is_kind(&block.open))
    };
    let (is_named, block) = (named.is_some(), named.or_else(quoted));
    let end = lines.iter().rposition(|line| !line.trim().is_empty());
    let FencedLines { at, close, .. } = block
        .filter(|block| block.close.is_none() || block.close == end)
        .ok_or_else(|| format!("its answer does not end with a ```{kind} block"))?;
    let close = close.ok_or_else(|| format!("the ```{kind} block of its answer is not closed"))?;
    if let Some(nonce) = nonce.filter(|_| !is_named) {
        return Err(format!(
            "the ```{kind} block of its answer does not begin with ```{kind} {nonce}"
        ));
    }
    let text = lines[at..close].iter().map(|line| format!("{line}\n"));
    Ok(text.collect())
}

/// A block: the line at which its text begins, and the line that closes it.
struct FencedLines<'t> {
    open: CodeFence<'t>,
    at: usize,
    close: Option<usize>,
}

impl<'t> FencedLines<'t> {
    fn from(lines: &[&'t str], open: CodeFence<'t>, at: usize) -> FencedLines<'t> {
        let is_close = |line: &&str| CodeFence::of(line).is_some_and(|fence| fence.closes(&open));
        let length = lines[at..].iter().position(is_close);
        let close = length.map(|length| at + length);
        FencedLines { open, at, close }
    }
}

fn fenced<'t>(lines: &[&'t str]) -> Vec<FencedLines<'t>> {
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let open = CodeFence::of(lines[at]);
        at += 1;
        let Some(open) = open else { continue };
        let block = FencedLines::from(lines, open, at);
        at = block.close.unwrap_or(lines.len()) + 1;
        blocks.push(block);
    }
    blocks
}

/// A line of a fence.
struct CodeFence<'t> {
    indent: usize,
    mark: char,
    length: usize,
    /// The text after the marks.
    info: &'t str,
}

impl<'t> CodeFence<'t> {
    /// Returns the first word after the marks.
    fn kind(&self) -> &'t str {
        self.info.split_whitespace().next().unwrap_or_default()
    }

    fn names(&self, nonce: &str) -> bool {
        self.info.split_whitespace().any(|word| word == nonce)
    }

    fn of(line: &'t str) -> Option<CodeFence<'t>> {
        let bare = line.trim_start_matches(' ');
        let mark = bare
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let info = bare.trim_start_matches(mark);
        let (indent, length) = (line.len() - bare.len(), bare.len() - info.len());
        // Inline code is no fence.
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some(CodeFence {
            indent,
            mark,
            length,
            info,
        })
    }

    /// Returns true if a fence of more backticks is open after the lines `before`: it quotes this one. Tildes don't
    /// count, since they also underline headings.
    fn is_quoted(&self, before: &[&str]) -> bool {
        let quotes = |fence: &CodeFence<'_>| fence.mark == '`' && fence.length > self.length;
        let mut around = None;
        for fence in before.iter().filter_map(|line| CodeFence::of(line)) {
            let quotes_anew = quotes(&fence) && !fence.kind().is_empty();
            around = match around {
                Some(open) if fence.closes(&open) => None,
                Some(open) if quotes(&open) || !quotes_anew => Some(open),
                _ => Some(fence),
            };
        }
        around.is_some_and(|open| quotes(&open))
    }

    fn closes(&self, open: &CodeFence<'_>) -> bool {
        self.mark == open.mark
            && self.length >= open.length
            && self.kind().is_empty()
            && self.indent <= open.indent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: [&str; 2] = ["markdown", "md"];

    #[test]
    fn a_checklist_may_hold_fences_of_its_own() {
        let inner = "- [ ] P-1: a\n  ```yaml task\n  done_when: [ls]\n  ```\n- [ ] P-2: b\n";
        for (fence, close) in [
            ("```markdown 5f1e", "```"),
            ("````md 5f1e", "````"),
            ("~~~ Markdown plan 5f1e", "~~~"),
            ("```markdown 5f1e", "```  "),
        ] {
            let text = format!(
                "```sh\nls\n```\nFirst:\n```markdown 5f1e\nold\n```\nNo:\n{fence}\n{inner}{close}\n\n"
            );
            assert_eq!(
                final_block(&text, &PLAN, Some("5f1e")).as_deref(),
                Ok(inner),
                "{text}"
            );
        }
    }

    #[test]
    fn only_the_block_at_the_end_with_the_nonce_of_the_run_counts() {
        let rows = [
            (
                "I looked, and say nothing.",
                "does not end with a ```markdown block",
            ),
            (
                "```markdown 5f1e\n- [ ] a\n```\nNo, wait.",
                "does not end with",
            ),
            (
                "```markdown 5f1e\n- [ ] a\n```\n```sh\nls\n```\n",
                "does not end with",
            ),
            ("```markdown 5f1e\n- [ ] a", "is not closed"),
            (
                "```markdown\n- [ ] a\n```\n",
                "does not begin with ```markdown 5f1e",
            ),
            ("```markdown 5f1\n- [ ] a\n```\n", "does not begin with"),
            ("```markdown 5f1e0\n- [ ] a\n```\n", "does not begin with"),
            (
                "5f1e\n```markdown NONCE\n- [ ] a\n```\n",
                "does not begin with",
            ),
            // It is quoted.
            (
                "So:\n````text\n```markdown 5f1e\n- [ ] a\n```\n",
                "does not end with",
            ),
            (
                "`````\n```sh\nls\n```\n```markdown 5f1e\n- [ ] a\n```\n",
                "does not end with",
            ),
            (
                "```sh\nls\n````text\n```markdown 5f1e\n- [ ] a\n```\n",
                "does not end with",
            ),
        ];
        for (text, why) in rows {
            let error = final_block(text, &PLAN, Some("5f1e")).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_last_block_of_its_kind_counts() {
        let text =
            "I looked.\n\n```yaml\na: 1\n```\nNo:\n\n```YAML verdict\nb: 2\nc: |\n  ```x\n```\n\n";
        let of = |text: &str, kind: &str| final_block(text, &[kind], None).ok();
        assert_eq!(of(text, "yaml").as_deref(), Some("b: 2\nc: |\n  ```x\n"));
        assert_eq!(of(text, "json"), None);
        assert_eq!(of("```yaml\ncut off", "yaml"), None);
        assert_eq!(of("~~~~\nnot closed\n```yaml\na: 1\n```\n", "yaml"), None);
    }

    #[test]
    fn what_is_not_closed_before_keeps_no_block_with_the_nonce_away() {
        for before in [
            "```sh\nls\n",
            "~~~~\n",
            "~~~~ not closed\n",
            "```yaml\nverdict: reject\n",
            "````md\n```yaml 5f1e\na: 2\n```\n````\n",
            "```sh\nls\n`````\n",
        ] {
            let text = format!("{before}```yaml 5f1e\na: 1\n```\n");
            assert_eq!(
                final_block(&text, &["yaml"], Some("5f1e")).as_deref(),
                Ok("a: 1\n"),
                "{text}"
            );
        }
    }
}
