//! How a call ended: one answer, whoever asks. Labels, proofs, verdicts, watch rules, counts and pages all ask it, so that a
//! refusal counts as one whatever carried it: a status, a frame of a stream, a body that came with 200.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::CloseCause;

/// How a call ended, from the program's side. Whether a planned fault made it so is another question, which the step answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, schemars::JsonSchema)]
#[schemars(with = "String", extend("enum" = Self::ALL.map(Self::name)))]
pub enum CallEnding {
    /// The model answered. An answer may be empty, and may stop at the length that was asked for.
    Answered,
    /// The upstream refused what was asked.
    Refused(RefusalKind),
    /// The upstream failed for its own reasons, and gave no answer.
    Failed,
    /// The answer broke off.
    Cut,
    /// Nobody waited for the answer any more: the client left or stopped reading, or the proxy was stopped.
    Abandoned,
}

/// Why an upstream refuses what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusalKind {
    /// It is more than the caller may ask for: in a time, in tokens, for its money.
    Rate,
    /// The caller is not known, or may not ask this.
    Auth,
    /// It is longer than the model takes.
    TooLong,
    /// A filter of content, in what was asked or in what was about to be answered.
    Content,
    /// Any other reason that lies in the request.
    Other,
}

impl CallEnding {
    /// What transport alone says: why the exchange closed, and the status that the client got. A status of success says
    /// nothing of the content.
    pub fn of_transport(cause: CloseCause, status: Option<u16>) -> Self {
        match (cause, status) {
            (CloseCause::Injected, _) => Self::Cut,
            (CloseCause::Refused, _) => Self::Refused(RefusalKind::Other),
            (CloseCause::Internal, _) => Self::Failed,
            // Whoever read the status knows the end, whether or not it read on.
            (_, Some(status)) if !Self::of_status(status).is_answered() => Self::of_status(status),
            (CloseCause::UpstreamTruncated, _) | (CloseCause::UpstreamReset | CloseCause::UpstreamTimeout, Some(_)) => {
                Self::Cut
            }
            (
                CloseCause::UpstreamUnreachable
                | CloseCause::UpstreamReset
                | CloseCause::UpstreamTimeout
                | CloseCause::Failed,
                _,
            ) => Self::Failed,
            (CloseCause::ClientGone | CloseCause::ClientStalled | CloseCause::Stopped | CloseCause::Idle, _) => {
                Self::Abandoned
            }
            (CloseCause::Complete, _) => Self::Answered,
        }
    }

    /// What a status of HTTP says (RFC 9110, section 15).
    pub fn of_status(status: u16) -> Self {
        match status {
            ..=299 | 304 => Self::Answered,
            401 | 403 | 407 => Self::Refused(RefusalKind::Auth),
            402 | 429 => Self::Refused(RefusalKind::Rate),
            // Where a redirect leads there may be an answer; here there is none.
            300..=399 | 408 | 500.. => Self::Failed,
            413 => Self::Refused(RefusalKind::TooLong),
            451 => Self::Refused(RefusalKind::Content),
            _ => Self::Refused(RefusalKind::Other),
        }
    }

    /// Whether the model answered.
    pub fn is_answered(self) -> bool {
        self == Self::Answered
    }

    /// Whether it says something of the upstream's state and nothing of what was asked.
    pub fn is_infrastructure(self) -> bool {
        matches!(self, Self::Failed | Self::Cut | Self::Refused(RefusalKind::Rate))
    }

    /// Whether the upstream said no, for a reason of the request or of its own, as against an answer that is missing or broke off.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Failed)
    }

    /// Its name in files and counts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused(RefusalKind::Rate) => "refused_rate",
            Self::Refused(RefusalKind::Auth) => "refused_auth",
            Self::Refused(RefusalKind::TooLong) => "refused_too_long",
            Self::Refused(RefusalKind::Content) => "refused_content",
            Self::Refused(RefusalKind::Other) => "refused_other",
            Self::Failed => "failed",
            Self::Cut => "cut",
            Self::Abandoned => "abandoned",
        }
    }

    /// All of them, as lists show them.
    pub const ALL: [CallEnding; 9] = [
        Self::Answered,
        Self::Refused(RefusalKind::Rate),
        Self::Refused(RefusalKind::Auth),
        Self::Refused(RefusalKind::TooLong),
        Self::Refused(RefusalKind::Content),
        Self::Refused(RefusalKind::Other),
        Self::Failed,
        Self::Cut,
        Self::Abandoned,
    ];
}

