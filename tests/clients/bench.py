"""The papers' table on a real small model, from nothing. Started by `scripts/slow/aegis-bench`.

    bench.py --binary PATH --cache DIR [--out DIR] [--small] [--budget CALLS] [--who-when DIR] [--port N]

Two programs of two frameworks, neither of them changed, times two task sets; each pair is a campaign. Its failures are given to methods
and tracers, whose answers are scored in one table. The same commands are in docs/tutorials/author.md.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from runner import environments, model, real_model
from runner.aegis import Aegis
from runner.report import Report

HERE = Path(__file__).resolve().parent / "bench"
# Programs of the suite `real-model`, and their frameworks.
SYSTEMS = {"pipeline": "LangGraph", "debate": "OpenAI Agents"}
# Agents whose words the final answer rests on: of a debate's others, most are outvoted.
AGENTS = {"pipeline": ["solver", "writer"], "debate": ["Carl", "aggregator"]}
# Task sets in their published formats, a few rows of our own each, chosen by what the model can do; and what is planted: an answer that
# names no choice is no answer to the checker, so choices are altered, not left out.
BENCHMARKS = {
    "gsm-hard": ["mast/fm-1.1-response-rule", "mast/fm-2.4-response-rule", "mast/fm-3.1-response-rule"],
    "mmlu": ["another-choice", "wrong-name", "other-task"],
}
# The address is part of a run's name: to be resumed, a campaign has to find its model where it was.
PORT = 8179
# Tokens of an answer at most, and of a log as it is shown: more of either makes no small model a judge, and takes its time.
ANSWER, CONTEXT = 64, 3500
# Tasks of a benchmark, plans of a task, and pairs of runs for a claim where small changes alone turn the outcome.
WHOLE, SMALL = (8, 6, 40), (2, 2, 12)
# Failures of a data set that are asked about in small.
FEW = 2
TRACERS = ("aegis", "whowhen")
METHODS = "rules,all-at-once"
# Rows of a program that none of the campaigns runs: a column that stands for other systems.
FOREIGN = Path(__file__).resolve().parents[2] / "examples" / "data" / "real-model" / "handover"
CAMPAIGN = """\
format = 1
name = "{name}"
seed = 7
upstream = "{url}"
tasks = {{ file = "{benchmark}-tasks.jsonl", first = {tasks} }}
verify = {{ answer = '(?m)^FINAL: (.*)', checks = [{{ normalised = {{}} }}] }} # each task brings its set's own checker
clean.repeats = 2
proof = {{ repeatable = true, pairs = {pairs} }} # at temperature 0, one slot, no kept prompts; checked

[[system]]
name = "{system}"
command = ["python3", "main.py", "{{question}}", "0"]
directory = "{program}"
config = "{program}/aegis.toml"
environment = {{ PYTHONHASHSEED = "0" }}
timeout_s = 900
max_calls = 20

