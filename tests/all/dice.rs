//! Chance that can be repeated.

/// Numbers that look random and are the same each time (xorshift64).
pub struct Dice(pub u64);

impl Dice {
    /// From 0 up to, but without, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A number that whoever runs the tests may set, to look further than the usual run does.
pub fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// Which slice of its cases a generator tries: the gate gives one by the commit, so that commit by commit all are tried.
/// `None`: all of them, as `scripts/soak` does.
pub fn slice() -> Option<usize> {
    match std::env::var("TAVERN_TEST_SLICE").as_deref() {
        Ok("all") => None,
        Ok(slice) => Some(slice.parse().expect("`all`, or a number")),
        Err(_) => Some(0),
    }
}

/// How many of `all` random cases a slice has, where there are so many slices.
pub fn share(all: u32, slices: u32) -> u32 {
    if slice().is_some() { all / slices } else { all }
}

/// The `nth` case is in the slice, where there are so many slices.
pub fn is_in_slice(nth: usize, slices: usize) -> bool {
    slice().is_none_or(|slice| nth % slices == slice % slices)
}
