"""A server of the Responses API over WebSockets that needs no model: a tool is called, then what it gave is said.

    server.py HEARD      prints its port; writes each message that it hears as a JSON line to HEARD
"""

import asyncio
import json
import sys

from websockets.asyncio.server import serve


def events(number, item, parts):
    """The events of a response with one item."""
    base = {"id": f"resp_{number}", "object": "response", "created_at": 1760000000, "model": "gpt-5-mini", "tools": []}
    base |= {"parallel_tool_calls": True, "tool_choice": "auto", "error": None, "incomplete_details": None}
    usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    begun = {**base, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"} | parts["empty"]}
    yield from parts["events"]
    yield {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}}
    whole = {**base, "status": "completed", "output": [{**item, "status": "completed"}], "usage": usage}
    yield {"type": "response.completed", "response": whole}


def call(number, arguments):
    """A call of the calculator."""
    item = {"id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}", "name": "calculator", "arguments": arguments}
    at = {"item_id": item["id"], "output_index": 0}
    half = len(arguments) // 2
    deltas = [{"type": "response.function_call_arguments.delta", **at, "delta": part} for part in (arguments[:half], arguments[half:])]
    done = {"type": "response.function_call_arguments.done", **at, "name": "calculator", "arguments": arguments}
    return events(number, item, {"empty": {"arguments": ""}, "events": [*deltas, done]})


def said(number, text):
    """A message of text."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [part]}
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    words = [{"type": "response.output_text.delta", **at, "delta": word + " ", "logprobs": []} for word in text.split(" ")]
    words[-1]["delta"] = words[-1]["delta"][:-1]
    added = {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    done = {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
    ended = {"type": "response.content_part.done", **at, "part": part}
    return events(number, item, {"empty": {"content": []}, "events": [added, *words, done, ended]})


def answer(number, asked):
    last = asked["input"][-1] if isinstance(asked["input"], list) else {"content": asked["input"]}
    if last.get("type") == "function_call_output":
        return said(number, f"The calculator gives {last['output']} — é.")
    if asked.get("tools"):
        return call(number, '{"expression": "12 * 8"}')
    return said(number, "All 96 pencils are counted.")


async def converse(socket, heard):
    number = 0
    async for message in socket:
        heard.write(json.dumps({"path": socket.request.path, "message": message}) + "\n")
        heard.flush()
        asked = json.loads(message)
        for sequence, event in enumerate(answer(number, asked)):
            lane = {"stream_id": asked["stream_id"]} if "stream_id" in asked else {}
            await socket.send(json.dumps({**event, "sequence_number": sequence, **lane}, ensure_ascii=False))
        number += 1


async def main():
    with open(sys.argv[1], "a") as heard:
        async with serve(lambda socket: converse(socket, heard), "127.0.0.1", 0) as server:
            print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
            await asyncio.get_running_loop().create_future()


asyncio.run(main())
