//! Lines, blanks, columns, boxes, fences and comments: details that the Markdown parser's offsets don't give.
//!
//! Knows the shapes of Markdown, not their meaning in a queue.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr2, memchr3, memrchr2};
use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::id::{MAX_ID, TaskId};
use crate::title_tail::before_tail;

/// Returns the line end of the first line.
pub fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns the line end of a text that uses only one kind, if it has any.
pub fn only_newline(text: &str) -> Option<&'static str> {
    let newline = newline(text);
    let (all, with_return) = (text.matches('\n').count(), text.matches("\r\n").count());
    (all > 0 && with_return == if newline == "\n" { 0 } else { all }).then_some(newline)
}

/// Returns the end of the line at `from`, line end included. A lone carriage return ends a line too, as in
/// CommonMark.
pub fn line_end(text: &str, from: usize, limit: usize) -> usize {
    let bytes = &text.as_bytes()[..limit];
    let at = bare_line_end(bytes, from);
    if at == limit {
        return limit;
    }
    let is_pair = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
    at + 1 + usize::from(is_pair)
}

/// Returns the text without its last line end.
pub fn without_line_end(text: &str) -> &str {
    let bare = text.strip_suffix('\n').unwrap_or(text);
    bare.strip_suffix('\r').unwrap_or(bare)
}

/// Returns the end of the line at `from`, without its line end.
fn bare_line_end(bytes: &[u8], from: usize) -> usize {
    memchr2(b'\n', b'\r', &bytes[from..]).map_or(bytes.len(), |found| from + found)
}

/// Returns the start of the line at `from`, not before `limit`.
pub fn line_start(text: &str, limit: usize, from: usize) -> usize {
    let before = &text.as_bytes()[limit..from];
    memrchr2(b'\n', b'\r', before).map_or(limit, |at| limit + at + 1)
}

/// Returns the end of the last non-blank line in `start..end`, line end included.
pub fn block_end(text: &str, start: usize, end: usize) -> usize {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let bytes = text.as_bytes();
    let last = bytes[start..end]
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |at| start + at);
    // The common case: no blanks before the line end.
    if bytes.get(last + 1) == Some(&b'\n') && !blank(&bytes[last]) {
        last + 2
    } else {
        line_end(text, last, text.len())
    }
}

/// Returns true if the line at `at` is blank; the end of the text is no line.
pub fn is_blank_line(text: &str, at: usize) -> bool {
    at < text.len()
        && text[at..line_end(text, at, text.len())]
            .bytes()
            .all(|byte| byte.is_ascii_whitespace() || byte == 0x0b)
}

/// Returns `span` without blanks at both ends.
pub fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let bytes = &text.as_bytes()[span.clone()];
    // The common case: letters at both ends, with at most one blank before the first.
    let start = span.start + usize::from(bytes.first() == Some(&b' '));
    let is_bare = |at: usize| text.as_bytes()[at].is_ascii_graphic();
    if start < span.end && is_bare(start) && is_bare(span.end - 1) {
        return start..span.end;
    }
    let inner = &text[span.clone()];
    let start = span.start + (inner.len() - inner.trim_start().len());
    start..(start + inner.trim().len())
}

/// Returns the column that a prefix reaches; tabs stop at each fourth.
pub fn columns(prefix: &str) -> usize {
    prefix.chars().fold(0, |column, c| {
        if c == '\t' {
            column + 4 - column % 4
        } else {
            column + 1
        }
    })
}

/// The first line of a task-list item.
pub struct TaskHead {
    /// Start of the line, or of the bullet if something else is before it on the line.
    pub start: usize,
    pub begins_line: bool,
    /// Column of the bullet.
    pub column: usize,
    /// Column of the box, where CommonMark has the item's content begin.
    pub content_column: usize,
    pub box_char: usize,
    pub after_box: usize,
    /// Without the line end.
    pub line_end: usize,
}

