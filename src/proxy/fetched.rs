//! What the upstream keeps and a program fetches later by its id: shown as the program was told it, or sent it, where
//! an edit on the way had made that another. It is no model call: it opens no step, and the run's record notes it.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    header,
    http::{request::Parts, uri::PathAndQuery},
};

use super::{
    Limits, Proxy,
    arrival::Hinted,
    ask,
    background::{DELETED, Fetch, FetchedReply},
    decode,
    delivery::Delivery,
    error::Interrupted,
    gather::{gather, joined},
    headers, inject,
    run::{Run, locked},
    socket::Link,
    upload::Upload,
    upstream::{ReceivedBody, SentBody},
};
use crate::{
    surface::{self, ListOrder, Surface},
    trajectory::RunId,
};

/// What a fetch asks for.
struct AskedFetch {
    path: String,
    order: ListOrder,
    /// Whether a list begins where all of it begins.
    from_start: bool,
    /// The number of the event of a stream after which it goes on.
    after: Option<u64>,
    /// Whether the whole stream was asked for in place of the part: which part that is, the edited numbers say.
    whole: bool,
}

impl Proxy {
    /// A request for something that the upstream keeps.
    pub(super) async fn fetch(
        &self,
        mut parts: Parts,
        body: Incoming,
        hinted: &Hinted,
        surface: &'static dyn Surface,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let named = self.named_run(hinted)?;
        let awaited = self.runs.background.at(parts.uri.path(), named.as_ref());
        let edited = self.run_that_edited(&parts, named.as_ref());
        let Some(run) = awaited.as_ref().map(|awaited| Arc::clone(&awaited.run)).or(edited) else {
            return self.pass(parts, body, hinted).await;
        };
        run.seen();
        let patience = ask::patience(&parts.headers);
        headers::to_upstream(&mut parts.headers, self.hint_headers(), true);
        let mut asked = AskedFetch::of(surface, &parts);
        let is_due = awaited.as_ref().is_some_and(|awaited| awaited.is_due);
        asked.whole = asked.after.is_some() && (is_due || names_edited(&asked.path, &run));
        let mut sent = parts.clone();
        if asked.whole {
            sent.uri = without_start(&parts.uri);
        }
        let (upload, _) = Upload::new(body, self.limits.body_timeout);
        let mut received = self.ask(Request::from_parts(sent, Either::Right(upload))).await?;
        if received.status().is_success() {
            if let Some(awaited) = &awaited {
                let fetch = Fetch { link, patience, part: asked.after.is_some() };
                match self.fetch_awaited(awaited, received, &fetch).await? {
                    FetchedReply::Delivered(delivered) => return Ok(*delivered),
                    FetchedReply::Plain(plain) => received = *plain,
                }
            }
            received = match restated(&run, surface, &asked, received, &self.limits).await? {
                Some(shown) => shown,
                // The whole is not what was asked for.
                None => self.ask(Request::from_parts(parts, Either::Left(Full::new(Bytes::new())))).await?,
            };
        }
        Ok(received.map(|body| Delivery::pass(body, self.limits.silence_timeout)))
    }

    async fn ask(&self, request: Request<SentBody>) -> Result<Response<ReceivedBody>, Interrupted> {
        let mut received = self.upstream.send(request).await?;
        headers::strip_hop_by_hop(received.headers_mut());
        Ok(received)
    }

    /// Something that the upstream keeps was deleted: nobody can fetch it any more.
    pub(super) fn deleted(&self, path: &str, hinted: &Hinted) -> Result<(), Interrupted> {
        if let Some(gone) = self.runs.background.at(path, self.named_run(hinted)?.as_ref()) {
            self.runs.background.give_up(DELETED, |awaited| Arc::ptr_eq(awaited, &gone));
        }
        Ok(())
    }

    /// The run that a request names, or that of those which name none.
    fn named_run(&self, hinted: &Hinted) -> Result<Option<RunId>, Interrupted> {
        let named = self.identity.run(&hinted.envelope(), || None)?.map(|(run, _)| run);
        Ok(named.or_else(|| self.default_run.clone()))
    }

