//! Small multi-agent systems whose decisive steps are known, run in this process, over real sockets, on the simulator.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use aegis::{
    execution::{Executing, ExecutionPlace, System},
    launch::{Ended, Ending},
    proxy::upstream::{Asker, BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError},
    simulator::Simulator,
    surface::{OpenaiChat, Surface},
    trajectory::RunId,
};
use http_body_util::{BodyExt, Either, Full};
use hyper::{Request, Response};
use serde_json::json;

use crate::{
    lab::{Client, Reply, request},
    scripted::chat_reply,
};

/// How the agents of a system work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Stages one after the other; after each, a summariser speaks whom nobody heeds.
    Chain(usize),
    /// Stages one after the other; after each, an observer calculates something that nobody heeds.
    Watched(usize),
    /// Agents one after the other, each with the reply of the one before it.
    Row(usize),
    /// One who adds, and one who approves of anything; an approved result is the result.
    Approval,
    /// Two who add at the same time, and code that adds up what they say.
    Sum,
    /// Two chains of two stages at the same time, then one who adds both up.
    Branches,
    /// Three solvers one after the other, and a judge who takes the majority.
    Vote,
    /// The same with the solvers at the same time.
    ParallelVote,
}

/// What each agent adds.
const PARTS: [i64; 6] = [5, 7, 3, 9, 4, 6];
const START: i64 = 12;
/// The longest that a system may take.
const PATIENCE: Duration = Duration::from_secs(3);
const SOLVER: &str = "You are a solver. Solve the word problem and end with a line `ANSWER: <number>`.";
const SUMMARISER: &str = "You are a summariser. Summarise what was said.";
const JUDGE: &str =
    "You are the judge of a debate. Take the answer that most debaters give and end with a line `ANSWER: <number>`.";

impl Topology {
    /// The right result.
    pub fn answer(self) -> i64 {
        match self {
            Topology::Chain(stages) | Topology::Row(stages) => START + PARTS[..stages].iter().sum::<i64>(),
            Topology::Watched(stages) => START + PARTS.iter().cycle().take(stages).sum::<i64>(),
            Topology::Sum => 2 * START + PARTS[0] + PARTS[1],
            Topology::Branches => 2 * START + PARTS[..4].iter().sum::<i64>(),
            Topology::Approval | Topology::Vote | Topology::ParallelVote => START + PARTS[0],
        }
    }

    async fn solve(self, speaker: &Speaker<'_>) -> Option<i64> {
        match self {
            Topology::Chain(stages) => {
                let mut value = START;
                for (stage, part) in PARTS[..stages].iter().enumerate() {
                    value = speaker.adds(&format!("stage{stage}"), value, *part).await?;
                    speaker.ask("summariser", SUMMARISER, &format!("Stage {stage} is done.")).await?;
                }
                Some(value)
            }
            Topology::Watched(stages) => {
                let mut value = START;
                for (stage, part) in PARTS.iter().cycle().take(stages).enumerate() {
                    value = speaker.adds(&format!("stage{stage}"), value, *part).await?;
                    speaker.adds("observer", 20 + i64::try_from(stage).ok()?, 1).await?;
                }
                Some(value)
            }
            Topology::Row(stages) => {
                let mut value = START;
                for (stage, part) in PARTS[..stages].iter().enumerate() {
                    value = speaker.adds(&format!("a{}", stage + 1), value, *part).await?;
                }
                Some(value)
            }
            Topology::Approval => {
                let value = speaker.adds("solver", START, PARTS[0]).await?;
                speaker.ask("critic", SUMMARISER, &format!("The result is {value}. Is that well?")).await?;
                Some(value)
            }
            Topology::Sum => {
                let first = speaker.adds("first", START, PARTS[0]).await?;
                Some(first + speaker.adds("second", START, PARTS[1]).await?)
            }
            Topology::Branches => {
                let branch = async |name: &str, parts: &[i64]| {
                    let mut value = START;
                    for (stage, part) in parts.iter().enumerate() {
                        value = speaker.adds(&format!("{name}{stage}"), value, *part).await?;
                    }
                    Some(value)
                };
                let (left, right) = tokio::join!(branch("left", &PARTS[..2]), branch("right", &PARTS[2..4]));
                speaker.adds("joiner", left?, right?).await
            }
            Topology::Vote => {
                let mut said = Vec::new();
                for name in ["ada", "blaise", "carl"] {
                    said.push((name, speaker.adds(name, START, PARTS[0]).await?));
                }
                speaker.judge(&said).await
            }
            Topology::ParallelVote => {
                let solver = |name| speaker.adds(name, START, PARTS[0]);
                let (a, b, c) = tokio::join!(solver("ada"), solver("blaise"), solver("carl"));
                speaker.judge(&[("ada", a?), ("blaise", b?), ("carl", c?)]).await
            }
        }
    }
}

impl System for Topology {
    fn execute<'a>(&'a self, place: ExecutionPlace<'a>) -> Executing<'a> {
        Box::pin(async move {
            let patience = if matches!(self, Topology::Watched(_)) { 10 * PATIENCE } else { PATIENCE };
            let speaker = Speaker { origin: place.origin, run: place.run };
            let solved = tokio::time::timeout(patience, self.solve(&speaker)).await;
            let ending = if solved.is_ok() { Ending::Exited(0) } else { Ending::TimedOut };
            let output = solved.ok().flatten().map(|answer| answer.to_string()).unwrap_or_default().into_bytes();
            Ok(Ended { ending, output, interrupted: None })
        })
    }
}

