//! Whether the task's own fields, or the answer, tell where the error is.

use serde_json::Value;

use super::{NotedFindings, Rule, fold::folded, is_imported, leak, quoted};
use crate::{
    dataset::{Place, Sample, Truth},
    trajectory::patterns,
};

patterns! {
    /// Words that say that somebody erred, or that something was planted.
    BLAME = concat!(
        r"(?i)\b(?:err(?:or|ors|ed|s)?|mistakes?|mistaken|faults?|faulty|fail(?:s|ed|ures?)?|wrong(?:ly)?|culprit|guilty|blame[ds]?|bugs?",
        r"|broken?|breaks?|corrupt(?:ed|s)?|plant(?:ed|s)?|inject(?:ed|ion|s)?|altered|tamper(?:ed|s)?|sabotaged?|attack(?:ed|s)?",
        r"|manipulated?|misled|misleads?|false|incorrect(?:ly)?|root[ _-]?cause|responsible|label(?:led|s)?|modified|edited)\b"
    );

    /// A step by its number, in the group.
    STEP = r"(?i)\b(?:step|call|turn|message|entry|round)s?[ _-]*(?:no\.?|nr\.?|number|index|#|is|at|:|=)?[ \x22':=#]*(\d{1,6})\b";
}

/// Looks at what a task says beside question and answer, and at a final answer that no step says.
pub(super) fn check(sample: &Sample, noted: &mut NotedFindings<'_>) {
    let Some(label) = sample.label.as_ref().filter(|label| !label.errors.is_empty() && !is_imported(sample)) else {
        return;
    };
    let mut leaves = Vec::new();
    for (place, fields) in [("task", &sample.task.extra), ("sample", &sample.extra)] {
        fields.iter().for_each(|(name, value)| texts(place, name, value, &mut leaves));
    }
    let own = folded(&sample.final_answer);
    let spoken = sample.shown().any(|(place, text)| place != Place::Answer && folded(text).contains(own.trim()));
    leaves.extend((!spoken).then(|| ("the final answer".to_owned(), sample.final_answer.clone())));
    leaves.push(("the right answer".to_owned(), sample.task.answer.clone()));
    for (place, text) in leaves.iter().filter(|(_, text)| names_blame(&folded(text), label)) {
        noted.note(Rule::TaskTells, format!("{place} says {}", quoted(text)));
    }
}

/// The values of a field, each with its name: a name may be what tells.
fn texts(place: &str, name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    let leaf = |text: &str| (format!("`{place}.{name}`"), format!("{}: {text}", name.replace(['_', '.'], " ")));
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| texts(place, &format!("{name}.{key}"), value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| texts(place, name, value, found)),
        Value::String(text) => found.push(leaf(text)),
        Value::Number(number) => found.push(leaf(&number.to_string())),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Whether a text names what a label names: the agent or the step of an error beside a word of blame, both together, or the
/// mode by its code.
fn names_blame(text: &str, label: &Truth) -> bool {
    let blames = BLAME.is_match(text);
    let steps: Vec<u32> = STEP.captures_iter(text).filter_map(|found| found.get(1)?.as_str().parse().ok()).collect();
    let lower = text.to_lowercase();
    let word = |name: &str| {
        let name = name.to_lowercase();
        !name.is_empty() && lower.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|word| word == name)
    };
    leak::is_marked(text)
        || label.errors.iter().any(|error| {
            let named = word(error.agent.as_str()) || error.raw_agent.as_deref().is_some_and(word);
            // People count from 1.
            let placed =
                error.step.is_some_and(|step| steps.iter().any(|at| *at == step || *at == step.saturating_add(1)));
            let agent_at_step = error.step.map(|step| format!("{}@{step}", error.agent).to_lowercase());
            (blames && (named || placed)) || (named && placed) || agent_at_step.is_some_and(|at| lower.contains(&at))
        })
}
