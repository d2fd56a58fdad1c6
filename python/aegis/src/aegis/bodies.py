"""Bodies from records: the start of an earlier body, what is new, the end of that earlier body; byte for byte."""

from __future__ import annotations

import base64
import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Optional

from .errors import Corrupt, PackageMissing

HASH = re.compile("[0-9a-f]{32}")
# Bodies that are kept whole once they were put together, and their bytes at most; a single one may be longer.
WHOLE, WHOLE_BYTES = 64, 8 << 20
# How many bodies one may grow from, each from the one before, without being held whole: so many, and one more for each so many bytes
# of it. To put a body together then costs no more than to read it, however long a talk is.
DEEPEST, BYTES_A_LEVEL = 32, 256


def escaped(text: str, style: int) -> bytes:
    """A text as it stands in JSON, without quotes. `style`: 0 as few escapes as can be, 1 only ASCII; each as `json.dumps` writes it."""
    if style not in (0, 1):
        raise Corrupt(f"text style {style} is not known")
    return json.dumps(text, ensure_ascii=style == 1)[1:-1].encode()


@dataclass(frozen=True)
class Delta:
    """A body as it stands in the log."""

    parent: Optional[str]
    shared: int
    middle: bytes
    shared_end: int
    length: int
    exact: bool
    frames: tuple[tuple[int, int], ...]
    depth: int = 0
    """How many bodies it grows from, each from the one before."""


class Body(NamedTuple):
    """What a record says of a body."""

    hash: str
    """xxh3-128 of its bytes, 32 hex digits."""
    exact: bool
    """Whether its bytes are those that passed: nothing was masked or cut."""
    frames: tuple[tuple[int, int], ...]
    """Of an event stream, each event's arrival (µs since the request's) and length in bytes."""


class Library:
    """The texts and bodies of a log, in the order of its records. What bodies share is held once."""

    def __init__(self, directory: Path) -> None:
        self._blobs = directory / "blobs"
        self._texts: dict[str, str] = {}
        self._bodies: dict[str, Delta] = {}
        self._whole: OrderedDict[str, bytes] = OrderedDict()
        self._whole_bytes = 0

    def add_text(self, record: dict[str, Any]) -> None:
        """Take in a record of kind `text`."""
        self._texts[record["hash"]] = record["text"]

    def add_body(self, record: dict[str, Any]) -> Body:
        """Take in a body where a record has one. Raises `Corrupt` where it refers to what is not there."""
        name, length = record["hash"], record["len"]
        segments, frames, parent = record.get("segs", ()), record.get("frames", ()), record.get("parent")
        if parent is None and not segments and not frames and length:
            known = self._get(name)
            return Body(name, known.exact, known.frames)
        middle = bytearray()
        for segment in segments:
            middle += self._segment(segment)
        arrivals = self._add_frames(frames, middle)
        shared, shared_end = record.get("shared", 0), record.get("shared_end", 0)
        before = self._get(parent) if parent is not None else None
        whole, depth = (before.length, before.depth + 1) if before else (0, 0)
        if shared > whole or shared_end > whole or shared + len(middle) + shared_end != length:
            raise Corrupt(f"body `{name}` does not fit its length")
        exact = not record.get("redacted") and record.get("cut_from") is None
        if name not in self._bodies:
            self._bodies[name] = Delta(parent, shared, bytes(middle), shared_end, length, exact, arrivals, depth)
            if depth > DEEPEST + length // BYTES_A_LEVEL:
                self._bodies[name] = Delta(None, 0, self.read(name), 0, length, exact, arrivals)
        return Body(name, exact, arrivals)

    def read(self, name: str) -> bytes:
        """A body's bytes, by its hash. Takes as long as it has pieces. Raises `Corrupt` where it is not in the log."""
        if name in self._whole:
            self._whole.move_to_end(name)
            return self._whole[name]
        body = self._get(name)
        if body.parent is None:
            return body.middle
        before = self._whole.get(body.parent)
        if before is None:
            found = b"".join(self._pieces(name, body))
        else:
            found = before[: body.shared] + body.middle + before[len(before) - body.shared_end :]
        self._whole[name] = found
        self._whole_bytes += len(found)
        while len(self._whole) > WHOLE or (len(self._whole) > 1 and self._whole_bytes > WHOLE_BYTES):
            self._whole_bytes -= len(self._whole.popitem(last=False)[1])
        return found

    def verify(self) -> int:
        """Hash every text and body and compare; gives how many. Raises `Corrupt`, and `PackageMissing` without `xxhash`."""
        try:
            import xxhash
        except ImportError:
            raise PackageMissing("hashes of bodies are xxh3-128, which Python lacks. Type: pip install xxhash") from None
        for name, text in self._texts.items():
            if xxhash.xxh3_128_hexdigest(escaped(text, 0)) != name:
                raise Corrupt(f"text `{name}` does not fit its hash")
        for name in self._bodies:
            if xxhash.xxh3_128_hexdigest(self.read(name)) != name:
                raise Corrupt(f"body `{name}` does not fit its hash")
        return len(self._texts) + len(self._bodies)

    def _get(self, name: str) -> Delta:
        try:
            return self._bodies[name]
        except KeyError:
            raise Corrupt(f"body `{name}` is not in the log") from None

    def _pieces(self, name: str, body: Delta) -> list[bytes]:
        """The pieces of a body, from those before it; without recursion, for a talk may be thousands of bodies deep."""
        pieces: list[bytes] = []
        # From the last to the first: a range of a body, or bytes.
        left: list[tuple[str, int, int] | bytes] = [(name, 0, body.length)]
        while left:
            piece = left.pop()
            if isinstance(piece, bytes):
                pieces.append(piece)
                continue
            name, start, end = piece
            body = self._get(name)
            border = body.length - body.shared_end
            if body.parent is not None and end > border:
                behind = self._get(body.parent).length - body.length
                left.append((body.parent, max(start, border) + behind, end + behind))
            own = body.middle[max(start - body.shared, 0) : max(min(end, border) - body.shared, 0)]
            if own:
                left.append(own)
            if body.parent is not None and start < body.shared:
                left.append((body.parent, start, min(end, body.shared)))
        return pieces

    def _add_frames(self, frames: Any, bytes_: bytearray) -> tuple[tuple[int, int], ...]:
        """Append the events of a stream, each a difference to the one before; gives arrivals and lengths."""
        arrivals, before = [], b""
        for at, start, end, segment in frames:
            if start > len(before) or end > len(before):
                raise Corrupt("an event shares more than the one before it has")
            before = before[:start] + self._segment(segment) + before[len(before) - end :]
            arrivals.append((at, len(before)))
            bytes_ += before
        return tuple(arrivals)

    def _segment(self, segment: Any) -> bytes:
        """The bytes of one segment."""
        if isinstance(segment, str):
            return segment.encode()
        if isinstance(segment, list):
            name, style = segment[0], segment[1] if len(segment) > 1 else 0
            if name not in self._texts:
                raise Corrupt(f"text `{name}` is not in the log")
            return escaped(self._texts[name], style)
        if "b64" in segment:
            return base64.b64decode(str(segment["b64"]), validate=True)
        name = str(segment.get("blob", ""))
        if not HASH.fullmatch(name):
            raise Corrupt(f"a segment of an unknown kind: {segment}")
        try:
            return (self._blobs / name).read_bytes()
        except OSError as error:
            raise Corrupt(f"blob `{name}` cannot be read: {error}") from error
