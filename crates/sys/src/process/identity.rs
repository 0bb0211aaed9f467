//! The identity of a process: a pid alone is reused, after a reboot or soon. Knows nothing of leases, which store it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use super::table::ProcessEntry;
use tavern_core::lease::{Life, Process};

/// Returns the identity of the running process `pid`; `None` if there is none.
pub fn identify(pid: u32) -> Option<Process> {
    identify_entry(&ProcessEntry::of(pid)?)
}

/// Returns the identity of the process of `entry`; `None` if it has ended.
pub(super) fn identify_entry(entry: &ProcessEntry) -> Option<Process> {
    (!entry.is_zombie).then(|| Process {
        pid: entry.pid,
        start_time: entry.start_time,
        boot_id: boot_id().to_owned(),
        pid_namespace: pid_namespace(),
    })
}

/// Returns whether `process` is running. Call it only on the host where it was identified: elsewhere every boot ID
/// differs, and all processes seem gone.
pub fn life(process: &Process) -> Life {
    if process.boot_id != boot_id() {
        return Life::Gone;
    }
    if process.pid_namespace != pid_namespace() {
        return Life::Unknown;
    }
    match ProcessEntry::of(process.pid) {
        Some(entry) if entry.start_time == process.start_time && !entry.is_zombie => Life::Alive,
        _ => Life::Gone,
    }
}

/// Returns the ID of this boot of this host; empty if unknown.
pub fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        let mut text = [0; 64];
        let length = fs::File::open("/proc/sys/kernel/random/boot_id")
            .and_then(|mut file| file.read(&mut text))
            .unwrap_or_default();
        String::from_utf8_lossy(&text[..length]).trim().to_owned()
    })
}

fn pid_namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE
        .get_or_init(|| fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino()))
}

/// Returns true in the first pid namespace (`PROC_PID_INIT_INO`), from which no process is hidden.
pub(super) fn sees_all() -> bool {
    pid_namespace() == 0xEFFF_FFFC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_namesakes_are_not() {
        let own = identify(std::process::id()).expect("this process runs");
        assert_eq!(life(&own), Life::Alive);
        let rows = [
            (
                Process {
                    start_time: own.start_time + 1,
                    ..own.clone()
                },
                Life::Gone,
            ),
            (
                Process {
                    boot_id: "another".to_owned(),
                    ..own.clone()
                },
                Life::Gone,
            ),
            (
                Process {
                    pid_namespace: own.pid_namespace + 1,
                    ..own.clone()
                },
                Life::Unknown,
            ),
            // Above the highest pid that Linux gives (2^22).
            (
                Process {
                    pid: 4_194_305,
                    ..own
                },
                Life::Gone,
            ),
        ];
        for (process, life) in rows {
            assert_eq!(super::life(&process), life, "{process:?}");
        }
    }
}
