//! `tavern-report-html`: see `src/cli/report_html`.

fn main() -> std::process::ExitCode {
    tavern::cli::main::<tavern::cli::report_html::Args>()
}
