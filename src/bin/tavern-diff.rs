//! `tavern-diff`: see `src/diff.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::diff::Args>()
}
