"""Traces of real tracers and logs of a real evaluation framework, imported as runs."""

import json
import subprocess

from . import environments

NAME = "foreign-traces"
AGENTS = ["planner", "solver", "solver", "critic"]


def test(root, aegis, cache, report):
    """Makes traces, imports them, and compares what they say with what the program did."""
    report.heading("foreign traces")
    logs = aegis.logs(NAME)
    logs.mkdir(parents=True, exist_ok=True)
    folder = root / "foreign"
    for convention in ("genai", "openinference"):
        out = logs / f"{convention}.jsonl"
        if not made(folder / "spans.py", [convention, out], convention, aegis, cache, report):
            continue
        runs = imported("otlp", out, logs / convention, convention, aegis, report)
        report.equal(f"{convention}: one run", len(runs), 1)
        for run in runs:
            spoken(run, AGENTS, convention, report)
            report.equal(f"{convention}: it failed", run["outcome"]["verdict"], "failure")
            tokens = [step["usage"] and step["usage"]["output"] for step in run["steps"]]
            report.equal(f"{convention}: tokens", tokens, [7, 7, 7, None])
            roles = [message["role"] for message in run["steps"][2]["request"]["messages"]]
            report.equal(f"{convention}: what was asked", roles, ["system", "user", "assistant", "tool"])
    if made(folder / "evaluate.py", [logs / "inspect"], "inspect", aegis, cache, report):
        runs = imported("inspect", logs / "inspect", logs / "samples", "inspect", aegis, report)
        verdicts = sorted((run["run"].split("-")[1], run["outcome"]["verdict"]) for run in runs)
        report.equal("inspect: a run a sample, with its score", verdicts, [("right", "success"), ("wrong", "failure")])
        for run in runs:
            spoken(run, ["planner", "calculator", "calculator"], f"inspect {run['run']}", report)
            last = run["steps"][2]["request"]["messages"]
            report.equal(f"inspect {run['run']}: the tool's result", (last[-1]["role"], len(last)), ("tool", 4))


def made(program, arguments, name, aegis, cache, report):
    command = [str(environments.python("foreign", cache)), str(program), *map(str, arguments)]
    # The other suites keep tracers off; this one is about them.
    environment = {**aegis.environment, "OTEL_SDK_DISABLED": "false"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    return report.check(f"{name}: the trace is made", done.returncode == 0, done.stderr[-3000:])


def imported(form, path, logs, name, aegis, report):
    """The runs that a trace became, as `aegis show` says them."""
    done = aegis.call("import", "--from", form, path, "--log-dir", logs, "--format", "json")
    if not report.check(f"{name}: it is imported", done.code == 0, done.stderr):
        return []
    told = json.loads(done.stdout)
    report.equal(f"{name}: nothing is left unread", told["defects"], [])
    return [json.loads(aegis.call("show", logs / run["run"], "--format", "json").stdout) for run in told["runs"]]


def spoken(run, agents, name, report):
    report.equal(f"{name}: who spoke", [step["agent"] for step in run["steps"]], agents)
    report.check(f"{name}: the trace names them", {step["source"] for step in run["steps"]} == {"trace"}, run["steps"])
    report.equal(f"{name}: the words of the first", run["steps"][0]["text"], "The answer is 42.")
