"""Runs of a server that somebody else keeps: opened, judged, annotated and ended over its control listener."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Iterable, List, Mapping, Optional

from .errors import AegisError, AlreadyRecorded


class Server:
    """A server, `aegis serve --control ADDR`, by the address of its control listener."""

    def __init__(self, control: str, token: str, *, proxy: Optional[str] = None, timeout: float = 30) -> None:
        """`control`: the address, for example `http://127.0.0.1:8486`. `token`: the control token, or that of a user. `proxy`: where
        calls go, for example `http://127.0.0.1:8484`; with `/t/TOKEN` behind it where the server wants a token of them.
        """
        self.control, self.proxy = control.rstrip("/"), proxy.rstrip("/") if proxy else None
        self._token, self._timeout = token, timeout

    def open_run(
        self, run: Optional[str] = None, *, task: Optional[str] = None, agents: Iterable[Mapping[str, Any]] = ()
    ) -> "ServedRun":
        """Open a run before its first call: `with server.open_run(task="…") as run: …` ends it, too.

        `run`: its name; one is made if None. `agents`: who calls in this run, rules as `[[agent]]` of a configuration, for example
        `{"name": "solver", "system_contains": "You solve"}`. Raises `AlreadyRecorded`, `AegisError`.
        """
        given = {"run": run, "task": task, "agents": [dict(rule) for rule in agents]}
        opened = self.ask("POST", "/aegis/v1/runs", {key: value for key, value in given.items() if value})
        return ServedRun(self, opened["run"], opened["base_path"])

    def run(self, name: str) -> "ServedRun":
        """A run of this name; whether there is one, its first question tells."""
        return ServedRun(self, name, f"/r/{name}")

    def ask(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Any:
        """What the control listener answers. Raises `AegisError` with what it says, `AlreadyRecorded` where a run is there."""
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.control + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=self._timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise _refused(method, path, error) from None
        except OSError as error:
            raise AegisError(f"no answer from {self.control}: {error}\nhint: is it the address of `serve --control`?") from error


def _refused(method: str, path: str, error: urllib.error.HTTPError) -> AegisError:
    try:
        said = json.loads(error.read())["error"]
    except (ValueError, KeyError, TypeError):
        return AegisError(f"{method} {path}: status {error.code}")
    kind = AlreadyRecorded if said.get("code") == "run_exists" else AegisError
    return kind(f"{method} {path}: {said.get('code')}: {said.get('message')}\nhint: {said.get('hint')}")


class ServedRun:
    """A run of a server. As a context manager it ends the run."""

    def __init__(self, server: Server, name: str, base_path: str) -> None:
        self.name = name
        self._server, self._base_path = server, base_path

    @property
    def url(self) -> str:
        """The base URL of an Anthropic client whose calls belong to this run. Raises `AegisError` where the server has no `proxy`."""
        if self._server.proxy is None:
            raise AegisError("nobody said where calls go: aegis.Server(…, proxy='http://HOST:PORT')")
        return self._server.proxy + self._base_path

    @property
    def base_url(self) -> str:
        """The same of an OpenAI client."""
        return f"{self.url}/v1"

    def agent_url(self, agent: str) -> str:
        """The same of an OpenAI client of this agent."""
        return f"{self.url}/a/{agent}/v1"

    @property
    def facts(self) -> "dict[str, Any]":
        """What the server knows of it: state, steps, outcome, label, agents and others."""
        return self._ask("GET")

    @property
    def annotations(self) -> List[Any]:
        """The last word of everybody who said something of it."""
        return list(self._ask("GET", "/annotations")["annotations"])

    def judge(self, verdict: str, *, evidence: str = "", by: Optional[str] = None) -> None:
        """Say what it achieved: `success`, `failure` or `unknown`."""
        self._ask("POST", "/outcome", {"verdict": verdict, "evidence": evidence, **({"by": by} if by else {})})

    def annotate(
        self, step: Optional[int] = None, why: str = "", *, sure: bool = True, by: Optional[str] = None, blind: bool = False
    ) -> "dict[str, Any]":
        """Say which step decided it, and why; without a step, that there is no error. `blind`: whoever says it was shown only what
        happened, no label, trace, injection, nor the words of others.
        """
        said = {"why": why, "sure": sure, "blind": blind, **({"by": by} if by else {})}
        return self._ask("POST", "/annotations", said if step is None else {"step": step, **said})

    def keep(self) -> None:
        """Keep it, whatever is pruned."""
        self._ask("POST", "/keep")

    def release(self) -> None:
        """Take that back."""
        self._ask("POST", "/release")

    def end(self) -> "dict[str, Any]":
        """End it: it takes no more calls, and its label is derived. Gives `facts`. One that has ended stays as it is."""
        return self._ask("POST", "/end")

    def _ask(self, method: str, below: str = "", body: Optional[Mapping[str, Any]] = None) -> "dict[str, Any]":
        answer: "dict[str, Any]" = self._server.ask(method, f"/aegis/v1/runs/{self.name}{below}", body)
        return answer

    def __enter__(self) -> "ServedRun":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.end()
        except AegisError:
            # What happened inside is the news.
            if kind is None:
                raise

    def __repr__(self) -> str:
        return f"<ServedRun {self.name}>"
