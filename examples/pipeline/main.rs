//! Planner, solver and critic, as a program of its own. Everything is in `aegis::example`.

fn main() -> std::process::ExitCode {
    aegis::cli::example::main_of(aegis::example::Example::Pipeline)
}
