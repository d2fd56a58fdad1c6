"""A real small language model behind llama.cpp's server, as a context: its address inside, gone after it."""

import json
import os
import select
import subprocess
from contextlib import contextmanager
from pathlib import Path

from . import environments

SERVE = Path(__file__).resolve().parent.parent / "real_model" / "serve.py"
NAME = "smollm2-135m-instruct"
# More options for the server, for example `--round-otherwise`: what must hold on another processor is tried here.
MORE = os.environ.get("AEGIS_MODEL_OPTIONS", "").split()


@contextmanager
def served(cache, *options, seconds=120):
    """Start the model; gives the address of its API."""
    command = [str(environments.python("real-model", cache)), str(SERVE), *map(str, options), *MORE]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        readable, _, _ = select.select([process.stdout], [], [], seconds)
        line = process.stdout.readline() if readable else ""
        if not line:
            process.kill()
            raise RuntimeError(f"the model does not answer: {process.communicate()[1][-2000:]}")
        yield json.loads(line)["url"]
    finally:
        process.kill()
        process.communicate()
