//! Providers' odd but legal shapes: read right, kept byte for byte, edited where they say the text.

use super::*;

/// A stream, what it says, and how it ended.
struct Odd {
    provider: &'static str,
    surface: &'static dyn Surface,
    stream: &'static str,
    text: &'static str,
    finish: Option<&'static str>,
    usage: Option<(u64, u64)>,
}

const ODD: &[Odd] = &[
    Odd {
        provider: "vLLM: reasoning, token ids, usage on every chunk",
        surface: &OpenaiChat,
        stream: concat!(
            "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"q\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":null},\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":[1,2],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":3,\"completion_tokens\":0}}\n\n",
            "data: {\"id\":\"c\",\"model\":\"q\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"Hm.\"},\"finish_reason\":null,\"token_ids\":[7]}],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":4,\"completion_tokens\":1}}\n\n",
            "data: {\"id\":\"c\",\"model\":\"q\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is 42.\"},\"finish_reason\":\"stop\",\"stop_reason\":null,\"token_ids\":[8,9]}],\"usage\":{\"prompt_tokens\":3,\"total_tokens\":6,\"completion_tokens\":3}}\n\n",
            "data: [DONE]\n\n",
        ),
        text: "It is 42.",
        finish: Some("stop"),
        usage: Some((3, 3)),
    },
    Odd {
        provider: "Ollama: role on every chunk, fingerprint, usage chunk",
        surface: &OpenaiChat,
        stream: concat!(
            "data: {\"id\":\"chatcmpl-5\",\"model\":\"llama\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"It is\"},\"finish_reason\":null}]}\n\n",
            "data: {\"id\":\"chatcmpl-5\",\"model\":\"llama\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\" 42.\"},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"id\":\"chatcmpl-5\",\"model\":\"llama\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13}}\n\ndata: [DONE]\n\n",
        ),
        text: "It is 42.",
        finish: Some("stop"),
        usage: Some((9, 4)),
    },
    Odd {
        provider: "llama.cpp: content null first, timings beside the choices",
        surface: &OpenaiChat,
        stream: concat!(
            "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"id\":\"x\",\"model\":\"any\"}\n\n",
            "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"content\":\"42\"}}],\"id\":\"x\",\"model\":\"any\"}\n\n",
            "data: {\"choices\":[{\"finish_reason\":\"length\",\"index\":0,\"delta\":{}}],\"id\":\"x\",\"model\":\"any\",\"timings\":{\"predicted_ms\":1e1}}\n\ndata: [DONE]\n\n",
        ),
        text: "42",
        finish: Some("length"),
        usage: None,
    },
    Odd {
        provider: "Azure: filter results without a choice, annotation-only frame",
        surface: &OpenaiChat,
        stream: concat!(
            "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"object\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{}}]}\n\n",
            "data: {\"choices\":[{\"content_filter_results\":{},\"delta\":{\"content\":\"\",\"refusal\":null,\"role\":\"assistant\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}],\"id\":\"chatcmpl-a\",\"model\":\"gpt-4o\"}\n\n",
            "data: {\"choices\":[{\"content_filter_results\":{\"hate\":{\"filtered\":false,\"severity\":\"safe\"}},\"delta\":{\"content\":\"42\"},\"finish_reason\":null,\"index\":0}],\"id\":\"chatcmpl-a\",\"model\":\"gpt-4o\"}\n\n",
            "data: {\"choices\":[{\"content_filter_offsets\":{\"check_offset\":3},\"finish_reason\":null,\"index\":0}],\"id\":\"chatcmpl-a\"}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\",\"index\":0}],\"id\":\"chatcmpl-a\",\"model\":\"gpt-4o\"}\n\ndata: [DONE]\n\n",
        ),
        text: "42",
        finish: Some("stop"),
        usage: None,
    },
    Odd {
        provider: "OpenRouter: comments, an error under way, no end marker",
        surface: &OpenaiChat,
        stream: concat!(
            ": OPENROUTER PROCESSING\n\n",
            "data: {\"id\":\"gen-1\",\"provider\":\"X\",\"model\":\"a/b\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"It\"},\"finish_reason\":null,\"native_finish_reason\":null}]}\n\n: OPENROUTER PROCESSING\n\n",
            "data: {\"id\":\"gen-1\",\"provider\":\"X\",\"model\":\"a/b\",\"error\":{\"code\":502,\"message\":\"down\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
        ),
        text: "It",
        finish: Some("error"),
        usage: None,
    },
    Odd {
        provider: "others: no space after the colon, CRLF, an empty finish, no object, an error frame",
        surface: &OpenaiChat,
        stream: concat!(
            "data:{\"choices\":[{\"delta\":{\"content\":\"4\"},\"finish_reason\":\"\"}]}\r\n\r\n",
            "event: error\r\ndata:{\"error\":{\"message\":\"x\"}}\r\n\r\n",
            "data:{\"choices\":[{\"delta\":{\"content\":\"2\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata:[DONE]\r\n\r\n",
        ),
        text: "42",
        finish: Some("stop"),
        usage: None,
    },
    Odd {
        provider: "LiteLLM: a responses stream without `event:` lines, with an end marker",
        surface: &OpenaiResponses,
        stream: concat!(
            "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"m\",\"status\":\"in_progress\",\"output\":[]}}\n\n",
            "data: {\"type\":\"keepalive\",\"sequence_number\":1}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"42\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"model\":\"m\",\"status\":\"completed\",\"output\":[{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"42\"}]}],\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n\ndata: [DONE]\n\n",
        ),
        text: "42",
        finish: Some("stop"),
        usage: Some((1, 2)),
    },
    Odd {
        provider: "a messages stream whose text starts in its block, without a ping",
        surface: &AnthropicMessages,
        stream: concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"q\",\"content\":[],\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"4\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"2\"}}\n\n",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":4,\"output_tokens\":2}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        text: "42",
        finish: Some("stop"),
        usage: Some((4, 2)),
    },
];

