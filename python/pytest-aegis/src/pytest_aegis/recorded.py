"""One recorded run around a test: `aegis run`, whose command waits while the test makes its calls."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

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


class AegisError(Exception):
    """Aegis could not be started, or a run could not be recorded."""


class Verdict:
    """Whether the test's program survived, told from the recording (`aegis show RUN --verdict --format json`)."""

    def __init__(self, data):
        self.data = data

    @property
    def result(self):
        """`passed`, `failed`, `inconclusive` (the plan never fired) or `void` (no call was answered)."""
        return self.data["survival"]["result"]

    @property
    def passed(self):
        return self.result == "passed"

    @property
    def findings(self):
        """Why it is not passed: dicts with `kind`, `says` and, of a call, `at`."""
        return self.data["survival"]["findings"]

    @property
    def injections(self):
        """What became of each injection of the plan: dicts with `operator`, `agents`, `delivered`."""
        return self.data["survival"]["injections"]

    @property
    def calls(self):
        """How each call met its trouble: dicts with `agent`, `step`, `tries`, `remarks`."""
        return self.data["client"]["calls"]

    def rules(self, agent=None):
        """The names of the rules that hold, of all calls or of one agent's."""
        calls = (call for call in self.calls if agent in (None, call["agent"]))
        return {remark["rule"] for call in calls for remark in call["remarks"]}

    def __repr__(self):
        return f"<Verdict {self.result}>"


class Aegis:
    """A proxy before the test's model, and the run that it records."""

    def __init__(self, binary, name, *, logs, plan=None, upstream=None, config=None, seed=None, overwrite=False):
        self.name, self.plan = name, plan
        self.directory = Path(logs) / name
        self.environment = {}
        self._binary = binary
        self._verdict = None
        self._code = None
        self._talk = tempfile.TemporaryFile("w+")
        command = [binary, "run", "--run", name, "--log-dir", str(logs)]
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
            raise AegisError(f"cannot start `{binary}`: {error}") from error
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            kept = "is sealed" in self.talk()
            hint = "\nhint: `--aegis-overwrite` replaces the recordings of these tests" if kept else ""
            raise AegisError(f"the run `{name}` was not begun:\n{self.talk()}{hint}")
        variables = json.loads(line)
        self.environment = {key: variables[key] for key in POINTING if key in variables}

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
            self._verdict = Verdict(self._show("--verdict"))
        return self._verdict

    @property
    def steps(self):
        """The recorded steps, as `aegis show RUN --format json` tells them. Ends the run."""
        self.end()
        return self._show()["steps"]

    def assert_survived(self):
        """Fail unless the verdict is `passed`, and say why and where. Ends the run."""
        __tracebackhide__ = True
        if not self.verdict.passed:
            raise AssertionError(self.report())

    def report(self):
        """The verdict in words, with the command that shows the run."""
        lines = [f"under {self.plan or 'no plan'}: {self.verdict.result}"]
        for finding in self.verdict.findings:
            if finding["kind"] == "program_failed":
                # The test's own failure, which pytest tells.
                continue
            at = finding.get("at")
            place = f"{at['agent']}, call {at['call']} (step {at['step']}): " if at else ""
            lines.append(f"  ! {place}{finding['says']}")
        lines.append(f"  aegis show {self.directory} --verdict")
        return "\n".join(lines)

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
