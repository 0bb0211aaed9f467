//! Progress of long work: drawn on a terminal only, and gone when the work is.

use std::fmt::Display;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::context::Context;

/// A line that shows how far work has come. It vanishes when dropped.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of work with a known number of steps.
    pub fn steps(context: &Context, total: usize, what: impl Display) -> Progress {
        let is_seen = context.out.is_told() && std::io::stderr().is_terminal();
        let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        let style = ProgressStyle::with_template("{msg} {pos}/{len} {wide_bar}").expect("the template is right");
        bar.set_style(style);
        bar.set_message(what.to_string());
        Progress { bar }
    }

    /// One step further.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// Prints through `print` without tearing the line.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
