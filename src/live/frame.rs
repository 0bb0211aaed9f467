//! Draws a screen to the cells of the terminal. Pure.

use ratatui::buffer::Buffer;
use ratatui::crossterm::style::ContentStyle;
use ratatui::layout::{Position, Rect};
use ratatui::prelude::IntoCrossterm;
use ratatui::style::{Modifier, Style};
use tavern_core::task::Status;
use unicode_width::UnicodeWidthStr;

use crate::format;

use super::allowed_actions::Offers;
use super::rows::SceneRow;
use super::screen::{KEYS, OpenPage, PageKind, Screen};
use super::style::{Look, Tone};

/// The cells, and the cursor while text is typed.
pub struct Picture {
    pub cells: Buffer,
    pub cursor: Option<Position>,
}

/// The maximal number of lines of a message.
const MOST_SAID: usize = 4;

/// Returns the rows for the list or a page on a terminal of this height: all but the first and the last line.
pub fn room(height: u16) -> usize {
    usize::from(height.saturating_sub(2))
}

/// The minimal width for a panel beside the list. It shows the open page, else a preview of the chosen row.
const WIDE: u16 = 160;

/// Returns true if there is room for the panel.
pub fn has_panel(width: u16) -> bool {
    width >= WIDE
}

/// Returns the rows for an open page on a terminal of this size; a page in a panel has a title.
pub fn page_room(area: Rect) -> usize {
    if has_panel(area.width) {
        room(area.height).saturating_sub(1)
    } else {
        room(area.height)
    }
}

/// Draws `screen` for a terminal of this size.
pub fn picture(screen: &Screen, area: Rect, look: Look) -> Picture {
    let mut pen = Pen {
        cells: Buffer::empty(area),
        look,
    };
    let room = room(area.height);
    let is_help = screen
        .page
        .as_ref()
        .is_some_and(|page| page.kind == PageKind::Help);
    let has_panel = has_panel(area.width) && !is_help;
    let head = screen
        .page
        .as_ref()
        .filter(|_| !has_panel)
        .map_or(&screen.scene.head, |page| &page.title);
    pen.write(0, 0, &format!("tavern · {head}"), look.style(Tone::Heading));
    match &screen.page {
        _ if has_panel => pen.list_and_panel(screen, room),
        Some(page) => pen.page(page, room, 1),
        None => pen.list(screen, room),
    }
    let cursor = pen.foot(screen, area);
    Picture {
        cells: pen.cells,
        cursor,
    }
}

/// Returns a row as a line of `width` cells, with its colours, for a terminal in normal mode.
pub fn line_of(row: &SceneRow, width: usize, look: Look) -> String {
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let mut pen = Pen {
        cells: Buffer::empty(Rect::new(0, 0, width, 1)),
        look,
    };
    pen.row(0, row, None);
    let (mut shown, mut x) = (String::new(), 0);
    while x < width {
        let symbol = pen.cells[(x, 0)].symbol();
        shown.push_str(symbol);
        // A wide character also takes the next cell.
        x += u16::try_from(symbol.width().max(1)).unwrap_or(1);
    }
    let style: ContentStyle = look.style(row.tone).into_crossterm();
    style.apply(shown.trim_end()).to_string()
}

struct Pen {
    cells: Buffer,
    look: Look,
}

impl Pen {
    /// Writes from a cell on, as far as there is room; returns the column after it.
    fn write(&mut self, column: usize, row: usize, text: &str, style: Style) -> usize {
        let area = self.cells.area;
        let (Ok(x), Ok(y)) = (u16::try_from(column), u16::try_from(row)) else {
            return column;
        };
        if x >= area.width || y >= area.height {
            return column;
        }
        let (end, _) = self.cells.set_stringn(
            x,
            y,
            self.look.spelt(text),
            usize::from(area.width - x),
            style,
        );
        usize::from(end)
    }

    fn width(&self) -> usize {
        usize::from(self.cells.area.width)
    }

