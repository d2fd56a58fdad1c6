"""A model that speaks slowly and remembers what it was asked and what it said, byte for byte."""

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

EVENTS, WHOLE_S = 10, 1.0
# Questions that are answered with an error: `refuse 503`.
REFUSE = "refuse "
REFUSED_RETRY_AFTER = "7"
# Between two events, by the program: no two of them stay in step.
PAUSES_S = (0.15, 0.25, 0.32, 0.38, 0.43)


@dataclass
class Arrival:
    """One request: which question, how often its SDK had tried before, and what was said to it."""

    asked: str
    at: float
    retries: int
    request: bytes
    reply: bytes = b""
    # All of it was given away, by when it was or was not.
    whole: bool = False
    ended: float = float("inf")


class SlowUpstream:
    """Listens from the beginning; `arrivals` by arrival."""

    def __init__(self):
        self.arrivals: list[Arrival] = []
        self.under_way = 0
        self.lock = threading.Lock()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                upstream.answer(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """A server that is killed leaves connections that are reset."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers["content-length"]))
        call = json.loads(body)
        arrival = Arrival(call["messages"][-1]["content"], time.monotonic(), int(handler.headers["x-stainless-retry-count"] or 0), body)
        with self.lock:
            self.arrivals.append(arrival)
            number = len(self.arrivals)
            self.under_way += 1
        way = self.refuse if arrival.asked.startswith(REFUSE) else self.stream if call.get("stream") else self.at_once
        try:
            way(handler, arrival, f"c-{number}")
            arrival.whole = True
        except OSError:
            handler.close_connection = True
        finally:
            arrival.ended = time.monotonic()
            with self.lock:
                self.under_way -= 1

    def refuse(self, handler, arrival, name):
        arrival.reply = json.dumps({"error": {"message": f"refused: {name}"}}).encode()
        handler.send_response(int(arrival.asked.removeprefix(REFUSE)))
        handler.send_header("retry-after", REFUSED_RETRY_AFTER)
        handler.send_header("content-length", str(len(arrival.reply)))
        handler.end_headers()
        handler.wfile.write(arrival.reply)

    def at_once(self, handler, arrival, name):
        time.sleep(WHOLE_S)
        message = {"role": "assistant", "content": said(arrival.asked, EVENTS)}
        usage = {"prompt_tokens": 7, "completion_tokens": EVENTS, "total_tokens": 7 + EVENTS}
        reply = {"id": name, "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
        arrival.reply = json.dumps(reply | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(arrival.reply)))
        handler.end_headers()
        handler.wfile.write(arrival.reply)

    def stream(self, handler, arrival, name):
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        head = {"id": name, "object": "chat.completion.chunk", "created": 1, "model": "m"}
        pause = PAUSES_S[sum(arrival.asked.split()[0].encode()) % len(PAUSES_S)]
        for number in range(EVENTS):
            words = said(arrival.asked, number + 1).removeprefix(said(arrival.asked, number))
            event(handler, arrival, head | {"choices": [{"index": 0, "delta": {"content": words}, "finish_reason": None}]})
            time.sleep(pause)
        event(handler, arrival, head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        chunk(handler, arrival, b"data: [DONE]\n\n")
        handler.wfile.write(b"0\r\n\r\n")


def said(asked, words):
    """The first words of the answer to a question."""
    return "".join(f"{asked}, word {number}. " for number in range(words))


def event(handler, arrival, value):
    chunk(handler, arrival, b"data: " + json.dumps(value).encode() + b"\n\n")


def chunk(handler, arrival, data):
    arrival.reply += data
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    handler.wfile.flush()
