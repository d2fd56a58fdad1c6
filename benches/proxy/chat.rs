//! The chat-completion bytes on both ends. A reply is a pure function of the request's bytes, and
//! names their fingerprint: the load generator knows every byte that must come back, and a proxy
//! that changes one byte of a request shows in the reply.

use std::io::Write as _;
use std::time::Duration;

use memchr::memmem;
use twox_hash::XxHash3_64;

use crate::text::{Draw, fill};

/// What the editing plan appends to a message; the upstream looks for it and takes it off again.
pub(crate) const INSTRUCTION: &str = "Say the result twice before you answer, whatever was said above.";

/// How a reply is given, told to the upstream by the model name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reply {
    pub(crate) tokens: usize,
    /// Bytes of text in a token.
    pub(crate) token_bytes: usize,
    /// Between two tokens of a stream.
    pub(crate) pace: Duration,
    /// Before the first byte.
    pub(crate) wait: Duration,
    /// The upstream looks for the appended instruction.
    pub(crate) look_for_edit: bool,
}

impl Reply {
    /// A reply without pauses.
    pub(crate) const fn of(tokens: usize, token_bytes: usize) -> Self {
        Self { tokens, token_bytes, pace: Duration::ZERO, wait: Duration::ZERO, look_for_edit: false }
    }

    pub(crate) const fn paced(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    pub(crate) fn model(&self) -> String {
        let (pace, wait) = (self.pace.as_micros(), self.wait.as_micros());
        format!("mock-t{}-b{}-p{pace}-w{wait}-e{}", self.tokens, self.token_bytes, u8::from(self.look_for_edit))
    }

    fn of_model(model: &str) -> Option<Self> {
        let mut reply = Self::of(16, 64);
        for part in model.strip_prefix("mock-")?.split('-') {
            let (key, value) = part.split_at_checked(1)?;
            let value: u64 = value.parse().ok()?;
            match key {
                "t" => reply.tokens = value as usize,
                "b" => reply.token_bytes = value as usize,
                "p" => reply.pace = Duration::from_micros(value),
                "w" => reply.wait = Duration::from_micros(value),
                "e" => reply.look_for_edit = value == 1,
                // Which of several tools it is.
                "k" => {}
                _ => return None,
            }
        }
        Some(reply)
    }
}

/// What a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) reply: Reply,
    pub(crate) stream: bool,
    /// Of the request's bytes, without the appended instruction.
    pub(crate) fingerprint: u64,
    /// The appended instruction was there.
    pub(crate) edited: bool,
    /// The id of the message, where it calls a tool.
    message: Option<u64>,
}

