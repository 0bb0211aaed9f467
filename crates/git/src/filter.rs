//! Runs the user's filters in a sandbox of their own over files that sandboxed agents have made.
//!
//! git starts a filter in the work folder, so its command line may run a program there (`./clean.sh`, `make clean`, a
//! Python module), which an agent can replace. The command line alone does not show which filters do. Other filters
//! read settings there: git-lfs obeys `.lfsconfig`, which names the server it contacts with the user's keys. So all
//! filters run in the sandbox. Only git-lfs may write, and only to its own store.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Pattern for `git config --get-regexp`: command lines of filters, and the storage folder of git-lfs.
pub(super) const FILTERS: &str = r"^(filter\..*\.(clean|smudge|process)|lfs\.storage)$";

const LFS_STORAGE: &[u8] = b"lfs.storage";

/// Makes git-lfs leave the pointer of a file that it can't fetch. Otherwise an agent's made-up pointer would block
/// all later files.
const KEEPS_POINTERS: &str = "GIT_LFS_SKIP_DOWNLOAD_ERRORS";

/// By default git-lfs would retry for a minute.
const FEW_TRIES: (&[u8], &[u8]) = (b"lfs.transfer.maxretries", b"1");

/// A setting that overrides the user's. The filter must succeed, or git would store the unfiltered contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Overruled {
    setting: OsString,
    value: OsString,
}

impl Overruled {
    /// Returns the argument for git; `number` is unique within one call.
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

/// Returns overrides that start each filter listed by `git config --null --get-regexp` in `sandbox`. `common` is the
/// common directory of the repository.
pub(super) fn in_sandbox(listed: &[u8], sandbox: &[OsString], common: &Path) -> Vec<Overruled> {
    // The last of several lines counts.
    let mut all: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    for record in listed.split(|byte| *byte == 0) {
        if let Some(end) = record.iter().position(|byte| *byte == b'\n') {
            all.insert(&record[..end], &record[end + 1..]);
        }
    }
    let storage = all.remove(LFS_STORAGE).filter(|place| !place.is_empty());
    let store = common.join(storage.map_or(OsStr::new("lfs"), OsStr::from_bytes));
    all.retain(|_, line| !line.is_empty());
    let [sandbox, with_store] = [started_by(sandbox), started_by_with(sandbox, &store)];
    let mut overruled = BTreeMap::new();
    for (setting, line) in all {
        let start = setting
            .iter()
            .rposition(|byte| *byte == b'.')
            .unwrap_or_default();
        let sandbox = if is_lfs(line) {
            overruled.insert(FEW_TRIES.0.to_vec(), FEW_TRIES.1.to_vec());
            &with_store
        } else {
            &sandbox
        };
        // git sends paths to a process over its protocol; in other lines it substitutes them.
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

/// Returns true for `git-lfs` or `git lfs` with plain words.
fn is_lfs(line: &[u8]) -> bool {
    let rest = line
        .strip_prefix(b"git-lfs ")
        .or_else(|| line.strip_prefix(b"git lfs "));
    rest.is_some_and(|rest| {
        rest.iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b" -%".contains(byte))
    })
}

/// Returns the start of a command line, to be followed by a program and its arguments.
fn started_by(sandbox: &[OsString]) -> Vec<u8> {
    let words = sandbox.iter().map(|word| quoted(word.as_bytes()));
    [b"exec ".to_vec(), words.collect::<Vec<_>>().join(&b' ')].concat()
}

/// Like `started_by`, with write access to everything below `store`.
fn started_by_with(sandbox: &[OsString], store: &Path) -> Vec<u8> {
    let Some((end, options)) = sandbox.split_last() else {
        return started_by(sandbox);
    };
    let [bind, set] = ["--bind", "--setenv"].map(OsStr::new);
    let place = store.as_os_str();
    let own = [
        bind,
        place,
        place,
        set,
        KEEPS_POINTERS.as_ref(),
        "1".as_ref(),
        end,
    ];
    let all: Vec<OsString> = options
        .iter()
        .cloned()
        .chain(own.map(OsString::from))
        .collect();
    let make = [
        b"mkdir -p ".to_vec(),
        quoted(store.as_os_str().as_bytes()),
        b" && ".to_vec(),
    ];
    [make.concat(), started_by(&all)].concat()
}

fn process(line: &[u8], sandbox: &[u8]) -> Vec<u8> {
    [sandbox, b" 'sh' '-c' ", &quoted(line)].concat()
}

/// Like `process`, for a line in which git substitutes the path for `%f` and `%` for `%%`. The path must not be
/// within other quotes.
fn once(line: &[u8], sandbox: &[u8]) -> Vec<u8> {
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
    fn all_are_started_by_the_sandbox_where_git_lfs_writes_to_its_store() {
        let listed = b"filter.a.b.clean\n./it's %f 100%%\0filter.lfs.clean\ngit-lfs clean -- %f\0filter.p.process\nrun %f\0\
            filter.p.process\nwalk %f\0filter.odd.clean\ngit-lfs clean; ./x\0filter.none.smudge\n\0filter.no-value.clean\0\
            filter.lfs.process\ngit-lfs filter-process\0";
        let sandbox = ["box".into(), "/100%".into(), "--".into()];
        let found = in_sandbox(listed, &sandbox, Path::new("/r/.git"));
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
                    r#"exec 'box' '/100%%' '--' 'sh' '-c' './it'\''s "$1" 100%%' sh %f"#
                ),
                ("filter.a.b.required", "true"),
                (
                    "filter.lfs.clean",
                    "mkdir -p '/r/.git/lfs' && exec 'box' '/100%%' '--bind' '/r/.git/lfs' '/r/.git/lfs' '--setenv' 'GIT_LFS_SKIP_DOWNLOAD_ERRORS' '1' '--' \
                     'sh' '-c' 'git-lfs clean -- \"$1\"' sh %f"
                ),
                (
                    "filter.lfs.process",
                    "mkdir -p '/r/.git/lfs' && exec 'box' '/100%' '--bind' '/r/.git/lfs' '/r/.git/lfs' '--setenv' 'GIT_LFS_SKIP_DOWNLOAD_ERRORS' '1' '--' \
                     'sh' '-c' 'git-lfs filter-process'"
                ),
                ("filter.lfs.required", "true"),
                (
                    "filter.odd.clean",
                    "exec 'box' '/100%%' '--' 'sh' '-c' 'git-lfs clean; ./x' sh %f"
                ),
                ("filter.odd.required", "true"),
                (
                    "filter.p.process",
                    "exec 'box' '/100%' '--' 'sh' '-c' 'walk %f'"
                ),
                ("filter.p.required", "true"),
                ("lfs.transfer.maxretries", "1"),
            ]
        );
        let elsewhere = b"filter.lfs.process\ngit lfs filter-process\0lfs.storage\n/big\0";
        let found = in_sandbox(elsewhere, &sandbox, Path::new("/r/.git"));
        assert_eq!(
            found[0].value,
            "mkdir -p '/big' && exec 'box' '/100%' '--bind' '/big' '/big' '--setenv' 'GIT_LFS_SKIP_DOWNLOAD_ERRORS' '1' '--' 'sh' '-c' 'git lfs filter-process'"
        );
    }
}
