"""The log of a run: its lines, whether the run is under way, was killed, or is sealed."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple, Optional

from .errors import Corrupt, FutureFormat, NotARun
from .packed import unpacked

# The newest version of a line, and of `run.json`, `seal.json` and `label.json`, that is read.
FORMAT = 1
# How often a log is read whose writer moves lines meanwhile.
READS_MAX = 100
LINE = re.compile(rb'\{"v":(\d+),"seq":(\d+),"crc":"([0-9a-f]{8})","rec":(.*)\}\n', re.DOTALL)


class Log(NamedTuple):
    """A log as it was read."""

    records: list[dict[str, Any]]
    """What stands in `rec`, in order."""
    text: bytes
    """The lines themselves."""
    torn: int
    """Bytes of a torn end that were left out; 0 in a sealed run."""
    seal: Optional[dict[str, Any]]
    """`seal.json`; None where the run is not sealed."""


def read_json(path: Path) -> Optional[dict[str, Any]]:
    """A small JSON file of a run; None when it is not there. Raises `Corrupt`, `FutureFormat`."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"`{path}` is damaged: {error}") from error
    if not isinstance(found, dict):
        raise Corrupt(f"`{path}` is damaged: it is no object")
    check_format(found.get("format", FORMAT), path)
    return found


def check_format(found: Any, path: Path) -> None:
    """Raises `FutureFormat` where a newer version wrote the file."""
    if not isinstance(found, int) or found > FORMAT:
        raise FutureFormat(f"`{path}` has format {found}, this package reads up to {FORMAT}: install a newer one")


def read_log(directory: Path) -> Log:
    """The log of the run in this directory, as far as it is written.

    Raises `NotARun`, `Corrupt`, `FutureFormat`, `PackageMissing`.
    """
    if not (directory / "run.json").is_file():
        raise NotARun(f"`{directory}` is no recorded run: it has no `run.json`")
    text, path, seal = _text(directory)
    records, good = _records(text, path)
    torn = len(text) - good
    if seal is not None and (torn or seal.get("log_bytes") != len(text) or seal.get("records") != len(records)):
        raise Corrupt(f"`{path}` does not fit `seal.json`: {len(records)} records in {len(text)} bytes")
    return Log(records, text[:good], torn, seal)


def _text(directory: Path) -> tuple[bytes, Path, Optional[dict[str, Any]]]:
    """The lines of the log, the file that they stand in, and the seal. A run may be sealed, or its lines moved, while they are read."""
    before = _state(directory)
    for left in reversed(range(READS_MAX)):
        seal = read_json(directory / "seal.json")
        try:
            if seal is not None:
                return *_sealed(directory), seal
            return _unsealed(directory), directory / "log.jsonl", None
        except Corrupt:
            after = _state(directory)
            if before == after or not left:
                raise
            before = after
    raise AssertionError("the last reading returns or raises")


def _state(directory: Path) -> Any:
    def of(name: str) -> Any:
        try:
            found = (directory / name).stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    return of("log.jsonl"), of("seal.json")


def _sealed(directory: Path) -> tuple[bytes, Path]:
    packed, plain = directory / "log.jsonl.zst", directory / "log.jsonl"
    if packed.is_file():
        return unpacked(packed.read_bytes(), str(packed)), packed
    if plain.is_file():
        return plain.read_bytes(), plain
    raise Corrupt(f"`{packed}` is missing")


def _unsealed(directory: Path) -> bytes:
    """Both parts of the log of an open run: the log first, then the head, which never gets shorter."""
    plain, packed = directory / "log.jsonl", directory / "head.jsonl.zst"
    log = plain.read_bytes() if plain.is_file() else None
    if not packed.is_file():
        first = LINE.match(log or b"")
        if first and int(first[2]):
            # The run was sealed between the two looks: the next reading finds it so.
            raise Corrupt(f"`{plain}` begins at line {int(first[2])}, and `{packed.name}` is missing")
        return log or b""
    head = unpacked(packed.read_bytes(), str(packed), may_be_cut=True)
    if log is None:
        raise Corrupt(f"`{plain}` is missing, and `{packed.name}` goes before it")
    if not head:
        return log
    first = LINE.match(log)
    twice = head.count(b"\n") - int(first[2]) if first else -1
    if twice < 0:
        raise Corrupt(f"`{plain}` does not go on where `{packed.name}` ends")
    lines = log.split(b"\n", twice)
    if len(lines) <= twice or not head.endswith(b"".join(line + b"\n" for line in lines[:twice])):
        raise Corrupt(f"`{plain}` does not go on where `{packed.name}` ends")
    return head + lines[twice]


def _records(text: bytes, path: Path) -> tuple[list[dict[str, Any]], int]:
    """The records, and how many bytes they take. A bad line at the end is torn; one before a good one is damage."""
    records: list[dict[str, Any]] = []
    good = 0
    *whole, rest_of_one = text.split(b"\n")
    lines = [part + b"\n" for part in whole] + ([rest_of_one] if rest_of_one else [])
    for at, line in enumerate(lines):
        record, why = _record(line, len(records), path)
        if record is None:
            if any(_is_good(one) for one in lines[at:]):
                raise Corrupt(f"`{path}` line {len(records) + 1}: {why}")
            break
        records.append(record)
        good += len(line)
    return records, good


def _is_good(line: bytes) -> bool:
    """Whether it is a whole line, whatever its number."""
    found = LINE.fullmatch(line)
    return found is not None and int(found[3], 16) == zlib.crc32(found[4])


def _record(line: bytes, expected: int, path: Path) -> tuple[Optional[dict[str, Any]], str]:
    """The record of a line, or why it has none."""
    found = LINE.fullmatch(line)
    if found is None:
        return None, "it is no line of a log, or it is cut off"
    check_format(int(found[1]), path)
    if int(found[3], 16) != zlib.crc32(found[4]):
        return None, "its checksum does not fit its record"
    if int(found[2]) != expected:
        return None, f"its number is {int(found[2])}, and {expected} is next"
    try:
        record = json.loads(found[4])
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"`{path}` line {expected + 1}: {error}") from error
    return record, ""
