"""What openai-python and anthropic-python read of each shape, unedited and under each edit.

Called with one JSON argument: `proxy` (its address), `shapes` (number, API, whether it is asked for as a stream) and `agents` (the agents
of a run, in order). Prints one JSON line per call: what each answer says, or the error.
"""

import json
import sys

import anthropic
import openai

ASKED = json.loads(sys.argv[1])
USER = [{"role": "user", "content": "How many towers?"}]


class Answer:
    """What was heard of one answer so far. A piece of a call belongs to the call of its id; without one, to that of its index, or the last."""

    def __init__(self):
        self.text = ""
        self.calls = []
        self.finish = None

    def piece(self, index, identifier, name, arguments):
        named = [call for call in self.calls if identifier and call["id"] == identifier]
        placed = [call for call in self.calls if index is not None and call["index"] == index]
        if named:
            call = named[-1]
        elif identifier or not self.calls or (name and not placed and index is not None):
            call = {"index": index, "id": identifier or "", "name": "", "arguments": ""}
            self.calls.append(call)
        else:
            call = (placed or self.calls)[-1]
        call["name"] += name or ""
        call["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""

    def said(self):
        calls = [[call["id"], call["name"], call["arguments"]] for call in self.calls]
        return {"text": self.text, "calls": calls, "finish": self.finish}


def content(value):
    """The words of a content: a text, or the text parts of a list."""
    if isinstance(value, list):
        return "".join(part.get("text") or "" for part in value if part.get("type") == "text")
    return value or ""


def take(answer, said):
    answer.text += content(said.content)
    for call in said.tool_calls or []:
        inner = call.function or getattr(call, "custom", None)
        custom = inner.get("input") if isinstance(inner, dict) else getattr(inner, "input", None)
        read = inner.get if isinstance(inner, dict) else lambda key, inner=inner: getattr(inner, key, None)
        answer.piece(getattr(call, "index", None), call.id, read("name"), read("arguments") or custom)
    if said.function_call:
        answer.piece(None, None, said.function_call.name, said.function_call.arguments)


def chat(sdk, model, stream):
    reply = sdk.chat.completions.create(model=model, messages=USER, stream=stream)
    answers = {}
    for part in reply if stream else [reply]:
        for choice in part.choices or []:
            answer = answers.setdefault(choice.index or 0, Answer())
            said = choice.delta if stream else choice.message
            if said is not None:
                take(answer, said)
            answer.finish = choice.finish_reason or answer.finish
    return [answers[index].said() for index in sorted(answers)]


def completions(sdk, model, stream):
    reply = sdk.completions.create(model=model, prompt="How many towers?", stream=stream)
    answers = {}
    for part in reply if stream else [reply]:
        for choice in part.choices or []:
            answer = answers.setdefault(choice.index or 0, Answer())
            answer.text += choice.text or ""
            answer.finish = choice.finish_reason or answer.finish
    return [answers[index].said() for index in sorted(answers)]


def response(final):
    answer = Answer()
    texts = []
    for item in final.output or []:
        if item.type == "message":
            texts += [part.text for part in item.content if getattr(part, "text", None) is not None]
        elif item.type == "function_call":
            answer.piece(None, item.call_id, item.name, item.arguments)
        elif item.type == "custom_tool_call":
            answer.piece(None, item.call_id, item.name, item.input)
    answer.text = "\n".join(texts)
    return answer.said()


def responses(sdk, model, stream):
    reply = sdk.responses.create(model=model, input="How many towers?", stream=stream)
    if not stream:
        return [response(reply)]
    deltas, done, final, items = {}, {}, None, []
    for event in reply:
        place = (getattr(event, "output_index", None), getattr(event, "item_id", None), getattr(event, "content_index", None))
        if event.type == "response.output_text.delta":
            deltas[place] = deltas.get(place, "") + event.delta
        elif event.type == "response.output_text.done":
            done[place] = event.text
        elif event.type == "response.output_item.done":
            items.append(event.item)
        elif event.type in ("response.completed", "response.incomplete"):
            final = event.response
    for place, text in done.items():
        if place in deltas and deltas[place] != text:
            raise ValueError(f"the deltas say {deltas[place]!r}, and the text that is done {text!r}")
    said = response(final) if final is not None else Answer().said()
    words = "\n".join((deltas or done).values())
    if said["text"] and words and said["text"] != words:
        raise ValueError(f"the events say {words!r}, and the last one {said['text']!r}")
    on_the_way = response(type("Items", (), {"output": items})) if items else said
    calls = max(said["calls"], on_the_way["calls"], key=len)
    if not all(call in calls for call in said["calls"] + on_the_way["calls"]):
        raise ValueError(f"the events call {on_the_way['calls']!r}, and the last one {said['calls']!r}")
    return [{**said, "text": said["text"] or words or on_the_way["text"], "calls": calls}]


def messages(sdk, model, stream):
    reply = sdk.messages.create(model=model, max_tokens=100, messages=USER, stream=stream)
    answer = Answer()
    if not stream:
        answer.text = "\n".join(block.text for block in reply.content if block.type == "text")
        for block in reply.content:
            if block.type == "tool_use":
                answer.piece(None, block.id, block.name, json.dumps(block.input))
        answer.finish = reply.stop_reason
        return [answer.said()]
    texts, started = {}, {}
    for event in reply:
        if event.type == "content_block_start" and event.content_block.type == "text":
            texts[event.index] = event.content_block.text or ""
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            answer.piece(event.index, event.content_block.id, event.content_block.name, "")
            started[event.index] = event.content_block.input
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            texts[event.index] = texts.get(event.index, "") + event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            answer.piece(event.index, None, "", event.delta.partial_json)
        elif event.type == "message_delta":
            answer.finish = event.delta.stop_reason
    for call in answer.calls:
        # A call whose input never came in pieces has what it began with.
        call["arguments"] = call["arguments"] or json.dumps(started.get(call["index"]) or {})
    answer.text = "\n".join(texts.values())
    return [answer.said()]


APIS = {
    "openai_chat": (openai.OpenAI, "/v1", chat),
    "openai_completions": (openai.OpenAI, "/v1", completions),
    "openai_responses": (openai.OpenAI, "/v1", responses),
    "anthropic_messages": (anthropic.Anthropic, "", messages),
}


def clients():
    """One client an agent and API, over one pool of connections each."""
    made = {}
    for api, (kind, _, _) in APIS.items():
        made[api] = kind(base_url="http://127.0.0.1:1", api_key="sk-client-tests", max_retries=0, timeout=20)
    return made


def main():
    made = clients()
    for shape in ASKED["shapes"]:
        api = shape["api"]
        _, suffix, call = APIS[api]
        for agent in ASKED["agents"]:
            url = f"{ASKED['proxy']}/r/shape-{shape['number']}/a/{agent}{suffix}"
            line = {"shape": shape["number"], "agent": agent}
            model = "peer" if agent == "peer" else f"shape-{shape['number']}"
            try:
                line["answers"] = call(made[api].with_options(base_url=url), model, shape["stream"] and agent != "peer")
            except Exception as error:
                line["error"] = f"{type(error).__name__}: {error}"[:300]
            print(json.dumps(line), flush=False)


main()
