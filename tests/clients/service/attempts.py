"""Every attempt that the recordings of a log directory hold, a JSON line each, read by the package `aegis`."""

import base64
import json
import sys
from pathlib import Path

import aegis

for manifest in sorted(Path(sys.argv[1]).glob("@*/*/run.json")):
    run = aegis.run(manifest.parent)
    for step in run.steps:
        for attempt in step.attempts:
            bodies = {name: base64.b64encode(getattr(attempt, name)).decode() for name in ("request", "reply")}
            known = {"user": manifest.parent.parent.name[1:], "run": run.name, "step": step.index, "agent": step.agent}
            print(json.dumps(known | bodies | {"cause": attempt.cause, "status": attempt.status, "exact": attempt.exact}))
