"""Unpacks zstd: by the standard library (Python 3.14), by a package, or by the program `zstd`."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from typing import Any, Callable, Optional

from .errors import Corrupt, PackageMissing

MISSING = """`{name}` is compressed, and there is nothing here that reads zstd (Python has it from 3.14 on).
Type one of these: pip install zstandard
                   apt-get install zstd"""
# Modules, and what in them makes a reader of one frame.
READERS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("compression.zstd", lambda module: module.ZstdDecompressor()),
    ("backports.zstd", lambda module: module.ZstdDecompressor()),
    ("zstandard", lambda module: module.ZstdDecompressor().decompressobj()),
    ("pyzstd", lambda module: module.ZstdDecompressor()),
)


def unpacked(packed: bytes, name: str, may_be_cut: bool = False) -> bytes:
    """The bytes of a row of zstd frames. `name`: the file's, for messages. `may_be_cut`: a last frame that is cut off is left out.

    Raises `Corrupt`, and `PackageMissing` where nothing here reads zstd.
    """
    for module, make in READERS:
        try:
            reader = importlib.import_module(module)
        except ImportError:
            continue
        return _by_frames(packed, name, may_be_cut, lambda: make(reader))
    program = shutil.which("zstd")
    if program is None:
        raise PackageMissing(MISSING.format(name=name))
    return _by_program(packed, name, may_be_cut, program)


def _by_frames(packed: bytes, name: str, may_be_cut: bool, reader: Callable[[], Any]) -> bytes:
    whole, rest = [], packed
    while rest:
        frame, why = reader(), "it is cut off"
        try:
            piece: Optional[bytes] = frame.decompress(rest)
        except Exception as error:  # Each module has an error of its own.
            piece, why = None, str(error)
        if piece is None or not frame.eof:
            if may_be_cut:
                break
            raise Corrupt(f"`{name}` is damaged: {why}")
        whole.append(piece)
        rest = frame.unused_data
    return b"".join(whole)


def _by_program(packed: bytes, name: str, may_be_cut: bool, program: str) -> bytes:
    done = subprocess.run([program, "-dc"], input=packed, capture_output=True)
    if done.returncode == 0:
        return done.stdout
    if may_be_cut:
        # The lines that came whole: those of a frame that is cut off stand in the log, too.
        return done.stdout[: done.stdout.rfind(b"\n") + 1]
    raise Corrupt(f"`{name}` is damaged: {done.stderr.decode(errors='replace').strip()}")
