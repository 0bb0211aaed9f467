//! `tavern-report-html`: see `src/report_html`.

fn main() -> std::process::ExitCode {
    tavern::main::<tavern::report_html::Args>()
}