    /// Draws the list in the left half. The right half shows the open page, which then has the keys, else a
    /// preview.
    fn list_and_panel(&mut self, screen: &Screen, room: usize) {
        let area = self.cells.area;
        let width = area.width / 2 - 2;
        let side = |width: u16| Pen {
            cells: Buffer::empty(Rect::new(0, 0, width, area.height)),
            look: self.look,
        };
        let (mut list, mut panel) = (side(area.width - width - 3), side(width));
        list.list(screen, room);
        if let Some(page) = screen.shown() {
            let tone = if screen.page.is_some() {
                Tone::Asks
            } else {
                Tone::Heading
            };
            panel.write(0, 1, &page.title, self.look.style(tone));
            panel.page(page, room.saturating_sub(1), 2);
        }
        self.paste(&list.cells, 0);
        self.paste(&panel.cells, area.width - width);
        for row in 1..=room {
            self.write(
                usize::from(area.width - width - 2),
                row,
                "│",
                self.look.style(Tone::Faint),
            );
        }
    }

    /// Copies all but the first and the last row of `cells`, from a column on.
    fn paste(&mut self, cells: &Buffer, column: u16) {
        for y in 1..cells.area.height.saturating_sub(1) {
            for x in 0..cells.area.width {
                self.cells[(column + x, y)].clone_from(&cells[(x, y)]);
            }
        }
    }

    /// Draws the rows around the chosen one.
    fn list(&mut self, screen: &Screen, room: usize) {
        let rows = &screen.scene.rows;
        for (place, (at, row)) in rows
            .iter()
            .enumerate()
            .skip(first_of(screen, room))
            .take(room)
            .enumerate()
        {
            self.row(
                place + 1,
                row,
                (at == screen.chosen && row.subject.is_some()).then_some(Modifier::REVERSED),
            );
        }
        if rows.is_empty() {
            self.write(
                2,
                1,
                "no items yet; add one: tavern add \"…\"",
                Style::new(),
            );
        }
    }

    fn row(&mut self, place: usize, row: &SceneRow, chosen: Option<Modifier>) {
        let style = self
            .look
            .style(row.tone)
            .add_modifier(chosen.unwrap_or_default());
        if chosen.is_some() {
            self.write(0, place, &" ".repeat(self.width()), style);
        }
        let start = self.write(0, place, &row.columns, style);
        let room = self.width().saturating_sub(start);
        let mark = if row.mark.is_empty() {
            String::new()
        } else {
            format!(" ({})", row.mark)
        };
        let words = fitted(&row.words, room.saturating_sub(mark.width()).max(room / 2));
        let end = self.write(start, place, &words, style);
        let mark = fitted(&mark, self.width().saturating_sub(end));
        let faint = if chosen.is_some() || row.tone != Tone::Plain {
            style
        } else {
            self.look.style(Tone::Faint)
        };
        self.write(end, place, &mark, faint);
    }

    /// Draws as much of a page as fits, from a row on.
    fn page(&mut self, page: &OpenPage, room: usize, row: usize) {
        if page.kind == PageKind::Help {
            for (place, (keys, does)) in KEYS.iter().enumerate().take(room) {
                self.write(2, place + 1, keys, self.look.style(Tone::Heading));
                self.write(12, place + 1, does, Style::new());
            }
            return;
        }
        let first = page.first(room);
        for (place, (text, tone)) in page.lines.iter().skip(first).take(room).enumerate() {
            let text = fitted(text, self.width());
            self.write(0, place + row, &text, self.look.style(*tone));
        }
    }

    /// Draws a message that ends in the last line, over other rows if needed.
    fn say(&mut self, notice: &str, tone: Tone, last: usize) {
        let folded = format::fold(Some(self.width()), notice);
        let lines: Vec<&str> = folded.lines().take(MOST_SAID.min(last)).collect();
        for (place, line) in lines.iter().enumerate() {
            let (row, style) = (last + 1 + place - lines.len(), self.look.style(tone));
            self.write(0, row, &" ".repeat(self.width()), Style::new());
            self.write(0, row, &fitted(line, self.width()), style);
        }
    }

