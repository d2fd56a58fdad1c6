//! F11, F12, F13: bodies that are not what they should be pass as they are, or are refused in words; nothing is
//! guessed, nothing grows without bound.

use std::sync::atomic::Ordering;

use aegis::{proxy::Limits, trajectory::CloseCause};

use crate::{
    lab::{Lab, Setup, chat, until},
    scripted::{Act, Scripted, chat_reply, chunk, delta, http, http_with, last_chunk, stream_head},
};

const AIMED: &str = r#"
format = 1
seed = 1
[[injection]]
agent = "solver"
failure_mode = "FM-2.6"
when.always = true
manipulator.corrupt_number = { which = "last", by = 10 }
"#;

/// Request bodies that no reader of chat completions can read.
fn unreadable() -> Vec<(&'static str, Vec<u8>)> {
    let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
    vec![
        ("empty", Vec::new()),
        ("malformed", b"{\"messages\": [{\"role\"".to_vec()),
        ("not an object", b"[1, 2]".to_vec()),
        ("invalid UTF-8", [b"{\"messages\":[{\"role\":\"user\",\"content\":\"", &[0xff, 0xfe][..], b"\"}]}"].concat()),
        ("a number that is none", format!("{{{messages},\"temperature\":NaN}}").into_bytes()),
        ("packed and damaged", [b"\x28\xb5\x2f\xfd", &chat("hi")[..]].concat()),
        ("two bodies", [chat("a"), chat("b")].concat()),
    ]
}

