//! Two small multi-agent programs for the demo, the examples and the tests: a pipeline and a debate.
//!
//! They are clients like any other: they speak HTTP to `OPENAI_BASE_URL`, know nothing of a proxy, a plan or a
//! simulator, and tell who is asking by their system prompts alone. They run as child processes.

mod chat;
mod client;
mod error;
mod debate;
mod pipeline;

use std::io::Write;

pub use client::ApiClient;
pub use error::ExampleError;

/// An example program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Example {
    /// Planner, solver, critic; the solver revises at most twice.
    Pipeline,
    /// Three debaters, two rounds, a judge that takes the majority.
    Debate,
}

impl Example {
    /// All examples.
    pub const ALL: &'static [Example] = &[Example::Pipeline, Example::Debate];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Example::Pipeline => "pipeline",
            Example::Debate => "debate",
        }
    }

    /// The names of its agents, in the order in which they first speak.
    pub fn agents(self) -> Vec<&'static str> {
        match self {
            Example::Pipeline => vec![pipeline::PLANNER.name, pipeline::SOLVER.name, pipeline::CRITIC.name],
            Example::Debate => debate::DEBATERS.iter().chain([&debate::JUDGE]).map(|agent| agent.name).collect(),
        }
    }

    /// The roster that names its agents: the text of an `aegis.toml`.
    pub fn roster(self) -> &'static str {
        match self {
            Example::Pipeline => include_str!("../../../../examples/pipeline/aegis.toml"),
            Example::Debate => include_str!("../../../../examples/debate/aegis.toml"),
        }
    }

    /// Runs it on a task: what the agents say goes to `talk`, the line `ANSWER: …` to `out`.
    ///
    /// # Errors
    /// [`ExampleError`] when the model cannot be reached, refuses, or no agent states an answer.
    pub async fn run(
        self,
        client: &ApiClient,
        task: &str,
        out: &mut (dyn Write + Send),
        talk: &mut (dyn Write + Send),
    ) -> Result<(), ExampleError> {
        let answer = match self {
            Example::Pipeline => pipeline::solve(client, task, talk).await?,
            Example::Debate => debate::solve(client, task, talk).await?,
        };
        let answer = answer.ok_or(ExampleError::NoAnswer)?;
        writeln!(out, "ANSWER: {answer}").map_err(ExampleError::Output)
    }
}

#[cfg(test)]
mod tests;
