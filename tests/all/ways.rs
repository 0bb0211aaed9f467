//! How editors save: the system calls that `strace` shows of each, with pauses between any two of them.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::dice::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// nano, ed: the file is emptied as it is opened, and written anew.
    InPlace,
    /// VS Code: the same. What others have made of the file is loaded where nothing is unsaved.
    Code,
    /// gedit, kate: a new file takes its name.
    ByRename,
    /// vim: a probe, the old file gets another name, a new one is made and emptied, the backup goes.
    Vim,
    /// vim with `backupcopy=yes`: the old text is copied, the file is emptied and written anew, the copy goes.
    VimCopy,
    /// Emacs: at the first save the old file gets another name and stays, later it is written in place.
    Emacs,
}

pub const WAYS: [Way; 6] = [
    Way::InPlace,
    Way::Code,
    Way::ByRename,
    Way::Vim,
    Way::VimCopy,
    Way::Emacs,
];

/// Most often none, sometimes up to a second.
fn pause(dice: &mut Dice) {
    let most = match dice.below(24) {
        0 => 1000,
        1..4 => 60,
        _ => return,
    };
    thread::sleep(Duration::from_millis(dice.below(most)));
}

impl Way {
    /// Saves `text` after so many saves of this buffer. Somebody may take the file away, or put it back, at any moment.
    pub fn save(self, path: &Path, text: &str, before: usize, dice: &mut Dice) {
        let beside = |name: &str| path.with_file_name(name);
        let (temp, backup) = (beside(".goutputstream-X1"), path.with_extension("md~"));
        let (swap, lock) = (beside(".main.md.swp"), beside(".#main.md"));
        let is_put_aside = self == Way::Vim || (self == Way::Emacs && before == 0);
        match self {
            Way::Vim | Way::VimCopy => {
                fs::write(&swap, [0; 64]).expect("the folder is ours");
                let probe = beside("4913");
                File::create(&probe)
                    .and_then(|_| fs::remove_file(&probe))
                    .expect("the folder is ours");
            }
            Way::Emacs => drop(symlink("rosie@shire.1", &lock)),
            Way::InPlace | Way::Code | Way::ByRename => {}
        }
        if is_put_aside {
            pause(dice);
            let _ = fs::rename(path, &backup);
        }
        if self == Way::VimCopy {
            let _ = fs::copy(path, &backup);
        }
        pause(dice);
        let target = if self == Way::ByRename { &temp } else { path };
        let is_emptied = matches!(self, Way::Vim | Way::VimCopy);
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(!is_emptied)
            .open(target)
            .expect("the folder is ours");
        if is_emptied {
            file.set_len(0).expect("it is ours");
        }
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            pause(dice);
            // Also in the middle of a character.
            let piece = dice.below(2 * rest.len() as u64) as usize + 1;
            let (now, later) = rest.split_at(piece.min(rest.len()));
            file.write_all(now).expect("there is room");
            rest = later;
        }
        pause(dice);
        drop(file);
        pause(dice);
        let gone = match self {
            Way::ByRename => return fs::rename(&temp, path).expect("the folder is ours"),
            Way::Vim | Way::VimCopy => &[backup, swap][..],
            Way::Emacs => &[lock][..],
            Way::InPlace | Way::Code => &[][..],
        };
        gone.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}
