//! The state of the screen, and how keys change it. Pure: actions are returned as a [`ScreenEffect`].

use std::collections::BTreeMap;

use super::allowed_actions::Offers;
use super::keys::Key;
use super::rows::{Scene, SceneRow, Subject};
use super::style::Tone;
use super::typed_line::{Asked, TypedLine};
use tavern_core::task::Status;

/// The list, and the page opened over it.
#[derive(Debug, Default)]
pub struct Screen {
    pub scene: Scene,
    /// The chosen row.
    pub chosen: usize,
    pub page: Option<OpenPage>,
    /// The preview of the chosen row, if it fits beside the list.
    pub beside: Option<OpenPage>,
    /// The text prompt.
    pub typing: Option<TypedLine>,
    /// Unfinished texts, by prompt.
    pub drafts: BTreeMap<String, String>,
    /// The allowed actions on the chosen item.
    pub offers: Offers,
    /// The last message, in one line.
    pub notice: Option<(String, Tone)>,
    /// Rows of the list, and of an open page.
    pub room: usize,
    pub page_room: usize,
}

/// A page opened over the list.
#[derive(Debug)]
pub struct OpenPage {
    pub kind: PageKind,
    pub subject: Subject,
    pub title: String,
    pub lines: Vec<(String, Tone)>,
    /// The first line that is shown.
    pub top: usize,
    /// Whether it stays at its end as lines are added.
    pub is_followed: bool,
}

/// The content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    Item,
    Stream,
    Diff,
    Help,
}

/// An action for the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenEffect {
    Quit,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Stop,
    /// Redraw everything.
    Redraw,
    Open(PageKind, Subject),
    /// Runs another of Tavern's programs with these arguments; the prompt's text is kept until it succeeds.
    Verb(Vec<String>, String),
    /// The same, with the terminal.
    Attended(Vec<String>),
    /// A shell in the worktree of the item.
    Shell(Subject),
}

/// The keys and their functions.
pub const KEYS: [(&str, &str); 16] = [
    (
        "Up Down",
        "choose, or scroll; also k j, PgUp PgDn, Home End, g G",
    ),
    (
        "Enter",
        "open: the item, the output of the agent's run, the queue's items",
    ),
    ("n", "the next item that needs you"),
    ("s", "the output of its run, live"),
    ("d", "the changes of its commits"),
    ("a", "answer its question"),
    ("t", "send its agent a message"),
    ("y", "approve it: allow it to start, or to be merged"),
    ("x", "reject it, with a reason"),
    ("p", "pause its run; resume a waiting item"),
    (
        "r",
        "release it: end back-off or waiting, start a draft, revive a dead item",
    ),
    ("!", "a shell in its worktree"),
    ("e", "edit the item, or the queue, in your editor"),
    ("Ctrl-L", "redraw the screen"),
    ("Esc q", "back; q also leaves"),
    ("?", "this page"),
];

impl Screen {
    /// Shows `scene`. The chosen row stays chosen if it still exists; after a need that is met the next need is, else
    /// another row of its item. Open pages and prompts follow their item, even if its name changed.
    pub fn update(&mut self, scene: Scene) {
        self.follow_title(&scene);
        let before = self.scene.rows.get(self.chosen).cloned();
        let task = before
            .as_ref()
            .and_then(|row| row.subject.as_ref()?.task.clone());
        let position = |is_same: &dyn Fn(&SceneRow) -> bool| scene.rows.iter().position(is_same);
        let is_of_task = |row: &SceneRow| {
            task.is_some() && row.subject.as_ref().is_some_and(|it| it.task == task)
        };
        let same = before
            .as_ref()
            .and_then(|before| position(&|row| row.key == before.key));
        let of_need = before.as_ref().filter(|row| same.is_none() && is_need(row));
        let same = same
            .or_else(|| of_need.and_then(|_| next_need(&scene.rows, self.chosen)))
            .or_else(|| position(&is_of_task));
        // It got an ID.
        let titled = before
            .as_ref()
            .and_then(|row| row.subject.as_ref())
            .filter(|it| !it.title.is_empty());
        let same = same.or_else(|| position(&|row| titled.is_some_and(|it| is_titled(row, it))));
        let gone = before
            .and_then(|row| row.subject)
            .filter(|it| same.is_none() && !it.name.is_empty());
        // An action's message has priority.
        if let Some(gone) = gone.filter(|_| self.notice.is_none()) {
            self.notice = Some((
                format!("{} is no longer listed, so another is chosen", gone.name),
                Tone::Plain,
            ));
        }
        self.scene = scene;
        self.chosen = same.unwrap_or(self.chosen);
        if !self.is_choice(self.chosen) {
            self.chosen = self.nearest(self.chosen);
        }
    }

