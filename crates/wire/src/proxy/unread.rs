//! A call to a provider that no surface reads: a step like any other, of which nobody here understands a word.
//!
//! A short body is taken in whole, so that the record holds it before the upstream is asked. A long or slow one streams through: of
//! it the record keeps the beginning and the length. What no run can be told of passes as it did before such calls were steps.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    Request, Response,
    body::{Body, Frame, Incoming},
    header,
};
use tokio::time::Instant;

use super::{
    arrival::{Arrived, ModelCall},
    chunks::joined,
    decided,
    delivery::Delivery,
    error::{Interrupted, ProxyError},
    faults, headers,
    listen::socket::Link,
    pending_reply::PendingReply,
    shared::Proxy,
    upstream::{ReceivedBody, SentBody, Upload, UploadEnd, UploadPrefix},
};
use crate::surface::{UnreadCall, door::UnpackedBody};

/// A longer body streams through. So much of one that does is kept for the record.
const HELD: usize = 1 << 20;
/// A body that is not whole after so long streams through.
const HELD_FOR: Duration = Duration::from_millis(250);
/// Beginnings of the types of bodies in which no provider looks for names of what it keeps.
const BINARY: [&str; 5] = ["multipart/", "application/octet-stream", "audio/", "image/", "video/"];

/// What has come of a body.
struct BegunBody {
    frames: VecDeque<Frame<Bytes>>,
    is_whole: bool,
}

impl BegunBody {
    /// Takes in what comes of a body until it is whole, or longer than `most`, or not there after `wait`.
    async fn read(body: &mut Incoming, most: usize, wait: Duration) -> Result<Self, ProxyError> {
        let (mut frames, mut length, mut has_trailers) = (VecDeque::new(), 0, false);
        let until = Instant::now() + wait;
        let is_short = body.size_hint().lower() <= most as u64;
        while is_short && length <= most {
            let Ok(frame) = tokio::time::timeout_at(until, body.frame()).await else { break };
            let Some(frame) = frame else { return Ok(Self { frames, is_whole: !has_trailers }) };
            let frame = frame.map_err(|_| ProxyError::BodyBroken)?;
            length += frame.data_ref().map_or(0, Bytes::len);
            has_trailers |= frame.is_trailers();
            frames.push_back(frame);
        }
        Ok(Self { frames, is_whole: false })
    }
}

impl Proxy {
    /// A call that no surface reads.
    pub(super) async fn unread(
        &self,
        mut arrived: Arrived,
        row: &UnreadCall,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let named = self.identity.run(&arrived.hinted.envelope(), || None)?.map(|(run, _)| run);
        let run = named.or_else(|| self.default_run.clone());
        if run.is_none() {
            let open = self.runs.under_way();
            arrived.hinted.only_run = open.first().filter(|_| open.len() == 1).map(|run| run.id.clone());
            let has_place = arrived.hinted.only_run.is_some() || (row.answers && self.identity.lineage.is_some());
            if !has_place {
                tracing::warn!(call = %row.name, path = arrived.parts.uri.path(), "not recorded: nothing tells its run");
                return self.pass_unread(arrived).await;
            }
        }
        if self.looks_into(&arrived) {
            return self.call(arrived.with_body(&self.limits).await?, link).await;
        }
        // An upstream of the run's own, as a recording is one, looks for what it is asked by the whole of it.
        let has_own = run.and_then(|run| self.runs.find(&run)).is_some_and(|run| run.upstream.is_some());
        let (most, wait) =
            if has_own { (self.limits.max_body_bytes, self.limits.body_timeout) } else { (HELD, HELD_FOR) };
        let Arrived { kind, parts, mut body, hinted, received, .. } = arrived;
        let BegunBody { frames, is_whole } = BegunBody::read(&mut body, most, wait).await?;
        if is_whole {
            let body = joined(frames.into_iter().filter_map(|frame| frame.into_data().ok()).collect());
            let limit = self.limits.max_upload_bytes;
            if body.len() > limit {
                return Err(ProxyError::BodyTooLarge { limit }.into());
            }
            let unpacked = UnpackedBody::unread(&body);
            let call =
                ModelCall { kind, parts, body, memory: Arc::default(), unpacked, streams: false, hinted, received };
            return self.call(call, link).await;
        }
        let kept = UploadPrefix::new(HELD);
        let (upload, end) = Upload::new(body, &self.limits);
        let upload = upload.begun(frames, Arc::clone(&kept));
        let unpacked = UnpackedBody::default();
        let call = ModelCall {
            kind,
            parts,
            body: Bytes::new(),
            memory: Arc::default(),
            unpacked,
            streams: true,
            hinted,
            received,
        };
        self.stream(call, upload, end, kept, link).await
    }

    /// One that no run records.
    async fn pass_unread(&self, arrived: Arrived) -> Result<Response<Box<Delivery>>, Interrupted> {
        if !self.looks_into(&arrived) {
            return self.pass(arrived).await;
        }
        let call = arrived.with_body(&self.limits).await?;
        self.check_goes_on(&call).await?;
        self.pass_on(call.parts, Either::Left(Full::new(call.body)), &call.hinted).await
    }

    /// Whether its body is taken in whole, however slow it is: it may name something that the upstream keeps of another user. What
    /// is longer than any call and says that it is no JSON is an upload.
    fn looks_into(&self, arrived: &Arrived) -> bool {
        let kind = headers::text(&arrived.parts.headers, &header::CONTENT_TYPE).unwrap_or_default();
        let is_upload = BINARY.iter().any(|binary| kind.starts_with(binary))
            || (!kind.contains("json") && arrived.body.size_hint().lower() > self.limits.max_body_bytes as u64);
        self.runs.objects().is_some() && !is_upload
    }

    /// One whose body streams through.
    async fn stream(
        &self,
        call: ModelCall,
        upload: Upload,
        end: UploadEnd,
        kept: Arc<UploadPrefix>,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let (mut step, _, earlier) = self.open(&call, link).await?;
        step.upload = Some(kept);
        let decision = decided::decide(&mut step, None, earlier);
        let mut due = PendingReply { step, decision, conversation: None };
        match self.answer_streamed(&mut due, call, upload, end).await {
            Ok(received) => self.hand_back(due, received).await,
            Err(interrupted) => Err(due.closed(interrupted)?),
        }
    }

    async fn answer_streamed(
        &self,
        due: &mut PendingReply,
        call: ModelCall,
        upload: Upload,
        end: UploadEnd,
    ) -> Result<Response<ReceivedBody>, Interrupted> {
        let PendingReply { step, decision, .. } = due;
        if !decision.faults.is_empty()
            && let Some(made) = Box::pin(faults::disturb_request(step, decision, &call.body)).await?
        {
            return Ok(made);
        }
        step.written().await?;
        let mut parts = call.parts;
        self.head_to_upstream(&mut parts.headers, false);
        let request: Request<SentBody> = Request::from_parts(parts, Either::Right(upload));
        let own = step.run.upstream.clone();
        let mut received = match own.as_ref().unwrap_or(&self.upstream).send(request).await {
            Err(_) if let Some(error) = end.error(&self.limits) => return Err(error.into()),
            sent => sent?,
        };
        headers::strip_hop_by_hop(received.headers_mut());
        step.origin = received.extensions().get().copied().unwrap_or_default();
        step.answered(received.status(), received.headers());
        Ok(received)
    }
}
