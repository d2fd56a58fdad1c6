"""A scripted chat completions service. It takes a quarter of a second an answer, so that calls overlap as they do elsewhere."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = "Step 1: one box holds 6 eggs. Step 2: 7 * 6 = 42 eggs in 7 boxes. I checked it by adding.\nANSWER: 42"
CALL = {"id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression": "7 * 6"}'}}
SECONDS = 0.25


def said(request):
    """A tool is called until a result of it is no error."""
    results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    if request.get("tools") and not any("error" not in str(result) for result in results):
        return {"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls"
    return {"role": "assistant", "content": ANSWER}, "stop"


def whole(request):
    message, finish = said(request)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 30, "completion_tokens": 30, "total_tokens": 60}
    reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"]}
    return json.dumps(reply | {"choices": [choice], "usage": usage}).encode()


def stream(request):
    """A frame a word."""
    reply = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
    parts = [({"role": "assistant", "content": ""}, None)]
    parts += [({"content": f"{word} "}, None) for word in ANSWER.split()]
    parts += [({}, "stop")]
    choices = [{"index": 0, "delta": delta, "finish_reason": finish} for delta, finish in parts]
    lines = [json.dumps(reply | {"choices": [choice]}) for choice in choices]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(SECONDS)
        streamed = request.get("stream")
        body = stream(request) if streamed else whole(request)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        """A client that leaves early is what some pairs are about."""


@contextmanager
def served():
    """Gives the base URL."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
