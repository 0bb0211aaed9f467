//! `tavern-report`: see `src/report.rs`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::report::Args>()
}
