//! What a program asked and was answered, so that two runs of it can be compared: a program that asks something else
//! after the same replies draws by itself, or looks at a clock.

use std::collections::BTreeMap;

use crate::{recording::Recording, trajectory::Step};

/// A call: agent, instance, the agent's own count. Calls that run side by side arrive in any order.
type Key = (String, u32, u32);

/// The calls of a run in order, with hashes of what was asked and of what was answered.
#[derive(Debug)]
pub(super) struct Transcript(Vec<(Key, [blake3::Hash; 2])>);

impl Transcript {
    /// The transcript of a run.
    pub(super) fn of(recording: &Recording) -> Self {
        let call = |step: &Step| {
            let who = &step.attribution;
            let reply = step.last_attempt().map(|attempt| attempt.reply.clone()).unwrap_or_default();
            ((who.agent.to_string(), who.instance, step.call), [blake3::hash(&step.request), blake3::hash(&reply)])
        };
        Self(recording.trajectory.steps.iter().map(call).collect())
    }

    /// Whether the other run asked the same as long as the replies were the same.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let others: BTreeMap<&Key, &[blake3::Hash; 2]> = other.0.iter().map(|(key, hashes)| (key, hashes)).collect();
        for (key, [request, reply]) in &self.0 {
            match others.get(key) {
                Some([asked, answered]) if asked == request && answered == reply => {}
                // The first difference is the backend's: all that follows may differ for that.
                Some([asked, _]) if asked == request => return true,
                _ => return false,
            }
        }
        self.0.len() == other.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(calls: &[(&str, u32, &str, &str)]) -> Transcript {
        let call = |(agent, call, asked, answered): &(&str, u32, &str, &str)| {
            (((*agent).to_owned(), 0, *call), [blake3::hash(asked.as_bytes()), blake3::hash(answered.as_bytes())])
        };
        Transcript(calls.iter().map(call).collect())
    }

    #[test]
    fn differences_are_the_programs_or_the_backends() {
        let first = transcript(&[("a", 0, "q", "r"), ("b", 0, "s", "t")]);
        for (other, agrees) in [
            (&[("a", 0, "q", "r"), ("b", 0, "s", "t")][..], true),
            (&[("b", 0, "s", "t"), ("a", 0, "q", "r")], true),
            (&[("a", 0, "Q", "r"), ("b", 0, "s", "t")], false),
            (&[("a", 0, "q", "R"), ("b", 0, "S", "t")], true),
            (&[("a", 0, "q", "r")], false),
            (&[("a", 0, "q", "r"), ("b", 0, "s", "t"), ("b", 1, "u", "v")], false),
        ] {
            assert_eq!(first.agrees_with(&transcript(other)), agrees, "{other:?}");
        }
    }
}
