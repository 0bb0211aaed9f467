//! The terminal in raw mode, always restored at the end. Only changes are written.

use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::layout::{Position, Rect};

use super::frame::Picture;

/// Standard output as a screen of cells.
pub struct RawTerminal {
    backend: CrosstermBackend<BufWriter<Stdout>>,
    shown: Buffer,
    cursor: Option<Position>,
}

/// Whether the terminal is in raw mode, so it must be restored.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

impl RawTerminal {
    /// Takes the terminal. It is restored on drop and at a panic.
    pub fn take() -> io::Result<RawTerminal> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |told| {
            give_back();
            before(told);
        }));
        let backend = CrosstermBackend::new(BufWriter::with_capacity(64 * 1024, stdout()));
        let mut terminal = RawTerminal {
            backend,
            shown: Buffer::default(),
            cursor: None,
        };
        terminal.take_again()?;
        Ok(terminal)
    }

    /// Takes the terminal again after [`give_back`].
    pub fn take_again(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        execute!(
            self.backend,
            EnterAlternateScreen,
            EnableBracketedPaste,
            Hide
        )?;
        self.forget()
    }

    /// Redraws everything the next time.
    pub fn forget(&mut self) -> io::Result<()> {
        execute!(self.backend, Clear(ClearType::All))?;
        self.shown.reset();
        Ok(())
    }

    /// Returns the size of the terminal, or 80 × 24 if unknown.
    pub fn area() -> Rect {
        let (width, height) = size()
            .ok()
            .filter(|(width, height)| width * height > 0)
            .unwrap_or((80, 24));
        Rect::new(0, 0, width, height)
    }

    /// Draws the changes between `picture` and the shown one, if any.
    pub fn show(&mut self, picture: Picture) -> io::Result<()> {
        let Picture { cells, cursor } = picture;
        if cells.area != self.shown.area {
            self.forget()?;
            self.shown = Buffer::empty(cells.area);
        }
        let changed = self.shown.diff(&cells);
        if changed.is_empty() && cursor == self.cursor {
            return Ok(());
        }
        if !changed.is_empty() {
            self.backend.draw(changed.into_iter())?;
        }
        match cursor {
            Some(Position { x, y }) => execute!(self.backend, MoveTo(x, y), Show)?,
            None if self.cursor.is_some() => execute!(self.backend, Hide)?,
            None => {}
        }
        (self.shown, self.cursor) = (cells, cursor);
        Write::flush(&mut self.backend)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal if it was taken. Errors can't be reported here.
pub fn give_back() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
