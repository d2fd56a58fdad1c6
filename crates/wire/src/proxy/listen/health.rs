//! `/healthz` and `/readyz`: whether the process lives, and whether it can record. Whoever asks is told, without a token, and
//! nothing of any run.

use bytes::Bytes;
use hyper::{Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::proxy::{delivery::Delivery, headers::MARK, shared::Proxy};

/// Whether the process lives.
const LIVES: &str = "/healthz";
/// Whether it can record.
const READY: &str = "/readyz";
/// What is answered here.
pub const HEALTH_PATHS: [&str; 2] = [LIVES, READY];

/// The answer to a question for health, if the request is one that is answered here. `stops`: the server was told to stop.
pub(super) async fn answer<B>(proxy: &Proxy, request: &Request<B>, stops: bool) -> Option<Response<Box<Delivery>>> {
    if !proxy.gate.answers_health || !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    match request.uri().path() {
        LIVES => Some(composed_response(StatusCode::OK, None, &json!({"status": "ok"}))),
        READY if stops => {
            Some(unready("stopping", "the proxy is shutting down", "its runs stay open: ask again when it is back"))
        }
        READY => {
            let log_dir = proxy.runs.template().log_dir.clone();
            Some(if proxy.runs.disk.has_room(log_dir).await {
                composed_response(StatusCode::OK, None, &json!({"status": "ok"}))
            } else {
                unready("recording_failed", "nothing can be recorded", "check the disk of the log directory")
            })
        }
        _ => None,
    }
}

fn unready(code: &'static str, message: &str, hint: &str) -> Response<Box<Delivery>> {
    let error = json!({"error": {"code": code, "message": message, "hint": hint}});
    composed_response(StatusCode::SERVICE_UNAVAILABLE, Some(code), &error)
}

fn composed_response(status: StatusCode, code: Option<&'static str>, body: &Value) -> Response<Box<Delivery>> {
    let mut response = Response::new(Delivery::composed(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    if let Some(code) = code {
        headers.insert(MARK, header::HeaderValue::from_static(code));
        headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    response
}
