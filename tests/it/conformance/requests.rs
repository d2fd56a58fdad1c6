//! Requests as clients write them × read, edited by each manipulator of requests: what reaches the upstream is exactly what was meant,
//! or the client's own bytes, and the recording says why.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use aegis::{
    manipulator::{Adaptive, Context},
    plan::{Injection, Plan},
    proxy::{
        AskingSettings, ManipulatorModel,
        upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError},
    },
    recording::{self, Recording},
    simulator::Simulator,
    surface::{self, Conversation, Message, Part, Reply, Role, Surface, ToolCall},
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use hyper::{Request, Response, header};
use serde::Deserialize;

use super::{
    AT_ONCE,
    edits::{self, Outcome},
    page,
    shapes::{packed, read, unpacked},
};
use crate::lab::{Lab, Setup};

/// A request and what it asks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// Who writes it so.
    pub source: String,
    /// The API.
    pub api: String,
    body: String,
    messages: Vec<String>,
    content_type: Option<String>,
    encoding: Option<String>,
    /// What of it no reader can place.
    pub unplaced: Option<String>,
}

/// What came of a request.
pub struct AskedRow {
    /// Whether it was read as it is meant, and passed as it came.
    pub read: Result<(), String>,
    /// What each manipulator made of it.
    pub edited: Vec<Outcome>,
}

impl Asked {
    /// Its API.
    pub fn surface(&self) -> &'static dyn Surface {
        surface::ALL.iter().copied().find(|surface| surface.name() == self.api).expect("a surface")
    }

    /// Its name among all cells.
    pub fn key(&self) -> String {
        format!("request: {}", self.name)
    }

    /// The body before it is packed.
    pub fn plain(&self) -> &str {
        &self.body
    }

    fn bytes(&self) -> Vec<u8> {
        packed(self.body.clone().into_bytes(), self.encoding.as_deref())
    }
}

/// Notes what it is sent, by request and agent, and answers with a word.
#[derive(Debug, Default)]
struct Noting(Mutex<BTreeMap<String, (Option<String>, Bytes)>>);

impl Upstream for Noting {
    fn name(&self) -> &'static str {
        "noting"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(UpstreamError::Closed)?.to_bytes();
            let coding = head.headers.get(header::CONTENT_ENCODING).map(|name| name.to_str().expect("text").to_owned());
            let what = head.uri.query().unwrap_or_default().to_owned();
            self.0.lock().expect("no panic").insert(what, (coding, body));
            let surface = surface::for_path("POST", head.uri.path()).expect("a path of a surface");
            let answer = aegis::surface::Answer {
                index: 0,
                message: Message::text_of(Role::Assistant, "42"),
                finish_reason: Some("stop".to_owned()),
            };
            let reply = Reply { id: "r".to_owned(), model: "m".to_owned(), answers: vec![answer], ..Reply::default() };
            let body = ReceivedBody::Made(VecDeque::from([surface.compose(&reply, 1)]));
            let mut response = Response::new(body);
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            Ok(response)
        })
    }
}

/// All requests, and what comes of them.
pub async fn rows() -> (Vec<Asked>, Vec<AskedRow>) {
    let asked: Vec<Asked> = read("requests");
    let (text, agents) = edits::plan("request_edits.toml");
    let setup = Setup {
        asking: Some(Arc::new(ManipulatorModel::new(Arc::new(Simulator::new(7)), AskingSettings::default()))),
        ..Setup::planned(&text)
    };
    let plan = setup.plan.clone().expect("a plan");
    let noting = Arc::new(Noting::default());
    let mut lab = Lab::over(Arc::clone(&noting) as Arc<dyn Upstream>, setup).await;
    let converse = async |number: usize, asked: &Asked| {
        for agent in ["plain"].into_iter().chain(agents.iter().map(String::as_str)) {
            let path = format!("/r/request-{number}/a/{agent}{}?{number}-{agent}", asked.surface().path());
            let kind = asked.content_type.as_deref().unwrap_or("application/json");
            let mut head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n");
            if !kind.is_empty() {
                head.extend(["Content-Type: ", kind, "\r\n"]);
            }
            if let Some(coding) = &asked.encoding {
                head.extend(["Content-Encoding: ", coding, "\r\n"]);
            }
            let body = asked.bytes();
            head.extend(["Content-Length: ", &body.len().to_string(), "\r\n\r\n"]);
            lab.raw(&[head.as_bytes(), &body].concat()).await;
        }
    };
    let conversations = asked.iter().enumerate().map(|(number, asked)| converse(number, asked));
    stream::iter(conversations).buffered(AT_ONCE).collect::<Vec<_>>().await;
    lab.sealed("request-0").await;
    let sent = noting.0.lock().expect("no panic").clone();
    let rows = asked.iter().enumerate().map(|(number, asked)| {
        let recording = recording::read(&lab.logs.join(format!("request-{number}"))).expect("a recording");
        let of = |agent: &str| sent.get(&format!("{number}-{agent}"));
        let edited = agents.iter().enumerate().map(|(at, agent)| judge(asked, &plan, at, &recording, of(agent)));
        AskedRow { read: is_read(asked, of("plain")), edited: edited.collect() }
    });
    let rows = rows.collect();
    (asked, rows)
}

