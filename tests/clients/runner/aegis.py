"""The built binary as the tests use it: `run`, `serve`, `agents`, `show`; and a run's files."""

import json
import os
import select
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Done:
    """What a command left: exit code, both outputs, and the run's directory if one was made."""

    code: int
    stdout: str
    stderr: str
    directory: Path | None = None

    def file(self, name):
        """One JSON file of the run; `None` when there is none."""
        path = self.directory / name if self.directory else None
        return json.loads(path.read_text()) if path and path.is_file() else None


def end(process):
    """End what a command started too: without `below` above it the binary would go on alone."""
    for how, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, how)
            process.communicate(timeout=patience)
            return


class Aegis:
    """A binary, and the folder that its recordings go to."""

    def __init__(self, binary, scratch, environment):
        self.binary = str(binary)
        self.scratch = scratch
        self.environment = environment
        scratch.mkdir(parents=True, exist_ok=True)

    def call(self, *arguments, folder=None, seconds=60, below=()):
        process = subprocess.Popen(
            [*map(str, below), self.binary, *map(str, arguments)],
            cwd=folder or self.scratch,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except BaseException:
            end(process)
            raise
        return Done(process.returncode, stdout, stderr)

    def run(self, command, folder, *, plan=None, check=None, name="run", seconds=120):
        """`aegis run` in the program's own folder, so that its `aegis.toml` is found there."""
        logs = self.logs(name)
        arguments = ["run", "--upstream", "simulator", "--simulator-seed", 7, "--log-dir", logs, "--timeout", seconds]
        arguments += ["--plan", plan] if plan else []
        arguments += ["--check", check] if check else []
        done = self.call(*arguments, "--", *command, folder=folder, seconds=seconds + 30)
        made = run_directories(logs)
        done.directory = made[0] if len(made) == 1 else None
        return done

    @contextmanager
    def serve(self, *, upstream="simulator", plan=None, name="serve", more=()):
        """`aegis serve` on a free port; gives its address and log directory, ends it by SIGTERM, and then its runs."""
        logs = self.logs(name)
        arguments = ["serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--log-dir", str(logs)]
        arguments += ["--plan", str(plan)] if plan else []
        arguments += more
        log = open(logs.parent / f"{logs.name}.stderr", "w+")
        process = subprocess.Popen(
            [self.binary, *arguments],
            cwd=self.scratch,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield f"http://{listening(process, log)}", logs
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            log.close()
            # A server leaves its runs open, for programs that go on with them.
            left = [path.parent for path in logs.glob("*/run.json") if not (path.parent / "seal.json").exists()]
            if left:
                self.call("runs", "end", *left)

    def agents(self, directory):
        """`aegis agents RUN --format json`, read."""
        return self.read("agents", directory, "--format", "json")

    def show(self, directory, *options):
        """`aegis show RUN --format json`, read."""
        return self.read("show", directory, *options, "--format", "json")

    def read(self, *arguments):
        done = self.call(*arguments)
        if done.code:
            raise RuntimeError(f"`aegis {' '.join(map(str, arguments))}`: exit code {done.code}\n{done.stderr}")
        return json.loads(done.stdout)

    def logs(self, name):
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.scratch))


def listening(process, log, seconds=20):
    """The address that a new proxy prints, as a JSON line."""
    readable, _, _ = select.select([process.stdout], [], [], seconds)
    line = process.stdout.readline() if readable else ""
    if not line:
        log.seek(0)
        raise RuntimeError(f"`aegis serve` told no address within {seconds} s: {log.read()}")
    return json.loads(line)["listen"]


def run_directories(logs):
    return sorted(path.parent for path in logs.glob("*/run.json"))
