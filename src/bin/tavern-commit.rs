//! `tavern-commit`: see `src/commit.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::commit::Args>()
}
