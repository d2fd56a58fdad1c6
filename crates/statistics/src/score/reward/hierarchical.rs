//! Aegis' reward (`error_attribution.py` of its training code, names and constants as there): credit for pairs, less
//! for an agent or a mode alone, penalties for what is wrong, doubled or too much, over the best possible score.
//!
//! [`hierarchical`] is that function, warts included. Its doubling penalty also hits *right* answers (one agent with
//! two true modes), and a wrong extra mode on the right agent costs nothing; [`hierarchical_strict`] mends both.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{score::real, trajectory::patterns};

const PAIR: f64 = 1.0;
const AGENT: f64 = 0.3;
const MODE: f64 = 0.1;
const FALSE_POSITIVE: f64 = 0.2;
const MALFORMED: f64 = -1.0;
const DUPLICATE: f64 = 0.3;
const PARSED: f64 = 0.1;

type Pairs = BTreeSet<(String, String)>;

/// The published reward of an answer. Both texts are JSON with `faulty_agents`, the answer perhaps inside prose.
/// About −1 to 1, not clipped; −1 for an answer that cannot be read. Sums run in the order of names; the published
/// function walks a hash set, so that its 16th digit varies.
pub fn hierarchical(answer: &str, truth: &str) -> f64 {
    let Some(said) = pairs(answer) else { return MALFORMED };
    scored(&said, &pairs(truth).unwrap_or_default(), doubled(said.iter()), BTreeSet::new())
}

/// The same with two defects mended: only wrong pairs count as doubled, and an agent that a right pair names earns
/// nothing more by a wrong one.
pub fn hierarchical_strict(answer: &str, truth: &str) -> f64 {
    let Some(said) = pairs(answer) else { return MALFORMED };
    let truth = pairs(truth).unwrap_or_default();
    let right = said.intersection(&truth).map(|(agent, _)| agent).collect();
    scored(&said, &truth, doubled(said.difference(&truth)), right)
}

/// A reward of the two above over what the truth itself would get from it, so that the right answer is worth 1 whatever it is.
/// The published numbers are 1.1 where nobody erred, and below 1 where an agent or a mode is right twice. What is not above 0
/// stays as it is.
pub fn of_own(reward: fn(&str, &str) -> f64, answer: &str, truth: &str) -> f64 {
    let (got, own) = (reward(answer, truth), reward(truth, truth));
    if got > 0.0 && own > 0.0 { got / own } else { got }
}

fn scored<'a>(said: &'a Pairs, truth: &Pairs, doubled: f64, mut paid_agents: BTreeSet<&'a String>) -> f64 {
    if truth.is_empty() {
        return if said.is_empty() { PAIR + PARSED } else { PARSED };
    }
    let agents: BTreeSet<&String> = truth.iter().map(|(agent, _)| agent).collect();
    let modes: BTreeSet<&String> = truth.iter().map(|(_, mode)| mode).collect();
    let mut paid_modes = BTreeSet::new();
    let mut score = PARSED - doubled;
    for pair in said {
        let (agent, mode) = pair;
        score += if truth.contains(pair) {
            PAIR
        } else if agents.contains(agent) && paid_agents.insert(agent) {
            AGENT
        } else if !agents.contains(agent) && modes.contains(mode) && paid_modes.insert(mode) {
            MODE
        } else {
            -FALSE_POSITIVE
        };
    }
    let most = truth.len() * 2;
    if said.len() > most {
        score -= real(said.len() - most) * FALSE_POSITIVE * 0.5;
    }
    score / (real(truth.len()) * PAIR + PARSED)
}

/// The penalty for agents and modes that occur more than once.
fn doubled<'a>(said: impl Iterator<Item = &'a (String, String)>) -> f64 {
    let (mut agents, mut modes) = (BTreeMap::<&String, usize>::new(), BTreeMap::<&String, usize>::new());
    for (agent, mode) in said {
        *agents.entry(agent).or_default() += 1;
        *modes.entry(mode).or_default() += 1;
    }
    let agents = agents.values().map(|count| real(count - 1) * DUPLICATE);
    agents.chain(modes.values().map(|count| real(count - 1) * DUPLICATE * 0.5)).sum()
}

/// Why a text yields no pairs at one of the published parser's five stages.
enum Stage {
    /// The next stage may find some.
    Next,
    /// The published parser gives up here.
    Malformed,
}

