"""One recorded run around a piece of a program, and its verdict: `aegis run`, whose command waits meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, Iterable, Optional, Union

from . import pointing
from .binary import binary as found_binary
from .child import Child
from .errors import AegisError, AlreadyRecorded
from .run import AnyPath
from .verdict import Verdict

# The command of the run: it says which variables point at the proxy, waits for the program to end, and ends as it did.
WAITS = (
    "import json, os, sys\n"
    "print(json.dumps(dict(os.environ)), flush=True)\n"
    "line = sys.stdin.readline().strip()\n"
    "sys.exit(int(line) if line else 3)\n"
)


class Session:
    """A proxy before a model, the run that it records, and how the program met the plan's faults.

    It is begun at once. As a context manager it points the SDKs' variables at the proxy, and ends the run.
    """

    def __init__(
        self,
        name: str,
        *,
        logs: AnyPath = "logs",
        plan: Optional[AnyPath] = None,
        upstream: Optional[str] = None,
        config: Optional[AnyPath] = None,
        seed: Optional[int] = None,
        overwrite: bool = False,
        allow: Union[str, Iterable[str]] = (),
        allow_inconclusive: bool = False,
        strict: bool = False,
        baseline: Optional[AnyPath] = None,
        binary: Optional[str] = None,
    ) -> None:
        """`name`: the run's. `plan`: a file or a ready-made one's name. `allow`: rules whose findings are no defects. `strict`,
        `allow_inconclusive`: as of `aegis test`. `baseline`: the directory of a recorded run of the same program without a plan,
        which tells how often it asks what. Raises `AegisError`, `AlreadyRecorded`, `BinaryMissing`.
        """
        self.name, self.plan = name, plan
        self.directory = Path(logs) / name
        self._binary = binary or found_binary()
        self._allow = (allow,) if isinstance(allow, str) else tuple(allow)
        self._accepted = {"skipped"} if not strict else set()
        self._accepted |= {"inconclusive"} if allow_inconclusive else set()
        self._pointed = pointing.Pointed()
        self._verdict: Optional[Verdict] = None
        self._code: Optional[int] = None
        command = [self._binary, "run", "--run", name, "--log-dir", str(logs)]
        command += ["--overwrite"] if overwrite else []
        command += ["--plan", str(plan)] if plan else []
        command += ["--baseline", str(baseline)] if baseline else []
        command += ["--upstream", upstream] if upstream else []
        command += ["--config", str(config)] if config else []
        command += ["--simulator-seed", str(seed)] if seed is not None else []
        self._child = Child([*command, "--", sys.executable, "-c", WAITS], stdin=True)
        line = self._child.first_line()
        if not line:
            said = f"the run `{name}` was not begun:\n{self.talk()}"
            if "is sealed" in said:
                raise AlreadyRecorded(f"{said}\nhint: `overwrite=True` (pytest: `--aegis-overwrite`) replaces the recording")
            raise AegisError(said)
        variables = json.loads(line)
        self.environment: dict[str, str] = {key: variables[key] for key in pointing.NAMES if key in variables}
        """The variables that point SDKs at the proxy."""

    def __enter__(self) -> "Session":
        self._pointed.set(self.environment)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._pointed.restore()
        self.end(0 if kind is None or issubclass(kind, unittest.SkipTest) else 1)

    @property
    def base_url(self) -> str:
        """Where an OpenAI client is to send its calls; `OPENAI_BASE_URL` is set to it."""
        return self.environment["OPENAI_BASE_URL"]

    @property
    def ended(self) -> bool:
        """Whether the run is over: no call reaches the model through it any more."""
        return self._child.ended

    def end(self, code: int = 0) -> None:
        """End the run as a program that exits with `code`, and seal it. Safe to call twice."""
        if self._code is None:
            self._code = code
            self._child.finish(f"{code}\n")

    @property
    def verdict(self) -> Verdict:
        """How the program met the plan. Ends the run: make all calls before."""
        self.end()
        if self._verdict is None:
            self._verdict = Verdict(self._show("--verdict"), self._allow)
        return self._verdict

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The recorded steps, as `aegis show RUN --format json` tells them. Ends the run."""
        self.end()
        return list(self._show()["steps"])

    def assert_survived(self) -> None:
        """Fail unless the verdict is `passed`, and say why and where. Ends the run.

        Where nothing is known and that is no reason to be red, `unittest.SkipTest` is raised; pytest takes it as a skip, too.
        """
        __tracebackhide__ = True
        if self.verdict.passed:
            return
        if self.verdict.result in self._accepted:
            raise unittest.SkipTest(self.reason())
        raise AssertionError(self.report())

    def reason(self) -> str:
        """The verdict in one line."""
        return f"under {self.plan or 'no plan'}: {self.verdict.result}: {'; '.join(self._says(self.verdict.findings))}"

    def report(self) -> str:
        """The verdict in words, with the command that shows the run."""
        lines = [f"under {self.plan or 'no plan'}: {self.verdict.result}"]
        # That the program failed is the test's own failure, which the test's runner tells.
        findings = [one for one in self.verdict.findings if one["kind"] != "program_failed"]
        lines += [f"  ! {says}" for says in self._says(findings)]
        lines += [f"  allowed: {says}" for says in self._says(self.verdict.allowed)]
        lines.append(f"  aegis show {self.directory} --verdict")
        return "\n".join(lines)

    @staticmethod
    def _says(findings: Iterable[dict[str, Any]]) -> list[str]:
        """Findings with their places; of equal ones the first."""
        told: dict[str, None] = {}
        for finding in findings:
            at = finding.get("at")
            place = f"{at['agent']}, call {at['call']} (step {at['step']}): " if at else ""
            told[place + finding["says"]] = None
        return list(told)

    def talk(self) -> str:
        """What `aegis run` said."""
        return self._child.talk()

    def _show(self, *options: str) -> dict[str, Any]:
        command = [self._binary, "show", str(self.directory), *options, "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise AegisError(f"`aegis show {self.directory}` failed:\n{done.stderr.strip()}\n{self.talk()}")
        told: dict[str, Any] = json.loads(done.stdout)
        return told
