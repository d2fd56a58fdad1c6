"""Aegis as a pytest fixture: a test's model calls pass a proxy that records them and plants the faults of a plan."""

from .binary import BinaryMissing, binary
from .recorded import Aegis, AegisError, AlreadyRecorded, Verdict

__all__ = ["Aegis", "AegisError", "AlreadyRecorded", "BinaryMissing", "Verdict", "binary"]
