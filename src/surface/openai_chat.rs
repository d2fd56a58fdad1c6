//! Chat completions: `POST …/chat/completions`.

/// The chat completions API (<https://platform.openai.com/docs/api-reference/chat>).
#[derive(Debug)]
pub struct OpenaiChat;