    /// Returns the open page, or else the preview.
    pub fn shown(&self) -> Option<&OpenPage> {
        self.page.as_ref().or(self.beside.as_ref())
    }

    pub fn shown_mut(&mut self) -> Option<&mut OpenPage> {
        self.page.as_mut().or(self.beside.as_mut())
    }

    /// Follows an item without an ID by its title: its name is its line, which changes with edits above it.
    fn follow_title(&mut self, scene: &Scene) {
        let Some(subject) = self
            .subject()
            .filter(|subject| !subject.title.is_empty())
            .cloned()
        else {
            return;
        };
        let is_same = |row: &&SceneRow| {
            row.subject
                .as_ref()
                .is_some_and(|it| it.name == subject.name && it.title == subject.title)
        };
        let now = scene
            .rows
            .iter()
            .find(is_same)
            .or_else(|| scene.rows.iter().find(|row| is_titled(row, &subject)));
        let Some(now) = now.and_then(|row| row.subject.clone()) else {
            // Another item may be in its line by now.
            if let Some(typing) = self.typing.take() {
                self.keep(typing);
                self.notice = Some((format!("{} is no longer listed", subject.name), Tone::Plain));
            }
            return;
        };
        self.typing
            .iter_mut()
            .for_each(|typing| typing.rename(&now.name));
        self.page
            .iter_mut()
            .for_each(|page| page.subject = now.clone());
    }

    /// Keeps a typed text for the next time of the same prompt.
    fn keep(&mut self, typing: TypedLine) {
        let (label, text) = (typing.label(), typing.text);
        if text.trim().is_empty() {
            self.drafts.remove(&label)
        } else {
            self.drafts.insert(label, text)
        };
    }

    /// Returns the target of keys.
    pub fn subject(&self) -> Option<&Subject> {
        match &self.page {
            Some(page) => Some(&page.subject),
            None => self
                .scene
                .rows
                .get(self.chosen)
                .and_then(|row| row.subject.as_ref()),
        }
    }

    /// Handles a key, and returns the action that the caller should do.
    pub fn press(&mut self, key: Key) -> Option<ScreenEffect> {
        if let Key::Control('c') = key {
            return Some(ScreenEffect::Interrupt);
        }
        if let Key::Control('z') = key {
            return Some(ScreenEffect::Stop);
        }
        if let Some(typing) = &mut self.typing {
            return match typing.press(key) {
                Asked::More => None,
                Asked::Nothing => {
                    self.typing
                        .take()
                        .into_iter()
                        .for_each(|typing| self.keep(typing));
                    None
                }
                Asked::For(words) => {
                    let typing = self.typing.take()?;
                    let label = typing.label();
                    self.keep(typing);
                    Some(ScreenEffect::Verb(words, label))
                }
            };
        }
        self.notice = None;
        if key == Key::Char('n') && self.page.is_none() {
            match next_need(&self.scene.rows, self.chosen + 1) {
                Some(next) => self.chosen = next,
                None => self.notice = Some(("nothing needs you".to_owned(), Tone::Plain)),
            }
            return None;
        }
        if let Some(by) = self.step(key) {
            self.go(by);
            return None;
        }
        match key {
            Key::Control('l') => Some(ScreenEffect::Redraw),
            // Pressing it once too often should do no harm.
            Key::Escape => {
                self.page = None;
                None
            }
            Key::Char('q') => match self.page.take() {
                Some(_) => None,
                None => Some(ScreenEffect::Quit),
            },
            Key::Char('?') => Some(ScreenEffect::Open(PageKind::Help, Subject::default())),
            key => self.act(key),
        }
    }