#[test]
fn odd_shapes_are_read_right_and_kept() {
    for odd in ODD {
        let bytes = odd.stream.as_bytes();
        let read = odd.surface.read_stream(bytes).unwrap_or_else(|error| panic!("{}: {error}", odd.provider));
        let answer = &read.answers[0];
        assert_eq!(
            (answer.message.text().as_str(), answer.finish_reason.as_deref()),
            (odd.text, odd.finish),
            "{}",
            odd.provider
        );
        assert_eq!(read.usage.map(|usage| (usage.input, usage.output)), odd.usage, "{}", odd.provider);
        let kept = odd.surface.write_stream(bytes, &read, &read.clone()).expect("nothing to write");
        assert_eq!(kept, bytes, "{}", odd.provider);
        let mut after = read.clone();
        after.answers[0].message.set_text("Seven.");
        let edited = odd.surface.write_stream(bytes, &read, &after).expect(odd.provider);
        let again = odd.surface.read_stream(&edited).expect(odd.provider);
        assert_eq!(again.answers[0].message.text(), "Seven.", "{}", odd.provider);
        assert_eq!(sse::events(&edited).len(), sse::events(bytes).len(), "{}: no frame comes or goes", odd.provider);
        // Everything that is not said or counted by token keeps its bytes.
        for mark in
            ["prompt_filter_results", "timings", ": OPENROUTER PROCESSING\n", "fp_ollama", "keepalive", "data:["]
        {
            assert_eq!(
                odd.stream.matches(mark).count(),
                String::from_utf8_lossy(&edited).matches(mark).count(),
                "{mark}"
            );
        }
    }
}

#[test]
fn odd_whole_replies_are_read_right() {
    for (surface, body, text) in [
        (
            &OpenaiChat as &dyn Surface,
            r#"{"choices":[{"message":{"content":"42","reasoning_content":"Hm"},"finish_reason":"stop"}],"stats":{},"timings":{"n":1.50}}"#,
            "42",
        ),
        (
            &OpenaiChat,
            r#"{"id":"","choices":[{"index":0,"message":{"role":"assistant","content":[{"type":"text","text":"42"}]}}],"prompt_filter_results":[]}"#,
            "42",
        ),
        (
            &OpenaiResponses,
            r#"{"id":"r","status":"completed","output_text":"42","output":[{"type":"reasoning","id":"rs"},{"type":"message","content":[{"type":"output_text","text":"42"}]}]}"#,
            "42",
        ),
        (
            &OpenaiCompletions,
            r#"{"choices":[{"text":"42","index":0,"finish_reason":"stop","stop_reason":null,"prompt_logprobs":null}]}"#,
            "42",
        ),
    ] {
        let read = surface.read_reply(body.as_bytes()).expect(body);
        assert_eq!(read.answers[0].message.text(), text, "{body}");
        let mut after = read.clone();
        after.answers[0].message.set_text("7");
        let edited = surface.write_reply(body.as_bytes(), &read, &after).expect(body);
        assert_eq!(std::str::from_utf8(&edited), Ok(body.replace("\"42\"", "\"7\"").as_str()));
    }
}