/// Returns the head of the item with its box in `marker`. The document's text begins at `body`, the item ends
/// at `end`.
pub fn task_head(text: &str, body: usize, marker: Range<usize>, end: usize) -> Option<TaskHead> {
    let bytes = text.as_bytes();
    let open = marker.start + bytes[marker].iter().position(|byte| *byte == b'[')?;
    if bytes.get(open + 2) != Some(&b']') {
        return None;
    }
    let line = line_start(text, body, open);
    let before = &bytes[line..open];
    let bullet_end = before
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t'))?
        + 1;
    let bullet = match before[bullet_end - 1] {
        b')' | b'.' => {
            let digits = before[..bullet_end - 1]
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            bullet_end - 1 - digits
        }
        _ => bullet_end - 1,
    };
    let begins_line = before[..bullet]
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t'));
    let line_end = bare_line_end(&bytes[..end.max(open + 3)], open + 3);
    let line_end = open + 3 + before_tail(&text[open + 3..line_end]);
    Some(TaskHead {
        start: if begins_line { line } else { line + bullet },
        begins_line,
        column: columns(&text[line..line + bullet]),
        content_column: columns(&text[line..open]),
        box_char: open + 1,
        after_box: open + 3,
        line_end,
    })
}

/// Returns the ID at the start of the text behind a box, and the length through its colon.
pub fn leading_id(line: &str) -> (Option<TaskId>, usize) {
    // Trims as titles do: web pages insert blanks that are no line breaks.
    let blanks = line.len() - line.trim_start().len();
    let rest = &line.as_bytes()[blanks..];
    if !rest.first().is_some_and(u8::is_ascii_uppercase) {
        return (None, 0);
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let Some(colon) = rest.iter().take(MAX_ID + 1).position(|byte| !is_part(byte)) else {
        return (None, 0);
    };
    // `HTTP-2://` is no ID.
    if rest[colon] != b':' || rest.get(colon + 1) == Some(&b'/') {
        return (None, 0);
    }
    match line[blanks..blanks + colon].parse() {
        Ok(id) => (Some(id), blanks + colon + 1),
        Err(_) => (None, 0),
    }
}

/// Returns the end of the bullet or number at the start of a line; the line's blanks begin at `start`.
pub fn bullet_end(text: &str, start: usize) -> Option<usize> {
    let rest = text[start..].trim_start_matches([' ', '\t']);
    let digits = rest.bytes().take(9).take_while(u8::is_ascii_digit).count();
    let end = text.len() - rest.len() + digits + 1;
    match rest.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => Some(end),
        b'.' | b')' if digits > 0 => Some(end),
        _ => None,
    }
}

/// Returns the end of the lines that continue the one at `from`: before a blank line or the start of another block.
pub fn paragraph_end(text: &str, from: usize, limit: usize) -> usize {
    let mut end = line_end(text, from, limit);
    while end < limit {
        let line = text[end..limit].trim_start_matches([' ', '\t']);
        let marks = ["\n", "\r", "```", "~~~", "#", ">", "<"];
        let is_list = bullet_end(&text[..limit], end)
            .is_some_and(|end| text[end..limit].starts_with([' ', '\t', '\n', '\r']));
        if is_list || marks.iter().any(|mark| line.starts_with(mark)) {
            break;
        }
        end = line_end(text, end, limit);
    }
    end
}

/// Returns the text behind the box at its start.
pub fn behind_box(text: &str) -> Option<&str> {
    ["[ ]", "[x]", "[X]"]
        .iter()
        .find_map(|it| text.strip_prefix(it))
}

/// Returns true if the line begins a list item with a box.
pub fn has_box(line: &str) -> bool {
    let rest = bullet_end(line, 0).map(|end| line[end..].trim_start());
    rest.and_then(behind_box).is_some()
}

/// Returns a box at the start of a line that is no list item (`-[ ] title`, `• [ ] title`, `[x] title`).
/// Included is the text before it: a bullet or a lookalike, and blanks of any kind, as web pages insert them.
pub fn box_without_bullet(line: &str) -> Option<&str> {
    let bare = match line.strip_prefix(['•', '◦', '▪', '·', '–', '—']) {
        Some(rest) => rest.trim_start(),
        None => line[bullet_end(line, 0).unwrap_or(0)..].trim_start(),
    };
    let rest = behind_box(bare)?;
    rest.starts_with(char::is_whitespace)
        .then(|| &line[..line.len() - rest.len()])
}