    /// Handles a key for the chosen row.
    fn act(&mut self, key: Key) -> Option<ScreenEffect> {
        let subject = self.subject()?.clone();
        let is_agent =
            self.page.is_none() && self.scene.rows[self.chosen].key.starts_with("agent ");
        if subject.name.is_empty() {
            return match key {
                Key::Char('e') if !subject.queue.is_empty() => Some(edit(&subject.queue)),
                Key::Enter => {
                    let is_first = |row: &SceneRow| {
                        row.key.starts_with("item ")
                            && row
                                .subject
                                .as_ref()
                                .is_some_and(|item| item.queue == subject.queue)
                    };
                    self.chosen = self
                        .scene
                        .rows
                        .iter()
                        .position(is_first)
                        .unwrap_or(self.chosen);
                    None
                }
                Key::Char(c)
                    if KEYS.iter().any(|(key, _)| key.chars().eq([c]))
                        && !subject.queue.is_empty() =>
                {
                    let words = format!(
                        "{c} needs an item; on a queue Enter goes to its items, and e edits it"
                    );
                    self.notice = Some((words, Tone::Plain));
                    None
                }
                _ => None,
            };
        }
        let name = || subject.name.clone();
        match key {
            Key::Enter if is_agent && subject.run.is_some() => {
                return Some(ScreenEffect::Open(PageKind::Stream, subject));
            }
            Key::Enter => return Some(ScreenEffect::Open(PageKind::Item, subject)),
            Key::Char('s') => return Some(ScreenEffect::Open(PageKind::Stream, subject)),
            Key::Char('d') => return Some(ScreenEffect::Open(PageKind::Diff, subject)),
            Key::Char('!') => return Some(ScreenEffect::Shell(subject)),
            Key::Char('e') => return Some(edit(&subject.name)),
            _ => {}
        }
        let offers = &self.offers;
        let (typing, may) = match key {
            Key::Char('a' | 't') => (TypedLine::tell(&name()), &Ok(())),
            Key::Char('y') => (TypedLine::approve(&name()), &offers.approve),
            Key::Char('x') => (TypedLine::reject(&name()), &offers.reject),
            Key::Char('p') if subject.status == Some(Status::Waiting) => {
                (TypedLine::resume(&name()), &Ok(()))
            }
            Key::Char('p') => (TypedLine::pause(&name()), &Ok(())),
            Key::Char('r') if subject.status == Some(Status::Dead) => {
                (TypedLine::revive(&name()), &Ok(()))
            }
            Key::Char('r') => (TypedLine::release(&name()), &offers.release),
            _ => return None,
        };
        // Checked before the user types a text in vain.
        if let Err(why) = may {
            self.notice = Some((why.clone(), Tone::Plain));
            return None;
        }
        let text = self
            .drafts
            .get(&typing.label())
            .cloned()
            .unwrap_or_default();
        self.typing = Some(typing.with(text));
        None
    }

    /// Returns the preview for the chosen row: the run's output if it is an agent at work.
    pub fn preview(&self) -> Option<(PageKind, &Subject)> {
        let row = self
            .scene
            .rows
            .get(self.chosen)
            .filter(|_| self.page.is_none())?;
        let subject = row
            .subject
            .as_ref()
            .filter(|subject| !subject.name.is_empty())?;
        let is_run = row.key.starts_with("agent ") && subject.run.is_some();
        Some((
            if is_run {
                PageKind::Stream
            } else {
                PageKind::Item
            },
            subject,
        ))
    }

