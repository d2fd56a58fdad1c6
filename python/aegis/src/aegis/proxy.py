"""The proxy for notebooks and tests: `aegis serve` on a free port, as long as a `with` lasts."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import tempfile
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Sequence

from . import pointing
from .binary import binary as found_binary
from .child import SEALED_WITHIN, Child
from .errors import AegisError, AlreadyRecorded
from .run import AnyPath, Run


def _is_text(plan: AnyPath) -> bool:
    return isinstance(plan, str) and "\n" in plan


@contextmanager
def _written(plan: Optional[str]) -> Iterator[List[str]]:
    """The option that names a plan's text, in a file for as long as the proxy reads it."""
    if plan is None:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="aegis-plan-") as folder:
        file = Path(folder) / "plan.toml"
        file.write_text(plan, encoding="utf-8")
        yield ["--plan", str(file)]


class Proxy:
    """A proxy before a model, recording one run.

    As a context manager, plain or async, it starts the proxy, points the SDKs' variables (`OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`
    and their like) at it, and ends and seals the run. A plan is for a whole run: `inject` gives a proxy for another one.
    """

    def __init__(
        self,
        *,
        upstream: Optional[str] = None,
        plan: Optional[AnyPath] = None,
        log_dir: AnyPath = "logs",
        run: Optional[str] = None,
        config: Optional[AnyPath] = None,
        seed: Optional[int] = None,
        options: Sequence[str] = (),
        set_environment: bool = True,
        binary: Optional[str] = None,
    ) -> None:
        """`upstream`: a URL or `simulator`; as `aegis serve` if None. `plan`: a file or a ready-made one's name. `run`: the run's name,
        a new one if None. `seed`: the simulator's. `options`: further options of `aegis serve`, for example `["--watch", "warn"]`.
        `set_environment`: whether variables of this process are set.
        """
        self.name = run or f"proxy-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self._like: Mapping[str, Any] = {
            "upstream": upstream, "log_dir": log_dir, "config": config, "seed": seed, "options": options,
            "set_environment": set_environment, "binary": binary,
        }
        self.plan = plan
        self.directory = Path(log_dir) / self.name
        """Where the recording is."""
        command = ["serve", "--listen", "127.0.0.1:0", "--run", self.name, "--log-dir", str(log_dir)]
        command += ["--upstream", upstream] if upstream else []
        command += ["--plan", str(plan)] if plan else []
        command += ["--config", str(config)] if config else []
        command += ["--simulator-seed", str(seed)] if seed is not None else []
        self._command = [binary or found_binary(), *command, *options]
        self._sets = set_environment
        self._pointed = pointing.Pointed()
        self._child: Optional[Child] = None
        self._url: Optional[str] = None
        self._plan_text: Optional[str] = None
        self._injected = 0

    def start(self) -> "Proxy":
        """Start it, where there is no `with`; then `end()` it. Raises `AegisError` with what `aegis serve` said."""
        if self._child is not None:
            raise AegisError(f"the proxy of run `{self.name}` was started already: make another `Proxy`")
        with _written(self._plan_text) as plan:
            self._start([*self._command, *plan])
        return self

    def _start(self, command: Sequence[str]) -> None:
        child = self._child = Child(command)
        line = child.first_line()
        if not line:
            said = f"`aegis serve` did not start:\n{child.talk()}"
            if "is sealed" in said:
                raise AlreadyRecorded(f"{said}\nhint: give another name: run=…, or none")
            raise AegisError(said)
        self._url = f"http://{json.loads(line)['listen']}"
        if self._sets:
            self._pointed.set(self.environment)

    def end(self) -> None:
        """End and seal the run; safe to call twice. Raises `AegisError` with what `aegis serve` said where that failed."""
        self._pointed.restore()
        child = self._child
        if child is None:
            return
        code = child.finish(stop=True)
        if code:
            raise AegisError(f"`aegis serve` ended with exit code {code}:\n{child.talk()}")
        # A server leaves its runs open, for programs that go on with them: none goes on with this one.
        if (self.directory / "run.json").exists() and not (self.directory / "seal.json").exists():
            self._seal()

    def _seal(self) -> None:
        ending = [self._command[0], "runs", "end", str(self.directory)]
        ended = subprocess.run(ending, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SEALED_WITHIN)
        if ended.returncode:
            raise AegisError(f"the run cannot be ended:\n{ended.stderr.strip()}")

    def inject(self, plan: AnyPath, *, run: Optional[str] = None) -> "Proxy":
        """A proxy like this one, for a run of its own under a plan: `with proxy.inject(plan) as injected: ...`.

        `plan`: a file, a ready-made one's name, or the text of a plan (TOML of more than one line). `run`: the run's name; this one's
        with a number behind it if None. Inside the `with` the SDKs' variables point at it, and behind it at this one again. Raises what
        `start` raises: a plan that cannot be read is told there.
        """
        self._injected += 1
        name = run or f"{self.name}-{self._injected}"
        injected = Proxy(plan=None if _is_text(plan) else plan, run=name, **self._like)
        if _is_text(plan):
            injected._plan_text = str(plan)
        return injected

    @property
    def url(self) -> str:
        """The proxy's address, `http://127.0.0.1:PORT`: the base URL of an Anthropic client. Raises `AegisError` before it is started."""
        if self._url is None:
            raise AegisError("the proxy is not started: use it in a `with`, or call `start()`")
        return self._url

    @property
    def base_url(self) -> str:
        """The base URL of an OpenAI client."""
        return f"{self.url}/v1"

    def agent_url(self, agent: str) -> str:
        """The base URL of an OpenAI client of this agent: its calls carry the name."""
        return f"{self.url}/a/{agent}/v1"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that point SDKs at the proxy, for a child process."""
        return pointing.at(self.url)

    @property
    def run(self) -> Run:
        """The run, as far as it is recorded. Raises what `aegis.run` raises, `NotARun` before the start."""
        return Run(self.directory)

    @property
    def talk(self) -> str:
        """What `aegis serve` said so far."""
        return self._child.talk() if self._child else ""

    def __enter__(self) -> "Proxy":
        return self.start()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.end()
        except AegisError:
            # What happened inside is the news.
            if kind is None:
                raise

    async def __aenter__(self) -> "Proxy":
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def __repr__(self) -> str:
        return f"<Proxy {self.name} {self._url or 'not started'}>"