/// Returns a bracket at the start of the list item at `start` that was likely meant as a box: `[]`, `[-]`,
/// `[ x]`, `[x]title`.
pub fn odd_box(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let behind = &text[bullet_end(text, start)?..];
    let is_blank = |c: char| c.is_whitespace() && !matches!(c, '\n' | '\r');
    let open = text.len() - behind.trim_start_matches(is_blank).len();
    let is_apart = text[..open].ends_with([' ', '\t']);
    if bytes.get(open) != Some(&b'[') {
        return None;
    }
    // Only a few bytes up to the bracket: a box is short.
    let close = open
        + 1
        + bytes[open + 1..]
            .iter()
            .take(5)
            .position(|byte| *byte == b']')?;
    let inner = text.get(open + 1..close)?;
    let next = bytes.get(close + 1);
    if matches!(next, Some(b'(' | b'[' | b':')) {
        return None;
    }
    let ends = matches!(next, None | Some(b' ' | b'\t' | b'\n' | b'\r'));
    let is_box = matches!(inner, " " | "\t" | "x" | "X");
    let is_near = inner.is_empty()
        || matches!(
            inner.trim(),
            "" | "x"
                | "X"
                | "-"
                | "/"
                | ">"
                | "<"
                | "!"
                | "?"
                | "*"
                | "~"
                | "o"
                | "O"
                | "v"
                | "V"
                | "✓"
                | "✔"
                | "✗"
                | "✘"
        );
    let is_odd = (is_box && !(ends && is_apart)) || (!is_box && is_near && ends);
    is_odd.then_some(open..close + 1)
}

/// Returns the text of a heading without its marks.
pub fn heading_text(text: &str, span: Range<usize>) -> &str {
    let heading = text[span].trim();
    if heading.starts_with('#') {
        let bare = heading.trim_start_matches('#').trim();
        // Closing hashes count only behind a blank.
        let open = bare.trim_end_matches('#');
        return if open.is_empty() || open.ends_with([' ', '\t']) {
            open.trim_end()
        } else {
            bare
        };
    }
    heading
        .rfind(['\n', '\r'])
        .map_or(heading, |at| heading[..at].trim_end())
}

/// Returns where a table's head begins in this paragraph: a line with bars above a line of bars and dashes.
pub fn table(text: &str, paragraph: Range<usize>) -> Option<usize> {
    let (mut at, mut head) = (paragraph.start, None);
    for line in text[paragraph].split_inclusive('\n') {
        let is_rule = line.contains('-') && line.trim().bytes().all(|it| b"|-: \t".contains(&it));
        if is_rule && line.contains('|') && head.is_some() {
            return head;
        }
        head = line.contains('|').then_some(at);
        at += line.len();
    }
    None
}

/// Returns the shell named by an info string; the content of such a fence is the item's script.
pub fn shell_of(info: &str) -> Option<&str> {
    let word = info.split_ascii_whitespace().next();
    word.filter(|word| matches!(*word, "sh" | "bash" | "shell"))
}

/// A fenced code block.
pub struct Fence {
    /// The opening line, without blanks around it.
    pub opening: Range<usize>,
    /// All of its lines, line ends included.
    pub lines: Range<usize>,
    /// The lines between the fences.
    pub content: Range<usize>,
    /// Column of the opening fence.
    pub column: usize,
    pub is_closed: bool,
}

/// Returns the fence at `span`, the parser's span of the block.
pub fn fence(text: &str, span: Range<usize>) -> Fence {
    let start = span.start + (text[span.clone()].len() - text[span.clone()].trim_start().len());
    let line = line_start(text, 0, start);
    let content = line_end(text, start, text.len());
    let end = block_end(text, start, span.end).max(content);
    let opening = trimmed(text, start..content);
    let mark = text.as_bytes().get(start).copied().unwrap_or(b'`');
    let is_mark = |byte: &u8| *byte == mark;
    let count = text.as_bytes()[start..]
        .iter()
        .take_while(|byte| is_mark(byte))
        .count();
    let last_line = line_start(text, 0, trimmed(text, start..end).end);
    let last = text[last_line..end].trim();
    let is_closed =
        last_line >= content && last.len() >= count && last.bytes().all(|byte| is_mark(&byte));
    Fence {
        opening,
        lines: line..end,
        content: content..if is_closed { last_line } else { end },
        column: columns(&text[line..start]),
        is_closed,
    }
}

/// Returns `text` with up to `columns` columns of leading blanks removed from each line, and `\n` line ends.
pub fn dedented(text: &str, columns: usize) -> String {
    let mut result = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let line = dedent(line, columns);
        match line.strip_suffix("\r\n") {
            Some(bare) => {
                result.push_str(bare);
                result.push('\n');
            }
            None => result.push_str(&line),
        }
    }
    result
}

/// Returns `line` without up to `columns` columns of leading blanks. The rest of a wider tab stays as spaces.
pub fn dedent(line: &str, columns: usize) -> Cow<'_, str> {
    let mut column = 0;
    for (at, byte) in line.bytes().enumerate() {
        if column >= columns {
            return match column - columns {
                0 => Cow::Borrowed(&line[at..]),
                rest => Cow::Owned(format!("{}{}", " ".repeat(rest), &line[at..])),
            };
        }
        match byte {
            b' ' => column += 1,
            b'\t' => column += 4 - column % 4,
            _ => return Cow::Borrowed(&line[at..]),
        }
    }
    Cow::Borrowed("")
}

