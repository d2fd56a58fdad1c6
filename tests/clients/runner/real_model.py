"""Whole campaigns on a real small language model: nobody wrote its words.

Three systems (a handover chain on the OpenAI SDK, a pipeline with a critic on LangGraph, a debate on OpenAI Agents) on
tasks that it was measured to be able to do; then the model in the other parts: rewriting, judging, analyzing. At temperature 0
and with one slot it repeats itself, so a campaign of it is reproducible; at 0.7 it does not, and proof must hold.
"""

import json
import math
import re
import resource
import shlex
import subprocess
import time
from pathlib import Path

from . import environments, model
from .aegis import Aegis
from .warm import WARM

NAME = "real-model"
ROOT = Path(__file__).resolve().parent.parent / "real_model"
# A system and the environment that it runs in.
SYSTEMS = {"handover": "openai-new", "pipeline": "langgraph", "debate": "openai-agents"}
# Systems of the literature, a dozen calls a run: in the full form only.
LARGER = {"macnet": "none", "agentverse": "none"}
# So few that all of it takes minutes: of the tasks that a system was measured to do, the first that it does on this processor, for
# one that rounds otherwise gives other words.
ABLE = {"handover": 2, "pipeline": 1, "debate": 1}
# The campaign file of a system, where it is not the one that the full form takes: plans of several errors execute hundreds of runs.
FILES = {"debate": "few.toml"}
TASKS = {
    "handover": ("capital-france", "sum-4-4", "capital-egypt", "word-copper", "number-42"),
    "pipeline": ("capital-egypt", "number-42", "capital-france", "word-copper", "number-17"),
    "debate": ("capital-egypt", "number-42", "capital-spain", "word-copper", "number-17"),
    "rewriting": ("capital-france", "capital-egypt"),
    "placebo": ("capital-france",),
    # None in which any words turn the outcome: what is void there says nothing of the proof.
    "decoys": ("capital-france", "capital-egypt", "word-copper", "number-42"),
}

# The first of the placebo's draws, found by trying: its task passes, and fails after the placebo. A processor that rounds otherwise draws
# otherwise, so its campaign may be begun so often.
SEED = 118
DRAWS = 8
# Where the placebo's model is: the address is part of a run's name, and the order of a proof's pairs is drawn from that.
PORT = 8178
# Seconds that a campaign or a trace may take: far more than they need, so that other work on the machine fails nothing.
PATIENCE = 3600


def test(aegis, cache, report):
    """Run every check; `aegis` is the built binary, `cache` where environments lie."""
    began, before = time.monotonic(), spent()
    with model.served(cache) as url:
        suites = {name: Suite(aegis, cache, report, url, name) for name in SYSTEMS}
        outs = {name: system(suite) for name, suite in suites.items()}
        if outs["debate"]:
            again(suites["debate"], outs["debate"])
        chain = suites["handover"]
        if outs["handover"]:
            replayed(chain, outs["handover"])
            traced(chain, outs["handover"])
            attributed(chain, outs["handover"])
        modes(report, [out for out in outs.values() if out])
        rewritten(Suite(aegis, cache, report, url, "rewriting", program="handover"))
    # Draws that follow from the order of the questions: what is said differs from run to run, and the suite is the same each time.
    with model.served(cache, "--draws", "--seed", SEED, "--port", PORT) as url:
        placebo(Suite(aegis, cache, report, url, "placebo", program="handover"))
    print(f"   {time.monotonic() - began:.0f} s, {spent() - before:.0f} s of them on a processor")


def test_decoys(aegis, cache, report):
    """The decoys, as a suite of their own: they take as long as all the rest."""
    with model.served(cache) as url:
        decoys(Suite(aegis, cache, report, url, "decoys", program="handover"))


