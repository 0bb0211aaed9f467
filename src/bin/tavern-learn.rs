//! `tavern-learn`: see `src/cli/learn.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::learn::Args>()
}
