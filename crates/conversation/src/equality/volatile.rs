//! What recorded calls show to be volatile in the instructions of an agent.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;

use super::{
    Rules,
    compared_call::same_reply,
    form::surface_of,
    volatile_place::{PLACES_MAX, VolatilePlace, is_value},
};
use crate::{
    surface::{Conversation, Message, Role, door},
    trajectory::{AgentName, Attempt, Step},
};

/// A request in which more lines than this differ is another request.
const LINES_MAX: usize = 4;
/// The letters that a line must begin with before its value: less may begin any line.
const LETTERS_LEAST: usize = 3;

/// The volatile places that clean runs of one task show: their calls were answered the same though a line differed. A place
/// whose value any reply or tool result of its run holds, and one whose change a reply followed, is none.
pub fn volatile_between(runs: &[&[Step]], rules: &Rules) -> Vec<VolatilePlace> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let spoken = |steps| SpokenWords::of_steps(steps, &[Role::Assistant, Role::Tool]);
    let by_call = |steps: &'_ [Step]| -> BTreeMap<(AgentName, u32, u32), usize> {
        let key = |step: &Step| (step.attribution.agent.clone(), step.attribution.instance, step.call);
        steps.iter().enumerate().map(|(at, step)| (key(step), at)).collect()
    };
    let asked = |step: &Step| {
        let asked = read(step, &step.request)?;
        Some(instructions(&asked, &[Role::System, Role::Developer, Role::User]))
    };
    let (known, known_words) = (by_call(first), spoken(first));
    let (mut learned, mut refuted) = (LearnedPlaces::default(), LearnedPlaces::default());
    for other in others {
        let words = spoken(other);
        for (key, at) in by_call(other) {
            let pair = known.get(&key).and_then(|place| Some((first.get(*place)?, other.get(at)?)));
            let Some((one, another)) = pair else { continue };
            let Some((before, now)) = asked(one).zip(asked(another)) else { continue };
            let is_answered_alike = same_reply(one, another, rules);
            for change in changes(&one.attribution.agent, &before, &now, rules).unwrap_or_default() {
                let is_free = !known_words.hold(&change.values[0]) && !words.hold(&change.values[1]);
                let into = if is_free && is_answered_alike { &mut learned } else { &mut refuted };
                into.add(change.place);
            }
        }
    }
    learned.without(&refuted)
}

/// The volatile places that a run shows by itself: values with a digit that change from one call of an agent to its next one, in
/// system prompts, and that nobody else says. That no reply depends on them is not shown. `steps`: each with its request; of all
/// that was asked only the last instructions of each agent are held.
pub fn volatile_within<'a>(steps: impl Iterator<Item = (&'a Step, Bytes)>, rules: &Rules) -> Vec<VolatilePlace> {
    let mut words = SpokenWords::default();
    let mut before: BTreeMap<(&AgentName, u32), Vec<String>> = BTreeMap::new();
    let mut found: Vec<LineChange> = Vec::new();
    for (step, request) in steps {
        let asked = read(step, &request);
        words.add(step, asked.as_ref(), &[Role::User, Role::Assistant, Role::Tool, Role::Other]);
        let Some(asked) = asked else { continue };
        let now = instructions(&asked, &[Role::System, Role::Developer]);
        let who = (&step.attribution.agent, step.attribution.instance);
        if let Some(earlier) = before.get(&who) {
            found.extend(changes(who.0, earlier, &now, rules).unwrap_or_default());
        }
        before.insert(who, now);
    }
    let (mut learned, mut refuted) = (LearnedPlaces::default(), LearnedPlaces::default());
    for change in found {
        let is_free = |value: &String| value.bytes().any(|byte| byte.is_ascii_digit()) && !words.hold(value);
        let into = if change.values.iter().all(is_free) { &mut learned } else { &mut refuted };
        into.add(change.place);
    }
    learned.without(&refuted)
}

