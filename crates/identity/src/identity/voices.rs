//! What stands under one name in a run: one name is one speaker only as long as one prompt stands under it, or the next
//! one goes on from what was said under it. Two prompts that live side by side are two agents, whatever they are called.

use std::collections::HashMap;

use super::{
    fingerprint::{Mark, RequestLooks},
    recent::Recent,
};

/// Prompts, and models with schemas, that are remembered under one name.
const VOICES_MAX: usize = 32;
/// Prompts whose tool sets are remembered, and tool sets of one prompt.
pub(super) const KIN_MAX: usize = 1024;
const SETS_MAX: usize = 16;

/// Why a name does not tell who spoke.
pub(super) const TWO_PROMPTS: &str = "two prompts stand side by side under this name";
pub(super) const TWO_MODELS: &str = "one look, several models";
pub(super) const TWO_SCHEMAS: &str = "one look, several answer schemas";

/// What has been heard under each name, by the agent's number.
#[derive(Debug)]
pub(super) struct Voices {
    under: HashMap<u32, Voice>,
    /// Tool sets of one prompt.
    kin: Recent<Mark, Vec<ToolSet>>,
}

/// What has been heard under one name.
#[derive(Debug, Default)]
struct Voice {
    prompts: Vec<Mark>,
    made_for: Option<(Mark, Option<Mark>)>,
    contested: Option<&'static str>,
}

/// Tools that one prompt came with.
#[derive(Debug)]
struct ToolSet {
    key: u32,
    tools: Vec<Mark>,
    /// The key of the agent that it is one of.
    under: u32,
    /// When it came last, in calls of this prompt.
    last: u64,
}

impl Default for Voices {
    fn default() -> Self {
        Self { under: HashMap::default(), kin: Recent::new(KIN_MAX) }
    }
}

impl Voices {
    /// Takes in a request under a name that nobody declared, and says what speaks against the name, now and from now
    /// on. `written`: a framework writes the name; else it is the looks' own. `goes_on`: whether the request goes on from
    /// something that was said under the name: one history is one agent, whatever changes in it.
    pub(super) fn observe(
        &mut self,
        agent: u32,
        looks: &RequestLooks,
        written: bool,
        goes_on: bool,
    ) -> Option<&'static str> {
        let voice = self.under.entry(agent).or_default();
        if voice.contested.is_some() {
            return voice.contested;
        }
        if written {
            if looks.prompted && !voice.prompts.contains(&looks.prompt) {
                if !voice.prompts.is_empty() && !goes_on {
                    voice.contested = Some(TWO_PROMPTS);
                }
                if voice.prompts.len() == VOICES_MAX {
                    voice.prompts.remove(0);
                }
                voice.prompts.push(looks.prompt);
            }
            return voice.contested;
        }
        let (model, schema) = *voice.made_for.get_or_insert(looks.made_for);
        if goes_on {
            return None;
        }
        let schemas = |(first, second)| first != second;
        if looks.made_for.0 != model {
            voice.contested = Some(TWO_MODELS);
        } else if schema.zip(looks.made_for.1).is_some_and(schemas) {
            voice.contested = Some(TWO_SCHEMAS);
        } else if schema.is_none() {
            voice.made_for = Some(looks.made_for);
        }
        voice.contested
    }

    /// Numbers of the agents whose names do not tell who spoke.
    pub(super) fn contested(&self) -> impl Iterator<Item = u32> {
        self.under.iter().filter(|(_, voice)| voice.contested.is_some()).map(|(agent, _)| *agent)
    }

    /// The key that looks with a prompt go under: their own, but for a tool set that has grown out of another one.
    /// `own`: asked only for tools that this prompt has not come with; the key of whose history the request goes on from.
    pub(super) fn key(&mut self, looks: &RequestLooks, own: impl FnOnce() -> Option<u32>) -> u32 {
        let sets = self.kin.entry(looks.prompt, Vec::new);
        let now = sets.iter().map(|set| set.last).max().unwrap_or_default() + 1;
        if let Some(at) = sets.iter().position(|set| set.key == looks.key) {
            let Some(known) = sets.get_mut(at) else { return looks.key };
            let (under, before) = (known.under, std::mem::replace(&mut known.last, now));
            // It comes again after one that seemed to have grown out of it: they live side by side.
            for set in sets.iter_mut().filter(|set| set.under == under && set.key != under && set.last > before) {
                if set.last < now {
                    set.under = set.key;
                }
            }
            return under;
        }
        let own = own().or_else(|| {
            let latest = sets.iter().max_by_key(|set| set.last)?;
            latest.grows_into(&looks.tools).then_some(latest.under)
        });
        let under = own.unwrap_or(looks.key);
        if sets.len() < SETS_MAX {
            sets.push(ToolSet { key: looks.key, tools: looks.tools.clone(), under, last: now });
        }
        under
    }

    pub(super) fn len(&self) -> usize {
        self.kin.len()
    }
}

