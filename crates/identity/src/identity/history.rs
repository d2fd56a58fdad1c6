//! Who said what in a run, so that who goes on from words of its own is known by them.

use twox_hash::XxHash3_64;

use super::{fingerprint::Mark, recent::Recent};
use crate::surface::{LazyMessage, Outline, Reply, Role};

/// Answers and tool calls whose speaker a run remembers.
const SERVED_MAX: usize = 16_384;
/// Shortest argument of a tool call that is remembered as somebody's words, in bytes.
const ARGUMENT_MIN: usize = 8;
/// Messages of a request that are looked at for an own earlier answer, latest first.
const HISTORY_MAX: usize = 64;
/// Messages of role assistant whose marks a run remembers.
const OWN_MAX: usize = 4096;
/// Tool calls of one message that are looked at.
const CALLS_MAX: usize = 64;

/// An agent, or an instance of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedInstance {
    pub(super) agent: u32,
    pub(super) instance: u32,
}

/// Whose words these are.
#[derive(Debug, Clone, Copy)]
enum ServedWords {
    One(NamedInstance),
    /// Several have said the same.
    Several,
}

/// The words of a run's agents.
#[derive(Debug)]
pub(super) struct History {
    served: Recent<Mark, ServedWords>,
    /// What messages of role assistant say, by the marks of their texts and calls.
    own: Recent<Mark, Box<[Mark]>>,
}

impl Default for History {
    fn default() -> Self {
        Self { served: Recent::new(SERVED_MAX), own: Recent::new(OWN_MAX) }
    }
}

impl History {
    /// Notes who said a reply: its texts, its tool calls, what they ask for.
    pub(super) fn serve(&mut self, reply: &Reply, who: NamedInstance) {
        for answer in &reply.answers {
            self.note(text_mark(&answer.message.text_to_read()), who);
            for call in &answer.message.tool_calls {
                self.note(id_mark(&call.id), who);
                for text in strings(&call.arguments) {
                    self.note(text_mark(&text), who);
                }
            }
        }
    }

    fn note(&mut self, mark: Option<Mark>, who: NamedInstance) {
        let Some(mark) = mark else { return };
        let served = self.served.entry(mark, || ServedWords::One(who));
        if !matches!(served, ServedWords::One(known) if *known == who) {
            *served = ServedWords::Several;
        }
    }

    /// Who alone said a text, or made a tool call.
    pub(super) fn sole_speaker(&self, mark: Mark) -> Option<NamedInstance> {
        match self.served.get(&mark)? {
            ServedWords::One(who) => Some(*who),
            ServedWords::Several => None,
        }
    }

    /// Who said the latest of the request's own earlier words, among those who could have made this request.
    pub(super) fn own_words(
        &mut self,
        outline: &Outline<'_>,
        could: impl Fn(NamedInstance) -> bool,
    ) -> Option<(NamedInstance, &'static str)> {
        for said in outline.messages.iter().rev().take(HISTORY_MAX) {
            if said.role == Role::Assistant {
                self.own.entry(said.mark(), || own_marks(said));
            }
            let found =
                |marks: &[Mark]| marks.iter().filter_map(|mark| self.sole_speaker(*mark)).find(|who| could(*who));
            let (who, evidence) = match said.role {
                Role::Assistant => {
                    (self.own.get(&said.mark()).and_then(|marks| found(marks)), "goes on from its own answer")
                }
                Role::Tool => {
                    let call = said.answers_call.as_deref().and_then(id_mark);
                    (found(call.as_slice()), "answers its own tool call")
                }
                _ => continue,
            };
            if let Some(who) = who {
                return Some((who, evidence));
            }
        }
        None
    }

    /// Entries held, and the most that there can be.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.served.len() + self.own.len(), SERVED_MAX + OWN_MAX)
    }
}

/// The marks of what a message of role assistant says: its text, its tool calls' ids.
fn own_marks(said: &LazyMessage<'_>) -> Box<[Mark]> {
    let mut marks: Vec<Mark> = text_mark(&said.text()).into_iter().collect();
    if said.has_calls() {
        marks.extend(said.calls().iter().take(CALLS_MAX).filter_map(|call| id_mark(&call.id)));
    }
    marks.into()
}

/// The texts among a tool call's arguments: what a tool may be asked next, for example to be found by.
fn strings(arguments: &str) -> Vec<String> {
    let arguments = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).unwrap_or_default();
    let texts = arguments.into_iter().filter_map(|(_, value)| match value {
        serde_json::Value::String(text) if text.len() >= ARGUMENT_MIN => Some(text),
        _ => None,
    });
    texts.collect()
}

/// The mark of a text; none of an empty one.
pub(super) fn text_mark(text: &str) -> Option<Mark> {
    let text = text.trim();
    (!text.is_empty()).then(|| XxHash3_64::oneshot(text.as_bytes()))
}

/// The mark of an id; none of an empty one.
pub(super) fn id_mark(id: &str) -> Option<Mark> {
    (!id.is_empty()).then(|| XxHash3_64::oneshot(id.as_bytes()) ^ 1)
}
