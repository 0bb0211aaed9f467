//! The limits of a prompt, and the order of cuts.

use super::assigned::{
    Answered, Assigned, EarlierAttempt, Learned, QueueState, Refutation, Remark,
};

/// Limits in bytes, and counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptLimits {
    /// The whole prompt.
    pub total: usize,
    /// The task's description; its beginning is kept.
    pub description: usize,
    /// The text above the task; its beginning is kept.
    pub around: usize,
    /// The number of attempts; the latest are kept.
    pub attempts: usize,
    /// The output of each attempt's failing command; its end is kept.
    pub output: usize,
    /// The number of commits of each attempt; the newest are kept.
    pub commits: usize,
    /// Each note; its beginning is kept.
    pub note: usize,
    /// The number of notes; the latest are kept.
    pub notes: usize,
    /// All letters together; the first are kept whole, the others go into a later prompt.
    pub letters: usize,
    /// The number of learnings; the first are kept.
    pub learnings: usize,
    /// All learnings together.
    pub knowledge: usize,
    /// The number of steps, items of each queue, and files that may be specifications; the first are kept.
    pub items: usize,
}

impl Default for PromptLimits {
    fn default() -> PromptLimits {
        PromptLimits {
            total: 64 << 10,
            description: 32 << 10,
            around: 8 << 10,
            attempts: 5,
            output: 4 << 10,
            commits: 20,
            note: 4 << 10,
            notes: 20,
            letters: 24 << 10,
            learnings: 10,
            knowledge: 8 << 10,
            items: 100,
        }
    }
}

impl PromptLimits {
    /// Returns these limits, then ever tighter ones, to try until the prompt fits: history is cut first, people's text
    /// last.
    pub(super) fn steps(&self) -> Vec<PromptLimits> {
        let parted = |by: usize| PromptLimits {
            around: self.around / by,
            attempts: self.attempts.div_ceil(by),
            output: self.output / by,
            commits: self.commits.div_ceil(by),
            note: self.note / by,
            notes: self.notes.div_ceil(by),
            letters: self.letters / by,
            knowledge: self.knowledge / by,
            items: self.items.div_ceil(by),
            ..self.clone()
        };
        let described = |part: usize| PromptLimits {
            description: self.description.min(self.total / part),
            ..parted(16)
        };
        vec![
            self.clone(),
            parted(4),
            parted(16),
            described(2),
            described(8),
        ]
    }

    /// Returns `assigned` within these limits, and how many of its letters are among the notes.
    pub(super) fn cut(&self, assigned: &Assigned) -> (Assigned, usize) {
        let mut cut = assigned.clone();
        cut.task.title = head(&assigned.task.title, 512);
        cut.task.description = head(&assigned.task.description, self.description);
        cut.task.steps = self.cut_list(&assigned.task.steps);
        cut.task.around = head(&assigned.task.around, self.around);
        cut.earlier = latest(&assigned.earlier, self.attempts)
            .iter()
            .map(|attempt| self.cut_attempt(attempt))
            .collect();
        cut.findings = self.cut_notes(&assigned.findings);
        cut.answers = latest(&assigned.answers, self.notes).to_vec();
        for Answered { question, answer } in &mut cut.answers {
            (*question, *answer) = (self.cut_words(question), self.cut_words(answer));
        }
        if let Some(answer) = left_out(assigned.answers.len() - cut.answers.len()) {
            let question = "earlier questions".to_owned();
            cut.answers.insert(0, Answered { question, answer });
        }
        for child in &mut cut.children {
            (child.title, child.last_words) = (
                head(&child.title, 512),
                tail(child.last_words.trim(), self.output),
            );
        }
        if let Some(review) = &mut cut.review {
            review.last_words = tail(review.last_words.trim(), self.note);
        }
        if let Some(planning) = &mut cut.planning {
            planning.trigger = planning
                .trigger
                .as_ref()
                .map(|trigger| head(trigger, 1 << 10));
            planning.specs = self.cut_list(&planning.specs);
            let queues = planning.queues.iter().take(self.items);
            planning.queues = queues
                .map(|queue| QueueState {
                    items: self.cut_list(&queue.items),
                    ..queue.clone()
                })
                .collect();
        }
        cut.notes = self.cut_notes(&assigned.notes);
        let letters = self.cut_letters(&assigned.letters);
        let told = letters.len();
        cut.notes.extend(letters);
        if told < assigned.letters.len() {
            let number = assigned.letters.len() - told;
            cut.notes.push(Remark::mark(format!(
                "[… {number} more, in the next message …]"
            )));
        }
        cut.knowledge = self.cut_knowledge(&assigned.knowledge);
        if let Some(Refutation { reason, output }) = &mut cut.refutation {
            (*reason, *output) = (head(reason, 512), tail(output.trim_end(), self.output));
        }
        (cut, told)
    }