/// Returns the text without blank lines around it, and without the last line end.
pub fn trim_blank_lines(text: &str) -> &str {
    let text = text.trim_end();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() {
            break;
        }
        start += line.len();
    }
    &text[start..]
}

/// Returns the text without the spaces that all non-blank lines begin with.
pub fn without_margin(text: &str) -> String {
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    let margin = filled
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    if margin == 0 {
        return text.to_owned();
    }
    let lines: Vec<&str> = text
        .split('\n')
        .map(|line| line.get(margin..).unwrap_or(""))
        .collect();
    lines.join("\n")
}

/// Lines between conflict markers.
pub struct Unsettled {
    /// From the opening marker's line through the closing one's; only the opening line if nothing closes it.
    pub span: Range<usize>,
    /// The opening marker's line, without its line end.
    pub opening: Range<usize>,
    pub is_closed: bool,
    markers: Vec<Range<usize>>,
}

/// Returns the regions between conflict markers, from `body` on.
pub fn conflicts(text: &str, body: usize) -> Vec<Unsettled> {
    let mut conflicts: Vec<Unsettled> = Vec::new();
    let mut at = body;
    while at < text.len() {
        let start = at;
        at = line_end(text, start, text.len());
        let Some(mark) = marker(&text[start..at]) else {
            continue;
        };
        let line = start..start + text[start..at].trim_end().len();
        // A second opening marker: the first was left over.
        match (mark, conflicts.last_mut().filter(|last| !last.is_closed)) {
            (b'<', _) => conflicts.push(Unsettled {
                span: start..at,
                opening: line.clone(),
                is_closed: false,
                markers: vec![line],
            }),
            (_, Some(open)) => {
                open.markers.push(line);
                if mark == b'>' {
                    (open.span.end, open.is_closed) = (at, true);
                }
            }
            (_, None) => {}
        }
    }
    conflicts
        .iter_mut()
        .filter(|conflict| !conflict.is_closed)
        .for_each(|left| left.markers.truncate(1));
    conflicts
}

/// Returns the character of a conflict marker line: seven of them, then nothing or a blank.
fn marker(line: &str) -> Option<u8> {
    let rest = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))?;
    (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n'])).then(|| line.as_bytes()[0])
}

/// Returns the text with all conflict markers blanked, so that the lines around them read as usual.
pub fn without_markers<'t>(text: &'t str, conflicts: &[Unsettled]) -> Cow<'t, str> {
    blanked(
        text.into(),
        conflicts
            .iter()
            .flat_map(|conflict| conflict.markers.iter().cloned()),
    )
}

