//! A conversation as the simulator understands it: who it is, what the task is, who said what.

use super::{
    duty::{self, Duty},
    expression, function, language,
    orders::Orders,
    plan,
    problem::{self, Solution},
    stated,
};
use crate::surface::{Conversation, Message, Role, ToolCall};

/// Who said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SpokenBy {
    /// The program, or another agent in the user's place.
    Caller,
    /// A model: this one or another whose words are kept in the history.
    Model,
    /// A tool; its name where it is known.
    Tool(String),
}

/// One message that is no prompt.
#[derive(Debug, Clone)]
pub(super) struct SpokenMessage {
    /// By whom.
    pub(super) who: SpokenBy,
    /// The name that the message carries.
    pub(super) name: Option<String>,
    /// The text; may be empty.
    pub(super) text: String,
    /// The tools that it calls.
    pub(super) calls: Vec<ToolCall>,
}

/// The task that the conversation is about.
#[derive(Debug, Clone)]
pub(super) struct StatedTask {
    /// Its text.
    pub(super) text: String,
    /// Its solution.
    pub(super) solution: Solution,
    /// The answer as it is to be stated: a number, a choice letter, `True` or `False`, a block of code.
    pub(super) answer: String,
}

impl StatedTask {
    /// Whether code is asked for.
    pub(super) fn wants_code(&self) -> bool {
        function::is_code(&self.answer)
    }

    /// How to go about it, as a numbered plan.
    pub(super) fn plan(&self) -> String {
        let function = if self.wants_code() { function::find_task(&self.text) } else { None };
        function.map_or_else(|| plan::write(&self.solution), |asked| asked.plan())
    }
}

/// The conversation, understood.
#[derive(Debug)]
pub(super) struct ReadConversation<'a> {
    /// As it came.
    pub(super) conversation: &'a Conversation,
    /// The seed of every draw.
    pub(super) seed: u64,
    /// All system texts.
    pub(super) prompt: String,
    /// Everything else, oldest first.
    pub(super) spoken: Vec<SpokenMessage>,
    /// What this agent is there for.
    pub(super) duty: Duty,
    /// The task, if it can be read.
    pub(super) task: Option<StatedTask>,
    /// Particular orders in the prompt, the last message, or what tools returned since.
    pub(super) orders: Orders,
}

impl<'a> ReadConversation<'a> {
    /// Reads a conversation.
    pub(super) fn read(conversation: &'a Conversation, seed: u64) -> Self {
        let prompt = conversation.prompt();
        let spoken = spoken(&conversation.messages);
        let last = spoken.iter().rev().find(|s| s.who == SpokenBy::Caller).map(|s| s.text.clone()).unwrap_or_default();
        let orders = Orders::read(&format!("{prompt}\n{last}\n{}", returned(&spoken)));
        let duty = duty::read_duty(&prompt, &last);
        let task = task(&spoken, &prompt, &orders);
        Self { conversation, seed, prompt, spoken, duty, task, orders }
    }

    /// The last message of the caller.
    pub(super) fn last_caller(&self) -> &str {
        let last = self.spoken.iter().rev().find(|s| s.who == SpokenBy::Caller);
        last.map(|s| s.text.as_str()).unwrap_or_default()
    }

    /// Prompt and last message of the caller, where instructions stand.
    pub(super) fn instructions(&self) -> String {
        format!("{}\n{}", self.prompt, self.last_caller())
    }

    /// Whether the instructions hold a phrase, whatever its case.
    pub(super) fn is_instructed(&self, phrase: &str) -> bool {
        self.instructions().to_lowercase().contains(&phrase.to_lowercase())
    }

    /// Whether a message is this agent's own: a model's, without another's name.
    pub(super) fn is_own(&self, spoken: &SpokenMessage) -> bool {
        let named_other = |name: &String| !self.prompt.to_lowercase().contains(&name.to_lowercase());
        spoken.who == SpokenBy::Model && !spoken.name.as_ref().is_some_and(named_other)
    }

