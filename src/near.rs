//! Near misses: the known word that a mistyped one was probably meant to be.

/// The candidate closest to `word`, if one is close enough to be what was meant. Case does not count.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_guessed() {
        let known = ["lease", "limit", "grace", "max_attempts"];
        for (word, guess) in [
            ("leese", Some("lease")),
            ("LIMIT", Some("limit")),
            ("limits", Some("limit")),
            ("maxattempts", Some("max_attempts")),
            ("max-attempts", Some("max_attempts")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), guess, "for `{word}`");
        }
    }
}
