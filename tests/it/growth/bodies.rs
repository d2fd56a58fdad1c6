//! Bodies of any size, in each dimension that a stranger may choose.

use aegis::surface::{self, Message, Part, Reply, Role, Surface, ToolCall};
use bytes::Bytes;
use serde_json::{Value, json};

/// A body of a size, and how it is to be read.
pub struct Grown {
    pub surface: &'static dyn Surface,
    pub what: &'static str,
    pub streamed: bool,
    /// The smaller size.
    pub size: usize,
    pub body: fn(&'static dyn Surface, usize) -> Bytes,
}

fn grown(
    surface: &'static dyn Surface,
    what: &'static str,
    size: usize,
    body: fn(&'static dyn Surface, usize) -> Bytes,
) -> Grown {
    Grown { surface, what, streamed: what.contains("stream"), size, body }
}

fn says(number: usize) -> String {
    format!("result {number} is {}", number * 7)
}

fn digits(number: usize) -> String {
    (0..number).map(|at| ["4", "2", " ", "7.5", "x9", ","][at * 31 % 6]).collect()
}

fn call(number: usize) -> ToolCall {
    let (id, arguments) = (format!("call_{number}"), format!("{{\"n\": {number}}}"));
    ToolCall { id, name: "add".to_owned(), arguments, origin: Some(number) }
}

/// A reply of our own with one answer of these texts and so many calls.
fn reply(texts: Vec<String>, calls: usize) -> Reply {
    let parts = texts.into_iter().map(Part::Text).collect();
    let message =
        Message { parts, tool_calls: (0..calls).map(call).collect(), ..Message::text_of(Role::Assistant, "") };
    let finish_reason = Some(if calls == 0 { "stop" } else { "tool_calls" }.to_owned());
    let answer = surface::Answer { index: 0, message, finish_reason };
    Reply { id: "x_1234567890".to_owned(), model: "m".to_owned(), answers: vec![answer], ..Reply::default() }
}

fn choices(count: usize) -> Reply {
    let mut many = reply(Vec::new(), 0);
    many.answers = (0..count)
        .map(|number| {
            let answer = reply(vec![says(number)], 0).answers.remove(0);
            surface::Answer { index: u32::try_from(number).expect("small"), ..answer }
        })
        .collect();
    many
}

fn whole(surface: &dyn Surface, reply: &Reply) -> Bytes {
    surface.compose(reply, 0)
}

fn stream(surface: &dyn Surface, reply: &Reply) -> Bytes {
    Bytes::from(surface.compose_stream(reply, 0, true).concat())
}

fn bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn list(count: usize, element: impl Fn(usize) -> Value) -> Value {
    (0..count).map(element).collect()
}

fn responses(output: &Value) -> Bytes {
    bytes(&json!({"id": "resp_12345678", "object": "response", "status": "completed", "model": "m", "output": output}))
}

fn item(number: usize) -> Value {
    let part = json!({"type": "output_text", "text": says(number), "annotations": []});
    json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed", "content": [part]})
}

pub fn replies() -> Vec<Grown> {
    use surface::{
        AnthropicMessages, GeminiGenerate, GeminiInteractions, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings,
        OpenaiResponses,
    };
    let mut all = Vec::new();
    for surface in surface::ALL.iter().copied().filter(|surface| surface.name() != OpenaiEmbeddings.name()) {
        all.push(grown(surface, "digits", 2_000, |surface, n| whole(surface, &reply(vec![digits(n)], 0))));
        all.push(grown(surface, "frames of a stream", 50, |surface, n| {
            stream(surface, &reply(vec!["one 2 ".repeat(n)], 0))
        }));
    }
    let calling: [&dyn Surface; 5] =
        [&OpenaiChat, &OpenaiResponses, &AnthropicMessages, &GeminiGenerate, &GeminiInteractions];
    for surface in calling {
        all.push(grown(surface, "tool calls", 100, |surface, n| whole(surface, &reply(Vec::new(), n))));
        all.push(grown(surface, "tool calls of a stream", 30, |surface, n| {
            stream(surface, &reply(vec!["one 2".to_owned()], n))
        }));
    }
    for surface in [&OpenaiChat as &dyn Surface, &OpenaiCompletions] {
        all.push(grown(surface, "choices", 150, |surface, n| whole(surface, &choices(n))));
        all.push(grown(surface, "choices of a stream", 25, |surface, n| stream(surface, &choices(n))));
    }
    // Work that grows with the square of so little shows in long texts alone.
    all.push(grown(&OpenaiChat, "digits in one long line", 20_000, |surface, n| {
        whole(surface, &reply(vec!["42 7.5 x9, ".repeat(n)], 0))
    }));
    all.push(grown(&OpenaiChat, "content parts", 200, |_, n| {
        let content = list(n, |at| json!({"type": "text", "text": says(at)}));
        let message = json!({"role": "assistant", "content": content});
        bytes(&json!({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    }));
    all.push(grown(&OpenaiResponses, "items", 150, |_, n| responses(&list(n, item))));
    all.push(grown(&OpenaiResponses, "content parts", 200, |_, n| {
        let content = list(n, |at| json!({"type": "output_text", "text": says(at), "annotations": []}));
        responses(&json!([{"type": "message", "id": "m", "role": "assistant", "content": content}]))
    }));
    all.push(grown(&OpenaiResponses, "items of a stream", 30, |_, n| items_streamed(n)));
    all.push(grown(&AnthropicMessages, "blocks", 200, |_, n| {
        let content = list(n, |at| json!({"type": "text", "text": says(at)}));
        bytes(&json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "end_turn"}))
    }));
    all.push(grown(&AnthropicMessages, "blocks of a stream", 40, |_, n| blocks_streamed(n)));
    all
}

fn events(events: impl Iterator<Item = Value>) -> Bytes {
    let event = |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"));
    Bytes::from(events.map(event).collect::<String>())
}

fn items_streamed(count: usize) -> Bytes {
    let response = json!({"id": "resp_12345678", "object": "response", "status": "in_progress", "output": []});
    let ended =
        json!({"id": "resp_12345678", "object": "response", "status": "completed", "output": list(count, item)});
    let mut all = vec![json!({"type": "response.created", "response": response})];
    for number in 0..count {
        let (id, text) = (format!("msg_{number}"), says(number));
        let begun = json!({"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []});
        all.push(json!({"type": "response.output_item.added", "output_index": number, "item": begun}));
        for delta in [&text[..3], &text[3..]] {
            all.push(json!({"type": "response.output_text.delta", "item_id": id, "output_index": number, "content_index": 0, "delta": delta}));
        }
        all.push(json!({"type": "response.output_text.done", "item_id": id, "output_index": number, "content_index": 0, "text": text}));
        all.push(json!({"type": "response.output_item.done", "output_index": number, "item": item(number)}));
    }
    all.push(json!({"type": "response.completed", "response": ended}));
    events((0..).zip(all).map(|(number, mut event): (u64, Value)| {
        event["sequence_number"] = number.into();
        event
    }))
}

fn blocks_streamed(count: usize) -> Bytes {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []});
    let mut all = vec![json!({"type": "message_start", "message": message})];
    for number in 0..count {
        let text = says(number);
        all.push(
            json!({"type": "content_block_start", "index": number, "content_block": {"type": "text", "text": ""}}),
        );
        for delta in [&text[..3], &text[3..]] {
            all.push(
                json!({"type": "content_block_delta", "index": number, "delta": {"type": "text_delta", "text": delta}}),
            );
        }
        all.push(json!({"type": "content_block_stop", "index": number}));
    }
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}));
    all.push(json!({"type": "message_stop"}));
    events(all.into_iter())
}

