"""The recorded attempts of runs as the Python package reads them: one JSON line each, bodies in base64.

    recorded.py RUN_DIR …
"""

import base64
import json
import sys

import aegis


def packed(body: bytes | None) -> str | None:
    return None if body is None else base64.b64encode(body).decode()


for directory in sys.argv[1:]:
    for step in aegis.run(directory).steps:
        for attempt in step.attempts:
            line = {"run": directory, "agent": step.agent, "surface": step.surface, "cause": attempt.cause, "status": attempt.status}
            line |= {"exact": attempt.exact, "request": packed(attempt.request), "reply": packed(attempt.reply)}
            print(json.dumps(line | {"delivered": packed(attempt.delivered)}))
