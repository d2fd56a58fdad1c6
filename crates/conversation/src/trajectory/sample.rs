//! Labelled steps for tests, of this crate and of those above.
#![allow(clippy::expect_used, clippy::missing_panics_doc, reason = "only tests compile it")]

use bytes::Bytes;

use crate::trajectory::{
    AgentName, Attempt, Attribution, CallEnding, CloseCause, FailureMode, InjectedError, Side, Source, Step,
};

/// A planted error that was delivered with a reply.
pub fn planted() -> InjectedError {
    InjectedError {
        injection: 0,
        agent: AgentName::parse("solver").expect("a name"),
        instance: 0,
        failure_mode: Some(FailureMode::PrematureTermination),
        side: Side::Response,
        operator: "end_early".into(),
        speaker: None,
        step: 0,
        call: 0,
        attempt: 0,
        before: "was".into(),
        after: "is".into(),
        delivered: true,
    }
}

/// A fault at an attempt.
pub fn fault(attempt: u32) -> InjectedError {
    InjectedError { failure_mode: None, operator: "status".into(), attempt, after: planted().before, ..planted() }
}

/// An edited request.
pub fn edited_request() -> InjectedError {
    InjectedError { side: Side::Request, operator: "drop_history".into(), ..planted() }
}

fn attempt(number: u32, cause: Option<CloseCause>, status: Option<u16>) -> Attempt {
    Attempt {
        attempt: number,
        at: "2026-01-01T00:00:00Z".into(),
        status,
        cause,
        ending: cause.map(|cause| CallEnding::of_transport(cause, status)),
        reply: Bytes::from_static(br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"said"}}]}"#),
        reply_delivered: None,
        reply_with_logprobs: None,
        streamed: false,
        first_byte_us: None,
        last_byte_us: None,
        usage: None,
        uninspected: None,
        exact: true,
        origin: crate::trajectory::ReplyOrigin::default(),
        proxy_error: None,
    }
}

/// A step that the user's own words name, with these errors and these attempts, each with cause and status.
pub fn step(injected: &[InjectedError], attempts: &[(Option<CloseCause>, u16)]) -> Step {
    let attempts = (0..).zip(attempts).map(|(number, (cause, status))| attempt(number, *cause, Some(*status)));
    Step {
        step: 0,
        call: 0,
        turn: 0,
        attribution: Attribution {
            agent: AgentName::parse("solver").expect("a name"),
            instance: 0,
            source: Source::Path,
            evidence: "path".into(),
            confidence: 1.0,
            ambiguous: false,
        },
        surface: "openai_chat".into(),
        method: "POST".into(),
        path: "/v1/chat/completions".into(),
        request: Bytes::new(),
        request_sent: None,
        attempts: attempts.collect(),
        injected: injected.to_vec(),
        overlapping: false,
        unplaced: crate::trajectory::StepUnplaced::default(),
    }
}

/// A reply that came whole.
pub const DONE: Option<CloseCause> = Some(CloseCause::Complete);
