//! The requests of `aegis mcp`: one that attaches a server, and one for each reply of it.

use std::collections::VecDeque;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::{
    Method, Response, StatusCode,
    header::{self, HeaderValue},
};
use tokio::sync::oneshot;

use super::{PLACE, stream::AttachedReply};
use crate::{
    proxy::{
        arrival::Arrived,
        delivery::Delivery,
        error::{Interrupted, ProxyError},
        shared::Proxy,
        upstream::ReceivedBody,
    },
    trajectory::RunId,
};

/// The form of the messages that an attachment reads: a line of JSON each.
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");

impl Proxy {
    /// A request of an attachment.
    pub(in crate::proxy) async fn attached(&self, arrived: Arrived) -> Result<Response<Box<Delivery>>, Interrupted> {
        self.identity.run(&arrived.hinted.envelope(), || None)?;
        self.identity.declared(&arrived.hinted.envelope())?;
        let path = arrived.parts.uri.path().to_owned();
        let mut names = path.strip_prefix(PLACE).unwrap_or_default().split('/');
        if arrived.parts.method != Method::POST {
            return Err(ProxyError::NotAttached.into());
        }
        match (names.next().unwrap_or_default(), names.next(), names.next(), names.next()) {
            (name, None, ..) => Ok(self.attach(name)?),
            (name, Some(id), Some(number), None) => Ok(self.take_reply(name, id, number, arrived).await?),
            _ => Err(ProxyError::NotAttached.into()),
        }
    }

    /// Attaches a server of this name. The stream ends when either side leaves.
    fn attach(&self, name: &str) -> Result<Response<Box<Delivery>>, ProxyError> {
        RunId::parse(name)?;
        if self.servers.address(&format!("/mcp/{name}")).is_some() {
            return Err(ProxyError::TwoServers(name.to_owned()));
        }
        let lines = self.runs.attachments.attach(name, self.limits.silence_timeout)?;
        let body = ReceivedBody::Streamed(UnsyncBoxBody::new(lines));
        let mut response = Response::new(Delivery::pass(body, std::time::Duration::MAX));
        response.headers_mut().insert(header::CONTENT_TYPE, LINES);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// Hands the reply to a message to whoever sent that, as it comes. Without a type it has no body: nothing was asked.
    async fn take_reply(
        &self,
        name: &str,
        id: &str,
        number: &str,
        arrived: Arrived,
    ) -> Result<Response<Box<Delivery>>, ProxyError> {
        let attachment = self.runs.attachments.find(id, name).ok_or(ProxyError::NotAttached)?;
        let number = number.parse().map_err(|_| ProxyError::NotAttached)?;
        let waiting = attachment.waiting(number).ok_or(ProxyError::NotAttached)?;
        let (passing, passed) = oneshot::channel();
        let body = AttachedReply::new(arrived.body, passing);
        let mut reply = Response::new(ReceivedBody::Made(VecDeque::new()));
        if let Some(kind) = arrived.parts.headers.get(header::CONTENT_TYPE) {
            reply.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
            *reply.body_mut() = ReceivedBody::Streamed(UnsyncBoxBody::new(body));
        } else {
            *reply.status_mut() = StatusCode::ACCEPTED;
            drop(body);
        }
        waiting.send(reply).map_err(|_| ProxyError::NotAttached)?;
        // The end of the body, or of who reads it.
        let _ = passed.await;
        let mut response = Response::new(Delivery::composed(Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }
}
