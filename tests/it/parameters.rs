//! Parameters of our own questions that an upstream refuses: judge, votes, analyzer, model that rewrites, model judge. Each is left
//! out or exchanged once, remembered, recorded, told; what is set by hand goes out as it is.

use std::{fs, path::Path, sync::Arc};

use aegis::{
    proxy::{AskingSettings, HttpUpstream, ManipulatorModel, RecordedAnswers, UpstreamOrigin},
    recording::{self, Recording},
};
use serde_json::{Value, json};

use crate::{
    attribute::{ScriptedJudge, culprit, rows, whowhen},
    campaign::{Bench, PIPELINE, plans, tasks},
    lab::{Lab, Setup},
    program::{AEGIS, verb},
    scripted::{Scripted, chat_reply, http},
};

/// What is refused here, in the order in which the upstream looks.
const REFUSED: [&str; 4] = ["temperature", "seed", "max_completion_tokens", "response_format"];
const CHANGED: &str =
    "without temperature, without seed, max_tokens in place of max_completion_tokens, without response_format";

/// A refusal of the first of these that a request holds.
fn refusal(body: &Value) -> Option<(u16, String)> {
    let name = REFUSED.iter().find(|name| body.get(**name).is_some())?;
    let instead = if *name == "max_completion_tokens" { " Use 'max_tokens' instead." } else { "" };
    Some((400, format!("Unsupported parameter: '{name}' is not supported with this model.{instead}")))
}

/// The parameters of a request that are refused here, or stand for one that is.
fn parameters(body: &Value) -> Vec<&str> {
    [&REFUSED[..], &["max_tokens"]].concat().into_iter().filter(|name| body.get(*name).is_some()).collect()
}

/// The only run of a directory.
fn run_of(dir: &Path) -> Recording {
    let runs: Vec<_> = fs::read_dir(dir).expect("a directory").flatten().collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    recording::read(&runs[0].path()).expect("a run")
}

