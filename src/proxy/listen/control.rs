//! The control listener: its own port, its own token. A harness reports here what a run achieved.
//!
//! `POST /outcome` with `{"run": "…", "verdict": "success" | "failure" | "unknown", "evidence": "…"}`; `GET /metrics` for Prometheus.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use tokio::net::TcpListener;

use super::gate::Token;
use crate::{
    proxy::{arrival, exchange::Proxy, headers, limits::Limits},
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
        (&Method::GET, "/metrics") => metrics(proxy),
        _ => refuse(StatusCode::NOT_FOUND, "expected POST /outcome or GET /metrics"),
    }
}

fn metrics(proxy: &Proxy) -> ControlResult {
    let signs: Vec<_> = proxy.runs.watch().map(|watch| watch.counts().collect()).unwrap_or_default();
    let counted = proxy.runs.monitor().and_then(|monitor| monitor.counts().text(proxy.runs.open_runs(), &signs).ok());
    let text = counted.ok_or_else(|| (StatusCode::NOT_FOUND, "this server counts nothing".to_owned()))?;
    Ok(made(StatusCode::OK, METRICS, text))
}

async fn take_outcome(proxy: &Proxy, request: Request<Incoming>) -> ControlResult {
    let limits = Limits { max_body_bytes: BODY_MAX, body_timeout: TIMEOUT, ..Limits::default() };
    let body = arrival::collect(request.into_body(), &limits).await;
    let body = body.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let report: OutcomeReport =
        serde_json::from_slice(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let Some(run) = proxy.runs.find(&report.run) else {
        return Err((StatusCode::NOT_FOUND, format!("no run `{}` is under way", report.run)));
    };
    let outcome = Outcome { verdict: report.verdict, reason: Some(Reason::Reported), evidence: report.evidence };
    let kept = run.recorder.set_outcome(outcome);
    kept.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    Ok(made(StatusCode::OK, JSON, serde_json::json!({"ok": true}).to_string()))
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