    /// Returns how many rows the key moves down; negative is up.
    fn step(&self, key: Key) -> Option<isize> {
        let room = if self.page.is_some() {
            self.page_room
        } else {
            self.room
        };
        let a_screen = room.saturating_sub(1).max(1).cast_signed();
        Some(match key {
            Key::Up | Key::Char('k') => -1,
            Key::Down | Key::Char('j') => 1,
            Key::PageUp => -a_screen,
            Key::PageDown | Key::Char(' ') => a_screen,
            Key::Home | Key::Char('g') => isize::MIN / 2,
            Key::End | Key::Char('G') => isize::MAX / 2,
            _ => return None,
        })
    }

    fn go(&mut self, by: isize) {
        if let Some(page) = &mut self.page {
            let last = page.lines.len().saturating_sub(self.page_room);
            page.top = page
                .first(self.page_room)
                .saturating_add_signed(by)
                .min(last);
            page.is_followed = page.kind == PageKind::Stream && page.top == last;
            return;
        }
        let wanted = self
            .chosen
            .saturating_add_signed(by)
            .min(self.scene.rows.len().saturating_sub(1));
        let rows = 0..self.scene.rows.len();
        let next = if by < 0 {
            rows.clone()
                .rev()
                .find(|at| *at <= wanted && self.is_choice(*at))
        } else {
            rows.clone().find(|at| *at >= wanted && self.is_choice(*at))
        };
        self.chosen = next.unwrap_or_else(|| self.nearest(wanted));
    }

    fn is_choice(&self, at: usize) -> bool {
        self.scene
            .rows
            .get(at)
            .is_some_and(|row: &SceneRow| row.subject.is_some())
    }

    /// Returns the row nearest to `at` that can be chosen.
    fn nearest(&self, at: usize) -> usize {
        let choices = (0..self.scene.rows.len()).filter(|row| self.is_choice(*row));
        choices
            .min_by_key(|row| row.abs_diff(at))
            .unwrap_or_default()
    }
}

fn is_need(row: &SceneRow) -> bool {
    row.key.starts_with("need ")
}

/// Returns the first need from row `at` on, else the first of all.
fn next_need(rows: &[SceneRow], at: usize) -> Option<usize> {
    let needs = || (0..rows.len()).filter(|row| is_need(&rows[*row]));
    needs().find(|row| *row >= at).or_else(|| needs().next())
}

/// Returns true if the row is an item with the title of `subject`, which has no ID.
fn is_titled(row: &SceneRow, subject: &Subject) -> bool {
    let is_same = |it: &Subject| it.queue == subject.queue && row.words == subject.title;
    row.key.starts_with("item ") && row.subject.as_ref().is_some_and(is_same)
}

fn edit(what: &str) -> ScreenEffect {
    ScreenEffect::Attended(vec!["edit".to_owned(), what.to_owned()])
}

impl OpenPage {
    /// Appends lines, and drops the oldest above the maximum.
    pub fn follow(&mut self, more: Vec<(String, Tone)>) {
        const MOST: usize = 5000;
        self.lines.extend(more);
        let left_out = self.lines.len().saturating_sub(MOST);
        self.lines.drain(..left_out);
        self.top = self.top.saturating_sub(left_out);
    }

