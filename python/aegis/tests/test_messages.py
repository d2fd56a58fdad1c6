"""Messages of each API, whole and streamed, beside what the program reads in the same bodies."""

import json
import urllib.request

import aegis
import pytest
from aegis.messages import request_messages, response_messages
from conftest import told

QUESTION = "A box holds 6 eggs. How many eggs do 7 boxes hold?"
RULES = "You solve word problems. End with a line `ANSWER: <number>`."
SCHEMA = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
CHAT_TOOL = {"type": "function", "function": {"name": "calculator", "description": "computes", "parameters": SCHEMA}}
OTHER_TOOL = {"name": "calculator", "description": "computes"}
# For each API: its path, a first request, and how a request goes on behind the answer to it, which called a tool.
APIS = {
    "openai_chat": (
        "chat/completions",
        {
            "messages": [{"role": "system", "content": RULES}, {"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
            "tools": [CHAT_TOOL],
        },
        lambda body, call: body["messages"].extend(
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}],
                },
                {"role": "tool", "tool_call_id": call.id, "content": "42"},
            ]
        ),
    ),
    "openai_responses": (
        "responses",
        {
            "instructions": RULES,
            "input": [{"role": "user", "content": QUESTION}],
            "tools": [{"type": "function", "parameters": SCHEMA, **OTHER_TOOL}],
        },
        lambda body, call: body["input"].extend(
            [
                {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments},
                {"type": "function_call_output", "call_id": call.id, "output": "42"},
            ]
        ),
    ),
    "anthropic_messages": (
        "messages",
        {
            "system": RULES,
            "max_tokens": 99,
            "messages": [{"role": "user", "content": QUESTION}],
            "tools": [{"input_schema": SCHEMA, **OTHER_TOOL}],
        },
        lambda body, call: body["messages"].extend(
            [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "42"}]},
            ]
        ),
    ),
    "gemini_generate": (
        {False: "models/some-model:generateContent", True: "models/some-model:streamGenerateContent?alt=sse"},
        {
            "systemInstruction": {"parts": [{"text": RULES}]},
            "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
            "tools": [{"functionDeclarations": [{"parametersJsonSchema": SCHEMA, **OTHER_TOOL}]}],
        },
        lambda body, call: body["contents"].extend(
            [
                {"role": "model", "parts": [{"functionCall": {"id": call.id, "name": call.name, "args": json.loads(call.arguments)}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": call.id, "name": call.name, "response": {"result": "42"}}}]},
            ]
        ),
    ),
    "gemini_interactions": (
        "interactions",
        {
            "system_instruction": RULES,
            "input": [{"type": "user_input", "content": [{"type": "text", "text": QUESTION}]}],
            "tools": [{"type": "function", "parameters": SCHEMA, **OTHER_TOOL}],
        },
        lambda body, call: body["input"].extend(
            [
                {"type": "function_call", "id": call.id, "name": call.name, "arguments": json.loads(call.arguments)},
                {"type": "function_result", "call_id": call.id, "name": call.name, "result": "42"},
            ]
        ),
    ),
}


def post(proxy, path, body):
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-aegis-agent": "solver"}
    asked = urllib.request.Request(f"{proxy.base_url}/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.read()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("surface", APIS)
def test_a_talk_with_a_tool(program, tmp_path, surface, stream):
    path, body, goes_on = APIS[surface]
    path = path[stream] if isinstance(path, dict) else path
    body = json.loads(json.dumps({"model": "some-model", "stream": stream, **body}))
    with aegis.Proxy(upstream="simulator", log_dir=tmp_path, run="talk", set_environment=False) as proxy:
        post(proxy, path, body)
        (call,) = proxy.run.steps[0].response_messages[-1].tool_calls
        goes_on(body, call)
        post(proxy, path, body)
    run = proxy.run
    first, second = run.steps
    assert first.surface == surface and first.model == "some-model" and first.last.streamed == stream
    assert call.name == "calculator" and json.loads(call.arguments)["expression"] and call.id
    assert [(one.role, one.content) for one in first.request_messages] == [("system", RULES), ("user", QUESTION)]
    assert [one.role for one in second.request_messages] == ["system", "user", "assistant", "tool"]
    assert second.request_messages[2].tool_calls == [call]
    assert (second.request_messages[3].content, second.request_messages[3].tool_call_id) == ("42", call.id)
    assert "ANSWER: 42" in second.text and second.usage is not None or stream
    said = [(one.step, one.is_reply, one.message.role) for one in run.messages]
    assert said == [(0, False, "system"), (0, False, "user"), (0, True, "assistant"), (1, False, "tool"), (1, True, "assistant")]
    assert told(program, "show", run.directory, "--all")["steps"][1]["text"] == second.text


def test_the_program_reads_the_same_words(program, demo, odd):
    for run in [*list(aegis.corpus(demo / "logs"))[::9], aegis.run(odd.directory)]:
        shown = told(program, "show", run.directory, "--all")["steps"]
        for one, step in zip(shown, run.steps):
            # It writes calls of tools out as words, too, and bodies that no reader knows.
            messages = step.response_messages
            read = messages and not any(message.tool_calls for message in messages)
            assert not read or one["text"] == step.text, (run.name, step.index)


def test_completions_and_embeddings():
    assert [one.content for one in request_messages("openai_completions", b'{"prompt": ["a", "b"]}')] == ["a", "b"]
    stream = b'data: {"choices":[{"text":"a","index":0}]}\r\n\r\ndata: {"choices":[{"text":"b","index":0}]}\r\n\r\ndata: [DONE]\r\n\r\n'
    assert [one.content for one in response_messages("openai_completions", stream)] == ["ab"]
    assert [one.content for one in response_messages("openai_completions", b'{"choices": [{"text": "a"}]}')] == ["a"]
    assert [one.content for one in request_messages("openai_embeddings", b'{"input": "a"}')] == ["a"]
    assert response_messages("openai_embeddings", b'{"data": []}') == []


@pytest.mark.parametrize("surface", [*APIS, "openai_completions", "openai_embeddings", "opaque", "of_a_later_version"])
def test_what_cannot_be_read_has_no_messages(surface):
    for body in (b"", b"{", b"[]", b"null", b"1", b"\xff", b'{"messages": 1, "input": 1, "choices": 1, "content": {}, "output": "x", "prompt": {}}', b"\x1f\x8b\x00",
                 b'{"messages": [1], "input": [1], "choices": [1], "content": [1], "output": [1]}', b"data: {\n\n", b'data: {"choices": [1]}\n\n', b'data: {"type": "content_block_delta"}\n\n',
                 b"[" * 100_000):  # fmt: skip
        for read in (request_messages, response_messages):
            assert all(message.content in ("", "x") for message in read(surface, body)), (read, body[:50])
