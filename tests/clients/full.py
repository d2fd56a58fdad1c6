"""The campaigns on a real small model in full, resumable, and their figures. Started by `scripts/slow/real-model`.

    full.py --binary PATH --cache DIR [--out DIR] [--tasks N] [--port N] [--table] [SYSTEM …]
"""

import argparse
import json
import signal
import sys
from pathlib import Path

from runner import desk, environments, model, real_model
from runner.aegis import Aegis
from runner.report import Report

# Folders of campaigns that plant one thing in each of the systems: nothing but words without meaning, or a wrong last answer.
PLANTED = ("decoys", "errors")
# The address is part of a run's name: to be resumed, a campaign has to find its model where it was.
PORT = 8177
# The first of the tasks, and what of a campaign at temperature 0.7 is enough to see that proof holds.
TASKS = 32
# What the larger systems can do of a look at four, and more of its kinds: a run of theirs is a dozen calls.
LARGER = (
    "capital-egypt", "word-copper", "word-lantern", "word-marble", "word-violin", "number-17", "number-42", "number-58"
)  # fmt: skip
PLACEBO = ("capital-france", "capital-egypt", "capital-japan", "capital-spain", "word-copper", "word-marble", "number-42", "number-93")
COLUMNS = ("clean", "attempts", "delivered", "flipped", "verified", "benign", "contradicted", "calls", "seconds")


def main():
    # Ended by a signal, the model and the campaign under way are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = arguments()
    planted = [f"{folder}-{name}" for folder in PLANTED for name in real_model.SYSTEMS]
    known = [*real_model.SYSTEMS, *real_model.LARGER, "placebo", *planted, "rewriter"]
    names = options.systems or known
    unknown = set(names) - set(known)
    if unknown:
        sys.exit(f"no system is called {sorted(unknown)}: expected {', '.join(known)}")
    options.out.mkdir(parents=True, exist_ok=True)
    aegis = Aegis(options.binary, options.cache / "logs-full", environments.quiet(options.cache, "full"))
    report = Report()
    for name in names if not options.table else ():
        seed = -1 if name == "placebo" else 1
        # The larger ones hand everything on, and a small model that is not stopped talks on.
        answer = ["--answer", 32] if name in real_model.LARGER else ["--answer", 300, "--threads", 2] if name == "rewriter" else []
        with model.served(options.cache, "--port", options.port, "--seed", seed, *answer) as url:
            if name == "rewriter":
                desk.rewritten(real_model.ROOT.parent, aegis, options.cache, report, url, model.NAME, min(options.tasks, 24))
                continue
            program = "handover" if name == "placebo" else name.rsplit("-", 1)[-1]
            run(real_model.Suite(aegis, options.cache, report, url, name, program), options)
    table(options.out)
    return report.finish() if not options.table else 0


def run(suite, options):
    out = options.out / suite.name
    started = ["--resume"] if (out / "cells").is_dir() else []
    chosen = [json.loads(line)["id"] for line in (real_model.ROOT / "tasks.jsonl").read_text().splitlines()]
    only = PLACEBO if suite.name == "placebo" else LARGER if suite.name in real_model.LARGER else spread(chosen, TASKS)
    only = spread(only, min(options.tasks, len(only)))
    file = f"{suite.program.name}.toml" if suite.name.startswith(tuple(PLANTED)) else "campaign.toml"
    suite.campaign(*started, out=out, only=only, seconds=6 * 3600, file=file)


def spread(tasks, many):
    """So many of the tasks, of every kind: the file has each kind in a row."""
    return [tasks[number * len(tasks) // many] for number in range(many)]


def table(out):
    """Print what the reports say; a campaign that is not finished is marked."""
    print("| campaign | " + " | ".join(COLUMNS) + " |")
    print("|---|" + "--:|" * len(COLUMNS))
    for path in sorted(out.glob("*/report.json")):
        said = json.loads(path.read_text())
        funnel, classes, clean = said["funnel"], said["classes"], said["clean"]
        ended = [json.loads(cell.read_text()) for cell in (path.parent / "cells").glob("*.json")]
        row = [
            f"{clean['kept']}/{clean['tasks']}",
            *(funnel[key] for key in ("attempts", "delivered", "flipped", "verified")),
            classes.get("benign", 0),
            classes.get("flaky_task", 0),
            f"{said['cost']['spent']['calls']:.0f}",
            f"{sum(cell['seconds'] for cell in ended):.0f}",
        ]
        mark = "" if said["complete"] else " (not finished)"
        print(f"| {path.parent.name}{mark} | " + " | ".join(map(str, row)) + " |")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--cache", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--out", type=lambda text: Path(text).resolve(), default=Path("target/real-model").resolve())
    parser.add_argument("--tasks", type=int, default=TASKS, help="of each system at most; started with more, it goes on")
    parser.add_argument("--port", type=int, default=PORT, help="another for a second one beside the first")
    parser.add_argument("--table", action="store_true", help="only print the figures of what was run")
    parser.add_argument("systems", nargs="*")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
