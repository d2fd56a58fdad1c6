"""Stands between a client and a server over standard input and output, and keeps each line that passes.

    tee.py FILE COMMAND …      FILE gets a line of JSON each: the side that said it, and what it said
"""

import json
import os
import subprocess
import sys
import threading
from typing import BinaryIO

FILE, COMMAND = sys.argv[1], sys.argv[2:]
lock = threading.Lock()


def pass_on(side: str, source: BinaryIO, sink: BinaryIO) -> None:
    with source, sink:
        for line in source:
            with lock, open(FILE, "a") as log:
                log.write(json.dumps({"side": side, "line": line.decode()}) + "\n")
            sink.write(line)
            sink.flush()


# Of its own descriptors, so that a reader that waits keeps nobody from ending.
process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
threading.Thread(target=pass_on, args=("client", open(os.dup(0), "rb"), process.stdin), daemon=True).start()
pass_on("server", process.stdout, open(os.dup(1), "wb", 0))
os._exit(process.wait())
