//! `tavern-tell`: see `src/tell.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::tell::Args>()
}
