//! Context above an item that its author may have relied on: headings, plain list items, and text that
//! introduces them.

use std::iter::Peekable;
use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, OffsetIter, Options, Parser, Tag, TagEnd};

use super::{Document, Item, ItemList, ItemPlace, parse};
use crate::markup;

/// Maximum bytes of each text that introduces a heading or a list.
const MOST_TEXT: usize = 1 << 10;

impl Document<'_> {
    /// Returns the headings and plain list items above `item`, outermost first, with the text that introduces
    /// them. Empty if headings are lanes: those show progress, and items move between them.
    pub fn around(&self, item: &Item<'_>) -> String {
        if self.has_lanes() {
            return String::new();
        }
        if let Some((short, rows)) = self.shortened(item.span.start) {
            let (short, _) = parse(&short);
            return short.around(short.item(rows - 1));
        }
        let outermost = std::iter::successors(Some(item), |item| Some(self.item(item.within?)))
            .last()
            .unwrap_or(item);
        let source = markup::without_comments(self.text.into());
        self.above(&source, outermost.box_char)
            .excerpt(&source, outermost.span.start)
    }

    /// Returns all lines that [`Document::around`] may take from.
    pub fn prose(&self) -> String {
        if self.has_lanes() {
            return String::new();
        }
        if let Some((short, _)) = self.shortened(self.text.len()) {
            return parse(&short).0.prose();
        }
        let items: Vec<&Item<'_>> = self
            .items()
            .iter()
            .filter(|item| item.within.is_none())
            .collect();
        let is_item = |at: usize| {
            let before = items
                .partition_point(|item| item.span.start <= at)
                .checked_sub(1);
            before.is_some_and(|before| at < items[before].span.end)
        };
        let source = markup::without_comments(self.text.into());
        let mut blocks = self.above(&source, source.len()).passed;
        blocks.retain(|span| !is_item(span.start));
        blocks.sort_by_key(|span| span.start);
        let lines = blocks.into_iter().flat_map(|span| source[span].lines());
        lines
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns each heading within `bounds`, with those above it, and the range up to the next one. The first
    /// entry has no heading: the text before them.
    pub(crate) fn sections(&self, bounds: &Range<usize>) -> Vec<(Vec<String>, Range<usize>)> {
        let mut sections = vec![(Vec::new(), bounds.clone())];
        let may_head = |line: &str| {
            let line = line.trim();
            let is_underline = ['=', '-']
                .iter()
                .any(|mark| line.trim_start_matches(*mark).is_empty());
            line.starts_with('#') || is_underline && !line.is_empty()
        };
        if !self
            .outside_items(bounds)
            .into_iter()
            .flat_map(str::lines)
            .any(may_head)
        {
            return sections;
        }
        let source = markup::without_comments(self.text.into());
        let mut above = Above {
            sections: vec![Section::default()],
            ..Above::default()
        };
        for (event, span) in
            Parser::new_ext(&source[bounds.clone()], Options::ENABLE_TASKLISTS).into_offset_iter()
        {
            let span = span.start + bounds.start..span.end + bounds.start;
            match event {
                Event::Start(tag) => {
                    let is_heading = above.depth == 0 && matches!(tag, Tag::Heading { .. });
                    above.open(&tag, span.clone());
                    if let Some((_, last)) = sections.last_mut().filter(|_| is_heading) {
                        last.end = span.start;
                        let names = above
                            .headings()
                            .map(|span| markup::heading_text(&source, span.clone()).to_owned());
                        sections.push((names.collect(), span.end..bounds.end));
                    }
                }
                Event::End(tag) => above.close(tag),
                _ => {}
            }
        }
        sections
    }

    /// Returns the text within `bounds` outside of items; if the items are read, all of it.
    fn outside_items(&self, bounds: &Range<usize>) -> Vec<&str> {
        let mut at = bounds.start;
        let mut outside = Vec::new();
        if let ItemList::Outlined { places, .. } = &self.items {
            let from = places.partition_point(|place| place.span.start < bounds.start);
            for ItemPlace { span, .. } in places[from..]
                .iter()
                .take_while(|place| place.span.end <= bounds.end)
            {
                outside.push(&self.text[at..span.start]);
                at = span.end;
            }
        }
        outside.push(&self.text[at..bounds.end]);
        outside
    }

    /// Returns the document with one item for each run of adjacent items, and the number of runs that begin
    /// up to `last`. The context needs no more, so that ten thousand items need not be read. `None` if the
    /// items are read.
    fn shortened(&self, last: usize) -> Option<(String, usize)> {
        let ItemList::Outlined { places, .. } = &self.items else {
            return None;
        };
        let (mut short, mut rows, mut end, mut bullet) = (String::new(), 0, 0, "");
        for span in places.iter().map(|place| &place.span) {
            let (between, own) = (
                &self.text[end..span.start],
                &self.text[span.start..=span.start],
            );
            if bullet != own || !between.trim().is_empty() {
                short.extend([between, own, " [ ] x\n"]);
                rows += usize::from(span.start <= last);
            }
            (end, bullet) = (span.end, own);
        }
        short += &self.text[end..];
        Some((short, rows))
    }

    /// Returns the context of the place `at` of `source`, the text without comments.
    fn above(&self, source: &str, at: usize) -> Above {
        let mut walk = Walk::through(self, source);
        walk.to(at);
        walk.above
    }
}

