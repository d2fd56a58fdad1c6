//! A run that leaves its record at a reply that the upstream keeps: what goes on from it tells the upstream which reply its program got.

use std::sync::Arc;

use aegis::{
    proxy::{RunSetup, upstream::Upstream},
    recording::Recording,
    replay::{AtFork, Cassette, ForkPoint, Prefixed, reworded},
    simulator::Simulator,
    surface::{OpenaiResponses, Surface},
    trajectory::{RunId, Step},
};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    stored_state::respond,
};

const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nRETELL\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";
const QUESTION: &str = "What is 12 + 30?";

/// How calls name what they go on from.
#[derive(Clone, Copy)]
enum Continuation {
    PreviousResponse,
    Conversation,
}

/// A solver, and twice a critic that goes on from what was said.
async fn ask(lab: &Lab, by: Continuation, thread: Option<&Value>) {
    let mut last = Value::Null;
    for (agent, text) in [("solver", QUESTION), ("critic", "Is it right?"), ("critic", "Sure?")] {
        let mut body = json!({"input": text});
        match (by, thread) {
            (Continuation::Conversation, Some(thread)) => body["conversation"] = thread.clone(),
            _ if last.is_null() => {}
            _ => body["previous_response_id"] = last["id"].clone(),
        }
        last = respond(lab, agent, body, false).await;
    }
}

/// What the model saw before the words of a request.
fn earlier(step: &Step) -> Vec<String> {
    let sent = step.request_sent.as_ref().unwrap_or(&step.request);
    let read = OpenaiResponses.read_request(sent).expect("a request");
    let said = read.messages.iter().map(aegis::surface::Message::text);
    said.filter(|text| !["Is it right?", "Sure?"].contains(&text.as_str())).collect()
}

/// The run of a fork from a recording of `ask` under a plan. `at`: what is given at the call of this number.
async fn forked(by: Continuation, plan: &str, call: usize, at: impl Fn(&Step) -> AtFork) -> Recording {
    let simulator: Arc<dyn Upstream> = Arc::new(Simulator::new(0));
    let mut lab = Lab::over(Arc::clone(&simulator), Setup::planned(plan)).await;
    let made = lab.post("/v1/conversations", b"{}").await.json()["id"].clone();
    let thread = matches!(by, Continuation::Conversation).then_some(&made);
    ask(&lab, by, thread).await;
    let recording = lab.sealed("r0").await;
    let mut calls = recording.trajectory.steps.iter().filter(|step| step.surface == "openai_responses");
    let left = calls.nth(call).expect("a step");
    let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"));
    let fork = ForkPoint { step: left.step, at: at(left) };
    let prefixed = Prefixed::new(cassette, fork, Arc::clone(&simulator)).expect("a fork");
    let mut lab = Lab::over(simulator, Setup::default()).await;
    let own = RunSetup { upstream: Some(Arc::new(prefixed)), ..RunSetup::default() };
    lab.proxy.runs.open(&RunId::parse("r0").expect("an id"), own).await.expect("opens");
    assert_eq!(lab.post("/v1/conversations", b"{}").await.json()["id"], made, "served from the record");
    ask(&lab, by, thread).await;
    lab.sealed("r0").await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_from_a_replaced_reply_tells_the_upstream_so() {
    for by in [Continuation::PreviousResponse, Continuation::Conversation] {
        let nothing = "format = 1\nseed = 7\n";
        let run = forked(by, nothing, 0, |step| AtFork::Instead(reworded(step, "It is 43.").expect("a reply"))).await;
        let steps: Vec<&Step> = run.trajectory.steps.iter().filter(|step| step.surface == "openai_responses").collect();
        assert!(earlier(steps[1]).contains(&"It is 43.".to_owned()), "{:?}", earlier(steps[1]));
        assert_eq!(steps[1].injected[0].operator, "retell");
        assert!(run.label.is_none(), "telling it is no error");
    }
}

/// An edited reply that is given again is told the upstream where the injection told it so, and nowhere else.
#[tokio::test(flavor = "multi_thread")]
async fn an_edited_reply_given_again_is_told_where_its_injection_told_it() {
    for (retell, told) in [("retell = true", true), ("", false)] {
        for by in [Continuation::PreviousResponse, Continuation::Conversation] {
            let delivered = |step: &Step| step.last_attempt().expect("an attempt").delivered().clone();
            let again: [&dyn Fn(&Step) -> AtFork; 2] =
                [&|_| AtFork::Delivered, &|step| AtFork::AlteredAgain(delivered(step))];
            for at in again {
                let run = forked(by, &PLAN.replace("RETELL", retell), 0, at).await;
                let step = run.trajectory.steps.iter().rfind(|step| step.call == 0).expect("the critic's first");
                let says_52 = earlier(step).iter().any(|text| text.contains("52"));
                assert_eq!(says_52, told, "{:?} {:?}", earlier(step), run.notes);
            }
        }
    }
}

/// A call whose request told the upstream an edited reply is the recorded call again: its reply is replaced as that of any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_replaced_also_where_the_request_told_an_edited_one() {
    for by in [Continuation::PreviousResponse, Continuation::Conversation] {
        let plan = PLAN.replace("RETELL", "retell = true");
        let run = forked(by, &plan, 1, |step| AtFork::Instead(reworded(step, "It is wrong.").expect("a reply"))).await;
        let steps: Vec<&Step> = run.trajectory.steps.iter().filter(|step| step.surface == "openai_responses").collect();
        assert_eq!(steps[1].injected[0].operator, "retell");
        let given = steps[1].last_attempt().expect("an attempt").delivered().clone();
        assert!(String::from_utf8_lossy(&given).contains("It is wrong."), "{given:?}");
        assert!(earlier(steps[2]).contains(&"It is wrong.".to_owned()), "{:?}", earlier(steps[2]));
    }
}

