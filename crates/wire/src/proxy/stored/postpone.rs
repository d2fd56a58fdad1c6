//! The first answer to a request for a reply in the background: it says that the reply will be made, and passes as it is.

use hyper::Response;

use super::background::in_the_making;
use crate::{
    fault::Disturbance,
    proxy::{
        chunks::{composed, joined},
        decided::Decided,
        delivery::Delivery,
        error::Interrupted,
        faults, headers,
        pending_reply::PendingReply,
        read_whole::read_whole,
        shared::Proxy,
        skipped,
        upstream::ReceivedBody,
    },
    surface::Reply,
};

/// Why nothing that a plan wants of such a reply is done.
const UNEDITED: &str = "the reply is made in the background, and such replies are not edited";

/// Whether a fault acts on the bytes of the very next reply, whatever that says.
fn acts_at_once(disturbance: &Disturbance) -> bool {
    use Disturbance::{ContentType, Cut, Hang, Pace, Reset};
    matches!(disturbance, Reset(_) | Cut { .. } | Hang { .. } | Pace(_) | ContentType(_))
}

impl Proxy {
    /// The reply to a request for one in the background: passed on as it is, where it only says that it will be made.
    pub(in crate::proxy) async fn postpone(
        &self,
        mut due: PendingReply,
        received: Response<ReceivedBody>,
    ) -> Result<Response<Box<Delivery>>, Interrupted> {
        let limits = &self.limits;
        if !received.status().is_success() || headers::is_event_stream(received.headers()) {
            return due.deliver(received, limits).await;
        }
        let (head, body) = received.into_parts();
        let raw = match read_whole(body, limits).await {
            Ok(Ok(chunks)) => joined(chunks),
            Ok(Err(rest)) => return due.deliver(Response::from_parts(head, rest), limits).await,
            Err(error) => return Err(due.closed(error.into())?),
        };
        let received = Response::from_parts(head.clone(), composed(raw.clone(), false));
        let making = |surface| Some((surface, in_the_making(surface, &head.headers, &raw)?));
        let Some((surface, id)) = due.step.surface.and_then(making) else {
            return due.deliver(received, limits).await;
        };
        refuse(&mut due)?;
        if !due.decision.faults.is_empty() {
            return due.deliver(received, limits).await;
        }
        let mut step = due.step;
        let number = step.numbers.step;
        step.run.recorder.note(&format!("step {number} is made in the background, as `{id}`"));
        let named = Reply { id: id.clone(), ..Reply::default() };
        step.storage.name(&step.run.retold, &named);
        if let Some(ids) = &step.run.stored_ids {
            ids.learn(&named, b"");
        }
        step.wait_on();
        self.runs.background.wait_for(id, surface, step, head, raw);
        Ok(received.map(|body| Delivery::pass(body, limits.silence_timeout)))
    }
}

/// Writes down that no edit of a reply in the background is made; what a fault of the connection does stays due.
fn refuse(due: &mut PendingReply) -> Result<(), Interrupted> {
    let PendingReply { step, decision, .. } = due;
    skipped::all_failed(step, &decision.edits.response, &UNEDITED.to_owned().into())?;
    let (at_once, edits): (Vec<_>, Vec<_>) =
        std::mem::take(decision).faults.into_iter().partition(|fault| acts_at_once(&fault.disturbance));
    for fault in edits.iter().filter(|fault| matches!(fault.disturbance, Disturbance::Reshape)) {
        faults::fault_failed(step, fault, UNEDITED)?;
    }
    *decision = Decided { faults: at_once, ..Decided::default() };
    Ok(())
}
