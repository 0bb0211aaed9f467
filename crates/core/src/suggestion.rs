//! Near misses: finds the known word that a mistyped one was probably meant to be.

/// Returns the candidate closest to `word`, if it is close enough. At most a third of the letters of the
/// shorter one, and at most three, may be missing, added, wrong or swapped. Case does not count.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let near = candidates
        .into_iter()
        .filter_map(|other| Some((distance(&word, &other.to_lowercase())?, other)));
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Returns the candidate that `word` is but for its case or one typo: a letter missing, added, wrong or
/// swapped. Short words may be meant as they are (`code` beside `mode`). So may words with another first
/// letter (`preview` beside `review`), or with an ending (`approved`).
pub fn mistyped<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let is_meant =
        |other: &str| other.len() > 4 && !word.starts_with(other) && is_slip(&word, other);
    candidates
        .into_iter()
        .find(|other| word == **other || is_meant(other))
}

/// Returns the candidate that `word` is but for its case or one typo, short words included: enough to ask about it.
pub fn slipped<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let near = candidates
        .into_iter()
        .filter(|other| word == **other || is_slip(&word, other));
    near.min_by_key(|other| word != **other)
}

/// Returns true if one letter of `word` is missing, added, wrong or swapped, and the first letters are the same.
fn is_slip(word: &str, other: &str) -> bool {
    word.chars().next() == other.chars().next() && distance(word, other) == Some(1)
}

/// Returns true if `word` may be a correction of `other`. A text with a number means another thing with
/// another number.
pub fn corrects(word: &str, other: &str) -> bool {
    !other.contains(|c: char| c.is_ascii_digit()) && distance(word, other).is_some()
}

/// Returns the number of different letters, if the two are near. Two letters are too few to guess from, and
/// more than 32 are no word.
fn distance(word: &str, other: &str) -> Option<usize> {
    let [count, length] = [word, other].map(|word| word.chars().count());
    let most = count.min(length).div_ceil(3).min(3);
    // The lengths alone rule out most pairs. A full comparison costs far more, and a long queue needs many.
    let may_be_near = (3..=32).contains(&count) && length.abs_diff(count) <= most;
    may_be_near
        .then(|| strsim::osa_distance(word, other))
        .filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_corrected_and_a_number_is_not() {
        for (word, other, is_it) in [
            ("the", "teh", true),
            ("Anna", "Ana", true),
            ("test", "more", false),
            ("v13", "v12", false),
            ("as", "is", false),
        ] {
            assert_eq!(corrects(word, other), is_it, "{word} {other}");
        }
    }

    #[test]
    fn a_slip_is_told_from_a_word_that_is_meant() {
        let known = ["mode", "status", "review", "approve", "after", "done_when"];
        for (word, meant) in [
            ("afer", Some("after")),
            ("atfer", Some("after")),
            ("After", Some("after")),
            ("MODE", Some("mode")),
            ("done-when", Some("done_when")),
            ("reveiw", Some("review")),
            ("code", None),
            ("preview", None),
            ("approved", None),
            ("state", None),
            ("created", None),
            ("", None),
        ] {
            assert_eq!(mistyped(word, known), meant, "for `{word}`");
        }
    }

    #[test]
    fn only_what_is_a_known_word_but_for_one_slip_may_be_one() {
        let known = ["tags", "role", "mode", "priority"];
        for (word, meant) in [
            ("tag", Some("tags")),
            ("Rolle", Some("role")),
            ("priorities", None),
            ("pages", None),
            ("note", None),
            ("code", None),
        ] {
            assert_eq!(slipped(word, known), meant, "for `{word}`");
        }
    }

    #[test]
    fn only_near_words_are_guessed() {
        let known = [
            "lease",
            "limit",
            "grace",
            "max_attempts",
            "priority",
            "after",
        ];
        for (word, guess) in [
            ("leese", Some("lease")),
            ("LIMIT", Some("limit")),
            ("limits", Some("limit")),
            ("maxattempts", Some("max_attempts")),
            ("max-attempts", Some("max_attempts")),
            ("priorty", Some("priority")),
            ("afetr", Some("after")),
            ("../lease", None),
            ("see", None),
            ("li", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), guess, "for `{word}`");
        }
    }
}
