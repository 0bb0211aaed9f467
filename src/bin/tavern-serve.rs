//! `tavern-serve`: see `src/serve/mod.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::serve::Args>()
}
