//! The question that a tracer is trained and asked with: a template, the trace as text, and how it is cut to size.

use serde_json::{Value, json};

use super::foreign::spoken;
use crate::{
    dataset::Sample,
    trajectory::{FailureMode, nearest},
};

/// The template that ships.
const SHIPPED: &str = include_str!("attribution.txt");
/// What a template may hold, in braces.
const PLACES: [&str; 6] = ["question", "conversation", "gold_answer", "modes", "agents", "answer_form"];
/// How the answer is asked for as text.
const AS_TEXT: &str = "Answer with one JSON object and nothing else, in this form:\n\
    {\"faulty_agents\": [{\"agent_name\": \"<name as in the record>\", \"step\": <number>, \"error_type\": \"<code>\"}]}\n\
    If nobody erred, the list is empty.";
/// The tool that an answer by a call calls.
pub(super) const TOOL_NAME: &str = "report_faulty_agents";
/// Below so many tokens a step says nothing any more; then whole steps go.
const LEAST_TOKENS: usize = 24;

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptTemplateError {
    /// It never shows the trace.
    #[error("the template lacks `{{conversation}}`: a tracer would see no trace")]
    NoConversation,
    /// It names a place that there is not.
    #[error("line {line}: `{{{name}}}` is no place: expected one of {{question}}, {{conversation}}, {{gold_answer}}, {{modes}}, {{agents}}, {{answer_form}}{}",
        .nearest.map(|near| format!("; did you mean `{{{near}}}`?")).unwrap_or_default())]
    Unknown {
        /// 1-based.
        line: usize,
        /// What is written.
        name: String,
        /// The nearest place.
        nearest: Option<&'static str>,
    },
}

/// A template with its places: words in braces. Any other brace is text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    text: String,
}

/// How a tracer is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerForm {
    /// JSON as text.
    #[default]
    Text,
    /// A call of a tool.
    Call,
}

/// A prompt, and what was left out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// What was cut, if anything.
    pub cut: Option<Truncated>,
}

/// What truncation left out of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Truncated {
    /// Steps of which only the beginning and the end are left.
    pub shortened_steps: usize,
    /// Steps that are left out whole; never a labelled one.
    pub dropped_steps: usize,
    /// Estimated tokens that are gone.
    pub tokens: usize,
}

impl Default for PromptTemplate {
    fn default() -> Self {
        Self { text: SHIPPED.to_owned() }
    }
}

impl PromptTemplate {
    /// Checks a template.
    ///
    /// # Errors
    /// [`PromptTemplateError`] when it shows no trace or names an unknown place.
    pub fn parse(text: &str) -> Result<Self, PromptTemplateError> {
        for (number, line) in text.lines().enumerate() {
            if let Some(name) = places(line).find(|name| !PLACES.contains(name)) {
                let nearest = nearest(name, PLACES);
                return Err(PromptTemplateError::Unknown { line: number + 1, name: name.to_owned(), nearest });
            }
        }
        let shows = text.lines().flat_map(places).any(|name| name == "conversation");
        if shows { Ok(Self { text: text.to_owned() }) } else { Err(PromptTemplateError::NoConversation) }
    }

    /// The prompt of a sample, cut to `tokens` estimated tokens if given; the gold answer only if asked for.
    pub fn fill(&self, sample: &Sample, gold_answer: bool, tokens: Option<usize>, form: AnswerForm) -> Prompt {
        let gold = if gold_answer { format!("The right answer is: {}\n", sample.task.answer) } else { String::new() };
        let modes: Vec<String> = FailureMode::ALL
            .iter()
            .map(|mode| format!("{} {}: {}", mode.code(), mode.name(), mode.meaning()))
            .collect();
        let agents: Vec<&str> = sample.agents().iter().map(|agent| agent.as_str()).collect();
        let (modes, agents) = (modes.join("\n"), agents.join(", "));
        let value = |name: &str, conversation: &str| match name {
            "question" => sample.task.question.clone(),
            "gold_answer" => gold.clone(),
            "modes" => modes.clone(),
            "agents" => agents.clone(),
            "answer_form" => match form {
                AnswerForm::Text => AS_TEXT.to_owned(),
                AnswerForm::Call => format!("Answer by calling `{TOOL_NAME}`. If nobody erred, its list is empty."),
            },
            _ => conversation.to_owned(),
        };
        let frame = self.with(|name| value(name, ""));
        let (conversation, cut) = match tokens {
            Some(tokens) => fitted(sample, tokens.saturating_sub(estimate(&frame))),
            None => (conversation(sample), None),
        };
        Prompt { text: self.with(|name| value(name, &conversation)), cut }
    }

    /// The text with every place filled; what is filled in is not looked at again.
    fn with(&self, value: impl Fn(&str) -> String) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut rest = self.text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            if let Some((name, behind)) = after.split_once('}').filter(|(name, _)| PLACES.contains(name)) {
                text.push_str(&value(name));
                rest = behind;
            } else {
                text.push('{');
                rest = after;
            }
        }
        text + rest
    }
}

/// The words in braces that look like places.
fn places(line: &str) -> impl Iterator<Item = &str> {
    let inside = line.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name));
    inside.filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

/// The answer that a tracer is to give: labelled agents with their steps and modes, as JSON in one line.
pub(super) fn answer(sample: &Sample) -> Value {
    let errors = sample.label.as_ref().map(|truth| truth.errors.as_slice()).unwrap_or_default();
    let entry = |error: &crate::dataset::LabelledError| {
        let mut entry = json!({"agent_name": error.agent});
        if let Some(fields) = entry.as_object_mut() {
            fields.extend(error.step.map(|step| ("step".to_owned(), step.into())));
            fields.extend(error.failure_mode.as_ref().map(|mode| ("error_type".to_owned(), mode.code.clone().into())));
        }
        entry
    };
    json!({"faulty_agents": errors.iter().map(entry).collect::<Vec<_>>()})
}

