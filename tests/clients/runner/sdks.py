"""SDK conformance: the same checks by every SDK version, against `aegis serve` clean, under plans and under faults."""

import json
import socket
import subprocess
from contextlib import ExitStack

from . import environments
from .aegis import run_directories

PYTHON = {"openai-python 1.40": "openai-old", "openai-python 3.52": "openai-new"}
NODE = {"openai-node 6.49": "openai-6", "openai-node 7.55": "openai-7"}
# Suites over the other surfaces: Responses and Messages, by each language's own SDKs.
SURFACES = {"surfaces": None, "surfaces openai-node 6.49": "openai-6", "surfaces openai-node 7.55": "openai-7"}
# What the recording must say of the agents that meet faults: tries of their one step, and how each step ended.
RETRIED = {"limited_once": 2, "broken_once": 2, "broken_once_streamed": 2, "broken_always": 3}
CAUSES = {
    "limited_once": ["complete"],
    "hangs": ["client_gone", "complete"],
    "late": ["client_gone"],
    "reset": ["injected"],
    "cut": ["injected"],
    "cut_clean": ["injected"],
    "cut_whole": ["injected"],
}


def names():
    return [*PYTHON, *NODE]


def test(name, root, aegis, cache, report):
    """Run the checks of one SDK version, then read what was recorded."""
    report.heading(name)
    plans = root / "plans"
    run = name.replace(" ", "-")
    with ExitStack() as servers:
        served = {
            "clean": servers.enter_context(aegis.serve(name="clean")),
            "edited_whole": servers.enter_context(aegis.serve(plan=plans / "edits.toml", name="edited-whole")),
            "edited_streamed": servers.enter_context(aegis.serve(plan=plans / "edits.toml", name="edited-streamed")),
            "faulty": servers.enter_context(aegis.serve(plan=plans / "faults.toml", name="faulty")),
            "no_upstream": servers.enter_context(aegis.serve(upstream=nobody(), name="no-upstream")),
        }
        proxies = {proxy: address for proxy, (address, _) in served.items()}
        lines = converse(name, root, proxies | {"run": run}, cache, aegis.environment)
    for line in lines:
        report.check(f"{name}: {line['check']}", line["ok"], line.get("why", ""))
    for proxy, (_, logs) in served.items():
        recorded(name, proxy, logs, run, aegis, report)


def converse(name, root, proxies, cache, environment):
    """Run the SDK's program; gives its lines, one per check."""
    argument = json.dumps(proxies)
    if name in PYTHON:
        program = root / "sdk_python" / "conformance.py"
        command = [str(environments.python(PYTHON[name], cache)), str(program), argument]
    else:
        command = ["node", str(environments.node(cache) / "conformance.mjs"), NODE[name], argument]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        lines.append({"check": "the program ends", "ok": False, "why": f"{done.returncode}\n{done.stderr[-3000:]}"})
    return lines


def recorded(name, proxy, logs, run, aegis, report):
    """The recordings of one proxy: one sealed run, agents by path, attempts and aborts as they were."""
    what = f"{name}, recording of {proxy}"
    directories = run_directories(logs)
    if not report.equal(f"{what}: one run", [path.name for path in directories], [run]):
        return
    directory = directories[0]
    report.check(f"{what}: sealed", (directory / "seal.json").is_file(), "no seal.json")
    steps = aegis.agents(directory)["steps"]
    report.equal(f"{what}: agents by path", {step["source"] for step in steps}, {"path"})
    label = directory / "label.json"
    if proxy.startswith("edited"):
        hit = {error["agent"] for error in json.loads(label.read_text())["errors"]} if label.is_file() else set()
        planned = {"corrupted", "replaced", "truncated", "redirected", "form"}
        report.equal(f"{what}: the label names the edited agents", hit, planned)
    else:
        report.check(f"{what}: no label", not label.exists(), label)
    if proxy == "faulty":
        faulty(what, directory, aegis, report)


def faulty(what, directory, aegis, report):
    """Retries are attempts of one step, and who ended an exchange is told."""
    attempts = {}
    for step in aegis.show(directory)["steps"]:
        attempts.setdefault(step["agent"], []).append(step["attempts"])
    tries = {agent: [len(made) for made in attempts.get(agent, [])] for agent in RETRIED}
    report.equal(f"{what}: attempts are one step", tries, {agent: [count] for agent, count in RETRIED.items()})
    causes = {agent: [made[-1]["cause"] for made in attempts.get(agent, [])] for agent in CAUSES}
    report.equal(f"{what}: how the exchanges ended", causes, CAUSES)


def surfaces(name, root, aegis, cache, report):
    """Responses and Messages by their own SDKs, under one plan, whole and streamed."""
    report.heading(name)
    plan = root / "plans" / "surfaces.toml"
    with ExitStack() as servers:
        served = {
            "clean": servers.enter_context(aegis.serve(name="surfaces-clean")),
            "whole": servers.enter_context(aegis.serve(plan=plan, name="surfaces-whole")),
            "streamed": servers.enter_context(aegis.serve(plan=plan, name="surfaces-streamed")),
        }
        proxies = {proxy: address for proxy, (address, _) in served.items()}
        argument = json.dumps(proxies | {"run": "surfaces"})
        if SURFACES[name]:
            command = ["node", str(environments.node(cache) / "surfaces.mjs"), SURFACES[name], argument]
        else:
            command = [str(environments.python("surfaces", cache)), str(root / "sdk_python" / "surfaces.py"), argument]
        done = subprocess.run(command, env=aegis.environment, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    report.check(f"{name}: the program ends", not done.returncode and lines, done.stderr[-3000:])
    for line in lines:
        report.check(f"{name}: {line['check']}", line["ok"], line.get("why", ""))


def nobody():
    """An address at which nothing listens: a port that was just free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