    /// The run whose edits may show in what is fetched: the one that is named, or the one that served its id.
    fn run_that_edited(&self, parts: &Parts, named: Option<&RunId>) -> Option<Arc<Run>> {
        match named {
            Some(id) => self.runs.find(id).filter(|run| !locked(&run.told).edited.is_empty()),
            None => self.runs.find_by(|run| concerns(parts.uri.path(), run)),
        }
    }
}

fn names_edited(path: &str, run: &Run) -> bool {
    let told = locked(&run.told);
    path.split('/').any(|segment| told.edited.knows(segment))
}

fn concerns(path: &str, run: &Run) -> bool {
    let told = locked(&run.told);
    path.split('/').any(|segment| told.edited.concerns(segment))
}

impl AskedFetch {
    fn of(surface: &dyn Surface, parts: &Parts) -> Self {
        let pairs = || parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let value = |key: &str| pairs().filter(|(name, _)| *name == key).map(|(_, value)| value).next_back();
        let order = match value("order") {
            Some("asc") => ListOrder::Ascending,
            None if surface.lists_oldest_first() => ListOrder::Ascending,
            _ => ListOrder::Descending,
        };
        Self {
            path: parts.uri.path().to_owned(),
            order,
            from_start: value("after").is_none() && value("before").is_none(),
            after: value("starting_after").and_then(|after| after.parse().ok()),
            whole: false,
        }
    }

    fn list(&self) -> surface::Asked<'_> {
        surface::Asked { path: &self.path, order: self.order, from_start: self.from_start }
    }
}

/// The same stream from its beginning.
fn without_start(uri: &Uri) -> Uri {
    let query = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("starting_after="));
    let target = format!("{}?{}", uri.path(), query.collect::<Vec<_>>().join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = target.parse::<PathAndQuery>().ok();
    Uri::from_parts(parts).unwrap_or_default()
}

/// The reply as the program was told what it shows; `None` where it is the whole of what was asked for in part.
async fn restated(
    run: &Run,
    surface: &dyn Surface,
    asked: &AskedFetch,
    received: Response<ReceivedBody>,
    limits: &Limits,
) -> Result<Option<Response<ReceivedBody>>, Interrupted> {
    let (mut head, body) = received.into_parts();
    let streamed = headers::is_event_stream(&head.headers);
    let kind = headers::text(&head.headers, &header::CONTENT_TYPE).unwrap_or_default();
    // A reply may still be in the making: nobody waits for its end to see that nothing of it was edited.
    let passes = if streamed { !asked.whole && !names_edited(&asked.path, run) } else { !kind.contains("json") };
    if passes {
        return Ok(Some(Response::from_parts(head, body)));
    }
    let raw = match gather(body, limits).await? {
        Ok(chunks) => joined(chunks),
        Err(rest) => {
            run.recorder.note(&format!(
                "`{}` was fetched, and is too large to be shown as its program was told it",
                asked.path
            ));
            return Ok((!asked.whole).then(|| Response::from_parts(head, rest)));
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
            edited.restate(surface, &plain, asked.list())
        };
        shown.map_err(|error| error.to_string())
    });
    let shown = match shown {
        Ok(Some(shown)) => shown,
        unedited => {
            if let Err(why) = unedited {
                let path = &asked.path;
                let note = format!("`{path}` was fetched, and shows what the upstream keeps, unedited: {why}");
                run.recorder.note(&note);
            }
            return Ok((!asked.whole || !streamed).then(|| Response::from_parts(head, inject::made(raw, streamed))));
        }
    };
    run.recorder.note(&format!("`{}` was fetched, and shown as its program was told it", asked.path));
    headers::body_changed(&mut head.headers);
    head.headers.remove(header::CONTENT_ENCODING);
    Ok(Some(Response::from_parts(head, inject::made(shown, streamed))))
}
