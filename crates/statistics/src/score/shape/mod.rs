//! The shape probe: how far one gets without reading, from the outline of a log alone.
//!
//! Shallow numbers a step ([`features`]: length, repetition, words of error and doubt, numbers; [`place`]: where the step stands
//! and how many there are), a logistic regression over them ([`logistic`]), and the step that it finds likeliest. It is trained on the labels at hand, on other
//! tasks than those it is asked about, so it stands among the rules that look at labels. What it finds, a method may have
//! found by the same habits: of the people who labelled, or of the program that planted.

mod cosine;
mod features;
mod logistic;
mod place;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use twox_hash::XxHash3_64;

pub use features::{Features, StepText, features};

use super::{Gold, Share, names::agent_key};
use logistic::Logistic;

/// Fewest runs with a labelled step for a figure.
pub const FEWEST: usize = 40;
/// Parts of the cross-validation.
const FOLDS: usize = 10;
/// Most runs that are looked at, so that time is bounded; they are drawn by the hash of their id.
const RUNS: usize = 4000;

/// What the probe must not have seen when it is asked about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// The run's task.
    Task,
    /// Its task and its system.
    System,
    /// Its task and what planted its error.
    Template,
}

/// What the probe finds on some runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapeProbed {
    /// Runs whose likeliest step is made by a true agent.
    pub agent: Share,
    /// Runs whose likeliest step is a true one.
    pub step: Share,
    /// Runs with a true step among the three likeliest.
    pub top_3: Share,
}

/// Why there is no figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooFew {
    /// Runs.
    #[error("{0} runs have a labelled step and their words, {FEWEST} are needed")]
    Runs(usize),
    /// Tasks.
    #[error("all runs are of one task")]
    Tasks,
    /// Systems or templates.
    #[error("there is only one")]
    Groups,
}

/// One run as the probe sees it.
struct RunOutline<'a> {
    gold: &'a Gold,
    fold: usize,
    group: &'a str,
}

/// Asks about each run a probe that was trained without what is to be unseen.
///
/// # Errors
/// [`TooFew`]: there is nothing to learn from, or nothing to leave out.
pub fn probe(golds: &[Gold], unseen: Unseen) -> Result<ShapeProbed, TooFew> {
    let runs = outlines(golds, unseen);
    if runs.len() < FEWEST {
        return Err(TooFew::Runs(runs.len()));
    }
    let folds: BTreeSet<usize> = runs.iter().map(|run| run.fold).collect();
    let groups: BTreeSet<&str> = runs.iter().map(|run| run.group).collect();
    if folds.len() < 2 {
        return Err(TooFew::Tasks);
    }
    if unseen != Unseen::Task && groups.len() < 2 {
        return Err(TooFew::Groups);
    }
    let (mut agent, mut step, mut top, mut asked) = (0, 0, 0, 0);
    for group in groups {
        for fold in &folds {
            let held: Vec<_> = runs.iter().filter(|run| run.fold == *fold && run.group == group).collect();
            let other = |run: &&RunOutline<'_>| run.fold != *fold && (unseen == Unseen::Task || run.group != group);
            let known = runs.iter().filter(other).flat_map(|run| {
                run.gold.shape.iter().enumerate().map(|(step, shape)| (shape, run.gold.blames_step(step)))
            });
            let known: Vec<_> = known.collect();
            if held.is_empty() || known.is_empty() {
                continue;
            }
            let model = Logistic::train(&known);
            for run in held {
                let ranked = ranked(&model, run.gold);
                let first = ranked.first().copied().unwrap_or_default();
                let speaker = run.gold.speakers.get(first).map(|name| agent_key(name));
                agent += usize::from(speaker.is_some_and(|key| run.gold.blames(&key)));
                step += usize::from(run.gold.blames_step(first));
                top += usize::from(ranked.iter().take(3).any(|step| run.gold.blames_step(*step)));
                asked += 1;
            }
        }
    }
    Ok(ShapeProbed { agent: Share::new(agent, asked), step: Share::new(step, asked), top_3: Share::new(top, asked) })
}

/// The runs that have a labelled step and an outline, each in its part: a task is in one part only.
fn outlines(golds: &[Gold], unseen: Unseen) -> Vec<RunOutline<'_>> {
    let fits = |gold: &&Gold| {
        let labelled = (0..gold.shape.len()).any(|step| gold.blames_step(step));
        labelled && gold.shape.len() > 1 && gold.shape.len() == gold.speakers.len()
    };
    let mut fit: Vec<&Gold> = golds.iter().filter(fits).collect();
    if fit.len() > RUNS {
        fit.sort_by_key(|gold| (hash(&gold.id), &gold.id));
        fit.truncate(RUNS);
    }
    let tasks: BTreeSet<(u64, &str)> = fit.iter().map(|gold| (hash(&gold.task), gold.task.as_str())).collect();
    let place = |task: &str| tasks.range(..(hash(task), task)).count() % FOLDS;
    let outlines = fit.into_iter().map(|gold| RunOutline { gold, fold: place(&gold.task), group: group(gold, unseen) });
    // Where nothing was planted, no template can be left out.
    outlines.filter(|run| unseen == Unseen::Task || !run.group.is_empty()).collect()
}

fn group(gold: &Gold, unseen: Unseen) -> &str {
    match unseen {
        Unseen::Task => "",
        Unseen::System => &gold.system,
        Unseen::Template => &gold.template,
    }
}

/// The steps of a run, likeliest first; of equals the earlier.
fn ranked(model: &Logistic, gold: &Gold) -> Vec<usize> {
    let mut scored: Vec<(f64, usize)> =
        gold.shape.iter().enumerate().map(|(step, shape)| (model.score(shape), step)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().map(|(_, step)| step).collect()
}

fn hash(text: &str) -> u64 {
    XxHash3_64::oneshot(text.as_bytes())
}
