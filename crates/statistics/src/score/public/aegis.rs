//! The two public scorers of Aegis, figure by figure: `evaluation/evaluate.py` of the authors and
//! `evaluation/get_numbers.py` (commit a3c0c3f) of the fork. They read one file whose rows hold prediction and truth.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Public, PublicFigure, PublicScorerFails, is_python_space};
use crate::{
    score::{
        ratio, real,
        sets::{Classes, SetScore, SetTally},
    },
    trajectory::FailureMode,
};

const QUIRKS: &[&str] = &[
    "the truth is the row's own `ground_truth`; no gold file is looked at",
    "names and codes are compared as they stand: `solver` is not `Solver`, `1.3` is not `FM-1.3`",
    "macro figures run over the union of true and predicted classes: each invented name lowers them",
    "a missing field becomes a class of its own",
    "an unread answer is an empty one; a prediction that is no list (a marker for out of memory) takes its row out of the score",
    "the public script adds floats in the order of a hash set: its 16th digit varies from run to run, its printed four do not",
];

const FORK_QUIRKS: &[&str] = &[
    "the truth is the row's own `ground_truth`; rows with an `error` and rows without `model_detection` are left out",
    "names and codes are compared after trimming, otherwise as they stand",
    "macro figures run over the true classes for pairs and agents, and over all 14 modes for modes: absent ones count as 0",
    "an entry without a name is ignored, one whose name is null is an agent called `None`",
    "sums run left to right as in Python up to 3.11; 3.12 compensates and may differ in the 16th digit",
];

/// A class of a Python set: values that compare equal there are equal here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum EqualClass {
    None,
    Text(String),
    Number(String),
}

type Sets<K> = Vec<(BTreeSet<K>, BTreeSet<K>)>;

/// The sets of both scorers, level by level.
struct Levels<K> {
    pairs: Sets<(K, K)>,
    agents: Sets<K>,
    errors: Sets<K>,
}

impl<K> Default for Levels<K> {
    fn default() -> Self {
        Self { pairs: Vec::new(), agents: Vec::new(), errors: Vec::new() }
    }
}

/// The authors' scorer on the text of a result file.
///
/// # Errors
/// [`PublicScorerFails`] on rows on which the script itself ends with an error.
pub fn evaluate(results: &str) -> Result<Public, PublicScorerFails> {
    let (mut levels, mut total, mut skipped, mut exact) = (Levels::default(), 0, 0, 0);
    for (number, line) in lines(results) {
        total += 1;
        let Ok(row) = serde_json::from_str::<Value>(line.trim_matches(is_python_space)) else { continue };
        let fails = |why: &str| PublicScorerFails { line: number, why: why.to_owned() };
        let row = row.as_object().ok_or_else(|| fails("the row is no object"))?;
        let said = detected(row).map_err(fails)?;
        let truth = truth_of(row).map_err(fails)?;
        let Value::Array(said) = said else {
            skipped += 1;
            continue;
        };
        let truth: Vec<(EqualClass, EqualClass)> =
            truth.iter().map(required).collect::<Result<_, _>>().map_err(fails)?;
        let said: Vec<(EqualClass, EqualClass)> =
            said.iter().filter_map(Value::as_object).map(optional).collect::<Result<_, _>>().map_err(fails)?;
        let pairs = (truth.iter().cloned().collect(), said.iter().cloned().collect());
        exact += usize::from(pairs.0 == pairs.1);
        levels.pairs.push(pairs);
        levels.agents.push((firsts(&truth), firsts(&said)));
        levels.errors.push((seconds(&truth), seconds(&said)));
    }
    let valid = levels.pairs.len();
    let count = |name: &str, count: usize| rounded(name, real(count));
    let mut figures = vec![
        count("Total Samples", total),
        count("Skipped Samples (OOM failures)", skipped),
        rounded("Exact Match Ratio", ratio(exact, valid)),
    ];
    figures.extend(six_figures(
        "Global Level (Exact Pair Matching)",
        &SetTally::new(&levels.pairs, Classes::Union).without_intervals(),
    ));
    figures.extend(six_figures("Agent Level", &SetTally::new(&levels.agents, Classes::Union).without_intervals()));
    figures.extend(six_figures("Error Type Level", &SetTally::new(&levels.errors, Classes::Union).without_intervals()));
    Ok(Public { scorer: "Aegis evaluation/evaluate.py", figures, quirks: QUIRKS })
}

