//! A call as it is compared with a call of another run: who made it, what was asked, what was answered.

use serde_json::{Value, json};
use twox_hash::XxHash3_128;

use super::{
    ComparedContent, Rules,
    form::{Form, surface_of},
    pairing::Pairing,
    rules::SeenValues,
};
use crate::{
    surface::{Part, Reply, door},
    trajectory::{AgentName, Attempt, Step},
};

/// A call of a run. It holds hashes and ids, not words.
///
/// Two calls are *asked the same* when agent, API and body are equal, volatile parts ([`Rules`]) aside. They are
/// *answered the same* when status, model, words, calls of tools and the reason to stop are equal, whole or streamed;
/// ids, times, token counts (a cache moves them) and what a program is not told in words do not count. A volatile part
/// of a reply counts as one only where its request holds it too: what a model says of its own is its answer.
///
/// Ids of calls and of kept replies may be others in each run; over the whole of two runs one id stands for one id
/// (see [`Pairing`]).
#[derive(Debug, Clone)]
pub struct ComparedCall {
    agent: AgentName,
    request: CallShape,
    answered: Option<AnswerShape>,
}

/// A hash of what was said, and the ids that it holds, by their numbers.
#[derive(Debug, Clone)]
struct CallShape {
    key: u128,
    ids: Vec<String>,
}

#[derive(Debug, Clone)]
struct AnswerShape {
    shape: CallShape,
    /// The hash with volatile parts as they are: a reply served from a record repeats the record's.
    literal: u128,
    /// What the reply itself is called. It counts where it is quoted, not here: some servers give all one name.
    named: Vec<String>,
}

impl ComparedCall {
    /// A call of which the words are known, and not the bytes.
    pub fn new(agent: AgentName, asked: ComparedContent, answered: Option<ComparedContent>, rules: &Rules) -> Self {
        let (mut asked, mut seen) = (asked, SeenValues::default());
        let ids = asked.number();
        rules.apply(&mut asked.value, &mut seen);
        let asked = CallShape { key: key(&asked.value.to_string()), ids };
        let answered = answered.map(|words| answered_of(words, Vec::new(), rules, &mut seen));
        Self { agent, request: asked, answered }
    }

    /// A recorded step: what the client asked, before any edit, and what it got in the end, edits included.
    pub fn of_step(step: &Step, rules: &Rules) -> Self {
        let mut seen = SeenValues::default();
        let (form, ids) = Form::read(&step.surface, &step.request, rules, &mut seen);
        let path = step.path.split('?').next().unwrap_or_default();
        let asked = CallShape { key: key(&format!("{} {path} {}", step.method, form.text())), ids };
        let answered = step.last_attempt().and_then(|attempt| {
            let (words, named) = words(&step.surface, attempt)?;
            Some(answered_of(words, named, rules, &mut seen))
        });
        Self { agent: step.attribution.agent.clone(), request: asked, answered }
    }

    /// Whether the two were asked the same; `pairs` learns the ids where they were.
    pub fn same_request(&self, other: &Self, pairs: &mut Pairing) -> bool {
        self.agent == other.agent
            && self.request.key == other.request.key
            && pairs.learn(&self.request.ids, &other.request.ids)
    }

    /// Whether the two were answered the same, or neither was; `pairs` learns the ids where they were.
    pub fn same_answered(&self, other: &Self, pairs: &mut Pairing) -> bool {
        let (one, other) = match (&self.answered, &other.answered) {
            (Some(one), Some(other)) => (one, other),
            (one, other) => return one.is_none() && other.is_none(),
        };
        let same = (one.literal == other.literal || one.shape.key == other.shape.key)
            && pairs.learn(&one.shape.ids, &other.shape.ids);
        if same {
            pairs.propose(&one.named, &other.named);
        }
        same
    }
}

/// Whether two recorded steps were asked the same, volatile parts aside.
pub fn same_request(one: &Step, other: &Step, rules: &Rules) -> bool {
    ComparedCall::of_step(one, rules).same_request(&ComparedCall::of_step(other, rules), &mut Pairing::default())
}

/// Whether two recorded steps were answered the same, volatile parts aside.
pub fn same_reply(one: &Step, other: &Step, rules: &Rules) -> bool {
    ComparedCall::of_step(one, rules).same_answered(&ComparedCall::of_step(other, rules), &mut Pairing::default())
}

fn key(text: &str) -> u128 {
    XxHash3_128::oneshot(text.as_bytes())
}

fn answered_of(words: ComparedContent, named: Vec<String>, rules: &Rules, seen: &mut SeenValues) -> AnswerShape {
    let mut words = words;
    let ids = words.number();
    let literal = key(&words.value.to_string());
    seen.close();
    rules.mask_strings(&mut words.value, seen);
    AnswerShape { shape: CallShape { key: key(&words.value.to_string()), ids }, literal, named }
}

