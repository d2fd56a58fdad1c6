//! Who made an imported call: by the trace's own name, else by what the request looks like, as over the wire.

use super::ForeignAgent;
use crate::{
    identity::{AttributedCall, EndedCall, Identity, LedgerRequest, Speakers},
    surface::Outline,
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
    ) -> AttributedCall {
        let declared = named.map(declared);
        let is_bare = declared.is_none() && outline.is_none();
        let mut asked = self.speakers.attribute(&self.rules, outline, declared, &LedgerRequest::from_hash(body));
        if is_bare {
            "the trace names no agent and holds no request".clone_into(&mut asked.attribution.evidence);
        }
        asked
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, who: &Attribution, ended: &EndedCall<'_>) {
        self.speakers.ended(who, ended);
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