/// The published parser: whole text, fence, flat object, any braces, loose list; `None` is malformed.
fn pairs(text: &str) -> Option<Pairs> {
    let text = text.trim();
    let unfenced = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    // The published one cuts the last three characters, whatever they are.
    let unfenced = unfenced
        .map_or(text, |rest| rest.char_indices().rev().nth(2).and_then(|(end, _)| rest.get(..end)).unwrap_or_default());
    for stage in [text, unfenced.trim()] {
        match object(stage) {
            Ok(found) => return Some(found),
            Err(Stage::Malformed) => return None,
            Err(Stage::Next) => {}
        }
    }
    for pattern in [&*NAMED_OBJECT, &*FIRST_OBJECT] {
        for found in pattern.find_iter(text) {
            match object(found.as_str()) {
                Ok(found) => return Some(found),
                Err(Stage::Malformed) => return None,
                Err(Stage::Next) => {}
            }
        }
    }
    loose(text)
}

/// An object with `faulty_agents`: names and codes without spaces, in lower case.
fn object(text: &str) -> Result<Pairs, Stage> {
    let value: Value = as_python_reads(text).ok_or(Stage::Next)?;
    let listed = match &value {
        Value::Object(fields) => fields.get("faulty_agents").ok_or(Stage::Next)?,
        Value::Array(items) if !items.contains(&Value::from("faulty_agents")) => return Err(Stage::Next),
        Value::String(text) if !text.contains("faulty_agents") => return Err(Stage::Next),
        _ => return Err(Stage::Malformed),
    };
    // Iterating text or keys yields things without fields, which is malformed unless there are none.
    let entries = match listed {
        Value::Array(entries) => entries.as_slice(),
        Value::String(text) if text.is_empty() => &[],
        Value::Object(fields) if fields.is_empty() => &[],
        _ => return Err(Stage::Malformed),
    };
    let mut pairs = Pairs::new();
    for entry in entries {
        let field = |name: &str| entry.get(name).and_then(Value::as_str).map(normal).ok_or(Stage::Malformed);
        let (agent, mode) = (field("agent_name")?, field("error_type")?);
        if !agent.is_empty() && !mode.is_empty() {
            pairs.insert((agent, mode));
        }
    }
    Ok(pairs)
}

patterns! {
    NAMED_OBJECT = r#"(?s)\{[^{}]*"faulty_agents"[^{}]*\}"#;
    FIRST_OBJECT = r"(?s)\{.*?\}";
    LIST = r#"(?is)faulty_agents["\s\x1c-\x1f]*:["\s\x1c-\x1f]*\[(.*?)\]"#;
    COMMAS = r",[\s\x1c-\x1f]*([}\]])";
}

/// A list behind the word `faulty_agents`, with single quotes and trailing commas mended.
fn loose(text: &str) -> Option<Pairs> {
    for found in LIST.captures_iter(text) {
        let inner = found.get(1)?.as_str();
        let read = |inner: &str| as_python_reads::<Vec<Value>>(&format!("[{inner}]"));
        let mended = || read(&COMMAS.replace_all(&inner.replace('\'', "\""), "$1"));
        let Some(entries) = read(inner).or_else(mended) else { continue };
        let mut pairs = Pairs::new();
        for entry in entries.iter().filter_map(Value::as_object) {
            let field = |name: &str| match entry.get(name) {
                None => Some(String::new()),
                Some(value) => value.as_str().map(normal),
            };
            // A name that is no text ends the published parser.
            let (agent, mode) = (field("agent_name")?, field("error_type")?);
            if !agent.is_empty() && !mode.is_empty() {
                pairs.insert((agent, mode));
            }
        }
        if !pairs.is_empty() {
            return Some(pairs);
        }
    }
    None
}

/// JSON as Python reads it, `NaN` and `Infinity` among it. These are numbers, and no number is a name or a code: `null` does
/// for them.
fn as_python_reads<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok().or_else(|| {
        let plain = without_numbers_of_python(text)?;
        serde_json::from_str(&plain).ok()
    })
}

/// The text with `null` for Python's numbers outside of strings; `None` where it holds none.
fn without_numbers_of_python(text: &str) -> Option<String> {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    let (mut quoted, mut escaped, mut found) = (false, false, false);
    while let Some(c) = rest.chars().next() {
        let word = ["-Infinity", "Infinity", "NaN"].into_iter().find(|word| !quoted && rest.starts_with(word));
        if let Some(word) = word {
            found = true;
            plain.push_str("null");
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        plain.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    found.then_some(plain)
}

fn normal(text: &str) -> String {
    text.replace(' ', "").to_lowercase()
}

#[cfg(test)]
#[path = "hierarchical_tests.rs"]
mod tests;
