"""Pairs of client and fault whose truth is known: what `aegis test` says of each, in result and in words.

The table is `verdict_pairs/table.py`, the clients lie beside it, a scripted service answers them. `AEGIS_PAIRS="WORD …"` runs only
pairs with these words in their names, and prints what was said.
"""

import json
import os
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from verdict_pairs.table import FAULTS, PAIRS, PASSED
from verdict_pairs.upstream import served

from . import environments

NAME = "verdict-pairs"
# Which environment a program needs; what is not here needs the standard library alone.
SDK = {"sdk_": "surfaces", "agents_": "openai-agents"}
MODULES = {"pair_voters.mjs": "sdk_node", "pair_ai_sdk.mjs": "frameworks_node"}
# Pairs at one time: most of what they do is to wait.
LANES = 4
# How a verdict says that requests alone do not show it.
UNTOLD = re.compile("cannot be told|not seen on the wire")


@dataclass
class Said:
    """What `aegis test` made of one run of a client."""

    code: int
    result: str
    rules: set
    defects: set
    hits: int
    text: str

    @property
    def untold(self):
        return UNTOLD.search(self.text.replace("_", " ")) is not None


def test(root, aegis, cache, report):
    """Run every pair, a few at a time; report them in the table's order."""
    report.heading(NAME)
    wanted = os.environ.get("AEGIS_PAIRS", "")
    pairs = [pair for pair in PAIRS if all(word in pair.name for word in wanted.split())]
    doubled = [name for name, many in Counter(pair.name for pair in PAIRS).items() if many > 1]
    report.check(f"{len(pairs)} of {len(PAIRS)} pairs, each once", pairs and not doubled, doubled)
    folder = root / NAME.replace("-", "_")
    commands = {pair: command(pair, folder, cache) for pair in pairs}
    logs = aegis.logs("pairs")
    with served() as url, ThreadPoolExecutor(LANES) as lanes:
        runs = [lanes.submit(run, pair, commands[pair], url, logs / f"p{number}", aegis) for number, pair in enumerate(pairs)]
        untold = [judged(pair, one, bool(wanted), report) for pair, one in zip(pairs, runs, strict=True)].count(True)
    print(f"   of {len(pairs)} pairs, {untold} cannot be told or only in part", flush=True)


def command(pair, folder, cache):
    """How a pair's program is started; its environment is made if it is missing."""
    program, *arguments = pair.command.split()
    if program in MODULES:
        modules = environments.node(cache, MODULES[program])
        # Modules are looked up from where the program lies, so a copy of it lies beside them.
        environments.copied(folder / program, modules / program)
        return ["node", str(modules / program), *arguments]
    needs = next((name for start, name in SDK.items() if program.startswith(start)), "none")
    return [str(environments.python(needs, cache)), str(folder / program), *arguments]


def run(pair, command, url, logs, aegis):
    """One run of a client under its fault."""
    logs.mkdir()
    plan = pair.fault
    if plan in FAULTS:
        plan = logs / "plan.toml"
        plan.write_text(f'format = 1\nseed = 7\n\n[[injection]]\nagent = "*"\n{FAULTS[pair.fault]}\n')
    options = ["--format", "json", "test", plan, "--name", "pair", "--upstream", url, "--log-dir", logs, "--timeout", pair.limit]
    options += ["--check", pair.check] if pair.check else []
    done = aegis.call(*options, "--", *command, folder=logs, seconds=pair.limit + 60)
    said = json.loads(done.stdout)["plans"][0]["runs"][0]
    remarks = [remark for call in said["client"]["calls"] for remark in call["remarks"]]
    shown = aegis.call("show", logs / "pair" / said["run"], "--verdict", folder=logs).stdout
    printed = (logs / "pair" / f"{said['run']}.stderr.txt").read_text()
    return Said(
        code=done.code,
        result=said["result"],
        rules={remark["rule"] for remark in remarks},
        defects={remark["rule"] for remark in remarks if remark["weight"] == "defect"},
        hits=sum(injection["delivered"] for injection in said["injections"]),
        text="\n".join([shown, *(f"finding: {finding}" for finding in said["findings"]), printed[-800:]]),
    )


def judged(pair, one, loud, report):
    """One line a pair; gives whether its verdict says that something cannot be told."""
    expected = " ".join([pair.result, *pair.named.split(), *(f"not:{rule}" for rule in pair.never.split())])
    name = f"{pair.name}: {expected}{' (or: cannot be told)' if pair.untold else ''}"
    try:
        said = one.result()
    except Exception as error:
        return report.check(name, False, f"{type(error).__name__}: {error}")
    wrong = faults(pair, said)
    seen = f"said: {said.result}, {', '.join(sorted(said.rules)) or 'nothing'}; {said.hits} hit; exit code {said.code}"
    report.check(name, not wrong, "\n".join([*wrong, seen, clipped(said.text)]))
    if loud and not wrong:
        print("\n".join(f"          {line}" for line in [seen, *clipped(said.text).splitlines()]))
    return said.untold


def clipped(text):
    """The beginning and the end: a client that asks for ever makes a thousand lines."""
    lines = text.splitlines()
    return "\n".join(lines if len(lines) <= 30 else [*lines[:12], f"… {len(lines) - 24} lines …", *lines[-12:]])


def faults(pair, said):
    """What is wrong with what was said of a pair."""
    if pair.untold and said.untold and not said.defects:
        return [] if said.result in (pair.result, PASSED) else [f"{said.result}, although it cannot be told"]
    wrong = [] if said.result == pair.result else [f"{said.result}, expected {pair.result}"]
    wrong += [f"exit code {said.code}"] if said.code != (0 if said.result == PASSED else 1) else []
    wrong += [f"not named: {rule}" for rule in pair.named.split() if not said.rules & set(rule.split("|"))]
    wrong += [f"named: {rule}" for rule in pair.never.split() if rule in said.rules]
    wrong += [f"says: {words}" for words in pair.silent.split("|") if words and words in said.text]
    wrong += [f"{said.hits} calls were hit, expected {pair.hits}"] if pair.hits not in (None, said.hits) else []
    return wrong
