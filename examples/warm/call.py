# What stands behind `python3` below warm.py, which writes SOCKET and PROGRAMS above it. Starts fast: `-SE`, few imports.
import json
import os
import signal
import socket
import sys


def call(path, arguments):
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(path)
        what = {"arguments": arguments, "directory": os.getcwd(), "environment": dict(os.environ)}
        text = json.dumps(what).encode()
        socket.send_fds(wire, [len(text).to_bytes(4, "big")], [0, 1, 2])
        wire.sendall(text)
        told = wire.makefile()
        begun = json.loads(told.readline() or "{}")
        if "pid" not in begun:
            sys.exit(f"warm: refused: {begun.get('refused', 'nobody answers')}")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: os.killpg(begun["pid"], number))
        ended = json.loads(told.readline() or "{}")
    if "status" not in ended:
        os.killpg(begun["pid"], signal.SIGKILL)
        sys.exit("warm: lost the run: warm.py has ended")
    code = os.waitstatus_to_exitcode(ended["status"])
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if len(sys.argv) > 1 and os.path.realpath(sys.argv[1]) in PROGRAMS:
    call(SOCKET, sys.argv[1:])
if any(os.path.realpath(word) in PROGRAMS for word in sys.argv[2:]) and sys.argv[1].startswith("-"):
    # Started, and not forked: `warm.py` says so in the end.
    with open(SOCKET + ".cold", "a") as cold:
        cold.write(sys.argv[1] + "\n")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
