"""A scripted OpenAI-compatible server: it plays the four agents, and at another path the model that rewrites their messages.

    backend.py LOG      prints `{"url": …}` when it answers; ends when its input does

Nothing is kept from one call to the next: what an agent says is worked out from the text of its request, so an altered message
alters what follows. Each call is a line of LOG, with what was asked and what was answered.
"""

import hashlib
import json
import re
import sys
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
COUNT = rf"(\d+|{'|'.join(WORDS)}|a dozen)"


def number(word):
    """A count in figures or in words."""
    word = word.lower()
    return int(word) if word.isdigit() else 12 if word == "a dozen" else WORDS.index(word) + 1


def items(text):
    """Each item that a text counts, with its count; what it takes back ("no pens") is left out."""
    counted = {item: number(count) for count, item in re.findall(rf"\b{COUNT} ([a-z]+)s\b", text, re.I) if item != "piece"}
    for item in re.findall(r"\bno ([a-z]+)s\b", text):
        counted.pop(item, None)
    return counted


def delivery(text):
    """What a text says that delivery costs, as it says it last."""
    said = re.findall(r"[Dd]elivery costs (\d+)", text)
    return int(said[-1]) if said else 0


def intake(messages):
    order = messages[-1]["content"]
    wanted = [f"{count} {item}s" for item, count in items(order).items()]
    more = f" Delivery costs {delivery(order)}." if delivery(order) else ""
    return f"The customer wants {', '.join(wanted) or 'nothing'}.{more}", []


def pricer(messages):
    """Looks prices up once, multiplies in every turn, then writes what the tools said."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    wanted, looked, products = items(messages[users[0]]["content"]), {}, []
    for at, message in enumerate(messages):
        for call in message.get("tool_calls") or []:
            arguments, answer = json.loads(call["function"]["arguments"]), answers.get(call["id"], "")
            if call["function"]["name"] == "lookup_price":
                looked[arguments["item"]] = answer
            elif at > users[-1]:
                products.append(answer)
    if not looked and wanted:
        return f"I look up what {' and '.join(wanted)} cost.", [("lookup_price", {"item": item}) for item in wanted]
    prices = {item: int(looked[item]) for item in wanted if looked.get(item, "").isdigit()}
    if prices and not products:
        return None, [("multiply", {"a": wanted[item], "b": price}) for item, price in prices.items()]
    subtotals = {item: int(product) for item, product in zip(prices, products) if product.lstrip("-").isdigit()}
    # It forgets the delivery until somebody tells it.
    extra = delivery(messages[users[-1]]["content"]) if len(users) > 1 else 0
    lines = [f"{item}: {wanted[item]} pieces, {subtotal}" for item, subtotal in subtotals.items()]
    lines += [f"Delivery costs {extra}"] if extra else []
    return "\n".join([*lines, f"Sum: {sum(subtotals.values()) + extra}"]), []


def auditor(messages):
    """Compares counts, delivery and sum with the item list; takes subtotals as they are."""
    listed, _, pricing = messages[-1]["content"].rpartition("Pricing:")
    wanted, fee = items(listed), delivery(listed)
    lines = re.findall(r"(\w+): (\d+) pieces?, (-?\d+)", pricing)
    stated = re.findall(r"Sum: *(-?\d+)", pricing)
    total = sum(int(subtotal) for *_, subtotal in lines) + fee
    told = int(stated[-1]) if stated else None
    wrong = [f"{item} must be {count} pieces" for item, count in wanted.items() if (item, str(count)) not in [line[:2] for line in lines]]
    wrong += [f"Delivery costs {fee}"] if fee and delivery(pricing) != fee else []
    wrong += [f"the sum is {total}"] if told != total else []
    compared = ", ".join(f"{count} of {item} listed" for item, count in wanted.items())
    seen = f"I compared the pricing with the list: {compared}. By the subtotals the order costs {total}, and the pricing says {told}."
    return f"{seen}\n" + (f"REVISE: {'; '.join(wrong)}." if wrong else f"APPROVE: the total is {told}."), []


def writer(messages):
    text = messages[-1]["content"]
    found = re.findall(r"the total is (-?\d+)", text) or re.findall(r"Sum: *(-?\d+)", text) or ["unknown"]
    return f"Your order comes to {found[-1]} in all.\nTOTAL: {found[-1]}", []


AGENTS = {"intake": intake, "pricer": pricer, "auditor": auditor, "writer": writer}


def play(asked):
    """An agent's reply: its text and its tool calls."""
    messages = [{**message, "content": plain(message.get("content"))} for message in asked["messages"]]
    told = " ".join(message["content"] for message in messages if message["role"] in ("system", "developer"))
    # A request whose prompt was taken away is still answered by somebody.
    name = next(iter(re.findall(r"You are (intake|pricer|auditor|writer)", told)), "writer")
    text, calls = AGENTS[name](messages)
    return name, text, calls