    /// The place of this agent's last own words.
    pub(super) fn last_own(&self) -> Option<usize> {
        self.spoken.iter().rposition(|s| self.is_own(s) && !s.text.trim().is_empty())
    }

    /// The last answer that anybody stated, and where.
    pub(super) fn last_stated(&self) -> Option<(usize, String)> {
        let mut places = self.spoken.iter().enumerate().rev();
        places.find_map(|(at, s)| stated::answer(self.without_task(&s.text)).map(|answer| (at, answer)))
    }

    /// A text without the task, whose numbers are nobody's statement.
    pub(super) fn without_task<'t>(&self, text: &'t str) -> &'t str {
        match &self.task {
            Some(task) => text.split_once(task.text.as_str()).map_or(text, |(_, after)| after),
            None => text,
        }
    }

    /// The messages at the end that are tool results and the calls they answer: `(call, result)`, oldest first.
    pub(super) fn fresh_results(&self) -> Vec<(ToolCall, String)> {
        let in_loop = |s: &&SpokenMessage| {
            matches!(s.who, SpokenBy::Tool(_)) || (s.who == SpokenBy::Model && !s.calls.is_empty())
        };
        let tail = self.spoken.iter().rev().take_while(in_loop).count();
        let from = self.spoken.len() - tail;
        let messages = &self.conversation.messages;
        let ids: Vec<(&str, String)> = messages
            .iter()
            .filter(|m| m.role == Role::Tool)
            .map(|m| (m.answers_call.as_deref().unwrap_or_default(), m.text()))
            .collect();
        let calls = self.spoken.iter().skip(from).flat_map(|s| s.calls.iter().cloned());
        calls
            .filter_map(|call| ids.iter().find(|(id, _)| *id == call.id).map(|(_, text)| (call, text.clone())))
            .collect()
    }

    /// A draw below `sides` that depends on the seed and on these texts alone.
    pub(super) fn draw(&self, texts: &[&str], sides: u64) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let bytes = hasher.finalize();
        let first = bytes.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
        u64::from_le_bytes(first) % sides.max(1)
    }
}

fn spoken(messages: &[Message]) -> Vec<SpokenMessage> {
    let call_of = |id: &str| messages.iter().flat_map(|m| &m.tool_calls).find(|call| call.id == id);
    let others = messages.iter().filter(|m| !matches!(m.role, Role::System | Role::Developer));
    let spoken = |message: &Message| {
        let who = match message.role {
            Role::Assistant => SpokenBy::Model,
            Role::Tool => {
                let called = message.answers_call.as_deref().and_then(call_of).map(|call| call.name.clone());
                SpokenBy::Tool(called.or_else(|| message.name.clone()).unwrap_or_default())
            }
            _ => SpokenBy::Caller,
        };
        SpokenMessage { who, name: message.name.clone(), text: message.text(), calls: message.tool_calls.clone() }
    };
    others.map(spoken).collect()
}

