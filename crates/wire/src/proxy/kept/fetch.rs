//! What the upstream keeps and a program fetches later by its id: shown as the program was told it, where an edit on the
//! way had made that another. It is no model call: it opens no step, and the run's record notes it.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Request, Response, Uri, header,
    http::{request::Parts, uri::PathAndQuery},
};

use super::awaited::{DELETED, Fetch, FetchedReply};
use crate::{
    proxy::{
        arrival::{Arrived, Hinted},
        delivery::Delivery,
        error::Interrupted,
        exchange::Proxy,
        gather::{gather, joined},
        headers, heavy, inject,
        limits::Limits,
        listen::socket::Link,
        lock::locked,
        run::Run,
        upstream::{ReceivedBody, SentBody, Upload},
    },
    surface::{Surface, door::UnpackedBody, is_list},
    trajectory::RunId,
};

/// What a fetch asks for.
struct AskedFetch {
    path: String,
    /// Whether a list has the newest first.
    newest_first: bool,
    /// The number of the event of a stream after which it goes on.
    after: Option<u64>,
    /// Whether the whole stream was asked for in place of the part: which part that is, the edited numbers say.
    whole: bool,
}

impl Proxy {
    /// A request for something that the upstream keeps.
    pub(in crate::proxy) async fn fetch(
        &self,
        arrived: Arrived,
        surface: &'static dyn Surface,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let named = self.named_run(&arrived.hinted)?;
        let awaited = self.runs.background.at(arrived.parts.uri.path(), named.as_ref());
        let edited = self.run_that_edited(&arrived.parts, named.as_ref());
        let Some(run) = awaited.as_ref().map(|awaited| Arc::clone(&awaited.run)).or(edited) else {
            return self.pass(arrived).await;
        };
        let Arrived { mut parts, body, .. } = arrived;
        run.seen();
        let patience = headers::patience(&parts.headers);
        headers::to_upstream(&mut parts.headers, self.hint_headers(), true);
        let mut asked = AskedFetch::of(&parts);
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
    pub(in crate::proxy) fn deleted(&self, path: &str, hinted: &Hinted) -> Result<(), Interrupted> {
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
            Some(id) => self.runs.find(id).filter(|run| locked(&run.told).has_edits()),
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
    path.split('/').any(|segment| told.concerns(segment))
}

impl AskedFetch {
    fn of(parts: &Parts) -> Self {
        let pairs = || parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let value = |key: &str| pairs().filter(|(name, _)| *name == key).map(|(_, value)| value).next_back();
        Self {
            path: parts.uri.path().to_owned(),
            newest_first: value("order") != Some("asc"),
            after: value("starting_after").and_then(|after| after.parse().ok()),
            whole: false,
        }
    }
}

/// The same stream from its beginning.
fn without_start(uri: &Uri) -> Uri {
    let query = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("starting_after="));
    let target = format!("{}?{}", uri.path(), query.collect::<Vec<_>>().join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = target.parse::<PathAndQuery>().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
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
    let restate = || {
        let UnpackedBody { plain, refused, .. } = UnpackedBody::of(&raw, encoding.as_deref());
        let plain = refused.map_or(Ok(plain), |error| Err(error.to_string()))?;
        note_edited_requests(run, asked, &plain);
        let told = locked(&run.told);
        let edited = &told.edited;
        let shown = if streamed {
            edited.restate_stream(surface, &plain, asked.after)
        } else {
            edited.restate(surface, &plain, asked.newest_first)
        };
        shown.map_err(|error| error.to_string())
    };
    let shown = match heavy::in_turn(raw.len(), restate).await {
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

/// Says so in the record where a program may see a request as it did not send it: in lists, under ids that the upstream
/// made, an edited request stands as the upstream got it.
fn note_edited_requests(run: &Run, asked: &AskedFetch, fetched: &Bytes) {
    if locked(&run.told).has_edited_requests() && is_list(fetched) {
        let path = &asked.path;
        run.recorder
            .note(&format!("`{path}` was fetched: requests stand in it as the upstream got them, edits included"));
    }
}
