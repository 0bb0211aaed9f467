//! Which very process: a pid alone is used again, after a reboot or soon. It knows nothing of leases, which keep it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::table::Entry;

/// A process of this host, named so that no other ever has the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    /// Ticks since boot at which it started (proc_pid_stat(5), field 22).
    pub start_time: u64,
    /// `/proc/sys/kernel/random/boot_id`: new at each boot.
    pub boot_id: String,
    /// Inode of its pid namespace: in another container the same pid is another process.
    pub pid_namespace: u64,
}

/// What can be said of a process from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    Dead,
    /// It lives, or lived, in another pid namespace, whose processes can't be seen from here.
    Unknown,
}

impl Identity {
    /// Of the running process `pid`.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn of(pid: u32) -> io::Result<Identity> {
        let entry = Entry::of(pid)
            .filter(|entry| !entry.is_zombie)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no process `{pid}` is running")))?;
        Ok(Identity {
            pid,
            start_time: entry.start_time,
            boot_id: boot_id().to_owned(),
            pid_namespace: pid_namespace(),
        })
    }

    /// Of this process.
    pub fn own() -> io::Result<Identity> {
        Identity::of(std::process::id())
    }

    /// Only to be asked on the host where the identity was made: elsewhere every boot id differs, and all seem dead.
    pub fn liveness(&self) -> Liveness {
        if self.boot_id != boot_id() {
            return Liveness::Dead;
        }
        if self.pid_namespace != pid_namespace() {
            return Liveness::Unknown;
        }
        match Entry::of(self.pid) {
            Some(entry) if entry.start_time == self.start_time && !entry.is_zombie => Liveness::Alive,
            _ => Liveness::Dead,
        }
    }

    pub fn is_alive(&self) -> bool {
        self.liveness() == Liveness::Alive
    }
}

/// This boot of this host; empty where the system doesn't tell.
pub fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    })
}

fn pid_namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_namesakes_are_not() {
        let own = Identity::own().expect("this process runs");
        assert_eq!(own.liveness(), Liveness::Alive);
        let rows = [
            (Identity { start_time: own.start_time + 1, ..own.clone() }, Liveness::Dead),
            (Identity { boot_id: "another".to_owned(), ..own.clone() }, Liveness::Dead),
            (Identity { pid_namespace: own.pid_namespace + 1, ..own.clone() }, Liveness::Unknown),
            // Above the highest pid that Linux gives (2^22).
            (Identity { pid: 4_194_305, ..own.clone() }, Liveness::Dead),
        ];
        for (identity, liveness) in rows {
            assert_eq!(identity.liveness(), liveness, "{identity:?}");
        }
        let text = serde_json::to_string(&own).expect("it has no odd fields");
        assert_eq!(serde_json::from_str::<Identity>(&text).expect("it was just written"), own);
    }
}