/// Where a replaced reply cannot be told, the call ends: the upstream would go on from the reply that was replaced. A change that means
/// nothing need not be told.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_reply_that_cannot_be_told_ends_the_run() {
    for (at, status) in [(AtFork::Instead as fn(Bytes) -> AtFork, 409), (AtFork::Perturbed, 200)] {
        goes_on_from_before_the_run(at, status).await;
    }
}

async fn goes_on_from_before_the_run(at: impl Fn(Bytes) -> AtFork, status: u16) {
    let simulator: Arc<dyn Upstream> = Arc::new(Simulator::new(0));
    let before = Lab::over(Arc::clone(&simulator), Setup::default()).await;
    let old = respond(&before, "solver", json!({"input": "Hello."}), false).await;
    let first = json!({"input": QUESTION, "previous_response_id": old["id"]});
    let mut lab = Lab::over(Arc::clone(&simulator), Setup::default()).await;
    respond(&lab, "solver", first.clone(), false).await;
    let step = lab.sealed("r0").await.trajectory.steps.remove(0);
    let cassette = Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a cassette"));
    let at = at(reworded(&step, "It is 43.").expect("a reply"));
    let prefixed = Prefixed::new(cassette, ForkPoint { step: 0, at }, Arc::clone(&simulator)).expect("a fork");
    let mut lab = Lab::over(simulator, Setup::default()).await;
    let own = RunSetup { upstream: Some(Arc::new(prefixed)), ..RunSetup::default() };
    lab.proxy.runs.open(&RunId::parse("r0").expect("an id"), own).await.expect("opens");
    let given = respond(&lab, "solver", first, false).await;
    let next = json!({"input": "Sure?", "previous_response_id": given["id"]});
    let refused = lab.post("/a/critic/v1/responses", next.to_string().as_bytes()).await;
    assert_eq!(refused.status, status, "{}", refused.text());
    let notes = lab.sealed("r0").await.notes;
    assert!(notes.iter().any(|note| note.contains("could not be told what its program was told")), "{notes:?}");
}
