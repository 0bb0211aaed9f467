//! The plain form of a queue document, read line by line: several times as fast as the Markdown parser.
//!
//! Most queues are plain: headings, paragraphs, and lists at the margin, with indented text and
//! closed fences in their items. For such a document the scan finds the same items as the Markdown parser.
//! It rejects any other document, and never guesses. Knows Markdown, not its meaning in a
//! queue.

use std::ops::Range;

use memchr::{memchr, memchr3, memmem};

use crate::markup;

/// A block at the margin of a plain document.
#[derive(Clone, Debug, PartialEq)]
pub enum PlainBlock<'s> {
    /// `level` is the number of its hashes.
    Heading {
        level: u8,
        span: Range<usize>,
    },
    Paragraph(Range<usize>),
    ListItem(ListItem<'s>),
}

/// A list item. The text indented under it holds no other item of the queue.
#[derive(Clone, Debug, PartialEq)]
pub struct ListItem<'s> {
    /// From its bullet to the end of its last non-blank line.
    pub span: Range<usize>,
    /// Its box, brackets included.
    pub task: Option<Range<usize>>,
    /// Its closed fences, each from the opening mark to the end of the closing line.
    pub fences: &'s [Range<usize>],
}

/// Calls `found` for each block of `text` from `body` on. Returns false if the document isn't plain; earlier
/// calls are then void.
pub fn scan(text: &str, body: usize, found: &mut impl FnMut(PlainBlock<'_>)) -> bool {
    Scan {
        text: text.as_bytes(),
        at: body,
        mark: body,
        fences: Vec::new(),
    }
    .run(text, found)
    .is_some()
}

struct Scan<'t> {
    text: &'t [u8],
    /// Start of the next line.
    at: usize,
    /// The first mark behind the last searched offset.
    mark: usize,
    /// Fences of the current list item.
    fences: Vec<Range<usize>>,
}

