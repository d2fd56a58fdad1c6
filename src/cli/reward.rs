//! `aegis reward --listen ADDR`: a batch endpoint for reinforcement learning, so that a trainer starts no process a batch.
//!
//! `POST /rewards` with `{"reward": "aegis", "rows": [{"completion": "…", "ground_truth": "…"}, …]}` is answered
//! `{"rewards": [1.0, …]}`, in the order of the rows. A truth is an answer in JSON, as a text or as an object.

use crate::cli::printed::{ListeningAt, NoData, PrintedError, printed};
use std::{convert::Infallible, io::Write, time::Duration};

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use super::{Exit, Failure, Finished, Global, score::Reward, serve::bind, settings, terminal};
use crate::{
    proxy::{Gate, HttpRoute, RouteAnswer, body_schema},
    score::reward_of,
};

/// Largest body of a batch, in bytes.
const BODY_MAX: usize = 64 << 20;
/// Longest wait for the rest of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Options of `reward`.
#[derive(Debug, Args)]
pub(super) struct RewardArgs {
    /// Address to listen on. Port 0 selects a free port and prints it as a JSON line.
    #[arg(long, env = "AEGIS_REWARD_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8485")]
    listen: String,
}

/// All that is answered.
pub(super) const REWARD_ROUTES: &[HttpRoute<()>] = &[HttpRoute::post(
    "/rewards",
    "Rewards completions, in the order of the rows",
    (),
    Some(body_schema::<Batch>),
    RouteAnswer::Json(body_schema::<BatchRewards>),
)];

/// Codes of errors, with the status of each.
pub(super) const REWARD_CODES: &[(&str, u16)] = &[("no_such_path", 404), ("invalid_body", 400), ("body_timeout", 408)];

/// The schema of an error.
pub(super) fn reward_error_schema(generator: &mut SchemaGenerator) -> Schema {
    body_schema::<RewardError<'static>>(generator)
}

/// A batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Batch {
    #[serde(default = "usual")]
    reward: Reward,
    rows: Vec<RewardRow>,
}

/// What a batch earns.
#[derive(Debug, Serialize, JsonSchema)]
struct BatchRewards {
    /// One a row.
    rewards: Vec<f64>,
}

/// Why there is none.
#[derive(Debug, Serialize, JsonSchema)]
struct RewardError<'a> {
    error: PrintedError<'a>,
}

/// One completion with its truth.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RewardRow {
    completion: String,
    /// An answer in JSON, as a text or as an object.
    ground_truth: Value,
}

fn usual() -> Reward {
    Reward::Aegis
}

pub(super) fn run(arguments: &RewardArgs, global: &Global) -> Result<Finished, Failure> {
    settings::block_on(serve(&arguments.listen, global))?
}

async fn serve(listen: &str, global: &Global) -> Result<Finished, Failure> {
    let listener = bind(listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    if listen.ends_with(":0") || global.format == super::OutputFormat::Json {
        let mut out = terminal::stdout();
        let told = writeln!(out, "{}", printed(&ListeningAt { listen: address.to_string(), control: None }))
            .and_then(|()| out.flush());
        told.map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    }
    if !global.quiet {
        talkln!("rewards at http://{address}/rewards");
    }
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| Failure::new(Exit::Infrastructure, error))?;
    tokio::select! {
        () = accept(listener) => {}
        _ = ended.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Finished { exit: Exit::Ok, summary: "no longer listening".to_owned(), data: printed(&NoData {}) })
}

async fn accept(listener: TcpListener) {
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, for example: it passes.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        tasks.spawn(async move {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            let service = service_fn(|request: Request<Incoming>| async move {
                Ok::<_, Infallible>(match Gate::default().refusal(request.headers()) {
                    Some(refusal) => refusal.map(Full::new),
                    None => respond(answer(request).await),
                })
            });
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// What a request has to be.
const HINT: &str = "POST /rewards {\"rows\": [{\"completion\": \"…\", \"ground_truth\": \"…\"}]}";

/// Rewards, or a code with what is wrong.
type RewardResult = Result<Vec<f64>, (&'static str, String)>;

async fn answer(request: Request<Incoming>) -> RewardResult {
    let bad = |why: String| ("invalid_body", why);
    if HttpRoute::matched(REWARD_ROUTES, request.method(), request.uri().path()).is_none() {
        return Err(("no_such_path", "expected POST /rewards".to_owned()));
    }
    let body = tokio::time::timeout(TIMEOUT, Limited::new(request.into_body(), BODY_MAX).collect()).await;
    let body = body.map_err(|_| ("body_timeout", format!("no whole body within {TIMEOUT:?}")))?;
    let body = body.map_err(|error| bad(format!("no body of at most {BODY_MAX} bytes: {error}")))?.to_bytes();
    let batch: Batch = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
    let kind = batch.reward.kind();
    let rewards = batch.rows.iter().enumerate().map(|(number, row)| {
        let text = row.ground_truth.as_str().map_or_else(|| row.ground_truth.to_string(), str::to_owned);
        reward_of(&row.completion, &text, kind).ok_or_else(|| {
            bad(format!("rows[{number}].ground_truth is no answer: expected {{\"faulty_agents\": [...]}}"))
        })
    });
    rewards.collect()
}

fn respond(answered: RewardResult) -> Response<Full<Bytes>> {
    let (status, body) = match answered {
        Ok(rewards) => (200, printed(&BatchRewards { rewards })),
        Err((code, message)) => {
            let status = REWARD_CODES.iter().find(|(known, _)| *known == code).map_or(500, |(_, status)| *status);
            (status, printed(&RewardError { error: PrintedError { code, message: &message, hint: Some(HINT) } }))
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
