//! `tavern-trust`: see `src/cli/trust.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::trust::Args>()
}
