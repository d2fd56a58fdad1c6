"""The suite `mcp`: clients and servers of the official MCP SDKs, of both protocol versions, directly and through the proxy.

A tap before the proxy and one behind it keep what passed. The programs in `mcp/` print what their SDK gave them: through the proxy that
is what it is directly. The recording holds each POST, byte for byte as it passed the taps.
"""

import base64
import binascii
import http.client
import json
import re
import select
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from . import environments, mcp_stdio
from .aegis import Aegis
from .report import Report
from .wire import Exchange, Tap

NAME = "mcp"
PACKAGE = Path(__file__).resolve().parents[3] / "python" / "aegis" / "src"
SDKS = ("python-1", "python-2", "typescript-1", "typescript-2")
# Servers, and the clients that call each; a client of another version than the server falls back to 2025-11-25.
PAIRS = {
    "python-1": ["python-1", "typescript-1", "python-2"],
    "python-2": ["python-2", "typescript-2", "python-1"],
    "typescript-1": ["typescript-1", "python-1", "typescript-2"],
    "typescript-2": ["typescript-2", "python-2", "typescript-1"],
    "python-1 json": ["python-1", "typescript-1"],
    "typescript-1 json": ["typescript-1", "python-1"],
    "python-1 resumable": ["python-1", "typescript-1"],
    "typescript-1 resumable": ["typescript-1", "python-1"],
}
RESUMED = ("python-1 resumable", "typescript-1 resumable")
# What a client calls of a server that has not all: without streams nothing can be asked or told meanwhile.
FEWER = {"json": ["list", "add", "long", "table", "fail", "unknown_resource"], "resumable": ["add", "slow", "resumed", "cancelled"]}
# A server without sessions cannot ask an old client.
NO_SESSION = ("typescript-2", "typescript-1")
MANY = 500
MANY_CALLS = f"many={MANY}"
TIMES = 2
# What a client calls under `plans/edits.toml`, and what it must see.
EDITED = [
    ("add", lambda line: texts(line) == ["6"]),
    ("unicode", lambda line: texts(line) == ["Österreich ☃ — Straße"]),
    ("table", lambda line: line["result"]["structuredContent"]["rows"][0] == {"count": 41, "name": "a"} and '"count":41' in tight(line)),
    ("fail", lambda line: line["result"]["isError"] is True and "instrument" in texts(line)[0] and "tool" not in texts(line)[0]),
    ("route", lambda line: texts(line) == ["4 kg to Århus"]),
    ("slow", lambda line: texts(line) == ["undone"] and heard(line) == [f"part {part}" for part in range(1, 5)]),
    ("resumed", lambda line: texts(line) == ["read to the start"] and heard(line) == ["before", "after"]),
]
# The same under `plans/faults.toml`.
FAULTY = [
    ("picture", lambda line: line["error"]["code"] == -32001 and line["error"]["message"].endswith("the camera is broken")),
    ("picture", lambda line: TRUTH["picture"](line)),
    ("slow", lambda line: line["error"]["code"] == -32603 and line["error"]["message"].endswith("out of paper")),
    ("slow", lambda line: TRUTH["slow"](line)),
]
TOOLS = {"unicode": "lookup"}
SURFACE = "mcp_tools"
# Whether what a client printed of a call is right.
Truth = Callable[[dict], bool]


