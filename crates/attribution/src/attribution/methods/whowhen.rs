//! The public script of Who&When (`ag2ai/Agents_Failure_Attribution`, `Automated_FA`, as of February 2026), question by question:
//! the words of its prompts, and its way with answers. What looks like a mistake here is one there, and is kept: rows under
//! `--compat whowhen` are to equal the script's.
//!
//! Without the gold answer its line is left out, as the script's comments say. Its coin toss for an answer that names no half
//! cannot be repeated; ours is a hash of run and segment.

use std::fmt::Write;

use super::{Abstention, Dialogue, JudgeQuestion, JudgeReply, LoggedRun, LoggedTurn, Pause, PredictedStep};
use crate::score::public::whowhen_answer;

/// The script's `max_tokens`.
const LONGEST_ANSWER: u64 = 1024;

fn question(system: &str, user: String, longest_way: &str) -> JudgeQuestion {
    JudgeQuestion {
        system: system.to_owned(),
        user,
        schema: None,
        tool: None,
        longest_answer: LONGEST_ANSWER,
        cuts: super::Cuts::default(),
        longest_way: longest_way.to_owned(),
    }
}

/// The line with the gold answer.
fn gold(run: &LoggedRun, start: &str) -> String {
    run.gold.as_deref().map(|gold| format!("{start}{gold}\n")).unwrap_or_default()
}

/// The log as the script shows it: no numbers.
fn conversation(turns: &[LoggedTurn]) -> String {
    turns.iter().map(|turn| format!("{}: {}", turn.speaker, turn.reply)).collect::<Vec<_>>().join("\n")
}

/// The script's answers are stripped; nothing, and no answer at all, end the file.
fn words<'a>(said: &'a JudgeReply, what: &str) -> Result<&'a str, Pause> {
    match said {
        JudgeReply::Words(words) if !words.trim().is_empty() => Ok(words.trim()),
        JudgeReply::Words(_) => Err(Pause::Abstain(Abstention::Unanswered(what.to_owned()))),
        JudgeReply::Nothing(why) => Err(Pause::Abstain(why.clone())),
    }
}

/// What the public scorer reads in a block of the script's log.
fn scored(run: &LoggedRun, block: &str, reason: String) -> Result<PredictedStep, Pause> {
    let Some((agent, step)) = whowhen_answer(block) else {
        let said: String = block.chars().take(200).collect();
        return Err(Pause::Abstain(Abstention::Unreadable(said)));
    };
    let speaker = step.parse().ok().and_then(|step| run.turn(step)).map(|turn| turn.agent.clone());
    let step = step.parse().ok();
    Ok(PredictedStep {
        agent_of_step: speaker.filter(|speaker| *speaker != agent),
        agent: Some(agent),
        step,
        reason,
        ..PredictedStep::default()
    })
}

/// `all_at_once`.
pub(super) fn all_at_once(run: &LoggedRun, dialogue: &mut Dialogue<'_>) -> Result<PredictedStep, Pause> {
    let said = dialogue.next_reply(|| {
        let user = format!(
            "You are an AI assistant tasked with analyzing a multi-agent conversation history when solving a real world \
             problem. The problem is:  {problem}\n{gold}Identify which agent made an error, at which step, and explain the \
             reason for the error. Here's the conversation:\n\n{log}{QUESTIONS}",
            problem = run.problem,
            gold = gold(run, "The Answer for the problem is: "),
            log = conversation(&run.turns),
        );
        let longest = run.turns.iter().map(|turn| turn.speaker.as_str()).max_by_key(|speaker| {
            run.turns.iter().filter(|turn| turn.speaker == *speaker).count()
        });
        let longest = format!("Agent Name: {}\n Step Number: 0\n", longest.unwrap_or_default());
        question("You are a helpful assistant skilled in analyzing conversations.", user, &longest)
    })?;
    let said = words(said, "Failed to get prediction.")?;
    let reason = said.split_once("Reason for Mistake:").map(|(_, reason)| reason.trim().to_owned()).unwrap_or_default();
    scored(run, said, reason)
}

/// What stands after the log in `all_at_once`.
const QUESTIONS: &str = concat!(
    "\n\nBased on this conversation, please predict the following:\n",
    "1. The name of the agent who made a mistake that should be directly responsible for the wrong solution to the real ",
    "world problem. If there are no agents that make obvious mistakes, decide one single agent in your mind. Directly ",
    "output the name of the Expert.\n",
    "2. In which step the mistake agent first made mistake. For example, in a conversation structured as follows: ",
    "\n            {\n                \"agent a\": \"xx\",\n                \"agent b\": \"xxxx\",\n",
    "                \"agent c\": \"xxxxx\",\n                \"agent a\": \"xxxxxxx\"\n            },\n            ",
    "each entry represents a 'step' where an agent provides input. The 'x' symbolizes the speech of each agent. If the ",
    "mistake is in agent c's speech, the step number is 2. If the second speech by 'agent a' contains the mistake, the ",
    "step number is 3, and so on. Please determine the step number where the first mistake occurred.\n",
    "3. The reason for your prediction.",
    "Please answer in the format: Agent Name: (Your prediction)\n Step Number: (Your prediction)\n Reason for Mistake: \n",
);

