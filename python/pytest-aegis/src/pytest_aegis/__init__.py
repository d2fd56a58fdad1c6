"""Aegis as a pytest fixture: a test's model calls pass a proxy that records them and plants the faults of a plan."""

try:
    from aegis import AegisError, AlreadyRecorded, BinaryMissing, Verdict, binary
    from aegis import Session as Aegis
except ImportError as missing:
    # It is under no name that can be asked for: whoever asked a registry would get what somebody else put there.
    raise ImportError(
        "pytest-aegis needs the package `aegis` of Aegis, which is in no registry. `scripts/package` of Aegis makes its wheel: "
        "pip install --no-index aegis_proxy-….whl"
    ) from missing

__all__ = ["Aegis", "AegisError", "AlreadyRecorded", "BinaryMissing", "Verdict", "binary"]
