"""A recorded run, and directories of them."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Optional, Union

from .bodies import Library
from .errors import AegisError, Corrupt, NotARun
from .log import read_json, read_log
from .recording import Assembly, mark_overlaps, newest, read_facts, rename
from .step import Step
from .words import Message

AnyPath = Union[str, "os.PathLike[str]"]
# Directories of a run or a campaign that hold executions made for it.
MADE_FOR = ("trials", "proof", "retry")


class Said(NamedTuple):
    """A message of a run: who said it to whom, in which step."""

    step: int
    agent: str
    is_reply: bool
    """Whether the agent's model said it, or the agent asked it."""
    message: Message


class Run:
    """A recorded run, read whole; bodies are put together when they are asked for.

    What became known later (`facts.jsonl`: outcome, task, names of agents) is read in.
    """

    def __init__(self, directory: AnyPath) -> None:
        """Read the run in this directory, as far as it is recorded; nothing is written.

        Raises `NotARun`, `Corrupt`, `FutureFormat`, `PackageMissing` (nothing here reads zstd).
        """
        self.directory = Path(directory)
        log = read_log(self.directory)
        self.manifest: dict[str, Any] = read_json(self.directory / "run.json") or {}
        """`run.json` as it was recorded."""
        texts = all(isinstance(self.manifest.get(key), str) for key in ("run", "started", "upstream"))
        if not texts or not isinstance(self.manifest.get("outcome", {}), dict):
            raise Corrupt(f"`{self.directory / 'run.json'}` is damaged: a field is missing or is not what it should be")
        self.seal: Optional[dict[str, Any]] = log.seal
        """`seal.json`; None where the run is not sealed."""
        self.torn: int = log.torn
        """Bytes of a torn end that were left out."""
        self.facts: list[dict[str, Any]] = read_facts(self.directory)
        """What became known later, oldest first: dicts with `fact`, `at`, `source`, `by`, and what it says."""
        self._library = Library(self.directory)
        assembly = Assembly(self._library)
        for record in log.records:
            assembly.add(record)
        self.notes: list[str] = assembly.notes
        """Words about the recording itself."""
        self.watched: list[dict[str, Any]] = assembly.watched
        """Signs of trouble that `--watch` saw."""
        self.questions: list[dict[str, Any]] = assembly.questions
        """What manipulators asked their model; `question` and `answer` are bytes."""
        steps = assembly.steps
        if self.manifest.get("imported") is not None:
            # No byte of a body that was made from a trace went over a wire.
            for attempt in (attempt for step in steps.values() for attempt in step.attempts):
                attempt.exact, attempt.origin = False, "remade"
        mark_overlaps(steps, assembly.exchanges, {number: step.overlapping for number, step in steps.items()})
        self._roster = newest(self.facts, "roster")
        if self._roster is not None:
            rename(steps, assembly.exchanges, self._roster)
        self.steps: list[Step] = [step for _, step in sorted(steps.items())]
        """The calls, in order of their arrival."""

    @property
    def name(self) -> str:
        """The run's name."""
        return str(self.manifest.get("run", self.directory.name))

    @property
    def sealed(self) -> bool:
        """Whether it has ended in order, so that it takes no more calls."""
        return self.seal is not None

    @property
    def started(self) -> str:
        """When it began, RFC 3339 UTC."""
        return str(self.manifest["started"])

    @property
    def ended(self) -> Optional[str]:
        """When it was sealed, RFC 3339 UTC; None of a run that is under way or was killed."""
        return self.manifest.get("ended") or (self.seal or {}).get("ended")

    @property
    def upstream(self) -> str:
        """Where the calls went: scheme, host and port, or `simulator`."""
        return str(self.manifest["upstream"])

    @property
    def task(self) -> Optional[str]:
        """The task's text."""
        told = newest(self.facts, "task")
        return told if told is not None else self.manifest.get("task")

    @property
    def outcome(self) -> dict[str, Any]:
        """`verdict` (`success`, `failure`, `unknown`), `reason`, `evidence`."""
        told = newest(self.facts, "outcome") or self.manifest.get("outcome") or {}
        return {"verdict": "unknown", "reason": None, "evidence": "", **told}

    @property
    def plan(self) -> Optional[str]:
        """The text of the injection plan."""
        return self.manifest.get("plan")

    @property
    def agents(self) -> dict[str, int]:
        """Steps per agent."""
        counts: dict[str, int] = {}
        for step in self.steps:
            counts[step.agent] = counts.get(step.agent, 0) + 1
        return counts

    @property
    def open_exchanges(self) -> int:
        """Exchanges that never closed."""
        return sum(attempt.cause is None for step in self.steps for attempt in step.attempts)

    @property
    def messages(self) -> Iterator[Said]:
        """What was said, each message once: what is new in each request of an agent instance, and the answer to it."""
        known: dict[tuple[str, int], list[Message]] = {}
        for step in self.steps:
            asked, before = step.request_messages, known.get((step.agent, step.instance), [])
            same = 0
            while same < min(len(asked), len(before)) and asked[same].same_words(before[same]):
                same += 1
            answered = step.response_messages
            yield from (Said(step.index, step.agent, False, message) for message in asked[same:])
            yield from (Said(step.index, step.agent, True, message) for message in answered)
            known[step.agent, step.instance] = asked + answered

    @property
    def label(self) -> Optional[dict[str, Any]]:
        """`label.json`, its errors under the names that their steps have by now; None where the run has none."""
        label = read_json(self.directory / "label.json")
        if label is None or self._roster is None:
            return label
        label, steps = deepcopy(label), {step.index: step for step in self.steps}
        for kind in ("errors", "others", "not_shown"):
            for error in label.get(kind) or ():
                step = steps.get(error.get("step"))
                if step is not None:
                    error.update(agent=step.agent, instance=step.instance, call=step.call)
        return label

    @property
    def labels(self) -> list[dict[str, Any]]:
        """The errors that the label names: dicts with `agent`, `step`, `failure_mode`, `side`, …; empty without a label."""
        return list((self.label or {}).get("errors") or ())

    def step(self, index: int) -> Step:
        """The step of this number. Raises `IndexError`."""
        for step in self.steps:
            if step.index == index:
                return step
        raise IndexError(f"run `{self.name}` has no step {index}: it has {len(self.steps)}")

    def verify(self) -> int:
        """Compare every text and body with its hash; gives how many. Reading compares each record with its checksum already.

        Raises `Corrupt`, and `PackageMissing` without the package `xxhash`.
        """
        return self._library.verify()

    def __repr__(self) -> str:
        return f"<Run {self.name}: {len(self.steps)} steps, {self.outcome['verdict']}>"