    /// Returns the first line that is shown with `room` rows.
    pub fn first(&self, room: usize) -> usize {
        let last = self.lines.len().saturating_sub(room);
        if self.is_followed {
            last
        } else {
            self.top.min(last)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, name: &str) -> SceneRow {
        let subject = Subject {
            name: name.to_owned(),
            ..Subject::default()
        };
        let subject = (!name.is_empty()).then_some(subject);
        SceneRow {
            key: key.to_owned(),
            subject,
            ..SceneRow::default()
        }
    }

    fn screen(rows: Vec<SceneRow>) -> Screen {
        let mut screen = Screen {
            room: 10,
            page_room: 10,
            ..Screen::default()
        };
        screen.update(Scene {
            rows,
            ..Scene::default()
        });
        screen
    }

    fn typed(screen: &mut Screen, text: &str) {
        for c in text.chars() {
            assert_eq!(screen.press(Key::Char(c)), None);
        }
    }

    #[test]
    fn headings_are_passed_over_and_a_choice_stays() {
        let mut shown = screen(vec![
            row("heading", ""),
            row("a", "T-1"),
            row("heading", ""),
            row("b", "T-2"),
        ]);
        assert_eq!(shown.chosen, 1);
        shown.press(Key::Down);
        assert_eq!(shown.chosen, 3);
        shown.press(Key::Down);
        assert_eq!(shown.chosen, 3);
        shown.press(Key::Up);
        assert_eq!(shown.chosen, 1);
        shown.press(Key::End);
        assert_eq!(shown.chosen, 3);
        let rows = vec![row("heading", ""), row("b", "T-2"), row("c", "T-3")];
        shown.update(Scene {
            rows,
            ..Scene::default()
        });
        assert_eq!(
            shown.subject().map(|subject| subject.name.as_str()),
            Some("T-2")
        );
        shown.update(Scene::default());
        assert_eq!(shown.press(Key::Enter), None);
    }

    #[test]
    fn who_moves_to_another_row_stays_chosen_and_who_is_gone_is_told() {
        let of = |key: &str, name: &str| {
            let mut row = row(key, name);
            row.subject.as_mut().expect("it has one").task = name.parse().ok();
            row
        };
        let mut shown = screen(vec![
            of("agent Sam", "T-1"),
            of("item T-2", "T-2"),
            of("item T-3", "T-3"),
        ]);
        let update = |shown: &mut Screen, rows| {
            shown.update(Scene {
                rows,
                ..Scene::default()
            });
            shown.subject().map(|subject| subject.name.clone())
        };
        let rows = vec![
            of("item T-2", "T-2"),
            of("need T-1", "T-1"),
            of("item T-3", "T-3"),
        ];
        assert_eq!(update(&mut shown, rows).as_deref(), Some("T-1"));
        assert_eq!(shown.notice, None);
        assert_eq!(
            update(&mut shown, vec![of("item T-2", "T-2")]).as_deref(),
            Some("T-2")
        );
        assert_eq!(
            shown.notice.map(|(words, _)| words),
            Some("T-1 is no longer listed, so another is chosen".to_owned())
        );
    }

    #[test]
    fn a_need_that_is_met_is_followed_by_the_next_one() {
        let rows = |keys: &[(&str, &str)]| {
            let of = |(key, name): &(&str, &str)| {
                let mut row = row(key, name);
                row.subject.as_mut().expect("it has one").task = name.parse().ok();
                row
            };
            keys.iter().map(of).collect::<Vec<_>>()
        };
        let items = [("item T-1", "T-1"), ("item T-2", "T-2")];
        let mut shown = screen(rows(
            &[&[("need T-1", "T-1"), ("need T-2", "T-2")][..], &items].concat(),
        ));
        shown.press(Key::Char('n'));
        assert_eq!(shown.chosen, 1);
        shown.press(Key::Char('n'));
        assert_eq!(shown.chosen, 0, "and from the last to the first");
        let scene = |rows| Scene {
            rows,
            ..Scene::default()
        };
        shown.update(scene(rows(&[&[("need T-2", "T-2")][..], &items].concat())));
        assert_eq!(shown.scene.rows[shown.chosen].key, "need T-2");
        // Where nothing needs a person, the item stays chosen.
        shown.update(scene(rows(&items)));
        assert_eq!(shown.scene.rows[shown.chosen].key, "item T-2");
        shown.press(Key::Char('n'));
        assert_eq!(
            shown.notice.map(|(words, _)| words).as_deref(),
            Some("nothing needs you")
        );
    }

    #[test]
    fn an_answer_is_typed_and_sent_as_it_stands() {
        let mut shown = screen(vec![row("a", "T-1")]);
        shown.press(Key::Char('a'));
        typed(&mut shown, "-q no");
        shown.press(Key::Backspace);
        let words = ["tell", "T-1", "--", "-q n"].map(str::to_owned).into();
        assert_eq!(
            shown.press(Key::Enter),
            Some(ScreenEffect::Verb(words, "tell T-1".to_owned()))
        );
        assert!(shown.typing.is_none());
        shown.press(Key::Char('x'));
        assert_eq!(shown.press(Key::Enter), None);
        assert!(shown.typing.is_some(), "a rejection says why");
        assert_eq!(shown.press(Key::Escape), None);
        assert!(shown.typing.is_none());
    }

    #[test]
    fn nothing_is_approved_by_one_key() {
        let mut shown = screen(vec![row("a", "T-1")]);
        assert_eq!(shown.press(Key::Char('y')), None);
        let Some(ScreenEffect::Verb(words, _)) = shown.press(Key::Enter) else {
            panic!("it is approved")
        };
        assert_eq!(words, ["report", "T-1", "--approve"]);
        for key in ['y', 'r', 'p'] {
            shown.press(Key::Char(key));
            assert_eq!(shown.press(Key::Escape), None, "{key}");
            assert!(shown.typing.is_none(), "{key}");
        }
    }

    #[test]
    fn escape_leads_back_and_q_out_as_well() {
        let mut shown = screen(vec![row("a", "T-1")]);
        assert!(matches!(
            shown.press(Key::Enter),
            Some(ScreenEffect::Open(PageKind::Item, _))
        ));
        shown.page = Some(page(PageKind::Item, 30));
        assert_eq!(shown.press(Key::Escape), None);
        assert!(shown.page.is_none());
        assert_eq!(shown.press(Key::Escape), None);
        assert_eq!(shown.press(Key::Char('q')), Some(ScreenEffect::Quit));
        assert_eq!(
            shown.press(Key::Control('c')),
            Some(ScreenEffect::Interrupt)
        );
    }

    #[test]
    fn what_would_be_refused_is_not_asked_for() {
        let mut shown = screen(vec![row("a", "T-1")]);
        shown.offers.approve = Err("it is not in review".to_owned());
        assert_eq!(shown.press(Key::Char('y')), None);
        assert!(shown.typing.is_none());
        assert_eq!(
            shown.notice.take().map(|(words, _)| words).as_deref(),
            Some("it is not in review")
        );
        shown.press(Key::Char('r'));
        assert!(shown.typing.is_some());
        let mut shown = screen(vec![SceneRow {
            key: "queue main".to_owned(),
            subject: Some(Subject {
                queue: "main".to_owned(),
                ..Subject::default()
            }),
            ..SceneRow::default()
        }]);
        shown.press(Key::Char('y'));
        assert!(
            shown
                .notice
                .take()
                .is_some_and(|(words, _)| words.starts_with("y needs an item"))
        );
        shown.press(Key::Char('z'));
        assert_eq!(shown.notice, None);
    }

    #[test]
    fn what_was_typed_comes_back() {
        let mut shown = screen(vec![row("a", "T-1"), row("b", "T-2")]);
        shown.press(Key::Char('a'));
        typed(&mut shown, "one");
        shown.press(Key::Escape);
        shown.press(Key::Down);
        shown.press(Key::Char('t'));
        assert_eq!(
            shown.typing.as_ref().map(|line| line.text.as_str()),
            Some("")
        );
        shown.press(Key::Escape);
        shown.press(Key::Up);
        shown.press(Key::Char('t'));
        typed(&mut shown, "!");
        let Some(ScreenEffect::Verb(words, label)) = shown.press(Key::Enter) else {
            panic!("it is sent")
        };
        assert_eq!(words.last().map(String::as_str), Some("one!"));
        // Until it is known that it was done.
        assert_eq!(shown.drafts.remove(&label).as_deref(), Some("one!"));
        shown.press(Key::Char('t'));
        assert_eq!(
            shown.typing.as_ref().map(|line| line.text.as_str()),
            Some("")
        );
    }

    #[test]
    fn an_item_without_an_id_is_followed_by_its_text() {
        let of = |line: usize, title: &str, id: Option<&str>| {
            let name = id.map_or_else(|| format!("main:{line}"), str::to_owned);
            let (task, queue) = (id.and_then(|id| id.parse().ok()), "main".to_owned());
            let title_of_it = if id.is_none() {
                title.to_owned()
            } else {
                String::new()
            };
            let subject = Subject {
                name,
                title: title_of_it,
                task,
                queue,
                ..Subject::default()
            };
            let key = id.map_or_else(|| format!("item main {title}"), |id| format!("item {id}"));
            SceneRow {
                key,
                words: title.to_owned(),
                subject: Some(subject),
                ..SceneRow::default()
            }
        };
        let mut shown = screen(vec![of(1, "One", None), of(2, "Two", None)]);
        shown.press(Key::Down);
        shown.press(Key::Char('t'));
        typed(&mut shown, "hello");
        let rows = vec![of(1, "New", None), of(2, "One", None), of(3, "Two", None)];
        shown.update(Scene {
            rows,
            ..Scene::default()
        });
        assert_eq!(shown.chosen, 2);
        let Some(ScreenEffect::Verb(words, _)) = shown.press(Key::Enter) else {
            panic!("it is sent")
        };
        assert_eq!(words, ["tell", "main:3", "--", "hello"]);
        shown.page = Some(page(PageKind::Item, 1));
        shown.page.as_mut().expect("it is open").subject =
            of(3, "Two", None).subject.expect("it has one");
        shown.press(Key::Char('t'));
        // An agent took it.
        let rows = vec![of(2, "One", None), of(3, "Two", Some("T-7"))];
        shown.update(Scene {
            rows,
            ..Scene::default()
        });
        assert_eq!(
            shown.page.as_ref().map(|page| page.subject.name.as_str()),
            Some("T-7")
        );
        assert_eq!(shown.chosen, 1);
        shown.press(Key::Escape);
        shown.press(Key::Escape);
        let rows = vec![of(1, "One", None), of(3, "Two", None)];
        shown.update(Scene {
            rows,
            ..Scene::default()
        });
        shown.press(Key::Up);
        shown.press(Key::Char('t'));
        typed(&mut shown, "to one");
        shown.update(Scene {
            rows: vec![of(1, "Other", None)],
            ..Scene::default()
        });
        assert!(shown.typing.is_none(), "another stands in its line");
        assert_eq!(
            shown.drafts.get("tell main:1").map(String::as_str),
            Some("to one")
        );
    }

    fn page(kind: PageKind, lines: usize) -> OpenPage {
        let lines = (0..lines)
            .map(|number| (number.to_string(), Tone::Plain))
            .collect();
        let is_followed = kind == PageKind::Stream;
        OpenPage {
            kind,
            subject: Subject::default(),
            title: String::new(),
            lines,
            top: 0,
            is_followed,
        }
    }

    #[test]
    fn a_stream_stays_at_its_end_until_somebody_scrolls() {
        let mut shown = screen(vec![row("a", "T-1")]);
        shown.page = Some(page(PageKind::Stream, 30));
        let first = |shown: &Screen| shown.page.as_ref().map(|page| page.first(10));
        assert_eq!(first(&shown), Some(20));
        let more = || vec![("more".to_owned(), Tone::Plain)];
        shown.page.as_mut().expect("it is open").follow(more());
        assert_eq!(first(&shown), Some(21));
        shown.press(Key::Up);
        assert_eq!(first(&shown), Some(20));
        shown.press(Key::Home);
        shown.page.as_mut().expect("it is open").follow(more());
        assert_eq!(first(&shown), Some(0));
        shown.press(Key::End);
        shown.page.as_mut().expect("it is open").follow(more());
        assert_eq!(first(&shown), Some(23));
    }
}
