//! The list of shapes: bodies as providers send them, each with its meaning. `tests/shapes/README.md` says what the keys mean.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use aegis::{
    surface::{self, Surface},
    trajectory::{CallEnding, Usage},
};
use serde::{Deserialize, de::DeserializeOwned};

/// A body and what it means.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Its name, one of a kind in its file.
    pub name: String,
    /// Who sends it, or the public report of it.
    pub source: String,
    /// The body as it is.
    body: Option<String>,
    /// The data of unnamed events.
    frames: Option<Vec<String>>,
    /// The data of events that are named by their `type`, or `event_type`.
    events: Option<Vec<String>>,
    /// Set where `body` is an event stream.
    #[serde(default)]
    stream: bool,
    /// What stands for each line break.
    line_end: Option<String>,
    /// `content-type`, where it is not that of the body; empty for none.
    content_type: Option<String>,
    /// `content-encoding`.
    pub encoding: Option<String>,
    text: Option<String>,
    #[serde(default)]
    calls: Vec<[String; 3]>,
    finish: Option<String>,
    answers: Option<Vec<Meant>>,
    usage: Option<[u64; 2]>,
    /// How the call ended.
    #[serde(default)]
    pub ending: Ending,
    /// What of an answer no reader can place, so that no edit may touch the reply.
    pub unplaced: Option<String>,
    /// The surface, by its place in [`surface::ALL`]; told by the file.
    #[serde(skip)]
    surface: usize,
}

/// One alternative answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meant {
    /// Its words.
    #[serde(default)]
    pub text: String,
    /// Its one call, as JSON `[id, name, arguments]`.
    pub call: Option<String>,
    /// Its calls: id, tool, arguments.
    #[serde(skip)]
    pub calls: Vec<[String; 3]>,
    /// Why it stopped, in the words of chat completions.
    pub finish: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The model answered.
    #[default]
    Answered,
    /// The request was refused as it was.
    Refused,
    /// The provider failed.
    Failed,
    /// The reply has no end.
    Cut,
}

impl Ending {
    /// Holds how a call ended to it.
    pub fn holds(self, ending: Option<CallEnding>) -> Result<(), String> {
        let is_so = match self {
            Self::Answered => ending == Some(CallEnding::Answered),
            Self::Refused => matches!(ending, Some(CallEnding::Refused(_))),
            Self::Failed => ending == Some(CallEnding::Failed),
            Self::Cut => ending == Some(CallEnding::Cut),
        };
        if is_so { Ok(()) } else { Err(format!("it ended as `{}`", ending.map_or("open", CallEnding::name))) }
    }

    /// The word of the list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Cut => "cut",
        }
    }
}

#[derive(Deserialize)]
struct File<T> {
    shape: Vec<T>,
}

/// All shapes of replies, by surface and in the order of their files.
pub fn replies() -> Vec<Shape> {
    let all = surface::ALL.iter().enumerate();
    all.flat_map(|(number, surface)| {
        let mut shapes: Vec<Shape> = read(surface.name());
        for shape in &mut shapes {
            shape.surface = number;
        }
        shapes
    })
    .collect()
}

/// The entries of a file of `tests/shapes`.
pub fn read<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes").join(format!("{name}.toml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: File<T> = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.shape
}

/// Bytes in a content coding.
pub fn packed(plain: Vec<u8>, encoding: Option<&str>) -> Vec<u8> {
    match encoding {
        None => plain,
        Some("gzip") => {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&plain).expect("in memory");
            packed.finish().expect("in memory")
        }
        Some("deflate") => {
            let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&plain).expect("in memory");
            packed.finish().expect("in memory")
        }
        Some("zstd") => zstd::encode_all(&plain[..], 3).expect("in memory"),
        Some("br") => {
            let mut packed = Vec::new();
            let parameters = brotli::enc::BrotliEncoderParams { quality: 4, ..Default::default() };
            brotli::BrotliCompress(&mut &plain[..], &mut packed, &parameters).expect("in memory");
            packed
        }
        Some(other) => panic!("unknown encoding {other}"),
    }
}

/// The same without its coding.
pub fn unpacked(bytes: &[u8], encoding: Option<&str>) -> Vec<u8> {
    let mut plain = Vec::new();
    match encoding {
        None => plain.extend_from_slice(bytes),
        Some("gzip") => drop(flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).expect("packed")),
        Some("deflate") => drop(flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut plain).expect("packed")),
        Some("zstd") => plain = zstd::decode_all(bytes).expect("packed"),
        Some("br") => drop(brotli::Decompressor::new(bytes, 4096).read_to_end(&mut plain).expect("packed")),
        Some(other) => panic!("unknown encoding {other}"),
    }
    plain
}

impl Shape {
    /// The API that it is a reply of.
    pub fn surface(&self) -> &'static dyn Surface {
        surface::ALL[self.surface]
    }

    /// Its name among all shapes.
    pub fn key(&self) -> String {
        format!("{}: {}", self.surface().name(), self.name)
    }

    /// Whether it is an event stream, whatever its type says.
    pub fn is_stream(&self) -> bool {
        self.stream || self.body.is_none()
    }

    /// The bytes before they are packed.
    pub fn plain(&self) -> String {
        let unnamed = |data: &String| format!("data: {data}\n\n");
        let named = |data: &String| {
            let event: serde_json::Value = serde_json::from_str(data).unwrap_or_else(|e| panic!("{}: {e}", self.name));
            let kind = event["type"].as_str().or(event["event_type"].as_str()).unwrap_or_default();
            format!("event: {kind}\ndata: {data}\n\n")
        };
        let body = match (&self.body, &self.frames, &self.events) {
            (Some(body), None, None) => body.clone(),
            (None, Some(frames), None) => frames.iter().map(unnamed).collect(),
            (None, None, Some(events)) => events.iter().map(named).collect(),
            _ => panic!("{}: one of `body`, `frames` and `events` is needed", self.name),
        };
        match &self.line_end {
            Some(end) => body.replace('\n', end),
            None => body,
        }
    }

    /// The bytes as they are sent.
    pub fn bytes(&self) -> Vec<u8> {
        packed(self.plain().into_bytes(), self.encoding.as_deref())
    }

    /// Its `content-type`; `None` where it has none.
    pub fn content_type(&self) -> Option<&str> {
        let usual = if self.is_stream() { "text/event-stream" } else { "application/json" };
        Some(self.content_type.as_deref().unwrap_or(usual)).filter(|kind| !kind.is_empty())
    }

    /// What it says.
    pub fn meant(&self) -> Vec<Meant> {
        let one = || {
            let finish = self.finish.clone();
            vec![Meant { text: self.text.clone().unwrap_or_default(), calls: self.calls.clone(), finish, call: None }]
        };
        let mut answers = self.answers.clone().unwrap_or_else(one);
        for answer in &mut answers {
            if let Some(call) = answer.call.take() {
                answer.calls = vec![serde_json::from_str(&call).unwrap_or_else(|e| panic!("{}: {e}", self.name))];
            }
        }
        answers
    }

    /// The tokens that it counts.
    pub fn usage(&self) -> Option<Usage> {
        self.usage.map(|[input, output]| Usage { input, output })
    }
}
