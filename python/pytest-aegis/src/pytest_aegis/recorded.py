"""One recorded run around a test: `aegis run`, whose command waits while the test makes its calls."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .binary import binary as found_binary

# The command of the run: it says which variables point at the proxy, waits for the test to end, and ends as it did.
WAITS = (
    "import json, os, sys\n"
    "print(json.dumps(dict(os.environ)), flush=True)\n"
    "line = sys.stdin.readline().strip()\n"
    "sys.exit(int(line) if line else 3)\n"
)
# What `aegis run` sets for its command. Everything else in there is the test's own already.
POINTING = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_BASE_URL", "ANTHROPIC_BASE_URL", "NO_PROXY", "no_proxy")
POINTING += ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_CUSTOM_HEADERS")
# Seconds that a program may take to seal a run: a long one is compressed first.
SEALED_WITHIN = 60
# Results from good to bad, and what a finding of a kind makes of a run; another kind makes it failed.
RESULTS = ("passed", "skipped", "inconclusive", "failed", "void")
OF_KIND = {
    "does_not_apply": "skipped",
    "never_delivered": "inconclusive",
    "check_undecided": "inconclusive",
    "check_broken": "void",
    "no_call": "void",
    "unanswered": "void",
}


class AegisError(Exception):
    """Aegis could not be started, or a run could not be recorded."""


class AlreadyRecorded(AegisError):
    """There is a recording of that name, and nothing said that it may be replaced."""


class Verdict:
    """Whether the test's program survived, told from the recording (`aegis show RUN --verdict --format json`)."""

    def __init__(self, data, allow=()):
        self.data, self.allow = data, tuple(allow)

    @property
    def result(self):
        """`passed`, `failed`, `skipped` (the program has nothing that the plan is for), `inconclusive` (the plan never fired) or
        `void` (no call was answered)."""
        told = self.data["survival"]
        if not self.allowed:
            return told["result"]
        return max((OF_KIND.get(one["kind"], "failed") for one in self.findings), key=RESULTS.index, default="passed")

    @property
    def passed(self):
        return self.result == "passed"

    @property
    def findings(self):
        """Why it is not passed: dicts with `kind`, `says` and, of a call, `at`."""
        return [one for one in self.data["survival"]["findings"] if not self._is_allowed(one)]

    @property
    def allowed(self):
        """The findings of rules that were allowed: they make nothing red."""
        return [one for one in self.data["survival"]["findings"] if self._is_allowed(one)]

    @property
    def injections(self):
        """What became of each injection of the plan: dicts with `operator`, `agents`, `delivered`."""
        return self.data["survival"]["injections"]

    @property
    def calls(self):
        """How each call met its trouble: dicts with `agent`, `step`, `tries`, `remarks`."""
        return self.data["client"]["calls"]

    def rules(self, agent=None):
        """The names of the rules that hold, of all calls or of one agent's; allowed ones too."""
        calls = (call for call in self.calls if agent in (None, call["agent"]))
        return {remark["rule"] for call in calls for remark in call["remarks"]}

    def _is_allowed(self, finding):
        return finding["kind"] == "defect" and finding["says"].partition(":")[0] in self.allow

    def __repr__(self):
        return f"<Verdict {self.result}>"


