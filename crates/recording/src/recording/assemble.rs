//! A trajectory from records: exchanges become attempts, attempts become steps.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    ExchangeDetail, Manifest, Recording,
    content_hash::ContentHash,
    decode::{Body, LogTexts},
    ended,
    manipulated::{ManipulatorFailure, ManipulatorQuestion},
    overlap,
    record::{CloseRecord, InjectRecord, ManipulatorRecord, OpenRecord, Record},
    requests::Requests,
    turns, unplaced,
};
use crate::{
    surface,
    trajectory::{
        AgentName, Attempt, InjectedError, ReplyOrigin, Side, Step, StepIndex, StepUnplaced, Trajectory, WatchSign,
    },
};

/// Gathers records, in the order of the log.
#[derive(Debug)]
pub(super) struct Assembly {
    library: LogTexts,
    steps: BTreeMap<StepIndex, Step>,
    /// The steps' requests, where they are kept apart from them.
    requests: Option<BTreeMap<StepIndex, Option<ContentHash>>>,
    exchanges: Vec<ExchangeDetail>,
    /// Per step, injection and agent of a team: the attempt that it was last applied to.
    injected: BTreeMap<(StepIndex, u32, Option<AgentName>), (u32, InjectedError)>,
    notes: Vec<String>,
    watched: Vec<WatchSign>,
    failures: Vec<ManipulatorFailure>,
    questions: Vec<ManipulatorQuestion>,
    /// Records taken in so far.
    position: u64,
}

impl Assembly {
    /// Nothing yet. `apart`: whether the steps' requests are kept apart from them.
    pub(super) fn new(library: LogTexts, apart: bool) -> Self {
        Self {
            library,
            steps: BTreeMap::new(),
            requests: apart.then(BTreeMap::new),
            exchanges: Vec::new(),
            injected: BTreeMap::new(),
            notes: Vec::new(),
            watched: Vec::new(),
            failures: Vec::new(),
            questions: Vec::new(),
            position: 0,
        }
    }

    /// Takes a record in.
    pub(super) fn add(&mut self, record: Record<'_>) -> Result<(), String> {
        self.position += 1;
        match record {
            Record::Text(text) => self.library.add_text(text)?,
            Record::Open(open) => self.open(open)?,
            Record::Inject(inject) => self.inject(&inject)?,
            Record::Close(close) => self.close(*close)?,
            Record::Manipulator(record) => self.manipulator(record)?,
            Record::Watch(watch) => self.watched.push(watch.sign.into_owned()),
            Record::Unplaced(record) => unplaced::add(&mut self.steps, record)?,
            Record::Note(note) => self.notes.push(note.text.into_owned()),
            Record::Gap(gap) => self.notes.push(format!("gap: {}", gap.text)),
            Record::Stop(_) | Record::Unknown => {}
        }
        Ok(())
    }

    /// The recording, and the requests where they are kept apart; label, seal and torn end are the caller's to add.
    pub(super) fn finish(mut self, manifest: Manifest) -> (Recording, Requests) {
        for ((step, ..), (attempt, mut error)) in self.injected {
            if let Some(step) = self.steps.get_mut(&step) {
                error.delivered = ended::delivered(step, attempt, &error);
                step.injected.push(error);
            }
        }
        if manifest.imported.is_some() {
            // No byte of a remade body went over a wire.
            let attempts = self.steps.values_mut().flat_map(|step| &mut step.attempts);
            attempts.for_each(|attempt| (attempt.exact, attempt.origin) = (false, ReplyOrigin::Remade));
        }
        let attempts = self.steps.values().flat_map(|step| &step.attempts);
        let open_exchanges = attempts.filter(|attempt| attempt.cause.is_none()).count() as u64;
        let mut expected = 0;
        for number in self.steps.keys() {
            if *number > expected {
                self.notes.push(format!("steps {expected} to {} were never opened", number - 1));
            }
            expected = number + 1;
        }
        let mut steps: Vec<Step> = self.steps.into_values().collect();
        overlap::mark(&mut steps, &self.exchanges);
        let apart = self.requests.is_some();
        let hashes = self.requests.unwrap_or_default().into_values().collect();
        let requests = Requests::new(self.library.into_bodies(), hashes);
        turns::number(&mut steps, |at, step| if apart { requests.get(at) } else { step.request.clone() });
        let trajectory =
            Trajectory { run: manifest.run.clone(), seed: manifest.seed, outcome: manifest.outcome.clone(), steps };
        let recording = Recording {
            manifest,
            trajectory,
            exchanges: self.exchanges,
            notes: self.notes,
            watched: self.watched,
            manipulator_failures: self.failures,
            manipulator_questions: self.questions,
            label: None,
            edited: Vec::new(),
            late: Vec::new(),
            facts: Vec::new(),
            sealed: false,
            open_exchanges,
            torn_bytes: 0,
        };
        (recording, requests)
    }