class Corpus:
    """The runs below a directory, in the order of their paths; each is read when its turn comes."""

    def __init__(self, directory: AnyPath, *, trials: bool = False, skip_unreadable: bool = False) -> None:
        """`trials`: also executions that were made for a run. `skip_unreadable`: pass over runs that cannot be read, and keep why.

        Raises `NotARun` where there is no such directory.
        """
        self.directory = Path(directory)
        if not self.directory.is_dir():
            raise NotARun(f"`{self.directory}` is no directory of runs")
        self._trials, self._skip = trials, skip_unreadable
        self.skipped: dict[Path, AegisError] = {}
        """The runs that could not be read, and why."""

    def paths(self) -> list[Path]:
        """The directories of the runs."""
        found = []
        for folder, below, files in os.walk(self.directory):
            if "run.json" in files:
                found.append(Path(folder))
            if not self._trials:
                below[:] = [name for name in below if not ("run.json" in files and name in MADE_FOR)]
        return sorted(found)

    def __iter__(self) -> Iterator[Run]:
        for path in self.paths():
            try:
                yield Run(path)
            except AegisError as error:
                if not self._skip:
                    raise
                self.skipped[path] = error

    def __len__(self) -> int:
        return len(self.paths())

    def __repr__(self) -> str:
        return f"<Corpus {self.directory}: {len(self)} runs>"