/// Returns the text with blanks in these ordered ranges. Byte length and line breaks stay the same.
fn blanked(text: Cow<'_, str>, ranges: impl IntoIterator<Item = Range<usize>>) -> Cow<'_, str> {
    let mut ranges = ranges.into_iter().peekable();
    if ranges.peek().is_none() {
        return text;
    }
    let mut masked = String::with_capacity(text.len());
    for range in ranges {
        masked.push_str(&text[masked.len()..range.start]);
        let blank = |byte| {
            if matches!(byte, b'\n' | b'\r') {
                char::from(byte)
            } else {
                ' '
            }
        };
        masked.extend(text[range].bytes().map(blank));
    }
    masked.push_str(&text[masked.len()..]);
    Cow::Owned(masked)
}

/// Returns the text with blanks for the tabs behind a line of fence marks. Such a line closes a fence
/// (CommonMark 0.31.2, "Fenced code blocks"), but the Markdown parser does not accept it.
pub fn without_tabs_behind_fences(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_behind = |line: &str| {
        let bare = line.trim_end();
        line[bare.len()..].contains('\t') && (bare.ends_with("```") || bare.ends_with("~~~"))
    };
    if !text.contains('\t') || !text.lines().any(is_behind) {
        return text;
    }
    let line = |line: &str| {
        if !is_behind(line) {
            return line.to_owned();
        }
        let (bare, behind) = line.split_at(line.trim_end().len());
        format!("{bare}{}", behind.replace('\t', " "))
    };
    text.split_inclusive('\n')
        .map(line)
        .collect::<String>()
        .into()
}

/// Returns the end mark of an HTML or Obsidian comment that is open after `line`, given the one open before it.
pub fn comment_left_open(line: &str, open: Option<&'static str>) -> Option<&'static str> {
    const MARKS: [(&str, &str); 2] = [("<!--", "-->"), (COMMENT, COMMENT)];
    let (mut open, mut rest) = (open, line);
    loop {
        if let Some(close) = open {
            let Some(end) = rest.find(close) else {
                return open;
            };
            rest = &rest[end + close.len()..];
        }
        let next = MARKS
            .iter()
            .filter_map(|(mark, close)| Some((rest.find(mark)? + mark.len(), *close)))
            .min();
        let (behind, close) = next?;
        (open, rest) = (Some(close), &rest[behind..]);
    }
}

/// Mark around a comment of Obsidian.
const COMMENT: &str = "%%";

/// Returns the text with blanks for Obsidian comments: text on one line between two `%%`, and lines from one
/// that begins with `%%` to the next `%%`. A comment that begins in a list item ends in it, as in HTML. Code
/// has no comments, and the settings at the end of an Obsidian Kanban board are none.
pub fn without_comments(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains(COMMENT) {
        return text;
    }
    let is_code =
        |event: &Event<'_>| matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_)));
    let code = Parser::new(&text)
        .into_offset_iter()
        .filter(|(event, _)| is_code(event));
    let code: Vec<Range<usize>> = code.map(|(_, span)| span).collect();
    let (mut hidden, mut at) = (Vec::new(), 0);
    while let Some(mark) = text[at..].find(COMMENT).map(|found| at + found) {
        at = mark + COMMENT.len();
        let next = code.get(code.partition_point(|code| code.end <= mark));
        let is_code = next.is_some_and(|code| code.start <= mark);
        if let Some((comment, end)) = comment_at(&text, mark).filter(|_| !is_code) {
            hidden.push(comment);
            at = end;
        }
    }
    blanked(text, hidden)
}

/// Returns the range hidden by the comment that `mark` opens, and its end. On one line the marks stay; in a
/// list item the last one does, as it belongs to the item.
fn comment_at(text: &str, mark: usize) -> Option<(Range<usize>, usize)> {
    let inner = mark + COMMENT.len();
    // A line may have very many marks, so none of them scans all of it.
    let next = text[inner..]
        .find(COMMENT)
        .map(|length| inner..inner + length);
    if let Some(hidden) = next.filter(|hidden| !text[hidden.clone()].contains(['\n', '\r'])) {
        return Some((hidden.clone(), hidden.end + COMMENT.len()));
    }
    let (start, mut end) = (line_start(text, 0, mark), line_end(text, mark, text.len()));
    let margin = &text[start..mark];
    if !margin.trim().is_empty() || text[inner..end].starts_with(" kanban:settings") {
        return None;
    }
    while end < text.len() {
        let line_start = end;
        end = line_end(text, line_start, text.len());
        let line = &text[line_start..end];
        let words = line.trim_start();
        if !words.is_empty() && columns(&line[..line.len() - words.len()]) < columns(margin) {
            return None;
        }
        if let Some(last) = line.find(COMMENT) {
            return Some((
                start..if margin.is_empty() {
                    end
                } else {
                    line_start + last
                },
                end,
            ));
        }
    }
    None
}

/// Mark around struck text.
pub const STRIKE: &str = "~~";

/// Returns true if the whole title is struck out: `~~no more~~`.
pub fn is_struck(title: &str) -> bool {
    let inner = title
        .strip_prefix(STRIKE)
        .and_then(|rest| rest.strip_suffix(STRIKE));
    inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(STRIKE))
}

/// Pairs of signs around text that its owner left out: struck or commented.
pub const LEFT_OUT: [(&str, &str); 5] = [
    (STRIKE, STRIKE),
    ("<del>", "</del>"),
    ("<s>", "</s>"),
    (COMMENT, COMMENT),
    ("<!--", "-->"),
];

/// Start of a claim at the end of a title, in the TASKS.md format.
pub const CLAIM: &str = "(@";
/// Name of such a claim.
pub const CLAIMED: &str = "(@…)";

/// Returns the claim sign if the title ends with a claim. Else returns the first sign of the left-out parts,
/// if no word but tags (`#home`) remains without them.
pub fn left_out(title: &str) -> Option<&'static str> {
    // `(@babel/core)` is a package.
    let claim = title
        .strip_suffix(')')
        .and_then(|title| title.rsplit_once(CLAIM));
    if claim.is_some_and(|(title, name)| title.ends_with(' ') && !name.contains(['/', '('])) {
        return Some(CLAIMED);
    }
    // Titles rarely have any of these signs.
    memchr3(b'~', b'<', b'%', title.as_bytes())?;
    let (mut rest, mut sign) = (Cow::Borrowed(title), None);
    for (open, close) in LEFT_OUT {
        let is_there = |text: &str| {
            let inner = text.find(open)? + open.len();
            let length = text[inner..].find(close).filter(|length| *length > 0)?;
            Some(inner - open.len()..inner + length + close.len())
        };
        while let Some(span) = is_there(&rest) {
            rest.to_mut().replace_range(span, " ");
            sign = sign.or(Some(open));
        }
    }
    // Code and escaped text are shown as they are.
    let is_shown = |c: char| c.is_alphanumeric() || matches!(c, '`' | '\\');
    let is_word = |word: &str| !word.starts_with('#') && word.contains(is_shown);
    sign.filter(|_| !rest.split_whitespace().any(is_word))
}

