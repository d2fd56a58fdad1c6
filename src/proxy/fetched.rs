//! What the upstream keeps and a program fetches later by its id: shown as the program was told it, where an edit on
//! the way had made that another. It is no model call: it opens no step, and the run's record notes it.

use std::sync::Arc;

use http_body_util::Either;
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    header,
    http::{request::Parts, uri::PathAndQuery},
};

use super::{
    Limits, Proxy,
    arrival::Hinted,
    decode,
    delivery::Delivery,
    exchange::Interrupted,
    gather::{gather, joined},
    headers, inject,
    run::{Run, locked},
    upstream::ReceivedBody,
};
use crate::surface::{Order, Surface};

/// What a fetch asks for, beside the path.
struct Asked {
    path: String,
    /// The number of the event of a stream after which it goes on.
    after: Option<u64>,
    order: Order,
}

impl Proxy {
    /// A request for something that the upstream keeps.
    pub(super) async fn fetch(
        &self,
        mut parts: Parts,
        body: Incoming,
        hinted: &Hinted,
        surface: &'static dyn Surface,
    ) -> Result<Response<Delivery>, Interrupted> {
        let Some(run) = self.run_that_edited(&parts, hinted)? else { return self.pass(parts, body, hinted).await };
        headers::to_upstream(&mut parts.headers, self.hint_headers(), true);
        let asked = whole_stream(&mut parts, &run);
        let mut received = self.upstream.send(Request::from_parts(parts, Either::Right(body))).await?;
        headers::strip_hop_by_hop(received.headers_mut());
        let shown = if received.status().is_success() {
            restated(&run, surface, &asked, received, &self.limits).await?
        } else {
            received
        };
        Ok(shown.map(|body| Delivery::pass(body, self.limits.silence_timeout)))
    }

    /// The run whose edits may show in what is fetched: the one that is named, or the one that served its id.
    fn run_that_edited(&self, parts: &Parts, hinted: &Hinted) -> Result<Option<Arc<Run>>, Interrupted> {
        let named = self.identity.run(&hinted.envelope(), || None)?.map(|(run, _)| run);
        let run = match named.as_ref().or(self.default_run.as_ref()) {
            Some(id) => self.runs.find(id).filter(|run| !locked(&run.told).edited.is_empty()),
            None => self.runs.find_by(|run| names_edited(parts.uri.path(), run)),
        };
        Ok(run)
    }
}

fn names_edited(path: &str, run: &Run) -> bool {
    let told = locked(&run.told);
    path.split('/').any(|segment| told.edited.knows(segment))
}

/// Asks for the whole of an edited stream where a part is wanted: which part that is, the edited numbers say.
fn whole_stream(parts: &mut Parts, run: &Run) -> Asked {
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let is_ascending = query.split('&').any(|part| part == "order=asc");
    let order = if is_ascending { Order::Ascending } else { Order::Descending };
    let mut asked = Asked { path, after: None, order };
    let (part, rest): (Vec<_>, Vec<_>) = query.split('&').partition(|part| part.starts_with("starting_after="));
    let after = part.first().and_then(|part| part.split_once('=')?.1.parse().ok());
    if let Some(after) = after.filter(|_| names_edited(&asked.path, run)) {
        let target = format!("{}?{}", asked.path, rest.join("&"));
        let mut uri = std::mem::take(&mut parts.uri).into_parts();
        uri.path_and_query = target.parse::<PathAndQuery>().ok();
        parts.uri = Uri::from_parts(uri).unwrap_or_default();
        asked.after = Some(after);
    }
    asked
}

/// The reply as the program was told what it shows.
async fn restated(
    run: &Run,
    surface: &dyn Surface,
    asked: &Asked,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Response<ReceivedBody>, Interrupted> {
    let (mut head, body) = received.into_parts();
    let streamed = headers::is_event_stream(&head.headers);
    let kind = headers::text(&head.headers, &header::CONTENT_TYPE).unwrap_or_default();
    if !streamed && !kind.contains("json") {
        return Ok(Response::from_parts(head, body));
    }
    if streamed && !names_edited(&asked.path, run) {
        // A reply may still be in the making: nobody waits for its end to see that nothing of it was edited.
        return Ok(Response::from_parts(head, body));
    }
    let raw = match gather(body, limits).await? {
        Ok(chunks) => joined(chunks),
        Err(rest) => {
            run.recorder.note(&format!(
                "`{}` was fetched, and is too large to be shown as its program was told it",
                asked.path
            ));
            return Ok(Response::from_parts(head, rest));
        }
    };
    let encoding = headers::text(&head.headers, &header::CONTENT_ENCODING).map(str::to_owned);
    let plain = decode::body(&raw, encoding.as_deref()).ok_or_else(|| "its content-encoding cannot be read".to_owned());
    let shown = plain.and_then(|plain| {
        let told = locked(&run.told);
        let edited = &told.edited;
        let shown = if streamed {
            edited.restate_stream(surface, &plain, asked.after)
        } else {
            edited.restate(surface, &plain, asked.order)
        };
        shown.map_err(|error| error.to_string())
    });
    let shown = match shown {
        Ok(None) => return Ok(Response::from_parts(head, inject::made(raw, streamed))),
        Ok(Some(shown)) => shown,
        Err(why) => {
            run.recorder
                .note(&format!("`{}` was fetched, and shows what the upstream keeps, unedited: {why}", asked.path));
            return Ok(Response::from_parts(head, inject::made(raw, streamed)));
        }
    };
    run.recorder.note(&format!("`{}` was fetched, and shown as its program was told it", asked.path));
    headers::body_changed(&mut head.headers);
    head.headers.remove(header::CONTENT_ENCODING);
    Ok(Response::from_parts(head, inject::made(shown, streamed)))
}
