//! What the upstream keeps and a program fetches later by its id: it passes as the upstream keeps it. It is no model call and
//! opens no step. Where it shows what an edit on the way had made another, that edit is undone, and the record says so.

use std::sync::Arc;

use http_body_util::Either;
use hyper::{Request, Response};

use crate::{
    proxy::{
        arrival::{Arrived, Hinted},
        delivery::Delivery,
        error::Interrupted,
        headers,
        listen::socket::Link,
        lock::locked,
        run::Run,
        shared::Proxy,
        upstream::Upload,
    },
    recording::ManipulatorFailed,
    trajectory::RunId,
};

impl Proxy {
    /// A request for something that the upstream keeps.
    pub(in crate::proxy) async fn fetch(
        &self,
        arrived: Arrived,
        link: &Arc<Link>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let path = arrived.parts.uri.path().to_owned();
        let named = self.named_run(&arrived.hinted)?;
        let awaited = self.runs.background.at(&path, named.as_ref());
        let edited = self.run_that_edited(&path, named.as_ref());
        let Some(run) = awaited.as_ref().map(|awaited| Arc::clone(&awaited.run)).or(edited) else {
            return self.pass(arrived).await;
        };
        let Arrived { mut parts, body, .. } = arrived;
        run.touch();
        let in_part = parts.uri.query().is_some_and(|query| query.contains("starting_after="));
        self.head_to_upstream(&mut parts.headers, true);
        let (upload, _) = Upload::new(body, &self.limits);
        let mut received = self.upstream.send(Request::from_parts(parts, Either::Right(upload))).await?;
        headers::strip_hop_by_hop(received.headers_mut());
        if received.status().is_success() {
            undone(&run, &path)?;
            if let Some(awaited) = &awaited {
                received = self.runs.background.observe(awaited, received, link, in_part);
            }
        }
        Ok(received.map(|body| Delivery::pass(body, self.limits.silence_timeout)))
    }

    /// Something that the upstream keeps was deleted: nobody can fetch it any more.
    pub(in crate::proxy) fn deleted(&self, path: &str, hinted: &Hinted) -> Result<(), Interrupted> {
        if let Some(gone) = self.runs.background.at(path, self.named_run(hinted)?.as_ref()) {
            self.runs.background.give_up(|awaited| Arc::ptr_eq(awaited, &gone));
        }
        Ok(())
    }

    /// The run that a request names, or that of those which name none.
    fn named_run(&self, hinted: &Hinted) -> Result<Option<RunId>, Interrupted> {
        let named = self.identity.run(&hinted.envelope(), || None)?.map(|(run, _)| run);
        Ok(named.or_else(|| self.default_run.clone()))
    }

    /// The run whose edits are missing in what is fetched: the one that is named, or the one that served its id.
    fn run_that_edited(&self, path: &str, named: Option<&RunId>) -> Option<Arc<Run>> {
        match named {
            Some(id) => self.runs.find(id).filter(|run| locked(&run.retold).has_edits()),
            None => self.runs.find_by(|run| locked(&run.retold).concerns(path)),
        }
    }
}

/// Writes down what a fetch shows otherwise than its program was told it, or had sent it. Edits of replies that it shows
/// unedited are undone: they count as failed.
fn undone(run: &Run, path: &str) -> Result<(), Interrupted> {
    let (edits, requests) = {
        let mut told = locked(&run.retold);
        (told.shown_at(path), told.shows_edited_requests(path))
    };
    for edit in edits {
        let why = format!("`{path}` was fetched, and shows the reply as the upstream keeps it, unedited");
        run.recorder.note(&format!("step {}: {why}", edit.step));
        run.recorder.manipulator_failed(ManipulatorFailed {
            step: edit.step,
            attempt: edit.attempt,
            injection: edit.injection,
            operator: &edit.operator,
            why: &why,
            nothing: false,
        })?;
    }
    if requests {
        let note = format!("`{path}` was fetched: requests stand in it as the upstream got them, edits included");
        run.recorder.note(&note);
    }
    Ok(())
}
