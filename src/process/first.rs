//! Which program a shell command surely begins with. It doubts: where it can't be told without a shell, it says nothing.

use std::str::Chars;

/// The program that `command` (of `sh -c`) needs before anything else: a name to be looked for on PATH, or an absolute
/// path. Nothing where it begins with what the shell does itself, with a path that the command's own folder decides, where
/// its absence might be meant (`a || b`, `a; b`), or where it can't be told.
pub fn first_program(command: &str) -> Option<String> {
    let tokens = read(command.trim_end().trim_end_matches(';'))?;
    let names_path = |token: &Token| matches!(token, Token::Word { text, .. } if text.starts_with("PATH="));
    if tokens.iter().any(|token| *token == Token::Operator("||") || names_path(token)) {
        return None;
    }
    let mut tokens = tokens.into_iter().peekable();
    // After `set -e` a line that fails ends the command.
    let mut is_strict = false;
    loop {
        let (text, is_plain) = match tokens.next()? {
            Token::Word { text, .. } if ["!", "{"].contains(&text.as_str()) || is_assignment(&text) => continue,
            Token::Word { text, is_plain } => (text, is_plain),
            Token::Operator("(" | "\n") => continue,
            Token::Operator(_) => return None,
        };
        let mut rest = Vec::new();
        while let Some(Token::Word { text, .. }) = tokens.next_if(|token| matches!(token, Token::Word { .. })) {
            rest.push(text);
        }
        let end = tokens.next();
        let goes_on = match &end {
            Some(Token::Operator(";" | "\n")) => is_strict,
            Some(Token::Operator("&&" | "|" | ")")) | None => true,
            Some(_) => false,
        };
        if !is_plain {
            return None;
        }
        if GOES_ON.contains(&text.as_str()) {
            is_strict |= text == "set" && rest.iter().any(|option| option.starts_with('-') && option.contains('e'));
            if matches!(end, Some(Token::Operator("&&" | ";" | "\n"))) {
                continue;
            }
            return None;
        }
        let is_known = goes_on && !OWN.contains(&text.as_str());
        let is_elsewhere = text.contains('/') && !text.starts_with('/');
        return (is_known && !is_elsewhere && !text.is_empty()).then_some(text);
    }
}

/// Commands of the shell's own after which the next one counts.
const GOES_ON: [&str; 5] = [":", "cd", "export", "set", "umask"];