    /// The request of a step as it is held with the step.
    fn request(&mut self, step: StepIndex, body: Body) -> Bytes {
        match &mut self.requests {
            None => body.bytes,
            Some(apart) => {
                apart.insert(step, body.hash);
                Bytes::new()
            }
        }
    }

    fn open(&mut self, open: OpenRecord<'_>) -> Result<(), String> {
        let body = open.body.as_ref().map(|body| self.library.body(body)).transpose()?.unwrap_or_default();
        self.exchanges.push(ExchangeDetail {
            step: open.step,
            attempt: open.attempt,
            run_source: open.run_source.into_owned(),
            at_us: open.t_us,
            opened: self.position,
            relates: open.relates.into_owned(),
            request_headers: owned(open.headers),
            ..ExchangeDetail::default()
        });
        let exact = open.body.is_none() || body.exact;
        // The first attempt's request is the step's.
        let request = if self.steps.contains_key(&open.step) { Bytes::new() } else { self.request(open.step, body) };
        let step = self.steps.entry(open.step).or_insert_with(|| Step {
            step: open.step,
            call: open.call,
            turn: open.step,
            attribution: open.attribution.into_owned(),
            surface: open.surface.into_owned(),
            method: open.method.into_owned(),
            path: open.path.into_owned(),
            request,
            request_sent: None,
            attempts: Vec::new(),
            injected: Vec::new(),
            overlapping: open.overlapping,
            unplaced: StepUnplaced::default(),
        });
        step.attempts.push(Attempt {
            attempt: open.attempt,
            at: open.at.into_owned(),
            status: None,
            cause: None,
            ending: None,
            reply: Bytes::new(),
            reply_delivered: None,
            reply_with_logprobs: None,
            streamed: false,
            first_byte_us: None,
            last_byte_us: None,
            usage: None,
            uninspected: None,
            exact,
            origin: ReplyOrigin::Live,
            proxy_error: None,
        });
        Ok(())
    }

    fn inject(&mut self, inject: &InjectRecord<'_>) -> Result<(), String> {
        let body = inject.body.as_ref().map(|body| self.library.body(body)).transpose()?;
        let step = self.steps.get_mut(&inject.step).ok_or("it injects into a step that was not opened")?;
        if !inject.applied {
            return Ok(());
        }
        let here = |detail: &&mut ExchangeDetail| detail.step == inject.step && detail.attempt == inject.attempt;
        if let Some(detail) = self.exchanges.iter_mut().rev().find(here) {
            detail.injected.push(inject.injection);
        }
        if inject.side == Side::Request {
            step.request_sent = body.map(|body| body.bytes).or(step.request_sent.take());
        }
        let (agent, call) = step.aimed_at(inject.speaker.as_ref());
        let error = InjectedError {
            injection: inject.injection,
            agent: agent.clone(),
            instance: step.attribution.instance,
            failure_mode: inject.failure_mode,
            side: inject.side,
            operator: inject.operator.clone().into_owned(),
            speaker: inject.speaker.as_ref().map(|speaker| speaker.name.clone()),
            step: inject.step,
            call,
            attempt: inject.attempt,
            before: inject.before.clone().unwrap_or_default(),
            after: inject.after.clone().unwrap_or_default(),
            delivered: false,
        };
        self.injected.insert((inject.step, inject.injection, error.speaker.clone()), (inject.attempt, error));
        Ok(())
    }

