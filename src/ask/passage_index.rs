//! A full-text index in memory, built anew for each question.

use rusqlite::{Connection, params};

use super::passage::Passage;

/// The number of words of a passage that are shown.
const SHOWN: u32 = 32;

/// Stop words: common in all questions.
const COMMON: &str = " a about after all already am an and any are as at be been before but by can could did do does \
    doesn't ever for from get had has have how i if in into is isn't it its just me my never not now of on or our \
    please say she should so some that the their them then there these they this those to us was we were what when \
    where which who whose why will with would yet you your ";

/// Indexed passages.
pub struct PassageIndex {
    connection: Connection,
    passages: Vec<Passage>,
}

/// A passage that matches a question.
pub struct FoundPassage {
    pub passage: Passage,
    /// The part that matches.
    pub excerpt: String,
}

impl PassageIndex {
    /// Indexes `passages`. Of equally good matches, the earlier one comes first.
    ///
    /// # Errors
    /// Fails if memory runs out.
    pub fn of(passages: Vec<Passage>) -> rusqlite::Result<PassageIndex> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE VIRTUAL TABLE passages USING fts5(title, text, tokenize = 'porter unicode61 remove_diacritics 2')",
        )?;
        let change = connection.transaction()?;
        {
            let mut insert =
                change.prepare("INSERT INTO passages (rowid, title, text) VALUES (?1, ?2, ?3)")?;
            for (number, passage) in passages.iter().enumerate() {
                let (title, text) = (spaced(&passage.title), spaced(&passage.text));
                insert.execute(params![
                    number as u32,
                    format!("{} {title}", passage.name),
                    text
                ])?;
            }
        }
        change.commit()?;
        Ok(PassageIndex {
            connection,
            passages,
        })
    }

    /// Returns the best matches for `question`, at most `most`, and at most two of an item.
    ///
    /// # Errors
    /// Fails if memory runs out.
    pub fn find(mut self, question: &str, most: usize) -> rusqlite::Result<Vec<FoundPassage>> {
        let Some(query) = query(question) else {
            return Ok(Vec::new());
        };
        let found: Vec<(u32, String)> = {
            let mut select = self.connection.prepare(&format!(
                "SELECT rowid, snippet(passages, 1, '', '', '…', {SHOWN}) FROM passages WHERE passages MATCH ?1 \
                 ORDER BY bm25(passages, 4.0, 1.0), rowid LIMIT ?2"
            ))?;
            // More rows are selected, since one item may have many.
            let rows = select.query_map(params![query, (most * 20) as u32], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        let mut hits: Vec<FoundPassage> = Vec::new();
        for (number, excerpt) in found {
            let passage = std::mem::take(&mut self.passages[number as usize]);
            let is_same =
                |hit: &&FoundPassage| passage.task.is_some() && hit.passage.task == passage.task;
            if hits.iter().filter(is_same).count() < 2 {
                hits.push(FoundPassage {
                    passage,
                    excerpt: with_short_words(&closed(&excerpt)),
                });
            }
        }
        hits.truncate(most);
        Ok(hits)
    }
}

/// Cuts long words: an output may be one.
fn with_short_words(text: &str) -> String {
    let cut = |word: &str| match word.char_indices().nth(LONGEST_WORD) {
        Some((end, _)) => format!("{}… ", &word[..end]),
        None => word.to_owned(),
    };
    text.split_inclusive(char::is_whitespace).map(cut).collect()
}

/// The maximal length of a word, in characters.
const LONGEST_WORD: usize = 60;

/// Returns the query: any of the words that are not stop words; for CJK, any pair of neighbours.
fn query(question: &str) -> Option<String> {
    let is_common = |word: &&str| COMMON.contains(&format!(" {} ", word.to_lowercase()));
    let edge = |c: char| !c.is_alphanumeric();
    let words: Vec<&str> = question
        .split_whitespace()
        .map(|word| word.trim_matches(edge))
        .collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let telling: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !is_common(word))
        .collect();
    let chosen = if telling.is_empty() { words } else { telling };
    let terms: Vec<String> = chosen.iter().flat_map(|word| terms(word)).collect();
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

/// Returns a word as a phrase of the query; a run of CJK as its pairs.
fn terms(word: &str) -> Vec<String> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', " "));
    let signs: Vec<char> = word.chars().filter(|sign| is_cjk(*sign)).collect();
    match signs.as_slice() {
        [] => vec![quoted(word)],
        [one] => vec![quoted(&one.to_string())],
        many => many
            .windows(2)
            .map(|pair| quoted(&format!("{} {}", pair[0], pair[1])))
            .collect(),
    }
}

/// Puts spaces around each CJK character, since these scripts don't separate words.
fn spaced(text: &str) -> String {
    if !text.chars().any(is_cjk) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|sign| {
            if is_cjk(sign) {
                vec![' ', sign, ' ']
            } else {
                vec![sign]
            }
        })
        .collect()
}

/// Reverses [`spaced`], with single spaces.
fn closed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut whole = String::new();
    for word in words {
        let is_open = whole.ends_with(is_cjk) && word.starts_with(is_cjk);
        whole.push_str(if whole.is_empty() || is_open { "" } else { " " });
        whole.push_str(word);
    }
    whole
}

fn is_cjk(sign: char) -> bool {
    matches!(sign, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{0e00}'..='\u{0e7f}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str], question: &str) -> Vec<String> {
        let passages = texts.iter().map(|text| Passage {
            text: (*text).to_owned(),
            ..Passage::default()
        });
        let hits = PassageIndex::of(passages.collect())
            .expect("it fits into memory")
            .find(question, 5)
            .expect("likewise");
        hits.into_iter().map(|hit| hit.excerpt).collect()
    }

    #[test]
    fn the_best_is_found_first_whatever_is_typed() {
        let texts = [
            "we have what we have",
            "the backups were checked",
            "a check of the log",
            "检查了备份",
            "une clé usée",
        ];
        assert_eq!(
            found(&texts, "did we check the backup before?"),
            ["the backups were checked", "a check of the log"]
        );
        assert_eq!(found(&texts, "备份呢？"), ["检查了备份"]);
        assert_eq!(found(&texts, "CLE"), ["une clé usée"]);
        for odd in [
            "\"",
            "NEAR(",
            "a* OR",
            "title:x",
            "'; DROP TABLE passages; --",
            "^",
            "",
            "?",
        ] {
            found(&texts, odd);
        }
        assert!(
            found(&texts, "what about the restore?").is_empty(),
            "no word of it tells anything"
        );
        assert_eq!(found(&texts, "what have we?"), ["we have what we have"]);
    }

    #[test]
    fn a_long_passage_is_shown_where_the_words_stand() {
        let long = format!(
            "{} the needle {}",
            "hay ".repeat(10_000),
            "straw ".repeat(10_000)
        );
        let excerpt = found(&[&long], "needle").remove(0);
        assert!(
            excerpt.contains("the needle") && excerpt.len() < 400,
            "{excerpt}"
        );
    }
}
