//! Decides whether two items may change the same files, by the paths and patterns of their `touches`.

/// An element of a pattern: one byte, any byte, or any number of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GlobSign {
    Any,
    One,
    Byte(u8),
}

/// Returns the first pattern of `own` that may match a path of one of `others`. A folder matches everything
/// in it; a last name with a dot is no folder.
pub fn shared<'t>(own: &'t [String], others: &[String]) -> Option<&'t str> {
    let meets = |one: &str| others.iter().any(|other| overlap(one, other));
    own.iter().map(String::as_str).find(|one| meets(one))
}

/// Returns those of these literal paths that one of `patterns` matches.
pub fn meant<'t>(paths: &'t [String], patterns: &[String]) -> impl Iterator<Item = &'t str> {
    let of = |pattern: &String| {
        [
            Some(plain(pattern)),
            is_folder(pattern).then(|| within(pattern)),
        ]
    };
    let patterns: Vec<Vec<GlobSign>> = patterns.iter().flat_map(of).flatten().collect();
    let is_meant = move |path: &&str| {
        let path: Vec<GlobSign> = path.bytes().map(GlobSign::Byte).collect();
        patterns.iter().any(|pattern| meet(pattern, &path))
    };
    paths.iter().map(String::as_str).filter(is_meant)
}

/// Returns true if it may be a path or pattern below the root of a repository.
pub fn is_below_root(path: &str) -> bool {
    !path.starts_with(['/', '~']) && !path.split('/').any(|part| part == "..")
}

fn overlap(one: &str, other: &str) -> bool {
    meet(&plain(one), &plain(other))
        || is_folder(one) && meet(&within(one), &plain(other))
        || is_folder(other) && meet(&plain(one), &within(other))
}

/// Returns the pattern of everything in a folder.
fn within(folder: &str) -> Vec<GlobSign> {
    [&plain(folder)[..], &[GlobSign::Byte(b'/'), GlobSign::Any]].concat()
}

fn is_folder(pattern: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    name.is_empty()
        || !name
            .trim_start_matches('.')
            .contains(['.', '*', '?', '[', '{'])
}

/// `**` is the same as `*`, which crosses `/` here. From `[` or `{` on, anything matches: keeping two items
/// apart needlessly does no harm.
fn plain(pattern: &str) -> Vec<GlobSign> {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    let end = pattern.find(['[', '{']);
    let sign = |byte| match byte {
        b'*' => GlobSign::Any,
        b'?' => GlobSign::One,
        byte => GlobSign::Byte(byte),
    };
    pattern[..end.unwrap_or(pattern.len())]
        .bytes()
        .map(sign)
        .chain(end.map(|_| GlobSign::Any))
        .collect()
}

/// Returns true if some text matches both.
fn meet(one: &[GlobSign], other: &[GlobSign]) -> bool {
    use GlobSign::{Any, One};
    // For each index of `other`: whether the read part of `one` and `other` up to it match one text.
    let mut row: Vec<bool> = (0..=other.len())
        .map(|at| other[..at].iter().all(|sign| *sign == Any))
        .collect();
    for sign in one {
        let before = row.clone();
        row[0] = before[0] && *sign == Any;
        for (at, near) in other.iter().enumerate() {
            row[at + 1] = match (*sign, *near) {
                (Any, _) | (_, Any) => before[at + 1] || row[at],
                (One, _) | (_, One) => before[at],
                (sign, near) => before[at] && sign == near,
            };
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_as_it_is() {
        for (path, pattern, is_meant) in [
            ("pages/[id].tsx", "pages/api", false),
            ("pages/[id].tsx", "pages", true),
            ("pages/[id].tsx", "pages/*.tsx", true),
            ("src/*.rs", "src/a.rs", false),
            ("src/{a}/x.ts", "src/generated", false),
            ("src/gen/x.ts", "src/gen/**", true),
            ("src/gen/x.ts", "src/[gh]en", true),
            ("db/1.sql", "db/?.sql", true),
            ("a", "", false),
        ] {
            assert_eq!(
                meant(&[path.to_owned()], &[pattern.to_owned()])
                    .next()
                    .is_some(),
                is_meant,
                "{path} {pattern}"
            );
        }
    }

    #[test]
    fn patterns_overlap_where_one_path_fits_both() {
        let rows = [
            ("a.rs", "a.rs", true),
            ("a.rs", "b.rs", false),
            ("./a.rs", "a.rs", true),
            ("src", "src/a.rs", true),
            ("src/", "src/a/b.rs", true),
            ("src", "src2/a.rs", false),
            (".github", ".github/ci.yml", true),
            ("v1.2/", "v1.2/a", true),
            ("v1.2", "v1.2/a", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a.md", false),
            ("src/*.rs", "src/a/b.rs", true),
            ("src/**", "*.rs", true),
            ("*.md", "*.rs", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("src/{a,b}.rs", "src/c.rs", true),
            ("src/[ab].rs", "docs/a.rs", false),
            ("*", "anything/at/all", true),
            ("", "a", false),
        ];
        for (one, other, expected) in rows {
            assert_eq!(
                (overlap(one, other), overlap(other, one)),
                (expected, expected),
                "{one} {other}"
            );
        }
        let hard = "*a".repeat(500);
        assert!(!overlap(
            &format!("{hard}b"),
            &format!("{}.rs", "a".repeat(1000))
        ));
    }
}
