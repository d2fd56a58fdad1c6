//! Runs and steps as a reader of a recording sees them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{AgentName, Call, CallEnding, CloseCause, InjectedError, ReplyOrigin, RunId, StepIndex, StepUnplaced};

/// A run's steps in order, with what became of the run.
#[derive(Debug, Clone)]
pub struct Trajectory {
    /// The run.
    pub run: RunId,
    /// The seed of the run's plan, if a plan was given.
    pub seed: Option<u64>,
    /// What the run achieved.
    pub outcome: Outcome,
    /// Steps in arrival order; index = step number.
    pub steps: Vec<Step>,
}

/// One model call: request, reply, and what was done to either.
#[derive(Debug, Clone)]
pub struct Step {
    /// Number within the run, 0-based, by arrival.
    pub step: StepIndex,
    /// Number within the agent instance, 0-based.
    pub call: Call,
    /// The activation of the agent that this call belongs to, 0-based within the run.
    pub turn: u32,
    /// Who made the call, and how that is known.
    pub attribution: Attribution,
    /// The API shape, for example `openai_chat`; `opaque` where it was passed as bytes.
    pub surface: String,
    /// HTTP method.
    pub method: String,
    /// Path and query as sent, without our own prefix; secrets redacted.
    pub path: String,
    /// The request body as the client sent it; secrets redacted.
    pub request: Bytes,
    /// The request body as the upstream got it, where an injection changed it.
    pub request_sent: Option<Bytes>,
    /// Tries of this call: the first and the SDK's retries.
    pub attempts: Vec<Attempt>,
    /// What was planted in this step.
    pub injected: Vec<InjectedError>,
    /// Whether another call of the same agent instance was under way at the same time, whichever of them came first.
    pub overlapping: bool,
    /// What the importer of the trace that the step was made from could not place of the call; empty for a step that was recorded.
    pub unplaced: StepUnplaced,
}

impl Step {
    /// The agent and the call that an edit was aimed at: one that the upstream names in the reply, or the agent that asks.
    pub fn aimed_at<'a>(&'a self, speaker: Option<&'a ReplySpeaker>) -> (&'a AgentName, Call) {
        let named = speaker.and_then(|speaker| Some((&speaker.name, speaker.call?)));
        named.unwrap_or((&self.attribution.agent, self.call))
    }

    /// The last attempt: the one whose reply the program went on with.
    pub fn last_attempt(&self) -> Option<&Attempt> {
        self.attempts.last()
    }
}

/// One HTTP exchange of a step.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// 0 for the first try.
    pub attempt: u32,
    /// When the request arrived, RFC 3339 UTC.
    pub at: String,
    /// HTTP status the client got; `None` when it got none.
    pub status: Option<u16>,
    /// How the exchange ended; `None` when the recording ends before it.
    pub cause: Option<CloseCause>,
    /// How the call ended, told from status, cause and content; `None` when the recording ends before it.
    pub ending: Option<CallEnding>,
    /// The reply body as the upstream sent it, without what only the recorder asked for.
    pub reply: Bytes,
    /// The reply body as the client got it, where it differs.
    pub reply_delivered: Option<Bytes>,
    /// The reply body as the upstream sent it, where the recorder asked for more than the client did.
    pub reply_with_logprobs: Option<Bytes>,
    /// Whether the reply is an event stream.
    pub streamed: bool,
    /// Microseconds from arrival to the first byte of the reply.
    pub first_byte_us: Option<u64>,
    /// Microseconds from arrival to the last byte of the reply.
    pub last_byte_us: Option<u64>,
    /// Token counts as the upstream said them.
    pub usage: Option<Usage>,
    /// What passed after a switch of protocols, which is counted and not looked at.
    pub uninspected: Option<Uninspected>,
    /// False when redaction or a size cap changed the stored bytes, and where they were remade from a trace.
    pub exact: bool,
    /// Where the reply came from.
    pub origin: ReplyOrigin,
    /// What the proxy itself answered, where no reply came.
    pub proxy_error: Option<ProxyErrorText>,
}

/// An error that the proxy itself answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProxyErrorText {
    /// Its code, for example `upstream_unreachable`.
    pub code: String,
    /// Its words.
    pub message: String,
}

impl Attempt {
    /// The reply body that the client got.
    pub fn delivered(&self) -> &Bytes {
        self.reply_delivered.as_ref().unwrap_or(&self.reply)
    }

    /// Whether the model answered. What has no end in the recording has no answer.
    pub fn is_answered(&self) -> bool {
        self.ending.is_some_and(CallEnding::is_answered)
    }
}

