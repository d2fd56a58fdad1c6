"""Runs a command in which a Python program starts many times, without importing the program's framework each time.

    python3 warm.py [--import MODULE]... PROGRAM.py [PROGRAM.py]... -- COMMAND [ARG]...

What the programs import at their top is imported once, here; nothing of theirs is run. COMMAND gets a `python3` at the
front of its PATH that turns each start of one of the programs into a fork of this process; any other use of it is the
interpreter itself. Neither the programs nor the command need a change. README.md says what such a run has of a new
process, and what not.
"""

import argparse
import ast
import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What the interpreter itself reads when it starts, long before a module could.
INTERPRETER = ("PYTHON", "LC_", "LANG=", "LANGUAGE=")


class Watched(type(os.environ)):
    """The environment while modules are imported: remembers who first read which variable."""

    readers = {}

    def __getitem__(self, name):
        frame = sys._getframe(1)
        while frame and frame.f_globals.get("__name__") in ("os", "_collections_abc", "collections.abc"):
            frame = frame.f_back
        self.readers.setdefault(name, frame.f_globals.get("__name__") if frame else "?")
        return super().__getitem__(name)


def imports(program):
    """The modules that a program imports at its top."""
    for node in ast.parse(program.read_bytes(), str(program)).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module


def load(modules):
    """Imports modules. A thread that one leaves running would be missing after a fork, and may hold a lock: refused."""
    plain = type(os.environ)
    os.environ.__class__ = Watched
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            # The program's own modules lie beside it: each run imports them anew.
            if error.name != name.partition(".")[0]:
                raise
        running = [thread.name for thread in threading.enumerate()[1:]]
        native = len(os.listdir("/proc/self/task")) - 1 - len(running)
        if running or native:
            hint = "; numpy starts none with OPENBLAS_NUM_THREADS=1" if native and "numpy" in sys.modules else ""
            sys.exit(f"warm: cannot fork: `import {name}` leaves {native} native threads and {running} running{hint}")
    os.environ.__class__ = plain


def unlike(there):
    """Why a run with the environment `there` would not be what a new process is; none if it would."""
    here = dict(os.environ)
    for name in sorted(here.keys() | there.keys()):
        is_its_own = f"{name}=".startswith(INTERPRETER)
        reader = "the interpreter" if is_its_own else Watched.readers.get(name)
        if reader and here.get(name) != there.get(name):
            # Of what a module reads never the value: it may be a key.
            has = f"`{name}={there.get(name)}`" if is_its_own else f"the `{name}` that the run has"
            told = has if name in there else f"no `{name}`, as the run"
            return f"{reader} read `{name}` before the run: start warm.py with {told}"
    return None


class Server:
    """Forks a process for each call, and tells the caller how it ended."""

    def __init__(self, folder):
        self.callers = {}  # pid of a run → the connection of who waits for it
        self.forked = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "socket"))
        self.listener.listen(64)
        self.wake, wakes = socket.socketpair()
        wakes.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes.fileno())
        self.ours = [self.listener, self.wake, wakes]
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.wake, selectors.EVENT_READ)

    def serve(self, command):
        """Serves until the process `command` ends: its exit status. In a forked process: the call that it is for."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    call = self.answer(self.listener.accept()[0])
                    if call:
                        return call
                elif key.fileobj is self.wake:
                    self.wake.recv(4096)
                    status = self.reap(command)
                    if status is not None:
                        return status
                else:  # The caller is gone: so is its run.
                    self.end(key.data)

    def answer(self, caller):
        """Reads a call and forks for it: the call in the new process, none here."""
        caller.settimeout(10)
        try:
            length, descriptors, _, _ = socket.recv_fds(caller, 4, 3)
            with caller.makefile("rb") as text:
                call = json.loads(text.read(int.from_bytes(length, "big")))
        except (OSError, ValueError):
            caller.close()
            return None
        why, pid = unlike(call["environment"]), None
        try:
            pid = None if why else os.fork()
        except OSError as error:
            why = f"cannot fork: {error}"
        if pid == 0:
            for open_here in (caller, *self.callers.values(), *self.ours, self.selector):
                open_here.close()
            return become(call, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        tell(caller, {"refused": why} if why else {"pid": pid})
        if why:
            caller.close()
            return None
        with contextlib.suppress(OSError):  # The new process does the same; who comes second may be refused.
            os.setpgid(pid, pid)
        self.callers[pid] = caller
        self.forked += 1
        self.selector.register(caller, selectors.EVENT_READ, pid)
        return None

    def reap(self, command):
        """Tells the callers of the runs that ended how; the status of `command` if it ended."""
        ended = None
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                if pid == command:
                    ended = os.waitstatus_to_exitcode(status)
                elif pid in self.callers:
                    tell(self.callers[pid], {"status": status})
                    self.end(pid)
        return ended

    def end(self, pid):
        """Ends what is left of a run, its own children included, and lets go of its caller."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        caller = self.callers.pop(pid, None)
        if caller:
            self.selector.unregister(caller)
            caller.close()


