//! Limits of one run of an item.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of one run of a task; `None` leaves it to the role's and the board's limits.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Wall time in minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Tokens in and out, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Turns of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Resident memory of the process tree in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
}

impl Budget {
    pub fn is_empty(&self) -> bool {
        *self == Budget::default()
    }

    /// Returns these limits, and those of `other` that are unset here.
    pub fn or(&self, other: &Budget) -> Budget {
        Budget {
            usd: self.usd.or(other.usd),
            minutes: self.minutes.or(other.minutes),
            tokens: self.tokens.or(other.tokens),
            turns: self.turns.or(other.turns),
            memory_mb: self.memory_mb.or(other.memory_mb),
        }
    }
}
