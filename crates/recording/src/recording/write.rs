//! The records that every exchange has, put on their line by hand: serde's general way was a third of what
//! recording a small exchange cost. The same bytes as serde writes; a test holds that.

use serde::Serialize;

use super::{
    content_hash::ContentHash,
    line::decimal,
    record::{BodyRecord, CloseRecord, Headers, OpenRecord, Record, Segment},
    strings::escape_char,
};
use crate::surface::octets;

/// Appends the record to the line.
pub(super) fn record(record: &Record<'_>, line: &mut Vec<u8>) {
    match record {
        Record::Open(open) => write_open(open, &mut Json(line)),
        Record::Close(close) => write_close(close, &mut Json(line)),
        rare => Json(line).value(rare),
    }
}

/// Appends the record of a text; its minimal escape is JSON already.
pub(super) fn text(hash: ContentHash, escaped: &[u8], line: &mut Vec<u8>) {
    Json(line).raw(br#"{"kind":"text","hash":"#).hash(hash).raw(br#","text":""#).raw(escaped).raw(br#""}"#);
}

fn write_open(open: &OpenRecord<'_>, line: &mut Json<'_>) {
    let who = &open.attribution;
    line.raw(br#"{"kind":"open","step":"#).number(open.step.into());
    line.raw(br#","call":"#).number(open.call.into());
    line.raw(br#","attempt":"#).number(open.attempt.into());
    line.raw(br#","agent":"#).text(who.agent.as_str());
    line.raw(br#","instance":"#).number(who.instance.into());
    line.raw(br#","source":"#).value(&who.source);
    line.raw(br#","evidence":"#).text(&who.evidence);
    line.raw(br#","confidence":"#).value(&who.confidence);
    line.raw(br#","ambiguous":"#).raw(if who.ambiguous { b"true" } else { b"false" });
    if open.overlapping {
        line.raw(br#","overlapping":true"#);
    }
    if let Some(retry) = &open.relates.retry {
        line.raw(br#","retry":"#).value(retry);
    }
    if let Some(step) = open.relates.may_repeat {
        line.raw(br#","may_repeat":"#).number(step.into());
    }
    if open.relates.other_key {
        line.raw(br#","other_key":true"#);
    }
    if let Some(agent) = &open.relates.called_by {
        line.raw(br#","called_by":"#).text(agent.as_str());
    }
    line.raw(br#","run_source":"#).text(&open.run_source);
    line.raw(br#","surface":"#).text(&open.surface);
    line.raw(br#","method":"#).text(&open.method);
    line.raw(br#","path":"#).text(&open.path);
    line.raw(br#","at":"#).text(&open.at);
    line.raw(br#","t_us":"#).number(open.t_us);
    line.headers(&open.headers);
    line.body(br#","body":"#, open.body.as_ref());
    line.raw(b"}");
}

fn write_close(close: &CloseRecord<'_>, line: &mut Json<'_>) {
    line.raw(br#"{"kind":"close","step":"#).number(close.step.into());
    line.raw(br#","attempt":"#).number(close.attempt.into());
    line.raw(br#","cause":"#).value(&close.cause);
    if !close.origin.is_live() {
        line.raw(br#","origin":"#).value(&close.origin);
    }
    line.raw(br#","status":"#).optional(close.status.map(u64::from));
    line.headers(&close.headers);
    if let Some(error) = &close.proxy_error {
        line.raw(br#","proxy_error":"#).value(error);
    }
    if let Some(usage) = &close.usage {
        line.raw(br#","usage":"#).value(usage);
    }
    if let Some(reason) = &close.finish_reason {
        line.raw(br#","finish_reason":"#).text(reason);
    }
    line.raw(br#","first_byte_us":"#).optional(close.first_byte_us);
    line.raw(br#","last_byte_us":"#).optional(close.last_byte_us);
    if close.streamed {
        line.raw(br#","streamed":true"#);
    }
    if close.truncated {
        line.raw(br#","truncated":true"#);
    }
    if let Some(uninspected) = &close.uninspected {
        line.raw(br#","uninspected":"#).value(uninspected);
    }
    line.body(br#","request":"#, close.request.as_ref());
    line.body(br#","reply":"#, close.reply.as_ref());
    line.body(br#","delivered":"#, close.delivered.as_ref());
    line.body(br#","fuller":"#, close.reply_with_logprobs.as_ref());
    line.raw(b"}");
}

/// JSON that grows.
struct Json<'a>(&'a mut Vec<u8>);

impl Json<'_> {
    fn raw(&mut self, json: &[u8]) -> &mut Self {
        self.0.extend_from_slice(json);
        self
    }

    /// Whatever serde writes; serialising these types into memory cannot fail.
    fn value(&mut self, value: &impl Serialize) {
        let _ = serde_json::to_writer(&mut *self.0, value);
    }

    fn number(&mut self, number: u64) {
        decimal(number, self.0);
    }

    fn optional(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.number(number),
            None => drop(self.raw(b"null")),
        }
    }

    fn text(&mut self, text: &str) {
        self.0.reserve(text.len() + 2);
        self.0.push(b'"');
        // Most bodies are JSON: every few bytes comes a quote, and a search for the next costs more than it skips.
        let mut rest = text.as_bytes();
        while let Some(eight) = rest.first_chunk::<8>() {
            let plain = octets::unescaped(*eight);
            self.0.extend_from_slice(eight);
            rest = if let Some(special) = eight.get(plain) {
                self.0.truncate(self.0.len() - eight.len() + plain);
                self.escape(*special);
                rest.get(plain + 1..).unwrap_or_default()
            } else {
                rest.get(eight.len()..).unwrap_or_default()
            };
        }
        for byte in rest {
            match *byte {
                b'"' | b'\\' | ..b' ' => self.escape(*byte),
                plain => self.0.push(plain),
            }
        }
        self.0.push(b'"');
    }

    /// A byte that may not stand in a string as it is.
    #[inline]
    fn escape(&mut self, byte: u8) {
        match byte {
            b'"' | b'\\' => self.0.extend_from_slice(&[b'\\', byte]),
            control => escape_char(char::from(control), self.0),
        }
    }

    fn hash(&mut self, hash: ContentHash) -> &mut Self {
        self.raw(b"\"").raw(&hash.hex()).raw(b"\"")
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        for (at, (name, value)) in headers.iter().enumerate() {
            self.raw(if at == 0 { br#","headers":[["# } else { b",[" }).text(name);
            self.raw(b",").text(value);
            self.raw(b"]");
        }
        if !headers.is_empty() {
            self.raw(b"]");
        }
    }

    fn body(&mut self, key: &[u8], body: Option<&BodyRecord<'_>>) {
        let Some(body) = body else { return };
        self.raw(key).raw(br#"{"hash":"#).hash(body.hash).raw(br#","len":"#).number(body.len);
        if let Some(parent) = body.parent {
            self.raw(br#","parent":"#).hash(parent);
        }
        if body.shared > 0 {
            self.raw(br#","shared":"#).number(body.shared);
        }
        if body.shared_end > 0 {
            self.raw(br#","shared_end":"#).number(body.shared_end);
        }
        for (at, segment) in body.segs.iter().enumerate() {
            self.raw(if at == 0 { br#","segs":["# } else { b"," }).segment(segment);
        }
        if !body.segs.is_empty() {
            self.raw(b"]");
        }
        for (at, (arrival, shared, shared_end, segment)) in body.frames.iter().enumerate() {
            self.raw(if at == 0 { br#","frames":[["# } else { b",[" }).number(*arrival);
            self.raw(b",").number(*shared);
            self.raw(b",").number(*shared_end);
            self.raw(b",").segment(segment);
            self.raw(b"]");
        }
        if !body.frames.is_empty() {
            self.raw(b"]");
        }
        if !body.redacted.is_empty() {
            self.raw(br#","redacted":"#).value(&body.redacted);
        }
        if let Some(length) = body.cut_from {
            self.raw(br#","cut_from":"#).number(length);
        }
        self.raw(b"}");
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        match segment {
            Segment::Literal(text) => self.text(text),
            Segment::Minimal((hash,)) => drop(self.raw(b"[").hash(*hash).raw(b"]")),
            rare => self.value(rare),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;
    use crate::trajectory::{
        AgentName, Attribution, CloseCause, ProxyErrorText, RecordedRelation, ReplyOrigin, RetryEvidence, Source,
        Uninspected, Usage,
    };

    fn text() -> impl Strategy<Value = Cow<'static, str>> {
        let parts =
            prop::sample::select(vec!["a", "\"", "\\", "\n", "\u{8}", "\u{1}", "\u{7f}", "é", "\u{2028}", "{", " "]);
        prop::collection::vec(parts, 0..20).prop_map(|parts| parts.concat().into())
    }

    fn hash() -> impl Strategy<Value = ContentHash> {
        any::<u128>().prop_map(ContentHash::from_raw)
    }

    fn segment() -> impl Strategy<Value = Segment<'static>> {
        prop_oneof![
            text().prop_map(Segment::Literal),
            hash().prop_map(|hash| Segment::Minimal((hash,))),
            (hash(), 0..3_u8).prop_map(Segment::Styled),
            text().prop_map(|b64| Segment::Opaque { b64 }),
            hash().prop_map(|blob| Segment::Blob { blob }),
        ]
    }

    fn body() -> impl Strategy<Value = Option<BodyRecord<'static>>> {
        let frames = prop::collection::vec((any::<u64>(), any::<u64>(), 0..9_u64, segment()), 0..3);
        let spans = prop::collection::vec((any::<u64>(), any::<u64>()), 0..3);
        let segments = prop::collection::vec(segment(), 0..4);
        let places = (prop::option::of(hash()), 0..2_u64, 0..2_u64, prop::option::of(any::<u64>()));
        let made = (hash(), any::<u64>(), places, segments, frames, spans).prop_map(
            |(hash, len, (parent, shared, shared_end, cut_from), segs, frames, redacted)| BodyRecord {
                hash,
                len,
                parent,
                shared,
                shared_end,
                segs,
                frames,
                redacted,
                cut_from,
            },
        );
        prop::option::of(made)
    }

    fn headers() -> impl Strategy<Value = Headers<'static>> {
        prop::collection::vec((text(), text()), 0..3)
    }

    fn as_serde_writes(written: &Record<'_>) -> Result<(), TestCaseError> {
        let mut line = b"before".to_vec();
        record(written, &mut line);
        let expected = format!("before{}", serde_json::to_string(written).expect("a record"));
        prop_assert_eq!(String::from_utf8(line).expect("UTF-8"), expected);
        Ok(())
    }

    proptest! {
        #[test]
        fn an_opening_is_what_serde_writes(
            texts in prop::collection::vec(text(), 6),
            numbers in any::<(u32, u32, u32, u32, u64)>(),
            (overlapping, ambiguous, confidence) in any::<(bool, bool, f32)>(),
            (retried, may_repeat, other_key, called) in any::<(bool, Option<u32>, bool, bool)>(),
            headers in headers(),
            body in body(),
        ) {
            let called_by = called.then(|| AgentName::parse("planner").expect("a name"));
            let relates = Cow::Owned(RecordedRelation {
                retry: retried.then_some(RetryEvidence::Counted), may_repeat, other_key, called_by,
            });
            let [evidence, run_source, surface, method, path, at] = <[_; 6]>::try_from(texts).expect("six");
            let (step, call, attempt, instance, t_us) = numbers;
            let agent = AgentName::parse("solver").expect("a name");
            let source = Source::Roster;
            let who = Attribution { agent, instance, source, evidence: evidence.into_owned(), confidence, ambiguous };
            let attribution = Cow::Owned(who);
            as_serde_writes(&Record::Open(OpenRecord {
                step, call, attempt, attribution, overlapping, relates, run_source, surface, method, path, at, t_us, headers, body,
            }))?;
        }

        #[test]
        fn a_close_is_what_serde_writes(
            (step, attempt, status) in any::<(u32, u32, Option<u16>)>(),
            (first_byte_us, last_byte_us, streamed, truncated) in any::<(Option<u64>, Option<u64>, bool, bool)>(),
            (usage, uninspected) in any::<(Option<(u64, u64)>, Option<(u64, u64)>)>(),
            finish_reason in prop::option::of(text()),
            origin in prop::sample::select(vec![ReplyOrigin::Live, ReplyOrigin::Recorded, ReplyOrigin::AlteredAgain]),
            headers in headers(),
            (request, reply, delivered, fuller) in (body(), body(), body(), body()),
            proxy_error in prop::option::of((text(), text())),
        ) {
            let proxy_error = proxy_error
                .map(|(code, message)| ProxyErrorText { code: code.into_owned(), message: message.into_owned() });
            let usage = usage.map(|(input, output)| Usage { input, output });
            let uninspected =
                uninspected.map(|(from_client, from_upstream)| Uninspected { from_client, from_upstream });
            as_serde_writes(&Record::Close(Box::new(CloseRecord {
                step, attempt, cause: CloseCause::Complete, origin, status, headers, proxy_error, usage, finish_reason,
                first_byte_us, last_byte_us, streamed, truncated, uninspected, request, reply, delivered, reply_with_logprobs: fuller,
            })))?;
        }
    }
}
