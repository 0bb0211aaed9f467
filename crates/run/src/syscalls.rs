//! What a program in a sandbox asks of the kernel in vain: a filter of system calls, as seccomp(2) takes it.
//!
//! By `TIOCSTI` a program types for whoever sits before its terminal, into the shell that comes after it; by `TIOCLINUX` it pastes.
//! Newer kernels can forbid the former (`dev.tty.legacy_tiocsti`), few do. And the keys that the kernel keeps for a user
//! (keyrings(7)) are in no namespace.

/// The two requests of ioctl(2); source: `asm-generic/ioctls.h`, `ioctl_console(2)`.
const REFUSED: [u32; 2] = [0x5412, 0x541C];

/// A kind of programs that this processor runs, and the numbers of system calls in it; source: `linux/audit.h`, the tables of system
/// calls of Linux.
struct ProgramKind {
    kind: u32,
    ioctl: &'static [u32],
    /// `add_key`, `request_key`, `keyctl`.
    keys: &'static [u32],
}

/// None of another processor.
fn kinds() -> &'static [ProgramKind] {
    if cfg!(target_arch = "x86_64") {
        // Those of x32 are marked by a high bit.
        &[
            ProgramKind {
                kind: 0xC000_003E,
                ioctl: &[16, 0x4000_0202],
                keys: &[248, 249, 250, 0x4000_00F8, 0x4000_00F9, 0x4000_00FA],
            },
            ProgramKind {
                kind: 0x4000_0003,
                ioctl: &[54],
                keys: &[286, 287, 288],
            },
        ]
    } else if cfg!(target_arch = "aarch64") {
        &[
            ProgramKind {
                kind: 0xC000_00B7,
                ioctl: &[29],
                keys: &[217, 218, 219],
            },
            ProgramKind {
                kind: 0x4000_0028,
                ioctl: &[54],
                keys: &[309, 310, 311],
            },
        ]
    } else {
        &[]
    }
}

/// The filter, as bubblewrap reads it; `None` where there is none for this processor.
pub fn filter() -> Option<Vec<u8>> {
    // Classic BPF; source: `linux/bpf_common.h`, `linux/seccomp.h`.
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    // Where `struct seccomp_data` has them; of the second argument the lower half, which is all that `ioctl` looks at.
    const NUMBER: u32 = 0;
    const KIND: u32 = 4;
    const REQUEST: u32 = if cfg!(target_endian = "little") {
        24
    } else {
        28
    };
    const ALLOW: u32 = 0x7FFF_0000;
    /// With EPERM.
    const REFUSE: u32 = 0x0005_0001;

    let load = |at| (LOAD, 0, 0, at);
    let end = |how| (RETURN, 0, 0, how);
    if kinds().is_empty() {
        return None;
    }
    // Last what is asked of each `ioctl`, so that all jumps lead forward.
    let looked = [
        load(REQUEST),
        (JUMP_IF_EQUAL, 2, 0, REFUSED[0]),
        (JUMP_IF_EQUAL, 1, 0, REFUSED[1]),
        end(ALLOW),
        end(REFUSE),
    ];
    let mut program = looked.to_vec();
    // Any other kind of program is let do nothing.
    program.insert(0, end(REFUSE));
    for ProgramKind { kind, ioctl, keys } in kinds().iter().rev() {
        let count = ioctl.len() + keys.len();
        let mut part = vec![
            (JUMP_IF_EQUAL, 0, u8::try_from(count + 2).ok()?, *kind),
            load(NUMBER),
        ];
        for (place, number) in ioctl.iter().chain(*keys).enumerate() {
            // Over the rest of this part and all behind it up to what is asked, or to the refusal at the end.
            let asked = count - place + program.len() - looked.len();
            let over = if place < ioctl.len() {
                asked
            } else {
                asked + looked.len() - 1
            };
            part.push((JUMP_IF_EQUAL, u8::try_from(over).ok()?, 0, *number));
        }
        part.push(end(ALLOW));
        program.splice(0..0, part);
    }
    program.insert(0, load(KIND));
    let bytes = |(code, yes, no, value): (u16, u8, u8, u32)| {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&code.to_ne_bytes());
        (bytes[2], bytes[3]) = (yes, no);
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        bytes
    };
    Some(program.into_iter().flat_map(bytes).collect())
}