/// The volatile places by which a call differs from the call of another run that it should be, in system prompts: values with a digit
/// that nobody else says in either run. That no reply depends on them is not shown: `other` need not be answered. `runs`: all
/// steps of both.
pub fn volatile_of_call(one: &Step, other: &Step, runs: [&[Step]; 2], rules: &Rules) -> Vec<VolatilePlace> {
    let asked = |step: &Step| Some(instructions(&read(step, &step.request)?, &[Role::System, Role::Developer]));
    let Some((before, now)) = asked(one).zip(asked(other)) else { return Vec::new() };
    let words = runs.map(|steps| SpokenWords::of_steps(steps, &[Role::User, Role::Assistant, Role::Tool, Role::Other]));
    let is_free = |value: &String| {
        value.bytes().any(|byte| byte.is_ascii_digit()) && !words.iter().any(|words| words.hold(value))
    };
    let changed = changes(&one.attribution.agent, &before, &now, rules).unwrap_or_default();
    changed.into_iter().filter(|change| change.values.iter().all(is_free)).map(|change| change.place).collect()
}

/// Whether any reply repeats a word of tool results that another run of a call did not get from its tools. Then the results say
/// something of the answer. What cannot be read is taken for repeated.
pub fn are_results_repeated<'a>(known: &Step, other: &Step, replies: impl Iterator<Item = &'a Step>) -> bool {
    let results = |step: &Step| Some(instructions(&read(step, &step.request)?, &[Role::Tool]));
    let Some((known, other)) = results(known).zip(results(other)) else { return true };
    let mut words = SpokenWords::default();
    for step in replies {
        words.add(step, None, &[]);
        // What was edited had been said all the same.
        words.add_reply(step, step.last_attempt().map(|attempt| &attempt.reply));
    }
    let others: HashSet<&str> = other.iter().flat_map(|text| split(text)).collect();
    known.iter().flat_map(|text| split(text)).any(|word| !others.contains(word) && words.hold(word))
}

/// What a step was asked, if it can be read.
fn read(step: &Step, request: &[u8]) -> Option<Conversation> {
    door::request(surface_of(&step.surface)?, request).ok()
}

/// What messages of these roles say.
fn instructions(asked: &Conversation, roles: &[Role]) -> Vec<String> {
    asked.messages.iter().filter(|message| roles.contains(&message.role)).map(Message::text).collect()
}

/// Places, each once, by what their lines begin and end with.
#[derive(Debug, Default)]
struct LearnedPlaces(BTreeMap<(String, String), VolatilePlace>);

impl LearnedPlaces {
    fn add(&mut self, place: VolatilePlace) {
        self.0.entry((place.before.clone(), place.after.clone())).or_insert(place);
    }

    fn without(mut self, refuted: &Self) -> Vec<VolatilePlace> {
        self.0.retain(|line, _| !refuted.0.contains_key(line));
        let mut places: Vec<VolatilePlace> = self.0.into_values().take(PLACES_MAX).collect();
        places.sort();
        places
    }
}

/// A line that differs between two calls of an agent.
struct LineChange {
    place: VolatilePlace,
    values: [String; 2],
}

/// The lines that differ in what an agent was asked, declared rules aside; none where two calls differ in more than a value in each of
/// a few lines.
fn changes(agent: &AgentName, one: &[String], other: &[String], rules: &Rules) -> Option<Vec<LineChange>> {
    if one.len() != other.len() {
        return None;
    }
    let mut changes = Vec::new();
    for (left, right) in one.iter().zip(other).filter(|(left, right)| left != right) {
        let (left, right): (Vec<&str>, Vec<&str>) = (left.split('\n').collect(), right.split('\n').collect());
        if left.len() != right.len() {
            return None;
        }
        for (number, (left, right)) in left.into_iter().zip(right).enumerate() {
            if left == right || rules.apply_text(left) == rules.apply_text(right) {
                continue;
            }
            let (before, after, values) = parted(left, right)?;
            let (agent, line) = (agent.clone(), number + 1);
            changes.push(LineChange { place: VolatilePlace { agent, line, before, after }, values });
        }
    }
    Some(changes).filter(|changes| changes.len() <= LINES_MAX)
}

