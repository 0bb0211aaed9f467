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
