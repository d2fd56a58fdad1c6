//! Back along the wire (after CHIEF, arXiv 2602.23701, and GraphTracer): whose words stand in whose request is known from the
//! bytes, so a judge only says, step by step back from the end, whether the error was made here or came in, and from where.
//! Blame moves only where the source's own words are quoted (the rule of arXiv 2608.24361).

use serde_json::{Value, json};

use super::{
    Abstention, Dialogue, LoggedRun, LoggedTurn, Method, Pause, PredictedStep, View, predicted, prompt::LogPrompt,
};

/// Most sources that a judge is shown at once, the latest; a log without requests has every earlier step for a source.
const SOURCES: usize = 6;

/// Walks back from the last step.
#[derive(Debug)]
pub(super) struct Graph;

/// What a judge says of one step.
struct Hop {
    /// Where the error came in from; `None` where it was made here.
    from: Option<u32>,
    quote: String,
    reason: String,
    fix: String,
}

impl Method for Graph {
    fn name(&self) -> &'static str {
        "graph"
    }

    fn description(&self) -> &'static str {
        "walks back from the end along the words that were handed on; each hop must quote (CHIEF, AIG)"
    }

    fn attribute(
        &self,
        run: &LoggedRun,
        view: View<'_>,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<Vec<PredictedStep>, Pause> {
        let spoke = |turn: &&LoggedTurn| !turn.words_and_calls().trim().is_empty();
        let Some(mut here) = run.turns.iter().rev().find(spoke).or(run.turns.last()) else {
            return Err(Pause::Abstain(Abstention::Inapplicable("the run has no step".to_owned())));
        };
        let mut path = Vec::new();
        loop {
            let sources = sources(run, here);
            let said = dialogue.ask(|| question(run, view, here, &sources), |words| hop(run, here, &sources, words))?;
            let next = said.from.and_then(|from| run.turn(from));
            let Some(next) = next else {
                let found = PredictedStep::at(run, here.step, said.reason).quoting(run, here.step, &said.quote);
                let found =
                    path.iter().fold(found, |found, (step, quote): &(u32, String)| found.quoting(run, *step, quote));
                return Ok(vec![PredictedStep { fix: said.fix, ..found }]);
            };
            path.push((next.step, said.quote));
            here = next;
        }
    }
}

/// The steps whose words a step was given, the latest few. They are all earlier, so a walk ends.
fn sources<'a>(run: &'a LoggedRun, here: &LoggedTurn) -> Vec<&'a LoggedTurn> {
    let heard: Vec<&LoggedTurn> =
        here.quoted.iter().filter(|step| **step < here.step).filter_map(|step| run.turn(*step)).collect();
    heard.get(heard.len().saturating_sub(SOURCES)..).unwrap_or_default().to_vec()
}

fn question(run: &LoggedRun, view: View<'_>, here: &LoggedTurn, sources: &[&LoggedTurn]) -> super::JudgeQuestion {
    let numbers: Vec<String> = sources.iter().map(|turn| turn.step.to_string()).collect();
    let from = if numbers.is_empty() {
        "It was given the words of no other step, so say \"here\".".to_owned()
    } else {
        format!(
            "It was given the words of step {}, shown above it. If the wrong words came from one of them, name that step and \
             copy its wrong words; if what it was given is right, or not what went wrong, say \"here\".",
            numbers.join(", ")
        )
    };
    let asked = format!(
        "The run failed. Look at step {}, by {}: is what is wrong with it made there, or was it handed in? {from} Answer with \
         one JSON object: {{\"reason\": why, \"error_from\": \"here\" or the number of a step, \"quote\": the wrong words, copied \
         from that step, \"fix\": what should have been said instead}}.",
        here.step, here.agent
    );
    let mut turns = sources.to_vec();
    turns.push(here);
    let last = turns.len() - 1;
    let from: Vec<Value> = std::iter::once("here".into()).chain(numbers.iter().map(|n| n.as_str().into())).collect();
    let text = || json!({"type": "string"});
    let schema = json!({
        "type": "object",
        "properties": {"reason": text(), "error_from": {"type": "string", "enum": from}, "quote": text(), "fix": text()},
        "required": ["reason", "error_from", "quote", "fix"],
        "additionalProperties": false,
    });
    // The longest way goes back through the latest source each time, with words of it.
    let longest_way = match sources.last() {
        Some(source) => {
            json!({"reason": "", "error_from": source.step.to_string(), "quote": source.words_and_calls(), "fix": ""})
        }
        None => json!({"reason": "", "error_from": "here", "quote": "", "fix": ""}),
    };
    let longest_way = longest_way.to_string();
    LogPrompt { turns, pivot: Some(last), schema: Some(schema), longest_way, ..LogPrompt::about_whole_log(run, asked) }
        .question(view)
}

/// Where the error is said to come from. A source whose words are not quoted is not blamed.
fn hop(run: &LoggedRun, here: &LoggedTurn, sources: &[&LoggedTurn], words: &str) -> Result<Hop, String> {
    let fields = predicted::object(words).ok_or("it holds no JSON object")?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let from = match fields.get("error_from") {
        Some(Value::String(word)) => word.trim().to_lowercase(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return Err("it has no `error_from`".to_owned()),
    };
    let from = from.trim_start_matches("step").trim();
    let step = if from == "here" { None } else { Some(from.parse().map_err(|_| format!("`{from}` is no step"))?) };
    let step = step.filter(|step| *step != here.step);
    if let Some(step) = step {
        if !sources.iter().any(|source| source.step == step) {
            return Err(format!("step {step} is none of those that step {} was given", here.step));
        }
        if !run.turn(step).is_some_and(|source| predicted::stands(&source.words_and_calls(), &text("quote"))) {
            return Err(format!("its quote does not stand in step {step}"));
        }
    }
    Ok(Hop { from: step, quote: text("quote"), reason: text("reason"), fix: text("fix") })
}