def unforked(forked, cold, programs):
    """What is to be said of runs that were not forked, and why they were not; none if all were."""
    options = cold.read_text().split() if cold.exists() else []
    names = " or ".join(path.name for path in programs)
    if options:
        runs = "1 run was" if len(options) == 1 else f"{len(options)} runs were"
        return f"{runs} not forked but started anew: only `python3 {names} …` is forked, and there `python3 {options[0]} …` was typed"
    if not forked:
        return f"no run was forked: the command never started `python3 {names} …` by the `python3` on its PATH"
    return None


def tell(caller, what):
    with contextlib.suppress(OSError):
        caller.sendall(json.dumps(what).encode() + b"\n")


def become(call, descriptors):
    """Makes of this fork what a new process of the caller would be."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout.reconfigure(line_buffering=sys.stdout.line_buffering or os.isatty(1))
    os.chdir(call["directory"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.argv = call["arguments"]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    if "numpy" in sys.modules:  # It does not seed itself anew after a fork; `random` does.
        sys.modules["numpy"].random.seed()
    return call


def run(call):
    """Runs the program as `__main__`; what it raises ends the process as it would end a new one."""
    path = os.path.abspath(call["arguments"][0])
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    exec(compile(Path(path).read_bytes(), path, "exec"), module.__dict__)


def main():
    parser = argparse.ArgumentParser(usage="warm.py [--import MODULE]... PROGRAM.py... -- COMMAND [ARG]...")
    parser.add_argument("--import", action="append", default=[], dest="modules")
    parser.add_argument("programs", nargs="+", type=lambda text: Path(text).resolve(strict=True))
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, command = parser.parse_args(sys.argv[1:cut]), sys.argv[cut + 1 :]
    if not command:
        parser.error("expected `-- COMMAND` after the programs")
    folder, server = Path(tempfile.mkdtemp(prefix="warm-")), os.getpid()
    try:
        end = work(folder, options, command)
    except BaseException:
        if os.getpid() == server:
            shutil.rmtree(folder)
        raise
    if isinstance(end, dict):
        return run(end)
    shutil.rmtree(folder)
    sys.exit(end)


def work(folder, options, command):
    """Imports, starts the command and serves its runs: its exit code. In a forked process: the call that it is for."""
    starter = f"#!{sys.executable} -SE\nSOCKET = {str(folder / 'socket')!r}\n"
    starter += f"PROGRAMS = {[str(path) for path in options.programs]!r}\n" + (HERE / "call.py").read_text()
    for name in ("python", "python3"):
        (folder / name).write_text(starter)
        (folder / name).chmod(0o700)
    os.environ["PATH"] = f"{folder}:{os.environ.get('PATH', os.defpath)}"
    sys.path.pop(0)
    begun = time.monotonic()
    load([*options.modules, *(name for path in options.programs for name in imports(path))])
    print(f"warm: imported {len(sys.modules)} modules in {time.monotonic() - begun:.1f} s", file=sys.stderr)
    gc.freeze()
    server = Server(folder)
    pid = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE])
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(pid, number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A terminal sends it to the command as well.
    ended = server.serve(pid)
    if isinstance(ended, dict):
        return ended
    for run_left in list(server.callers):
        server.end(run_left)
    if told := unforked(server.forked, folder / "socket.cold", options.programs):
        print(f"warm: {told}", file=sys.stderr)
    return 128 - ended if ended < 0 else ended


if __name__ == "__main__":
    main()
