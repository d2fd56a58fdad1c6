//! Errors that are a date, a time, an id, a hash or a path: what finds the record of a request masks such values, and what says
//! whether two replies are the same must not. The step that wrote the wrong value is the one that a trace names.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use aegis::{
    execution::{Executing, ExecutionPlace, System},
    launch::{Ended, Ending},
    proof::Order,
    proxy::upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream},
};
use http_body_util::BodyExt;
use hyper::{Request, Response, header};
use serde_json::Value;

use super::{
    TraceSettings, Upstreams, failed_as, place, settings,
    systems::{Speaker, answer_of},
};
use crate::scripted::chat_reply;

/// A kind of value, the right one and a wrong one.
const VALUES: [(&str, &str, &str); 10] = [
    ("date", "2026-03-01", "2026-04-01"),
    ("date in words", "1 March 2026", "1 April 2026"),
    ("date with slashes", "03/01/2026", "04/01/2026"),
    ("time stamp", "2026-03-01T09:15:30Z", "2026-03-01T10:15:30Z"),
    ("time of day", "09:15:30", "09:45:30"),
    ("uuid", "3f2b8c1e-7a54-4c1d-9e0f-5b6a7c8d9e01", "3f2b8c1e-7a54-4c1d-9e0f-5b6a7c8d9e02"),
    ("md5", "9e107d9d372bb6826bd81d3542a419d6", "e4d909c290d0fb1ca068ffaddf22cbd0"),
    (
        "sha256",
        "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
        "ef537f25c895bfa782526529a9b63d97aa631564d5d789c2b765448c8635fb6c",
    ),
    ("path", "/home/anna/report.txt", "/home/berta/report.txt"),
    ("temporary path", "/tmp/tmp8f3a91/out.csv", "/tmp/tmp91bc07/out.csv"),
];

/// Who is at work, one after the other, each with the reply of the one before; the clerk's is read by nobody.
const CHAINS: [&[&str]; 4] = [
    &["extractor", "counter"],
    &["extractor", "copyist", "counter"],
    &["clerk", "extractor", "counter"],
    &["extractor", "clerk", "copyist", "copyist", "counter"],
];

struct Chain(&'static [&'static str]);

impl System for Chain {
    fn execute<'a>(&'a self, place: ExecutionPlace<'a>) -> Executing<'a> {
        Box::pin(async move {
            let speaker = Speaker { origin: place.origin, run: place.run };
            let mut reply = "Look the value up".to_owned();
            for (number, agent) in self.0.iter().enumerate() {
                let (agent, prompt) = (format!("{agent}{number}"), format!("You are the {agent}."));
                let next = speaker.ask(&agent, &prompt, &reply).await.unwrap_or_default();
                if !agent.starts_with("clerk") {
                    reply = next;
                }
            }
            let output = answer_of(&reply).map(|answer| answer.to_string()).unwrap_or_default().into_bytes();
            Ok(Ended { ending: Ending::Exited(0), output, interrupted: None })
        })
    }
}

/// A model that takes a value over as it is, and counts by it. What the clerk says is another time each time.
#[derive(Debug)]
struct Copying {
    value: &'static str,
    wrong: &'static str,
    calls: AtomicU64,
}

impl Copying {
    fn reply(&self, asked: &Value) -> String {
        let text = |number: usize| asked["messages"][number]["content"].as_str().unwrap_or_default();
        // Blanks and polite words that a control adds are nothing to a model.
        let (prompt, task) = (text(0), text(1).split_whitespace().collect::<Vec<_>>().join(" "));
        let value = if task.contains(self.wrong) { self.wrong } else { self.value };
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        match prompt.split_whitespace().nth(3).map(|name| name.trim_matches(|c: char| !c.is_alphabetic())) {
            Some("extractor") => format!("What was looked up is {}", self.value),
            Some("clerk") => {
                format!("Noted at 10:{:02}:{:02} on 2026-05-{:02}", call % 60, call % 59, 1 + call % 28)
            }
            Some("copyist") => format!("What they found is {value}"),
            _ => format!("ANSWER: {}", result_of(value)),
        }
    }
}

/// What is counted by a value.
fn result_of(value: &str) -> u64 {
    100 + value.bytes().fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 89_989)
}

impl Upstream for Copying {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let reply = self.reply(&serde_json::from_slice(&body).expect("JSON"));
            let made = ReceivedBody::Made([chat_reply(&reply).into()].into());
            let response = Response::builder().header(header::CONTENT_TYPE, "application/json").body(made);
            Ok(response.expect("a response"))
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_step_that_wrote_a_wrong_date_id_or_path_is_the_one_that_is_named() {
    let (mut right, mut cases) = (0, 0);
    for (number, (kind, value, wrong)) in VALUES.into_iter().enumerate() {
        for (turn, agents) in CHAINS.into_iter().enumerate() {
            // Any step that hands the value on may be the one that errs.
            let handing: Vec<usize> =
                (0..agents.len()).filter(|step| ["extractor", "copyist"].contains(&agents[*step])).collect();
            let step = handing[(number + turn) % handing.len()];
            let agent = format!("{}{step}", agents[step]);
            let plan = format!(
                "[[injection]]\nagent = \"{agent}\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"response\"\n\
                 manipulator.replace_text = {{ find = \"{value}\", with = \"{wrong}\" }}\n"
            );
            let model = || Arc::new(Copying { value, wrong, calls: AtomicU64::new(0) }) as Arc<dyn Upstream>;
            let upstreams = Upstreams { recorded: model(), traced: model() };
            let failed = failed_as(Arc::new(Chain(agents)), upstreams, &result_of(value).to_string(), &plan).await;
            let order = [Order::Scan, Order::Bisect][(number + turn) % 2];
            let settings = TraceSettings { last: false, ..settings(order, &format!("{kind} {turn}")) };
            let finding = failed.trace(failed.by_twin(), settings).await;
            let found = place(finding.earliest_flip.as_ref());
            let expected = (agent.as_str(), u32::try_from(step).expect("a few"));
            cases += 1;
            right += usize::from(found == Some(expected));
            if found != Some(expected) {
                println!(
                    "{kind}, {agents:?}: {found:?} instead of {expected:?}: {:?} {:?}",
                    finding.not_found, finding.doubts
                );
            }
        }
    }
    println!("the step that wrote the wrong value is named in {right} of {cases}");
    assert_eq!(right, cases);
}