/// Speaks for all agents of a run.
pub struct Speaker<'a> {
    pub origin: &'a str,
    pub run: &'a RunId,
}

impl Speaker<'_> {
    async fn adds(&self, agent: &str, value: i64, part: i64) -> Option<i64> {
        let task =
            format!("Problem: Tom has {value} apples. He buys {part} more apples. How many apples does Tom have?");
        answer_of(&self.ask(agent, SOLVER, &task).await?)
    }

    async fn judge(&self, said: &[(&str, i64)]) -> Option<i64> {
        let mut task = "Problem: apples\n\n".to_owned();
        for (name, value) in said {
            let _ = write!(task, "Debater {name}:\nANSWER: {value}\n\n");
        }
        answer_of(&self.ask("judge", JUDGE, &format!("{task}Which answer do most give?")).await?)
    }

    pub async fn ask(&self, agent: &str, system: &str, user: &str) -> Option<String> {
        let body = json!({"model": "m", "messages": [
            {"role": "system", "content": system}, {"role": "user", "content": user},
        ]});
        let address = self.origin.strip_prefix("http://").and_then(|address| address.parse().ok()).expect("an address");
        let path = format!("/r/{}/a/{agent}/v1/chat/completions", self.run);
        let mut client = Client::connect(address).await;
        client.send(&request("POST", &path, body.to_string().as_bytes(), "Connection: close\r\n")).await;
        let reply: Reply = client.reply().await;
        (reply.status == 200).then(|| reply.json()["choices"][0]["message"]["content"].as_str().map(str::to_owned))?
    }
}

pub fn answer_of(text: &str) -> Option<i64> {
    text.lines().rev().find_map(|line| line.strip_prefix("ANSWER:"))?.trim().parse().ok()
}

/// The simulator, wrong by chance: with this probability a reply's last number is off by one. The draw depends on run
/// and step, so that a test is the same each time.
#[derive(Debug)]
pub struct Noisy {
    pub inner: Arc<Simulator>,
    pub seed: u64,
    pub rate: f64,
    /// Questions that it answers wrongly each time.
    pub never_right: &'static [&'static str],
    /// What becomes of calls beside that.
    pub weather: Weather,
    /// Calls so far.
    pub calls: AtomicU64,
}

/// What an upstream does beside answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weather {
    /// It answers.
    #[default]
    Fair,
    /// It cannot be reached.
    Dead,
    /// It answers 503 to calls of these numbers.
    Failing(u64, u64),
    /// It answers nobody in time.
    Slow,
    /// It takes no key.
    Locked,
}

impl Noisy {
    /// The simulator, and nothing beside.
    pub fn quiet(seed: u64) -> Self {
        let (inner, calls) = (Arc::new(Simulator::new(7)), AtomicU64::new(0));
        Self { inner, seed, rate: 0.0, never_right: &[], weather: Weather::Fair, calls }
    }
}

impl Upstream for Noisy {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let drawn = request.extensions().get::<Asker>().map_or(1.0, |asker| {
                let hash = blake3::hash(format!("{} {} {}", self.seed, asker.run, asker.step).as_bytes());
                f64::from(u32::from_be_bytes(hash.as_bytes()[..4].try_into().expect("four bytes")))
                    / f64::from(u32::MAX)
            });
            let refused = |status: u16| {
                let made = ReceivedBody::Made([r#"{"error": {"message": "no"}}"#.into()].into());
                Ok(Response::builder().status(status).body(made).expect("a response"))
            };
            let call = self.calls.fetch_add(1, Ordering::SeqCst);
            match self.weather {
                Weather::Dead => return Err(UpstreamError::unreachable("refused")),
                Weather::Failing(from, to) if (from..to).contains(&call) => return refused(503),
                Weather::Locked => return refused(401),
                Weather::Slow => tokio::time::sleep(4 * PATIENCE).await,
                Weather::Failing(..) | Weather::Fair => {}
            }
            let (head, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let asked = String::from_utf8_lossy(&body).into_owned();
            if asked.contains("Is that well?") {
                let mut response = Response::new(ReceivedBody::Made([chat_reply("APPROVE").into()].into()));
                let json = hyper::header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
                return Ok(response);
            }
            let never = self.never_right.iter().any(|question| asked.contains(question));
            let response = self.inner.send(Request::from_parts(head, Either::Left(Full::new(body)))).await?;
            if drawn >= self.rate && !never {
                return Ok(response);
            }
            let (mut head, body) = response.into_parts();
            let body = body.collect().await.expect("made in this process").to_bytes();
            let before = OpenaiChat.read_reply(&body).expect("a reply");
            let mut after = before.clone();
            let text = after.answers[0].message.text();
            let wrong = answer_of(&text)
                .map(|value| text.replace(&format!("ANSWER: {value}"), &format!("ANSWER: {}", value + 1)));
            after.answers[0].message.set_text(wrong.unwrap_or(text));
            let body = OpenaiChat.write_reply(&body, &before, &after).expect("written");
            head.headers.remove(hyper::header::CONTENT_LENGTH);
            Ok(Response::from_parts(head, ReceivedBody::Made([body].into())))
        })
    }
}
