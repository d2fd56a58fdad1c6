//! The viewer's own listener: the page, a session for whoever shows the token, and data that is only read.
//!
//! `GET /` and `GET /page/…` hold nothing of any run and are for everybody whom the gate lets in. `POST /session` takes
//! the token, which the page finds in its own address behind `#`, where it gets into no log and no `Referer`, and
//! answers with a cookie. All of `/api/` needs that cookie, or the token in `x-aegis-token`. All of it is for reading, but
//! for `POST /api/annotation/RUN` where somebody annotates.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::{self, HeaderMap, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{
    library::{LibraryAnswer, ViewerLibrary},
    live,
    no_answer::NoAnswer,
    page::{self, PAGE},
    page_data::PageError,
    view_routes::{VIEW_ROUTES, ViewAction, ViewRoute},
};
use crate::{
    proxy::{Gate, Token},
    recording::Masked,
};

/// Longest wait for the rest of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Connections at once.
const CONNECTIONS: usize = 64;
/// The longest body that is read, in bytes: a token.
const BODY_MAX: usize = 1024;
/// The longest annotation that is read, in bytes.
const ANNOTATION_MAX: usize = 16 << 10;

const READING: &str = "this is for reading: GET";

/// What the page may do: run its own scripts, ask its own server, and nothing else. Text can become neither markup nor
/// script, whatever defect the page may have.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Who may look, and at what.
#[derive(Debug)]
pub struct Viewer {
    library: Arc<ViewerLibrary>,
    gate: Gate,
    token: Token,
    /// The cookie's name: cookies know no ports, and there may be several viewers.
    cookie: String,
    /// What the cookie holds; the token itself is in no cookie.
    session: String,
}

impl Viewer {
    /// A viewer at a port, for whoever shows the token; `session` is another secret, for the cookie.
    pub fn new(library: Arc<ViewerLibrary>, port: u16, token: &str, session: String) -> Self {
        let gate = Gate { own_page: true, ..Gate::default() };
        Self { library, gate, token: Token::new(token), cookie: format!("aegis-view-{port}"), session }
    }

