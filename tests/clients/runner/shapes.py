"""The shapes of `tests/shapes` as the real SDKs read them: unedited as the list means them, edited as the recording says.

An upstream serves the bytes of the list; one `aegis serve` has a plan with every manipulator of replies; one process an SDK goes through
all shapes and edits. What an SDK cannot read unedited says nothing about an edit and is counted.
"""

import gzip
import json
import re
import subprocess
import threading
import tomllib
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import environments

NAME = "shapes"
SHAPES = Path(__file__).resolve().parents[2] / "shapes"
APIS = ("openai_chat", "openai_responses", "openai_completions", "anthropic_messages")
PACKED = {None: lambda body: body, "gzip": gzip.compress, "deflate": zlib.compress}
# The part of the shapes that an SDK reads at least, so that the suite cannot pass by reading nothing.
LEAST = {"python": 0.8, "node": 0.75, "ai-sdk": 0.4}
PEER = "Bergen has 17 bridges. I disagree."
# Thinking and the like, which `aegis show` names beside the words.
OPAQUE = re.compile(r"^\[[a-z_]+\]$")
CALL = re.compile(r"^calls ([^(\s]*)\((.*)\)  \[(.*)\]$")


def listed():
    """All shapes with their numbers; those in codings that Python cannot write are left out."""
    shapes = []
    for api in APIS:
        for shape in tomllib.loads((SHAPES / f"{api}.toml").read_text())["shape"]:
            shapes.append({**shape, "api": api, "number": len(shapes), "stream": shape.get("stream", "body" not in shape)})
    return [shape for shape in shapes if shape.get("encoding") in PACKED]


def served_bytes(shape):
    if "frames" in shape:
        body = "".join(f"data: {data}\n\n" for data in shape["frames"])
    elif "events" in shape:
        body = "".join(f"event: {json.loads(data)['type']}\ndata: {data}\n\n" for data in shape["events"])
    else:
        body = shape["body"]
    body = body.replace("\n", shape.get("line_end", "\n")).encode()
    return PACKED[shape.get("encoding")](body)


