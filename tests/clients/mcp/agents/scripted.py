"""A scripted model: it calls the tools that its last task lists, round by round, and then says that it is done.

Serves chat completions, prints its address, ends when its input does. It knows nothing of who asks: a task is words, and then a JSON list
of rounds, each a list of calls `[tool, arguments]`.
"""

import itertools
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COUNT = itertools.count()


def plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def reply(asked: dict[str, Any]) -> dict[str, Any]:
    """The message of the assistant."""
    messages = asked["messages"]
    at = max(place for place, message in enumerate(messages) if message["role"] == "user" and "[[" in plain(message["content"]))
    text = plain(messages[at]["content"])
    rounds = json.loads(text[text.index("[[") :])
    done = sum(bool(message.get("tool_calls")) for message in messages[at:])
    if done == len(rounds):
        return {"role": "assistant", "content": "It is done."}
    offered = [tool["function"]["name"] for tool in asked["tools"]]
    calls = [
        {
            "id": f"call_{next(COUNT)}",
            "type": "function",
            "function": {"name": next(tool for tool in offered if tool.endswith(name)), "arguments": json.dumps(arguments)},
        }
        for name, arguments in rounds[done]
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_arguments: Any) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = reply(asked)
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        said = {"id": f"reply-{next(COUNT)}", "object": "chat.completion", "created": 0, "model": asked["model"]}
        body = json.dumps(said | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    sys.stdin.read()