/// Which rule named the agent of a step (in order of trust).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The path `/a/<agent>/`.
    Path,
    /// The agent header.
    Header,
    /// The API key, by pattern or table.
    Key,
    /// A mapped `metadata` entry or `user`.
    Metadata,
    /// A roster rule of the configuration.
    Roster,
    /// A mapped model alias.
    Model,
    /// A name that a framework writes on the wire.
    Dialect,
    /// The trace that the run was imported from.
    Trace,
    /// Learned looks: prompt and tools.
    Fingerprint,
    /// No system prompt: the request goes on from an earlier answer of this agent.
    Continuation,
    /// No system prompt: the frame of the user text.
    Frame,
    /// Nothing matched: a stable `agent-<8 hex>` of what the request looks like.
    Fallback,
}

/// Who made a call, on what evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Attribution {
    /// The agent.
    pub agent: AgentName,
    /// Which of several equal agents, 0-based.
    #[serde(default)]
    pub instance: u32,
    /// The rule that decided.
    pub source: Source,
    /// What the rule saw, in words that a person can check.
    pub evidence: String,
    /// 0 to 1; 1 for what the user declared.
    pub confidence: f32,
    /// Set where the wire cannot tell; such a step never carries a label.
    #[serde(default)]
    pub ambiguous: bool,
}

impl Attribution {
    /// Whether a plan may aim at the agent and a label may name it: what the user declared, and names that a framework
    /// writes into every request; never learned looks, and never where the wire cannot tell.
    pub fn is_certain(&self) -> bool {
        let declared = !matches!(
            self.source,
            Source::Dialect | Source::Fingerprint | Source::Continuation | Source::Frame | Source::Fallback
        );
        let written = self.source == Source::Dialect && self.confidence >= 0.95;
        !self.ambiguous && (declared || written)
    }
}

/// Whose words an edit of a team's reply is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReplySpeaker {
    /// The agent, by the name that the upstream gives it.
    pub name: AgentName,
    /// Its number among the replies to the asking agent in which it speaks, 0-based; `None` where the edit was aimed at the agent
    /// that asks, for which it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
}

/// Token counts, as the upstream reported them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
}

/// Bytes that passed uninspected, as those of a WebSocket do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Uninspected {
    /// From the client to the upstream, in bytes.
    pub from_client: u64,
    /// From the upstream to the client, in bytes.
    pub from_upstream: u64,
}

/// What a run achieved (the papers' Z: success 0, failure 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The task was solved.
    Success,
    /// The task was not solved.
    Failure,
    /// Nobody checked, or the check could not tell.
    #[default]
    Unknown,
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The command given with `--check`.
    Check,
    /// The program's own exit code.
    Exit,
    /// The program ran out of time.
    Timeout,
    /// The harness, over the control listener.
    Reported,
    /// Somebody who knew it after the run had ended (`aegis amend`).
    Amended,
    /// An outcome checker.
    Verifier,
    /// The trace that the run was imported from: a score, a reward, the status of its root.
    Trace,
}

/// A verdict with the evidence it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Outcome {
    /// Success, failure or unknown.
    pub verdict: Verdict,
    /// Who says so; `None` when nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What was seen: exit code, compared values, a short excerpt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
}

/// How a run's program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// It ran out of time and was ended.
    TimedOut,
    /// It was ended because we were asked to stop.
    Interrupted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_may_name_whom_the_user_or_a_framework_names() {
        use Source::{
            Continuation, Dialect, Fallback, Fingerprint, Frame, Header, Key, Metadata, Model, Path, Roster, Trace,
        };
        let certain = |source, confidence, ambiguous| {
            let agent = AgentName::unnamed(0);
            Attribution { agent, instance: 0, source, evidence: String::new(), confidence, ambiguous }.is_certain()
        };
        for declared in [Path, Header, Key, Metadata, Roster, Model, Trace] {
            assert!(certain(declared, 1.0, false), "{declared:?}");
            assert!(!certain(declared, 1.0, true), "{declared:?}, and the wire cannot tell");
        }
        for learned in [Fingerprint, Continuation, Frame, Fallback] {
            assert!(!certain(learned, 1.0, false), "{learned:?}");
        }
        for (confidence, ambiguous, expected) in
            [(1.0, false, true), (0.95, false, true), (0.94, false, false), (1.0, true, false)]
        {
            assert_eq!(certain(Dialect, confidence, ambiguous), expected, "a framework's name at {confidence}");
        }
    }

    #[test]
    fn what_the_client_got_is_what_was_said_unless_it_was_changed() {
        let attempt = Attempt {
            attempt: 0,
            at: String::new(),
            status: None,
            cause: None,
            ending: None,
            reply: Bytes::from_static(b"said"),
            reply_delivered: None,
            reply_with_logprobs: None,
            streamed: false,
            first_byte_us: None,
            last_byte_us: None,
            usage: None,
            uninspected: None,
            exact: true,
            origin: ReplyOrigin::default(),
            proxy_error: None,
        };
        assert_eq!(attempt.delivered().as_ref(), b"said");
        let changed = Attempt { reply_delivered: Some(Bytes::from_static(b"changed")), ..attempt };
        assert_eq!(changed.delivered().as_ref(), b"changed");
    }
}
