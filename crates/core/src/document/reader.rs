//! Reads a queue document into lanes and items, from the Markdown parser's events or the scan of a plain document.
//!
//! Never fails; problems are returned beside the document. Knows nothing of edits.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr_iter;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::foreign_checkboxes::told;
use super::heading_rules::{CONDITIONS, Headed};
use super::kanban::{dropped, moved};
use super::keys::{
    guard_in_example, leave_to_keys, note, read_task_block, tell_status_beside, tell_unread,
};
use super::outline::Outline;
use super::sections::{
    Other, innermost, is_board, lane_set, no_items_under, sections, unknown_lanes,
};
use super::{Document, Item, ItemList, ItemPlace, Lane, ShellFence, Tail, Under};
use crate::front::{self, Front};
use crate::lane::{LaneKind, Said};
use crate::markup;
use crate::metadata::{self, Key, Meaning, Owner, TaskBlock, Unread};
use crate::problem::{Problem, Severity};
use crate::scan::{ListItem, PlainBlock, scan};
use crate::task::Status;

mod fence;
mod heading;
mod odd_box;

/// Parses a queue document. Never fails: unreadable parts are reported, quarantined and left unchanged.
pub fn parse(text: &str) -> (Document<'_>, Vec<Problem>) {
    let (mut document, mut problems) = read(text);
    document.read_prose(&mut problems);
    (document, problems)
}

/// Returns the title of the first item of a text, if it has one.
pub fn title_of(text: &str) -> Option<String> {
    let (document, _) = parse(text);
    document
        .items()
        .first()
        .map(|item| document.title(item).to_owned())
        .filter(|title| !title.is_empty())
}

/// As [`parse`], for a part of a document: names defined elsewhere in it are not reported.
pub(super) fn read(text: &str) -> (Document<'_>, Vec<Problem>) {
    let mut problems = Vec::new();
    let (front, body) = front::read(text, &mut problems);
    // The plain scan does not report where a list begins, which counts there.
    let plain = if front.is_kanban {
        None
    } else {
        Reader::new(text, text, body, &front).read_plain()
    };
    let (document, others) = plain.unwrap_or_else(|| read_markdown(text, &front, body));
    problems.extend(others);
    (document, problems)
}

/// As [`parse`], but items are read on demand: for a change of one item of a long document.
pub fn open(text: &str) -> Document<'_> {
    let (front, body) = front::read(text, &mut Vec::new());
    let plain = Reader::new(text, text, body, &front).outline();
    plain.map_or_else(|| parse(text).0, |outline| outline.open(text))
}

/// As [`parse`], always with the Markdown parser.
#[cfg(test)]
pub(crate) fn parse_as_markdown(text: &str) -> (Document<'_>, Vec<Problem>) {
    let mut problems = Vec::new();
    let (front, body) = front::read(text, &mut problems);
    let (mut document, others) = read_markdown(text, &front, body);
    problems.extend(others);
    document.read_prose(&mut problems);
    (document, problems)
}

/// Reads `text`, which has no front matter of its own, under `front`; `None` if it isn't plain.
pub(super) fn read_plain<'t>(text: &'t str, front: &Front) -> Option<Document<'t>> {
    Reader::new(text, text, 0, front)
        .read_plain()
        .map(|(document, _)| document)
}

/// Reads the item at this place of a plain document.
pub(super) fn read_item<'t>(document: &Document<'t>, place: &ItemPlace) -> Item<'t> {
    let text = &document.text[..place.span.end];
    let mut reader = Reader::new(text, text, document.body, &document.front);
    reader.counted = (place.span.start, document.line_at(place.span.start));
    reader.headed.push((HeadingLevel::H1, place.headed));
    scan(text, place.span.start, &mut |block| {
        if let PlainBlock::ListItem(item) = block {
            reader.list_item(item);
        }
    });
    let mut item = reader.items.swap_remove(0);
    item.lane = lane_of(place.under);
    document.settle(&mut item, place.under);
    if document.is_prose(&item) {
        item.leave_keys();
        item.after_names.clear();
    }
    (item.after, item.after_names) = document.waits(&item);
    item.quarantined |= document.misplaced_guard(&item).is_some();
    item
}

/// Maximum depth of nested items.
const MOST_LEVELS: usize = 16;

fn lane_of(under: Option<Under>) -> Option<usize> {
    if let Some(Under::Lane(lane)) = under {
        Some(lane)
    } else {
        None
    }
}

