//! What the reply of a step says: for identity, for manipulators, for the record.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::header::CONTENT_ENCODING;

use super::OpenStep;
use crate::{
    proxy::{broken_streams::has_event_ids, disturb::Breach, headers, lock::locked},
    surface::{self, door, door::UnpackedBody},
    trajectory::{CallEnding, Usage},
};

impl OpenStep {
    /// Whether the upstream's reply was taped whole.
    pub(in crate::proxy) fn is_taped(&self) -> bool {
        self.tape.is_stopped()
    }

    /// What has gone ahead of a held reply.
    pub(in crate::proxy) fn gone_ahead<'a>(&self, reply: &'a [u8]) -> &'a [u8] {
        reply.get(..self.ahead.as_ref().map_or(0, |ahead| ahead.passed)).unwrap_or_default()
    }

    /// Whether a reply that ends without its end marker says that the model had finished.
    pub(in crate::proxy) fn has_finish(&self) -> bool {
        let Some(surface) = self.surface else { return true };
        self.tape.chunks().iter().rev().any(|(chunk, _)| surface.is_finished(chunk))
            // A packed stream says it nowhere in its bytes.
            || matches!(door::without_codings(&self.tape.joined_bytes()), Cow::Owned(plain) if surface.is_finished(&plain))
    }

    /// Whether a server of tools or a peer answers.
    pub(in crate::proxy) fn is_of_server(&self) -> bool {
        self.surface.is_some_and(|surface| surface::is_of_server(surface.name()))
    }

    /// Whether the answer has come whole that its client leaves with at once.
    pub(in crate::proxy) fn has_answer(&mut self) -> bool {
        let surface = self.surface.filter(|_| self.is_of_server());
        surface.is_some_and(|surface| self.tape.has_answer(surface))
    }

    /// Whether a stream has no answer yet, and its client may read it on elsewhere.
    pub(in crate::proxy) fn is_read_on(&self, stream: &[u8]) -> bool {
        self.posted.is_some()
            && has_event_ids(stream)
            && self.surface.is_some_and(|surface| !surface.is_finished(stream))
    }

    /// Token counts of a reply of which only a part was delivered, or that could not be read.
    pub(super) fn skim_usage(&self, tape: &[(Bytes, u64)]) -> Option<Usage> {
        let Some(surface) = self.surface else { return self.unread_usage(tape) };
        match tape {
            [(first, _), ..] if self.streamed => {
                // The frame that counts comes last, or shortly before the end marker.
                let counted = tape.iter().rev().take(3).find_map(|(chunk, _)| surface.usage(chunk, true))?;
                // Some APIs count the input where the stream starts, the output where it ends.
                let input = || surface.usage(first, true).map_or(0, |counted| counted.input);
                Some(Usage { input: if counted.input == 0 { input() } else { counted.input }, ..counted })
            }
            [(whole, _)] => surface.usage(whole, false),
            _ => None,
        }
    }

    /// Token counts of a call that no surface reads, where its reply names them.
    fn unread_usage(&self, tape: &[(Bytes, u64)]) -> Option<Usage> {
        surface::unread_usage(&self.unread_reply(tape)?)
    }

    /// The reply to a call that no surface reads, unpacked.
    fn unread_reply(&self, tape: &[(Bytes, u64)]) -> Option<Bytes> {
        if self.tunnel.is_some() || self.surface.is_some() {
            return None;
        }
        let encoding = self.head.as_ref().and_then(|(_, headers)| headers::text(headers, &CONTENT_ENCODING));
        Some(UnpackedBody::unpack(&self.given_reply(tape), encoding).plain)
    }

    /// Takes in what the reply to such a call says that the upstream keeps for this user.
    pub(super) fn learn_unread(&self, tape: &[(Bytes, u64)]) {
        if let Some((ids, reply)) = self.run.stored_ids.as_ref().zip(self.unread_reply(tape)) {
            ids.learn_unread(&reply);
        }
    }

    /// Keeps what was answered: for identity, and for manipulators where a plan may need it. Gives the token counts
    /// that the answer states.
    pub(super) fn remember(&mut self, body: &Bytes, is_reply: bool, failed: bool, ending: CallEnding) -> Option<Usage> {
        if let Some(message) = self.posted.take().filter(|_| self.streamed && failed) {
            locked(&self.run.broken_streams).add(body, message);
        }
        let reply =
            self.surface.filter(|_| is_reply).and_then(|surface| door::reply(surface, body, self.streamed).ok());
        if let (Some(reply), Some(surface)) = (&reply, self.surface) {
            self.storage.remember(&self.run.retold, surface, reply, || Cow::Borrowed(body.as_ref()), self.streamed);
        }
        if let (Some(ids), Some(reply)) = (&self.run.stored_ids, &reply) {
            ids.learn(reply, body);
        }
        // What a tool gives comes back in the words of the agent that called it: it names nobody.
        let heard = reply.as_ref().filter(|_| !self.is_of_server());
        self.run.note_reply(&self.attribution, self.number, heard, failed || !ending.is_answered());
        if let Some(track) = &self.track {
            track.ended(reply.as_ref(), failed);
        }
        let reply = reply?;
        self.watch.replied(&reply);
        if self.run.plan.is_some() {
            self.run.remember_calls(&reply);
            for answer in reply.answers {
                self.run.remember_answer(&self.attribution.agent, answer.message.text());
            }
        }
        reply.usage
    }

    /// A fault let only a part of the reply through, and added an end to it.
    pub(in crate::proxy) fn breach(&mut self, breach: &Breach, added: &[u8]) {
        let whole = self.delivered.take().unwrap_or_else(|| self.taped());
        let passed = usize::try_from(breach.passed()).unwrap_or(usize::MAX).min(whole.len());
        let passed = whole.slice(..passed);
        self.delivered = Some(if added.is_empty() { passed } else { [&passed, added].concat().into() });
    }

    /// The reply as the client got it, in one piece.
    pub(super) fn given_reply(&self, tape: &[(Bytes, u64)]) -> Bytes {
        match (&self.delivered, tape) {
            (Some(delivered), _) => delivered.clone(),
            (None, [(only, _)]) => only.clone(),
            (None, tape) => tape.iter().map(|(chunk, _)| chunk.as_ref()).collect::<Vec<_>>().concat().into(),
        }
    }
}
