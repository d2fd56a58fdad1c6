"""Google's own SDKs, Python and JavaScript, on `generateContent` and Interactions: directly and through the proxy, edited, under faults,
recorded and replayed. Their backend is the simulator."""

import json
import subprocess
import urllib.error
import urllib.request
from contextlib import ExitStack

from . import environments

NAME = "gemini"
MODEL = "gemini-3-flash-preview"
WHOLE = f"/v1beta/models/{MODEL}:generateContent"
STREAM = f"/v1beta/models/{MODEL}:streamGenerateContent"
VERTEX = f"/v1/projects/p/locations/l/publishers/google/models/{MODEL}:generateContent"
QUESTION = {"contents": [{"role": "user", "parts": [{"text": "What is 12 + 30?"}]}]}
INTERACTION = {"model": MODEL, "input": "What is 12 + 30?"}
# What is asked byte for byte: path and body.
BODIES = {
    "whole": (WHOLE, QUESTION),
    "streamed": (f"{STREAM}?alt=sse", QUESTION),
    "a list": (STREAM, QUESTION),
    "Vertex": (VERTEX, QUESTION),
    "interaction": ("/v1beta/interactions", INTERACTION),
    "interaction streamed": ("/v1beta/interactions", {**INTERACTION, "stream": True}),
    "no contents": (WHOLE, {}),
}
# The checks under each fault.
FAULTS = {
    "limited": ("whole", "streamed", "interaction"),
    "broken": ("whole", "streamed", "interaction"),
    "cut": ("streamed", "interaction_streamed"),
    "malformed": ("streamed", "interaction_streamed"),
    "failing": ("streamed", "interaction_streamed"),
}
STATUS = {"limited": 429, "broken": 500}
SILENT = ("cut", "malformed")
ANSWER = "12 + 30 = 42\nANSWER: 42"
# Edits of replies and requests: the check, and what must stand in what the SDK says.
EDITS = {
    "corrupted": {"whole": "52", "streamed": "52", "interaction": "52", "interaction_streamed": "52"},
    "redirected": {"tools": "1 + 1", "tools_streamed": "1 + 1", "interaction_tools": "1 + 1"},
    "misinformed": {"tools": "99", "tools_streamed": "99", "interaction_tools": "99"},
}
INSTRUCTED = ("whole", "streamed", "interaction", "interaction_streamed")


def test(root, aegis, cache, report):
    report.heading(NAME)
    folder = environments.node(cache, NAME)
    sdks = {
        "python": [str(environments.python(NAME, cache)), str(root / NAME / "client.py")],
        "node": ["node", str(folder / "client.mjs")],
    }
    with ExitStack() as servers:
        direct, _ = servers.enter_context(aegis.serve(name="gemini-direct"))
        clean, logs = servers.enter_context(aegis.serve(upstream=direct, name="gemini-clean"))
        faulty, faults = servers.enter_context(aegis.serve(upstream=direct, plan=root / "plans" / "gemini.toml", name="gemini-faulty"))
        bytes_are_equal(direct, clean, report)
        for sdk, command in sdks.items():
            answers(sdk, command, direct, clean, aegis, report)
            edits(sdk, command, faulty, aegis, report)
            disturbed(sdk, command, faulty, aegis, report)
    for sdk in sdks:
        recorded(sdk, logs, aegis, report)
        instructed(sdk, faults, aegis, report)
    for sdk, command in sdks.items():
        replayed(sdk, command, aegis, report)


def lines(command, prefix, names, environment):
    """What a client prints, by check."""
    done = subprocess.run([*command, prefix, *names], env=environment, capture_output=True, text=True, timeout=240)
    seen = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["check"]: line["seen"] for line in seen} | ({"the program": done.stderr[-2000:]} if done.returncode else {})


