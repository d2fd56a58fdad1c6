"""Writes what `aegis test --format json` said as a table in Markdown, for a job's summary: each run, its result, what was found.

    summary.py RESULT.json
"""

import html
import json
import sys
from pathlib import Path

# Longest finding in the table, in characters, and most of a run: the file has all of it.
FINDING_MAX, FINDINGS_MAX = 300, 5
SIGNS = {"passed": "✅", "skipped": "⏭️", "inconclusive": "❔", "failed": "❌", "void": "⛔"}


def main():
    path = Path(sys.argv[1])
    text = path.read_text() if path.is_file() else ""
    if not text.strip():
        print("### aegis test: no result\n\nThe test did not begin, or was ended before its end. The job's log says why.")
        return
    told = json.loads(text)
    if "test" not in told:
        hint = told["error"]["hint"]
        print(f"### aegis test: no result\n\n{cell(told['error']['message'])}" + (f"\n\n{cell(hint)}" if hint else ""))
        return
    print(f"### aegis test {cell(told['test'])}: {'passed' if told['exit'] == 0 else 'failed'}\n")
    print("| plan | run | result | findings |\n|---|---|---|---|")
    for plan in told["plans"]:
        for run in plan["runs"]:
            result = f"{SIGNS.get(run['result'], '')} {run['result']}"
            print(f"| {cell(plan['plan'])} | {run['number']} | {result} | {'<br>'.join(findings(run))} |")
    print(f"\n{cell(told['result'])}")


def findings(run):
    """What was found, of equal findings the first; and what of the plan the program has nothing for."""
    says = []
    for finding in run["findings"]:
        at = finding.get("at")
        says.append((f"{at['agent']}, call {at['call']} (step {at['step']}): " if at else "") + finding["says"])
    if run["result"] != "skipped":
        idle = (one for one in run["injections"] if one.get("does_not_apply"))
        says += [f"not tested: {one['operator']} at {one['agents']}: {one['does_not_apply']}" for one in idle]
    says = list(dict.fromkeys(says))
    more = [f"and {len(says) - FINDINGS_MAX} more"] if len(says) > FINDINGS_MAX else []
    return [cell(one) for one in says[:FINDINGS_MAX]] + more


def cell(text):
    """Words of programs and models as words: no markup of theirs, no end of the cell or the row."""
    short = text if len(text) <= FINDING_MAX else text[: FINDING_MAX - 1] + "…"
    plain = html.escape(" ".join(short.split()), quote=False)
    return "".join(f"&#{ord(sign)};" if sign in "|`*_[]\\@~!:" else sign for sign in plain)


if __name__ == "__main__":
    main()
