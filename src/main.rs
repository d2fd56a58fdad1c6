//! The `aegis` command.

// An exchange makes many small, short-lived allocations; measured against the system allocator beside nginx.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    aegis::cli::main().into()
}
