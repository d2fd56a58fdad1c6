"""The WebSocket of the Responses API by its own SDKs, directly and through the proxy: equal, edited, replayed; and Codex on it."""

import json
import os
import select
import signal
import subprocess
from contextlib import contextmanager

from . import environments
from .aegis import run_directories

NAME = "frames"
CODEX = "frames-codex"
# The calls of each SDK's program, by agent.
CALLS = {"openai-python": ["planner", "planner", "critic", "critic", "critic"], "openai-node": ["planner", "planner", "critic"]}


def test(root, aegis, cache, report):
    """Each SDK with the server itself, through the proxy, under a plan, and from its record."""
    report.heading(NAME)
    folder = root / NAME
    python = str(environments.python("openai-agents", cache))
    node = str(environments.node(cache, NAME) / "sdk.mjs")
    programs = {"openai-python": [python, str(folder / "sdk.py")], "openai-node": ["node", node]}
    for name, command in programs.items():
        converse(name, command, folder, python, aegis, report)


def converse(name, command, folder, python, aegis, report):
    scratch = aegis.logs(name)
    with server(python, folder, scratch / "direct", aegis) as upstream:
        direct = said(command, f"{upstream}/v1", f"{upstream}/v1", aegis)
    with server(python, folder, scratch / "proxied", aegis) as upstream:
        with aegis.serve(upstream=upstream, name=f"{name}-clean") as (address, logs):
            proxied = said(command, *bases(address), aegis)
    report.check(f"{name}: the program ends", direct[0] == 0 and len(direct[1]) > 20, direct[2])
    report.equal(f"{name}: it is told the same through the proxy", streams(proxied[1]), streams(direct[1]))
    report.equal(f"{name}: the server hears the same", heard(scratch / "proxied"), heard(scratch / "direct"))
    clean = run_directories(logs)[0]
    steps = aegis.agents(clean)["steps"]
    report.equal(f"{name}: each message that asks is a step of its agent", [step["agent"] for step in steps], CALLS[name])
    shown = aegis.show(clean)["steps"]
    report.equal(f"{name}: all are read", {(step["surface"], step["status"], step["cause"]) for step in shown}, {("openai_responses", 200, "complete")})
    # Edits arrive, and the label names them.
    with server(python, folder, scratch / "edited", aegis) as upstream:
        with aegis.serve(upstream=upstream, plan=folder / "plan.toml", name=f"{name}-edited") as (address, logs):
            edited = said(command, *bases(address), aegis)
    told = "".join(message for _, message in edited[1])
    report.check(f"{name}: edits arrive in the messages", "12 * 9" in told and "69 pencils" in told, edited[2] or told[-1500:])
    report.check(f"{name}: the tool was called with what the plan says", "108" in json.dumps(heard(scratch / "edited")), "no 108")
    label = run_directories(logs)[0] / "label.json"
    named = sorted((error["agent"], error["call"]) for error in json.loads(label.read_text())["errors"]) if label.is_file() else None
    report.equal(f"{name}: the label names both edits", named, [("critic", 0), ("planner", 0)])
    # The record answers the same program, and asks nobody.
    again = ["sh", "-c", 'exec "$@" "$OPENAI_BASE_URL" "$OPENAI_BASE_URL"', "sh", *command]
    again[2] = 'root=${OPENAI_BASE_URL%/v1}; exec "$@" "$root/a/planner/v1" "$root/a/critic/v1"'
    done = aegis.call("replay", clean, "--log-dir", aegis.logs("replay"), "--", *again, seconds=120)
    report.check(f"{name}: its record answers it", done.code == 0 and "0 missed  0 of" in done.stderr, done.stderr[-2000:])
    if name == "openai-python":
        replayed = [tuple(json.loads(line).values()) for line in done.stderr.splitlines() + done.stdout.splitlines() if line.startswith('{"agent"')]
        report.equal(f"{name}: word for word", streams(replayed), streams(direct[1]))


def test_codex(root, aegis, cache, report):
    """Codex asks the simulator over a socket, warms it up first, and its record is whole."""
    report.heading(CODEX)
    modules = environments.modules(cache, root / NAME / "codex")
    home = cache / "home" / "codex-home"
    home.mkdir(parents=True, exist_ok=True)
    work = aegis.logs("codex-work")
    provider = 'model_provider = "aegis"\nmodel = "gpt-5-mini"\n[model_providers.aegis]\nname = "aegis"\nbase_url = "{}/v1"\n'
    provider += 'env_key = "OPENAI_API_KEY"\nwire_api = "responses"\nsupports_websockets = true\n'
    environment = aegis.environment | {"CODEX_HOME": str(home), "OPENAI_API_KEY": "sk-none"}
    with aegis.serve(name="codex") as (address, logs):
        (home / "config.toml").write_text(provider.format(f"{address}/r/codex/a/codex"))
        command = [str(modules / "node_modules" / ".bin" / "codex"), "exec", "--skip-git-repo-check", "What is 12 + 30?"]
        done = subprocess.run(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    report.check(f"{CODEX}: it answers", done.returncode == 0 and "42" in done.stdout, f"{done.returncode}\n{done.stdout}\n{done.stderr[-2000:]}")
    steps = aegis.show(run_directories(logs)[0])["steps"]
    asked = [step["request"] for step in steps]
    report.equal(f"{CODEX}: by messages", {asked["type"] for asked in asked}, {"response.create"})
    report.equal(f"{CODEX}: it warms up, and asks", [asked.get("generate", True) for asked in asked], [False, True])
    report.equal(f"{CODEX}: whole", {(step["agent"], step["cause"]) for step in steps}, {("codex/warm_up", "complete"), ("codex", "complete")})
    report.equal(f"{CODEX}: what it asks is its first call", [step["call"] for step in steps], [0, 0])


def bases(address):
    return [f"{address}/r/sockets/a/{agent}/v1" for agent in ("planner", "critic")]


def said(command, planner, critic, aegis):
    """Run a program; gives its exit code, what each agent was told, and what went wrong."""
    done = subprocess.run([*command, planner, critic], env=aegis.environment, capture_output=True, text=True, timeout=120)
    lines = [tuple(json.loads(line).values()) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, lines, done.stderr[-2000:]


def streams(told):
    """What each agent was told on each stream, in its order: how streams interleave is nobody's promise."""
    sorted_out = {}
    for agent, message in told:
        sorted_out.setdefault((agent, json.loads(message).get("stream_id")), []).append(message)
    return sorted_out


def heard(log):
    """What the server heard; the proxy takes its own part of the path off."""
    return [json.loads(line) for line in log.read_text().splitlines()]


@contextmanager
def server(python, folder, log, aegis):
    """The scripted server; gives its address."""
    process = subprocess.Popen(
        [python, str(folder / "server.py"), str(log)], env=aegis.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        readable, _, _ = select.select([process.stdout], [], [], 20)
        line = process.stdout.readline() if readable else ""
        if not line:
            os.kill(process.pid, signal.SIGKILL)
            raise RuntimeError(f"the server does not start: {process.communicate()[1][-2000:]}")
        yield f"http://127.0.0.1:{json.loads(line)['port']}"
    finally:
        process.kill()
        process.communicate()
