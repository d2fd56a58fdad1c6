//! A hang-up makes a server read its files again: it stops nothing, and what cannot be used changes nothing.

use nix::sys::signal::Signal;

use crate::{
    lab::until,
    program::Served,
    restarts::{call, holds_file},
    routing::certificate,
    scripted::{Scripted, chat_reply, http},
};

/// A plan that makes another number of the answer.
fn plan(number: &str) -> String {
    format!(
        "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.always = true\n\
         side = \"response\"\nmanipulator.replace_text = {{ find = \"Five\", with = \"{number}\" }}\n"
    )
}

/// Tells the server to read its files again, and waits until it says how that went.
async fn reload(served: &Served, says: &str) {
    let before = served.said().matches(says).count();
    served.signal(Signal::SIGHUP);
    until(says, || served.said().matches(says).count() > before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_gives_new_runs_another_plan_and_old_ones_keep_theirs() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |text: &str| std::fs::write(dir.path().join("plan.toml"), text).expect("written");
    write(&plan("Six"));
    let upstream = Scripted::always(vec![http("200 OK", "application/json", &chat_reply("Five."))]).await;
    let url = format!("http://{}", upstream.address);
    let arguments = ["--upstream", &url, "--log-dir", "logs", "--plan", "plan.toml", "--idle", "0"];
    let served = Served::start(dir.path(), &arguments).await;
    let asked = async |run: &str| {
        let reply = call(&served, &format!("/r/{run}/a/solver/v1/chat/completions"), "How many?").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        ["Six", "Seven", "Eight"].into_iter().find(|number| reply.text().contains(number)).expect("an edit")
    };
    assert_eq!(asked("first").await, "Six");
    write(&plan("Seven"));
    assert_eq!(asked("early").await, "Six", "nobody told it");
    reload(&served, "reloaded  plan").await;
    assert_eq!(asked("second").await, "Seven");
    // What cannot be used changes nothing, and is said with its place.
    write("format = 1\n[[injection]]\nagent = 5\n");
    reload(&served, "not reloaded, all stays as it was: error: plan.toml:").await;
    assert_eq!(asked("third").await, "Seven");
    write(&plan("Eight"));
    reload(&served, "reloaded  plan").await;
    // A run keeps its plan, also where it was put down meanwhile.
    until("the runs are idle", || {
        !["first", "second"].iter().any(|run| holds_file(&served, &format!("logs/{run}/log.jsonl")))
    })
    .await;
    for (run, number) in [("first", "Six"), ("second", "Seven"), ("third", "Seven"), ("fourth", "Eight")] {
        assert_eq!(asked(run).await, number, "{run}");
    }
    assert_eq!(served.stop().await, Some(0));
    let steps = |run: &str| {
        let recording = aegis::recording::read(&dir.path().join("logs").join(run)).expect("a recording");
        assert!(recording.manifest.plan.is_some() && !recording.sealed);
        recording.trajectory.steps.len()
    };
    assert_eq!(["first", "second", "third", "fourth"].map(steps), [2, 2, 2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_reads_certificates_again_and_where_calls_go_stays() {
    let (right, config) = certificate();
    let (wrong, _) = certificate();
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
    write("ca.pem", &wrong);
    let upstream =
        Scripted::start_tls(vec![vec![http("200 OK", "application/json", &chat_reply("over TLS"))]], config).await;
    let configuration =
        |port: u16| format!("[upstream]\nurl = \"https://127.0.0.1:{port}/v1\"\nca_file = \"ca.pem\"\n");
    write("own.toml", &configuration(upstream.address.port()));
    let served = Served::start(dir.path(), &["--config", "own.toml", "--log-dir", "logs"]).await;
    let path = "/r/r/v1/chat/completions";
    call(&served, path, "Hello?").await.assert_own_error(502, "upstream_unreachable");
    write("ca.pem", &right);
    reload(&served, "reloaded  plan").await;
    assert_eq!(call(&served, path, "Hello?").await.status, 200);
    for (name, text, says) in [
        ("ca.pem", "no certificate", "not reloaded, all stays as it was: error: cannot use the certificates"),
        ("own.toml", "listten = 1", "not reloaded, all stays as it was: error: own.toml:1"),
        ("own.toml", &configuration(1), "not reloaded, all stays as it was: error: where calls go has changed"),
    ] {
        write(name, text);
        reload(&served, says).await;
        assert_eq!(call(&served, path, "Hello?").await.status, 200, "{says}");
        write("ca.pem", &right);
    }
    assert_eq!(served.stop().await, Some(0));
}
