"""Reads what Aegis records of multi-agent LLM runs, reads its data sets, and starts its proxy."""

from __future__ import annotations

from .binary import binary
from .dataset import Dataset, load_dataset
from .errors import AegisError, AlreadyRecorded, BinaryMissing, Corrupt, FutureFormat, NotARun, PackageMissing
from .proxy import Proxy
from .run import AnyPath, Corpus, Run, Said
from .server import ServedRun, Server
from .session import Session
from .step import Attempt, Step
from .verdict import Verdict
from .words import Message, ToolCall


def run(directory: AnyPath) -> Run:
    """Read a recorded run, for example `logs/first`; see `Run` for its parts and errors."""
    return Run(directory)


def corpus(directory: AnyPath, *, trials: bool = False, skip_unreadable: bool = False) -> Corpus:
    """The runs below a directory, to iterate over; see `Corpus`."""
    return Corpus(directory, trials=trials, skip_unreadable=skip_unreadable)


__all__ = [
    "AegisError",
    "AlreadyRecorded",
    "Attempt",
    "BinaryMissing",
    "Corpus",
    "Corrupt",
    "Dataset",
    "FutureFormat",
    "Message",
    "NotARun",
    "PackageMissing",
    "Proxy",
    "Run",
    "Said",
    "ServedRun",
    "Server",
    "Session",
    "Step",
    "ToolCall",
    "Verdict",
    "binary",
    "corpus",
    "load_dataset",
    "run",
]
