//! Whether words ask a question or request work. Pure.

/// Whether words for the board are a question or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Intent {
    /// To know something
    Question,
    /// To have something done
    Work,
}

/// The first words of questions.
const ASKING: [&str; 36] = [
    "am", "are", "aren't", "can", "could", "did", "didn't", "does", "doesn't", "had", "has",
    "hasn't", "haven't", "how", "how's", "is", "isn't", "may", "should", "was", "wasn't", "were",
    "weren't", "what", "what's", "when", "where", "where's", "which", "who", "who's", "whom",
    "whose", "why", "will", "would",
];

/// Words that begin a question before one of [`PERSONS`], and else an order: "do the thing", "have it built".
const ORDERING: [&str; 3] = ["do", "don't", "have"];
const PERSONS: [&str; 4] = ["i", "you", "we", "they"];

/// Question marks of several scripts.
const MARKS: [char; 5] = ['?', '？', '؟', '\u{37e}', '՞'];

impl Intent {
    /// Returns `Question` if the last sentence of `text` ends with a question mark, or the first begins with
    /// a question word.
    pub fn of(text: &str) -> Intent {
        let text = text.trim();
        let last = text.trim_end_matches(|c: char| {
            c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '”' | '»')
        });
        let word = |word: &str| {
            let word = word.replace('’', "'").to_lowercase();
            word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'')
                .to_owned()
        };
        let mut words = text.split_whitespace().map(word);
        let (first, second) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let asks = ASKING.contains(&first.as_str())
            || ORDERING.contains(&first.as_str()) && PERSONS.contains(&second.as_str());
        if last.ends_with(MARKS) || text.starts_with('¿') || asks {
            Intent::Question
        } else {
            Intent::Work
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_told_from_work() {
        for text in [
            "did we check the backup before?",
            "Did we check the backup before",
            "backup checked?",
            "What's the retry limit",
            "“Why does it fail?”  ",
            "Do we check the backup",
            "Have you checked the backup",
            "Do the tests pass?",
            "我们检查过备份吗？",
            "υπάρχει αντίγραφο\u{37e}",
            "هل فحصنا النسخة؟",
        ] {
            assert_eq!(Intent::of(text), Intent::Question, "{text}");
        }
        for text in [
            "Check the backup",
            "Add a --json flag.",
            "Document why it fails",
            "Issue a licence",
            "Dot the i",
            "Tidy up;",
            "Do the thing",
            "Do it again",
            "Don't retry",
            "Have the tests run each night",
            "",
        ] {
            assert_eq!(Intent::of(text), Intent::Work, "{text}");
        }
    }
}
