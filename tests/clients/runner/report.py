"""One readable line per check, a summary at the end; nothing is ever skipped."""

import sys
import time


class Report:
    """Counts checks and prints them as they come."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.started = time.monotonic()
        self.colour = sys.stdout.isatty()

    def heading(self, text):
        print(f"\n{text}", flush=True)

    def check(self, name, ok, why=""):
        """Record one check; `why` says what was seen where it fails. Gives `ok` back."""
        if ok:
            self.passed += 1
            print(f"  {self.paint('ok', 32)}    {name}", flush=True)
        else:
            self.failed.append(name)
            print(f"  {self.paint('FAIL', 31)}  {name}", flush=True)
            for line in str(why).strip().splitlines():
                print(f"          {line}", flush=True)
        return ok

    def equal(self, name, seen, wanted):
        return self.check(name, seen == wanted, f"saw      {seen!r}\nexpected {wanted!r}")

    def add(self, other):
        """Count another report's checks too."""
        self.passed += other.passed
        self.failed += other.failed

    def seconds(self):
        return time.monotonic() - self.started

    def finish(self):
        """Print the summary; gives the exit code."""
        if self.failed:
            print("\nfailed:")
            for name in self.failed:
                print(f"  {name}")
        print(f"\n{self.passed} passed, {len(self.failed)} failed ({self.seconds():.0f} s)", flush=True)
        return 1 if self.failed or not self.passed else 0

    def paint(self, text, code):
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text
