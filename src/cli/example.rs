//! `aegis example NAME`: runs an example program against `OPENAI_BASE_URL`.

use std::{
    error::Error,
    io::{Read as _, Write as _, stderr, stdin, stdout},
    process::ExitCode,
};

use clap::{Args, Parser};

use super::choice::one_of;
use crate::example::{ApiClient, Example, ExampleError};

/// Runs a small multi-agent program as a client of `OPENAI_BASE_URL`.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// Program.
    #[arg(value_parser = one_of(Example::ALL, Example::name))]
    pub name: Example,
    /// How to run it
    #[command(flatten)]
    pub options: ExampleOptions,
}

/// How an example program is run.
#[derive(Debug, Clone, Args)]
pub struct ExampleOptions {
    /// Word problem. Default: standard input.
    #[arg(long, value_name = "TEXT")]
    pub task: Option<String>,
    /// Request streamed replies.
    #[arg(long)]
    pub stream: bool,
}

/// Runs it: the agents' words go to standard error, the line `ANSWER: …` to standard output.
///
/// # Errors
/// [`ExampleError`].
pub fn run(arguments: &Arguments) -> Result<(), ExampleError> {
    start(arguments.name, &arguments.options)
}

/// The whole `main` of an example program: arguments, run, error text; exit code 0, 1, or 2 for wrong arguments.
pub fn main_of(example: Example) -> ExitCode {
    #[derive(Parser)]
    struct ExampleProgram {
        #[command(flatten)]
        options: ExampleOptions,
    }
    let Err(error) = start(example, &ExampleProgram::parse().options) else { return ExitCode::SUCCESS };
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    drop(writeln!(stderr(), "error: {text}"));
    ExitCode::FAILURE
}

fn start(example: Example, options: &ExampleOptions) -> Result<(), ExampleError> {
    let mut task = options.task.clone().unwrap_or_default();
    if options.task.is_none() {
        stdin().read_to_string(&mut task).map_err(ExampleError::Input)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ExampleError::Runtime)?;
    runtime.block_on(async {
        let client = ApiClient::from_env(options.stream)?;
        example.run(&client, task.trim(), &mut stdout(), &mut stderr()).await
    })
}
