//! Keeps a program that has a person's terminal from putting keys into it: a filter of system calls, as seccomp(2) takes it.
//!
//! By `TIOCSTI` a program types for whoever sits before its terminal, into the shell that comes after it; by `TIOCLINUX` it pastes.
//! Newer kernels can forbid the former (`dev.tty.legacy_tiocsti`), few do.

/// The two requests of ioctl(2); source: `asm-generic/ioctls.h`, `ioctl_console(2)`.
const REFUSED: [u32; 2] = [0x5412, 0x541C];

/// How this processor's kinds of programs are told, and the numbers of `ioctl` in each; source: `linux/audit.h`, the tables of system
/// calls of Linux. `None` of another processor.
fn kinds() -> Option<&'static [(u32, &'static [u32])]> {
    if cfg!(target_arch = "x86_64") {
        // Those of x32 are marked by a high bit.
        Some(&[(0xC000_003E, &[16, 0x4000_0202]), (0x4000_0003, &[54])])
    } else if cfg!(target_arch = "aarch64") {
        Some(&[(0xC000_00B7, &[29]), (0x4000_0028, &[54])])
    } else {
        None
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
    const REQUEST: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };
    const ALLOW: u32 = 0x7FFF_0000;
    /// With EPERM.
    const REFUSE: u32 = 0x0005_0001;

    let load = |at| (LOAD, 0, 0, at);
    let end = |how| (RETURN, 0, 0, how);
    // Last what is asked of each `ioctl`, so that all jumps lead forward.
    let looked =
        [load(REQUEST), (JUMP_IF_EQUAL, 2, 0, REFUSED[0]), (JUMP_IF_EQUAL, 1, 0, REFUSED[1]), end(ALLOW), end(REFUSE)];
    let mut program = looked.to_vec();
    // Any other kind of program is let do nothing.
    program.insert(0, end(REFUSE));
    for (kind, numbers) in kinds()?.iter().rev() {
        let mut part = vec![(JUMP_IF_EQUAL, 0, u8::try_from(numbers.len() + 2).ok()?, *kind), load(NUMBER)];
        for (place, number) in numbers.iter().enumerate() {
            // Over the rest of this part, and over all behind it up to what is asked.
            let over = numbers.len() - place + program.len() - looked.len();
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
