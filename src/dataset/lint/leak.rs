//! Rules about what a tracer is shown: nothing in it may tell that, where or by what an error was planted.

use std::{borrow::Cow, collections::HashSet, sync::LazyLock};

use regex::Regex;

use super::{Noted, Rule, quoted};
use crate::{
    dataset::{Change, Kind, Place, Said, Sample},
    manipulator,
    recording::first_key,
    trajectory::{Side, StepIndex},
};

/// Shortest added text that counts as an instruction, in characters.
const INSTRUCTION_MIN: usize = 20;
/// Shortest id that is looked for, in bytes.
const ID_MIN: usize = 6;
/// Edits of a request that say again what it says.
const REPEATING: [&str; 3] = ["duplicate_message", "reorder_history", "swap_role"];

/// Words that only a program which plants errors writes: codes, headers, fields of labels.
static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:FM-[1-3]\.[1-6]|x-aegis-[a-z]+|aegis-proxy|failure_mode|mistake_(?:agent|step|reason)",
        r"|faulty_agents?|is_injection_successful|malicious_action_description",
        r"|(?:\w*_)?(?:attacked|corrupted|injected)_(?:solution|answer|output|response))\b"
    ))
    .ok()
});

/// Words that an honest run may have too: looked for where an error was planted.
static TALK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let phrases = r"(?:prompt|fault)[ _-]injection|response[ _-]corruption|injection[ _-](?:plan|strategy|target)";
    let injected = r"injected[ _-](?:error|fault|failure|step|agent)s?";
    // Names of one word are words of the language too.
    let names = manipulator::listed().into_iter().map(|(name, ..)| name).filter(|name| name.contains('_'));
    let names: Vec<_> = names.map(regex::escape).collect();
    Regex::new(&format!(r"(?i)\b(?:{phrases}|{injected}|{})\b", names.join("|"))).ok()
});

static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"/(?:home|Users|root|workspace|var/folders|tmp)/[\w.-]+[^\s`'\x22)]*|[A-Za-z]:\\+Users\\+[\w.-]+").ok()
});

/// Whether a text holds a path of the machine that it came from.
pub(in crate::dataset) fn holds_machine_path(text: &str) -> bool {
    PATH.as_ref().is_some_and(|path| path.is_match(text))
}

pub(super) fn check(sample: &Sample, noted: &mut Noted<'_>) {
    told(sample, Rule::Vocabulary, &MARKS, noted);
    if sample.kind != Kind::Clean {
        told(sample, Rule::Vocabulary, &TALK, noted);
    }
    told(sample, Rule::MachinePath, &PATH, noted);
    ids(sample, noted);
    instructions(sample, noted);
    keys(sample, noted);
}

/// Notes the first place where a pattern is found in what is shown.
fn told(sample: &Sample, rule: Rule, pattern: &LazyLock<Option<Regex>>, noted: &mut Noted<'_>) {
    let Some(pattern) = &**pattern else { return };
    // What the task itself says, or a tool is called, is no leak.
    let calls = sample.steps.iter().filter_map(|step| step.output.as_ref()).flat_map(|said| &said.calls);
    let tools: HashSet<&str> =
        sample.tools.iter().map(|tool| tool.name.as_str()).chain(calls.map(|call| call.name.as_str())).collect();
    let given = |word: &str| sample.task.question.contains(word) || (rule == Rule::Vocabulary && tools.contains(word));
    let shown = sample.shown().filter(|(place, _)| *place != Place::Task);
    let mut found = shown.filter_map(|(place, text)| {
        let leaked = pattern.find_iter(text).find(|found| !given(found.as_str()))?;
        Some((place, leaked.as_str()))
    });
    if let Some((place, leaked)) = found.next() {
        noted.note(rule, format!("{} stands in {}", quoted(leaked), name(place)));
    }
}

fn ids(sample: &Sample, noted: &mut Noted<'_>) {
    let twin = sample.clean_twin.as_deref();
    let ids = std::iter::once(sample.id.as_str()).chain(twin).filter(|id| id.len() >= ID_MIN);
    for id in ids {
        if let Some((place, _)) = sample.shown().find(|(_, text)| text.contains(id)) {
            noted.note(Rule::RunId, format!("{} stands in {}", quoted(id), name(place)));
        }
    }
}

/// Whether all that was done to a request only says again what it says.
fn repeats(sample: &Sample, step: StepIndex) -> bool {
    let errors = sample.label.iter().flat_map(|label| &label.errors);
    let mut edits = errors.filter(|error| error.step == Some(step) && error.side == Some(Side::Request)).peekable();
    edits.peek().is_some()
        && edits.all(|error| error.operator.as_deref().is_some_and(|operator| REPEATING.contains(&operator)))
}

/// Looks for what an edit added to a request, and only added: an order that no agent of the system gave.
fn instructions(sample: &Sample, noted: &mut Noted<'_>) {
    let changes = || sample.label.iter().flat_map(|label| &label.changes).filter(|change| change.side == Side::Request);
    for change in changes() {
        for added in added(change) {
            let again = |change: &&Change| change.after.iter().any(|after| after.text.contains(&*added));
            let first = changes().filter(again).map(|change| change.step).min().unwrap_or(change.step);
            // Inputs are what the agent asked, before the edit: an edit that repeats finds its words there. Any other's
            // stand there only by a leak.
            let repeats = repeats(sample, first);
            let own = sample.shown().any(|(place, text)| {
                let earlier = match place {
                    Place::Input(step) => step < first || (repeats && step == first),
                    Place::Output(step) => step < first,
                    _ => false,
                };
                earlier && text.contains(&*added)
            });
            let told = own || sample.task.question.contains(&*added);
            let leaked = sample.shown().find(|(_, text)| !told && text.contains(&*added));
            if let Some((place, _)) = leaked {
                noted.note(Rule::LeakedInstruction, format!("{} stands in {}", quoted(&added), name(place)));
            }
        }
    }
}

/// The texts that were added to messages, or as messages of their own.
fn added(change: &Change) -> Vec<Cow<'_, str>> {
    let long = |text: &str| text.chars().count() >= INSTRUCTION_MIN;
    let beside = |after: &Said| change.before.iter().find(|before| before.role == after.role);
    let added = change.after.iter().filter_map(|after| match beside(after) {
        None => Some(after.text.trim()),
        Some(before) if before.text.is_empty() => None,
        Some(before) => {
            let added = after.text.strip_prefix(&before.text).or_else(|| after.text.strip_suffix(&before.text));
            added.map(str::trim)
        }
    });
    added.filter(|added| long(added)).map(Cow::Borrowed).collect()
}

/// Keys are looked for everywhere, the label included, by the shapes that recordings mask; none is ever quoted.
fn keys(sample: &Sample, noted: &mut Noted<'_>) {
    let shown = sample.shown().find(|(_, text)| first_key(text).is_some());
    let place = shown.map(|(place, _)| name(place)).or_else(|| {
        let whole = serde_json::to_string(sample).ok()?;
        first_key(&whole).map(|_| "a field that no tracer is shown".to_owned())
    });
    if let Some(place) = place {
        noted.note(Rule::Key, format!("something that looks like a key stands in {place}"));
    }
}

fn name(place: Place) -> String {
    match place {
        Place::Task => "the question".to_owned(),
        Place::Answer => "the final answer".to_owned(),
        Place::Agent(step) => format!("the agent's name of step {step}"),
        Place::Input(step) => format!("the input of step {step}"),
        Place::Output(step) => format!("the output of step {step}"),
        Place::Tool => "a tool".to_owned(),
    }
}
