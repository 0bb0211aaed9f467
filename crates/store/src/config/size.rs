//! A number of bytes as people write it: `64KiB`, `2MiB`, `100kB`, or a plain number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use tavern_core::number_or_text::NumberOrText;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u64);

/// The text is not a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size such as 64KiB, 2MiB or a number of bytes")]
pub struct BadSize(String);

/// Units, largest first; sizes print with the binary ones only.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

impl Size {
    /// Creates a size in KiB.
    pub const fn kib(kib: u64) -> Size {
        Size(kib << 10)
    }

    /// Creates a size in MiB.
    pub const fn mib(mib: u64) -> Size {
        Size(mib << 20)
    }

    /// Returns the number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Size, BadSize> {
        let text = text.trim();
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let number = text[..digits].parse::<u64>().ok();
        let unit = text[digits..].trim_start();
        let factor = UNITS
            .iter()
            .find(|(name, _)| unit.is_empty() || name.eq_ignore_ascii_case(unit));
        let factor = factor.map(|(_, factor)| if unit.is_empty() { 1 } else { *factor });
        number
            .zip(factor)
            .and_then(|(number, factor)| number.checked_mul(factor))
            .map(Size)
            .ok_or_else(|| BadSize(text.to_owned()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(name, factor)| {
            let is_written = name.len() != 2;
            is_written && self.0 >= *factor && self.0.is_multiple_of(*factor)
        });
        let (name, factor) = unit.unwrap_or(&("B", 1));
        f.pad(&format!("{}{name}", self.0 / factor))
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        deserializer.deserialize_any(NumberOrText::new("a size such as 64KiB or 2MiB"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes, written) in [
            ("64KiB", 65_536, "64KiB"),
            ("64 kib", 65_536, "64KiB"),
            ("2MiB", 2_097_152, "2MiB"),
            ("1GiB", 1_073_741_824, "1GiB"),
            ("100kB", 100_000, "100000B"),
            ("1024", 1_024, "1KiB"),
            ("0", 0, "0B"),
        ] {
            let size: Size = text.parse().expect(text);
            assert_eq!(
                (size.bytes(), size.to_string()),
                (bytes, written.to_owned()),
                "{text}"
            );
            assert_eq!(written.parse(), Ok(size));
        }
        for text in ["", "KiB", "-1", "1.5MiB", "1XB", "99999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "`{text}`");
        }
    }
}
