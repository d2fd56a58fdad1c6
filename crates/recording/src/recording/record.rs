//! What stands in a log line: one struct per kind, read and written by the same definition.
//!
//! A reader ignores keys and kinds that it does not know. Bodies are named by their hash ([`BodyRecord`]).

use std::borrow::Cow;

use base64::Engine;
use serde::{Deserialize, Serialize};

use super::content_hash::ContentHash;
use crate::trajectory::{
    Attribution, Call, CloseCause, FailureMode, ProxyErrorText, RecordedRelation, ReplyOrigin, ReplySpeaker, Side,
    StepIndex, StepUnplaced, Uninspected, Usage, WatchSign,
};

/// Text that is borrowed when written and owned when read.
pub(super) type Text<'a> = Cow<'a, str>;
/// Header names and values, in order.
pub(super) type Headers<'a> = Vec<(Text<'a>, Text<'a>)>;

/// One record.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Record<'a> {
    Open(OpenRecord<'a>),
    Text(TextRecord<'a>),
    Inject(InjectRecord<'a>),
    Manipulator(ManipulatorRecord<'a>),
    Close(Box<CloseRecord<'a>>),
    Note(NoteRecord<'a>),
    Watch(Box<WatchRecord<'a>>),
    Unplaced(UnplacedRecord<'a>),
    Gap(NoteRecord<'a>),
    Stop(StopRecord),
    /// A kind of a later version.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl Record<'_> {
    /// Reads the record of a line. The kind comes first as it is written: what it is of is then read at once, where a tag that
    /// may stand anywhere has all else held back until it is found.
    pub(super) fn read(record: &[u8]) -> serde_json::Result<Self> {
        let kind = record.strip_prefix(br#"{"kind":""#).and_then(|rest| rest.split(|byte| *byte == b'"').next());
        match kind {
            Some(b"open") => serde_json::from_slice(record).map(Self::Open),
            Some(b"text") => serde_json::from_slice(record).map(Self::Text),
            Some(b"close") => serde_json::from_slice(record).map(Self::Close),
            _ => serde_json::from_slice(record),
        }
    }
}

/// A request has arrived; written before the upstream is dialled.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct OpenRecord<'a> {
    pub(super) step: StepIndex,
    pub(super) call: Call,
    pub(super) attempt: u32,
    #[serde(flatten)]
    pub(super) attribution: Cow<'a, Attribution>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) overlapping: bool,
    #[serde(flatten)]
    pub(super) relates: Cow<'a, RecordedRelation>,
    pub(super) run_source: Text<'a>,
    pub(super) surface: Text<'a>,
    pub(super) method: Text<'a>,
    pub(super) path: Text<'a>,
    pub(super) at: Text<'a>,
    pub(super) t_us: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) headers: Headers<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<BodyRecord<'a>>,
}

/// A text, before the first record that refers to it; again when it comes back after thousands of others.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct TextRecord<'a> {
    pub(super) hash: ContentHash,
    pub(super) text: Text<'a>,
}

/// An injection has matched; written before the first altered byte leaves.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct InjectRecord<'a> {
    pub(super) step: StepIndex,
    pub(super) attempt: u32,
    pub(super) injection: u32,
    pub(super) side: Side,
    pub(super) operator: Text<'a>,
    #[serde(default)]
    pub(super) failure_mode: Option<FailureMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) speaker: Option<ReplySpeaker>,
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) draw: Option<u64>,
    pub(super) planned: bool,
    pub(super) matched: bool,
    pub(super) applied: bool,
    /// blake3 of the bytes before and after.
    #[serde(default)]
    pub(super) before: Option<String>,
    #[serde(default)]
    pub(super) after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<BodyRecord<'a>>,
}

/// A manipulator asked its model (`asked`), or could not make its edit (`why`): the step passed untouched.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct ManipulatorRecord<'a> {
    pub(super) step: StepIndex,
    pub(super) attempt: u32,
    pub(super) injection: u32,
    pub(super) operator: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<Text<'a>>,
    /// Whether there was nothing to edit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) nothing: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "asked")]
    pub(super) question: Option<Box<QuestionRecord<'a>>>,
}

/// A question to the manipulator's model, and its answer, as they went over the wire.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct QuestionRecord<'a> {
    pub(super) upstream: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) template: Text<'a>,
    pub(super) question: BodyRecord<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<BodyRecord<'a>>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) changed: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
    pub(super) took_us: u64,
}

