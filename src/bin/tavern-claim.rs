//! `tavern-claim`: see `src/claim.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::claim::Args>()
}
