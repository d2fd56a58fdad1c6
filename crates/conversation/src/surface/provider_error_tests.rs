//! Tests of [`super::provider_error`]: what providers and gateways write, and whom it blames, wherever it stands.

use super::{
    AnthropicMessages, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiResponses, Surface, ending,
    ending_tests::{ending_of, event, frames},
};
use crate::trajectory::{CallEnding, CloseCause, RefusalKind};

const RATE: CallEnding = CallEnding::Refused(RefusalKind::Rate);
const AUTH: CallEnding = CallEnding::Refused(RefusalKind::Auth);
const TOO_LONG: CallEnding = CallEnding::Refused(RefusalKind::TooLong);
const CONTENT: CallEnding = CallEnding::Refused(RefusalKind::Content);
const OTHER: CallEnding = CallEnding::Refused(RefusalKind::Other);

/// Errors as bodies: what providers and gateways write, and whom it blames.
const ERRORS: &[(&str, CallEnding)] = &[
    // MiniMax, FastChat, Baidu
    (
        r#"{"id":"x","choices":null,"usage":{"total_tokens":0},"base_resp":{"status_code":1002,"status_msg":"rate limit"}}"#,
        RATE,
    ),
    (r#"{"base_resp":{"status_code":1000,"status_msg":"unknown error"}}"#, CallEnding::Failed),
    (r#"{"text":"**NETWORK ERROR DUE TO HIGH TRAFFIC.**","error_code":50004}"#, CallEnding::Failed),
    (r#"{"error_code":336501,"error_msg":"Rate limit reached for RPM"}"#, RATE),
    // OpenAI, Azure
    (
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        TOO_LONG,
    ),
    (
        r#"{"error":{"message":"Rate limit reached for gpt-5 in organization o on tokens per min","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        RATE,
    ),
    (
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        RATE,
    ),
    (
        r#"{"error":{"message":"Incorrect API key provided: sk-.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        AUTH,
    ),
    (
        r#"{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}"#,
        CallEnding::Failed,
    ),
    (
        r#"{"error":{"message":"Unsupported value: 'temperature'","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#,
        OTHER,
    ),
    (
        r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{}}}}"#,
        CONTENT,
    ),
    (
        r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit"}}"#,
        RATE,
    ),
    (
        r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}"#,
        OTHER,
    ),
    // Anthropic
    (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, CallEnding::Failed),
    (
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 205351 tokens > 200000 maximum"},"request_id":"r"}"#,
        TOO_LONG,
    ),
    (r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your limit"}}"#, RATE),
    (r#"{"type":"error","error":{"type":"permission_error","message":"no"}}"#, AUTH),
    (r#"{"type":"error","error":{"type":"api_error","message":"Internal server error"}}"#, CallEnding::Failed),
    // Gemini's OpenAI endpoint says it as a list of one
    (
        r#"[{"error":{"code":400,"message":"The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        TOO_LONG,
    ),
    (
        r#"[{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}]"#,
        CallEnding::Failed,
    ),
    (
        r#"[{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}]"#,
        RATE,
    ),
    // vLLM, SGLang, llama.cpp, Ollama
    (
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","param":null,"code":400}"#,
        TOO_LONG,
    ),
    (
        r#"{"error":{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","param":null,"code":400}}"#,
        TOO_LONG,
    ),
    (
        r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}"#,
        TOO_LONG,
    ),
    (r#"{"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}"#, CallEnding::Failed),
    (r#"{"error":"model 'llama9' not found"}"#, OTHER),
    // Mistral, FastAPI
    (
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":0}]},"type":"invalid_request_error","param":null,"code":null}"#,
        OTHER,
    ),
    (
        r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}"#,
        TOO_LONG,
    ),
    (r#"{"detail":"Not Found"}"#, OTHER),
    (r#"{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#, OTHER),
    (r#"{"detail":"Internal Server Error"}"#, CallEnding::Failed),
    // OpenRouter, LiteLLM and other gateways
    (
        r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"context window exceeded\"}}","provider_name":"P"}}}"#,
        TOO_LONG,
    ),
    (r#"{"error":{"code":"provider_unavailable","message":"Worker local total request limit reached (33/32)"}}"#, RATE),
    (r#"{"error":{"code":402,"message":"Insufficient credits"}}"#, RATE),
    (
        r#"{"error":{"code":403,"message":"Your input was flagged as potentially violating our usage policies"}}"#,
        CONTENT,
    ),
    (r#"{"error":{"code":408,"message":"The operation was aborted"}}"#, CallEnding::Failed),
    (
        r#"{"error":{"message":"litellm.ContextWindowExceededError: x","type":null,"param":null,"code":"400"}}"#,
        TOO_LONG,
    ),
    (
        r#"{"success":false,"error":{"code":"INTERNAL_SERVER_ERROR","status":500,"message":"An unexpected error occurred."}}"#,
        CallEnding::Failed,
    ),
    (r#"{"error":"upstream connect error or disconnect/reset before headers"}"#, CallEnding::Failed),
    (r#"{"message":"Invalid authentication credentials, unauthorized"}"#, AUTH),
    (r#"{"errors":[{"message":"AiError: too many requests","code":3040}],"success":false}"#, RATE),
];

#[test]
fn an_error_inside_a_200_is_no_answer_whatever_carries_it() {
    let surfaces: [&dyn Surface; 5] =
        [&OpenaiChat, &OpenaiCompletions, &OpenaiResponses, &AnthropicMessages, &OpenaiEmbeddings];
    for surface in surfaces {
        for (error, expected) in ERRORS {
            assert_eq!(ending_of(surface, error, false), *expected, "{surface:?} whole: {error}");
            let typed = ending_of(surface, error, true);
            assert_eq!(typed, *expected, "{surface:?} JSON that is typed as a stream: {error}");
            if surface.name() == "openai_embeddings" {
                continue;
            }
            let (said, rest) = frames(surface);
            // SDKs raise what names an error, whatever follows; anything else is passed over where the answer goes on.
            if error.contains("\"error\"") {
                let stream = format!("{said}{}{rest}", event(error));
                assert_eq!(
                    ending_of(surface, &stream, true),
                    *expected,
                    "{surface:?} before the rest of the answer: {error}"
                );
            }
            for (what, stream) in [
                ("alone", event(error)),
                ("and an end marker", format!("{}data: [DONE]\n\n", event(error))),
                ("after a part of the answer", format!("{said}{}", event(error))),
                ("named", format!("{said}event: error\n{}", event(error))),
            ] {
                assert_eq!(ending_of(surface, &stream, true), *expected, "{surface:?} a frame, {what}: {error}");
                for cause in [CloseCause::ClientGone, CloseCause::UpstreamTruncated, CloseCause::UpstreamReset] {
                    let told = ending(Some(surface), cause, Some(200), stream.as_bytes(), true);
                    assert_eq!(told, *expected, "{surface:?} {cause:?} behind a frame, {what}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_status_of_an_error_is_read_with_its_body() {
    let of = |status, body: &str| ending(Some(&OpenaiChat), CloseCause::Complete, Some(status), body.as_bytes(), false);
    let body = |words: &str| format!(r#"{{"error":{{"message":"{words}","type":"invalid_request_error"}}}}"#);
    for (status, body, expected) in [
        (400, body("This model's maximum context length is 8192 tokens"), TOO_LONG),
        (400, body("blocked by the content filter"), CONTENT),
        (400, body("unknown"), OTHER),
        (400, "Bad Request".to_owned(), OTHER),
        (400, body("API key not valid. Please pass a valid API key."), AUTH),
        (403, body("Your input was flagged as unsafe"), CONTENT),
        (429, body("context length exceeded"), RATE),
        (404, body("model not found"), OTHER),
        (500, body("This model's maximum context length is 8192 tokens"), TOO_LONG),
        (503, body("no"), CallEnding::Failed),
        (503, String::new(), CallEnding::Failed),
    ] {
        assert_eq!(of(status, &body), expected, "{status} {body}");
    }
}
