//! A trace in a budget: what is cut, evenly, so that length tells nothing of the label.

use super::{
    aegis_entry::entry_text,
    render::{Inputs, RenderedStep, render_steps},
};
use crate::dataset::{Sample, SampleStep};

/// How long a prompt may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct PromptBudget {
    /// How many.
    pub most: usize,
    /// Of what.
    pub unit: BudgetUnit,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// Tokens, estimated: a quarter of the ASCII characters and all others. No tokenizer is asked, because each model has
    /// its own; real counts of English prose lie some ten per cent lower.
    Tokens,
    /// Characters.
    Characters,
}

/// What truncation left out of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, schemars::JsonSchema)]
pub struct TraceCut {
    /// Steps of whose input only the beginning and the end are left.
    pub shortened_inputs: usize,
    /// Steps whose input is left out whole.
    pub dropped_inputs: usize,
    /// Steps of whose reply only the beginning and the end are left.
    pub shortened_steps: usize,
    /// Steps that are left out whole; never a labelled one.
    pub dropped_steps: usize,
    /// How much is gone, in the unit of the budget.
    pub gone: usize,
}

impl BudgetUnit {
    /// How long a text is.
    pub(super) fn length(self, text: &str) -> usize {
        match self {
            Self::Tokens => {
                let ascii = text.bytes().filter(u8::is_ascii).count();
                ascii.div_ceil(4) + text.chars().filter(|c| !c.is_ascii()).count()
            }
            Self::Characters => text.chars().count(),
        }
    }

    /// How many characters of prose are one.
    fn scale(self) -> usize {
        match self {
            Self::Tokens => 1,
            Self::Characters => 4,
        }
    }

    /// What a character weighs, in quarters.
    fn quarters(self, c: char) -> usize {
        if self == Self::Tokens && c.is_ascii() { 1 } else { 4 }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Characters => "characters",
        }
    }
}

/// Below so many tokens a step says nothing any more; then whole steps go.
const LEAST: usize = 24;
/// Heading and the words on what is gone of a step, and the line that stands for dropped steps, in tokens.
const FRAME: usize = 24;
const GAP: usize = 12;

/// How a trace is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TraceForm {
    /// A step with its number from 0 and its agent, what it was given and what it said.
    #[default]
    Own,
    /// Aegis' converter to verl rows (arXiv 2509.14295): query and history, entries with role and phase, numbered from 1.
    Aegis,
}

impl TraceForm {
    fn entry(self, step: &SampleStep, said: &RenderedStep) -> String {
        match self {
            Self::Own => {
                ["Step ", &step.step.to_string(), " - ", step.agent.as_str(), ":\n", &said.both_parts(), "\n\n"]
                    .concat()
            }
            Self::Aegis => entry_text(step, said),
        }
    }
}

/// The trace as text, entry by entry.
pub(super) fn conversation(sample: &Sample, inputs: Inputs, form: TraceForm) -> String {
    let all: Vec<Option<RenderedStep>> = render_steps(sample, inputs).into_iter().map(Some).collect();
    joined(sample, &all, form)
}

fn joined(sample: &Sample, texts: &[Option<RenderedStep>], form: TraceForm) -> String {
    let mut text = String::new();
    let mut gone = 0;
    for (step, said) in sample.steps.iter().zip(texts) {
        let Some(said) = said else {
            gone += 1;
            continue;
        };
        note_gone(&mut text, &mut gone);
        text.push_str(&form.entry(step, said));
    }
    note_gone(&mut text, &mut gone);
    if form == TraceForm::Own {
        text.truncate(text.trim_end().len());
    }
    text
}

fn note_gone(text: &mut String, gone: &mut usize) {
    if *gone > 0 {
        let steps = if *gone == 1 { " step" } else { " steps" };
        text.extend(["[… ", &gone.to_string(), steps, " left out …]\n\n"]);
        *gone = 0;
    }
}

/// The trace in a budget. What steps were given goes first: of each step as much as of any other, or all of it. Then each
/// reply is cut to one common length, the labelled ones like all others; only where that would leave nothing to read,
/// unlabelled steps go, drawn by hash.
pub(super) fn fitted(
    sample: &Sample,
    inputs: Inputs,
    budget: PromptBudget,
    form: TraceForm,
) -> (String, Option<TraceCut>) {
    let texts = render_steps(sample, inputs);
    let whole = conversation(sample, inputs, form);
    let before = budget.unit.length(&whole);
    if before <= budget.most {
        return (whole, None);
    }
    let mut cut = TraceCut::default();
    let (texts, fits) = inputs_cut(texts, budget, &mut cut);
    let left = if fits { texts.into_iter().map(Some).collect() } else { replies_cut(sample, texts, budget, &mut cut) };
    let text = joined(sample, &left, form);
    cut.gone = before.saturating_sub(budget.unit.length(&text));
    (text, Some(cut))
}

