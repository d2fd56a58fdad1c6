//! A model of which the truth is known: each agent adds one, and what else it does is the world's.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, header, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

/// What keeps replies between the model and the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    None,
    /// The whole reply again, with its id.
    SameIds,
    /// Its words again, under an id of their own.
    NewIds,
}

/// What a model does.
#[derive(Debug)]
pub struct World {
    /// How often the solver is wrong by chance.
    pub noise: f64,
    /// How often the judge is.
    pub judge_errs: f64,
    pub cache: Cache,
    /// Whether the solver is wrong each time.
    pub broken: AtomicBool,
    /// Whether nothing is said twice in the same words.
    pub wordy: bool,
    pub seed: u64,
    pub calls: AtomicU64,
    /// How often each request came, and what was replied first.
    pub known: Mutex<HashMap<String, (u64, Value)>>,
}

impl World {
    /// One in which nothing goes wrong.
    pub fn plain(seed: u64) -> Self {
        Self {
            noise: 0.0,
            judge_errs: 0.0,
            cache: Cache::None,
            broken: AtomicBool::new(false),
            wordy: true,
            seed,
            calls: AtomicU64::new(0),
            known: Mutex::default(),
        }
    }

    pub fn asked(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Listens: the base URL.
    pub async fn serve(self: &Arc<Self>) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let world = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let world = Arc::clone(&world);
                let service = service_fn(move |request: Request<Incoming>| {
                    let world = Arc::clone(&world);
                    async move {
                        let body = request.into_body().collect().await.expect("a body").to_bytes();
                        let reply = world.reply(&String::from_utf8_lossy(&body)).to_string();
                        let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
                        Ok::<_, Infallible>(response.body(Full::new(bytes::Bytes::from(reply))).expect("a response"))
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        url
    }

    fn reply(&self, request: &str) -> Value {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let mut known = self.known.lock().expect("unpoisoned");
        let (times, first) = known.entry(request.to_owned()).or_default();
        *times += 1;
        if *times > 1 && self.cache == Cache::SameIds {
            return first.clone();
        }
        // Drawn by what is asked and how often it was: the same whatever else runs at the time.
        let draws = Draws { seed: self.seed, request, times: *times };
        let words = match first["choices"][0]["message"]["content"].as_str() {
            Some(kept) if self.cache == Cache::NewIds => kept.to_owned(),
            _ => self.words(&serde_json::from_str(request).expect("JSON"), &draws),
        };
        let reply = json!({"id": format!("chatcmpl-{call:08}"), "object": "chat.completion", "created": 1_700_000_000 + call,
            "model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words}}]});
        if *times == 1 {
            *first = reply.clone();
        }
        reply
    }

    fn words(&self, asked: &Value, draws: &Draws<'_>) -> String {
        let said = |number: usize| asked["messages"][number]["content"].as_str().unwrap_or_default();
        let (system, user) = (said(0), said(1));
        if system.contains("You grade") {
            let (_, graded) = user.split_once("<reference>").expect("a reference");
            let (reference, candidate) = graded.split_once("<candidate>").expect("a candidate");
            let right: i64 = reference.split(['\n', '<']).find_map(|word| word.trim().parse().ok()).expect("a number");
            let correct = (last(candidate) == right) != draws.below(self.judge_errs, "judge");
            let verdict = if correct { "correct" } else { "incorrect" };
            return json!({"reason": "I compared the numbers", "verdict": verdict}).to_string();
        }
        let who = system.split_whitespace().nth(3).unwrap_or_default().trim_end_matches('.');
        let chance = draws.below(self.noise, "noise");
        let wrong = who == "solver" && (self.broken.load(Ordering::SeqCst) || chance);
        let value = last(user) + 1 + if wrong { 1000 } else { 0 };
        let style = if self.wordy { format!(" ({})", draws.number("style") % 1_000_000) } else { String::new() };
        let order = system.lines().find(|line| line.starts_with("Count ")).unwrap_or_default();
        format!("I am {who}{order} and worked it out with care{style}. VALUE={value}")
    }
}

/// Draws that depend on a request and on how often it was made before.
struct Draws<'a> {
    seed: u64,
    request: &'a str,
    times: u64,
}

impl Draws<'_> {
    fn number(&self, of: &str) -> u64 {
        let hash = blake3::hash(format!("{} {of} {} {}", self.seed, self.times, self.request).as_bytes());
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
    }

    fn below(&self, chance: f64, of: &str) -> bool {
        let part = u32::try_from(self.number(of) >> 32).expect("32 bits");
        f64::from(part) < chance * 4_294_967_296.0
    }
}

/// The last value of a text.
fn last(text: &str) -> i64 {
    let after = text.rsplit_once("VALUE=").map_or("0", |(_, after)| after);
    let digits: String = after.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
    digits.parse().unwrap_or_default()
}
