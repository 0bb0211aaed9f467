//! `tavern-serve`: see `src/cli/serve/mod.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::serve::Args>()
}
