//! A step as a few shallow numbers, from the log alone: no name, no label, no outcome.

use std::collections::BTreeSet;

use super::{
    super::{
        names::{agent_key, is_agent},
        real,
    },
    cosine::CosineTerms,
    place::{PLACE_COUNT, StepPlace},
};

/// How many numbers describe how a step is made and what it is like.
const MADE_COUNT: usize = 25;
/// How many numbers describe a step.
const COUNT: usize = MADE_COUNT + PLACE_COUNT;

/// One step in numbers.
pub type Features = [f64; COUNT];

/// Words of something that went wrong.
const ERROR: &[&str] = &[
    "error",
    "exception",
    "traceback",
    "failed",
    "failure",
    "invalid",
    "incorrect",
    "wrong",
    "cannot",
    "unable",
    "missing",
    "mistake",
    "timeout",
    "denied",
];
/// Words of doubt.
const HEDGE: &[&str] = &[
    "maybe",
    "perhaps",
    "might",
    "could",
    "likely",
    "seems",
    "appears",
    "probably",
    "assume",
    "assuming",
    "unclear",
    "approximately",
    "possibly",
    "unsure",
    "guess",
];
/// What code looks like.
const CODE: &[&str] = &["```", "def ", "import ", "print(", "return ", "</", "();"];

/// What the log shows of a step.
#[derive(Debug, Clone, Default)]
pub struct StepText {
    /// Who speaks.
    pub speaker: String,
    /// What it says, its tool calls included.
    pub reply: String,
    /// The tool results that it was given for it.
    pub given: String,
}

/// A step with what is computed once.
struct FeaturesRead {
    speaker: String,
    terms: CosineTerms,
    words: f64,
    errors: f64,
    given_errors: f64,
    hedges: f64,
    code: bool,
    asks: bool,
    numbers: BTreeSet<String>,
    characters: usize,
}

/// The numbers of each step of a run.
pub fn features(question: &str, steps: &[StepText]) -> Vec<Features> {
    let texts = std::iter::once(question).chain(steps.iter().map(|step| step.reply.as_str()));
    let mut terms = CosineTerms::of_run(texts).into_iter();
    let asked = terms.next().unwrap_or_default();
    let read: Vec<FeaturesRead> =
        steps.iter().zip(terms).map(|(step, terms)| FeaturesRead::read(step, terms)).collect();
    let known = numbers(question);
    let places = StepPlace::of_run(&read.iter().map(|step| step.speaker.as_str()).collect::<Vec<_>>());
    let rows = places.iter().enumerate();
    rows.map(|(at, place)| {
        let mut row = [0.0; COUNT];
        let values = outline(&read, at, &asked, &known).into_iter().chain(place.numbers());
        row.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
        row
    })
    .collect()
}

impl FeaturesRead {
    fn read(step: &StepText, terms: CosineTerms) -> Self {
        let count = |text: &str, list: &[&str]| {
            let lower = text.to_lowercase();
            real(lower.split(|c: char| !c.is_alphanumeric()).filter(|word| list.contains(word)).count())
        };
        Self {
            speaker: agent_key(&step.speaker),
            terms,
            words: real(step.reply.split_whitespace().count()),
            errors: count(&step.reply, ERROR),
            given_errors: count(&step.given, ERROR),
            hedges: count(&step.reply, HEDGE),
            code: CODE.iter().any(|mark| step.reply.contains(mark)),
            asks: step.reply.contains('?'),
            numbers: numbers(&step.reply),
            characters: step.reply.chars().count(),
        }
    }
}

