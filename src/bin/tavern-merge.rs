//! `tavern-merge`: see `src/merge.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::merge::Args>()
}