    /// Answers whoever comes; never ends by itself.
    pub async fn serve(self, listener: TcpListener) {
        let viewer = Arc::new(self);
        let free = Arc::new(Semaphore::new(CONNECTIONS));
        let mut tasks = JoinSet::new();
        loop {
            let Ok(place) = Arc::clone(&free).acquire_owned().await else { return };
            let accepted = tokio::select! {
                Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Too many open files, for example: it passes.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let viewer = Arc::clone(&viewer);
            tasks.spawn(async move {
                viewer.connection(stream).await;
                drop(place);
            });
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
        let service = service_fn(move |request: Request<Incoming>| {
            let viewer = Arc::clone(&self);
            async move { Ok::<_, Infallible>(viewer.respond(request).await) }
        });
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Sent> {
        if let Some(refusal) = self.gate.refusal(request.headers()) {
            return with_policy(refusal.map(|body| Sent::from_bytes(Masked::new(body))));
        }
        let path = request.uri().path().to_owned();
        if path.starts_with("/api/") && !self.is_open(request.headers()) {
            let why = "open the address that `aegis view` printed: it holds the token";
            return with_policy(plain_response(StatusCode::UNAUTHORIZED, why));
        }
        let answer = match ViewRoute::matched(VIEW_ROUTES, request.method(), &path) {
            Some((ViewAction::Page, _)) => embedded(&PAGE),
            Some((ViewAction::PageFile, _)) => page::file(path.trim_start_matches("/page/"))
                .map_or_else(|| plain_response(StatusCode::NOT_FOUND, "no such file"), embedded),
            Some((ViewAction::Session, _)) => self.open_session(request).await,
            Some((ViewAction::Annotate, names)) if self.library.annotator().is_some() => {
                self.annotate(owned(&names), request).await
            }
            Some((ViewAction::Annotate, _)) => plain_response(StatusCode::METHOD_NOT_ALLOWED, READING),
            Some((ViewAction::Live, names)) => self.follow(owned(&names), request.headers()).await,
            Some((action, names)) => self.ask(action, names.into_iter().map(str::to_owned).collect()).await,
            None if *request.method() == Method::GET => plain_response(StatusCode::NOT_FOUND, "no such page"),
            None => plain_response(StatusCode::METHOD_NOT_ALLOWED, READING),
        };
        with_policy(answer)
    }

    /// Takes the token and gives a cookie.
    async fn open_session(&self, request: Request<Incoming>) -> Response<Sent> {
        let body = tokio::time::timeout(TIMEOUT, Limited::new(request.into_body(), BODY_MAX).collect()).await;
        let Ok(Ok(body)) = body else {
            return plain_response(StatusCode::BAD_REQUEST, "expected the token as the body");
        };
        let body = body.to_bytes();
        if !std::str::from_utf8(&body).is_ok_and(|shown| self.token.is(shown)) {
            return plain_response(StatusCode::UNAUTHORIZED, "this is not the token");
        }
        let mut response = Response::new(Sent::from_bytes(Masked::default()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        let cookie = format!("{}={}; Path=/api; HttpOnly; SameSite=Strict", self.cookie, self.session);
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Whether a request shows the cookie or the token.
    fn is_open(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let session = Token::new(&self.session);
        let token = headers.get("x-aegis-token").and_then(|shown| shown.to_str().ok());
        pairs.any(|(name, value)| name == self.cookie && session.is(value))
            || token.is_some_and(|shown| self.token.is(shown))
    }

    /// Takes what the annotator says of a run. A page of another origin was refused at the gate; one that could slip by
    /// it could not send JSON without asking first, and is never answered.
    async fn annotate(&self, run: String, request: Request<Incoming>) -> Response<Sent> {
        if request.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
            return plain_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected application/json");
        }
        let body = tokio::time::timeout(TIMEOUT, Limited::new(request.into_body(), ANNOTATION_MAX).collect()).await;
        let Ok(Ok(body)) = body else { return plain_response(StatusCode::PAYLOAD_TOO_LARGE, "expected an annotation") };
        let (library, body) = (Arc::clone(&self.library), body.to_bytes());
        match tokio::task::spawn_blocking(move || library.annotate(&run, &body)).await {
            Ok(Ok(said)) => written(said.to_string()),
            Ok(Err(error)) => refused(&error),
            Err(_) => plain_response(StatusCode::INTERNAL_SERVER_ERROR, "it was not written: a defect of this program"),
        }
    }

    async fn follow(&self, run: String, headers: &HeaderMap) -> Response<Sent> {
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
        match live::follow(Arc::clone(&self.library), run, last.unwrap_or_default()).await {
            Ok(events) => streamed(events),
            Err(error) => refused(&error),
        }
    }

    async fn ask(&self, action: ViewAction, names: Vec<String>) -> Response<Sent> {
        let library = Arc::clone(&self.library);
        // Recordings are read from disk, and long ones take their time.
        let answered = tokio::task::spawn_blocking(move || {
            library.answer_to(action, &names.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .await;
        match answered {
            Ok(Ok(LibraryAnswer::Json(value))) => written(value.to_string()),
            Ok(Ok(LibraryAnswer::Text(text))) => written(text),
            Ok(Ok(LibraryAnswer::File(name, bytes))) => {
                let mut response = Response::new(Sent::from_bytes(Masked::new(bytes)));
                typed(&mut response, "application/octet-stream");
                if let Ok(saved) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")) {
                    response.headers_mut().insert(header::CONTENT_DISPOSITION, saved);
                }
                response
            }
            Ok(Err(error)) => refused(&error),
            Err(_) => {
                plain_response(StatusCode::INTERNAL_SERVER_ERROR, "the answer was lost: a defect of this program")
            }
        }
    }
}

/// The one name of a path.
fn owned(names: &[&str]) -> String {
    names.concat()
}

fn written(json: String) -> Response<Sent> {
    let mut response = Response::new(Sent::from_bytes(Masked::new(json)));
    typed(&mut response, "application/json");
    response
}

fn refused(error: &NoAnswer) -> Response<Sent> {
    let status = match error {
        NoAnswer::Unknown(_) => StatusCode::NOT_FOUND,
        NoAnswer::Wrong(_) => StatusCode::BAD_REQUEST,
        NoAnswer::Unreadable(_) => StatusCode::UNPROCESSABLE_ENTITY,
    };
    plain_response(status, &error.to_string())
}

fn plain_response(status: StatusCode, why: &str) -> Response<Sent> {
    let body = serde_json::to_string(&PageError { error: why }).unwrap_or_default();
    let mut response = Response::new(Sent::from_bytes(Masked::new(body)));
    *response.status_mut() = status;
    typed(&mut response, "application/json");
    response
}

fn embedded(file: &'static page::File) -> Response<Sent> {
    let mut response = Response::new(Sent::from_bytes(Masked::fixed(file.text.as_bytes())));
    typed(&mut response, file.kind);
    response
}

fn streamed(events: mpsc::Receiver<Masked>) -> Response<Sent> {
    let mut response = Response::new(Sent::Events(events));
    typed(&mut response, "text/event-stream");
    response
}

fn typed(response: &mut Response<Sent>, kind: &'static str) {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
}

/// The headers of every answer.
fn with_policy(mut response: Response<Sent>) -> Response<Sent> {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// What is sent: all at once, or as it happens.
#[derive(Debug)]
enum Sent {
    Whole(Option<Bytes>),
    Events(mpsc::Receiver<Masked>),
}

impl Sent {
    fn from_bytes(bytes: Masked) -> Self {
        Sent::Whole(Some(Bytes::from(bytes.into_bytes())))
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Sent::Whole(bytes) => Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(Frame::data).map(Ok)),
            Sent::Events(events) => events
                .poll_recv(context)
                .map(|event| event.map(|event| Ok(Frame::data(Bytes::from(event.into_bytes()))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Sent::Whole(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Sent::Whole(bytes) => {
                hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Sent::Events(_) => hyper::body::SizeHint::default(),
        }
    }
}
