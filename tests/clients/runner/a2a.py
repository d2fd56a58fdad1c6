"""The suite `a2a`: clients and agents of the official A2A SDKs, of 1.0 and 0.3, directly and through the proxy.

Each client at each agent. A tap before the proxy and one behind it keep what passed; an agent's card names the tap before it, so a
client that leaves the proxy would be seen there. The programs in `a2a/` print what their SDK gave them, which is the same both ways.
"""

import base64
import json
import select
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from . import environments
from .aegis import Aegis, run_directories
from .mcp import PACKAGE, kept, passed, posts
from .report import Report
from .wire import Exchange, Tap

NAME = "a2a"
SDKS = ("python-1", "python-03", "typescript-1", "typescript-03")
MANY = 300
TIMES = 2


class Programs:
    """The commands of agents and clients."""

    def __init__(self, root: Path, cache: Path, environment: dict[str, str]) -> None:
        self.folder = root / NAME
        self.reader = root / "mcp" / "recorded.py"
        self.pythons = {f"python-{sdk}": str(environments.python(f"a2a-{sdk}", cache)) for sdk in ("1", "03")}
        self.modules = environments.node(cache, NAME)
        self.environment = environment

    def command(self, program: str, sdk: str, *arguments: str) -> list[str]:
        if sdk in self.pythons:
            return [self.pythons[sdk], str(self.folder / f"{program}.py"), *arguments]
        version = sdk.partition("-")[2]
        words = [version, *arguments] if program == "server" else [arguments[0], version, *arguments[1:]]
        return ["node", str(self.modules / f"{program}.mjs"), *words]

    @contextmanager
    def server(self, sdk: str, log: Path) -> Iterator[Tap]:
        """An agent until the end of the block, and the tap that its card names."""
        tap = Tap(0)
        with open(log, "w") as errors:
            command = self.command("server", sdk, str(tap.port))
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=self.environment)
            try:
                readable, _, _ = select.select([process.stdout], [], [], 30)
                line = process.stdout.readline() if readable else ""
                if not line:
                    raise RuntimeError(f"the agent {sdk} told no port: {log.read_text()[-2000:]}")
                tap.before = int(line)
                yield tap
            finally:
                process.kill()
                process.communicate()
                tap.close()

    def client(self, sdk: str, url: str, *calls: str) -> list[dict[str, Any]]:
        """What a client prints."""
        command = self.command("client", sdk, url, *calls)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.environment)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return lines if done.returncode == 0 else [*lines, {"call": "the program", "error": done.stderr[-2000:]}]

    def recorded(self, directory: Path) -> list[dict[str, Any]]:
        """The attempts of a run, as the package `aegis` reads them."""
        command = [self.pythons["python-1"], str(self.reader), str(directory)]
        environment = self.environment | {"PYTHONPATH": str(PACKAGE)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        if done.returncode:
            raise RuntimeError(f"{directory}: {done.stderr[-2000:]}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for line in lines:
            for key in ("request", "reply", "delivered"):
                line[key] = None if line[key] is None else base64.b64decode(line[key])
        return lines


def test(root: Path, aegis: Aegis, cache: Path, report: Report) -> None:
    report.heading(NAME)
    programs = Programs(root, cache, aegis.environment)
    scratch = aegis.logs(NAME)
    with ExitStack() as stack:
        behind = {sdk: stack.enter_context(programs.server(sdk, scratch / f"{sdk}.log")) for sdk in SDKS}
        options = [word for sdk, tap in behind.items() for word in ("--a2a", f"{sdk}=http://127.0.0.1:{tap.port}")]
        address, logs = stack.enter_context(aegis.serve(name="a2a-clean", more=options))
        pairs = Pairs(programs, behind, Tap(int(address.rsplit(":", 1)[1])))
        with ThreadPoolExecutor(TIMES) as pool:
            results = list(pool.map(pairs.called, SDKS))
        many = list(map(pairs.many, SDKS))
        planned, plans = stack.enter_context(aegis.serve(plan=root / NAME / "plans" / "edits.toml", name="a2a-edits", more=options))
        started = [check_started(programs, sdk, behind["python-1"], aegis) for sdk in ("python-1", "typescript-03")]
        stated = programs.client("typescript-1", f"{address}/r/stated/a/planner/a2a/python-1", "say", "stream")
        edited = {(client, server): pairs.edited(client, server, planned) for server in SDKS for client in SDKS}
    for result in [*(one for of in results for one in of), *many]:
        result.check(report, programs, logs, aegis)
    # Each thirtieth call is two: the stream of a task, and its cancellation.
    report.equal(f"{NAME}: {MANY} calls of each SDK are as many POSTs", [len(posts(one.behind)) for one in many], [MANY + MANY // 30] * len(SDKS))
    for name, seen in started:
        report.equal(f"{NAME}: {name} finds the peer at AEGIS_A2A_WEATHER of `aegis run`", seen, ([], {("a2a", "a2a/weather")}))
    report.equal(f"{NAME}: an address that states the caller is followed by the card", wrong(stated), [])
    callers = [step.get("called_by") for step in aegis.show(logs / "stated")["steps"]]
    report.check(f"{NAME}: it is called by whom the address states", len(callers) == 2 and all("planner" in json.dumps(one) for one in callers), callers)
    report.heading(f"{NAME}: edits")
    for (client, server), (lines, exchanges) in edited.items():
        check_edits(client, server, lines, exchanges, plans / run_name(client, server), report)


def check_started(programs: Programs, sdk: str, peer: Tap, aegis: Aegis) -> tuple[str, tuple[list[str], set[tuple[str, str]]]]:
    """What is wrong with what a client prints that `aegis run` has started, and again from the record; and whose its steps are."""
    command = shlex.join(programs.command("client", sdk, "PEER", "say", "task", "stream")).replace("PEER", '"$AEGIS_A2A_WEATHER"')
    logs = aegis.logs("a2a-run")
    arguments = ["--upstream", "simulator", "--log-dir", logs, "--a2a", f"weather=http://127.0.0.1:{peer.port}"]
    done = aegis.call("run", *arguments, "--", "sh", "-c", f"exec {command}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"call"')]
    attempts = [attempt for run in run_directories(logs) for attempt in programs.recorded(run)]
    bad = wrong(lines) if len(lines) == len(attempts) == 3 else [done.stdout[-500:], done.stderr[-1500:]]
    # The record has the card, too, without which a client asks nothing; no peer is there.
    asked = len(peer.exchanges())
    again = aegis.call("replay", run_directories(logs)[0], "--log-dir", aegis.logs("a2a-replay"), "--", "sh", "-c", f"exec {command}")
    replayed = [json.loads(line) for line in again.stdout.splitlines() if line.startswith('{"call"')]
    if again.code or wrong(replayed) or len(replayed) != 3 or len(peer.exchanges()) != asked:
        bad += ["the replay", again.stdout[-500:], again.stderr[-1500:]]
    return sdk, (bad, {(attempt["surface"], attempt["agent"]) for attempt in attempts})


def run_name(client: str, server: str, *more: str) -> str:
    return "-".join([client, "at", server, *more])


class Called:
    """What one client did at one agent: what it printed, and what passed before and behind the proxy."""

    def __init__(self, server: str, run: str, direct: list[dict], proxied: list[dict], before: list[Exchange], behind: list[Exchange]):
        self.server, self.run = server, run
        self.direct, self.proxied = direct, proxied
        self.before, self.behind = before, behind

    def check(self, report: Report, programs: Programs, logs: Path, aegis: Aegis) -> None:
        what = f"{NAME}: {self.run}"
        before, behind = posts(self.before), posts(self.behind)
        report.check(f"{what}: prints the same directly and through the proxy", self.direct == self.proxied, self.differences())
        report.equal(f"{what}: what it prints is right", wrong(self.proxied), [])
        report.check(f"{what}: requests and replies pass byte for byte", *passed(before, behind))
        base = f"/r/{self.run}/a2a/{self.server}"
        asked = Counter((exchange.method, exchange.path.removeprefix(base) or "/") for exchange in self.before)
        came = Counter((exchange.method, exchange.path) for exchange in self.behind)
        report.equal(f"{what}: only the proxy comes to the agent, for the card too", came, asked)
        attempts = programs.recorded(logs / self.run)
        report.check(f"{what}: each of {len(before)} POSTs is recorded byte for byte", *kept(before, behind, attempts))
        named = {(attempt["surface"], attempt["agent"]) for attempt in attempts}
        report.equal(f"{what}: by the peer", named, {("a2a", f"a2a/{self.server}")})
        shown = [attempt for step in aegis.show(logs / self.run)["steps"] for attempt in step["attempts"]]
        report.equal(f"{what}: `aegis show` tells as many", len(shown), len(attempts))

    def differences(self) -> str:
        pairs = [(one, other) for one, other in zip(self.direct, self.proxied) if one != other]
        told = [json.dumps(line, ensure_ascii=False)[:1500] for pair in pairs for line in pair]
        return "\n".join([*told, f"{len(self.direct)} lines, {len(self.proxied)} lines"])


class Pairs:
    """Runs clients at agents. One agent's clients come one after the other: its tap is read for each."""

    def __init__(self, programs: Programs, behind: dict[str, Tap], front: Tap) -> None:
        self.programs, self.behind, self.front = programs, behind, front

    def called(self, server: str) -> list[Called]:
        return [self.pair(client, server) for client in SDKS]

    def many(self, sdk: str) -> Called:
        return self.pair(sdk, sdk, f"many={MANY}")

    def pair(self, client: str, server: str, *calls: str) -> Called:
        run, tap = run_name(client, server, *("many" for _ in calls)), self.behind[server]
        direct = self.programs.client(client, f"http://127.0.0.1:{tap.port}", *calls)
        tap.forget()
        proxied = self.programs.client(client, f"http://127.0.0.1:{self.front.port}/r/{run}/a2a/{server}", *calls)
        before = [exchange for exchange in self.front.exchanges() if exchange.path.startswith(f"/r/{run}/")]
        return Called(server, run, direct, proxied, before, tap.exchanges())

    def edited(self, client: str, server: str, address: str) -> tuple[list[dict], list[Exchange]]:
        """What a client prints under the plan, and what came to the agent."""
        tap = self.behind[server]
        tap.forget()
        lines = self.programs.client(client, f"{address}/r/{run_name(client, server)}/a2a/{server}", *EDITS)
        return lines, posts(tap.exchanges())


def check_edits(client: str, server: str, lines: list[dict], behind: list[Exchange], directory: Path, report: Report) -> None:
    """The caller sees each edited reply, the agent each edited request; the label names the peer once for each."""
    what = f"{NAME}: edits, {run_name(client, server)}"
    for number, (call, truth) in enumerate(EDITED):
        line = lines[number] if number < len(lines) else {}
        report.check(f"{what}: {number}. `{call}` is edited", not wrong([line], {call: truth}), json.dumps(line, ensure_ascii=False)[:1500])
    asked = [exchange.request.body.decode() for exchange in behind]
    report.check(f"{what}: the agent was asked the edited words", any("say Gasse ☃" in body for body in asked), asked[:1])
    label = directory / "label.json"
    named = Counter(error["agent"] for error in json.loads(label.read_text())["errors"]) if label.is_file() else None
    report.equal(f"{what}: the label names the peer for each edit", named, Counter({f"a2a/{server}": PLANNED}))


def items(line: dict[str, Any]) -> list[Any]:
    """The results of a line without what their kind is called, in whatever they are wrapped; streams event by event."""
    return [bare(one) for one in flat(line["result"])]


def flat(value: Any) -> list[Any]:
    return [one for inner in value for one in flat(inner)] if isinstance(value, list) else [value]


def bare(told: dict[str, Any]) -> dict[str, Any]:
    if "payload" in told:
        return told["payload"]["value"]
    return next((told[kind] for kind in ("task", "message", "statusUpdate", "artifactUpdate") if isinstance(told.get(kind), dict)), told)


def texts(value: Any) -> list[str]:
    """All texts but those of the history, those of artifacts first."""
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    if not isinstance(value, dict):
        return []
    if value.get("$case") == "text":
        return [value["value"]]
    found = [([inner] if key == "text" else texts(inner)) for key, inner in sorted(value.items()) if key != "history"]
    return [text for one in found for text in one]


def said(line: dict[str, Any]) -> list[str]:
    return texts(items(line))


NUMBERS = {1: "submitted", 2: "working", 3: "completed", 4: "failed", 5: "canceled", 6: "input_required"}


def states(line: dict[str, Any]) -> list[str]:
    """The states that results tell, of whichever version."""
    found = [item["status"]["state"] for item in items(line) if "status" in item]
    return [NUMBERS.get(state, str(state)).lower().removeprefix("task_state_").replace("-", "_") for state in found]


STREAM = ["Looking at the sky.", "Rain in Berlin, ", "then sun in Köln, ", "then snow ☃.", "Counting clouds.", "All is told."]
FORECAST = ["Rain in Berlin.", "The forecast for Berlin is there."]
# What each call's line must say, whichever SDKs are at the ends.
TRUTH: dict[str, Callable[[dict], bool]] = {
    "card": lambda line: line["result"]["name"] == "weather" and '"URL/' in json.dumps(line) and "127.0.0.1" not in json.dumps(line),
    "say": lambda line: said(line) == ["You said Straße ☃."],
    "long": lambda line: said(line) == ["0123456789" * 20_000],
    "data": lambda line: said(line) == ["The data came back:"] and '"city": "Köln"' in json.dumps(line, ensure_ascii=False),
    "task": lambda line: said(line) == FORECAST and states(line) == ["completed"],
    "fail": lambda line: said(line) == ["The sky fell down."] and states(line) == ["failed"],
    # Some say so by an error of the protocol, some by a task that failed.
    "error": lambda line: "the agent broke" in json.dumps(line) and ("error" in line or states(line) == ["failed"]),
    "unknown_task": lambda line: "not found" in line["error"]["words"],
    "got": lambda line: said(line) == ["Rain in Bonn.", "The forecast for Bonn is there."] and states(line) == ["completed"],
    "finished": lambda line: "NotCancelable" in line["error"]["kind"] or line["error"]["code"] == -32002,
    "goes_on": lambda line: said(line) == ["Which city?", "Then Kiel it is.", "You said hello."] and states(line) == ["input_required", "completed"],
    "stream": lambda line: said(line) == STREAM and states(line) == ["submitted", "working", "working", "completed"],
    "stream_say": lambda line: said(line) == ["You said streams."],
    "stream_fail": lambda line: said(line) == ["Looking at the sky.", "The sky fell down."] and states(line)[-1] == "failed",
    "cancelled": lambda line: states(line) == ["submitted", "working", "canceled", "canceled"],
    "left": lambda line: states(line) == ["submitted", "working", "canceled"],
    # Some agents tell first how the task stands.
    "subscribed": lambda line: states(line) in (["canceled"] * 2, ["working", "canceled", "canceled"]),
    "parallel": lambda line: said(line) == [str(number) for number in range(100, 108)],
    "many": lambda line: line["result"] == {"asked": MANY, "wrong": 0},
}
# What each caller must see under `plans/edits.toml`, call by call; a reply that was not edited is the agent's.
EDITED: list[tuple[str, Callable[[dict], bool]]] = [
    ("say", lambda line: said(line) == ["You heard Straße ☃."]),
    ("task", lambda line: said(line) == ["Snow ☃ in Berlin.", FORECAST[1]] and states(line) == ["completed"]),
    ("fail", lambda line: said(line) == ["The roof fell down."] and states(line) == ["failed"]),
    ("stream", lambda line: "".join(said(line)[1:4]) == "Rain in Berlin, then fog in Århus, then snow ☃." and said(line)[5] == STREAM[5]),
    ("stream_say", lambda line: said(line) == ["You heard streams."]),
    ("say", lambda line: said(line) == ["You said Gasse ☃."]),
    ("got", lambda line: said(line) == ["Snow in Bonn.", "The forecast for Bonn is there."]),
    # The words stand in two events of the stream.
    ("stream", lambda line: "".join(said(line)[1:4]) == "Rain in Bern, and fog in Köln, then snow ☃."),
    ("say", lambda line: said(line) == ["You said Straße ☃."]),
]
EDITS = [call for call, _ in EDITED]
PLANNED = 8


def wrong(lines: list[dict], truth: dict[str, Callable[[dict], bool]] = TRUTH) -> list[str]:
    """The lines that do not say what is known; a call that is not there."""
    bad = []
    for line in lines:
        try:
            right = truth[line["call"]](line)
        except (KeyError, TypeError, IndexError, AttributeError):
            right = False
        if not right:
            bad.append(json.dumps(line, ensure_ascii=False)[:900])
    return bad if lines else ["nothing was printed"]
