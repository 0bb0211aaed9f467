//! `tavern-agent`: see `src/agent.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::agent::Args>()
}
