//! A disk that is full while programs call: nothing is forwarded that cannot be recorded, and nobody ends by it.

use aegis::trajectory::CloseCause;

use crate::{
    lab::chat,
    program::Served,
    restarts::{call, open_recording, try_call},
    scripted::{Scripted, chat_reply, http},
};

/// A limit on the size of files fails writes as a full disk does, and needs no privilege. The soft one can be raised again.
const FULL: &str = "trap '' XFSZ; ulimit -S -f 60";

/// So many words that no other call has, and nobody could compress.
fn words(call: usize) -> String {
    let word = |at: usize| blake3::hash(format!("{call} {at}").as_bytes()).to_hex().to_string();
    (0..40).map(word).collect::<Vec<_>>().join(" ")
}

/// Gives a server's disk room again.
fn clear(served: &Served) {
    let raised = std::process::Command::new("prlimit")
        .args(["--pid", &served.id().to_string(), "--fsize=unlimited:unlimited"])
        .status()
        .expect("prlimit is there");
    assert!(raised.success());
}

/// A program that calls while the disk is full waits, and does not end.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_room_on_a_full_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    let served = Served::start_after(FULL, dir.path(), &["--upstream", "simulator", "--log-dir", "logs"]).await;
    let path = "/r/r/a/solver/v1/chat/completions";
    let mut answered = 0;
    // The call that fills the disk was under way, and is answered at once.
    while try_call(served.address, path, &chat(&words(answered))).await.is_some_and(|reply| reply.status == 200) {
        answered += 1;
    }
    let address = served.address;
    let waiting: Vec<_> = (0..4)
        .map(|call| {
            let body = chat(&words(1000 + call));
            tokio::spawn(async move { try_call(address, path, &body).await.expect("an answer").status })
        })
        .collect();
    let other = tokio::spawn(async move { try_call(address, "/r/other/v1/chat/completions", &chat("hi")).await });
    tokio::task::yield_now().await;
    clear(&served);
    for call in waiting {
        assert_eq!(call.await.expect("no panic"), 200);
    }
    assert_eq!(other.await.expect("no panic").expect("an answer").status, 200, "a run that is new waits, too");
    assert_eq!(served.stop().await, Some(0));
    let recording = open_recording(dir.path(), "r");
    let whole = recording.trajectory.steps.iter().filter(|step| step.attempts[0].cause == Some(CloseCause::Complete));
    assert_eq!(whole.count(), answered + 4);
}

/// A disk that is full, and then is not: the run goes on by itself. Nothing is forwarded meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_when_the_disk_has_room_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("Noted."))]).await;
    let url = format!("http://{}", upstream.address);
    std::fs::write(dir.path().join("aegis.toml"), "[limits]\nroom_wait_s = 0.3\n").expect("written");
    let served = Served::start_after(FULL, dir.path(), &["--upstream", &url, "--log-dir", "logs"]).await;
    let path = "/r/r/a/solver/v1/chat/completions";
    let mut answered = 0;
    while let Some(reply) = try_call(served.address, path, &chat(&words(answered))).await {
        if reply.status != 200 {
            reply.assert_own_error(503, "recording_failed");
            break;
        }
        answered += 1;
    }
    let forwarded = upstream.count();
    assert!(answered > 2 && forwarded <= answered + 1, "{answered} answered, {forwarded} forwarded");
    for _ in 0..3 {
        let refused = call(&served, path, "And now?").await;
        refused.assert_own_error(503, "recording_failed");
        assert_eq!(refused.header("x-should-retry").as_deref(), Some("true"), "somebody may clear the disk");
    }
    assert_eq!(upstream.count(), forwarded, "what cannot be recorded is not forwarded");
    clear(&served);
    for more in 0..3 {
        let reply = call(&served, path, &words(1000 + more)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert_eq!(served.stop().await, Some(0));
    let recording = open_recording(dir.path(), "r");
    let steps = &recording.trajectory.steps;
    assert!(steps.iter().enumerate().all(|(place, step)| step.step as usize == place && step.call as usize == place));
    let whole = steps.iter().filter(|step| step.attempts[0].cause == Some(CloseCause::Complete)).count();
    assert_eq!(whole, answered + 3, "what was answered is recorded");
}
