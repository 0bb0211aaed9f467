//! `tavern-edit`: see `src/cli/edit.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::edit::Args>()
}
