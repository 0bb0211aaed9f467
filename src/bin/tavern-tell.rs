//! `tavern-tell`: see `src/cli/tell.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::tell::Args>()
}