fn read_markdown<'t>(text: &'t str, front: &Front, body: usize) -> (Document<'t>, Vec<Problem>) {
    let conflicts = markup::conflicts(text, body);
    let source = markup::without_tabs_behind_fences(markup::without_markers(text, &conflicts));
    let source = markup::without_comments(source);
    let mut reader = Reader::new(text, &source, body, front);
    reader.read();
    if reader.is_misread() {
        reader = reader.without_lanes();
        reader.read();
    }
    reader.finish(&conflicts)
}

/// One pass over the Markdown events.
struct Reader<'t, 's> {
    text: &'t str,
    /// The text with conflict markers and comments blanked, at the same byte length.
    source: &'s str,
    /// End of the front matter.
    body: usize,
    front: &'s Front,
    /// Whether headings name lanes, as it may be a board. An archive counts in any document.
    names_lanes: bool,
    lanes: Vec<Lane>,
    items: Vec<Item<'t>>,
    tail: Option<Tail>,
    problems: Vec<Problem>,
    /// Boxes with an owner's mark.
    own: Vec<Range<usize>>,
    /// List items around the current place.
    frames: Vec<Frame>,
    quotes: usize,
    /// Headings above the current place, outermost first.
    headings: Vec<(HeadingLevel, Under)>,
    /// The same, with other statements of the headings.
    headed: Vec<(HeadingLevel, Headed)>,
    /// Headings by which boxes are no items, with the number of open ones.
    no_items: Vec<(Range<usize>, &'static str, usize)>,
    /// Head of the first table.
    table: Option<usize>,
    /// End of the last rule between blocks.
    rule_end: usize,
    /// Number of lists since the last heading.
    lists: usize,
    /// Headings that are no lanes.
    others: Vec<Other>,
    /// For each item, the heading above it.
    under: Vec<Option<Under>>,
    /// The last offset with a counted line.
    counted: (usize, usize),
    /// Start of the first top-level list item, and the number of them.
    listed: (usize, usize),
    /// Boxes in quotes.
    quoted: Vec<Range<usize>>,
    /// For the last fence that was not closed in its item: its problem, its name, and the number of boxes in it.
    torn: Option<(usize, String, usize)>,
}

struct Frame {
    start: usize,
    end: usize,
    /// Number of items before it.
    items_before: usize,
    /// The item that this list item is.
    own: Option<usize>,
    /// The innermost item that it is or is in.
    item: Option<usize>,
    /// Whether it is, or is in, a step of that item.
    is_step: bool,
    /// Whether it is, or is in, a line with its owner's mark.
    is_own: bool,
}

impl<'t, 's> Reader<'t, 's> {
    fn new(text: &'t str, source: &'s str, body: usize, front: &'s Front) -> Reader<'t, 's> {
        Reader {
            text,
            source,
            body,
            front,
            names_lanes: true,
            lanes: Vec::new(),
            items: Vec::new(),
            tail: None,
            problems: Vec::new(),
            own: Vec::new(),
            frames: Vec::new(),
            quotes: 0,
            headings: Vec::new(),
            headed: Vec::new(),
            no_items: Vec::new(),
            table: None,
            rule_end: 0,
            lists: 0,
            others: Vec::new(),
            under: Vec::new(),
            counted: (0, 1),
            listed: (0, 0),
            quoted: Vec::new(),
            torn: None,
        }
    }

    /// Returns a reader that reads the document as one that is no board.
    fn without_lanes(&self) -> Reader<'t, 's> {
        Reader {
            names_lanes: false,
            ..Reader::new(self.text, self.source, self.body, self.front)
        }
    }

    /// Returns true if headings were read as lanes although the document is no board.
    fn is_misread(&self) -> bool {
        !lane_set(&self.lanes).is_empty()
            && self.front.board_key.is_none()
            && !is_board(&self.lanes, &self.others)
    }

    /// Reads without the Markdown parser, if the document is plain enough.
    fn read_plain(mut self) -> Option<(Document<'t>, Vec<Problem>)> {
        // An item has about a hundred bytes of text. Growing in steps would copy all items many times.
        self.items.reserve(self.text.len() / 128);
        let is_plain = scan(self.text, self.body, &mut |block| match block {
            PlainBlock::Heading { level, span } => self.plain_heading(level, span),
            PlainBlock::Paragraph(span) => self.paragraph(span),
            PlainBlock::ListItem(item) => self.list_item(item),
        });
        match is_plain {
            true if self.is_misread() => self.without_lanes().read_plain(),
            true => Some(self.finish(&[])),
            false => None,
        }
    }

