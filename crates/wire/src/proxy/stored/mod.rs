//! State that the upstream keeps: a reply that was edited on its way is stored there as the model said it. A request that
//! goes on from such a reply is marked in the record, or, where the plan wants it, says it as its program was told
//! (`retell`). A program that fetches the reply sees what the upstream keeps, and the edit counts as failed (`fetch`); what
//! is made in the background is recorded when it is fetched, and never edited (`background`).

pub(super) mod access;
pub(super) mod background;
mod fetch;
pub(super) mod ids;
pub(super) mod objects;
mod own_list;
mod postpone;
pub(super) mod retell;
mod stored_path;
mod strict_json;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Mutex,
};

use bytes::Bytes;

use super::{lock::locked, upstream::SentForm};
use crate::{
    surface::{self, Conversation, Reply, Surface, door},
    trajectory::{InjectedError, Side, Step, StepIndex},
};

/// Bytes of replies and requests that a run keeps for this; later ones cannot be told again.
const BYTES_MAX: usize = 32 << 20;
/// Longest chain of replies that is told again.
const CHAIN_MAX: usize = 1024;

/// What a step has to do with what the upstream keeps.
#[derive(Debug, Default)]
pub(super) struct StepStorage {
    /// The request as the upstream got it, where its reply may have to be told again.
    request_body: Option<Bytes>,
    /// What changed the reply that is to be told again.
    retells: Option<RetoldChange>,
    /// Whether its request has told again what earlier edits had changed.
    retold: bool,
    /// Whether an injection changed its request.
    is_edited: bool,
    /// Whether all that may change its request are neutral changes.
    pub(super) takes_neutral_changes: bool,
    /// Whether the upstream keeps a reply that may be edited.
    reply: bool,
    /// Whether the upstream keeps a request that was edited.
    request: bool,
    /// Whether it goes on from what the upstream keeps otherwise than its program was told it.
    diverged: bool,
    /// Whether the reply is asked for in the background.
    pub(super) in_background: bool,
}

impl StepStorage {
    /// What is asked of the upstream in the end (`got`), in place of the program's `own` words. `alters`: the plan may
    /// make this reply another.
    pub(super) fn note_sent_request(
        &mut self,
        run: &Mutex<RetoldRun>,
        surface: &dyn Surface,
        own: &Bytes,
        got: &Bytes,
        alters: bool,
    ) {
        self.in_background = surface.in_background(got);
        self.request_body = locked(run).remembers.then(|| got.clone());
        self.is_edited = own.as_ptr() != got.as_ptr();
        let stores = (alters || self.is_edited) && surface.stores(got);
        (self.reply, self.request) = (alters && stores, self.is_edited && stores);
    }

    /// How the request that is sent differs from the client's.
    pub(super) fn sent_form(&self) -> SentForm {
        match self {
            Self { is_edited: true, takes_neutral_changes: false, .. } => SentForm::Edited,
            Self { retold: true, .. } => SentForm::Retold,
            Self { is_edited: true, .. } => SentForm::Neutral,
            _ => SentForm::Own,
        }
    }

    /// Remembers a reply, as its program got it (`delivered`), for those that go on from it.
    pub(super) fn remember<'d>(
        &self,
        run: &Mutex<RetoldRun>,
        surface: &dyn Surface,
        reply: &Reply,
        delivered: impl FnOnce() -> Cow<'d, [u8]>,
        streamed: bool,
    ) {
        if let Some(asked) = &self.request_body {
            self.keep(run, surface, asked, reply, &delivered(), streamed);
        }
        self.name(run, reply);
    }

    /// Remembers a reply of which only the id is known yet.
    pub(super) fn name(&self, run: &Mutex<RetoldRun>, reply: &Reply) {
        if self.request {
            locked(run).requests.insert(reply.id.clone());
        }
        if self.diverged && !self.retold {
            locked(run).diverge([reply.id.clone()]);
        }
    }

    /// Keeps what the reply adds to what the upstream keeps, as the program was told it.
    fn keep(
        &self,
        run: &Mutex<RetoldRun>,
        surface: &dyn Surface,
        asked: &Bytes,
        reply: &Reply,
        delivered: &[u8],
        streamed: bool,
    ) {
        if !surface.stores(asked) {
            return;
        }
        let (Ok(kept), Ok(request)) = (surface.stored_items(asked, delivered, streamed), door::request(surface, asked))
        else {
            return;
        };
        let mut told = locked(run);
        if let Some(thread) = request.thread {
            if self.retold {
                told.threads.remove(&thread);
            }
            if let Some(change) = self.retells {
                let pending = told.threads.entry(thread).or_insert((change, Vec::new()));
                pending.1.extend(kept.reply.iter().cloned());
            }
        }
        told.keep(reply.id.clone(), request.continues, kept, self.retells);
    }
}

