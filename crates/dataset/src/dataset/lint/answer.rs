//! Rules about answers: whether the checker saw what the row says, whether a step says the final answer, and whether prompts
//! give the right one away.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Finding, LintReport, NotedFindings, Rule, fold::folded, is_imported, quoted};
use crate::{
    dataset::{Place, PlacedSample, Sample, SampleKind},
    verify::{is_number, same_number, same_words},
};

/// How many rows of a system must say their answer in a step for each that does not, before that one is found: some
/// programs work their answer out by themselves.
const USUAL: usize = 4;
/// Shortest right answer that stands in no prompt by chance, in characters.
const TELLING: usize = 3;

/// What is kept of each system.
#[derive(Default)]
struct SystemAnswers {
    /// Rows whose final answer stands in a step.
    spoken: usize,
    /// Those whose does not.
    unspoken: Vec<Finding>,
    /// Tasks whose right answer may stand in prompts, and those where it does before any reply said it.
    tasks: BTreeSet<String>,
    given: BTreeMap<String, Finding>,
}

/// Answers by system.
#[derive(Default)]
pub(super) struct Answers(BTreeMap<String, SystemAnswers>);

/// Whether what the checker saw fits the outcome and the final answer, where its words say so.
pub(super) fn checked(sample: &Sample, noted: &mut NotedFindings<'_>) {
    let failed = sample.kind == SampleKind::Failure;
    let saw = sample.outcome_evidence.as_str();
    if let Some(code) = saw.strip_prefix("check exited with ") {
        if (code.trim() == "0") == failed {
            noted.note(Rule::CheckerDiffers, format!("{} of a run that {}", quoted(saw), ended(failed)));
        }
        return;
    }
    let by = ["numeric: ", "exact: ", "normalised: "].into_iter().find(|by| saw.starts_with(by));
    let told = by.and_then(|by| saw.strip_prefix(by)?.strip_prefix("expected `")?.split_once("`, got `"));
    let Some((expected, got)) = told.and_then(|(expected, got)| Some((expected, got.strip_suffix('`')?))) else {
        return;
    };
    let whole = |text: &str| !text.ends_with('…');
    let own = &sample.final_answer;
    let same = |a: &str, b: &str| same_words(a, b) || same_number(a, b);
    // A number is read out of an answer in words.
    let comparable = whole(got) && !own.trim().is_empty() && (is_number(own) || by != Some("numeric: "));
    if comparable && !same(got, own) && !spaced(own).contains(&spaced(got)) {
        noted.note(
            Rule::CheckerDiffers,
            format!("the checker read {}, the final answer is {}", quoted(got), quoted(own)),
        );
    } else if failed && whole(expected) && whole(got) && same(expected, got) {
        noted.note(Rule::CheckerDiffers, format!("{} of a run that {}", quoted(saw), ended(failed)));
    }
}

fn ended(failed: bool) -> &'static str {
    if failed { "is said to have failed" } else { "is said to have succeeded" }
}

/// What programs print by themselves where no agent gave an answer.
const NO_ANSWER: &[&str] = &["", "none", "null", "nan", "n/a", "undefined", "unknown", "no answer"];

/// Whether an answer says that there is none.
fn is_none(answer: &str) -> bool {
    NO_ANSWER.contains(&spaced(answer).as_str())
}

