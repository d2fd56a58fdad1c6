"""Steps from records: exchanges become attempts, attempts become steps; then the facts that were added later."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from .bodies import Body, Library
from .errors import Corrupt
from .step import Attempt, Step


# Fields that readers compute with, and what they are.
TEXTS = {"agent", "surface", "method", "path", "at", "source", "evidence", "operator", "side", "cause"}
NUMBERS = {"step", "attempt", "call", "instance", "t_us"}
MAYBE_NUMBERS = {"status", "first_byte_us", "last_byte_us"}


def check_types(record: dict[str, Any]) -> None:
    """Raises `TypeError` where a field of a record is not what it should be."""
    for key, value in record.items():
        if key in TEXTS and not isinstance(value, str):
            raise TypeError(f"`{key}` is no text: {value!r}")
        is_number = type(value) is int and value >= 0
        if (key in NUMBERS and not is_number) or (key in MAYBE_NUMBERS and not is_number and value is not None):
            raise TypeError(f"`{key}` is no number: {value!r}")


@dataclass
class Assembly:
    """What the records of a log say."""

    library: Library
    steps: dict[int, Step] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    watched: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    exchanges: list["Exchange"] = field(default_factory=list)
    position: int = 0

    def add(self, record: dict[str, Any]) -> None:
        """Take in a record; kinds of later versions are passed over. Raises `Corrupt` where it refers to what is not there."""
        self.position += 1
        try:
            kind = record.get("kind")
            check_types(record)
            if kind == "text":
                self.library.add_text(record)
            elif kind == "open":
                self._open(record)
            elif kind == "close":
                self._close(record)
            elif kind == "inject":
                self._inject(record)
            elif kind == "manipulator":
                self._manipulator(record)
            elif kind == "watch":
                self.watched.append({key: value for key, value in record.items() if key != "kind"})
            elif kind == "note":
                self.notes.append(record["text"])
            elif kind == "gap":
                self.notes.append(f"gap: {record['text']}")
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Corrupt(f"record {self.position}: {type(error).__name__}: {error}") from error

    def _body(self, record: dict[str, Any], key: str) -> Optional[Body]:
        body = record.get(key)
        return self.library.add_body(body) if body is not None else None

    def _open(self, record: dict[str, Any]) -> None:
        body = self._body(record, "body")
        step = self.steps.get(record["step"])
        if step is None:
            step = self.steps[record["step"]] = Step(record, self.library)
        step.attempts.append(Attempt(record, body, self.library))
        self.exchanges.append(Exchange(record["step"], record["attempt"], self.position))

    def _step(self, record: dict[str, Any]) -> Step:
        step = self.steps.get(record["step"])
        if step is None:
            raise Corrupt(f"record {self.position} is about step {record['step']}, which was not opened")
        return step

    def _close(self, record: dict[str, Any]) -> None:
        bodies = {key: self._body(record, key) for key in ("request", "reply", "delivered", "fuller")}
        step = self._step(record)
        opened = [one for one in step.attempts if one.number == record["attempt"] and one.cause is None]
        if not opened:
            raise Corrupt(f"record {self.position} closes an exchange that is not open")
        opened[-1].close(record, bodies)
        for exchange in reversed(self.exchanges):
            if (exchange.step, exchange.attempt) == (record["step"], record["attempt"]):
                exchange.closed = self.position
                break

    def _inject(self, record: dict[str, Any]) -> None:
        body = self._body(record, "body")
        step = self._step(record)
        if not record["applied"]:
            return
        if record["side"] == "request" and body is not None:
            step.sent = body.hash
        step.injected.append({key: value for key, value in record.items() if key not in ("kind", "body")})

    def _manipulator(self, record: dict[str, Any]) -> None:
        asked = record.get("asked")
        if asked is None:
            return
        bodies = {key: self._body(asked, key) for key in ("question", "answer")}
        told = {key: value for key, value in asked.items() if key not in bodies}
        told.update({key: self.library.read(body.hash) if body else b"" for key, body in bodies.items()})
        self.questions.append({"step": record["step"], "attempt": record["attempt"], "operator": record["operator"], **told})


@dataclass
class Exchange:
    """Where an exchange begins and ends in the log."""

    step: int
    attempt: int
    opened: int
    closed: Optional[int] = None


def mark_overlaps(steps: dict[int, Step], exchanges: list[Exchange], seen: dict[int, bool]) -> None:
    """Mark each step during which another call of its agent instance was under way, whichever of them came first.

    `seen`: what was seen on arrival, which decides beside a call that never ended.
    """
    under_way: dict[tuple[str, int], list[Exchange]] = {}
    overlapped = {number for number, told in seen.items() if told}
    for later in exchanges:
        step = steps[later.step]
        together = under_way.setdefault((step.agent, step.instance), [])
        together[:] = [one for one in together if one.closed is None or one.closed > later.opened]
        for earlier in together:
            if earlier.step != later.step and (earlier.closed is not None or seen[later.step]):
                overlapped |= {earlier.step, later.step}
        together.append(later)
    for number, step in steps.items():
        step.overlapping = number in overlapped


def read_facts(directory: Path) -> list[dict[str, Any]]:
    """The lines of `facts.jsonl`, oldest first; lines that cannot be read, or of a newer format, are left out."""
    try:
        lines = (directory / "facts.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    facts = []
    for line in lines:
        try:
            fact = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(fact, dict) and fact.get("format") == 1 and _is_whole(fact):
            facts.append(fact)
    return facts


def _is_whole(fact: dict[str, Any]) -> bool:
    """Whether a fact has what is read of its kind; one of a later kind is passed on as it is."""
    told = fact.get(str(fact.get("fact")))
    if fact.get("fact") == "roster":
        groups = told.get("named") if isinstance(told, dict) else None
        return isinstance(groups, list) and all(_is_group(group) for group in groups)
    if fact.get("fact") == "outcome":
        return isinstance(told, dict) and isinstance(told.get("verdict"), str)
    return isinstance(told, str) if fact.get("fact") == "task" else True


def _is_group(group: Any) -> bool:
    if not isinstance(group, dict) or not isinstance(group.get("steps"), list):
        return False
    texts = isinstance(group.get("agent"), str) and isinstance(group.get("evidence"), str)
    return texts and type(group.get("instance", 0)) is int and all(type(step) is int for step in group["steps"])


def newest(facts: list[dict[str, Any]], kind: str) -> Any:
    """What the newest fact of a kind says; None where there is none."""
    return next((fact[kind] for fact in reversed(facts) if fact.get("fact") == kind), None)


def rename(steps: dict[int, Step], exchanges: list[Exchange], roster: dict[str, Any]) -> None:
    """Give steps the names of a roster that was given later, and number the calls of each agent instance anew."""
    for group in roster["named"]:
        for number in group["steps"]:
            step = steps.get(number)
            if step is None:
                continue
            step.agent, step.instance = group["agent"], group.get("instance", 0)
            step.source, step.evidence = "roster", f"{group['evidence']}, given later"
            step.ambiguous = group.get("ambiguous", False)
            step.confidence = 0.5 if step.ambiguous else 1.0
    calls: dict[tuple[str, int], int] = {}
    for _, step in sorted(steps.items()):
        step.call = calls.get((step.agent, step.instance), 0)
        calls[step.agent, step.instance] = step.call + 1
    # What was seen on arrival was about other agents: it counts only beside a call that never ended.
    unended = [one.step for one in exchanges if one.closed is None]
    seen = {number: step.overlapping and any(one < number for one in unended) for number, step in steps.items()}
    mark_overlaps(steps, exchanges, seen)
