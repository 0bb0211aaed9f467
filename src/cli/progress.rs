//! Progress of long work: drawn on a terminal only, and gone when the work is.

use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::context::Context;

/// A line that shows how far work has come. It vanishes when dropped.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of work with a known number of steps.
    pub fn steps(context: &Context, total: usize, what: impl Display) -> Progress {
        Progress::drawn(
            ProgressBar::with_draw_target(Some(total as u64), target(context)),
            "{msg} {pos}/{len} {wide_bar}",
            what,
        )
    }

    /// Of work that takes as long as it takes.
    pub fn open_ended(context: &Context, what: impl Display) -> Progress {
        let progress =
            Progress::drawn(ProgressBar::with_draw_target(None, target(context)), "{spinner} {msg} {elapsed}", what);
        // Where nothing is drawn nothing need tick.
        if !progress.bar.is_hidden() {
            progress.bar.enable_steady_tick(Duration::from_millis(120));
        }
        progress
    }

    fn drawn(bar: ProgressBar, template: &str, what: impl Display) -> Progress {
        bar.set_style(ProgressStyle::with_template(template).expect("the templates above are right"));
        bar.set_message(what.to_string());
        Progress { bar }
    }

    /// One step further.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// What is being done now.
    pub fn say(&self, what: impl Display) {
        self.bar.set_message(what.to_string());
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

fn target(context: &Context) -> ProgressDrawTarget {
    let is_seen = context.out.is_told() && std::io::stderr().is_terminal();
    if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}
