//! Checkers by configuration, the judge and its transcript, over a scripted upstream.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http_body_util::BodyExt as _;
use hyper::{Request, Response, StatusCode};

use super::*;
use crate::{
    proxy::{
        NegotiatingUpstream,
        upstream::{BackendAnswering, ReceivedBody, SentBody, UpstreamError},
    },
    surface::{Answer, Message, OpenaiChat, Reply, Role, Surface},
    trajectory::{Outcome, RunId, Trajectory},
};

/// A judge that says these texts, one after the other, and the last one for ever.
#[derive(Debug)]
struct Scripted {
    says: Vec<(StatusCode, &'static str)>,
    questions: AtomicUsize,
    bodies: std::sync::Mutex<Vec<String>>,
}

impl Scripted {
    fn new(says: &[(u16, &'static str)]) -> Arc<Self> {
        let says = says.iter().map(|(status, text)| (StatusCode::from_u16(*status).expect("a status"), *text));
        Arc::new(Self { says: says.collect(), questions: AtomicUsize::new(0), bodies: std::sync::Mutex::default() })
    }

    async fn answer(&self, request: Request<SentBody>) -> Result<Response<ReceivedBody>, UpstreamError> {
        let number = self.questions.fetch_add(1, Ordering::SeqCst).min(self.says.len() - 1);
        let body = request.into_body().collect().await.expect("a body").to_bytes();
        self.bodies.lock().expect("a lock").push(String::from_utf8_lossy(&body).into_owned());
        let (status, text) = self.says[number];
        if text == "hang" {
            std::future::pending::<()>().await;
        }
        let message = Message::text_of(Role::Assistant, text);
        let finish = if text == CUT_OFF { "length" } else { Answer::STOPPED };
        let answer = Answer { index: 0, message, finish_reason: Some(finish.to_owned()) };
        let reply = Reply { id: "x".to_owned(), model: "judge".to_owned(), answers: vec![answer], ..Reply::default() };
        let mut response = Response::new(ReceivedBody::Made(VecDeque::from([OpenaiChat.compose(&reply, 0)])));
        *response.status_mut() = status;
        Ok(response)
    }
}

impl Upstream for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn send(&self, request: Request<SentBody>) -> BackendAnswering<'_> {
        Box::pin(self.answer(request))
    }
}

fn judge(attempts: u32) -> Check {
    let text = format!("model = \"judge\"\nattempts = {attempts}\ntimeout_s = 0.2");
    Check::ModelJudge(toml::from_str(&text).expect("a judge"))
}

async fn judged(check: &Check, upstream: Arc<dyn Upstream>) -> CheckFinding {
    let case = Case { question: "2 + 2?", expected: "4", output: "four" };
    check.check(&case, &Surroundings { run_dir: None, judge: Some(upstream) }).await
}

/// What the judge says when it runs on to its limit.
const CUT_OFF: &str = r#"{"reason": "four is four is four is"#;
const RIGHT: &str = r#"{"verdict": "correct", "reason": "four is 4"}"#;

#[tokio::test]
async fn a_judge_is_read_and_asked_again() {
    type Row = (&'static [(u16, &'static str)], Verdict, usize);
    let table: &[Row] = &[
        (&[(200, RIGHT)], Verdict::Success, 1),
        (&[(200, "```json\n{\"verdict\": \"incorrect\", \"reason\": \"no\"}\n```")], Verdict::Failure, 1),
        (&[(200, r#"{"verdict": "cannot_tell", "reason": "?"}"#)], Verdict::Unknown, 1),
        (&[(200, "It is right."), (200, RIGHT)], Verdict::Success, 2),
        // What a small model makes of a template: a form that is filled in with itself is no judgement.
        (&[(200, r#"{"verdict": "correct" | "incorrect", "reason": "x"}"#), (200, RIGHT)], Verdict::Success, 2),
        (&[(200, r#"{"verdict": "incorrect", "reason": "one sentence"}"#), (200, RIGHT)], Verdict::Success, 2),
        (&[(200, r#"{"verdict": "incorrect", "reason": ""}"#)], Verdict::Unknown, 2),
        (&[(200, r#"{"verdict": "maybe"}"#)], Verdict::Unknown, 2),
        (&[(500, "oops"), (200, RIGHT)], Verdict::Success, 2),
        (&[(200, "hang"), (200, RIGHT)], Verdict::Success, 2),
        (&[(200, "hang")], Verdict::Unknown, 2),
        (&[(200, "")], Verdict::Unknown, 2),
        (&[(200, CUT_OFF)], Verdict::Unknown, 2),
    ];
    for (says, verdict, asked) in table {
        let upstream = Scripted::new(says);
        let said = judged(&judge(2), upstream.clone()).await;
        assert_eq!((said.verdict, upstream.questions.load(Ordering::SeqCst)), (*verdict, *asked), "{says:?}: {said:?}");
        let called_cut_off = said.evidence.contains("its answer was cut off");
        assert_eq!(called_cut_off, says.iter().all(|(_, text)| *text == CUT_OFF), "{said:?}");
    }
    let upstream = Scripted::new(&[(200, RIGHT)]);
    judged(&judge(1), upstream.clone()).await;
    let body = upstream.bodies.lock().expect("a lock")[0].clone();
    assert!(body.contains("\"temperature\":0") && body.contains("2 + 2?") && body.contains("four"), "{body}");
    for part in
        ["\"response_format\":{\"type\":\"json_schema\"", "\"enum\":[\"correct\"", "\"max_completion_tokens\":512"]
    {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(!body.contains("one sentence") && !body.contains(r#"\"correct\" |"#), "no form to copy: {body}");
    // A backend that knows no schema is asked by words alone.
    let upstream = Scripted::new(&[(400, "response_format is not supported"), (200, RIGHT)]);
    let negotiated = NegotiatingUpstream::over(upstream.clone(), None);
    assert_eq!(judged(&judge(1), negotiated).await.verdict, Verdict::Success);
    let bodies = upstream.bodies.lock().expect("a lock").clone();
    assert_eq!(bodies.iter().map(|body| body.contains("response_format")).collect::<Vec<_>>(), [true, false]);
    let case = Case { question: "", expected: "4", output: "4" };
    assert_eq!(judge(1).check(&case, &Surroundings::default()).await.verdict, Verdict::Unknown, "nobody to ask");
}

#[tokio::test]
async fn a_judge_is_recorded_and_replayed_without_an_upstream() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("judge.jsonl");
    assert!(Transcript::open(&path, None).is_err(), "nothing to replay");
    let live = Scripted::new(&[(503, "later"), (200, RIGHT)]);
    let [first, second] = ["c-1", "c-2"].map(|name| RunId::parse(name).expect("an id"));
    let open = |behind: Option<Arc<dyn Upstream>>| Arc::new(Transcript::open(&path, behind).expect("opens"));
    let said = judged(&judge(1), Arc::new(open(Some(live.clone())).for_execution(&first))).await;
    assert_eq!(said.verdict, Verdict::Unknown, "an error is not kept");
    let recording = open(Some(live.clone()));
    for _ in 0..3 {
        assert_eq!(judged(&judge(1), Arc::new(recording.for_execution(&first))).await.verdict, Verdict::Success);
    }
    let asked = || live.questions.load(Ordering::SeqCst);
    assert_eq!((asked(), recording.len()), (2, 1), "asked once, answered from the file after");
    // Another execution that came to the same is another chance of the judge's to err.
    assert_eq!(judged(&judge(1), Arc::new(recording.for_execution(&second))).await.verdict, Verdict::Success);
    assert_eq!((asked(), recording.len()), (3, 2));
    let replaying = open(None);
    for execution in [&first, &second] {
        assert_eq!(judged(&judge(1), Arc::new(replaying.for_execution(execution))).await.verdict, Verdict::Success);
    }
    let third = RunId::parse("c-3").expect("an id");
    for (execution, question) in [(&first, "another"), (&third, "2 + 2?")] {
        let case = Case { question, expected: "4", output: "four" };
        let surroundings = Surroundings { run_dir: None, judge: Some(Arc::new(replaying.for_execution(execution))) };
        let missed = judge(1).check(&case, &surroundings).await;
        assert!(missed.verdict == Verdict::Unknown && missed.evidence.contains("holds no answer"), "{missed:?}");
    }
    // A line that a kill cut off is left out, and written over by the next one.
    let text = std::fs::read_to_string(&path).expect("there");
    std::fs::write(&path, format!("{text}{{\"key\":\"cut")).expect("writes");
    assert_eq!(open(Some(live.clone())).len(), 2);
    // Of an earlier version: one answer for whoever asked. It is read, and answers nobody.
    std::fs::write(&path, "{\"key\":\"0b\",\"request\":\"{}\",\"reply\":\"{}\"}\n").expect("writes");
    let earlier = open(Some(live.clone()));
    assert_eq!(
        (earlier.len(), judged(&judge(1), Arc::new(earlier.for_execution(&first))).await.verdict),
        (1, Verdict::Success)
    );
    assert_eq!((asked(), earlier.len()), (4, 2));
    assert!(std::fs::write(&path, "no json\n").is_ok() && Transcript::open(&path, None).is_err());
}

fn verify(text: &str) -> Verify {
    toml::from_str(text).expect("a configuration")
}

fn nothing_recorded() -> Trajectory {
    let run = RunId::parse("r").expect("an id");
    Trajectory { run, seed: None, outcome: Outcome::default(), steps: Vec::new() }
}

#[tokio::test]
async fn a_configuration_finds_the_answer_and_the_first_that_can_tell_decides() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("out.txt"), "from a file: 84").expect("writes");
    let recorded = nothing_recorded();
    let sources = Sources { stdout: b"steps\nANSWER: 84 pencils\n", directory: dir.path(), trajectory: &recorded };
    let table = [
        ("answer = 'ANSWER: (.*)'\nchecks = [{ numeric = {} }]", Some("84 pencils"), Verdict::Success),
        ("answer = 'RESULT: (.*)'\nchecks = [{ numeric = {} }]", None, Verdict::Failure),
        ("checks = [{ choice = {} }, { numeric = {} }]", Some("steps\nANSWER: 84 pencils\n"), Verdict::Success),
        ("checks = [{ choice = {} }]", Some("steps\nANSWER: 84 pencils\n"), Verdict::Unknown),
        ("output.file = \"out.txt\"\nchecks = [{ exact = {} }]", Some("from a file: 84"), Verdict::Failure),
        ("output.file = \"none.txt\"\nchecks = [{ exact = {} }]", None, Verdict::Failure),
        ("output.reply = \"solver\"\nchecks = [{ exact = {} }]", None, Verdict::Failure),
    ];
    for (text, answer, verdict) in table {
        let verify = verify(text);
        verify.validate(false).expect("valid");
        let found = verify.answer(&sources);
        assert_eq!(found.as_deref(), answer, "{text}");
        let verified = verify.check("?", "84", None, found, &Surroundings::default()).await;
        assert_eq!(verified.outcome.verdict, verdict, "{text}: {}", verified.outcome.evidence);
    }
    let own: Check = serde_json::from_str(r#"{"exact":{}}"#).expect("a check");
    let (numeric, alone) = (verify("checks = [{ numeric = {} }]"), Surroundings::default());
    let verified = numeric.check("?", "84", Some(&own), Some("84.0".to_owned()), &alone);
    assert_eq!(verified.await.outcome.verdict, Verdict::Failure, "a task's own checker takes their place");
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    for (text, why) in [
        ("checks = []", "`checks` is empty"),
        ("checks = [{ regex = { pattern = \"(\" } }]", "check 1 (`regex`)"),
        ("checks = [{ exact = {} }, { json_pointer = { pointer = \"a\" } }]", "check 2 (`json_pointer`)"),
        ("checks = [{ command = { run = \"\" } }]", "`run` is empty"),
        ("checks = [{ command = { run = \"true\", timeout_s = -1.0 } }]", "timeout_s"),
        ("checks = [{ command = { run = \"true\", output_as = \"../x\" } }]", "no plain file name"),
        ("checks = [{ model_judge = { model = \" \" } }]", "`model` is empty"),
    ] {
        let error = verify(text).validate(false).expect_err(text).to_string();
        assert!(error.contains(why), "{error}");
    }
    for text in ["checks = [{ numerc = {} }]", "answer = '('", "checks = [{ exact = { x = 1 } }]", "outptu = 1"] {
        assert!(toml::from_str::<Verify>(text).is_err(), "{text}");
    }
    assert!(Verify::default().validate(true).is_ok(), "every task brings its own");
}

#[tokio::test]
async fn the_tasks_of_the_project_pass_their_own_checkers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let python = std::process::Command::new("python3").arg("--version").output().is_ok();
    let mut ids = std::collections::BTreeSet::new();
    for file in ["tasks.jsonl", "tasks/choice.jsonl", "tasks/maths.jsonl", "tasks/code.jsonl"] {
        let text = std::fs::read_to_string(root.join(file)).expect("there");
        for line in text.lines() {
            let task: serde_json::Value = serde_json::from_str(line).expect("a task");
            let said = |key: &str| task[key].as_str().unwrap_or_default();
            assert!(ids.insert(said("id").to_owned()), "{} stands twice", said("id"));
            let check = task.get("check").map(|check| serde_json::from_value::<Check>(check.clone()).expect("a check"));
            let mut check = check.unwrap_or(Check::Numeric(Numeric::default()));
            if let Check::Command(command) = &mut check {
                // A machine that is busy with other tests is no reason to fail.
                command.timeout_s = 120.0;
            }
            if check.name() == "command" && !python {
                continue;
            }
            assert_eq!(check.problem(), None, "{}", said("id"));
            let verdict = async |output: &str| {
                let case = Case { question: said("question"), expected: said("answer"), output };
                check.check(&case, &Surroundings::default()).await
            };
            let right = verdict(&format!("{}\n", said("answer"))).await;
            assert_eq!(right.verdict, Verdict::Success, "{}: {}", said("id"), right.evidence);
            let wrong = verdict(&wronged(check.name(), said("answer"))).await;
            assert_eq!(wrong.verdict, Verdict::Failure, "{}: {}", said("id"), wrong.evidence);
        }
    }
    assert!(ids.len() >= 70, "{}", ids.len());
}

/// A wrong answer of the same form.
fn wronged(check: &str, answer: &str) -> String {
    match check {
        "choice" => if answer == "A" { "B" } else { "A" }.to_owned(),
        "boxed" => r"\boxed{\frac{12345}{7}}".to_owned(),
        "numeric" => "The answer is 987654 km".to_owned(),
        _ => answer.replace("return", "return not"),
    }
}

#[test]
fn answers_are_told_from_wrong_ones_whatever_their_form() {
    for (expected, got, number, answer) in [
        ("84", "84.0", true, true),
        ("84", "84.", true, true),
        ("1000", "1,000", true, true),
        ("84", "84.5", false, true),
        ("84", "48", false, false),
        ("84", "84 apples", false, true),
        ("Paris", "It is Paris, I think", false, true),
        ("Paris", "Rome", false, false),
        ("1/2", "\\boxed{\\frac{1}{2}}", false, true),
        ("84", "", false, false),
        ("", "84", false, false),
    ] {
        assert_eq!((same_number(expected, got), answers("", expected, got)), (number, answer), "{expected:?} {got:?}");
    }
}

#[test]
fn the_words_of_a_choice_are_its_letter_and_wrong_only_where_they_are_known() {
    let listed = "How many?\nA) 24\nB) 30\nC) 36";
    for (question, got, answer) in [
        (listed, "36", true),
        (listed, "C", true),
        (listed, "C) 36", true),
        (listed, "24", false),
        (listed, "B", false),
        (listed, "", false),
        ("How many?", "36", true),
        ("How many?", "C", true),
        ("How many?", "B", false),
        ("How many?", "", false),
    ] {
        assert_eq!(answers(question, "C", got), answer, "{question:?} {got:?}");
    }
}
