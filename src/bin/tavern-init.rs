//! `tavern-init`: see `src/cli/init.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::init::Args>()
}
