"""Messages of Gemini's APIs: `generateContent` and Interactions, whole and as event streams."""

from __future__ import annotations

import json
import re
from typing import Any, Optional
from urllib.parse import unquote

from .streams import events
from .words import Message, ToolCall

MODEL_IN_PATH = re.compile(r"/([^/?]+):(?:stream)?[gG]enerateContent(?:$|[?/])")
# Members of a tool's answer that hold its words, where they stand alone.
WORDS = ("error", "output", "result")


def model_in(path: str) -> Optional[str]:
    """The model that a path names."""
    found = MODEL_IN_PATH.search(path)
    return unquote(found[1]) if found else None


def _named(value: dict[str, Any], camel: str) -> Any:
    """A member, in either of its spellings."""
    snake = re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), camel)
    return value.get(camel, value.get(snake))


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, dict) else list(value or ())


def _result(response: Any) -> str:
    words = next(iter(response.values())) if isinstance(response, dict) and len(response) == 1 and next(iter(response)) in WORDS else response
    return words if isinstance(words, str) else json.dumps(words, ensure_ascii=False)


class _Numbers:
    """Ids where parts have none: the next result of a tool answers its first call that has no result yet."""

    def __init__(self) -> None:
        self.unnamed: dict[str, int] = {}
        self.open: dict[str, list[str]] = {}

    def call(self, part: dict[str, Any]) -> str:
        """The id of a call."""
        name = part.get("name") or ""
        number = self._id(name, part)
        self.open.setdefault(name, []).append(number)
        return number

    def result(self, part: dict[str, Any]) -> str:
        """The id of the call that a result answers."""
        name = part.get("name") or ""
        waiting = self.open.setdefault(name, [])
        if not part.get("id") and waiting:
            return waiting.pop(0)
        number = self._id(name, part)
        if number in waiting:
            waiting.remove(number)
        return number

    def _id(self, name: str, part: dict[str, Any]) -> str:
        if part.get("id"):
            return str(part["id"])
        count = self.unnamed.get(name, 0)
        self.unnamed[name] = count + 1
        return f"{name}#{count}"


def _content(content: dict[str, Any], numbers: Optional[_Numbers]) -> list[Message]:
    """A content: results of tools become messages of their own."""
    role = {"model": "assistant", "system": "system"}.get(content.get("role") or "", "user")
    texts, calls, told = [], [], []
    for part in _listed(content.get("parts")):
        call, result = _named(part, "functionCall"), _named(part, "functionResponse")
        if call:
            number = numbers.call(call) if numbers else call.get("id") or ""
            calls.append(ToolCall(number, call.get("name") or "", json.dumps(call.get("args") or {}, ensure_ascii=False)))
        elif result:
            number = numbers.result(result) if numbers else result.get("id") or ""
            told.append(Message("tool", _result(result.get("response")), tool_call_id=number, raw=part))
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            texts.append(part["text"])
    if texts or calls or not told:
        told.append(Message(role, "".join(texts), None, calls, raw=content))
    return told


def generate_request(body: dict[str, Any]) -> list[Message]:
    """The messages of a request of generateContent."""
    system, numbers = _named(body, "systemInstruction"), _Numbers()
    told = _content({**system, "role": "system"}, None) if isinstance(system, dict) else []
    for content in _listed(body["contents"]):
        told += _content(content, numbers)
    return told


def generate_reply(body: dict[str, Any]) -> list[Message]:
    """The messages of a reply of generateContent."""
    told = []
    for candidate in body["candidates"]:
        told += _content({"role": "model", **(candidate.get("content") or {})}, None)
    return told


def generate_stream(text: str) -> dict[str, Any]:
    """A reply from its chunks."""
    candidates: dict[int, dict[str, Any]] = {}
    for chunk in events(text):
        for part in chunk.get("candidates") or ():
            candidate = candidates.setdefault(part.get("index") or 0, {"content": {"role": "model", "parts": []}})
            candidate["content"]["parts"] += _listed((part.get("content") or {}).get("parts"))
    return {"candidates": [candidate for _, candidate in sorted(candidates.items())]}


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in _listed(content) if part.get("type") == "text")


def _step(step: dict[str, Any]) -> Message:
    kind = step.get("type") or {"model": "model_output"}.get(step.get("role") or "", "user_input")
    if kind == "function_call":
        call = ToolCall(step.get("id") or "", step.get("name") or "", json.dumps(step.get("arguments") or {}, ensure_ascii=False))
        return Message("assistant", "", None, [call], raw=step)
    if kind == "function_result":
        result = step.get("result")
        text = json.dumps(result, ensure_ascii=False) if isinstance(result, dict) else _texts(result)
        return Message("tool", text, tool_call_id=step.get("call_id"), raw=step)
    if kind in ("user_input", "model_output"):
        return Message("user" if kind == "user_input" else "assistant", _texts(step.get("content")), raw=step)
    return Message("user" if kind == "text" else kind, step["text"] if kind == "text" else "", raw=step)


def interactions_request(body: dict[str, Any]) -> list[Message]:
    """The messages of a request for an interaction."""
    system, asked = body.get("system_instruction"), body["input"]
    told = [Message("system", system, raw=system)] if isinstance(system, str) else []
    if isinstance(asked, str):
        return [*told, Message("user", asked, raw=asked)]
    return told + [_step(step) for step in _listed(asked)]


def interactions_reply(body: dict[str, Any]) -> list[Message]:
    """The messages of an interaction."""
    if "steps" not in body:
        return [Message("assistant", one["text"], raw=one) if one.get("type") == "text" else _step(one) for one in body["outputs"]]
    return [_step(step) for step in body["steps"]]


def interactions_stream(text: str) -> dict[str, Any]:
    """An interaction from its events."""
    steps: dict[int, dict[str, Any]] = {}
    arguments: dict[int, str] = {}
    for event in events(text):
        kind, index, delta = event.get("event_type"), event.get("index"), event.get("delta") or {}
        if kind == "step.start":
            steps[index] = {**event["step"]}
        elif kind == "step.delta" and delta.get("type") == "text":
            steps[index].setdefault("content", []).append(delta)
        elif kind == "step.delta" and delta.get("type") == "arguments_delta":
            arguments[index] = arguments.get(index, "") + (delta.get("arguments") or "")
    for index, said in arguments.items():
        steps[index]["arguments"] = json.loads(said or "{}")
    return {"steps": [step for _, step in sorted(steps.items())]}
