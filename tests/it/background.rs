//! Replies that are made in the background: what a plan wants of them is done when they are first fetched whole.

use std::{sync::Arc, time::Duration};

use aegis::{
    proxy::RunSetup,
    recording::Recording,
    ruling::Ruling,
    simulator::Simulator,
    surface::{OpenaiResponses, Surface},
    trajectory::{CloseCause, RunId},
};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Setup},
    stored_state::{get, notes, respond, simulated},
};

const PLAN: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\", by = 10 }\n";
const SPOILT: &str = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nwhen.call = 0\nfault.spoil_answer = { how = \"truncated\" }\n";

fn question() -> Value {
    json!({"model": "m", "input": "What is 12 + 30?", "background": true})
}

fn path_of(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().expect("an id"))
}

fn status(response: &Value) -> &str {
    response["status"].as_str().expect("a status")
}

/// Asks in the background and looks until the reply is made; says what it was on the way.
async fn polled(lab: &Lab, agent: &str) -> (Vec<String>, Value) {
    polled_at(lab, respond(lab, agent, question(), false).await).await
}

async fn polled_at(lab: &Lab, mut seen: Value) -> (Vec<String>, Value) {
    let (path, mut statuses) = (path_of(&seen), Vec::new());
    while matches!(status(&seen), "queued" | "in_progress") {
        statuses.push(status(&seen).to_owned());
        assert_eq!(seen["output"], json!([]), "nothing is said yet");
        seen = get(lab, &path).await.json();
    }
    (statuses, seen)
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().expect("a text")
}