/// A pass through a document from its top.
pub(super) struct Walk<'s> {
    events: Peekable<OffsetIter<'s>>,
    /// Offset from which the events count.
    body: usize,
    above: Above,
}

impl<'s> Walk<'s> {
    /// Begins a pass; `source` is the text of `document` without comments.
    pub fn through(document: &Document<'_>, source: &'s str) -> Walk<'s> {
        let events = Parser::new_ext(&source[document.body..], Options::ENABLE_TASKLISTS)
            .into_offset_iter()
            .peekable();
        Walk {
            events,
            body: document.body,
            above: Above {
                sections: vec![Section::default()],
                ..Above::default()
            },
        }
    }

    /// Continues to the place `at`, and returns its context.
    pub fn to(&mut self, at: usize) -> &Above {
        while let Some((event, span)) = self
            .events
            .next_if(|(_, span)| span.start + self.body <= at)
        {
            match event {
                Event::Start(tag) => self
                    .above
                    .open(&tag, span.start + self.body..span.end + self.body),
                Event::End(tag) => self.above.close(tag),
                _ => {}
            }
        }
        &self.above
    }
}

/// A heading, or the head of the document, with the text right behind it.
#[derive(Default)]
struct Section {
    heading: Option<(HeadingLevel, Range<usize>)>,
    lead: Vec<Range<usize>>,
}

/// Context of the current place.
#[derive(Default)]
pub(super) struct Above {
    /// Number of blocks and spans around it.
    depth: usize,
    /// Outermost first.
    sections: Vec<Section>,
    /// Whether a list has followed the innermost heading.
    has_list: bool,
    /// The text since that list.
    since: Vec<Range<usize>>,
    /// The list items around it, only their text.
    pub bullets: Vec<Range<usize>>,
    /// All headings, paragraphs and list items so far.
    passed: Vec<Range<usize>>,
}

