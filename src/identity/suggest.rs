//! A roster proposed from recorded runs: commented TOML, for a person to edit and keep.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Write,
};

use super::{
    Heard, Looks, Proposal, Roster,
    fingerprint::{Mark, mark_sentences, sentences},
    helper_role,
    words::shingles,
};
use crate::trajectory::{AgentName, Attribution, Source};

/// Sentences of a text that are looked at.
const SENTENCES_MAX: usize = 256;
/// Shortest sentence that an agent without a prompt may be known by, in bytes.
const TELLING_MIN: usize = 8;
/// Longest excerpt in a comment, in characters.
const EXCERPT_MAX: usize = 100;

/// The steps of one run, in order.
#[derive(Debug, Clone, Default)]
pub struct HeardRun<'a> {
    /// What was heard.
    pub steps: Vec<Heard<'a>>,
    /// The record's word on each step.
    pub told: Vec<&'a Attribution>,
}

/// What an agent's requests have in common.
#[derive(Debug, Default)]
struct Portrait<'a> {
    calls: usize,
    keys: BTreeSet<u32>,
    /// Whether it is known by its first user text alone.
    framed: bool,
    source: Option<Source>,
    evidence: String,
    ambiguous: usize,
    instances: u32,
    first: Option<&'a Heard<'a>>,
}

