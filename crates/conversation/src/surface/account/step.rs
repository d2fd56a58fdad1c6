//! The account of one recorded step, and of a run's steps together.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize, Serializer};

use crate::{
    surface::{self, Surface, SurfaceError, Unplaced, door, written},
    trajectory::{Step, StepUnplaced},
};

/// Most pieces of one body that [`StepAccount::lines`] names.
const LINES_MAX: usize = 10;

/// How much of a body was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, schemars::JsonSchema)]
#[schemars(with = "WrittenState<'static>")]
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

    /// Why nothing was read, where nothing was.
    pub fn unread_because(&self) -> Option<&str> {
        match self {
            Self::Unread(why) => Some(why),
            Self::Whole | Self::Partly(_) => None,
        }
    }

    /// The state where these pieces stand in no view besides.
    fn without(self, pieces: &[Unplaced]) -> Self {
        match self {
            Self::Whole if pieces.is_empty() => Self::Whole,
            Self::Whole => Self::Partly(pieces.to_vec()),
            Self::Partly(own) => Self::Partly([own.as_slice(), pieces].concat()),
            Self::Unread(why) => Self::Unread(why),
        }
    }

    /// What is to be said of the side `side` that was not read whole, a line for each piece.
    fn lines(&self, side: &str) -> Vec<String> {
        let words = self.words();
        match self {
            Self::Whole => Vec::new(),
            Self::Unread(why) => vec![format!("{side} {words}: {why}")],
            Self::Partly(pieces) => {
                let named = pieces.iter().take(LINES_MAX).map(|piece| format!("{side} {words}: {piece}"));
                let more = pieces.len().saturating_sub(LINES_MAX);
                named.chain((more > 0).then(|| format!("{side} {words}: {more} more pieces"))).collect()
            }
        }
    }
}

/// A state as it is written.
#[derive(Serialize, schemars::JsonSchema)]
struct WrittenState<'a> {
    #[schemars(extend("enum" = ["read", "partly read", "unread"]))]
    state: &'static str,
    #[serde(skip_serializing_if = "<[Unplaced]>::is_empty")]
    unplaced: &'a [Unplaced],
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// As `{"state": "read" | "partly read" | "unread", "unplaced": […], "why": …}`, the last two where there are such.
impl Serialize for ReadState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenState { state: self.words(), unplaced: self.unplaced(), why: self.unread_because() }
            .serialize(serializer)
    }
}

/// How much of a step was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
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

    /// The worse of both states.
    fn worse(&self) -> &ReadState {
        if rank(&self.request) > rank(&self.reply) { &self.request } else { &self.reply }
    }

    /// The worse of both states, in words.
    pub fn words(&self) -> &'static str {
        self.worse().words()
    }

    /// What was not read, a line for each piece that is named; none where all was. What holds of both sides is said once.
    pub fn lines(&self) -> Vec<String> {
        if self.request == self.reply {
            return self.request.lines("step");
        }
        let is_of_both = |piece: &&Unplaced| self.reply.unplaced().contains(piece);
        let both: Vec<Unplaced> = self.request.unplaced().iter().filter(is_of_both).cloned().collect();
        let rest = |state: &ReadState| match state {
            ReadState::Partly(pieces) => {
                ReadState::Partly(pieces.iter().filter(|piece| !both.contains(piece)).cloned().collect())
            }
            other => other.clone(),
        };
        let (request, reply) = (rest(&self.request), rest(&self.reply));
        [ReadState::Partly(both).lines("step"), request.lines("request"), reply.lines("reply")].concat()
    }

    /// The account where an importer could not place these pieces besides.
    #[must_use]
    pub fn without(self, unplaced: &StepUnplaced) -> Self {
        Self { request: self.request.without(&unplaced.request), reply: self.reply.without(&unplaced.reply) }
    }
}