def plain(content):
    """The text of a message, whichever way it is written; blanks and empty lines make no difference to an agent."""
    text = "".join(part.get("text", "") for part in content) if isinstance(content, list) else content or ""
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def rewrite(asked):
    """The rewriting model's answer by the schema it is given: it changes a number or a word, whatever the mode is."""
    question = asked["messages"][1]["content"]
    tries = sum(message["role"] == "assistant" for message in asked["messages"])
    mode = next(iter(re.findall(r"\bFM-\d\.\d\b", question)), "none")
    sections = {title: body for title, body in re.findall(r"^## ([^\n]*)\n=== \w+ ===\n(.*?)\n=== \w+ ===", question, re.M | re.S)}
    text = next((body for title, body in sections.items() if title.startswith("Message to rewrite")), "")
    lines = sections.get("Tool calls that the agent makes", "").splitlines()
    calls = [json.loads(line) for line in lines if line.startswith("{")]
    properties = asked["response_format"]["json_schema"]["schema"]["properties"]
    draw = zlib.crc32(f"{mode} {text} {lines} {tries}".encode())
    declined = "does_not_apply" in properties and "calls" not in properties and not re.search(r"\d", text)
    known = {"edited_text": "" if declined else text, "does_not_apply": "There is nothing to get wrong here." if declined else None}
    if "calls" in properties:
        known["calls"] = other_arguments(calls, draw)
    elif not declined:
        known["edited_text"] = altered(text, draw)
    known["how_it_is_the_mode"] = f"What it says now is {mode}: “{known['edited_text'][-60:]}”"
    return mode, text, {name: known.get(name, filled(kind)) for name, kind in properties.items()}


def altered(text, draw):
    """The text with its first or last number changed, or else its verdict, or else its last word."""
    found = list(re.finditer(r"\d+", text))
    if found:
        place = found[0 if draw % 2 else -1]
        return f"{text[: place.start()]}{int(place.group()) + 1 + draw % 5}{text[place.end() :]}"
    for one, other in (("APPROVE", "REVISE"), ("REVISE", "APPROVE")):
        if one in text:
            return text.replace(one, other)
    return re.sub(r"\w+(\W*)$", r"others\1", text)


def other_arguments(calls, draw):
    """The calls with one argument changed: a number, or else the name of a thing for that of another."""
    place = draw % len(calls)
    call = calls[place]
    arguments = json.loads(call["arguments"])
    for name, value in arguments.items():
        others = [json.loads(other["arguments"]).get(name) for other in calls if other is not call]
        arguments[name] = value + 1 + draw % 5 if isinstance(value, int) else next(iter(others), "lamp")
        break
    return [{**one, "arguments": json.dumps(arguments)} if one is call else one for one in calls]


def filled(schema):
    """Something that fits a schema that this script knows nothing of."""
    kinds = schema.get("type", "string")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "enum" in schema:
        return schema["enum"][0]
    if "null" in kinds or "anyOf" in schema:
        return None
    if "object" in kinds:
        return {name: filled(part) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "boolean": False, "integer": 0, "number": 0}.get(kinds[0], "A number is another one now.")


class Server(BaseHTTPRequestHandler):
    """Answers chat completions at /v1 as an agent, at /manipulator/v1 as the model that rewrites."""

    protocol_version = "HTTP/1.1"
    log, lock = None, threading.Lock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        asked = json.loads(body)
        if self.path.startswith("/manipulator/"):
            mode, text, answer = rewrite(asked)
            line = {"part": "manipulator", "mode": mode, "text": text, "answer": answer}
            said, calls = json.dumps(answer), []
        else:
            name, said, calls = play(asked)
            line = {"part": "agent", "agent": name, "messages": asked["messages"], "text": said, "calls": calls}
        with self.lock:
            print(json.dumps(line), file=self.log, flush=True)
        self.answer(asked, hashlib.sha256(body).hexdigest()[:16], said, calls)

    def answer(self, asked, draw, said, calls):
        """A chat completion; its ids follow from the request's bytes, as a model's own would differ from call to call."""
        message = {"role": "assistant", "content": said}
        if calls:
            message["tool_calls"] = [
                {"id": f"call_{draw}_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for at, (name, arguments) in enumerate(calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
        usage = {"prompt_tokens": len(json.dumps(asked["messages"])) // 4, "completion_tokens": 20, "total_tokens": 0}
        usage["total_tokens"] = usage["prompt_tokens"] + 20
        reply = {"id": f"chatcmpl-{draw}", "object": "chat.completion", "created": 0, "model": asked["model"]}
        out = json.dumps(reply | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    def log_message(self, *_):
        pass


def main():
    Server.log = open(sys.argv[1], "a")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
