//! The beginning and the end of an output of any length, in bounded memory. Knows nothing of its source.

use std::collections::VecDeque;

use xxhash_rust::xxh3::Xxh3;

/// Keeps the first and the last bytes pushed, and a digest of everything.
pub struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    total: u64,
    digest: Xxh3,
}

impl Excerpt {
    /// Keeps at most `bytes` bytes: half from the beginning, half from the end.
    pub fn new(bytes: usize) -> Excerpt {
        let half = bytes / 2;
        Excerpt {
            head: Vec::new(),
            tail: VecDeque::new(),
            half,
            total: 0,
            digest: Xxh3::new(),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.digest.update(bytes);
        let to_head = bytes.len().min(self.half - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        let rest = &bytes[to_head..];
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Returns the number of bytes pushed but not kept.
    pub fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the digest of everything pushed: XXH3, 128 bits, as 32 hexadecimal digits.
    pub fn digest(&self) -> String {
        format!("{:032x}", self.digest.digest128())
    }

    /// Returns the kept text, with a line in the middle that says how much is missing. Bytes that are not UTF-8, such
    /// as half a character, become U+FFFD.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.omitted() == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let (head, tail) = (
            String::from_utf8_lossy(&self.head),
            String::from_utf8_lossy(&tail),
        );
        format!("{head}\n[… {} bytes left out …]\n{tail}", self.omitted())
    }

    /// Returns the end in one piece: everything if all was kept, else the lines after the gap.
    pub fn end(&self) -> String {
        if self.omitted() == 0 {
            return self.text();
        }
        let whole = self.tail.iter().position(|byte| *byte == b'\n');
        let tail: Vec<u8> = self
            .tail
            .iter()
            .skip(whole.map_or(0, |end| end + 1))
            .copied()
            .collect();
        String::from_utf8_lossy(&tail).into_owned()
    }
}

/// Returns an excerpt of `text` with at most `bytes` bytes.
pub fn excerpt(text: &str, bytes: usize) -> String {
    let mut kept = Excerpt::new(bytes);
    kept.push(text.as_bytes());
    kept.text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};
    use proptest::prop_assert_eq;

    proptest! {
        #[test]
        fn both_ends_are_kept_however_the_output_comes(parts in proptest::collection::vec(any::<Vec<u8>>(), 0..20), keep in 0usize..200) {
            let mut excerpt = Excerpt::new(keep);
            parts.iter().for_each(|part| excerpt.push(part));
            let all = parts.concat();
            let kept: Vec<u8> = excerpt.head.iter().chain(&excerpt.tail).copied().collect();
            prop_assert_eq!(excerpt.omitted() as usize + kept.len(), all.len());
            prop_assert_eq!(&all[..excerpt.head.len()], &excerpt.head[..]);
            prop_assert_eq!(&all[all.len() - excerpt.tail.len()..], &kept[excerpt.head.len()..]);
            assert!(kept.len() <= keep);
            assert!(kept.len() == all.len() || kept.len() + 1 >= keep);
        }
    }

    #[test]
    fn short_output_is_kept_whole_and_long_output_at_both_ends() {
        let mut excerpt = Excerpt::new(8);
        excerpt.push(b"abc");
        excerpt.push("dé".as_bytes());
        assert_eq!((excerpt.text().as_str(), excerpt.omitted()), ("abcdé", 0));
        excerpt.push(b"0123456789");
        assert_eq!(
            (excerpt.text().as_str(), excerpt.omitted()),
            ("abcd\n[… 8 bytes left out …]\n6789", 8)
        );
        excerpt.push(b"z");
        assert!(excerpt.text().ends_with("789z"));
        assert_eq!(excerpt.end(), "789z");
        excerpt.push(b"\nyz");
        assert_eq!(excerpt.end(), "yz");
    }

    #[test]
    fn the_digest_is_of_all_bytes_however_they_come() {
        let digest = |parts: &[&[u8]]| {
            let mut excerpt = Excerpt::new(2);
            parts.iter().for_each(|part| excerpt.push(part));
            excerpt.digest()
        };
        assert_eq!(
            digest(&[b"hello world"]),
            digest(&[b"hello", b" ", b"world"])
        );
        assert_ne!(digest(&[b"hello world"]), digest(&[b"hello_world"]));
        // The reference value of XXH3_128bits for no input.
        assert_eq!(digest(&[]), "99aa06d3014798d86001c324468d497f");
    }
}