def post(address, path, body):
    request = urllib.request.Request(address + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.headers["content-type"], reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read()


def bytes_are_equal(direct, clean, report):
    for what, (path, body) in BODIES.items():
        wanted = post(f"{direct}/r/bytes/a/raw", path, body)
        report.equal(f"bytes: {what}", post(f"{clean}/r/bytes/a/raw", path, body), wanted)
        report.equal(f"bytes: {what}: the status", wanted[0], 400 if what == "no contents" else 200)


def answers(sdk, command, direct, clean, aegis, report):
    wanted = lines(command, f"{direct}/r/{sdk}/a/{{}}", [], aegis.environment)
    through = lines(command, f"{clean}/r/{sdk}/a/{{}}", [], aegis.environment)
    report.check(f"{sdk}: the checks are made", len(wanted) >= 8, wanted)
    for check in wanted:
        report.equal(f"{sdk}: {check}: as directly", through.get(check), wanted[check])
        report.check(f"{sdk}: {check}: an answer", "42" in str(wanted[check]) and "raised" not in str(wanted[check]), wanted[check])


def edits(sdk, command, faulty, aegis, report):
    for edit, checks in EDITS.items():
        names = [f"{check}:{edit}-{check}" for check in checks]
        seen = lines(command, f"{faulty}/r/{sdk}/a/{{}}", names, aegis.environment)
        for check, wanted in checks.items():
            said = seen.get(f"{check}:{edit}-{check}")
            report.check(f"{sdk}: {check} {edit}: the edit arrives", wanted in str(said), said)
    names = [f"{check}:instructed-{check}" for check in INSTRUCTED]
    seen = lines(command, f"{faulty}/r/{sdk}/a/{{}}", names, aegis.environment)
    for name in names:
        report.check(f"{sdk}: {name}: an answer", "raised" not in str(seen.get(name, "raised")), seen.get(name))


def disturbed(sdk, command, faulty, aegis, report):
    for fault, checks in FAULTS.items():
        names = [f"{check}:{fault}-{check}" for check in checks]
        # A run with faults in it has no label.
        seen = lines(command, f"{faulty}/r/{sdk}-faults/a/{{}}", names, aegis.environment)
        for name in names:
            said = seen.get(name)
            wanted = STATUS.get(fault)
            is_raised = isinstance(said, dict) and (wanted is None or said["status"] == wanted)
            # SDKs of Interactions take the end of a connection for the end of a stream, and one of them passes over what is no JSON.
            is_less = fault in SILENT and "interaction" in name and isinstance(said, list) and said[0] != ANSWER
            report.check(f"{sdk}: {name}: its own error", is_raised or is_less, said)


def recorded(sdk, logs, aegis, report):
    steps = aegis.show(logs / sdk)["steps"]
    unread = [step["agent"] for step in steps if step["account"]["request"]["state"] != "read" or step["account"]["reply"]["state"] != "read"]
    report.equal(f"{sdk}, recording: all steps are read", unread, [])
    surfaces = {step["agent"]: step["surface"] for step in steps}
    wrong = {agent: name for agent, name in surfaces.items() if name != ("gemini_interactions" if "interaction" in agent else "gemini_generate")}
    report.equal(f"{sdk}, recording: each call by its surface", wrong, {})
    counted = [step["agent"] for step in steps if not all(try_.get("usage") for try_ in step["attempts"])]
    report.equal(f"{sdk}, recording: tokens are counted", counted, [])


def instructed(sdk, logs, aegis, report):
    label = json.loads((logs / sdk / "label.json").read_text())
    named = {error["agent"] for error in label["errors"]}
    wanted = {f"instructed-{check}" for check in INSTRUCTED} | {f"{edit}-{check}" for edit, checks in EDITS.items() for check in checks}
    report.check(f"{sdk}, recording: the label names the edited agents", wanted <= named, sorted(wanted - named))


def replayed(sdk, command, aegis, report):
    """`aegis run` points the SDK at the proxy by its own variable; a replay serves what was recorded."""
    logs = aegis.logs(f"gemini-{sdk}")
    names = ["whole", "streamed", "tools", "interaction", "interaction_streamed"]
    run = ["run", "--upstream", "simulator", "--log-dir", logs, "--run", "first", "--", *command, "-", *names]
    first = aegis.call(*run, seconds=120)
    report.equal(f"{sdk}: aegis run", first.code, 0)
    report.check(f"{sdk}: aegis run: answers", first.stdout.count("42") >= len(names), first.stdout + first.stderr)
    again = aegis.call("replay", logs / "first", "--log-dir", aegis.logs("replay"), "--", *command, "-", *names, seconds=120)
    printed = [[line for line in done.stdout.splitlines() if line.startswith('{"check"')] for done in (first, again)]
    report.equal(f"{sdk}: a replay serves it", printed[1], printed[0])
    report.equal(f"{sdk}: a replay misses nothing", again.code, 0)
