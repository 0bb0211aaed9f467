//! Statements of headings that name no lane: the priority of boxes under them, or that the boxes are no items.

use super::phrase::words;
use crate::front::DEFAULT_PRIORITY;
use crate::metadata::misplaced_guards;

/// Boxes that are conditions for the end of the work.
pub(super) const CONDITIONS: &str = "conditions";
/// Boxes called `Step 1` and so on belong to the task that the heading names.
pub(super) const STEPS: &str = "steps of one task";

/// Phrases that mark a heading of a few words as such.
const PHRASES: [&[&str]; 4] = [
    &["acceptance", "criteria"],
    &["success", "criteria"],
    &["exit", "criteria"],
    &["definition", "of", "done"],
];
const LONGEST: usize = 6;
/// Maximum bytes of a heading that states a key.
const LONGEST_STATING: usize = 1 << 10;

/// Combined statements of the headings around a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headed {
    pub priority: u8,
    /// The kind of boxes that are no items.
    pub boxes: Option<&'static str>,
    /// Starts of the innermost two headings that state a key in brackets: `Phase 2 (after: Phase 1)`.
    pub stating: Stating,
}

/// Starts of headings, the innermost last.
pub(super) type Stating = [Option<usize>; 2];

impl Headed {
    pub const BY_NONE: Headed = Headed {
        priority: DEFAULT_PRIORITY,
        boxes: None,
        stating: [None; 2],
    };

    /// Adds a heading with this text that begins at `start`.
    pub fn by(mut self, heading: &str, start: usize) -> Headed {
        if heading.len() <= LONGEST_STATING && !misplaced_guards(heading, heading.len()).is_empty()
        {
            self.stating = [self.stating[1], Some(start)];
        }
        let words = words(heading);
        match &words.iter().map(|word| &**word).collect::<Vec<_>>()[..] {
            [first @ ("p0" | "p1" | "p2" | "p3"), ..] => self.priority = first.as_bytes()[1] - b'0',
            ["task", number, ..] if is_number(number) => self.boxes = Some(STEPS),
            _ => {}
        }
        let says = |phrase: &[&str]| {
            let mut parts = words.windows(phrase.len());
            words.len() <= LONGEST && parts.any(|words| words == phrase)
        };
        if PHRASES.iter().any(|phrase| says(phrase)) {
            self.boxes = Some(CONDITIONS);
        }
        self
    }

    /// Returns the kind of a box with this title, if it is no item.
    pub fn no_item(self, title: &str) -> Option<&'static str> {
        let is_step = || matches!(&words(title)[..], [step, number, ..] if step == "step" && is_number(number));
        self.boxes.filter(|it| *it == CONDITIONS || is_step())
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}