type Sent<'a> = Option<&'a (Option<String>, Bytes)>;

fn is_read(asked: &Asked, sent: Sent<'_>) -> Result<(), String> {
    let (coding, body) = sent.ok_or("it did not reach the upstream")?;
    if *body != asked.bytes() || *coding != asked.encoding {
        return Err("other bytes reached the upstream than were sent".to_owned());
    }
    super::reading::request_accounts(asked.surface(), &asked.bytes(), asked.unplaced.as_deref())?;
    let read = super::reading::request(asked.surface(), &asked.bytes());
    if asked.unplaced.is_some() {
        return Ok(());
    }
    let said = says(&read?);
    if said == asked.messages { Ok(()) } else { Err(format!("it says {said:?}, and {:?} was meant", asked.messages)) }
}

fn judge(asked: &Asked, plan: &Plan, number: usize, recording: &Recording, sent: Sent<'_>) -> Outcome {
    let injection = &plan.injections[number];
    let Some((coding, body)) = sent else { return Outcome::Wrong("the call was refused".to_owned()) };
    let failure = recording.manipulator_failures.iter().find(|failure| failure.injection as usize == number);
    if *body == asked.bytes() {
        return match failure {
            Some(failure) => Outcome::Left(failure.why.clone()),
            None => Outcome::Wrong("the original was sent on, and nothing says why".to_owned()),
        };
    }
    delivered(asked, injection, &unpacked(body, coding.as_deref())).map_or_else(Outcome::Wrong, |()| Outcome::Delivered)
}

fn delivered(asked: &Asked, injection: &Injection, plain: &[u8]) -> Result<(), String> {
    let original = super::reading::request(asked.surface(), asked.body.as_bytes())?;
    let now = super::reading::request(asked.surface(), plain)?;
    if injection.asks_model() {
        return if now == original { Err("it says what the original said".to_owned()) } else { Ok(()) };
    }
    let context =
        Context { agent: "solver", conversation: &original, earlier: &[], draw: 7, adaptive: Adaptive::default() };
    let meant = injection.edit_request(&original, &context).map_err(|why| format!("no edit: {why}"))?;
    let (now, meant) = (offers(asked, &now), offers(asked, &meant));
    if now == meant { Ok(()) } else { Err(format!("it asks {now:?}, and {meant:?} was meant")) }
}

/// What a request asks: its messages, its tools, how the answer is drawn.
fn offers(asked: &Asked, conversation: &Conversation) -> (Vec<String>, Vec<(String, String)>, String) {
    let mut said = says(conversation);
    if asked.api == "openai_completions" {
        // There is one prompt: what an edit adds is joined to it.
        let texts: Vec<_> = conversation.messages.iter().map(Message::text).collect();
        said = vec![texts.join("\n\n")];
    }
    let tools = conversation.tools.iter().map(|tool| (tool.name.clone(), tool.description.clone())).collect();
    (said, tools, format!("{:?} {:?}", conversation.sampling, conversation.max_tokens))
}

/// The messages of a request, in the words of the list.
pub fn says(conversation: &Conversation) -> Vec<String> {
    conversation.messages.iter().flat_map(lines).collect()
}

fn lines(message: &Message) -> Vec<String> {
    let role = match message.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Other => return Vec::new(),
    };
    let name = message.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let answers = message.answers_call.as_ref().map(|id| format!(" answers {id}")).unwrap_or_default();
    let call = |call: &ToolCall| {
        let arguments: String = call.arguments.split_whitespace().collect();
        format!("{role} calls {}({arguments}) [{}]", call.name, call.id)
    };
    let calls = message.tool_calls.iter().map(call);
    let has_text = message.parts.iter().filter_map(Part::as_text).any(|text| !text.is_empty());
    let text = has_text.then(|| format!("{role}{name}{answers}: {}", message.text()));
    text.into_iter().chain(calls).collect()
}

/// Cells that are not as they should be.
pub fn wrong(asked: &[Asked], rows: &[AskedRow]) -> Vec<(String, String)> {
    let (_, agents) = edits::plan("request_edits.toml");
    let mut wrong = Vec::new();
    for (asked, row) in asked.iter().zip(rows) {
        if let Err(why) = &row.read {
            wrong.push((format!("{}: read", asked.key()), why.clone()));
        }
        let first = row.edited.iter().zip(&agents).find_map(|(outcome, edit)| match outcome {
            Outcome::Wrong(why) => Some(format!("{edit}: {why}")),
            _ => None,
        });
        wrong.extend(first.map(|why| (format!("{}: edited", asked.key()), why)));
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_read_and_edited() {
    let (asked, rows) = rows().await;
    page::assert_known(&wrong(&asked, &rows), |cell| cell.starts_with("request: "));
    page::assert_holds("tests/shapes/SHAPES.md", "requests", &page::request_table(&asked, &rows));
}
