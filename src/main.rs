//! The `aegis` command.

fn main() -> std::process::ExitCode {
    aegis::cli::main().into()
}