/// The numbers of the step at a place.
fn outline(run: &[FeaturesRead], at: usize, asked: &CosineTerms, known: &BTreeSet<String>) -> [f64; MADE_COUNT] {
    let (before, rest) = run.split_at(at.min(run.len()));
    let Some((step, after)) = rest.split_first() else { return [0.0; MADE_COUNT] };
    let (previous, next, last) = (before.last(), after.first(), run.last());
    let own = before.iter().rev().find(|earlier| earlier.speaker == step.speaker);
    let turns = before.iter().filter(|earlier| earlier.speaker == step.speaker).count();
    let all_turns = run.iter().filter(|other| other.speaker == step.speaker).count();
    let new: Vec<&String> = step
        .numbers
        .iter()
        .filter(|number| !known.contains(*number) && !before.iter().any(|earlier| earlier.numbers.contains(*number)))
        .collect();
    let back = new.iter().filter(|number| after.iter().any(|later| later.numbers.contains(**number))).count();
    let mean = run.iter().map(|step| real(step.characters)).sum::<f64>() / real(run.len());
    let flag = |is: bool| if is { 1.0 } else { 0.0 };
    let like = |other: Option<&FeaturesRead>| other.map_or(0.0, |other| step.terms.cosine(&other.terms));
    [
        // Where it is.
        real(at) / real(run.len().saturating_sub(1).max(1)),
        real(at).ln_1p(),
        flag(before.is_empty()),
        flag(after.is_empty()),
        // Who speaks: how often, and whether it is an agent.
        real(turns).ln_1p(),
        real(all_turns) / real(run.len()),
        flag(!is_agent(&step.speaker)),
        flag(next.is_some_and(|next| !is_agent(&next.speaker))),
        flag(previous.is_some_and(|previous| previous.speaker == step.speaker)),
        // How it is said.
        real(step.characters).ln_1p(),
        (real(step.characters) + 1.0).ln() - (mean + 1.0).ln(),
        step.errors.ln_1p(),
        next.map_or(0.0, |next| (next.errors + next.given_errors).ln_1p()),
        step.given_errors.ln_1p(),
        step.hedges / (step.words + 1.0).sqrt(),
        flag(step.code),
        flag(step.asks),
        // What it is like.
        step.terms.cosine(asked),
        if after.is_empty() { 0.0 } else { like(last) },
        like(previous),
        like(next),
        like(own),
        // Numbers that are new here, and whether they return.
        real(step.numbers.len()).ln_1p(),
        real(new.len()).ln_1p(),
        if new.is_empty() { 0.0 } else { real(back) / real(new.len()) },
    ]
}

/// The numbers of a text: digits with a point between; marks of thousands left out. Not as `WrittenNumber` has them: `1.2.3` is one,
/// as it was when what features are worth was measured.
fn numbers(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    let number = |part: &str| part.trim_matches(['.', ',']).replace(',', "");
    parts.map(number).filter(|number| number.starts_with(|c: char| c.is_ascii_digit())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(speaker: &str, said: &str) -> StepText {
        StepText { speaker: speaker.into(), reply: said.into(), given: String::new() }
    }

    #[test]
    fn numbers_of_a_text() {
        let found = numbers("12 boxes, 1,200.50 in all; v2. and 7,");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["12", "1200.50", "2", "7"]);
    }

    #[test]
    fn a_run_in_numbers() {
        let steps = [
            step("Solver", "12 times 8 makes 96"),
            step("Computer_terminal", "Error: invalid"),
            step("solver", "so 12 times 8 makes 96, perhaps 97?"),
        ];
        let found = features("What is 12 times 8?", &steps);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        let column = |number: usize| found.iter().map(|row| row[number]).collect::<Vec<_>>();
        assert_eq!(column(0), [0.0, 0.5, 1.0]);
        assert_eq!((column(2), column(3)), (vec![1.0, 0.0, 0.0], vec![0.0, 0.0, 1.0]));
        assert_eq!((column(6), column(7)), (vec![0.0, 1.0, 0.0], vec![1.0, 0.0, 0.0]));
        near(found[1][11], 3f64.ln());
        near(found[0][12], 3f64.ln());
        assert!(found[2][14] > 0.0 && found[0][14] == 0.0);
        assert_eq!(column(16), [0.0, 0.0, 1.0]);
        assert!(found[2][21] > 0.3 && found[0][21] == 0.0, "it repeats itself");
        near(found[0][23], 2f64.ln());
        assert_eq!(column(24), [1.0, 0.0, 0.0], "96 returns, 97 does not");
        assert!(found.iter().flatten().all(|number| number.is_finite()));
        assert!(features("", &[]).is_empty());
        assert!(features("", &[step("", "")]).iter().flatten().all(|number| number.is_finite()));
    }
}