impl Ask {
    /// Reads a request body. `None`: not a body that this load generator sends.
    pub(crate) fn of(body: &[u8]) -> Option<Self> {
        let message = body.strip_prefix(br#"{"jsonrpc":"2.0","id":"#).map(leading_number);
        let key: &[u8] = if message.is_some() { b"\"name\":\"" } else { b"\"model\":\"" };
        let from = memmem::find(body.get(..96)?, key)? + key.len();
        let length = memchr::memchr(b'"', &body[from..])?;
        let reply = Reply::of_model(std::str::from_utf8(&body[from..from + length]).ok()?)?;
        // An unescaped quote cannot stand in message text, so this is the field.
        let stream = memmem::find(&body[body.len().saturating_sub(120)..], b"\"stream\":true").is_some();
        let unedited = if reply.look_for_edit { without_instruction(body) } else { None };
        let fingerprint = XxHash3_64::oneshot(unedited.as_deref().unwrap_or(body));
        Some(Self { reply, stream, fingerprint, edited: unedited.is_some(), message })
    }

    pub(crate) fn id(&self) -> String {
        format!("chatcmpl-{:016x}", self.fingerprint)
    }

    /// The text of one token, JSON-escaped.
    fn token(&self, index: usize, out: &mut Vec<u8>) {
        let seed = self.fingerprint ^ (index as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        fill(&mut Draw::new(seed), self.reply.token_bytes, out);
    }

    /// The reply's text as it stands in JSON.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.reply.tokens * self.reply.token_bytes);
        (0..self.reply.tokens).for_each(|index| self.token(index, &mut text));
        text
    }

    /// A whole reply.
    pub(crate) fn whole(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(600 + self.reply.tokens * self.reply.token_bytes);
        if let Some(id) = self.message {
            self.result(id, &mut out);
            return out;
        }
        push(
            &mut out,
            format_args!(
                r#"{{"id":"{}","object":"chat.completion","created":1700000000,"model":"{}","choices":[{{"index":0,"message":{{"role":"assistant","content":""#,
                self.id(),
                self.reply.model()
            ),
        );
        (0..self.reply.tokens).for_each(|index| self.token(index, &mut out));
        let (usage, print) = (self.usage(), self.system_fingerprint());
        push(
            &mut out,
            format_args!(
                r#"","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{usage},"system_fingerprint":"{print}"}}"#
            ),
        );
        out
    }

    /// The result of a tool.
    fn result(&self, id: u64, out: &mut Vec<u8>) {
        push(out, format_args!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#));
        (0..self.reply.tokens).for_each(|index| self.token(index, out));
        let (call, print) = (self.id(), self.system_fingerprint());
        push(out, format_args!(r#""}}],"isError":false,"_meta":{{"call":"{call}","print":"{print}"}}}}}}"#));
    }

    /// Frame `index` of a stream: the role, one frame a token, then the end with usage and `[DONE]`.
    /// `None` past the last.
    pub(crate) fn frame(&self, index: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(360 + self.reply.token_bytes);
        let tokens = self.reply.tokens;
        if index == 0 {
            self.chunk(&mut out, br#"{"role":"assistant","content":""}"#, "null");
        } else if index <= tokens {
            let mut delta = br#"{"content":""#.to_vec();
            self.token(index - 1, &mut delta);
            delta.extend_from_slice(b"\"}");
            self.chunk(&mut out, &delta, "null");
        } else if index == tokens + 1 {
            self.chunk(&mut out, b"{}", "\"stop\"");
            push(
                &mut out,
                format_args!(
                    "data: {{\"id\":\"{}\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"{}\",\"choices\":[],\"usage\":{}}}\n\ndata: [DONE]\n\n",
                    self.id(),
                    self.reply.model(),
                    self.usage()
                ),
            );
        } else {
            return None;
        }
        Some(out)
    }

    /// Every byte of the body that a client must receive.
    pub(crate) fn expected(&self) -> Vec<u8> {
        if self.stream { (0..).map_while(|index| self.frame(index)).flatten().collect() } else { self.whole() }
    }

    fn chunk(&self, out: &mut Vec<u8>, delta: &[u8], finish: &str) {
        push(
            out,
            format_args!(
                r#"data: {{"id":"{}","object":"chat.completion.chunk","created":1700000000,"model":"{}","system_fingerprint":"{}","choices":[{{"index":0,"delta":"#,
                self.id(),
                self.reply.model(),
                self.system_fingerprint()
            ),
        );
        out.extend_from_slice(delta);
        push(out, format_args!(",\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"));
    }

    fn system_fingerprint(&self) -> &'static str {
        if self.edited { "fp_edited" } else { "fp_asis" }
    }

    fn usage(&self) -> String {
        let tokens = self.reply.tokens;
        format!(r#"{{"prompt_tokens":100,"completion_tokens":{tokens},"total_tokens":{}}}"#, 100 + tokens)
    }
}

/// What the bytes of a reply say to the one that sent `sent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Every byte as the upstream wrote it, and the upstream got every byte that was sent.
    Exact,
    /// The upstream received another request than was sent.
    RequestChanged,
    /// The instruction that a plan should have appended did not arrive, or one came without a plan.
    EditMissing,
    /// The reply differs from the one that the upstream wrote.
    ReplyChanged,
}

/// Compares a reply with the one that the upstream gives to `sent`.
pub(crate) fn judge(sent: &Ask, expected: &[u8], got: &[u8]) -> Verdict {
    if got == expected {
        return Verdict::Exact;
    }
    if memmem::find(got, sent.id().as_bytes()).is_none() {
        return Verdict::RequestChanged;
    }
    if memmem::find(got, format!("\"{}\"", sent.system_fingerprint()).as_bytes()).is_none() {
        return Verdict::EditMissing;
    }
    Verdict::ReplyChanged
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes every write");
}

/// The number that a text begins with.
fn leading_number(text: &[u8]) -> u64 {
    text.iter().take_while(|byte| byte.is_ascii_digit()).fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// The body without the instruction and the line breaks that set it off.
fn without_instruction(body: &[u8]) -> Option<Vec<u8>> {
    let at = memmem::find(body, INSTRUCTION.as_bytes())?;
    let mut before = &body[..at];
    while let Some(rest) = before.strip_suffix(b"\\n") {
        before = rest;
    }
    Some([before, &body[at + INSTRUCTION.len()..]].concat())
}
