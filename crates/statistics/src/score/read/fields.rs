//! The answer in a JSON value, under the names that methods and judges give its fields.

use serde_json::Value;

use crate::score::prediction::{Guess, PredictedAnswer};

/// Lists whose entries are all meant.
const SET: &[&str] = &["faulty_agents", "failures", "culprits", "errors"];
/// Lists of alternatives, the most likely first.
const RANKED: &[&str] = &["ranked", "predictions", "candidates", "guesses"];
/// Objects that wrap the answer.
const WRAPPER: &[&str] = &["final_answer", "Final Answer", "prediction", "answer", "result"];
const AGENT: &[&str] = &[
    "agent",
    "agent_name",
    "mistake_agent",
    "failed_agent",
    "failure_agent",
    "responsible_agent",
    "critical_agent",
    "Agent Name",
];
const STEP: &[&str] =
    &["step", "step_number", "mistake_step", "step_index", "critical_step", "failure_step", "Step Number"];
const MODE: &[&str] = &["failure_mode", "error_type", "mode", "failure_category", "error_mode"];

/// The answer, if the value has the shape of one.
pub(super) fn read(value: &Value) -> Option<PredictedAnswer> {
    match value {
        Value::Array(entries) => set(entries).map(PredictedAnswer::Set),
        Value::Object(fields) => {
            let list = |names: &[&str]| names.iter().find_map(|name| set(fields.get(*name)?.as_array()?));
            if let Some(found) = list(SET) {
                return Some(PredictedAnswer::Set(found));
            }
            // Rows of `attribute` say whether what they list is one answer.
            if fields.get("set") == Some(&Value::Bool(true))
                && let Some(found) = list(RANKED)
            {
                return Some(PredictedAnswer::Set(found));
            }
            if let Some(found) = list(RANKED).filter(|found| !found.is_empty()) {
                return Some(PredictedAnswer::Ranked(found));
            }
            let one = guess(value);
            if !one.is_empty() {
                return Some(PredictedAnswer::Set(vec![one]));
            }
            WRAPPER.iter().find_map(|name| fields.get(*name).filter(|inner| inner.is_object()).and_then(read))
        }
        _ => None,
    }
}

/// A list of guesses; any other list is none.
fn set(entries: &[Value]) -> Option<Vec<Guess>> {
    let guesses: Vec<Guess> = entries.iter().map(guess).filter(|guess| !guess.is_empty()).collect();
    (guesses.len() == entries.len()).then_some(guesses)
}

fn guess(value: &Value) -> Guess {
    let field = |names: &[&str]| names.iter().find_map(|name| value.get(*name));
    let text = |names: &[&str]| match field(names)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        // A mode as our own records write it: an object with a code.
        Value::Object(fields) => fields.get("code")?.as_str().map(str::to_owned),
        _ => None,
    };
    Guess { agent: text(AGENT), step: field(STEP).and_then(step), mode: text(MODE) }
}

/// A step as a number, or as the number in a text such as `Step 3`.
fn step(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| whole_number(number.as_f64()?)),
        Value::String(text) => number_in(text),
        _ => None,
    }
}

/// A real number that is a whole one.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked in the same line")]
fn whole_number(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
}

/// The first whole number of a text.
pub(super) fn number_in(text: &str) -> Option<i64> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let sign = text.get(..start)?.ends_with('-');
    let digits: String = text.get(start..)?.chars().take_while(char::is_ascii_digit).collect();
    let number: i64 = digits.parse().ok()?;
    Some(if sign { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shapes() {
        let one = |agent: &str, step: i64| {
            Some(PredictedAnswer::Set(vec![Guess { agent: Some(agent.into()), step: Some(step), mode: None }]))
        };
        for (value, expected) in [
            (json!({"agent": "A", "step": 3}), one("A", 3)),
            (json!({"mistake_agent": " A ", "mistake_step": "3"}), one("A", 3)),
            (json!({"agent_name": "A", "step_number": 3.0}), one("A", 3)),
            (json!({"final_answer": {"agent": "A", "step": "Step 3"}}), one("A", 3)),
            (json!([{"agent": "A", "step": -3}]), one("A", -3)),
            (json!({"faulty_agents": []}), Some(PredictedAnswer::Set(vec![]))),
            (json!({"predictions": []}), None),
            (json!({"predictions": [], "set": true}), Some(PredictedAnswer::Set(vec![]))),
            (json!({"predictions": [{"agent": "A", "step": 3}], "set": true}), one("A", 3)),
            (json!({"agent": "", "reason": "x"}), None),
            (json!({"faulty_agents": ["A"]}), None),
            (json!("A"), None),
            (json!({"score": 1}), None),
        ] {
            assert_eq!(read(&value), expected, "{value}");
        }
        for (text, number) in [("3", 3), ("Step 3 of 9", 3), ("-3", -3), ("a-b 4", 4), ("step -12.", -12)] {
            assert_eq!(number_in(text), Some(number), "{text}");
        }
        assert_eq!((number_in("none"), number_in("")), (None, None));
        for (number, step) in [
            (3.0, Some(3)),
            (-3.0, Some(-3)),
            (3.5, None),
            (999_999_999_999_999.0, Some(999_999_999_999_999)),
            (1e15, None),
        ] {
            assert_eq!(whole_number(number), step, "{number}");
        }
        let ranked =
            read(&json!({"predictions": [{"agent": "A"}, {"agent": "B", "failure_mode": {"code": "FM-1.1"}}]}));
        let Some(PredictedAnswer::Ranked(guesses)) = ranked else { panic!("{ranked:?}") };
        assert_eq!(guesses[1].mode.as_deref(), Some("FM-1.1"));
    }
}
