//! `tavern-runs`: see `src/cli/runs.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::runs::Args>()
}
