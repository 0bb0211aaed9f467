//! `tavern-trust`: see `src/trust.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::trust::Args>()
}