    /// As [`Reader::read_plain`], but finds only the places of items.
    fn outline(mut self) -> Option<Outline> {
        let mut places: Vec<ItemPlace> = Vec::with_capacity(self.text.len() / 64);
        let is_plain = scan(self.text, self.body, &mut |block| match block {
            PlainBlock::Heading { level, span } => self.plain_heading(level, span),
            PlainBlock::Paragraph(span) => self.paragraph(span),
            PlainBlock::ListItem(item) => {
                self.end_lead();
                if item.task.is_some() {
                    let (under, headed) = (self.stand(), self.headed());
                    let (status, priority) = (None, Some(headed.priority));
                    places.push(ItemPlace {
                        may_be_due: false,
                        span: item.span,
                        under,
                        headed,
                        status,
                        priority,
                    });
                }
            }
        });
        if !is_plain {
            return None;
        }
        if self.is_misread() {
            return self.without_lanes().outline();
        }
        // Insertions behind a lane's items depend on the last two.
        for (at, ItemPlace { span, under, .. }) in places.iter().enumerate() {
            let is_among_many = places
                .get(at + 1..at + 3)
                .is_some_and(|next| next.iter().all(|next| next.under == *under));
            if !is_among_many {
                self.follow(span.start, span.end, lane_of(*under));
            }
        }
        let Reader {
            text,
            body,
            lanes,
            tail,
            ..
        } = self;
        let (front, lane_set) = (self.front.clone(), lane_set(&lanes));
        places
            .iter_mut()
            .for_each(|place| place.status = Some(place.bare_status(text, &lanes, lane_set)));
        leave_to_keys(text, &mut places);
        Some(Outline {
            body,
            front,
            lanes,
            lane_set,
            tail,
            places: places.into(),
        })
    }

    fn list_item(&mut self, item: ListItem<'_>) {
        if item.task.is_none() {
            self.warn_of_odd_box(item.span.start);
        }
        self.open_list_item(item.span);
        if let Some(marker) = item.task {
            self.task(marker);
        }
        for fence in item.fences {
            let info = self.text[fence.clone()]
                .lines()
                .next()
                .unwrap_or("")
                .trim_start_matches(['`', '~']);
            self.code(&CodeBlockKind::Fenced(info.into()), fence.clone());
        }
        self.close_list_item();
    }

    fn read(&mut self) {
        let body = self.body;
        let mut source = Cow::Borrowed(&self.source[body..]);
        // The parser needs something behind a box, if only a line end.
        if source.ends_with(']') {
            source.to_mut().push('\n');
        }
        for (event, span) in Parser::new_ext(&source, Options::ENABLE_TASKLISTS).into_offset_iter()
        {
            let span = span.start + body..(span.end + body).min(self.text.len());
            match event {
                Event::Start(Tag::List(_)) if self.is_top_level() => self.lists += 1,
                Event::Start(Tag::Item) => {
                    self.warn_of_odd_box(span.start);
                    self.open_list_item(span);
                }
                Event::End(TagEnd::Item) => self.close_list_item(),
                Event::TaskListMarker(_) => self.task(span),
                Event::Start(Tag::BlockQuote(_)) => {
                    self.end_lead();
                    self.quotes += 1;
                }
                Event::End(TagEnd::BlockQuote(_)) => self.quotes -= 1,
                Event::Start(Tag::Heading { level, .. }) => self.heading(level, span),
                Event::Start(Tag::Paragraph) => self.paragraph(span),
                Event::Start(Tag::CodeBlock(kind)) => self.code(&kind, span),
                Event::Start(Tag::HtmlBlock) => self.html(span),
                Event::Rule => self.rule(span.end),
                _ => {}
            }
        }
    }

    fn is_top_level(&self) -> bool {
        self.frames.is_empty() && self.quotes == 0
    }

