//! The user's filters, as they are run over what agents in a sandbox have made: in a sandbox of their own.
//!
//! git starts a filter in the folder of the work, so its command line may lead to a program there (`./clean.sh`, `make clean`, a module
//! of Python), which is an agent's by then. Which do can't be told from the words. So all are run so, but git-lfs: that
//! obeys nothing that lies there, and has to write to the git directory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The settings that are command lines of filters, for `git config --get-regexp`.
pub(super) const FILTERS: &str = r"^filter\..*\.(clean|smudge|process)$";

/// A setting that wins over the user's. It must succeed, or git would take the contents as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Overruled {
    setting: OsString,
    value: OsString,
}

impl Overruled {
    /// What git is called with; `number` is its own among those of one call.
    pub(super) fn argument(&self, number: usize) -> OsString {
        let mut argument = OsString::from("--config-env=");
        argument.push(&self.setting);
        argument.push(format!("={}", variable(number)));
        argument
    }

    pub(super) fn variable(&self, number: usize) -> (OsString, OsString) {
        (variable(number).into(), self.value.clone())
    }
}

fn variable(number: usize) -> String {
    format!("TAVERN_FILTER_{number}")
}

/// The filters that `git config --null --get-regexp` lists, each started by `sandbox`.
pub(super) fn in_sandbox(listed: &[u8], sandbox: &[OsString]) -> Vec<Overruled> {
    // Of several lines the last one counts.
    let mut all: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for record in listed.split(|byte| *byte == 0) {
        if let Some(end) = record.iter().position(|byte| *byte == b'\n') {
            all.insert(&record[..end], &record[end + 1..]);
        }
    }
    all.retain(|_, line| !line.is_empty() && !is_lfs(line));
    let mut overruled = BTreeMap::new();
    for (setting, line) in all {
        let start = setting
            .iter()
            .rposition(|byte| *byte == b'.')
            .unwrap_or_default();
        // To the process git speaks of each path, in the other lines it puts the path itself.
        let value = if setting.ends_with(b".process") {
            process(line, sandbox)
        } else {
            once(line, sandbox)
        };
        overruled.insert(setting.to_vec(), value);
        overruled.insert([&setting[..start], b".required"].concat(), b"true".to_vec());
    }
    let os = OsString::from_vec;
    overruled
        .into_iter()
        .map(|(setting, value)| Overruled {
            setting: os(setting),
            value: os(value),
        })
        .collect()
}

/// `git-lfs` or `git lfs` and plain words.
fn is_lfs(line: &[u8]) -> bool {
    let rest = line
        .strip_prefix(b"git-lfs ")
        .or_else(|| line.strip_prefix(b"git lfs "));
    rest.is_some_and(|rest| {
        rest.iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b" -%".contains(byte))
    })
}

fn process(line: &[u8], sandbox: &[OsString]) -> Vec<u8> {
    let words = sandbox.iter().map(OsString::as_os_str);
    let words = words
        .chain(["sh", "-c"].map(OsStr::new))
        .map(OsStrExt::as_bytes)
        .chain([line])
        .map(quoted);
    [b"exec ".to_vec(), words.collect::<Vec<_>>().join(&b' ')].concat()
}

/// The same for a line in which git puts the path for `%f`, and `%` for `%%`. A path must not stand within other quotes.
fn once(line: &[u8], sandbox: &[OsString]) -> Vec<u8> {
    let mut given = Vec::new();
    let mut rest = line;
    while let Some((first, after)) = rest.split_first() {
        let (put, left): (&[u8], _) = match (first, after.first()) {
            (b'%', Some(b'f')) => (b"\"$1\"", &after[1..]),
            (b'%', Some(b'%')) => (b"%", &after[1..]),
            _ => (&rest[..1], after),
        };
        given.extend_from_slice(put);
        rest = left;
    }
    let mut whole = Vec::new();
    for byte in process(&given, sandbox) {
        whole.extend(std::iter::repeat_n(byte, if byte == b'%' { 2 } else { 1 }));
    }
    [whole, b" sh %f".to_vec()].concat()
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = word.split(|byte| *byte == b'\'').collect();
    [b"'", parts.join(&br"'\''"[..]).as_slice(), b"'"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_git_lfs_are_started_by_the_sandbox() {
        let listed = b"filter.a.b.clean\n./it's %f 100%%\0filter.lfs.clean\ngit-lfs clean -- %f\0filter.p.process\nrun %f\0\
            filter.p.process\nwalk %f\0filter.odd.clean\ngit-lfs clean; ./x\0filter.none.smudge\n\0filter.no-value.clean\0";
        let found = in_sandbox(listed, &["box".into(), "/100%".into()]);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|all| {
                (
                    all.setting.to_str().expect("UTF-8"),
                    all.value.to_str().expect("UTF-8"),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (
                    "filter.a.b.clean",
                    r#"exec 'box' '/100%%' 'sh' '-c' './it'\''s "$1" 100%%' sh %f"#
                ),
                ("filter.a.b.required", "true"),
                (
                    "filter.odd.clean",
                    "exec 'box' '/100%%' 'sh' '-c' 'git-lfs clean; ./x' sh %f"
                ),
                ("filter.odd.required", "true"),
                ("filter.p.process", "exec 'box' '/100%' 'sh' '-c' 'walk %f'"),
                ("filter.p.required", "true"),
            ]
        );
    }
}
