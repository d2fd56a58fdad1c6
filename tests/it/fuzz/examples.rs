//! Inputs that make sense, for each target of the fuzzer.

use aegis::surface::{self, Message, Reply, Role, Surface};

pub fn streams() -> Vec<Vec<u8>> {
    let stream = "data: {\"a\":1}\n\n: ping\r\n\r\nevent: x\ndata: 1\ndata: 2\n\ndata: [DONE]\n\n";
    [stream, "data:[DONE]\r\r", "event: error\ndata: {}\n\n", "\u{feff}data: x"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

pub fn bodies() -> Vec<Vec<u8>> {
    let odd =
        r#"{ "a" : [1e5, -0, 12345678901234567890123, "\u00e9\/\ud800"], "a":{}, "b":[{"c":null} , [ ]],"d":"x"}"#;
    [odd, "[]", "[1,2 , 3]", "\"a\"", "{}"].map(|text| text.as_bytes().to_vec()).to_vec()
}

/// A reply that says something and calls a tool.
pub fn reply(id: &str) -> Reply {
    let call = surface::ToolCall {
        id: "call_1".into(),
        name: "add".into(),
        arguments: "{\"a\": 1}".into(),
        ..Default::default()
    };
    let message = Message { tool_calls: vec![call], ..Message::text_of(Role::Assistant, "It is 42.") };
    let answer = surface::Answer { index: 0, message, finish_reason: Some("stop".into()) };
    Reply { id: id.into(), model: "m".into(), answers: vec![answer], ..Default::default() }
}

/// Requests and replies of a surface, as it composes them.
pub fn said(index: usize) -> Vec<Vec<u8>> {
    let surface: &dyn Surface = surface::ALL[index];
    let blank = surface.read_request(surface.blank_request()).expect("a request");
    let mut asked = blank.clone();
    asked.messages = vec![Message::text_of(Role::System, "You solve."), Message::text_of(Role::User, "12 + 30?")];
    let request = surface.write_request(surface.blank_request(), &blank, &asked).unwrap_or_default();
    let reply = reply("r_1");
    let mut all = vec![surface.blank_request().to_vec(), request.to_vec(), surface.compose(&reply, 1).to_vec()];
    all.push(surface.compose_stream(&reply, 1, true).concat());
    all
}

pub fn heads() -> Vec<Vec<u8>> {
    let post = "POST /v1/x HTTP/1.1\r\nHost: h\r\n";
    vec![
        format!("{post}Content-Length: 5\r\n\r\nhelloGET /y HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes(),
        format!("{post}Transfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n0\r\nT: 1\r\n\r\n").into_bytes(),
        b"GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        format!("{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes(),
    ]
}

/// The manifest and the log of a small run.
pub fn recorded() -> &'static (Vec<u8>, Vec<u8>) {
    static RECORDED: std::sync::OnceLock<(Vec<u8>, Vec<u8>)> = std::sync::OnceLock::new();
    RECORDED.get_or_init(|| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let simulator = std::sync::Arc::new(aegis::simulator::Simulator::new(0));
            let mut lab = crate::lab::Lab::over(simulator, crate::lab::Setup::default()).await;
            for text in ["What is 1 + 2?", "What is 3 + 4?"] {
                lab.post("/v1/chat/completions", &crate::lab::chat(text)).await;
            }
            lab.drain().await;
            let file = |name: &str| std::fs::read(lab.logs.join("r0").join(name)).expect("readable");
            (file("run.json"), file("log.jsonl"))
        })
    })
}

pub fn logs() -> Vec<Vec<u8>> {
    let log = &recorded().1;
    let first = log.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    vec![log.clone(), log[..log.len() - 20].to_vec(), [&log[..], b"\0\0\0"].concat(), first.to_vec()]
}

pub fn plans() -> Vec<Vec<u8>> {
    let plan = "format = 1\nseed = 7\n[[injection]]\nagent = \"solver\"\nfailure_mode = \"FM-2.6\"\nwhen.call = 0\nmanipulator.corrupt_number = { which = \"last\" }\n";
    let fault =
        "[[injection]]\nagent = [\"a*\", \"b\"]\nwhen = { first = 2, probability = 0.5 }\nfault.latency = { ms = 1 }\n";
    let check = format!(
        "{plan}[[check]]\nagent = \"solver\"\nmessages = [\"user: x\"]\nreply = \"It is 12.\"\nexpect_changed = true\n"
    );
    let wrong = format!("{plan}{fault}\nwhit = 1\n");
    vec![plan.into(), format!("format = 1\n{fault}").into_bytes(), check.into_bytes(), wrong.into_bytes()]
}
