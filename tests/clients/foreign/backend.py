"""A model behind an HTTP endpoint, in this process: it asks for the tool that it is offered, then answers; one question it
refuses. Its words are the same in every run, so that what tracers saw can be compared with what was said."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = "The answer is 42."
REFUSED = "refuse this"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if any(REFUSED in str(message.get("content")) for message in asked["messages"]):
            self.reply(429, {"error": {"message": "slow down", "type": "rate_limit", "code": "rate_limit_exceeded"}})
            return
        message, reason = {"role": "assistant", "content": ANSWER}, "stop"
        if asked.get("tools") and asked["messages"][-1]["role"] != "tool":
            call = {"name": asked["tools"][0]["function"]["name"], "arguments": '{"a": 12, "b": 30}'}
            message["content"] = None
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
            reason = "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-x-1"}
        self.reply(200, {**head, "choices": [choice], "usage": usage})

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve():
    """Its base URL; it ends with the process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
