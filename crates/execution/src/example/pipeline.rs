//! Planner → solver → critic; the critic sends the solver back at most twice.

use std::io::Write;

use super::{
    ExampleError,
    chat::{Agent, Chat, Model, answer_line},
};

pub(super) const PLANNER: Agent = Agent {
    name: "planner",
    prompt: "You are the planner. Break the word problem into short numbered steps that name its quantities. Do not \
             compute anything.",
};
pub(super) const SOLVER: Agent = Agent {
    name: "solver",
    prompt: "You are the solver. Carry out the plan step by step and end with a line `ANSWER: <number>`.",
};
pub(super) const CRITIC: Agent = Agent {
    name: "critic",
    prompt: "You are the critic. Check the solution of the word problem. If it is right, say APPROVE and repeat its \
             line `ANSWER: <number>`. If it is wrong, say REVISE and what the answer should be.",
};

/// How often the solver may revise.
const REVISIONS: usize = 2;

/// The answer of the pipeline: what the critic approved, or the solver's last word.
pub(super) async fn solve(
    model: &impl Model,
    task: &str,
    talk: &mut (dyn Write + Send),
) -> Result<Option<String>, ExampleError> {
    let plan = Chat::new(&PLANNER).say(model, format!("Problem: {task}"), talk).await?;
    let mut solver = Chat::new(&SOLVER);
    let mut solution = solver.say(model, format!("Problem: {task}\n\nPlan:\n{plan}"), talk).await?;
    for revision in 0..=REVISIONS {
        let verdict = Chat::new(&CRITIC).say(model, format!("Problem: {task}\n\nSolution:\n{solution}"), talk).await?;
        if approves(&verdict) {
            return Ok(answer_line(&verdict).or_else(|| answer_line(&solution)));
        }
        if revision < REVISIONS {
            solution = solver.say(model, format!("The critic says:\n{verdict}\n\nRevise your solution."), talk).await?;
        }
    }
    Ok(answer_line(&solution))
}

fn approves(verdict: &str) -> bool {
    let mut words = verdict.split(|c: char| !c.is_alphanumeric());
    words.any(|word| word.eq_ignore_ascii_case("approve") || word.eq_ignore_ascii_case("approved"))
}
