"""Finds the program `aegis`."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Mapping

from .errors import BinaryMissing

# The program's file.
NAME = "aegis.exe" if os.name == "nt" else "aegis"
MISSING = """the program `aegis` was not found: not in AEGIS_BIN, not beside this Python ({scripts}), not on PATH.
Say where it is: AEGIS_BIN=/path/to/aegis
or install the wheel that carries it (`scripts/package` of Aegis makes one): pip install --no-index FILE.whl"""


def binary(environment: Mapping[str, str] = os.environ) -> str:
    """The path of `aegis`: AEGIS_BIN, else the one that was installed beside this Python, else the first on PATH.

    Raises `BinaryMissing`.
    """
    said = environment.get("AEGIS_BIN")
    if said:
        if not os.access(said, os.X_OK) or not Path(said).is_file():
            raise BinaryMissing(f"AEGIS_BIN is `{said}`, which is no program that can be run")
        return said
    scripts = sysconfig.get_path("scripts")
    beside = Path(scripts) / NAME
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which(NAME, path=environment.get("PATH"))
    if found:
        return found
    raise BinaryMissing(MISSING.format(scripts=scripts))
