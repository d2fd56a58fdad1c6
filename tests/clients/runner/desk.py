"""The suite `desk`: a tool-using team under every failure mode on both sides, and a rater of rules that says which labels cannot be right.

The team, its scripted upstream and the scripted model that rewrites are in `desk/`. The upstream keeps a log of its own, against which
the labels are held; `desk/rater.py` rates each label by what its failure mode presupposes.
"""

import json
import select
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager

from . import environments
from .aegis import Aegis
from .warm import WARM

NAME = "desk"
# What the SDK imports at its first call, and a fork would import each time.
LATE = ("httpcore2", "truststore", "jiter", "openai.resources.chat")
# Below so many labels the rater's share says nothing.
LABELS = 30


def test(root, aegis, cache, report):
    """Run the campaign, hold its labels against the upstream's log, and let the rater rate them."""
    came = planted(root, aegis, cache, report)
    if not came:
        return
    out, log, said = came
    campaign(report, said)
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    labels(report, out, calls)
    questions = sum(call["part"] == "manipulator" for call in calls)
    report.equal(f"{NAME}: the report counts the questions to the model", said["rewriting"]["asked"], questions)
    rate(root, report, out, log)


def rewritten(root, aegis, cache, report, url, model, tasks):
    """The same with a real model that rewrites: what it makes of the modes is its affair, a label whose mode cannot be there is not."""
    only = [word for number in range(1, tasks + 1) for word in ("--only", f"order-{number:02}")]
    asking = ["--manipulator-upstream", url, "--manipulator-model", model, "--jobs", "1", *only]
    came = planted(root, aegis, cache, report, asking)
    if came:
        out, log, said = came
        print(f"   {json.dumps(said['rewriting'])}")
        rate(root, report, out, log)


def planted(root, aegis, cache, report, rewriter=()):
    """Run the campaign; gives where it lies, the upstream's log and the report, or nothing where it did not end well."""
    folder = root / NAME
    interpreter = environments.python("openai-new", cache)
    early = {"PYTHONHASHSEED": "0", "DEFER_PYDANTIC_BUILD": "false", "PATH": f"{interpreter.parent}:{aegis.environment['PATH']}"}
    inside = Aegis(aegis.binary, aegis.scratch, aegis.environment | early)
    out = inside.logs(NAME) / "out"
    log = out.parent / "backend.jsonl"
    report.heading(f"{NAME}: campaign")
    if rewriter:
        folder = patient(folder, out.parent / "desk")
    imports = [word for module in LATE for word in ("--import", module)]
    with backend(folder, log) as url:
        arguments = [folder / "campaign.toml", "--out", out, "--upstream", f"{url}/v1"]
        arguments += rewriter or ["--manipulator-upstream", f"{url}/manipulator/v1", "--manipulator-model", "scripted"]
        done = inside.call("campaign", *arguments, folder=folder, seconds=3 * 3600, below=[interpreter, WARM, *imports, "main.py", "--"])
    last = done.stderr.strip().splitlines()[-1:]
    ended = done.code == 0 and last and last[0].startswith("RESULT")
    if not report.check(f"{NAME}: it comes to its end", ended, done.stderr[-2500:]):
        return None
    said = json.loads((out / "report.json").read_text())
    print(f"   {json.dumps(said['funnel'])} {json.dumps(said['classes'])} {said['seconds']:.0f} s")
    return out, log, said


def patient(folder, into):
    """A copy of the team that waits for a small model on a busy machine."""
    shutil.copytree(folder, into)
    plans = folder.parents[2] / "plans/mast"
    for name, before, after in (
        ("campaign.toml", "timeout_s = 60", "timeout_s = 1800"),
        ("campaign.toml", "../../../plans/mast", str(plans)),
        ("aegis.toml", "", "\n[manipulator]\ndeadline_s = 240\n"),
    ):
        path = into / name
        text = path.read_text()
        path.write_text(text.replace(before, after) if before else text + after)
    return into


def rate(root, report, out, log):
    """Let the rater rate the labels."""
    folder = root / NAME
    report.heading(f"{NAME}: rater")
    rated = subprocess.run([sys.executable, folder / "rater.py", out, "--log", log], capture_output=True, text=True, timeout=120)
    print(rated.stdout)
    report.check(f"{NAME}: at most 2 % of the labels name a mode that cannot be there", rated.returncode == 0, rated.stderr)


@contextmanager
def backend(folder, log):
    """The scripted upstream; gives its address, ends it."""
    command = [sys.executable, folder / "backend.py", log]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        readable, _, _ = select.select([process.stdout], [], [], 20)
        yield json.loads(process.stdout.readline() if readable else "{}")["url"]
    finally:
        process.kill()
        process.communicate()


def campaign(report, said):
    """What the campaign says of itself: all tasks pass clean, all modes are planted, and nothing is lost."""
    clean, modes = said["clean"], {(one["mode"], one["side"]) for one in said["strata"] if one["planted"]}
    report.equal(f"{NAME}: every clean run passes", (clean["kept"], clean["passed"]), (clean["tasks"], clean["runs"]))
    report.equal(f"{NAME}: every mode is planted on both sides", len(modes), 28)
    report.equal(f"{NAME}: each injected run is in one class", sum(said["classes"].values()), said["funnel"]["attempts"])
    for lost in ("infra_error", "timeout", "crashed", "diverged", "unchecked", "ambiguous_agent"):
        report.equal(f"{NAME}: no run is {lost}", said["classes"].get(lost, 0), 0)


def labels(report, out, calls):
    """Each label against the upstream's own log: it got the altered message, or it said what was altered."""
    asked = {words(message.get("content")) for call in calls if call["part"] == "agent" for message in call["messages"]}
    replied = {words(call["text"]) for call in calls if call["part"] == "agent"}
    rows = [json.loads(line) for line in (out / "dataset.jsonl").read_text().splitlines()]
    failures = [row for row in rows if row["kind"] == "failure"]
    report.check(f"{NAME}: there are labels enough to rate", len(failures) >= LABELS, len(failures))
    agents = Counter(error["agent"] for row in failures for error in row["label"]["errors"])
    report.equal(f"{NAME}: every agent has labels", sorted(agents), ["auditor", "intake", "pricer", "writer"])
    strange = []
    for row in failures:
        for change in row["label"]["changes"]:
            seen, known = (change["after"], asked) if change["side"] == "request" else (change["before"], replied)
            strange += [(row["id"], message) for message in seen if words(message.get("text")) not in known]
    report.equal(f"{NAME}: the upstream's log knows what each label says was altered", strange[:3], [])


def words(text):
    return " ".join((text or "").split())