/// The tool that an answer by a call calls, as chat templates take it.
pub(super) fn tool() -> Value {
    let codes: Vec<&str> = FailureMode::ALL.iter().map(|mode| mode.code()).collect();
    json!({"type": "function", "function": {
        "name": TOOL_NAME,
        "description": "Says which agents erred, at which step, and how.",
        "parameters": {
            "type": "object",
            "properties": {"faulty_agents": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "agent_name": {"type": "string"},
                    "step": {"type": "integer"},
                    "error_type": {"type": "string", "enum": codes},
                },
                "required": ["agent_name"],
            }}},
            "required": ["faulty_agents"],
        },
    }})
}

/// The trace as text: each step with its number and agent.
pub(super) fn conversation(sample: &Sample) -> String {
    let texts: Vec<String> = sample.steps.iter().map(spoken).collect();
    let all: Vec<Option<String>> = texts.into_iter().map(Some).collect();
    joined(sample, &all)
}

fn joined(sample: &Sample, texts: &[Option<String>]) -> String {
    let mut text = String::new();
    let mut gone = 0;
    for (step, said) in sample.steps.iter().zip(texts) {
        let Some(said) = said else {
            gone += 1;
            continue;
        };
        note_gone(&mut text, &mut gone);
        text.extend(["Step ", &step.step.to_string(), " - ", step.agent.as_str(), ":\n", said, "\n\n"]);
    }
    note_gone(&mut text, &mut gone);
    text.truncate(text.trim_end().len());
    text
}

fn note_gone(text: &mut String, gone: &mut usize) {
    if *gone > 0 {
        text.extend(["[… ", &gone.to_string(), " steps left out …]\n\n"]);
        *gone = 0;
    }
}

/// How many tokens a text is about: a quarter of its ASCII characters and all others. No tokenizer is asked, because
/// each model has its own; real counts of English prose lie some ten per cent lower.
pub(super) fn estimate(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + text.chars().filter(|c| !c.is_ascii()).count()
}

/// The trace in a budget. Every step is cut to one common length, the labelled ones like all others, so that length
/// tells nothing of the label; only where that would leave nothing to read, unlabelled steps go, drawn by hash.
fn fitted(sample: &Sample, tokens: usize) -> (String, Option<Truncated>) {
    let texts: Vec<String> = sample.steps.iter().map(spoken).collect();
    let whole = conversation(sample);
    let before = estimate(&whole);
    if before <= tokens {
        return (whole, None);
    }
    let labelled = sample.label.as_ref().map(crate::dataset::Truth::steps).unwrap_or_default();
    let mut kept: Vec<bool> = vec![true; texts.len()];
    // Who goes first is drawn by the sample's id, not by place or length.
    let mut order: Vec<usize> =
        (0..texts.len()).filter(|place| !labelled.iter().any(|step| *step as usize == *place)).collect();
    order.sort_by_key(|place| *blake3::hash(format!("{}\n{place}", sample.id).as_bytes()).as_bytes());
    let mut order = order.into_iter();
    let cap = loop {
        let cap = common_cap(&texts, &kept, tokens);
        if cap >= LEAST_TOKENS {
            break cap;
        }
        match order.next().and_then(|place| kept.get_mut(place)) {
            Some(slot) => *slot = false,
            None => break cap.max(LEAST_TOKENS),
        }
    };
    let mut cut = Truncated::default();
    let left: Vec<Option<String>> = texts
        .iter()
        .zip(&kept)
        .map(|(text, kept)| {
            if !*kept {
                cut.dropped_steps += 1;
                return None;
            }
            let short = shortened(text, cap);
            cut.shortened_steps += usize::from(short.len() < text.len());
            Some(short)
        })
        .collect();
    let text = joined(sample, &left);
    cut.tokens = before.saturating_sub(estimate(&text));
    (text, Some(cut))
}

/// The greatest common length at which the kept steps fit, in tokens; what stands round each step counts too.
fn common_cap(texts: &[String], kept: &[bool], tokens: usize) -> usize {
    // Heading and the word on what is gone, and the line that stands for dropped steps, in tokens.
    const FRAME: usize = 24;
    const GAP: usize = 12;
    let lengths: Vec<usize> =
        texts.iter().zip(kept).filter(|(_, kept)| **kept).map(|(text, _)| estimate(text)).collect();
    let gaps = (kept.len() - lengths.len()).min(lengths.len() + 1);
    let frame = lengths.len().saturating_mul(FRAME) + gaps * GAP;
    let Some(room) = tokens.checked_sub(frame) else { return 0 };
    let fits = |cap: usize| lengths.iter().map(|length| (*length).min(cap)).sum::<usize>() <= room;
    let (mut low, mut high) = (0, lengths.iter().copied().max().unwrap_or_default());
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// The beginning and the end of a text, with a word on what is gone.
fn shortened(text: &str, tokens: usize) -> String {
    let whole = estimate(text);
    if whole <= tokens {
        return text.to_owned();
    }
    let half = tokens / 2;
    let mut head = 0;
    let mut weight = 0;
    for (at, c) in text.char_indices() {
        weight += if c.is_ascii() { 1 } else { 4 };
        if weight > half * 4 {
            break;
        }
        head = at + c.len_utf8();
    }
    let (mut tail, mut weight) = (text.len(), 0);
    for (at, c) in text.char_indices().rev() {
        weight += if c.is_ascii() { 1 } else { 4 };
        if weight > half * 4 || at < head {
            break;
        }
        tail = at;
    }
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head} [… {} tokens left out …] {tail}", whole.saturating_sub(tokens))
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
