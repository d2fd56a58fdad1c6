"""Warm starts (`examples/warm`): a run forked from a warm process is what a new process is, or is refused."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAME = "warm-start"
WARM = Path(__file__).resolve().parents[3] / "examples" / "warm" / "warm.py"

PROGRAM = """
import atexit, json, os, random, sys, threading
import beside

atexit.register(lambda: print("last words"))
print(json.dumps([sys.argv, os.getcwd(), __name__, __file__, sys.path[0], beside.VALUE, os.getpgid(0) == os.getpid()]))
print(json.dumps(sorted(pair for pair in os.environ.items() if pair[0] != "PATH")))
print(sys.stdin.read(), file=sys.stderr)
beside.VALUE += 1
end = sys.argv[1]
if end == "raise":
    raise ValueError("no")
if end == "kill":
    sys.stdout.flush()
    os.kill(os.getpid(), 9)
if end.isdigit():
    sys.exit(int(end))
threading.Thread(target=print, args=["from a thread"]).start()
"""
WAITS = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "60"])
print(os.getpid(), child.pid, flush=True)
child.wait()
"""


def start(folder, *line, warm="main.py", environment=None, **options):
    """A command, below `warm.py` unless `warm` is none."""
    words = [sys.executable, str(WARM), warm, "--"] if warm else []
    return subprocess.Popen(
        [*words, *line],
        cwd=folder,
        env=os.environ | {"PYTHONHASHSEED": "0"} | (environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test(_root, _aegis, _cache, report):
    """Compare warm and cold, then end and refuse."""
    report.heading("warm start")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        (folder / "main.py").write_text(PROGRAM)
        (folder / "beside.py").write_text("VALUE = 1\n")
        (folder / "waits.py").write_text(WAITS)
        equal(folder, report)
        ended(folder, report)
        refused(folder, report)


def equal(folder, report):
    for end in ("", "0", "7", "raise", "kill"):
        # Twice, so that the second would see what the first left.
        line = ["sh", "-c", f"for i in 1 2; do echo ask | ODD=$(printf '\\377') python3 main.py '{end}' two; echo $?; done"]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        cold, warm = (start(folder, *line, warm=how, environment={"PATH": path}).communicate() for how in ("", "main.py"))
        # The groups differ on purpose: a shell's child shares the shell's.
        seen = warm[0].replace(b"1, true]", b"1, false]")
        report.equal(f"a run that ends by `{end}` says and ends the same", seen, cold[0])
    options = start(folder, "python3", "-c", "import sys; print(sys.argv)", "main.py").communicate()[0]
    report.equal("any other use of python3 is the interpreter", options, b"['-c', 'main.py']\n")
    code = start(folder, "sh", "-c", "exit 9")
    code.communicate()
    report.equal("the command's exit code is handed on", code.returncode, 9)


def ended(folder, report):
    for number in (signal.SIGTERM, signal.SIGKILL):
        script = "import subprocess, sys; p = subprocess.Popen(['python3', 'waits.py'], stdout=1); print(p.pid, flush=True); p.wait()"
        process = start(folder, sys.executable, "-c", script, warm="waits.py")
        pids = {}
        for line in iter(process.stdout.readline, b""):
            words = [int(word) for word in line.split()]
            pids["caller" if len(words) == 1 else "run"] = words
            if len(pids) == 2:
                break
        os.kill(pids["caller"][0], number)
        process.communicate(timeout=30)
        gone = wait_until(lambda: not any(alive(pid) for pid in pids["run"]))
        report.check(f"{number.name} to the caller ends the run and its children", gone, pids)


def refused(folder, report):
    (folder / "reads.py").write_text("import os\nurl = os.environ.get('OPENAI_BASE_URL')\n")
    (folder / "threads.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=[9], daemon=True).start()\n")
    modules = {"PYTHONPATH": str(folder)}
    for module, line, why in [
        ("reads", ["env", "OPENAI_BASE_URL=u", "python3", "main.py", ""], b"before the run: start warm.py with the `OPENAI_BASE_URL` that"),
        ("threads", ["true"], b"`import threads` leaves 0 native threads and ['Thread-1 (sleep)'] running"),
        ("json", ["env", "PYTHONHASHSEED=1", "python3", "main.py", ""], b"start warm.py with `PYTHONHASHSEED=1`"),
    ]:
        (folder / "main.py").write_text(f"import {module}\n")
        process = start(folder, *line, environment=modules)
        said = process.communicate()[1]
        report.check(f"`{module}`: refused, and said why", process.returncode == 1 and why in said, said.decode())


def alive(pid):
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true, seconds=10):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()
