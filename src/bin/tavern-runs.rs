//! `tavern-runs`: see `src/runs.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::runs::Args>()
}
