//! What an agent is there for, read from its prompt.

use super::language::without_paths;

/// What an agent is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Writes plans.
    Plan,
    /// Solves; debaters too.
    Solve,
    /// Checks what others did.
    Check,
    /// Decides between several answers.
    Judge,
    /// Passes on what others found.
    Report,
    /// Sums a conversation up.
    Summarise,
    /// Gives work to others.
    Supervise,
    /// Says which experts a task takes.
    Recruit,
    /// The prompt does not say.
    Open,
}

/// The duty: first from what the prompt says that the agent is or does (`You are the critic`, `You check …`,
/// `Your role: …`), then from any telling word of the prompt, then from the last message.
pub(super) fn read_duty(prompt: &str, last: &str) -> Duty {
    stated_duty(prompt)
        .or_else(|| find_duty(prompt))
        .or_else(|| stated_duty(last))
        .or_else(|| requested_duty(last))
        .unwrap_or(Duty::Open)
}

const STEMS: &[(Duty, &[&str])] = &[
    (Duty::Recruit, &["recruiter", "recruit", "recruits", "recruiting", "recruitment"]),
    (Duty::Plan, &["plan", "planner", "planning", "plans", "decompose", "decomposes"]),
    (
        Duty::Check,
        &[
            "critic",
            "critique",
            "critiques",
            "review",
            "reviews",
            "reviewer",
            "check",
            "checks",
            "checker",
            "verify",
            "verifies",
            "verifier",
            "evaluate",
            "evaluates",
            "evaluator",
            "inspect",
            "inspects",
            "inspector",
            "audit",
            "auditor",
            "grader",
            "tester",
        ],
    ),
    (Duty::Judge, &["judge", "judges", "aggregate", "aggregates", "aggregator", "arbiter", "referee", "majority"]),
    (
        Duty::Supervise,
        &[
            "supervise",
            "supervises",
            "supervisor",
            "manager",
            "coordinator",
            "coordinate",
            "orchestrator",
            "orchestrate",
            "triage",
            "dispatcher",
            "router",
            "delegate",
            "delegates",
        ],
    ),
    (
        Duty::Solve,
        &[
            "solve",
            "solves",
            "solver",
            "compute",
            "computes",
            "calculate",
            "calculates",
            "mathematician",
            "programmer",
            "coder",
            "math",
            "debater",
            "debate",
            "accountant",
            "engineer",
            "teacher",
            "analyst",
            "mathematics",
            "arithmetic",
        ],
    ),
    (Duty::Report, &["reporter", "report", "reports"]),
    (Duty::Summarise, &["summarise", "summarize", "summariser", "summarizer", "summary"]),
];

fn words(text: &str) -> Vec<String> {
    let lower = without_paths(text).to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn duty_of(word: &str) -> Option<Duty> {
    STEMS.iter().find(|(_, stems)| stems.contains(&word)).map(|(duty, _)| *duty)
}

/// After `you`, `role`, `as a`: the first telling word of the next few.
fn stated_duty(text: &str) -> Option<Duty> {
    let words = words(text);
    for (at, word) in words.iter().enumerate() {
        if !matches!(word.as_str(), "you" | "role" | "as") {
            continue;
        }
        let mut near = words
            .iter()
            .skip(at + 1)
            .take(6)
            .take_while(|word| !matches!(word.as_str(), "with" | "team" | "not" | "never"));
        if let Some(duty) = near.find_map(|word| duty_of(word)) {
            return Some(duty);
        }
    }
    None
}

fn find_duty(prompt: &str) -> Option<Duty> {
    words(prompt).iter().find_map(|word| duty_of(word))
}

/// Where there is no prompt: what the last message asks for.
fn requested_duty(last: &str) -> Option<Duty> {
    let words = words(last);
    if super::stated::opinions(last).len() > 1
        && words.iter().any(|w| matches!(w.as_str(), "given" | "aggregate" | "majority" | "final"))
    {
        return Some(Duty::Judge);
    }
    let first: Vec<&String> = words.iter().take(4).collect();
    let summarised = words.iter().any(|w| matches!(w.as_str(), "summarise" | "summarize" | "summary"));
    first.iter().find_map(|word| duty_of(word)).or(summarised.then_some(Duty::Summarise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duties_are_read_from_prompts() {
        let check = |prompt: &str, expected: Duty| assert_eq!(read_duty(prompt, ""), expected, "{prompt}");
        check("You plan. Break the word problem into short numbered steps. Do not compute anything.", Duty::Plan);
        check(
            "You solve. Follow the plan, compute with the calculator, and end with a line `ANSWER: <number>`.",
            Duty::Solve,
        );
        check("You review the solution of a word problem. If it is right, say APPROVE.", Duty::Check);
        check("You check the arithmetic of a solution.", Duty::Check);
        check("You supervise a planner and a solver. First hand the problem over to the planner.", Duty::Supervise);
        check("You are Reporter. You fill in forms and never compute.", Duty::Report);
        check("You are Planner. You plan carefully and never compute.", Duty::Plan);
        check("You are part of a team with a planner and a solver. You are the critic.", Duty::Check);
        check("You are a triage agent. Hand the user's request off to the agent that fits it.", Duty::Supervise);
        check("You are the judge of a debate between solvers.", Duty::Judge);
        check("You are Ada, a careful debater.", Duty::Solve);
        check("You are the recruiter. Name experts who check and solve.", Duty::Recruit);
        check("You are a helpful assistant.", Duty::Open);
    }

    #[test]
    fn without_a_prompt_the_message_tells() {
        let merged = "Task:\nx\n\nSolution 1:\nANSWER: 3\n\nSolution 2:\nANSWER: 4\n\nGiven all the above solutions, reason and give a final answer.";
        assert_eq!(read_duty("", merged), Duty::Judge);
        assert_eq!(read_duty("", "Summarize the conversation above."), Duty::Summarise);
        assert_eq!(read_duty("", "There are 4 boxes with 3 pens each. How many pens?"), Duty::Open);
    }
}
