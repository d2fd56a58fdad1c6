"""A batch of completions and true answers in, rewards out.

With `AEGIS_REWARD_URL` (of `aegis reward`) each batch is one request; without it, one call of `aegis score --reward`.
"""

import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path


KIND = os.environ.get("AEGIS_REWARD", "step")


def rewards(completions, truths, kind=KIND):
    """The reward of each completion. `truths` are answer JSON texts: `{"faulty_agents": [{"agent_name", …}, …]}`."""
    url = os.environ.get("AEGIS_REWARD_URL")
    return by_request(url, completions, truths, kind) if url else by_command(completions, truths, kind)


def by_request(url, completions, truths, kind):
    """Asks a running `aegis reward`."""
    rows = [{"completion": text, "ground_truth": truth} for text, truth in zip(completions, truths, strict=True)]
    body = json.dumps({"reward": kind, "rows": rows}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["rewards"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{url}: {error.code} {error.read().decode(errors='replace')}") from error


def by_command(completions, truths, kind):
    """Starts `aegis score` for the batch."""
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
