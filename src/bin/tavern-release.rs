//! `tavern-release`: see `src/release.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::release::Args>()
}
