//! The program and the model of the matrix.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;

use crate::scripted::chat_reply;

/// The program: an adder, and a critic that hears what it said. What else it does is its first argument; with a second one the
/// model adds badly. The answer is the adder's. Names are declared by a header, but where two agents go by one name that stands
/// in their prompts.
pub const TEAM: &str = r#"
import http.client, json, os, re, signal, sys, threading, time
kind = sys.argv[1]
task = "5 and 7" + (" badly" if len(sys.argv) > 2 else "") + (" in a form that nobody reads" if kind == "unread" else "")
host, path = re.match(r"http://([^/]+)(/.*)", os.environ["OPENAI_BASE_URL"]).groups()
def ask(agent, text, prompt=None):
    messages = [{"role": "user", "content": text}]
    if prompt: messages.insert(0, {"role": "system", "content": prompt + '\n\nYou are an agent. Your internal name is "adder".'})
    headers = {"content-type": "application/json"}
    if not prompt: headers["x-aegis-agent"] = agent
    call = http.client.HTTPConnection(host)
    call.request("POST", path + "/chat/completions", json.dumps({"model": "m", "messages": messages}), headers)
    said = json.loads(call.getresponse().read())
    return str(said["choices"][0]["message"]["content"]) if "choices" in said else "nothing"
said = {}
def leave(text):
    call = http.client.HTTPConnection(host, timeout=0.15)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    try: call.request("POST", path + "/chat/completions", body, {"content-type": "application/json", "x-aegis-agent": "adder"}); call.getresponse()
    except TimeoutError: call.close(); time.sleep(0.5)
if kind == "left": leave("slowly " + task)
if kind == "contested":
    said[0] = ask("adder", task, "You add numbers, step by step.")
    ask("adder", "Write one.", "You write short poems about the sea.")
elif kind == "overlap":
    def late(): said[0] = ask("adder", "slowly " + task)
    ask("adder", "warm up")
    first = threading.Thread(target=lambda: ask("adder", "slowly 1 and 2"))
    second = threading.Thread(target=late)
    first.start(); time.sleep(0.1); second.start(); first.join(); second.join()
else:
    said[0] = ask("adder", task)
ask("critic", "Look at this: " + said[0])
print("ANSWER:", (re.findall(r"\d+", said[0]) or ["none"])[-1], flush=True)
if kind == "killed": os.kill(os.getpid(), signal.SIGKILL)
"#;

/// The model. It refuses what says so, takes its time over what is slow, and adds.
pub async fn model() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                let body =
                    request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                let (status, body) = answer(&String::from_utf8_lossy(&body)).await;
                let reply = Response::builder().status(status).header("content-type", "application/json");
                Ok::<_, Infallible>(reply.body(Full::new(Bytes::from(body))).expect("a reply"))
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    url
}

async fn answer(asked: &str) -> (u16, String) {
    if asked.contains("slowly") {
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let sum = if asked.contains("badly") { 11 } else { 12 };
    let message = json!({"role": "assistant", "content": {"answer": format!("The sum is {sum}.")}});
    let unread = json!({"id": "u", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}]});
    let refused = json!({"error": {"message": "too long", "type": "invalid_request_error"}}).to_string();
    match () {
        () if asked.contains("REFUSE") => (400, refused),
        () if asked.contains("nobody reads") => (200, unread.to_string()),
        () if asked.contains("1 and 2") => (200, chat_reply("The sum is 3.")),
        () if asked.contains("badly") => (200, chat_reply("The sum is 11.")),
        () => (200, chat_reply("The sum is 12.")),
    }
}
