//! A terminal of its own for one program, by util-linux's `script`: what is typed, and what is shown.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{Ran, Running, Scratch, wait_until};

pub struct Terminal {
    running: Running,
    keys: File,
    shown: PathBuf,
}

impl Terminal {
    /// Starts a shell's command line in a new terminal.
    pub fn start(scratch: &Scratch, line: &str) -> Terminal {
        let home = scratch.folder().join("home");
        let (keys, shown) = (home.join("keys"), home.join("shown"));
        // Another one may have been before.
        [&keys, &shown]
            .into_iter()
            .for_each(|path| drop(fs::remove_file(path)));
        scratch
            .command(Path::new("mkfifo"))
            .args(&[&keys.display().to_string()])
            .run()
            .succeeds();
        let typed = format!(
            "exec script -qefc 'exec {line}' '{}' <'{}'",
            shown.display(),
            keys.display()
        );
        let shell = scratch
            .command(Path::new("sh"))
            .args(&["-c", &typed])
            .variable("TERM", "xterm");
        let running = shell.start();
        let keys = OpenOptions::new()
            .write(true)
            .open(&keys)
            .expect("script reads it");
        Terminal {
            running,
            keys,
            shown,
        }
    }

    pub fn type_in(&mut self, text: &str) {
        self.keys
            .write_all(text.as_bytes())
            .expect("script reads it");
    }

    /// Returns once `text` was shown.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        let has_text = || {
            fs::read(&self.shown).is_ok_and(|shown| String::from_utf8_lossy(&shown).contains(text))
        };
        wait_until(&format!("`{text}` is shown"), has_text);
    }

    /// All that was written to it so far.
    pub fn written(&self) -> Vec<u8> {
        fs::read(&self.shown).unwrap_or_default()
    }

    /// Waits for the program's end; its exit code, and all that was shown.
    pub fn end(self) -> Ran {
        self.running.end()
    }
}

/// A terminal of so many rows and columns, as its screen shows what was written to it.
pub struct Window {
    terminal: Terminal,
    home: PathBuf,
    /// The sizes that it had, each from a number of bytes on.
    sizes: Vec<(usize, u16, u16)>,
}

impl Window {
    /// `words` are shell words: variables, mostly, and the program.
    pub fn start(scratch: &Scratch, rows: u16, columns: u16, words: &str) -> Window {
        let home = scratch.folder().join("home");
        let begin = format!("stty rows {rows} cols {columns}; stty -g >~/before; tty >~/tty");
        let inner = format!("echo $$ >~/pid; exec env {words}");
        // Ctrl-C is for the program.
        let lines = format!(
            "trap : INT\n{begin}\nsh -c '{inner}'\ncode=$?\nstty -g >~/after\nexit $code\n"
        );
        fs::write(home.join("window.sh"), lines).expect("it is ours");
        let terminal = Terminal::start(scratch, "env LC_ALL=C.UTF-8 sh ../home/window.sh");
        Window {
            terminal,
            home,
            sizes: vec![(0, rows, columns)],
        }
    }

    pub fn resize(&mut self, scratch: &Scratch, rows: u16, columns: u16) {
        let tty = fs::read_to_string(self.home.join("tty")).expect("it is written");
        let line = format!("stty -F {} rows {rows} cols {columns}", tty.trim());
        // It may be drawn anew before this is known here.
        let before = self.written().len();
        scratch
            .command("sh".as_ref())
            .args(&["-c", &line])
            .run()
            .succeeds();
        self.sizes.push((before, rows, columns));
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        let (_, rows, columns) = *self.sizes.last().expect("it had one from the beginning");
        (rows, columns)
    }

    /// What a terminal makes of what was written.
    pub fn parsed(&self) -> vt100::Parser {
        parse(&self.written(), &self.sizes)
    }

    /// What is to be seen now.
    pub fn screen(&self) -> String {
        self.parsed().screen().contents()
    }

    #[track_caller]
    pub fn shows(&self, parts: &[&str]) {
        let holds = || {
            let screen = self.screen();
            parts.iter().all(|part| screen.contains(part))
        };
        let wait = || wait_until(&format!("{parts:?} are shown"), holds);
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait));
        assert!(waited.is_ok(), "{parts:?} are not in\n{}", self.screen());
    }

    #[track_caller]
    pub fn hides(&self, part: &str) {
        wait_until(&format!("`{part}` is hidden"), || {
            !self.screen().contains(part)
        });
    }

    pub fn press(&mut self, keys: &str) {
        self.terminal.type_in(keys);
    }

    /// All that was written to it so far.
    pub fn written(&self) -> Vec<u8> {
        self.terminal.written()
    }

    /// The program's.
    pub fn pid(&self) -> rustix::process::Pid {
        let pid = fs::read_to_string(self.home.join("pid")).expect("it runs");
        rustix::process::Pid::from_raw(pid.trim().parse().expect("a number")).expect("a pid")
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("it runs, and is ours");
    }

    /// Waits for the program's end, after which the terminal is set as it was: all that was written, and the last screen.
    #[track_caller]
    pub fn end(self, code: i32) -> (Ran, String) {
        let Window {
            terminal,
            home,
            sizes,
        } = self;
        let shown = terminal.shown.clone();
        let ran = terminal.end().ends(code);
        let settings = ["before", "after"]
            .map(|name| fs::read_to_string(home.join(name)).expect("it is written"));
        assert_eq!(settings[0], settings[1], "the terminal is as it was");
        let written = fs::read(shown).expect("it is written");
        (ran, parse(&written, &sizes).screen().contents())
    }
}

fn parse(written: &[u8], sizes: &[(usize, u16, u16)]) -> vt100::Parser {
    let cells = |size: u16| size.try_into().expect("it is not 0");
    let (_, rows, columns) = sizes[0];
    let mut parser = vt100::Parser::new(cells(rows), cells(columns), 0);
    // The first line is that of `script` itself.
    let mut done = written
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(written.len(), |end| end + 1);
    for (from, rows, columns) in &sizes[1..] {
        parser.process(&written[done..*from]);
        parser.screen_mut().set_size(cells(*rows), cells(*columns));
        done = *from;
    }
    parser.process(&written[done..]);
    parser
}
