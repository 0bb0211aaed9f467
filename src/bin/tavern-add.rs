//! `tavern-add`: see `src/cli/add.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::add::Args>()
}