/// The fork's scorer on the text of a result file.
///
/// # Errors
/// [`PublicScorerFails`] on rows on which the script itself ends with an error.
pub fn evaluate_fork(results: &str) -> Result<Public, PublicScorerFails> {
    let mut levels = Levels::default();
    for (number, line) in lines(results) {
        let Ok(row) = serde_json::from_str::<Value>(line.trim_matches(is_python_space)) else { continue };
        let fails = |why: &str| PublicScorerFails { line: number, why: why.to_owned() };
        let row = row.as_object().ok_or_else(|| fails("the row is no object"))?;
        if !row.contains_key("model_detection") || row.contains_key("error") {
            continue;
        }
        let truth = match row.get("ground_truth") {
            Some(Value::Null) => continue,
            truth => entries(truth).map_err(fails)?,
        };
        let said = entries(row.get("model_detection")).map_err(fails)?;
        let (truth, said) = (trimmed(&truth), trimmed(&said));
        let whole = |pairs: &[(String, String)]| {
            pairs.iter().filter(|(agent, error)| !agent.is_empty() && !error.is_empty()).cloned().collect()
        };
        let named = |set: BTreeSet<String>| set.into_iter().filter(|name| !name.is_empty()).collect();
        levels.pairs.push((whole(&truth), whole(&said)));
        levels.agents.push((named(firsts(&truth)), named(firsts(&said))));
        levels.errors.push((named(seconds(&truth)), named(seconds(&said))));
    }
    let modes = FailureMode::ALL.iter().map(|mode| mode.code().to_owned()).collect();
    let mut figures = vec![shown("num_samples", real(levels.pairs.len()))];
    figures.extend(five("pair_level", &SetTally::new(&levels.pairs, Classes::Gold).without_intervals()));
    figures.extend(five("agent_level", &SetTally::new(&levels.agents, Classes::Gold).without_intervals()));
    figures.extend(five("error_level", &SetTally::new(&levels.errors, Classes::Fixed(modes)).without_intervals()));
    Ok(Public { scorer: "Aegis fork evaluation/get_numbers.py (a3c0c3f)", figures, quirks: FORK_QUIRKS })
}

/// Lines as Python's text files have them, numbered from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn firsts<K: Ord + Clone>(pairs: &[(K, K)]) -> BTreeSet<K> {
    pairs.iter().map(|(first, _)| first.clone()).collect()
}

fn seconds<K: Ord + Clone>(pairs: &[(K, K)]) -> BTreeSet<K> {
    pairs.iter().map(|(_, second)| second.clone()).collect()
}

/// Python's truth of a value.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// The prediction of a row, in the order in which the authors' script looks for one.
fn detected(row: &Map<String, Value>) -> Result<Value, &'static str> {
    let mut said = Value::Array(Vec::new());
    if let Some(text) = row.get("response_text").filter(|text| truthy(text)) {
        let text = text.as_str().ok_or("`response_text` is no string")?.trim_matches(is_python_space);
        if text.starts_with('{')
            && text.ends_with('}')
            && let Ok(answer) = serde_json::from_str::<Value>(text)
            && let Some(found) = wrapped(&answer, ["final_answer", "Final Answer"])
        {
            said = found;
        }
    }
    if truthy(&said) {
        return Ok(said);
    }
    match row.get("model_detection") {
        None => Ok(said),
        Some(detection @ Value::Object(fields)) => {
            if let Some(found) = wrapped(detection, ["Final Answer", "final_answer"]) {
                said = found;
            }
            match fields.get("faulty_agents") {
                Some(found) if !truthy(&said) => Ok(found.clone()),
                _ => Ok(said),
            }
        }
        Some(detection @ (Value::Array(_) | Value::Bool(_))) => Ok(detection.clone()),
        Some(detection @ Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(detection.clone()),
        Some(Value::Null) => match row.get("qwen_detection") {
            None => Ok(Value::Array(Vec::new())),
            Some(Value::Object(fields)) => Ok(fields.get("faulty_agents").cloned().unwrap_or(Value::Array(Vec::new()))),
            Some(_) => Err("`qwen_detection` is no object"),
        },
        Some(_) => Err("`model_detection` is a string or a fraction"),
    }
}

fn wrapped(value: &Value, keys: [&str; 2]) -> Option<Value> {
    keys.iter().find_map(|key| value.get(key)?.as_object()?.get("faulty_agents").cloned())
}