fn turn(number: usize) -> &'static str {
    ["user", "assistant"][number % 2]
}

pub fn requests() -> Vec<Grown> {
    use surface::{
        AnthropicMessages, GeminiGenerate, GeminiInteractions, OpenaiChat, OpenaiCompletions, OpenaiResponses,
    };
    let mut all = Vec::new();
    for surface in [&OpenaiChat as &dyn Surface, &AnthropicMessages] {
        all.push(grown(surface, "messages", 200, |_, n| {
            bytes(&json!({"model": "m", "max_tokens": 9, "messages": list(n, |at| json!({"role": turn(at), "content": says(at)}))}))
        }));
        all.push(grown(surface, "content parts", 200, |_, n| {
            let content = list(n, |at| json!({"type": "text", "text": says(at)}));
            bytes(&json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}))
        }));
        all.push(grown(surface, "digits", 2_000, |_, n| {
            bytes(&json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": digits(n)}]}))
        }));
    }
    all.push(grown(&OpenaiCompletions, "digits", 2_000, |_, n| bytes(&json!({"model": "m", "prompt": digits(n)}))));
    all.push(grown(&OpenaiResponses, "messages", 200, |_, n| {
        bytes(&json!({"model": "m", "input": list(n, |at| json!({"role": turn(at), "content": says(at)}))}))
    }));
    all.push(grown(&OpenaiResponses, "content parts", 200, |_, n| {
        let content = list(n, |at| json!({"type": "input_text", "text": says(at)}));
        bytes(&json!({"model": "m", "input": [{"role": "user", "content": content}]}))
    }));
    all.push(grown(&GeminiGenerate, "messages", 200, |_, n| {
        let said = |at: usize| json!({"role": (["user", "model"][at % 2]), "parts": [{"text": says(at)}]});
        bytes(&json!({"contents": list(n, said)}))
    }));
    all.push(grown(&GeminiInteractions, "messages", 200, |_, n| {
        let said = |at: usize| json!({"type": (["user_input", "model_output"][at % 2]), "content": [{"type": "text", "text": says(at)}]});
        bytes(&json!({"model": "m", "input": list(n, said)}))
    }));
    all.extend(calls_and_results());
    all
}

