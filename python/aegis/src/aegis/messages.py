"""Messages of the APIs that Aegis reads, in one form; event streams are put together."""

from __future__ import annotations

import json
import zlib
from typing import Any, Callable, Optional

from . import gemini
from .streams import anthropic_reply, chat_reply, completions_reply, responses_reply
from .words import Message, ToolCall

GZIP = b"\x1f\x8b"


def read_body(body: bytes) -> Any:
    """A body's JSON, unpacked where it is gzip; None where it is none."""
    try:
        return json.loads(zlib.decompress(body, 31) if body.startswith(GZIP) else body)
    except (ValueError, zlib.error, RecursionError):
        return None


def model_of(body: bytes, path: str = "") -> Optional[str]:
    """The model that a request asks for, in its body or its path."""
    if model := gemini.model_in(path):
        return model
    asked = read_body(body)
    model = asked.get("model") if isinstance(asked, dict) else None
    return model if isinstance(model, str) else None


def request_messages(surface: str, body: bytes) -> list[Message]:
    """The messages of a request; empty where the surface has none, or the body is not what it should be."""
    asked = read_body(body)
    return _read(REQUESTS.get(surface), asked)


def response_messages(surface: str, body: bytes) -> list[Message]:
    """The messages of a reply, an event stream too; empty as above."""
    answered, stream = read_body(body), STREAMS.get(surface)
    if answered is None and stream is not None:
        try:
            text = (zlib.decompress(body, 31) if body.startswith(GZIP) else body).decode(errors="replace")
            answered = stream(text)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, zlib.error):
            return []
    return _read(REPLIES.get(surface), answered)


def _read(reader: Optional[Callable[[Any], list[Message]]], body: Any) -> list[Message]:
    if reader is None or not isinstance(body, dict):
        return []
    try:
        return reader(body)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return []


def _text(content: Any) -> str:
    """The text of a message's content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, (str, dict))]
    return "".join(text for text in texts if isinstance(text, str))


def _chat(message: dict[str, Any]) -> Message:
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call.get("custom") or {}
        calls.append(ToolCall(call.get("id") or "", function.get("name") or "", function.get("arguments") or function.get("input") or ""))
    old = message.get("function_call")
    if old:
        calls.append(ToolCall("", old.get("name") or "", old.get("arguments") or ""))
    text = _text(message.get("content")) or message.get("refusal") or ""
    return Message(message.get("role") or "assistant", text, message.get("name"), calls, message.get("tool_call_id"), message)


def _item(item: dict[str, Any]) -> Message:
    """An item of the Responses API."""
    kind = item.get("type", "message")
    if kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments") if kind == "function_call" else item.get("input")
        return Message("assistant", "", None, [ToolCall(item.get("call_id") or "", item.get("name") or "", arguments or "")], raw=item)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return Message("tool", _text(item.get("output")), tool_call_id=item.get("call_id"), raw=item)
    if kind == "message":
        return Message(item.get("role") or "assistant", _text(item.get("content")), raw=item)
    return Message(kind, _text(item.get("summary")) or _text(item.get("content")), raw=item)


def _responses_request(body: dict[str, Any]) -> list[Message]:
    told = body.get("instructions")
    first = [Message("system", told, raw=told)] if isinstance(told, str) else []
    asked = body.get("input")
    if isinstance(asked, str):
        return [*first, Message("user", asked, raw=asked)]
    return first + [_item(item) for item in asked or ()]


def _blocks(role: str, content: Any) -> list[Message]:
    """A message of Anthropic's API: results of tools become messages of their own."""
    if not isinstance(content, list):
        return [Message(role, _text(content), raw=content)]
    results = [block for block in content if block.get("type") == "tool_result"]
    told = [Message("tool", _text(block.get("content")), tool_call_id=block.get("tool_use_id"), raw=block) for block in results]
    others = [block for block in content if block.get("type") != "tool_result"]
    if others or not results:
        uses = [block for block in others if block.get("type") == "tool_use"]
        calls = [ToolCall(use.get("id") or "", use.get("name") or "", json.dumps(use.get("input"), ensure_ascii=False)) for use in uses]
        words = [block for block in others if block.get("type") == "text"]
        told.append(Message(role, _text(words), None, calls, raw=others))
    return told


def _anthropic_request(body: dict[str, Any]) -> list[Message]:
    system = body.get("system")
    told = [Message("system", _text(system), raw=system)] if system else []
    for message in body["messages"]:
        told += _blocks(message["role"], message["content"])
    return told


def _prompts(prompt: Any) -> list[Message]:
    prompts = prompt if isinstance(prompt, list) else [prompt]
    return [Message("user", one, raw=one) for one in prompts if isinstance(one, str)]


REQUESTS: dict[str, Callable[[Any], list[Message]]] = {
    "openai_chat": lambda body: [_chat(message) for message in body["messages"]],
    "openai_responses": _responses_request,
    "openai_completions": lambda body: _prompts(body["prompt"]),
    "openai_embeddings": lambda body: _prompts(body["input"]),
    "anthropic_messages": _anthropic_request,
    "gemini_generate": gemini.generate_request,
    "gemini_interactions": gemini.interactions_request,
}
REPLIES: dict[str, Callable[[Any], list[Message]]] = {
    "openai_chat": lambda body: [_chat(choice["message"]) for choice in body["choices"]],
    "openai_responses": lambda body: [_item(item) for item in body["output"]],
    "openai_completions": lambda body: [Message("assistant", choice["text"], raw=choice) for choice in body["choices"]],
    "anthropic_messages": lambda body: _blocks(body.get("role") or "assistant", body["content"]),
    "gemini_generate": gemini.generate_reply,
    "gemini_interactions": gemini.interactions_reply,
}
STREAMS: dict[str, Callable[[str], Any]] = {
    "openai_chat": chat_reply,
    "openai_responses": responses_reply,
    "openai_completions": completions_reply,
    "anthropic_messages": anthropic_reply,
    "gemini_generate": gemini.generate_stream,
    "gemini_interactions": gemini.interactions_stream,
}
