//! What `aegis run` says of a run of which nothing can be told: a check that is none, an upstream that is not there.

use std::path::Path;

use tokio::net::TcpListener;

use crate::{
    program::aegis,
    scripted::{Act, Scripted, http},
};

const PIPELINE: &str = "example pipeline --task 'Ann has 40 pencils and gives away 12. How many are left?'";

/// Exit code and talk of a run of this shell line.
async fn run(dir: &Path, options: &[&str], line: &str) -> (Option<i32>, String) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pipeline/aegis.toml");
    let line = line.replace("PIPELINE", &format!("{} {PIPELINE}", crate::program::AEGIS));
    let head = ["run", "--config", config];
    let output =
        aegis(dir).args([&head[..], options, &["--", "sh", "-c", &line]].concat()).output().await.expect("ran");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn a_check_that_cannot_tell_is_never_a_success() {
    let dir = tempfile::tempdir().expect("a directory");
    for (check, code, says) in [
        ("grepp 28", 2, &["error: --check cannot be run: check exited with 127", "RESULT  usage"][..]),
        ("./not-there", 2, &["error: --check cannot be run: check exited with 127", "RESULT  usage"]),
        ("/", 2, &["error: --check cannot be run: check exited with 126", "RESULT  usage"]),
        ("echo perhaps; exit 3", 1, &["outcome  check exited with 3: perhaps", "RESULT  finding", "outcome unknown"]),
        ("echo 27 expected; exit 1", 1, &["outcome  check exited with 1: 27 expected", "outcome failure"]),
        ("grep -q 'ANSWER: 28'", 0, &["RESULT  ok", "outcome success"]),
    ] {
        let (ended, said) = run(dir.path(), &["--upstream", "simulator", "--check", check], "PIPELINE").await;
        assert_eq!(ended, Some(code), "{check}: {said}");
        for words in says {
            assert!(said.contains(words), "{check}: `{words}` is not in\n{said}");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_nobody_reaches_is_said_whatever_the_program_makes_of_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("its address").port();
    let nobody = format!("http://127.0.0.1:{port}");
    // One program says what it met and crashes, another is polite and says nothing.
    for line in ["PIPELINE", "PIPELINE || true"] {
        let (code, said) = run(dir.path(), &["--upstream", &nobody], line).await;
        assert_eq!(code, Some(3), "{line}: {said}");
        assert!(said.contains(&format!("error: none of the run's calls reached {nobody}")), "{line}: {said}");
        assert!(said.contains("RESULT  infrastructure"), "{line}: {said}");
    }
    // The program is told whom nobody reached.
    let (_, said) = run(dir.path(), &["--upstream", &nobody], "PIPELINE").await;
    assert!(said.contains(&format!("cannot reach the upstream {nobody}")), "{said}");
}

#[tokio::test]
async fn calls_of_an_api_that_is_not_read_are_counted_and_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let upstream = Scripted::always(vec![http("200 OK", "application/json", r#"{"candidates":[]}"#)]).await;
    let url = format!("http://{}", upstream.address);
    let call = "import os, urllib.request as u; \
        u.urlopen(u.Request(os.environ['OPENAI_BASE_URL'].removesuffix('/v1') + '/v1beta/models/g:generateContent', b'{}')).read()";
    let options = ["run", "--upstream", &url, "--run", "g", "--", "python3", "-c", call];
    let output = aegis(dir.path()).args(options).output().await.expect("ran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("warning: 1 of the steps are calls of an API that is recorded, not read: gemini"), "{said}");
    assert!(said.contains("1 steps  1 unread"), "{said}");
    let steps = aegis::recording::read(&dir.path().join("logs/g")).expect("read").trajectory.steps;
    assert_eq!((steps[0].surface.as_str(), steps[0].path.as_str()), ("gemini", "/v1beta/models/g:generateContent"));
}

#[tokio::test]
async fn a_key_that_the_upstream_refuses_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let refusal = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: 32\r\n\r\n\
                   {\"error\":{\"message\":\"no such key\"}}";
    let refusal = refusal.replace("content-length: 32", "content-length: 35");
    let upstream = Scripted::start(vec![vec![Act::Say(refusal.into_bytes())]]).await;
    let url = format!("http://{}", upstream.address);
    let (code, said) = run(dir.path(), &["--upstream", &url], "PIPELINE || true").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(&format!("warning: {url} answered every call with 401")), "{said}");
    assert!(said.contains("hint: it wants a key"), "{said}");
}