    fn cut_attempt(&self, attempt: &EarlierAttempt) -> EarlierAttempt {
        let mut commits: Vec<String> = attempt.commits.iter().take(self.commits).cloned().collect();
        let left_out = attempt.commits.len() - commits.len();
        if left_out > 0 {
            commits.push(format!("[… {left_out} older ones left out …]"));
        }
        EarlierAttempt {
            reason: head(&attempt.reason, 512),
            output: tail(attempt.output.trim_end(), self.output),
            commits,
            ..attempt.clone()
        }
    }

    fn cut_list(&self, lines: &[String]) -> Vec<String> {
        let mut told: Vec<String> = lines
            .iter()
            .take(self.items)
            .map(|line| head(line, 512))
            .collect();
        let left_out = lines.len() - told.len();
        if left_out > 0 {
            told.push(format!("[… {left_out} more left out …]"));
        }
        told
    }

    fn cut_knowledge(&self, knowledge: &[Learned]) -> Vec<Learned> {
        let mut left = self.knowledge;
        let cut = |one: &Learned| {
            let (from, text) = (head(&one.from, 64), head(&one.text, self.note));
            left = left.checked_sub(text.len())?;
            Some(Learned {
                from,
                text,
                ..one.clone()
            })
        };
        knowledge
            .iter()
            .take(self.learnings)
            .map_while(cut)
            .collect()
    }

    /// Returns the first letters that fit, whole, and at least one.
    fn cut_letters(&self, letters: &[Remark]) -> Vec<Remark> {
        let mut left = self.letters;
        let fits = |(nth, letter): &(usize, &Remark)| {
            let rest = left.checked_sub(letter.text.len());
            left = rest.unwrap_or(0);
            rest.is_some() || *nth == 0
        };
        let told = letters.iter().enumerate().take_while(fits);
        told.map(|(_, letter)| letter.clone()).collect()
    }

    /// Cuts a remark about the task; the log has all of it.
    fn cut_words(&self, text: &str) -> String {
        cut_at(text, self.note, ", which the task's log has")
    }

    fn cut_notes(&self, notes: &[Remark]) -> Vec<Remark> {
        let cut = |note: &Remark| Remark {
            from: head(&note.from, 64),
            text: self.cut_words(&note.text),
            ..note.clone()
        };
        let told = latest(notes, self.notes);
        left_out(notes.len() - told.len())
            .map(Remark::mark)
            .into_iter()
            .chain(told.iter().map(cut))
            .collect()
    }
}

/// Returns the mark for omitted earlier entries, with their number and place.
fn left_out(number: usize) -> Option<String> {
    (number > 0).then(|| format!("[… {number} earlier ones left out, which the task's log has …]"))
}

fn latest<T>(all: &[T], number: usize) -> &[T] {
    &all[all.len().saturating_sub(number)..]
}

/// Returns the beginning of `text`: at most `limit` bytes of it and a mark of how much was left out.
pub fn head(text: &str, limit: usize) -> String {
    cut_at(text, limit, "")
}

/// The same, with `place` in the mark: where the rest is.
fn cut_at(text: &str, limit: usize, place: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    // Whole lines read better, unless that would leave nothing.
    let end = text[..end]
        .rfind('\n')
        .filter(|&line| line > 0)
        .unwrap_or(end);
    format!(
        "{}\n[… {} bytes left out{place} …]",
        &text[..end],
        text.len() - end
    )
}

/// Returns the end of `text`: at most `limit` bytes of it behind a mark of how much was left out.
pub fn tail(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - limit);
    let start = text[start..]
        .find('\n')
        .map_or(start, |line| start + line + 1);
    format!("[… {start} bytes left out …]\n{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    #[test]
    fn whole_lines_are_kept() {
        assert_eq!(head("one\ntwo\nthree", 6), "one\n[… 10 bytes left out …]");
        assert_eq!(tail("one\ntwo\nthree", 8), "[… 8 bytes left out …]\nthree");
        assert_eq!(head("äöü", 3), "ä\n[… 4 bytes left out …]");
        assert_eq!(tail("äöü", 3), "[… 4 bytes left out …]\nü");
        assert_eq!(
            (head("ab", 2), tail("ab", 2)),
            ("ab".to_owned(), "ab".to_owned())
        );
    }

    proptest! {
        #[test]
        fn cuts_are_short_and_on_characters(text in any::<String>(), limit in 0_usize..200) {
            assert!(head(&text, limit).len() <= limit.max(text.len().min(limit)) + 50);
            assert!(tail(&text, limit).len() <= limit.max(text.len().min(limit)) + 50);
        }
    }
}
