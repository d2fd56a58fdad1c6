//! What is reported of a run: its outcome whenever that is known, names and task after its end.

use hyper::{Request, body::Incoming};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeAudit, ControlResult, Refusal, json as answered, read};
use crate::{
    identity::RosterRule,
    proxy::{RunStanding, error::ProxyError, shared::Proxy},
    recording::{
        self, Amendment, AmendmentSource, Annotation, FactSource, GivenAnnotation, GivenRoster, RecordingError, RunFact,
    },
    ruling,
    trajectory::{Label, Outcome, Reason, RunId, Verdict},
};

/// The outcome of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeReport {
    run: Option<RunId>,
    verdict: Verdict,
    #[serde(default)]
    evidence: String,
    by: Option<String>,
}

/// The names of agents, by rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RosterReport {
    run: Option<RunId>,
    agent: Vec<RosterRule>,
    by: Option<String>,
}

/// The task of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskReport {
    run: Option<RunId>,
    task: String,
    by: Option<String>,
}

/// That an outcome was set; of a run that has ended, what was added for it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum TakenReply {
    /// Into the recording of a run that goes on.
    Recorded(OkReply),
    /// Beside the recording of one that has ended.
    Amended(Box<AmendedReply>),
}

/// That something was done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OkReply {
    /// True.
    ok: bool,
}

/// What was added to a run that has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AmendedReply {
    /// True.
    ok: bool,
    /// The facts.
    added: Vec<RunFact>,
    /// Its label as it is now.
    label: Option<Label>,
}

/// Takes the outcome of a run: into the recording of one that goes on, beside the recording of one that has ended.
pub(super) async fn outcome(
    proxy: &Proxy,
    audit: &ChangeAudit,
    named: Option<RunId>,
    request: Request<Incoming>,
) -> ControlResult {
    let OutcomeReport { run, verdict, evidence, by } = read(request).await?;
    let id = of_run(named, run)?;
    if proxy.runs.standing(&id).is_none() {
        return Err(Refusal::unknown(&id));
    }
    let outcome = Outcome { verdict, reason: Some(Reason::Reported), evidence };
    audit.change(&id, "outcome", set_outcome(proxy, id.clone(), outcome, by)).await
}

async fn set_outcome(proxy: &Proxy, id: RunId, outcome: Outcome, by: Option<String>) -> ControlResult {
    let later = Amendment { outcome: Some(outcome.clone()), ..Amendment::default() };
    match proxy.runs.standing(&id) {
        None => return Err(Refusal::unknown(&id)),
        Some(RunStanding::Ended) => return amend(proxy, id, later, by).await,
        Some(RunStanding::Open | RunStanding::Idle) => {}
    }
    let run = match proxy.runs.get(&id).await {
        Ok(run) => run,
        // It has ended meanwhile, or only another server can go on with it.
        Err(ProxyError::Sealed(_) | ProxyError::Recording(RecordingError::OtherPlan { .. })) => {
            return amend(proxy, id, later, by).await;
        }
        Err(error) => return Err(Refusal::proxy(&id, &error)),
    };
    let kept = tokio::task::spawn_blocking(move || run.recorder.set_outcome(outcome));
    kept.await.map_err(|_| Refusal::internal())?.map_err(|error| Refusal::recording(&id, &error))?;
    answered(&TakenReply::Recorded(OkReply { ok: true }))
}

/// Takes the names of the agents of a run that has ended.
pub(super) async fn roster(
    proxy: &Proxy,
    audit: &ChangeAudit,
    named: Option<RunId>,
    request: Request<Incoming>,
) -> ControlResult {
    let RosterReport { run, agent, by } = read(request).await?;
    let roster = Some(GivenRoster { file: "POST /roster".to_owned(), rules: agent });
    let amendment = Amendment { roster, ..Amendment::default() };
    amend_ended(proxy, audit, of_run(named, run)?, "roster", amendment, by).await
}

/// Takes the task of a run that has ended.
pub(super) async fn task(
    proxy: &Proxy,
    audit: &ChangeAudit,
    named: Option<RunId>,
    request: Request<Incoming>,
) -> ControlResult {
    let TaskReport { run, task, by } = read(request).await?;
    let amendment = Amendment { task: Some(task), ..Amendment::default() };
    amend_ended(proxy, audit, of_run(named, run)?, "task", amendment, by).await
}

