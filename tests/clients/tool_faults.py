"""The campaign of the suite `mcp-dojo` over all tasks, and its numbers. Started by `scripts/slow/tool-faults`.

    tool_faults.py --binary PATH --cache DIR --out DIR [TASK …]
"""

import argparse
import sys
from pathlib import Path

from runner import dojo, environments
from runner.aegis import Aegis

parser = argparse.ArgumentParser()
for name in ("binary", "cache", "out"):
    parser.add_argument(f"--{name}", required=True, type=lambda text: Path(text).resolve())
parser.add_argument("tasks", nargs="*")
options = parser.parse_args()
options.out.mkdir(parents=True)
aegis = Aegis(options.binary, options.cache / "logs-dojo", environments.quiet(options.cache, "dojo"))
folder = Path(__file__).resolve().parent / "dojo"
done = dojo.campaign(folder, aegis, options.cache, options.out / "run", tuple(options.tasks), 3 * 3600)
print(done.stderr[-3000:])
if done.code == 0:
    dojo.numbers(options.out / "run")
sys.exit(done.code)