    /// Draws the last line: the typed text, the message, or the available keys.
    fn foot(&mut self, screen: &Screen, area: Rect) -> Option<Position> {
        let row = usize::from(area.height.checked_sub(1).filter(|row| *row > 0)?);
        if let Some(typing) = &screen.typing {
            let (shown, cursor) = typing.shown(self.width());
            self.write(0, row, &shown, self.look.style(Tone::Asks));
            let column = u16::try_from(cursor)
                .unwrap_or(u16::MAX)
                .min(area.width.saturating_sub(1));
            return Some(Position::new(column, area.height - 1));
        }
        if let Some((notice, tone)) = &screen.notice {
            self.say(notice, *tone, row);
            return None;
        }
        let mut keys = match &screen.page {
            Some(page) if page.kind == PageKind::Help => vec!["Esc back"],
            Some(_) => vec!["Esc back", "? keys"],
            None => vec!["? keys", "q out", "Enter open"],
        };
        if screen
            .subject()
            .is_some_and(|subject| !subject.name.is_empty())
        {
            let Offers {
                approve,
                reject,
                release,
            } = &screen.offers;
            let offered = [
                ("y approve", approve),
                ("x reject", reject),
                ("r release", release),
            ];
            keys.extend(["s stream", "d diff", "a answer"]);
            let is_dead = screen
                .subject()
                .is_some_and(|subject| subject.status == Some(Status::Dead));
            keys.extend(is_dead.then_some("r revive"));
            keys.extend(
                offered
                    .iter()
                    .filter(|(_, may)| may.is_ok())
                    .map(|(key, _)| key),
            );
        }
        let faint = self.look.style(Tone::Faint);
        let end = self.write(0, row, &fitted(&keys.join(" · "), self.width()), faint);
        if let Some(page) = &screen.page {
            let (room, all) = (page_room(area), page.lines.len());
            let place = format!("{}/{all}", (page.first(room) + room).min(all));
            let start = self.width().saturating_sub(place.width());
            if page.kind != PageKind::Help && start > end {
                self.write(start, row, &place, faint);
            }
        }
        None
    }
}

/// Returns the first shown row of the list. The chosen row is always shown, and the top of the list if
/// possible.
fn first_of(screen: &Screen, room: usize) -> usize {
    let rows = screen.scene.rows.len();
    if screen.chosen + 1 < room {
        0
    } else {
        (screen.chosen + 1 + room / 3)
            .saturating_sub(room)
            .min(rows.saturating_sub(room))
    }
}

