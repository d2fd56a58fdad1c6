//! Rules about what a tracer is shown: nothing in it may tell that, where or by what an error was planted.

use std::collections::HashSet;

use regex::Regex;

use super::{NotedFindings, Rule, fold::folded, quoted};
use crate::{
    dataset::{Change, Place, Sample, SampleKind},
    manipulator,
    recording::first_key,
    trajectory::patterns,
};

/// Shortest id that is looked for, in bytes.
const ID_MIN: usize = 6;

patterns! {
    /// Words that only a program which plants errors writes: codes, headers, fields of labels.
    MARKS = concat!(
        r"(?i)\b(?:FM-[1-3]\.[1-6]|x-aegis-[a-z]+|aegis-proxy|failure_mode|mistake_(?:agent|step|reason)",
        r"|faulty_agents?|is_injection_successful|malicious_action_description",
        r"|(?:\w*_)?(?:attacked|corrupted|injected)_(?:solution|answer|output|response))\b"
    );

    /// Words that an honest run may have too: looked for where an error was planted.
    TALK = {
    let phrases = r"(?:prompt|fault)[ _-]injection|response[ _-]corruption|injection[ _-](?:plan|strategy|target)";
    let injected = r"injected[ _-](?:error|fault|failure|step|agent)s?";
    // Names of one word are words of the language too.
    let names = manipulator::listed().into_iter().map(|(name, ..)| name).filter(|name| name.contains('_'));
    let names: Vec<_> = names.map(regex::escape).collect();
    format!(r"(?i)\b(?:{phrases}|{injected}|{})\b", names.join("|"))
};

    /// A path of some machine, in the group; or a URL, whose path is no machine's.
    PATH = {
    let top = "home|Users|root|workspace|var/folders|tmp|data|mnt|opt|scratch|Volumes";
    // In text, and in JSON text, where each backslash is two.
    let drive = r"[A-Za-z]:(?:\\\\[\w.-]+|\\[\w. -]+\\[\w.-]|\\[ac-eg-mo-qsv-zA-Z0-9_][\w.-]*)[^\s`'\x22)]*";
    let share = r"\\{2}[\w.-]{2,}\\[\w$.-]+|\\{4}[\w.-]{2,}\\\\[\w$.-]+";
    let path = format!(r"/(?:{top})/[\w.@+-]+[^\s`'\x22)]*|~/[\w.-]+[^\s`'\x22)]*|{drive}|{share}");
    // What stands before a path: no word (that is a host), but a line break's letter in JSON text, or an option's.
    let before = r"(?:^|[^\w./~\\-]|\\[nrt]|\s-[A-Za-z]|\bfile://)";
    format!(r"\b(?:https?|wss?|ftp)://[^\s`'\x22<>)]*|{before}({path})")
};
}

/// Whether a text holds a path of the machine that it came from.
pub(in crate::dataset) fn holds_machine_path(text: &str) -> bool {
    !matched_groups(&PATH, &folded(text)).is_empty()
}

/// Whether a text holds words that only a program which plants errors writes, or those who speak of it.
pub(super) fn is_marked(text: &str) -> bool {
    MARKS.is_match(text) || TALK.is_match(text)
}

/// What a pattern finds in a text: its group, where it has one.
fn matched_groups<'t>(pattern: &Regex, text: &'t str) -> Vec<&'t str> {
    let group = pattern.captures_len() - 1;
    let places = pattern.captures_iter(text).filter_map(|found| found.get(group));
    places.map(|place| place.as_str()).collect()
}

pub(super) fn check(sample: &Sample, noted: &mut NotedFindings<'_>) {
    check_pattern(sample, Rule::Vocabulary, &MARKS, noted);
    if sample.kind != SampleKind::Clean {
        check_pattern(sample, Rule::Vocabulary, &TALK, noted);
    }
    check_pattern(sample, Rule::MachinePath, &PATH, noted);
    scaffolds(sample, noted);
    ids(sample, noted);
    keys(sample, noted);
}

/// Notes the first place where a pattern is found in what is shown.
fn check_pattern(sample: &Sample, rule: Rule, pattern: &Regex, noted: &mut NotedFindings<'_>) {
    // What the task itself says, or a tool is called, is no leak.
    let calls = sample.steps.iter().filter_map(|step| step.output.as_ref()).flat_map(|said| &said.calls);
    let tools: HashSet<&str> =
        sample.tools.iter().map(|tool| tool.name.as_str()).chain(calls.map(|call| call.name.as_str())).collect();
    let question = folded(&sample.task.question);
    let given = |word: &str| question.contains(word) || (rule == Rule::Vocabulary && tools.contains(word));
    for (place, text) in sample.shown().filter(|(place, _)| *place != Place::Task) {
        if let Some(leaked) = matched_groups(pattern, &folded(text)).into_iter().find(|leaked| !given(leaked)) {
            noted.note(rule, format!("{} stands in {}", quoted(leaked), place_name(place)));
            return;
        }
    }
}

/// A model that rewrites may take the form of its question for the message: looked for in what such a model wrote.
fn scaffolds(sample: &Sample, noted: &mut NotedFindings<'_>) {
    let Some(label) = &sample.label else { return };
    let by_model = |change: &&Change| {
        let mut here =
            label.planted().filter(|error| error.step == Some(change.step) && error.side == Some(change.side));
        here.any(|error| error.operator.as_deref() == Some("rewrite_with_model"))
    };
    for change in label.changes.iter().filter(by_model) {
        let texts = |said: &[crate::dataset::SampleMessage]| {
            said.iter().map(|said| folded(&said.text).into_owned()).collect::<Vec<_>>().join("\n")
        };
        let known = format!("{}\n{}", folded(&sample.task.question), texts(&change.before));
        let after = texts(&change.after);
        if let Some(part) = manipulator::scaffold(&after, &known) {
            noted
                .note(Rule::Scaffold, format!("{} stands in what was delivered at step {}", quoted(part), change.step));
        }
    }
}

fn ids(sample: &Sample, noted: &mut NotedFindings<'_>) {
    let twin = sample.clean_twin.as_deref();
    let ids = std::iter::once(sample.id.as_str()).chain(twin).filter(|id| id.len() >= ID_MIN);
    for id in ids {
        if let Some((place, _)) = sample.shown().find(|(_, text)| folded(text).contains(id)) {
            noted.note(Rule::RunId, format!("{} stands in {}", quoted(id), place_name(place)));
        }
    }
}

/// Keys are looked for everywhere, the label included, by the shapes that recordings mask; none is ever quoted.
fn keys(sample: &Sample, noted: &mut NotedFindings<'_>) {
    let shown = sample.shown().find(|(_, text)| first_key(&folded(text)).is_some());
    let place = shown.map(|(place, _)| place_name(place)).or_else(|| {
        let whole = serde_json::to_string(sample).ok()?;
        first_key(&folded(&whole)).map(|_| "a field that no tracer is shown".to_owned())
    });
    if let Some(place) = place {
        noted.note(Rule::Key, format!("something that looks like a key stands in {place}"));
    }
}

/// Where it is, in words.
pub(super) fn place_name(place: Place) -> String {
    match place {
        Place::Task => "the question".to_owned(),
        Place::Answer => "the final answer".to_owned(),
        Place::Agent(step) => format!("the agent's name of step {step}"),
        Place::Input(step) => format!("the input of step {step}"),
        Place::Output(step) => format!("the output of step {step}"),
        Place::Tool => "a tool".to_owned(),
    }
}
