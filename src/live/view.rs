//! The loop of the live view: waits for events, reads the board, draws changes and runs actions.

use std::collections::HashMap;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ratatui::layout::Rect;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use crate::overview::listing::WantedItems;
use crate::overview::{Overview, agents};
use crate::status::full;
use crate::{CliError, Context, Exit, Format, diff};
use tavern_core::task::{Mode, TaskId};
use tavern_run::record::runs_of;
use tavern_run::watch::health;
use tavern_store::{Board, NamedItem, Queue};
use tavern_sys::clock;
use tavern_sys::file_watch::FileWatch;
use tavern_sys::files;
use tavern_sys::process::{Bell, Spec, attend};

use super::action::{Deeds, program};
use super::allowed_actions::Offers;
use super::frame::{has_panel, page_room, picture, room};
use super::keys::KeyReader;
use super::rows::{Scene, Subject};
use super::screen::{OpenPage, PageKind, Screen, ScreenEffect};
use super::stream::LogTail;
use super::style::{Look, Tone, can_move, line, lines};
use super::terminal::{RawTerminal, give_back};
use super::watchers::{BoardWatch, KeyWatch, Noticed, is_terminal_gone, run_watch, signals};

/// The interval of updates of seconds.
const SECOND: Duration = Duration::from_secs(1);

/// The minimal time between reads of the board.
const PAUSE: Duration = Duration::from_millis(100);

/// The minimal time between reads of a run.
const BREATH: Duration = Duration::from_millis(40);

/// The time that a shell or an editor has to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// The minimal time between reads of a diff.
const REST: Duration = Duration::from_secs(2);

/// A preview opens after this time, not for rows that the user passes.
const STILL: Duration = Duration::from_millis(80);

/// The maximal time between bytes of one key.
const REST_OF_KEY: Duration = Duration::from_millis(50);

/// Returns true if standard input and output are a terminal that can be drawn on.
pub fn can_draw(context: &Context) -> bool {
    let is_text = context.out.format() == Format::Text;
    is_text && stdin().is_terminal() && stdout().is_terminal() && can_move()
}

/// Shows the board until the user quits; only the queues with these names, if any.
pub fn run(context: &Context, names: &[String]) -> Result<Exit, CliError> {
    let board = context.board()?;
    let bell = Bell::new();
    let signals = signals(&bell)?;
    let queues = context.files(&board.clone().settled()?, names)?;
    let watch = BoardWatch::begin(&board, &queues, &bell)?;
    let mut view = LiveView::open(context, board, names, bell)?;
    let keys = KeyWatch::begin(&view.bell)?;
    view.terminal = Some(RawTerminal::take()?);
    let ended = match view.work(&watch, &keys, &signals) {
        // The terminal is gone, and no signal or key has shown it yet.
        Err(_) if is_terminal_gone() => Ok(Exit::Terminated),
        ended => ended,
    };
    drop(view.terminal.take());
    view.deeds.finish();
    ended
}

struct LiveView<'c> {
    context: &'c Context,
    board: Board,
    names: &'c [String],
    bell: Bell,
    look: Look,
    screen: Screen,
    overview: Overview,
    /// When the board was last read, how long that took, and when seconds were last updated.
    looked: Instant,
    took: Duration,
    ticked: Instant,
    deeds: Deeds,
    /// The read and the subject that the offers are for.
    offered: Option<(Instant, Option<Subject>)>,
    stream: Option<OpenStream>,
    diff: Option<OpenDiff>,
    /// When the row was chosen, and the row.
    chosen: (Instant, usize),
    terminal: Option<RawTerminal>,
}

/// The work behind the open diff.
struct OpenDiff {
    /// git's folder of its worktree, if there is one.
    folder: Option<PathBuf>,
    has_changed: Noticed,
    watch: Option<FileWatch>,
    is_stale: bool,
    /// When it was last read, and how long that took.
    read: Instant,
    took: Duration,
}

impl OpenDiff {
    /// A slow repository must not delay keys.
    fn until_look(&self) -> Duration {
        if self.is_stale {
            REST.max(self.took * 10).saturating_sub(self.read.elapsed())
        } else {
            Duration::MAX
        }
    }
}

/// The run behind the open logs.
struct OpenStream {
    folder: PathBuf,
    tail: LogTail,
    has_changed: Noticed,
    /// `None` until the folder exists.
    watch: Option<FileWatch>,
    is_stale: bool,
    followed: Instant,
}