impl ToolSet {
    /// Whether the other set holds all of this one, and more.
    fn grows_into(&self, other: &[Mark]) -> bool {
        let holds = |mark: &Mark| other.binary_search(mark).is_ok();
        !self.tools.is_empty() && self.tools.len() < other.len() && self.tools.iter().all(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::Outline;

    fn looks(prompt: &str, tools: &str, model: &str, format: &str) -> RequestLooks {
        let outline = Outline {
            prompts: vec![prompt.into()],
            tools: tools.split_whitespace().map(Into::into).collect(),
            model: model.into(),
            format: format.into(),
            ..Outline::default()
        };
        RequestLooks::read(&outline, &std::collections::HashSet::new())
    }

    #[test]
    fn two_prompts_under_one_name_are_nobodys_unless_one_history_holds_them() {
        for (prompts, expected) in [
            ("You check.|You check.|You check.", "..."),
            // A poet and a checker, both called the same; neither is anybody's from then on.
            ("You rhyme.|You check.|You rhyme.", ".!!"),
            ("You are player 1.|You are player 2.", ".!"),
            ("Now 10:30:01. You check.|Now 10:31:59. You check.", ".."),
            // What it remembers stands in the prompt.
            ("You check.|You check. You know: tea.+|You check. You know: tea, ships.+", "..."),
        ] {
            let mut voices = Voices::default();
            let said = |text: &str, voices: &mut Voices| {
                let looks = looks(text.trim_end_matches('+'), "", "m", "");
                if voices.observe(0, &looks, true, text.ends_with('+')).is_some() { '!' } else { '.' }
            };
            let told: String = prompts.split('|').map(|text| said(text, &mut voices)).collect();
            assert_eq!(told, expected, "{prompts}");
        }
    }

    #[test]
    fn one_look_for_several_models_or_schemas_is_nobodys() {
        for (requests, expected) in [
            ("m1/ m1/ m1/s", [None, None, None]),
            ("m1/ m2/ m1/", [None, Some(TWO_MODELS), Some(TWO_MODELS)]),
            ("m1/ m1/s m1/t", [None, None, Some(TWO_SCHEMAS)]),
            ("m1/ m2/+ m1/s+", [None, None, None]),
        ] {
            let mut voices = Voices::default();
            for (request, expected) in requests.split(' ').zip(expected) {
                let (model, format) = request.trim_end_matches('+').split_once('/').expect("both");
                let looks = looks("You check.", "", model, format);
                assert_eq!(voices.observe(0, &looks, false, request.ends_with('+')), expected, "{requests}");
            }
        }
    }

    #[test]
    fn tools_that_grow_are_one_agents_until_they_live_side_by_side() {
        for (sets, expected) in [
            ("a|a b|a b c|a b c", "0000"),
            ("a|b|a|b", "0101"),
            // The smaller set comes again: two agents from then on.
            ("a|a b|a|a b|a", "00010"),
            // No tools are no beginning of others.
            ("|a|", "010"),
            ("a|b+", "00"),
        ] {
            let mut voices = Voices::default();
            let mut keys = Vec::new();
            for set in sets.split('|') {
                let looks = looks("You act.", set.trim_end_matches('+'), "m", "");
                let own = keys.first().copied().filter(|_| set.ends_with('+'));
                keys.push(voices.key(&looks, || own));
            }
            let told: String = keys.iter().map(|key| char::from(b'0' + u8::from(Some(key) != keys.first()))).collect();
            assert_eq!(told, expected, "{sets}");
        }
    }
}
