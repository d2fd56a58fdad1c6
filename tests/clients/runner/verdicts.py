"""The client verdict on real clients: SDKs as they come, one that ignores Retry-After, ones that crash or give up.

Each case runs a program of `verdict/` under a plan of `verdict/plans/` and compares what `aegis run` says of it: the
result, the rules that hold, the exit code, the JUnit file; then what `aegis show --verdict` says later.
"""

import json
import xml.etree.ElementTree as ElementTree

from . import environments

NAME = "client-verdict"
PYTHON, NODE = "ask.py", "ask.mjs"
# Seconds until `aegis run` ends a program: 90, but where that is what the case is about, or the plan waits itself.
LIMITS = {"sulking": 15, "stall": 180}
# Program, its arguments, plan, result, the rules that hold.
CASES = [
    (PYTHON, ["whole"], "limited", "passed", {"healed"}),
    (PYTHON, ["streamed"], "limited", "passed", {"healed"}),
    (NODE, ["whole"], "limited", "passed", {"healed"}),
    (NODE, ["streamed"], "limited", "passed", {"healed"}),
    # One equal request at once after a failure may be another caller's; `aegis test` knows, by a run without faults (`verdict-pairs`).
    (PYTHON, ["hasty"], "limited", "passed", {"cannot_be_told"}),
    (PYTHON, ["whole"], "broken", "failed", {"retried", "crashed"}),
    (NODE, ["whole"], "broken", "failed", {"retried", "crashed"}),
    (PYTHON, ["pressing"], "overloaded", "passed", {"cannot_be_told"}),
    (PYTHON, ["whole"], "overloaded", "passed", {"healed"}),
    (NODE, ["whole"], "overloaded", "passed", {"healed"}),
    (PYTHON, ["sulking"], "broken", "failed", {"retried", "stuck"}),
    # Waits for a minute: no client here has a shorter limit of its own.
    (PYTHON, ["whole"], "stall", "failed", {"healed", "endured_stall"}),
    (PYTHON, ["careful"], "broken", "passed", {"retried", "gave_up"}),
    (PYTHON, ["whole"], "denied", "failed", {"crashed"}),
    (PYTHON, ["stubborn"], "denied", "failed", {"retried", "retried_non_retryable", "retry_storm", "gave_up"}),
    (PYTHON, ["streamed"], "cut", "failed", {"accepted_truncated"}),
    (NODE, ["streamed"], "cut", "failed", {"accepted_truncated"}),
    (PYTHON, ["quoting"], "cut", "failed", {"accepted_truncated"}),
    (PYTHON, ["checking"], "cut", "passed", {"cannot_be_told"}),
    (PYTHON, ["streamed"], "reset", "failed", {"crashed"}),
    (PYTHON, ["impatient"], "hang", "passed", {"cannot_be_told", "hung_up"}),
    (PYTHON, ["whole"], "never", "inconclusive", set()),
]


def test(root, aegis, cache, report):
    """Run every case."""
    report.heading("client verdict")
    folder = root / "verdict"
    commands = {
        PYTHON: [str(environments.python("surfaces", cache)), str(folder / PYTHON)],
        NODE: ["node", str(environments.node(cache) / NODE)],
    }
    for program, arguments, plan, result, rules in CASES:
        name = f"{program} {' '.join(arguments)} under {plan}"
        limit = LIMITS.get(arguments[0]) or LIMITS.get(plan, 90)
        command = [*commands[program], *arguments]
        case(command, limit, folder / "plans" / f"{plan}.toml", (result, rules), name, aegis, report)


def case(command, limit, plan, expected, name, aegis, report):
    result, rules = expected
    logs = aegis.logs("verdict")
    junit = logs / "junit.xml"
    options = ["--format", "json", "run", "--upstream", "simulator", "--simulator-seed", 7, "--log-dir", logs]
    options += ["--run", "r1", "--plan", plan, "--junit", junit, "--timeout", limit]
    done = aegis.call(*options, "--", *command, seconds=limit + 30)
    talk = f"{done.stdout[-1500:]}\n{done.stderr[-2500:]}"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not report.check(f"{name}: a result is said", lines, talk):
        return
    client = json.loads(lines[-1])["client"]
    seen = {remark["rule"] for call in client["calls"] for remark in call["remarks"]}
    same = (client["result"], seen) == (result, rules)
    report.check(f"{name}: {result}, {', '.join(sorted(rules)) or 'nothing met'}", same, f"{client}\n{talk}")
    report.equal(f"{name}: the exit code", done.code, 0 if result == "passed" else 1)
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    bad = int(suite.get("failures")) + int(suite.get("errors"))
    report.equal(f"{name}: the JUnit file agrees", bad > 0, result != "passed")
    later = aegis.call("show", logs / "r1", "--verdict", "--format", "json")
    report.check(f"{name}: it can be told later", json.loads(later.stdout)["client"] == client, later.stdout)
