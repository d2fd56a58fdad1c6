//! The `aegis` command.

/// An exchange allocates some hundred times; the system's allocator takes a twentieth of its time longer for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    aegis::cli::main().into()
}
