"""The suite `mcp-dojo`: tools of a real environment (agentdojo) behind the proxy, faults of tools planted and proven.

A run has an environment of its own at `dojo/server.py`; agentdojo's checker judges its state and the answer. The model is SCRIPTED
(`dojo/scripted.py`): it reads from its request what the tools said. The suite runs one campaign over a few tasks; `scripts/slow/tool-faults`
runs it over all.
"""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import environments
from .aegis import Aegis, Done
from .report import Report
from .warm import WARM

NAME = "mcp-dojo"
# One that acts by an amount, one that only answers.
FEW = ("banking-3", "workspace-16")
FORMATS = ("whowhen", "sft")
# Findings that no export refuses.
KNOWN = ("shortcut-", "gives-itself-away", "answer-nowhere", "gold-given", "odd-mode", "mixed-kinds")
OPERATORS = {"corrupt_number", "empty", "repeat_step", "truncate_output", "replace_text"}


def test(root: Path, aegis: Aegis, cache: Path, report: Report) -> None:
    report.heading(NAME)
    out = aegis.logs(NAME) / "out"
    done = campaign(root / "dojo", aegis, cache, out, FEW, 300)
    last = done.stderr.strip().splitlines()[-1:]
    if not report.check(f"{NAME}: the campaign comes to its end", done.code == 0 and last[0].startswith("RESULT"), done.stderr[-2500:]):
        return
    said = json.loads((out / "report.json").read_text())
    clean, funnel = said["clean"], said["funnel"]
    numbers(out)
    report.equal(f"{NAME}: every clean run passes", (clean["kept"], clean["passed"]), (len(FEW), clean["runs"]))
    failures = rows(out)
    report.check(f"{NAME}: faults of tools are verified", funnel["verified"] > 0 and failures, said["classes"])
    decoys = said.get("decoys", {})
    report.check(f"{NAME}: decoys are planted in tools, and none is verified", decoys.get("planted", 0) > 0 and decoys["verified"] == 0, decoys)
    errors = [(row, error) for row in failures for error in row["label"]["errors"]]
    report.equal(f"{NAME}: each culprit is a tool", {error.get("culprit") for _, error in errors}, {"tool"})
    strange = [error for _, error in errors if error["operator"] not in OPERATORS]
    report.equal(f"{NAME}: each error is one that a plan has", strange, [])
    hit = [row["id"] for row, error in errors if not was_hit(row, error)]
    report.equal(f"{NAME}: each label names the tool that was called at its step", hit, [])
    linted = aegis.call("lint", out)
    found = [line.split()[0] for line in linted.stdout.splitlines() if line[:1].isalpha() and not line.startswith(("sure:", "RESULT"))]
    print(f"   lint: {linted.code}, findings: {found}")
    report.equal(f"{NAME}: lint finds nothing that an export refuses", [rule for rule in found if not rule.startswith(KNOWN)], [])
    for to in FORMATS:
        # An error of a tool is no agent's: without `--tools` the rows are left out, and it is said.
        left = aegis.call("export", out, "--to", to, "--out", out.parent / f"{to}-without")
        said_why = f"{len(failures)} × an error of a tool" in left.stdout + left.stderr
        report.check(f"{NAME}: export to {to} says why it leaves the rows out", said_why, left)
        taken = aegis.call("export", out, "--to", to, "--tools", "--out", out.parent / f"{to}-with")
        print(f"   export --to {to} --tools: {taken.code} {' '.join(taken.stderr.split())[-300:]}")
        report.check(f"{NAME}: export to {to} takes them with --tools", taken.code == 0 and "an error of a tool" not in taken.stdout + taken.stderr, taken)
    label = next(path for path in sorted(out.glob("logs/*/label.json")) if json.loads(path.read_text())["status"] == "verified")
    found = [one for row in failures for one in row["label"].get("missed_catch", [])]
    report.check(f"{NAME}: agents that could have saved a run are found, by executions", any(one["state"] == "missed" for one in found), found)
    culprit = json.loads(label.read_text())["errors"][0]
    shown = aegis.call("show", label.parent)
    told = culprit["agent"] in shown.stdout and culprit["operator"] in shown.stdout
    report.check(f"{NAME}: show says what was planted, and where", told, shown.stdout[-1500:])


def rows(out: Path) -> list[dict]:
    read = map(json.loads, (out / "dataset.jsonl").read_text().splitlines())
    return [row for row in read if row["kind"] == "failure"]


def was_hit(row: dict, error: dict) -> bool:
    step = next(step for step in row["steps"] if step["step"] == error["step"])
    return step["agent"] == error["agent"] and error["agent"].startswith("mcp/dojo/")


def numbers(out: Path) -> None:
    """What was planned and shown, by manipulator, and what was verified, by tool."""
    said = json.loads((out / "report.json").read_text())
    print(f"   {json.dumps(said['funnel'])} {json.dumps(said['classes'])} {said['seconds']:.0f} s")
    print(f"   decoys: {json.dumps(said.get('decoys'))} missed catches: {json.dumps(said.get('missed_catch'))}")
    for one in said["strata"]:
        if one.get("planted"):
            print(f"   {json.dumps({key: value for key, value in one.items() if value is not None})}")
    errors = [error for row in rows(out) for error in row["label"]["errors"]]
    for (operator, tool), many in sorted(Counter((error["operator"], error["agent"]) for error in errors).items()):
        print(f"   verified: {many} {operator} {tool}")
    found = Counter((one["agent"], one["state"]) for row in rows(out) for one in row["label"].get("missed_catch", []))
    for (agent, state), many in sorted(found.items()):
        print(f"   later agent {agent}: {state} {many}")
    print(f"   rows: {len(rows(out))}, culprit a tool: {sum(error.get('culprit') == 'tool' for error in errors)}", flush=True)


def campaign(folder: Path, aegis: Aegis, cache: Path, out: Path, only: tuple[str, ...], seconds: int) -> Done:
    """Run it over these tasks, all if none is named."""
    interpreter = environments.python("dojo", cache)
    early = {"PYTHONHASHSEED": "0", "OPENAI_API_KEY": "none", "PATH": f"{interpreter.parent}:{aegis.environment['PATH']}"}
    with listening([interpreter, folder / "server.py"]) as port, listening([interpreter, folder / "scripted.py", folder / "tasks.jsonl"]) as model:
        inside = Aegis(aegis.binary, aegis.scratch, aegis.environment | early | {"DOJO_URL": f"http://127.0.0.1:{port}"})
        # A campaign takes its servers of tools from the roster file alone, and the port is another each time.
        copied = out.parent / "campaign"
        shutil.copytree(folder, copied, ignore=shutil.ignore_patterns("__pycache__"))
        with (copied / "aegis.toml").open("a") as roster:
            roster.write(f'\n[[mcp]]\nname = "dojo"\nurl = "http://127.0.0.1:{port}/mcp"\n')
        file = copied / "campaign.toml"
        file.write_text(file.read_text().replace("../../../plans", str(folder.parents[2] / "plans")))
        chosen = [word for task in only for word in ("--only", task)]
        below = [interpreter, WARM, "program.py", "--"]
        command = ["campaign", file, "--out", out, "--upstream", model, *chosen]
        return inside.call(*command, folder=copied, seconds=seconds, below=below)


@contextmanager
def listening(command: list) -> Iterator[str]:
    """A server that prints where it listens, and ends when its input does."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if not (where := process.stdout.readline().strip()):
            raise RuntimeError(f"`{Path(command[1]).name}` does not listen: exit code {process.wait(10)}")
        yield where
    finally:
        process.kill()
        process.communicate()