/// Cuts what steps were given, so that all replies stay whole; where that does not do, all of it. Whether it fits then.
fn inputs_cut(mut texts: Vec<RenderedStep>, budget: PromptBudget, cut: &mut TraceCut) -> (Vec<RenderedStep>, bool) {
    let unit = budget.unit;
    let least = LEAST * unit.scale();
    let frames = texts.len().saturating_mul((FRAME + GAP) * unit.scale());
    let said: usize = texts.iter().map(|told| unit.length(&told.reply)).sum();
    let lengths: Vec<usize> = texts.iter().map(|told| unit.length(&told.given)).collect();
    let room = budget.most.saturating_sub(said.saturating_add(frames));
    let cap = greatest(&lengths, room);
    let fits = cap >= least;
    for (told, length) in texts.iter_mut().zip(lengths).filter(|(_, length)| *length > 0) {
        if !fits {
            cut.dropped_inputs += 1;
            told.given.clear();
        } else if length > cap {
            cut.shortened_inputs += 1;
            told.given = shortened(&told.given, cap, unit);
        }
    }
    (texts, fits)
}

fn replies_cut(
    sample: &Sample,
    texts: Vec<RenderedStep>,
    budget: PromptBudget,
    cut: &mut TraceCut,
) -> Vec<Option<RenderedStep>> {
    let unit = budget.unit;
    let labelled = sample.label.as_ref().map(crate::dataset::Truth::steps).unwrap_or_default();
    let mut kept: Vec<bool> = vec![true; texts.len()];
    // Who goes first is drawn by the sample's id, not by place or length.
    let mut order: Vec<usize> =
        (0..texts.len()).filter(|place| !labelled.iter().any(|step| *step as usize == *place)).collect();
    order.sort_by_key(|place| *blake3::hash(format!("{}\n{place}", sample.id).as_bytes()).as_bytes());
    let mut order = order.into_iter();
    let least = LEAST * unit.scale();
    let cap = loop {
        let cap = common_cap(&texts, &kept, budget);
        if cap >= least {
            break cap;
        }
        match order.next().and_then(|place| kept.get_mut(place)) {
            Some(slot) => *slot = false,
            None => break cap.max(least),
        }
    };
    let one = |(told, kept): (RenderedStep, bool)| {
        if !kept {
            cut.dropped_steps += 1;
            return None;
        }
        let short = shortened(&told.reply, cap, unit);
        cut.shortened_steps += usize::from(short.len() < told.reply.len());
        Some(RenderedStep { reply: short, ..told })
    };
    texts.into_iter().zip(kept).map(one).collect()
}

/// The greatest common length at which the replies of the kept steps fit; what stands round each step counts too.
fn common_cap(texts: &[RenderedStep], kept: &[bool], budget: PromptBudget) -> usize {
    let unit = budget.unit;
    let lengths: Vec<usize> =
        texts.iter().zip(kept).filter(|(_, kept)| **kept).map(|(told, _)| unit.length(&told.reply)).collect();
    let gaps = (kept.len() - lengths.len()).min(lengths.len() + 1);
    let frame = lengths.len().saturating_mul(FRAME * unit.scale()) + gaps * GAP * unit.scale();
    budget.most.checked_sub(frame).map_or(0, |room| greatest(&lengths, room))
}

/// The greatest cap at which texts of these lengths, cut to it, have room.
fn greatest(lengths: &[usize], room: usize) -> usize {
    let fits = |cap: usize| lengths.iter().map(|length| (*length).min(cap)).sum::<usize>() <= room;
    let (mut low, mut high) = (0, lengths.iter().copied().max().unwrap_or_default());
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// The beginning and the end of a text, with a word on what is gone.
fn shortened(text: &str, most: usize, unit: BudgetUnit) -> String {
    let whole = unit.length(text);
    if whole <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let mut head = 0;
    let mut weight = 0;
    for (at, c) in text.char_indices() {
        weight += unit.quarters(c);
        if weight > half * 4 {
            break;
        }
        head = at + c.len_utf8();
    }
    let (mut tail, mut weight) = (text.len(), 0);
    for (at, c) in text.char_indices().rev() {
        weight += unit.quarters(c);
        if weight > half * 4 || at < head {
            break;
        }
        tail = at;
    }
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head} [… {} {} left out …] {tail}", whole.saturating_sub(most), unit.name())
}