fn truth_of(row: &Map<String, Value>) -> Result<Vec<Value>, &'static str> {
    let Some(truth) = row.get("ground_truth") else { return Ok(Vec::new()) };
    match truth.as_object().ok_or("`ground_truth` is no object")?.get("faulty_agents") {
        None => Ok(Vec::new()),
        Some(Value::Array(entries)) => Ok(entries.clone()),
        Some(_) => Err("`ground_truth.faulty_agents` is no list"),
    }
}

fn required(entry: &Value) -> Result<(EqualClass, EqualClass), &'static str> {
    let field = |name: &str| entry.get(name).ok_or("an entry of `ground_truth` lacks `agent_name` or `error_type`");
    Ok((class(field("agent_name")?)?, class(field("error_type")?)?))
}

fn optional(entry: &Map<String, Value>) -> Result<(EqualClass, EqualClass), &'static str> {
    let field = |name: &str| class(entry.get(name).unwrap_or(&Value::Null));
    Ok((field("agent_name")?, field("error_type")?))
}

fn class(value: &Value) -> Result<EqualClass, &'static str> {
    match value {
        Value::Null => Ok(EqualClass::None),
        Value::String(text) => Ok(EqualClass::Text(text.clone())),
        Value::Bool(value) => Ok(EqualClass::Number(f64::from(u8::from(*value)).to_string())),
        Value::Number(number) => Ok(EqualClass::Number(number.as_f64().unwrap_or(f64::NAN).to_string())),
        Value::Array(_) | Value::Object(_) => Err("a name is a list or an object"),
    }
}

/// The fork's list of entries: no object, no entries.
fn entries(value: Option<&Value>) -> Result<Vec<Map<String, Value>>, &'static str> {
    let Some(found) = value.and_then(Value::as_object).and_then(|fields| fields.get("faulty_agents")) else {
        return Ok(Vec::new());
    };
    let Value::Array(found) = found else { return Err("`faulty_agents` is no list") };
    found.iter().map(|entry| entry.as_object().cloned().ok_or("an entry of `faulty_agents` is no object")).collect()
}

/// Python's `str(…).strip()` of name and code, as far as two of them can be told apart.
fn trimmed(entries: &[Map<String, Value>]) -> Vec<(String, String)> {
    let text = |entry: &Map<String, Value>, name: &str| match entry.get(name) {
        None => String::new(),
        Some(Value::String(text)) => text.trim_matches(is_python_space).to_owned(),
        Some(Value::Null) => "None".to_owned(),
        Some(Value::Bool(true)) => "True".to_owned(),
        Some(Value::Bool(false)) => "False".to_owned(),
        Some(other) => other.to_string(),
    };
    entries.iter().map(|entry| (text(entry, "agent_name"), text(entry, "error_type"))).collect()
}

/// A figure as the fork prints it.
fn shown(name: &str, value: f64) -> PublicFigure {
    PublicFigure { name: name.to_owned(), value, shown: format!("{value:.4}") }
}

/// A figure as pandas prints it: scaled, rounded half to even, scaled back, which is not what printing four digits does.
fn rounded(name: &str, value: f64) -> PublicFigure {
    let shown = (value * 1e4).round_ties_even() / 1e4;
    PublicFigure { name: name.to_owned(), value, shown: format!("{shown:.4}") }
}

fn six_figures(level: &str, score: &SetScore) -> Vec<PublicFigure> {
    let (micro, mean) = (score.micro, score.macro_);
    [
        ("precision_micro", micro.precision),
        ("recall_micro", micro.recall),
        ("f1_micro", micro.f1),
        ("precision_macro", mean.precision),
        ("recall_macro", mean.recall),
        ("f1_macro", mean.f1),
    ]
    .map(|(name, value)| rounded(&format!("{level} {name}"), value))
    .into()
}

fn five(level: &str, score: &SetScore) -> Vec<PublicFigure> {
    [
        ("micro_f1", score.micro.f1),
        ("micro_precision", score.micro.precision),
        ("micro_recall", score.micro.recall),
        ("macro_f1", score.macro_.f1),
        ("num_classes", real(score.classes)),
    ]
    .map(|(name, value)| shown(&format!("{level} {name}"), value))
    .into()
}

#[cfg(test)]
#[path = "aegis_tests.rs"]
mod tests;