/// What the upstream keeps of a run, as its program was told it.
#[derive(Debug, Default)]
pub(super) struct RetoldRun {
    /// By the id of a reply.
    replies: HashMap<String, NamedReply>,
    /// By the id of a conversation: what it is still to be told.
    threads: HashMap<String, (RetoldChange, Vec<String>)>,
    /// Edits that no fetch has undone so far.
    edits: Vec<StoredEdit>,
    /// Items of replies that the program was told otherwise, by their ids.
    items: HashSet<String>,
    /// Replies to requests that the upstream got otherwise than the program sent them.
    requests: HashSet<String>,
    /// Whether replies and requests are remembered, so that they can be told again.
    remembers: bool,
    /// Replies, and conversations that the upstream keeps, of which the program got another version than the upstream.
    diverged: HashSet<String>,
    bytes: usize,
}

#[derive(Debug)]
struct NamedReply {
    /// The reply that its request went on from.
    from: Option<String>,
    /// What it adds; nothing where there was no room for it.
    stored: Option<surface::StoredItems>,
    /// What changed it.
    changed: Option<RetoldChange>,
}

/// What changed a reply that the upstream is to be told as its program got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetoldChange {
    /// An injection, by its number.
    Injection(u32),
    /// It says the same in other letters: where that cannot be told, nothing is lost.
    NeutralChange,
    /// Another reply stands in its place. What goes on from it must be told so, or goes on from what this one replaces.
    Replacement,
}

/// An edit of a reply that the upstream keeps unedited.
#[derive(Debug)]
struct StoredEdit {
    step: StepIndex,
    attempt: u32,
    injection: u32,
    operator: String,
    /// The id of the reply, and that of the conversation that it belongs to.
    ids: Vec<String>,
}

/// What a request is to say before its own words, and what makes it so.
type Retold = (RetoldChange, Vec<String>);

/// What is known of all that was said up to a reply.
enum PriorEdits {
    /// Nothing of it was edited.
    Unedited,
    /// This, an edit among it.
    Edited(Retold),
    /// This was changed, but not all that was said is known.
    InPart(RetoldChange),
}

impl RetoldRun {
    /// The same for a run in which a reply may have to be told again.
    pub(super) fn remembering(self, remembers: bool) -> Self {
        Self { remembers, ..self }
    }

    /// Remembers what the upstream keeps otherwise than the program got it: the ids of replies and conversations.
    pub(super) fn diverge(&mut self, ids: impl IntoIterator<Item = String>) {
        self.diverged.extend(ids.into_iter().filter(|id| !id.is_empty()));
    }

    /// Knows again what the upstream keeps otherwise than the program got it, from a step of a run that goes on.
    pub(super) fn recall(&mut self, surface: &dyn Surface, step: &Step, reply: &Reply) {
        let sent = step.request_sent.as_ref().unwrap_or(&step.request);
        let asked = door::request(surface, sent).ok();
        let (continues, thread) = asked.map(|asked| (asked.continues, asked.thread)).unwrap_or_default();
        let edited = step.last_attempt().is_some_and(|attempt| attempt.reply_delivered.is_some());
        let goes_on = continues.iter().chain(&thread).any(|id| self.has_diverged(id));
        if surface.stores(sent) && (edited || goes_on) {
            let ids: Vec<String> = thread.into_iter().chain([reply.id.clone()]).collect();
            let of_reply = |error: &&InjectedError| error.delivered && error.side == Side::Response;
            self.edits.extend(step.injected.iter().filter(of_reply).map(|error| StoredEdit {
                step: step.step,
                attempt: error.attempt,
                injection: error.injection,
                operator: error.operator.clone(),
                ids: ids.clone(),
            }));
            self.diverge(ids);
        }
    }

