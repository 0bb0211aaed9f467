//! Reads a pipe to its end in a thread, so that the writer never blocks.

use std::io::{self, ErrorKind, PipeReader, Read};
use std::sync::mpsc::{self, Receiver};

/// Pushes the content of `pipe` to `all`, which is sent once all writers have closed it.
///
/// # Errors
/// No thread can be started.
pub(super) fn read_all<T: Send + 'static>(
    mut pipe: PipeReader,
    mut all: T,
    push: fn(&mut T, &[u8]),
) -> io::Result<Receiver<T>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => push(&mut all, &chunk[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // The receiver may be gone.
        let _ = sender.send(all);
    })?;
    Ok(receiver)
}