fn reply_of(recording: &Recording, step: usize) -> (Value, Option<CloseCause>) {
    let attempt = recording.trajectory.steps[step].last_attempt().expect("an attempt");
    (serde_json::from_slice(attempt.delivered()).expect("JSON"), attempt.cause)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_edited_when_it_is_first_fetched() {
    let direct = simulated(PLAN).await;
    let expected = respond(&direct, "solver", json!({"model": "m", "input": "What is 12 + 30?"}), false).await;
    let mut lab = simulated(PLAN).await;
    let (statuses, told) = polled(&lab, "solver").await;
    assert_eq!(statuses, ["queued", "in_progress"]);
    assert_eq!((status(&told), text(&told)), ("completed", text(&expected)), "edited as a direct reply is");
    assert!(text(&told).contains("52"), "{told}");
    for _ in 0..2 {
        assert_eq!(get(&lab, &path_of(&told)).await.json(), told, "the same each time");
    }
    let streamed = get(&lab, &format!("{}?stream=true", path_of(&told))).await;
    let read = OpenaiResponses.read_stream(&streamed.body).expect("a stream");
    assert_eq!(read.answers[0].message.text(), text(&told), "and streamed");
    let recording = lab.sealed("r0").await;
    assert_eq!(recording.trajectory.steps.len(), 1, "a fetch is no call");
    assert_eq!(reply_of(&recording, 0), (told, Some(CloseCause::Complete)));
    assert_eq!(notes(&recording, "is made in the background").len(), 1, "{:?}", recording.notes);
    let label = Ruling::of(&recording).label().expect("a label");
    assert_eq!((label.errors.len(), label.errors[0].error.step), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_nobody_wants_edited_is_recorded_as_it_was_made() {
    for streamed in [false, true] {
        let mut lab = simulated(PLAN).await;
        let plain = if streamed {
            let asked = respond(&lab, "critic", question(), false).await;
            let body = get(&lab, &format!("{}?stream=true", path_of(&asked))).await.body;
            OpenaiResponses.read_stream(&body).expect("a stream").answers[0].message.text()
        } else {
            text(&polled(&lab, "critic").await.1).to_owned()
        };
        assert!(plain.contains("42"), "{plain}");
        let recording = lab.sealed("r0").await;
        let step = &recording.trajectory.steps[0];
        let attempt = step.last_attempt().expect("an attempt");
        assert_eq!((attempt.streamed, attempt.cause), (streamed, Some(CloseCause::Complete)));
        let read = if streamed {
            OpenaiResponses.read_stream(&attempt.reply)
        } else {
            OpenaiResponses.read_reply(&attempt.reply)
        };
        assert_eq!(read.expect("a reply").answers[0].message.text(), plain);
        assert_eq!(attempt.reply_delivered, None);
    }
}

/// By its stream, from the beginning or resumed before anything of it was seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_fetched_as_a_stream_is_edited_too() {
    let lab = simulated(PLAN).await;
    let asked = respond(&lab, "solver", question(), false).await;
    let path = format!("{}?stream=true", path_of(&asked));
    let rest = get(&lab, &format!("{path}&starting_after=1")).await.text();
    let whole = get(&lab, &path).await;
    let read = OpenaiResponses.read_stream(&whole.body).expect("a stream");
    assert!(read.answers[0].message.text().contains("52"), "{}", whole.text());
    assert!(whole.text().ends_with(&rest) && rest.contains("\"sequence_number\":2") && rest.contains("52"), "{rest}");
    assert!(!rest.contains("\"sequence_number\":1,") && !rest.contains("\"sequence_number\":1}"), "{rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_that_reword_a_reply_wait_for_it() {
    let mut lab = simulated(SPOILT).await;
    let (_, told) = polled(&lab, "solver").await;
    let recording = lab.sealed("r0").await;
    let errors = &recording.trajectory.steps[0].injected;
    assert_eq!((errors.len(), errors[0].delivered), (1, true), "{errors:?}");
    assert_eq!(reply_of(&recording, 0).0, told);
}

/// Faults of the connection meet the reply that comes at once; what waits is done all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_fetched_is_no_label() {
    for plan in [PLAN, SPOILT] {
        let mut lab = simulated(plan).await;
        let asked = respond(&lab, "solver", question(), false).await;
        assert_eq!(get(&lab, &path_of(&asked)).await.json()["status"], "in_progress");
        let recording = lab.sealed("r0").await;
        let (reply, cause) = reply_of(&recording, 0);
        assert_eq!((status(&reply), cause), ("queued", Some(CloseCause::Complete)), "what the program saw");
        let why = "was not fetched before the run ended";
        let said = recording.manipulator_failures.iter().any(|failure| failure.why.contains(why));
        assert!(said || !notes(&recording, why).is_empty(), "{:?}", recording.notes);
        assert!(recording.trajectory.steps[0].injected.iter().all(|error| !error.delivered));
        assert!(Ruling::of(&recording).label().is_err());
    }
}

/// Its step is over then: the next call of the agent does not overlap with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_reply_passes_as_it_is() {
    for fetched in [false, true] {
        let mut lab = simulated(PLAN).await;
        let asked = respond(&lab, "solver", question(), false).await;
        let path = path_of(&asked);
        assert_eq!(lab.post(&format!("{path}/cancel"), b"").await.json()["status"], "cancelled");
        if fetched {
            assert_eq!(get(&lab, &path).await.json()["status"], "cancelled");
        }
        respond(&lab, "solver", json!({"model": "m", "input": "What is 1 + 1?"}), false).await;
        let recording = lab.sealed("r0").await;
        assert_eq!(status(&reply_of(&recording, 0).0), "cancelled");
        assert!(recording.trajectory.steps[0].injected.iter().all(|error| !error.delivered));
        assert!(!recording.trajectory.steps[1].overlapping);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_reply_ends_its_step() {
    let mut lab = simulated(PLAN).await;
    let path = path_of(&respond(&lab, "solver", question(), false).await);
    let deleted = lab.raw(&crate::lab::request("DELETE", &path, b"", "Connection: close\r\n")).await;
    let deleted = crate::lab::Reply::parse(&deleted);
    respond(&lab, "solver", json!({"model": "m", "input": "What is 1 + 1?"}), false).await;
    let recording = lab.sealed("r0").await;
    assert_eq!(deleted.json()["deleted"], true, "{}", deleted.text());
    assert!(!recording.trajectory.steps[1].overlapping);
    assert_eq!(status(&reply_of(&recording, 0).0), "queued", "what its program saw of it");
    assert!(recording.manipulator_failures.iter().any(|failure| failure.why.contains("deleted")));
}

/// The simulator gives equal questions equal ids.
#[tokio::test(flavor = "multi_thread")]
async fn runs_with_equal_ids_do_not_see_each_other() {
    let mut lab = simulated(PLAN).await;
    let other = RunId::parse("other").expect("an id");
    lab.proxy.runs.open(&other, RunSetup::default()).await.expect("opens");
    let asked = respond(&lab, "solver", question(), false).await;
    let path = path_of(&asked);
    let again = lab.post("/r/other/a/solver/v1/responses", question().to_string().as_bytes()).await.json();
    assert_eq!(path_of(&again), path);
    let mut seen = [asked, again];
    for (seen, prefix) in seen.iter_mut().zip(["/r/r0", "/r/other"]) {
        while matches!(status(seen), "queued" | "in_progress") {
            *seen = get(&lab, &format!("{prefix}{path}")).await.json();
        }
    }
    assert!(text(&seen[0]).contains("52") && text(&seen[1]).contains("42"), "{seen:?}");
    for (run, told) in ["r0", "other"].into_iter().zip(seen) {
        assert_eq!(reply_of(&lab.sealed(run).await, 0), (told, Some(CloseCause::Complete)), "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_questions_of_one_run_are_two_steps() {
    let mut lab = simulated(PLAN).await;
    let first = respond(&lab, "critic", question(), false).await;
    assert_eq!(path_of(&respond(&lab, "writer", question(), false).await), path_of(&first));
    for _ in 0..2 {
        polled_at(&lab, first.clone()).await;
    }
    let recording = lab.sealed("r0").await;
    for step in 0..2 {
        assert_eq!(status(&reply_of(&recording, step).0), "completed", "{step}");
    }
}

/// The run of requests that name none is never given up, however long its reply takes.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_run_gives_up_what_it_awaits_unless_it_is_kept() {
    for kept in [true, false] {
        let lab = simulated(PLAN).await;
        let asked = respond(&lab, "solver", question(), false).await;
        let r0 = RunId::parse("r0").expect("an id");
        let retired = lab.proxy.runs.retire_idle(Duration::ZERO, Some(&r0).filter(|_| kept));
        assert_eq!(retired.is_empty(), kept);
        if kept {
            assert!(text(&polled_at(&lab, asked).await.1).contains("52"));
        }
    }
}

/// Several at once, fetched at once and out of order: each gets its own edit, once.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_fetches_see_one_edit() {
    let plan = PLAN.replace("when.call = 0", "when.always = true");
    let mut lab = Lab::over(Arc::new(Simulator::new(0)), Setup::planned(&plan)).await;
    let mut paths = Vec::new();
    for number in 0..4 {
        let body = json!({"model": "m", "input": format!("What is {number} + 30?"), "background": true});
        let path = path_of(&respond(&lab, "solver", body, false).await);
        get(&lab, &path).await;
        paths.push(path);
    }
    for path in paths.iter().rev() {
        let (one, two, three) = tokio::join!(get(&lab, path), get(&lab, path), get(&lab, path));
        assert_eq!((one.json(), two.json()), (three.json(), one.json()), "{path}");
    }
    let recording = lab.sealed("r0").await;
    for step in &recording.trajectory.steps {
        assert_eq!(step.injected.iter().filter(|error| error.delivered).count(), 1, "{}", step.step);
    }
}