impl Scan<'_> {
    /// Returns `None` if the document isn't plain.
    fn run(&mut self, text: &str, found: &mut impl FnMut(PlainBlock<'_>)) -> Option<()> {
        let rest = &self.text[self.at..];
        // Comments depend on what is code.
        if has_controls(rest) || memmem::find(rest, b"%%").is_some() {
            return None;
        }
        while self.at < self.text.len() {
            let start = self.at;
            let end = self.line_end(start);
            match self.text[start] {
                b'\n' => self.at = end,
                b' ' if is_blank(&self.text[start..end]) => self.at = end,
                b'#' => {
                    let level = heading_level(&self.text[start..end])?;
                    found(PlainBlock::Heading {
                        level,
                        span: start..end,
                    });
                    self.at = end;
                }
                b'-' | b'*' | b'+' if self.text.get(start + 1) == Some(&b' ') => {
                    let task = self.bullet(text, start..end)?;
                    let end = self.rest_of_item(text, end, task.as_ref())?;
                    found(PlainBlock::ListItem(ListItem {
                        span: start..end,
                        task,
                        fences: &self.fences,
                    }));
                }
                _ => {
                    let end = self.paragraph(start)?;
                    found(PlainBlock::Paragraph(start..end));
                }
            }
        }
        Some(())
    }

    /// Returns the end of the line that begins at `start`, line end included.
    fn line_end(&self, start: usize) -> usize {
        memchr(b'\n', &self.text[start..]).map_or(self.text.len(), |at| start + at + 1)
    }

    /// Returns the end of the text lines, up to a line that plainly isn't one.
    fn paragraph(&mut self, start: usize) -> Option<usize> {
        let mut end = start;
        while let Some(byte) = self.text.get(end) {
            match byte {
                b'\n' | b'#' => break,
                b'-' | b'*' | b'+' if self.text.get(end + 1) == Some(&b' ') => break,
                _ if begins_text(&self.text[end..]) => end = self.line_end(end),
                b' ' if is_blank(&self.text[end..self.line_end(end)]) => break,
                _ => return None,
            }
        }
        self.at = end;
        Some(end)
    }

    /// Reads the first line of a list item. Returns its box, if it has one.
    fn bullet(&mut self, text: &str, line: Range<usize>) -> Option<Option<Range<usize>>> {
        let content = &self.text[line.start + 2..line.end];
        let (marks, task) = match content {
            [b'[', b' ' | b'x' | b'X', b']', b' ', ..] => (6, Some(line.start + 2..line.start + 5)),
            _ => (2, None),
        };
        let title = line.start + marks..line.end;
        let is_plain = begins_text(&self.text[title.clone()])
            && match task {
                Some(_) => self.is_inert(text, title),
                // Odd boxes, and nested ones, are left to the Markdown parser.
                None => !self.has_marks(&title),
            };
        is_plain.then_some(task)
    }

    /// Reads the text under a list item's first line, which ends at `end`. Returns the end of its last
    /// non-blank line.
    fn rest_of_item(
        &mut self,
        text: &str,
        mut end: usize,
        task: Option<&Range<usize>>,
    ) -> Option<usize> {
        self.fences.clear();
        self.at = end;
        // Lines that could swallow a fence below them.
        let mut is_open = false;
        while self.at < self.text.len() {
            let start = self.at;
            let indent = self.text[start..]
                .iter()
                .take_while(|byte| **byte == b' ')
                .count();
            let first = self.text.get(start + indent).copied().unwrap_or(b'\n');
            if first == b'\n' {
                self.at = (start + indent + 1).min(self.text.len());
                continue;
            }
            if indent == 0 {
                // Text without a blank line before it still belongs to the item.
                let is_bullet =
                    matches!(first, b'-' | b'*' | b'+') && self.text.get(start + 1) == Some(&b' ');
                let ends = start > end || first == b'#' || is_bullet;
                return ends.then_some(end);
            }
            if indent == 1 {
                return None;
            }
            let line = start..self.line_end(start);
            let is_fence = indent == 2
                && matches!(
                    &self.text[start + 2..],
                    [b'`', b'`', b'`', ..] | [b'~', b'~', b'~', ..]
                );
            if is_fence && task.is_some() {
                if is_open {
                    return None;
                }
                end = self.fence(line)?;
                self.fences.push(start + 2..end);
            } else {
                if !self.is_inert(text, line.clone()) || task.is_none() && self.has_marks(&line) {
                    return None;
                }
                is_open |= matches!(first, b'<' | b'[');
                end = line.end;
            }
            self.at = end;
        }
        Some(end)
    }

    /// Returns true if the line may have a box or fence. Few lines have any, so the search continues past the
    /// line's end.
    fn has_marks(&mut self, line: &Range<usize>) -> bool {
        if self.mark < line.start {
            let found = memchr3(b'[', b'`', b'~', &self.text[line.start..]);
            self.mark = found.map_or(self.text.len(), |at| line.start + at);
        }
        self.mark < line.end
    }

    fn is_inert(&mut self, text: &str, line: Range<usize>) -> bool {
        !self.has_marks(&line) || is_inert(text, self.mark..line.end)
    }

    /// Returns the end of the closing line of the fence that `opening` opens; without one the document isn't plain.
    fn fence(&self, opening: Range<usize>) -> Option<usize> {
        let line = &self.text[opening.start + 2..opening.end];
        let mark = line[0];
        let length = line.iter().take_while(|byte| **byte == mark).count();
        let info = &line[length..];
        // Entities and escapes would have to be decoded; with a tick it is no fence.
        if info
            .iter()
            .any(|byte| matches!(byte, b'\\' | b'&' | b'`' | b'~'))
        {
            return None;
        }
        let mut at = opening.end;
        while at < self.text.len() {
            let end = self.line_end(at);
            let line = &self.text[at..end];
            let indent = line.iter().take_while(|byte| **byte == b' ').count();
            if indent < 2 && !is_blank(line) {
                return None;
            }
            if indent <= 5 && line.get(indent) == Some(&mark) {
                let run = line[indent..]
                    .iter()
                    .take_while(|byte| **byte == mark)
                    .count();
                if run >= length && is_blank(&line[indent + run..]) {
                    return Some(end);
                }
            }
            at = end;
        }
        None
    }
}

/// Returns true if there are control characters other than line feeds. Tabs and carriage returns affect
/// columns and lines.
fn has_controls(bytes: &[u8]) -> bool {
    // Chunks of bytes without an early exit inside let the compiler vectorize this.
    let is_control = |byte: u8| u8::from(byte < b' ') & u8::from(byte != b'\n');
    bytes.chunks(1024).any(|chunk| {
        chunk
            .iter()
            .fold(0, |found, byte| found | is_control(*byte))
            > 0
    })
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\n'))
}

/// Returns the level of a line of hashes that is plainly a heading.
fn heading_level(line: &[u8]) -> Option<u8> {
    let level = line.iter().take_while(|byte| **byte == b'#').count();
    let is_heading = (1..=6).contains(&level)
        && line.get(level) == Some(&b' ')
        && line.get(level + 1).is_some_and(|b| *b > b' ');
    is_heading.then(|| u8::try_from(level).expect("six at most"))
}

