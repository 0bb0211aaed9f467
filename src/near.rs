//! Near misses: the known word that a mistyped one was probably meant to be.

/// The candidate closest to `word`, if one is close enough to be what was meant: at most a third of the letters of the
/// shorter of the two, and three at most, are missing, added, wrong or swapped. Case does not count; two letters are too few to guess from.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let count = word.chars().count();
    if !(3..=32).contains(&count) {
        return None;
    }
    let word = word.to_lowercase();
    let most = |candidate: &str| count.min(candidate.chars().count()).div_ceil(3).min(3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= 4 * most(candidate))
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= most(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_guessed() {
        let known = ["lease", "limit", "grace", "max_attempts", "priority", "after"];
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
