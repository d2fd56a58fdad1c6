"""Runs real SDKs and real multi-agent programs against the built binary. Started by `scripts/test-clients`.

    run.py --binary PATH --cache DIR [--list] [--lanes N] [NAME …]      NAME: part of a suite's name; none means all

Suites run side by side, each in a process with a home of its own; what one prints is shown when it has ended.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import shutil
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from runner import a2a, author, campaigns, ci, desk, dojo, environments, foreign, formats, frames, gemini, learned, mcp, mcp_agents, monitor, package, programs, real_model, scale, sdks, service, shapes, training, verdict_pairs, verdicts, warm
from runner.aegis import Aegis
from runner.report import Report

ROOT = Path(__file__).resolve().parent


def suites():
    """Each suite's function and its first arguments, by name."""
    suites = {name: (sdks.test, name, ROOT) for name in sdks.names()}
    suites |= {name: (sdks.surfaces, name, ROOT) for name in sdks.SURFACES}
    suites[shapes.NAME] = (shapes.test, ROOT)
    suites[verdicts.NAME] = (verdicts.test, ROOT)
    suites[verdict_pairs.NAME] = (verdict_pairs.test, ROOT)
    suites[ci.NAME] = (ci.test, ROOT)
    suites[package.NAME] = (package.test,)
    suites[gemini.NAME] = (gemini.test, ROOT)
    suites[mcp.NAME] = (mcp.test, ROOT)
    suites[a2a.NAME] = (a2a.test, ROOT)
    suites[mcp_agents.NAME] = (mcp_agents.test, ROOT)
    suites[dojo.NAME] = (dojo.test, ROOT)
    suites[monitor.NAME] = (monitor.test,)
    suites[warm.NAME] = (warm.test, ROOT)
    suites |= {folder.name: (programs.test, folder) for folder in programs.folders(ROOT)}
    suites |= {
        f"{folder.name}_campaign": (campaigns.test, folder)
        for folder in programs.folders(ROOT)
        if (folder / "campaign.toml").is_file()
    }
    suites |= {f"learned_{folder.name}": (learned.test, folder) for folder in learned.folders(ROOT)}
    suites[desk.NAME] = (desk.test, ROOT)
    suites[foreign.NAME] = (foreign.test, ROOT)
    suites[formats.NAME] = (formats.test, ROOT)
    suites[real_model.NAME] = (real_model.test,)
    suites[f"{real_model.NAME}-decoys"] = (real_model.test_decoys,)
    suites[author.NAME] = (author.test,)
    suites[training.NAME] = (training.test, ROOT)
    suites[scale.NAME] = (scale.test, ROOT)
    suites[service.NAME] = (service.test, ROOT)
    suites[frames.NAME] = (frames.test, ROOT)
    suites[frames.CODEX] = (frames.test_codex, ROOT)
    return suites


def main():
    options, names = arguments(), list(suites())
    if options.list:
        print("\n".join(names))
        return 0
    chosen = [name for name in names if not options.names or any(part in name for part in options.names)]
    if not chosen:
        print(f"no suite is called like {options.names}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    shutil.rmtree(options.cache / "logs", ignore_errors=True)
    report = Report()
    if options.lanes == 1 or len(chosen) == 1:
        for name in chosen:
            report.add(suite(name, options))
        return report.finish()
    # The longest first, so that no lane is left with one at the end.
    chosen.sort(key=lambda name: not name.startswith(real_model.NAME))
    with ProcessPoolExecutor(options.lanes, multiprocessing.get_context("fork")) as lanes:
        ended = {lanes.submit(printed, name, options): name for name in chosen}
        for one in as_completed(ended):
            text, part = one.result()
            print(text, end="", flush=True)
            report.add(part)
    return report.finish()


def suite(name, options):
    """Run one suite; gives its report."""
    test, *rest = suites()[name]
    report = Report()
    aegis = Aegis(options.binary, options.cache / "logs", environments.quiet(options.cache, name))
    try:
        test(*rest, aegis, options.cache, report)
    except Exception as error:
        report.check(f"{name}: the suite ends", False, "".join(traceback.format_exception(error)[-6:]))
    print(f"   {name}: {report.seconds():.0f} s", flush=True)
    return report


def printed(name, options):
    """Run one suite; gives what it printed, and its report."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        report = suite(name, options)
    return text.getvalue(), report


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--cache", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--list", action="store_true", help="only list the suites")
    parser.add_argument("--lanes", type=int, default=min(2, os.cpu_count() or 1), help="suites at one time")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"no binary at `{options.binary}`")
    return options


if __name__ == "__main__":
    sys.exit(main())