/// What an attempt gave its client, and what that calls itself; `None` where it gave nothing.
fn words(surface: &str, attempt: &Attempt) -> Option<(ComparedContent, Vec<String>)> {
    let status = attempt.status?;
    let body = attempt.delivered();
    let reply = surface_of(surface).and_then(|surface| door::reply(surface, body, attempt.streamed).ok());
    if let Some(reply) = reply.filter(|reply| status < 400 && !reply.answers.is_empty()) {
        let ids = reply.answers.iter().flat_map(|answer| answer.message.call_ids().cloned()).collect();
        let value = json!([status, reply_content(&reply)]);
        let named = std::iter::once(reply.id).chain(reply.items).filter(|name| !name.is_empty()).collect();
        return Some((ComparedContent { value, ids }, named));
    }
    let value = serde_json::from_slice(body).unwrap_or_else(|_| match std::str::from_utf8(body) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(blake3::hash(body).to_hex().as_str()),
    });
    Some((ComparedContent { value: json!([status, value]), ids: Vec::new() }, Vec::new()))
}

/// What a program can act on.
fn reply_content(reply: &Reply) -> Value {
    let answers = reply.answers.iter().map(|answer| {
        let opaque = answer.message.parts.iter().filter_map(|part| match part {
            Part::Opaque(opaque) => Some(opaque.as_str()),
            Part::Text(_) => None,
        });
        let calls = answer.message.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments]));
        json!([
            answer.index,
            answer.finish_reason,
            answer.message.text(),
            opaque.collect::<Vec<_>>(),
            calls.collect::<Vec<_>>()
        ])
    });
    json!([reply.model, answers.collect::<Vec<_>>()])
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::trajectory::{Attribution, CallEnding, CloseCause, Source};

    fn step(request: &str, reply: &str) -> Step {
        let attempt = Attempt {
            attempt: 0,
            at: String::new(),
            status: Some(200),
            cause: Some(CloseCause::Complete),
            ending: Some(CallEnding::Answered),
            reply: Bytes::copy_from_slice(reply.as_bytes()),
            reply_delivered: None,
            reply_with_logprobs: None,
            streamed: reply.starts_with("data:"),
            first_byte_us: None,
            last_byte_us: None,
            usage: None,
            uninspected: None,
            exact: true,
            origin: crate::trajectory::ReplyOrigin::default(),
            proxy_error: None,
        };
        Step {
            step: 0,
            call: 0,
            turn: 0,
            attribution: Attribution {
                agent: AgentName::parse("a").expect("a name"),
                instance: 0,
                source: Source::Header,
                evidence: String::new(),
                confidence: 1.0,
                ambiguous: false,
            },
            surface: "openai_chat".to_owned(),
            method: "POST".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            request: Bytes::copy_from_slice(request.as_bytes()),
            request_sent: None,
            attempts: vec![attempt],
            injected: Vec::new(),
            overlapping: false,
            unplaced: crate::trajectory::StepUnplaced::default(),
        }
    }

    fn answered(id: &str, text: &str, tokens: u32) -> String {
        format!(
            r#"{{"id":"{id}","object":"chat.completion","created":{tokens},"model":"m","system_fingerprint":"{id}",
                "choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],
                "usage":{{"prompt_tokens":{tokens},"completion_tokens":1}}}}"#
        )
    }

    #[test]
    fn a_request_is_its_words_and_parameters() {
        let asked = |temperature: &str, text: &str| {
            step(
                &format!(
                    r#"{{"model":"m","temperature":{temperature},"messages":[{{"role":"user","content":"{text}"}}]}}"#
                ),
                "",
            )
        };
        let same = |one: &Step, other: &Step| same_request(one, other, &Rules::default());
        assert!(same(&asked("0.5", "on 2026-01-01"), &asked("0.5", "on 2026-02-02")));
        assert!(!same(&asked("0.5", "x"), &asked("0.7", "x")));
        assert!(!same(&asked("0.5", "3 pears"), &asked("0.5", "4 pears")));
        let elsewhere = Step { path: "/v1/other".to_owned(), ..asked("0.5", "x") };
        assert!(!same(&asked("0.5", "x"), &elsewhere));
        let mut other = asked("0.5", "x");
        other.attribution.agent = AgentName::parse("other").expect("a name");
        assert!(!same(&asked("0.5", "x"), &other));
    }

    #[test]
    fn a_reply_is_what_a_program_can_act_on() {
        let request = r#"{"model":"m","messages":[]}"#;
        let same = |one: &str, other: &str| same_reply(&step(request, one), &step(request, other), &Rules::default());
        assert!(same(&answered("chatcmpl-1", "84", 10), &answered("x", "84", 12)));
        assert!(!same(&answered("a", "84", 10), &answered("a", "85", 10)));
        let streamed = "data: {\"id\":\"s\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"84\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        assert!(same(&answered("a", "84", 10), streamed));
        let mut failed = step(request, "busy");
        failed.attempts[0].status = Some(503);
        assert!(!same_reply(&failed, &step(request, "busy"), &Rules::default()));
    }
}
