//! `tavern-release`: see `src/cli/release.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::release::Args>()
}
