"""The suite `mcp-agents`: programs of six frameworks whose two agents call tools of an MCP server; Aegis says whose each call is.

A message to a tool server does not say for whom it is. Each program writes who calls what as it happens, and that is the truth. The model
is scripted (`mcp/agents/scripted.py`): it calls what a task lists. A call that both agents make in the same words at the same time is
nobody's to tell; all others must be joined to the right agent, or to none.
"""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from . import environments
from .aegis import Aegis, Done, run_directories
from .mcp import NAME as FOLDER
from .mcp import SURFACE, TIMES, Programs
from .report import Report

NAME = "mcp-agents"
PROGRAMS = {
    "with_langgraph": "mcp-agents-1",
    "with_autogen": "mcp-agents-1",
    "with_pydantic_ai": "mcp-agents-2",
    "with_openai_agents": "mcp-agents-2",
    "with_agent_framework": "mcp-agents-2",
    "with_ai_sdk": None,
}
# A call in the words of another: the tool, and its arguments.
Words = tuple[str, str]


def test(root: Path, aegis: Aegis, cache: Path, report: Report) -> None:
    report.heading(NAME)
    folder = root / FOLDER / "agents"
    programs = Programs(root, cache, aegis.environment)
    commands = {name: command(name, environment, folder, programs.modules, cache) for name, environment in PROGRAMS.items()}
    with programs.server("python-2", aegis.logs(NAME) / "server.log") as port, scripted(folder) as model:
        arguments = ["--upstream", model, "--mcp", f"calc=http://127.0.0.1:{port}/mcp"]
        with ThreadPoolExecutor(TIMES) as pool:
            done = list(pool.map(lambda name: ran(name, commands[name], folder, arguments, aegis), PROGRAMS))
    together = at_once(json.loads((folder / "tasks.json").read_text()))
    # Server and model are gone by now.
    with ThreadPoolExecutor(TIMES) as pool:
        replays = list(pool.map(lambda name, one: replayed(commands[name], one, folder, aegis), PROGRAMS, done))
    totals = [check(name, one, together, aegis, report) for name, one in zip(PROGRAMS, done)]
    for name, (whole, said) in zip(PROGRAMS, replays):
        report.check(f"{NAME}: {name}: replays offline, nothing missed and nothing left over", whole, said)
    joined, all_ = (sum(column) for column in zip(*totals))
    print(f"   joined {joined} of {all_} calls ({joined / max(all_, 1):.1%})", flush=True)


def command(name: str, environment: str | None, folder: Path, modules: Path, cache: Path) -> list[str]:
    if environment:
        return [str(environments.python(environment, cache)), f"{name}.py"]
    # Modules are looked up from where the program lies, so a copy of it lies beside them.
    environments.copied(folder / f"{name}.mjs", modules / f"{name}.mjs")
    return ["node", str(modules / f"{name}.mjs"), str(folder / "tasks.json")]


@contextmanager
def scripted(folder: Path) -> Iterator[str]:
    """The scripted model; gives its address."""
    process = subprocess.Popen([sys.executable, folder / "scripted.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def ran(name: str, command: list[str], folder: Path, arguments: list[str], aegis: Aegis) -> Done:
    logs = aegis.logs(name)
    done = aegis.call("run", *arguments, "--log-dir", logs, "--timeout", 90, "--", *command, folder=folder, seconds=120)
    made = run_directories(logs)
    done.directory = made[0] if len(made) == 1 else None
    return done


def replayed(command: list[str], done: Done, folder: Path, aegis: Aegis) -> tuple[bool, str]:
    """Let the record answer every call, of models and of tools; gives whether it did, and what was said."""
    if done.directory is None:
        return False, "there is no record"
    arguments = [done.directory, "--log-dir", aegis.logs("replay"), "--timeout", 60]
    again = aegis.call("replay", *arguments, "--", *command, folder=folder, seconds=90)
    told = [line for line in again.stderr.splitlines() if line.startswith(("missed", "unused", "served", "RESULT"))]
    return again.code == 0 and any(" 0 missed  0 of " in line for line in told), "\n".join(told)


def at_once(tasks: dict) -> set[Words]:
    """The calls that several agents make while the others are at work."""
    found = set()
    for of in tasks.values():
        asked = [{words(*call) for calls in rounds for call in calls} for rounds in of.values()]
        found |= {call for one in asked for other in asked if one is not other for call in one & other}
    return found


def check(name: str, done: Done, together: set[Words], aegis: Aegis, report: Report) -> tuple[int, int]:
    """Compare whom Aegis joined each call to with what the program wrote; gives how many it joined, and of how many."""
    what = f"{NAME}: {name}"
    ended = done.code == 0 and done.directory is not None and "FINAL: done" in done.stdout
    if not report.check(f"{what}: comes to its end", ended, f"{done.code}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"):
        return 0, 0
    truth: dict[Words, list[str]] = defaultdict(list)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            truth[words(said["tool"], said["arguments"])].append(said["agent"])
    seen: dict[Words, list[str | None]] = defaultdict(list)
    for step in aegis.show(done.directory)["steps"]:
        if step["surface"] == SURFACE and step["request"].get("method") == "tools/call":
            asked = step["request"]["params"]
            caller = step.get("called_by") or {}
            seen[words(asked["name"], asked["arguments"])].append(caller.get("agent"))
            if "agent" not in caller:
                print(f"   {name}: nobody's: {asked['name']} {json.dumps(asked['arguments'])} {caller.get('why', '')}")
    wanted = {call: len(agents) for call, agents in truth.items()}
    report.equal(f"{what}: each call that an agent makes is a step", {call: len(agents) for call, agents in seen.items()}, wanted)
    bad = [
        f"{call}: joined to {agents}, called by {truth[call]}"
        for call, agents in seen.items()
        if not (counted if call in together else ordered)(agents, truth[call])
    ]
    report.check(f"{what}: whatever is joined is joined to the agent that called", not bad, "\n".join(bad))
    joined, calls = sum(agent is not None for agents in seen.values() for agent in agents), sum(map(len, seen.values()))
    print(f"   {name}: joined {joined} of {calls} calls", flush=True)
    report.check(f"{what}: calls are joined", joined > 0, "none")
    return joined, calls


def ordered(joined: list[str | None], truth: list[str]) -> bool:
    """Calls in the same words came in this order."""
    return len(joined) == len(truth) and all(agent in (None, true) for agent, true in zip(joined, truth))


def counted(joined: list[str | None], truth: list[str]) -> bool:
    """Of calls at once the order is not known."""
    return all(joined.count(agent) <= truth.count(agent) for agent in joined if agent)


def words(tool: str, arguments: dict) -> Words:
    return tool, json.dumps(arguments, sort_keys=True)
