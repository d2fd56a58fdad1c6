//! Where corrections come from: an analyzer that is asked, recorded and checked; a file; and whole agents.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use aegis::{
    attribution::{Analyzer, CorrectionOrigin, Corrections, LabelRule, Trace, TraceSettings, label_of},
    budget::Budget,
    execution::Meter,
    proof::Order,
    proxy::upstream::{BackendAnswering, ReceivedBody, SentBody, Upstream},
    surface::ParameterSettings,
    trajectory::{FailureMode, RunId, Trajectory},
};
use http_body_util::BodyExt;
use hyper::{Request, Response, header};
use serde_json::json;

use super::{Case, ORDERS, Silent, case, failed, settings, systems::Topology};
use crate::scripted::chat_reply;

/// An analyzer that knows one thing: the first stage that adds wrongly is wrong. Its first answer gives the result
/// away, its second is right.
#[derive(Debug, Default)]
struct Scripted {
    asked: AtomicUsize,
}

impl Upstream for Scripted {
    fn name(&self) -> &'static str {
        "analyzer"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(async move {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body["response_format"]["json_schema"]["name"], "correction");
            let question = body["messages"][1]["content"].as_str().expect("text");
            assert!(question.contains("The verifier says: numeric: expected `27`, got `37`"), "{question}");
            assert!(!question.contains("corrupt") && !question.contains("FM-2.6"), "{question}");
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            let (_, reply) = question.split_once("It replied:\n").expect("the step");
            let wrong = reply.contains("ANSWER: 34");
            let right = match reply.contains("17 + 7 = 24") {
                _ if asked == 2 => "Step 1: 17 + 7 = 24 (apples), and in the end there are 27.\nANSWER: 24",
                true if wrong => "Step 1: 17 + 7 = 24 (apples).\nANSWER: 24",
                _ => "",
            };
            let said = json!({
                "wrong": wrong && !right.is_empty(), "suspicion": 0.9, "reply": right, "mode": "FM-2.6",
                "reason": "it adds wrongly",
            });
            let mut response = Response::new(ReceivedBody::Made([chat_reply(&said.to_string()).into()].into()));
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            Ok(response)
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analyzer_is_asked_recorded_and_checked() {
    let case = case(Topology::Chain(3), &["stage1"], &["stage1"]);
    let failed = failed(&case, 0).await;
    let run = &failed.cassette.recording().trajectory;
    let upstream = Arc::new(Scripted::default());
    let analyzer = Analyzer {
        upstream: Arc::clone(&upstream) as Arc<dyn Upstream>,
        model: "m".to_owned(),
        gold: Some("27".to_owned()),
        feedback: Some(run.outcome.evidence.clone()),
        parameters: ParameterSettings::default(),
    };
    let own = RunId::parse("analyzer").expect("an id");
    let meter = Meter::within(Budget::default(), None);
    let journal = failed.journal(&settings(Order::BestFirst, "asked").salt);
    let corrections =
        analyzer.corrections(failed.system.executor.listening(), run, &own, &meter, &journal).await.expect("asked");
    let steps: Vec<u32> = corrections.by_step.keys().copied().collect();
    assert_eq!(steps, [2], "{:?}", corrections.left_out);
    assert!(corrections.left_out[&0].starts_with("the analyzer finds nothing wrong"), "{:?}", corrections.left_out);
    let recorded = aegis::recording::read(&failed.dir.path().join("analyzer")).expect("recorded");
    assert_eq!(recorded.trajectory.steps.len(), upstream.asked.load(Ordering::SeqCst));
    assert_eq!(recorded.trajectory.steps.len(), run.steps.len() + 1, "what gave the answer away was asked for again");
    let again = String::from_utf8_lossy(&recorded.trajectory.steps[3].request).into_owned();
    assert!(again.contains("gives the final result away"), "{again}");
    let trace = Trace::new(
        Arc::clone(&failed.system),
        Arc::clone(&failed.cassette),
        corrections,
        settings(Order::BestFirst, "asked"),
        meter,
        journal,
    );
    let finding = trace.run(&Silent).await.expect("traced");
    assert!(finding.spent.calls > recorded.trajectory.steps.len() as u64, "its questions count: {:?}", finding.spent);
    assert_eq!(finding.flips.iter().map(|flip| flip.step).collect::<Vec<_>>(), [2]);
    assert!(finding.earliest_flip.is_none() && finding.is_in_doubt(LabelRule::EarliestFlip), "{:?}", finding.doubts);
    // It flips, and by whose words: no more is shown. What kind of error it is, nothing proves: that is its opinion.
    let label = label_of(&finding, LabelRule::EarliestFlip).expect("a label");
    assert_eq!(label.definition, "flip");
    assert_eq!(label.evidence.clone().and_then(|evidence| evidence.source).as_deref(), Some("analyzer"));
    assert_eq!(label.errors[0].error.failure_mode, None);
    assert_eq!(label.errors[0].proposed_mode.map(FailureMode::code), Some("FM-2.6"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analyzer_is_asked_within_the_budget() {
    let case = case(Topology::Chain(3), &["stage1"], &["stage1"]);
    let failed = failed(&case, 0).await;
    let run = &failed.cassette.recording().trajectory;
    let upstream = Arc::new(Scripted::default());
    let asked: Arc<dyn Upstream> = Arc::clone(&upstream) as Arc<dyn Upstream>;
    let feedback = Some(run.outcome.evidence.clone());
    let analyzer = Analyzer {
        upstream: asked,
        model: "m".to_owned(),
        gold: None,
        feedback,
        parameters: ParameterSettings::default(),
    };
    let own = RunId::parse("analyzer").expect("an id");
    let meter = Meter::within(Budget { calls: Some(2), ..Budget::default() }, None);
    let journal = failed.journal("cut");
    let through = failed.system.executor.listening();
    let corrections = analyzer.corrections(through, run, &own, &meter, &journal).await.expect("asked");
    assert_eq!(upstream.asked.load(Ordering::SeqCst), 2);
    assert!(corrections.left_out[&5].contains("the budget ended"), "{:?}", corrections.left_out);
}

/// A proposal that spoils a right reply so that it makes up for a later error: it flips, and the twin says that the step was
/// right.
#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_that_makes_up_for_an_error_blames_nobody() {
    let case = Case {
        never_right: &["has 17 apples. He buys 7", "has 16 apples. He buys 7"],
        ..case(Topology::Row(3), &[], &[])
    };
    let case = Case { wrong: vec!["a2"], ..case };
    let failed = failed(&case, 0).await;
    let run = &failed.cassette.recording().trajectory;
    // The second adds 1 too many whenever it is asked; the recorded run was 10 too high.
    let spoilt = "{\"step\": 0, \"reply\": \"ANSWER: 16\"}";
    let mut corrections = Corrections::from_lines(spoilt, "c", run).expect("reads");
    for correction in corrections.by_step.values_mut() {
        correction.source = CorrectionOrigin::Analyzer;
    }
    let checked = corrections.clone().checked_by(failed.by_twin());
    assert!(checked.by_step.is_empty() && checked.alike.contains(&0), "{checked:?}");
    for order in ORDERS {
        let finding = failed.trace(corrections.clone(), settings(order, "spoilt")).await;
        assert_eq!(finding.flips.iter().map(|flip| flip.step).collect::<Vec<_>>(), [0]);
        assert!(finding.earliest_flip.is_none() && finding.commitment.is_none(), "{:?}", finding.doubts);
        let label = label_of(&finding, LabelRule::EarliestFlip).expect("a label");
        let source = label.evidence.clone().and_then(|evidence| evidence.source);
        assert_eq!((label.definition.as_str(), source.as_deref()), ("flip", Some("analyzer")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_as_a_whole_are_corrected_or_emptied() {
    let case = case(Topology::Chain(3), &["stage1"], &["stage1"]);
    let failed = failed(&case, 0).await;
    let settings = TraceSettings { agents: 2, ..settings(Order::Scan, "agents") };
    let finding = failed.trace(failed.by_twin(), settings).await;
    let effects: Vec<_> =
        finding.agents.iter().map(|found| (found.agent.as_str(), found.replaced_by, found.effect)).collect();
    assert!(effects.contains(&("stage1", "corrections", 1.0)), "{effects:?}");
    assert!(effects.contains(&("stage1", "nothing", 0.0)), "without it there is no result at all: {effects:?}");
    // Whom nobody heeds can be emptied without a difference; stage 0 was right, so what it says changes nothing.
    for agent in ["summariser", "stage0"] {
        let found = finding.agents.iter().filter(|found| found.agent.as_str() == agent);
        assert!(found.clone().count() > 0 && found.clone().all(|found| found.effect <= 0.0), "{effects:?}");
    }
}

/// A twin that ended earlier: what it does not have can be asked once more.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_twin_does_not_have_is_drawn_anew() {
    let case = case(Topology::Chain(3), &["stage1"], &["stage1"]);
    let failed = failed(&case, 0).await;
    let corrections = failed.by_twin();
    let steps: Vec<u32> = corrections.by_step.keys().copied().collect();
    assert_eq!(steps, [2, 4], "what the twin said too is left out: {:?}", corrections.left_out);
    let short = Trajectory { steps: failed.twin.steps[..4].to_vec(), ..failed.twin.clone() };
    let mended = Corrections::from_twin(&failed.cassette, &short).or_redrawn(&failed.cassette.recording().trajectory);
    let sources: Vec<_> = [2, 4].map(|step| mended.by_step[&step].source).to_vec();
    assert_eq!(sources, [CorrectionOrigin::Twin, CorrectionOrigin::Redraw], "{:?}", mended.left_out);
}

#[test]
fn a_file_of_corrections_says_what_is_wrong_with_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let case = case(Topology::Vote, &["ada", "blaise"], &["blaise"]);
    let failed = runtime.block_on(failed(&case, 0));
    let run = &failed.cassette.recording().trajectory;
    let read = |text: &str| Corrections::from_lines(text, "c.jsonl", run);
    let corrections = read("{\"step\": 1, \"reply\": \"ANSWER: 17\", \"reason\": \"adds\"}\n\n").expect("reads");
    assert_eq!(corrections.by_step.keys().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(corrections.left_out.len(), run.steps.len() - 1);
    for (text, expected) in [
        ("{\"step\": 9, \"reply\": \"x\"}", "c.jsonl:1: step 9 is not in the run: expected 0 to 3"),
        ("\n{\"step\": 0}", "c.jsonl:2: missing field `reply`"),
        ("{\"step\": 0, \"replay\": \"x\"}", "unknown field `replay`"),
    ] {
        let error = read(text).expect_err("wrong").to_string();
        assert!(error.contains(expected), "{error}");
    }
    drop(failed);
}