def peer(path):
    if path.endswith("/messages"):
        said = {"id": "p", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": PEER}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}
    elif path.endswith("/responses"):
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": PEER, "annotations": []}]}
        said = {"id": "p", "object": "response", "model": "m", "status": "completed", "output": [item]}
    elif path.endswith("/chat/completions"):
        said = {"id": "p", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": PEER}, "finish_reason": "stop"}]}
    else:
        said = {"id": "p", "object": "text_completion", "model": "m", "choices": [{"index": 0, "text": PEER, "finish_reason": "stop"}]}
    return json.dumps(said).encode()


@contextmanager
def upstream(shapes):
    """Serves the shape that the request's model names."""
    known = {f"shape-{shape['number']}": shape for shape in shapes}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            shape = known.get(asked["model"])
            body = served_bytes(shape) if shape else peer(self.path)
            usual = "text/event-stream" if shape and shape["stream"] else "application/json"
            kind = shape.get("content_type", usual) if shape else usual
            self.send_response(200)
            if kind:
                self.send_header("content-type", kind)
            if shape and shape.get("encoding"):
                self.send_header("content-encoding", shape["encoding"])
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def test(root, aegis, cache, report):
    report.heading(NAME)
    shapes = listed()
    agents = ["peer", "plain"] + [injection["agent"] for injection in tomllib.loads((SHAPES / "edits.toml").read_text())["injection"]]
    python = str(environments.python("surfaces", cache))
    commands = {
        "python": [python, str(root / "sdk_python" / "shapes.py")],
        "node": ["node", str(environments.node(cache) / "shapes.mjs")],
        "ai-sdk": ["node", str(environments.node(cache, "frameworks_node") / "shapes.mjs")],
    }
    with upstream(shapes) as url, ThreadPoolExecutor(len(commands)) as pool:
        done = {sdk: pool.submit(converse, sdk, command, url, shapes, agents, aegis) for sdk, command in commands.items()}
        done = {sdk: lines.result() for sdk, lines in done.items()}
    # Seed, runs and agents are the same before each SDK, and so is what the agents got: one recording says it for all.
    logs = done["python"][1]
    with ThreadPoolExecutor(2) as pool:
        shown = pool.map(lambda shape: aegis.show(logs / f"shape-{shape['number']}"), shapes)
        steps = {shape["number"]: {step["agent"]: step for step in run["steps"]} for shape, run in zip(shapes, shown)}
    known = (SHAPES / "not_yet.txt").read_text().splitlines()
    known = {cell.rsplit(": ", 1)[0] for cell in known if cell.endswith((": read", ": edited"))}
    for sdk, (lines, _) in done.items():
        judge(sdk, [shape for shape in shapes if f"{shape['api']}: {shape['name']}" not in known], agents, lines, steps, report)
    report.check(f"{NAME}: {len(known)} shapes are known to be read or edited wrongly", True)


def converse(sdk, command, url, shapes, agents, aegis):
    """One SDK's program before a proxy of its own; gives its lines and the recordings."""
    asked = [{"number": shape["number"], "api": shape["api"], "stream": shape["stream"]} for shape in shapes]
    with aegis.serve(upstream=url, plan=SHAPES / "edits.toml", name=f"shapes-{sdk}", more=("--manipulator-upstream", "simulator")) as (proxy, logs):
        argument = json.dumps({"proxy": proxy, "shapes": asked, "agents": agents})
        done = subprocess.run([*command, argument], env=aegis.environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{sdk}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    return {(line["shape"], line["agent"]): line for line in map(json.loads, done.stdout.splitlines())}, logs


def meant(shape):
    if "answers" in shape:
        answers = shape["answers"]
    else:
        answers = [{"text": shape.get("text", ""), "calls": shape.get("calls", [])}]
    return [normal(answer.get("text", ""), answer.get("calls") or ([json.loads(answer["call"])] if "call" in answer else [])) for answer in answers]


def normal(text, calls):
    """An answer to be compared: without the words that stand in for an id that the SDK makes, and arguments as values."""
    return text, [(identifier, name, value(arguments)) for identifier, name, arguments in calls]


def value(arguments):
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def recorded(text):
    """What `aegis show` says that the agent got, as words and calls."""
    words, calls = [], []
    for line in text.split("\n"):
        call = CALL.match(line)
        if call:
            calls.append((call[3], call[1], value(call[2])))
        elif line and not OPAQUE.match(line):
            words.append(line)
    return "\n".join(words), calls


def heard(line):
    """What the SDK heard, as one text and all calls: `aegis show` joins answers so."""
    answers = [normal(answer["text"], answer["calls"]) for answer in line["answers"]]
    lines = [words for text, _ in answers for words in text.split("\n") if words]
    return "\n".join(lines), [call for _, calls in answers for call in calls]


def judge(sdk, shapes, agents, lines, steps, report):
    """Unedited: as the list means. Edited: as the recording says; untouched: as unedited."""
    readable, unread, wrong, cells = [], [], [], 0
    for shape in shapes:
        plain = lines[shape["number"], "plain"]
        if shape.get("ending", "answered") != "answered" or shape.get("unplaced"):
            continue
        fits = "answers" in plain and [normal(a["text"], a["calls"]) for a in plain["answers"]] == meant(shape)
        (readable if fits else unread).append(shape)
    for shape in readable:
        for agent in agents[2:]:
            cells += 1
            line, step = lines[shape["number"], agent], steps[shape["number"]][agent]
            edited = any(attempt.get("reply_delivered") is not None for attempt in step["attempts"])
            if "answers" not in line:
                said = line["error"]
            elif edited and heard(line) == recorded(step["text"]):
                continue
            elif not edited and line["answers"] == lines[shape["number"], "plain"]["answers"]:
                continue
            else:
                said = f"heard {heard(line)}, recorded {recorded(step['text']) if edited else 'untouched'}"
            wrong.append(f"{shape['api']}: {shape['name']}, {agent}: {said}")
    held = len(readable) >= LEAST[sdk] * (len(readable) + len(unread))
    names = "\n".join(f"{shape['api']}: {shape['name']}" for shape in unread)
    report.check(f"{NAME}, {sdk}: reads {len(readable)} of {len(readable) + len(unread)} shapes as they are meant", held, names)
    report.check(f"{NAME}, {sdk}: {cells} edits are heard as recorded", not wrong, "\n".join(wrong[:40]))
