"""A batch of completions and true answers in, rewards out: one call of `aegis score --reward` a batch."""

import json
import os
import subprocess
import tempfile
from pathlib import Path


def rewards(completions, truths, kind="aegis"):
    """The reward of each completion. `truths` are answer JSON texts: `{"faulty_agents": [{"agent_name", …}, …]}`."""
    with tempfile.TemporaryDirectory() as folder:
        gold, said = Path(folder, "gold.jsonl"), Path(folder, "said.jsonl")
        gold.write_text("".join(json.dumps(sample(str(n), truth)) + "\n" for n, truth in enumerate(truths)))
        rows = ({"id": str(n), "completion": text} for n, text in enumerate(completions))
        said.write_text("".join(json.dumps(row) + "\n" for row in rows))
        command = [os.environ.get("AEGIS_BIN", "aegis"), "score", str(said), "--gold", str(gold), "--reward", kind]
        done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return [row["reward"] for row in json.loads(done.stdout)["rewards"]]


def sample(name, truth):
    """A sample of a dataset that holds nothing but a label."""
    culprits = json.loads(truth)["faulty_agents"]
    return {
        "format": 1,
        "id": name,
        "kind": "failure" if culprits else "clean",
        "task": {"id": name, "question": ""},
        "outcome": "unknown",
        "steps": [],
        "label": label(culprits) if culprits else None,
        "clean_twin": None,
    }


def label(culprits):
    """The label of an answer's culprits."""
    errors = [{"agent": culprit["agent_name"]} for culprit in culprits]
    for error, culprit in zip(errors, culprits):
        if "step" in culprit:
            error["step"] = culprit["step"]
        if "error_type" in culprit:
            error["failure_mode"] = {"code": culprit["error_type"], "name": "", "taxonomy": ""}
    return {"status": "verified", "definition": "injected", "errors": errors}
