//! What judges were asked and answered, on disk. Each execution of a program is judged by questions of its own, however equal its
//! answer is to that of another: a judge errs by chance too, and one answer that stood for several executions would count its error
//! as often. The same execution is never judged twice.

use std::{
    collections::{HashMap, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::{Request, Response, header};
use serde::{Deserialize, Serialize};

use crate::{
    proxy::{
        NegotiatingUpstream,
        upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError},
    },
    recording::{AppendedLines, Masked},
    trajectory::RunId,
};

/// The largest request or reply that is kept, in bytes.
const BODY_MAX: usize = 8 << 20;

/// Questions to judges with their answers, one JSON line each. A question about an execution that was put before is answered from
/// there. Without an upstream behind it, that is all: an unknown question is an error, and no socket is there to ask.
#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    behind: Option<Arc<dyn Upstream>>,
    stored: Mutex<StoredVerdicts>,
}

/// Where a judge is asked about one execution.
#[derive(Debug)]
pub struct ExecutionTranscript {
    transcript: Arc<Transcript>,
    execution: RunId,
}

#[derive(Debug)]
struct StoredVerdicts {
    answers: HashMap<String, String>,
    file: Option<AppendedLines>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
struct TranscriptLine {
    /// blake3 of the execution, and of path and body of the request. Without the execution in lines of earlier versions, in which one
    /// answer stood for all executions: those are nobody's answer any more.
    key: String,
    /// The execution that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    execution: Option<RunId>,
    request: String,
    reply: String,
    /// What was changed in the request on its way, because the upstream refuses it: in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<String>,
}

/// The schema of a line of `judge.jsonl`.
pub fn transcript_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.root_schema_for::<TranscriptLine>()
}

impl Transcript {
    /// Reads the file, if there is one; with an upstream behind, new answers are added to it.
    ///
    /// # Errors
    /// The file cannot be read or written, or a line of it is none of ours.
    pub fn open(path: &Path, behind: Option<Arc<dyn Upstream>>) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && behind.is_some() => String::new(),
            Err(error) => return Err(error),
        };
        let mut answers = HashMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            match serde_json::from_str::<TranscriptLine>(line) {
                Ok(line) => drop(answers.insert(line.key, line.reply)),
                // A line that a kill cut off was never answered to anybody.
                Err(_) if !text.ends_with('\n') && number == text.lines().count() => {}
                Err(error) => return Err(io::Error::other(format!("line {number} is no kept answer: {error}"))),
            }
        }
        let file = behind.as_ref().map(|_| AppendedLines::open(path)).transpose()?;
        let behind = behind.map(|behind| NegotiatingUpstream::over(behind, None) as Arc<dyn Upstream>);
        Ok(Self { path: path.to_owned(), behind, stored: Mutex::new(StoredVerdicts { answers, file }) })
    }

    /// How many answers are kept.
    pub fn len(&self) -> usize {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).answers.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a judge is asked about an execution, the run of that name.
    pub fn for_execution(self: &Arc<Self>, execution: &RunId) -> ExecutionTranscript {
        ExecutionTranscript { transcript: Arc::clone(self), execution: execution.clone() }
    }

    async fn answer(
        &self,
        execution: &RunId,
        request: Request<SentBody>,
    ) -> Result<Response<ReceivedBody>, UpstreamError> {
        let (head, body) = request.into_parts();
        let broken = |error: Box<dyn std::error::Error + Send + Sync>| UpstreamError::Closed(error);
        let body = Limited::new(body, BODY_MAX).collect().await.map_err(broken)?.to_bytes();
        let mut hash = blake3::Hasher::new();
        for part in [execution.as_str(), head.uri.path()] {
            hash.update(part.as_bytes()).update(b"\0");
        }
        let key = hash.update(&body).finalize().to_hex().to_string();
        let kept = self.stored.lock().unwrap_or_else(PoisonError::into_inner).answers.get(&key).cloned();
        if let Some(reply) = kept {
            return Ok(composed_response(Bytes::from(reply)));
        }
        let Some(behind) = &self.behind else {
            let why =
                format!("`{}` holds no answer to this question, and nobody else may be asked", self.path.display());
            return Err(UpstreamError::unreachable(why));
        };
        let response = behind.send(Request::from_parts(head, Either::Left(Full::new(body.clone())))).await?;
        let (head, reply) = response.into_parts();
        let reply = Limited::new(reply, BODY_MAX).collect().await.map_err(broken)?.to_bytes();
        // Only whole answers are kept: an error may go away.
        if head.status.is_success() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let changed = NegotiatingUpstream::changed(&head.headers);
            let execution = Some(execution.clone());
            self.keep(TranscriptLine { key, execution, request: text(&body), reply: text(&reply), changed })
                .map_err(|error| broken(error.into()))?;
        }
        Ok(Response::from_parts(head, ReceivedBody::Made(VecDeque::from([reply]))))
    }

    fn keep(&self, line: TranscriptLine) -> io::Result<()> {
        let written = Masked::json_line(&line)?;
        let mut kept = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &kept.file {
            file.add(&written)?;
        }
        kept.answers.insert(line.key, line.reply);
        Ok(())
    }
}

impl Upstream for ExecutionTranscript {
    fn name(&self) -> &str {
        self.transcript.behind.as_ref().map_or("transcript", |behind| behind.name())
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(self.transcript.answer(&self.execution, request))
    }
}

fn composed_response(body: Bytes) -> Response<ReceivedBody> {
    let mut response = Response::new(ReceivedBody::Made(VecDeque::from([body])));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
