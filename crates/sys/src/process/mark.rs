//! A mark: an environment variable by which a program and its descendants are recognised later, independent of
//! process groups, sessions and parents. Knows nothing of its value's meaning.

/// `NAME=value` in the environment of every process of a run. The value must be unique on this host forever: two boards
/// may both have a run `T-k3f9-1`, so use the absolute path of the run's folder or a UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    name: &'static str,
    value: String,
}

impl Mark {
    /// The variable that marks the processes of a run.
    pub const RUN: &'static str = "TAVERN_RUN";
    /// The variable that marks the processes of one shell command.
    pub const COMMAND: &'static str = "TAVERN_COMMAND";

    /// Returns the mark of all processes of the run `value`.
    pub fn run(value: impl Into<String>) -> Mark {
        Mark {
            name: Mark::RUN,
            value: value.into(),
        }
    }

    /// Returns a fresh mark for one shell command and its descendants.
    pub fn command() -> Mark {
        Mark {
            name: Mark::COMMAND,
            value: uuid::Uuid::new_v4().to_string(),
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns whether the mark is among the variables of `environ`, the NUL-separated text of `/proc/<pid>/environ`.
    /// An empty value matches nothing, so that a mistake can't end all of a user's processes.
    pub(super) fn is_in(&self, environ: &[u8]) -> bool {
        !self.value.is_empty()
            && values(self.name, environ).any(|value| value == self.value.as_bytes())
    }
}

/// Returns the values of the variable `name` in `environ`, the NUL-separated text of `/proc/<pid>/environ`.
pub(super) fn values<'a>(name: &'a str, environ: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let variables = environ.split(|byte| *byte == 0);
    variables.filter_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_variable_counts() {
        let mark = Mark::run("r1");
        let rows: [(&[u8], bool); 6] = [
            (b"TAVERN_RUN=r1\0HOME=/\0", true),
            (b"HOME=/\0TAVERN_RUN=r1", true),
            (b"TAVERN_RUN=r12\0", false),
            (b"MY_TAVERN_RUN=r1\0", false),
            (b"A=TAVERN_RUN=r1\0", false),
            (b"", false),
        ];
        for (environ, is_in) in rows {
            assert_eq!(
                mark.is_in(environ),
                is_in,
                "{}",
                String::from_utf8_lossy(environ)
            );
        }
        assert!(!Mark::run("").is_in(b"TAVERN_RUN=\0"));
    }
}
