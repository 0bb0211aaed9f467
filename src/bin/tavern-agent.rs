//! `tavern-agent`: see `src/cli/agent.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::agent::Args>()
}