/// Returns true if the title between strike signs, with `behind` after it, would be rendered as struck out entirely.
pub fn shows_struck(title: &str, behind: &str) -> bool {
    // A word in front keeps it from beginning a block.
    let line = format!("x {STRIKE}{title}{STRIKE}");
    let span = 2..line.len();
    let line = line + behind;
    let is_it = |(event, at)| matches!(event, Event::Start(Tag::Strikethrough)) && at == span;
    !title.contains(STRIKE)
        && Parser::new_ext(&line, Options::ENABLE_STRIKETHROUGH)
            .into_offset_iter()
            .any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_shown_as_struck_out_is_known() {
        for (title, behind, shows) in [
            ("no more", " (see: `x`)", true),
            ("uses ~/bin", "", true),
            ("a ~ b", "", true),
            ("a ` b", " ``x``\ny", true),
            ("a ` b", "\n`x`", false),
            ("ends with \\", "", false),
            ("a ~~b", "", false),
            ("`~~`", "", false),
        ] {
            assert_eq!(shows_struck(title, behind), shows, "{title}");
        }
    }

    #[test]
    fn a_title_of_which_nothing_is_left_is_known() {
        for (title, sign) in [
            ("~~x~~", Some("~~")),
            ("~~x~~ #tag #a/b", Some("~~")),
            ("**~~x~~**.", Some("~~")),
            ("~~a~~ ~~b~~", Some("~~")),
            ("<del>x</del>", Some("<del>")),
            ("<s>x</s> <!-- why -->", Some("<s>")),
            ("%%x%% ~~y~~", Some("~~")),
            ("<!-- x -->", Some("<!--")),
            ("~~x~~ → moved to #12", None),
            ("~~old~~ new title", None),
            ("`~~x~~`", None),
            ("\\~~x~~", None),
            ("~~~~", None),
            ("~~x", None),
            ("…", None),
            ("#tag", None),
        ] {
            assert_eq!(left_out(title), sign, "{title}");
        }
    }

    #[test]
    fn a_tab_that_reaches_beyond_the_margin_leaves_its_other_half() {
        let rows = [
            ("  x", 2, "x"),
            ("    x", 2, "  x"),
            (" x", 2, "x"),
            ("\tx", 2, "  x"),
            ("  \tx", 2, "\tx"),
            ("\t\tx", 4, "\tx"),
            ("   ", 2, " "),
            (" ", 2, ""),
            ("x", 0, "x"),
        ];
        for (line, columns, expected) in rows {
            assert_eq!(dedent(line, columns), expected, "{line:?}");
        }
    }

    #[test]
    fn lines_end_as_in_commonmark() {
        let long = format!("{}\r\nb", "x".repeat(100));
        for (text, from, expected) in [
            ("a\nb", 0, 2),
            ("a\r\nb", 0, 3),
            ("a\rb", 0, 2),
            ("a", 0, 1),
            (&long, 3, 102),
        ] {
            assert_eq!(line_end(text, from, text.len()), expected, "{text:?}");
        }
    }

    #[test]
    fn headings_lose_their_marks() {
        let rows = [
            ("## a ##\n", "a"),
            ("# a#", "a#"),
            ("#\n", ""),
            ("a\n---\n", "a"),
            ("## #", ""),
            ("a\nb\n===", "a\nb"),
        ];
        for (heading, expected) in rows {
            assert_eq!(
                heading_text(heading, 0..heading.len()),
                expected,
                "{heading:?}"
            );
        }
    }
}
