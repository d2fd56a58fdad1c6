//! The control listener: its own port, its own token. A harness asks here for runs, ends them, and says what they achieved and
//! what becomes known of them. `docs/reference/http.md` lists what it answers.

mod audit;
mod caller;
mod refusal;
mod report;
mod route;
mod standing;

use std::{convert::Infallible, future::Future, pin::pin, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Serialize, de::DeserializeOwned};
use tokio::net::TcpListener;

pub use audit::audit_schema;
pub use route::{CONTROL_CODES, CONTROL_ROUTES, ControlRoute, control_error_schema};

use self::{audit::ChangeAudit, caller::Caller, refusal::Refusal, route::ControlAction};
use super::gate::Token;
use crate::{
    proxy::{arrival, headers, limits::Limits, memory::HeldMemory, server::Server},
    recording::Masked,
    trajectory::RunId,
};

/// Largest body of a control request, in bytes.
const BODY_MAX: usize = 64 << 10;
/// Longest wait for a control request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until `stop` resolves. Every request must carry `Authorization: Bearer <token>`: the control token, or that of a user,
/// who is shown only runs of its own.
pub async fn serve_control(
    server: impl Into<Server>,
    listener: TcpListener,
    token: &str,
    stop: impl Future<Output = ()>,
) {
    let (server, token) = (server.into(), Token::new(token));
    let mut stop = pin!(stop);
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = &mut stop => return,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (server, token) = (server.clone(), token.clone());
        tasks.spawn(async move {
            let service = service_fn(move |request| {
                let (server, token) = (server.clone(), token.clone());
                async move {
                    Ok::<_, Infallible>(match server.line.gate.refusal(request.headers()) {
                        Some(refusal) => refusal.map(Full::new),
                        None => answer(&server, &token, request).await.unwrap_or_else(Refusal::response),
                    })
                }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// What is answered.
type ControlResult = Result<Response<Full<Bytes>>, Refusal>;

const JSON: &str = "application/json";
/// What Prometheus asks for (`OpenMetrics` 1.0).
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

async fn answer(server: &Server, token: &Token, request: Request<Incoming>) -> ControlResult {
    let caller = Caller::identify(server, token, headers::api_key(request.headers()).unwrap_or_default())?;
    let path = request.uri().path().to_owned();
    let audit = &ChangeAudit::new(&server.line.runs.template().log_dir, caller.name(), &path);
    let (proxy, path) = caller.line(server, &path)?;
    let proxy = &*proxy;
    let (action, run) = route::matched(request.method(), &path).ok_or_else(Refusal::place)?;
    let run = run.map(named).transpose()?;
    match (action, run) {
        (ControlAction::Outcome, run) => report::outcome(proxy, audit, run, request).await,
        (ControlAction::Roster, run) => report::roster(proxy, audit, run, request).await,
        (ControlAction::Task, run) => report::task(proxy, audit, run, request).await,
        (ControlAction::Metrics, _) => metrics(server, &caller),
        (ControlAction::List, _) => standing::list(proxy).await,
        (ControlAction::Read, Some(run)) => standing::read(proxy, &run).await,
        (ControlAction::End, Some(run)) => standing::end(proxy, audit, &run).await,
        (ControlAction::Open, _) => standing::open(proxy, audit, request).await,
        (ControlAction::Annotate, Some(run)) => report::annotation(proxy, audit, &run, request).await,
        (ControlAction::Annotations, Some(run)) => report::annotations(proxy, &run).await,
        (ControlAction::Keep, Some(run)) => standing::keep(proxy, audit, &run, true).await,
        (ControlAction::Release, Some(run)) => standing::keep(proxy, audit, &run, false).await,
        (_, None) => Err(Refusal::place()),
    }
}

/// The run that a path names.
fn named(run: &str) -> Result<RunId, Refusal> {
    RunId::parse(run).map_err(|error| Refusal::request("invalid_id", error.to_string()))
}

fn metrics(server: &Server, caller: &Caller) -> ControlResult {
    caller.check_operator()?;
    let signs: Vec<_> = server.line.runs.watch().map(|watch| watch.counts().collect()).unwrap_or_default();
    let open_runs = || server.lines().iter().map(|line| line.runs.open_runs()).sum();
    let counted = server.line.runs.monitor().and_then(|monitor| monitor.counts().text(open_runs(), &signs).ok());
    let text = counted.ok_or_else(Refusal::no_counts)?;
    Ok(composed_response(StatusCode::OK, METRICS, text))
}

/// Reads what a request reports.
async fn read<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Refusal> {
    let limits = Limits { max_body_bytes: BODY_MAX, body_timeout: TIMEOUT, ..Limits::default() };
    let body = arrival::collect(request.into_body(), &limits, &mut HeldMemory::default()).await;
    let body = body.map_err(|error| Refusal::request("invalid_body", error.to_string()))?;
    serde_json::from_slice(&body).map_err(|error| Refusal::request("invalid_body", error.to_string()))
}

fn json(reply: &impl Serialize) -> ControlResult {
    // Through a value, so that a number has the digits that `aegis show` prints.
    let reply = serde_json::to_value(reply).map_err(|_| Refusal::internal())?;
    Ok(composed_response(StatusCode::OK, JSON, reply.to_string()))
}

fn composed_response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(Masked::new(body).into_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
