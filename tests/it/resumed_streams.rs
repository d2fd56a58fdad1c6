//! Answers of tool servers that come on another stream than the one that their message opened: another attempt of the same step.

use std::sync::Arc;

use aegis::{
    proxy::{RunSetup, upstream::Upstream},
    recording::Recording,
    replay::{Cassette, Replayed},
    surface::{Part, door, named},
    trajectory::RunId,
};

use crate::{
    lab::{Lab, Reply, Setup, request},
    scripted::{Act, Scripted, chunk, http, last_chunk},
};

const CALL: &str =
    r#"{"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}},"jsonrpc":"2.0","id":7}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"5 eggs"}]}}"#;
const SESSION: &str = "mcp-session-id: s1\r\n";

/// A stream whose events have ids.
fn stream(events: &[(&str, &str)]) -> Vec<Act> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let events = events.iter().map(|(id, data)| chunk(format!("id: {id}\ndata: {data}\n\n")));
    [Act::Say(head.as_bytes().to_vec())].into_iter().chain(events).chain([last_chunk()]).collect()
}

/// A proxy before a tool server `calc` that follows this script.
async fn lab(script: Vec<Vec<Act>>, plan: Option<&str>) -> (Lab, Scripted) {
    let server = Scripted::start(script).await;
    let model = Scripted::always(vec![http("500 No", "text/plain", "nobody asks")]).await;
    let setup = Setup { mcp: vec![("calc", server.address)], ..plan.map(Setup::planned).unwrap_or_default() };
    (Lab::before(model.address, setup).await, server)
}

async fn read_on(lab: &Lab, last: &str) -> Reply {
    read_on_in(lab, "r0", last).await
}

async fn read_on_in(lab: &Lab, run: &str, last: &str) -> Reply {
    let headers = format!("accept: text/event-stream\r\nlast-event-id: {last}\r\n{SESSION}connection: close\r\n");
    Reply::parse(&lab.raw(&request("GET", &format!("/r/{run}/mcp/calc"), b"", &headers)).await)
}

fn attempts(recording: &Recording) -> Vec<Vec<(Option<u16>, bool)>> {
    let steps = recording.trajectory.steps.iter();
    steps.map(|step| step.attempts.iter().map(|one| (one.status, one.is_answered())).collect()).collect()
}

fn text(recording: &Recording, step: usize) -> String {
    let step = &recording.trajectory.steps[step];
    let attempt = step.last_attempt().expect("an attempt");
    let reply = door::reply(named(&step.surface).expect("a surface"), attempt.delivered(), attempt.streamed);
    reply.expect("a reply").answers[0].message.parts.iter().filter_map(Part::as_text).collect()
}