/// How many steps of a run were read, each counted by the worse of its two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunAccount {
    /// Steps that were read whole.
    pub read: u64,
    /// Steps with a piece that stands in no view.
    pub partly_read: u64,
    /// Steps of which a side was not read at all.
    pub unread: u64,
    /// Requests that nobody looked at for this account, since the run is too long for the place that shows it. Their steps are
    /// counted by their replies alone.
    #[serde(default, skip_serializing_if = "is_none")]
    pub requests_left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl RunAccount {
    /// The account of steps.
    pub fn from_steps<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut account = Self::default();
        steps.into_iter().for_each(|step| account.add(&of_step(step)));
        account
    }

    /// Counts one step more.
    pub fn add(&mut self, step: &StepAccount) {
        self.add_stated(step.words());
    }

    /// Counts one step more, by the words of its state ([`StepAccount::words`]).
    pub fn add_stated(&mut self, words: &str) {
        let count = match words {
            "partly read" => &mut self.partly_read,
            "unread" => &mut self.unread,
            _ => &mut self.read,
        };
        *count += 1;
    }

    /// How many steps were not read whole, in the words of their states: `2 partly read`, `1 unread`. None where all were.
    pub fn counted(&self) -> Vec<String> {
        let counts =
            [(self.partly_read, ReadState::Partly(Vec::new())), (self.unread, ReadState::Unread(String::new()))];
        let stated = counts.into_iter().filter(|(count, _)| *count > 0);
        let stated = stated.map(|(count, state)| format!("{count} {}", state.words()));
        let left_out =
            (self.requests_left_out > 0).then(|| format!("{} requests not looked at", self.requests_left_out));
        stated.chain(left_out).collect()
    }
}

impl AddAssign for RunAccount {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.partly_read += other.partly_read;
        self.unread += other.unread;
        self.requests_left_out += other.requests_left_out;
    }
}

fn rank(state: &ReadState) -> u8 {
    match state {
        ReadState::Whole => 0,
        ReadState::Partly(_) => 1,
        ReadState::Unread(_) => 2,
    }
}

/// The account of a step, from the bytes of its record and from what its importer could not place: one rule for runs under way,
/// old recordings and imported ones.
pub fn of_step(step: &Step) -> StepAccount {
    let Some(surface) = surface::named(&step.surface) else {
        return StepAccount { request: unread_call(), reply: unread_call() };
    };
    let (reply, streamed) = reply_to(step);
    of_bodies(surface, &step.request, reply, streamed).without(&step.unplaced)
}

/// How much of the reply to a step was read: the half of its account that a label is about.
pub fn of_reply_to(step: &Step) -> ReadState {
    let Some(surface) = surface::named(&step.surface) else { return unread_call() };
    let (reply, streamed) = reply_to(step);
    of_bodies(surface, &[], reply, streamed).without(&step.unplaced).reply
}

/// Whether an edit of a step's request changed an element that holds a piece which nobody reads, or that none can be told of.
pub fn edits_unplaced(step: &Step) -> bool {
    let Some(surface) = surface::named(&step.surface) else { return true };
    let edited = step.request_sent.as_ref().unwrap_or(&step.request);
    written::touches_unplaced(surface, &door::without_codings(&step.request), &door::without_codings(edited)).is_err()
}

fn unread_call() -> ReadState {
    ReadState::Unread("no surface reads this call".to_owned())
}

/// What the client got in the end, where it is a reply, and whether it was typed as a stream.
fn reply_to(step: &Step) -> (&[u8], bool) {
    let attempt = step.last_attempt().filter(|attempt| attempt.status.is_some_and(|status| status < 400));
    attempt.map(|attempt| (attempt.delivered().as_ref(), attempt.streamed)).unwrap_or_default()
}

/// The account of a request and of the reply to it, empty where there is none. `streamed`: whether the reply was typed as a stream.
pub fn of_bodies(surface: &dyn Surface, request: &[u8], reply: &[u8], streamed: bool) -> StepAccount {
    let request = state(request, |body| door::request_reading(surface, body).map(|reading| reading.unplaced));
    let reply = state(reply, |body| door::reading(surface, body, streamed).map(|reading| reading.unplaced));
    StepAccount { request, reply }
}

/// How much of a body is read; of none, all.
fn state(body: &[u8], read: impl Fn(&[u8]) -> Result<Vec<Unplaced>, SurfaceError>) -> ReadState {
    if body.is_empty() {
        return ReadState::Whole;
    }
    match read(body) {
        Ok(unplaced) if unplaced.is_empty() => ReadState::Whole,
        Ok(unplaced) => ReadState::Partly(unplaced),
        Err(error) => ReadState::Unread(error.to_string()),
    }
}
