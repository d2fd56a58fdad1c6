//! Strict replay: the record is the whole upstream. No socket exists here, so none can be used.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use hyper::{Method, Request, Response, StatusCode};

use super::{
    Cassette, RefusedRequest, ReplayReport, Timing, play::Play, question::CassetteQuestion, reply::ReplayedPart,
};
use crate::{
    identity::{AttributedCall, ReferenceCalls},
    proxy::upstream::{Asker, BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError},
    surface::{self, ServerPath},
    trajectory::{Attribution, StepIndex},
};

/// Answers one run from a recording, and from nothing else.
#[derive(Debug)]
pub struct Replayed {
    play: Play,
    /// Who is asked for what tools give; the recording, if nobody.
    live_tools: Option<Arc<dyn Upstream>>,
}

impl Replayed {
    /// An upstream for one run.
    pub fn new(cassette: Arc<Cassette>) -> Self {
        Self { play: Play::new(cassette), live_tools: None }
    }

    /// The same with this timing.
    #[must_use]
    pub fn with_timing(mut self, timing: Timing) -> Self {
        self.play.set_timing(timing);
        self
    }

    /// The same with tools that are called again: models' replies alone are recorded.
    #[must_use]
    pub fn with_live_tools(mut self, tools: Arc<dyn Upstream>) -> Self {
        self.live_tools = Some(tools);
        self
    }

    /// The record that it answers from.
    pub fn cassette(&self) -> &Arc<Cassette> {
        &self.play.cassette
    }

    /// What came of it so far.
    pub fn report(&self) -> ReplayReport {
        let mut report = self.play.report();
        if self.live_tools.is_some() {
            let steps = self.play.cassette.bare_steps();
            let of_server = steps.iter().filter(|step| surface::is_of_server(&step.surface)).map(|step| step.step);
            let of_server: BTreeSet<StepIndex> = of_server.collect();
            report.unused.retain(|step| !of_server.contains(step));
        }
        report
    }
}

impl Upstream for Replayed {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn recall(&self, surface: &str, asked: &[u8], told: &AttributedCall) -> Option<Attribution> {
        self.play.recall(surface, asked, told)
    }

    fn reference_calls(&self) -> Option<Arc<ReferenceCalls>> {
        Some(self.play.cassette.reference_calls())
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        let is_of_server = ServerPath::of_path(request.uri().path()).is_some();
        if let Some(tools) = self.live_tools.as_ref().filter(|_| is_of_server) {
            let step = request.extensions().get::<Asker>().map(|asker| asker.step);
            return Box::pin(async move {
                let answered = tools.send(request).await?;
                self.play.state().report.live.extend(step);
                Ok(answered)
            });
        }
        if is_of_server && request.extensions().get::<Asker>().is_none() {
            return Box::pin(async move { Ok(beside_messages(request.method())) });
        }
        Box::pin(async move {
            let Some(question) = CassetteQuestion::read(&request, &self.play.cassette) else {
                let refused = RefusedRequest::from_request(&request);
                let said = refused.to_string();
                self.play.state().report.refused.push(refused);
                return Err(UpstreamError::NotRecorded(said));
            };
            let taken = {
                let mut state = self.play.state();
                let taken = self.play.take(&mut state, &question);
                taken.ok_or_else(|| {
                    let mut departure = self.play.departure(&state, &question);
                    departure.tools_recorded &= self.live_tools.is_none();
                    let said = departure.to_string();
                    state.report.missed.push(departure);
                    UpstreamError::NotRecorded(said)
                })
            };
            self.play.give(&question, taken?, ReplayedPart::Delivered).await
        })
    }
}

/// What a record answers to a request to a server that is no message: a session ends, and what the server said by itself was not
/// recorded.
fn beside_messages(method: &Method) -> Response<ReceivedBody> {
    let mut response = Response::new(ReceivedBody::Made(VecDeque::new()));
    let ends = method == Method::DELETE;
    *response.status_mut() = if ends { StatusCode::OK } else { StatusCode::METHOD_NOT_ALLOWED };
    response
}