#[tokio::test]
async fn an_answer_on_another_stream_belongs_to_the_step_that_asked() {
    let script = vec![
        stream(&[("1_a", ""), ("2_a", r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#)]),
        // Still nothing: it is read on once more, from where that ended.
        stream(&[("3_a", "")]),
        stream(&[("4_a", RESULT)]),
        vec![http("405 Method Not Allowed", "text/plain", "no stream")],
    ];
    let (mut lab, server) = lab(script, None).await;
    let broken = lab.post_with("/r/r0/mcp/calc", CALL.as_bytes(), SESSION).await;
    assert!(!broken.text().contains("eggs"), "{}", broken.text());
    // The last event that the client got may be an earlier one.
    assert_eq!(read_on(&lab, "1_a").await.text(), "id: 3_a\ndata: \n\n");
    assert_eq!(read_on(&lab, "3_a").await.text(), format!("id: 4_a\ndata: {RESULT}\n\n"));
    // What nobody asked for passes, and is no step.
    assert_eq!(read_on(&lab, "3_a").await.status, 405);
    let heads = server.heads();
    assert!(heads[2].starts_with("GET /mcp HTTP/1.1") && heads[2].contains("last-event-id: 3_a"), "{heads:?}");
    assert_eq!(server.bodies(), [CALL.as_bytes(), b"", b"", b""], "nothing is sent with a `GET`");
    let recording = lab.sealed("r0").await;
    assert_eq!(attempts(&recording), [[(Some(200), false), (Some(200), false), (Some(200), true)]]);
    assert_eq!(text(&recording, 0), "5 eggs");
}

#[tokio::test]
async fn an_edit_reaches_the_answer_where_it_comes() {
    let mut left_open = stream(&[("2_a", RESULT)]);
    left_open.pop();
    left_open.push(Act::Gate);
    let script = vec![
        stream(&[("1_a", "")]),
        // It stays open: the server has more to say to whoever reads on.
        left_open,
        vec![http("200 OK", "application/json", &RESULT.replace('7', "8"))],
    ];
    let plan = r#"
        [[injection]]
        tool = "add"
        when.call = 0
        manipulator.replace_text = { find = "5 eggs", with = "6 eggs" }
    "#;
    let (mut lab, _server) = lab(script, Some(plan)).await;
    lab.post_with("/r/r0/mcp/calc", CALL.as_bytes(), SESSION).await;
    let read = read_on(&lab, "1_a").await.text();
    assert!(read.contains("6 eggs") && read.starts_with("id: 2_a\n"), "{read}");
    let next = lab.post("/r/r0/mcp/calc", CALL.replace('7', "8").as_bytes()).await;
    assert!(next.text().contains("5 eggs"), "the second call is another one");
    let recording = lab.sealed("r0").await;
    assert_eq!(attempts(&recording), [vec![(Some(200), false), (Some(200), true)], vec![(Some(200), true)]]);
    assert_eq!((text(&recording, 0), text(&recording, 1)), ("6 eggs".to_owned(), "5 eggs".to_owned()));
    assert!(recording.manipulator_failures.is_empty(), "{:?}", recording.manipulator_failures);
    assert_eq!(recording.trajectory.steps[0].injected.iter().filter(|error| error.delivered).count(), 1);
}

#[tokio::test]
async fn a_replay_is_read_on_as_the_record_was() {
    let script = vec![stream(&[("1_a", "")]), stream(&[("2_a", "")]), stream(&[("3_a", RESULT)])];
    let (mut lab, server) = lab(script, None).await;
    lab.post_with("/r/r0/mcp/calc", CALL.as_bytes(), SESSION).await;
    let first = read_on(&lab, "1_a").await.text();
    let second = read_on(&lab, "2_a").await.text();
    let recorded = lab.sealed("r0").await;

    let replayed = Arc::new(Replayed::new(Arc::new(Cassette::open(&lab.logs.join("r0")).expect("a record"))));
    let upstream = Arc::<Replayed>::clone(&replayed) as Arc<dyn Upstream>;
    let setup = Setup { mcp: vec![("calc", server.address)], default_run: None, ..Setup::default() };
    let mut again = Lab::over(Arc::clone(&upstream), setup).await;
    let run = RunId::parse("r1").expect("an id");
    again.proxy.runs.open(&run, RunSetup { upstream: Some(upstream), ..RunSetup::default() }).await.expect("a run");
    again.post_with("/r/r1/mcp/calc", CALL.as_bytes(), SESSION).await;
    assert_eq!(read_on_in(&again, "r1", "1_a").await.text(), first);
    assert_eq!(read_on_in(&again, "r1", "2_a").await.text(), second);
    assert_eq!(read_on_in(&again, "r1", "2_a").await.status, 405, "once");
    assert_eq!(attempts(&again.sealed("r1").await), attempts(&recorded));
    let report = replayed.report();
    assert!(report.missed.is_empty() && report.refused.is_empty() && report.unused.is_empty(), "{report:?}");
    assert_eq!(report.served.len(), 3);
    assert_eq!(server.count(), 3, "nobody is asked");
}