def spent():
    """Seconds that ended programs, the model among them, were on a processor: what other work on the machine leaves as it is."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Suite:
    """One campaign on the model: how it is started, and the checks on it."""

    def __init__(self, aegis, cache, report, url, name, program=None):
        self.report, self.url, self.name = report, url, name
        self.tasks = TASKS.get(name, ())
        program = program or name
        self.program = (ROOT.parent if program in LARGER else ROOT) / program
        self.interpreter = environments.python((SYSTEMS | LARGER)[program], cache)
        early = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "DEFER_PYDANTIC_BUILD": "false"}
        path = f"{self.interpreter.parent}:{aegis.environment['PATH']}"
        self.aegis = Aegis(aegis.binary, aegis.scratch, aegis.environment | early | {"PATH": path})
        self.warm = [] if program in LARGER else [self.interpreter, WARM, "main.py", "--"]

    def check(self, what, ok, why=""):
        return self.report.check(f"{NAME}/{self.name}: {what}", ok, why)

    def equal(self, what, seen, wanted):
        return self.report.equal(f"{NAME}/{self.name}: {what}", seen, wanted)

    def campaign(self, *options, out=None, only=None, seconds=PATIENCE, file="campaign.toml"):
        """Run the campaign; gives its directory and report, or nothing where it did not come to its end."""
        out = out or self.aegis.logs(f"real-{self.name}") / "out"
        chosen = [word for task in only or self.tasks for word in ("--only", task)]
        arguments = ["campaign", ROOT / self.name.split("-")[0] / file, "--out", out, "--upstream", self.url]
        began = time.monotonic()
        done = self.aegis.call(
            *arguments, "--jobs", 1, *chosen, *options, folder=self.program, seconds=seconds, below=self.warm
        )
        last = done.stderr.strip().splitlines()[-1:]
        ended = done.code in (0, 1) and last and last[0].startswith("RESULT")
        if not self.check("it comes to its end", ended, done.stderr[-2500:]):
            return None, None
        said = json.loads((out / "report.json").read_text())
        print(f"   {time.monotonic() - began:.0f} s  {json.dumps(said['funnel'])} {json.dumps(said['classes'])}", flush=True)
        return out, said

    def linted(self, out):
        linted = self.aegis.call("lint", out)
        said = linted.stdout[-1500:] + linted.stderr[-500:]
        if verified_decoys(out):
            # A set is refused by what its own decoys say, and a few of them can say it of a sound proof.
            only = linted.code == 1 and "decoys-verified" in said and "1 findings of 1 rules" in said
            return self.check("lint refuses the set for its verified decoys, and finds nothing else", only, said)
        if rows(out):
            return self.check("lint finds nothing", linted.code == 0, said)
        # A set without a sample is no clean set: `aegis lint` says so, and exits with 1.
        return self.check("lint says that there is nothing to check", linted.code == 1 and "no sample" in said, said)

    def command(self, question):
        return [str(self.interpreter), "main.py", question, "0"]


def rows(out, file="dataset.jsonl"):
    path = out / file
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def verified_decoys(out):
    """The decoys that the proof took for errors."""
    return [row for row in rows(out, "decoys.jsonl") if (row["label"] or {}).get("status") == "verified"]


def failures(out):
    return [row for row in rows(out) if row["kind"] == "failure"]


def system(suite):
    """A campaign at temperature 0: something is proven, against neutral changes of the same requests; nothing is lost, and the counts agree."""
    suite.report.heading(f"{NAME}: {suite.name}")
    suite.tasks = able(suite)
    if not suite.check("it can do as many tasks as are asked of it", len(suite.tasks) == ABLE[suite.name], suite.tasks):
        return None
    out, said = suite.campaign(file=FILES.get(suite.name, "campaign.toml"))
    if not out:
        return None
    funnel, classes = said["funnel"], said["classes"]
    lost = [task for task in said["tasks"] if task["left_out"] not in (None, "unsolved")]
    suite.equal("no task is lost but by a wrong answer", lost, [])
    suite.check("most tasks pass clean", 3 * said["clean"]["kept"] > 2 * said["clean"]["tasks"], said["tasks"])
    suite.equal("each injected run is in one class", sum(classes.values()), funnel["attempts"])
    for lost in ("infra_error", "timeout", "crashed", "diverged", "unchecked"):
        suite.equal(f"no run is {lost}", classes.get(lost, 0), 0)
    void = [cell["why"] for cell in said["cells"] if cell["class"] == "void"]
    explained = all(why.startswith(("chaotic: ", "fragile: ")) for why in void)
    suite.check("no run is void but where neutral changes alone turn the outcome", explained, void)
    suite.check("failures are proven", funnel["verified"] >= ABLE[suite.name], said["classes"])
    open_claims = sum(classes.get(name, 0) for name in ("unproven", "flaky_task", "void"))
    suite.equal("every flip is proven, or is said to be open", funnel["verified"] + open_claims, funnel["flipped"])
    suite.equal("benign runs are kept apart", len(rows(out, "benign.jsonl")) > 0, classes.get("benign", 0) > 0)
    # A neutral change makes a small model fail now and then, an error nearly always.
    executed = [cell["executed"] for cell in said["cells"] if cell["class"] == "verified"]
    shares = {arm: share(executed, arm) for arm in ("null", "treated")}
    suite.check("neutral changes fail at most half as often as what is proven", 2 * shares["null"] <= shares["treated"], shares)
    proven = failures(out)
    suite.check("what is proven is data", 0 < len(proven) <= funnel["verified"], f"{len(proven)} of {funnel}")
    counts(suite, out)
    suite.linted(out)
    return out


def share(executed, arm):
    """The share of an arm's executions that fail, over all claims."""
    failed = sum(one[arm]["failed"] for one in executed)
    return failed / max(1, failed + sum(one[arm]["passed"] for one in executed))


