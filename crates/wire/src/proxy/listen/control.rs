//! The control listener: its own port, its own token. A harness reports here what a run achieved, and what becomes known of it
//! after it has ended.
//!
//! `POST /outcome` with `{"run": "…", "verdict": "success" | "failure" | "unknown", "evidence": "…"}`, of a run under way or of one that
//! has ended; `POST /roster` with `{"run": "…", "agent": [{"name": "…", …}]}` and `POST /task` with `{"run": "…", "task": "…"}` of one that has
//! ended; `GET /metrics` for Prometheus.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::net::TcpListener;

use super::gate::Token;
use crate::{
    identity::RosterRule,
    proxy::{arrival, exchange::Proxy, headers, limits::Limits, memory::HeldMemory},
    recording::{self, Amendment, FactSource, GivenRoster, Giver, RecordingError},
    ruling,
    trajectory::{Outcome, Reason, RunId, Verdict},
};

/// Largest body of a control request, in bytes.
const BODY_MAX: usize = 64 << 10;
/// Longest wait for a control request.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeReport {
    run: RunId,
    verdict: Verdict,
    #[serde(default)]
    evidence: String,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RosterReport {
    run: RunId,
    agent: Vec<RosterRule>,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskReport {
    run: RunId,
    task: String,
    by: Option<String>,
}

/// Serves until `stop` resolves. Every request must carry `Authorization: Bearer <token>`.
pub async fn serve_control(proxy: Arc<Proxy>, listener: TcpListener, token: &str, stop: impl Future<Output = ()>) {
    let token = Token::new(token);
    let mut stop = pin!(stop);
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = &mut stop => return,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (proxy, token) = (Arc::clone(&proxy), token.clone());
        tasks.spawn(async move {
            let service = service_fn(move |request| {
                let (proxy, token) = (Arc::clone(&proxy), token.clone());
                async move {
                    Ok::<_, Infallible>(match proxy.gate.refusal(request.headers()) {
                        Some(refusal) => refusal.map(Full::new),
                        None => answer(&proxy, &token, request).await.unwrap_or_else(refused),
                    })
                }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// What is answered; for what is wrong, a status and a sentence.
type ControlResult = Result<Response<Full<Bytes>>, (StatusCode, String)>;

const JSON: &str = "application/json";
/// What Prometheus asks for (`OpenMetrics` 1.0).
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn answer(proxy: &Proxy, token: &Token, request: Request<Incoming>) -> ControlResult {
    let refuse = |status, why: &str| Err((status, why.to_owned()));
    let given = headers::api_key(request.headers()).unwrap_or_default();
    if !token.is(given) {
        return refuse(StatusCode::UNAUTHORIZED, "expected `Authorization: Bearer` with the control token");
    }
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/outcome") => take_outcome(proxy, request).await,
        (&Method::POST, "/roster") => {
            let RosterReport { run, agent, by } = read(request).await?;
            let roster = Some(GivenRoster { file: "POST /roster".to_owned(), rules: agent });
            amend(proxy, run, Amendment { roster, ..Amendment::default() }, by).await
        }
        (&Method::POST, "/task") => {
            let TaskReport { run, task, by } = read(request).await?;
            amend(proxy, run, Amendment { task: Some(task), ..Amendment::default() }, by).await
        }
        (&Method::GET, "/metrics") => metrics(proxy),
        _ => refuse(StatusCode::NOT_FOUND, "expected POST /outcome, /roster or /task, or GET /metrics"),
    }
}

fn metrics(proxy: &Proxy) -> ControlResult {
    let signs: Vec<_> = proxy.runs.watch().map(|watch| watch.counts().collect()).unwrap_or_default();
    let counted = proxy.runs.monitor().and_then(|monitor| monitor.counts().text(proxy.runs.open_runs(), &signs).ok());
    let text = counted.ok_or_else(|| (StatusCode::NOT_FOUND, "this server counts nothing".to_owned()))?;
    Ok(made(StatusCode::OK, METRICS, text))
}

/// Reads what a request reports.
async fn read<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, (StatusCode, String)> {
    let limits = Limits { max_body_bytes: BODY_MAX, body_timeout: TIMEOUT, ..Limits::default() };
    let body = arrival::collect(request.into_body(), &limits, &mut HeldMemory::default()).await;
    let body = body.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    serde_json::from_slice(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

async fn take_outcome(proxy: &Proxy, request: Request<Incoming>) -> ControlResult {
    let OutcomeReport { run: id, verdict, evidence, by } = read(request).await?;
    let outcome = Outcome { verdict, reason: Some(Reason::Reported), evidence };
    let Some(run) = proxy.runs.find(&id) else {
        return amend(proxy, id, Amendment { outcome: Some(outcome), ..Amendment::default() }, by).await;
    };
    let kept = run.recorder.set_outcome(outcome);
    kept.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    Ok(made(StatusCode::OK, JSON, serde_json::json!({"ok": true}).to_string()))
}

/// Adds to what is known of a run of this server that has ended.
async fn amend(proxy: &Proxy, run: RunId, amendment: Amendment, by: Option<String>) -> ControlResult {
    let template = proxy.runs.template();
    let (dir, settings) = (template.log_dir.join(run.as_str()), template.recording.clone());
    let giver = Giver { source: FactSource::Http, by };
    // A long recording takes its time to be read.
    let amended = tokio::task::spawn_blocking(move || {
        let added = recording::amend(&dir, &amendment, &giver, &settings)?;
        Ok((added, ruling::settle_amended(&dir)?.ok()))
    });
    let amended = amended.await.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let (added, label) = amended.map_err(|error: RecordingError| match &error {
        RecordingError::NotARun { .. } => {
            (StatusCode::NOT_FOUND, format!("no run `{run}` is under way, and none of that name was recorded here"))
        }
        RecordingError::Locked { .. } => {
            (StatusCode::CONFLICT, format!("run `{run}` is under way: say it when it has ended"))
        }
        RecordingError::Roster { .. } => (StatusCode::BAD_REQUEST, error.to_string()),
        RecordingError::FactsFull { .. } => (StatusCode::CONFLICT, error.to_string()),
        _ => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    })?;
    Ok(made(StatusCode::OK, JSON, serde_json::json!({"ok": true, "added": added, "label": label}).to_string()))
}

fn refused((status, why): (StatusCode, String)) -> Response<Full<Bytes>> {
    made(status, JSON, serde_json::json!({"error": why}).to_string())
}

fn made(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
