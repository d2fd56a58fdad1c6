"""Whole campaigns over the multi-agent programs: clean runs, injected runs, proof, labels, dataset.

A program's folder that holds `campaign.toml` is run as one, reduced to a task of each kind; its `python3` is that of
the program's environment. A model that rewrites messages is the embedded simulator, too. Programs of a framework are
started warm (`examples/warm`), and one of them cold as well: both must leave the same data set.
"""

import json
import tomllib

from . import environments
from .aegis import Aegis
from .warm import WARM

# A word problem, one with choices, a function with unit tests; each gets several plans.
TASKS = ("pencils", "choice-tram", "code-primes")
# The framework whose cold start costs least.
COLD_TOO = "autogen_roundrobin"


def test(folder, aegis, cache, report):
    """Run the folder's campaign, and check that what it says of itself agrees."""
    expected = tomllib.loads((folder / "expect.toml").read_text())
    interpreter = environments.python(expected["environment"], cache)
    report.heading(f"{folder.name}: campaign")
    # What the warm process has as the campaign's `environment` has it, and what keeps numpy from starting threads.
    early = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    path = f"{interpreter.parent}:{aegis.environment['PATH']}"
    inside = Aegis(aegis.binary, aegis.scratch, aegis.environment | early | {"PATH": path})
    start = [] if expected["environment"] == "none" else [interpreter, WARM, "main.py", "--"]
    out, done = campaign(inside, folder, start)
    name = f"{folder.name}/campaign"
    last = done.stderr.strip().splitlines()[-1:]
    talk = done.stderr[-2500:]
    if not report.check(f"{name}: it comes to its end", done.code == 0 and last and last[0].startswith("RESULT"), talk):
        return
    said = json.loads((out / "report.json").read_text())
    funnel = said["funnel"]
    print(f"   {json.dumps(funnel)} {json.dumps(said['classes'])}")
    report.equal(f"{name}: every task goes on", said["clean"]["kept"], len(TASKS))
    report.equal(f"{name}: every clean run passes", said["clean"]["passed"], said["clean"]["runs"])
    report.equal(f"{name}: each injected run is in one class", sum(said["classes"].values()), funnel["attempts"])
    report.check(f"{name}: something is delivered", funnel["delivered"] > 0, talk)
    report.check(f"{name}: a failure is proven", funnel["verified"] > 0, talk)
    report.equal(f"{name}: no run leaves its prefix", said["classes"].get("diverged", 0), 0)
    rows = [json.loads(line) for line in (out / "dataset.jsonl").read_text().splitlines()]
    failures = [row for row in rows if row["kind"] == "failure"]
    proven = funnel["verified"]
    # Two plans may make the same run of a program: it is one row.
    agree = len(failures) <= proven and bool(failures) == bool(proven)
    report.check(f"{name}: what is proven is data", agree, f"{len(failures)} of {proven}")
    if folder.name == COLD_TOO:
        cold, _ = campaign(inside, folder, [])
        for file in ("dataset.jsonl", "benign.jsonl"):
            same = (cold / file).read_bytes() == (out / file).read_bytes()
            report.check(f"{name}: {file} is the same from a cold start", same, f"{cold} and {out}")
    linted = inside.call("lint", out)
    report.check(f"{name}: lint finds nothing", linted.code == 0, linted.stdout[-1500:])
    for row in failures:
        agents = {step["agent"] for step in row["steps"]}
        strange = [error["agent"] for error in row["label"]["errors"] if error["agent"] not in agents]
        report.equal(f"{name}: the label's agents speak in {row['id']}", strange, [])


def campaign(aegis, folder, start):
    """Run the reduced form below the command `start`; gives where it went, and what was said."""
    out = aegis.logs(f"{folder.name}-campaign") / "out"
    only = [argument for task in TASKS for argument in ("--only", task)]
    arguments = [folder / "campaign.toml", "--out", out, "--manipulator-upstream", "simulator"]
    arguments += ["--manipulator-model", "simulator", *only]
    return out, aegis.call("campaign", *arguments, folder=folder, seconds=1500, below=start)
