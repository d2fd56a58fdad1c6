//! HTTP Archive 1.2: every model call as an entry that browsers and proxies open. A dataset holds messages, not bytes or
//! clocks: bodies are chat completions made of them, entry n starts n seconds after the epoch, sizes are unknown.

use serde_json::{Map, Value, json};

use super::{
    DiskLayout, ExportContext, Format, Unfit, WrittenPiece,
    chat::{message, tools},
    schema::{
        Field::{May, Needed},
        Type,
    },
};
use crate::dataset::{Sample, SampleStep};

/// What the archive holds.
const DOCUMENT: Type = Type::Record(&[Needed(
    "log",
    Type::Record(&[
        Needed("version", Type::OneOf(&["1.2"])),
        Needed("creator", Type::Record(&[Needed("name", Type::Text), Needed("version", Type::Text)])),
        Needed("entries", Type::List(&ENTRY)),
    ]),
)]);

const ENTRY: Type = Type::Record(&[
    Needed("startedDateTime", Type::Text),
    Needed("time", Type::Number),
    Needed(
        "request",
        Type::Record(&[
            Needed("method", Type::Text),
            Needed("url", Type::Text),
            Needed("httpVersion", Type::Text),
            Needed("cookies", Type::List(&Type::Json)),
            Needed("headers", Type::List(&PAIR)),
            Needed("queryString", Type::List(&PAIR)),
            Needed("postData", Type::Record(&[Needed("mimeType", Type::Text), Needed("text", Type::Text)])),
            Needed("headersSize", Type::Whole),
            Needed("bodySize", Type::Whole),
        ]),
    ),
    Needed(
        "response",
        Type::Record(&[
            Needed("status", Type::Whole),
            Needed("statusText", Type::Text),
            Needed("httpVersion", Type::Text),
            Needed("cookies", Type::List(&Type::Json)),
            Needed("headers", Type::List(&PAIR)),
            Needed(
                "content",
                Type::Record(&[
                    Needed("size", Type::Whole),
                    Needed("mimeType", Type::Text),
                    Needed("text", Type::Text),
                ]),
            ),
            Needed("redirectURL", Type::Text),
            Needed("headersSize", Type::Whole),
            Needed("bodySize", Type::Whole),
        ]),
    ),
    Needed("cache", Type::Map(&Type::Json)),
    Needed(
        "timings",
        Type::Record(&[Needed("send", Type::Number), Needed("wait", Type::Number), Needed("receive", Type::Number)]),
    ),
    Needed("_run", Type::Text),
    Needed("_agent", Type::Text),
    Needed("_step", Type::Whole),
    Needed("_labelled", Type::Flag),
    May("_account", Type::Text),
]);

const PAIR: Type = Type::Record(&[Needed("name", Type::Text), Needed("value", Type::Text)]);

/// Writes the archive.
#[derive(Debug)]
pub(super) struct Har;

impl Format for Har {
    fn name(&self) -> &'static str {
        "har"
    }
    fn description(&self) -> &'static str {
        "HTTP Archive 1.2: an entry a model call, remade as chat completions; entry times are step numbers in seconds"
    }
    fn takes_recordings(&self) -> bool {
        true
    }
    fn shape(&self) -> DiskLayout {
        DiskLayout::Document {
            open: concat!(
                r#"{"log":{"version":"1.2","creator":{"name":"aegis","version":""#,
                env!("CARGO_PKG_VERSION"),
                "\"},\"entries\":[\n"
            ),
            close: "\n]}}\n",
        }
    }
    fn schema(&self) -> Type {
        DOCUMENT
    }
    fn takes_clean(&self) -> bool {
        true
    }
    fn pieces(&self, sample: &Sample, _: &ExportContext<'_>) -> Result<Vec<WrittenPiece>, Unfit> {
        let pieces: Vec<WrittenPiece> =
            sample.steps.iter().map(|step| WrittenPiece::row(entry(sample, step))).collect();
        if pieces.is_empty() { Err(Unfit("no step")) } else { Ok(pieces) }
    }
}

fn entry(sample: &Sample, step: &SampleStep) -> Value {
    let model = sample.model_name(step.model.as_deref().unwrap_or("unknown"));
    let input = sample.input(step.step).unwrap_or_default();
    let mut asked = Map::new();
    asked.insert("model".to_owned(), model.as_str().into());
    asked.insert("messages".to_owned(), input.into_iter().map(message).collect());
    asked.extend(tools(sample, step).map(|tools| ("tools".to_owned(), tools)));
    let asked = Value::Object(asked).to_string();
    let finish = step.finish_reason.as_deref().unwrap_or("stop");
    let answered = step.output.as_ref().map(|output| {
        json!({"object": "chat.completion", "model": model,
            "choices": [{"index": 0, "message": message(output), "finish_reason": finish}]})
        .to_string()
    });
    let status = step.status.unwrap_or(200);
    let (minutes, seconds) = (step.step / 60, step.step % 60);
    let labelled = sample.label.iter().flat_map(|truth| &truth.errors).any(|error| error.step == Some(step.step));
    let mut entry = json!({
        "startedDateTime": format!("1970-01-01T{:02}:{:02}:{seconds:02}.000Z", minutes / 60 % 24, minutes % 60),
        "time": 0,
        "request": {"method": "POST", "url": "http://localhost/v1/chat/completions", "httpVersion": "HTTP/1.1",
            "cookies": [], "headers": [{"name": "content-type", "value": "application/json"}], "queryString": [],
            "postData": {"mimeType": "application/json", "text": asked}, "headersSize": -1, "bodySize": -1},
        "response": {"status": status, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [],
            "headers": [{"name": "content-type", "value": "application/json"}],
            "content": {"size": answered.as_ref().map_or(0, String::len), "mimeType": "application/json",
                "text": answered.unwrap_or_default()},
            "redirectURL": "", "headersSize": -1, "bodySize": -1},
        "cache": {},
        "timings": {"send": 0, "wait": 0, "receive": 0},
        "_run": sample.id, "_agent": step.agent, "_step": step.step, "_labelled": labelled,
    });
    if let (Some(fields), Some(account)) = (entry.as_object_mut(), &step.account) {
        fields.insert("_account".to_owned(), account.as_str().into());
    }
    entry
}
