//! The account of one recorded step.

use crate::{
    surface::{self, Unplaced, door},
    trajectory::Step,
};

/// How much of a body was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReadState {
    /// All of it, or there is none.
    #[default]
    Whole,
    /// All but these pieces.
    Partly(Vec<Unplaced>),
    /// Nothing, for this reason.
    Unread(String),
}

impl ReadState {
    /// The state in the words that all pages, files and counters use: `read`, `partly read` or `unread`.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Whole => "read",
            Self::Partly(_) => "partly read",
            Self::Unread(_) => "unread",
        }
    }

    /// The pieces that stand in no view; none where nothing was read.
    pub fn unplaced(&self) -> &[Unplaced] {
        match self {
            Self::Partly(unplaced) => unplaced,
            Self::Whole | Self::Unread(_) => &[],
        }
    }
}

/// How much of a step was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepAccount {
    /// Of what was asked.
    pub request: ReadState,
    /// Of what the client got in the end. An error that the upstream answers with an error status is no reply.
    pub reply: ReadState,
}

impl StepAccount {
    /// Whether both sides were read whole.
    pub fn is_whole(&self) -> bool {
        self.request == ReadState::Whole && self.reply == ReadState::Whole
    }

    /// The worse of both states, in words.
    pub fn words(&self) -> &'static str {
        [&self.request, &self.reply].into_iter().max_by_key(|state| rank(state)).map_or("read", ReadState::words)
    }
}

fn rank(state: &ReadState) -> u8 {
    match state {
        ReadState::Whole => 0,
        ReadState::Partly(_) => 1,
        ReadState::Unread(_) => 2,
    }
}

/// The account of a step, from the bytes of its record: one rule for runs under way, old recordings and imported ones.
pub fn of_step(step: &Step) -> StepAccount {
    let Some(surface) = surface::ALL.iter().copied().find(|surface| surface.name() == step.surface) else {
        let why = || ReadState::Unread("no surface reads this call".to_owned());
        return StepAccount { request: why(), reply: why() };
    };
    let state = |read: Result<Vec<Unplaced>, surface::SurfaceError>| match read {
        Ok(unplaced) if unplaced.is_empty() => ReadState::Whole,
        Ok(unplaced) => ReadState::Partly(unplaced),
        Err(error) => ReadState::Unread(error.to_string()),
    };
    let request = door::request_reading(surface, &step.request).map(|reading| reading.unplaced);
    let attempt = step.last_attempt().filter(|attempt| attempt.status.is_some_and(|status| status < 400));
    let replied = attempt.filter(|attempt| !attempt.delivered().is_empty());
    let reply = replied.map(|attempt| {
        let reading = door::reading(surface, attempt.delivered(), attempt.streamed);
        state(reading.map(|reading| reading.unplaced))
    });
    StepAccount { request: state(request), reply: reply.unwrap_or_default() }
}