fn calls_and_results() -> Vec<Grown> {
    use surface::{AnthropicMessages, OpenaiChat, OpenaiResponses};
    let mut all = Vec::new();
    all.push(grown(&OpenaiChat, "calls and results", 100, |_, n| {
        let calls = list(
            n,
            |at| json!({"id": format!("c{at}"), "type": "function", "function": {"name": "add", "arguments": "{}"}}),
        );
        let mut messages = vec![
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": null, "tool_calls": calls}),
        ];
        messages
            .extend((0..n).map(|at| json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": says(at)})));
        bytes(&json!({"model": "m", "messages": messages}))
    }));
    all.push(grown(&OpenaiChat, "tools", 200, |_, n| {
        let tools = list(n, |at| json!({"type": "function", "function": {"name": format!("t{at}"), "description": says(at), "parameters": {}}}));
        bytes(&json!({"model": "m", "messages": [{"role": "user", "content": "it is"}], "tools": tools}))
    }));
    all.push(grown(&AnthropicMessages, "calls and results", 100, |_, n| {
        let calls = list(n, |at| json!({"type": "tool_use", "id": format!("c{at}"), "name": "add", "input": {}}));
        let results = list(n, |at| json!({"type": "tool_result", "tool_use_id": format!("c{at}"), "content": says(at)}));
        let messages = json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": calls}, {"role": "user", "content": results}]);
        bytes(&json!({"model": "m", "max_tokens": 9, "messages": messages}))
    }));
    all.push(grown(&OpenaiResponses, "calls and results", 100, |_, n| {
        let mut input = vec![json!({"role": "user", "content": "go"})];
        input.extend(
            (0..n).map(
                |at| json!({"type": "function_call", "call_id": format!("c{at}"), "name": "add", "arguments": "{}"}),
            ),
        );
        input.extend(
            (0..n).map(|at| json!({"type": "function_call_output", "call_id": format!("c{at}"), "output": says(at)})),
        );
        bytes(&json!({"model": "m", "input": input}))
    }));
    all
}
