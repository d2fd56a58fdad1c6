"""Exported rows in the hands of trainers: TRL takes steps on them, verl reads them.

PyPI has torch for Linux only with its GPU libraries, so the environment is large: of those libraries it holds the ones that
torch is linked against, and no others.
"""

import json
import subprocess

from . import environments

NAME = "training"


def test(root, aegis, cache, report):
    """Run the checks of the trainers."""
    report.heading(NAME)
    program = root / "training" / "train.py"
    command = [str(environments.python(NAME, cache)), str(program), aegis.binary, str(aegis.logs(NAME))]
    environment = aegis.environment | {"AEGIS_BIN": aegis.binary}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
    if done.returncode or not lines:
        lines.append({"check": "the program ends", "ok": False, "why": f"{done.returncode}\n{done.stderr[-3000:]}"})
    for line in lines:
        report.check(f"{NAME}: {line['check']}", line["ok"], line.get("why", ""))
