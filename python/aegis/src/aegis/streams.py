"""Event streams as the replies that they are pieces of."""

from __future__ import annotations

import json
from typing import Any, Iterator


def events(text: str) -> Iterator[Any]:
    """The data of each event that is JSON."""
    for block in text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        lines = [line[5:] for line in block.split("\n") if line.startswith("data:")]
        data = "\n".join(line[1:] if line.startswith(" ") else line for line in lines)
        try:
            found = json.loads(data)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def chat_reply(text: str) -> dict[str, Any]:
    """A chat completion from its chunks."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in events(text):
        for part in chunk.get("choices") or ():
            number = part.get("index") or 0
            choice = choices.setdefault(number, {"index": number, "message": {"role": "assistant"}})
            _extend(choice["message"], part.get("delta") or {})
            choice["finish_reason"] = part.get("finish_reason") or choice.get("finish_reason")
    return {"choices": [choice for _, choice in sorted(choices.items())]}


def _extend(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Append a delta: strings are continued, lists by `index`, objects member by member."""
    for key, value in delta.items():
        before = message.get(key)
        if value is None:
            continue
        if key in ("role", "id", "type", "index"):
            message[key] = value
        elif isinstance(value, str):
            message[key] = (before if isinstance(before, str) else "") + value
        elif isinstance(value, dict):
            _extend(message.setdefault(key, {}), value)
        elif isinstance(value, list):
            listed = message.setdefault(key, [])
            for part in value:
                at = part.get("index") if isinstance(part, dict) else None
                known = next((one for one in listed if at is not None and one.get("index") == at), None)
                if known is None:
                    listed.append({} if isinstance(part, dict) else part)
                    known = listed[-1]
                if isinstance(part, dict):
                    _extend(known, part)
        else:
            message[key] = value


def completions_reply(text: str) -> dict[str, Any]:
    """A completion from its chunks."""
    texts: dict[int, str] = {}
    for chunk in events(text):
        for part in chunk.get("choices") or ():
            number = part.get("index") or 0
            texts[number] = texts.get(number, "") + (part.get("text") or "")
    return {"choices": [{"index": number, "text": told} for number, told in sorted(texts.items())]}


def responses_reply(text: str) -> dict[str, Any]:
    """A response: the last event has it whole; of one that was cut off, the items that are done."""
    items: list[Any] = []
    for event in events(text):
        if event.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            whole = event["response"]
            return {**whole, "output": whole.get("output") or items}
        if event.get("type") == "response.output_item.done":
            items.append(event["item"])
    return {"output": items}


def anthropic_reply(text: str) -> dict[str, Any]:
    """A message from its events."""
    reply: dict[str, Any] = {"role": "assistant", "content": []}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events(text):
        kind = event.get("type")
        if kind == "message_start":
            reply.update({**event["message"], "content": []})
        elif kind == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            _extend_block(blocks[event["index"]], event["delta"])
    for _, block in sorted(blocks.items()):
        written = block.pop("partial_json", "")
        if written:
            try:
                block["input"] = json.loads(written)
            except ValueError:
                block["input"] = written
        reply["content"].append(block)
    return reply


def _extend_block(block: dict[str, Any], delta: dict[str, Any]) -> None:
    for key in ("text", "partial_json", "thinking", "signature"):
        if isinstance(delta.get(key), str):
            block[key] = (block.get(key) or "") + delta[key]
