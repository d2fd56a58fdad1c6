//! Reading a whole reply, within the limits: for what can only be done to all of it.

use std::collections::VecDeque;

use bytes::Bytes;
use http_body_util::BodyExt;

use super::{
    chunks::{joined, owned_chunk},
    error::Interrupted,
    limits::Limits,
    open_step::OpenStep,
    upstream::{ReceivedBody, UpstreamError},
};
use crate::surface::is_marked_over;

/// Reads a whole body, in the chunks that came. What is longer than the limit comes back as it was.
///
/// # Errors
/// The upstream is silent for too long, or the body breaks off.
pub(super) async fn read_whole(
    mut body: ReceivedBody,
    limits: &Limits,
) -> Result<Result<VecDeque<Bytes>, ReceivedBody>, UpstreamError> {
    let (mut read, mut length) = (VecDeque::new(), 0);
    loop {
        let frame = tokio::time::timeout(limits.silence_timeout, body.frame()).await;
        let Some(frame) = frame.map_err(|_| UpstreamError::Timeout(limits.silence_timeout))? else { break };
        let frame = frame.map_err(|error| UpstreamError::Closed(Box::new(error)))?;
        if let Ok(data) = frame.into_data() {
            length += data.len();
            read.push_back(owned_chunk(&data, read.is_empty()));
            if length > limits.max_body_bytes {
                return Ok(Err(ReceivedBody::Resumed(read, Box::new(body))));
            }
        }
    }
    Ok(Ok(read))
}

/// Reads the upstream's whole reply onto the step's tape; once that is done, what was made of it. What is too large comes back as it was.
///
/// # Errors
/// The upstream is silent for too long, or the body breaks off.
pub(super) async fn collect(
    step: &mut OpenStep,
    mut body: ReceivedBody,
    limits: &Limits,
) -> Result<Result<Bytes, ReceivedBody>, Interrupted> {
    if step.is_taped() {
        return Ok(read_whole(body, limits).await?.map(joined));
    }
    let mut length = 0;
    loop {
        let frame = tokio::time::timeout(limits.silence_timeout, body.frame()).await;
        let frame = frame.map_err(|_| UpstreamError::Timeout(limits.silence_timeout))?;
        let Some(frame) = frame else { break };
        let frame = match frame {
            Ok(frame) => frame,
            // Clients leave at the marker: what fails behind it fails nobody.
            Err(_) if step.surface.is_some_and(|surface| is_marked_over(surface, &step.taped())) => break,
            Err(error) => return Err(UpstreamError::Closed(Box::new(error)).into()),
        };
        if let Ok(data) = frame.into_data() {
            length += data.len();
            if length > limits.max_body_bytes {
                let mut read = step.untape();
                read.push_back(data);
                return Ok(Err(ReceivedBody::Resumed(read, Box::new(body))));
            }
            step.tape(&data);
            if let Some(ahead) = &mut step.ahead {
                ahead.push(&data);
            }
            // A stream that a client reads on may stay open after its answer.
            if step.is_stream() && step.has_answer() {
                break;
            }
        }
    }
    step.stop_taping();
    Ok(Ok(step.taped()))
}
