"""The Python package `aegis`: its own tests, on recordings of the built binary; its types."""

import re
import subprocess
from pathlib import Path

from . import environments

NAME = "python-package"
REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGE = REPOSITORY / "python" / "aegis"


def test(aegis, cache, report):
    """Run its tests and check its types; it is found where it lies."""
    report.heading(NAME)
    python = str(environments.python("package", cache))
    variables = aegis.environment | {"AEGIS_BIN": aegis.binary, "PYTHONPATH": str(PACKAGE / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    for name, command in [
        ("its own tests pass", ["pytest", "-q", "-p", "no:cacheprovider", str(PACKAGE / "tests")]),
        ("its types hold, for Python 3.10 too", ["mypy", "--python-version", "3.10", "--cache-dir", str(aegis.logs("mypy"))]),
    ]:
        done = subprocess.run([python, "-m", *command], cwd=PACKAGE, env=variables, capture_output=True, text=True, timeout=300)
        report.check(f"{NAME}: {name}", done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:])
    said = subprocess.run([aegis.binary, "--version"], capture_output=True, text=True).stdout.split()[1]
    written = re.search('version = "(.*)"', (PACKAGE / "pyproject.toml").read_text())[1]
    report.equal(f"{NAME}: its version is the program's", written, said)
