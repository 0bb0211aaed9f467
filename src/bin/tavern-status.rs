//! `tavern-status`: see `src/cli/status.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::status::Args>()
}
