"""Serves a model that a recipe left as a chat API, so that `aegis attribute --tracer` can ask it.

    python3 serve.py FOLDER/model [--port 8080] [--answer 256]

Answers one request after the other, greedily, on the CPU; a server such as vLLM or llama.cpp's does it faster and understands more.
Prints `{"url": …}` when it answers, and ends when its input does.
"""

import argparse
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import recipe


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model's folder or name; smollm2: the one of the package")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--answer", type=int, default=256, help="tokens of an answer at most")
    options = parser.parse_args()
    Tracer.model, Tracer.words = recipe.tracer(options.model)
    Tracer.most = options.answer
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Tracer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}/v1"}), flush=True)
    sys.stdin.read()


class Tracer(BaseHTTPRequestHandler):
    """Chat completions of one model."""

    protocol_version = "HTTP/1.1"
    turn = threading.Lock()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.turn:
            text, read, said = self.answer(asked)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}
        reply = {"id": "chatcmpl-tracer", "object": "chat.completion", "created": 0, "model": asked.get("model", "tracer")}
        body = json.dumps(reply | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, asked):
        """The likeliest words, and how many tokens were read and said."""
        import torch

        prompt = self.words.apply_chat_template(asked["messages"], add_generation_prompt=True, tokenize=False)
        tokens = self.words(prompt, return_tensors="pt", add_special_tokens=False)
        most = min(self.most, asked.get("max_completion_tokens") or asked.get("max_tokens") or self.most)
        with torch.no_grad():
            made = self.model.generate(**tokens, max_new_tokens=most, do_sample=False, pad_token_id=self.words.pad_token_id)
        read = tokens["input_ids"].shape[1]
        said = made[0][read:]
        return self.words.decode(said, skip_special_tokens=True), read, len(said)

    def log_message(self, *_):
        """Says nothing: standard output has the address."""


if __name__ == "__main__":
    main()