/// The roster as TOML text. Agents that the user declared already, and names that stand on the wire, need no rule and
/// are only listed.
pub fn suggest(runs: &[HeardRun<'_>], names: &BTreeMap<AgentName, Proposal>) -> String {
    let portraits = portraits(runs);
    let mut text = String::from(
        "# Proposed from what was recorded. Check the names, edit, and keep it as aegis.toml (or part of it).\n\
         # Equal names are one agent: give several rules the same name where they are.\n",
    );
    for (agent, portrait) in &portraits {
        let source = portrait.source.unwrap_or(Source::Fallback);
        describe(&mut text, agent, portrait, names.get(agent));
        let learned = matches!(source, Source::Fingerprint | Source::Frame | Source::Continuation | Source::Fallback);
        if !learned || helper_role(agent).is_some() {
            text.push_str("# needs no rule\n");
            continue;
        }
        let name = rule_name(agent, names);
        let _ = writeln!(text, "[[agent]]\nname = {}", quoted(&name));
        let telling = if portrait.framed { telling(runs, agent) } else { None };
        if let Some(sentence) = telling {
            let _ = writeln!(text, "bare = true\nfirst_user_contains = {}", quoted(&sentence));
        } else {
            let keys: Vec<String> =
                portrait.keys.iter().map(|key| format!("\"{}\"", AgentName::unnamed(*key))).collect();
            let _ = writeln!(text, "looks = [{}]", keys.join(", "));
        }
        if portrait.instances > 1 {
            let _ = writeln!(text, "instances = {}", portrait.instances);
        }
    }
    text
}

/// The name that a proposed rule gives an agent.
pub fn rule_name(agent: &AgentName, names: &BTreeMap<AgentName, Proposal>) -> String {
    names.get(agent).map_or_else(|| agent.to_string(), |proposal| proposal.name.clone())
}

/// What each step looks like, as a roster's `looks` takes it.
pub fn looks(run: &HeardRun<'_>) -> Vec<AgentName> {
    let opening = opening(run);
    run.steps.iter().map(|step| AgentName::unnamed(Looks::of(&step.outline, &opening).key)).collect()
}

/// What a roster would say of each step: the agent and whether rules contradict each other; `None` where no rule fits.
pub fn try_roster(run: &HeardRun<'_>, roster: &Roster) -> Vec<Option<Attribution>> {
    let opening = opening(run);
    run.steps.iter().map(|step| roster.identify(&step.outline, Looks::of(&step.outline, &opening).key)).collect()
}

/// The rules, counted from 1, that fit at least one step of a run.
pub fn fitting_rules(run: &HeardRun<'_>, roster: &Roster) -> BTreeSet<usize> {
    let opening = opening(run);
    let fits = |step: &Heard<'_>| roster.fitting(&step.outline, Looks::of(&step.outline, &opening).key);
    run.steps.iter().flat_map(fits).collect()
}

fn portraits<'a>(runs: &'a [HeardRun<'a>]) -> BTreeMap<AgentName, Portrait<'a>> {
    let mut portraits: BTreeMap<AgentName, Portrait<'a>> = BTreeMap::new();
    for run in runs {
        let opening = opening(run);
        for (step, told) in run.steps.iter().zip(&run.told) {
            let looks = Looks::of(&step.outline, &opening);
            let portrait = portraits.entry(step.agent.clone()).or_default();
            portrait.calls += 1;
            portrait.keys.insert(looks.key);
            portrait.ambiguous += usize::from(told.ambiguous);
            portrait.instances = portrait.instances.max(told.instance + 1);
            if portrait.first.is_none() {
                portrait.framed = looks.framed;
                portrait.source = Some(told.source);
                portrait.evidence.clone_from(&told.evidence);
                portrait.first = Some(step);
            }
        }
    }
    portraits
}

/// Sentences of the run's first user text.
fn opening(run: &HeardRun<'_>) -> HashSet<u64> {
    let mut marks = Vec::new();
    let first = run.steps.first().and_then(|step| step.outline.first_user());
    mark_sentences(&first.unwrap_or_default(), &mut marks);
    marks.into_iter().collect()
}

/// The longest sentence of an agent's user text that no other agent was asked and that nobody answered.
fn telling(runs: &[HeardRun<'_>], agent: &AgentName) -> Option<String> {
    let all = || runs.iter().flat_map(|run| &run.steps);
    let mine = |step: &&Heard<'_>| step.agent == agent;
    let others: Vec<String> = all()
        .filter(|step| !mine(step))
        .flat_map(|step| step.outline.said.iter().map(|said| said.text().into_owned()))
        .collect();
    if !all().any(|step| step.agent != agent) {
        return None;
    }
    let replies = all().flat_map(|step| step.reply.iter().flat_map(|reply| &reply.answers));
    let quotable: HashSet<Mark> = replies.flat_map(|answer| shingles(&answer.message.text())).collect();
    let texts: Vec<_> = all().filter(mine).filter_map(|step| step.outline.first_user()).collect();
    let own = sentences(texts.first()?).take(SENTENCES_MAX);
    let tells = own.filter(|sentence| {
        sentence.len() >= TELLING_MIN
            && texts.iter().all(|text| text.contains(sentence))
            && !others.iter().any(|text| text.contains(sentence))
            && !shingles(sentence).iter().any(|mark| quotable.contains(mark))
    });
    tells.max_by_key(|sentence| sentence.len()).map(str::to_owned)
}

/// A number of calls, in words.
pub fn calls(count: usize) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

fn describe(text: &mut String, agent: &AgentName, portrait: &Portrait<'_>, proposal: Option<&Proposal>) {
    let source = portrait.source.map(source_name).unwrap_or_default();
    let _ = writeln!(
        text,
        "\n# {}: {}; by {source}: {}",
        plain(agent.as_str()),
        calls(portrait.calls),
        plain(&portrait.evidence)
    );
    if let Some(first) = portrait.first {
        let prompt = first.outline.prompt();
        let says = if prompt.trim().is_empty() { first.outline.first_user().unwrap_or_default() } else { prompt };
        let _ = writeln!(text, "#   is told: {}", plain(&says));
        if !first.outline.tools.is_empty() {
            let _ = writeln!(text, "#   tools: {}", plain(&first.outline.tools.join(", ")));
        }
    }
    if let Some(Proposal { votes, against, evidence, .. }) = proposal {
        let _ = writeln!(text, "#   name: {evidence} ({votes} votes, {against} for other names)");
    }
    if portrait.ambiguous > 0 {
        let _ =
            writeln!(text, "#   NOT SURE in {}: the wire cannot tell equal agents apart", calls(portrait.ambiguous));
    }
}

/// A rule's name in output.
pub fn source_name(source: Source) -> &'static str {
    match source {
        Source::Path => "path",
        Source::Header => "header",
        Source::Key => "key",
        Source::Metadata => "metadata",
        Source::Roster => "roster",
        Source::Model => "model",
        Source::Dialect => "dialect",
        Source::Fingerprint => "fingerprint",
        Source::Continuation => "continuation",
        Source::Frame => "frame",
        Source::Fallback => "fallback",
    }
}

/// A text that fits into one line of a comment.
fn plain(text: &str) -> String {
    let short: String = text.trim().chars().take(EXCERPT_MAX).collect();
    let cut = if short.len() < text.trim().len() { "…" } else { "" };
    format!("{}{cut}", short.escape_debug())
}

/// A TOML string. JSON's escapes are TOML's, but for DEL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