class Aegis:
    """A proxy before a model, and the run that it records.

    As a context manager it points the SDKs' variables at the proxy, and ends the run. `name`: the run's. `plan`: a file or a
    ready-made one's name. `allow`: rules whose findings are no defects. `strict`, `allow_inconclusive`: as of `aegis test`.
    """

    def __init__(
        self,
        name,
        *,
        logs="logs",
        plan=None,
        upstream=None,
        config=None,
        seed=None,
        overwrite=False,
        allow=(),
        allow_inconclusive=False,
        strict=False,
        binary=None,
    ):
        self.name, self.plan = name, plan
        self.directory = Path(logs) / name
        self.environment = {}
        self._binary = binary or found_binary()
        self._allow = (allow,) if isinstance(allow, str) else tuple(allow)
        self._accepted = {"skipped"} if not strict else set()
        self._accepted |= {"inconclusive"} if allow_inconclusive else set()
        self._before = None
        self._verdict = None
        self._code = None
        self._talk = tempfile.TemporaryFile("w+")
        command = [self._binary, "run", "--run", name, "--log-dir", str(logs)]
        command += ["--overwrite"] if overwrite else []
        command += ["--plan", str(plan)] if plan else []
        command += ["--upstream", upstream] if upstream else []
        command += ["--config", str(config)] if config else []
        command += ["--simulator-seed", str(seed)] if seed is not None else []
        command += ["--", sys.executable, "-c", WAITS]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._talk,
                text=True,
                # Ctrl-C is for pytest, which then ends the run in order.
                start_new_session=True,
            )
        except OSError as error:
            raise AegisError(f"cannot start `{self._binary}`: {error}") from error
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            said = f"the run `{name}` was not begun:\n{self.talk()}"
            if "is sealed" in said:
                raise AlreadyRecorded(f"{said}\nhint: `overwrite=True` (pytest: `--aegis-overwrite`) replaces the recording")
            raise AegisError(said)
        variables = json.loads(line)
        self.environment = {key: variables[key] for key in POINTING if key in variables}

    def __enter__(self):
        self._before = {key: os.environ.get(key) for key in self.environment}
        os.environ.update(self.environment)
        return self

    def __exit__(self, kind, error, trace):
        for key, value in self._before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        self.end(0 if kind is None or issubclass(kind, unittest.SkipTest) else 1)

    @property
    def base_url(self):
        """Where an OpenAI client is to send its calls; `OPENAI_BASE_URL` is set to it."""
        return self.environment["OPENAI_BASE_URL"]

    @property
    def ended(self):
        """Whether the run is over: no call reaches the model through it any more."""
        return self._process.poll() is not None

    def end(self, code=0):
        """End the run as a program that exits with `code`, and seal it. Safe to call twice."""
        if self._code is not None:
            return
        self._code = code
        try:
            self._process.communicate(f"{code}\n", timeout=SEALED_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise AegisError(f"the run was not sealed within {SEALED_WITHIN} s:\n{self.talk()}") from None

    @property
    def verdict(self):
        """How the program met the plan. Ends the run: make all calls before."""
        self.end()
        if self._verdict is None:
            self._verdict = Verdict(self._show("--verdict"), self._allow)
        return self._verdict

    @property
    def steps(self):
        """The recorded steps, as `aegis show RUN --format json` tells them. Ends the run."""
        self.end()
        return self._show()["steps"]

    def assert_survived(self):
        """Fail unless the verdict is `passed`, and say why and where. Ends the run.

        Where nothing is known and that is no reason to be red, `unittest.SkipTest` is raised; pytest takes it as a skip, too.
        """
        __tracebackhide__ = True
        if self.verdict.passed:
            return
        if self.verdict.result in self._accepted:
            raise unittest.SkipTest(self.reason())
        raise AssertionError(self.report())

    def reason(self):
        """The verdict in one line."""
        return f"under {self.plan or 'no plan'}: {self.verdict.result}: {'; '.join(self._says(self.verdict.findings))}"

    def report(self):
        """The verdict in words, with the command that shows the run."""
        lines = [f"under {self.plan or 'no plan'}: {self.verdict.result}"]
        # That the program failed is the test's own failure, which pytest tells.
        findings = [one for one in self.verdict.findings if one["kind"] != "program_failed"]
        lines += [f"  ! {says}" for says in self._says(findings)]
        lines += [f"  allowed: {says}" for says in self._says(self.verdict.allowed)]
        lines.append(f"  aegis show {self.directory} --verdict")
        return "\n".join(lines)

    @staticmethod
    def _says(findings):
        """Findings with their places; of equal ones the first."""
        told = {}
        for finding in findings:
            at = finding.get("at")
            place = f"{at['agent']}, call {at['call']} (step {at['step']}): " if at else ""
            told[place + finding["says"]] = None
        return list(told)

    def talk(self):
        """What `aegis run` said."""
        self._talk.seek(0)
        return self._talk.read().strip()

    def _show(self, *options):
        done = subprocess.run(
            [self._binary, "show", str(self.directory), *options, "--format", "json"], capture_output=True, text=True
        )
        if done.returncode not in (0, 1):
            raise AegisError(f"`aegis show {self.directory}` failed:\n{done.stderr.strip()}\n{self.talk()}")
        return json.loads(done.stdout)
