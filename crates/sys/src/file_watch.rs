//! Reports changes to files as they happen, by inotify(7). Knows nothing of their meaning.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::fs::inotify::{
    CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::Errno;

/// Changes of content and names, and the end of a save. Opening, reading and closing a file do not count: watchers
/// would wake one another forever.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVE);

/// How often `on_change` is called if nothing can be watched.
const WITHOUT_WATCH: Duration = Duration::from_secs(2);

/// A watch on files and folders until it is dropped; periodic calls if the user has no watches left.
#[derive(Debug)]
pub enum WatchOrLook {
    Watch { _files: FileWatch },
    Look { _until_dropped: Sender<()> },
}

impl WatchOrLook {
    /// Like [`FileWatch::new`]. If the user has no watches left (`fs.inotify.max_user_instances` is often 128),
    /// `on_change` is called with `None` every two seconds.
    ///
    /// # Errors
    /// The path that can't be watched, such as a missing one, with the system's error.
    pub fn new(
        paths: impl IntoIterator<Item = PathBuf>,
        on_change: impl Fn(Option<&Path>) + Send + Sync + 'static,
    ) -> Result<WatchOrLook, (PathBuf, io::Error)> {
        let on_change = Arc::new(on_change);
        let by_watch = Arc::clone(&on_change);
        match FileWatch::new(paths, move |path| by_watch(path)) {
            Ok(watch) => Ok(WatchOrLook::Watch { _files: watch }),
            Err((path, error)) if is_used_up(&error) => {
                let (until_dropped, end) = channel();
                let look = move || {
                    while end.recv_timeout(WITHOUT_WATCH) == Err(RecvTimeoutError::Timeout) {
                        on_change(None);
                    }
                };
                let started = std::thread::Builder::new().spawn(look);
                started.map_err(|error| (path, error))?;
                Ok(WatchOrLook::Look {
                    _until_dropped: until_dropped,
                })
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns true if the user, or the system, has no watches left.
fn is_used_up(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOSPC | Errno::NOMEM)
    )
}

/// A watch on files and folders until it is dropped.
#[derive(Debug)]
pub struct FileWatch {
    inotify: Arc<OwnedFd>,
    watched: Vec<(i32, PathBuf)>,
    is_over: Arc<AtomicBool>,
}

impl FileWatch {
    /// Calls `on_change`, in a thread of its own, with each path that has changed: one of `paths`, or a file in a
    /// folder among them. `None`: too much has changed to be named.
    ///
    /// # Errors
    /// The path that can't be watched, with the system's error: it does not exist, or the user has no watches left.
    pub fn new(
        paths: impl IntoIterator<Item = PathBuf>,
        on_change: impl Fn(Option<&Path>) + Send + 'static,
    ) -> Result<FileWatch, (PathBuf, io::Error)> {
        let mut paths = paths.into_iter().peekable();
        let mut first = || paths.peek().cloned().unwrap_or_default();
        let inotify = init(CreateFlags::CLOEXEC).map_err(|error| (first(), error.into()))?;
        let watch = |path: PathBuf| match add_watch(&inotify, &path, CHANGES) {
            Ok(number) => Ok((number, path)),
            Err(error) => Err((path, error.into())),
        };
        let watched = paths.map(watch).collect::<Result<Vec<_>, _>>()?;
        let (inotify, is_over) = (Arc::new(inotify), Arc::new(AtomicBool::new(false)));
        let started = std::thread::Builder::new().spawn({
            let (inotify, watched, is_over) =
                (Arc::clone(&inotify), watched.clone(), Arc::clone(&is_over));
            move || tell(&inotify, watched, &is_over, on_change)
        });
        if let Err(error) = started {
            let first = watched.into_iter().next();
            return Err((first.unwrap_or_default().1, error));
        }
        Ok(FileWatch {
            inotify,
            watched,
            is_over,
        })
    }
}

/// Reports changes until the watch is over, or nothing watched is left.
fn tell(
    inotify: &OwnedFd,
    mut watched: Vec<(i32, PathBuf)>,
    is_over: &AtomicBool,
    on_change: impl Fn(Option<&Path>),
) {
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(inotify, &mut space);
    while !watched.is_empty() {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::INTR) => continue,
            Err(_) => return,
        };
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            on_change(None);
        } else if event.events().contains(ReadFlags::IGNORED) {
            watched.retain(|(number, _)| *number != event.wd());
        } else {
            for (_, path) in watched.iter().filter(|(number, _)| *number == event.wd()) {
                match event.file_name() {
                    Some(name) => on_change(Some(&path.join(OsStr::from_bytes(name.to_bytes())))),
                    None => on_change(Some(path)),
                }
            }
        }
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        for (number, _) in &self.watched {
            // Removing the watches wakes the thread, which ends. Changes so far were reported already.
            let _ = remove_watch(&self.inotify, *number);
        }
    }
}