[sample]
templates = [{templates}]
agents = {agents}
positions = ["first", "uniform"]
targets = [1]
per_task = {plans}
"""


def main():
    # Ended by a signal, the model and the campaign under way are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    aegis = Aegis(options.binary, options.out, environments.quiet(options.cache, "bench"))
    bench = Bench(aegis, options, Report())
    with model.served(options.cache, "--port", options.port) as url:
        for benchmark in BENCHMARKS:
            bench.imported(benchmark)
        sets = [bench.campaign(url, system, benchmark) for system in SYSTEMS for benchmark in BENCHMARKS]
        asked = [bench.gold(name) for name in [*filter(None, sets), *bench.others()]]
        for file in asked:
            bench.attributed(url, file)
    bench.told(asked)
    return bench.report.finish()


class Bench:
    """The commands, each with its time; all of them run in `--out`."""

    def __init__(self, aegis, options, report):
        self.aegis, self.options, self.report = aegis, options, report
        self.rows, self.times, self.calls = [], {}, 0
        self.tasks, self.plans, self.pairs = SMALL if options.small else WHOLE

    def call(self, stage, *arguments, good=(0,), aegis=None, **more):
        began = time.monotonic()
        done = (aegis or self.aegis).call(*arguments, folder=self.options.out, seconds=12 * 3600, **more)
        self.times[stage] = self.times.get(stage, 0) + time.monotonic() - began
        said = f"{done.code}: {done.stdout[-1500:]}{done.stderr[-2500:]}"
        self.report.check(f"aegis {' '.join(map(str, arguments[:2]))}", done.code in good, said)
        return done

    def left(self):
        """The option that bounds what is still to be asked, where a bound is given."""
        bound = self.options.budget
        return [] if bound is None else ["--budget", f"calls={max(0, bound - self.calls)}"]

    def imported(self, benchmark):
        rows = HERE / f"{benchmark}.jsonl"
        self.call("import", "tasks", "import", "--from", benchmark, rows, "--out", f"{benchmark}-tasks.jsonl", "--overwrite")

    def campaign(self, url, system, benchmark):
        """A data set of proven failures; gives its name, or nothing where none was proven."""
        name, out = f"{system}-{benchmark}", self.options.out
        self.written(url, name, system, benchmark)
        suite = real_model.Suite(self.aegis, self.options.cache, self.report, url, system)
        # A campaign that was begun goes on; one that its budget ends says so by 4.
        resumed = ["--resume", "--changed"] if (out / name / "cells").is_dir() else []
        command = ["campaign", f"{name}.toml", "--out", name, "--jobs", 1, *resumed, *self.left()]
        warm = [suite.interpreter, real_model.WARM, real_model.ROOT / system / "main.py", "--"]
        began = time.monotonic()
        self.call("campaign", *command, good=(0, 1, 4), below=warm, aegis=suite.aegis)
        said = json.loads((out / name / "report.json").read_text())
        calls = int(said["cost"]["spent"]["calls"])
        self.calls += calls
        row = [name, SYSTEMS[system], f"{said['clean']['kept']}/{said['clean']['tasks']}"]
        row += [said["funnel"][key] for key in ("attempts", "delivered", "flipped", "verified")]
        self.rows.append([*row, calls, f"{time.monotonic() - began:.0f}"])
        if not real_model.failures(out / name):
            return None
        linted = self.call("lint", "lint", name, good=(0, 1))
        print(f"   lint of {name}: {(linted.stderr.strip().splitlines() or [''])[-1]}", flush=True)
        # A set whose planted errors all give themselves away has no row to train on: a finding.
        rows = ("--to", "sft", "--one-file", "--out", f"{name}-sft.jsonl")
        exported = self.call("export", "export", name, *rows, good=(0, 1))
        print(f"   export of {name}: {(exported.stderr.strip().splitlines() or [''])[-1]}", flush=True)
        return name

    def written(self, url, name, system, benchmark):
        """Write a campaign's file."""
        plans = real_model.ROOT.parents[2] / "plans"
        templates = [(plans if "/" in plan else HERE) / f"{plan}.toml" for plan in BENCHMARKS[benchmark]]
        words = {"name": name, "system": system, "benchmark": benchmark, "url": url, "program": real_model.ROOT / system}
        words |= {"plans": self.plans, "tasks": self.tasks, "pairs": self.pairs, "agents": json.dumps(AGENTS[system])}
        words["templates"] = ", ".join(f'"{path}"' for path in templates)
        (self.options.out / f"{name}.toml").write_text(CAMPAIGN.format(**words))

    def others(self):
        """Data sets that no campaign here made: columns out of the distribution."""
        names = ["other-system"]
        link = self.options.out / "other-system"
        if not link.exists():
            link.symlink_to(FOREIGN)
        if self.options.who_when:
            self.call("import", "import", "--from", "whowhen", self.options.who_when, "--out", "whowhen", "--overwrite")
            names.append("whowhen")
        return names

    def gold(self, name):
        """What is asked about and scored: the data set, or, in small, its first failures alone."""
        rows = (self.options.out / name / "dataset.jsonl").read_text().splitlines()
        if self.options.small:
            rows = [row for row in rows if json.loads(row)["kind"] == "failure"][:FEW]
        (self.options.out / f"{name}.jsonl").write_text("\n".join([*rows, ""]))
        return f"{name}.jsonl"

    def merged(self, name, files):
        """One file of several, under a name of its own."""
        there = [self.options.out / file for file in files if (self.options.out / file).is_file()]
        (self.options.out / f"{name}.jsonl").write_text("".join(file.read_text() for file in there))
        return f"{name}.jsonl"

    def attributed(self, url, gold):
        asked = [word for tracer in TRACERS for word in ("--tracer", tracer)]
        name = gold.removesuffix(".jsonl")
        file = f"{name}-said.jsonl"
        command = ["attribute", gold, "--method", METHODS, *asked, "--upstream", url, "--model", model.NAME, "--jobs", 1, "--context", CONTEXT]
        command += ["--parameter", f"max_completion_tokens={ANSWER}", "--timeout", 600, "--cassette", f"{name}-tape"]
        command += ["--out", file, "--overwrite", *self.left()]
        self.call("attribute", *command, good=(0, 1, 4))
        if (self.options.out / file).is_file():
            self.calls += sum(json.loads(line)["calls"] for line in (self.options.out / file).read_text().splitlines())

    def told(self, asked):
        """Print what was made and what it took, and the table in both forms."""
        print("\nA model of 135 million parameters spoke, judged and traced: the figures say that the commands work, nothing of any method.\n")
        print("| data set | framework | tasks done clean | planned | delivered | flipped | verified | calls | seconds |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
        for row in self.rows:
            print("| " + " | ".join(map(str, row)) + " |")
        planned, verified = (sum(row[place] for row in self.rows) for place in (3, 6))
        print(f"\nyield: {verified} verified rows of {planned} planned; model calls, questions to methods and tracers among them: {self.calls}")
        print("seconds: " + ", ".join(f"{stage} {spent:.0f}" for stage, spent in self.times.items()) + "\n")
        # A task set is a column, of both systems; what came from no campaign here, one of its own. Answers in one file: a method has one row.
        made = {benchmark: [file for file in asked if file.endswith(f"-{benchmark}.jsonl")] for benchmark in BENCHMARKS}
        columns = [self.merged(benchmark, files) for benchmark, files in made.items() if files]
        columns += [file for file in asked if not any(file in files for files in made.values())]
        said = self.merged("said", [file.replace(".jsonl", "-said.jsonl") for file in asked])
        self.answered(said)
        golds = [word for file in columns for word in ("--gold", file)]
        for form, file in (("markdown", "table.md"), ("latex", "table.tex")):
            done = self.call("score", "score", said, *golds, "--table", form)
            (self.options.out / file).write_text(done.stdout)
            print(done.stdout, flush=True)

    def answered(self, said):
        """Print how often each could be read at all: what could not counts as wrong in the table."""
        counts = {}
        for row in map(json.loads, (self.options.out / said).read_text().splitlines()):
            counts.setdefault(row["method"], []).append(bool(row["predictions"]))
        print("answers that name somebody: " + ", ".join(f"{name} {sum(one)} of {len(one)}" for name, one in counts.items()) + "\n")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--cache", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--out", type=lambda text: Path(text).resolve(), default=Path("target/bench").resolve())
    parser.add_argument("--small", action="store_true", help="two tasks of a benchmark, two plans of a task: minutes")
    parser.add_argument("--budget", type=int, help="model calls, of all campaigns and questions together, at most")
    parser.add_argument("--who-when", type=lambda text: Path(text).resolve(), help="Who&When's files, as a column of the table")
    parser.add_argument("--port", type=int, default=PORT, help="another for a second one beside the first")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