class Programs:
    """The commands of servers and clients."""

    def __init__(self, root: Path, cache: Path, environment: dict[str, str]) -> None:
        self.folder = root / NAME
        self.pythons = {f"python-{sdk}": str(environments.python(f"mcp-{sdk}", cache)) for sdk in (1, 2)}
        self.modules = environments.node(cache, NAME)
        self.environment = environment

    def command(self, program: str, sdk: str, *arguments: str) -> list[str]:
        if sdk in self.pythons:
            return [self.pythons[sdk], str(self.folder / f"{program}.py"), *arguments]
        before = [sdk[-1]] if program == "server" else []
        after = [sdk[-1]] if program == "client" else []
        return ["node", str(self.modules / f"{program}.mjs"), *before, *arguments[:1], *after, *arguments[1:]]

    @contextmanager
    def server(self, name: str, log: Path) -> Iterator[int]:
        """A server until the end of the block; gives its port."""
        sdk, *mode = name.split(" ")
        with open(log, "w") as errors:
            process = subprocess.Popen(
                self.command("server", sdk, *mode), stdout=subprocess.PIPE, stderr=errors, text=True, env=self.environment
            )
            try:
                readable, _, _ = select.select([process.stdout], [], [], 30)
                line = process.stdout.readline() if readable else ""
                if not line:
                    raise RuntimeError(f"the server {name} told no port: {log.read_text()[-2000:]}")
                yield int(line)
            finally:
                process.kill()
                process.communicate()

    def client(self, sdk: str, url: str, *calls: str) -> list[dict]:
        """What a client prints."""
        done = subprocess.run(
            self.command("client", sdk, url, *calls), capture_output=True, text=True, timeout=120, env=self.environment
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return lines if done.returncode == 0 else [*lines, {"call": "the program", "error": done.stderr[-300:]}]

    def client_of(self, command: list[str]) -> list[str]:
        """The lines that the command of a client prints, as they are."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=self.environment)
        return [line for line in done.stdout.splitlines() if line.startswith("{")]

    def recorded(self, directories: list[Path]) -> dict[Path, list[dict]]:
        """The attempts of runs, as the package `aegis` reads them."""
        command = [self.pythons["python-2"], str(self.folder / "recorded.py"), *map(str, directories)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=self.environment | {"PYTHONPATH": str(PACKAGE)})
        if done.returncode:
            raise RuntimeError(f"the package reads no recording: {done.stderr[-2000:]}")
        runs: dict[Path, list[dict]] = {directory: [] for directory in directories}
        for line in map(json.loads, done.stdout.splitlines()):
            for key in ("request", "reply", "delivered"):
                line[key] = None if line[key] is None else base64.b64decode(line[key])
            runs[Path(line["run"])].append(line)
        return runs


def test(root: Path, aegis: Aegis, cache: Path, report: Report) -> None:
    report.heading(NAME)
    programs = Programs(root, cache, aegis.environment)
    scratch = aegis.logs(NAME)
    with ExitStack() as stack:
        ports = dict(zip(PAIRS, ThreadPoolExecutor(TIMES).map(lambda name: stack.enter_context(server(programs, name, scratch)), PAIRS)))
        behind = {name: Tap(port) for name, port in ports.items()}
        options = [word for name, tap in behind.items() for word in ("--mcp", f"{slug(name)}=http://127.0.0.1:{tap.port}/mcp")]
        address, logs = stack.enter_context(aegis.serve(name="mcp-clean", more=options))
        front = Tap(int(address.rsplit(":", 1)[1]))
        pairs = Pairs(programs, ports, behind, front)
        with ThreadPoolExecutor(TIMES) as pool:
            called = list(pool.map(pairs.called, PAIRS))
        many = list(map(pairs.many, SDKS))
        planned, plans = stack.enter_context(aegis.serve(plan=root / NAME / "plans" / "edits.toml", name="mcp-edits", more=options))
        disturbed, disturbances = stack.enter_context(aegis.serve(plan=root / NAME / "plans" / "faults.toml", name="mcp-faults", more=options))
        with ThreadPoolExecutor(TIMES) as pool:
            edited = list(pool.map(lambda name: pairs.planned(name, planned, [call for call, _ in EDITED]), SDKS))
            resumed = list(pool.map(lambda name: pairs.planned(name, planned, ["add", "resumed"]), RESUMED))
            faulty = list(pool.map(lambda name: pairs.planned(name, disturbed, [call for call, _ in FAULTY]), SDKS))
        open_still = silent(f"http://127.0.0.1:{ports['python-1']}", aegis, scratch)
        stated = pairs.pair("python-2", "python-2", "add", agent="planner")
    results = [*(one for of in called for one in of), *many]
    attempts = programs.recorded([logs / result.run for result in results])
    for result in results:
        result.check(report, attempts[logs / result.run], logs, aegis)
    report.heading(f"{NAME}: edits and faults")
    for name, (lines, reached) in zip(SDKS, edited):
        check_edits(f"{NAME}: edits at {name}", name, lines, reached, plans / name, report)
    for name, (lines, _) in zip(SDKS, faulty):
        check_seen(f"{NAME}: faults at {name}", FAULTY, lines, report)
        steps = [step for step in aegis.show(disturbances / name)["steps"] if step["agent"].endswith(("/picture", "/slow"))]
        told = [([error["operator"] for error in step["injected"]], step["ending"]) for step in steps]
        report.equal(f"{NAME}: faults at {name}: the recording says which calls", told, [(["rpc_error"], "failed"), ([], "answered")] * 2)
    for name, (lines, _) in zip(RESUMED, resumed):
        check_resumed(f"{NAME}: edits at {name}", lines, aegis.show(plans / slug(name)), report)
    report.equal(f"{NAME}: a stream on which the server says nothing stays open, longer than a reply may be silent", open_still, "open")
    callers = {json.dumps(step.get("called_by")) for step in aegis.show(logs / stated.run)["steps"] if step["agent"].endswith("/add")}
    named = len(callers) == 1 and '"known_by": "stated", "agent": "planner"' in callers.pop()
    report.check(f"{NAME}: an address that names the agent says whose the call is", named and stated.direct == stated.proxied, callers)
    mcp_stdio.test(programs, aegis, report, root / NAME / "plans")


@contextmanager
def server(programs: Programs, name: str, scratch: Path) -> Iterator[int]:
    with programs.server(name, scratch / f"{slug(name)}.log") as port:
        yield port


def slug(name: str) -> str:
    return name.replace(" ", "-")


def silent(server: str, aegis: Aegis, scratch: Path) -> str:
    """What becomes of the stream of a session of 2025-11-25 on which nothing is said, where replies may be silent for a second."""
    settings = scratch / "silent.toml"
    settings.write_text("[limits]\nupstream_timeout_s = 1\n")
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
    with aegis.serve(name="mcp-silent", more=["--config", str(settings), "--mcp", f"calc={server}/mcp"]) as (address, _):
        client = http.client.HTTPConnection(address.removeprefix("http://"), timeout=10)
        client.request("POST", "/r/silent/mcp/calc", json.dumps(first), headers)
        session = client.getresponse()
        session.read()
        client.request("GET", "/r/silent/mcp/calc", headers=headers | {"mcp-session-id": session.headers["mcp-session-id"]})
        stream = client.getresponse()
        client.sock.settimeout(2.5)
        try:
            return f"{stream.status} {stream.read1()!r}"
        except TimeoutError:
            return "open"
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        finally:
            client.close()


class Called:
    """What one client did at one server: what it printed, and what passed before and behind the proxy."""

    def __init__(self, what: str, run: str, direct: list[dict], proxied: list[dict], before: list[Exchange], behind: list[Exchange]):
        self.what, self.run = what, run
        self.direct, self.proxied = direct, proxied
        self.before, self.behind = posts(before), posts(behind)
        self.read_on = [exchange for exchange in behind if "last-event-id" in exchange.request.headers]

    def check(self, report: Report, attempts: list[dict], logs: Path, aegis: Aegis) -> None:
        what = f"{NAME}: {self.what}"
        report.check(f"{what}: prints the same directly and through the proxy", self.direct == self.proxied, self.differences())
        report.equal(f"{what}: what it prints is right", wrong(self.proxied), [])
        report.check(f"{what}: requests and replies pass byte for byte", *passed(self.before, self.behind))
        report.equal(f"{what}: headers say what bodies say", disagreeing(self.behind), [])
        report.check(f"{what}: each of {len(self.before)} POSTs is recorded byte for byte", *kept(self.before, self.behind, attempts, self.read_on))
        agents = {attempt["agent"].split("/")[0] for attempt in attempts} | {attempt["surface"] for attempt in attempts}
        report.equal(f"{what}: by servers of tools", agents, {"mcp", SURFACE})
        shown = [attempt for step in aegis.show(logs / self.run)["steps"] for attempt in step["attempts"]]
        report.equal(f"{what}: `aegis show` tells as many", len(shown), len(attempts))

    def differences(self) -> str:
        pairs = [(one, other) for one, other in zip(self.direct, self.proxied) if one != other]
        told = [json.dumps(line)[:700] for pair in pairs for line in pair]
        return "\n".join([*told, f"{len(self.direct)} lines, {len(self.proxied)} lines"])


class Pairs:
    """Runs clients at servers. One server's clients come one after the other: it counts what was called."""

    def __init__(self, programs: Programs, ports: dict[str, int], behind: dict[str, Tap], front: Tap) -> None:
        self.programs, self.ports, self.behind, self.front = programs, ports, behind, front

    def called(self, server: str) -> list[Called]:
        return [self.pair(server, client) for client in PAIRS[server]]

    def pair(self, server: str, client: str, *calls: str, agent: str = "") -> Called:
        fewer = FEWER.get(server.partition(" ")[2], [])
        if (server, client) == NO_SESSION:
            fewer = [call for call in TRUTH if call not in ("remove", "cancelled", "many")]
        asked = calls or fewer
        what = f"{client} at {server}" + (f", {calls[0]}" if calls else "")
        run = slug("-".join([client, "at", server, *("many" for _ in calls)]))
        # What many calls print is known without making them all once more.
        direct = [{"call": "many", "result": {"asked": MANY, "wrong": 0}}]
        if asked != (MANY_CALLS,):
            direct = self.programs.client(client, f"http://127.0.0.1:{self.ports[server]}/mcp", *asked)
        self.behind[server].forget()
        run += f"-{agent}" * bool(agent)
        path = f"/r/{run}" + f"/a/{agent}" * bool(agent) + f"/mcp/{slug(server)}"
        proxied = self.programs.client(client, f"http://127.0.0.1:{self.front.port}{path}", *asked)
        before = [exchange for exchange in self.front.exchanges() if exchange.path.startswith(f"/r/{run}/")]
        return Called(what, run, direct, proxied, before, self.behind[server].exchanges())

    def many(self, sdk: str) -> Called:
        return self.pair(sdk, sdk, MANY_CALLS)

    def planned(self, server: str, address: str, calls: list[str]) -> tuple[list[dict], list[Exchange]]:
        """What the server's own client prints under the plan, and what came to the server."""
        self.behind[server].forget()
        lines = self.programs.client(server.split(" ")[0], f"{address}/r/{slug(server)}/mcp/{slug(server)}", *calls)
        return lines, posts(self.behind[server].exchanges())


def check_edits(what: str, name: str, lines: list[dict], behind: list[Exchange], directory: Path, report: Report) -> None:
    """Each caller sees the edited value, its server the edited argument with headers that agree; the label names each tool, and no other."""
    check_seen(what, EDITED, lines, report)
    report.equal(f"{what}: headers say what bodies say", disagreeing(behind), [])
    label = directory / "label.json"
    named = Counter(error["agent"] for error in json.loads(label.read_text())["errors"]) if label.is_file() else None
    wanted = Counter(f"mcp/{name}/{TOOLS.get(call, call)}" for call, _ in EDITED)
    report.equal(f"{what}: the label names each edited tool once", named, wanted)


def check_seen(what: str, planned: list[tuple[str, Truth]], lines: list[dict], report: Report) -> None:
    for (call, truth), line in zip(planned, [*lines, *([{}] * len(planned))]):
        report.check(f"{what}: the caller of `{call}` sees what is planned", not wrong([line], {call: truth}), line or lines)


def check_resumed(what: str, lines: list[dict], shown: dict, report: Report) -> None:
    """A result may come on another stream than the one that its call opened: the edit reaches it there, and the step has it."""
    check_seen(what, [(call, truth) for call, truth in EDITED if call in ("add", "resumed")], lines, report)
    steps = [step for step in shown["steps"] if step["agent"].endswith("/resumed")]
    endings = [[attempt["ending"] for attempt in step["attempts"]] for step in steps]
    report.check(f"{what}: the stream that is read on is an attempt of the step", len(endings) == 1 and len(endings[0]) > 1 and endings[0][-1] == "answered", endings)
    report.check(f"{what}: no edit is lost", not shown["manipulator_failures"] and len(shown["label"]["errors"]) == 2, f"{shown['label']} {shown['manipulator_failures']}")


def texts(line: dict) -> list[str]:
    result = line.get("result")
    results = result if isinstance(result, list) else [result.get("result", result)] if result else []
    return [part["text"] for one in results if isinstance(one, dict) for part in one.get("content", []) if part["type"] == "text"]


def heard(line: dict) -> list[str]:
    """The words of progress, as either client prints them."""
    return [said["message"] if isinstance(said, dict) else said[2] for said in line["result"]["heard"]]


# What each call's line must say, whichever SDKs are at the ends.
TRUTH = {
    "list": lambda line: len(line["result"]["tools"]) == 11,
    "add": lambda line: texts(line) == ["5"],
    "unicode": lambda line: texts(line) == ["Germany — Straße"],
    "long": lambda line: texts(line) == ["0123456789" * 20_000],
    "table": lambda line: line["result"]["structuredContent"] == {"rows": [{"count": 1, "name": "a"}, {"count": 2, "name": "b"}]},
    "fail": lambda line: line["result"]["isError"] is True,
    "unknown_tool": lambda line: "error" in line or line["result"]["isError"] is True,
    "wrong_arguments": lambda line: line["result"]["isError"] is True,
    "route": lambda line: texts(line) == ["3 kg to Köln"],
    "picture": lambda line: line["result"]["content"][0]["data"].startswith("iVBORw0KGgo"),
    "resource": lambda line: line["result"]["contents"][0]["text"] == "nothing today",
    "unknown_resource": lambda line: "note://never" in line["error"]["message"],
    "prompt": lambda line: line["result"]["messages"][0]["content"]["text"] == "Review this: abc",
    "slow": lambda line: texts(line) == ["done"] and heard(line) == [f"part {part}" for part in range(1, 5)],
    "resumed": lambda line: texts(line) == ["read to the end"] and heard(line) == ["before", "after"],
    "remove": lambda line: texts(line) == ["removed k: true"],
    "parallel": lambda line: texts(line) == [str(number) for number in range(100, 108)],
    "cancelled": lambda line: line["result"] == {"stopped": 1},
    "many": lambda line: line["result"] == {"asked": MANY, "wrong": 0},
}


def tight(line: dict) -> str:
    """The first text, without blanks."""
    return "".join(texts(line)[0].split())


def wrong(lines: list[dict], truth: dict[str, Truth] | None = None) -> list[str]:
    """The lines that do not say what is known; a call that is not there."""
    bad = []
    for line in lines:
        try:
            right = (truth or TRUTH)[line["call"]](line)
        except (KeyError, TypeError, IndexError):
            right = False
        if not right:
            bad.append(json.dumps(line)[:500])
    return bad if lines else ["nothing was printed"]


def posts(exchanges: list[Exchange]) -> list[Exchange]:
    return [exchange for exchange in exchanges if exchange.method == "POST"]


def reply(exchange: Exchange) -> tuple[int | None, bytes, bool]:
    if exchange.reply is None:
        return None, b"", False
    return int(exchange.reply.line.split(" ")[1]), exchange.reply.body, exchange.reply.whole


def paired(exchanges: list[Exchange], others: list[Exchange]) -> list[tuple[Exchange, Exchange]]:
    """Those of equal requests, however they were ordered: replies that one end cut off fit a longer one."""
    left, pairs = list(others), []
    for exchange in exchanges:
        body = reply(exchange)[1]
        fitting = [other for other in left if other.request.body == exchange.request.body]
        best = [other for other in fitting if reply(other)[1].startswith(body) or body.startswith(reply(other)[1])]
        if fitting:
            other = (best or fitting)[0]
            left.remove(other)
            pairs.append((exchange, other))
    return pairs


def passed(before: list[Exchange], behind: list[Exchange]) -> tuple[bool, str]:
    """Whether the server got what the client sent, and the client what the server said. A client may leave before the end."""
    pairs = paired(before, behind)
    bad = []
    for exchange, other in pairs:
        (status, body, whole), (other_status, other_body, _) = reply(exchange), reply(other)
        if status is not None and (status != other_status or not other_body.startswith(body) or whole and body != other_body):
            bad.append(f"{exchange.request.body[:200]!r}: {status} {body[:300]!r} for {other_status} {other_body[:300]!r}")
    if not before or len(pairs) != len(before) or len(before) != len(behind):
        bad.append(f"{len(before)} POSTs, {len(behind)} at the server, {len(pairs)} equal")
    return not bad, "\n".join(bad[:10])


def kept(before: list[Exchange], behind: list[Exchange], attempts: list[dict], read_on: list[Exchange] | None = None) -> tuple[bool, str]:
    """Whether the recording holds each POST as it passed: at least what the client read, at most what the server said. `read_on`: the
    streams on which servers went on; what a `GET` has brought of an answer is another attempt of its POST."""
    bad = []
    left = list(attempts)
    for exchange, other in paired(before, behind):
        (status, body, whole), (_, most, _) = reply(exchange), reply(other)
        asked, least, most = bare(exchange.request.body), bare(body), bare(most)
        fitting = [attempt for attempt in left if bare(attempt["request"]) == asked]
        fitting = [one for one in fitting if most.startswith(bare(one["reply"])) and bare(one["reply"]).startswith(least)]
        # Of a client that left before any reply the recording says so.
        gone = status is None
        fitting = [one for one in fitting if (one["cause"] == "client_gone" if gone else one["status"] == status)]
        fitting = [one for one in fitting if one["delivered"] is None and (not whole or bare(one["reply"]) == least)]
        if fitting:
            left.remove(fitting[0])
        else:
            bad.append(f"not recorded: {exchange.request.body[:300]!r} {status} {body[:300]!r}")
    for attempt in list(left):
        streams = [exchange for exchange in read_on or [] if reply(exchange)[1].startswith(attempt["reply"])]
        if streams and any(bare(exchange.request.body) == bare(attempt["request"]) for exchange in before):
            left.remove(attempt)
    bad += [f"nobody sent: {attempt['request'][:300]!r} {attempt['status']} {attempt['reply'][:200]!r}" for attempt in left]
    bad += [f"not exact: {attempt['request'][:300]!r}" for attempt in attempts if not attempt["exact"] and not is_opaque(attempt)]
    return not bad, "\n".join(bad[:10])


# What a server of 2026-07-28 wants back. Random letters look like a key at times; a recording masks keys, and says so.
STATE = re.compile(rb'(?<="requestState":")[^"]*(?=")')


def bare(body: bytes) -> bytes:
    return STATE.sub(lambda found: b"." * len(found[0]), body)


def is_opaque(attempt: dict) -> bool:
    return any(STATE.search(attempt[part]) for part in ("request", "reply"))


def disagreeing(exchanges: list[Exchange]) -> list[str]:
    """Requests of 2026-07-28 whose headers do not say the method and the name of their body."""
    bad = []
    for exchange in exchanges:
        headers, body = exchange.request.headers, json.loads(exchange.request.body)
        if headers.get("mcp-protocol-version") != "2026-07-28":
            continue
        params = body.get("params", {})
        name = params.get("uri" if body["method"] == "resources/read" else "name")
        said = headers.get("mcp-method"), plain(headers.get("mcp-name"))
        if said != (body["method"], name):
            bad.append(f"{said} for {body['method']} {name}")
        arguments = params.get("arguments") or {}
        if "region" in arguments and plain(headers.get("mcp-param-region")) != arguments["region"]:
            bad.append(f"{headers.get('mcp-param-region')} for {arguments['region']}")
    return bad


def plain(header: str | None) -> str | None:
    """A header's value as it is meant: what is not plain ASCII comes in base64."""
    if header is None or not (header.startswith("=?base64?") and header.endswith("?=")):
        return header
    try:
        return base64.b64decode(header[9:-2]).decode()
    except (binascii.Error, UnicodeDecodeError):
        return header