/// Returns true if a line with this beginning is text in any context.
fn begins_text(line: &[u8]) -> bool {
    match line {
        [b'a'..=b'z' | b'A'..=b'Z' | 0x80.., ..] => true,
        [b'0'..=b'9', ..] => {
            let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
            !matches!(line.get(digits), None | Some(b'.' | b')'))
        }
        [
            b'(' | b'"' | b'\'' | b'/' | b'$' | b'@' | b',' | b';' | b'?' | b'{' | b'|' | b'^'
            | b'%',
            ..,
        ] => true,
        [b'`', second, third, ..] => *second != b'`' && *third != b'`',
        [b'*', b'*', third, ..] => third.is_ascii_alphanumeric(),
        _ => false,
    }
}

/// Returns true if this part of an item's line plainly opens no fence and has no box.
fn is_inert(text: &str, line: Range<usize>) -> bool {
    let rest = &text.as_bytes()[line.clone()];
    if memmem::find(rest, b"```").is_some() || memmem::find(rest, b"~~~").is_some() {
        return false;
    }
    let mut at = line.start;
    while let Some(open) = memchr(b'[', &text.as_bytes()[at..line.end]) {
        at += open + 1;
        let is_box = matches!(
            &text.as_bytes()[at..line.end],
            [b' ' | b'x' | b'X', b']', ..]
        );
        if is_box && markup::leading_id(&text[at + 2..line.end]).0.is_some() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;

    use super::*;
    use crate::document::{Document, open, parse, parse_as_markdown};
    use crate::lossless::LINES;
    use crate::task::Status;

    /// Beside those of which documents are made that are changed.
    const MORE: &[&str] = &[
        "2 of them",
        "- [ ] T-6: reopened (status: null)",
        "**bold** prose",
        "`code` prose",
        "%settings",
        "- [ ] a %%(after: T-1) - [ ] %% title",
        "- [ ] a title %%(priority: 1)%%",
        "  %%",
        "  %% `%%` words",
        "+ [ ] T-4: broken key (priority: 11)",
        "- [ ] title with a [link](x) and a [ ] box",
        "- [ ] title [x] T-9: box",
        "- [ ] title <!-- comment",
        "- bullet with `code`",
        "* star",
        "  1. number",
        "  > quote",
        "  > - [ ] T-7: quoted",
        "  # heading inside",
        "  ---",
        "  ===",
        "  <!-- comment",
        "  -->",
        "  <div>",
        "  [link]: /there",
        "  [link]: /there 'a title",
        "  ~~~",
        "  ````",
        "    ```",
        "      ```",
        "  | table |",
        "    ",
        " text",
        "\ttext",
        "text\r",
        "* * *",
        "-",
        "- ",
        "- [ ]  two blanks",
        "- [] odd",
        "- [x]odd",
        "**",
        "**lazy",
        "**lazy** prose",
        "``",
        "    code",
        "[link]: /there",
        "%%",
        "#heading",
        "#",
        "# ",
        "####### seven",
        "- # heading",
        "- ```",
        "- [ ] - [ ] T-11: twice",
        "- [ ] # title",
        "- [ ] > title",
        "- [ ] ```",
        "- [ ] 1. title",
        "- [ ] [link]: /there",
        "- [ ] <!-- title",
        "<<<<<<< ours",
        "\u{feff}",
        "\u{a0}",
        "  \u{a0}",
        "\u{c}",
    ];

    /// Lines that may stand in a plain document, at least above the end of a fence, and those that may not.
    fn lines() -> (Vec<&'static str>, Vec<&'static str>) {
        let is_plain = |text: &str| scan(text, 0, &mut |_| ());
        let may_be_plain = |line: &&str| {
            ["", "  ```\n"]
                .iter()
                .any(|end| is_plain(&format!("- [ ] a\n{line}\n{end}")))
        };
        LINES.iter().chain(MORE).copied().partition(may_be_plain)
    }

    fn documents() -> impl Strategy<Value = String> {
        let (plain, odd) = lines();
        let line = prop_oneof![30 => select(plain), 1 => select(odd)];
        let ends = prop_oneof![4 => Just("\n"), 1 => Just("")];
        (vec(line, 0..24), ends).prop_map(|(lines, end)| lines.join("\n") + end)
    }

    /// The whole document and its problems, for comparison.
    fn told(read: &(Document<'_>, Vec<crate::problem::Problem>)) -> String {
        format!("{read:#?}")
    }

    proptest! {
        #[test]
        fn fences_read_as_the_markdown_parser_has_them(
            lines in vec(select(&["  ```", "  ````", "  ~~~", "   ```", "     ```", "      ```", "  ``` ", "  ```sh", "  a", "", "- [ ] b", "  <!--", "  [a]: b"]), 0..9)
        ) {
            let text = format!("- [ ] a\n{}\n\n- [ ] T-1: z", lines.join("\n"));
            prop_assert_eq!(told(&parse(&text)), told(&parse_as_markdown(&text)), "{:?}", text);
        }

        #[test]
        fn an_item_that_is_read_alone_reads_as_among_the_others(text in documents(), number in 1..12u8) {
            let id = format!("T-{number}").parse().expect("it is an ID");
            let ((whole, _), opened) = (parse(&text), open(&text));
            // Before any of them is read.
            let told = |document: &Document<'_>| -> Vec<_> {
                let told = |at| (document.id_at(at), document.status_at(at), document.priority_at(at));
                (0..document.count()).map(told).collect()
            };
            prop_assert_eq!(told(&opened), told(&whole), "{:?}", text);
            prop_assert_eq!(opened.find(&id), whole.find(&id), "{:?}", text);
            prop_assert_eq!(opened.named(&id), whole.named(&id), "{:?}", text);
            // Lines are counted from the last place that was asked for, up or down.
            for (at, item) in whole.items().iter().enumerate().rev() {
                prop_assert_eq!(opened.item(at), item, "{:?}", text);
            }
            let rest = |document: &Document<'_>| format!("{:?} {:?}", document.lanes(), document.tail);
            prop_assert_eq!(rest(&opened), rest(&whole), "{:?}", text);
            prop_assert_eq!(opened.items(), whole.items(), "{:?}", text);
            for at in 0..text.len() {
                let edges = |document: &Document<'_>| (document.begins_item(at), document.ends_item(at));
                prop_assert_eq!(edges(&opened), edges(&whole), "{:?}", text);
            }
        }

        #[test]
        fn a_plain_document_reads_as_the_markdown_parser_has_it(text in documents()) {
            prop_assert_eq!(told(&parse(&text)), told(&parse_as_markdown(&text)), "{:?}", text);
        }

        /// Documents made of lines of plain ones read as with the Markdown parser.
        #[test]
        fn every_pair_of_lines_reads_as_the_markdown_parser_has_it(
            before in select(lines().0), first in select(lines().1), second in select(lines().0), after in vec(select(lines().0), 0..3)
        ) {
            let text = format!("{before}\n{first}\n{second}\n{}", after.join("\n"));
            prop_assert_eq!(told(&parse(&text)), told(&parse_as_markdown(&text)), "{:?}", text);
        }
    }

    #[test]
    fn a_key_counts_however_it_is_spelt_before_its_item_is_read() {
        for keys in [
            "(status: waiting, priority: 0)\n",
            "\n\n  ```yaml task\n  status: waiting\n  priority: 0\n  ```\n",
            "\n\n  ```yaml task\n  \"status\": waiting\n  'priority': 0\n  ```\n",
        ] {
            let text = format!("- [ ] T-1: a\n- [ ] T-2: b {keys}");
            let (opened, (read, _)) = (open(&text), parse(&text));
            let told: Vec<_> = (0..2)
                .map(|at| (opened.status_at(at), opened.priority_at(at)))
                .collect();
            assert_eq!(told, [(Status::Pending, 2), (Status::Waiting, 0)], "{text}");
            assert_eq!(read.items()[1].status, Status::Waiting, "{text}");
        }
    }

    #[test]
    fn what_is_plain() {
        let is_plain = |text: &str| scan(text, 0, &mut |_| ());
        let ordinary = "# Queue\n\nProse\nof two lines.\n\n## Pending\n- [ ] T-1: One (priority: 1)\n  Text.\n\n  - a\n\n  \
                        ```sh\n  # not a heading\n\n  ```\n* [x] two\n## Completed";
        assert!(is_plain(ordinary));
        for plain in [
            "",
            "\n",
            "- [ ] a",
            "- [ ] a\n\nProse",
            "- [ ] a\n  ```\n  - [ ] T-1: b\n  ```\n",
            "- a\n  b\n",
        ] {
            assert!(is_plain(plain), "{plain:?}");
        }
        for lazy in [
            "lazy",
            "**lazy** prose",
            "- [ ] a\n  ```\n",
            "- [ ] a\n  ```\n b\n  ```\n",
        ] {
            assert!(!is_plain(&format!("- [ ] a\n{lazy}\n")), "{lazy:?}");
        }
    }
}