def able(suite):
    """The first tasks that the program answers, asked without Aegis."""
    known = {task["id"]: task for task in map(json.loads, (ROOT / "tasks.jsonl").read_text().splitlines())}
    environment = suite.aegis.environment | {"OPENAI_BASE_URL": suite.url, "OPENAI_API_KEY": "none"}
    able = []
    for task in map(known.get, TASKS[suite.name]):
        said = subprocess.run(
            suite.command(task["question"]), cwd=suite.program, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        final = [line for line in said.stdout.splitlines() if line.startswith("FINAL")]
        if final and task["answer"].lower() in re.findall(r"\w+", final[-1].lower()):
            able.append(task["id"])
        if len(able) == ABLE[suite.name]:
            break
    return tuple(able)


def counts(suite, out):
    """A reply that an edit made shorter counts fewer tokens, so that no count tells it from the others."""
    shown, rates = 0, []
    for row in failures(out):
        edited = {error["step"] for error in row["label"]["errors"] if error["side"] == "response"}
        for step in suite.aegis.show(out / "logs" / row["id"])["steps"]:
            usage, text = step["usage"], row["steps"][step["step"]]["output"]["text"]
            if step["step"] in edited and usage and usage["output"] and text:
                shown += 1
                rates.append(len(text) / usage["output"])
    suite.check("an edited reply has the usual rate of characters to a token", all(rate > 1.2 for rate in rates), rates)


def modes(report, outs):
    """Over the systems: several modes, on both sides."""
    errors = [error for out in outs for row in failures(out) for error in row["label"]["errors"]]
    seen = {error["failure_mode"]["code"] for error in errors}
    report.check(f"{NAME}: failures of several modes are proven", len(seen) >= 4, seen)
    report.equal(f"{NAME}: on both sides", {error["side"] for error in errors}, {"request", "response"})
    benign = sum(len(rows(out, "benign.jsonl")) for out in outs)
    report.check(f"{NAME}: some errors do no harm", benign > 0, benign)
    planted = sum(len(rows(out, "decoys.jsonl")) for out in outs)
    taken = sum(len(verified_decoys(out)) for out in outs)
    few = at_least(taken, planted, 0.01) > 0.05
    report.check(f"{NAME}: no more decoys are verified than one in a hundred explains", few, (taken, planted))


def again(suite, first):
    """The same campaign once more writes the same bytes."""
    out, _ = suite.campaign(file=FILES.get(suite.name, "campaign.toml"))
    for file in ("dataset.jsonl", "benign.jsonl"):
        same = out and (first / file).is_file() and (out / file).read_bytes() == (first / file).read_bytes()
        suite.check(f"a second campaign writes the same {file}", same, f"{first} and {out}")


def decoys(suite):
    """Runs into which nothing but neutral changes are planted, through the whole of the proof: not more are verified than it promises."""
    suite.report.heading(f"{NAME}: decoys")
    out, said = suite.campaign(file="handover.toml")
    if not out:
        return
    own = said.get("decoys", {"planted": 0, "verified": 0})
    planted = said["funnel"]["delivered"] + own["planted"]
    verified = said["funnel"]["verified"] + own["verified"]
    # `scripts/slow/real-model` plants more, on more tasks.
    suite.check("sixty are planted at least", planted >= 60, said["funnel"])
    # The promise is one in a hundred. So few decoys cannot show that it is kept; they show where it is not.
    suite.check("no more are verified than one in a hundred explains", at_least(verified, planted, 0.01) > 0.05, (verified, planted))
    suite.check("each that turned an outcome went through the proof", said["funnel"]["flipped"] == sum(
        said["classes"].get(name, 0) for name in ("verified", "unproven", "flaky_task", "void")
    ), said["classes"])
    suite.equal("what is verified is data, and nothing else is", len(failures(out)), said["funnel"]["verified"])
    suite.linted(out)


def at_least(many, of, rate):
    """The chance that so many of so many come at a rate, or more."""
    return 1 - sum(math.comb(of, number) * rate**number * (1 - rate) ** (of - number) for number in range(many))


def replayed(suite, out):
    """A proven failure, offline: the record answers every call, and the second run is the first."""
    row = failures(out)[0]
    record, logs = out / "logs" / row["id"], suite.aegis.logs("real-replay")
    arguments = ["--log-dir", logs, "--run", "again", "--format", "json", "--timeout", 600]
    command = suite.command(row["task"]["question"])
    done = suite.aegis.call("replay", record, *arguments, "--", *command, folder=suite.program, seconds=630)
    if not suite.check("the replay ends well", done.code == 0, f"{done.stdout[-1500:]}\n{done.stderr[-1500:]}"):
        return
    said = json.loads(done.stdout.strip().splitlines()[-1])["report"]
    suite.equal("every step is served", len(said["served"]), len(row["steps"]))
    suite.equal("nothing is missed or left over", (said["missed"], said["unused"]), ([], []))
    compared = suite.aegis.call("diff", record, logs / "again", folder=suite.program)
    suite.equal("the replay does not differ from its record", compared.code, 0)


def traced(suite, out):
    """A trace finds the planted error by its twin and by a file of corrections; the model itself is asked as analyzer."""
    planted = [row for row in failures(out) if len(row["label"]["errors"]) == 1]
    planted = [row for row in planted if row["label"]["errors"][0]["side"] == "response"]
    if not suite.check("a reply's error is proven, to be traced", planted, out):
        return
    row = planted[0]
    step = row["label"]["errors"][0]["step"]
    twin = next(other for other in rows(out) if other["id"] == row["clean_twin"])
    file = suite.aegis.logs("real-corrections") / "corrections.jsonl"
    right = {"step": step, "reply": twin["steps"][step]["output"]["text"], "reason": "as the clean run says it"}
    file.write_text(json.dumps(right) + "\n")
    for how in (["--twin", out / "logs" / twin["id"], "--first"], ["--corrections", file, "--first"]):
        found = trace(suite, out, row, how)
        # A twin's reply heals the run at later steps too: the earliest is the planted one, and all that is asked for.
        flips = [flip["step"] for flip in found["flips"]] if found else []
        suite.equal(f"the trace by {how[0]} finds the planted step", flips[:1], [step])
    asked = ["--analyzer", suite.url, "--analyzer-model", model.NAME, "--budget", "calls=24"]
    found = trace(suite, out, row, asked)
    if found:
        blamed = [one for one in found["steps"] if one.get("left_out") or one.get("correction") or one.get("arms")]
        suite.check("the analyzer is asked about every step, and its cost is told", found["spent"]["calls"] > 0, found)
        unread = [one for one in blamed if "does not fit the schema" in json.dumps(one)]
        suite.equal("the analyzer's answers fit the schema", unread, [])


def attributed(suite, out):
    """The model as a tracer, in the words of two papers, and its row in their table. What it says is worth nothing: it is small."""
    row = failures(out)[0]
    folder = suite.aegis.logs("real-tracer")
    (folder / "one.jsonl").write_text(json.dumps(row) + "\n")
    asked = ["--tracer", "aegis", "--tracer", "whowhen", "--method", "rules", "--upstream", suite.url, "--model", model.NAME]
    arguments = ["one.jsonl", *asked, "--out", "said.jsonl", "--log-dir", "logs", "--timeout", 600]
    done = suite.aegis.call("attribute", *arguments, folder=folder, seconds=PATIENCE)
    if not suite.check("the model is asked as a tracer", done.code in (0, 1), f"{done.code}\n{done.stdout[-800:]}\n{done.stderr[-1500:]}"):
        return
    said = [json.loads(line) for line in (folder / "said.jsonl").read_text().splitlines()]
    served = {one["method"]: one.get("served_model") for one in said}
    suite.check("each in its own words, by the model", served.get("aegis") and served.get("whowhen"), said)
    done = suite.aegis.call("score", "said.jsonl", "--gold", "one.jsonl", "--table", "markdown", folder=folder)
    lines = [line.split(" | ")[0].strip("| ") for line in done.stdout.splitlines()]
    rows_there = {"aegis", "whowhen", "rules", "random speaker, random step, random mode"} <= set(lines)
    suite.check("the papers' table has them and the random row", done.code == 0 and rows_there, done.stdout + done.stderr)


def trace(suite, out, row, how):
    answer = row["task"]["answer"]
    check = f"grep -qiw {shlex.quote(answer)}"
    logs = suite.aegis.logs("real-trace")
    arguments = ["trace", out / "logs" / row["id"], *how, "--check", f"grep ^FINAL | {check}", "--upstream", suite.url]
    arguments += ["--log-dir", logs, "--format", "json", "--timeout", 600, "--config", suite.program / "aegis.toml"]
    command = suite.command(row["task"]["question"])
    done = suite.aegis.call(*arguments, "--", *command, folder=suite.program, seconds=PATIENCE)
    try:
        return json.loads(done.stdout)
    except ValueError:
        suite.check(f"the trace by {how[0]} ends", False, f"{done.code}\n{done.stdout[-800:]}\n{done.stderr[-1500:]}")
        return None


def rewritten(suite):
    """The model rewrites and judges: each answer is used or refused, all of it is counted and told."""
    suite.report.heading(f"{NAME}: rewriting and judging")
    asking = ["--manipulator-upstream", suite.url, "--manipulator-model", model.NAME]
    out, said = suite.campaign(*asking)
    if not out:
        return
    rewriting = said["rewriting"]
    print(f"   {json.dumps(rewriting)}")
    suite.check("the model is asked for edits", rewriting["asked"] >= 2, rewriting)
    parts = sum(rewriting[part] for part in ("used", "declined", "refused", "unanswered"))
    suite.equal("each answer is used, declined, refused or missing", parts, rewriting["asked"])
    suite.equal("every question is answered", rewriting["unanswered"], 0)
    suite.check("the cost is told", said["cost"]["spent"]["money"] > 0, said["cost"])
    edits = [change for row in rows(out) + rows(out, "benign.jsonl") if row["label"] for change in row["label"]["changes"]]
    leaked = [part for change in edits for part in PARTS_OF_A_QUESTION if any(part in after["text"].lower() for after in change["after"])]
    suite.equal("no edit holds a part of its question", leaked, [])
    judged = [json.loads(line) for line in (out / "judge.jsonl").read_text().splitlines()]
    verdicts = [read(line["reply"]) for line in judged]
    suite.check("the judge is asked", verdicts, out)
    # What the judge can say is the small model's affair; that an answer ran into its limit must be said.
    cut_off = sum(json.loads(line["reply"])["choices"][0]["finish_reason"] == "length" for line in judged)
    verdicts = [said for said in verdicts if not said.get("cut_off")]
    wrong = [said for said in verdicts if said.get("verdict") not in ("correct", "incorrect", "cannot_tell") or not said.get("reason")]
    suite.equal("the judge's answers are verdicts with a reason", wrong, [])
    unchecked = [cell["evidence"] for cell in said["cells"] if cell["class"] == "unchecked"]
    unsaid = [evidence for evidence in unchecked if not evidence.startswith("model_judge: the judge cannot tell")]
    ran_on = [evidence for evidence in unsaid if "its answer was cut off" in evidence]
    suite.check("an answer is called cut off only where one was", cut_off or not ran_on, unsaid)
    suite.equal("no run is unchecked but where the judge says that it cannot tell, or runs on", sorted(unsaid), sorted(ran_on))
    suite.linted(out)


# Fences and headings of what a rewriting model is asked: an edit that holds one of them is refused.
PARTS_OF_A_QUESTION = ("===", "## ", "what the agent was told", "what the agent answered", "what the agent is about to be asked")


def read(reply):
    answer = json.loads(reply)["choices"][0]
    try:
        return json.loads(answer["message"]["content"])
    except ValueError:
        return {"unread": reply, "cut_off": answer["finish_reason"] == "length"}


def placebo(suite):
    """At temperature 0.7: a full stop that moved is never labelled, though runs fail after it."""
    suite.report.heading(f"{NAME}: a placebo at temperature 0.7")
    # A task passes half of the time: drawn anew until one has passed, and failed after the placebo.
    for _ in range(DRAWS):
        out, said = suite.campaign()
        if not out:
            return
        harmless = ("benign", "manipulator_failed")
        failed = [cell for cell in said["cells"] if cell["plan"] == "moved-stop" and cell["class"] not in harmless]
        if failed:
            break
    suite.check("a run fails after the placebo, so that there is something to mistake", failed, said["classes"])
    labels = [cell for cell in said["cells"] if cell["plan"] == "moved-stop" and cell["class"] == "verified"]
    suite.equal("no placebo is verified", labels, [])
    shown = [row["id"] for row in failures(out) if row["label"]["errors"][0]["failure_mode"]["code"] == "FM-1.1" and row["label"]["errors"][0]["side"] == "response"]
    suite.equal("no placebo is data", shown, [])
    told = [name for name in ("verified", "benign", "flaky_task", "unproven", "void") if said["classes"].get(name)]
    suite.check("its runs are counted", told, said["classes"])
    suite.linted(out)