/// What two lines begin and end with, whole words, and the values between; none where too little is common to know the line by.
fn parted(left: &str, right: &str) -> Option<(String, String, [String; 2])> {
    let begins = left.bytes().zip(right.bytes()).take_while(|(a, b)| a == b).count();
    let is_edge = |byte: u8| byte.is_ascii_whitespace() || b"\"'=:,;()<>[]{}".contains(&byte);
    let begins = left.as_bytes().get(..begins)?.iter().rposition(|byte| is_edge(*byte))? + 1;
    let (left_rest, right_rest) = (left.get(begins..)?, right.get(begins..)?);
    let ends = left_rest.bytes().rev().zip(right_rest.bytes().rev()).take_while(|(a, b)| a == b).count();
    let tail = left_rest.len() - ends;
    let tail = left_rest.as_bytes().get(tail..)?.iter().position(|byte| is_edge(*byte)).map(|at| tail + at);
    let ends = tail.map_or(0, |tail| left_rest.len() - tail);
    // Blanks beside a value may be what makes it as wide as another one.
    let before = left.get(..begins)?.trim_end().to_owned();
    let after = left_rest.get(left_rest.len() - ends..)?.trim_start().to_owned();
    let value = |line: &str| Some(line.strip_prefix(&before)?.strip_suffix(&after)?.to_owned());
    let values = [value(left)?, value(right)?];
    let is_known_by_it = before.chars().filter(|c| c.is_alphabetic()).count() >= LETTERS_LEAST;
    (is_known_by_it && values.iter().all(|value| is_value(value))).then_some((before, after, values))
}

/// The words of a run that are no instructions: a value among them may be what it is about.
#[derive(Debug, Default)]
struct SpokenWords(HashSet<String>);

impl SpokenWords {
    /// All words of the replies of a run, and of the messages of these roles.
    fn of_steps(steps: &[Step], roles: &[Role]) -> Self {
        let mut words = Self::default();
        for step in steps {
            words.add(step, read(step, &step.request).as_ref(), roles);
        }
        words
    }

    /// All words of a reply as its program got it, and of the messages of these roles.
    fn add(&mut self, step: &Step, asked: Option<&Conversation>, roles: &[Role]) {
        self.add_reply(step, step.last_attempt().map(Attempt::delivered));
        for text in asked.map(|asked| instructions(asked, roles)).unwrap_or_default() {
            self.add_text(&text);
        }
    }

    /// All words of a reply.
    fn add_reply(&mut self, step: &Step, body: Option<&Bytes>) {
        let Some(surface) = surface_of(&step.surface) else { return };
        let streamed = step.last_attempt().is_some_and(|attempt| attempt.streamed);
        let reply = body.map(|body| door::reply(surface, body, streamed));
        for answer in reply.into_iter().flatten().flat_map(|reply| reply.answers) {
            self.add_text(&answer.message.text());
            for call in &answer.message.tool_calls {
                self.add_text(&call.arguments);
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        for word in split(text) {
            if !self.0.contains(word) {
                self.0.insert(word.to_owned());
            }
        }
    }

    fn hold(&self, value: &str) -> bool {
        split(value).any(|word| self.0.contains(word))
    }
}

/// Words and numbers, each whole: a decimal number is one.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !"._-".contains(c));
    words.map(|word| word.trim_matches(['.', '_', '-'])).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_lines_have_in_common_is_whole_words() {
        for (left, right, expected) in [
            ("Uptime: 532 s", "Uptime: 538 s", Some(("Uptime:", "s", " 532 ", " 538 "))),
            ("cwd bench-x7", "cwd bench-x9", Some(("cwd", "", " bench-x7", " bench-x9"))),
            (
                "You have <load>0.41</load> now",
                "You have <load>1.3</load> now",
                Some(("You have <load>", "</load> now", "0.41", "1.3")),
            ),
            ("call   7)", "call  17)", Some(("call", ")", "   7", "  17"))),
            ("You see one bird", "You see two small birds", None),
            ("ab 1", "ab 2", None),
            ("Alice speaks", "Bob speaks", None),
        ] {
            let found = parted(left, right);
            let found = found.as_ref().map(|(before, after, [one, other])| (&**before, &**after, &**one, &**other));
            assert_eq!(found, expected, "{left} / {right}");
        }
    }
}