/// In words, for pages.
impl fmt::Display for CallEnding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Answered => "answered",
            Self::Refused(RefusalKind::Rate) => "refused: limit reached",
            Self::Refused(RefusalKind::Auth) => "refused: not authorised",
            Self::Refused(RefusalKind::TooLong) => "refused: too long",
            Self::Refused(RefusalKind::Content) => "refused: content",
            Self::Refused(RefusalKind::Other) => "refused",
            Self::Failed => "failed",
            Self::Cut => "cut off",
            Self::Abandoned => "abandoned",
        })
    }
}

impl Serialize for CallEnding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for CallEnding {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|ending| ending.name() == name);
        known.ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no ending of a call")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_says_who_ended_a_call() {
        use CloseCause::{
            ClientGone, ClientStalled, Complete, Failed, Idle, Injected, Internal, Refused, Stopped, UpstreamReset,
            UpstreamTimeout, UpstreamTruncated, UpstreamUnreachable,
        };
        let other = CallEnding::Refused(RefusalKind::Other);
        for (cause, status, expected) in [
            (Complete, Some(200), CallEnding::Answered),
            (Complete, Some(304), CallEnding::Answered),
            (Complete, Some(302), CallEnding::Failed),
            (Complete, Some(307), CallEnding::Failed),
            (Complete, Some(399), CallEnding::Failed),
            (Complete, None, CallEnding::Answered),
            (Complete, Some(400), other),
            (Complete, Some(401), CallEnding::Refused(RefusalKind::Auth)),
            (Complete, Some(402), CallEnding::Refused(RefusalKind::Rate)),
            (Complete, Some(403), CallEnding::Refused(RefusalKind::Auth)),
            (Complete, Some(404), other),
            (Complete, Some(408), CallEnding::Failed),
            (Complete, Some(413), CallEnding::Refused(RefusalKind::TooLong)),
            (Complete, Some(422), other),
            (Complete, Some(429), CallEnding::Refused(RefusalKind::Rate)),
            (Complete, Some(451), CallEnding::Refused(RefusalKind::Content)),
            (Complete, Some(500), CallEnding::Failed),
            (Complete, Some(529), CallEnding::Failed),
            (ClientGone, Some(500), CallEnding::Failed),
            (ClientGone, Some(200), CallEnding::Abandoned),
            (ClientGone, None, CallEnding::Abandoned),
            (ClientStalled, Some(200), CallEnding::Abandoned),
            (Stopped, Some(200), CallEnding::Abandoned),
            (Idle, Some(101), CallEnding::Abandoned),
            (UpstreamUnreachable, None, CallEnding::Failed),
            (UpstreamReset, None, CallEnding::Failed),
            (UpstreamReset, Some(200), CallEnding::Cut),
            (UpstreamTimeout, None, CallEnding::Failed),
            (UpstreamTimeout, Some(200), CallEnding::Cut),
            (UpstreamTruncated, Some(200), CallEnding::Cut),
            (Injected, Some(200), CallEnding::Cut),
            (Refused, Some(503), other),
            (Internal, Some(500), CallEnding::Failed),
            (Failed, None, CallEnding::Failed),
        ] {
            assert_eq!(CallEnding::of_transport(cause, status), expected, "{cause:?} {status:?}");
        }
    }

    #[test]
    fn each_ending_is_read_back_by_its_name() {
        for ending in CallEnding::ALL {
            let text = serde_json::to_string(&ending).expect("writes");
            assert_eq!(serde_json::from_str::<CallEnding>(&text).expect("reads"), ending);
        }
        assert!(serde_json::from_str::<CallEnding>("\"gone\"").is_err());
    }
}
