//! Quota files `quota/<runner>.yaml`: a provider's limit, obeyed by every loop of that runner. A person may edit or
//! delete the file; that reopens the runner at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::atomic_write::replace_volatile;
use super::board::Board;
use super::error::Error;
use tavern_core::task::Timestamp;
use tavern_core::yaml;
use tavern_sys::files;

/// Until when a runner is closed, and why.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Quota {
    pub closed_until: Timestamp,
    pub reason: String,
    /// Time alone will not open it: the key was refused, or the credit is used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_person: bool,
}

impl Quota {
    /// Returns a message for people: which runner is closed, why, and until when.
    pub fn message_for(&self, runner: &str) -> String {
        format!(
            "runner {runner} is closed until {}: {}",
            self.closed_until, self.reason
        )
    }
}

impl Board {
    /// Returns the limit of `runner` if it is closed at `now`.
    pub fn quota(&self, runner: &str, now: Timestamp) -> Option<Quota> {
        let text = files::read_text(self.path(&format!("quota/{runner}.yaml"))).ok()?;
        let quota: Quota = yaml::read(&text).ok()?;
        (quota.closed_until > now).then_some(quota)
    }

    /// Returns all runners that are closed at `now`.
    pub fn quotas(&self, now: Timestamp) -> Vec<(String, Quota)> {
        let files = files::names_in(&self.path("quota")).unwrap_or_default();
        let mut quotas: Vec<(String, Quota)> = files
            .into_iter()
            .filter_map(|(name, _)| {
                let name = name.to_str()?.strip_suffix(".yaml")?.to_owned();
                let quota = self.quota(&name, now)?;
                Some((name, quota))
            })
            .collect();
        quotas.sort_by(|a, b| a.0.cmp(&b.0));
        quotas
    }

    /// Closes `runner`; of two limits, the later end counts.
    pub fn close_runner(&self, runner: &str, quota: &Quota, now: Timestamp) -> Result<(), Error> {
        if self
            .quota(runner, now)
            .is_some_and(|closed| closed.closed_until >= quota.closed_until)
        {
            return Ok(());
        }
        let text = serde_yaml::to_string(quota).expect("a quota is plain data");
        replace_volatile(&self.path(&format!("quota/{runner}.yaml")), text.as_bytes())
    }
}
