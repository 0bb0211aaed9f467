//! `tavern-renew`: see `src/cli/renew.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::renew::Args>()
}
