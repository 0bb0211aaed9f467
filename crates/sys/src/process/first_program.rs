//! The program that a shell command needs first. Uses only the words themselves; returns `None` in doubt.

/// Returns the program that `command` (of `sh -c`) can't do without: a name to look up on PATH, or an absolute path.
/// `None` if it begins with a shell builtin or a relative path, if the command may succeed without it (`a || b`, `a;
/// b`, `a | b`, `! a`), or if only a shell could tell.
pub fn first_program(command: &str) -> Option<&str> {
    let command = command.trim().trim_end_matches(';');
    let joined = command.replace("&&", "").replace(">&", "");
    // Even within quotes: a missed alarm costs less than a false one.
    if joined.contains(['|', ';', '\n', '&', '`']) {
        return None;
    }
    let word = command.split_whitespace().next()?;
    let is_elsewhere = word.contains('/') && !word.starts_with('/');
    let is_plain = word
        .chars()
        .all(|c| c.is_alphanumeric() || "_-./+,:@%".contains(c));
    (is_plain && !is_elsewhere && !SHELLS_OWN.split(' ').any(|own| own == word)).then_some(word)
}

/// Builtins and keywords of the common shells.
const SHELLS_OWN: &str = ". : [ [[ alias bg break builtin case cd command continue declare do done echo elif else esac eval exec exit \
    export false fc fg fi for function getopts hash if in jobs kill let local popd printf pushd pwd read readonly return select \
    set shift shopt source test then time times trap true type typeset ulimit umask unalias unset until wait while";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_is_told_where_it_is_sure() {
        for (command, first) in [
            ("cargo test --all", Some("cargo")),
            ("  jq -e '.a' \"x.json\"  ", Some("jq")),
            ("jq . >out 2>&1", Some("jq")),
            ("jq . a;", Some("jq")),
            ("npm test && nothing", Some("npm")),
            ("/usr/bin/no-such --version", Some("/usr/bin/no-such")),
            ("env X=1 thing", Some("env")),
            // It may succeed without.
            ("nextest || cargo test", None),
            ("nextest; cargo test", None),
            ("nextest | tee out", None),
            ("! nextest", None),
            ("server & sleep 1", None),
            // Built into the shell, found in the folder, or undecidable.
            ("test -e x && jq .", None),
            ("[ -e x ] && jq .", None),
            ("./scripts/check", None),
            ("if jq .; then true; fi", None),
            ("$PYTHON -m pytest", None),
            ("\"$(which jq)\" .", None),
            ("jq>out", None),
            (">out jq", None),
            ("# all of it", None),
            ("(pytest)", None),
            ("export PATH=$PWD/bin:$PATH && tool", None),
            ("PATH=$PWD/bin:$PATH tool", None),
            ("cd web && npm test", None),
            ("f() { true; }; f", None),
            ("exec jq .", None),
            ("", None),
            (";", None),
            ("&& x", None),
        ] {
            assert_eq!(first_program(command), first, "`{command}`");
        }
    }
}