    fn manipulator(&mut self, record: ManipulatorRecord<'_>) -> Result<(), String> {
        let ManipulatorRecord { step, attempt, injection, operator, why, nothing, question: asked } = record;
        let operator = operator.into_owned();
        if let Some(asked) = asked {
            let question = self.library.body(&asked.question)?.bytes;
            let answer = asked.answer.as_ref().map(|body| self.library.body(body)).transpose()?;
            self.questions.push(ManipulatorQuestion {
                step,
                attempt,
                injection,
                operator: operator.clone(),
                upstream: asked.upstream.into_owned(),
                model: asked.model.into_owned(),
                template: asked.template.into_owned(),
                question,
                answer: answer.map(|body| body.bytes).unwrap_or_default(),
                error: asked.error.map(std::borrow::Cow::into_owned),
                changed: asked.changed.map(std::borrow::Cow::into_owned),
                usage: asked.usage,
                cost: asked.cost,
                took_us: asked.took_us,
            });
        }
        if let Some(why) = why {
            let why = why.into_owned();
            self.failures.push(ManipulatorFailure { step, attempt, injection, operator, why, nothing });
        }
        Ok(())
    }

    fn close(&mut self, close: CloseRecord<'_>) -> Result<(), String> {
        let request = close.request.as_ref().map(|body| self.library.body(body)).transpose()?;
        let reply = close.reply.as_ref().map(|body| self.library.body(body)).transpose()?;
        let delivered = close.delivered.as_ref().map(|body| self.library.body(body)).transpose()?;
        let fuller = close.reply_with_logprobs.as_ref().map(|body| self.library.body(body)).transpose()?;
        let bodies = [&request, &reply, &delivered, &fuller];
        let exact = !close.truncated && bodies.into_iter().flatten().all(|body| body.exact);
        let request =
            request.filter(|_| self.steps.contains_key(&close.step)).map(|body| self.request(close.step, body));
        let step = self.steps.get_mut(&close.step).ok_or("it closes a step that was not opened")?;
        let is_it = |attempt: &&mut Attempt| attempt.attempt == close.attempt && attempt.cause.is_none();
        let attempt = step.attempts.iter_mut().rev().find(is_it).ok_or("it closes an exchange that is not open")?;
        attempt.exact &= exact;
        (attempt.cause, attempt.origin) = (Some(close.cause), close.origin);
        attempt.status = close.status;
        attempt.proxy_error = close.proxy_error;
        attempt.streamed = close.streamed;
        attempt.first_byte_us = close.first_byte_us;
        attempt.last_byte_us = close.last_byte_us;
        attempt.usage = close.usage;
        attempt.uninspected = close.uninspected;
        attempt.reply_delivered = delivered.map(|body| body.bytes);
        attempt.reply_with_logprobs = fuller.map(|body| body.bytes);
        if let Some(request) = request {
            step.request = request;
        }
        let Body { bytes, frames, .. } = reply.unwrap_or_default();
        attempt.reply = bytes;
        attempt.ending = Some(ended::ending(surface::named(&step.surface), attempt, close.cause));
        let is_it = |detail: &&mut ExchangeDetail| detail.step == close.step && detail.attempt == close.attempt;
        if let Some(detail) = self.exchanges.iter_mut().rev().find(is_it) {
            detail.reply_headers = owned(close.headers);
            detail.finish_reason = close.finish_reason.map(std::borrow::Cow::into_owned);
            detail.frames = frames;
            detail.closed = Some(self.position);
        }
        Ok(())
    }
}

fn owned(headers: super::record::Headers<'_>) -> Vec<(String, String)> {
    headers.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}
