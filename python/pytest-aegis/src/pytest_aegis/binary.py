"""Finds the program `aegis`."""

import os
import shutil
import sysconfig
from pathlib import Path

MISSING = """the program `aegis` was not found: not in AEGIS_BIN, not beside this Python ({scripts}), not on PATH.
Say where it is: AEGIS_BIN=/path/to/aegis
or install the wheel that carries it (`scripts/package` of Aegis makes one): pip install --no-index FILE.whl"""


class BinaryMissing(Exception):
    """There is no `aegis`; the message says what to do."""


def binary(environment=os.environ):
    """The path of `aegis`: AEGIS_BIN, else the one that was installed beside this Python, else the first on PATH."""
    said = environment.get("AEGIS_BIN")
    if said:
        if not os.access(said, os.X_OK) or not Path(said).is_file():
            raise BinaryMissing(f"AEGIS_BIN is `{said}`, which is no program that can be run")
        return said
    scripts = sysconfig.get_path("scripts")
    beside = Path(scripts) / "aegis"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("aegis", path=environment.get("PATH"))
    if found:
        return found
    raise BinaryMissing(MISSING.format(scripts=scripts))
