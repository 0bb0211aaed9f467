//! `tavern-report`: see `src/cli/report.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::report::Args>()
}
