"""Whole multi-agent programs through `aegis run`: with and without a plan.

Each program's folder holds an ordinary `main.py` or `main.mjs`, the roster `aegis.toml`, its plans, and `expect.toml`, which
says what must come out.
"""

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

from . import environments, reruns


def folders(root):
    return sorted(path.parent for path in root.glob("*/expect.toml"))


def test(folder, aegis, cache, report):
    """Run one program clean and under each of its plans."""
    expected = tomllib.loads((folder / "expect.toml").read_text())
    command = environments.command(folder, expected["environment"], cache)
    report.heading(f"{folder.name}: clean")
    case = Case(folder, aegis, report, expected, "clean")
    clean(case, command)
    if case.done.directory:
        report.heading(f"{folder.name}: replayed and forked")
        reruns.replayed(case, command)
        reruns.forked(case, command)
    for planned in expected["planned"]:
        name = Path(planned["plan"]).stem
        report.heading(f"{folder.name}: {planned['plan']}")
        under_plan(Case(folder, aegis, report, expected, name), command, planned)


class Case:
    """One run of a program and the checks on it."""

    def __init__(self, folder, aegis, report, expected, name):
        self.folder, self.aegis, self.report, self.expected = folder, aegis, report, expected
        self.name = f"{folder.name}/{name}"
        self.answer = str(expected["answer"])

    def run(self, command, plan=None):
        check = f"grep -qx {shlex.quote('FINAL: ' + self.answer)}"
        name = self.name.replace("/", "-")
        self.done = self.aegis.run(command, self.folder, plan=plan, check=check, name=name)
        self.final = next(iter(re.findall(r"^FINAL: (.*)$", self.done.stdout, re.M)), None)
        return self.done

    def equal(self, what, seen, wanted):
        return self.report.equal(f"{self.name}: {what}", seen, wanted)

    def true(self, what, ok, why=""):
        return self.report.check(f"{self.name}: {what}", ok, why)

    def talk(self):
        """What the program and the proxy said, for a failed check."""
        return f"{self.done.stdout[-1500:]}\n{self.done.stderr[-2500:]}"

    def recorded(self):
        """Checks of every run: it is recorded and sealed, its directory and result are told."""
        if not self.true("one run is recorded", self.done.directory, self.talk()):
            return False
        self.true("the run is sealed", (self.done.directory / "seal.json").is_file(), "no seal.json")
        last = self.done.stderr.strip().splitlines()[-1:]
        self.true("the last line is the result", last and last[0].startswith("RESULT"), last)
        self.true("the run's directory is told", self.done.directory.name in self.done.stderr, self.done.stderr[-500:])
        return True

    def steps(self):
        """The steps of the trajectory; checks that each is named by the roster, without doubt, and counted."""
        audit = self.aegis.agents(self.done.directory)
        steps = audit["steps"]
        calls = {}
        for step in steps:
            calls[step["agent"]] = calls.get(step["agent"], 0) + 1
        self.equal("steps are numbered from 0", [step["step"] for step in steps], list(range(len(steps))))
        self.equal("every agent is named by the roster", {step["source"] for step in steps}, {"roster"})
        self.equal("no agent is in doubt", [step["step"] for step in steps if step["ambiguous"]], [])
        self.equal("calls are counted per agent", {a["agent"]: a["calls"] for a in audit["agents"]}, calls)
        numbered = {(step["agent"], step["instance"]): [] for step in steps}
        for step in steps:
            numbered[step["agent"], step["instance"]].append(step["call"])
        gaps = {key: calls for key, calls in numbered.items() if sorted(calls) != list(range(len(calls)))}
        self.equal("calls of an agent are numbered from 0", gaps, {})
        return steps

    def outcome(self, verdict):
        manifest = self.done.file("run.json") or {}
        outcome = manifest.get("outcome") or {}
        self.equal(f"the outcome is {verdict}", outcome.get("verdict"), verdict)


def clean(case, command):
    """A run that nothing touches: right answer, right agents, no label."""
    done = case.run(command)
    case.equal("the program gives the right answer", case.final, case.answer)
    case.true("exit code 0", done.code == 0, f"{done.code}\n{case.talk()}")
    if not case.recorded():
        return
    case.outcome("success")
    audit = case.steps()
    agents = [step["agent"] for step in audit]
    if case.expected.get("tools", True):
        loops = [one["turn"] == two["turn"] for one, two in pairwise(audit) if one["agent"] == two["agent"]]
        case.true("a tool loop is one turn", loops and all(loops), [(step["agent"], step["turn"]) for step in audit])
    case.true("the agents speak in the expected order", in_order(agents, case.expected["agents"]), agents)
    case.true("there is no label", not (done.directory / "label.json").exists(), done.file("label.json"))
    shown = str(case.aegis.show(done.directory, "--step", "0"))
    case.true("the first step shows the question", case.expected["asks"] in shown, shown[:500])


def under_plan(case, command, planned):
    """A run under a plan: the label says what was planted, and the program saw it."""
    done = case.run(command, planned["plan"])
    solved = planned["solved"]
    case.true(f"the answer is {'right' if solved else 'wrong'}", (case.final == case.answer) == solved, case.talk())
    case.equal("the exit code", done.code, planned.get("code", 0 if solved else 1))
    if not case.recorded():
        return
    case.outcome("success" if solved else "failure")
    steps = case.steps()
    for pattern in planned.get("says", []):
        case.true(f"the program says `{pattern}`", re.search(pattern, done.stdout), case.talk())
    label = done.file("label.json")
    if not planned["errors"]:
        case.true("there is no label", label is None, label)
    elif case.true("there is a label", label is not None, case.talk()):
        labelled(case, steps, label, planned["errors"])
        if planned.get("retried"):
            reruns.retried(case, command, label["errors"][0])
    if "attempts" in planned:
        tries = [len(step["attempts"]) for step in case.aegis.show(done.directory)["steps"]]
        case.equal("retried attempts are one step", [count for count in tries if count > 1], planned["attempts"])


def labelled(case, steps, label, wanted):
    """The label names exactly what was planted, and agrees with the trajectory."""
    case.equal("the label says delivered", label["status"], "delivered")
    case.equal("the label says injected", label["definition"], "injected")
    keys = ("agent", "side", "operator", "call")
    seen = [{"mode": error["failure_mode"]["code"]} | {key: error[key] for key in keys} for error in label["errors"]]
    case.equal("the label names what was planted", seen, [dict(error) for error in wanted])
    for error in label["errors"]:
        step = steps[error["step"]] if error["step"] < len(steps) else {}
        there = (step.get("agent"), step.get("instance"), step.get("call"))
        case.equal("the label's step is that agent's call", there, (error["agent"], error["instance"], error["call"]))
        case.true("the label holds both hashes", error["before_bytes"] != error["after_bytes"] and error["delivered"], error)
        case.true("the failure mode has its taxonomy", error["failure_mode"].get("taxonomy"), error["failure_mode"])
        shown = case.aegis.call("show", case.done.directory, "--step", error["step"], "--before-after")
        case.true("before and after are shown", shown.code == 0 and shown.stdout.strip(), shown.stderr)


def in_order(agents, expected):
    """Whether `agents` speak as `expected`; an inner list holds agents that may come in any order."""
    rest = list(agents)
    for entry in expected:
        group = entry if isinstance(entry, list) else [entry]
        if sorted(rest[: len(group)]) != sorted(group):
            return False
        rest = rest[len(group) :]
    return not rest
