"""Makes the environments that the clients run in, once per change of their pinned versions.

One virtual environment per requirements file, one folder of node modules; all under one cache directory.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


class InstallError(Exception):
    """An environment could not be made; says which and what the installer said."""


@contextmanager
def alone(cache, name):
    """No other process makes what is called so at the same time."""
    locks = cache / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / name, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def python(name, cache):
    """The interpreter of the environment `requirements/<name>.txt`, made if it is missing or out of date."""
    with alone(cache, f"python-{name}"):
        return made(name, cache)


def made(name, cache):
    requirements = HERE / "requirements" / f"{name}.txt"
    folder = cache / "python" / name
    interpreter = folder / "bin" / "python"
    stamp = digest(requirements.read_bytes(), sys.version.encode())
    if stamped(folder, stamp):
        return interpreter
    shutil.rmtree(folder, ignore_errors=True)
    call([sys.executable, "-m", "venv", str(folder)], f"virtual environment `{name}`")
    install = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    # A file may ask for just what it lists, where two of its packages disagree about a third.
    install += ["--no-deps"] if "(--no-deps)" in requirements.read_text() else []
    call([*install, "--requirement", str(requirements)], f"packages of `{name}`")
    write_stamp(folder, stamp)
    return interpreter


def node(cache, source="sdk_node"):
    """The folder that holds the node programs beside their modules, made if it is missing or out of date."""
    with alone(cache, f"node-{source}".replace("/", "-")):
        return modules(cache, HERE / source)


def modules(cache, source):
    folder = cache / "node" if source.name == "sdk_node" else cache / source.relative_to(HERE)
    locked = [source / "package.json", source / "package-lock.json", source / ".npmrc"]
    version = call(["node", "--version"], "node").encode()
    stamp = digest(*(path.read_bytes() for path in locked), version)
    if not stamped(folder, stamp):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in locked:
            shutil.copy(path, folder)
        call(["npm", "ci", "--ignore-scripts", "--loglevel=error"], "node modules", folder)
        write_stamp(folder, stamp)
    for program in source.glob("*.mjs"):
        copied(program, folder / program.name)
    return folder


def copied(source, copy):
    """A program that is there already is left alone: another suite may just be starting it."""
    if not copy.is_file() or copy.read_bytes() != source.read_bytes():
        shutil.copy(source, copy)


def command(folder, name, cache):
    """The command that starts a folder's program: `main.py` by the interpreter of environment `name`, or `main.mjs`
    beside the modules of folder `name`."""
    program = folder / "main.mjs"
    if not program.is_file():
        return [str(python(name, cache)), "main.py"]
    # Modules are looked up from where the program lies, so a copy of it lies beside them.
    copy = node(cache, name) / f"{folder.name}.mjs"
    copied(program, copy)
    return ["node", str(copy)]


def quiet(cache, name):
    """The environment variables of a suite's clients: no telemetry, no proxy variables, a home of its own, no key."""
    home = cache / "home" / name
    home.mkdir(parents=True, exist_ok=True)
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE") if key in os.environ}
    return kept | {
        "HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_DISABLE_TRACKING": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "CREWAI_STORAGE_DIR": str(home / "crewai"),
        "LANGSMITH_TRACING": "false",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "OTEL_SDK_DISABLED": "true",
        "DO_NOT_TRACK": "1",
        # A table of prices that would be fetched at import.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def digest(*parts):
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(hashlib.sha256(part).digest())
    return hasher.hexdigest()


def stamped(folder, stamp):
    path = folder / ".stamp"
    return path.is_file() and path.read_text() == stamp


def write_stamp(folder, stamp):
    (folder / ".stamp").write_text(stamp)


def call(command, what, folder=None):
    """Run an installer; gives its output back."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(f"{what}: {error}") from error
    if done.returncode:
        raise InstallError(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