    fn open_list_item(&mut self, span: Range<usize>) {
        self.end_lead();
        self.torn = None;
        if self.is_top_level() {
            let (first, count) = self.listed;
            self.listed = (if count == 0 { span.start } else { first }, count + 1);
        }
        let around = self
            .frames
            .last()
            .map(|frame| (frame.item, frame.is_step, frame.is_own));
        let (item, is_step, is_in_own) = around.unwrap_or_default();
        let is_own = is_in_own
            || self
                .own
                .last()
                .is_some_and(|mark| span.contains(&mark.start));
        let items_before = self.items.len();
        self.frames.push(Frame {
            start: span.start,
            end: span.end,
            items_before,
            own: None,
            item,
            is_step,
            is_own,
        });
    }

    fn close_list_item(&mut self) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        let has_items = self.items.len() > frame.items_before;
        if !has_items || !self.is_top_level() {
            return;
        }
        let lane = self.items[frame.items_before].lane;
        let start = markup::line_start(self.source, self.body, frame.start);
        let end = markup::block_end(self.source, start, frame.end);
        self.follow(start, end, lane);
    }

    /// Records a list item that is or holds an item as the last of its lane so far.
    fn follow(&mut self, start: usize, end: usize, lane: Option<usize>) {
        let before = match lane {
            Some(index) => self.lanes[index].tail,
            None => self.tail,
        };
        let is_spaced = before.is_some_and(|before| {
            before.end < start
                && self.source[before.end..start]
                    .bytes()
                    .all(|byte| byte.is_ascii_whitespace())
        });
        let tail = Some(Tail {
            start,
            end,
            is_spaced,
        });
        if let Some(index) = lane {
            self.lanes[index].tail = tail;
        }
        let is_archived = lane.is_some_and(|index| self.lanes[index].kind == LaneKind::Archive);
        if !is_archived {
            self.tail = tail;
        }
    }

