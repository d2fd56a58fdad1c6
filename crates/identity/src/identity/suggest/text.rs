//! The proposed roster as it is written.

use std::{collections::BTreeMap, fmt::Write};

use super::{Portrait, Suggestion, calls, portrait::instruction_text, toml_text::toml_string};
use crate::{
    identity::Proposal,
    trajectory::{AgentName, Source, patterns},
};

/// Longest excerpt in a comment, in characters.
const EXCERPT_MAX: usize = 100;
/// Longest common beginning that an excerpt shows in full, in bytes.
const BEGINNING_MAX: usize = 40;

/// Writes the roster.
pub(super) fn write(all: &[Suggestion<'_>], names: &BTreeMap<AgentName, Proposal>) -> String {
    let mut text = String::from(
        "# Proposed from what was recorded. Check the names, edit, and keep it as aegis.toml (or part of it).\n\
         # Rules with the same name describe one agent.\n",
    );
    for (number, suggestion) in all.iter().enumerate() {
        for member in &suggestion.members {
            let others = all.iter().enumerate().filter(|(other, _)| *other != number);
            let others = others.flat_map(|(_, other)| &other.members).filter_map(|member| member.steps.first());
            let others: Vec<String> = others.map(|step| instruction_text(step, member.looks.prompted)).collect();
            describe(&mut text, member, names, &others);
        }
        for note in &suggestion.notes {
            let _ = writeln!(
                text,
                "#   {}",
                note.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
            );
        }
        let Some(rule) = &suggestion.rule else {
            // What its roster told it apart by is not in the record.
            text.push_str(if suggestion.is_renewed() { "" } else { "# needs no rule\n" });
            continue;
        };
        let _ = write!(text, "[[agent]]\nname = {}\n{rule}", toml_string(&suggestion.name));
        let instances = suggestion.members.iter().map(|member| member.instances).max().unwrap_or_default();
        if instances > 1 {
            let _ = writeln!(text, "instances = {instances}");
            // A roster whose rule told them apart each time: without an order the next run could not.
            if suggestion.is_renewed() && suggestion.members.iter().all(|member| member.ambiguous == 0) {
                text.push_str("order = \"arrival\"\n");
            }
        }
    }
    text
}

fn describe(text: &mut String, portrait: &Portrait<'_>, names: &BTreeMap<AgentName, Proposal>, others: &[String]) {
    let agent = comment_line(&portrait.id(), EXCERPT_MAX);
    let source = source_name(portrait.source);
    let said = comment_line(portrait.evidence, EXCERPT_MAX);
    let _ = writeln!(text, "\n# {agent}: {}; by {source}: {said}", calls(portrait.places.len()));
    if let Some(shared) = &portrait.shared {
        let shared = comment_line(shared.as_str(), EXCERPT_MAX);
        let _ = writeln!(text, "#   the wire calls it `{shared}`, and another prompt of the run too: two agents");
    }
    if let Some(called) = &portrait.called {
        let _ = writeln!(
            text,
            "#   one prompt for several agents; its user text says: {}",
            comment_line(&called.text, EXCERPT_MAX)
        );
    }
    if let Some(first) = portrait.steps.first() {
        let says = instruction_text(first, portrait.looks.prompted);
        let _ = writeln!(text, "#   prompt: {}", telling(&says, others));
        if !first.outline.tools.is_empty() {
            let _ = writeln!(text, "#   tools: {}", comment_line(&first.outline.tools.join(", "), EXCERPT_MAX));
        }
        if portrait.needs_rule()
            && portrait.shared.is_none()
            && let Some(role) = ROLE.captures(&says).and_then(|found| found.get(1))
        {
            let _ = writeln!(text, "#   its prompt calls it: {}", comment_line(role.as_str(), EXCERPT_MAX));
        }
        if says.contains("cc_is_subagent=true") {
            text.push_str("#   a subagent, by what Claude Code says of it\n");
        }
    }
    if let Some(Proposal { name, votes, against, evidence, firm }) =
        portrait.proposed_as().and_then(|agent| names.get(agent))
    {
        let name = comment_line(name, EXCERPT_MAX);
        let guess = if *firm { String::new() } else { format!(" perhaps `{name}`, a guess:") };
        let _ = writeln!(text, "#   name:{guess} {evidence} ({votes} votes, {against} for other names)");
    }
    if portrait.ambiguous > 0 && portrait.shared.is_none() {
        let _ = writeln!(text, "#   NOT SURE in {}: the wire cannot tell which agent it is", calls(portrait.ambiguous));
    }
}

/// The part of a text that tells it from the others: its beginning, or what comes after the beginning that they share.
fn telling(says: &str, others: &[String]) -> String {
    let shared = |other: &String| {
        let same = says.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        if same == says.len() { 0 } else { same }
    };
    let most: usize = others.iter().map(shared).max().unwrap_or_default();
    if most <= BEGINNING_MAX {
        return comment_line(says, EXCERPT_MAX);
    }
    let near = (most.saturating_sub(BEGINNING_MAX)..most).find(|at| says.is_char_boundary(*at)).unwrap_or_default();
    let from = says.get(near..most).and_then(|begin| begin.find([' ', '\n'])).map_or(near, |blank| near + blank);
    format!("…{}", comment_line(says.get(from..).unwrap_or_default(), EXCERPT_MAX))
}

/// A rule's name in output.
pub fn source_name(source: Source) -> &'static str {
    match source {
        Source::Path => "path",
        Source::Header => "header",
        Source::Key => "key",
        Source::Metadata => "metadata",
        Source::Roster => "roster",
        Source::Trace => "trace",
        Source::Model => "model",
        Source::Dialect => "dialect",
        Source::Fingerprint => "fingerprint",
        Source::Continuation => "continuation",
        Source::Frame => "frame",
        Source::Fallback => "fallback",
    }
}

/// A text that fits into one line of a comment, at most so many characters.
pub(super) fn comment_line(text: &str, most: usize) -> String {
    let short: String = text.trim().chars().take(most).collect();
    let cut = if short.len() < text.trim().len() { "…" } else { "" };
    short.chars().map(shown).collect::<String>() + cut
}

/// A sign of a comment: quotes stand as they are, what could end the line or steer a terminal is escaped.
fn shown(sign: char) -> String {
    if matches!(sign, '\'' | '"') { sign.to_string() } else { sign.escape_debug().to_string() }
}

patterns! {
    ROLE = r"\bYou are (?:the |an? )?([A-Za-z][\w -]{1,40}?)(?:[.,;:\n]|\z)";
}
