//! Follows the lines of a growing file. Knows nothing of their meaning.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use super::bell::Bell;
use crate::file_watch::FileWatch;

/// Reads whole lines as they are appended, and rings a bell when there may be more.
#[derive(Debug)]
pub struct LineFollower {
    file: BufReader<File>,
    line: Vec<u8>,
    cut: u64,
    is_behind: bool,
    watch: Option<FileWatch>,
}

/// One line without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Bytes that are not UTF-8 become U+FFFD.
    pub text: String,
    /// The number of bytes dropped because the line was too long; 0 for a whole line.
    pub cut: u64,
}

impl LineFollower {
    /// The longest line kept, in bytes; longer ones are cut. One line of an agent's stream can hold a picture.
    pub const LONGEST: usize = 16 * 1024 * 1024;

    /// The most bytes read at a time without a line end.
    const STRIDE: usize = 1024 * 1024;

    /// Follows `path` from byte `offset`; `bell` rings when the file has changed.
    ///
    /// # Errors
    /// The system's error about the file. If it can't be watched (the user has no watches left), it is followed anyway:
    /// see [`LineFollower::patience`].
    pub fn open(path: &Path, offset: u64, bell: &Bell) -> io::Result<LineFollower> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let bell = bell.clone();
        let watch = FileWatch::new([path.to_owned()], move |_| bell.ring()).ok();
        let file = BufReader::with_capacity(64 * 1024, file);
        Ok(LineFollower {
            file,
            line: Vec::new(),
            cut: 0,
            is_behind: false,
            watch,
        })
    }

    /// Returns the longest time to sleep before looking again without a ring. Bounded even while watching, since some
    /// network file systems report no changes.
    pub fn patience(&self) -> Duration {
        if self.watch.is_some() {
            Duration::from_secs(2)
        } else {
            Duration::from_millis(100)
        }
    }

    /// Returns the file's current length in bytes; 0 if unknown.
    pub fn length(&self) -> u64 {
        self.file
            .get_ref()
            .metadata()
            .map_or(0, |metadata| metadata.len())
    }

    /// Skips everything not read yet.
    ///
    /// # Errors
    /// The system's error.
    pub fn skip_to_end(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        self.line.clear();
        self.cut = 0;
        self.is_behind = false;
        Ok(())
    }

    /// Returns true if the last [`LineFollower::next_line`] stopped within a long line that has more to read.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Returns the next whole line; `None` if there is none yet, or its end is far.
    ///
    /// # Errors
    /// The system's error on reading.
    pub fn next_line(&mut self) -> io::Result<Option<LogLine>> {
        self.is_behind = false;
        let mut passed = 0;
        loop {
            let fresh = match self.file.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                fresh => fresh?,
            };
            if fresh.is_empty() {
                return Ok(None);
            }
            let end = fresh.iter().position(|byte| *byte == b'\n');
            let part = &fresh[..end.unwrap_or(fresh.len())];
            let kept = part.len().min(LineFollower::LONGEST - self.line.len());
            self.line.extend_from_slice(&part[..kept]);
            self.cut += (part.len() - kept) as u64;
            let read = end.map_or(part.len(), |end| end + 1);
            self.file.consume(read);
            if end.is_some() {
                return Ok(Some(self.take_line()));
            }
            passed += read;
            if passed >= LineFollower::STRIDE {
                self.is_behind = true;
                return Ok(None);
            }
        }
    }

    /// Returns the unfinished line after the last line end. Call it when no writer is left.
    pub fn last_line(&mut self) -> Option<LogLine> {
        (!self.line.is_empty()).then(|| self.take_line())
    }

    fn take_line(&mut self) -> LogLine {
        let mut bytes = std::mem::take(&mut self.line);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        LogLine {
            text,
            cut: std::mem::take(&mut self.cut),
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests make and break files on purpose"
)]
mod tests {
    use super::*;
    use std::io::Write;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "compared with the result of `next_line`"
    )]
    fn line(text: &str) -> Option<LogLine> {
        Some(LogLine {
            text: text.to_owned(),
            cut: 0,
        })
    }

    #[test]
    fn lines_come_whole_however_they_are_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log");
        let mut file = File::create(&path).expect("the folder is writable");
        let bell = Bell::new();
        let mut follower = LineFollower::open(&path, 0, &bell).expect("the file is there");
        assert_eq!(follower.next_line().expect("readable"), None);
        file.write_all(b"one\ntw").expect("writable");
        assert!(
            bell.wait(Duration::from_secs(20)),
            "an append rings the bell"
        );
        assert_eq!(follower.next_line().expect("readable"), line("one"));
        assert_eq!(follower.next_line().expect("readable"), None);
        file.write_all(b"o\r\n\n\xff\nrest").expect("writable");
        assert_eq!(follower.next_line().expect("readable"), line("two"));
        assert_eq!(follower.next_line().expect("readable"), line(""));
        assert_eq!(follower.next_line().expect("readable"), line("\u{fffd}"));
        assert_eq!(follower.next_line().expect("readable"), None);
        assert_eq!(follower.last_line(), line("rest"));
        assert_eq!(follower.last_line(), None);
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_is_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log");
        let mut file = File::create(&path).expect("the folder is writable");
        let block = vec![b'x'; 1024 * 1024];
        for _ in 0..50 {
            file.write_all(&block).expect("writable");
        }
        file.write_all(b"\nshort\n").expect("writable");
        let mut follower = LineFollower::open(&path, 0, &Bell::new()).expect("the file is there");
        let long = loop {
            match follower.next_line().expect("readable") {
                Some(line) => break line,
                None => assert!(follower.is_behind(), "it is whole"),
            }
        };
        assert_eq!(long.text.len(), LineFollower::LONGEST);
        assert_eq!(long.cut, 50 * 1024 * 1024 - LineFollower::LONGEST as u64);
        assert_eq!(follower.next_line().expect("readable"), line("short"));
    }
}