/// Odd, but somebody's server reads it.
fn odd() -> Vec<(&'static str, Vec<u8>)> {
    let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
    vec![
        (
            "10,000 levels deep",
            format!("{{{messages},\"x\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes(),
        ),
        ("a byte order mark", format!("\u{feff}{{{messages}}}").into_bytes()),
        ("keys twice", format!("{{\"seed\":1,\"seed\":2,{messages},\"model\":\"a\",\"model\":\"b\"}}").into_bytes()),
        (
            "numbers past any type",
            format!("{{{messages},\"seed\":123456789012345678901234567890,\"t\":1E400,\"z\":-0}}").into_bytes(),
        ),
        ("escapes", br#"{"messages":[{"role":"user","content":"\u00e9\/\ud83d\ude00 \ud800"}]}"#.to_vec()),
        ("packed", zstd::encode_all(format!("{{{messages}}}").as_bytes(), 1).expect("in memory")),
        ("blanks", format!(" \r\n\t{{ {messages} }}\n\n").into_bytes()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_plan_needs_to_read_passes_verbatim() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("It is 12."))]).await;
    let lab = Lab::before(upstream.address, Setup::planned(AIMED)).await;
    for (name, body) in unreadable().into_iter().chain(odd()) {
        let reply = lab.post("/a/other/v1/chat/completions", &body).await;
        assert_eq!((reply.status, reply.text()), (200, chat_reply("It is 12.")), "{name}");
        assert_eq!(upstream.bodies().last(), Some(&body), "{name}");
        let recording = lab.recorded("r0");
        assert_eq!(recording.trajectory.steps.last().expect("a step").request, body, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plan_must_read_and_cannot_is_refused_in_words() {
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("It is 12."))]).await;
    let lab = Lab::before(upstream.address, Setup::planned(AIMED)).await;
    for (name, body) in unreadable() {
        let reply = lab.post("/a/solver/v1/chat/completions", &body).await;
        assert_eq!(reply.status, 400, "{name}: {}", reply.text());
        reply.assert_own_error(400, "unreadable_body");
        assert_eq!(upstream.count(), 0, "{name}: nothing half-checked leaves");
    }
    // The process is none the worse for it.
    let reply = lab.post("/a/solver/v1/chat/completions", &chat("What is 10 + 2?")).await;
    assert_eq!(reply.text(), chat_reply("It is 22."));
}

/// Streams that are odd in every way the format allows, and in some that it does not.
fn streams() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let split = |text: &str, size: usize| text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let done = "data: [DONE]\n\n";
    let emoji = format!("{}{done}", delta("é😀漢字"));
    let crlf = format!(": ping\r\n\r\n{}{done}", delta("x")).replace('\n', "\r\n");
    vec![
        ("split within code points", split(&emoji, 1)),
        ("split within CRLF", split(&crlf, 3)),
        ("carriage returns alone", split(&format!("{}{done}", delta("x")).replace('\n', "\r"), 7)),
        ("no colon", split(&format!("data\nevent\nnonsense\n\n{done}"), 9)),
        ("no blank after the colon", split("data:{\"choices\":[]}\n\ndata:[DONE]\n\n", 5)),
        ("invalid UTF-8", vec![b"data: \xff\xfe\x80\n\n".to_vec(), done.into()]),
        ("not JSON", split(&format!("data: {{\"choices\": [\n\ndata: NaN\n\n{done}"), 11)),
        ("no blank line at the end", split(&format!("{}data: [DONE]", delta("x")), 13)),
        ("bytes after the end", split(&format!("{}{done}: late\n\ndata: more\n\n", delta("x")), 17)),
        ("the end twice", split(&format!("{}{done}{done}", delta("x")), 19)),
        ("almost the end", split(&format!("data: [DONE\n\ndata: [DONE] \n\n data: [DONE]\n\n{done}"), 2)),
        ("a byte order mark", split(&format!("\u{feff}{}{done}", delta("x")), 4)),
        ("an event of many lines", split(&format!("id: 1\ndata: {{\ndata: }}\nretry: 5\n\n{done}"), 6)),
        ("a line of 10 MiB", vec![vec![b'x'; 10 << 20], b"\n\n".to_vec(), done.into()]),
        ("no line end at all", vec![vec![b'd'; 1 << 20]; 3]),
        ("packed", vec![zstd::encode_all(emoji.as_bytes(), 1).expect("in memory")]),
        ("empty", Vec::new()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_streams_pass_unchanged_and_are_kept() {
    for (name, pieces) in streams() {
        let mut script = vec![stream_head()];
        script.extend(pieces.iter().map(chunk));
        script.push(last_chunk());
        let upstream = Scripted::always(script).await;
        let mut lab = Lab::before(upstream.address, Setup::default()).await;
        let reply = lab.post("/v1/chat/completions", &chat("x")).await;
        assert!(reply.body == pieces.concat(), "{name}: {} bytes of {}", reply.body.len(), pieces.concat().len());
        assert!(reply.whole, "{name}");
        let recording = lab.sealed("r0").await;
        let attempt = &recording.trajectory.steps[0].attempts[0];
        assert!(attempt.cause.is_some(), "{name}");
        // What follows the end marker passes, but the exchange is over by then.
        assert!(reply.body.starts_with(&attempt.reply), "{name}");
        assert!(name.contains("end") || attempt.reply.len() == reply.body.len(), "{name}");
    }
}

/// An edit of a stream that cannot be read is not made: the bytes pass, the run says why, there is no label.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_edited_passes_untouched_and_is_said_so() {
    let bomb = zstd::encode_all(std::io::Read::take(std::io::repeat(b' '), 256 << 20), 1).expect("in memory");
    let packed = "content-type: application/json\r\ncontent-encoding: ";
    let torn = chat_reply("It is 12.");
    let cases = [
        ("unpacks to 256 MiB", http_with("200 OK", &format!("{packed}zstd\r\n"), &bomb), bomb.clone()),
        ("an unknown coding", http_with("200 OK", &format!("{packed}rot13\r\n"), b"abc"), b"abc".to_vec()),
        (
            "damaged",
            http_with("200 OK", &format!("{packed}gzip\r\n"), b"\x1f\x8b\x08damaged"),
            b"\x1f\x8b\x08damaged".to_vec(),
        ),
        ("not JSON", http("200 OK", "application/json", "<html>12</html>"), b"<html>12</html>".to_vec()),
        ("half of it", http("200 OK", "application/json", &torn[..40]), torn[..40].into()),
        ("no number", http("200 OK", "application/json", &chat_reply("none")), chat_reply("none").into()),
    ];
    for (name, said, body) in cases {
        let upstream = Scripted::always(vec![said]).await;
        let mut lab = Lab::before(upstream.address, Setup::planned(AIMED)).await;
        let reply = lab.post("/a/solver/v1/chat/completions", &chat("What is 10 + 2?")).await;
        assert!(reply.status == 200 && reply.body == body, "{name}: {}", reply.status);
        let recording = lab.sealed("r0").await;
        assert_eq!(recording.manipulator_failures.len(), 1, "{name}");
        assert_eq!(recording.label, None, "{name}");
        assert_eq!(
            recording.trajectory.steps[0].last_attempt().and_then(|last| last.cause),
            Some(CloseCause::Complete)
        );
    }
}

/// A packed reply is unpacked in order to edit it, and then says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_packed_reply_is_edited_unpacked() {
    let packed = zstd::encode_all(chat_reply("It is 12.").as_bytes(), 1).expect("in memory");
    let headers = "content-type: application/json\r\ncontent-encoding: zstd\r\netag: \"1\"\r\n";
    let upstream = Scripted::always(vec![http_with("200 OK", headers, &packed)]).await;
    let lab = Lab::before(upstream.address, Setup::planned(AIMED)).await;
    let reply = lab.post("/a/solver/v1/chat/completions", &chat("What is 10 + 2?")).await;
    assert_eq!(reply.text(), chat_reply("It is 22."));
    assert_eq!((reply.header("content-encoding"), reply.header("etag")), (None, None), "{}", reply.head);
}

/// A reply that is too long to be held for an edit passes untouched, as it streams.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_too_long_to_edit_passes_untouched() {
    let frame = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let upstream = Scripted::always(vec![stream_head(), Act::Flood(frame.into_bytes(), u64::MAX)]).await;
    let limits = Limits { max_body_bytes: 4 << 20, ..Limits::default() };
    let mut lab = Lab::before(upstream.address, Setup { limits, ..Setup::planned(AIMED) }).await;
    let mut client = lab.client().await;
    client.post("/a/solver/v1/chat/completions", &chat("What is 10 + 2?")).await;
    assert!(client.read_until(b"\r\n\r\n").await);
    let mut buffer = vec![0; 1 << 20];
    while client.seen.len() < 6 << 20 {
        let count = tokio::io::AsyncReadExt::read(&mut client.stream, &mut buffer).await.expect("readable");
        assert!(count > 0, "the reply ended");
        client.seen.extend_from_slice(&buffer[..count]);
    }
    assert!(client.seen.starts_with(b"HTTP/1.1 200"));
    drop(client);
    until("the upstream is rid of it", || upstream.live.load(Ordering::SeqCst) == 0).await;
    let recording = lab.sealed("r0").await;
    assert_eq!(recording.manipulator_failures.len(), 1);
    assert!(recording.manipulator_failures[0].why.contains("4194304"), "{:?}", recording.manipulator_failures);
    assert!(recording.trajectory.steps[0].attempts[0].reply.len() > 6_000_000);
}
