//! The filter of system calls that a sandbox refuses, as seccomp(2) takes it.
//!
//! With `TIOCSTI` a program could type into the shell that uses its terminal afterwards; with `TIOCLINUX` it could
//! paste. Newer kernels can forbid the former (`dev.tty.legacy_tiocsti`), but few do. And the kernel's keys of a user
//! (keyrings(7)) are in no namespace.

/// The two requests of ioctl(2); source: `asm-generic/ioctls.h`, `ioctl_console(2)`.
const REFUSED: [u32; 2] = [0x5412, 0x541C];

/// A kind of program that this processor runs, with its numbers of system calls; source: `linux/audit.h`, Linux's
/// tables of system calls.
struct ProgramKind {
    kind: u32,
    ioctl: &'static [u32],
    /// `add_key`, `request_key`, `keyctl`.
    keys: &'static [u32],
}

/// Returns the kinds of this processor; empty for an unknown one.
fn kinds() -> &'static [ProgramKind] {
    if cfg!(target_arch = "x86_64") {
        // A high bit marks those of x32.
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

/// Returns the filter in bubblewrap's format; `None` if this processor is not supported.
pub fn filter() -> Option<Vec<u8>> {
    // Classic BPF; source: `linux/bpf_common.h`, `linux/seccomp.h`.
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    // Offsets in `struct seccomp_data`; of the second argument the lower half, since `ioctl` looks at nothing else.
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
    // The check of `ioctl` requests comes last, so that all jumps lead forward.
    let looked = [
        load(REQUEST),
        (JUMP_IF_EQUAL, 2, 0, REFUSED[0]),
        (JUMP_IF_EQUAL, 1, 0, REFUSED[1]),
        end(ALLOW),
        end(REFUSE),
    ];
    let mut program = looked.to_vec();
    // Programs of any other kind may do nothing.
    program.insert(0, end(REFUSE));
    for ProgramKind { kind, ioctl, keys } in kinds().iter().rev() {
        let count = ioctl.len() + keys.len();
        let mut part = vec![
            (JUMP_IF_EQUAL, 0, u8::try_from(count + 2).ok()?, *kind),
            load(NUMBER),
        ];
        for (place, number) in ioctl.iter().chain(*keys).enumerate() {
            // Jumps over the rest of this part and those behind it, to the check or to the refusal at the end.
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
