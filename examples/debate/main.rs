//! Three debaters and a judge, as a program of its own. Everything is in `aegis::example`.

fn main() -> std::process::ExitCode {
    aegis::cli::example::main_of(aegis::example::Example::Debate)
}
