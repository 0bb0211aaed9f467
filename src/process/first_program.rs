//! The program that a shell command needs first. Only what is told by the words themselves: where a shell would have to be asked,
//! nothing is said.

/// The program that `command` (of `sh -c`) can't do without: a name to be looked for on PATH, or an absolute path. `None`
/// where it begins with what the shell does itself or with a relative path, where the command may succeed without it
/// (`a || b`, `a; b`, `a | b`, `! a`), or where only a shell could tell.
pub fn first_program(command: &str) -> Option<&str> {
    let command = command.trim().trim_end_matches(';');
    let joined = command.replace("&&", "").replace(">&", "");
    // Also where these stand in quotes: an alarm that is not given costs less than a false one.
    if joined.contains(['|', ';', '\n', '&', '`']) || command.contains("PATH=") {
        return None;
    }
    for part in command.split("&&") {
        let word = part.split_whitespace().find(|word| !is_assignment(word))?;
        if !matches!(word, "cd" | "export") {
            let is_elsewhere = word.contains('/') && !word.starts_with('/');
            let is_told = is_plain(word) && !is_elsewhere && !SHELLS_OWN.split(' ').any(|own| own == word);
            return is_told.then_some(word);
        }
        // The `&&` behind it may stand within them.
        if part.contains(['\'', '"', '\\', '(', '#']) {
            return None;
        }
    }
    None
}

/// Commands and words of the common shells, which need no program.
const SHELLS_OWN: &str = ". : [ [[ alias bg break builtin case command continue declare do done echo elif else esac eval exec exit \
    false fc fg fi for function getopts hash if in jobs kill let local popd printf pushd pwd read readonly return select \
    set shift shopt source test then time times trap true type typeset ulimit umask unalias unset until wait while";

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| {
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty();
        is_name && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && is_plain(&value.replace('$', ""))
    })
}

/// It stands for itself.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "_-./+,:@%=".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_is_told_where_it_is_sure() {
        for (command, first) in [
            ("cargo test --all", Some("cargo")),
            ("  jq -e '.a' \"x.json\"  ", Some("jq")),
            ("cd web && npm test", Some("npm")),
            ("cd a/b && cd ../c && npm test && nothing", Some("npm")),
            ("VAR=1 OTHER=$HOME/x make -j2", Some("make")),
            ("jq . >out 2>&1", Some("jq")),
            ("jq . a;", Some("jq")),
            ("/usr/bin/no-such --version", Some("/usr/bin/no-such")),
            ("env X=1 thing", Some("env")),
            ("export A=b && thing", Some("thing")),
            // It may succeed without.
            ("nextest || cargo test", None),
            ("nextest; cargo test", None),
            ("nextest\ncargo test", None),
            ("nextest | tee out", None),
            ("! nextest", None),
            ("server & sleep 1", None),
            ("server &", None),
            // Of the shell, of the folder, or not to be told.
            ("test -e x && jq .", None),
            ("[ -e x ] && jq .", None),
            ("command -v jq && jq .", None),
            ("./scripts/check", None),
            ("scripts/check --all", None),
            ("cd x && ./run", None),
            ("cd 'x && jq && y'", None),
            ("cd \"$(pwd)\" && jq", None),
            ("cd # && jq", None),
            ("A='x y' jq", None),
            ("A=$(x) jq", None),
            ("if jq .; then true; fi", None),
            ("$PYTHON -m pytest", None),
            ("~/bin/tool", None),
            ("`which jq` .", None),
            ("\"$(which jq)\" .", None),
            ("\"jq\" .", None),
            ("jq>out", None),
            (">out jq", None),
            ("# all of it", None),
            ("(pytest)", None),
            ("PATH=$PWD/bin:$PATH tool", None),
            ("export PATH=$PWD/bin:$PATH && tool", None),
            ("f() { true; }; f", None),
            ("exec jq .", None),
            ("{a,b}", None),
            ("", None),
            (";", None),
            ("&& x", None),
            ("A=1", None),
        ] {
            assert_eq!(first_program(command), first, "`{command}`");
        }
    }
}