/// Its other own words, of the common shells: what follows them is anybody's guess.
const OWN: [&str; 60] = [
    ".", "[", "[[", "alias", "bg", "break", "builtin", "case", "command", "continue", "declare", "do", "done", "echo",
    "elif", "else", "esac", "eval", "exec", "exit", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash",
    "if", "in", "jobs", "kill", "let", "local", "popd", "printf", "pushd", "pwd", "read", "readonly", "return",
    "select", "shift", "shopt", "source", "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit",
    "unalias", "unset", "until", "wait", "while", "}",
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word {
        text: String,
        /// It stands for itself: nothing in it is for the shell to fill in.
        is_plain: bool,
    },
    Operator(&'static str),
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Words and operators, without comments and redirections; nothing where it takes a shell to read it.
fn read(command: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = command.chars();
    loop {
        let before = rest.clone();
        let Some(c) = rest.next() else { return Some(tokens) };
        let mut twice = |c: char| rest.clone().next() == Some(c) && rest.next().is_some();
        let operator = match c {
            ' ' | '\t' | '\r' => continue,
            '#' => {
                while rest.clone().next().is_some_and(|c| c != '\n') {
                    rest.next();
                }
                continue;
            }
            '\n' => "\n",
            ';' if twice(';') => return None,
            ';' => ";",
            '&' if twice('&') => "&&",
            '&' if twice('>') => return None,
            '&' => "&",
            '|' if twice('|') => "||",
            '|' if twice('&') => return None,
            '|' => "|",
            '(' => "(",
            ')' => ")",
            '<' | '>' => {
                // A document in place, or a program's output as a file.
                if (c == '<' && twice('<')) || twice('(') {
                    return None;
                }
                while rest.clone().next().is_some_and(|c| "<>&| \t".contains(c)) {
                    rest.next();
                }
                word(&mut rest)?;
                continue;
            }
            _ => {
                rest = before;
                let (text, is_plain) = word(&mut rest)?;
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                // `2>` is no word.
                if !(is_number && rest.clone().next().is_some_and(|c| c == '<' || c == '>')) {
                    tokens.push(Token::Word { text, is_plain });
                }
                continue;
            }
        };
        tokens.push(Token::Operator(operator));
    }
}

/// The word at the beginning of `rest`, without its quotes.
fn word(rest: &mut Chars<'_>) -> Option<(String, bool)> {
    let (mut text, mut is_plain) = (String::new(), true);
    while let Some(c) = rest.clone().next().filter(|c| !" \t\r\n;&|()<>".contains(*c)) {
        rest.next();
        match c {
            '\\' => text.push(rest.next().filter(|c| *c != '\n')?),
            '\'' => loop {
                match rest.next()? {
                    '\'' => break,
                    c => text.push(c),
                }
            },
            '"' => loop {
                match rest.next()? {
                    '"' => break,
                    '\\' => text.push(rest.next()?),
                    '`' => return None,
                    '$' if rest.clone().next() == Some('(') => return None,
                    c => {
                        is_plain &= c != '$';
                        text.push(c);
                    }
                }
            },
            '`' => return None,
            '$' if rest.clone().next().is_some_and(|c| "('\"".contains(c)) => return None,
            c => {
                is_plain &= !"$*?[{~".contains(c);
                text.push(c);
            }
        }
    }
    // Alone they are words of the shell's, not patterns.
    let is_own = ["[", "{"].contains(&text.as_str());
    Some((text, is_plain || is_own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_is_told_where_it_is_sure() {
        for (command, first) in [
            ("cargo test --all", Some("cargo")),
            ("  jq -e '.a || .b' x.json  ", Some("jq")),
            ("cd web && npm test", Some("npm")),
            ("VAR=1 OTHER='a b' make -j2", Some("make")),
            ("! grep -q TODO src/lib.rs", Some("grep")),
            ("(cd a && pytest -q)", Some("pytest")),
            ("{ pytest; }", None),
            ("jq . <a.json | sort", Some("jq")),
            ("2>&1 jq .", Some("jq")),
            ("jq . >out 2>/dev/null", Some("jq")),
            ("set -e; jq . a; true", Some("jq")),
            ("set -eu\njq . a\ntrue", Some("jq")),
            ("jq . a;", Some("jq")),
            ("# all of it\njq . a", Some("jq")),
            ("\"jq\" . 'a'", Some("jq")),
            ("/usr/bin/no-such --version", Some("/usr/bin/no-such")),
            ("env X=1 thing", Some("env")),
            ("export A=b && thing", Some("thing")),
            // What its absence means is another's business.
            ("nextest || cargo test", None),
            ("nextest; cargo test", None),
            ("nextest\ncargo test", None),
            ("server & sleep 1", None),
            // Of the shell, of the folder, or not to be told.
            ("test -e x && jq .", None),
            ("[ -e x ] && jq .", None),
            ("command -v jq && jq .", None),
            ("./scripts/check", None),
            ("scripts/check --all", None),
            ("cd x && ./run", None),
            ("if jq .; then true; fi", None),
            ("for f in *; do jq . $f; done", None),
            ("$PYTHON -m pytest", None),
            ("~/bin/tool", None),
            ("`which jq` .", None),
            ("\"$(which jq)\" .", None),
            ("PATH=$PWD/bin:$PATH tool", None),
            ("export PATH=$PWD/bin:$PATH && tool", None),
            ("f() { true; }; f", None),
            ("cat <<END\na || b\nEND", None),
            ("diff <(sort a) b", None),
            ("exec jq .", None),
            ("{a,b}", None),
            ("'unclosed", None),
            ("case x in x) jq;; esac", None),
            ("", None),
            (";", None),
            ("&& x", None),
        ] {
            assert_eq!(first_program(command).as_deref(), first, "`{command}`");
        }
    }
}