/// `step_by_step`, over the steps that are asked for; the script asks for all. The braces of `{idx}` are its own.
pub(super) fn step_by_step(
    run: &LoggedRun,
    dialogue: &mut Dialogue<'_>,
    which: impl Fn(&LoggedTurn) -> bool,
) -> Result<PredictedStep, Pause> {
    let mut history = String::new();
    for (idx, turn) in run.turns.iter().enumerate() {
        let _ = writeln!(history, "Step {idx} - {}: {}", turn.speaker, turn.reply);
        if !which(turn) {
            continue;
        }
        let said = dialogue.next_reply(|| {
            let user = format!(
                "You are an AI assistant tasked with evaluating the correctness of each step in an ongoing multi-agent \
                 conversation aimed at solving a real-world problem. The problem being addressed is: {problem}. {gold}Here \
                 is the conversation history up to the current step:\n{history}\nThe most recent step ({idx}) was by \
                 '{speaker}'.\nYour task is to determine whether this most recent agent's action (Step {{idx}}) contains an \
                 error that could hinder the problem-solving process or lead to an incorrect solution. Please respond with \
                 'Yes' or 'No' and provide a clear explanation for your judgment. Note: Please avoid being overly critical in \
                 your evaluation. Focus on errors that clearly derail the process.Respond ONLY in the format: 1. \
                 Yes/No.\n2. Reason: [Your explanation here]",
                problem = run.problem,
                gold = gold(run, "The Answer for the problem is: "),
                speaker = turn.speaker,
            );
            question("You are a precise step-by-step conversation evaluator.", user, "1. No")
        })?;
        let said = words(said, "Failed to get evaluation for this step.")?;
        // Anything else is a no.
        if said.to_lowercase().starts_with("1. yes") {
            let reason = said.split_once("Reason:").map_or(said, |(_, reason)| reason).trim().to_owned();
            let block = format!(" Error found.\nAgent Name: {}\nStep Number: {idx}\n", turn.speaker);
            return scored(run, &block, reason);
        }
    }
    Err(Pause::Abstain(Abstention::NothingFound("no decisive errors found by step-by-step analysis".to_owned())))
}

/// `binary_search`.
pub(super) fn binary_search(run: &LoggedRun, dialogue: &mut Dialogue<'_>) -> Result<PredictedStep, Pause> {
    let (mut start, mut end) = (0, run.turns.len().saturating_sub(1));
    while start < end {
        let middle = start + (end - start) / 2;
        let said = dialogue.next_reply(|| {
            let system = "You are an AI assistant specializing in localizing errors in conversation segments.";
            question(system, segment(run, start, middle, end), "upper half")
        })?;
        let said = words(said, "API call failed for the segment.")?.to_lowercase();
        let upper = if said.contains("upper half") {
            true
        } else if said.contains("lower half") {
            false
        } else {
            let toss = blake3::hash(format!("{}\u{0}{start}\u{0}{end}", run.id).as_bytes());
            toss.as_bytes().first().is_some_and(|byte| byte % 2 == 0)
        };
        (start, end) = if upper { (start, middle) } else { (middle + 1, end) };
    }
    let speaker = run.turns.get(start).map(|turn| turn.speaker.as_str()).unwrap_or_default();
    scored(run, &format!("\nAgent Name: {speaker}\nStep Number: {start}\n"), String::new())
}

fn segment(run: &LoggedRun, start: usize, middle: usize, end: usize) -> String {
    format!(
        "You are an AI assistant tasked with analyzing a segment of a multi-agent conversation. Multiple agents are \
         collaborating to address a user query, with the goal of resolving the query through their collective dialogue.\n\
         Your primary task is to identify the location of the most critical mistake within the provided segment. Determine \
         which half of the segment contains the single step where this crucial error occurs, ultimately leading to the \
         failure in resolving the user’s query.\nThe problem to address is as follows: {problem}\n{gold}Review the following \
         conversation segment from step {start} to step {end}:\n\n{log}\n\nBased on your analysis, predict whether the most \
         critical error is more likely to be located in the upper half (from step {start} to step {middle}) or the lower half \
         (from step {next} to step {end}) of this segment.\nPlease provide your prediction by responding with ONLY 'upper \
         half' or 'lower half'. Remember, your answer should be based on identifying the mistake that directly contributes to \
         the failure in resolving the user's query. If no single clear error is evident, consider the step you believe is \
         most responsible for the failure, allowing for subjective judgment, and base your answer on that.",
        problem = run.problem,
        gold = gold(run, "The Answer for the problem is: "),
        log = conversation(run.turns.get(start..=end).unwrap_or_default()),
        next = middle + 1,
    )
}