/// Adds what somebody says of a run: the sender, where no other is named.
pub(super) async fn annotation(
    proxy: &Proxy,
    audit: &ChangeAudit,
    run: &RunId,
    request: Request<Incoming>,
) -> ControlResult {
    let given: GivenAnnotation = read(request).await?;
    if proxy.runs.standing(run).is_none() {
        return Err(Refusal::unknown(run));
    }
    let (dir, sender) = (proxy.runs.template().log_dir.join(run.as_str()), audit.user().to_owned());
    let refused = |error| Refusal::recording(run, &error);
    // A long recording takes its time to be read.
    let reading = tokio::task::spawn_blocking({
        let dir = dir.clone();
        let blind = given.blind;
        move || Ok(given.annotation(&recording::read(&dir)?, &sender, blind))
    });
    let said = reading.await.map_err(|_| Refusal::internal())?.map_err(refused)?;
    let said = said.map_err(|error| Refusal::annotation(&error))?;
    let writing = async {
        let written = tokio::task::spawn_blocking(move || recording::annotate(&dir, &said).map(|()| said));
        let written = written.await.map_err(|_| Refusal::internal())?;
        answered(&written.map_err(|error| Refusal::annotation(&error))?)
    };
    audit.change(run, "annotate", writing).await
}

/// What is said of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AnnotationList {
    run: RunId,
    /// The last word of each annotator.
    annotations: Vec<Annotation>,
}

/// Lists what people say of a run.
pub(super) async fn annotations(proxy: &Proxy, run: &RunId) -> ControlResult {
    if proxy.runs.standing(run).is_none() {
        return Err(Refusal::unknown(run));
    }
    let (dir, run) = (proxy.runs.template().log_dir.join(run.as_str()), run.clone());
    let reading = tokio::task::spawn_blocking(move || {
        recording::annotations(&dir, &run).map(|annotations| AnnotationList { run, annotations })
    });
    let list = reading.await.map_err(|_| Refusal::internal())?;
    answered(&list.map_err(|error| Refusal::annotation(&error))?)
}

/// The run that a report is of: the path or the body names it.
fn of_run(named: Option<RunId>, told: Option<RunId>) -> Result<RunId, Refusal> {
    match (named, told) {
        (Some(named), Some(told)) if named != told => {
            Err(Refusal::request("invalid_body", format!("the path names run `{named}`, the body `{told}`")))
        }
        (Some(run), _) | (None, Some(run)) => Ok(run),
        (None, None) => Err(Refusal::request("invalid_body", "missing field `run`".to_owned())),
    }
}

/// Adds to what is known of a run that has ended.
async fn amend_ended(
    proxy: &Proxy,
    audit: &ChangeAudit,
    run: RunId,
    what: &'static str,
    amendment: Amendment,
    by: Option<String>,
) -> ControlResult {
    match proxy.runs.standing(&run) {
        None => return Err(Refusal::unknown(&run)),
        Some(RunStanding::Open | RunStanding::Idle) => return Err(Refusal::open(&run)),
        Some(RunStanding::Ended) => {}
    }
    audit.change(&run.clone(), what, amend(proxy, run, amendment, by)).await
}

/// Adds to what is known of a run that nobody records.
async fn amend(proxy: &Proxy, run: RunId, amendment: Amendment, by: Option<String>) -> ControlResult {
    match proxy.runs.standing(&run) {
        None => return Err(Refusal::unknown(&run)),
        Some(RunStanding::Open) => return Err(Refusal::open(&run)),
        Some(RunStanding::Idle | RunStanding::Ended) => {}
    }
    let template = proxy.runs.template();
    let (dir, settings) = (template.log_dir.join(run.as_str()), template.recording.clone());
    let giver = AmendmentSource { source: FactSource::Http, by };
    // A long recording takes its time to be read.
    let amended = tokio::task::spawn_blocking(move || {
        let added = recording::amend(&dir, &amendment, &giver, &settings)?;
        Ok((added, ruling::settle_amended(&dir)?.ok()))
    });
    let amended = amended.await.map_err(|_| Refusal::internal())?;
    let (added, label) = amended.map_err(|error: RecordingError| Refusal::recording(&run, &error))?;
    answered(&TakenReply::Amended(Box::new(AmendedReply { ok: true, added, label })))
}
