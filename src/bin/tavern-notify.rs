//! `tavern-notify`: see `src/cli/notify.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::notify::Args>()
}
