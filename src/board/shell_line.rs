//! The commands of a shell line, as far as they can be told without a shell. Who means to hide one can: a rule is no sandbox.

/// Words that run the command behind them.
const RUNNERS: [&str; 17] = [
    "!", "builtin", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "sudo", "then", "time",
    "until", "while", "xargs",
];

const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// The words of each command, without quotes, its program without a path.
pub fn commands_of(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for words in parts(line) {
        let mut words = &words[..];
        let mut is_behind_runner = false;
        while let Some(word) = words.first() {
            let is_variable = word.split_once('=').is_some_and(|(name, _)| is_name(name));
            // Options of a runner, and what they take, where that is no command.
            let is_option = is_behind_runner && word.starts_with('-');
            if is_option {
                let takes_word = matches!(&**word, "-u" | "-g" | "-k" | "-n" | "-s" | "-I");
                words = words.get(1 + usize::from(takes_word)..).unwrap_or(&[]);
            } else if word == "timeout" {
                let options = words[1..].iter().take_while(|word| word.starts_with('-')).count();
                let values = words[1..].iter().filter(|word| matches!(&***word, "-k" | "-s")).count();
                words = words.get(2 + options + values..).unwrap_or(&[]);
            } else if is_variable || RUNNERS.contains(&&**word) {
                is_behind_runner = !is_variable || is_behind_runner;
                words = &words[1..];
            } else {
                break;
            }
        }
        let Some((program, rest)) = words.split_first() else { continue };
        let program = program.rsplit('/').next().unwrap_or(program).to_owned();
        if SHELLS.contains(&&*program)
            && let Some(at) = rest.iter().position(|word| word == "-c")
        {
            found.extend(rest.get(at + 1).into_iter().flat_map(|line| commands_of(line)));
        }
        found.push(std::iter::once(program).chain(rest.iter().cloned()).collect());
    }
    found
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The words between operators and at line ends.
fn parts(line: &str) -> Vec<Vec<String>> {
    let (mut parts, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None::<String>, None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(letter),
            (_, '\\') => word.get_or_insert_default().extend(letters.next().filter(|escaped| *escaped != '\n')),
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ';' | '&' | '|' | '\n' | '(' | ')' | '`' | '{' | '}') => {
                words.extend(word.take());
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
            ("bash -ec 'no' -c 'a; b'", &["a", "b", "bash -ec no -c a; b"]),
            ("echo \"a; b\" \\; c", &["echo a; b ; c"]),
            ("timeout 5 sudo -u me env -i A=1 a", &["a"]),
            ("", &[]),
            ("a 'open", &["a open"]),
        ] {
            let words: Vec<String> = commands_of(line).iter().map(|words| words.join(" ")).collect();
            assert_eq!(words, found, "{line}");
        }
    }
}
