//! `tavern-merge-driver`: see `src/cli/merge_driver.rs`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::merge_driver::Args>()
}
