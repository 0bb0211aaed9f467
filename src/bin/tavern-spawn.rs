//! `tavern-spawn`: see `src/cli/spawn.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::spawn::Args>()
}
