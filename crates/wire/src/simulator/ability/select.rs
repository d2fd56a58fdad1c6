//! Selectors: one name out of a list.

use super::super::reading::ReadConversation;
use crate::simulator::{stated, utterance::Utterance};

/// Answers `select the next role from ['a', 'b']` by a name of the list.
pub(super) fn run(reading: &ReadConversation<'_>) -> Option<Utterance> {
    let text = reading.instructions();
    let lower = text.to_lowercase();
    let asks = ["select the next", "choose the next", "who should speak next", "next speaker", "pick the next"];
    if !asks.iter().any(|ask| lower.contains(ask)) || !reading.conversation.tools.is_empty() {
        return None;
    }
    if reading.conversation.format != crate::surface::RequiredFormat::Text {
        return None;
    }
    let candidates = listed(&text)?;
    next(reading, &candidates).map(Utterance::text)
}

/// The next to speak: who has not spoken yet, in the order in which the instructions name them; after an objection
/// somebody who solves; else the one that has spoken least.
pub(super) fn next(reading: &ReadConversation<'_>, candidates: &[String]) -> Option<String> {
    let talk = talk(reading);
    let place = |name: &String| reading.instructions().find(name.as_str()).unwrap_or(usize::MAX);
    let turns = |name: &str| turns(reading, &talk, name);
    let ends =
        |name: &str| matches!(name.to_lowercase().as_str(), "finish" | "end" | "done" | "none" | "terminate" | "stop");
    let mut people: Vec<&String> = candidates.iter().filter(|name| !ends(name)).collect();
    people.sort_by_key(|name| place(name));
    if stated::objects(talk.rsplit("\n\n").find(|part| !part.trim().is_empty()).unwrap_or_default()) {
        let works = |name: &&&String| {
            ["solv", "cod", "writ", "comput", "analy"].iter().any(|stem| name.to_lowercase().contains(stem))
        };
        if let Some(name) = people.iter().find(works) {
            return Some((*name).clone());
        }
    }
    if let Some(new) = people.iter().find(|name| turns(name) == 0) {
        return Some((*new).clone());
    }
    if let Some(end) = candidates.iter().find(|name| ends(name)) {
        return Some(end.clone());
    }
    people.into_iter().min_by_key(|name| turns(name)).cloned()
}

/// The last bracketed list of names.
fn listed(text: &str) -> Option<Vec<String>> {
    let lists = text.rsplit('[').filter_map(|after| after.split_once(']')).map(|(inside, _)| inside);
    let names = |inside: &str| -> Vec<String> {
        let clean = |name: &str| name.trim().trim_matches(['\'', '"', '`']).to_owned();
        inside
            .split(',')
            .map(clean)
            .filter(|name| !name.is_empty() && name.len() < 80 && !name.contains('\n'))
            .collect()
    };
    lists.map(names).find(|names| !names.is_empty())
}

/// What has been said so far, without the instructions around it where a prompt quotes the conversation.
fn talk(reading: &ReadConversation<'_>) -> String {
    let mut talk: Vec<String> = Vec::new();
    let prompt = &reading.prompt;
    let quoted = prompt.split_once("conversation").map(|(_, after)| after).unwrap_or_default();
    talk.push(quoted.split("Read the above").next().unwrap_or_default().trim().to_owned());
    for spoken in &reading.spoken {
        let name = spoken.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        talk.push(format!("{name}{}", spoken.text));
    }
    talk.join("\n\n")
}

fn turns(reading: &ReadConversation<'_>, talk: &str, name: &str) -> usize {
    let opening = format!("{name}:");
    let lines =
        talk.lines().enumerate().filter(|(at, line)| *at > 0 && line.trim_start().starts_with(&opening)).count();
    let named = reading.spoken.iter().filter(|s| s.name.as_deref() == Some(name) && s.text.trim().is_empty()).count();
    lines.max(named)
}
