//! `tavern-top`: see `src/cli/top.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::top::Args>()
}
