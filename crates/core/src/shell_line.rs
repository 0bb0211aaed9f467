//! Finds the commands of a shell line, as far as possible without a shell. A command can be hidden on
//! purpose: a rule is no sandbox.

/// Words that run the command behind them.
const RUNNERS: [&str; 21] = [
    "!", "builtin", "command", "do", "doas", "elif", "else", "env", "exec", "if", "ionice", "nice",
    "nohup", "setsid", "stdbuf", "sudo", "then", "time", "until", "while", "xargs",
];

const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// Options of git before its command that take a word.
const GIT_OPTIONS: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// Returns the words of each command without quotes. Programs come without their paths, and git without the
/// options before its command.
pub fn commands_of(line: &str) -> Vec<Vec<String>> {
    parts(line)
        .iter()
        .flat_map(|words| command(words))
        .collect()
}

/// Returns the command of these words, behind the commands that it runs itself.
fn command(mut words: &[String]) -> Vec<Vec<String>> {
    let mut is_behind_runner = false;
    while let Some(word) = words.first() {
        let is_variable = word.split_once('=').is_some_and(|(name, _)| is_name(name));
        // Skips options of a runner with their values, unless they are commands.
        let is_option = is_behind_runner && word.starts_with('-');
        if let Some(target) = redirected(word) {
            words = words
                .get(1 + usize::from(target.is_empty())..)
                .unwrap_or(&[]);
        } else if is_option {
            let takes_word = matches!(&**word, "-u" | "-g" | "-k" | "-n" | "-s" | "-I");
            words = words.get(1 + usize::from(takes_word)..).unwrap_or(&[]);
        } else if word == "timeout" {
            let options = words[1..]
                .iter()
                .take_while(|word| word.starts_with('-'))
                .count();
            let values = words[1..]
                .iter()
                .filter(|word| matches!(&***word, "-k" | "-s"))
                .count();
            words = words.get(2 + options + values..).unwrap_or(&[]);
        } else if is_variable || RUNNERS.contains(&&**word) {
            is_behind_runner = !is_variable || is_behind_runner;
            words = &words[1..];
        } else {
            break;
        }
    }
    let Some((program, rest)) = words.split_first() else {
        return Vec::new();
    };
    let program = program.rsplit('/').next().unwrap_or(program).to_owned();
    let (mut found, mut rest) = (Vec::new(), rest);
    match &*program {
        "eval" => found.extend(commands_of(&rest.join(" "))),
        "find" => {
            let inner = |at: usize| {
                command(
                    rest[at + 1..]
                        .split(|word| matches!(&**word, ";" | "+"))
                        .next()
                        .unwrap_or(&[]),
                )
            };
            let is_exec =
                |word: &String| matches!(&**word, "-exec" | "-execdir" | "-ok" | "-okdir");
            found.extend(
                (0..rest.len())
                    .filter(|at| is_exec(&rest[*at]))
                    .flat_map(inner),
            );
        }
        "git" => {
            while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
                let takes_word = GIT_OPTIONS.contains(&&**option);
                rest = rest.get(1 + usize::from(takes_word)..).unwrap_or(&[]);
            }
        }
        shell if SHELLS.contains(&shell) => {
            let is_line = |word: &String| {
                word.starts_with('-') && !word.starts_with("--") && word.contains('c')
            };
            let line = rest
                .iter()
                .position(is_line)
                .and_then(|at| rest.get(at + 1));
            found.extend(line.into_iter().flat_map(|line| commands_of(line)));
        }
        _ => {}
    }
    found.push(
        std::iter::once(program)
            .chain(rest.iter().cloned())
            .collect(),
    );
    found
}

/// Returns the target of a redirection such as `2>>file`; empty: it is the next word.
fn redirected(word: &str) -> Option<&str> {
    let operator = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
    operator
        .starts_with(['<', '>'])
        .then(|| operator.trim_start_matches(['<', '>', '&', '|']))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the words between operators and at line ends.
fn parts(line: &str) -> Vec<Vec<String>> {
    let (mut parts, mut words, mut word, mut quote) =
        (Vec::new(), Vec::new(), None::<String>, None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(letter),
            (_, '\\') => {
                let escaped = letters.next().filter(|escaped| *escaped != '\n');
                escaped
                    .into_iter()
                    .for_each(|letter| word.get_or_insert_default().push(letter));
            }
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            // A brace that is a word of its own; `{}` is not.
            (None, '{' | '}')
                if word.is_some()
                    || letters
                        .peek()
                        .is_some_and(|next| !";&|) \t\n".contains(*next)) =>
            {
                word.get_or_insert_default().push(letter);
            }
            (None, ';' | '&' | '|' | '\n' | '(' | ')' | '`' | '{' | '}') => {
                words.extend(word.take());
                parts.push(std::mem::take(&mut words));
            }
            (None, '#') if word.is_none() => {
                // A comment, up to the end of the line.
                letters
                    .by_ref()
                    .take_while(|letter| *letter != '\n')
                    .for_each(drop);
                parts.push(std::mem::take(&mut words));
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    parts.push(words);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_a_line_is_found() {
        for (line, found) in [
            ("a b; c", &["a b", "c"][..]),
            ("x=1 y=\"2 3\" ./bin/a 'b c' && (d)", &["a b c", "d"]),
            ("bash -ec 'a; b' -c no", &["a", "b", "bash -ec a; b -c no"]),
            ("bash --norc -lc a", &["a", "bash --norc -lc a"]),
            ("eval 'a b' c", &["a b c", "eval a b c"]),
            ("git -C . -c x=y --no-pager push it", &["git push it"]),
            (">x 2> y a >z", &["a >z"]),
            (
                "find . -exec a {} \\; -exec b",
                &["a {}", "b", "find . -exec a {} ; -exec b"],
            ),
            ("f() { a {}; }", &["f", "a {}"]),
            ("stdbuf -oL setsid a", &["a"]),
            ("a \\\n b", &["a b"]),
            ("a # b; c\nd#e", &["a", "d#e"]),
            ("echo \"a; b\" \\; c", &["echo a; b ; c"]),
            ("timeout 5 sudo -u me env -i A=1 a", &["a"]),
            ("", &[]),
            ("a 'open", &["a open"]),
        ] {
            let words: Vec<String> = commands_of(line)
                .iter()
                .map(|words| words.join(" "))
                .collect();
            assert_eq!(words, found, "{line}");
        }
    }
}
