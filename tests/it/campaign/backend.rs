//! The simulator behind a socket, with a count of what it was asked, and refusals on request.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use aegis::{proxy::upstream::Upstream as _, simulator::Simulator};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;

/// What becomes of a request, by its number.
pub type GateCheck = dyn Fn(usize) -> Option<(StatusCode, &'static str)> + Send + Sync;

/// Which requests get a wrong figure.
type Wrong = dyn Fn(&[u8]) -> bool + Send + Sync;

/// A backend that counts.
pub struct Backend {
    pub url: String,
    pub calls: Arc<AtomicUsize>,
    /// The bodies that were answered.
    pub answered: Arc<Mutex<Vec<Bytes>>>,
}

impl Backend {
    /// One that answers all.
    pub async fn start() -> Self {
        Self::refusing(|_| None, Duration::ZERO).await
    }

    /// One whose words depend on every byte that it is asked, as those of a model do at temperature 0: of one request in `of` it
    /// gets a figure wrong, and always the same ones.
    pub async fn chaotic(of: u8) -> Self {
        let wrong = move |asked: &[u8]| blake3::hash(asked).as_bytes()[0].is_multiple_of(of);
        Self::serving(|_| None, Duration::ZERO, Arc::new(wrong)).await
    }

    /// One that stumbles over some words, as a small model does: where the critic is asked with one of them, it gets a figure wrong.
    pub async fn stumbling(words: &'static [&'static str]) -> Self {
        let wrong = |asked: &[u8]| {
            let asked = String::from_utf8_lossy(asked);
            asked.contains("You are the critic.") && words.iter().any(|word| asked.contains(word))
        };
        Self::serving(|_| None, Duration::ZERO, Arc::new(wrong)).await
    }

    /// One that refuses some (status and `Retry-After`), and takes its time.
    pub async fn refusing(
        refuses: impl Fn(usize) -> Option<(StatusCode, &'static str)> + Send + Sync + 'static,
        takes: Duration,
    ) -> Self {
        Self::serving(refuses, takes, Arc::new(|_: &[u8]| false)).await
    }

    async fn serving(
        refuses: impl Fn(usize) -> Option<(StatusCode, &'static str)> + Send + Sync + 'static,
        takes: Duration,
        wrong: Arc<Wrong>,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let calls = Arc::new(AtomicUsize::new(0));
        let answered: Arc<Mutex<Vec<Bytes>>> = Arc::default();
        let (simulator, refuses): (_, Arc<GateCheck>) = (Arc::new(Simulator::new(7)), Arc::new(refuses));
        let (counted, kept) = (Arc::clone(&calls), Arc::clone(&answered));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (simulator, refuses) = (Arc::clone(&simulator), Arc::clone(&refuses));
                let (counted, kept, wrong) = (Arc::clone(&counted), Arc::clone(&kept), Arc::clone(&wrong));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (simulator, kept, wrong) = (Arc::clone(&simulator), Arc::clone(&kept), Arc::clone(&wrong));
                    let call = counted.fetch_add(1, Ordering::SeqCst);
                    let refusal = refuses(call);
                    async move {
                        tokio::time::sleep(takes).await;
                        Ok::<_, Infallible>(match refusal {
                            Some((status, after)) => {
                                let response = Response::builder().status(status).header("retry-after", after);
                                response.body(Full::default()).expect("a response")
                            }
                            None => reply(&simulator, request, &kept, &*wrong).await,
                        })
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { url, calls, answered }
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Forgets what it was asked.
    pub fn forget(&self) {
        self.calls.store(0, Ordering::SeqCst);
        self.answered.lock().expect("the lock").clear();
    }

    /// The answered bodies, sorted: what was paid for.
    pub fn paid(&self) -> Vec<Bytes> {
        let mut paid = self.answered.lock().expect("the lock").clone();
        paid.sort();
        paid
    }
}

async fn reply(
    simulator: &Simulator,
    request: Request<Incoming>,
    kept: &Mutex<Vec<Bytes>>,
    wrong: &Wrong,
) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Response::new(Full::default()) };
    let asked = body.to_bytes();
    kept.lock().expect("the lock").push(asked.clone());
    let request = Request::from_parts(parts, Either::Left(Full::new(asked.clone())));
    let (head, body) = simulator.send(request).await.expect("a reply").into_parts();
    let mut body = body.collect().await.expect("a body").to_bytes();
    if wrong(&asked) {
        body = with_a_wrong_figure(&body);
    }
    Response::from_parts(head, Full::new(body))
}

/// The reply with another last figure.
fn with_a_wrong_figure(body: &[u8]) -> Bytes {
    let mut reply: serde_json::Value = serde_json::from_slice(body).expect("a reply");
    let content = &mut reply["choices"][0]["message"]["content"];
    let mut text = content.as_str().expect("words").to_owned();
    if let Some(at) = text.rfind(|c: char| c.is_ascii_digit()) {
        let figure = (text.as_bytes()[at] - b'0' + 1) % 10;
        text.replace_range(at..=at, &figure.to_string());
    }
    *content = text.into();
    serde_json::to_vec(&reply).expect("JSON").into()
}
