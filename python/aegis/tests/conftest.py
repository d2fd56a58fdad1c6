"""Recordings made by the program itself, and what went over the wire meanwhile. Needs `aegis` (AEGIS_BIN)."""

import gzip
import http.client
import json
import os
import random
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import aegis
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
FIXTURES = sorted(path.parent for path in (REPOSITORY / "tests" / "it" / "fixtures").glob("*/*/run.json"))
# So much log that its beginning is moved into the head: it rolls at 1 MB.
ROLLED_BYTES = 1_600_000


@pytest.fixture(scope="session")
def program():
    return aegis.binary()


@pytest.fixture(scope="session")
def demo(program, tmp_path_factory):
    """A campaign on the simulator: 132 runs, a data set."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    subprocess.run([program, "demo", "--quiet", "--dir", str(folder)], check=True, capture_output=True)
    return folder


def told(program, *arguments):
    """What a verb says as JSON."""
    done = subprocess.run([program, *map(str, arguments), "--format", "json"], check=True, capture_output=True)
    return json.loads(done.stdout)


@pytest.fixture
def served(program, tmp_path):
    """A server with a control listener: its address, the listener's, and the token."""
    command = [program, "serve", "--upstream", "simulator", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    command += ["--log-dir", str(tmp_path / "served")]
    environment = {**os.environ, "AEGIS_CONTROL_TOKEN": "control-token"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        told = json.loads(server.stdout.readline())
        yield f"http://{told['listen']}", f"http://{told['control']}", "control-token"
        server.terminate()


class Upstream(BaseHTTPRequestHandler):
    """Answers with what the test wants: `answers`, in order; a list of pieces is an event stream."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"] or 0))
        answer = self.server.answers.pop(0)
        kind = "text/event-stream" if isinstance(answer, list) else "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        if isinstance(answer, list):
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for piece in [*answer, b""]:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
            return
        if answer.startswith(b"\x1f\x8b"):
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def upstream():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def chat(messages, ascii_only=False, **more):
    return json.dumps({"model": "some-model", "messages": messages, **more}, ensure_ascii=ascii_only).encode()


def reply(text, **more):
    message = {"role": "assistant", "content": text, **more}
    return json.dumps({"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def events(*deltas):
    """A streamed reply in pieces that do not end where its events do."""
    chunks = [{"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    whole = b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    return [whole[at : at + 100] for at in range(0, len(whole), 100)]


CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": ""}}
LONG = 'a long text: "quotes", \\ backslashes,\n\tlines, é, 😀, \x01 and \x7f, which is worth a reference of its own '


def exchanges():
    """Pairs of a request's and a reply's body: what a recording must hold byte for byte."""
    noise = random.Random(7)
    user = [{"role": "user", "content": LONG}]
    pairs = [
        (chat(user), reply(LONG)),
        (chat(user), reply(LONG)),
        (chat(user, ascii_only=True), reply("é" * 60)),
        (chat(user, note=LONG.upper()).replace(b"\\n", b"\\u000a").replace(b"/", b"\\/"), reply("short")),
        (chat(user), events({"role": "assistant", "content": ""}, {"content": "é and "}, {"content": "more"}, {})),
        (
            chat(user, stream=True, tools=[]),
            events({"tool_calls": [CALL]}, *({"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in ('{"a"', ":1}"))),
        ),
        (chat(user, more=1), gzip.compress(reply(LONG * 3), mtime=0)),
        (b"\xff\xfe" + noise.randbytes(3000), reply("of bytes that are no text")),
        (noise.randbytes(200_000), noise.randbytes(100_000)),
        (b"", b""),
        (b"not JSON at all, " * 9, b'{"choices": []}'),
        (chat(user)[:-9], b"{"),
    ]
    talk = [{"role": "system", "content": "You talk."}]
    for turn in range(70):
        talk += [{"role": "user", "content": f"turn {turn}: {LONG * (turn % 3 + 1)}"}]
        answer = f"answer {turn}: {noise.random()} {LONG[: turn % 90]}"
        # Now and then the beginning changes, or something in the middle.
        talk[0 if turn % 9 else turn % len(talk)]["content"] += f" {turn}" if turn % 4 == 0 else ""
        pairs.append((chat(list(talk), temperature=turn / 70), reply(answer)))
        talk += [{"role": "assistant", "content": answer}]
    return pairs


def rolls():
    """More pairs, so many that the log rolls."""
    noise, written, pairs = random.Random(11), 0, []
    while written < ROLLED_BYTES:
        words = "".join(noise.choices("abcdefghij é\n", k=30_000))
        pairs.append((chat([{"role": "user", "content": words}]), reply(words[::-1])))
        written += 2 * len(words)
    return pairs


class Recorded:
    """A run by the program, and the bodies that went over the wire: pairs of what was sent and what came back."""

    def __init__(self, proxy, wire):
        self.proxy, self.directory, self.wire = proxy, proxy.directory, wire


def record(proxy, upstream, pairs):
    upstream.answers = [answer for _, answer in pairs]
    wire = []
    host = proxy.url.removeprefix("http://")
    for asked, _ in pairs:
        connection = http.client.HTTPConnection(host, timeout=60)
        headers = {"content-type": "application/json", "x-aegis-agent": "solver"}
        connection.request("POST", "/v1/chat/completions", asked, headers)
        answer = connection.getresponse()
        wire.append((asked, answer.read()))
        assert answer.status == 200, wire[-1][1]
        connection.close()
    return Recorded(proxy, wire)


def proxied(upstream, folder, **more):
    host, port = upstream.server_address
    return aegis.Proxy(upstream=f"http://{host}:{port}", log_dir=folder, set_environment=False, **more)


@pytest.fixture(scope="session")
def odd(upstream, tmp_path_factory):
    """A sealed run of all kinds of bodies."""
    with proxied(upstream, tmp_path_factory.mktemp("odd"), run="odd") as proxy:
        recorded = record(proxy, upstream, exchanges())
    return recorded


@pytest.fixture(scope="session")
def rolled(upstream, tmp_path_factory):
    """A run whose log has rolled; read before and after its end by the tests of that, which end it."""
    proxy = proxied(upstream, tmp_path_factory.mktemp("rolled"), run="rolled").start()
    yield record(proxy, upstream, rolls())
    proxy.end()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "AEGIS_")) and name != "AEGIS_BIN"]:
        monkeypatch.delenv(name)
