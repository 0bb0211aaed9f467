//! `tavern-learn`: see `src/learn.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::learn::Args>()
}