/// Cuts text to at most `most` cells, and marks the cut.
fn fitted(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let (mut shown, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += unicode_width::UnicodeWidthChar::width(c).unwrap_or_default();
        if used > most {
            break;
        }
        shown.push(c);
    }
    if most == 0 {
        String::new()
    } else {
        shown + "…"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::keys::Key;
    use crate::live::rows::{Scene, Subject};
    use crate::live::style::{Colours, Signs};

    const PLAIN: Look = Look {
        colours: Colours::None,
        signs: Signs::Unicode,
    };

    fn text(cells: &Buffer) -> Vec<String> {
        let line = |y| {
            let (mut line, mut x) = (String::new(), 0);
            while x < cells.area.width {
                let symbol = cells[(x, y)].symbol();
                line.push_str(symbol);
                // A wide one takes the next cell, too.
                x += u16::try_from(symbol.width().max(1)).expect("it is small");
            }
            line.trim_end().to_owned()
        };
        (0..cells.area.height).map(line).collect()
    }

    fn shown(screen: &Screen, width: u16, height: u16) -> Vec<String> {
        text(&picture(screen, Rect::new(0, 0, width, height), PLAIN).cells)
    }

    fn row(number: usize, words: &str) -> SceneRow {
        let subject = Subject {
            name: format!("T-{number}"),
            ..Subject::default()
        };
        SceneRow {
            key: format!("item T-{number}"),
            columns: format!("  T-{number:<4} "),
            words: words.to_owned(),
            mark: "ready".to_owned(),
            tone: Tone::Plain,
            subject: Some(subject),
        }
    }

    fn screen(rows: Vec<SceneRow>, height: u16) -> Screen {
        let mut screen = Screen {
            room: room(height),
            ..Screen::default()
        };
        screen.update(Scene {
            head: "no agent works".to_owned(),
            rows,
            has_seconds: false,
        });
        screen
    }

    #[test]
    fn a_row_is_cut_where_there_is_no_room() {
        let screen = screen(
            vec![
                row(1, &"x".repeat(60)),
                row(2, "short"),
                row(3, &"漢".repeat(40)),
            ],
            6,
        );
        let lines = shown(&screen, 40, 6);
        assert_eq!(lines[0], "tavern · no agent works");
        assert_eq!(lines[1], format!("  T-1    {}… (ready)", "x".repeat(22)));
        assert_eq!(lines[2], "  T-2    short (ready)");
        assert!(lines.iter().all(|line| line.width() <= 40), "{lines:#?}");
    }

    #[test]
    fn the_chosen_row_is_always_shown() {
        for height in [3, 5, 24] {
            let mut screen = screen((0..200).map(|number| row(number, "x")).collect(), height);
            for _ in 0..200 {
                let lines = shown(&screen, 30, height).join("\n");
                let name = format!("T-{:<4} ", screen.chosen);
                assert!(lines.contains(&name), "{height}: {name} in\n{lines}");
                screen.press(Key::Down);
            }
        }
    }

    #[test]
    fn no_size_is_too_small() {
        let mut screen = screen((0..20).map(|number| row(number, "漢字 x")).collect(), 24);
        for width in [0, 1, 2, 9, 80] {
            for height in [0, 1, 2, 3, 24] {
                shown(&screen, width, height);
            }
        }
        screen.press(Key::Char('a'));
        shown(&screen, 3, 2);
    }

    #[test]
    fn a_wide_terminal_shows_what_is_chosen_beside_the_list() {
        let mut screen = screen(vec![row(1, &"x".repeat(200)), row(2, "short")], 12);
        let lines = (0..30)
            .map(|number| (format!("line {number} {}", "漢".repeat(60)), Tone::Plain))
            .collect();
        let (subject, title) = (Subject::default(), "T-1".to_owned());
        let page = OpenPage {
            kind: PageKind::Item,
            subject,
            title,
            lines,
            top: 0,
            is_followed: false,
        };
        screen.beside = Some(page);
        let wide = shown(&screen, 160, 12);
        assert!(
            wide[1].starts_with("  T-1    xxx") && wide[1].ends_with("│ T-1"),
            "{wide:#?}"
        );
        assert!(
            wide[2].starts_with("  T-2    short") && wide[2].contains("│ line 0 漢"),
            "{wide:#?}"
        );
        assert!(
            wide[10].contains("│ line 8 ") && !wide[11].contains("line"),
            "{wide:#?}"
        );
        assert!(wide.iter().all(|line| line.width() <= 160), "{wide:#?}");
        assert!(
            shown(&screen, 159, 12)
                .iter()
                .all(|line| !line.contains("line 0"))
        );
        screen.page = screen.beside.take();
        assert!(
            shown(&screen, 200, 12)[1].starts_with("  T-1    xxx"),
            "the list stays"
        );
        assert!(shown(&screen, 159, 12)[1].starts_with("line 0"));
    }

    /// 500 items and 50 agents; their seconds differ each time.
    #[test]
    fn a_large_board_is_drawn_in_time() {
        let words = "Say at length, 漢字 and all, what is to be done here ".repeat(5);
        let scene = |second: usize| {
            let rows = (0..550)
                .map(|number| row(number, &format!("{second} {words}")))
                .collect();
            Scene {
                head: String::new(),
                rows,
                has_seconds: true,
            }
        };
        let mut screen = screen(scene(0).rows, 60);
        let mut shown = Buffer::empty(Rect::new(0, 0, 200, 60));
        let mut redraw = |second: usize| {
            let scene = scene(second);
            let began = tavern_sys::clock::instant();
            screen.update(scene);
            let cells = picture(&screen, shown.area, PLAIN).cells;
            assert!(shown.diff(&cells).len() > 50);
            shown = cells;
            began.elapsed()
        };
        // Takes the best of some, since the machine is shared. An unoptimised build takes several times as long.
        let took = (1..20).map(&mut redraw).min().expect("there are some");
        let most =
            std::time::Duration::from_millis(16) * if cfg!(debug_assertions) { 5 } else { 1 };
        assert!(took < most, "{took:?}");
    }

    #[test]
    fn the_same_screen_is_the_same_picture() {
        let screen = screen((0..20).map(|number| row(number, "x")).collect(), 24);
        let area = Rect::new(0, 0, 80, 24);
        let first = picture(&screen, area, PLAIN).cells;
        assert!(first.diff(&picture(&screen, area, PLAIN).cells).is_empty());
    }
}
