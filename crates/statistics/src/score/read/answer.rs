//! The answer in what a model wrote: AgenTracer's tag, whole, fenced or loose JSON, Who&When's lines.

use serde_json::Value;

use super::fields::{self, number_in};
use crate::score::prediction::{Guess, PredictedAnswer};
use crate::trajectory::patterns;

/// Levels of nesting at which `serde_json` gives up, less one.
const NESTING: usize = 127;

/// Reads a model's text. Reasoning in `<think>` is not looked at; of several answers the last one holds.
pub fn answer(text: &str) -> PredictedAnswer {
    let said = match text.rfind("</think>") {
        Some(end) => text.get(end + "</think>".len()..).unwrap_or_default(),
        None => text,
    };
    let found = tagged(said).or_else(|| json(said)).or_else(|| lines(said));
    found.unwrap_or_else(|| {
        let why = if said.trim().is_empty() {
            "the text is empty"
        } else {
            "no JSON with an agent or step, no `<answer>` tag and no `Agent Name:` line found"
        };
        PredictedAnswer::Unparsed(why.to_owned())
    })
}

/// `<answer>AGENT|STEP</answer>`, the last one; JSON inside the tag is read too.
fn tagged(text: &str) -> Option<PredictedAnswer> {
    let (_, after) = text.rsplit_once("<answer>")?;
    let inner = after.split("</answer>").next().unwrap_or(after).trim();
    if let Some(found) = json(inner) {
        return Some(found);
    }
    let (agent, step) = inner.rsplit_once('|')?;
    let guess = Guess {
        agent: Some(agent.trim().to_owned()).filter(|name| !name.is_empty()),
        step: number_in(step),
        mode: None,
    };
    (!guess.is_empty()).then(|| PredictedAnswer::Set(vec![guess]))
}

/// JSON: the whole text, or the last value in it that has the shape of an answer. Fences need no care of their own.
fn json(text: &str) -> Option<PredictedAnswer> {
    if let Ok(value) = serde_json::from_str::<Value>(text.trim()) {
        return fields::read(&value);
    }
    let mut found = None;
    let mut rest = text;
    while let Some(start) = rest.find(['{', '[']) {
        rest = rest.get(start..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let read = values.next();
        let skip = match &read {
            Some(Ok(_)) => values.byte_offset().max(1),
            // Hundreds of open brackets are no answer; without the leap they would cost their square.
            Some(Err(error)) if error.to_string().starts_with("recursion limit") => NESTING,
            _ => 1,
        };
        let read = read.and_then(Result::ok);
        // An empty list in prose is no claim that nobody failed.
        let empty_list = matches!(&read, Some(Value::Array(entries)) if entries.is_empty());
        if let Some(answer) = read.as_ref().filter(|_| !empty_list).and_then(fields::read) {
            found = Some(answer);
        }
        rest = rest.get(rest.ceil_char_boundary(skip)..).unwrap_or_default();
    }
    found
}

patterns! {
    AGENT = r"(?im)agent\s*name[*_`]*\s*:[*_`\t ]*([^\n]+)";
    STEP = r"(?im)step\s*number[*_`]*\s*:[*_`\t ]*(?:step\s*)?(-?\d+)";
}

/// `Agent Name: …` and `Step Number: …` lines, markup allowed.
fn lines(text: &str) -> Option<PredictedAnswer> {
    let name = AGENT.captures(text).and_then(|found| found.get(1)).map(|name| {
        // The three fields may share a line.
        let name = name.as_str();
        let end = name.to_ascii_lowercase().find("step number").unwrap_or(name.len());
        let bare = |c: char| c.is_whitespace() || matches!(c, '*' | '`' | ',' | ';' | '.' | '"');
        name.get(..end).unwrap_or(name).trim_matches(bare).to_owned()
    });
    let guess = Guess {
        agent: name.filter(|name| !name.is_empty()),
        step: STEP.captures(text).and_then(|found| found.get(1)?.as_str().parse().ok()),
        mode: None,
    };
    (!guess.is_empty()).then(|| PredictedAnswer::Set(vec![guess]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(agent: Option<&str>, step: Option<i64>) -> Vec<Guess> {
        vec![Guess { agent: agent.map(str::to_owned), step, mode: None }]
    }

    #[test]
    fn texts() {
        let both = one(Some("Solver"), Some(3));
        for (text, expected) in [
            ("<think>maybe <answer>Critic|1</answer></think>\n<answer>Solver|3</answer>", &both),
            ("<answer> Solver | Step 3 </answer>", &both),
            ("<answer>{\"agent\":\"Solver\",\"step\":3}</answer>", &both),
            ("{\"agent\": \"Solver\", \"step\": 3}", &both),
            ("Here:\n```json\n{\"agent\": \"Solver\", \"step\": 3}\n```\nDone.", &both),
            ("It is {\"agent\": \"Solver\", \"step\": 3}, I think", &both),
            ("first {\"agent\":\"A\",\"step\":1} no: {\"agent\":\"Solver\",\"step\":3} [1] {oops", &both),
            ("[see 1] {broken {\"agent\":\"Solver\",\"step\":\"3\"}", &both),
            ("Agent Name: Solver\nStep Number: 3\nReason for Mistake: none", &both),
            ("**Agent Name:** Solver\n**Step Number:** 3", &both),
            ("Agent Name: Solver, Step Number: 3", &both),
            ("</think><answer>Solver|3</answer>", &both),
            // What stands inside an answer is no later one.
            ("It is {\"agent\":\"Solver\",\"step\":3,\"not\":{\"agent\":\"Critic\",\"step\":1}}, I think", &both),
            ("1. agent name : `Solver`.\n2. step number: Step 3", &both),
            ("Agent Name: Solver", &one(Some("Solver"), None)),
            ("Step Number: 3", &one(None, Some(3))),
        ] {
            assert_eq!(answer(text).guesses(), expected.as_slice(), "{text}");
        }
    }

    #[test]
    fn no_answer_is_unparsed_and_nobody_is_an_answer() {
        for text in ["", "no idea", "<answer></answer>", "{\"reason\":\"x\"}", "see [] above", "{{{{[[[[", "\"Solver\""]
        {
            assert!(matches!(answer(text), PredictedAnswer::Unparsed(_)), "{text}");
        }
        for text in ["{\"faulty_agents\": []}", "so: {\"faulty_agents\": []}."] {
            assert_eq!(answer(text), PredictedAnswer::Set(vec![]), "{text}");
        }
    }

    #[test]
    fn long_hostile_texts_end() {
        for unit in ["{", "[", "{\"a\":", "[1,", "<answer>", "\"", "Agent Name:"] {
            let _ = answer(&unit.repeat(5_000));
        }
    }
}
