"""Exported datasets in the hands of the tools that they are for: one program, in one environment."""

import json
import subprocess

from . import environments

NAME = "formats"


def test(root, aegis, cache, report):
    """Run the checks of every format."""
    report.heading(NAME)
    program = root / "formats" / "check.py"
    command = [str(environments.python("formats", cache)), str(program), aegis.binary, str(aegis.logs(NAME))]
    done = subprocess.run(command, env=aegis.environment, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        lines.append({"check": "the program ends", "ok": False, "why": f"{done.returncode}\n{done.stderr[-3000:]}"})
    for line in lines:
        report.check(f"{NAME}: {line['check']}", line["ok"], line.get("why", ""))
