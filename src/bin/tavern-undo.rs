//! `tavern-undo`: see `src/cli/undo.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::undo::Args>()
}
