"""The program `aegis` as a child process: started, listened to, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import weakref
from typing import Optional, Sequence

from .errors import AegisError

# Seconds that the program may take to begin, and to seal a run: a long one is compressed first.
BEGUN_WITHIN, SEALED_WITHIN = 60, 60


class Child:
    """A started `aegis`. What it writes to standard error is kept for messages."""

    def __init__(self, command: Sequence[str], *, stdin: bool = False) -> None:
        """Raises `AegisError` where it cannot be started."""
        self._talk = tempfile.TemporaryFile("w+")
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._talk,
                text=True,
                # Ctrl-C is for the program that started it, which then ends the run in order.
                start_new_session=True,
            )
        except OSError as error:
            raise AegisError(f"cannot start `{command[0]}`: {error}") from error
        # A program that ends without ending the run does not leave it behind.
        self._left = weakref.finalize(self, _end, self.process, os.getpid())

    def first_line(self, within: float = BEGUN_WITHIN) -> str:
        """The first line that it prints; empty where it ended, or said nothing for so many seconds, and was ended then."""
        said: list[str] = []
        assert self.process.stdout is not None
        listening = threading.Thread(target=lambda: said.append(self.process.stdout.readline()), daemon=True)  # type: ignore[union-attr]
        listening.start()
        listening.join(within)
        if not said:
            self.process.kill()
            listening.join()
        if not said or not said[0]:
            self.process.wait()
            return ""
        return said[0]

    def finish(self, told: Optional[str] = None, stop: bool = False) -> int:
        """Wait until it has sealed its run: `told` goes to its standard input, `stop` asks it to end. Gives its exit code.

        Raises `AegisError` where it takes too long; it is killed then.
        """
        if stop and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(told, timeout=SEALED_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise AegisError(f"the run was not sealed within {SEALED_WITHIN} s:\n{self.talk()}") from None
        finally:
            self._left.detach()
        return self.process.returncode

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.process.poll() is not None

    def talk(self) -> str:
        """What it wrote to standard error."""
        self._talk.seek(0)
        return self._talk.read().strip()


def _end(process: "subprocess.Popen[str]", owner: int) -> None:
    # A fork of the program that started it is none of its owners.
    if os.getpid() == owner and process.poll() is None:
        process.terminate()
        process.wait(SEALED_WITHIN)
