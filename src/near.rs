//! Near misses: the known word that a mistyped one was probably meant to be.

/// The candidate closest to `word`, if one is close enough to be what was meant: at most a third of the letters of the
/// shorter of the two, and three at most, are missing, added, wrong or swapped. Case does not count; two letters are too few to guess from.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let count = word.chars().count();
    if !(3..=32).contains(&count) {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let length = candidate.chars().count();
            let most = count.min(length).div_ceil(3).min(3);
            // So many letters are missing or added at least: to compare them all costs far more, and a long queue asks often.
            let distance = || strsim::osa_distance(&word, &candidate.to_lowercase());
            (length.abs_diff(count) <= most)
                .then(distance)
                .filter(|distance| *distance <= most)
                .map(|it| (it, candidate))
        })
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