/// What each reply of a run says of its question.
fn changed(recording: &Recording) -> Vec<Option<&str>> {
    let said = |headers: &[(String, String)]| headers.iter().position(|(name, _)| name == "x-aegis-parameters");
    let headers = recording.exchanges.iter().map(|exchange| exchange.reply_headers.as_slice());
    headers.map(|headers| said(headers).map(|at| headers[at].1.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_is_asked_without_what_its_upstream_refuses() {
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    let judge = ScriptedJudge::start(|body| refusal(body).unwrap_or((200, culprit("WebSurfer", 3)))).await;
    let url = judge.url();
    let ask = |path: &'static str, out: &'static str| {
        [
            "attribute",
            path,
            "--method",
            "all-at-once",
            "--model",
            "m",
            "--upstream",
            &url,
            "--cassette",
            "t",
            "--out",
            out,
        ]
        .map(str::to_owned)
    };
    let attribute = async |path, out| {
        let arguments = ask(path, out);
        verb(dir.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let (code, _, said) = attribute("hc", "first.jsonl").await;
    assert_eq!((code, judge.asked().len()), (Some(0), 5), "{said}");
    for (number, body) in judge.asked().iter().enumerate() {
        assert_eq!(body["model"], "m");
        assert_eq!(REFUSED.iter().filter(|name| body.get(**name).is_some()).count(), 4 - number, "{body}");
    }
    assert_eq!(parameters(&judge.asked()[4]), ["max_tokens"]);
    for words in
        ["is asked without temperature from now on", "max_tokens in place of max_completion_tokens", "not supported"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The cassette holds the question as it was put, its answer, and what was changed on the way.
    let kept = run_of(&dir.path().join("t"));
    let question: Value = serde_json::from_slice(&kept.trajectory.steps[0].request).expect("JSON");
    assert_eq!(parameters(&question), REFUSED);
    assert_eq!(changed(&kept), [Some(CHANGED)]);
    let (code, out, said) = attribute("hc", "second.jsonl").await;
    assert_eq!((code, judge.asked().len()), (Some(0), 5), "nothing is asked twice: {out}{said}");
    assert_eq!(rows(&dir.path().join("first.jsonl")), rows(&dir.path().join("second.jsonl")));
}

/// Votes differ by their seed: where it is refused, the cassette still tells them apart.
#[tokio::test(flavor = "multi_thread")]
async fn votes_are_cast_and_replayed_one_by_one() {
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    let cast = std::sync::atomic::AtomicUsize::new(0);
    let judge = ScriptedJudge::start(move |body| {
        refusal(body).unwrap_or_else(|| match cast.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            1 => (200, culprit("Orchestrator", 1)),
            _ => (200, culprit("WebSurfer", 3)),
        })
    })
    .await;
    let url = judge.url();
    for (out, asked) in [("first.jsonl", 4 + 3), ("second.jsonl", 4 + 3)] {
        let arguments = ["attribute", "hc", "--method", "all-at-once", "--model", "m", "--upstream", &url];
        let more = ["--votes", "3", "--cassette", "t", "--out", out];
        let (code, _, said) = verb(dir.path(), &[&arguments[..], &more].concat()).await;
        assert_eq!((code, judge.asked().len()), (Some(0), asked), "each refusal is met once: {said}");
        let row = &rows(&dir.path().join(out))[0];
        let score = row["predictions"][0]["score"].as_f64().expect("a share");
        assert!((score - 2.0 / 3.0).abs() < 1e-6, "{row}");
    }
    assert_eq!(changed(&run_of(&dir.path().join("t"))), [Some(CHANGED); 3]);
}

/// A refusal costs a call, and is within the budget.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_counts_refusals() {
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    let judge = ScriptedJudge::start(|body| refusal(body).unwrap_or((200, culprit("WebSurfer", 3)))).await;
    let url = judge.url();
    let arguments = ["attribute", "hc", "--method", "all-at-once", "--model", "m", "--upstream", &url, "--budget"];
    for (budget, code, asked) in [("calls=3", Some(3), 3), ("calls=5", Some(0), 3 + 5)] {
        let (got, out, said) = verb(dir.path(), &[&arguments[..], &[budget]].concat()).await;
        assert_eq!((got, judge.asked().len()), (code, asked), "{out}{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_by_hand_goes_out() {
    let dir = tempfile::tempdir().expect("a directory");
    whowhen(dir.path());
    let judge = ScriptedJudge::start(|_| (200, culprit("WebSurfer", 3))).await;
    let url = judge.url();
    let arguments = ["attribute", "hc", "--method", "all-at-once", "--model", "m", "--upstream", &url];
    let by_hand = ["--parameter", "temperature=1", "--parameter", "seed=none", "--parameter", "reasoning_effort=low"];
    let (code, _, said) =
        verb(dir.path(), &[&arguments[..], &by_hand, &["--parameter", "max_tokens=99"]].concat()).await;
    assert_eq!(code, Some(0), "{said}");
    let body = judge.asked().remove(0);
    assert_eq!(
        (&body["temperature"], &body["reasoning_effort"], &body["max_tokens"]),
        (&json!(1), &json!("low"), &json!(99))
    );
    assert_eq!(parameters(&body), ["temperature", "response_format", "max_tokens"]);
    for (setting, why) in [("temperature", "expected NAME=VALUE"), ("model=x", "`model` is what the question is")] {
        let (code, _, said) = verb(dir.path(), &[&arguments[..], &["--parameter", setting]].concat()).await;
        assert!(code == Some(2) && said.contains(why), "{said}");
    }
}

const TASK: &str =
    "Mia has 12 boxes with 8 pencils each. She gives away 12 pencils. How many pencils does she have left?";
const CHECK: &str = "grep -q 'ANSWER: 84$'";

/// The pipeline as a child, on the task.
fn pipeline<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--", AEGIS, "example", "pipeline", "--task", TASK]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analyzer_is_asked_without_what_its_upstream_refuses() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::copy(root.join("examples/pipeline/aegis.toml"), dir.path().join("aegis.toml")).expect("copied");
    let plan = root.join("plans/corrupt-number.toml").display().to_string();
    let run = ["run", "--upstream", "simulator", "--check", CHECK, "--run", "bad", "--plan", &plan];
    let (code, _, said) = verb(dir.path(), &pipeline(&run)).await;
    assert_eq!(code, Some(1), "{said}");
    let corrects = |body: &Value| {
        let right = "Step 1: 12 * 8 = 96 (pencils).\nStep 2: 96 - 12 = 84 (pencils left).\nANSWER: 84";
        let wrong =
            body["messages"][1]["content"].as_str().is_some_and(|text| text.contains("by solver is to be examined"));
        let said = json!({"wrong": wrong, "suspicion": 0.9, "reply": right, "mode": "FM-2.6", "reason": "the number"});
        format!("```json\n{said}\n```")
    };
    let analyzer = ScriptedJudge::start(move |body| refusal(body).unwrap_or_else(|| (200, corrects(body)))).await;
    let url = analyzer.url();
    let trace = ["trace", "logs/bad", "--analyzer", &url, "--analyzer-model", "m", "--check", CHECK, "--first"];
    let (code, out, said) = verb(dir.path(), &pipeline(&trace)).await;
    assert!(code == Some(0) && said.contains("flips solver at step 1"), "{said}{out}");
    assert!(said.contains("is asked without response_format from now on"), "{said}");
    let asked = analyzer.asked();
    let steps = recording::read(&dir.path().join("logs/bad")).expect("a run").trajectory.steps.len();
    // It sends no seed and no longest answer.
    assert_eq!(asked.len(), steps + 2, "each refusal is met once");
    assert!(asked[2..].iter().all(|body| parameters(body).is_empty()), "{asked:?}");
    let by_hand = [&trace[..], &["--parameter", "temperature=none", "--parameter", "response_format=none"]].concat();
    let (_, _, said) = verb(dir.path(), &pipeline(&by_hand)).await;
    assert!(!said.contains("from now on"), "nothing is refused: {said}");
    assert_eq!(analyzer.asked().len(), 2 * steps + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_rewrites_is_asked_without_what_its_upstream_refuses() {
    let text = "12 * 8 = 96\n96 - 12 = 84\nANSWER: 48";
    let rewriter = ScriptedJudge::start(move |body| {
        refusal(body).unwrap_or_else(|| (200, json!({"edited_text": text, "rationale": "r"}).to_string()))
    })
    .await;
    let plan = "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.always = true\nside = \"response\"\n\
         manipulator.rewrite_with_model = { instruction = \"mast\" }\n";
    let origin = UpstreamOrigin::parse(&rewriter.url(), None).expect("an origin");
    let live = HttpUpstream::new(origin, Vec::new(), None, std::time::Duration::from_secs(10)).expect("an upstream");
    let settings = AskingSettings { model: "m".to_owned(), ..AskingSettings::default() };
    let upstream =
        Scripted::always(vec![http("200 OK", "application/json", &chat_reply("12 * 8 = 96\nANSWER: 84"))]).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x is 12 * 8"}]}).to_string();
    let asked = async |asking: &Arc<ManipulatorModel>| {
        let setup = Setup { asking: Some(Arc::clone(asking)), ..Setup::planned(plan) };
        let mut lab = Lab::before(upstream.address, setup).await;
        let got = lab.post("/a/solver/v1/chat/completions", body.as_bytes()).await.text();
        let again = lab.post("/a/solver/v1/chat/completions", body.as_bytes()).await.text();
        (got, again, lab.sealed("r0").await)
    };
    let asking = Arc::new(ManipulatorModel::new(live.shared(), settings.clone()));
    let (got, again, recording) = asked(&asking).await;
    assert!(got.contains("ANSWER: 48") && again.contains("ANSWER: 48"), "{got} {again}");
    // It sends no seed: three refusals, and two answers.
    assert_eq!((rewriter.asked().len(), asking.spent().calls), (5, 5));
    assert_eq!(parameters(&rewriter.asked()[4]), ["max_tokens"]);
    let said = CHANGED.replace("without seed, ", "");
    for question in &recording.manipulator_questions {
        assert_eq!((question.changed.as_deref(), question.error.as_deref()), (Some(said.as_str()), None));
        let put: Value = serde_json::from_slice(&question.question).expect("JSON");
        assert_eq!(parameters(&put), ["temperature", "max_completion_tokens", "response_format"]);
    }
    // The record makes the same edits again, and nobody is asked.
    let recorded = Arc::new(RecordedAnswers::from_recording(&recording));
    let (got_again, again_again, second) = asked(&Arc::new(ManipulatorModel::new(recorded, settings))).await;
    assert_eq!((got_again, again_again, rewriter.asked().len()), (got, again, 5));
    assert_eq!(second.manipulator_failures, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_rewrites_takes_parameters_by_hand_and_show_tells_what_was_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "Step 1: 12 * 8 = 96 (pencils).\nStep 2: 96 - 12 = 84 (pencils left).\nANSWER: 48";
    let rewriter = ScriptedJudge::start(move |body| {
        refusal(body).unwrap_or_else(|| (200, json!({"edited_text": text, "rationale": "r"}).to_string()))
    })
    .await;
    let plan = "[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nside = \"response\"\n\
         manipulator.rewrite_with_model = { instruction = \"mast\" }\n";
    fs::write(dir.path().join("p.toml"), plan).expect("written");
    let config =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pipeline/aegis.toml")).expect("there");
    fs::write(dir.path().join("aegis.toml"), format!("{config}\n[manipulator]\nparameters = [\"temperature=none\"]\n"))
        .expect("written");
    let url = rewriter.url();
    let run = ["run", "--upstream", "simulator", "--plan", "p.toml", "--run", "r", "--manipulator-upstream", &url];
    let by_hand = ["--manipulator-model", "m", "--manipulator-parameter", "top_p=0.5"];
    let (_, _, said) = verb(dir.path(), &pipeline(&[&run[..], &by_hand].concat())).await;
    let asked = rewriter.asked();
    assert_eq!((asked.len(), asked[0].get("temperature"), &asked[2]["top_p"]), (3, None, &json!(0.5)), "{said}");
    let (_, out, _) = verb(dir.path(), &["show", "logs/r"]).await;
    assert!(out.contains("max_tokens in place of max_completion_tokens, without response_format"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_judge_is_asked_without_what_its_upstream_refuses() {
    let judge = ScriptedJudge::start(|body| {
        refusal(body)
            .unwrap_or_else(|| (200, json!({"verdict": "correct", "reason": "both say the same number"}).to_string()))
    })
    .await;
    let head =
        format!("judge = \"{}\"\n{}{PIPELINE}{}", judge.url(), tasks(1), plans(&["corrupt-number"], "\"pipeline\""));
    let bench = Bench::new(&head);
    let file = bench.dir.path().join("c.toml");
    let text = fs::read_to_string(&file).expect("there");
    let check = "{ model_judge = { model = \"m\", parameters = [\"max_completion_tokens=64\"] } }";
    fs::write(&file, text.replace("{ numeric = {} }", check)).expect("written");
    let (_, _, said) = bench.run(&["--upstream", "simulator", "--jobs", "1"]).await;
    let asked = judge.asked();
    assert!(asked.len() > 4 && parameters(&asked[0]).len() == 3, "{said}");
    assert!(asked[3..].iter().all(|body| parameters(body) == ["max_tokens"] && body["max_tokens"] == 64), "{asked:?}");
    let kept = fs::read_to_string(bench.out().join("judge.jsonl")).expect("a transcript");
    let lines: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), asked.len() - 3, "each refusal is met once");
    for line in &lines {
        assert_eq!(line["changed"], CHANGED.replace("without seed, ", ""));
        assert!(line["request"].as_str().expect("a text").contains("\"temperature\":0"), "as it was put");
    }
    let (_, _, said) = bench.run(&["--upstream", "simulator", "--jobs", "1", "--resume"]).await;
    assert_eq!(judge.asked().len(), asked.len(), "nothing is asked twice: {said}");
}
