//! The question that a tracer is trained and asked with: a template, and what its places hold.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    fit::{BudgetUnit, PromptBudget, TraceCut, TraceForm, conversation, fitted},
    render::Inputs,
};
use crate::{
    dataset::Sample,
    trajectory::{FailureMode, nearest},
};

/// The template that ships.
const SHIPPED: &str = include_str!("attribution.txt");
/// The prompt of Aegis (arXiv 2509.14295), word by word as its converter to verl rows writes it; its repository is under the
/// MIT licence.
const AEGIS: &str = include_str!("published_aegis.txt");
/// Its name as a template.
pub(super) const PUBLISHED: &str = "aegis";
/// What a template may hold, in braces.
const PLACES: [&str; 6] = ["question", "conversation", "gold_answer", "modes", "agents", "answer_form"];
/// How the answer is asked for as text.
const AS_TEXT: &str = "Answer with one JSON object and nothing else, in this form:\n\
    {\"faulty_agents\": [{\"agent_name\": \"<name as in the record>\", \"step\": <number>, \"error_type\": \"<code>\"}]}\n\
    If nobody erred, the list is empty.";
/// The tool that an answer by a call calls.
pub(super) const TOOL_NAME: &str = "report_faulty_agents";

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
    trace: TraceForm,
}

/// How a tracer is to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
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
    pub cut: Option<TraceCut>,
    /// How long it is, in estimated tokens.
    pub tokens: usize,
}

impl Prompt {
    /// The prompt as a conversation: the one place that says in whose role a tracer is asked.
    pub(super) fn messages(&self) -> Vec<Value> {
        vec![json!({"role": "user", "content": self.text})]
    }
}

/// What a prompt tells and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptAsking {
    /// Whether it tells the right answer.
    pub gold_answer: bool,
    /// What of their inputs steps show.
    pub inputs: Inputs,
    /// How long it may be.
    pub budget: Option<PromptBudget>,
    /// How the tracer is to answer.
    pub form: AnswerForm,
}

impl Default for PromptTemplate {
    fn default() -> Self {
        Self { text: SHIPPED.to_owned(), trace: TraceForm::Own }
    }
}

impl PromptTemplate {
    /// The prompt that Aegis published. It asks for agents and modes, not for steps.
    pub fn aegis() -> Self {
        Self { text: AEGIS.to_owned(), trace: TraceForm::Aegis }
    }

    /// The template of a name that ships: `aegis`.
    pub fn named(name: &str) -> Option<Self> {
        (name == PUBLISHED).then(Self::aegis)
    }

    /// What its rows are asked with where they do not say: the name of a shipped one, or its whole text.
    pub(super) fn recorded(&self) -> Option<String> {
        match self.trace {
            TraceForm::Aegis => Some(PUBLISHED.to_owned()),
            TraceForm::Own if self.text == SHIPPED => None,
            TraceForm::Own => Some(self.text.clone()),
        }
    }

    /// What of their inputs steps show under it where nobody says.
    pub(super) fn usual_inputs(&self) -> Inputs {
        match self.trace {
            TraceForm::Own => Inputs::New,
            TraceForm::Aegis => Inputs::None,
        }
    }

    /// The answer that a tracer is to give: labelled agents with their steps and modes, as JSON in one line. Aegis' has no
    /// steps.
    pub(super) fn answer(&self, sample: &Sample) -> Value {
        let errors = sample.label.as_ref().map(|truth| truth.errors.as_slice()).unwrap_or_default();
        let entry = |error: &crate::dataset::LabelledError| {
            let mut entry = json!({"agent_name": error.agent});
            if let Some(fields) = entry.as_object_mut() {
                let step = error.step.filter(|_| self.trace == TraceForm::Own);
                fields.extend(step.map(|step| ("step".to_owned(), step.into())));
                let mode = error.failure_mode.as_ref();
                fields.extend(mode.map(|mode| ("error_type".to_owned(), mode.code.clone().into())));
            }
            entry
        };
        json!({"faulty_agents": errors.iter().map(entry).collect::<Vec<_>>()})
    }

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
        if shows {
            Ok(Self { text: text.to_owned(), trace: TraceForm::Own })
        } else {
            Err(PromptTemplateError::NoConversation)
        }
    }

    /// The prompt of a sample.
    pub fn fill(&self, sample: &Sample, asking: PromptAsking) -> Prompt {
        let gold =
            if asking.gold_answer { format!("The right answer is: {}\n", sample.task.answer) } else { String::new() };
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
            "answer_form" => match asking.form {
                AnswerForm::Text => AS_TEXT.to_owned(),
                AnswerForm::Call => format!("Answer by calling `{TOOL_NAME}`. If nobody erred, its list is empty."),
            },
            _ => conversation.to_owned(),
        };
        let frame = self.with(|name| value(name, ""));
        let (conversation, cut) = match asking.budget {
            Some(PromptBudget { most, unit }) => {
                let most = most.saturating_sub(unit.length(&frame));
                fitted(sample, asking.inputs, PromptBudget { most, unit }, self.trace)
            }
            None => (conversation(sample, asking.inputs, self.trace), None),
        };
        let text = self.with(|name| value(name, &conversation));
        Prompt { tokens: BudgetUnit::Tokens.length(&text), text, cut }
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

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