impl Above {
    fn open(&mut self, tag: &Tag<'_>, span: Range<usize>) {
        let is_top_level = self.depth == 0;
        self.depth += 1;
        match tag {
            Tag::Item => self.bullets.push(span),
            // Code, quotes and comments are not the author's own words.
            Tag::List(_) | Tag::CodeBlock(_) | Tag::BlockQuote(_) | Tag::HtmlBlock => {
                if let Some(around) = self.bullets.last_mut() {
                    around.end = around.end.min(span.start);
                }
            }
            Tag::Heading { level, .. } if is_top_level => {
                self.sections.retain(|above| {
                    above
                        .heading
                        .as_ref()
                        .is_none_or(|(above, _)| above < level)
                });
                self.sections.push(Section {
                    heading: Some((*level, span.clone())),
                    lead: Vec::new(),
                });
                self.passed.push(span);
                self.since.clear();
                self.has_list = false;
            }
            Tag::Paragraph if is_top_level => {
                let section = self
                    .sections
                    .last_mut()
                    .expect("the head of the document stays");
                let words = if self.has_list {
                    &mut self.since
                } else {
                    &mut section.lead
                };
                words.push(span.clone());
                self.passed.push(span);
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        self.depth -= 1;
        match tag {
            TagEnd::Item => self.passed.extend(self.bullets.pop()),
            TagEnd::List(_) if self.depth == 0 => {
                self.since.clear();
                self.has_list = true;
            }
            _ => {}
        }
    }

    /// Outermost first.
    pub fn headings(&self) -> impl Iterator<Item = &Range<usize>> {
        self.sections
            .iter()
            .filter_map(|section| Some(&section.heading.as_ref()?.1))
    }

    /// Returns the whole context, except list items from `item` on.
    fn excerpt(&self, text: &str, item: usize) -> String {
        let mut parts = Vec::new();
        for Section { heading, lead } in &self.sections {
            parts.extend(
                heading
                    .iter()
                    .map(|(_, span)| text[span.clone()].trim().to_owned()),
            );
            parts.extend(words(text, lead));
        }
        parts.extend(words(text, &self.since));
        let above = self.bullets.iter().filter(|span| span.start < item);
        let lines = above.map(|span| markup::line_start(text, 0, span.start)..span.end);
        parts.extend(lines.filter_map(|span| words(text, &[span])));
        parts.join("\n\n")
    }
}

/// Returns these blocks as written, or the beginning of them.
fn words(text: &str, blocks: &[Range<usize>]) -> Option<String> {
    let blocks: Vec<&str> = blocks
        .iter()
        .map(|span| text[span.clone()].trim_end())
        .collect();
    let whole = blocks.join("\n\n");
    let words = &whole[..whole.floor_char_boundary(MOST_TEXT)];
    let more = if words.len() < whole.len() {
        " …"
    } else {
        ""
    };
    (!words.is_empty()).then(|| format!("{words}{more}"))
}

#[cfg(test)]
mod tests {
    use super::super::{open, parse};

    #[test]
    fn an_item_stands_under_headings_plain_items_and_what_introduces_them() {
        let text = "Ours.\n\n~~~\nhidden\n~~~\n\n# Shop\n\nAll of it.\n\n## Old\n\nGone.\n\n- [ ] zero\n\n## Server\n\nIt is in `srv/`.\n\n- [ ] one\n\nOf accounts:\n\n\
            - API\n  as JSON\n  > quoted\n  - [ ] two\n    - [ ] a step\n    - [ ] T-1: three\n- Web\n  - Pages\n    - [ ] four\n";
        let (document, _) = parse(text);
        let head = "Ours.\n\n# Shop\n\nAll of it.\n\n## Server\n\nIt is in `srv/`.";
        for (title, rest) in [
            ("one", ""),
            ("two", "\n\nOf accounts:\n\n- API\n  as JSON"),
            ("three", "\n\nOf accounts:\n\n- API\n  as JSON"),
            ("four", "\n\nOf accounts:\n\n- Web\n\n  - Pages"),
        ] {
            let item = document
                .items()
                .iter()
                .find(|item| document.title(item) == title)
                .expect("it is an item");
            assert_eq!(document.around(item), format!("{head}{rest}"), "{title}");
        }
        assert_eq!(
            document.prose(),
            "Ours.\n# Shop\nAll of it.\n## Old\nGone.\n## Server\nIt is in `srv/`.\nOf accounts:\n- API\nas JSON\n- Web\n- Pages"
        );
    }

    #[test]
    fn an_item_that_is_read_by_itself_stands_under_the_same() {
        let lines = [
            "- [ ] a\n",
            "* [x] b\n",
            "- API\n",
            "Words.\n",
            "\n",
            "# Pending\n",
            "## H\n",
            "  more\n",
        ];
        for number in 0..lines.len().pow(4) {
            let text: String = (0..4)
                .map(|at| lines[number / lines.len().pow(at) % lines.len()])
                .collect();
            let ((whole, _), outlined) = (parse(&text), open(&text));
            assert_eq!(outlined.prose(), whole.prose(), "{text:?}");
            for (at, item) in whole.items().iter().enumerate() {
                assert_eq!(
                    outlined.around(outlined.item(at)),
                    whole.around(item),
                    "{text:?}, {at}"
                );
            }
        }
    }

    #[test]
    fn the_lanes_of_a_board_tell_an_agent_nothing() {
        let (document, _) = parse("# Shop\n\n## Pending\n\nTake one.\n\n- [ ] T-1: one\n");
        assert_eq!(
            (document.around(document.item(0)), document.prose()),
            (String::new(), String::new())
        );
    }
}