/// What tools returned after the caller's last words: a model obeys orders that stand there, too.
fn returned(spoken: &[SpokenMessage]) -> String {
    let since = spoken.iter().rposition(|s| s.who == SpokenBy::Caller).map_or(0, |at| at + 1);
    let results = spoken.iter().skip(since).filter(|s| matches!(s.who, SpokenBy::Tool(_)));
    results.map(|s| s.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The first text that is a problem that can be solved: in the caller's messages, else in the prompt.
fn task(spoken: &[SpokenMessage], prompt: &str, orders: &Orders) -> Option<StatedTask> {
    let callers = spoken.iter().filter(|s| s.who == SpokenBy::Caller).map(|s| s.text.as_str());
    let texts = || callers.clone().chain(std::iter::once(prompt));
    let code = texts().find_map(|text| {
        let asked = function::find_task(text)?;
        let solution = Solution { steps: Vec::new(), answer: 0.0, unit: String::new() };
        Some(StatedTask { text: asked.task.to_owned(), solution, answer: asked.written()? })
    });
    code.or_else(|| texts().flat_map(passages).find_map(|passage| solve(&passage, orders)))
}

/// The passages of a text that may be a task, the most likely first.
fn passages(text: &str) -> Vec<String> {
    const LABELS: [&str; 6] = ["problem:", "task:", "question:", "exercise:", "query:", "puzzle:"];
    let mut found = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut lines: Vec<&str> = Vec::new();
        for line in paragraph.lines() {
            let label = line.split_once(':').map(|(label, _)| label.trim().to_lowercase()).unwrap_or_default();
            let answers =
                ["solution", "proposed solution", "answer", "plan", "feedback", "draft", "steps", "final answer"];
            if answers.iter().any(|a| label == *a || label.starts_with(&format!("{a} "))) && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
        let passage = lines.join("\n");
        let lower = passage.to_lowercase();
        let labelled = LABELS.iter().filter_map(|label| lower.rfind(label).map(|at| at + label.len())).max();
        if let Some(rest) = labelled.and_then(|at| passage.get(at..)) {
            found.push(rest.trim().to_owned());
        }
        found.push(passage.trim().to_owned());
    }
    if found.len() > 1 {
        found.push(text.trim().to_owned());
    }
    found.retain(|passage| passage.len() > 3 && passage.len() < 4000 && !passage.contains("\"properties\""));
    found
}

fn solve(passage: &str, orders: &Orders) -> Option<StatedTask> {
    let text = language::without_paths(&orders.amended(passage));
    let stem = choice_stem(&text);
    let solved = problem::solve(stem.unwrap_or(&text));
    let asks = passage.contains('?') || passage.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(');
    let imperative = ["compute", "calculate", "evaluate", "assert", "solve", "check", "what is"];
    let commanded = imperative.iter().any(|verb| text.to_lowercase().contains(verb));
    let (solution, answer) = match (expression::find(stem.unwrap_or(&text)), solved) {
        (Some((written, value)), None) if asks || commanded => {
            let (number, answer) = match value {
                expression::Value::Number(number) => (number, language::number_text(number)),
                expression::Value::Truth(truth) => {
                    (f64::from(u8::from(truth)), if truth { "True" } else { "False" }.to_owned())
                }
            };
            (Solution { steps: Vec::new(), answer: number, unit: written }, answer)
        }
        (_, Some(solution)) => {
            let answer = language::number_text(solution.answer);
            (solution, answer)
        }
        _ => return None,
    };
    let chosen = stem.and_then(|stem| choice(text.get(stem.len()..)?, solution.answer));
    Some(StatedTask { text: passage.to_owned(), solution, answer: chosen.unwrap_or(answer) })
}

/// The text before `A) … B) …`.
fn choice_stem(text: &str) -> Option<&str> {
    let marks = |letter: char| ["(L)", "L)", "L.", "L:"].map(|form| form.replace('L', &letter.to_string()));
    let at = |letter: char| {
        marks(letter)
            .iter()
            .filter_map(|mark| {
                text.match_indices(mark.as_str())
                    .map(|(at, _)| at)
                    .find(|at| text.get(..*at).is_some_and(|b| b.ends_with(char::is_whitespace)))
            })
            .min()
    };
    let (first, second) = (at('A')?, at('B')?);
    (first < second).then(|| text.get(..first)).flatten()
}

/// The letter of the option that has this value.
fn choice(options: &str, value: f64) -> Option<String> {
    let mut letter = None;
    for word in options.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if bare.len() == 1 && bare.starts_with(|c: char| ('A'..='H').contains(&c)) {
            letter = Some(bare.to_owned());
        } else if bare.replace(',', "").parse().is_ok_and(|number| language::same_number(number, value)) {
            return letter;
        }
    }
    None
}
