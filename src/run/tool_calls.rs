//! The tool calls of a run, a file each.

use super::artifacts::Artifacts;

/// `tool_calls/NNN_name.txt`: derived from the stream, so a failure to write one harms nothing.
pub(super) struct ToolCalls<'a> {
    artifacts: &'a Artifacts,
    open: Vec<(String, String, String)>,
    count: u32,
}

impl<'a> ToolCalls<'a> {
    pub(super) fn of(artifacts: &'a Artifacts) -> ToolCalls<'a> {
        ToolCalls { artifacts, open: Vec::new(), count: 0 }
    }

    pub(super) fn begin(&mut self, id: String, name: &str, input: &serde_json::Value) {
        self.count += 1;
        let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
        let file = format!("tool_calls/{:03}_{safe}.txt", self.count);
        let text = format!("{name} {}\n", serde_json::to_string_pretty(input).unwrap_or_default());
        drop(self.artifacts.write_derived(&file, &text));
        self.open.push((id, file, text));
    }

    pub(super) fn end(&mut self, id: &str, ok: bool, result: &str) {
        let Some(place) = self.open.iter().position(|(open, ..)| open == id) else { return };
        let (_, file, text) = self.open.swap_remove(place);
        let verdict = if ok { "ok" } else { "failed" };
        drop(self.artifacts.write_derived(&file, &format!("{text}\n--- {verdict}\n{result}\n")));
    }
}
