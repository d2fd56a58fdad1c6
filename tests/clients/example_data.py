"""Makes the example data from campaigns on a real small model. Started by `scripts/slow/example-data`.

    example_data.py --binary PATH --cache DIR [--from DIR]       DIR: campaigns that are there already, one a system
"""

import argparse
import json
import shutil
import sys
from collections import Counter
from pathlib import Path

from full import PORT
from runner import environments, model, real_model
from runner.aegis import Aegis
from runner.report import Report

TARGET = Path(__file__).resolve().parents[2] / "examples" / "data" / "real-model"
TASKS = ("capital-france", "number-42")
FILES = ("dataset.jsonl", "dataset.json", "benign.jsonl")
# What the folder may weigh, in bytes: it is part of the repository.
MOST = 500_000

CARD = """---
license: apache-2.0
language: [en]
---

# Planted errors in three small systems, on a real small model

Runs of three multi-agent programs on SmolLM2-135M-Instruct (four bits a weight, served by llama.cpp on one machine at
temperature 0). Errors were **planted on purpose**, in requests and in replies; each failure was executed again with the same
bytes and without them, each run with neutral changes of its own, and stands here because this error, and not any change, turned
success into failure. Nobody wrote the model's words.

| folder | system | failures | clean runs | benign (in `benign.jsonl`) |
|---|---|--:|--:|--:|
{systems}

Failures by mode (MAST): {modes}. By side: {sides}. Tasks: {tasks}.

`dataset.jsonl` holds failures and clean runs, a run a line, `dataset.json` counts and hashes
([docs/dataset.md](../../../docs/dataset.md)). `aegis lint examples/data/real-model/handover` checks one, `aegis export
examples/data/real-model/handover --to sft --out rows.jsonl` makes training rows of it.

It shows the form. It is too small to train on, its tasks are trivial, its model is weak and often errs by itself, and what it
does with an error says little of large models. Model and text it wrote: Apache-2.0.

Made by `scripts/slow/example-data`, which makes it anew; this page too.
"""


def main():
    options = arguments()
    aegis = Aegis(options.binary, options.cache / "logs-example", environments.quiet(options.cache, "example"))
    report = Report()
    made = {}
    if options.made:
        made = {name: options.made / name for name in real_model.SYSTEMS}
    else:
        with model.served(options.cache, "--port", PORT) as url:
            for name in real_model.SYSTEMS:
                file = real_model.FILES.get(name, "campaign.toml")
                made[name], _ = real_model.Suite(aegis, options.cache, report, url, name).campaign(only=TASKS, file=file)
    shutil.rmtree(TARGET, ignore_errors=True)
    for name, out in made.items():
        (TARGET / name).mkdir(parents=True)
        for file in FILES:
            if (out / file).is_file():
                (TARGET / name / file).write_bytes((out / file).read_bytes())
        linted = aegis.call("lint", TARGET / name)
        report.check(f"{name}: lint finds nothing", linted.code == 0, linted.stdout[-1500:])
    (TARGET / "README.md").write_text(card(made))
    weight = sum(path.stat().st_size for path in TARGET.rglob("*") if path.is_file())
    report.check(f"it weighs {weight} bytes, at most {MOST}", weight <= MOST)
    return report.finish()


def card(made):
    modes, sides, tasks, lines = Counter(), Counter(), set(), []
    for name, out in made.items():
        rows, benign = real_model.rows(out), real_model.rows(out, "benign.jsonl")
        failed = [row for row in rows if row["kind"] == "failure"]
        errors = [error for row in failed for error in row["label"]["errors"]]
        modes.update(error["failure_mode"]["code"] for error in errors)
        sides.update(error["side"] for error in errors)
        tasks |= {row["task"]["id"] for row in rows}
        what = (real_model.ROOT / name / "main.py").read_text().splitlines()[0].strip('"').split(":")[0]
        lines.append(f"| `{name}` | {what} | {len(failed)} | {len(rows) - len(failed)} | {len(benign)} |")
    counted = [", ".join(f"{key} {count}" for key, count in sorted(counts.items())) for counts in (modes, sides)]
    return CARD.format(systems="\n".join(lines), modes=counted[0], sides=counted[1], tasks=", ".join(sorted(tasks)))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--cache", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--from", dest="made", type=lambda text: Path(text).resolve())
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