impl OpenStream {
    fn until_look(&self) -> Duration {
        if self.is_stale {
            BREATH.saturating_sub(self.followed.elapsed())
        } else {
            Duration::MAX
        }
    }
}

impl<'c> LiveView<'c> {
    fn open(
        context: &'c Context,
        board: Board,
        names: &'c [String],
        bell: Bell,
    ) -> Result<LiveView<'c>, CliError> {
        let (now, deeds) = (clock::instant(), Deeds::new(&bell));
        let mut view = LiveView {
            context,
            board,
            names,
            bell,
            look: Look::of(context.shared.color),
            screen: Screen::default(),
            overview: Overview::default(),
            looked: now,
            took: Duration::ZERO,
            ticked: now,
            deeds,
            offered: None,
            stream: None,
            diff: None,
            chosen: (now, 0),
            terminal: None,
        };
        view.look_at_board()?;
        Ok(view)
    }

    /// Runs until a key or a signal ends it.
    fn work(
        &mut self,
        watch: &BoardWatch,
        keys: &KeyWatch,
        signals: &Receiver<i32>,
    ) -> Result<Exit, CliError> {
        let (mut reader, mut is_stale) = (KeyReader::default(), false);
        loop {
            is_stale |= watch.has_changed.take();
            if is_stale && self.until_look().is_zero() {
                is_stale = false;
                if let Err(error) = self.look_at_board() {
                    self.screen.notice = Some((line(&error.message), Tone::Bad));
                }
            }
            if self.screen.scene.has_seconds && self.ticked.elapsed() >= SECOND {
                self.tick();
            }
            for deed in self.deeds.ended() {
                self.screen.notice = Some(deed.notice);
                deed.done
                    .into_iter()
                    .for_each(|asked| drop(self.screen.drafts.remove(&asked)));
            }
            let preview = self.preview();
            self.follow();
            self.follow_diff();
            self.offer();
            self.draw()?;
            let second = if self.screen.scene.has_seconds {
                SECOND.saturating_sub(self.ticked.elapsed())
            } else {
                Duration::MAX
            };
            let look = if is_stale {
                self.until_look()
            } else {
                Duration::MAX
            };
            let stream = self
                .stream
                .as_ref()
                .map_or(Duration::MAX, OpenStream::until_look);
            let key = if reader.is_unfinished() {
                REST_OF_KEY
            } else {
                Duration::MAX
            };
            let diff = self
                .diff
                .as_ref()
                .map_or(Duration::MAX, OpenDiff::until_look);
            let has_rung = self
                .bell
                .wait(second.min(look).min(stream).min(diff).min(preview).min(key));
            for signal in signals.try_iter() {
                match signal {
                    SIGINT => return Ok(Exit::Interrupted),
                    SIGTERM | SIGHUP | SIGQUIT => return Ok(Exit::Terminated),
                    SIGTSTP => self.stop()?,
                    _ => {}
                }
            }
            let Some(bytes) = keys.read() else {
                return Ok(Exit::Terminated);
            };
            let lapsed = if has_rung { None } else { reader.lapse() };
            for key in lapsed.into_iter().chain(reader.read(&bytes)) {
                self.offer();
                match self.screen.press(key) {
                    Some(ScreenEffect::Quit) => return Ok(Exit::Done),
                    Some(ScreenEffect::Interrupt) => return Ok(Exit::Interrupted),
                    Some(ScreenEffect::Stop) => self.stop()?,
                    Some(ScreenEffect::Redraw) => {
                        self.terminal.iter_mut().try_for_each(RawTerminal::forget)?;
                    }
                    Some(ScreenEffect::Open(kind, subject)) => self.open_page(kind, subject),
                    Some(ScreenEffect::Verb(words, asked)) => {
                        let said =
                            self.deeds
                                .begin(&words, asked, self.board.dir(), self.board.root());
                        self.screen.notice = Some(said);
                    }
                    Some(ScreenEffect::Attended(words)) => {
                        let spec = program(&words, self.board.dir(), self.board.root());
                        if let Some(exit) = self.attend(spec, signals)? {
                            return Ok(exit);
                        }
                        is_stale = true;
                    }
                    Some(ScreenEffect::Shell(subject)) => {
                        if let Some(exit) = self.shell(&subject, signals)? {
                            return Ok(exit);
                        }
                        is_stale = true;
                    }
                    None => {}
                }
                self.close_unshown();
            }
        }
    }

    /// Updates the allowed actions if the board or the chosen row has changed.
    fn offer(&mut self) {
        let subject = self
            .screen
            .subject()
            .filter(|subject| !subject.name.is_empty())
            .cloned();
        if self
            .offered
            .as_ref()
            .is_some_and(|(looked, of)| *looked == self.looked && *of == subject)
        {
            return;
        }
        let offers = subject.as_ref().and_then(|subject| {
            let found = self.board.named(&self.named(subject).ok()?).ok()?;
            Some(Offers::of(
                &line(&subject.name),
                &found.task,
                found.lease.as_ref(),
                clock::now(),
            ))
        });
        self.screen.offers = offers.unwrap_or_default();
        self.offered = Some((self.looked, subject));
    }

    /// Limits the CPU use of a large board that changes all the time.
    fn until_look(&self) -> Duration {
        PAUSE
            .max(self.took * 4)
            .saturating_sub(self.looked.elapsed())
    }

    fn look_at_board(&mut self) -> Result<(), CliError> {
        let began = clock::instant();
        let board = self.board.clone().settled()?;
        let queues: Vec<Queue> = self.context.files(&board, self.names)?;
        let workspace = self
            .context
            .light_site(board.clone())
            .ok()
            .map(|workspace| workspace.naming(&queues));
        self.overview = Overview::gather(&board, &queues, workspace.as_ref(), WantedItems::Open)?;
        self.looked = clock::instant();
        self.tick();
        if let Some(page) = self
            .screen
            .shown()
            .filter(|page| page.kind == PageKind::Item)
        {
            let lines = self.item(&page.subject.clone());
            self.screen
                .shown_mut()
                .into_iter()
                .for_each(|page| page.lines.clone_from(&lines));
        }
        self.took = began.elapsed();
        Ok(())
    }

    /// Updates agents' activity, which changes without the board.
    fn tick(&mut self) {
        // An item's mode is in its queue, read at its last change.
        let modes: HashMap<&TaskId, Mode> = self
            .overview
            .listing
            .items
            .iter()
            .filter_map(|item| Some((item.task.as_ref()?, item.mode)))
            .collect();
        self.overview.agents = agents(&self.board, &|task| modes.get(task).copied());
        let health = health(&self.board).unwrap_or_default();
        let before = self.stand();
        self.screen
            .update(Scene::of(&self.overview, &health, clock::now()));
        let after = self.stand();
        let (is_other, is_worked) = (
            before != after,
            after.is_some_and(|subject| subject.run.is_some()),
        );
        if let Some(diff) = &mut self.diff {
            // Uncommitted changes send no event.
            diff.is_stale |= is_other || is_worked;
            if diff.watch.is_none() {
                diff.watch = diff
                    .folder
                    .clone()
                    .and_then(|folder| run_watch(folder, &diff.has_changed, &self.bell));
            }
        }
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.watch.is_none()) {
            stream.watch = run_watch(stream.folder.clone(), &stream.has_changed, &self.bell);
            stream.is_stale = true;
        }
        self.ticked = clock::instant();
    }

    fn draw(&mut self) -> Result<(), CliError> {
        let Some(terminal) = &mut self.terminal else {
            return Ok(());
        };
        let area: Rect = RawTerminal::area();
        (self.screen.room, self.screen.page_room) = (room(area.height), page_room(area));
        terminal
            .show(picture(&self.screen, area, self.look))
            .map_err(|error| CliError::output(&error))
    }

    /// Reads new output of the open run, at a limited rate.
    fn follow(&mut self) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        stream.is_stale |= stream.has_changed.take();
        if !stream.until_look().is_zero() {
            return;
        }
        if let Some(page) = self.screen.shown_mut() {
            page.follow(stream.tail.more());
            stream.is_stale = stream.tail.is_behind();
            stream.followed = clock::instant();
        }
    }

    /// Opens the preview once the choice rests; returns the time until then.
    fn preview(&mut self) -> Duration {
        if self.chosen.1 != self.screen.chosen {
            self.chosen = (clock::instant(), self.screen.chosen);
        }
        let wanted = self
            .screen
            .preview()
            .filter(|_| has_panel(RawTerminal::area().width));
        let is_same = |page: &OpenPage| {
            wanted.is_some_and(|(kind, of)| {
                page.kind == kind && page.subject.name == of.name && page.subject.run == of.run
            })
        };
        let is_shown = self
            .screen
            .beside
            .as_ref()
            .map_or(wanted.is_none(), is_same);
        if is_shown {
            return Duration::MAX;
        }
        let Some((kind, subject)) = wanted.map(|(kind, subject)| (kind, subject.clone())) else {
            self.screen.beside = None;
            self.close_unshown();
            return Duration::MAX;
        };
        let wait = STILL.saturating_sub(self.chosen.0.elapsed());
        if wait.is_zero() {
            self.stream = None;
            self.screen.beside = self.page(kind, subject);
            return Duration::MAX;
        }
        wait
    }

    /// Closes logs and diffs that are not shown.
    fn close_unshown(&mut self) {
        let kind = self.screen.shown().map(|page| page.kind);
        self.stream.take_if(|_| kind != Some(PageKind::Stream));
        self.diff.take_if(|_| kind != Some(PageKind::Diff));
    }

    /// Returns the item of the open diff, as it is now.
    fn stand(&self) -> Option<Subject> {
        let page = self
            .screen
            .page
            .as_ref()
            .filter(|page| page.kind == PageKind::Diff)?;
        let subjects = self
            .screen
            .scene
            .rows
            .iter()
            .filter_map(|row| row.subject.as_ref());
        subjects
            .filter(|subject| subject.status.is_some())
            .find(|subject| subject.task == page.subject.task)
            .cloned()
    }

    /// Updates the open diff if the work may have changed.
    fn follow_diff(&mut self) {
        let Some(diff) = &mut self.diff else { return };
        diff.is_stale |= diff.has_changed.take();
        if !diff.until_look().is_zero() {
            return;
        }
        diff.is_stale = false;
        let Some(subject) = self.screen.page.as_ref().map(|page| page.subject.clone()) else {
            return;
        };
        let began = clock::instant();
        let lines = self.diff(&subject);
        self.screen
            .page
            .iter_mut()
            .for_each(|page| page.lines.clone_from(&lines));
        self.diff
            .iter_mut()
            .for_each(|diff| (diff.read, diff.took) = (clock::instant(), began.elapsed()));
    }

    fn open_page(&mut self, kind: PageKind, subject: Subject) {
        if let Some(page) = self.page(kind, subject) {
            self.screen.page = Some(page);
            self.screen.beside = None;
        }
    }

    /// Returns a page and starts following its content; `None` if there is nothing to show.
    fn page(&mut self, kind: PageKind, subject: Subject) -> Option<OpenPage> {
        let name = line(&subject.name);
        let (title, lines) = match kind {
            PageKind::Help => ("keys".to_owned(), Vec::new()),
            PageKind::Item => (name, self.item(&subject)),
            PageKind::Diff => {
                let has_changed = Noticed::default();
                let folder = subject
                    .task
                    .as_ref()
                    .and_then(|task| git_folder(&self.board.worktree(task)));
                let watch = folder
                    .clone()
                    .and_then(|folder| run_watch(folder, &has_changed, &self.bell));
                let began = clock::instant();
                let lines = self.diff(&subject);
                let (read, took) = (clock::instant(), began.elapsed());
                self.diff = Some(OpenDiff {
                    folder,
                    has_changed,
                    watch,
                    is_stale: false,
                    read,
                    took,
                });
                (format!("{name} · changes"), lines)
            }
            PageKind::Stream => {
                let Some(run) = self.run_of(&subject) else {
                    self.screen.notice = Some((format!("{name} has had no run yet"), Tone::Plain));
                    return None;
                };
                let (folder, has_changed) = (self.board.run_dir(&run), Noticed::default());
                let watch = run_watch(folder.clone(), &has_changed, &self.bell);
                let (tail, followed) = (LogTail::of(&folder), clock::instant());
                self.stream = Some(OpenStream {
                    folder,
                    tail,
                    has_changed,
                    watch,
                    is_stale: true,
                    followed,
                });
                (format!("{} · output", line(&run)), Vec::new())
            }
        };
        let is_followed = kind == PageKind::Stream;
        Some(OpenPage {
            kind,
            subject,
            title,
            lines,
            top: 0,
            is_followed,
        })
    }

    /// Returns the current run of an item, else its last.
    fn run_of(&self, subject: &Subject) -> Option<String> {
        let last = || {
            Some(
                runs_of(&self.board, subject.task.as_ref()?)
                    .ok()?
                    .pop()?
                    .run,
            )
        };
        subject.run.clone().or_else(last)
    }

    fn item(&self, subject: &Subject) -> Vec<(String, Tone)> {
        let words = self
            .named(subject)
            .and_then(|name| full::words(self.context, &self.board, &name));
        told(words)
    }

    fn named(&self, subject: &Subject) -> Result<NamedItem, CliError> {
        match &subject.task {
            Some(task) => Ok(NamedItem::Id(task.clone())),
            None => {
                let name = subject
                    .name
                    .parse()
                    .map_err(|_| CliError::new(Exit::Failed, "the item is gone"))?;
                self.context.item(&self.board, &name)
            }
        }
    }

    fn diff(&self, subject: &Subject) -> Vec<(String, Tone)> {
        let patch = match &subject.task {
            Some(id) => diff::words(self.context, &self.board, id),
            None => Ok("an item without an ID has no commits".to_owned()),
        };
        let mut shown = told(patch);
        for (text, tone) in &mut shown {
            *tone = match text.as_bytes().first() {
                Some(b'-') => Tone::Bad,
                Some(b'+') => Tone::Works,
                Some(b'@') => Tone::Faint,
                _ => *tone,
            };
        }
        shown
    }

    fn shell(
        &mut self,
        subject: &Subject,
        signals: &Receiver<i32>,
    ) -> Result<Option<Exit>, CliError> {
        let worktree = subject
            .task
            .as_ref()
            .map(|task| self.board.worktree(task))
            .filter(|folder| folder.is_dir());
        let Some(folder) = worktree else {
            self.screen.notice = Some((
                format!("{} has no worktree here", line(&subject.name)),
                Tone::Plain,
            ));
            return Ok(None);
        };
        let set = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
        let shell = set.map_or_else(|| PathBuf::from("sh"), PathBuf::from);
        self.attend(Ok(Spec::new(shell, folder)), signals)
    }

    /// Gives the terminal to a program until it ends.
    fn attend(
        &mut self,
        spec: std::io::Result<Spec>,
        signals: &Receiver<i32>,
    ) -> Result<Option<Exit>, CliError> {
        give_back();
        let attended = spec.and_then(|spec| attend(&spec, &self.bell));
        let mut exit = None;
        let ended = match attended {
            Err(error) => error.to_string(),
            Ok(attended) => loop {
                if let Some(ended) = attended.ended() {
                    break ended;
                }
                self.bell.wait(Duration::MAX);
                for signal in signals.try_iter() {
                    match signal {
                        SIGTERM | SIGHUP => {
                            attended.hang_up(FAREWELL);
                            exit = Some(Exit::Terminated);
                        }
                        SIGTSTP => stop_self()?,
                        // Ctrl-C is for the program that has the terminal.
                        _ => {}
                    }
                }
                if exit.is_some() {
                    return Ok(exit);
                }
            },
        };
        self.terminal
            .iter_mut()
            .try_for_each(RawTerminal::take_again)?;
        if !ended.ends_with(" 0") {
            self.screen.notice = Some((line(&ended), Tone::Bad));
        }
        let _ = stderr().flush();
        // Keys noticed meanwhile were for that program; another look is needed to notice later ones.
        self.bell.ring();
        Ok(None)
    }

    /// Stops the process as Ctrl-Z does with other programs, until it is continued.
    fn stop(&mut self) -> Result<(), CliError> {
        give_back();
        stop_self()?;
        self.terminal
            .iter_mut()
            .try_for_each(RawTerminal::take_again)?;
        Ok(())
    }
}

/// Returns git's folder of a worktree; git writes there at each commit.
fn git_folder(worktree: &Path) -> Option<PathBuf> {
    let text = files::read_text(worktree.join(".git")).ok()?;
    Some(PathBuf::from(text.strip_prefix("gitdir: ")?.trim_end())).filter(|folder| folder.is_dir())
}

fn stop_self() -> std::io::Result<()> {
    Ok(kill_process(getpid(), Signal::STOP)?)
}

fn told(words: Result<String, CliError>) -> Vec<(String, Tone)> {
    match words {
        Ok(words) => lines(&words)
            .into_iter()
            .map(|line| (line, Tone::Plain))
            .collect(),
        Err(error) => vec![(line(&error.message), Tone::Bad)],
    }
}