    fn task(&mut self, marker: Range<usize>) {
        if self.quotes > 0 {
            return self.quoted.push(marker);
        }
        let text = self.text;
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let Some(head) = markup::task_head(self.source, self.body, marker, frame.end) else {
            return;
        };
        let line = &text[head.after_box..head.line_end];
        let (id, after_id) = markup::leading_id(line);
        frame.is_step = (frame.item.is_some() || frame.is_own) && id.is_none();
        if frame.is_step {
            return;
        }
        if text[head.after_box..frame.end].trim().is_empty() {
            let (message, hint) = (
                "this box is empty, so it is no item",
                "write a title after it",
            );
            self.problems.push(Problem::warning(
                "empty-box",
                head.box_char - 1..head.box_char + 2,
                message,
                hint,
            ));
            return;
        }
        let index = self.items.len();
        let within = frame.item;
        // An item's text includes nested ones, and is read for each of them.
        let above = std::iter::successors(within, |above| self.items[*above].within);
        if above.count() >= MOST_LEVELS {
            self.problems.push(Problem::warning(
                "too-deep",
                markup::trimmed(text, head.after_box..head.line_end),
                format!(
                    "this is nested in {MOST_LEVELS} others, the maximum: it is not an item, but text of the innermost"
                ),
                "move it out, and name that one as its parent: `(parent: ID)`",
            ));
            return;
        }
        frame.own = Some(index);
        frame.item = Some(index);
        let (frame_end, is_in_own) = (frame.end, frame.is_own);

        let under = match within {
            Some(within) => self.under[within],
            None => self.stand(),
        };
        let lane = lane_of(under);
        self.under.push(under);
        let checked = matches!(text.as_bytes()[head.box_char], b'x' | b'X');

        let rest = head.after_box + after_id..head.line_end;
        let by = Owner::of_line(id.as_ref());
        let next = markup::line_end(text, head.line_end, frame_end);
        let paragraph =
            next..markup::paragraph_end(self.source, head.line_end, frame_end).max(next);
        self.warn_of_missing_bullets(paragraph, head.content_column);
        let (metadata, quarantined) =
            match metadata::find_parenthesis_below(&text[next..frame_end.max(next)], by) {
                Some(span) => {
                    let is_status = tell_status_beside(&mut self.problems, text, rest.clone());
                    (Some(next + span.start..next + span.end), is_status)
                }
                None => match metadata::find_parenthesis(&self.source[rest.clone()], by) {
                    Ok(span) => (
                        span.map(|span| rest.start + span.start..rest.start + span.end),
                        false,
                    ),
                    Err(Unread { name, why }) => {
                        let name = rest.start + name.start..rest.start + name.end;
                        (
                            None,
                            tell_unread(&mut self.problems, text, Unread { name, why }),
                        )
                    }
                },
            };
        let title_end = metadata
            .as_ref()
            .map_or(rest.end, |span| span.start.min(rest.end));
        let head_end = metadata
            .as_ref()
            .map_or(rest.end, |span| span.end.max(rest.end));
        let title = markup::trimmed(text, rest.start..title_end);
        let span = head.start..markup::block_end(self.source, head.after_box, frame_end);
        let (line, headed) = (self.line_of(span.start), self.headed());
        let mut item = Item {
            line,
            id,
            status: Status::Pending,
            checked,
            lane,
            nested: within.is_some() || !head.begins_line,
            within,
            quarantined,
            aside: is_in_own,
            priority: headed.priority,
            stating: headed.stating,
            role: None,
            not_before: None,
            due: None,
            after: Vec::new(),
            after_names: Vec::new(),
            parent: None,
            box_char: head.box_char,
            head: markup::trimmed(text, head.after_box..head_end),
            title,
            metadata,
            block: None,
            shell: None,
            column: head.column,
            content_column: head.content_column,
            said: Said {
                ticked: checked,
                status: None,
            },
            span,
        };
        if self.front.is_kanban
            && self.frames.len() == 1
            && (self.lists > 1 || self.headings.is_empty())
        {
            self.problems.push(dropped(item.head.clone()));
        }
        if item.title.is_empty() {
            self.problems.push(Problem::error(
                "empty-title",
                item.box_char - 1..item.head.end.max(item.box_char + 2),
                "this item has no title",
                "write a title after the box, or remove the line",
            ));
            item.quarantined = true;
        }
        if let Some(span) = item.metadata.clone() {
            let (mut seen, told) = (0, self.problems.len());
            metadata::read_parenthesis(text, span, &mut |entry| {
                note(&mut item, &mut self.problems, &mut seen, entry);
            });
            // Other programs have tags, too, with their own keys beside them.
            if item.id.is_none() && seen == Meaning::Absent(Key::Tags).bit() && !item.quarantined {
                self.problems.truncate(told);
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.is_own |= !checked && markup::left_out(&text[item.title.clone()]).is_some();
        }
        // Tavern strikes out cancelled items.
        if checked
            && item.said.status == Some(Status::Cancelled)
            && markup::is_struck(&text[item.title.clone()])
        {
            item.title =
                item.title.start + markup::STRIKE.len()..item.title.end - markup::STRIKE.len();
        }
        let what = headed.no_item(&text[item.title.clone()]);
        if let Some(what) = what.filter(|_| !checked) {
            (item.quarantined, item.aside) = (true, item.aside || what == CONDITIONS);
            let mut headings = self.no_items.iter_mut().rev();
            if let Some((.., count)) = headings.find(|(_, boxes, _)| *boxes == what) {
                *count += 1;
            }
        }
        self.items.push(item);
    }

    fn headed(&self) -> Headed {
        self.headed
            .last()
            .map_or(Headed::BY_NONE, |(_, headed)| *headed)
    }

    /// Returns the heading above an item that begins here and is part of no other.
    fn stand(&mut self) -> Option<Under> {
        let under = self.headings.last().map(|(_, under)| *under);
        if let Some(Under::Other { number, .. }) = under {
            self.others[number].items += 1;
        }
        under
    }

    fn line_of(&mut self, offset: usize) -> usize {
        let (at, line) = self.counted;
        let line = line + memchr_iter(b'\n', &self.text.as_bytes()[at..offset]).count();
        self.counted = (offset, line);
        line
    }

    fn code(&mut self, kind: &CodeBlockKind<'_>, span: Range<usize>) {
        self.end_lead();
        let CodeBlockKind::Fenced(info) = kind else {
            return;
        };
        if self.quotes > 0 {
            return;
        }
        let fence = markup::fence(self.source, span);
        self.tell_of_unclosed(&fence, info);
        let Some(frame) = self.frames.last() else {
            return;
        };
        let Some(index) = frame.item else { return };
        let is_own = frame.own == Some(index);
        let item = &mut self.items[index];
        if let Some(shell) = markup::shell_of(info).filter(|_| !frame.is_step) {
            if let Some(first) = &mut item.shell {
                first.second.get_or_insert(fence.opening);
                return;
            }
            let content = fence.content.clone();
            item.shell = Some(Box::new(ShellFence::of(shell, content, fence.column)));
            self.tell_of_half(&fence, info, index);
            return;
        }
        let mut words = info.split_ascii_whitespace();
        let block = TaskBlock {
            fences: fence.lines,
            content: fence.content.clone(),
            column: fence.column,
        };
        match (words.next(), words.next()) {
            (Some("yaml" | "yml"), Some("task")) if is_own && item.block.is_none() => {
                item.block = Some(Box::new(block));
                read_task_block(self.text, &mut self.items[index], &mut self.problems);
            }
            (Some("yaml" | "yml"), Some("task")) if is_own => self.problems.push(Problem::warning(
                "second-task-block",
                fence.opening,
                "an item's second `yaml task` block is ignored",
                "put all keys into the first one",
            )),
            (Some(word), _)
                if is_own
                    && ["yaml", "yml", "task"]
                        .iter()
                        .any(|it| word.eq_ignore_ascii_case(it)) =>
            {
                let guard = guard_in_example(self.text, &block).filter(|_| !item.checked);
                item.quarantined |= guard.is_some();
                self.problems.extend(guard);
            }
            _ => {}
        }
    }

    fn html(&mut self, span: Range<usize>) {
        self.end_lead();
        if !self.is_top_level() {
            return;
        }
        let html = &self.source[span.clone()];
        if html.trim_start().starts_with("<!--") && !html.contains("-->") {
            let start = span.start + (html.len() - html.trim_start().len());
            self.problems.push(Problem::warning(
                "unclosed-comment",
                start..start + 4,
                "this comment is never closed, so all that follows it is hidden",
                "close it with `-->`",
            ));
        }
    }

    fn finish(mut self, conflicts: &[markup::Unsettled]) -> (Document<'t>, Vec<Problem>) {
        self.problems.extend(unknown_lanes(
            self.text,
            self.front,
            &self.lanes,
            &self.others,
        ));
        self.warn_of_plain_list();
        let no_items = self.no_items.iter().filter(|(.., count)| *count > 0);
        let no_items =
            no_items.map(|(heading, what, count)| no_items_under(self.text, heading, what, *count));
        self.problems.extend(no_items);
        if self.front.is_kanban {
            self.problems.extend(moved(self.text, &self.items));
        }
        let unmerged = self.quarantine_conflicts(conflicts);
        let Reader {
            text,
            body,
            lanes,
            mut items,
            tail,
            under,
            mut problems,
            own,
            others,
            ..
        } = self;
        let (front, lane_set) = (self.front.clone(), lane_set(&lanes));
        let sections = sections(
            others.into_iter().map(|other| other.heading),
            &items,
            &under,
        );
        let mut document = Document {
            text,
            body,
            front,
            lanes,
            lane_set,
            tail,
            own,
            sections,
            ..Document::default()
        };
        items
            .iter_mut()
            .zip(under)
            .for_each(|(item, under)| document.settle(item, under));
        // Problems of ended or skipped items hold nothing up, unless they hide others.
        let is_idle = |problem: &Problem| {
            problem.code != "hidden-items"
                && innermost(&items, problem.span.start)
                    .is_some_and(|it| it.status.is_ended() || it.aside)
        };
        problems
            .iter_mut()
            .filter(|it| is_idle(it))
            .for_each(|problem| problem.severity = Severity::Warning);
        problems.extend(unmerged);
        problems.extend(told(&document, &items));
        problems.sort_by_key(|problem| problem.span.start);
        document.items = ItemList::Read(items);
        (document, problems)
    }

    fn quarantine_conflicts(&mut self, conflicts: &[markup::Unsettled]) -> Vec<Problem> {
        let mut conflicts_left = conflicts;
        for item in &mut self.items {
            while conflicts_left
                .first()
                .is_some_and(|conflict| conflict.span.end <= item.span.start)
            {
                conflicts_left = &conflicts_left[1..];
            }
            item.quarantined |= conflicts_left
                .first()
                .is_some_and(|conflict| conflict.span.start < item.span.end);
        }
        let problem = |conflict: &markup::Unsettled| {
            let message = if conflict.is_closed {
                "two versions of these lines were left unmerged"
            } else {
                "a conflict marker without its end"
            };
            Problem::error(
                "conflict-markers",
                conflict.opening.clone(),
                message,
                "choose the lines to keep and remove the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`",
            )
        };
        conflicts.iter().map(problem).collect()
    }
}
