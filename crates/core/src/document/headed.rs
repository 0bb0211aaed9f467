//! What headings that name no lane say of the boxes under them: how urgent they are, or that they are no items.

use super::phrase::words;
use crate::front::DEFAULT_PRIORITY;
use crate::metadata::misplaced_guards;

/// They say when the work is done.
pub(super) const CONDITIONS: &str = "conditions";
/// Those called `Step 1` are of the task that the heading names.
pub(super) const STEPS: &str = "steps of one task";

/// Headings of a few words that have one of these say so.
const PHRASES: [&[&str]; 4] = [
    &["acceptance", "criteria"],
    &["success", "criteria"],
    &["exit", "criteria"],
    &["definition", "of", "done"],
];
const LONGEST: usize = 6;
/// Most bytes of a heading that states a key.
const LONGEST_STATING: usize = 1 << 10;

/// What the headings around a place come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headed {
    pub priority: u8,
    /// What boxes are that are no items.
    pub boxes: Option<&'static str>,
    /// Where the innermost two begin that state a key in brackets: `Phase 2 (after: Phase 1)`.
    pub stating: Stating,
}

/// Where headings begin, the innermost last.
pub(super) type Stating = [Option<usize>; 2];

impl Headed {
    pub const BY_NONE: Headed = Headed {
        priority: DEFAULT_PRIORITY,
        boxes: None,
        stating: [None; 2],
    };

    /// Of what is also under a heading with these words, which begins at `start`.
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

    /// What a box with this title is, where it is no item.
    pub fn no_item(self, title: &str) -> Option<&'static str> {
        let is_step = || matches!(&words(title)[..], [step, number, ..] if step == "step" && is_number(number));
        self.boxes.filter(|it| *it == CONDITIONS || is_step())
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}
