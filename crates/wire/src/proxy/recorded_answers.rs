//! What the manipulators of a recorded run were told, as the upstream that their questions go to: the same plan under the
//! same run name makes the same edits again, and no model is asked.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, Response, StatusCode};

use super::upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream, UpstreamError};
use crate::recording::Recording;

/// Answers by question, byte for byte. Equal questions are answered in the order of the recording, then as the last.
#[derive(Debug)]
pub struct RecordedAnswers(Mutex<HashMap<Bytes, VecDeque<Bytes>>>);

impl RecordedAnswers {
    /// The answers of a recorded run.
    pub fn from_recording(recording: &Recording) -> Self {
        let mut answers: HashMap<Bytes, VecDeque<Bytes>> = HashMap::new();
        for asked in recording.manipulator_questions.iter().filter(|asked| !asked.answer.is_empty()) {
            answers.entry(asked.question.clone()).or_default().push_back(asked.answer.clone());
        }
        Self(Mutex::new(answers))
    }

    fn answer(&self, question: &Bytes) -> Option<Bytes> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers.get_mut(question)?;
        if known.len() > 1 { known.pop_front() } else { known.front().cloned() }
    }
}

impl Upstream for RecordedAnswers {
    fn name(&self) -> &'static str {
        "recording"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let read = request.into_body().collect().await;
            let question = read.map_err(UpstreamError::Closed)?.to_bytes();
            let (status, body) = match self.answer(&question) {
                Some(answer) => (StatusCode::OK, answer),
                None => (StatusCode::NOT_FOUND, Bytes::from_static(b"the recording holds no answer to this question")),
            };
            let mut response = Response::new(ReceivedBody::Made(VecDeque::from([body])));
            *response.status_mut() = status;
            Ok(response)
        })
    }
}