    /// Whether the upstream keeps the reply or conversation of this id otherwise than the program got it.
    pub(super) fn has_diverged(&self, id: &str) -> bool {
        self.diverged.contains(id)
    }

    /// Whether the upstream may keep anything otherwise than the program got it, or than it is to be told.
    pub(super) fn may_have_diverged(&self) -> bool {
        !self.diverged.is_empty() || !self.replies.is_empty() || !self.threads.is_empty()
    }

    /// Whether anything that the upstream keeps was told or sent otherwise.
    fn has_edits(&self) -> bool {
        !self.edits.is_empty() || !self.requests.is_empty()
    }

    /// Whether a path names anything that was told otherwise, that goes on from it, or whose request was sent so.
    fn concerns(&self, path: &str) -> bool {
        let edited = |id: &str| self.edits.iter().any(|edit| edit.ids.iter().any(|known| known == id));
        path.split('/').any(|id| edited(id) || self.requests.contains(id) || self.diverged.contains(id))
    }

    /// Takes out the edits that what is kept at a path shows undone: a reply by its id, a list of what it goes on from, or of
    /// all that is kept.
    fn shown_at(&mut self, path: &str) -> Vec<StoredEdit> {
        let ids: Vec<&str> = path.split('/').filter(|id| !id.is_empty()).collect();
        let before = ids.split_last().map_or(&[][..], |(_, before)| before);
        let all = ids.last() == Some(&"completions") || before.iter().any(|id| self.diverged.contains(*id));
        let shows = |edit: &StoredEdit| all || edit.ids.iter().any(|id| ids.contains(&id.as_str()));
        self.edits.extract_if(.., |edit| shows(edit)).collect()
    }

    /// Whether a path is that of a list, in which edited requests stand as the upstream got them.
    fn shows_edited_requests(&self, path: &str) -> bool {
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        !self.requests.is_empty() && matches!(last, "completions" | "input_items" | "items" | "messages")
    }

    /// What a request goes on from that the upstream keeps otherwise than the program got it: by its id, by that of its
    /// conversation, or by those of single items.
    fn diverged_in<'a>(&self, asked: &'a Conversation) -> Vec<&'a String> {
        let whole = asked.continues.iter().chain(&asked.thread).filter(|id| self.diverged.contains(*id));
        whole.chain(asked.refers.iter().filter(|id| self.items.contains(*id))).collect()
    }

    /// Takes room for so many bytes; whether there is any.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= BYTES_MAX;
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    fn keep(&mut self, id: String, from: Option<String>, kept: surface::StoredItems, changed: Option<RetoldChange>) {
        let length: usize = kept.request.iter().chain(&kept.reply).map(String::len).sum();
        if !id.is_empty() {
            let kept = self.take(length).then_some(kept);
            self.replies.insert(id, NamedReply { from, stored: kept, changed });
        }
    }

    /// All that was said before a request, as far as the upstream keeps it.
    fn before(&self, asked: &Conversation) -> PriorEdits {
        if let Some(thread) = asked.thread.as_ref().and_then(|id| self.threads.get(id).cloned()) {
            return PriorEdits::Edited(thread);
        }
        asked.continues.as_deref().map_or(PriorEdits::Unedited, |id| self.up_to(id))
    }

    /// All that was said up to and with a reply.
    fn up_to(&self, id: &str) -> PriorEdits {
        let (mut chain, mut next, mut changed, mut whole) = (Vec::new(), Some(id), None, true);
        while let Some(id) = next {
            let Some(reply) = self.replies.get(id).filter(|_| chain.len() < CHAIN_MAX) else {
                whole = false;
                break;
            };
            changed = reply.changed.or(changed);
            whole &= reply.stored.is_some();
            chain.push(&reply.stored);
            next = reply.from.as_deref();
        }
        let said = chain.iter().rev().copied().flatten().flat_map(|kept| kept.request.iter().chain(&kept.reply));
        match changed {
            None => PriorEdits::Unedited,
            Some(change) if whole => PriorEdits::Edited((change, said.cloned().collect())),
            Some(change) => PriorEdits::InPart(change),
        }
    }
}
