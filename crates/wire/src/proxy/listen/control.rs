//! The control listener: its own port, its own token. A harness asks here for runs, ends them, and says what they achieved and
//! what becomes known of them. `docs/reference/http.md` lists what it answers.

mod audit;
mod caller;
mod refusal;
mod report;
mod standing;

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpListener;

use self::{audit::ChangeAudit, caller::Caller, refusal::Refusal};
use super::gate::Token;
use crate::{
    proxy::{arrival, exchange::Proxy, headers, limits::Limits, memory::HeldMemory},
    trajectory::RunId,
};

/// Largest body of a control request, in bytes.
const BODY_MAX: usize = 64 << 10;
/// Longest wait for a control request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until `stop` resolves. Every request must carry `Authorization: Bearer <token>`: the control token, or that of a user,
/// who is shown only runs of its own.
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
                        None => answer(&proxy, &token, request).await.unwrap_or_else(Refusal::response),
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

async fn answer(server: &Arc<Proxy>, token: &Token, request: Request<Incoming>) -> ControlResult {
    let caller = Caller::identify(server, token, headers::api_key(request.headers()).unwrap_or_default())?;
    let path = request.uri().path().to_owned();
    let audit = &ChangeAudit::new(&server.runs.template().log_dir, caller.name(), &path);
    let (proxy, path) = caller.line(server, &path)?;
    let proxy = &*proxy;
    let mut segments = path.strip_prefix('/').unwrap_or_default().split('/');
    let place = [(); 6].map(|()| segments.next());
    match (request.method(), place) {
        (&Method::POST, [Some("outcome"), None, ..]) => report::outcome((proxy, audit), None, request).await,
        (&Method::POST, [Some("roster"), None, ..]) => report::roster((proxy, audit), None, request).await,
        (&Method::POST, [Some("task"), None, ..]) => report::task((proxy, audit), None, request).await,
        (&Method::GET, [Some("metrics"), None, ..]) => metrics(server, &caller),
        (&Method::GET, [Some("aegis"), Some("v1"), Some("runs"), None, ..]) => standing::list(proxy).await,
        (&Method::GET, [Some("aegis"), Some("v1"), Some("runs"), Some(run), None, ..]) => {
            standing::read(proxy, &named(run)?).await
        }
        (
            &Method::POST,
            [Some("aegis"), Some("v1"), Some("runs"), Some(run), Some(what), None]
            | [Some("r"), Some(run), Some(what @ "outcome"), None, ..],
        ) => {
            let run = named(run)?;
            match what {
                "end" => standing::end(proxy, audit, &run).await,
                "outcome" => report::outcome((proxy, audit), Some(run), request).await,
                "roster" => report::roster((proxy, audit), Some(run), request).await,
                "task" => report::task((proxy, audit), Some(run), request).await,
                _ => Err(Refusal::place()),
            }
        }
        _ => Err(Refusal::place()),
    }
}

/// The run that a path names.
fn named(run: &str) -> Result<RunId, Refusal> {
    RunId::parse(run).map_err(|error| Refusal::request("invalid_id", error.to_string()))
}

fn metrics(proxy: &Arc<Proxy>, caller: &Caller) -> ControlResult {
    caller.check_operator()?;
    let signs: Vec<_> = proxy.runs.watch().map(|watch| watch.counts().collect()).unwrap_or_default();
    let open_runs = || proxy.lines().iter().map(|line| line.runs.open_runs()).sum();
    let counted = proxy.runs.monitor().and_then(|monitor| monitor.counts().text(open_runs(), &signs).ok());
    let text = counted.ok_or_else(Refusal::no_counts)?;
    Ok(made(StatusCode::OK, METRICS, text))
}

/// Reads what a request reports.
async fn read<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Refusal> {
    let limits = Limits { max_body_bytes: BODY_MAX, body_timeout: TIMEOUT, ..Limits::default() };
    let body = arrival::collect(request.into_body(), &limits, &mut HeldMemory::default()).await;
    let body = body.map_err(|error| Refusal::request("invalid_body", error.to_string()))?;
    serde_json::from_slice(&body).map_err(|error| Refusal::request("invalid_body", error.to_string()))
}

fn json(value: &Value) -> Response<Full<Bytes>> {
    made(StatusCode::OK, JSON, value.to_string())
}

fn made(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
