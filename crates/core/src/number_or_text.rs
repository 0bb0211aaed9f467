//! A value that people may type as a number or as a text.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};

/// Reads a number or a text as the typed text.
pub struct NumberOrText<T> {
    expected: &'static str,
    value: PhantomData<T>,
}

impl<T> NumberOrText<T> {
    /// `expected` describes the valid values, for the error message.
    pub fn new(expected: &'static str) -> NumberOrText<T> {
        NumberOrText {
            expected,
            value: PhantomData,
        }
    }
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for NumberOrText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