/// A text in one line, as it looks, in lower case.
fn spaced(text: &str) -> String {
    folded(text).to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Answers {
    pub(super) fn add(&mut self, placed: &PlacedSample, noted: &NotedFindings<'_>) {
        let sample = &placed.sample;
        if is_imported(sample) || sample.steps.is_empty() {
            return;
        }
        let system = self.0.entry(sample.system.clone()).or_default();
        if !is_none(&sample.final_answer) {
            if is_spoken(sample) {
                system.spoken += 1;
            } else {
                let what = format!(
                    "{} stands in no step, and other runs of the system say theirs",
                    quoted(&sample.final_answer)
                );
                system.unspoken.push(noted.finding(Rule::AnswerNowhere, what));
            }
        }
        let gold = sample.task.answer.trim();
        if gold.is_empty() || contains_answer(&sample.task.question, gold) {
            return;
        }
        system.tasks.insert(sample.task.id.clone());
        if let Some((step, everywhere)) = first_leak(sample, gold) {
            let what = format!(
                "the right answer {} stands in the prompt of step {step}, and nobody said it before",
                quoted(gold)
            );
            // By itself it tells where all prompts have it; else where it is so for most tasks.
            let sure = everywhere && gold.chars().count() >= TELLING;
            let key = if sure { String::new() } else { sample.task.id.clone() };
            system.given.entry(key).or_insert_with(|| noted.finding(Rule::GoldGiven, what));
        }
    }

    /// What is found of systems as a whole.
    pub(super) fn check(self, report: &mut LintReport) {
        for system in self.0.into_values() {
            if USUAL * system.unspoken.len() <= system.spoken {
                report.findings.extend(system.unspoken);
            }
            let sure = system.given.contains_key("");
            let most = system.given.len() > 1 && 2 * system.given.len() > system.tasks.len();
            if sure || most {
                report.findings.extend(system.given.into_values().next());
            }
        }
    }
}

/// Whether any step says the final answer, or was asked with it.
fn is_spoken(sample: &Sample) -> bool {
    let own = &sample.final_answer;
    let mut texts = sample.shown().filter(|(place, _)| matches!(place, Place::Input(_) | Place::Output(_)));
    texts.any(|(_, text)| contains_answer(text, own) || strings(text).iter().any(|inside| contains_answer(inside, own)))
}

/// The strings of a text that is JSON, as they read: a program that answers in JSON prints what they stand for.
fn strings(text: &str) -> Vec<String> {
    let Ok(whole) = serde_json::from_str::<Value>(text.trim()) else { return Vec::new() };
    let (mut strings, mut left) = (Vec::new(), vec![whole]);
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => strings.push(text),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    strings
}

/// Whether a text says an answer, as words of its own; a number however it is written.
fn contains_answer(text: &str, answer: &str) -> bool {
    let (text, answer) = (spaced(text), spaced(answer));
    let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let stands = text.match_indices(&answer).any(|(at, found)| {
        let (before, after) = (text.get(..at), text.get(at + found.len()..));
        apart(before.and_then(|text| text.chars().next_back())) && apart(after.and_then(|text| text.chars().next()))
    });
    let number = |word: &str| same_number(&answer, word.trim_matches(|c: char| !c.is_ascii_digit() && c != '-'));
    stands || (is_number(&answer) && text.split_whitespace().any(number))
}

/// The first step whose prompt has the right answer though no reply before said it, and whether all prompts have it. Results of
/// tools and what agents said are no prompt's own words.
fn first_leak(sample: &Sample, gold: &str) -> Option<(u32, bool)> {
    let prompt_says = |number: u32| {
        let input = sample.input(number).unwrap_or_default();
        input.iter().any(|said| {
            matches!(said.role.as_str(), "system" | "developer" | "user") && contains_answer(&said.text, gold)
        })
    };
    let before = sample.steps.iter().take_while(|step| {
        // The step that says it first was still asked before.
        let earlier = sample.steps.iter().take(step.step as usize);
        !earlier.flat_map(|step| &step.output).any(|said| said.texts().any(|text| contains_answer(text, gold)))
    });
    let first = before.map(|step| step.step).find(|number| prompt_says(*number))?;
    let everywhere = sample.steps.len() > 1 && sample.steps.iter().all(|step| prompt_says(step.step));
    Some((first, everywhere))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_inside_json_is_said() {
        let said = r#"{"answer":"```python\ndef f():\n    return 1\n```","steps":[{"why":"as asked"}]}"#;
        let own = "```python\ndef f():\n    return 1\n```";
        assert!(!contains_answer(said, own), "its line ends are written as two letters");
        assert!(strings(said).iter().any(|inside| contains_answer(inside, own)));
        assert_eq!((strings("no JSON"), strings("12")), (Vec::new(), Vec::new()));
    }
}
