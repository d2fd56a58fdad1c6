//! Embeddings: `POST …/embeddings` (<https://platform.openai.com/docs/api-reference/embeddings>).
//!
//! What is embedded is read; nothing of it is edited, and a reply holds no words.

use base64::Engine;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    Conversation, Message, Part, Reply, Role, Surface, SurfaceError, Vectors,
    fields::{number, string, text, unreadable},
    openai_chat,
    splice::{Node, member},
};

const EXPECTED: &str = "an embeddings request";

/// Numbers of a vector when the request does not say how many.
const DIMENSIONS: u64 = 64;

/// Most numbers of a vector that are composed.
const DIMENSIONS_MAX: u64 = 8192;

/// The embeddings API.
#[derive(Debug)]
pub struct OpenaiEmbeddings;

impl Surface for OpenaiEmbeddings {
    fn name(&self) -> &'static str {
        "openai_embeddings"
    }

    fn path(&self) -> &'static str {
        "/v1/embeddings"
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        method == "POST" && path.strip_suffix('/').unwrap_or(path).ends_with("/embeddings")
    }

    fn read_request(&self, body: &[u8]) -> Result<Conversation, SurfaceError> {
        let root = Node::parse(body).map_err(|detail| unreadable(EXPECTED, detail))?;
        let members = root.members();
        let input = member(&members, "input").filter(|input| input.is_array() || input.string().is_some());
        let input = input.ok_or_else(|| unreadable(EXPECTED, "`input` is missing or is neither a text nor a list"))?;
        let texts = match input.string() {
            Some(text) => vec![Part::Text(text.into_owned())],
            None => input.elements().iter().map(element).collect(),
        };
        let message = |(origin, part)| Message {
            parts: vec![part],
            origin: Some(origin),
            ..Message::text_of(Role::User, String::new())
        };
        let dimensions = number(&members, "dimensions").unwrap_or(DIMENSIONS).clamp(1, DIMENSIONS_MAX);
        Ok(Conversation {
            model: text(&members, "model"),
            messages: texts.into_iter().enumerate().map(message).collect(),
            user: string(&members, "user"),
            choices: 1,
            vectors: Some(Vectors {
                base64: string(&members, "encoding_format").as_deref() == Some("base64"),
                dimensions: usize::try_from(dimensions).unwrap_or(1),
            }),
            ..Conversation::default()
        })
    }

    fn write_request(&self, _: &[u8], _: &Conversation, _: &Conversation) -> Result<Bytes, SurfaceError> {
        no_place()
    }

    fn blank_request(&self) -> &'static [u8] {
        br#"{"model":"m","input":""}"#
    }

    fn read_reply(&self, body: &[u8]) -> Result<Reply, SurfaceError> {
        let root = Node::parse(body).map_err(|detail| unreadable("embeddings", detail))?;
        let members = root.members();
        if !member(&members, "data").is_some_and(|data| data.is_array()) {
            return Err(unreadable("embeddings", "`data` is missing or is no list"));
        }
        let usage = member(&members, "usage").and_then(|node| openai_chat::usage(&node));
        Ok(Reply { model: text(&members, "model"), usage, ..Reply::default() })
    }

    fn write_reply(&self, _: &[u8], _: &Reply, _: &Reply) -> Result<Bytes, SurfaceError> {
        no_place()
    }

    fn answer_members(&self) -> &'static [&'static str] {
        &["data"]
    }

    fn compose(&self, reply: &Reply, _: u64) -> Bytes {
        let row = |(index, vector): (usize, &Vec<f32>)| json!({"object": "embedding", "index": index, "embedding": written(vector, reply.base64)});
        let data: Vec<_> = reply.vectors.iter().enumerate().map(row).collect();
        let input = reply.usage.unwrap_or_default().input;
        let usage = json!({"prompt_tokens": input, "total_tokens": input});
        Bytes::from(json!({"object": "list", "data": data, "model": reply.model, "usage": usage}).to_string())
    }
}

/// One text, or the token numbers of one.
fn element(element: &Node<'_>) -> Part {
    match element.string() {
        Some(text) => Part::Text(text.into_owned()),
        None => Part::Opaque("tokens".to_owned()),
    }
}

/// A vector as it was asked for: as numbers, or as the base64 of their little-endian bytes.
fn written(vector: &[f32], base64: bool) -> Value {
    if !base64 {
        return vector.iter().copied().collect();
    }
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes).into()
}

fn no_place<T>() -> Result<T, SurfaceError> {
    Err(SurfaceError::NoPlace("embeddings are recorded, not edited: they hold no words".to_owned()))
}
