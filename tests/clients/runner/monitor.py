"""A real collector of OpenTelemetry, a real Prometheus and Google's own SDK beside `aegis`: who watches sees what passed."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import environments

NAME = "monitor"
TASK = "Ann has 40 pencils and gives away 12. How many are left?"
TOKEN = "open-sesame"
GEMINI = """
from google import genai
client = genai.Client(api_key="none")
print(client.models.generate_content(model="gemini-2.5-flash", contents="hello").text)
print("".join(part.text for part in client.models.generate_content_stream(model="gemini-2.5-flash", contents="hello")))
"""


def test(aegis, cache, report):
    """Spans at Phoenix, counts at Prometheus, calls of Gemini's API in the record."""
    report.heading("monitor")
    interpreter = environments.python(NAME, cache)
    logs = aegis.logs(NAME)
    logs.mkdir(parents=True, exist_ok=True)
    collector(interpreter, logs, aegis, report)
    prometheus(logs, aegis, report)
    gemini(interpreter, logs, aegis, report)


def collector(interpreter, logs, aegis, report):
    port, grpc = free(), free()
    settings = {"PHOENIX_WORKING_DIR": str(logs / "phoenix"), "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(grpc),
                "PHOENIX_HOST": "127.0.0.1", "PHOENIX_TELEMETRY_ENABLED": "false"}
    environment = {**os.environ, **settings}
    with running([interpreter.parent / "phoenix", "serve"], logs / "phoenix.txt", environment):
        url = f"http://127.0.0.1:{port}"
        if not report.check("phoenix: it is up", until(lambda: get(f"{url}/healthz") is not None, 180), tail(logs / "phoenix.txt")):
            return
        config = logs / "told.toml"
        config.write_text(f'[otlp]\nendpoint = "{url}"\ncontent = true\n')
        program = [aegis.binary, "example", "pipeline", "--task", TASK]
        done = aegis.call("run", "--config", config, "--upstream", "simulator", "--log-dir", logs, "--run", "told", "--", *program)
        report.equal("phoenix: the run", done.code, 0)
        spans = f"{url}/v1/projects/default/spans?limit=50"
        until(lambda: len(get(spans) or []) == 4, 30)
        told = get(spans) or []
        runs = [span for span in told if span["parent_id"] is None]
        calls = [span for span in told if span["parent_id"] is not None]
        report.equal("phoenix: a span of the run and one of each call", (len(runs), len(calls)), (1, 3))
        report.check("phoenix: they hang together", {span["parent_id"] for span in calls} == {span["context"]["span_id"] for span in runs}, told)
        report.equal("phoenix: what they are", {span["span_kind"] for span in calls}, {"LLM"})
        attributes = [span["attributes"] for span in calls]
        report.check("phoenix: they say who spoke", all("gen_ai.agent.name" in said for said in attributes), attributes)
        report.check("phoenix: they say what was said", any("28" in str(said) for said in attributes), attributes)


def prometheus(logs, aegis, report):
    server = installed("prometheus", report)
    if not server:
        return
    listen, control, web = free(), free(), free()
    config = logs / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: aegis\n"
        f"    authorization: {{credentials: {TOKEN}}}\n    static_configs: [{{targets: ['127.0.0.1:{control}']}}]\n"
    )
    serve = [aegis.binary, "serve", "--listen", f"127.0.0.1:{listen}", "--control", f"127.0.0.1:{control}",
             "--upstream", "simulator", "--log-dir", str(logs / "served")]
    scrape = [server, f"--config.file={config}", f"--storage.tsdb.path={logs / 'tsdb'}", f"--web.listen-address=127.0.0.1:{web}"]
    with (
        running(serve, logs / "serve.txt", {**os.environ, "AEGIS_CONTROL_TOKEN": TOKEN}),
        running(scrape, logs / "prometheus.txt", dict(os.environ)),
    ):
        call = {"model": "m", "messages": [{"role": "user", "content": TASK}]}
        url = f"http://127.0.0.1:{listen}/r/one/v1/chat/completions"
        report.check("prometheus: calls pass", until(lambda: post(url, call) is not None, 20), tail(logs / "serve.txt"))
        query = f"http://127.0.0.1:{web}/api/v1/query?query=aegis_calls_total"
        until(lambda: (get(query) or {}).get("result"), 30)
        found = (get(query) or {}).get("result", [])
        labels = [{key: row["metric"][key] for key in ("surface", "cause", "status")} for row in found]
        report.equal("prometheus: it has scraped the calls", labels, [{"surface": "openai_chat", "cause": "complete", "status": "2xx"}])


def gemini(interpreter, logs, aegis, report):
    backend = ThreadingHTTPServer(("127.0.0.1", 0), Gemini)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    program = logs / "gemini.py"
    program.write_text(GEMINI)
    upstream = f"http://127.0.0.1:{backend.server_port}"
    done = aegis.call("run", "--upstream", upstream, "--log-dir", logs, "--run", "gemini", "--", interpreter, program)
    backend.shutdown()
    report.equal("gemini: its SDK gets its answers", done.stdout.split(), ["hi", "hi"])
    shown = json.loads(aegis.call("show", logs / "gemini", "--format", "json").stdout)
    report.equal("gemini: its calls are recorded", [step["surface"] for step in shown["steps"]], ["gemini_generate", "gemini_generate"])
    states = [step["account"]["reply"]["state"] for step in shown["steps"]]
    report.equal("gemini: its calls are read", states, ["read", "read"])


class Gemini(BaseHTTPRequestHandler):
    """Answers as Gemini's API does, whole or streamed."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        said = {"candidates": [{"content": {"parts": [{"text": "hi"}], "role": "model"}, "finishReason": "STOP", "index": 0}]}
        streamed = "alt=sse" in self.path
        body = json.dumps(said).encode()
        body = b"data: " + body + b"\r\n\r\n" if streamed else body
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def installed(name, report, program=None):
    """The path of a program of Debian's package of that name, which is installed if it is missing."""
    program = program or name
    if not shutil.which(program):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", name]):
            subprocess.run(["apt-get", *words], env=environment, capture_output=True, timeout=300)
    found = shutil.which(program)
    report.check(f"{name}: it is installed", bool(found), "apt-get could not install it")
    return found


@contextlib.contextmanager
def running(command, output, environment):
    with output.open("w") as file:
        process = subprocess.Popen([str(word) for word in command], stdout=file, stderr=file, env=environment)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def until(holds, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.5)
    return False


def get(url):
    """What a URL answers: `data` of a JSON object, the text of anything else; nothing while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            text = answer.read().decode()
    except OSError:
        return None
    try:
        return json.loads(text)["data"]
    except (ValueError, KeyError, TypeError):
        return text


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()
    except OSError:
        return None


def free():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def tail(path):
    return path.read_text(errors="replace")[-2000:] if path.exists() else ""