/// An exchange has ended; written before the end of the reply is released.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct CloseRecord<'a> {
    pub(super) step: StepIndex,
    pub(super) attempt: u32,
    pub(super) cause: CloseCause,
    /// Where the reply came from; nothing stands of one that the upstream gave.
    #[serde(default, skip_serializing_if = "ReplyOrigin::is_live")]
    pub(super) origin: ReplyOrigin,
    #[serde(default)]
    pub(super) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) headers: Headers<'a>,
    /// What the proxy itself answered, where no reply came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proxy_error: Option<ProxyErrorText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<Text<'a>>,
    #[serde(default)]
    pub(super) first_byte_us: Option<u64>,
    #[serde(default)]
    pub(super) last_byte_us: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) streamed: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uninspected: Option<Uninspected>,
    /// The request body where it streamed through, so that `open` could not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<BodyRecord<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reply: Option<BodyRecord<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) delivered: Option<BodyRecord<'a>>,
    /// The reply with what only the recorder asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "fuller")]
    pub(super) reply_with_logprobs: Option<BodyRecord<'a>>,
}

/// Words about the run: what happened to the recording itself.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct NoteRecord<'a> {
    pub(super) at: Text<'a>,
    pub(super) text: Text<'a>,
}

/// A rule saw a sign of trouble while the run was under way.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct WatchRecord<'a> {
    pub(super) at: Text<'a>,
    #[serde(flatten)]
    pub(super) sign: Cow<'a, WatchSign>,
}

/// What the importer of a trace could not place of the call that a step was made of; written after the step's `open`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct UnplacedRecord<'a> {
    pub(super) step: StepIndex,
    #[serde(flatten)]
    pub(super) unplaced: Cow<'a, StepUnplaced>,
}

/// The run was ended in order.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct StopRecord {
    pub(super) at: String,
    pub(super) exchanges: u64,
    pub(super) open: u64,
}

/// A body: what it shares with an earlier one, and what is new. Its bytes are `shared` bytes of the parent's start,
/// the segments (or frames), `shared_end` bytes of the parent's end. One that the log has already is hash and length.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct BodyRecord<'a> {
    pub(super) hash: ContentHash,
    pub(super) len: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) shared: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) shared_end: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) segs: Vec<Segment<'a>>,
    /// Events of a stream: arrival in µs, bytes shared with the start and with the end of the event before, the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) frames: Vec<(u64, u64, u64, Segment<'a>)>,
    /// Offset and length of what redaction masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) redacted: Vec<(u64, u64)>,
    /// The full length, where a size cap cut the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cut_from: Option<u64>,
}

/// A run of bytes of a body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(super) enum Segment<'a> {
    /// The bytes themselves.
    Literal(Text<'a>),
    /// A text, in the minimal escapes of JSON.
    Minimal((ContentHash,)),
    /// A text, in the given [`Style`](super::strings::Style).
    Styled((ContentHash, u8)),
    /// Bytes that are not UTF-8.
    Opaque {
        /// Standard base64 with padding.
        b64: Text<'a>,
    },
    /// Bytes that stand in `blobs/`.
    Blob {
        /// The name of the file.
        blob: ContentHash,
    },
}

impl<'a> Segment<'a> {
    /// These bytes themselves.
    pub(super) fn literal(bytes: &'a [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Literal(Cow::Borrowed(text)),
            Err(_) => Self::Opaque { b64: base64::engine::general_purpose::STANDARD.encode(bytes).into() },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
