//! Who made an imported call: by the trace's own name, else by what the request looks like, as over the wire.

use super::ForeignAgent;
use crate::{
    identity::{Identity, Speakers},
    surface::{Outline, Reply},
    trajectory::{AgentName, Attribution, Source},
};

/// The speakers of one imported run.
#[derive(Debug, Default)]
pub(super) struct ImportedSpeakers {
    rules: Identity,
    speakers: Speakers,
}

impl ImportedSpeakers {
    /// Who makes a call, on what evidence. `body`: hash of its request.
    pub(super) fn attribute(
        &mut self,
        named: Option<&ForeignAgent>,
        outline: Option<&Outline<'_>>,
        body: u128,
    ) -> Attribution {
        let declared = named.map(declared);
        let is_bare = declared.is_none() && outline.is_none();
        let mut told = self.speakers.attribute(&self.rules, outline, declared, body, None);
        if is_bare {
            "the trace names no agent and holds no request".clone_into(&mut told.evidence);
        }
        told
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, who: &Attribution, body: u128, reply: Option<&Reply>, failed: bool) {
        self.speakers.ended(who, body, reply, failed);
    }
}

/// The trace's own name. One that is no name of ours gets a stable one, with the same evidence.
fn declared(named: &ForeignAgent) -> Attribution {
    let parsed = AgentName::parse(named.name.trim());
    let agent = parsed.unwrap_or_else(|_| {
        let hash = blake3::hash(named.name.as_bytes());
        AgentName::unnamed(hash.as_bytes().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    });
    Attribution {
        agent,
        instance: 0,
        source: Source::Trace,
        evidence: named.evidence.clone(),
        confidence: 1.0,
        ambiguous: false,
    }
}
