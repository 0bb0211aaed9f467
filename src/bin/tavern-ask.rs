//! `tavern-ask`: see `src/ask.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::ask::Args>()
}
