"""Runs real SDKs and real multi-agent programs against the built binary. Started by `scripts/test-clients`.

    run.py --binary PATH --cache DIR [--list] [NAME …]      NAME: part of a suite's name; none means all
"""

import argparse
import shutil
import sys
from pathlib import Path

from runner import campaigns, ci, environments, foreign, formats, learned, monitor, programs, real_model, scale, sdks, shapes, training, verdicts, warm
from runner.aegis import Aegis
from runner.report import Report

ROOT = Path(__file__).resolve().parent


def main():
    options = arguments()
    suites = {name: (sdks.test, name, ROOT) for name in sdks.names()}
    suites |= {name: (sdks.surfaces, name, ROOT) for name in sdks.SURFACES}
    suites[shapes.NAME] = (shapes.test, ROOT)
    suites[verdicts.NAME] = (verdicts.test, ROOT)
    suites[ci.NAME] = (ci.test, ROOT)
    suites[monitor.NAME] = (monitor.test,)
    suites[warm.NAME] = (warm.test, ROOT)
    suites |= {folder.name: (programs.test, folder) for folder in programs.folders(ROOT)}
    suites |= {
        f"{folder.name}_campaign": (campaigns.test, folder)
        for folder in programs.folders(ROOT)
        if (folder / "campaign.toml").is_file()
    }
    suites |= {f"learned_{folder.name}": (learned.test, folder) for folder in learned.folders(ROOT)}
    suites[foreign.NAME] = (foreign.test, ROOT)
    suites[formats.NAME] = (formats.test, ROOT)
    suites[real_model.NAME] = (real_model.test,)
    suites[training.NAME] = (training.test, ROOT)
    suites[scale.NAME] = (scale.test, ROOT)
    if options.list:
        print("\n".join(suites))
        return 0
    chosen = [name for name in suites if not options.names or any(part in name for part in options.names)]
    if not chosen:
        print(f"no suite is called like {options.names}; there are: {', '.join(suites)}", file=sys.stderr)
        return 2
    scratch = options.cache / "logs"
    shutil.rmtree(scratch, ignore_errors=True)
    aegis = Aegis(options.binary, scratch, environments.quiet(options.cache))
    report = Report()
    for name in chosen:
        test, *rest = suites[name]
        try:
            test(*rest, aegis, options.cache, report)
        except Exception as error:
            report.check(f"{name}: the suite ends", False, f"{type(error).__name__}: {error}")
    return report.finish()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--cache", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--list", action="store_true", help="only list the suites")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"no binary at `{options.binary}`")
    return options


if __name__ == "__main__":
    sys.exit(main())
